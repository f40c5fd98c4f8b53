"""The cheapest nodes for few pods, exactly: every way to part them among nodes.

Full nodes alone are not enough: where pods share a card or a node's memory, the first node must sometimes leave out a
pod that would fit, for the others to fit together.
"""

import operator
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from kerf.engine.buy.dot import dot
from kerf.engine.buy.filling import Counts, Filler, Load, Purchase
from kerf.engine.supply.holding import Amounts
from kerf.engine.supply.offered import OfferedType


def cheapest_partition(filler: Filler, offered_types: Sequence[OfferedType], left: Sequence[int]) -> Purchase:
    """Nodes for all pods of `left`, by shape, that have a node alone; the cheapest, and of equals the fewest.

    Limits are not looked at. Cost: for each set of the pods a fill of each type, less where a smaller set does not fit
    already; and a look at all sets that fit a node.
    """
    nodes = _nodes(filler, offered_types, left)
    alone = [any(load.held == ((number, 1),) for load in nodes.values()) for number in range(len(left))]
    asked = tuple(count if able else 0 for count, able in zip(left, alone, strict=True))
    purchase = Purchase(left=list(map(operator.sub, left, asked)))
    best = _best_first(list(nodes), [load.offering.price_micro for load in nodes.values()], asked)
    while any(asked):
        chosen = best[asked]
        purchase.loads.append((nodes[chosen], 1))
        asked = tuple(map(operator.sub, asked, chosen))
    return purchase


def _nodes(filler: Filler, offered_types: Sequence[OfferedType], left: Sequence[int]) -> dict[Counts, Load]:
    """By set of pods that fits a node the cheapest with just these, smaller sets first."""
    found: dict[Counts, Load] = {}
    able: dict[Counts, list[OfferedType]] = {(0,) * len(left): list(offered_types)}
    for counts in _sets(left):
        smaller = [able[rest] for rest in _with_one_less(counts)]
        types = [each for each in smaller[0] if all(any(each is other for other in rest) for rest in smaller[1:])]
        loads = [load for each in types if (load := _just(filler, each, counts)) is not None]
        able[counts] = [load.offered for load in loads]
        if loads:
            found[counts] = min(loads, key=lambda load: load.offering.price_micro)
    return found


def _just(filler: Filler, offered: OfferedType, counts: Counts) -> Load | None:
    """A node with just these pods, in whichever order of their shapes they fit; None where they do not."""
    load = filler.fill(offered, counts)
    turns = np.arange(len(counts))
    for each in (turns, turns[::-1]):
        if load is None or load.counts == counts:
            break
        load = filler.fill_in_turns(offered, np.array(counts, dtype=np.int64), each)
    return load if load is not None and load.counts == counts else None


def _sets(left: Sequence[int]) -> Iterator[Counts]:
    """All sets of the pods with any, those with one pod less before those with it."""
    sets = product(*(range(count + 1) for count in left))
    next(sets)
    return sets


def _with_one_less(counts: Counts) -> Iterator[Counts]:
    for number, count in enumerate(counts):
        if count:
            yield (*counts[:number], count - 1, *counts[number + 1 :])


def _best_first(nodes: Sequence[Counts], prices: Sequence[int], asked: Counts) -> dict[Counts, Counts]:
    """For each part of what is asked the node to buy first: one with a pod of its first shape that has any left."""
    held: Amounts = np.array(nodes, dtype=np.int64).reshape(len(nodes), len(asked))
    price = np.array(prices, dtype=np.int64)
    radix = np.cumprod([1, *(count + 1 for count in asked[::-1])])[:-1][::-1].astype(np.int64)
    cost = np.full(int(np.prod([count + 1 for count in asked])), np.iinfo(np.int64).max, dtype=np.int64)
    cost[0] = 0
    chosen: dict[Counts, Counts] = {}
    # Of equal prices the fewest nodes: there are no more of them than pods.
    scaled = price * (sum(asked) + 1) + 1
    by_first = [np.flatnonzero(held[:, number] > 0) for number in range(len(asked))]
    for counts in _sets(asked):
        first = next(number for number, count in enumerate(counts) if count)
        some = by_first[first]
        some = some[(held[some] <= np.array(counts)).all(axis=1)]
        code = int(dot(np.array(counts), radix))
        totals = cost[code - dot(held[some], radix)] + scaled[some]
        at = int(totals.argmin())
        cost[code], chosen[counts] = totals[at], nodes[some[at]]
    return chosen
