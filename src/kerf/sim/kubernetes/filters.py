"""kube-scheduler's filters and scores, on one pod and one node.

The words of a refusal are kube-scheduler's own, since people and Kerf's tests read them; the first filter that refuses
speaks for the node, save that NodeResourcesFit names every resource that is short. Rules of Kubernetes 1.36.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from kerf.model.constraints import NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, Toleration, untolerated
from kerf.model.nodes import RESERVED_FOR, Node
from kerf.model.pods import Container, Pod
from kerf.model.quantities import CPU, MEMORY, MIB, NOTHING, PODS, Resources

UNSCHEDULABLE, TAINTS, AFFINITY = "NodeUnschedulable", "TaintToleration", "NodeAffinity"
NODE_PORTS, RESOURCES, EXTENDER = "NodePorts", "NodeResourcesFit", "extender"
POD_AFFINITY, VOLUMES = "InterPodAffinity", "VolumeBinding"
"""Who refuses a pod: plugins of kube-scheduler, or an extender."""

_UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)
# What a container without a request counts in the scores (kube-scheduler's GetNonzeroRequests).
_LEAST_COUNTED = {CPU: 100, MEMORY: 200 * MIB}
_MOST_SCORE = 100
_TAINT_WEIGHT, _AFFINITY_WEIGHT, _RESOURCES_WEIGHT = 3, 2, 1


@dataclass(slots=True)
class NodePods:
    """A node and the pods that count on it; `used` is their sum, `counted` the sum that the scores count."""

    node: Node
    pods: dict[str, Pod] = field(default_factory=dict)
    used: Resources = NOTHING
    counted: Resources = NOTHING

    def put(self, pod: Pod) -> None:
        """Count a pod, in place of its earlier form."""
        self.drop(pod.key)
        self.pods[pod.key] = pod
        self.used = self.used + pod.spec.requests
        self.counted = self.counted + _counted(pod)

    def drop(self, key: str) -> None:
        """Stop counting a pod; nothing when it was not counted."""
        held = self.pods.pop(key, None)
        if held is not None:
            self.used = self.used - held.spec.requests
            self.counted = self.counted - _counted(held)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One pod to be placed.

    `only_nodes` are the node names its affinity fixes by field (a DaemonSet's pods); None when it fixes none. `ignored`
    are resources that somebody else counts. `related` says why other pods or volumes keep it off a node.
    """

    pod: Pod
    only_nodes: frozenset[str] | None = None
    ignored: frozenset[str] = frozenset()
    related: "Callable[[NodePods], FilterRefusal | None] | None" = None


@dataclass(frozen=True, slots=True)
class FilterRefusal:
    """Which plugin refuses the pod on a node, and why in kube-scheduler's words."""

    plugin: str
    reasons: tuple[str, ...]


def refusal(attempt: Attempt, room: NodePods, nominated: Iterable[Pod] = ()) -> FilterRefusal | None:
    """Why the node cannot take the pod; None when it can. `nominated` are other pods that are promised room there."""
    pod, node = attempt.pod, room.node
    if _is_closed(pod, node):
        return FilterRefusal(UNSCHEDULABLE, ("node(s) were unschedulable",))
    if not _is_tolerated(pod, node):
        return FilterRefusal(TAINTS, ("node(s) had untolerated taint(s)",))
    if not _is_wanted(attempt, node):
        return FilterRefusal(AFFINITY, ("node(s) didn't match Pod's node affinity/selector",))
    promised = [other for other in nominated if other.key != pod.key]
    if any(has_common_port(pod, other) for other in (*room.pods.values(), *promised)):
        return FilterRefusal(NODE_PORTS, ("node(s) didn't have free ports for the requested pod ports",))
    used = room.used
    for other in promised:
        used = used + other.spec.requests
    short = _short(attempt, node.allocatable, used)
    if short:
        return FilterRefusal(RESOURCES, short)
    return attempt.related(room) if attempt.related is not None else None


