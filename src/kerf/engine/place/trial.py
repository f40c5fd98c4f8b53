"""A private copy of the nodes there are or will be, on which placements are tried, and undone for free.

Nodes on their way count with what their claim promises, so that nothing is bought twice while they start.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from kerf.engine.place.devices import (
    demand_of,
    distinguishes_cards,
    emptied,
    only,
    reopened,
    speaks_for_equal_cards,
    with_parts,
)
from kerf.engine.place.fit import Placed, admits, fit
from kerf.engine.place.nodekinds import Kind, NodeKinds, deciding
from kerf.engine.place.shapes import Shape, queue_order
from kerf.engine.place.target import Room, Target
from kerf.model import promises
from kerf.model.causes import Name, NoneRegistered, TargetKind, TargetName
from kerf.model.constraints import HOSTNAME, Requirements, Taint
from kerf.model.gpu import DeviceState
from kerf.model.market import Market
from kerf.model.nodeclaim import DISRUPTED_TAINT, NodeClaim
from kerf.model.nodes import CORDONED_BY_KERF, OPENING_TAINTS, is_ephemeral
from kerf.model.plan import Misfit, NodePlacement, PlacedPod, Stage
from kerf.model.pods import HostPort, Pod, PodDemand
from kerf.model.quantities import CPU, MEMORY, Resources
from kerf.model.snapshot import ClusterNode, ClusterSnapshot, DaemonSet
from kerf.sharing.family import Family, Occupant
from kerf.sharing.registry import families_of, family_named, owner_of

_MOST = 2**62
_MOST_EXACT = 2**51
"""Amounts below it can be multiplied by 1,000 without loss in 64 bits."""


@dataclass(frozen=True, eq=False)
class NodeRoom:
    """One node of the trial: where, and how much is left at its start."""

    cluster_node: ClusterNode
    target: Target
    room: Room


class Trial:
    """The nodes that can take pods, in name order, initialised ones first; `rooms` changes as pods are placed."""

    def __init__(self, snapshot: ClusterSnapshot, market: Market, without: frozenset[str] = frozenset()) -> None:
        families = families_of(snapshot)
        usable = [n for n in snapshot.nodes if n.name not in without and is_usable(n)]
        usable.sort(key=lambda n: (not n.is_initialized, n.name))
        self.spots = tuple(_spot(node, snapshot, market, families) for node in usable)
        self.rooms = [spot.room for spot in self.spots]
        self._free = np.array([_measured(room.free) for room in self.rooms], dtype=np.int64).reshape(-1, 2)
        self._journal: list[tuple[int, Room]] = []
        self._kinds = NodeKinds([spot.target for spot in self.spots])
        self._first_of_kind: npt.NDArray[np.int64] | None = None
        by_name = sorted(range(len(self.spots)), key=lambda at: str(self.spots[at].target.name))
        self._ranks = {index: rank for rank, index in enumerate(by_name)}
        self._families = tuple({spot.target.family.name: spot.target.family for spot in self.spots}.values())

    def mark(self) -> int:
        """A point to return to."""
        return len(self._journal)

    def undo_to(self, mark: int) -> None:
        """Forget every placement since `mark`."""
        while len(self._journal) > mark:
            index, room = self._journal.pop()
            self._set(index, room)

    def occupy(self, index: int, room: Room) -> None:
        """Leave this room of a spot, until it is undone."""
        self._journal.append((index, self.rooms[index]))
        self._set(index, room)

    def _set(self, index: int, room: Room) -> None:
        self._first_of_kind = None
        self.rooms[index] = room
        self._free[index] = _measured(room.free)

    def place_as_planned(self, shapes: Sequence[Shape]) -> tuple[dict[str, NodePlacement], tuple[Shape, ...]]:
        """Pods that a claim was bought for, on that claim; and the shapes of all other pods.

        First those for which their scheduler has booked cards already: it binds them there within seconds.
        """
        plans = {pod: [booked] for pod, booked in self._booked(shapes).items()}
        for index, spot in enumerate(self.spots):
            for key, cards in _planned(spot).items():
                # Several claims may name a pod: one whose place was taken by others has been bought for again.
                plans.setdefault(key, []).append((index, cards))
        if not plans:
            return {}, tuple(shapes)
        # In the order of the plan: where a card is taken as a whole by parts, no other order may do.
        order = {pod: number for number, pod in enumerate(plans)}
        awaited = [(shape, pod) for shape in shapes for pod in shape.pods if pod.key in plans]
        awaited.sort(key=lambda each: order[each[1].key])
        placed: dict[str, NodePlacement] = {}
        for shape, pod in awaited:
            tries = (self._place_planned(shape, pod, *place) for place in plans[pod.key])
            found = next((placement for placement in tries if placement is not None), None)
            if found is not None:
                placed[pod.key] = found
        others = ([pod for pod in shape.pods if pod.key not in placed] for shape in shapes)
        return placed, tuple(Shape(tuple(left)) for left in others if left)

    def _booked(self, shapes: Sequence[Shape]) -> dict[str, tuple[int, frozenset[int]]]:
        """By pod the node and the cards that are booked for it; none of a node that is not there."""
        families = [family for family in self._families if family.resources]
        found: dict[str, tuple[int, frozenset[int]]] = {}
        at = {spot.cluster_node.name: index for index, spot in enumerate(self.spots)} if families else {}
        for family, shape in product(families, shapes):
            for pod in shape.pods:
                index = at.get(family.booked_node(pod))
                if index is not None and self.spots[index].target.family is family:
                    idle = tuple(map(emptied, self.rooms[index].devices))
                    held = family.occupied(idle, (Occupant(pod, None),))
                    found[pod.key] = index, frozenset(device.index for device in held if device.used_slots)
        return found

    def _place_planned(self, shape: Shape, pod: Pod, index: int, cards: frozenset[int]) -> NodePlacement | None:
        spot, room = self.spots[index], self.rooms[index]
        narrowed = replace(room, devices=only(room.devices, cards)) if cards else room
        result = fit(spot.target, narrowed, shape)
        if isinstance(result, Misfit):
            return None
        self.occupy(index, replace(result.room, devices=reopened(result.room.devices, room.devices)))
        return NodePlacement(placed_pod(pod, result), spot.cluster_node.name)

    def place(
        self, shape: Shape, closed: str = "", among: Callable[[NodeRoom], bool] | None = None
    ) -> tuple[dict[str, NodePlacement], tuple[Pod, ...]]:
        """As many pods of the shape as fit, each where the real scheduler would put it; and the pods that are left.

        None is put on the node named `closed`, nor on one that is not `among` those asked for. Cost: nodes that take
        one + kinds of nodes that have room enough and refuse it + pods x log(nodes).
        """
        line = _Line(self, shape, self._takers(shape, closed, among))
        placed: dict[str, NodePlacement] = {}
        for number, pod in enumerate(shape.pods):
            found = line.take(pod)
            if found is None:
                return placed, shape.pods[number:]
            placed[pod.key] = found
        return placed, ()

    def has_own_scheduler(self, shape: Shape) -> bool:
        """Whether the pods ask for cards of some node here that another scheduler than kube-scheduler gives out."""
        demands = (demand_of(shape, family) for family in self._families if family.resources)
        return any(isinstance(demand, PodDemand) and not demand.is_empty for demand in demands)

    def place_in_order(self, shapes: Sequence[Shape]) -> dict[str, NodePlacement]:
        """Pods of several shapes one by one in queue order, as their scheduler takes them; those that fit.

        Cost: as `place` for each shape, and for each pod a look at the nodes that take its shape and that pods of other
        shapes have come to since the pod of its shape before it.
        """
        lines = [_Line(self, shape, self._takers(shape, "", None)) for shape in shapes]
        queues = ([(queue_order(pod), number, pod) for pod in shape.pods] for number, shape in enumerate(shapes))
        placed: dict[str, NodePlacement] = {}
        for _, number, pod in heapq.merge(*queues, key=itemgetter(0, 1)):
            found = lines[number].take(pod)
            if found is not None:
                placed[pod.key] = found
        return placed

    def changed_since(self, mark: int) -> list[int]:
        """The nodes that were given another room since `mark`, each once."""
        return list(dict.fromkeys(index for index, _ in self._journal[mark:]))

    def _takers(
        self, shape: Shape, closed: str, among: Callable[[NodeRoom], bool] | None
    ) -> Iterator[tuple[int, Placed]]:
        """The nodes that take a pod of the shape. Of nodes that refuse it for the same thing only one is asked."""
        refusing: set[int] = set()
        for index in self.roomy(shape.requests):
            spot, room = self.spots[index], self.rooms[index]
            if refusing and not refusing.isdisjoint(self._kinds.of(index, room)):
                continue
            if spot.cluster_node.name == closed or (among is not None and not among(spot)):
                continue
            result = fit(spot.target, room, shape)
            if isinstance(result, Placed):
                yield index, result
            elif _is_common(spot.target, shape, result.stage):
                refusing.add(deciding(self._kinds.of(index, room), result.stage))

    def roomy(self, requests: Resources) -> Sequence[int]:
        """The nodes that have cpu and memory for these, found for all at once: most are full."""
        # What nobody asks for lacks nowhere, not even on a node that is overfull.
        cpu, memory = (amount if amount > 0 else -_MOST for amount in _measured(requests))
        found: list[int] = np.flatnonzero((self._free[:, 0] >= cpu) & (self._free[:, 1] >= memory)).tolist()
        return found

    def copy(self) -> "Trial":
        """The same nodes as they are filled now; neither changes with the other. Linear in the nodes."""
        other = object.__new__(Trial)
        other.spots, other.rooms, other._free, other._journal = self.spots, list(self.rooms), self._free.copy(), []
        other._kinds, other._first_of_kind = self._kinds.copy(), None
        other._ranks, other._families = self._ranks, self._families
        return other

    def misfits(self, shape: Shape) -> tuple[Misfit, ...]:
        """Why each node refuses the shape as things stand; nodes that take it are left out."""
        found = (fit(spot.target, room, shape) for spot, room in zip(self.spots, self.rooms, strict=True))
        return tuple(misfit for misfit in found if isinstance(misfit, Misfit))

    def nearest(self, shape: Shape) -> Misfit | None:
        """The nearest of them; None where there is no node, or each takes the shape.

        One node of equal ones is asked, those first that lack least of cpu and memory, and no more once none can come
        nearer. Cost: the kinds of nodes that have room enough; all kinds where taints or labels decide; all nodes for
        pods that ask for a node by its name, or tell equal cards apart.
        """
        best: Misfit | None = None
        seen: dict[int, int] = {}
        asked = np.arange(len(self.spots)) if self._is_choosy(shape) else self._first_of_kinds()
        shares = self._lacking(shape.requests)[asked]
        for at in np.argsort(shares, kind="stable").tolist():
            # A node that lacks cpu or memory comes no further than this.
            if best is not None and shares[at] > 0 and _is_nearer(best, shares[at]):
                break
            index = int(asked[at])
            spot, room, rank = self.spots[index], self.rooms[index], self._ranks[index]
            if seen and any(seen.get(number, rank) < rank for number in self._kinds.of(index, room)):
                continue
            found = fit(spot.target, room, shape)
            if not isinstance(found, Misfit):
                continue
            if best is None or found.order < best.order:
                best = found
            if _speaks_for_equals(spot.target, shape, found):
                number = deciding(self._kinds.of(index, room), found.stage)
                seen[number] = min(rank, seen.get(number, rank))
        return best

    def _is_choosy(self, shape: Shape) -> bool:
        """Whether nodes that differ in nothing but names and ids of cards may answer pods of the shape differently."""
        return _asks_hostname(shape) or any(distinguishes_cards(shape, family) for family in self._families)

    def _first_of_kinds(self) -> npt.NDArray[np.int64]:
        """Of nodes that differ in nothing but names and ids of cards, the first by name. Linear in the nodes, once."""
        if self._first_of_kind is None:
            first: dict[Kind, int] = {}
            for index in self._ranks:
                first.setdefault(self._kinds.of(index, self.rooms[index]), index)
            self._first_of_kind = np.array(sorted(first.values()), dtype=np.int64)
        return self._first_of_kind

    def _lacking(self, requests: Resources) -> npt.NDArray[np.int64]:
        """By node, what it lacks of cpu and memory in thousandths of what is asked: the least that `fit` would say."""
        lacking = np.zeros(len(self.rooms), dtype=np.int64)
        for column, asked in enumerate(_measured(requests)):
            if 0 < asked < _MOST_EXACT:
                lack = np.maximum(0, asked - np.maximum(self._free[:, column], -asked))
                lacking += lack * 1000 // asked
        return lacking


class _Line:
    """Pods of one shape, and the nodes that take one, in the order in which the real scheduler prefers them."""

    def __init__(self, trial: Trial, shape: Shape, takers: Iterable[tuple[int, Placed]]) -> None:
        self._trial, self._shape = trial, shape
        self._results = dict(takers)
        self._choices = [(result.order, index) for index, result in self._results.items()]
        heapq.heapify(self._choices)
        self._seen = trial.mark()

    def take(self, pod: Pod) -> NodePlacement | None:
        """A place for the pod, which it has from now on; None where no node takes it."""
        trial = self._trial
        for index in trial.changed_since(self._seen):
            # A node that refused the shape does so all the more with more pods.
            if index in self._results:
                self._look_again(index)
        self._seen = trial.mark()
        while self._choices:
            order, index = self._choices[0]
            result = self._results.get(index)
            if result is None or result.order != order:
                heapq.heappop(self._choices)
                continue
            trial.occupy(index, result.room)
            return NodePlacement(placed_pod(pod, result), trial.spots[index].cluster_node.name)
        return None

    def _look_again(self, index: int) -> None:
        before = self._results.pop(index)
        result = fit(self._trial.spots[index].target, self._trial.rooms[index], self._shape)
        if isinstance(result, Misfit):
            return
        self._results[index] = result
        if result.order != before.order:
            heapq.heappush(self._choices, (result.order, index))


def _is_nearer(best: Misfit, share: int) -> bool:
    """Whether the misfit is nearer than that of any node which lacks such a share of cpu and memory."""
    return best.stage.rank > Stage.RESOURCES.rank or (best.stage == Stage.RESOURCES and share > best.shortfall)


def _asks_hostname(shape: Shape) -> bool:
    return any(HOSTNAME in alternative for alternative in shape.spec.alternatives)


def _is_common(target: Target, shape: Shape, stage: Stage) -> bool:
    """Whether all nodes that are equal in what decided a refusal at the stage refuse the shape."""
    if stage in (Stage.TAINTS, Stage.REQUIREMENTS):
        return not _asks_hostname(shape)
    return stage == Stage.RESOURCES or not distinguishes_cards(shape, target.family)


def _speaks_for_equals(target: Target, shape: Shape, misfit: Misfit) -> bool:
    """Whether no node that is equal in what decided the misfit is nearer, names aside."""
    if misfit.stage in (Stage.TAINTS, Stage.REQUIREMENTS):
        return not _asks_hostname(shape)
    return speaks_for_equal_cards(target, shape, misfit)


def _measured(amounts: Mapping[str, int]) -> tuple[int, int]:
    """Cpu and memory, which every family leaves to kubelet; cut to what an array can hold."""
    cpu, memory = amounts.get(CPU, 0), amounts.get(MEMORY, 0)
    return max(-_MOST, min(cpu, _MOST)), max(-_MOST, min(memory, _MOST))


def placed_pod(pod: Pod, result: Placed) -> PlacedPod:
    """The result for one pod of the shape, under that pod's own name."""
    return PlacedPod(pod.key, tuple(replace(part, pod=pod.key) for part in result.slices))


