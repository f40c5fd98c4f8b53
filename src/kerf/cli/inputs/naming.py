"""Objects as they are named on the command line, as kubectl takes names; `wanted` looks them up."""

from dataclasses import dataclass

import click

KINDS = {
    "pod": ("Pod", "pods", "po"),
    "deployment": ("Deployment", "deployments", "deploy"),
    "statefulset": ("StatefulSet", "statefulsets", "sts"),
    "replicaset": ("ReplicaSet", "replicasets", "rs"),
    "job": ("Job", "jobs"),
    "cronjob": ("CronJob", "cronjobs", "cj"),
    "node": ("Node", "nodes", "no"),
    "nodeclaim": ("NodeClaim", "nodeclaims", "nc", "claim", "claims"),
    "nodepool": ("NodePool", "nodepools", "np"),
    "nodeclass": (
        "NodeClass",
        "nodeclasses",
        "ec2nodeclass",
        "ec2nodeclasses",
        "ec2nc",
        "ec2ncs",
        "ecsnodeclass",
        "ecsnodeclasses",
        "kwoknodeclass",
        "kwoknodeclasses",
    ),
    "cwin": ("CapacityWindow", "capacitywindow", "capacitywindows"),
    "provisioningrequest": ("ProvisioningRequest", "provisioningrequests", "provreq", "provreqs"),
    "capacitybuffer": ("CapacityBuffer", "capacitybuffers", "cb"),
}
"""What can be explained: its kind, and the other names that kubectl or an operator has for it."""
WORKLOADS = ("deployment", "statefulset", "replicaset", "job", "cronjob")
"""Those that make pods."""
CLUSTER_WIDE = ("node", "nodeclaim", "nodepool", "nodeclass", "cwin")
"""Those that are in no namespace."""
_ALIASES = {alias.lower(): kind for kind, names in KINDS.items() for alias in (kind, *names)}


@dataclass(frozen=True)
class Wanted:
    """An object that was asked for; `namespace` None: any."""

    kind: str
    name: str
    namespace: str | None = None


def kind_of(text: str) -> str | None:
    """The kind that kubectl knows by this name; None for none of `KINDS`."""
    return _ALIASES.get(text.lower())


def wanted_objects(objects: tuple[str, ...], namespace: str | None) -> list[Wanted]:
    """`pod/web`, `pod/default/web`, or kubectl's `pod web db`."""
    if objects and "/" not in objects[0] and len(objects) > 1:
        objects = tuple(f"{objects[0]}/{name}" for name in objects[1:])
    return [parsed(text, namespace) for text in objects]


def parsed(text: str, namespace: str | None) -> Wanted:
    """`KIND/NAME` or `KIND/NAMESPACE/NAME`; the kind may have its group, as `kubectl get -o name` writes it.

    Raises UsageError.
    """
    kind_text, *rest = text.split("/")
    kind = kind_of(kind_text.partition(".")[0] if rest else kind_text)
    if kind is None:
        raise click.UsageError(f"{text}: expected one of {', '.join(KINDS)}, then /NAME; got {kind_text!r}")
    if not rest:
        forms = f"{kind}/NAME or {kind} NAME; kubectl explain {kind} describes its fields"
        raise click.UsageError(f"{text}: expected {forms}")
    if not all(rest) or len(rest) not in (1, 2):
        raise click.UsageError(f"{text}: expected {kind}/NAME or {kind}/NAMESPACE/NAME")
    return Wanted(kind, rest[-1], rest[0] if len(rest) == 2 else namespace)
