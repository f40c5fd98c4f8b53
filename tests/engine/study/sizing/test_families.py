"""What the same pods would cost on each family."""

from kerf.engine.study.sizing.families import cost_today, costs_by_family
from kerf.engine.world import World
from kerf.model.constraints import Taint
from kerf.model.instancetypes import SPOT
from kerf.testing.builders import a_market, a_pool, a_snapshot, an_instance_type, cards
from tests.engine.worlds import some

M5 = an_instance_type("m5.xlarge", cpu=4, price="0.192", family="m5")
C5 = an_instance_type("c5.xlarge", cpu=4, memory="8Gi", price="0.17", family="c5")
C5_2X = an_instance_type("c5.2xlarge", cpu=8, memory="16Gi", price="0.34", family="c5")
G5 = an_instance_type("g5.xlarge", cpu=4, devices=cards(1), price="1.006", family="g5")
MARKET = a_market(M5, C5, C5_2X, G5)


def test_families_are_sorted_by_price_and_those_that_leave_pods_are_last() -> None:
    """The pods do not run on a family without cards, and what the pool names says nothing of other families."""
    pods = [*some(4, cpu=2), *some(1, "gpu", gpu=1)]
    snapshot = a_snapshot(pools=[a_pool(types=["m5.xlarge"])], pods=pods)

    found = costs_by_family(pods, World(snapshot, MARKET))

    assert [("g5", 2, 0), ("c5", 1, 1), ("m5", 2, 1)] == [(each.family, each.nodes, each.left) for each in found]
    assert [False, False, True] == [each.is_allowed for each in found]


def test_the_bound_is_the_familys_own() -> None:
    """Four pods of 2 cpu: two nodes of four cpus, or one of eight for the same price."""
    pods = some(4, cpu=2)
    [c5, m5, g5] = costs_by_family(pods, World(a_snapshot(pools=[a_pool()], pods=pods), MARKET))

    assert (340_000, 340_000) == (c5.price_micro, c5.bound_micro)
    assert ("m5", {"m5.xlarge": 2}, 384_000, 384_000, (2, 2)) == (
        (m5.family, m5.types, m5.price_micro, m5.bound_micro, m5.pods_a_node)
    )
    assert 2_012_000 == g5.price_micro


def test_what_a_pool_asks_beside_types_still_counts() -> None:
    """Spot only, a taint that the pods do not tolerate, a limit that does not."""
    pods = some(1, cpu=2)

    assert () == costs_by_family(pods, World(a_snapshot(pools=[a_pool(capacity_types=[SPOT])]), MARKET))
    assert () == costs_by_family(pods, World(a_snapshot(pools=[a_pool(taints=(Taint("team"),))]), MARKET))
    assert 3 == len(costs_by_family(pods, World(a_snapshot(pools=[a_pool(limits={"cpu": 1})]), MARKET)))


def test_without_a_pool_every_type_counts_and_today_there_is_none() -> None:
    """On demand."""
    pods = some(1, cpu=2)

    assert ["c5", "m5", "g5"] == [each.family for each in costs_by_family(pods, World(a_snapshot(), MARKET))]
    assert None is cost_today(pods, World(a_snapshot(), MARKET))


def test_today_is_what_the_pools_allow() -> None:
    """Across their families."""
    pods = some(3, cpu=4)
    today = cost_today(pods, World(a_snapshot(pools=[a_pool(types=["m5.xlarge"])]), MARKET))

    assert today is not None
    assert ({"m5.xlarge": 3}, 576_000, True) == (today.types, today.price_micro, today.is_allowed)
