"""Claims that several pods share and whose volume is still to be made.

The volume is made where the first of the pods is bound (WaitForFirstConsumer), and from then on no node of another zone
may take the others: so a decision must keep them in one zone before any of them runs. Where the volumes that the claim
may take are parts of nodes, it is one node. A pod with two such claims ties their pods together, and all of them are
kept as close as one of the claims asks. The access mode ReadWriteOnce says nothing here: kube-scheduler reads only
ReadWriteOncePod. Rules of kube-scheduler 1.36 (pkg/scheduler/framework/plugins: volumebinding, volumerestrictions).
"""

from collections.abc import Collection, Iterable, Mapping

from kerf.model.constraints import HOSTNAME, ZONE, Requirement, Requirements
from kerf.model.topology import PodAffinityTerm
from kerf.model.volumes import SharedClaim

GROUP_LABEL = "<shared claim"
"""Of pods that share claims, for as long as a decision lasts; no pod of a cluster can have such a label."""


class SharedClaims:
    """Which pods share claims, by the keys of these (`namespace/name`).

    `users` are for each pod its claims that wait for their volume; of one namespace, since claims are. Linear in them.
    `of_nodes` are claims whose volume will be a part of a node.
    """

    def __init__(self, users: Iterable[Iterable[str]], of_nodes: Collection[str] = ()) -> None:
        self._before: dict[str, str] = {}
        counts: dict[str, int] = {}
        for claims in users:
            first, *others = sorted(set(claims)) or [""]
            for claim in (first, *others) if first else ():
                counts[claim] = counts.get(claim, 0) + 1
                self._join(first, claim)
        self._shared = frozenset(claim for claim, count in counts.items() if count > 1)
        self._of_nodes = frozenset(self._root(claim) for claim in of_nodes if claim in self._shared)
        self._known: dict[tuple[str, str], SharedClaim] = {}

    def _join(self, one: str, other: str) -> None:
        """Both are of one group from now on, which has the name of its first claim."""
        first, last = sorted((self._root(one), self._root(other)))
        self._before[last] = first

    def _root(self, claim: str) -> str:
        path = []
        while (before := self._before.setdefault(claim, claim)) != claim:
            path.append(claim)
            claim = before
        self._before.update(dict.fromkeys(path, claim))
        return claim

    def of(self, claims: Iterable[str]) -> SharedClaim | None:
        """For which of its claims a pod must be where others are; None where it shares none of them."""
        shared = min((claim for claim in claims if claim in self._shared), default="")
        if not shared:
            return None
        group = self._root(shared)
        if (shared, group) not in self._known:
            namespace, _, name = shared.partition("/")
            selector = Requirements([Requirement.of(GROUP_LABEL, "In", (group,))])
            key = HOSTNAME if group in self._of_nodes else ZONE
            self._known[shared, group] = SharedClaim(name, PodAffinityTerm(key, selector, (namespace,)))
        return self._known[shared, group]


def with_group(labels: Mapping[str, str], shared: SharedClaim) -> dict[str, str]:
    """The labels of a pod, with the one by which those that share its claims find it."""
    return {**labels, **shared.pods.selector.labels()}
