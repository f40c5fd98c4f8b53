"""Broken nodes go before all others, unless too much of their pool is broken."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.disruption.repair import TooManyBroken, propose, too_many
from kerf.engine.disruption.standing import standing
from kerf.engine.world import World
from kerf.model.nodeclaim import CONSOLIDATABLE, DO_NOT_DISRUPT, FALSE, GPUS_HEALTHY, TRUE, UNHEALTHY, Condition
from kerf.model.nodepool import Budget
from kerf.model.snapshot import ClusterSnapshot
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, may_go, on, ours, pool_with


def broken(name: str, since_s: float = 0, *, reason: str = "Ready", **given: Any) -> tuple[Any, Any]:
    """A node of which a condition has been bad for too long."""
    node, claim = ours(name, **given)
    bad = Condition(UNHEALTHY, TRUE, reason, since_s=since_s)
    return node, claim.with_condition(bad).without_condition(CONSOLIDATABLE)


def going(snapshot: ClusterSnapshot) -> list[tuple[list[str], int]]:
    """The nodes of each command, and how many it buys."""
    found = propose(World(snapshot, MARKET), may_go(snapshot))
    return [([each.node for each in command.deletions], len(command.launches)) for command in found]


def sound(number: int) -> list[tuple[Any, Any]]:
    """So many others."""
    return [ours(f"n{at}") for at in range(number)]


def test_what_broke_first_goes_first_and_others_come_before() -> None:
    """A node without pods needs no other."""
    nodes = [broken("a", since_s=20), broken("b", since_s=10), *sound(8)]
    pods = [on("a", "x", cpu=3), *(on(f"n{at}", f"p{at}", cpu=3) for at in range(8))]

    assert [(["b"], 0), (["a"], 1)] == going(a_cluster([free_pool()], nodes, pods))


def test_a_broken_node_that_is_not_ready_does_not_use_up_its_own_budget() -> None:
    """Another one that goes does."""
    pods = [on(f"n{at}", f"p{at}", cpu=3) for at in range(4)]
    nodes = [broken("a", is_ready=False), *sound(4)]

    assert [(["a"], 0)] == going(a_cluster([pool_with(Budget("1"))], nodes, pods))
    assert [] == going(a_cluster([pool_with(Budget("1"))], [*nodes, ours("gone", deleted_s=1.0)], pods))
    assert [] == going(a_cluster([pool_with(Budget("0", ("Unhealthy",)))], nodes, pods))


def test_budgets_may_be_set_aside() -> None:
    """Karpenter's rule up to 1.14: all at once, and nothing is bought before; too much of a pool stays all the same."""
    nodes = [broken("a"), broken("b"), *sound(8)]
    held = a_cluster([pool_with(Budget("0"))], nodes, [on("a", "x", cpu=3)])
    at_once = World(held, MARKET, repairs_at_once=True)

    assert [] == going(held)
    (command,) = propose(at_once, may_go(held))
    assert (["a", "b"], ()) == ([each.node for each in command.deletions], command.launches)
    assert command is standing(command, at_once, held)
    most = a_cluster([pool_with(Budget("0"))], [broken("a"), broken("b"), broken("c"), *sound(2)])
    assert [] == list(propose(World(most, MARKET, repairs_at_once=True), may_go(most)))


def test_pods_do_not_hold_a_broken_node_and_the_node_itself_does() -> None:
    """It serves them no more."""
    kept = {DO_NOT_DISRUPT: "true"}
    pods = [on("a", "x", cpu=1, annotations=kept)]

    assert [["a"]] == [nodes for nodes, _ in going(a_cluster([free_pool()], [broken("a"), *sound(4)], pods))]
    assert [] == going(a_cluster([free_pool()], [broken("a", annotations=kept), *sound(4)], pods))


@pytest.mark.parametrize("grace_s, goes", [(None, []), (3600, [["a"]])])
def test_pods_hold_a_node_of_which_a_card_alone_is_broken(grace_s: int | None, goes: list[list[str]]) -> None:
    """It serves them still, and nothing but a terminationGracePeriod would end its drain. A free pod moves."""
    node, claim = broken("a", reason=GPUS_HEALTHY)
    nodes = [(node, replace(claim, termination_grace_period_s=grace_s)), *sound(4)]
    held, free = ([on("a", "x", cpu=1, annotations=kept)] for kept in ({DO_NOT_DISRUPT: "true"}, {}))

    assert goes == [names for names, _ in going(a_cluster([free_pool()], nodes, held))]
    assert [["a"]] == [names for names, _ in going(a_cluster([free_pool()], nodes, free))]


def test_others_come_for_protected_pods_of_a_broken_node_too() -> None:
    """They are taken by force in the end; a full fleet has no room for them."""
    pods = [on("a", "x", cpu=3, annotations={DO_NOT_DISRUPT: "true"})]
    full = [on(f"n{at}", f"p{at}", cpu=3) for at in range(4)]

    assert [(["a"], 1)] == going(a_cluster([free_pool()], [broken("a"), *sound(4)], [*pods, *full]))


def test_a_node_whose_pods_find_no_place_goes_all_the_same() -> None:
    """A pod that is larger than every type."""
    size = {"cpu": 64, "memory": "256Gi", "pods": 58}
    nodes = [broken("a", allocatable=size), *sound(4)]

    assert [(["a"], 0)] == going(a_cluster([free_pool()], nodes, [on("a", "x", cpu=60)]))


@pytest.mark.parametrize(
    ("bad", "good", "is_held"), [(1, 0, False), (1, 1, False), (2, 1, True), (2, 4, False), (3, 7, True), (2, 8, False)]
)
def test_more_than_a_fifth_is_too_much(bad: int, good: int, is_held: bool) -> None:
    """Rounded up: one of a small pool may always go."""
    held = a_cluster([free_pool()], [*(broken(f"b{at}") for at in range(bad)), *sound(good)])

    assert ((TooManyBroken("pool", bad, bad + good),) if is_held else ()) == too_many(held)
    assert is_held == (not going(held))


READY, BAD_CARD = ("Ready", "False"), Condition(GPUS_HEALTHY, FALSE, "GPUBroken")


def not_ready(name: str) -> tuple[Any, Any]:
    """A node of which a condition is bad that is tolerated still."""
    return ours(name, is_ready=False, conditions=(Condition(*READY),))


def test_what_is_tolerated_still_counts_as_broken() -> None:
    """Else the first of many nodes that break within minutes would go. Not where it is no reason for a repair."""
    (_, claim) = bad = ours("bad")
    others = [not_ready("late"), (bad[0], claim.with_condition(BAD_CARD))]
    for other in others:
        held = a_cluster([free_pool()], [broken("a"), other, *sound(3)])
        assert () == too_many(held)
        assert (TooManyBroken("pool", 2, 5),) == too_many(held, frozenset({READY}))
        assert [] == list(propose(World(held, MARKET, monitored=frozenset({READY})), may_go(held)))
    assert () == too_many(
        a_cluster([free_pool()], [broken("a"), others[0], *sound(3)]), frozenset({("Ready", "Unknown")})
    )


def test_where_no_node_would_be_repaired_nothing_is_said() -> None:
    """Many nodes that are not ready for a moment keep no repair."""
    held = a_cluster([free_pool()], [not_ready("a"), not_ready("b"), *sound(3)])

    assert () == too_many(held, frozenset({READY}))
