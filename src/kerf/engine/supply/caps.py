"""Price caps of NodePools, for what is bought and for what runs.

An offering above its pool's cap is never asked for. A node that is paid already is not killed when its price rises: it
is marked, and it goes when its pods have another place.
"""

from kerf.engine.supply.offered import OfferedType, Supply
from kerf.engine.supply.pricing import present_price, present_type
from kerf.model.causes import OverPriceCap
from kerf.model.constraints import ZONE, Requirement, Requirements
from kerf.model.instancetypes import Offering
from kerf.model.nodepool import NodePool
from kerf.model.snapshot import ClusterNode


def within_cap(offered: OfferedType, offering: Offering) -> Requirements:
    """The zones that a claim for the offering may name, where the cap leaves some out; nothing to require elsewhere.

    The controller that launches the claim knows its requirements, and not the cap.
    """
    if not leaks(offered, offering.capacity_type, Requirements()):
        return Requirements()
    over_cap = {o.zone for o in offered.over_price_cap if o.capacity_type == offering.capacity_type}
    zones = {o.zone for o in offered.offerings if o.capacity_type == offering.capacity_type} - over_cap
    return Requirements([Requirement.of(ZONE, "In", sorted(zones))])


def leaks(offered: OfferedType, capacity_type: str, zones: Requirements) -> bool:
    """Whether a claim that allows the type in these zones could be launched above the cap."""
    allowed = zones.get(ZONE)
    over_cap = [o.zone for o in offered.over_price_cap if o.capacity_type == capacity_type]
    return any(allowed is None or allowed.has(zone) for zone in over_cap)


def excess(node: ClusterNode, pool: NodePool | None, supply: Supply) -> OverPriceCap | None:
    """Which cap of its pool a node that was bought exceeds by now; None for none, and without a pool."""
    if pool is None or not pool.bounds.has_cap:
        return None
    kind = present_type(node, supply)
    return None if kind is None else pool.bounds.excess(kind, present_price(node, supply))
