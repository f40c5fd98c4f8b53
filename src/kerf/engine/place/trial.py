"""A private copy of the nodes there are or will be, on which placements are tried, and undone for free.

Nodes on their way count with what their claim promises, so nothing is bought twice while they start.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, product
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kerf.engine.place.devices import (
    asks_devices,
    demand_of,
    distinguishes_cards,
    emptied,
    speaks_for_equal_cards,
)
from kerf.engine.place.domains import Lasting
from kerf.engine.place.fit import Placed, fit, kept_out
from kerf.engine.place.lines import Line, Taking
from kerf.engine.place.nodekinds import NodeKinds, deciding
from kerf.engine.place.noderooms import NodeRoom, daemons_to_come, is_usable, ledger_of, rooms_of
from kerf.engine.place.queueing import Destined, come_in_order, destined
from kerf.engine.place.shapes import Shape, as_bought, queue_order
from kerf.engine.place.spare import Spare
from kerf.engine.place.target import Room, Target, measured, sizes
from kerf.engine.place.topology import Around, TopologyLedger
from kerf.engine.place.volumes import Volumes
from kerf.model.constraints import HOSTNAME, NODE_NAME
from kerf.model.market import Market
from kerf.model.plan import Misfit, NodePlacement, PlacedPod, Stage
from kerf.model.pods import Pod, PodDemand
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.sharing.family import Occupant

_NAME, _IS_UP, _MEASURED, _SHOWN = map(attrgetter, ("name", "is_initialized", "measured", "shown"))
_TARGET, _FAMILY = attrgetter("target"), attrgetter("family.name")
_MOST_EXACT = 2**51
"""Amounts below it can be multiplied by 1,000 without loss in 64 bits."""


class AsPlanned(NamedTuple):
    """Promised pods on their claims, the shapes of all other pods, and of each promised one among these a promise."""

    placed: dict[str, NodePlacement]
    left: tuple[Shape, ...]
    unmet: tuple[Destined, ...] = ()


class _Names:
    """The order of nodes by name, for those who ask for it: most plans do not."""

    def __init__(self, spots: Sequence[NodeRoom]) -> None:
        self._spots = spots

    @cached_property
    def by_rank(self) -> npt.NDArray[np.int64]:
        """The numbers of the nodes in that order."""
        shown = list(map(_SHOWN, self._spots))
        return np.array(sorted(range(len(shown)), key=shown.__getitem__), dtype=np.int64)

    @cached_property
    def ranks(self) -> list[int]:
        """By number of the node its place in that order."""
        found: list[int] = np.argsort(self.by_rank).tolist()
        return found


class Trial:
    """The nodes that can take pods, in name order, initialised ones first; `rooms` changes as pods are placed.

    Nodes that can take none, and those named in `without`, count with their pods in the `ledger`: kube-scheduler counts
    them too. `lasting` gives by key the domains that stay when their last node is thought away.
    """

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        market: Market,
        without: frozenset[str] = frozenset(),
        volumes: Volumes | None = None,
        lasting: Callable[[], Lasting] = dict,
    ) -> None:
        usable = [n for n in snapshot.nodes if n.name not in without and is_usable(n)]
        usable.sort(key=_NAME)
        usable.sort(key=_IS_UP, reverse=True)
        self.spots = rooms_of(usable, snapshot, market, volumes or Volumes(snapshot))
        self.rooms = [spot.room for spot in self.spots]
        self._free = np.array(list(chain.from_iterable(map(_MEASURED, self.spots))), dtype=np.int64).reshape(-1, 3)
        self._daemons = snapshot.daemon_sets_as_running
        self.ledger = ledger_of(self.spots, snapshot, lasting)
        self._journal: list[tuple[int, Room | None, int]] = []
        self._kinds = NodeKinds(self.spots)
        self._of_kind: tuple[npt.NDArray[np.int64], list[int]] | None = None
        self._names = _Names(self.spots)
        targets = list(map(_TARGET, self.spots))
        self.samples = tuple(dict(zip(map(_FAMILY, targets), targets, strict=True)).values())
        self._families = tuple(target.family for target in self.samples)

    def mark(self) -> int:
        """A point to return to."""
        return len(self._journal)

    def undo_to(self, mark: int) -> None:
        """Forget every placement since `mark`."""
        while len(self._journal) > mark:
            index, room, pods = self._journal.pop()
            if room is not None:
                self._set(index, room)
            self.ledger.undo_to(pods)

    def occupy(self, index: int, room: Room, coming: Pod | None = None, leaving: Iterable[Pod] = ()) -> None:
        """Leave this room of a spot, until it is undone, after some pods have left it and one has come."""
        self._journal.append((index, self.rooms[index], self.ledger.mark()))
        self._set(index, room)
        for pod in leaving:
            self.ledger.leave(index, pod)
        if coming is not None:
            self.ledger.come(index, coming)

    def remove(self, node: ClusterNode) -> None:
        """Think a node away, with its pods, in what other pods go by; it keeps its room until it is undone."""
        number = self.ledger.domains.number(node.name)
        self._journal.append((-1, None, self.ledger.mark()))
        coming = daemons_to_come(self.spots[number], self._daemons) if number < len(self.spots) else ()
        for pod in (*node.pods, *coming):
            if not pod.is_ended:
                self.ledger.leave(number, pod)
        self.ledger.close(number)

    def fit(self, index: int, shape: Shape) -> Placed | Misfit:
        """A pod of the shape on a node, with what other pods ask of it and it of them."""
        if not self.ledger.concerns(shape):
            return self.spots[index].fit(self.rooms[index], shape)
        return fit(self.spots[index].target, self.rooms[index], shape, Around(self.ledger, index))

    def alone(self, index: int, shape: Shape) -> Placed | None:
        """A pod of the shape on a node, whatever pods are elsewhere; None where it does not fit."""
        result = self.spots[index].fit(self.rooms[index], shape)
        return result if isinstance(result, Placed) else None

    def never_fits(self, index: int, shape: Shape) -> Misfit | None:
        """Why the node could not hold a pod of the shape though no other pod were there; None where it could.

        Where other pods are there already, what they have taken does not count, and so taints and labels alone decide.
        """
        spot = self.spots[index]
        if any(not pod.is_daemon and not pod.is_ended for pod in spot.cluster_node.pods):
            return kept_out(spot.target, shape)
        result = fit(spot.target, spot.room, shape)
        return result if isinstance(result, Misfit) else None

    def _set(self, index: int, room: Room) -> None:
        self._of_kind = None
        self.rooms[index] = room
        self._free[index] = sizes(room.free)

    def place_as_planned(self, shapes: Sequence[Shape], despite: frozenset[str] = frozenset()) -> AsPlanned:
        """Pods that a claim was bought for, on that claim. Its room alone makes no place: the pod must be let in there.

        A promise whose pod others stand against once all promised pods have come, in whichever order lets most of them
        in, is none: the scheduler would refuse it. The pod is planned for like any other and its claim goes by the
        ordinary rules. That never flaps. The answer goes by what is bound and what is promised, and by nothing that
        this plan decides, so it changes only when these do. And a pod that is bought for again has two promises, of
        which one is enough. `despite` are keys of pods that keep their places whatever stands against them now: pods
        that get a place in the same plan let them in.

        Of a plan that is half carried out those pods that are bound are counted where they are, yet in their turn: with
        the nodes that came first they came before others, who wait for their own nodes and are not to be bought for
        again. Once a node is open to all its pods are there for good.

        First come those for which their scheduler has booked cards already: it binds them there within seconds.
        Cost: promised pods, and for those that go by others their shapes x nodes each time that one of them opens.
        """
        if not shapes:
            return AsPlanned({}, ())
        booked = self._booked(shapes)
        plans = {pod: [place] for pod, place in booked.items()}
        promised = [(index, spot) for index, spot in enumerate(self.spots) if spot.planned]
        keys = {pod.key for shape in shapes for pod in shape.pods} if promised else set[str]()
        for index, spot in promised:
            # Most promises are of pods that have come long ago.
            if keys.isdisjoint(spot.planned):
                continue
            for key, cards in spot.planned.items():
                # Several claims may name a pod: one whose place was taken by others has been bought for again.
                if key in keys:
                    plans.setdefault(key, []).append((index, cards))
        if not plans:
            return AsPlanned({}, tuple(shapes))
        # In the order of the plan: where a card is taken as a whole by parts, no other order may do.
        order = {pod: number for number, pod in enumerate(plans)}
        awaited = [(shape, pod) for shape in shapes for pod in shape.pods if pod.key in plans]
        awaited.sort(key=lambda each: order[each[1].key])
        mark, unmet, certain = self.mark(), dict[tuple[str, int], Destined](), despite.union(booked)
        while True:
            placed: dict[str, NodePlacement] = {}
            promises: list[Destined] = []
            for shape, pod in awaited:
                places = (place for place in plans[pod.key] if (pod.key, place[0]) not in unmet)
                tries = ((place[0], self._place_planned(shape, pod, *place)) for place in places)
                index, found = next(((at, each) for at, each in tries if each is not None), (-1, None))
                if found is not None:
                    placed[pod.key] = found
                    promises.append(Destined(shape, pod, index))
            refused = self.unmet(promises, certain, self._arrived(promises))
            if not refused:
                break
            unmet.update(((each.pod.key, each.node), each) for each in refused)
            self.undo_to(mark)
        others = ([pod for pod in shape.pods if pod.key not in placed] for shape in shapes)
        left = tuple(Shape(tuple(pods)) for pods in others if pods)
        first = {each.pod.key: each for each in reversed(unmet.values()) if each.pod.key not in placed}
        return AsPlanned(placed, left, tuple(first.values()))

    def unmet(
        self, promises: Iterable[Destined], certain: frozenset[str] = frozenset(), arrived: Sequence[Destined] = ()
    ) -> tuple[Destined, ...]:
        """Let the pods come to their nodes as far as others let them, the `certain` ones whatever stands against them;
        the promises of those that cannot. Those that have `arrived` leave first and come in their turn. Their rooms are
        not looked at."""
        for each in arrived:
            self.occupy(each.node, self.rooms[each.node], leaving=(each.pod,))
        others, waiting = list(arrived), list(promises)
        are_free = not any(self.ledger.concerns(each.shape) for each in waiting)
        for each in waiting:
            if are_free or each.pod.key in certain:
                self._come(each)
            else:
                others.append(each)
        there, left = {each.pod.key for each in arrived}, come_in_order(others, self.ledger, self._come)
        # Those that are there come all the same, and may let in some of the others.
        for each in (each for each in left if each.pod.key in there):
            self._come(each)
        return come_in_order((each for each in left if each.pod.key not in there), self.ledger, self._come)

    def _arrived(self, promises: Sequence[Destined]) -> Sequence[Destined]:
        """Pods of claims, bound to nodes that are not open to all; none where no promise goes by others."""
        if not any(self.ledger.concerns(each.shape) for each in promises):
            return ()
        nodes = ((index, spot.cluster_node) for index, spot in enumerate(self.spots))
        bound = ((pod, index) for index, node in nodes if not node.is_initialized for pod in node.pods)
        planned = frozenset[str]().union(*(spot.planned for spot in self.spots))
        return destined(((pod, at) for pod, at in bound if pod.key in planned and not pod.is_ended), self.ledger)

    def _come(self, each: Destined) -> None:
        self.occupy(each.node, self.rooms[each.node], each.pod)

    def _booked(self, shapes: Sequence[Shape]) -> dict[str, tuple[int, frozenset[int]]]:
        """By pod the node and the cards that are booked for it; none of a node that is not there."""
        families = [family for family in self._families if family.resources]
        found: dict[str, tuple[int, frozenset[int]]] = {}
        has_any = bool(families and shapes)
        at = {spot.cluster_node.name: index for index, spot in enumerate(self.spots)} if has_any else {}
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
        # Its volumes ask no more than they did when the node was bought: a local one may name another node.
        result = spot.fit_as_planned(room, as_bought(shape, pod), cards)
        if isinstance(result, Misfit):
            return None
        self.occupy(index, result.room)
        return NodePlacement(placed_pod(pod, result), spot.cluster_node.name)

    def place(
        self, shape: Shape, closed: str = "", among: Callable[[NodeRoom], bool] | None = None
    ) -> tuple[dict[str, NodePlacement], tuple[Pod, ...]]:
        """As many pods of the shape as fit, each where the real scheduler would put it; and the pods that are left.

        None is put on the node named `closed`, nor on one that is not `among` those asked for. Cost: nodes that take
        one + kinds of nodes that have room enough and refuse it + pods x log(nodes); and where other pods matter, the
        domains that open again.
        """
        if not self.roomy(shape.requests):
            return {}, shape.pods
        line = self.line(shape, closed, among)
        placed: dict[str, NodePlacement] = {}
        for number, pod in enumerate(shape.pods):
            found = self._take(line, pod)
            if found is None:
                return placed, shape.pods[number:]
            placed[pod.key] = found
        return placed, ()

    def _take(self, line: Line, pod: Pod) -> NodePlacement | None:
        """A place for the pod, which it has from now on; None where no node takes it."""
        found = line.take()
        if found is None:
            return None
        index, result = found
        self.occupy(index, result.room, pod)
        return NodePlacement(placed_pod(pod, result), self.spots[index].cluster_node.name)

    def has_own_scheduler(self, shape: Shape) -> bool:
        """Whether the pods ask for cards of some node here that another scheduler than kube-scheduler gives out."""
        demands = (demand_of(shape, family) for family in self._families if family.resources)
        return any(isinstance(demand, PodDemand) and not demand.is_empty for demand in demands)

    def place_in_order(self, shapes: Sequence[Shape]) -> dict[str, NodePlacement]:
        """Pods of several shapes one by one in queue order, as their scheduler takes them; those that fit.

        Cost: as `place` for each shape, and for each pod a look at the nodes that take its shape and that pods of other
        shapes have come to since the pod of its shape before it.
        """
        lines = [self.line(shape) for shape in shapes]
        queues = ([(queue_order(pod), number, pod) for pod in shape.pods] for number, shape in enumerate(shapes))
        placed: dict[str, NodePlacement] = {}
        for _, number, pod in heapq.merge(*queues, key=itemgetter(0, 1)):
            found = self._take(lines[number], pod)
            if found is not None:
                placed[pod.key] = found
        return placed

    def changed_since(self, mark: int) -> list[int]:
        """The nodes that were given another room since `mark`, each once."""
        return list(dict.fromkeys(index for index, room, _ in self._journal[mark:] if room is not None))

    def line(self, shape: Shape, closed: str = "", among: Callable[[NodeRoom], bool] | None = None) -> Line:
        """Pods of the shape and the nodes with room: see `place`. It stands as long as the nodes do."""
        taken = self._taking(shape, closed, among)
        return Line(self, shape, self.roomy(shape.requests), taken, has_preferences=self.has_preferences(shape))

    def takes_alone(self, shape: Shape, among: Callable[[NodeRoom], bool] | None = None) -> bool:
        """Whether some node would take a pod of the shape, whatever pods are elsewhere. Cost: the kinds of nodes."""
        return self._taking(shape, "", among)(list(self.roomy(shape.requests))) is not None

    def _taking(
        self, shape: Shape, closed: str, among: Callable[[NodeRoom], bool] | None
    ) -> Callable[[list[int]], Taking | None]:
        """Takes nodes off the end of a list until one takes a pod by itself. Of nodes that refuse one for the same
        thing only one is asked, and of nodes that differ in no more than what is left of their resources, one that
        takes a pod: the others are likely to, and have the same place in the scheduler's order."""
        refusing: set[int] = set()
        orders: dict[tuple[int, int], float] = {}
        is_choosy = self._is_choosy(shape)

        def taken(unasked: list[int]) -> Taking | None:
            while (index := self._kinds.next_unlike(refusing, unasked, self.rooms)) is not None:
                spot, room = self.spots[index], self.rooms[index]
                if spot.cluster_node.name == closed or (among is not None and not among(spot)):
                    continue
                admission, _, cards = self._kinds.of(index, room)
                order = orders.get((admission, cards))
                if order is not None:
                    return Taking(index, order)
                result = spot.fit(room, shape)
                if isinstance(result, Placed):
                    if not is_choosy:
                        orders[admission, cards] = result.order
                    return Taking(index, result.order, result)
                if _is_common(spot.target, shape, result.stage):
                    refusing.add(deciding(self._kinds.of(index, room), result.stage))
            return None

        return taken

    def has_preferences(self, shape: Shape) -> bool:
        """Whether the scheduler's order can be another than that of the nodes: it can where the pods need devices."""
        return any(asks_devices(shape, target) for target in self.samples)

    def roomy(self, requests: Resources) -> Sequence[int]:
        """The nodes that have cpu, memory and a place for these, found for all at once: most are full."""
        able = np.ones(len(self._free), dtype=np.bool_)
        for column, amount in enumerate(sizes(requests)):
            # What is not asked for lacks nowhere, not even on a node that is overfull.
            if amount > 0:
                able &= self._free[:, column] >= amount
        found: list[int] = np.flatnonzero(able).tolist()
        return found

    def spare(self) -> Spare:
        """What the nodes can take at the most, as they are filled now. Linear in the nodes."""
        return Spare(self._free[:, :2])

    def copy(self) -> "Trial":
        """The same nodes as they are filled now; neither changes with the other. Linear in the nodes."""
        return self.beside(self.ledger.copy())

    def beside(self, ledger: TopologyLedger) -> "Trial":
        """The same, where pods go by another ledger, in which the nodes have their numbers, and others may follow."""
        other = object.__new__(Trial)
        other.spots, other.rooms, other._free, other._journal = self.spots, list(self.rooms), self._free.copy(), []
        other._kinds, other._of_kind, other._names = self._kinds.copy(), None, self._names
        other._families, other.samples = self._families, self.samples
        other._daemons, other.ledger = self._daemons, ledger
        return other

    def misfits(self, shape: Shape) -> tuple[Misfit, ...]:
        """Why each node refuses the shape as things stand; nodes that take it are left out."""
        found = (self.fit(index, shape) for index in range(len(self.spots)))
        return tuple(misfit for misfit in found if isinstance(misfit, Misfit))

    def nearest(self, shape: Shape) -> Misfit | None:
        """The nearest of them; None where there is no node, or each takes the shape.

        One node of equal ones is asked, those first that lack least of cpu and memory, and no more once none can come
        nearer. Of pods that name nodes these are the nearest, whatever keeps them out. Cost: the kinds of nodes that
        have room enough; all kinds where taints or labels decide; all nodes for pods that ask for a node by its name or
        tell equal cards apart, all with room for those that go by other pods.
        """
        best: Misfit | None = None
        seen: dict[int, int] = {}
        firsts, kinds = self._kind_numbers()
        is_choosy, settled = self._is_choosy(shape), set[int]()
        asked = self._names.by_rank if is_choosy or self.ledger.concerns(shape) else firsts
        named = self._named_by(shape)
        asked = asked if named is None else named
        shares = self._lacking(shape.requests)[asked]
        for at in np.argsort(shares, kind="stable").tolist():
            index = int(asked[at])
            if kinds[index] in settled:
                continue
            # A node that lacks cpu or memory comes no further than this.
            if best is not None and shares[at] > 0 and _is_nearer(best, shares[at]):
                break
            spot, room, rank = self.spots[index], self.rooms[index], self._names.ranks[index]
            if seen and any(seen.get(number, rank) < rank for number in self._kinds.of(index, room)):
                continue
            found = self.fit(index, shape)
            if not isinstance(found, Misfit):
                continue
            if best is None or found.order < best.order:
                best = found
            if found.stage == Stage.RESOURCES and not is_choosy:
                # Looked at before other pods are; of equal nodes the first by name came first.
                settled.add(kinds[index])
            if _speaks_for_equals(spot.target, shape, found):
                number = deciding(self._kinds.of(index, room), found.stage)
                seen[number] = min(rank, seen.get(number, rank))
        return best

    def _named_by(self, shape: Shape) -> npt.NDArray[np.int64] | None:
        """The nodes that the pods name, by rank; None where none of them is there. Linear in nodes."""
        asked = [each[name] for each in shape.spec.alternatives for name in (HOSTNAME, NODE_NAME) if name in each]
        names = frozenset[str]().union(*(each.values for each in asked if not each.complement))
        if not names:
            return None
        found = [at for at in self._names.by_rank.tolist() if not names.isdisjoint(self._names_of(at))]
        return np.array(found, dtype=np.int64) if found else None

    def _names_of(self, index: int) -> tuple[str, ...]:
        target = self.spots[index].target
        return target.name.name, target.labels.get(HOSTNAME, "")

    def _is_choosy(self, shape: Shape) -> bool:
        """Whether nodes that differ in nothing but names and ids of cards may answer pods of the shape differently."""
        return _asks_hostname(shape) or any(distinguishes_cards(shape, family) for family in self._families)

    def _kind_numbers(self) -> tuple[npt.NDArray[np.int64], list[int]]:
        """Of nodes that differ in nothing but names and ids of cards, the first by name; and by node a number that is
        equal for all of these. Linear in the nodes, once."""
        if self._of_kind is None:
            numbers = np.array(self._kinds.numbers(self.rooms), dtype=np.int64)
            firsts = np.unique(numbers[self._names.by_rank], return_index=True)[1]
            self._of_kind = np.sort(self._names.by_rank[firsts]), numbers.tolist()
        return self._of_kind

    def _lacking(self, requests: Resources) -> npt.NDArray[np.int64]:
        """By node, what it lacks of cpu and memory in thousandths of what is asked: the least that `fit` would say."""
        lacking = np.zeros(len(self.rooms), dtype=np.int64)
        for column, asked in enumerate(measured(requests)):
            if 0 < asked < _MOST_EXACT:
                lack = np.maximum(0, asked - np.maximum(self._free[:, column], -asked))
                lacking += lack * 1000 // asked
        return lacking


