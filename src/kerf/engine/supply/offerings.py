"""The offerings of an instance type that a pool can buy now, and why others are out: zone, cap, stock, back-off."""

from collections.abc import Sequence
from dataclasses import dataclass

from kerf.model.causes import (
    BacksOff,
    Cause,
    Name,
    NoOfferingAllowed,
    OfferingsSoldOut,
    TypeOverPriceCap,
)
from kerf.model.constraints import Requirements
from kerf.model.instancetypes import InstanceType, Offering, allowed_offerings, launch_order
from kerf.model.market import Market
from kerf.model.nodepool import NodePool


@dataclass(frozen=True, slots=True)
class Offered:
    """What a type comes in.

    `available` in launch order (`launch_order`); `over_price_cap` are those that a price cap leaves out, cheapest
    first, and `sold_out` the capacity types it would otherwise come in. `refused` is
    why nothing is available, None where something is, and `retry_at_s` when that may change.
    """

    available: tuple[Offering, ...]
    refused: Cause | None = None
    retry_at_s: float = 0
    sold_out: tuple[str, ...] = ()
    over_price_cap: tuple[Offering, ...] = ()


def offerings_of(pool: NodePool, kind: InstanceType, requirements: Requirements, market: Market) -> Offered:
    """The offerings of a type that the pool may buy; `requirements` are the pool's and the type's together."""
    allowed = allowed_offerings(kind.offerings, requirements)
    over_price_cap = [o for o in allowed if pool.bounds.excess(kind, o.price_micro)] if pool.bounds.has_cap else []
    over_price_cap.sort(key=lambda o: (o.price_micro, o.zone))
    within = [o for o in allowed if o not in over_price_cap] if over_price_cap else allowed
    refused, retry_at_s = _back_off(pool, kind, market)
    available = [] if refused is not None else [o for o in within if o.is_available and not _sold_out(kind, o, market)]
    if not available and refused is None:
        refused, retry_at_s = _why_unavailable(kind, within, market)
        excess = pool.bounds.excess(kind, over_price_cap[0].price_micro) if over_price_cap and not within else None
        refused = TypeOverPriceCap(Name(kind.name), excess) if excess is not None else refused
    available.sort(key=launch_order)
    return Offered(tuple(available), refused, retry_at_s, _gone(within, available), tuple(over_price_cap))


def _gone(allowed: Sequence[Offering], available: Sequence[Offering]) -> tuple[str, ...]:
    return tuple(sorted({o.capacity_type for o in allowed} - {o.capacity_type for o in available}))


def _sold_out(kind: InstanceType, offering: Offering, market: Market) -> bool:
    if not market.sold_out_keys:
        return False
    return offering.key_of(kind.name) in market.sold_out_keys


def _back_off(pool: NodePool, kind: InstanceType, market: Market) -> tuple[Cause | None, float]:
    for held in market.back_offs:
        if (held.node_pool, held.instance_type) == (pool.name, kind.name):
            cause = BacksOff(Name(kind.name), Name(pool.name), held.until_s, held.said, held.is_tried)
            return cause, held.until_s
    return None, 0


def _why_unavailable(kind: InstanceType, allowed: Sequence[Offering], market: Market) -> tuple[Cause, float]:
    if not allowed:
        return NoOfferingAllowed(Name(kind.name)), 0
    until = [sold.until_s for sold in market.sold_out if sold.offering.instance_type == kind.name]
    capacity_types = tuple(sorted({Name(o.capacity_type) for o in allowed}))
    again_s = min(until, default=0)
    return OfferingsSoldOut(Name(kind.name), capacity_types, again_s), again_s
