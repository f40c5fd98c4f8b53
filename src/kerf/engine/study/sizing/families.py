"""What the same pods would cost on each family of instance types, as if they were new and nothing were running."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.engine.buy.bound import lower_bound
from kerf.engine.buy.filling import Purchase
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.packing import cheapest_nodes
from kerf.engine.place.shapes import Shape, group
from kerf.engine.study.sizing.assortment import any_pool, offered_by, opened
from kerf.engine.supply.offered import OfferedType
from kerf.engine.world import World
from kerf.model.constraints import ARCH
from kerf.model.pods import Pod


@dataclass(frozen=True)
class FamilyCost:
    """The cheapest nodes of one family that were found for the pods.

    `types` are nodes by instance type, `architectures` theirs; `pods_a_node` the least and the most; `left` pods that
    no type of the family holds. `bound_micro` is what no nodes of the family can undercut, None where pods are left.
    `is_allowed`: a NodePool of today allows each of these types.
    """

    family: str
    types: Mapping[str, int]
    architectures: tuple[str, ...]
    price_micro: int
    pods_a_node: tuple[int, int]
    left: int
    bound_micro: int | None
    is_allowed: bool

    @property
    def nodes(self) -> int:
        """How many nodes."""
        return sum(self.types.values())


TODAY = "as allowed"
"""In the place of a family's name: what the NodePools allow today, limits aside."""


def cost_today(pods: Iterable[Pod], world: World) -> FamilyCost | None:
    """The same pods on the types that the NodePools allow; None where there is none, or no pod."""
    shapes, offered_types = group(pods), world.supply.available
    if not shapes or not offered_types:
        return None
    return _cost(TODAY, shapes, offered_types, frozenset((c.pool.name, c.kind.name) for c in offered_types))


def costs_by_family(pods: Iterable[Pod], world: World) -> tuple[FamilyCost, ...]:
    """Each family that holds one of the pods, those that hold all first, then by price and name.

    NodePools count with all they ask but types and limits; where there is none, every type on demand. Cost: one search
    and one bound a family, by shapes and types and hardly by pods.
    """
    shapes = group(pods)
    if not shapes:
        return ()
    allowed = frozenset((c.pool.name, c.kind.name) for c in world.supply.available)
    by_family: dict[str, list[OfferedType]] = {}
    for offered in _everything(world):
        by_family.setdefault(offered.kind.family or offered.kind.name, []).append(offered)
    found = (_cost(family, shapes, offered_types, allowed) for family, offered_types in sorted(by_family.items()))
    return tuple(
        sorted((each for each in found if each.types), key=lambda each: (each.left, each.price_micro, each.family))
    )


def _everything(world: World) -> list[OfferedType]:
    # Equal weights: it is the price that is asked for here.
    wanted = [replace(opened(pool), weight=0) for pool in world.snapshot.node_pools] or [any_pool()]
    return [offered for pool in wanted for offered in offered_by(pool, world)]


def _cost(
    family: str, shapes: Sequence[Shape], offered_types: Sequence[OfferedType], allowed: frozenset[tuple[str, str]]
) -> FamilyCost:
    purchase = cheapest_nodes(shapes, offered_types, Ledger((), {}))
    types: Counter[str] = Counter()
    for load, times in purchase.loads:
        types[load.offered.kind.name] += times
    counts = [load.pods for load, _ in purchase.loads]
    price_micro = sum(load.offering.price_micro * times for load, times in purchase.loads)
    bound_micro = None if any(purchase.left) else lower_bound(shapes, offered_types)
    return FamilyCost(
        family,
        dict(sorted(types.items())),
        tuple(sorted({load.offered.target.labels.get(ARCH, "") for load, _ in purchase.loads})),
        price_micro,
        (min(counts), max(counts)) if counts else (0, 0),
        sum(purchase.left),
        # A bound above what nodes cost is false, and our own bug.
        None if bound_micro is not None and bound_micro > price_micro else bound_micro,
        _all_allowed(purchase, allowed),
    )


def _all_allowed(purchase: Purchase, allowed: frozenset[tuple[str, str]]) -> bool:
    return all((load.offered.pool.name, load.offered.kind.name) in allowed for load, _ in purchase.loads)
