"""Where the pods of a node would go if it went: to nodes that stay, beside the pods that wait already."""

import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from kerf.engine.defaulting import SpreadDefaults, with_default_spread
from kerf.engine.disruption.budgets import Census
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.courses import Course, Rooms
from kerf.engine.disruption.settled import Settled
from kerf.engine.gangs import gangs
from kerf.engine.headroom.waiting import waiting_pods
from kerf.engine.lastword import heeded, unmovable
from kerf.engine.leaving import moves, unbound
from kerf.engine.mounting import mounted
from kerf.engine.place.preferences import Forms, formed
from kerf.engine.place.shapes import Kinds, Readings, Shape, group
from kerf.engine.place.spare import SummedRequests
from kerf.engine.place.trial import Trial, placed_pod
from kerf.engine.place.volumes import Volumes
from kerf.engine.world import World
from kerf.model.causes import Cause
from kerf.model.nodeclaim import CONSOLIDATABLE, DISRUPTED_TAINT, DRIFTED
from kerf.model.nodepool import DRIFTED as REASON_DRIFTED
from kerf.model.plan import NodePlacement
from kerf.model.pods import Pod
from kerf.model.promises import read
from kerf.model.rejections import workload_of
from kerf.model.snapshot import ClusterNode, ClusterSnapshot

_NEEDS, _MOVED = "needs", "moved"
_NAME = operator.attrgetter("name")

Receives = Callable[[ClusterNode, ClusterSnapshot], bool]
"""Says which nodes of a snapshot pods may be moved to."""


