"""NodePool limits, and what reservations have left, counted as launches are planned.

Three holes of Karpenter's accounting are closed here: `nodes` counts inside a batch, a resource that a type does not
offer never excludes it, and an over-full resource blocks only types that would add to it.

A reservation counts by its id alone, whichever pool or type takes of it. Karpenter takes one off each that a node might
still be bought by (pkg/controllers/provisioning/scheduling/reservationmanager.go); here a node takes of one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from kerf.engine.place.noderooms import cards_of, family_of
from kerf.engine.supply.offered import OfferedType
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.constraints import RESERVATION
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.promises import offering_of, planned_type
from kerf.model.quantities import COST_PER_HOUR, NODES, NOTHING, RESERVED_PREFIX, Resources
from kerf.model.snapshot import ClusterNode
from kerf.sharing.shown import counted_as_shown

_COUNTED = "counted"
"""What a node's findings have of it, as long as families and market stay."""

Limit = tuple[str, str]
"""A pool and a resource that it limits; of a reservation no pool, and its id."""


def is_reservation(limit: Limit) -> bool:
    """Whether it is what a reservation has, and no pool's limit."""
    return not limit[0]


def usage(world: World) -> dict[str, Resources]:
    """What the nodes of each pool, and those on their way, count against its limits.

    Prices count only in pools that limit them, and are those of now: a node whose price rises counts more.
    """
    pools, nodes = world.snapshot.node_pools, world.snapshot.nodes
    priced = {pool.name for pool in pools if pool.limits is not None and COST_PER_HOUR in pool.limits}
    by_cards = {pool.name for pool in pools if any(_may_be_of_cards(name) for name in pool.limits or ())}
    claimed = [(node, node.claim) for node in nodes if node.claim is not None]
    # Most nodes of a pool are of few types.
    equal = Counter(
        (claim.node_pool, (_as_shown if claim.node_pool in by_cards else _counted)(claim, node, world))
        for node, claim in claimed
    )
    used: dict[str, Resources] = {}
    for (pool, counted), number in equal.items():
        used[pool] = used.get(pool, NOTHING) + (counted + {NODES: 1}) * number
    for node, claim in claimed if priced else ():
        if claim.node_pool in priced:
            price = present_price(node, world.supply)
            used[claim.node_pool] = used[claim.node_pool] + {COST_PER_HOUR: price}
    return used


def _may_be_of_cards(name: str) -> bool:
    """Whether it may be a resource of cards: they all have a domain."""
    return "/" in name and name != COST_PER_HOUR


def _counted(claim: NodeClaim, node: ClusterNode, world: World) -> Resources:
    if claim.capacity:
        return claim.capacity
    kind = world.market.find(planned_type(claim), claim.node_class)
    if kind is not None:
        return kind.capacity
    return node.node.capacity if node.node is not None else NOTHING


def _as_shown(claim: NodeClaim, node: ClusterNode, world: World) -> Resources:
    """The same, of cards what the node shows or will show: kept with the node, for most do not change."""
    market, families = world.market, world.supply.families
    basis, found = node.findings.get(_COUNTED, (None, NOTHING))
    if basis is None or basis[0] is not families or basis[1] is not market:
        family = family_of(node, families)
        found = counted_as_shown(_counted(claim, node, world), family, cards_of(node, family, market))
        node.findings[_COUNTED] = (families, market), found
    counted: Resources = found
    return counted


def reserved(world: World) -> dict[str, int]:
    """By id how many instances each reservation has left; those whose number no offering states are not in it.

    Where offerings disagree the least counts. Nodes and claims take of one by label, or by what they are planned as.
    Cost: offerings that can be had, and nodes.
    """
    left: dict[str, int] = {}
    for offered in world.supply.available:
        for offering in offered.offerings:
            if offering.reservation and offering.most is not None:
                left[offering.reservation] = min(offering.most, left.get(offering.reservation, offering.most))
    for node in world.snapshot.nodes if left else ():
        name = reservation_of(node)
        if name in left:
            left[name] -= 1
    return left


def reservation_of(node: ClusterNode) -> str:
    """The id of the reservation that a node is bought by; empty for none."""
    if node.labels.get(RESERVATION):
        return node.labels[RESERVATION]
    planned = offering_of(node.claim.annotations) if node.claim is not None else None
    return planned.reservation if planned is not None else ""


