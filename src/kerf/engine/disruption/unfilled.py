"""By how much less nodes are filled that come in the place of others than nodes that are there.

Pods that move are made again, and a scheduler gives each its place as it comes: some on nodes that had room already,
and few in the order that would fill the new nodes as planned. So a part of what a step would save is lost. Where that
is not reckoned with, the new nodes are soon wasted themselves, and the same pods move again and again. How large the
part is shows on nodes that came lately: nothing where schedulers follow the plan, a fifth where many slices move.
"""

from collections.abc import Iterable

from kerf.engine.disruption.candidates import moving
from kerf.engine.disruption.worths import Worths
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.snapshot import ClusterNode

_FILLED_S = 300.0
"""So long after it was bought a node has the pods that were to come."""
LATELY_S = 7_200.0
"""So long a node counts as one that came in the place of others."""
_FEWEST = 5
"""Of fewer such nodes nothing is concluded: from one of them pods may have left since."""


def came_lately(world: World) -> list[ClusterNode]:
    """The nodes that have come in the place of others in the last two hours, and that pods have come to since; by
    name. Cost: the nodes."""
    now_s = world.snapshot.taken_at_s
    return [
        node
        for node in world.snapshot.nodes
        if node.claim is not None
        and node.claim.replaces
        and node.is_initialized
        and not node.is_deleting
        and _FILLED_S <= now_s - node.claim.created_s < LATELY_S
    ]


def unfilled_share(world: World, worths: Worths, new: Iterable[ClusterNode], others: Iterable[ClusterNode]) -> float:
    """The share of what the new nodes cost that is wasted, beyond that of the others, from 0 to 1; 0 where few have
    come. Nodes without pods go by themselves, and do not count."""
    came, beside = _Waste(world, worths, new), _Waste(world, worths, others)
    return max(0.0, came.share - beside.share) if came.nodes >= _FEWEST else 0.0


class _Waste:
    """How many nodes have pods that are known, and which share of what these nodes cost is wasted."""

    def __init__(self, world: World, worths: Worths, nodes: Iterable[ClusterNode]) -> None:
        held = ((moving(node), present_price(node, world.supply)) for node in nodes)
        known = [(price, worths.micro(pods)) for pods, price in held if pods and price > 0 and worths.knows(pods)]
        self.nodes, paid_micro = len(known), sum(price for price, _ in known)
        wasted_micro = sum(max(0, price - worth) for price, worth in known)
        self.share = wasted_micro / paid_micro if paid_micro else 0.0
