"""One node filled with pods, exactly, card by card.

A fill is first-fit decreasing over shapes; within a shape every pod without devices is placed at once by division, and
pods with devices one by one by the family's own chooser. Results depend on how many pods of each shape remain only up
to what one node can hold, so they are remembered.
"""

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from kerf.engine.buy.crowding import Headcount, among, starting
from kerf.engine.buy.flexibility import Counted, Interchangeable, asks
from kerf.engine.buy.limits import Limit
from kerf.engine.place.fit import narrowed
from kerf.engine.place.shapes import UNCROWDED, Crowding, Shape, queue_order
from kerf.engine.place.target import Room
from kerf.engine.supply.holding import Amounts, Holding, measured
from kerf.engine.supply.offered import OfferedType
from kerf.engine.supply.warmth import KeptColumn
from kerf.model.causes import Cause
from kerf.model.constraints import CAPACITY_TYPE, ZONE, Requirement, Requirements
from kerf.model.gpu import Slice
from kerf.model.instancetypes import Offering
from kerf.model.large import Large
from kerf.model.plan import Misfit, PlacedPod
from kerf.model.pods import Pod, port_in_conflict
from kerf.model.quantities import COST_PER_HOUR, CPU, MEMORY, NOTHING, PODS, Resources

_KEY, _PLACED = attrgetter("key"), partial(tuple.__new__, PlacedPod)
_SIZES = (CPU, MEMORY, PODS)
"""Amounts that every family leaves to kubelet, and of which a node most often has too little left."""
Counts = tuple[int, ...]
"""Pods by shape, in the order of the shapes."""


@dataclass(frozen=True, eq=False, repr=False)
class Load(Large):
    """A node full of pods: how many of each shape it has, by the shape's number, of so many `shapes`.

    `held` leaves out those that it has none of, for most nodes have few of the shapes. `slices` are those of each pod,
    by number, in the order they were placed. `order` is how it was filled: shapes, each with how many of its pods came
    then. `needed` are other types that hold the same pods and that a claim must name, because the pool asks for a
    choice; the cheapest first. `findings` are answers that hold for all nodes that are filled so, whatever numbers
    their shapes have: later decisions ask the same of most nodes. None where nothing is carried on.
    """

    offered: OfferedType
    shapes: int
    held: tuple[tuple[int, int], ...]
    slices: Mapping[int, tuple[tuple[Slice, ...], ...]]
    room: Room
    offering: Offering
    order: tuple[tuple[int, int], ...] = ()
    needed: tuple[OfferedType, ...] = ()
    findings: dict[Hashable, Any] | None = None

    @property
    def pods(self) -> int:
        """How many pods it holds."""
        return sum(count for _, count in self.held)

    @property
    def counts(self) -> Counts:
        """Pods by shape. Cost: all shapes."""
        counts = [0] * self.shapes
        for number, count in self.held:
            counts[number] = count
        return tuple(counts)

    @property
    def amounts(self) -> Amounts:
        """The same as an array."""
        counts = np.zeros(self.shapes, dtype=np.int64)
        for number, count in self.held:
            counts[number] = count
        return counts

    @cached_property
    def parts(self) -> tuple[tuple[Slice, ...], ...]:
        """The slices of each pod, in the order of `held`."""
        return tuple(itertools.chain.from_iterable([self.slices[number] for number, _ in self.held]))

    @cached_property
    def charge(self) -> Resources:
        """What the node counts against its pool's limits, wherever the cloud places it and whichever type it takes."""
        counted = charge(self.offered, self.offering, self.room.requirements)
        for other in self.needed:
            counted = counted.largest(charge(other, self.offering, self.room.requirements))
        return counted


