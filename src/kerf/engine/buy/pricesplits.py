"""How to split the price of each type over what its nodes have, so pods are worth as much as possible.

A split gives a part of the price to each resource and the rest to the cards; the price of a card is that of its most
valuable pattern. A pod is worth what it asks at the prices of the type where that is least, and whatever the split is,
all pods together are worth no more than nodes for them cost. The best split is the dual of a linear program whose
columns are pods on types and patterns of cards; they are made as the prices ask for them (Gilmore and Gomory 1961).
Types come in only when no split of another, priced by what they have, holds for them too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kerf.engine.buy.dot import dot
from kerf.engine.buy.filling import Filler
from kerf.engine.buy.linearprogram import LinearProgram
from kerf.engine.buy.relaxation import Floats, Relaxation, TypeGroup
from kerf.engine.buy.wholenodes import MOST_WORK, Fills, fills
from kerf.engine.supply.holding import Amounts

MOST_ROUNDS = 80
"""Linear programs that are solved for one bound."""
_MOST_COLUMNS = 40_000
_FEW_TYPES = 24
"""So many are all asked from the start."""
_MORE_TYPES = 16
"""So many come in at once."""
_BEST = 4
"""Columns that a shape, or a type's cards, may get in one round."""
_NEARLY = 1e-8
"""Relative: what is worth less than so much more than it costs is not looked for."""
_FIRST_FILLS, _BEST_FILLS = 20, 10
"""Whole nodes of a type to begin with, and in one round."""
_MUCH = 1e30
_LITTLE = 1e-6
"""A split holds for another type only where that has more than so much of what is priced."""
_CLOSE = 1e-6
"""The search ends where the bound is so near to the best that any split gives."""


@dataclass(frozen=True, eq=False)
class Splits:
    """The split of each type: parts of its price by resource, and by size the price of a piece of its cards.

    `source` is by type the one whose split was priced by what the type has; itself where it has one of its own. In
    units of the currency, and only nearly right: what they sum to must still be held to the type's price. `is_best`: no
    other split gives more; else the budget was too small, or the solver failed. `rounds` and `columns` are the work.

    `whole` are types that need no split, with every way to fill a node: pods are worth no more than in `worth`, by
    shape, at which no fill is nearly worth more than the type costs.
    """

    parts: Floats
    pieces: tuple[Floats, ...]
    source: Amounts
    is_best: bool
    rounds: int
    columns: int
    whole: Mapping[int, Fills]
    worth: Floats


def split(filler: Filler, relaxation: Relaxation, most_rounds: int = MOST_ROUNDS) -> tuple[Splits, Splits | None]:
    """As `best_splits`; what was asked last of the filler's holding is not worked out again.

    A purchase begins with the prices that prove its bound, as a rule for the same pods and types. A search that ended
    before it had spent its rounds comes to the same with any larger budget, and with any that it would not have spent.
    """
    shapes = ((filler.holding.kind(shape), shape.requests, len(shape)) for shape in filler.shapes)
    key = tuple(shapes), tuple(map(id, relaxation.types))
    known: _Known | None = filler.holding.splits
    if known is None or known.key != key or not known.is_for(most_rounds):
        # The types are kept by the holding, and no other can get the identity of one.
        found, spent = _searched(relaxation, most_rounds)
        known = filler.holding.splits = _Known(key, found, most_rounds, spent)
    return known.found


def plain_splits(relaxation: Relaxation) -> Splits:
    """The best split without whole nodes. Cost: see `best_splits`."""
    return _Search(relaxation, MOST_ROUNDS).splits()


def best_splits(relaxation: Relaxation, most_rounds: int = MOST_ROUNDS) -> tuple[Splits, Splits | None]:
    """The best split that is found within the budget, always the same; and one with whole nodes, where it gives more.

    Cost: no more than `most_rounds`, of one linear program each.
    """
    return _searched(relaxation, most_rounds)[0]


@dataclass(frozen=True, eq=False)
class _Known:
    """What a search with a budget of `most_rounds` has found, and how many of these it has spent."""

    key: tuple[object, ...]
    found: tuple[Splits, Splits | None]
    most_rounds: int
    spent: int

    def is_for(self, most_rounds: int) -> bool:
        """Whether a search with this budget finds the same."""
        return most_rounds == self.most_rounds or self.spent < min(most_rounds, self.most_rounds)


def _searched(relaxation: Relaxation, most_rounds: int) -> tuple[tuple[Splits, Splits | None], int]:
    search = _Search(relaxation, most_rounds)
    plain, whole = search.splits(), search.with_whole_nodes()
    return (replace(plain, is_best=plain.is_best and not search.is_cut_short), whole), search.rounds


