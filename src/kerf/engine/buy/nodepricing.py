"""Whole nodes that are worth more than they cost, at given prices of pods.

A node is put together card by card: the best ways to fill one card, then two, four and so on, each time from pairs of
those before. Of all that use about as much of the node only the best is kept, and nothing that could not be part of a
node worth buying: prices of cpu, memory and a card, at which no card holds more than it costs, say how much each part
wastes, and waste adds up. Pods without cards are put together in the same way and join last.

This is the pricing problem of column generation (Gilmore and Gomory 1961), solved by label setting with labels thinned
on a grid: what it finds is possible, though not always the best there is.
"""

from dataclasses import dataclass, replace

import numpy as np

from kerf.engine.buy.cardfills import Numbers
from kerf.engine.buy.dot import dot
from kerf.engine.buy.relaxation import Floats, Relaxation
from kerf.engine.supply.holding import Amounts, Bools

_GRID, _FINE_GRID = 24, 32
"""Parts of a node's cpu and memory that differ; with pods without cards, which take what others leave, the finer."""
_MOST_PARTS, _MORE_PARTS = 220, 300
"""So many parts of a node are paired with each other; more on the finer grid."""
_FITS = 1 + 1e-9
_STEPS = 7
"""How often the net of prices is drawn closer around the best."""
_NET = np.array([[0], [1]]), np.array([np.repeat(np.arange(5), 5), np.tile(np.arange(5), 5)])
"""The place in the net of each pair of a price of cpu and one of memory."""
_BUNDLES = 3
"""How often pods without cards are paired: of 2**3 bundles of equal pods, at most."""
_MOST_OF_A_BUNDLE = 64


@dataclass(frozen=True, eq=False)
class _Parts:
    """Parts of a node: by part the shares that it takes of the node (resource, part), its pods by shape, their worth,
    and the waste."""

    taken: Floats
    counts: Amounts
    worth: Floats
    waste: Floats

    def __len__(self) -> int:
        return len(self.worth)

    def only(self, kept: Amounts) -> "_Parts":
        return _Parts(self.taken[:, kept], self.counts[kept], self.worth[kept], self.waste[kept])

    def beside(self, other: "_Parts") -> "_Parts":
        return _Parts(
            np.concatenate([self.taken, other.taken], axis=1),
            np.concatenate([self.counts, other.counts]),
            np.concatenate([self.worth, other.worth]),
            np.concatenate([self.waste, other.waste]),
        )


@dataclass(frozen=True, eq=False)
class WholeNodes:
    """Whole nodes: by node its pods by shape (numbers of the relaxation) and what they are worth, the best first.

    `most` is what no node is worth more than, if cpu and memory could be cut to pieces.
    """

    counts: Amounts
    worth: Floats
    most: float


