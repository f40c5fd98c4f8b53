"""Whether the user data of every NodePool of an EC2NodeClass is within what EC2 takes, before anything is launched.

The size is that of the whole text: labels and taints of the pool are in it, so `spec.userData` alone says too little.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kerf.clouds.aws.nodeclass.model import EC2NodeClass
from kerf.clouds.aws.nodeclass.status import Resolved
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.templates import ClaimFacts, MachineFacts, Templates
from kerf.clouds.aws.userdata.facts import TOO_LARGE
from kerf.model.nodepool import NodePool
from kerf.sharing.nvidia.choice import label_choices

_MOST_PODS = 1514
"""The most pods of a type (packaged catalogue, 2026-10): its digits are in the user data."""


def largest_claim(pool: NodePool) -> ClaimFacts:
    """What a claim of the pool brings along at most: its labels, those that Kerf may choose for it, and its taints.

    The capacity type is the one with the longest name.
    """
    choices = label_choices(pool.labels, pool.stated_annotations, has_mig=True)
    chosen = max(choices, key=lambda choice: len("".join((*choice, *choice.values()))))
    return ClaimFacts(labels={**pool.node_labels, **chosen}, taints=pool.taints, startup_taints=pool.startup_taints)


def check_user_data(
    templates: Templates,
    node_class: EC2NodeClass,
    resolved: Resolved,
    claims: Mapping[str, ClaimFacts],
    machines: Sequence[MachineFacts],
) -> None:
    """Raises Unusable for the pool with the largest user data that is over the limit, or for what cannot be read.

    `claims` are the largest by the name of their pool; there is an image for each of the machines.
    What an overlay or a window adds to one claim is not in it: EC2's limit is checked once more at each launch.
    Cost: pools x images.
    """
    largest = [replace(each, max_pods=_MOST_PODS) for each in machines]
    worst: Unusable | None = None
    for name, claim in claims.items():
        try:
            templates.planned(node_class, resolved, claim, largest)
        except Unusable as error:
            if error.reason != TOO_LARGE:
                raise
            if worst is None or error.excess_bytes > worst.excess_bytes:
                worst = Unusable(TOO_LARGE, f"NodePool {name}: {error.message}", error.excess_bytes)
    if worst is not None:
        raise worst