class Relocation:
    """One trial of all nodes that may receive pods, for every candidate of a snapshot.

    The pods that wait are where the present plan puts them on nodes that may receive pods (`Settled`). The others are
    placed once, and a candidate on which some of them landed asks only where those would go instead: a scheduler binds
    a pod that waits for a node which starts to any other where it fits. Cost: the present plan; the nodes once for each
    kind of pod; then, for each candidate, its pods and those that landed on it.
    """

    def __init__(self, world: World) -> None:
        unmovable_now = unmovable(world.snapshot)
        settled = Settled.of(world)
        world = world.with_leaving()
        defaults = SpreadDefaults(world.snapshot, world.options.default_spread)
        snapshot, counted = _with_promised(with_default_spread(world.snapshot, world.options.default_spread))
        open_to_all = {node.name for node in snapshot.nodes if may_receive(node, snapshot)} - settled.changing
        snapshot = settled.with_places(snapshot, open_to_all.__contains__)
        receiving = tuple(node for node in snapshot.nodes if node.name in open_to_all)
        staying = snapshot if len(receiving) == len(snapshot.nodes) else replace(snapshot, nodes=receiving)
        # Pods on the others count for spread and affinity.
        leaving = frozenset(map(_NAME, snapshot.nodes)).difference(map(_NAME, receiving), counted)
        self._counted = counted
        self._trial = Trial(snapshot, world.market, leaving, world.volumes, lambda: world.supply.domains)
        self._readings = Readings.of(snapshot)
        self._numbers = {spot.cluster_node.name: number for number, spot in enumerate(self._trial.spots)}
        # A group that is not there, or makes no sense, needs no room.
        out = frozenset(pod.key for gang in gangs(snapshot) if gang.problem for pod in gang.pods)
        waiting = waiting_pods(staying, world.supply, self._trial, out)
        _, pods = heeded(waiting.pods, waiting.of_each_mark, staying)
        # Those that run count as users of their volumes, also on nodes that take no others.
        self._volumes = world.volumes
        _, pods = mounted(pods, self._volumes, snapshot.leaving)
        shapes = group(pods, self._readings)
        # Those first whose places depend on others: they keep them, and the courses begin with what they leave.
        self._landed = self._placed([shape for shape in shapes if self._is_bound(shape)])
        self._waiting = [Course(self._trial, shape, len(shape)) for shape in shapes if not self._is_bound(shape)]
        self._kinds, self._known_kinds = Kinds(self._readings), dict[Hashable, Hashable]()
        # Taints of PreferNoSchedule are left out: they would make each pod of the cluster one with a preference.
        self._forms = Forms(are_ignored=world.ignores_preferences)
        self._unmovable = unmovable_now
        self._defaults = defaults
        self._standing: dict[Hashable, Course] = {}
        self._spare = self._trial.spare()
        self._taken = frozenset(index for course in self._waiting for index in course.landed)

    def may_hold(self, candidate: Candidate) -> bool:
        """Whether the other nodes have cpu and memory enough for its pods, whatever else these ask.

        That settles most cases: most nodes are full. A node on which pods landed that wait has to be asked. Cost: see
        `Spare`.
        """
        closed = self._numbers.get(candidate.node.name, -1)
        return closed in self._taken or self._spare.may_take(_needs(candidate), closed)

    def of(self, candidate: Candidate) -> tuple[NodePlacement, ...] | None:
        """The places of its pods by name of the pod; None when some would find no place."""
        if self._unmovable and not self._unmovable.isdisjoint(map(workload_of, candidate.pods)):
            return None
        if any(pod.spec.not_planned for pod in candidate.pods):
            return None
        closed = self._numbers.get(candidate.node.name, -1)
        if closed in self._landed or not self.may_hold(candidate):
            return None
        rooms = self._without(closed)
        moving = self._moving(candidate)
        if moving is None:
            return None
        shapes = [self._as_preferred(shape, candidate.cluster_node) for shape in moving]
        if any(map(self._is_bound, shapes)):
            return self._one_by_one(candidate, shapes, rooms)
        places: dict[str, NodePlacement] = {}
        for shape in shapes:
            taken, rooms = self._standing_of(shape).further(len(shape), rooms, closed)
            if len(taken) < len(shape):
                return None
            for pod, (_, number, placed) in zip(shape.pods, taken, strict=True):
                name = self._trial.spots[number].cluster_node.name
                places[pod.key] = NodePlacement(placed_pod(pod, placed), name)
        return self._in_order(places)

    def _in_order(self, places: Mapping[str, NodePlacement]) -> tuple[NodePlacement, ...] | None:
        """The places by name of the pod; None where a pod that tolerates all would go to a node that only counts."""
        if any(place.node in self._counted for place in places.values()):
            return None
        return tuple(places[key] for key in sorted(places))

    def _moving(self, candidate: Candidate) -> tuple[Shape, ...] | None:
        """The shapes of its pods as they will be made again; None where the volumes of one let it run nowhere.

        Most pods have no volumes and no constraints of their scheduler: for these it follows from the node alone.
        """
        findings, is_kept = candidate.cluster_node.findings, not self._defaults.are_any
        (of_pods, read), found = findings.get(_MOVED, ((None, None), None))
        if is_kept and of_pods is candidate.pods and read == self._readings:
            shapes: tuple[Shape, ...] = found
            return shapes
        pods = moved(candidate.pods, self._volumes, self._defaults)
        if pods is None:
            return None
        shapes = group(pods, self._readings)
        if is_kept and not any(map(self._volumes.asks, candidate.pods)):
            findings[_MOVED] = (candidate.pods, self._readings), shapes
        return shapes

    def _as_preferred(self, shape: Shape, node: ClusterNode) -> Shape:
        """The pods of the node with those of their preferences required that hold there today.

        Else nodes that were bought for a preference would go again. Karpenter also asks for those that do not hold, so
        there a node that a preference has no part in stays for its sake.
        """
        forms = self._forms.of(shape.spec)
        if len(forms) == 1:
            return shape
        ledger, number = self._trial.ledger, self._trial.ledger.domains.number(node.name)
        mark, own = ledger.mark(), {check.identity for check in ledger.checks(shape)}
        ledger.leave(number, shape.pods[0])
        held = forms[-1]
        for form in forms[:-1]:
            checks = (check for check in ledger.checks(formed(shape, form)) if check.identity not in own)
            if form.spec.wish.labels.unsatisfied_by(node.labels) is None and ledger.allows(checks, number):
                held = form
                break
        ledger.undo_to(mark)
        return formed(shape, held)

    def _is_bound(self, shape: Shape) -> bool:
        return self._trial.ledger.concerns(shape)

    def _placed(self, shapes: Sequence[Shape]) -> frozenset[int]:
        """Place waiting pods to which others matter; the spots that they got."""
        mark = self._trial.mark()
        for shape in shapes:
            self._trial.place(shape)
        return frozenset(self._trial.changed_since(mark))

    def _one_by_one(
        self, candidate: Candidate, shapes: Sequence[Shape], rooms: Rooms
    ) -> tuple[NodePlacement, ...] | None:
        """The places of pods to which others matter, as they are once the node has gone with its domains."""
        trial, mark = self._trial, self._trial.mark()
        for index, room in rooms.items():
            trial.occupy(index, room)
        trial.remove(candidate.cluster_node)
        places: dict[str, NodePlacement] = {}
        for shape in shapes:
            placed, left = trial.place(shape, candidate.node.name)
            if left:
                places.clear()
                break
            places.update(placed)
        trial.undo_to(mark)
        return self._in_order(places) if places else None

    def _without(self, closed: int) -> Rooms:
        """The rooms that differ where the pods that wait do not go to the spot."""
        rooms: Rooms = {}
        for course in self._waiting:
            rooms = course.again(rooms, closed)
        return rooms

    def _standing_of(self, shape: Shape) -> Course:
        """What the nodes offer pods of the kind once all that wait are placed."""
        pod = shape.pod
        # Before the API has seen a pod its labels may decide what admission makes of it.
        key = (self._kind_of(shape), None if pod.uid else frozenset(pod.labels.items()))
        if key not in self._standing:
            self._standing[key] = Course(self._trial, shape)
        return self._standing[key]

    def _kind_of(self, shape: Shape) -> Hashable:
        if self._readings.labels:
            return self._kinds.of(shape.pod)
        if shape.identity not in self._known_kinds:
            self._known_kinds[shape.identity] = self._kinds.of(shape.pod)
        return self._known_kinds[shape.identity]