class NodePricing:
    """One type, or the type in one zone, with the shapes that may be together there. Cost: see `best`.

    Pods that take several cards have them whole here; where their number is no power of two, a card stays empty beside.
    """

    def __init__(self, relaxation: Relaxation, number: int, allowed: Bools, price: float, fills: Numbers) -> None:
        """`number` is the type's, `fills` of its group (see `fills_of_a_card`). `allowed` is by shape, and has none of
        which nothing is known on types of the group."""
        group = relaxation.groups[int(relaxation.group[number])]
        self.price = price
        self._all = len(allowed)
        self._shapes = np.flatnonzero(allowed)
        self._cards, slices = _cards_of(relaxation, number)
        self._slices = slices[self._shapes]
        named = [relaxation.resources[at] for at in group.sums.tolist()]
        sums = [
            at
            for at, name in zip(group.sums.tolist(), named, strict=True)
            if relaxation.amounts[number, at] > 0 and not name.startswith("places of shape ")
        ]
        asked = group.asked[self._shapes][:, sums] / relaxation.has[number, sums]
        load = dot(relaxation.demand[self._shapes].astype(np.float64), asked)
        order = np.argsort(-load, kind="stable")
        kept = [at for place, at in enumerate(order.tolist()) if place < 2 or not _is_covered(asked, at, order[:2])]
        self._asked = np.ascontiguousarray(asked[:, kept].T)
        if len(self._asked) < 2:
            self._asked = np.concatenate([self._asked, np.zeros((2 - len(kept), len(self._shapes)))])
        self._fill, self._taken = self._possible(fills)
        self._fill_by_pod = np.ascontiguousarray(self._fill.T)
        bare = np.flatnonzero(self._slices == 0)
        self._grid, self._most_parts = (_FINE_GRID, _MORE_PARTS) if len(bare) else (_GRID, _MOST_PARTS)
        self._cells = self._cells_of(self._taken, self._cards or 1)
        self._bundles = self._bundled(bare)
        several = self._slices > 1
        levels = _levels(self._slices)
        self._multiple = {
            level: np.flatnonzero(several & (levels == level)) for level in sorted(set(levels[several].tolist()))
        }

    def _possible(self, fills: Numbers) -> tuple[Numbers, Floats]:
        """The ways to fill one card with these shapes, by their place here, and what each takes of the node."""
        place = np.full(self._all + 1, -1, dtype=np.int32)
        place[self._shapes] = np.arange(len(self._shapes))
        place[self._all] = len(self._shapes)
        found = place[fills] if self._cards else np.full((1, 1), len(self._shapes), dtype=np.int32)
        found = found[(found >= 0).all(axis=1)]
        taken = sum((_padded(self._asked)[:, column] for column in found.T), np.zeros((len(self._asked), len(found))))
        fits = (taken <= _FITS).all(axis=0)
        return found[fits], taken[:, fits]

    def _bundled(self, bare: Amounts) -> tuple[Amounts, Amounts]:
        """Numbers of equal pods without cards, in powers of two: shapes, by their place here, and how many of each."""
        shapes, numbers = [], []
        for shape in bare.tolist():
            share = float(self._asked[:, shape].max())
            most = _MOST_OF_A_BUNDLE if share <= 0 else min(_MOST_OF_A_BUNDLE, int(_FITS / share))
            many = 1
            while many <= most:
                shapes.append(shape)
                numbers.append(many)
                many *= 2
        return np.array(shapes, dtype=np.int64), np.array(numbers, dtype=np.int64)

    def best(self, prices: Floats, least: float, most_nodes: int, *, each_shape: bool) -> WholeNodes:
        """The best nodes by what their pods are worth at `prices` (by shape of the relaxation), of at least `least`.

        With `each_shape` also one for each shape, as good as a node with it can be found, whatever it is worth. Cost:
        ways to fill a card, and for each doubling of cards pairs of parts, both bounded.
        """
        worth = prices[self._shapes]
        each = np.append(worth, 0.0)
        values = sum((each[column] for column in self._fill_by_pod), np.zeros(len(self._fill)))
        kept = self._best_of_each(self._cells, values)
        rates, card, most = self._rates(kept, values, worth)
        if most < least:
            return WholeNodes(np.zeros((0, self._all), dtype=np.int64), np.zeros(0), most)
        waste = card + dot(rates, self._taken[:2]) - values
        slack = most - least
        parts = self._ways(kept, values, waste).only(self._frugal(waste[kept], slack))
        forced = self._forced(worth, values, waste) if each_shape else None
        whole, single = self._whole(parts, forced, worth, rates, card, slack)
        order = np.argsort(-whole.worth, kind="stable")[:most_nodes]
        found = whole.only(order[whole.worth[order] >= least])
        if single is not None:
            found = found.beside(single)
        found = found.only(np.flatnonzero(found.counts.any(axis=1)))
        counts = np.zeros((len(found), self._all), dtype=np.int64)
        counts[:, self._shapes] = found.counts
        return WholeNodes(counts, found.worth, most)

    def _rates(self, kept: Amounts, values: Floats, worth: Floats) -> tuple[Floats, float, float]:
        """Prices of all cpu and all memory of the node and of a card, at which a node is worth least; and that worth.

        No way to fill a card, and no pod, is worth more than it takes at these prices.
        """
        several = np.flatnonzero(self._slices > 1)
        per_card = [self._taken[:2, kept]] if self._cards else []
        value = [values[kept]] if self._cards else []
        for shape in several.tolist():
            per_card.append(self._asked[:2, shape, None] / self._slices[shape])
            value.append(worth[shape, None] / self._slices[shape])
        taken = np.concatenate(per_card, axis=1) if per_card else np.zeros((2, 1))
        gained = np.concatenate(value) if value else np.zeros(1)
        bare = np.flatnonzero((self._slices == 0) & (worth > 0))
        center, step = np.full(2, self.price / 2), self.price / 4
        best = (np.zeros(2), 0.0, np.inf)
        for _ in range(_STEPS):
            net = np.maximum(center[:, None] + step * np.arange(-2, 3), self.price * 1e-6)
            pairs = net[_NET]
            if len(bare):
                # A pod without cards must be worth no more than it takes.
                asked = np.maximum(dot(pairs.T, self._asked[:2, bare]), 1e-12)
                pairs = pairs * np.maximum(1.0, (worth[bare] / asked).max(axis=1))
            cards = np.maximum(0.0, (gained - dot(pairs.T, taken)).max(axis=1))
            most = pairs.sum(axis=0) + self._cards * cards
            at = int(most.argmin())
            if most[at] < best[2]:
                best = (pairs[:, at], float(cards[at]), float(most[at]))
            center, step = best[0], step / 2
        return best

    def _ways(self, kept: Amounts, values: Floats, waste: Floats) -> _Parts:
        """These ways to fill one card, as parts of a node."""
        return _Parts(self._taken[:, kept], self._counted(self._fill[kept]), values[kept], waste[kept])

    def _counted(self, fill: Numbers) -> Amounts:
        counts = np.zeros((len(fill), len(self._shapes) + 1), dtype=np.int64)
        for column in fill.T:
            counts[np.arange(len(fill)), column] += 1
        return counts[:, :-1]

    def _forced(self, worth: Floats, values: Floats, waste: Floats) -> _Parts:
        """For each shape with one slice the way to fill a card with it that wastes least."""
        least = np.full(len(self._shapes) + 1, np.inf)
        for column in self._fill_by_pod:
            np.minimum.at(least, column, waste)
        way = np.full(len(self._shapes) + 1, -1, dtype=np.int64)
        for column in self._fill_by_pod:
            hit = np.flatnonzero(waste <= least[column])
            way[column[hit]] = hit
        found = np.flatnonzero((way[:-1] >= 0) & (worth > 0))
        return self._ways(way[found], values, waste)

    def _whole(
        self,
        parts: _Parts,
        forced: _Parts | None,
        worth: Floats,
        rates: Floats,
        card: float,
        slack: float,
    ) -> tuple[_Parts, _Parts | None]:
        """Whole nodes of parts of one card; and those that begin with the parts that are `forced`."""
        level, cards = 1, self._cards
        done: _Parts | None = None
        begun: _Parts | None = None
        single = forced
        bundles = self._bundles_worth(worth, rates, slack)
        ends = bundles is None
        while cards:
            if cards & level:
                cards -= level
                is_last = ends and not cards
                done = parts if done is None else self._joined(done, parts, slack, is_last=is_last)
                if begun is not None:
                    begun = _completed(begun, parts, is_last=is_last)
                begun, single = begun or single, None
            if not cards:
                break
            level *= 2
            is_last = ends and done is None and cards == level
            single = _completed(single, parts, is_last=is_last) if single is not None else None
            parts = self._joined(parts, parts, slack, is_last=is_last)
            several = self._multiple.get(level)
            if several is not None and worth[several].any():
                more = self._several(several, worth, rates, card * level)
                parts = parts.beside(more)
                single = single.beside(more) if single is not None else None
        if bundles is None:
            assert done is not None
            return done, begun
        free, alone = bundles
        if done is None:
            return free, alone
        whole = self._joined(done, free, slack, is_last=True)
        begun = _completed(begun, free, is_last=True) if begun is not None else None
        if alone is not None and len(alone) and begun is not None:
            begun = begun.beside(_completed(alone, done, is_last=True))
        return whole, begun

    def _several(self, shapes: Amounts, worth: Floats, rates: Floats, cards: float) -> _Parts:
        """One pod each of shapes that take several cards."""
        taken, counts = self._asked[:, shapes], np.zeros((len(shapes), len(self._shapes)), dtype=np.int64)
        counts[np.arange(len(shapes)), shapes] = 1
        return _Parts(taken, counts, worth[shapes], cards + dot(rates, taken[:2]) - worth[shapes])

    def _bundles_worth(self, worth: Floats, rates: Floats, slack: float) -> tuple[_Parts, _Parts] | None:
        """Pods without cards, put together; and for each such shape one with it. None where there are none."""
        shapes, numbers = self._bundles
        useful = np.flatnonzero(worth[shapes] > 0) if len(shapes) else shapes
        if not len(useful):
            return None
        shapes, numbers = shapes[useful], numbers[useful]
        taken = np.concatenate([np.zeros((len(self._asked), 1)), self._asked[:, shapes] * numbers], axis=1)
        counts = np.zeros((1 + len(shapes), len(self._shapes)), dtype=np.int64)
        counts[np.arange(1, 1 + len(shapes)), shapes] = numbers
        gained = np.append(0.0, worth[shapes] * numbers)
        parts = _Parts(taken, counts, gained, dot(rates, taken[:2]) - gained)
        single = parts.only(1 + np.flatnonzero(numbers == 1))
        parts = parts.only(self._frugal(parts.waste, slack))
        if not len(parts):
            parts = _Parts(taken, counts, gained, dot(rates, taken[:2]) - gained).only(np.zeros(1, dtype=np.int64))
        for number in range(_BUNDLES):
            is_last = not self._cards and number == _BUNDLES - 1
            single = _completed(single, parts, is_last=is_last)
            parts = self._joined(parts, parts, slack, is_last=is_last)
        return parts, single

    def _joined(self, ones: _Parts, others: _Parts, slack: float, *, is_last: bool) -> _Parts:
        """The best of all pairs, by what they take of the node; of those that are the `is_last` by worth."""
        paired = ones.waste[:, None] + others.waste[None, :] <= slack
        if ones is others:
            paired = np.triu(paired)
        for one, other in zip(ones.taken, others.taken, strict=True):
            paired &= one[:, None] + other[None, :] <= _FITS
        first, second = np.nonzero(paired)
        waste = ones.waste[first] + others.waste[second]
        taken = ones.taken[:, first] + others.taken[:, second]
        gained = ones.worth[first] + others.worth[second]
        chosen = self._best_of_each(self._cells_of(taken, 1), gained if is_last else -waste)
        if not is_last:
            chosen = chosen[self._frugal(waste[chosen], slack)]
        first, second = first[chosen], second[chosen]
        counts = ones.counts[first] + others.counts[second]
        return _Parts(taken[:, chosen], counts, gained[chosen], waste[chosen])

    def _cells_of(self, taken: Floats, cards: int) -> Amounts:
        """By part the number of its cell of the grid; one of several cards takes little, and has smaller cells."""
        scale = self._grid * float(np.sqrt(cards))
        first, second = (np.minimum((each * scale).astype(np.int64), self._grid - 1) for each in taken[:2])
        cells: Amounts = first * self._grid + second
        return cells

    def _best_of_each(self, cells: Amounts, values: Floats) -> Amounts:
        """Of each cell the number of the part with the highest value, and of equals the last."""
        best = np.full(self._grid * self._grid, -np.inf)
        np.maximum.at(best, cells, values)
        hit = np.flatnonzero(values >= best[cells])
        found = np.full(self._grid * self._grid, -1, dtype=np.int64)
        found[cells[hit]] = hit
        return found[found >= 0]

    def _frugal(self, waste: Floats, slack: float) -> Amounts:
        """The parts that waste no more than `slack`, and of many those that waste least."""
        kept = np.flatnonzero(waste <= slack)
        if len(kept) > self._most_parts:
            kept = np.sort(kept[np.argsort(waste[kept], kind="stable")[: self._most_parts]])
        return kept