def _is_nearer(best: Misfit, share: int) -> bool:
    """Whether the misfit is nearer than that of any node which lacks such a share of cpu and memory."""
    return best.stage.rank > Stage.RESOURCES.rank or (best.stage == Stage.RESOURCES and share > best.shortfall)


def _asks_hostname(shape: Shape) -> bool:
    return any(name in alternative for alternative in shape.spec.alternatives for name in (HOSTNAME, NODE_NAME))


def _is_common(target: Target, shape: Shape, stage: Stage) -> bool:
    """Whether all nodes that are equal in what decided a refusal at the stage refuse the shape."""
    if stage in (Stage.TAINTS, Stage.REQUIREMENTS):
        return not _asks_hostname(shape)
    return stage == Stage.RESOURCES or not distinguishes_cards(shape, target.family)


def _speaks_for_equals(target: Target, shape: Shape, misfit: Misfit) -> bool:
    """Whether no node that is equal in what decided the misfit is nearer, names aside."""
    if misfit.stage in (Stage.TAINTS, Stage.REQUIREMENTS):
        return not _asks_hostname(shape)
    if misfit.stage in (Stage.TOPOLOGY, Stage.AFFINITY):
        # Nodes that are equal in everything else may be in other domains.
        return False
    return speaks_for_equal_cards(target, shape, misfit)


def placed_pod(pod: Pod, result: Placed) -> PlacedPod:
    """The result for one pod of the shape, under that pod's own name."""
    return PlacedPod(pod.key, tuple(replace(part, pod=pod.key) for part in result.slices))
