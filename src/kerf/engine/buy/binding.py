"""Which limits bind: those that the nodes which are best without limits would break.

A search under limits is another search: it counts what each node takes of them, refuses what it cannot count, and ends
with other nodes, mostly for more money and in more time. Nearly every pool has limits, and they are seldom reached. So
nodes are looked for as if no limit were there, and are kept where all limits have room for them. Where some have not,
nodes are looked for again, under the limits that are near what those nodes take: the others are as if they were not
there, as long as the answer keeps to them.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from kerf.engine.buy.filling import Filler, Load, Purchase
from kerf.engine.buy.fullnodes import MARGIN
from kerf.engine.buy.limits import Ledger, Limit, is_reservation
from kerf.engine.supply.offered import OfferedType
from kerf.model.quantities import CPU, MEMORY, NODES

Search = Callable[[Sequence[OfferedType], Ledger], Purchase]
"""Nodes of some of these types within the limits of the ledger, which stays as it is."""

_NEAR = 2
"""A limit that has less left than so many times what is bought without limits may bind where others do."""
_SUMMED = (CPU, MEMORY)


def within_limits(
    offered_types: Sequence[OfferedType], ledger: Ledger, wanted: Mapping[str, int], search: Search
) -> Purchase:
    """What the search finds without limits if these allow it, else under those that bind; its `binding` says which.

    Where types of which no node may be bought are why they do not, it is looked for once more without these types.
    `wanted` is what the pods ask: where limits cannot have room for that, nothing is looked for without them. The
    ledger stays as it is. Cost: the search once where limits do not bind, else mostly twice; once more where limits
    turn out to bind that the first answer was far from.
    """
    limits = limits_of(offered_types, ledger)
    if not limits:
        purchase = search(offered_types, ledger)
        purchase.binding = frozenset()
        return purchase
    able = [offered for offered in offered_types if ledger.room_for(offered) != 0]
    taken = Counter(wanted)
    for types in (offered_types, able) if len(able) < len(offered_types) else (offered_types,):
        if types and can_serve(types, ledger, wanted):
            purchase = search(types, ledger.only(()))
            if allows(ledger, purchase):
                purchase.binding = frozenset() if types is offered_types else _shutting_out(offered_types, ledger)
                return purchase
            taken = _taken(purchase)
    binding = _near(offered_types, ledger, taken)
    return under(binding, offered_types, ledger, lambda allowed: [search(offered_types, allowed)])[0]


def under(
    binding: frozenset[Limit],
    offered_types: Sequence[OfferedType],
    ledger: Ledger,
    search: Callable[[Ledger], Iterable[Purchase]],
) -> list[Purchase]:
    """What is found under the `binding` limits alone if all allow it, else under all of them; `binding` says which."""
    limits = limits_of(offered_types, ledger)
    found = list(search(ledger.only(binding))) if limits - binding else []
    if not found or not all(allows(ledger, each) for each in found):
        binding, found = limits | binding, list(search(ledger))
    for purchase in found:
        purchase.binding = binding
    return found


def allows(ledger: Ledger, purchase: Purchase) -> bool:
    """Whether limits have room for all of its nodes; the ledger stays as it is. Cost: its loads."""
    return charged(ledger, purchase.loads) is not None


def charged(ledger: Ledger, loads: Iterable[tuple[Load, int]]) -> Ledger | None:
    """What is left of the limits after so many of each load; None where they have no room for all."""
    spent = ledger.copy()
    for load, times in loads:
        room = spent.room_for(load.offered, load.charge)
        if room is not None and room < times:
            return None
        spent.charge(load.offered.pool.name, load.charge, times)
    return spent


def limits_of(offered_types: Iterable[OfferedType], ledger: Ledger) -> frozenset[Limit]:
    """The limits of which nodes of these types take something."""
    return frozenset(limit for offered in offered_types for limit in ledger.left_for(offered))


def asked_by(filler: Filler, offered_types: Sequence[OfferedType], left: Sequence[int]) -> dict[str, int]:
    """What those of the pods ask of cpu and memory that some type holds, and on how many nodes they are at most.

    Cost: shapes x types, in arrays.
    """
    numbers = np.flatnonzero(left)
    pods = np.where(filler.held_by(offered_types, numbers).any(axis=0), np.array(left, dtype=np.int64)[numbers], 0)
    counts: list[int] = pods.tolist()
    asked = {
        name: sum(size * count for size, count in zip(filler.asked(name)[numbers].tolist(), counts, strict=True))
        for name in _SUMMED
    }
    return {**asked, NODES: sum(counts)}


def can_serve(offered_types: Sequence[OfferedType], ledger: Ledger, wanted: Mapping[str, int]) -> bool:
    """Whether as many nodes as limits allow might have as much; no where they surely have less."""
    by_pool, by_reservation = dict[str, list[OfferedType]](), dict[str, list[OfferedType]]()
    for offered in offered_types:
        by_pool.setdefault(offered.pool.name, []).append(offered)
        by_reservation.setdefault(offered.reservation, []).append(offered)
    return all(
        sum(_most(types, ledger, name) for types in sellers.values()) * MARGIN >= wanted.get(name, 0)
        for sellers in (by_pool, by_reservation)
        for name in _SUMMED
    )


def _most(offered_types: Sequence[OfferedType], ledger: Ledger, name: str) -> float:
    """How much of a resource as many nodes of these types may have at most as the limits of all of them allow.

    Of each limit all goes to the type that has most for what it takes of it.
    """
    asked = [ledger.left_for(offered) for offered in offered_types]
    shared = (limit for limit in asked[0] if all(limit in each for each in asked))
    has = [max(0, offered.room.free.get(name, 0)) for offered in offered_types]
    ends = (
        max(each[limit][1] * amount / each[limit][0] for each, amount in zip(asked, has, strict=True))
        for limit in shared
    )
    return min(ends, default=math.inf)


def _taken(purchase: Purchase) -> Counter[str]:
    """What the nodes count in all, of every resource."""
    found = Counter[str]()
    for load, times in purchase.loads:
        for name, amount in load.charge.items():
            found[name] += amount * times
    return found


def _shutting_out(offered_types: Sequence[OfferedType], ledger: Ledger) -> frozenset[Limit]:
    """The limits that leave no room for any node of some type."""
    shut = (offered for offered in offered_types if ledger.room_for(offered) == 0)
    return frozenset(
        limit for offered in shut for limit, (amount, left) in ledger.left_for(offered).items() if left < amount
    )


def _near(offered_types: Sequence[OfferedType], ledger: Ledger, taken: Mapping[str, int]) -> frozenset[Limit]:
    """The limits that leave no room for a node of some type, or not for much more than all that is `taken`.

    How much of that a pool would take under limits is not known before: it counts as if it were all. What is not known
    at all may be near.
    """
    found = set[Limit]()
    for offered in offered_types:
        for limit, (amount, left) in ledger.left_for(offered).items():
            needed = taken.get(NODES if is_reservation(limit) else limit[1])
            if needed is None or left < max(amount, _NEAR * needed):
                found.add(limit)
    return frozenset(found)
