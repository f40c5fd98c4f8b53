"""One node filled with pods, exactly, card by card.

A fill is first-fit decreasing over shapes; within a shape every pod without devices is placed at once by division, and
pods with devices one by one by the family's own chooser. Results depend on how many pods of each shape remain only up
to what one node can hold, so that they are remembered.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kerf.engine.buy.crowding import Headcount, most_alone
from kerf.engine.buy.flexibility import Counted, Interchangeable, asks
from kerf.engine.place.fit import narrowed
from kerf.engine.place.shapes import UNCROWDED, Crowding, Shape, queue_order
from kerf.engine.place.target import Room
from kerf.engine.supply.holding import Amounts, Holding
from kerf.engine.supply.offered import OfferedType
from kerf.model.causes import Cause
from kerf.model.constraints import ZONE, Requirements
from kerf.model.gpu import Slice
from kerf.model.instancetypes import Offering
from kerf.model.large import Large
from kerf.model.plan import Misfit, PlacedPod
from kerf.model.pods import Pod
from kerf.model.quantities import COST_PER_HOUR, NOTHING, Resources

Counts = tuple[int, ...]
"""Pods by shape, in the order of the shapes."""


@dataclass(frozen=True, eq=False, repr=False)
class Load(Large):
    """A node full of pods: `counts` by shape; `slices` of each pod, by shape, in the order they were placed.

    `order` is how it was filled: shapes, each with how many of its pods came then. `needed` are other types that hold
    the same pods and that a claim must name, because the pool asks for a choice; the cheapest first.
    """

    offered: OfferedType
    counts: Counts
    slices: tuple[tuple[tuple[Slice, ...], ...], ...]
    room: Room
    offering: Offering
    order: tuple[tuple[int, int], ...] = ()
    needed: tuple[OfferedType, ...] = ()

    @property
    def pods(self) -> int:
        """How many pods it holds."""
        return sum(self.counts)

    @cached_property
    def charge(self) -> Resources:
        """What the node counts against its pool's limits, wherever the cloud places it and whichever type it takes."""
        counted = charge(self.offered, self.offering, self.room.requirements)
        for other in self.needed:
            counted = counted.largest(charge(other, self.offering, self.room.requirements))
        return counted


def charge(offered: OfferedType, offering: Offering, requirements: Requirements) -> Resources:
    """What a node of the type counts: at the dearest price that the offering's capacity type has in the zones."""
    if COST_PER_HOUR not in offered.capacity:
        return offered.capacity
    zone = requirements.get(ZONE)
    prices = [
        o.price_micro
        for o in offered.offerings
        if o.capacity_type == offering.capacity_type and (zone is None or zone.has(o.zone))
    ]
    return offered.capacity.replaced({COST_PER_HOUR: max(prices, default=offering.price_micro)})