class Ledger:
    """What is left of each pool's limits, and by id of each reservation; a private copy a search may spend."""

    def __init__(
        self, pools: Iterable[NodePool], used: Mapping[str, Resources], left: Mapping[str, int] | None = None
    ) -> None:
        self._limits = {pool.name: pool.limits for pool in pools if pool.limits is not None}
        self._used = dict(used)
        self._left = dict(left or {})
        self._kept_free: dict[str, Resources] = {}

    @classmethod
    def of(cls, world: World) -> "Ledger":
        """As things stand in a snapshot."""
        return cls(world.snapshot.node_pools, usage(world), reserved(world))

    def copy(self) -> "Ledger":
        """Another one to spend."""
        other = Ledger((), self._used, self._left)
        other._limits = self._limits
        other._kept_free = dict(self._kept_free)
        return other

    def only(self, limits: Collection[Limit]) -> "Ledger":
        """The same where no limits and reservations count but these."""
        other = self.copy()
        kept = {
            pool: {name: most for name, most in held.items() if (pool, name) in limits}
            for pool, held in self._limits.items()
        }
        other._limits = {pool: Resources(held) for pool, held in kept.items() if held}
        other._left = {name: left for name, left in self._left.items() if ("", name) in limits}
        return other

    def is_used_up(self, offered: OfferedType) -> bool:
        """Whether the type is one of a reservation that has no instance left."""
        return self._left.get(offered.reservation, 1) <= 0

    def used(self, pool: str) -> Resources:
        """What is counted so far."""
        return self._used.get(pool, Resources())

    def limit(self, pool: str) -> Resources | None:
        """The pool's limits; None when it has none."""
        return self._limits.get(pool)

    def room_for(self, offered: OfferedType, charge: Mapping[str, int] | None = None) -> int | None:
        """How many more nodes of the offered type limits and its reservation allow; None means any number."""
        limits, left = self._limits.get(offered.pool.name), self._left.get(offered.reservation)
        left = None if left is None else max(0, left)
        if limits is None:
            return left
        used, charge = self.used(offered.pool.name), offered.capacity if charge is None else charge
        counts = [
            max(0, limit - used.get(name, 0)) // charge[name]
            for name, limit in limits.items()
            if charge.get(name, 0) > 0
        ]
        if left is not None:
            counts.append(left)
        return min(counts) if counts else None

    def left_for(self, offered: OfferedType) -> dict[Limit, tuple[int, int]]:
        """What a node of the type takes of each limit of its pool, and of its reservation, and what these have left.

        By what is limited: the same key for all types that take of it.
        """
        pool, found = offered.pool.name, dict[Limit, tuple[int, int]]()
        used = self.used(pool)
        for name, limit in (self._limits.get(pool) or NOTHING).items():
            amount = offered.capacity.get(name, 0)
            if name == COST_PER_HOUR and amount:
                amount = max((each.price_micro for each in offered.offerings), default=0)
            if amount > 0:
                found[pool, name] = amount, max(0, limit - used.get(name, 0))
        if offered.reservation in self._left:
            found["", offered.reservation] = 1, max(0, self._left[offered.reservation])
        return found

    def charge(self, pool: str, amount: Mapping[str, int], times: int = 1) -> None:
        """Count launches."""
        self._used[pool] = Resources.total(((self.used(pool), 1), (amount, times)))
        for name in [name for name in amount if name.startswith(RESERVED_PREFIX)] if self._left else ():
            reservation = name.removeprefix(RESERVED_PREFIX)
            if reservation in self._left:
                self._left[reservation] -= amount[name] * times

    def keep_free(self, pool: str, amount: Mapping[str, int], times: int = 1) -> None:
        """Count what launches would use more if the cloud took the largest of their types."""
        self.charge(pool, amount, times)
        self._kept_free[pool] = Resources.total(((self.kept_free(pool), 1), (amount, times)))

    def kept_free(self, pool: str) -> Resources:
        """What of `used` is counted for larger types alone."""
        return self._kept_free.get(pool, Resources())

    def exceeded_by(self, offered: OfferedType, charge: Mapping[str, int] | None = None) -> tuple[str, ...]:
        """The limited resources, by name, that one more node of the type would exceed.

        `charge` is what it counts, by default the least that it can.
        """
        limits = self._limits.get(offered.pool.name) or Resources()
        used, charge = self.used(offered.pool.name), offered.capacity if charge is None else charge
        return tuple(
            sorted(
                name
                for name, limit in limits.items()
                if charge.get(name, 0) > 0 and used.get(name, 0) + charge[name] > limit
            )
        )
