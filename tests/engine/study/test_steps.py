"""One command after the other, as if each were done at once: nothing is lost on the way, and it comes to an end."""

from hypothesis import given, settings

from kerf.engine.study.steps import fleet_bound, proven_micro, steps
from kerf.engine.supply.pricing import cluster_price
from kerf.engine.world import World
from kerf.model.snapshot import ClusterSnapshot
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, ours
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
    """Whatever the fleet: prices fall, they go on from each other, and no step goes below the bound."""
    world = World(held, LARGE)
    found = list(steps(world))
    bound = fleet_bound(world) or 0

    assert len(found) < 20
    assert all(each.after_micro < each.before_micro for each in found)
    assert [each.after_micro for each in found[:-1]] == [each.before_micro for each in found[1:]]
    if found:
        assert cluster_price(held.nodes, world.supply) == found[0].before_micro
        assert found[-1].after_micro >= bound
