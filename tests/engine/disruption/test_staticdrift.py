"""Nodes of static pools are replaced one for one."""

from dataclasses import replace
from typing import Any

from kerf.engine.disruption.staticdrift import propose
from kerf.engine.world import World
from kerf.model.nodepool import Budget, NodePool
from kerf.model.plan import Launch
from kerf.testing.builders import resources
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, may_go, on, pool_with
from tests.engine.disruption.test_drift import drifted


def bought(pool: NodePool, *names: str, pods: tuple[Any, ...] = ()) -> list[tuple[str, ...]]:
    """Whose place the launches take."""
    held = a_cluster([pool], [drifted(name, since_s=at) for at, name in enumerate(names)], pods)
    command = next(propose(World(held, MARKET), may_go(held)), None)
    if command is None:
        return []
    launches: tuple[Launch, ...] = command.launches
    assert [each.replaced_by for each in command.deletions] == [(launch.name,) for launch in launches]
    return [launch.replaces for launch in launches]


def static(pool: NodePool, nodes: int | None = None) -> NodePool:
    """The pool with two replicas."""
    return replace(pool, replicas=2, limits=None if nodes is None else resources(nodes=nodes))


def test_as_many_as_budgets_and_the_limit_allow_empty_ones_first() -> None:
    """What pods need has no say."""
    pods = (on("a", "x", cpu=3),)

    assert [("b",), ("a",)] == bought(static(free_pool()), "a", "b", pods=pods)
    assert [("b",)] == bought(static(pool_with(Budget("1"))), "a", "b", pods=pods)
    assert [("b",)] == bought(static(free_pool(), nodes=3), "a", "b", pods=pods)
    assert [] == bought(static(free_pool(), nodes=2), "a", "b", pods=pods)


def test_other_pools_are_left_to_others() -> None:
    """Drift of a pool that follows pods is another method."""
    assert [] == bought(free_pool(), "a")
