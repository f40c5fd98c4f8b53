"""kube-scheduler's filters, on one pod and one node.

The words of a refusal are kube-scheduler's own, since people and Kerf's tests read them; the first filter that refuses
speaks for the node, save that NodeResourcesFit names every resource that is short. Rules of Kubernetes 1.36. What a pod
asks of other pods and of volumes lies in modules of its own (`spread`, `affinity`, `volumes`): most pods ask nothing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, Self

from kerf.model.constraints import NO_SCHEDULE, Taint, Toleration, untolerated
from kerf.model.nodes import RESERVED_FOR, Node
from kerf.model.pods import HostPort, Pod
from kerf.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, NOTHING, PODS, Resources
from kerf.sim.kubernetes.rooms import NodePods
from kerf.sim.kubernetes.selectors import ANYWHERE, NodeTerms

UNSCHEDULABLE, TAINTS, AFFINITY = "NodeUnschedulable", "TaintToleration", "NodeAffinity"
NODE_PORTS, RESOURCES, EXTENDER = "NodePorts", "NodeResourcesFit", "extender"
VOLUME_RESTRICTIONS, VOLUME_LIMITS = "VolumeRestrictions", "NodeVolumeLimits"
VOLUMES, VOLUME_ZONE = "VolumeBinding", "VolumeZone"
SPREAD, POD_AFFINITY = "PodTopologySpread", "InterPodAffinity"
RESOURCE_CLAIMS = "DynamicResources"
"""Who refuses a pod: plugins of kube-scheduler, or an extender."""

_UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)
_ANY_ADDRESS = "0.0.0.0"
_NAMED_FIRST = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)
_BLIND_TO_TAINTS = frozenset(
    {AFFINITY, NODE_PORTS, RESOURCES, VOLUME_RESTRICTIONS, VOLUMES, VOLUME_ZONE, SPREAD, POD_AFFINITY}
)


@dataclass(frozen=True, slots=True)
class FilterRefusal:
    """Which plugin refuses the pod on a node, and why in kube-scheduler's words.

    `is_final`: no pod that leaves the node could change it (UnschedulableAndUnresolvable).
    """

    plugin: str
    reasons: tuple[str, ...]
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class PodRefusal:
    """Which plugin refuses the pod before any node is looked at, and why."""

    plugin: str
    reason: str


class NodeFilter(Protocol):
    """A plugin that has counted beforehand what one pod needs to know of the cluster (its PreFilter)."""

    plugin: str

    def refusal(self, room: NodePods) -> FilterRefusal | None:
        """Why the node cannot take the pod; None when it can."""

    def moved(self, other: Pod, room: NodePods, by: int) -> None:
        """Think another pod onto the node (1) or away from it (-1)."""

    def copied(self) -> Self:
        """The same; neither changes with the other."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One pod to be placed.

    `wanted` is what it requires of nodes. `ignored` are resources that an extender counts. `others` are the filters
    for other pods and volumes, in kube-scheduler's order; of most pods there is none.
    """

    pod: Pod
    wanted: NodeTerms = ANYWHERE
    ignored: frozenset[str] = frozenset()
    others: tuple[NodeFilter, ...] = ()

    def copied(self) -> "Attempt":
        """The same, with counts of its own."""
        return replace(self, others=tuple(each.copied() for each in self.others)) if self.others else self

    def move(self, others: Iterable[Pod], room: NodePods, by: int) -> None:
        """Think other pods onto the node (1) or away from it (-1)."""
        for other in others:
            for each in self.others:
                each.moved(other, room, by)


def refusal(attempt: Attempt, room: NodePods, nominated: Iterable[Pod] = ()) -> FilterRefusal | None:
    """Why the node cannot take the pod; None when it can. `nominated` are other pods that are promised room there.

    It must fit with those and without them: they may be what its affinity needs, and never come.
    """
    promised = [other for other in nominated if other.key != attempt.pod.key]
    if promised:
        crowded = attempt.copied()
        crowded.move(promised, room, 1)
        refused = _refusal(crowded, room.with_pods(iter(promised)))
        if refused is not None:
            return refused
    return _refusal(attempt, room)


def _refusal(attempt: Attempt, room: NodePods) -> FilterRefusal | None:
    return next(refusals(attempt, room), None)


def refusals(attempt: Attempt, room: NodePods) -> Iterator[FilterRefusal]:
    """What each plugin has against the node, in kube-scheduler's order; it asks no further after the first."""
    pod, node = attempt.pod, room.node
    if _is_closed(pod, node):
        yield FilterRefusal(UNSCHEDULABLE, ("node(s) were unschedulable",), is_final=True)
    if not _is_tolerated(pod, node):
        yield FilterRefusal(TAINTS, ("node(s) had untolerated taint(s)",), is_final=True)
    if not _is_wanted(attempt, node):
        yield FilterRefusal(AFFINITY, ("node(s) didn't match Pod's node affinity/selector",), is_final=True)
    if pod.spec.host_ports and any(has_common_port(pod, other) for other in room.pods.values()):
        yield FilterRefusal(NODE_PORTS, ("node(s) didn't have free ports for the requested pod ports",))
    short = _short(attempt, node.allocatable, room.used)
    if short:
        yield FilterRefusal(RESOURCES, short)
    for each in attempt.others:
        refused = each.refusal(room)
        if refused is not None:
            yield refused
    if "resourceClaims" in pod.spec.not_planned:
        # No node has a device for a claim, because nothing here publishes ResourceSlices.
        yield FilterRefusal(RESOURCE_CLAIMS, ("cannot allocate all claims",))