def _cards_of(relaxation: Relaxation, number: int) -> tuple[int, Amounts]:
    """How many cards a node of the type has for slices, and by shape how many slices a pod asks for."""
    group = relaxation.groups[int(relaxation.group[number])]
    if not group.sizes:
        return 0, np.zeros(len(relaxation.demand), dtype=np.int64)
    return int(relaxation.cards[number]), group.slices.sum(axis=1)


def _is_covered(asked: Floats, at: int, by: Amounts) -> bool:
    """Whether another resource is always short before this one is."""
    return any(bool((asked[:, at] <= asked[:, other]).all()) for other in by.tolist())


def _level(cards: int) -> int:
    """The least power of two of so many cards."""
    return 1 << (cards - 1).bit_length()


def _levels(cards: Amounts) -> Amounts:
    return np.array([_level(int(count)) if count else 0 for count in cards], dtype=np.int64)


def _padded(asked: Floats) -> Floats:
    """With a shape more, that asks for nothing."""
    return np.concatenate([asked, np.zeros((len(asked), 1))], axis=1)


def _completed(single: _Parts, others: _Parts, *, is_last: bool) -> _Parts:
    """Each of these parts with the other that suits it best; without those that no other fits."""
    fits = np.ones((len(single), len(others)), dtype=np.bool_)
    for one, other in zip(single.taken, others.taken, strict=True):
        fits &= one[:, None] + other[None, :] <= _FITS
    cost = np.where(fits, -others.worth if is_last else others.waste, np.inf)
    best = cost.argmin(axis=1) if cost.size else np.zeros(0, dtype=np.int64)
    some = np.flatnonzero(fits.any(axis=1))
    one, other = single.only(some), others.only(best[some])
    return replace(
        one,
        taken=one.taken + other.taken,
        counts=one.counts + other.counts,
        worth=one.worth + other.worth,
        waste=one.waste + other.waste,
    )