def is_usable(node: ClusterNode) -> bool:
    """Whether new pods may be planned on it."""
    if node.is_deleting or node.problem is not None:
        return False
    held = node.node
    if held is None:
        # A claim that was initialised had a Node once: that Node is gone, and the claim follows it.
        return not node.is_initialized
    if held.is_unschedulable and CORDONED_BY_KERF not in held.annotations:
        return False
    if any(taint.key == DISRUPTED_TAINT.key for taint in held.taints):
        return False
    return held.is_ready or not node.is_initialized


def _spot(node: ClusterNode, snapshot: ClusterSnapshot, market: Market, families: tuple[Family, ...]) -> NodeRoom:
    held, claim = node.node, node.claim
    own = held.annotations if held is not None else {}
    family = family_named(node.family, families) if node.family else owner_of(node.labels, own, families)
    if node.is_registered and held is not None:
        requirements = held.label_requirements
    else:
        requirements = promised(claim, market) if held is None else Requirements.of_labels(node.labels)
    devices = node.devices or _promised_devices(node, family, market)
    nothing = None if devices else NoneRegistered(Name(node.name))
    target = Target(
        TargetName(TargetKind.NODE, Name(node.name)),
        requirements,
        _lasting_taints(node),
        family,
        families,
        claim.node_pool if claim is not None else "",
        held,
        is_open=held is None,
        quotas=snapshot.quotas,
        no_devices=nothing,
    )
    free = with_parts(_allocatable(node, market), family, devices)
    ports: list[HostPort] = []
    for pod in node.pods:
        if not pod.is_ended:
            free = free - pod.spec.requests.without(target.uncounted)
            ports.extend(pod.spec.host_ports)
    if not node.is_initialized:
        for daemon in _missing_daemons(node, target, snapshot.daemon_sets):
            free = free - daemon.pod.spec.requests.without(target.uncounted)
    return NodeRoom(node, target, Room(free, devices, tuple(ports)))


