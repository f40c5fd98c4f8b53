"""A NodePool looked at by what it is used for: how far its limits are, what they would cost, which types idle in it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kerf.engine.buy.dominance import undominated
from kerf.engine.buy.filling import Filler
from kerf.engine.buy.limits import Ledger, usage
from kerf.engine.place.shapes import group
from kerf.engine.study.usage.overload import requested_by
from kerf.engine.supply.holding import Holding
from kerf.engine.supply.offered import OfferedType
from kerf.engine.world import World
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.nodepool import NodePool
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.model.quantities import COST_PER_HOUR, CPU, MEMORY, NODES, PODS, Resources
from kerf.model.snapshot import ClusterNode
from kerf.model.usage import Usage


@dataclass(frozen=True, slots=True)
class Filled:
    """So many nodes of one type, which is all that a limit allows of it, and their price per hour."""

    instance_type: str
    nodes: int
    price_micro: int


@dataclass(frozen=True, slots=True)
class LimitReview:
    """One limit, in its base unit: what nodes count of it now, and after the plan.

    `requested` is what pods on these nodes ask and those that wait, and `measured` what the nodes were seen to use of
    it; None where it is nothing that pods ask, or nothing is known. `a_node` is the least that one more node counts.
    `cheapest` and `most_expensive` are the pool filled up to this limit alone with one type; None where no type counts
    against it.
    """

    resource: str
    limit: int
    used: int
    planned: int
    requested: int | None
    measured: int | None
    a_node: int
    cheapest: Filled | None
    most_expensive: Filled | None

    @property
    def peak(self) -> int:
        """What nodes count once the plan is done."""
        return self.used + self.planned

    @property
    def is_reached(self) -> bool:
        """Whether not even the smallest node is allowed beside those."""
        return self.peak + self.a_node > self.limit

    @property
    def is_shut(self) -> bool:
        """Whether not even one node is allowed of what counts against it."""
        return self.a_node > self.limit


@dataclass(frozen=True, slots=True)
class TypeReview:
    """A type that the pool allows: its nodes now and in the plan.

    `holds` of the pods one such node could take, and whether it is `beaten`: another type of the pool holds the same
    pods, offers no less, and costs no more.
    """

    instance_type: str
    price_micro: int
    nodes: int
    planned: int
    holds: int
    is_beaten: bool


@dataclass(frozen=True)
class PoolReview:
    """`pods` are those that were asked about: on nodes of the pool, or waiting. Types in order of price."""

    pool: NodePool
    pods: int
    limits: tuple[LimitReview, ...]
    types: tuple[TypeReview, ...]


def reviewed(pool: NodePool, plan: Plan, world: World, seen: Usage) -> PoolReview:
    """The pool with what runs on it, what the plan adds to it, and what was measured."""
    snapshot = world.snapshot
    offered_types = world.supply.by_pool.get(pool.name, ())
    nodes = [node for node in snapshot.nodes if node.claim is not None and node.claim.node_pool == pool.name]
    waiting = [pod for pod in snapshot.pending if not is_virtual(pod.key)]
    pods = [pod for node in nodes for pod in node.pods if not pod.is_daemon and not pod.is_ended] + waiting
    requested = requested_by([*(pod for node in nodes for pod in node.pods), *waiting])
    return PoolReview(
        pool,
        len(pods),
        _limits(pool, plan, world, offered_types, (requested, _measured(nodes, seen))),
        _types(offered_types, nodes, plan, pods),
    )


def _measured(nodes: Sequence[ClusterNode], seen: Usage) -> Mapping[str, int]:
    """What the nodes of the pool were seen to use, of all of which something is known."""
    known = [seen.nodes[node.name] for node in nodes if node.name in seen.nodes]
    if not known:
        return {}
    return {CPU: sum(each.cpu_millis for each in known), MEMORY: sum(each.memory_bytes for each in known)}


def _limits(
    pool: NodePool,
    plan: Plan,
    world: World,
    offered_types: Sequence[OfferedType],
    pods: tuple[Mapping[str, int], Mapping[str, int]],
) -> tuple[LimitReview, ...]:
    """`pods`: what they ask, and what was measured."""
    requested, measured = pods
    used = usage(world).get(pool.name, Resources())
    planned = Resources()
    for launch in plan.launches:
        if launch.node_pool == pool.name:
            planned = planned + launch.charge.replaced({COST_PER_HOUR: launch.price_micro})
    found = []
    for name, limit in sorted((pool.limits or Resources()).items()):
        filled = [each for c in offered_types if (each := _filled(c, name, limit)) is not None]
        asked = None if name in (NODES, COST_PER_HOUR, PODS) else requested.get(name, 0)
        found.append(
            LimitReview(
                name,
                limit,
                used.get(name, 0),
                planned.get(name, 0),
                asked,
                measured.get(name),
                min((amount for c in offered_types if (amount := _counted(c, name))), default=0),
                min(filled, key=lambda each: (each.price_micro, each.instance_type), default=None),
                max(filled, key=lambda each: (each.price_micro, each.instance_type), default=None),
            )
        )
    return tuple(found)


def _filled(offered: OfferedType, resource: str, limit: int) -> Filled | None:
    """As many nodes of the type as the limit allows; None where it does not count against it, or not even one fits."""
    a_node = _counted(offered, resource)
    if a_node <= 0 or limit < a_node:
        return None
    return Filled(offered.kind.name, limit // a_node, limit // a_node * offered.price_micro)


def _counted(offered: OfferedType, resource: str) -> int:
    return offered.price_micro if resource == COST_PER_HOUR else offered.capacity.get(resource, 0)


def _types(
    offered_types: Sequence[OfferedType], nodes: Sequence[ClusterNode], plan: Plan, pods: Sequence[Pod]
) -> tuple[TypeReview, ...]:
    shapes = group(pods)
    filler = Filler(shapes, Holding(offered_types))
    limits = Ledger((each.pool for each in offered_types), {})
    useful = {id(c) for c in undominated(filler, offered_types, [len(shape) for shape in shapes], limits)}
    running = Counter(node.labels.get(INSTANCE_TYPE, "") for node in nodes)
    pool = offered_types[0].pool.name if offered_types else ""
    bought = Counter(each.offering.instance_type for each in plan.launches if each.node_pool == pool)
    found: dict[str, TypeReview] = {}
    for offered in offered_types:
        name = offered.kind.name
        holds = sum(len(shape) for number, shape in enumerate(shapes) if filler.alone(number, offered))
        review = TypeReview(
            name, offered.price_micro, running[name], bought[name], holds, bool(holds) and id(offered) not in useful
        )
        found.setdefault(name, review)
    return tuple(found.values())
