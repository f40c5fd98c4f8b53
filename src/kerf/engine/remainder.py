"""What a try has left, for groups that come after it one by one: nodes there are, nodes it bought, limits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kerf.engine.buy.filling import Purchase
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.proving import proven
from kerf.engine.decision import Refusal
from kerf.engine.outcome import Outcome
from kerf.engine.place.fit import fit
from kerf.engine.place.shapes import Readings, Shape, group
from kerf.engine.place.target import Room
from kerf.engine.place.topology import TopologyLedger
from kerf.engine.placing import find_places, unbought
from kerf.engine.purchasing import Later, bought_later
from kerf.engine.supply.offered import OfferedType
from kerf.model.plan import Misfit
from kerf.model.pods import Pod
from kerf.model.quantities import CPU, MEMORY

_MOST_TYPES = 20
"""Types of one pool that are tried for a shape, the cheapest a pod: others only come beside these."""


@dataclass(frozen=True, eq=False)
class _State:
    """What stood before some pods were given places: of the trial, of what pods go by, limits, nodes bought."""

    mark: int
    topology: TopologyLedger
    topology_mark: int
    limits: Ledger
    new: list[tuple[OfferedType, Room]]


class Remainder:
    """Takes pods all or none. `everyone` is the try with the pods of all groups: it knows which may be planned for."""

    def __init__(self, made: Outcome, everyone: Outcome) -> None:
        self._made, self._everyone = made, everyone
        self._trial, self._ledger = made.trial.copy(), made.ledger.copy()
        self._new = [(node.load.offered, node.load.room) for node in made.bought]
        self._usable = {pod.key: pod for shape in everyone.planned_for for pod in shape.pods}
        asked = [shape.requests for shape in everyone.planned_for]
        self._least = {name: min((each.get(name, 0) for each in asked), default=0) for name in (CPU, MEMORY)}
        self._takers: dict[int, tuple[OfferedType, ...]] = {}
        self._readings = Readings.of(made.world.snapshot)
        self._requests = {each.key for each in made.world.snapshot.provisioning_requests}
        self._first_site = len(made.trial.spots)
        self._are_related = self._relate()
        self._is_as_made = True
        """Whether no pods have been given places yet."""
        self._most: dict[str, int] = {}
        """How many pods of a group found a place then, by its first pod; shared with others of the same try."""

    def _relate(self) -> bool:
        """Whether some pods go by others. Then what they go by has the nodes that were bought, and their pods, too."""
        ledger = self._trial.ledger
        for shape in self._everyone.planned_for:
            # Terms that keep others off are known once a shape with them was asked for.
            ledger.checks(shape)
        if not any(map(ledger.concerns, self._everyone.planned_for)):
            return False
        self._first_site = len(ledger.domains.sites)
        self._trial.ledger = proven(self._made.bought, ledger, 0).ledger
        return True

    def after(self, made: Outcome) -> "Remainder":
        """What another try has left."""
        other = Remainder(made, self._everyone)
        other._takers = self._takers
        if made is self._made and self._is_as_made:
            other._most = self._most
        return other

    def take(self, pods: Sequence[Pod], needed: int) -> tuple[int, Refusal | None]:
        """Give the pods places that they keep where at least `needed` find one; none where fewer do.

        How many found one, and what stopped the first of the others where it was too few. Where some pods go by others,
        each is asked for on each node, also of those that were bought, and what is bought more is proven. Cost: one
        look at each node that has cpu and memory enough for a shape, and at its twenty cheapest types; where pods go by
        others, what these go by is counted again for each time that nodes are bought.
        """
        before = self._state()
        placed, refusals = self._placed(pods)
        if placed >= needed:
            self._is_as_made = False
            return placed, None
        first = self._first(pods, refusals())
        self._return_to(before)
        if self._is_as_made:
            self._most[pods[0].key] = placed
        return placed, first

    def has_room(self, pods: Sequence[Pod], needed: int) -> bool:
        """Whether so many would find a place; none is given. What `take` found before any was is remembered."""
        if not self._is_as_made or pods[0].key not in self._most:
            before = self._state()
            placed, _ = self._placed(pods)
            self._return_to(before)
            return placed >= needed
        return self._most[pods[0].key] >= needed

    def _state(self) -> _State:
        topology = self._trial.ledger
        return _State(self._trial.mark(), topology, topology.mark(), self._ledger.copy(), list(self._new))

    def _return_to(self, state: _State) -> None:
        self._trial.ledger = state.topology
        self._trial.undo_to(state.mark)
        state.topology.undo_to(state.topology_mark)
        self._ledger, self._new = state.limits, state.new

    def _placed(self, pods: Sequence[Pod]) -> tuple[int, Callable[[], list[Refusal]]]:
        """How many pods get a place, and why the others get none, to be asked at once."""
        known = (self._usable[pod.key] for pod in pods if pod.key in self._usable)
        shapes = group(known, self._readings)
        places = find_places(self._trial, shapes, {})
        if self._are_related:
            later = self._buy_related(self._beside_others(places.left))
            left, unserved, kept = later.shapes, list(later.left), later.kept
        else:
            left = self._on_new_nodes(places.left)
            unserved, kept = self._buy(left).left, ()
        none = sum(unserved) + sum(len(each.pods) for each in kept) + sum(map(len, places.unbought))

        def refusals() -> list[Refusal]:
            return [
                *unbought(self._trial, places.unbought, self._requests),
                *self._made.left_over(left, Purchase(left=unserved), self._trial, self._ledger),
                *kept,
            ]

        return sum(map(len, shapes)) - none, refusals

    def _beside_others(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """As `_on_new_nodes`, where other pods say beside whom and in which domains these may be."""
        waiting = [list(shape.pods) for shape in shapes]
        # Pods of the first shapes may wait for those of the last ones.
        for _ in range(min(2, len(shapes))):
            for shape, left in zip(shapes, waiting, strict=True):
                self._seat(shape, left)
        return tuple(Shape(tuple(left)) for left in waiting if left)

    def _seat(self, shape: Shape, waiting: list[Pod]) -> None:
        """Take those of the pods that find a place on nodes bought before off the list."""
        topology = self._trial.ledger
        roomy = list(range(len(self._new)))
        while waiting and roomy:
            checks, full = topology.checks(shape), set[int]()
            for number in roomy:
                if not topology.allows(checks, self._first_site + number):
                    continue
                offered, room = self._new[number]
                after = _added(offered, room, shape)
                if after is None:
                    full.add(number)
                    continue
                self._new[number] = offered, after
                topology.come(self._first_site + number, waiting.pop(0))
                break
            else:
                return
            roomy = [number for number in roomy if number not in full]

    def _buy_related(self, shapes: Sequence[Shape]) -> Later:
        """Nodes for pods some of which go by others, on the types that hold them, and on all where others matter."""
        able = [shape for shape in shapes if self._takers_of(shape)]
        unable = tuple(shape for shape in shapes if not self._takers_of(shape))
        takers = dict.fromkeys(offered for shape in able for offered in self._takers_of(shape))
        later = self._bought(able, [each for each in takers if self._ledger.room_for(each) != 0])
        if later.kept:
            available = self._made.world.supply.available
            if len(available) > len(takers):
                every = [each for each in available if self._ledger.room_for(each) != 0]
                wider = self._bought(able, every)
                later = wider if wider.unserved < later.unserved else later
        self._ledger, self._trial.ledger = later.limits, later.topology
        self._new += [(node.load.offered, node.load.room) for node in later.nodes]
        return replace(later, shapes=(*later.shapes, *unable), left=(*later.left, *map(len, unable)))

    def _bought(self, shapes: Sequence[Shape], types: Sequence[OfferedType]) -> Later:
        topology = self._trial.ledger
        if not shapes or not types:
            return Later((), self._ledger, topology, tuple(shapes), tuple(map(len, shapes)), ())
        in_order = sorted(types, key=lambda each: each.order)
        first = len(self._new)
        return bought_later(self._made, shapes, in_order, self._ledger, topology, first)

    def _on_new_nodes(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Pods on nodes that were bought for others; the shapes of those that are left. A node that is too full for any
        pod is looked at once."""
        left: list[Shape] = []
        for shape in shapes:
            waiting = list(shape.pods)
            for number, (offered, room) in enumerate(self._new):
                while waiting and (after := _added(offered, room, shape)) is not None:
                    waiting.pop(0)
                    room = after
                self._new[number] = offered, room
            if waiting:
                left.append(Shape(tuple(waiting)))
        self._new = [(offered, room) for offered, room in self._new if self._may_take_more(room)]
        return tuple(left)

    def _may_take_more(self, room: Room) -> bool:
        """Whether it has the cpu and the memory of the smallest pod."""
        return all(max(0, room.free.get(name, 0)) >= least for name, least in self._least.items())

    def _buy(self, shapes: Sequence[Shape]) -> Purchase:
        takers = dict.fromkeys(offered for shape in shapes for offered in self._takers_of(shape))
        allowed = [offered for offered in takers if self._ledger.room_for(offered) != 0]
        purchase = self._made.buy(shapes, sorted(allowed, key=lambda c: c.order), self._ledger)
        self._new += [(load.offered, load.room) for load, times in purchase.loads for _ in range(times)]
        return purchase

    def _takers_of(self, shape: Shape) -> tuple[OfferedType, ...]:
        """The types that hold a pod of the shape: of each pool the cheapest a pod."""
        key = id(shape.spec)
        if key not in self._takers:
            holding, available = self._made.world.holding, self._made.world.supply.available
            held = holding.alone(shape, holding.kind(shape))[holding.rows(available)]
            found = np.flatnonzero(held)
            prices = np.array([available[at].price_micro for at in found.tolist()], dtype=np.int64)
            # What is available stands in order of price, pool and type, so equal prices a pod do, too.
            cheapest = found[np.argsort(prices // held[found], kind="stable")]
            by_pool: dict[str, list[OfferedType]] = {available[at].pool.name: [] for at in found.tolist()}
            for at in cheapest.tolist():
                by_pool[available[at].pool.name].append(available[at])
            self._takers[key] = tuple(offered for each in by_pool.values() for offered in each[:_MOST_TYPES])
        return self._takers[key]

    def _first(self, pods: Sequence[Pod], refusals: Sequence[Refusal]) -> Refusal | None:
        """What stopped the first of the pods."""
        refused = {pod.key: each for each in (*self._everyone.turned_away, *refusals) for pod in each.pods}
        return next((refused[pod.key] for pod in pods if pod.key in refused), None)


def _added(offered: OfferedType, room: Room, shape: Shape) -> Room | None:
    """The room with one pod more; None where it does not fit, or the node could not be bought for it any more."""
    asked = shape.requests
    if any(asked.get(name, 0) > max(0, room.free.get(name, 0)) for name in (CPU, MEMORY)):
        return None
    result = fit(offered.target, room, shape)
    if isinstance(result, Misfit) or offered.offering_for(result.room.requirements) is None:
        return None
    return result.room