def daemons_of(node: ClusterNode, snapshot: ClusterSnapshot, market: Market) -> tuple[Pod, ...]:
    """Pods of DaemonSets on the node, and those that belong on it and are not there, or not in the input."""
    target = _spot(node, snapshot, market, families_of(snapshot)).target
    missing = _missing_daemons(node, target, snapshot.daemon_sets)
    return (*(pod for pod in node.pods if pod.is_daemon), *(daemon.pod for daemon in missing))


def _promised_devices(node: ClusterNode, family: Family, market: Market) -> tuple[DeviceState, ...]:
    """Cards of a starting node whose claim does not say which it will have: Karpenter's own claims do not."""
    claim = node.claim
    kind = market.find(promises.planned_type(claim)) if claim is not None and not node.is_initialized else None
    return family.predict(kind.devices, node.labels, {}) if kind is not None else ()


def promised(claim: NodeClaim | None, market: Market) -> Requirements:
    """What a claim without a node will have: its requirements, and the labels of the type it is planned as."""
    if claim is None:
        return Requirements()
    known = claim.requirements.intersect(Requirements.of_labels(claim.labels))
    kind = market.find(promises.planned_type(claim))
    return known if kind is None else known.intersect(kind.requirements)


def _lasting_taints(node: ClusterNode) -> tuple[Taint, ...]:
    claimed = node.claim.taints if node.claim is not None else ()
    if node.node is None:
        return claimed
    # The taint of a cordon stays for a while when the cordon is lifted; `is_usable` goes by the cordon itself. A
    # reservation ends within seconds, and the promises of the node's claim say for whom the room is.
    taints = tuple(taint for taint in node.node.taints if taint.key not in OPENING_TAINTS)
    if node.is_initialized:
        return taints
    if not node.is_registered:
        taints += tuple(taint for taint in claimed if taint not in taints)
    startup = node.claim.startup_taints if node.claim is not None else ()
    return tuple(taint for taint in taints if not is_ephemeral(taint) and taint not in startup)


def _allocatable(node: ClusterNode, market: Market) -> Resources:
    """What kubelet shows; where a starting node still shows nothing, what its claim promises."""
    shown = node.node.allocatable if node.node is not None else Resources()
    claim = node.claim
    if node.is_initialized or claim is None:
        return shown
    promised_to_pods = promises.resources(claim, market.find(promises.planned_type(claim)))
    names = sorted({*shown, *promised_to_pods})
    return Resources({name: shown.get(name) or promised_to_pods.get(name, 0) for name in names})


def _missing_daemons(node: ClusterNode, target: Target, daemons: Iterable[DaemonSet]) -> list[DaemonSet]:
    running = {(pod.namespace, pod.owner.name) for pod in node.pods if pod.owner is not None and pod.is_daemon}
    return [
        daemon
        for daemon in daemons
        if (daemon.namespace, daemon.name) not in running and admits(target, Shape((daemon.pod,)))
    ]


def _planned(spot: NodeRoom) -> dict[str, frozenset[int]]:
    """Pods a claim was bought for, with their cards; empty once a person has broken the annotation."""
    claim = spot.cluster_node.claim
    pods = promises.read(claim.annotations).pods if claim is not None else {}
    return {pod: frozenset(cards) for pod, cards in pods.items()}