def may_help(attempt: Attempt, refused_by: Collection[str], old: Node | None, new: Node) -> bool:
    """Whether a node that is new (`old` is None) or has changed may take a pod that those plugins have refused.

    kube-scheduler's queueing hints. They look at the node alone, not at who is on it; any change of taints or cordon
    counts for the plugins that do not look at either, since the scheduler does not tell them of nodes it passed over.
    """
    pod = attempt.pod
    has_opened = old is not None and (old.taints, old.is_unschedulable) != (new.taints, new.is_unschedulable)
    if has_opened and not _BLIND_TO_TAINTS.isdisjoint(refused_by):
        return True
    is_new = old is None
    has_other_labels = old is None or old.labels != new.labels
    hints: dict[str, Callable[[], bool]] = {
        EXTENDER: lambda: True,
        UNSCHEDULABLE: lambda: not new.is_unschedulable and (old is None or old.is_unschedulable),
        TAINTS: lambda: _is_tolerated(pod, new) and (old is None or not _is_tolerated(pod, old)),
        AFFINITY: lambda: _is_wanted(attempt, new) and (old is None or not _is_wanted(attempt, old)),
        NODE_PORTS: lambda: is_new,
        VOLUME_RESTRICTIONS: lambda: is_new,
        VOLUME_LIMITS: lambda: False,
        VOLUMES: lambda: has_other_labels,
        VOLUME_ZONE: lambda: has_other_labels,
        SPREAD: lambda: has_other_labels or has_opened,
        POD_AFFINITY: lambda: has_other_labels,
        RESOURCE_CLAIMS: lambda: is_new,
        RESOURCES: lambda: (
            not _short(attempt, new.allocatable, NOTHING) and (old is None or _has_more(pod, old.allocatable, new))
        ),
    }
    return any(hints[plugin]() for plugin in refused_by)


def tolerations_of(pod: Pod) -> tuple[Toleration, ...]:
    """All of them: decoded, a pod keeps those that Kerf has added apart from its spec."""
    added = (Toleration(RESERVED_FOR, "Equal", value, NO_SCHEDULE) for value in pod.reserved_for)
    return (*pod.spec.tolerations, *added)


def bears_cordons(pod: Pod) -> bool:
    """Whether a cordon does not keep it off."""
    return any(t.tolerates(_UNSCHEDULABLE) for t in pod.spec.tolerations)


def _is_closed(pod: Pod, node: Node) -> bool:
    return node.is_unschedulable and not bears_cordons(pod)


def _is_tolerated(pod: Pod, node: Node) -> bool:
    return not node.taints or untolerated(node.taints, tolerations_of(pod)) is None


def _is_wanted(attempt: Attempt, node: Node) -> bool:
    return attempt.wanted is ANYWHERE or attempt.wanted.matches(node.name, node.labels)


def _has_more(pod: Pod, before: Resources, node: Node) -> bool:
    return any(node.allocatable.get(name, 0) > before.get(name, 0) for name in pod.spec.requests)


def has_common_port(pod: Pod, other: Pod) -> bool:
    """Whether both want one port of the node."""
    if not pod.spec.host_ports or not other.spec.host_ports:
        return False
    return any(_is_same_port(mine, theirs) for mine in _lasting_ports(pod) for theirs in _lasting_ports(other))


def _lasting_ports(pod: Pod) -> list[HostPort]:
    """What an init container takes is free again before the others start (GetHostPorts)."""
    return [port for container in pod.spec.lasting for port in container.host_ports]


def _is_same_port(one: HostPort, other: HostPort) -> bool:
    """HostPortInfo.CheckConflict: one of all addresses conflicts with each; `::` is an address like others."""
    if (one.port, one.protocol) != (other.port, other.protocol):
        return False
    addresses = {one.ip or _ANY_ADDRESS, other.ip or _ANY_ADDRESS}
    return len(addresses) == 1 or _ANY_ADDRESS in addresses


def _short(attempt: Attempt, allocatable: Resources, used: Resources) -> tuple[str, ...]:
    short = [
        name
        for name, amount in attempt.pod.spec.requests.items()
        if amount > max(0, allocatable.get(name, 0) - used.get(name, 0)) and name not in attempt.ignored
    ]
    short.sort(key=lambda name: (*(name != first for first in _NAMED_FIRST), name))
    return tuple("Too many pods" if name == PODS else f"Insufficient {name}" for name in short)
