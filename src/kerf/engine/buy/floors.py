"""Floors of NodePools (`kerf.dev/min-nodes`): nodes that are bought though no pod waits, because a pool has too few.

They come after the launches for pods, which count towards the floor, and are the cheapest that the pool offers within
its limits and caps.
"""

from collections import Counter
from collections.abc import Iterable

from kerf.engine.buy.filling import charge
from kerf.engine.buy.launching import bought_as
from kerf.engine.buy.limits import Ledger
from kerf.engine.supply.caps import within_cap
from kerf.engine.supply.offered import OfferedType, Supply
from kerf.model.causes import BelowFloor, Cause, FloorUnmet, LimitLeavesNoRoom, Name, PoolClosed, PoolOffersNothing
from kerf.model.instancetypes import Offering
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.plan import Launch
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterSnapshot


def lacking(
    pools: Iterable[NodePool], claims: Iterable[NodeClaim], launches: Iterable[Launch] = ()
) -> dict[str, tuple[int, int]]:
    """By pool that has fewer nodes than its floor, (how many it has, its floor); those on their way count."""
    held = Counter(claim.node_pool for claim in claims if not claim.is_deleting)
    held.update(launch.node_pool for launch in launches)
    return {
        pool.name: (held[pool.name], pool.bounds.min_nodes)
        for pool in pools
        if pool.deleted_s is None and held[pool.name] < pool.bounds.min_nodes
    }


def floor_launches(
    snapshot: ClusterSnapshot, supply: Supply, ledger: Ledger, launches: tuple[Launch, ...]
) -> tuple[tuple[Launch, ...], tuple[FloorUnmet, ...]]:
    """What is to be bought beside `launches` so that each pool has its floor; charges `ledger`.

    Also every pool that cannot have it, with what stands in the way. Cost: missing nodes x types.
    """
    claims = [node.claim for node in snapshot.nodes if node.claim is not None and not node.is_deleting]
    found: list[Launch] = []
    unmet = []
    for name, (held, floor) in sorted(lacking(snapshot.node_pools, claims, launches).items()):
        offered_types = supply.by_pool.get(name, ())
        cause = BelowFloor(Name(name), held, floor)
        for number in range(held, floor):
            bought = _cheapest(offered_types, ledger)
            if bought is None:
                unmet.append(FloorUnmet(Name(name), number, floor, _obstacle(name, supply, ledger)))
                break
            offered, offering = bought
            ledger.charge(name, charge(offered, offering, within_cap(offered, offering)))
            found.append(_launch(f"launch-{len(launches) + len(found)}", offered, offering, cause))
    return tuple(found), tuple(unmet)


def _cheapest(offered_types: Iterable[OfferedType], ledger: Ledger) -> tuple[OfferedType, Offering] | None:
    reserved_first = sorted(offered_types, key=lambda offered: not offered.reservation)
    choices = (
        (offered, offering)
        for offered in reserved_first
        for offering in offered.offerings[:1]
        if ledger.room_for(offered, charge(offered, offering, within_cap(offered, offering))) != 0
    )
    return next(choices, None)


def _launch(name: str, offered: OfferedType, offering: Offering, cause: Cause) -> Launch:
    required = offered.pool.template_requirements().intersect(within_cap(offered, offering))
    asked = required.without_min_values().intersect(bought_as(offering, (offered.kind.name,)))
    daemons = offered.kind.allocatable - offered.room.free
    return Launch(
        name=name,
        node_pool=offered.pool.name,
        offering=offered.key_of(offering),
        price_micro=offering.price_micro,
        pods=(),
        # One type is named, and the API refuses a claim that asks for more values than it names.
        requirements=asked,
        requests=Resources({resource: amount for resource, amount in daemons.items() if amount > 0}),
        devices=offered.kind.devices,
        charge=charge(offered, offering, within_cap(offered, offering)),
        is_estimate=offering.is_estimate,
        labels=offered.labels_for(asked),
        cause=cause,
    )


def _obstacle(pool: str, supply: Supply, ledger: Ledger) -> Cause:
    problem = dict(supply.pool_problems).get(pool)
    if problem is not None:
        return PoolClosed(Name(pool), problem)
    for offered in supply.by_pool.get(pool, ()):
        exceeded = ledger.exceeded_by(offered)
        if exceeded:
            return LimitLeavesNoRoom(Name(exceeded[0]), Name(offered.kind.name))
    refused = (offered.refused for offered in supply.unavailable if offered.pool.name == pool)
    return next(filter(None, refused), PoolOffersNothing())