class _Master:
    """The linear program so far: demands, then the rows of each type that has come in.

    Prices are in micro-units times `scale`: the solver's tolerances are absolute.
    """

    def __init__(self, relaxation: Relaxation, scale: float) -> None:
        self._relaxation, self._scale = relaxation, scale
        self._program = LinearProgram()
        self.types: list[int] = []
        self._starts: list[int] = []
        self._sums: list[Amounts] = []
        self.has_pair = np.zeros(relaxation.takes.shape, dtype=np.bool_)
        self._has_pattern: list[set[int]] = []
        self._nodes: list[int] = []
        self._has_fill: set[tuple[int, int]] = set()
        self._program.add_rows(relaxation.demand.astype(np.float64), None)

    def let_in(self, number: int) -> None:
        """A type: its rows, its nodes, and the patterns that have most of one size."""
        relaxation = self._relaxation
        group = relaxation.groups[int(relaxation.group[number])]
        sums = group.sums[relaxation.amounts[number, group.sums] > 0]
        sizes = len(group.sizes)
        rows = len(sums) + (1 + sizes if sizes else 0)
        start, at = self._program.rows, len(self.types)
        self._program.add_rows(None, np.zeros(rows))
        self.types.append(number)
        self._starts.append(start)
        self._sums.append(sums)
        self._has_pattern.append(set())
        here = list(range(start, start + len(sums)))
        values = [-1.0] * len(sums)
        if sizes:
            here.append(start + len(sums))
            values.append(-float(relaxation.cards[number]))
        self._nodes.append(self._program.columns)
        self._program.add_column(relaxation.price_micro[number] * self._scale, here, values)
        for size in range(sizes):
            self.add_pattern(at, int(group.counts[:, size].argmax()))

    def add_pattern(self, at: int, pattern: int) -> bool:
        """A way to fill a card of the type that came in at that place; whether it is new."""
        if pattern in self._has_pattern[at]:
            return False
        self._has_pattern[at].add(pattern)
        group = self._relaxation.groups[int(self._relaxation.group[self.types[at]])]
        cards = self._starts[at] + len(self._sums[at])
        sizes = np.flatnonzero(group.counts[pattern])
        counts = group.counts[pattern, sizes]
        self._program.add_column(0.0, [cards, *(cards + 1 + sizes).tolist()], [1.0, *(-counts.astype(float)).tolist()])
        return True

    def add_pair(self, shape: int, at: int) -> bool:
        """Pods of the shape on nodes of the type that came in at that place; whether it is new."""
        relaxation, number = self._relaxation, self.types[at]
        if self.has_pair[shape, number]:
            return False
        self.has_pair[shape, number] = True
        group, sums = relaxation.groups[int(relaxation.group[number])], self._sums[at]
        asked = group.asked[shape, sums]
        some = np.flatnonzero(asked)
        share = asked[some] / relaxation.has[number, sums[some]]
        sizes = np.flatnonzero(group.slices[shape])
        cards = self._starts[at] + len(sums)
        rows = [shape, *(self._starts[at] + some).tolist(), *(cards + 1 + sizes).tolist()]
        self._program.add_column(0.0, rows, [1.0, *share.tolist(), *group.slices[shape, sizes].astype(float).tolist()])
        return True

    def shut(self, at: int) -> None:
        """Buy no parts of nodes of the type that came in at that place any more: it is bought in whole nodes."""
        self._program.shut(self._nodes[at])

    def add_fill(self, at: int, found: Fills, fill: int) -> bool:
        """A whole node; whether it is new."""
        if (at, fill) in self._has_fill:
            return False
        self._has_fill.add((at, fill))
        counts = found.counts[fill]
        some = np.flatnonzero(counts)
        price = self._relaxation.price_micro[self.types[at]] * self._scale
        self._program.add_column(price, found.shapes[some].tolist(), counts[some].astype(float).tolist())
        return True

    def is_solved(self) -> bool:
        """Add what waits and solve; False where the solver fails or exceeds its steps."""
        return self._program.is_solved()

    @property
    def columns(self) -> int:
        """How many there are."""
        return self._program.columns

    @property
    def cost(self) -> float:
        """What the pods cost by the columns so far; no split gives more once none is missing."""
        return self._program.cost

    def prices(self) -> tuple[Floats, list[Floats], list[Floats], Floats]:
        """The worth of each shape; by type that came in its parts (by resource), its pieces, and its cards' price."""
        relaxation = self._relaxation
        dual = self._program.prices()
        split = np.maximum(-dual, 0.0)
        parts, pieces = [], []
        cards = np.zeros(len(self.types))
        for at, number in enumerate(self.types):
            start, sums = self._starts[at], self._sums[at]
            part = np.zeros(len(relaxation.resources))
            part[sums] = split[start : start + len(sums)]
            parts.append(part)
            sizes = len(relaxation.groups[int(relaxation.group[number])].sizes)
            first = start + len(sums) + 1
            pieces.append(split[first : first + sizes])
            if sizes:
                cards[at] = split[first - 1]
        return dual[: len(relaxation.demand)], parts, pieces, cards


