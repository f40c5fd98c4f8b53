"""Why a launch is of its type: what the same pods would cost on the next best one."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from kerf.engine.buy.filling import Filler, Load
from kerf.engine.buy.launching import Needed
from kerf.engine.buy.relaxation import Floats
from kerf.engine.supply.offered import OfferedType
from kerf.engine.world import World
from kerf.model.plan import Launch, RunnerUp
from kerf.model.quantities import CPU, MEMORY

_MOST_FILLED = 40
"""Types that are filled for one load; the others cost more by their amounts alone, or nearly always."""
_MOST_NODES = 64
"""Of a type, in place of one node."""


def with_runners_up(launches: Iterable[Launch], world: World) -> tuple[Launch, ...]:
    """The launches with the cheapest other type of its pool for the same pods, in whole nodes, where one holds them.

    It may cost less than the launch: nodes are chosen for all pods together, within the limits of the pools. Cost: for
    each kind of node arrays of types, and at most `_MOST_FILLED` types filled.
    """
    known: dict[int, RunnerUp | None] = {}
    fillers: dict[int, Filler] = {}

    def of(launch: Launch) -> RunnerUp | None:
        needed = launch.cause
        if not isinstance(needed, Needed):
            return None
        if id(needed.load) not in known:
            filler = fillers.get(id(needed.shapes))
            if filler is None:
                filler = fillers[id(needed.shapes)] = Filler(needed.shapes, world.holding)
            known[id(needed.load)] = _runner_up(needed.load, filler, _others(needed.load, world))
        return known[id(needed.load)]

    return tuple(launch if (found := of(launch)) is None else replace(launch, runner_up=found) for launch in launches)


def _others(load: Load, world: World) -> list[OfferedType]:
    chosen = load.offered
    return [
        each
        for each in world.supply.by_pool[chosen.pool.name]
        if each.kind.name != chosen.kind.name and each.reservation == chosen.reservation
    ]


def _runner_up(load: Load, filler: Filler, others: Sequence[OfferedType]) -> RunnerUp | None:
    least = _least(load, filler, others)
    best: RunnerUp | None = None
    for at in np.argsort(least, kind="stable")[:_MOST_FILLED].tolist():
        if not np.isfinite(least[at]) or (best is not None and least[at] >= best.price_micro):
            break
        found = _on(load, filler, others[at], None if best is None else best.price_micro)
        best = found or best
    return best


def _least(load: Load, filler: Filler, others: Sequence[OfferedType]) -> Floats:
    """By type the least that the pods cost there, as far as amounts say; infinite where one of them has no place."""
    numbers = np.array([number for number, _ in load.held], dtype=np.int64)
    counts = np.array([count for _, count in load.held], dtype=np.float64)
    alone = filler.held_by(others, numbers).astype(np.float64)
    nodes = np.divide(counts, alone, out=np.full(alone.shape, np.inf), where=alone > 0).max(axis=1, initial=1.0)
    rows = filler.holding.rows(others)
    for name in (CPU, MEMORY):
        asked = sum(filler.shapes[number].requests.get(name, 0) * count for number, count in load.held)
        nodes = np.maximum(nodes, asked / np.maximum(filler.holding.amounts(name)[rows], 1))
    found: Floats = nodes * np.array([each.price_micro for each in others])
    return found


def _on(load: Load, filler: Filler, offered: OfferedType, below_micro: int | None) -> RunnerUp | None:
    """The pods on nodes of one type; None where some have no place, or they cost no less than that."""
    left, nodes, price_micro = load.amounts, 0, 0
    while left.any():
        node = filler.fill(offered, left)
        if node is None or nodes == _MOST_NODES:
            return None
        times = min(int(left[number]) // count for number, count in node.held)
        nodes, price_micro = nodes + times, price_micro + node.offering.price_micro * times
        if below_micro is not None and price_micro >= below_micro:
            return None
        left -= node.amounts * times
    return RunnerUp(offered.kind.name, nodes, price_micro)
