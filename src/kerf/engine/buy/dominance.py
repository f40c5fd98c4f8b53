"""Which types are worth a look: those that no other beats in every respect."""

from collections.abc import Iterator, Sequence

import numpy as np

from kerf.engine.buy.filling import Filler
from kerf.engine.buy.limits import Ledger
from kerf.engine.supply.offered import OfferedType
from kerf.model.constraints import CAPACITY_TYPE, ZONE, ZONE_ID


def undominated(
    filler: Filler, tier: Sequence[OfferedType], left: Sequence[int], ledger: Ledger | None = None
) -> list[OfferedType]:
    """Types that hold some pod, less those that another of the same pool beats in every respect; in price order.

    Beaten means: no cheaper under any pod's constraints, the same devices, takes no pod the other refuses, nothing
    more to offer, and no less charged to what the ledger limits; without a ledger limits are left out.
    """
    numbers = np.flatnonzero(left)
    names = sorted({name for n in numbers.tolist() for name in filler.shapes[n].requests})
    narrows = _narrows(filler, numbers.tolist())
    holds = filler.held_by(tier, numbers) > 0
    useful = sorted(np.flatnonzero(holds.any(axis=1)).tolist(), key=lambda at: tier[at].order)
    groups: dict[tuple[object, ...], list[tuple[OfferedType, tuple[int, ...]]]] = {}
    for at in useful:
        offered, takes = tier[at], holds[at]
        sold = sorted(offered.offerings, key=lambda o: (o.zone, o.capacity_type)) if narrows else []
        zones = tuple((o.zone, o.capacity_type) for o in sold)
        limits = ledger.limit(offered.pool.name) if ledger is not None else None
        charged = (-offered.capacity.get(name, 0) for name in sorted(limits or ()))
        score = (*(offered.room.free.get(name, 0) for name in names), *charged, *(-o.price_micro for o in sold))
        layout = filler.holding.layout(filler.holding.row(offered))
        key = (offered.pool.name, offered.reservation, layout, takes.tobytes(), zones)
        groups.setdefault(key, []).append((offered, score))
    return sorted((c for held in groups.values() for c in _front(held)), key=lambda c: c.order)


def _front(held: Sequence[tuple[OfferedType, tuple[int, ...]]]) -> Iterator[OfferedType]:
    """Those that none before them is at least as good as in everything."""
    scores = np.array([score for _, score in held])
    front = np.zeros_like(scores)
    size = 0
    for at, (offered, _) in enumerate(held):
        if not (front[:size] >= scores[at]).all(axis=1).any():
            front[size] = scores[at]
            size += 1
            yield offered


def _narrows(filler: Filler, numbers: Sequence[int]) -> bool:
    """Whether some pod's own zone or capacity type decides which offering, and so which price, applies."""
    return any(
        ZONE in alternative or CAPACITY_TYPE in alternative or ZONE_ID in alternative
        for n in numbers
        for alternative in filler.shapes[n].spec.alternatives_new
    )