@dataclass(repr=False)
class Purchase(Large):
    """Loads with how often each is bought, and the pods by shape that are left; `notes` on a search that failed."""

    loads: list[tuple[Load, int]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    notes: tuple[Cause, ...] = ()

    @property
    def rank(self) -> tuple[int, int, int]:
        """Sort key, the best first: pods left, price, nodes."""
        return (
            sum(self.left),
            sum(load.offering.price_micro * times for load, times in self.loads),
            sum(times for _, times in self.loads),
        )


class Filler:
    """Fills nodes for one set of shapes and remembers what it found; `holding` is what other purchases have found.

    `keeps_choice`: no node holds more than so many types hold as its pool asks for by minValues.
    """

    def __init__(self, shapes: Sequence[Shape], holding: Holding | None = None, *, keeps_choice: bool = False) -> None:
        self.shapes = tuple(shapes)
        self.holding = holding or Holding()
        self.keeps_choice = keeps_choice
        self._groups = Interchangeable(self.holding) if keeps_choice else None
        self._chosen: dict[tuple[int, bytes], Load | None] = {}
        self._kinds: dict[int, int] = {}
        self._recipes: dict[tuple[int, str, int], _Recipe] = {}
        self._known: list[int] = []
        self.kinds: set[int] = set()
        self._held = np.zeros((0, len(self.shapes)), dtype=np.int64)
        self._loads: dict[tuple[int, bytes], Load | None] = {}

    def held(self, numbers: Iterable[int]) -> Amounts:
        """By row of `holding` and number of the shape, how many pods an empty node holds; 0 for shapes not asked for.

        Only wanted ones are asked whether they fit: one that cannot be planned for must not stop the others.
        """
        rows = len(self.holding.types)
        if len(self._held) < rows:
            more = np.zeros((rows - len(self._held), len(self.shapes)), dtype=np.int64)
            self._held = np.concatenate([self._held, more])
            for number in self._known:
                self._held[:, number] = self._alone(number)
        for number in numbers:
            if number not in self._kinds:
                kind = self.holding.kind(self.shapes[number])
                self._kinds[number] = kind
                self._held[:, number] = self._alone(number)
                self.kinds.add(kind)
                self._known.append(number)
        return self._held

    def _alone(self, number: int) -> Amounts:
        shape = self.shapes[number]
        alone = self.holding.alone(shape, self._kinds[number])
        alone = alone if self._groups is None else self._groups.capped(alone)
        return alone if shape.crowding is UNCROWDED else np.minimum(alone, most_alone(shape.crowding))

    def alone(self, number: int, offered: OfferedType) -> int:
        """How many pods of one shape an empty node of the type holds; 0 when none fits there."""
        row = self.holding.row(offered)
        return int(self.held((number,))[row, number])

    def fill(self, offered: OfferedType, remaining: Sequence[int] | Amounts) -> Load | None:
        """As many of the remaining pods as one node holds; None when it holds none of them.

        Cost, for a type of a pool with minValues, each time another load comes: its types times log(pods of the load).
        """
        load = self._filled(offered, remaining)
        if load is None or self._groups is None or not asks(offered):
            return load
        key = self.holding.row(offered), np.asarray(load.counts, dtype=np.int64).tobytes()
        if key not in self._chosen:
            self._chosen[key] = self._with_choice(load)
        return self._chosen[key]

    def _with_choice(self, load: Load) -> Load | None:
        """The longest part of the load, in the order in which it was filled, that enough types hold."""
        needed = self._needed(load)
        if needed is not None:
            return replace(load, needed=needed)
        few, many, best = 0, load.pods - 1, None
        while few < many:
            middle = (few + many + 1) // 2
            made = self._filled(load.offered, _first(load, middle))
            needed = self._needed(made) if made is not None else None
            if made is None or needed is None:
                many = middle - 1
            else:
                few, best = middle, replace(made, needed=needed)
        return best

    def _needed(self, load: Load) -> tuple[OfferedType, ...] | None:
        """The cheapest other types whose values are enough with those of the planned one; None where none are."""
        counted, needed = Counted(load.offered.pool), list[OfferedType]()
        counted.adds(load.offered.kind)
        assert self._groups is not None
        for other in sorted(self._groups.of(load.offered), key=lambda each: each.order):
            if counted.is_enough:
                break
            if other.kind.name != load.offered.kind.name and self.holds(other, load) and counted.adds(other.kind):
                needed.append(other)
        return tuple(needed) if counted.is_enough else None

    def holds(self, other: OfferedType, load: Load) -> bool:
        """Whether another type holds the pods of a load and is sold in the same way."""
        offering = other.offering_for(load.room.requirements)
        if offering is None or offering.capacity_type != load.offering.capacity_type or other.has_own_capacity:
            return False
        used = load.offered.room.free - load.room.free
        if other.target.uncounted == load.offered.target.uncounted and used.shortfall(other.room.free):
            return False
        counts = np.asarray(load.counts)
        numbers = np.flatnonzero(counts)
        held = self.held(numbers.tolist())[self.holding.row(other), numbers]
        if (held < counts[numbers]).any():
            return False
        is_plain = all(self.recipe(number, other).is_plain for number in numbers.tolist())
        if is_plain and other.target.uncounted == load.offered.target.uncounted:
            # Amounts alone decide, and those have been compared.
            return True
        held = self._filled(other, load.counts)
        return held is not None and held.counts == load.counts

    def _filled(self, offered: OfferedType, remaining: Sequence[int] | Amounts) -> Load | None:
        row, wanted = self.holding.row(offered), np.asarray(remaining, dtype=np.int64)
        if len(self._known) < len(self.shapes) or row >= len(self._held):
            self.held(np.flatnonzero(wanted).tolist())
        clipped = np.minimum(wanted, self._held[row])
        key = (row, clipped.tobytes())
        if key not in self._loads:
            self._loads[key] = _Fill(self, row, clipped).load() if clipped.any() else None
        return self._loads[key]

    def fill_first(
        self, offered: OfferedType, first: Sequence[int] | Amounts, more: Sequence[int] | Amounts
    ) -> Load | None:
        """As many of the first pods as one node holds, then of the others; None when it holds none. Not remembered."""
        row, wanted, others = self.holding.row(offered), np.asarray(first), np.asarray(more)
        held = self.held(np.flatnonzero(wanted + others).tolist())[row]
        wanted = np.minimum(wanted, held)
        clipped = np.minimum(wanted + others, held)
        if not wanted.any():
            return None
        before = self.order(row, wanted)
        load = _Fill(self, row, clipped, [*before, *(n for n in self.order(row, clipped) if n not in before)]).load()
        keeps = self._groups is not None and asks(offered)
        return self._with_choice(load) if keeps and load is not None else load

    def order(self, row: int, wanted: Amounts) -> list[int]:
        """The wanted shapes in the order in which they are filled in: the largest first."""
        numbers = np.flatnonzero(wanted)
        found: list[int] = numbers[np.argsort(self._held[row][numbers], kind="stable")].tolist()
        return found

    def recipe(self, number: int, offered: OfferedType) -> "_Recipe":
        """How pods of a shape that was asked for go onto nodes of the type's family."""
        target = offered.target
        key = (number, target.family.name, id(target.families))
        if key not in self._recipes:
            shape, kind = self.shapes[number], self._kinds[number]
            amounts = tuple(shape.counted(target.uncounted).items())
            asks = self.holding.asks_devices(kind, shape, offered)
            is_plain = not (asks or shape.spec.host_ports or shape.spec.alternatives_new[0])
            self._recipes[key] = _Recipe(kind, amounts, asks, is_plain, shape.crowding)
        return self._recipes[key]


class _Recipe(NamedTuple):
    """`amounts` are what a sum over the node decides for one pod; a plain pod needs nothing else but its company."""

    kind: int
    amounts: tuple[tuple[str, int], ...]
    asks_devices: bool
    is_plain: bool
    crowding: Crowding


class _Fill:
    """One node of a type while it is filled. Pods that narrow nothing are arithmetic: a room is made for the end."""

    def __init__(self, filler: Filler, row: int, wanted: Amounts, order: Sequence[int] | None = None) -> None:
        self._filler, self._wanted = filler, wanted.tolist()
        self._order = filler.order(row, wanted) if order is None else order
        self._offered = filler.holding.types[row]
        self._free = dict(self._offered.room.free)
        self._state = filler.holding.start(row)
        self._requirements, self._ports = self._offered.room.requirements, self._offered.room.ports
        self._counts = [0] * len(filler.shapes)
        self._slices: list[tuple[tuple[Slice, ...], ...]] = [()] * len(filler.shapes)
        # Kinds that the cards refuse as they are now: every other shape of the kind they refuse, too.
        self._closed: dict[int, int] = {}
        self._crowd = Headcount()
        self._narrowed: dict[int, tuple[Requirements, Requirements | None]] = {}

    def load(self) -> Load | None:
        """The node when it is full; None where it holds nothing that can be bought."""
        free, recipe_of, offered = self._free, self._filler.recipe, self._offered
        for number in self._order:
            recipe, many = recipe_of(number, offered), self._wanted[number]
            for name, amount in recipe.amounts:
                if amount > 0 and amount * many > free.get(name, 0):
                    many = max(0, free.get(name, 0) // amount)
                    if not many:
                        break
            if many and recipe.crowding is not UNCROWDED:
                many = min(many, self._crowd.room(recipe.crowding))
            if not many:
                continue
            if recipe.is_plain:
                self._take(number, recipe, [()] * many)
            elif self._closed.get(recipe.kind) != self._state:
                self._add(number, recipe, many)
                if self._is_closed_to_all():
                    break
        offering = self._offered.offering_for(self._requirements)
        if offering is None or not any(self._counts):
            return None
        devices = self._filler.holding.cards.devices(self._state)
        room = Room(Resources(self._free), devices, self._ports, self._requirements)
        order = tuple((number, self._counts[number]) for number in self._order if self._counts[number])
        return Load(self._offered, tuple(self._counts), tuple(self._slices), room, offering, order)

    def _add(self, number: int, recipe: _Recipe, many: int) -> None:
        """As many pods of the shape as labels, ports and cards allow, of so many that have the amounts."""
        shape, holding = self._filler.shapes[number], self._filler.holding
        requirements, ports = self._requirements, shape.spec.host_ports
        if shape.spec.alternatives_new[0]:
            narrower = self._narrower(shape, recipe.kind)
            if narrower is None:
                return
            requirements = narrower
        if ports:
            many = 0 if any(port.conflicts(taken) for port in ports for taken in self._ports) else 1
        slices: list[tuple[Slice, ...]] = [] if recipe.asks_devices else [()] * many
        while len(slices) < many:
            after = holding.cards.after(self._state, recipe.kind, shape, self._offered)
            if after is None:
                self._closed[recipe.kind] = self._state
                break
            self._state = after[0]
            slices.append(after[1])
        if slices:
            self._requirements, self._ports = requirements, (*self._ports, *ports)
            self._take(number, recipe, slices)

    def _narrower(self, shape: Shape, kind: int) -> Requirements | None:
        """The requirements with those of the pods; None where they have none in common. Asked once for each kind."""
        known = self._narrowed.get(kind)
        if known is None or known[0] is not self._requirements:
            narrower = narrowed(self._offered.target, self._room(), shape)
            agreed = None if isinstance(narrower, Misfit) else narrower
            if agreed is not None and self._offered.offering_for(agreed) is None:
                agreed = None
            if agreed == self._requirements:
                agreed = self._requirements
            known = self._narrowed[kind] = self._requirements, agreed
        return known[1]

    def _is_closed_to_all(self) -> bool:
        """Whether the cards, as they are now, have refused every kind that is to be bought for."""
        return all(self._closed.get(kind) == self._state for kind in self._filler.kinds)

    def _take(self, number: int, recipe: _Recipe, slices: list[tuple[Slice, ...]]) -> None:
        self._counts[number], self._slices[number] = len(slices), tuple(slices)
        if recipe.crowding is not UNCROWDED:
            self._crowd.add(recipe.crowding, len(slices))
        for name, amount in recipe.amounts:
            self._free[name] = self._free.get(name, 0) - amount * len(slices)

    def _room(self) -> Room:
        return Room(NOTHING, (), self._ports, self._requirements)


def _first(load: Load, most: int) -> Amounts:
    """So many pods of a load, by shape: those that were placed first."""
    counts = np.zeros(len(load.counts), dtype=np.int64)
    for number, count in load.order:
        counts[number] = min(count, most)
        most -= int(counts[number])
    return counts


def named(load: Load, members: Sequence[tuple[int, Pod]]) -> tuple[PlacedPod, ...]:
    """The pods of a load with their slices, in queue order; `members` are (number of the shape, pod)."""
    cursors = [iter(slices) for slices in load.slices]
    placed = [
        (queue_order(pod), PlacedPod(pod.key, tuple(replace(part, pod=pod.key) for part in next(cursors[number]))))
        for number, pod in members
    ]
    return tuple(item for _, item in sorted(placed, key=lambda pair: pair[0]))
