"""The smallest limits of a NodePool under which pods have a place."""

import math
from collections.abc import Sequence
from dataclasses import replace

from kerf.engine.buy.limits import Ledger
from kerf.engine.decision import Buy
from kerf.engine.explain.causes import counted, some
from kerf.engine.explain.hints.situation import Advice, Situation, changing_pool
from kerf.model.nodepool import NodePool
from kerf.model.quantities import COST_PER_HOUR, Resources, quantity_text

_MOST_SEARCHED, _MOST_SHAPES = 2_000, 30
"""Pods, and shapes of them, for which the smallest limit is searched; beyond it what the plan would use is named."""


def raise_limit(pool: NodePool, resource: str, situation: Situation) -> Advice:
    """The least limits of the pool that place as many pods as none would; worked out once for a pool and resource."""
    if (pool.name, resource) in situation.on_limits:
        return situation.on_limits[pool.name, resource]
    found, unserved, is_smallest = _smallest_limits(pool, situation)
    if not found:
        advice = Advice(f"raise limit {resource} of NodePool {pool.name}")
    else:
        which = "is the smallest {} limit" if is_smallest else "is a {} limit"
        texts = ", ".join(
            f"{quantity_text(name, amount)}{_in_cards(pool, name, amount, situation)} {which.format(name)}"
            for name, amount in found.items()
        )
        everyone = _served(unserved, situation)
        limits = {name: quantity_text(name, amount) for name, amount in found.items()}
        raised = replace(pool, limits=(pool.limits or Resources()).replaced(found))
        advice = changing_pool(f"{texts} of NodePool {pool.name} that places {everyone}", raised, {"limits": limits})
    situation.on_limits[pool.name, resource] = advice
    return advice


def _served(unserved: Sequence[int], situation: Situation) -> str:
    """Which pods have a place then: all, or so many of them, the first by name. `unserved` are counts by shape."""
    pods, left = sum(map(len, situation.shapes)), sum(unserved)
    if not left:
        return "the pod" if pods == 1 else f"all {pods} pods"
    held = zip(situation.shapes, unserved, strict=True)
    served = [pod.key for shape, count in held for pod in shape.pods[: len(shape) - count]]
    return f"{len(served)} of {pods} pods ({some(served)})"


def _in_cards(pool: NodePool, name: str, amount: int, situation: Situation) -> str:
    """The same limit in GPUs, where each GPU of the pool shows one number by this resource, and more than one."""
    offered = [each for each in situation.supply.available if each.pool.name == pool.name and each.kind.devices]
    shown = [(each.target.family.kubelet_capacity(each.room.devices).get(name, 0), each) for each in offered]
    rates = {divmod(number, len(each.kind.devices)) for number, each in shown}
    if len(rates) != 1:
        return ""
    ((rate, rest),) = rates
    if rest or rate < 2 or amount % rate:
        return ""
    return f" ({counted(amount // rate, 'GPU')})"


def is_searched(situation: Situation) -> bool:
    """Whether there is so little to buy for that it can be bought for again and again."""
    return len(situation.shapes) <= _MOST_SHAPES and sum(map(len, situation.shapes)) <= _MOST_SEARCHED


def _smallest_limits(pool: NodePool, situation: Situation) -> tuple[dict[str, int], Sequence[int], bool]:
    """The limits of the pool that must rise for as many pods as without limits, each to the least that does it.

    Also how many pods of each shape are left even so, and whether each limit is the least: where there is too
    much to search, or no try is left, they rise to what the pods then use. Cost: two purchases where that is the least
    already, else as many as halve the steps between the limit and it, and one more by the plan's own search.
    """
    limits = pool.limits or Resources()
    if not situation.tries.take(len(situation.supply.available)):
        return {}, (), False
    unserved, needed = _bought_with(pool, None, situation)
    least = sum(unserved)
    rising = {name: needed.get(name, 0) for name, limit in limits.items() if needed.get(name, 0) > limit}
    if not is_searched(situation):
        return rising, unserved, False
    for name in sorted(rising):
        used, step = situation.before.used(pool.name).get(name, 0), _step(pool, name, situation)
        # In steps above what is used: the limits between two of them allow the same nodes.
        at_least = max(limits[name] + 1 - used, _asked(name, situation) if least == 0 else 0)
        low, high = max(0, -(-at_least // step)), (rising[name] - used) // step
        middle = high - 1  # Mostly what they use without limits is the least, and then one purchase shows it.
        while low < high and situation.tries.take(len(situation.supply.available)):
            tried = limits.replaced({**rising, name: used + middle * step})
            left, needed = _bought_with(pool, tried, situation, situation.evidence.buy_quickly)
            if sum(left) > least:
                left, needed = _bought_with(pool, tried, situation, situation.evidence.buy_briefly)
            if sum(left) <= least:
                unserved = left
                high = min(middle, max(low, (needed.get(name, 0) - used) // step))
            else:
                low = middle + 1
            middle = (low + high) // 2
        # Quick searches may miss what the plan's own finds under the next smaller limit, which is a claim about it.
        floor = max(0, -(-at_least // step))
        while high > floor and situation.tries.take(len(situation.supply.available)):
            left, _ = _bought_with(pool, limits.replaced({**rising, name: used + (high - 1) * step}), situation)
            if sum(left) > least:
                break
            unserved, high = left, high - 1
        rising[name] = used + high * step
    return rising, unserved, not situation.tries.are_over


def _step(pool: NodePool, name: str, situation: Situation) -> int:
    """What divides all that nodes of the pool count of a resource; 1 where nodes of one type can count differently."""
    if name == COST_PER_HOUR:
        return 1
    offered = (each for each in situation.supply.available if each.pool.name == pool.name)
    return max(1, math.gcd(*(each.capacity.get(name, 0) for each in offered)))


def _asked(name: str, situation: Situation) -> int:
    """What the pods ask in sum, which nodes of the only pool must have for all of them; 0 where there are several."""
    if len(situation.snapshot.node_pools) > 1:
        return 0
    return sum(shape.spec.requests.get(name, 0) * len(shape) for shape in situation.shapes)


def _bought_with(
    pool: NodePool, limits: Resources | None, situation: Situation, buy: Buy | None = None
) -> tuple[Sequence[int], Resources]:
    """How many pods of each shape are left under other limits of the pool, and what it counts then."""
    pools = [replace(p, limits=limits) if p.name == pool.name else p for p in situation.snapshot.node_pools]
    ledger = Ledger(pools, {p.name: situation.before.used(p.name) for p in pools})
    purchase = (buy or situation.buy)(situation.shapes, situation.supply.available, ledger)
    return tuple(purchase.left), ledger.used(pool.name)