class _Search:
    """Rounds of columns for the types that are in, then types that their splits do not hold for."""

    def __init__(self, relaxation: Relaxation, most_rounds: int) -> None:
        self._relaxation, self._most_rounds = relaxation, most_rounds
        self._price = np.array(relaxation.price_micro, dtype=np.float64)
        guess = self._guess()
        least = np.where(relaxation.takes, guess, np.inf).min(axis=1)
        some = least[least > 0]
        self._scale = 1.0 / max(float(some.min()), float(self._price.max()) / 1e6) if len(some) else 1.0
        self._price *= self._scale
        self._master = _Master(relaxation, self._scale)
        self.rounds, self.is_cut_short = 0, False
        self._whole: dict[int, Fills] = {}
        self._last: _Held | None = None
        self._groups = [_Factors(group) for group in relaxation.groups]
        self._first(guess)

    def _guess(self) -> Floats:
        """By shape and type about what a pod costs there, in micro-units: its largest share of a node."""
        relaxation = self._relaxation
        largest = np.zeros(relaxation.takes.shape)
        for number, group in enumerate(relaxation.groups):
            held = np.flatnonzero(relaxation.group == number)
            found = np.zeros((len(relaxation.demand), len(held)))
            for resource in group.sums.tolist():
                has = relaxation.amounts[held, resource]
                share = group.asked[:, resource, None] / relaxation.has[held, resource]
                np.maximum(found, np.where(has > 0, share, 0.0), out=found)
            if group.sizes:
                weight = dot(group.slices, 1.0 / group.counts.max(axis=0))
                np.maximum(found, weight[:, None] / np.maximum(relaxation.cards[held], 1), out=found)
            largest[:, held] = found
        return largest * self._price

    def _first(self, guess: Floats) -> None:
        """The types that promise most for some shape, one of each group among them; the columns of the best."""
        relaxation = self._relaxation
        held = np.where(relaxation.takes, guess, np.inf)
        ranked = np.argsort(held, axis=1, kind="stable")[:, :_BEST]
        if held.shape[1] <= _FEW_TYPES:
            chosen = set(range(held.shape[1]))
        else:
            chosen = set(ranked[:, 0].tolist())
            for number in range(len(relaxation.groups)):
                members = np.flatnonzero(relaxation.group == number)
                if not chosen.intersection(members.tolist()):
                    takers = relaxation.takes[:, members]
                    chosen.add(int(members[np.lexsort((self._price[members], -takers.sum(axis=0)))[0]]))
        for number in sorted(chosen):
            self._master.let_in(number)
        place = {number: at for at, number in enumerate(self._master.types)}
        for shape, numbers in enumerate(ranked.tolist()):
            for number in numbers:
                if number in place and held[shape, number] < np.inf:
                    self._master.add_pair(shape, place[number])

    def splits(self) -> Splits:
        """The splits of all types."""
        while True:
            held, is_done = self._solved()
            found, quality = self._for_all(held)
            missing = np.flatnonzero(quality < 1 - 10 * _NEARLY)
            if not is_done or not len(missing):
                self._last = held if is_done else None
                return self._named(found, held, is_best=is_done)
            order = np.lexsort((missing, quality[missing]))
            for number in sorted(missing[order[:_MORE_TYPES]].tolist()):
                self._master.let_in(number)
                values = held.values[:, found.source[number]] * found.factor[number]
                for shape in np.flatnonzero(self._relaxation.takes[:, number] & (values < held.worth)).tolist():
                    self._master.add_pair(shape, len(self._master.types) - 1)

    def with_whole_nodes(self) -> Splits | None:
        """The same once more where small nodes are bought whole; None where no type has few fills, or it gives no more.

        Cost: some rounds more.
        """
        master, work, last = self._master, MOST_WORK, self._last
        if last is None:
            return None
        for at, number in enumerate(master.types):
            found, spent = fills(self._relaxation, number, work)
            work -= spent
            if found is not None:
                self._whole[at] = found
                master.shut(at)
                order = np.argsort(-found.worth(last.worth), kind="stable")
                for fill in sorted({*found.best(order), *order[:_FIRST_FILLS].tolist()}):
                    master.add_fill(at, found, fill)
        while self._whole:
            held, is_done = self._solved()
            chosen, quality = self._for_all(held)
            missing = np.flatnonzero(quality < 1 - 10 * _NEARLY)
            if not is_done or not len(missing):
                is_more = held.bound > last.bound * (1 + _CLOSE) and bool((quality >= 0).all())
                return self._named(chosen, held, is_best=is_done) if is_more else None
            order = np.lexsort((missing, quality[missing]))
            for number in sorted(missing[order[:_MORE_TYPES]].tolist()):
                master.let_in(number)
                for shape in np.flatnonzero(self._relaxation.takes[:, number]).tolist():
                    master.add_pair(shape, len(master.types) - 1)
        return None

    def _solved(self) -> tuple["_Held", bool]:
        """The best splits of the types that are in; whether no column is missing."""
        master, best = self._master, None
        while self.rounds < self._most_rounds and master.columns < _MOST_COLUMNS and master.is_solved():
            self.rounds += 1
            worth, parts, pieces, cards = master.prices()
            held = self._held(parts, pieces, worth if self._whole else None)
            if best is None or held.bound > best.bound:
                best = held
            is_new = self._add(worth, held, cards)
            if not is_new or master.cost - best.bound <= _CLOSE * master.cost:
                return best, True
        self.is_cut_short = True
        return best or self._held(*self._even()), False

    def _even(self) -> tuple[list[Floats], list[Floats]]:
        """A split to start with: as much for all that the nodes have."""
        zero = np.zeros(len(self._relaxation.resources))
        sizes = [len(self._groups[number].even) for number in self._relaxation.group[self._master.types].tolist()]
        return [zero for _ in sizes], [np.zeros(size) for size in sizes]

    def _add(self, worth: Floats, held: "_Held", cards: Floats) -> bool:
        """Columns that are worth more than they cost; whether there are some."""
        relaxation, master = self._relaxation, self._master
        gain = worth[:, None] - held.unscaled
        gain[~relaxation.takes[:, master.types]] = 0.0
        gain[master.has_pair[:, master.types]] = 0.0
        gain[:, list(self._whole)] = 0.0
        gain[gain <= _NEARLY * np.maximum(worth[:, None], 1.0)] = 0.0
        is_new = False
        for shape in np.flatnonzero(gain.any(axis=1)).tolist():
            order = np.argsort(-gain[shape], kind="stable")[:_BEST]
            for at in order[gain[shape, order] > 0].tolist():
                is_new |= master.add_pair(shape, at)
        for at, found in self._whole.items():
            values = found.worth(worth)
            order = np.argsort(-values, kind="stable")[:_BEST_FILLS]
            over = values[order] > self._price[master.types[at]] * (1 + _NEARLY)
            for fill in order[over].tolist():
                is_new |= master.add_fill(at, found, fill)
        for at, values in enumerate(held.patterns):
            if len(values) and at not in self._whole:
                order = np.argsort(-values, kind="stable")[:_BEST]
                over = values[order] > cards[at] + _NEARLY * max(1.0, float(cards[at]))
                for pattern in order[over].tolist():
                    is_new |= master.add_pattern(at, pattern)
        return is_new

    def _held(self, parts: list[Floats], pieces: list[Floats], most: Floats | None = None) -> "_Held":
        """What these splits of the types that are in come to; even ones in the place of those that give nothing.

        Pods are worth no more than `most`, where it is known, and no more than whole nodes cost.
        """
        relaxation, types = self._relaxation, self._master.types
        parts, pieces = list(parts), list(pieces)
        unscaled = np.zeros((len(relaxation.demand), len(types)))
        values = np.zeros_like(unscaled)
        units: list[Floats] = []
        patterns: list[Floats] = []
        factors, cards = np.zeros(len(types)), np.zeros(len(types))
        for at, number in enumerate(types):
            group = self._groups[int(relaxation.group[number])]
            is_empty = not parts[at].any() and not pieces[at].any()
            if is_empty:
                parts[at] = np.where(relaxation.amounts[number] > 0, 1.0, 0.0) * group.is_asked
                pieces[at] = group.even
            unit = parts[at] / relaxation.has[number]
            value = dot(group.asked, unit[group.sums])
            by_pattern = np.zeros(0)
            if len(group.even):
                value += dot(group.slices, pieces[at])
                by_pattern = dot(group.counts, pieces[at])
                cards[at] = by_pattern.max()
            need = float(parts[at].sum() + relaxation.cards[number] * cards[at])
            factors[at] = self._price[number] / need if need > 0 else 0.0
            units.append(unit)
            patterns.append(np.zeros(0) if is_empty else by_pattern)
            unscaled[:, at] = 0.0 if is_empty else value
            values[:, at] = value
        takes = relaxation.takes[:, types]
        takes[:, list(self._whole)] = False
        worth = np.where(takes, values * factors, np.inf).min(axis=1)
        if most is not None:
            worth = np.minimum(worth, np.maximum(most, 0.0))
        worth[np.isinf(worth)] = 0.0
        for at, found in self._whole.items():
            fullest = float(found.worth(worth).max())
            if fullest > self._price[types[at]]:
                worth[found.shapes] *= self._price[types[at]] / fullest
        bound = float(dot(relaxation.demand, worth))
        return _Held(bound, worth, unscaled, values, units, pieces, patterns, cards, factors)

    def _for_all(self, held: "_Held") -> tuple["_Chosen", Floats]:
        """For each type the split, of the types like it that are in, that lowers the worth of pods least; by how much.

        Cost: types x shapes, for each type that is in.
        """
        relaxation, types = self._relaxation, self._master.types
        count = len(relaxation.types)
        quality, source, factor = np.full(count, -1.0), np.zeros(count, dtype=np.int64), np.zeros(count)
        worth = held.worth[:, None]
        ratio = np.divide(held.values, worth, out=np.full_like(held.values, _MUCH), where=worth > 0)
        for at, number in enumerate(types):
            if at in self._whole:
                continue
            group = int(relaxation.group[number])
            members = np.flatnonzero(relaxation.group == group)
            need = dot(relaxation.amounts[members], held.units[at]) + relaxation.cards[members] * held.cards[at]
            # What hardly anything of the split is for has prices of nothing once they are whole numbers.
            has = need * held.factors[at] > _LITTLE * self._price[number]
            scale = np.divide(self._price[members], need, out=np.zeros(len(members)), where=has)
            least = np.where(relaxation.takes[:, members], ratio[:, at, None], _MUCH).min(axis=0) * scale
            better = least > quality[members]
            mine = members[better]
            quality[mine], source[mine], factor[mine] = least[better], at, scale[better]
        for at, number in enumerate(types):
            quality[number], source[number], factor[number] = 1.0, at, held.factors[at]
        return _Chosen(source, factor), quality

    def _named(self, chosen: "_Chosen", held: "_Held", *, is_best: bool) -> Splits:
        relaxation, types = self._relaxation, np.array(self._master.types, dtype=np.int64)
        units = np.array([held.units[at] for at in chosen.source.tolist()])
        factor = chosen.factor / self._scale
        return Splits(
            units * relaxation.amounts * factor[:, None],
            tuple(held.pieces[at] * each for at, each in zip(chosen.source.tolist(), factor.tolist(), strict=True)),
            types[chosen.source],
            is_best,
            self.rounds,
            self._master.columns,
            {self._master.types[at]: found for at, found in self._whole.items()},
            held.worth / self._scale,
        )


