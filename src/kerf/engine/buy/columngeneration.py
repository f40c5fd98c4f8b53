"""The cheapest mix of whole nodes for many pods: column generation, then a dive to whole numbers.

A linear program says how many of each known way to fill a node (a column) are bought in parts, and what a pod of each
shape is worth then. At these prices `nodepricing` looks for nodes that are worth more than they cost; they become
columns, and so on. The prices of the lower bound are where it begins, for they are near the best, and what it looks
with is a mean of the best prices so far and those of the last answer, which jump (smoothing after Wentges 1997). For
each shape the best node with it becomes a column, too: the best of all nodes alone are too much like each other.

They still are where the same pods fill them all up. So nodes that are found cover pods, one node after the other, and
pods that are covered are worth less beside those that are not yet, by as much as nodes still cost too much. The next
nodes are filled up with others then, which halves the rounds.

Pods of one size that differ in the nodes that may have them share their columns: rows are about places then, by sets of
nodes (`variants`).

What limits of pools and reservations have left are rows of the program, too. A node costs, beside its price, what it
takes of them at their prices: so what is left of a limit goes where it saves most, and nodes that cost more and take
less of it are found.

Then parts become whole: what is bought nearly once more is bought, the rest is solved again, until all is whole.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import inf, isqrt, sqrt

import numpy as np

from kerf.engine.buy.cardfills import Numbers, fills_of_a_card
from kerf.engine.buy.dot import dot
from kerf.engine.buy.filling import Filler, Recipe
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.linearprogram import LinearProgram
from kerf.engine.buy.nodepricing import NodePricing
from kerf.engine.buy.relaxation import Floats, Relaxation
from kerf.engine.buy.variants import Rows, SizeKinds
from kerf.engine.place.shapes import UNCROWDED
from kerf.engine.supply.holding import Amounts, Bools
from kerf.engine.supply.offered import OfferedType
from kerf.model.instancetypes import Offering

MOST_ROUNDS = 28
"""Rounds of prices that are enough for a plan now; more make it cheaper, by less and less. Most plans end before."""
_STEPS_A_ROUND = 464_000
"""Steps of the linear program times its rows, for each of those rounds; a tenth of a second or more."""
_LEAST_ROUNDS = 31
"""In fewer, of at least a step for each row, columns are too few to be worth looking for."""
_FILLS_A_ROUND, _MOST_FILLS = 557, 60_000
"""Ways to fill a card: more of them are worth their time where many rounds look at them."""
_TAIL, _FLAT, _SETTLED = 6, 0.001, 0.01
"""Prices end where the last so many rounds made nodes cheaper by no more than such a part of what they cost; a part of
that, where there is time for more rounds. Where it was less than the other, no node would make them much cheaper."""
NEAR = 0.0115
"""Prices end too where nodes in parts cost so little more than the least that is proven; where many rounds or shapes
have taken the time of several plans, so many times as much."""
_SHAPES, _MOST_SHAPES = 125, 300
"""Rounds are meant for so many shapes, and grow with them up to so many; the difference that is near, with the
root of more than these: a round takes longer with them and gains as much."""
_SMOOTHING = 0.8
"""How much of the prices that a round looks with are the best prices so far."""
_SLACK = 0.05
"""Relative: nodes that are worth so much less than they cost are kept for later rounds all the same."""
_LEAST_SLACK = 0.02
"""Near the end only nodes that are worth nearly what they cost are of use, and fewer take less time."""
_MOST_GAP = 0.2
"""What pods may be worth less at most because nodes for all of them have been found."""
_BEST_NODES = 10
"""Of one type in one round, beside those for each shape."""
_FAR = 0.9
"""A type on which no node can be worth so much of its price is left out for `_ALL_AGAIN` rounds."""
_ALL_AGAIN = 8
_NEARLY = 1e-6
_SURELY = 0.8
"""A part of a node that is bought once more."""
_OTHERWISE = (0.5, 0.6, 0.7, 0.9)
_AS_LIKELY = 0.8
"""Relative: columns with so much of the largest part are bought at once with it, where they share no shape."""
_TOO_MUCH = 1.003
"""Relative to the program before the dive; what is left then is cheaper by full nodes."""
_MOST_AT_ONCE = 8
_MOST_DIVES = 60
_MOST_COLUMNS = 20
"""For each kind of pods; beyond that half of them are dropped."""
_KEPT_OF_A_SHAPE, _KEPT_BELOW = 4, 0.03
"""Columns that are worth keeping: so many for each shape, of those that cost hardly more than they are worth."""
_NEVER = 10.0
"""What a pod without a node costs, in the price of the best node for it alone."""


@dataclass(frozen=True, eq=False)
class Column:
    """A way to fill a node of a type: pods by shape, and by shape in which turn they find their cards.

    `choices` are, for shapes of `counts` with variants, all that may have their places, those that should first.
    """

    offered: OfferedType
    counts: Amounts
    turns: Amounts
    choices: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def asking(self, remaining: Amounts) -> Amounts:
        """The pods of one node by shape, of those that remain."""
        found: Amounts = np.minimum(self.counts, remaining)
        for shape, able in self.choices.items():
            left, found[shape] = int(self.counts[shape]), 0
            for other in able:
                found[other] = min(left, int(remaining[other]))
                left -= int(found[other])
        return found


@dataclass(frozen=True, eq=False)
class Columns:
    """Nodes, each with how often it is bought, those that are bought most first.

    `parts_micro` is what they would cost if nodes could be bought in parts, in micro-units; 0 where more rounds might
    still find much cheaper ones. `known` are columns that may be of use again, each with whether it was of use now, and
    `gap` is how much more than the least nodes in parts cost, relatively. `has_failed` says that the solver did.
    """

    bought: list[tuple[Column, int]]
    parts_micro: float = 0.0
    known: list[tuple[Column, bool]] = field(default_factory=list)
    gap: float = 0.0
    has_failed: bool = False


def most_kinds(rounds: int) -> int:
    """So many shapes can be chosen for in so many rounds."""
    return isqrt(rounds * _STEPS_A_ROUND // _LEAST_ROUNDS)


class _Unit:
    """A type with shapes that can be there together, and its pricing.

    `takes` is by row of limits the part of what is left that a node takes.
    """

    def __init__(
        self,
        offered: OfferedType,
        price: float,
        pricing: Callable[[], NodePricing],
        alone: Amounts,
        turns: Amounts,
        shown: Amounts,
    ) -> None:
        """`alone` is by shape how many such pods an empty node holds; 0 for those that may not come.

        `shown` is by shape the one that stands for its kind.
        """
        self.offered, self.price, self._pricing, self.alone, self.turns = offered, price, pricing, alone, turns
        self.shown = shown
        self.takes: Floats = np.zeros(0)

    @cached_property
    def pricing(self) -> NodePricing:
        """Made when it is first asked for: known columns may be all that is needed."""
        return self._pricing()


@dataclass(frozen=True, eq=False)
class Search:
    """How long nodes are looked for, and from where: `most_rounds` of prices, beginning with the `known` columns.

    Rounds end where nodes in parts cost no more than `enough` above the least, relatively; without rounds nodes are
    bought only there. With `keeps` it is said which columns may be of use again. `unserved` is by shape what a pod
    without a node costs, in micro-units, where limits may leave some over: then a dive buys all that it can.
    """

    most_rounds: int = MOST_ROUNDS
    known: Sequence[Column] = ()
    enough: float = 0.0
    keeps: bool = False
    unserved: Floats | None = None


def columns_of(
    filler: Filler, relaxation: Relaxation, types: Sequence[int], worth: Floats, ledger: Ledger, search: Search
) -> Columns:
    """Nodes for the pods of the relaxation.

    `types` are those numbers of the relaxation that are worth buying, `worth` is by shape what a pod is worth at the
    best prices known, in micro-units. Together they may hold more than there are, or fewer; pods that no type takes,
    that limits leave no room for, that keep others off or need ports are left out. None at all where the solver fails.
    The ledger stays as it is. Cost: the rounds of the search, each of one linear program of shapes, bounded in its
    steps, and for each type of pairs of parts of nodes; hardly of pods.
    """
    usual = _usual(filler)
    kinds = SizeKinds(relaxation, usual)
    fills = _Fills(relaxation, kinds, worth, min(_MOST_FILLS, search.most_rounds * _FILLS_A_ROUND))
    units = _limited([unit for at in types for unit in _units(filler, relaxation, at, usual, fills)], ledger)
    if not units:
        return Columns([])
    generation = _Generation(relaxation, kinds, units, worth, search)
    generation.know(search.known)
    return generation.bought(search.enough, keeps=search.keeps)


def _limited(units: Sequence[_Unit], ledger: Ledger) -> list[_Unit]:
    """Those of which limits allow a node, each with what it takes of them."""
    asked = [ledger.left_for(unit.offered) for unit in units]
    rows = {name: number for number, name in enumerate(dict.fromkeys(name for each in asked for name in each))}
    allowed: list[_Unit] = []
    for unit, each in zip(units, asked, strict=True):
        unit.takes = np.zeros(len(rows))
        for name, (amount, left) in each.items():
            unit.takes[rows[name]] = amount / left if left > 0 else np.inf
        if (unit.takes <= 1).all():
            allowed.append(unit)
    return allowed


def _usual(filler: Filler) -> Bools:
    """By shape whether amounts, labels and cards are all that decides whom a pod can be with."""
    return np.array([s.crowding is UNCROWDED and not s.spec.host_ports for s in filler.shapes], dtype=np.bool_)


def _units(filler: Filler, relaxation: Relaxation, number: int, usual: Bools, fills: "_Fills") -> Iterator[_Unit]:
    """The type for each set of pods that may be together there by what they ask of labels; who asks nothing is in all.

    Pods are in one set as long as its nodes are sold as those of the first are.
    """
    offered = relaxation.types[number]
    row = filler.holding.row(offered)
    first = filler.first_terms(row)
    shapes = [
        (shape, filler.recipe(shape, offered)) for shape in np.flatnonzero(usual & relaxation.takes[:, number]).tolist()
    ]
    agreed = {shape: filler.agreed(row, first, shape, recipe) for shape, recipe in shapes}
    free = [shape for shape, _ in shapes if agreed[shape] == first]
    left = [(shape, recipe) for shape, recipe in shapes if agreed[shape] not in (None, first)]
    turns, held = turns_of(relaxation, number), filler.held(())[row]
    cheapest = offered.offering_for(filler.terms(first))
    sets: list[tuple[Offering | None, list[int]]] = [(cheapest, [])] if free else []
    while left:
        terms, together, apart = first, list[int](), list[tuple[int, Recipe]]()
        offering = offered.offering_for(filler.terms(agreed[left[0][0]] or first))
        for shape, recipe in left:
            more = filler.agreed(row, terms, shape, recipe)
            if more is not None and offered.offering_for(filler.terms(more)) == offering:
                terms = more
                together.append(shape)
            else:
                apart.append((shape, recipe))
        # Who asks nothing is with the first that are sold at the best price, and need no set without them.
        sets = (
            [(offering, together)]
            if offering == cheapest and sets == [(cheapest, [])]
            else [*sets, (offering, together)]
        )
        left = apart if together else []
    for offering, together in sets:
        if offering is not None:
            allowed = np.zeros(len(usual), dtype=np.bool_)
            allowed[[*free, *together]] = True
            price = float(offering.price_micro)
            pricing = partial(_pricing, relaxation, number, allowed, price, fills)
            yield _Unit(offered, price, pricing, np.where(allowed, held, 0), turns, fills.kinds.shown(number))


def _pricing(relaxation: Relaxation, number: int, allowed: Bools, price: float, fills: "_Fills") -> NodePricing:
    return NodePricing(relaxation, number, fills.kinds.standing(number, allowed), price, fills.of(number))


def turns_of(relaxation: Relaxation, number: int) -> Amounts:
    """By shape the turn in which its pods come to the cards: several slices first, then the largest.

    By whichever rule a card is chosen, what is large finds room as long as nothing small is there.
    """
    group = relaxation.groups[int(relaxation.group[number])]
    memory = np.array([size[0] if isinstance(size, tuple) else 0 for size in group.sizes], dtype=np.int64)
    slices = group.slices.sum(axis=1)
    size = dot(group.slices, memory) if len(memory) else slices
    _, ranks = np.unique(-size, return_inverse=True)
    turns: Amounts = np.where(slices > 1, 0, 1 + ranks)
    return turns


class _Fills:
    """The ways to fill a card, by type, with the shapes that stand for their kinds; types with equal cards have the
    same."""

    def __init__(self, relaxation: Relaxation, kinds: SizeKinds, worth: Floats, most: int) -> None:
        self.kinds = kinds
        best = worth.copy()
        np.maximum.at(best, kinds.of, worth)
        self._relaxation, self._worth, self._most = relaxation, best[kinds.of], most
        self._known: dict[int, Numbers] = {}

    def of(self, number: int) -> Numbers:
        """Those of the type: see `fills_of_a_card`."""
        at = int(self._relaxation.group[number])
        if at not in self._known:
            group = self._relaxation.groups[at]
            card = self._relaxation.types[number].room.devices[:1]
            empty = np.full((1, 1), len(self._worth), dtype=np.int32)
            able = self.kinds.standing(number, group.slices.sum(axis=1) > 0)
            found = fills_of_a_card(group, card[0], self._worth, self._most, able) if group.sizes else empty
            self._known[at] = found
        return self._known[at]


class _Generation:
    """Rounds of columns, then the dive."""

    def __init__(
        self, relaxation: Relaxation, kinds: SizeKinds, units: Sequence[_Unit], worth: Floats, search: Search
    ) -> None:
        self._relaxation, self._units, self._most_rounds = relaxation, units, search.most_rounds
        self._unserved = search.unserved
        self._kinds = kinds
        able = np.array([unit.alone > 0 for unit in units])
        self._rows = Rows(kinds, relaxation.demand, able, [unit.shown for unit in units])
        self._demand = self._rows.demand
        self._scale = 1e-6
        self._center, self._least = self._rows.split(worth), float(dot(worth, relaxation.demand))
        self._most_columns = _MOST_COLUMNS * kinds.count
        self._known: set[tuple[int, bytes]] = set()
        # Of each the unit, and the numbers of its shapes with how many it has: most have few of all shapes.
        self._columns: list[tuple[int, bytes]] = []
        self._costs: list[float] = []
        self._has_all = self._is_near = False
        self._program = LinearProgram()
        self._program.add_rows(self._demand, None)
        self._takes = np.array([unit.takes for unit in units])
        limits = self._takes.shape[1]
        # A price of a limit's whole rest, beside those of pods.
        self._dues = np.zeros(limits)
        if limits:
            self._program.add_rows(None, np.ones(limits))
        self._begin()

    def _begin(self) -> None:
        """For each shape no node at all, for very much, and the node that is cheapest for it alone."""
        held = np.array([unit.alone for unit in self._units])
        prices = np.array([[unit.price] for unit in self._units])
        each = np.divide(prices, held, out=np.full(held.shape, np.inf), where=held > 0)
        cheapest = each.argmin(axis=0)
        least = each[cheapest, np.arange(held.shape[1])]
        highest = float(prices.max())
        self._never = len(least)
        # Of the cheapest node for each shape how many pods it holds, and its price.
        best = held[cheapest, np.arange(held.shape[1])]
        self._alone = np.maximum(best, 1), np.where(best > 0, prices[cheapest, 0], highest)
        for shape, cost in enumerate(least.tolist()):
            rows = self._rows.of_shape[shape]
            never = min(cost, highest) * _NEVER if self._unserved is None else float(self._unserved[shape])
            self._program.add_column(never * self._scale, rows, [1.0] * len(rows))
        for shape in np.flatnonzero(np.isfinite(least)).tolist():
            alone = np.zeros((1, len(least)), dtype=np.int64)
            at = int(cheapest[shape])
            alone[0, self._units[at].shown[shape]] = held[at, shape]
            self._append(at, alone)

    def know(self, columns: Sequence[Column]) -> None:
        """Columns to begin with, each on the first unit whose nodes may have all of its pods."""
        by_type: dict[int, list[Column]] = {}
        for column in columns:
            by_type.setdefault(id(column.offered), []).append(column)
        for at, unit in enumerate(self._units):
            held = by_type.get(id(unit.offered))
            if held:
                counts = np.array([column.counts for column in held])
                is_able = (counts[:, unit.alone <= 0] == 0).all(axis=1)
                self._append(at, self._rows.standing(at, counts[is_able]))
                by_type[id(unit.offered)] = [
                    column for column, able in zip(held, is_able.tolist(), strict=True) if not able
                ]

    def bought(self, enough: float = 0.0, *, keeps: bool = False) -> Columns:
        """The columns with how often each is bought; of several dives the cheapest, where there was time for them."""
        if not (self._generated(enough) if self._most_rounds else self._is_enough(enough)):
            return Columns([], has_failed=bool(self._most_rounds))
        known = self._worth_keeping(not self._most_rounds) if keeps else []
        gap = self._program.cost / self._scale / self._least - 1 if self._least > 0 else 0.0
        is_settled = self._has_all or self._is_near or self._fell(_TAIL) <= _SETTLED
        parts_micro = self._program.cost / self._scale if is_settled else 0.0
        amounts = self._program.amounts()
        tries = (_SURELY,) if self._most_rounds <= MOST_ROUNDS else (_SURELY, *_OTHERWISE)
        found = [times for surely in tries if (times := self._dived(amounts, surely)) is not None]
        if not found:
            return Columns([], known=known, gap=gap, has_failed=True)
        times = min(found, key=self._cost)
        order = np.argsort(-times, kind="stable")
        order = order[times[order] > 0]
        bought = [(self._column(*self._columns[at]), int(times[at])) for at in order.tolist()]
        return Columns(bought, parts_micro, known, gap)

    def _is_enough(self, enough: float) -> bool:
        """Whether nodes in parts, of the columns that are known, cost no more than so much above the least."""
        if not self._program.is_solved(by_prices=True):
            return False
        self._costs.append(self._program.cost)
        self._is_near = self._program.cost / self._scale <= self._least * (1 + enough)
        return self._is_near

    def _worth_keeping(self, are_kept: bool) -> list[tuple[Column, bool]]:
        """The columns of the last answer; unless all are kept already, also those that are nearly worth their cost."""
        over, amounts = self._program.reduced_costs()[self._never :], self._program.amounts()[self._never :]
        over = over / (np.array([self._units[at].price for at, _ in self._columns]) * self._scale)
        order = np.lexsort((over, amounts <= _NEARLY))[: _KEPT_OF_A_SHAPE * self._never]
        order = order[(amounts[order] > _NEARLY) | (over[order] <= (-1 if are_kept else _KEPT_BELOW))]
        return [(self._column(*self._columns[at]), bool(amounts[at] > _NEARLY)) for at in order.tolist()]

    def _generated(self, enough: float) -> bool:
        """Columns, round by round; whether the last program was solved."""
        worth, active = self._center, list(range(len(self._units)))
        best, smoothing, dues = 0.0, _SMOOTHING, self._dues
        uncovered, leans = self._demand.copy(), True
        kinds = self._kinds.count
        # Each shape needs its columns: with more of them it takes more rounds until all have some.
        most = self._most_rounds * max(_SHAPES, min(kinds, _MOST_SHAPES)) // _SHAPES
        share = MOST_ROUNDS / self._most_rounds
        steps, flat = 0, _FLAT * share
        wide = min(kinds / _SHAPES, sqrt(kinds / _SHAPES))
        for number in range(most):
            if number and len(self._columns) > self._most_columns:
                self._tidy()
            prices = smoothing * self._center + (1 - smoothing) * worth
            due = smoothing * self._dues + (1 - smoothing) * dues
            fullest, is_new, quality = 0.0, False, dict[int, float]()
            gap = self._gap()
            slack = min(_SLACK, max(gap, _LEAST_SLACK))
            for at in active:
                pricing = self._units[at].pricing
                cost = pricing.price + float(dot(self._takes[at], due))
                own = self._rows.prices(at, prices)
                leaning = self._rows.prices(at, prices * self._leaning(uncovered, gap)) if leans else own
                found = pricing.best(leaning, cost * (1 - slack), _BEST_NODES, each_shape=True)
                quality[at] = found.most / cost
                worths = dot(found.counts, own)
                top = float(worths.max(initial=0.0)) / cost
                fullest = max(fullest, top, min(quality[at], 1.0))
                useful = np.flatnonzero(worths >= cost * (1 - slack))
                useful = useful[np.argsort(-worths[useful], kind="stable")]
                self._rows.cover(at, uncovered, self._rows.places(at, found.counts[useful]))
                is_new |= self._append(at, found.counts[useful])
            bound = float(dot(prices, self._demand)) / max(fullest, _NEARLY) - float(due.sum())
            if bound > best:
                best, self._center, self._dues = bound, prices / max(fullest, 1.0), due
            active = [at for at in active if quality[at] >= _FAR]
            if number % _ALL_AGAIN == _ALL_AGAIN - 1:
                active = list(range(len(self._units)))
            if not is_new and number:
                if not leans and smoothing <= 0:
                    self._has_all = True
                    break
                smoothing = smoothing if leans else max(0.0, smoothing - 0.3)
                leans = False
            if not self._program.is_solved():
                return False
            self._costs.append(self._program.cost)
            steps += self._program.steps
            effort = (number + 1) * wide / self._most_rounds
            most_above = max(enough, NEAR * effort * share)
            self._is_near = self._program.cost / self._scale <= self._least * (1 + most_above)
            if self._is_near or self._fell(_TAIL) <= flat or steps * len(worth) > _STEPS_A_ROUND * self._most_rounds:
                return True
            dual = self._program.prices() / self._scale
            worth, dues = np.maximum(dual[: len(worth)], 0.0), np.maximum(-dual[len(worth) :], 0.0)
        return bool(self._columns)

    def _gap(self) -> float:
        """How much more, relatively, nodes cost now than is proven, as far as rounds make them cheaper; 0 at first."""
        if not self._costs or self._least <= 0:
            return 0.0
        over = self._costs[-1] / self._scale / self._least - 1
        return max(0.0, min(_MOST_GAP, over, self._fell(_TAIL)))

    def _leaning(self, uncovered: Floats, gap: float) -> Floats:
        """By shape what its price is multiplied with: less by up to `gap` for those of which nodes have been found.

        All pods together are worth as much as before.
        """
        factor = 1 - gap * (1 - uncovered / self._demand)
        whole = dot(self._center, self._demand)
        return factor * (whole / dot(self._center * factor, self._demand)) if whole > 0 else factor

    def _cost(self, times: Amounts) -> float:
        """What so many of each column cost, and whole nodes for those that have none, of each shape alone."""
        left, cost = self._relaxation.demand.copy(), 0.0
        for at in np.flatnonzero(times).tolist():
            number, held = self._columns[at]
            cost += self._units[number].price * int(times[at])
            left -= self._column(number, held, int(times[at])).asking(left)
        nodes, price = np.ceil(left / self._alone[0]), self._alone[1]
        return cost + float(dot(nodes, price))

    def _fell(self, rounds: int) -> float:
        """How much less, relatively, nodes cost now than so many rounds before."""
        return 1 - self._costs[-1] / self._costs[-1 - rounds] if len(self._costs) > rounds else 1.0

    def _tidy(self) -> None:
        """Drop the columns that cost most more than they are worth, and are not bought: half of all."""
        over = self._program.reduced_costs()[self._never :]
        price = np.array([self._units[at].price for at, _ in self._columns]) * self._scale
        order = np.argsort(-over / price, kind="stable")[: len(over) // 2]
        gone = order[self._program.amounts()[self._never :][order] <= 0]
        self._program.drop(np.sort(gone) + self._never)
        dropped = set(gone.tolist())
        for number in gone.tolist():
            self._known.discard(self._columns[number])
        self._columns = [each for number, each in enumerate(self._columns) if number not in dropped]

    def _append(self, at: int, nodes: Amounts) -> bool:
        """A column for each of the nodes that is new, by shapes that stand for their kinds; whether any is."""
        numbers, shapes = nodes.nonzero()
        held = np.stack([shapes, nodes[numbers, shapes]], axis=1, dtype=np.int64)
        new, first = list[int](), 0
        for number, end in enumerate(np.searchsorted(numbers, np.arange(len(nodes)), side="right").tolist()):
            key = at, held[first:end].tobytes()
            if key not in self._known:
                self._known.add(key)
                self._columns.append(key)
                new.append(number)
            first = end
        cost, limits = self._units[at].price * self._scale, np.flatnonzero(self._takes[at])
        below, taken = (len(self._rows) + limits).tolist(), self._takes[at, limits].tolist()
        places = self._rows.places(at, nodes[new])
        columns, rows = places.nonzero()
        ends = np.searchsorted(columns, np.arange(len(new)), side="right").tolist()
        some, values = rows.tolist(), places[columns, rows].astype(np.float64).tolist()
        first = 0
        for end in ends:
            self._program.add_column(cost, [*some[first:end], *below], [*values[first:end], *taken])
            first = end
        return bool(new)

    def _dived(self, amounts: Floats, surely: float) -> Amounts | None:
        """By column how often it is bought, beginning with `amounts`; None where the solver fails.

        It ends where the known columns make what is left cost too much; that is left out.
        """
        kept = np.zeros(len(amounts))
        # Not what the program says now: after another dive it has no answer.
        highest = self._costs[-1] * _TOO_MUCH if self._unserved is None else inf
        for _ in range(_MOST_DIVES):
            whole = np.floor(amounts + _NEARLY)
            rest = np.where(amounts - whole > _NEARLY, amounts - whole, 0.0)
            rest[: self._never] = whole[: self._never] = 0.0
            least = np.maximum(kept, whole)
            chosen = self._within(whole, rest, surely)
            if not len(chosen):
                break
            whole[chosen] += 1
            changed = np.flatnonzero(whole > kept)
            self._program.keep_at_least(changed, whole[changed])
            if not self._program.is_solved(by_prices=True):
                return None
            kept = np.maximum(kept, whole)
            if self._program.cost > highest:
                break
            amounts = self._program.amounts()
        changed = np.flatnonzero(kept)
        self._program.keep_at_least(changed, np.zeros(len(changed)))
        times: Amounts = least.astype(np.int64)
        return times[self._never :]

    def _within(self, whole: Floats, rest: Floats, surely: float) -> Amounts:
        """The columns to buy once more, as far as limits allow beside those that are bought."""
        if not rest.any() or not self._takes.shape[1]:
            return self._once_more(rest, surely) if rest.any() else np.zeros(0, dtype=np.int64)
        takes = np.zeros((len(rest), self._takes.shape[1]))
        takes[self._never :] = self._takes[[at for at, _ in self._columns]]
        left = 1 + _NEARLY - dot(whole, takes)
        rest = np.where((takes <= left).all(axis=1), rest, 0.0)
        chosen = list[int]()
        for column in self._once_more(rest, surely).tolist() if rest.any() else ():
            if (takes[column] <= left).all():
                chosen.append(column)
                left = left - takes[column]
        return np.array(chosen, dtype=np.int64)

    def _once_more(self, rest: Floats, surely: float) -> Amounts:
        """The columns to buy once more: all but surely, or the likeliest with others that share no shape with it."""
        order = np.argsort(-rest, kind="stable")[: _MOST_AT_ONCE * 4]
        sure = order[rest[order] >= surely][:_MOST_AT_ONCE]
        if len(sure):
            return sure
        chosen, taken = list[int](), np.zeros(self._never, dtype=np.bool_)
        for column in order[rest[order] >= rest[order[0]] * _AS_LIKELY].tolist():
            held = self._kinds.of[_pairs(self._columns[column - self._never][1])[:, 0]]
            if not taken[held].any():
                chosen.append(column)
                taken[held] = True
        return np.array(chosen[:_MOST_AT_ONCE])

    def _column(self, at: int, held: bytes, times: int = 1) -> Column:
        """A column as a node of that many; `held` is as in `_columns`."""
        unit, pairs = self._units[at], _pairs(held)
        counts = np.zeros(self._never, dtype=np.int64)
        counts[pairs[:, 0]] = pairs[:, 1] * times
        return Column(unit.offered, *self._rows.named(at, counts, unit.turns))


def _pairs(held: bytes) -> Amounts:
    """The shapes of a column and how many it has of each, in rows of two."""
    found: Amounts = np.frombuffer(held, dtype=np.int64).reshape(-1, 2)
    return found
