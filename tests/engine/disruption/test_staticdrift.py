"""Nodes of static pools are replaced one for one."""

from dataclasses import replace
from typing import Any

from kerf.engine.disruption.causes import NoneInItsPlace
from kerf.engine.disruption.staticdrift import propose, waiting
from kerf.engine.world import World
from kerf.model.causes import LimitLeavesNoRoom
from kerf.model.nodeclaim import REPLACED_BY
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


def held_up(pool: NodePool, *pods: Any, going: bool = False) -> list[NoneInItsPlace]:
    """What is said of the pool, two nodes of which have drifted, and one of them goes already."""
    node, claim = drifted("b")
    held = a_cluster(
        [pool], [drifted("a"), (node, replace(claim, annotations={REPLACED_BY: "a"} if going else {}))], pods
    )
    return list(waiting(World(held, MARKET), may_go(held)))


def test_a_limit_that_leaves_no_room_for_another_node_is_said() -> None:
    """Nothing would ever happen. Not where a budget says so already, and not while a node goes that holds the room."""
    [found] = held_up(static(free_pool(), nodes=2), on("a", "x", cpu=3))

    assert isinstance(found.obstacle, LimitLeavesNoRoom)
    assert [] == held_up(static(free_pool(), nodes=3))
    assert [] == held_up(static(pool_with(Budget("0")), nodes=2))
    assert [] == held_up(static(free_pool(), nodes=2), going=True)
    assert [] == held_up(replace(free_pool(), limits=resources(nodes=2)))


def test_other_pools_are_left_to_others() -> None:
    """Drift of a pool that follows pods is another method."""
    assert [] == bought(free_pool(), "a")
