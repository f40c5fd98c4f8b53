"""consolidationPolicy Balanced: nodes go where that saves more of a pool's price than it disturbs of its pods.

Karpenter's rule (designs/balanced-consolidation.md): the share of the price that is saved over the share of the
disturbance that the move makes is at least one half. Every pool of that policy that loses a node must agree.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from kerf.engine.disruption.candidates import Candidate, moving
from kerf.engine.disruption.disturbance import of_node
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.nodepool import BALANCED

_K = 2
"""Karpenter's, the same for all pools."""


class Balance:
    """Of one snapshot."""

    def __init__(self, world: World) -> None:
        self._world = world

    def allows(self, victims: Sequence[Candidate], saved_micro: int) -> bool:
        """Whether these nodes may go together for that saving per hour; pools of other policies always agree.

        What is saved is split by what the nodes cost. Cost: the nodes' pods; linear in all pods at the first question.
        """
        pools = {each.pool.name for each in victims if each.pool.disruption.policy == BALANCED}
        if not pools:
            return True
        prices = {each.node.name: present_price(each.cluster_node, self._world.supply) for each in victims}
        total = sum(prices.values())
        for pool in pools:
            own = [each for each in victims if each.pool.name == pool]
            price, disturbance = self._totals[pool]
            saved = saved_micro * sum(prices[each.node.name] for each in own)
            moved = sum(of_node(each.pods) for each in own)
            if price <= 0 or total <= 0 or saved * disturbance * _K < moved * price * total:
                return False
        return True

    @cached_property
    def _totals(self) -> Mapping[str, tuple[int, int]]:
        """By pool what all of its nodes cost, and what it would disturb to move all their pods."""
        found: dict[str, tuple[int, int]] = {}
        for held in self._world.snapshot.nodes:
            if held.claim is None:
                continue
            price, disturbance = found.get(held.claim.node_pool, (0, 0))
            own = present_price(held, self._world.supply), of_node(moving(held))
            found[held.claim.node_pool] = price + own[0], disturbance + own[1]
        return found
