"""Nodes that are full of pods: the best full node of all types, bought as often as it repeats, then the next."""

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from kerf.engine.buy.dot import dot
from kerf.engine.buy.filling import Filler, Load, Purchase
from kerf.engine.buy.limits import Ledger
from kerf.engine.supply.holding import Amounts
from kerf.engine.supply.offered import OfferedType
from kerf.model.quantities import CPU, MEMORY

_PRECISION = 1 << 40
MARGIN = 1 + 1e-9
"""A bound is worked out in floating point; so much more is never less than the exact one."""
_MOST_A_POD = 1 << 62
"""More than any price a pod: what a shape costs that no type takes."""

Preference = Callable[[int, int], tuple[int, ...]]
"""Sort key of a node by its price and its value: the least is bought next. It falls with the price, and as the value
rises."""

Fill = Callable[[OfferedType, Amounts], Load | None]
"""A node of a type with as many of the pods, by shape, as it holds."""


class FillRule(NamedTuple):
    """By what nodes are chosen and filled.

    `costs` is by type what a node of it counts as its price. `fill` fills it in another order than the largest first.
    """

    prefer: Preference
    fill: Fill | None = None
    costs: Sequence[int] = ()


def cheapest_per_value(price: int, value: int) -> tuple[int, ...]:
    """Price for the value that is served; then the smaller node."""
    return (price * _PRECISION // max(1, value), price)


def fullest(price: int, value: int) -> tuple[int, ...]:
    """Most value on one node, for pools whose limits bind."""
    return (-value, price)


def values_of(filler: Filler, offered_types: Sequence[OfferedType], left: Sequence[int]) -> list[int]:
    """What one pod of each shape costs on its best type alone, in micro-units; 0 where none takes it."""
    wanted = np.flatnonzero(left)
    held = filler.held_by(offered_types, wanted)
    prices = np.array([[c.price_micro] for c in offered_types], dtype=np.int64)
    shares = np.where(held > 0, prices // np.maximum(held, 1), _MOST_A_POD).min(axis=0, initial=_MOST_A_POD)
    values = [0] * len(left)
    for number, share in zip(wanted.tolist(), shares.tolist(), strict=True):
        values[number] = max(1, share) if share < _MOST_A_POD else 0
    return values


def full_nodes(
    filler: Filler,
    offered_types: Sequence[OfferedType],
    values: Sequence[int],
    left: Sequence[int],
    ledger: Ledger,
    rule: FillRule,
) -> Purchase:
    """Nodes for as many of the pods as limits allow; the ledger stays as it is."""
    return _FullNodes(filler, offered_types, values, rule).buy(left, ledger)


class _FullNodes:
    """The best full node of all types, bought as often as it repeats, then the next.

    A node that is full of what is left stays the fullest of its type for as long as no shape in it runs short: what
    runs out beside it was no part of it. And a type is filled only once the most that it could hold would be the best.
    """

    def __init__(
        self,
        filler: Filler,
        offered_types: Sequence[OfferedType],
        values: Sequence[int],
        rule: FillRule,
    ) -> None:
        self._filler, self._types, self._values, self._prefer = filler, offered_types, values, rule.prefer
        self._fill_node, self._costs = rule.fill or filler.fill, rule.costs
        self._loads: list[Load | None] = [None] * len(offered_types)
        self._counts = np.zeros((len(offered_types), len(filler.shapes)), dtype=np.int64)
        self._queue: list[tuple[tuple[int, ...], int, int, Load | None]] = []
        self._pushed = itertools.count()
        self._held = filler.held(())[filler.holding.rows(offered_types)]
        self._worth = np.array(values, dtype=np.float64)
        self._cheapest = rule.costs or [min(o.price_micro for o in offered.offerings) for offered in offered_types]

    def buy(self, left: Sequence[int], ledger: Ledger) -> Purchase:
        """Nodes for what is left; the ledger stays as it is."""
        ledger, purchase = ledger.copy(), Purchase(left=list(left))
        remaining = np.array(left, dtype=np.int64)
        self._expect(range(len(self._types)), remaining)
        while self._queue and any(purchase.left):
            key, number, _, load = heapq.heappop(self._queue)
            if load is None:
                if ledger.room_for(self._types[number]) != 0:
                    self._fill(number, remaining)
                continue
            # What is charged only grows: a node that breaks a limit now does so until its pods are others.
            if load is not self._loads[number] or ledger.room_for(load.offered, load.charge) == 0:
                continue
            if ledger.room_for(load.offered) == 0:
                self._loads[number] = None
                continue
            _buy(load, purchase, ledger)
            heapq.heappush(self._queue, (key, number, next(self._pushed), load))
            remaining = np.array(purchase.left, dtype=np.int64)
            changed = [held for held, _ in load.held]
            short = (self._counts[:, changed] > remaining[changed]).any(axis=1)
            self._expect(np.flatnonzero(short).tolist(), remaining)
        return purchase

    def _expect(self, numbers: Sequence[int], remaining: Amounts) -> None:
        """Queue types by a value that their nodes cannot exceed, in the place of what they held."""
        if not numbers:
            return
        most = self._most_value(numbers, remaining)
        self._counts[numbers] = 0
        for number, value in zip(numbers, most, strict=True):
            self._loads[number] = None
            if value > 0:
                key = self._prefer(self._cheapest[number], int(value * MARGIN) + 1)
                heapq.heappush(self._queue, (key, number, next(self._pushed), None))

    def _most_value(self, numbers: Sequence[int], remaining: Amounts) -> list[float]:
        """By type, the value of all that fits alone, cut to what cpu and memory are worth at the best rate there is."""
        wanted = np.minimum(self._held[numbers], remaining)
        most = dot(wanted, self._worth)
        shapes = np.flatnonzero(remaining)
        rows = self._filler.holding.rows(self._types[number] for number in numbers)
        for name in (CPU, MEMORY):
            asked = self._filler.asked(name)[shapes].astype(np.float64)
            if (asked > 0).all():
                rate = np.where(wanted[:, shapes] > 0, self._worth[shapes] / asked, 0.0).max(axis=1, initial=0.0)
                most = np.minimum(most, rate * self._filler.holding.amounts(name)[rows])
        found: list[float] = most.tolist()
        return found

    def _fill(self, number: int, remaining: Amounts) -> None:
        """Queue the full node of a type."""
        load = self._loads[number] = self._fill_node(self._types[number], remaining)
        if load is not None:
            self._counts[number] = load.counts
            value = sum(count * self._values[held] for held, count in load.held)
            key = self._prefer(self._costs[number] if self._costs else load.offering.price_micro, value)
            heapq.heappush(self._queue, (key, number, next(self._pushed), load))


def _buy(load: Load, purchase: Purchase, ledger: Ledger) -> None:
    """As often as the load repeats within what is left and the limits allow."""
    times = min(purchase.left[number] // count for number, count in load.order)
    room = ledger.room_for(load.offered, load.charge)
    times = times if room is None else min(times, room)
    purchase.loads.append((load, times))
    ledger.charge(load.offered.pool.name, load.charge, times)
    for number, count in load.order:
        purchase.left[number] -= count * times
