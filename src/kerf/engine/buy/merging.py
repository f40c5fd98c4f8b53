"""Nodes of a plan that cost less as one.

Pods that must share a node are bought for before all others, one group after the other. So two groups never came to
share a node, and what a node had left was all that others got of it, though a larger node for both can cost less than
two smaller ones. Here nodes are put together once all are known, by twos, as long as that saves money.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kerf.engine.buy.filling import Filler, Load
from kerf.engine.supply.holding import Amounts, measured
from kerf.engine.supply.offered import OfferedType
from kerf.model.quantities import CPU, MEMORY, PODS

_AMOUNTS = (CPU, MEMORY, PODS)
_MOST_OPEN = 16
"""Nodes that the next one is tried with, the last ones: so the cost grows with the nodes and not with their pairs."""
_MOST_FILLED = 3
"""Types that are filled for two nodes, the cheapest of those that are large enough."""


class _Node(NamedTuple):
    """A load, and what its pods take of `_AMOUNTS`."""

    load: Load
    used: Amounts

    @property
    def price(self) -> int:
        return self.load.offering.price_micro


def merged(loads: Sequence[Load], filler: Filler, offered_types: Sequence[OfferedType]) -> tuple[Load, ...] | None:
    """The loads with some put together that cost less so; None where none do. Limits are not looked at.

    `loads` are by the filler's shapes. Two become one of a pool of the same weight as theirs; those of reservations
    stay. Cost: loads times types, a few of which are filled.
    """
    by_weight: dict[int, list[OfferedType]] = {}
    for offered in sorted(offered_types, key=lambda each: each.order):
        if not offered.reservation:
            by_weight.setdefault(offered.pool.weight, []).append(offered)
    found, merging = list[Load](), {weight: _Merging(filler, types) for weight, types in by_weight.items()}
    for load in loads:
        if load.offered.reservation:
            found.append(load)
        else:
            merging[load.offered.pool.weight].add(load)
    found += [node.load for each in merging.values() for node in each.nodes]
    return tuple(found) if len(found) < len(loads) else None


class _Merging:
    """Nodes of pools of one weight, put together as they are added."""

    def __init__(self, filler: Filler, types: Sequence[OfferedType]) -> None:
        rows = filler.holding.rows(types)
        self.nodes: list[_Node] = []
        self._filler, self._types = filler, types
        self._prices = np.array([each.price_micro for each in types], dtype=np.int64)
        self._amounts = np.array([filler.holding.amounts(name)[rows] for name in _AMOUNTS], dtype=np.int64)

    def add(self, load: Load) -> None:
        """One more, which is put together with one of the last as long as that saves money."""
        node = _node(load)
        while (merged := self._best(node)) is not None:
            at, load = merged
            del self.nodes[at]
            node = _node(load)
        self.nodes.append(node)

    def _best(self, node: _Node) -> tuple[int, Load] | None:
        """Where one of the last nodes is with which it saves most to put this one together, and the load of both."""
        first = max(0, len(self.nodes) - _MOST_OPEN)
        last = self.nodes[first:]
        if not last:
            return None
        used = np.array([each.used for each in last]) + node.used
        prices = np.array([each.price for each in last], dtype=np.int64) + node.price
        # By node and type whether the type is cheaper than both and large enough for them.
        able = (self._prices < prices[:, None]) & (self._amounts >= used[:, :, None]).all(axis=1)
        best: tuple[int, int, Load] | None = None
        for at in np.flatnonzero(able.any(axis=1)).tolist():
            load = self._cheapest(node.load, last[at].load, np.flatnonzero(able[at])[:_MOST_FILLED].tolist())
            saved = 0 if load is None else int(prices[at]) - load.offering.price_micro
            if load is not None and saved > (0 if best is None else best[0]):
                best = saved, first + at, load
        return None if best is None else best[1:]

    def _cheapest(self, one: Load, other: Load, types: Sequence[int]) -> Load | None:
        """The first of the types that holds the pods of both, filled with them; None where none does."""
        wanted = one.amounts + other.amounts
        pods = one.pods + other.pods
        loads = (self._filler.fill(self._types[at], wanted) for at in types)
        return next((load for load in loads if load is not None and load.pods == pods), None)


def _node(load: Load) -> _Node:
    used = (measured(load.offered.room.free, name) - measured(load.room.free, name) for name in _AMOUNTS)
    return _Node(load, np.fromiter(used, dtype=np.int64))