def _with_promised(snapshot: ClusterSnapshot) -> tuple[ClusterSnapshot, frozenset[str]]:
    """The snapshot in which pods that wait for a node that starts, and go by other pods, are there; and those nodes, by
    name, which take no others.

    Else the pods of a node would move as if there were no others to come, and those that wait could not come to their
    nodes any more. Cost: the promises of nodes that start, and the pods that wait.
    """
    starting = (node for node in snapshot.nodes if not node.is_initialized and not node.is_deleting)
    homes = {key: each.name for each in starting if each.claim for key in read(each.claim.annotations).pods}
    coming: dict[str, list[Pod]] = {}
    left = list[Pod]()
    for pod in snapshot.pending if homes else ():
        home = homes.get(pod.key) if pod.spec.has_relations else None
        if home is None:
            left.append(pod)
        else:
            coming.setdefault(home, []).append(replace(pod, node_name=home))
    if not coming:
        return snapshot, frozenset()
    nodes = (
        closed(replace(node, pods=(*node.pods, *coming[node.name]))) if node.name in coming else node
        for node in snapshot.nodes
    )
    return replace(snapshot, nodes=tuple(nodes), pending=tuple(left)), frozenset(coming)


def _needs(candidate: Candidate) -> SummedRequests:
    findings = candidate.cluster_node.findings
    if _NEEDS not in findings:
        findings[_NEEDS] = None, SummedRequests.of(candidate.pods)
    found: SummedRequests = findings[_NEEDS][1]
    return found


def relocation(world: World, candidate: Candidate) -> tuple[NodePlacement, ...] | None:
    """Where one node's pods would go, beside the pods that wait already; None when some would find no place."""
    return Relocation(world).of(candidate)