@dataclass(frozen=True, eq=False)
class _Held:
    """Splits of the types that are in, and what they come to: `bound`, and `worth` by shape.

    By type that is in: `values` of each shape (its columns) before they are scaled by `factors` to the type's price,
    `units` the price of each resource's unit, `pieces` by size, `patterns` the value of each, `cards` that of the best.
    """

    bound: float
    worth: Floats
    unscaled: Floats
    values: Floats
    units: list[Floats]
    pieces: list[Floats]
    patterns: list[Floats]
    cards: Floats
    factors: Floats


@dataclass(frozen=True, eq=False)
class _Chosen:
    """By type: the place of the type whose split it gets, and the factor to its own price."""

    source: Amounts
    factor: Floats


class _Factors:
    """A group's numbers as the search multiplies them; at the prices of `even` a card full of one size costs 1."""

    def __init__(self, group: TypeGroup) -> None:
        self.sums = group.sums
        self.asked = group.asked[:, group.sums].astype(np.float64)
        self.slices = group.slices.astype(np.float64)
        self.counts = group.counts.astype(np.float64)
        self.even: Floats = 1.0 / np.maximum(self.counts.max(axis=0), 1.0) if len(group.sizes) else np.zeros(0)
        self.is_asked = np.zeros(group.asked.shape[1])
        self.is_asked[group.sums] = 1.0
