"""The smallest limits of a NodePool under which pods have a place."""

from dataclasses import replace

from kerf.engine.buy.limits import Ledger
from kerf.engine.explain.hints.situation import Advice, Situation, changing_pool
from kerf.model.nodepool import NodePool
from kerf.model.quantities import Resources, quantity_text

_MOST_SEARCHED, _MOST_SHAPES = 2_000, 30
"""Pods, and shapes of them, for which the smallest limit is searched; beyond it what the plan would use is named."""


def raise_limit(pool: NodePool, resource: str, situation: Situation) -> Advice:
    """The least limits of the pool that place as many pods as none would; worked out once for a pool and resource."""
    if (pool.name, resource) in situation.on_limits:
        return situation.on_limits[pool.name, resource]
    found, left, is_smallest = _smallest_limits(pool, situation)
    if not found:
        advice = Advice(f"raise limit {resource} of NodePool {pool.name}")
    else:
        pods = sum(len(s) for s in situation.shapes)
        which = "is the smallest {} limit" if is_smallest else "is a {} limit"
        texts = ", ".join(f"{quantity_text(name, amount)} {which.format(name)}" for name, amount in found.items())
        everyone = f"{pods - left} of {pods} pods" if left else "the pod" if pods == 1 else f"all {pods} pods"
        limits = {name: quantity_text(name, amount) for name, amount in found.items()}
        raised = replace(pool, limits=(pool.limits or Resources()).replaced(found))
        advice = changing_pool(f"{texts} of NodePool {pool.name} that places {everyone}", raised, {"limits": limits})
    situation.on_limits[pool.name, resource] = advice
    return advice


def is_searched(situation: Situation) -> bool:
    """Whether there is so little to buy for that it can be bought for again and again."""
    return len(situation.shapes) <= _MOST_SHAPES and sum(map(len, situation.shapes)) <= _MOST_SEARCHED


def _smallest_limits(pool: NodePool, situation: Situation) -> tuple[dict[str, int], int, bool]:
    """The limits of the pool that must rise for as many pods as without limits, each to the least that does it.

    Also how many pods are left even so, because of something else, and whether each is the least: where there is too
    much to search, or no try is left, they rise to what the pods then use.
    """
    limits = pool.limits or Resources()
    if not situation.tries.take():
        return {}, 0, False
    least, needed = _bought_with(pool, None, situation)
    rising = {name: needed.get(name, 0) for name, limit in limits.items() if needed.get(name, 0) > limit}
    if not is_searched(situation):
        return rising, least, False
    for name in sorted(rising):
        low, high = limits[name] + 1, rising[name]
        while low < high and situation.tries.take():
            middle = (low + high) // 2
            enough = _bought_with(pool, limits.replaced({**rising, name: middle}), situation)[0] <= least
            low, high = (low, middle) if enough else (middle + 1, high)
        rising[name] = high
    return rising, least, not situation.tries.are_over


def _bought_with(pool: NodePool, limits: Resources | None, situation: Situation) -> tuple[int, Resources]:
    """How many pods are left under other limits of the pool, and what it counts then."""
    pools = [replace(p, limits=limits) if p.name == pool.name else p for p in situation.snapshot.node_pools]
    ledger = Ledger(pools, {p.name: situation.before.used(p.name) for p in pools})
    purchase = situation.buy(situation.shapes, situation.supply.available, ledger)
    return sum(purchase.left), ledger.used(pool.name)
