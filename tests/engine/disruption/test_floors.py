"""A floor counts the nodes that are there after a step: what has another in its place goes, and nothing else does."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.disruption.causes import Drifts, Due, FloorCostsLess, NoneInItsPlace
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.first import first_command
from kerf.engine.disruption.keeping import Fates
from kerf.engine.disruption.standing import standing
from kerf.engine.explain.disruption import explained, keeping_text
from kerf.engine.world import World
from kerf.model.bounds import MAX_LAUNCHES, MIN_NODES
from kerf.model.causes import Name
from kerf.model.market import Market
from kerf.model.nodepool import WHEN_EMPTY, Budget, NodePool
from kerf.model.plan import Cost, Plan
from kerf.model.policies import COST
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import a_market, resources
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, may_go, ours, pool_with
from tests.engine.disruption.smallfleets import Size, SmallFleet, cost_micro, settled
from tests.engine.disruption.test_drift import drifted
from tests.engine.disruption.test_repacking import LARGE, node, serving
from tests.engine.disruption.test_repair import broken
from tests.engine.worlds import M5, M5_2X


def floored(nodes: int, **given: Any) -> NodePool:
    """A pool that keeps so many nodes, and whose budgets let all go."""
    return replace(free_pool(**given), own_annotations={MIN_NODES: str(nodes)})


def first(snapshot: ClusterSnapshot, market: Market = MARKET) -> Command | None:
    """What is done first."""
    return first_command(World(snapshot, market), may_go(snapshot), tuple)[0]


def waits(command: Command | None) -> list[tuple[str, str, int]]:
    """The nodes that go, why, and for how many others each waits."""
    assert command is not None
    return [(each.node, each.reason, len(each.replaced_by)) for each in command.deletions]


def bought(command: Command | None) -> list[tuple[str, int, tuple[str, ...]]]:
    """The types that are bought, for how many pods, in whose place."""
    assert command is not None
    return [(each.offering.instance_type, len(each.pods), each.replaces) for each in command.launches]


@pytest.mark.parametrize(("mark", "reason"), [(broken, "Unhealthy"), (drifted, "Drifted")])
@pytest.mark.parametrize("pods", [(), (serving("a", "x", 3),)], ids=["empty", "in use"])
def test_a_node_of_the_floor_that_has_to_go_waits_for_another(mark: Any, reason: str, pods: Sequence[Any]) -> None:
    """For one that takes its pods; without any for the cheapest one."""
    command = first(a_cluster([floored(1)], [mark("a", instance_type="m5.2xlarge")], pods))

    assert [("a", reason, 1)] == waits(command)
    assert [("m5.xlarge", len(pods), ("a",))] == bought(command)
    assert command is not None
    assert ["m5.xlarge"] == [each.offering.instance_type for each in explained(command).launches]


@pytest.mark.parametrize(("mark", "reason"), [(broken, "Unhealthy"), (drifted, "Drifted")])
def test_a_node_above_the_floor_that_has_to_go_waits_for_none(mark: Any, reason: str) -> None:
    """Its pod has room on the other node."""
    nodes, pods = [mark("a"), ours("b")], [serving("a", "x", 1), serving("b", "y", 1)]

    assert [("a", reason, 0)] == waits(first(a_cluster([floored(1)], nodes, pods)))
    assert [("a", reason, 1)] == waits(first(a_cluster([floored(2)], nodes, pods)))


def test_nodes_that_drifted_go_together_down_to_the_floor_and_the_others_wait() -> None:
    """Three empty ones and a floor of one: two go at once, and the last once another is up."""
    held = a_cluster([floored(1)], [drifted(name) for name in "abc"])
    assert [("a", "Drifted", 0), ("b", "Drifted", 0)] == waits(first(held))

    last = a_cluster([floored(1)], [drifted("c")])
    assert [("c", "Drifted", 1)] == waits(first(last))


def test_a_drifted_node_of_the_floor_stays_where_its_pool_can_have_no_other() -> None:
    """And says so. A broken one goes all the same: it serves no more, and another can come then."""
    full = replace(floored(1), limits=resources(nodes=1))
    held, ill = (a_cluster([full], [mark("a")], [serving("a", "x", 1)]) for mark in (drifted, broken))
    fates = Fates(World(held, MARKET), Plan(COST, Cost("USD", 0, 0)))
    why = fates.keeping(held.nodes[0])

    assert first(held) is None
    assert isinstance(why, Due)
    assert isinstance(why.why, Drifts)
    assert isinstance(why.holds, NoneInItsPlace)
    assert (Name("pool"), 1) == (why.holds.pool, why.holds.nodes)
    said = "NodePool pool keeps 1 node (kerf.dev/min-nodes) and can have no other node in its place before it goes"
    assert said in keeping_text(why)
    assert [("a", "Unhealthy", 0)] == waits(first(ill))


@pytest.mark.parametrize("pods", [(), (serving("big", "x", 3),)], ids=["empty", "in use"])
def test_a_node_of_the_floor_goes_for_a_cheaper_one(pods: Sequence[Any]) -> None:
    """Sixteen cores for three, or for none: four do."""
    command = first(a_cluster([floored(1)], [node("big", "m5.4xlarge", 16)], pods), LARGE)

    assert [("big", "Underutilized", 1)] == waits(command)
    assert [("m5.xlarge", len(pods), ("big",))] == bought(command)
    assert first(a_cluster([floored(1)], [node("small", "m5.xlarge", 4)], []), LARGE) is None
    assert first(a_cluster([floored(1, policy=WHEN_EMPTY)], [node("big", "m5.4xlarge", 16)], pods), LARGE) is None


def test_the_words_for_an_empty_node_of_the_floor_that_costs_less_as_another() -> None:
    """No pod is named: none moves."""
    command = first(a_cluster([floored(1)], [node("big", "m5.4xlarge", 16)]), LARGE)

    assert command is not None
    assert FloorCostsLess(1, 1, 576_000) == command.deletions[0].cause
    plan = explained(command)
    assert "1 empty node of the floor costs less as 1 new node, saves 0.576 USD/h" == plan.deletions[0].why
    assert "comes in the place of node big, which then goes" == plan.launches[0].why


def test_a_floor_that_cannot_be_read_keeps_all_nodes() -> None:
    """Also from being replaced: how many there should be is not known."""
    pool = replace(free_pool(), own_annotations={MIN_NODES: "two"})

    for made in (drifted("a"), broken("a"), node("a", "m5.4xlarge", 16)):
        assert first(a_cluster([pool], [made], [serving("a", "x", 3)]), LARGE) is None


def test_of_a_pool_that_can_spare_one_node_the_expensive_one_goes() -> None:
    """Its pod has room on the empty one, which costs less and would have gone by itself."""
    nodes = [node("big", "m5.4xlarge", 16), node("idle", "m5.xlarge", 4)]
    command = first(a_cluster([floored(1)], nodes, [serving("big", "x", 1)]), LARGE)

    assert [("big", "Underutilized", 0)] == waits(command)
    assert [] == bought(command)


def test_each_node_that_the_floor_keeps_waits_for_a_new_one_of_its_own() -> None:
    """Two nodes of sixteen cores with a core each, and a floor of two: none goes before another is up."""
    nodes = [node(name, "m5.4xlarge", 16) for name in "ab"]
    command = first(a_cluster([floored(2)], nodes, [serving(name, f"p-{name}", 1) for name in "ab"]), LARGE)

    assert command is not None
    assert ["a", "b"] == [each.node for each in command.deletions if each.replaced_by]
    assert 2 == len({name for each in command.deletions for name in each.replaced_by}) == len(command.launches)


def test_a_pace_holds_back_what_a_floor_needs_as_it_does_any_launch() -> None:
    """One launch a minute: of two drifted nodes one goes."""
    pool = replace(floored(2), own_annotations={MIN_NODES: "2", MAX_LAUNCHES: "1"})
    command = first(a_cluster([pool], [drifted("a"), drifted("b")]))

    assert [("a", "Drifted", 1)] == waits(command)


def test_what_a_floor_wants_is_asked_again_before_it_is_done() -> None:
    """A node has gone since: the one that waits for no other stays now."""
    nodes = [node("big", "m5.4xlarge", 16), node("idle", "m5.xlarge", 4), node("full", "m5.xlarge", 4)]
    pods = [serving("big", "x", 1), serving("full", "y", 4)]
    held = a_cluster([floored(2)], nodes, pods)
    command = first(held, LARGE)
    gone = a_cluster([floored(2)], nodes[:2], pods[:1])

    assert command is not None
    assert [("big", "Underutilized", 0)] == waits(command)
    assert command is standing(command, World(held, LARGE), held)
    assert standing(command, World(held, LARGE), gone) is None


def test_the_next_step_is_one_towards_the_cheapest_fleet() -> None:
    """A floor of three, and nodes at 0.96, 1.56, 4.08 and 0.96: that at 1.56 is empty, and the pod of that at 4.08 has
    room elsewhere. Then two at 0.96 and another in the place of both are the cheapest that there is."""
    small, large = ("t2", Size(8_000, 32_768, 1), 960_000), ("t1", Size(32_000, 131_072, 1), 1_560_000)
    types = (("t0", Size(4_000, 16_384, 4), 4_080_000), large, small)
    card, core = Size(3_500, 2_048, 1), Size(1_000, 2_048, 0)
    fleet = SmallFleet(types, (("t2", (card,)), ("t1", ()), ("t0", (core,)), ("t2", (card,))), 3, "2")

    assert 2_880_000 == fleet.cheapest_micro() == cost_micro(settled(fleet.world))


def test_a_small_budget_takes_the_steps_of_the_best_end() -> None:
    """One node at a time: pods of two GPUs on nodes at 4.08 for one pod, and at 4.32 for two. To have one of the former
    in the place of a half empty one of the latter saves 0.24, and costs more in the end."""
    types = (("t0", Size(4_000, 16_384, 4), 4_080_000), ("t1", Size(32_000, 131_072, 4), 4_320_000))
    pod = Size(3_000, 4_000, 2)
    nodes = (("t1", (pod, pod)), ("t0", (pod,)), ("t1", (pod,)), ("t0", ()), ("t0", (pod,)), ("t0", (pod,)))
    fleet = SmallFleet(types, nodes, 0, "1")

    assert 12_960_000 == fleet.cheapest_micro() == cost_micro(settled(fleet.world))


def test_what_goes_in_turn_says_what_all_of_it_saves() -> None:
    """Of two half empty nodes of four cores and a pod for eight the first comes to a larger one, at a higher price."""
    market = a_market(M5, replace(M5_2X, offerings=tuple(replace(e, price_micro=250_000) for e in M5_2X.offerings)))
    nodes = [node(name, "m5.xlarge", 4) for name in "ab"]
    command = first(
        a_cluster([pool_with(Budget("1"))], nodes, [serving(name, f"p-{name}", 3) for name in "ab"]), market
    )

    assert command is not None
    assert ([("a", "Underutilized", 1)], [("m5.2xlarge", 1, ("a",))]) == (waits(command), bought(command))
    why = "1 of 2 nodes at a time, as budgets allow: 2 pods of these cost less on 1 new node"
    assert f"{why}, saves 0.134 USD/h in the end" == explained(command).deletions[0].why
    assert 384_000 < command.cost.after_micro == 442_000
