"""One command after the other, as if each were done at once: nothing is lost on the way, and it comes to an end."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings

from kerf.engine.disruption.causes import RepackedInTurn
from kerf.engine.study.steps import ConsolidationStep, fleet_bound, proven_micro, steps
from kerf.engine.supply.pricing import cluster_price
from kerf.engine.world import World
from kerf.model.nodeclaim import DO_NOT_DISRUPT
from kerf.model.nodepool import Budget
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import a_pod, resources
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, on, ours, pool_with
from tests.engine.disruption.test_drift import drifted
from tests.engine.disruption.test_ending import aged
from tests.engine.disruption.test_repacking import LARGE, fleets, node, serving


def test_a_node_is_split_and_then_nothing_is_left_to_do() -> None:
    """Two steps: an empty node goes, and a large one becomes a smaller one."""
    pods = [serving("big", "a", 3), serving("big", "b", 3)]
    world = World(a_cluster([free_pool()], [node("big", "m5.4xlarge", 16), ours("idle")], pods), LARGE)
    found = list(steps(world))

    assert [("Empty", 0), ("Underutilized", 2)] == [(each.command.deletions[0].reason, each.moved) for each in found]
    assert [(960_000, 768_000), (768_000, 384_000)] == [(each.before_micro, each.after_micro) for each in found]
    assert 288_000 <= (fleet_bound(world) or 0) <= 384_000


def test_a_cluster_without_nodes_has_no_steps_and_no_bound() -> None:
    """Nor one without pods a bound."""
    world = World(a_cluster([free_pool()], []), MARKET)

    assert ([], None) == (list(steps(world)), fleet_bound(world))


def test_nodes_with_more_room_than_their_type_is_said_to_have_prove_nothing() -> None:
    """Pods of 20 cores on a node of 16 would take two new ones."""
    pods = [serving("odd", name, 5) for name in "abcd"]
    world = World(a_cluster([free_pool()], [node("odd", "m5.4xlarge", 20)], pods), LARGE)

    assert (fleet_bound(world) or 0) > cluster_price(world.snapshot.nodes, world.supply)
    assert proven_micro([], world) is None


@given(fleets())
@settings(max_examples=40, deadline=None)
def test_each_step_makes_the_fleet_cheaper_down_to_its_bound(held: ClusterSnapshot) -> None:
    """Whatever the fleet: prices fall, they go on from each other, and no step goes below the bound. A price rises only
    where budgets let nodes go in turn, and falls below where it was once the last of them has gone."""
    world = World(held, LARGE)
    found = list(steps(world))
    bound = fleet_bound(world) or 0

    assert len(found) < 20
    in_turn = [isinstance(each.command.deletions[0].cause, RepackedInTurn) for each in found]
    assert all(each.after_micro < each.before_micro or is_part for each, is_part in zip(found, in_turn, strict=True))
    assert not found or found[-1].after_micro < found[0].before_micro
    assert [each.after_micro for each in found[:-1]] == [each.before_micro for each in found[1:]]
    if found:
        assert cluster_price(held.nodes, world.supply) == found[0].before_micro
        assert found[-1].after_micro >= bound


def test_what_came_in_the_place_of_others_is_left_alone() -> None:
    """In a cluster for a while; here for ever, as no time passes. Else the new node would go in the second step."""
    cores = {"a": [1, 3, 2], "b": [2], "c": [3], "d": [2, 3, 2, 1]}
    pods = [serving(name, f"{name}{at}", cpu) for name, each in cores.items() for at, cpu in enumerate(each)]
    nodes = [node(name, *("m5.xlarge", 4) if name == "c" else ("m5.2xlarge", 8)) for name in cores]
    found = list(steps(World(a_cluster([pool_with(Budget("1"))], nodes, pods), LARGE)))
    bought = {launch.name for step in found for launch in step.command.launches}

    assert {"launch-0"} == bought
    assert not bought & {each.node for step in found for each in step.command.deletions}


def test_each_launch_has_a_name_of_its_own_which_its_node_has_in_later_steps() -> None:
    """Also where a node of the cluster has such a name."""
    pods = [serving("one", "a", 3), serving("one", "b", 3), serving("launch-0", "c", 16)]
    nodes = [node("one", "m5.4xlarge", 16), node("launch-0", "m5.4xlarge", 16)]
    found = list(steps(World(a_cluster([free_pool()], nodes, pods), LARGE)))
    bought = [launch.name for step in found for launch in step.command.launches]
    fed = [name for step in found for each in step.command.deletions for name in each.replaced_by]

    assert ["launch-1"] == bought == fed
    assert ["launch-0", "launch-1"] == [each.name for each in found[-1].after.snapshot.nodes]


def done(found: Sequence[ConsolidationStep]) -> list[tuple[str, list[str], int, int, tuple[str, ...]]]:
    """Of each step the reason, the nodes, how many are bought, how many pods move, and which find no place."""
    return [
        (
            step.command.deletions[0].reason,
            [each.node for each in step.command.deletions],
            len(step.command.launches),
            step.moved,
            step.homeless,
        )
        for step in found
    ]


def test_old_nodes_go_first_and_their_pods_get_what_they_need() -> None:
    """Places on nodes there are, new nodes, or none where the pool may have no more."""
    pods = [on("old", "x", cpu=3), on("old", "y", cpu=1), on("kept", "z", cpu=3)]
    nodes = [aged("old", 3), aged("kept", 1)]
    small = replace(free_pool(), limits=resources(cpu=4))

    assert [("Expired", ["old"], 1, 2, ())] == done(list(steps(World(a_cluster([free_pool()], nodes, pods), MARKET))))
    assert [("Expired", ["old"], 0, 1, ("default/x",))] == done(
        list(steps(World(a_cluster([small], nodes, pods), MARKET)))
    )


def test_a_static_pool_is_scaled_and_replaced_and_never_consolidated() -> None:
    """Its nodes are quiet, and hardly used; pods on them go where there is room."""
    pool = replace(free_pool(), replicas=3)
    nodes = [ours("a"), drifted("b"), ours("c"), drifted("d")]
    world = World(a_cluster([pool], nodes, [on("b", "x", cpu=1)]), MARKET)
    found = list(steps(world))

    assert [("ScaledDown", ["d"], 0, 0, ()), ("Drifted", ["b"], 1, 1, ())] == done(found)
    assert ["a", "c", "launch-0"] == [node.name for node in found[-1].after.snapshot.nodes]
    assert 1 == sum(len(node.pods) for node in found[-1].after.snapshot.nodes)


def test_a_node_that_has_expired_takes_no_pods_while_one_of_its_own_holds_it() -> None:
    """As in a cluster, where its claim is being deleted; it has room, and the pods stay where they are."""
    pods = [on("old", "kept", cpu=1, annotations={DO_NOT_DISRUPT: "true"}), on("used", "x", cpu=1)]
    world = World(a_cluster([free_pool()], [aged("old", 3), ours("used")], pods), MARKET)

    assert [] == list(steps(world))


def test_pods_that_wait_are_on_the_nodes_that_have_room_for_them() -> None:
    """Else a node would go that they come to. Of what is bought for others the steps say nothing."""
    nodes, running = [ours("a"), ours("b")], [on("b", "x", cpu=3)]
    waiting = [a_pod("small", cpu=2), a_pod("large", cpu=4)]
    world = World(a_cluster([free_pool()], nodes, [*running, *waiting]), MARKET)

    assert [("Empty", ["a"], 0, 0, ())] == done(list(steps(World(a_cluster([free_pool()], nodes, running), MARKET))))
    assert [] == list(steps(world))
