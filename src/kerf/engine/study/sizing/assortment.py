"""What a market has beside what the NodePools name: for advice on other instance types.

A pool's other requirements (zones, capacity types, architecture, its own labels and taints) stay: they are there for
reasons that no price shows.
"""

from collections.abc import Sequence
from dataclasses import replace

from kerf.engine.supply.offered import OfferedType
from kerf.engine.world import World
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, Requirement, Requirements
from kerf.model.instancetypes import ON_DEMAND, InstanceType
from kerf.model.nodeclaim import NodeClassRef
from kerf.model.nodepool import NodePool

ANY_POOL = "any"
"""The pool that is assumed where there is none: on demand, every type."""
_SIZES = ("category", "cpu", "cpu-manufacturer", "family", "generation", "memory", "size")
"""Ends of the labels `karpenter.k8s.aws/instance-...` and their like by which pools narrow their types."""


def any_pool() -> NodePool:
    """A pool that allows every type, on demand."""
    on_demand = Requirements([Requirement.of(CAPACITY_TYPE, "In", (ON_DEMAND,))])
    return NodePool(ANY_POOL, NodeClassRef("", "", ""), on_demand)


def opened(pool: NodePool, types: Sequence[str] = ()) -> NodePool:
    """The pool without what it asks of types by name, family or size; with `types` it names those instead."""
    kept = [each for key, each in pool.requirements.items() if not _narrows_types(key)]
    named = [Requirement.of(INSTANCE_TYPE, "In", tuple(types))] if types else []
    return replace(pool, requirements=Requirements([*kept, *named]), limits=None)


def _narrows_types(key: str) -> bool:
    _, _, name = key.partition("/")
    return key == INSTANCE_TYPE or (name.startswith("instance-") and name.removeprefix("instance-") in _SIZES)


def offered_by(pool: NodePool, world: World) -> tuple[OfferedType, ...]:
    """What this pool would offer if it were the only one; in order of price."""
    return World(replace(world.snapshot, node_pools=(pool,)), world.market).supply.available


def offered_if_named(kind: InstanceType, pools: Sequence[NodePool], world: World) -> tuple[OfferedType, ...]:
    """The type as these pools would offer it if they named it; none where their other requirements forbid it."""
    return tuple(offered for pool in pools for offered in offered_by(opened(pool, (kind.name,)), world))
