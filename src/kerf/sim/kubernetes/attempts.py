"""One attempt to place a pod: its plugins count what they need, then each node is asked.

kube-scheduler's findNodesThatFitPod (Kubernetes 1.36, pkg/scheduler/schedule_one.go), without the node that is bound in
the end: so a test can ask for the nodes that can take a pod, and compare.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kerf.model.pods import Pod, PodSpec
from kerf.sim.kubernetes.affinity import InterPodAffinity
from kerf.sim.kubernetes.filters import AFFINITY, Attempt, FilterRefusal, NodeFilter, PodRefusal, refusal
from kerf.sim.kubernetes.rooms import NodePods, Rooms, mounts_of
from kerf.sim.kubernetes.selectors import node_terms
from kerf.sim.kubernetes.spread import PodTopologySpread
from kerf.sim.kubernetes.volumes import NodeVolumeLimits, VolumeBinding, VolumeRestrictions, VolumeZone
from kerf.sim.objects import Json

Promised = Mapping[str, Sequence[Pod]]
"""By node, the pods that are promised room there."""


@dataclass(frozen=True)
class Judgement:
    """Which nodes can take a pod, by name, and why the others cannot.

    `reasons` count by the words of kube-scheduler; `of_pod` stands for them where the pod is refused before any node is
    looked at. `open` are nodes that could take the pod if others left.
    """

    feasible: list[NodePods] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    refused_by: frozenset[str] = frozenset()
    of_pod: str = ""
    open: list[NodePods] = field(default_factory=list)

    def message(self, nodes: int) -> str:
        """What the scheduler says of the pod where no node can take it."""
        listed = self.of_pod or ", ".join(sorted(f"{count} {reason}" for reason, count in self.reasons.items()))
        return f"0/{nodes} nodes are available: {listed}."


def prepared(pod: Pod, raw: Json, rooms: Rooms, ignored: frozenset[str] = frozenset()) -> Attempt | PodRefusal:
    """What the plugins count before they look at nodes, or why the pod can be on none."""
    wanted = node_terms(raw["spec"])
    if wanted.only_names is not None and not wanted.only_names:
        return PodRefusal(AFFINITY, "pod affinity terms conflict")
    mounts = mounts_of(raw)
    others: list[NodeFilter] = []
    for plugin in (VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone) if mounts else ():
        made = plugin.of(pod, mounts, rooms)
        if isinstance(made, PodRefusal):
            return made
        if made is not None:
            others.append(made)
    others += filter(None, (PodTopologySpread.of(pod, raw, rooms), InterPodAffinity.of(pod, raw, rooms)))
    return Attempt(pod, wanted, ignored, tuple(others))


class KnownRefusals:
    """What nodes were refused for, by the pods that ask alike: most nodes are as they were at the last attempt.

    Of nodes that are gone it keeps no more than there are nodes.
    """

    def __init__(self) -> None:
        self._by_form: dict[tuple[int, tuple[str, ...], frozenset[str]], tuple[PodSpec, _ByNode]] = {}

    def of(self, attempt: Attempt) -> "_ByNode":
        """Those for such a pod; none are kept where it asks for nodes by name, or anything of other pods."""
        if attempt.others or attempt.wanted.only_names is not None:
            return {}
        pod = attempt.pod
        key = id(pod.spec), pod.reserved_for, attempt.ignored
        if key not in self._by_form:
            if len(self._by_form) >= _MOST_FORMS:
                self._by_form.clear()
            # The spec is kept beside: while it is, no other can have its id.
            self._by_form[key] = pod.spec, {}
        return self._by_form[key][1]


_ByNode = dict[str, tuple[NodePods, int, FilterRefusal | None]]
_MOST_FORMS = 256


def verdict(
    attempt: Attempt | PodRefusal, rooms: Rooms, promised: Promised, known: KnownRefusals | None = None
) -> Judgement:
    """Ask each node; where the pod's affinity names nodes, those alone. `known` is what earlier attempts have found."""
    if isinstance(attempt, PodRefusal):
        return Judgement(refused_by=frozenset({attempt.plugin}), of_pod=attempt.reason)
    names = attempt.wanted.only_names
    reasons: Counter[str] = Counter()
    refused_by: set[str] = set()
    feasible: list[NodePods] = []
    others: list[NodePods] = []
    refusals = known.of(attempt) if known is not None else {}
    for room in rooms.sorted():
        if names is not None and room.node.name not in names:
            reasons[f"node(s) didn't satisfy plugin(s) [{AFFINITY}]"] += 1
            refused_by.add(AFFINITY)
            continue
        refused = _asked(attempt, room, promised, refusals)
        if refused is None:
            feasible.append(room)
            continue
        reasons.update(refused.reasons)
        refused_by.add(refused.plugin)
        if not refused.is_final:
            others.append(room)
    if len(refusals) > 2 * len(rooms):
        for name in refusals.keys() - rooms.by_name.keys():
            del refusals[name]
    return Judgement(feasible, reasons, frozenset(refused_by), open=others)


def _asked(attempt: Attempt, room: NodePods, promised: Promised, known: _ByNode) -> FilterRefusal | None:
    name = room.node.name
    nominated = promised.get(name, ())
    if nominated:
        return refusal(attempt, room, nominated)
    held = known.get(name)
    if held is None or held[0] is not room or held[1] != room.changes:
        held = known[name] = room, room.changes, refusal(attempt, room)
    return held[2]
