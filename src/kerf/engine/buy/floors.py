"""Nodes that are bought though no pod waits, because a pool has too few: floors (`kerf.dev/min-nodes`), static pools.

They come after the launches for pods, which count towards a floor, and are the cheapest that the pool offers within its
limits and caps. A static pool (`spec.replicas`) is no supply for pods; it has as many nodes as it states.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from kerf.engine.buy.filling import charge
from kerf.engine.buy.launching import bought_as
from kerf.engine.buy.limits import Ledger
from kerf.engine.supply.caps import within_cap
from kerf.engine.supply.offered import OfferedType, Supply
from kerf.engine.world import World
from kerf.model.causes import (
    BelowFloor,
    Cause,
    FloorUnmet,
    LimitLeavesNoRoom,
    MostOfOnePlan,
    Name,
    PoolClosed,
    PoolOffersNothing,
)
from kerf.model.instancetypes import Offering
from kerf.model.nodeclaim import REPLACED_BY, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.plan import Launch

MOST_AT_ONCE = 5000
"""Nodes that one plan buys for what a pool keeps: a cluster has no more than that (Kubernetes, Considerations for large
clusters), and a typing error in `spec.replicas` would be planned node by node."""


def lacking(
    pools: Iterable[NodePool], claims: Iterable[NodeClaim], launches: Iterable[Launch] = ()
) -> dict[str, tuple[int, int]]:
    """By pool that has fewer nodes than its floor, (how many it has, its floor); those on their way count."""
    floored = [pool for pool in pools if pool.fewest > 0 and pool.deleted_s is None]
    if not floored:
        return {}
    held = Counter(claim.node_pool for claim in staying(claims))
    held.update(launch.node_pool for launch in launches)
    return {pool.name: (held[pool.name], pool.fewest) for pool in floored if held[pool.name] < pool.fewest}


def staying(claims: Iterable[NodeClaim]) -> list[NodeClaim]:
    """Those of all claims that count towards what their pools keep, in their order: one that goes once others are up
    does not, where one of these is there."""
    held = [claim for claim in claims if not claim.is_deleting]
    names = {claim.name for claim in held}
    return [
        claim
        for claim in held
        # A crash can leave the name of a claim that was never created: such a node stays.
        if REPLACED_BY not in claim.annotations or (claim.replaced_by and names.isdisjoint(claim.replaced_by))
    ]


class Floors:
    """What can be bought for pools and no pods, while limits are spent. Static pools are opened for it."""

    def __init__(self, world: World, ledger: Ledger) -> None:
        self._world, self._ledger = world, ledger
        self._made: dict[tuple[int, int, Cause], Launch] = {}

    @cached_property
    def _opened(self) -> Supply:
        pools = [replace(pool, replicas=None) for pool in self._world.snapshot.node_pools if pool.replicas is not None]
        return self._world.with_pools(pools).supply if pools else self._world.supply

    def cheapest(self, pool: NodePool, name: str, cause: Cause, replaces: tuple[str, ...] = ()) -> Launch | None:
        """One more node of the pool, charged to its limits; None where it can have none."""
        supply = self._world.supply if pool.replicas is None else self._opened
        bought = _cheapest(supply.by_pool.get(pool.name, ()), self._ledger)
        if bought is None:
            return None
        offered, offering = bought
        # A thousand equal nodes share what they state; the supply keeps what the ids are of.
        key = id(offered), id(offering), cause
        if key not in self._made:
            self._made[key] = _launch(name, offered, offering, cause)
        made = self._made[key]
        self._ledger.charge(pool.name, made.charge)
        return replace(made, name=name, replaces=replaces)

    def obstacle(self, pool: NodePool) -> Cause:
        """Why the pool can have no further node."""
        return _obstacle(pool.name, self._world.supply if pool.replicas is None else self._opened, self._ledger)


def floor_launches(
    world: World, ledger: Ledger, launches: tuple[Launch, ...]
) -> tuple[tuple[Launch, ...], tuple[FloorUnmet, ...]]:
    """What is to be bought beside `launches` so that each pool has what it keeps; charges `ledger`.

    Also every pool that cannot have it, with what stands in the way: of one that lacks more than MOST_AT_ONCE, that.
    Cost: missing nodes x types.
    """
    claims = [node.claim for node in world.snapshot.nodes if node.claim is not None and not node.is_going]
    found: list[Launch] = []
    unmet, floors = [], Floors(world, ledger)
    for name, (held, floor) in sorted(lacking(world.snapshot.node_pools, claims, launches).items()):
        pool = world.snapshot.pool(name)
        if pool is None:
            continue
        cause = BelowFloor(Name(name), held, floor, pool.replicas is not None)
        for number in range(held, min(floor, held + MOST_AT_ONCE)):
            launch = floors.cheapest(pool, f"launch-{len(launches) + len(found)}", cause)
            if launch is None:
                unmet.append(FloorUnmet(Name(name), number, floor, floors.obstacle(pool), cause.is_static))
                break
            found.append(launch)
        else:
            if floor > held + MOST_AT_ONCE:
                most = MostOfOnePlan(MOST_AT_ONCE)
                unmet.append(FloorUnmet(Name(name), held + MOST_AT_ONCE, floor, most, cause.is_static))
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
    return Launch(
        name=name,
        node_pool=offered.pool.name,
        offering=offered.key_of(offering),
        price_micro=offering.price_micro,
        pods=(),
        # One type is named, and the API refuses a claim that asks for more values than it names.
        requirements=asked,
        requests=offered.daemon_requests,
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