def still_fit(
    found: Iterable[NodePlacement],
    pods: Iterable[Pod],
    before: ClusterSnapshot,
    present: World,
    receives: Receives | None = None,
) -> bool:
    """Whether the pods of a node still find the places that were found for them: each of them on the node named there.

    `receives` says which nodes pods may be moved to, `may_receive` where nothing is given. A node that is the same
    object as before has not changed and is not asked. Pods that began to wait since then count for nothing: some do on
    a large cluster, always, and the next pass finds them a place. Cost: the pods, and the pods on nodes that have
    changed.
    """
    snapshot = present.snapshot
    places = {placement.pod.pod: placement.node for placement in found}
    planned: dict[str, list[Pod]] = {}
    homes = set[str]()
    for pod in pods:
        homes.add(pod.node_name)
        node = snapshot.node(places.get(pod.key, ""))
        if node is None or not (receives or may_receive)(node, snapshot):
            return False
        if node is not before.node(node.name):
            planned.setdefault(node.name, []).append(pod)
    if not planned:
        return True
    others = frozenset(node.name for node in snapshot.nodes) - planned.keys()
    trial = Trial(snapshot, present.market, others, present.volumes, lambda: present.supply.domains)
    for leaving in sorted(homes):
        node = snapshot.node(leaving)
        if node is not None:
            trial.remove(node)
    readings, defaults = Readings.of(snapshot), SpreadDefaults(snapshot, present.options.default_spread)
    for name in sorted(planned):
        held = moved(planned[name], present.volumes, defaults)
        if held is None or _left(trial, name, group(held, readings)):
            return False
    return True


def _left(trial: Trial, node: str, shapes: Iterable[Shape]) -> bool:
    """Whether some of the pods find no place on the node; those before keep theirs."""
    return any(trial.place(shape, among=lambda spot: spot.cluster_node.name == node)[1] for shape in shapes)


def may_receive(node: ClusterNode, snapshot: ClusterSnapshot) -> bool:
    """Whether pods may be moved to the node: it must stay.

    An empty node whose own consolidateAfter still runs may be the next to go: then no pod need move. With pods on it
    schedulers put others beside them whether or not that time runs. One that has drifted goes as soon as its pool's
    budgets allow it; where they allow none it is as any other.
    """
    if not stays(node, snapshot) or (has_drifted(node) and _goes_for_drift(node, snapshot)):
        return False
    if node.claim is None or node.claim.is_true(CONSOLIDATABLE) or any(map(moves, node.pods)):
        return True
    pool = snapshot.pool(node.claim.node_pool)
    return pool is None or pool.replicas is not None or pool.disruption.consolidate_after_s is None


def closed(node: ClusterNode) -> ClusterNode:
    """The node as one that takes no pods; those on it still count."""
    held, claim = node.node, node.claim
    if held is not None:
        return replace(node, node=replace(held, taints=(*held.taints, DISRUPTED_TAINT)))
    return node if claim is None else replace(node, claim=replace(claim, taints=(*claim.taints, DISRUPTED_TAINT)))


def stays(node: ClusterNode, snapshot: ClusterSnapshot) -> bool:
    """Whether the node is up and does not go yet: pods of one that has to go may be moved to it."""
    return node.node is not None and node.is_initialized and not node.is_deleting


def lasts(node: ClusterNode, snapshot: ClusterSnapshot) -> bool:
    """The same, where the node has not drifted itself: pods that move there need not move again for that."""
    return stays(node, snapshot) and not has_drifted(node)


def comes_to_last(node: ClusterNode, snapshot: ClusterSnapshot) -> bool:
    """The same of a node that is up or starts."""
    return not node.is_deleting and not has_drifted(node)


def has_drifted(node: ClusterNode) -> bool:
    """Whether the node is not what its pool or its NodeClass says now."""
    return node.claim is not None and node.claim.is_true(DRIFTED)


def _goes_for_drift(node: ClusterNode, snapshot: ClusterSnapshot) -> bool:
    pool = snapshot.pool(node.claim.node_pool) if node.claim is not None else None
    return pool is not None and Census.of(snapshot).lets_go(pool, REASON_DRIFTED)


def moved(pods: Iterable[Pod], volumes: Volumes, defaults: SpreadDefaults) -> list[Pod] | None:
    """The pods as they will be made again, with what their volumes ask and the constraints that their scheduler gives
    them; None where the volumes of one let it run nowhere."""
    found: list[Pod] = []
    for pod in pods:
        held = volumes.followed(defaults.given(unbound(pod)), is_moved=True)
        if isinstance(held, Cause):
            return None
        found.append(held)
    return found