def may_help(attempt: Attempt, refused_by: Collection[str], old: Node | None, new: Node) -> bool:
    """Whether a node that is new (`old` is None) or has changed may take a pod that those plugins have refused.

    kube-scheduler's queueing hints. They look at the node alone, not at who is on it; any change of taints or cordon
    counts for the plugins that do not look at either, since the scheduler does not tell them of nodes it passed over.
    """
    pod = attempt.pod
    has_opened = old is not None and (old.taints, old.is_unschedulable) != (new.taints, new.is_unschedulable)
    if has_opened and not {AFFINITY, NODE_PORTS, RESOURCES, POD_AFFINITY, VOLUMES}.isdisjoint(refused_by):
        return True
    is_new = old is None
    hints: dict[str, Callable[[], bool]] = {
        EXTENDER: lambda: True,
        UNSCHEDULABLE: lambda: not new.is_unschedulable and (old is None or old.is_unschedulable),
        TAINTS: lambda: _is_tolerated(pod, new) and (old is None or not _is_tolerated(pod, old)),
        AFFINITY: lambda: _is_wanted(attempt, new) and (old is None or not _is_wanted(attempt, old)),
        NODE_PORTS: lambda: is_new,
        VOLUMES: lambda: is_new,
        POD_AFFINITY: lambda: old is None or old.labels != new.labels,
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
    return untolerated(node.taints, tolerations_of(pod)) is None


def _is_wanted(attempt: Attempt, node: Node) -> bool:
    if attempt.only_nodes is not None and node.name not in attempt.only_nodes:
        return False
    return any(wanted.unsatisfied_by(node.labels) is None for wanted in attempt.pod.spec.alternatives)


def _has_more(pod: Pod, before: Resources, node: Node) -> bool:
    return any(node.allocatable.get(name, 0) > before.get(name, 0) for name in pod.spec.requests)


def has_common_port(pod: Pod, other: Pod) -> bool:
    """Whether both want one port of the node."""
    return any(mine.conflicts(theirs) for mine in pod.spec.host_ports for theirs in other.spec.host_ports)


def _short(attempt: Attempt, allocatable: Resources, used: Resources) -> tuple[str, ...]:
    short = [
        name
        for name, amount in attempt.pod.spec.requests.items()
        if amount > max(0, allocatable.get(name, 0) - used.get(name, 0)) and name not in attempt.ignored
    ]
    short.sort(key=lambda name: (name != PODS, name != CPU, name != MEMORY, name))
    return tuple("Too many pods" if name == PODS else f"Insufficient {name}" for name in short)


def best(attempt: Attempt, rooms: Sequence[NodePods]) -> NodePods:
    """The node that kube-scheduler prefers among those that can take the pod; the first by name among equals."""
    taints = [_intolerable(attempt.pod, room.node.taints) for room in rooms]
    affinities = [
        sum(weight for weight, term in attempt.pod.spec.preferred if term.unsatisfied_by(room.node.labels) is None)
        for room in rooms
    ]
    scores = {
        room.node.name: _TAINT_WEIGHT * (_MOST_SCORE - taint * _MOST_SCORE // max(1, *taints))
        + _AFFINITY_WEIGHT * (affinity * _MOST_SCORE // max(1, *affinities))
        + _RESOURCES_WEIGHT * _least_allocated(attempt.pod, room)
        for room, taint, affinity in zip(rooms, taints, affinities, strict=True)
    }
    return min(rooms, key=lambda room: (-scores[room.node.name], room.node.name))


def _intolerable(pod: Pod, taints: Collection[Taint]) -> int:
    return sum(
        taint.effect == PREFER_NO_SCHEDULE and not any(t.tolerates(taint) for t in pod.spec.tolerations)
        for taint in taints
    )


def _least_allocated(pod: Pod, room: NodePods) -> int:
    """The free share of cpu and memory with the pod on the node, from 0 to 100, as LeastAllocated scores it."""
    own, shares = _counted(pod), []
    for name in _LEAST_COUNTED:
        total = room.node.allocatable.get(name, 0)
        if total > 0:
            used = room.counted.get(name, 0) + own[name]
            shares.append(max(0, total - used) * _MOST_SCORE // total)
    return sum(shares) // len(shares) if shares else 0


def _counted(pod: Pod) -> Resources:
    def of(container: Container, name: str) -> int:
        return container.requests.get(name) or _LEAST_COUNTED[name]

    spec = pod.spec
    return Resources(
        (name, max([sum(of(c, name) for c in spec.containers), *(of(c, name) for c in spec.init_containers)]))
        for name in _LEAST_COUNTED
    )