def charge(offered: OfferedType, offering: Offering, requirements: Requirements) -> Resources:
    """What a node of the type counts: at the highest price that the offering's capacity type has in the zones."""
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
    """Loads with how often each is bought, and the pods by shape that are left; `notes` on a search that failed.

    `filler` is what filled them, for a caller that goes on with the same shapes; None where nothing need be kept of it.
    `binding` are the limits that had a say in the choice (`engine.buy.binding`), None where that is unknown.
    """

    loads: list[tuple[Load, int]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    notes: tuple[Cause, ...] = ()
    filler: "Filler | None" = None
    binding: frozenset[Limit] | None = None

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
        self._chosen: dict[tuple[int, bytes, bytes], Load | None] = {}
        self._kinds: dict[int, int] = {}
        self._recipes: dict[tuple[str, int, int], dict[int, Recipe]] = {}
        self._wants: dict[object, int] = {}
        self._terms: list[Requirements] = []
        self._term_numbers: dict[int, int] = {}
        self._agreed: dict[tuple[int, int, int], int | None] = {}
        sizes = [[measured(each.requests, name) for name in _SIZES] for each in self.shapes]
        self._sizes = np.array(sizes, dtype=np.int64).reshape(-1, len(_SIZES))
        self._known: list[int] = []
        self.kinds: set[int] = set()
        self._held = np.zeros((0, len(self.shapes)), dtype=np.int64)
        self._related = among(self.shapes)
        self._is_uncrowded = all(shape.crowding is UNCROWDED for shape in self.shapes)
        self._shape_numbers: list[int] = []
        self._loads: dict[tuple[int, bytes, bytes], Load | None] = {}
        self.columns: list[KeptColumn] = []
        """Ways to fill nodes that prices chose, by numbers of the filler's shapes: where the next search begins."""

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

    def held_by(self, offered_types: Iterable[OfferedType], numbers: Amounts) -> Amounts:
        """By type and shape of these numbers, how many pods an empty node holds."""
        rows = self.holding.rows(offered_types)
        return self.held(numbers.tolist())[np.ix_(rows, numbers)]

    def _alone(self, number: int) -> Amounts:
        shape = self.shapes[number]
        alone = self.holding.alone(shape, self._kinds[number])
        alone = alone if self._groups is None else self._groups.capped(alone)
        return alone if shape.crowding is UNCROWDED else np.minimum(alone, self._most_beside(shape.crowding))

    def _most_beside(self, crowding: Crowding) -> Amounts:
        """By row, how many such pods an empty node may have. Cost: linear in rows where DaemonSets matter."""
        if not crowding.daemons:
            return np.full(len(self.holding.types), Headcount().room(crowding), dtype=np.int64)
        return np.array([self.headcount(row).room(crowding) for row in range(len(self.holding.types))], dtype=np.int64)

    def headcount(self, row: int) -> Headcount:
        """Who is on an empty node of the type, of those that the shapes go by."""
        return starting(self.holding.types[row], self._related)

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
        row = self.holding.row(offered)
        wanted = np.minimum(np.asarray(remaining, dtype=np.int64), self._held[row])
        key = _key(row, wanted)
        if key not in self._chosen:
            self._chosen[key] = self._with_choice(load, wanted)
        return self._chosen[key]

    def _with_choice(self, load: Load, wanted: Amounts) -> Load | None:
        """The longest part of the load, in the order in which it was filled, that enough types hold.

        Then what else of the wanted pods the same types hold beside it, the largest first.
        """
        needed = self._needed(load)
        if needed is not None:
            return replace(load, needed=needed, findings=None)
        few, many, best = 0, load.pods - 1, None
        while few < many:
            middle = (few + many + 1) // 2
            made = self._filled(load.offered, _first(load, middle))
            needed = self._needed(made) if made is not None else None
            if made is None or needed is None:
                many = middle - 1
            else:
                few, best = middle, replace(made, needed=needed, findings=None)
        return best if best is None else self._beside(best, wanted)

    def _beside(self, load: Load, wanted: Amounts) -> Load:
        """The load with as many more of the wanted pods as its type holds and those that its claim names."""
        counts = load.amounts
        for number in self.order(self.holding.row(load.offered), np.maximum(0, wanted - counts)):
            few, many = 0, int(wanted[number] - counts[number])
            middle = 1
            while few < many:
                asked = counts.copy()
                asked[number] += middle
                made = self._filled(load.offered, asked)
                if made is None or (made.amounts != asked).any() or not self._all_hold(load.needed, made):
                    many = middle - 1
                else:
                    few, load = middle, replace(made, needed=load.needed, findings=None)
                middle = (few + many + 1) // 2
            counts = load.amounts
        return load

    def _all_hold(self, others: Sequence[OfferedType], load: Load) -> bool:
        return all(self.holds(other, load) for other in others)

    def _needed(self, load: Load) -> tuple[OfferedType, ...] | None:
        """The cheapest other types whose values are enough with those of the planned one; None where none are.

        Those with as many cards come first: of one with more the pods leave some idle.
        """
        counted, needed = Counted(load.offered.pool), list[OfferedType]()
        counted.adds(load.offered.kind)
        assert self._groups is not None
        cards = len(load.offered.room.devices)
        others = sorted(self._groups.of(load.offered), key=lambda e: (len(e.room.devices) != cards, e.order))
        for other in others:
            if counted.is_enough:
                break
            if other.kind.name != load.offered.kind.name and self.holds(other, load) and counted.adds(other.kind):
                needed.append(other)
        return tuple(needed) if counted.is_enough else None

    def holds(self, other: OfferedType, load: Load) -> bool:
        """Whether another type holds the pods of a load and is sold in the same way."""
        alike = Requirement.of(CAPACITY_TYPE, "In", (load.offering.capacity_type,))
        if other.has_own_capacity or not other.offering_for(load.room.requirements.intersect(Requirements([alike]))):
            return False
        used = load.offered.room.free - load.room.free
        if other.target.counting == load.offered.target.counting and used.shortfall(other.room.free):
            return False
        counts = load.amounts
        numbers = np.flatnonzero(counts)
        held = self.held(numbers.tolist())[self.holding.row(other), numbers]
        if (held < counts[numbers]).any():
            return False
        is_plain = all(self.recipe(number, other).is_plain for number in numbers.tolist())
        if is_plain and other.target.counting == load.offered.target.counting:
            # Amounts alone decide, and those have been compared.
            return True
        held = self._filled(other, counts)
        return held is not None and held.held == load.held

    def _filled(self, offered: OfferedType, remaining: Sequence[int] | Amounts) -> Load | None:
        row, wanted = self.holding.row(offered), np.asarray(remaining, dtype=np.int64)
        if len(self._known) < len(self.shapes) or row >= len(self._held):
            self.held(np.flatnonzero(wanted).tolist())
        clipped = np.minimum(wanted, self._held[row])
        key = _key(row, clipped)
        if key not in self._loads:
            self._loads[key] = self._full(row, clipped, self.order(row, clipped)) if clipped.any() else None
        return self._loads[key]

    def _full(self, row: int, wanted: Amounts, order: list[int]) -> Load | None:
        """A node that is filled in this order; where the holding is carried on, one that was filled so before."""
        holding = self.holding
        if holding.warmth is None or not self._is_uncrowded:
            return _Fill(self, row, wanted, order).load()
        if not self._shape_numbers:
            self._shape_numbers = [holding.shape_number(shape) for shape in self.shapes]
        numbers, place = self._shape_numbers, {number: at for at, number in enumerate(order)}
        key = row, tuple([numbers[number] for number in order]), tuple(wanted[order].tolist())
        kept = holding.filled(key)
        if kept is None:
            made = _Fill(self, row, wanted, order).load()
            if made is not None:
                same = row, tuple([(numbers[number], count) for number, count in made.order])
                object.__setattr__(made, "findings", holding.findings.setdefault(same, {}))
            holding.fills[key] = made if made is None else _renumbered(made, place, len(order))
            return made
        known: Load | None = kept[0]
        return known if known is None else _renumbered(known, order, len(self.shapes))

    def fill_in_turns(self, offered: OfferedType, asked: Amounts, turns: Amounts) -> Load | None:
        """As many of the pods as one node holds, by turns and in one turn the largest first; None when it holds none.

        `turns` are by number of the shape. Not remembered.
        """
        row = self.holding.row(offered)
        held = self.held(np.flatnonzero(asked).tolist())[row]
        wanted = np.minimum(asked, held)
        numbers = np.flatnonzero(wanted)
        order: list[int] = numbers[np.lexsort((held[numbers], turns[numbers]))].tolist()
        load = self._full(row, wanted, order) if order else None
        keeps = self._groups is not None and asks(offered)
        return self._with_choice(load, wanted) if keeps and load is not None else load

    def fill_alike(self, offered: OfferedType, load: Load) -> Load | None:
        """The pods of a load on another type, in the order in which they came there; None where it holds none of them.

        Not by the type's own order: that depends on what else is to be bought, so it would be an answer for one plan.
        """
        row, wanted = self.holding.row(offered), load.amounts
        order = [number for number, _ in load.order]
        if (self.held(order)[row, order] < wanted[order]).any():
            return None
        return self._full(row, wanted, order)

    def takes_alike(self, offered: OfferedType, load: Load) -> bool | None:
        """Whether `fill_alike` would put all pods of the load on the other type; None where it must be tried.

        Sums, labels and cards are asked apart from each other: of most loads they decide alone, and cards know most of
        their steps. Cost: shapes and pods of the load, without the room that would be left.
        """
        row, chosen = self.holding.row(offered), load.offered
        numbers = [number for number, _ in load.order]
        shapes = [self.shapes[number] for number in numbers]
        if load.needed or offered.target.counting != chosen.target.counting:
            return None
        if any(shape.crowding is not UNCROWDED or shape.spec.host_ports for shape in shapes):
            return None
        held = self.held(numbers)[row, numbers].tolist()
        if any(most < count for most, (_, count) in zip(held, load.order, strict=True)):
            return False
        used = chosen.room.free - load.room.free
        return not used.shortfall(offered.room.free) and self.agrees(offered, numbers) and self._opens(row, load)

    def agrees(self, offered: OfferedType, numbers: Iterable[int]) -> bool:
        """Whether one node of the type can have pods of all these shapes, as far as labels decide."""
        row = self.holding.row(offered)
        terms, seen = self.first_terms(row), set[int]()
        for number in numbers:
            recipe = self.recipe(number, offered)
            if recipe.want not in seen:
                seen.add(recipe.want)
                agreed = self.agreed(row, terms, number, recipe)
                if agreed is None:
                    return False
                terms = agreed
        return True

    def _opens(self, row: int, load: Load) -> bool:
        """Whether the cards of the type take the pods of the load in their order."""
        holding, state = self.holding, self.holding.start(row)
        offered = holding.types[row]
        if state == holding.start(holding.row(load.offered)):
            return True
        for number, count in load.order:
            recipe, shape = self.recipe(number, offered), self.shapes[number]
            for _ in range(count if recipe.asks_devices else 0):
                after = holding.cards.after(state, recipe.kind, shape, offered)
                if after is None:
                    return False
                state = after[0]
        return True

    def order(self, row: int, wanted: Amounts) -> list[int]:
        """The wanted shapes in the order in which they are filled in: the largest first."""
        numbers = np.flatnonzero(wanted)
        found: list[int] = numbers[np.argsort(self._held[row][numbers], kind="stable")].tolist()
        return found

    def recipe(self, number: int, offered: OfferedType) -> "Recipe":
        """How pods of a shape that was asked for go onto nodes of the type's family."""
        known = self.recipes(offered)
        if number not in known:
            target, shape, kind = offered.target, self.shapes[number], self._kinds[number]
            amounts = tuple(shape.counted(target.counting).items())
            asks = self.holding.asks_devices(kind, shape, offered)
            is_plain = not (asks or shape.spec.host_ports or shape.spec.alternatives_new[0])
            want = self._wants.setdefault(shape.spec.alternatives_new, len(self._wants))
            known[number] = Recipe(kind, amounts, asks, is_plain, want, shape.crowding)
        return known[number]

    def recipes(self, offered: OfferedType) -> dict[int, "Recipe"]:
        """Those that are known of the type's family, by number."""
        target = offered.target
        key = target.family.name, id(target.families), target.neuron_cores
        found = self._recipes.get(key)
        if found is None:
            found = self._recipes[key] = {}
        return found

    def asked(self, name: str) -> Amounts:
        """By number how much cpu or memory one pod of the shape asks for."""
        found: Amounts = self._sizes[:, _SIZES.index(name)]
        return found

    def small(self, numbers: Sequence[int], free: Mapping[str, int]) -> list[int]:
        """Those of the shapes of which one pod is small enough for what is free, in their order."""
        found = np.array(numbers, dtype=np.int64)
        room = np.array([max(0, measured(free, name)) for name in _SIZES])
        kept: list[int] = found[(self._sizes[found] <= room).all(axis=1)].tolist()
        return kept

    def terms(self, number: int) -> Requirements:
        """What pods on a node ask of it together, by a number of `agreed`."""
        return self._terms[number]

    def first_terms(self, row: int) -> int:
        """The number of what an empty node of the type asks."""
        return self._numbered(self.holding.types[row].room.requirements)

    def agreed(self, row: int, terms: int, number: int, recipe: "Recipe") -> int | None:
        """The terms of a node with one pod of the shape more; None where they have none in common, or none is sold.

        Shapes that ask for the same labels share the answer.
        """
        key = (row, terms, recipe.want)
        if key not in self._agreed:
            offered, before = self.holding.types[row], self._terms[terms]
            found = narrowed(offered.target, Room(NOTHING, (), (), before), self.shapes[number])
            if isinstance(found, Misfit) or offered.offering_for(found) is None:
                self._agreed[key] = None
            else:
                self._agreed[key] = terms if found == before else self._numbered(found)
        return self._agreed[key]

    def _numbered(self, terms: Requirements) -> int:
        number = self._term_numbers.setdefault(id(terms), len(self._terms))
        if number == len(self._terms):
            # It is kept, so no other can get its id.
            self._terms.append(terms)
        return number


def _renumbered(load: Load, numbers: Mapping[int, int] | Sequence[int], shapes: int) -> Load:
    """The same by other numbers of its shapes, of so many."""
    order = tuple([(numbers[number], count) for number, count in load.order])
    slices = {numbers[number]: load.slices[number] for number, _ in load.order}
    held = tuple(sorted(order))
    by_number = {n: slices[n] for n, _ in held}
    return Load(load.offered, shapes, held, by_number, load.room, load.offering, order, (), load.findings)


class Recipe(NamedTuple):
    """`amounts` are what a sum over the node decides for one pod; a plain pod needs nothing else but its company.

    `want` numbers the labels that it asks for.
    """

    kind: int
    amounts: tuple[tuple[str, int], ...]
    asks_devices: bool
    is_plain: bool
    want: int
    crowding: Crowding


class _Fill:
    """One node of a type while it is filled. Pods that narrow nothing are arithmetic: a room is made for the end."""

    def __init__(self, filler: Filler, row: int, wanted: Amounts, order: Sequence[int] | None = None) -> None:
        self._filler = filler
        self._order = filler.order(row, wanted) if order is None else order
        self._wanted: dict[int, int] = dict(zip(self._order, wanted[self._order].tolist(), strict=True))
        self._offered = filler.holding.types[row]
        self._free = dict(self._offered.room.free.items())
        self._state = filler.holding.start(row)
        self._row, self._terms, self._ports = row, filler.first_terms(row), self._offered.room.ports
        self._slices: dict[int, tuple[tuple[Slice, ...], ...]] = {}
        """By number of the shape those of each pod that has come."""
        # Kinds that the cards refuse as they are now: every other shape of the kind they refuse, too.
        self._closed: dict[int, int] = {}
        self._crowd = filler.headcount(row)

    def load(self) -> Load | None:
        """The node when it is full; None where it holds nothing that can be bought."""
        free, known, offered = self._free, self._filler.recipes(self._offered), self._offered
        waiting, has_changed = list(self._order[::-1]), True
        while waiting:
            number = waiting.pop()
            recipe, many = known.get(number) or self._filler.recipe(number, offered), self._wanted[number]
            for name, amount in recipe.amounts:
                if amount > 0 and amount * many > free.get(name, 0):
                    many = max(0, free.get(name, 0) // amount)
                    if not many:
                        break
            if many and recipe.crowding is not UNCROWDED:
                many = min(many, self._crowd.room(recipe.crowding))
                if not many:
                    continue
            if not many:
                # What is left of a full node is too little for most that come after.
                if has_changed:
                    waiting, has_changed = self._filler.small(waiting, free), False
                continue
            has_changed = True
            if recipe.is_plain:
                self._take(number, recipe, [()] * many)
            elif self._closed.get(recipe.kind) != self._state:
                self._add(number, recipe, many)
                if self._is_closed_to_all():
                    break
        requirements = self._filler.terms(self._terms)
        offering = self._offered.offering_for(requirements)
        if offering is None or not self._slices:
            return None
        devices = self._filler.holding.cards.devices(self._state)
        room = Room(Resources(self._free), devices, self._ports, requirements)
        order = tuple((number, len(slices)) for number, slices in self._slices.items())
        held = tuple(sorted(order))
        slices = {number: self._slices[number] for number, _ in held}
        return Load(self._offered, len(self._filler.shapes), held, slices, room, offering, order)

    def _add(self, number: int, recipe: Recipe, many: int) -> None:
        """As many pods of the shape as labels, ports and cards allow, of so many that have the amounts."""
        shape, holding = self._filler.shapes[number], self._filler.holding
        terms, ports = self._filler.agreed(self._row, self._terms, number, recipe), shape.spec.host_ports
        if terms is None:
            return
        if ports:
            many = 0 if port_in_conflict(ports, self._ports) is not None else 1
        slices: list[tuple[Slice, ...]] = [] if recipe.asks_devices else [()] * many
        while len(slices) < many:
            after = holding.cards.after(self._state, recipe.kind, shape, self._offered)
            if after is None:
                self._closed[recipe.kind] = self._state
                break
            self._state = after[0]
            slices.append(after[1])
        if slices:
            self._terms, self._ports = terms, (*self._ports, *ports)
            self._take(number, recipe, slices)

    def _is_closed_to_all(self) -> bool:
        """Whether the cards, as they are now, have refused every kind that is to be bought for."""
        return all(self._closed.get(kind) == self._state for kind in self._filler.kinds)

    def _take(self, number: int, recipe: Recipe, slices: list[tuple[Slice, ...]]) -> None:
        self._slices[number] = tuple(slices)
        if recipe.crowding is not UNCROWDED:
            self._crowd.add(recipe.crowding, len(slices))
        for name, amount in recipe.amounts:
            self._free[name] = self._free.get(name, 0) - amount * len(slices)


def _key(row: int, counts: Amounts) -> tuple[int, bytes, bytes]:
    """A type and pods by shape: which shapes, and how many of each; most nodes have few of all shapes."""
    numbers = np.flatnonzero(counts)
    return row, numbers.tobytes(), counts[numbers].tobytes()


def _first(load: Load, most: int) -> Amounts:
    """So many pods of a load, by shape: those that were placed first."""
    counts = np.zeros(load.shapes, dtype=np.int64)
    for number, count in load.order:
        counts[number] = min(count, most)
        most -= int(counts[number])
    return counts


def named(load: Load, nodes: Sequence[Sequence[Pod]], turns: Sequence[int] = ()) -> list[tuple[PlacedPod, ...]]:
    """The pods of nodes of one load, each in the order of `held`, with their slices, in queue order.

    `turns` are those of each node's pods, in their order; without them all come at once. Cost: pods, without a step of
    Python's own for each.
    """
    parts = itertools.cycle(load.parts)
    turn = itertools.cycle(turns) if turns else itertools.repeat(0)
    pods = list(itertools.chain.from_iterable(nodes))
    placed = map(_PLACED, zip(map(_KEY, pods), parts, turn, itertools.repeat(0)))
    found = list(zip(*[placed] * len(load.parts), strict=True))
    if len(load.held) == 1:
        # The pods of a shape are in queue order already.
        return found
    order, each = list(map(queue_order, pods)), range(len(load.parts))
    starts = range(0, len(pods), len(load.parts))
    keys = (order[first : first + len(each)] for first in starts)
    return [tuple([held[at] for at in sorted(each, key=of.__getitem__)]) for held, of in zip(found, keys, strict=True)]
