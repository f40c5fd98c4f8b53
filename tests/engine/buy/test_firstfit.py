"""`--strategy first-fit`: Karpenter's order and choice, with the costs it is known for."""

from dataclasses import replace
from decimal import Decimal

import pytest

from kerf.model.constraints import ZONE
from kerf.model.instancetypes import MICRO, ON_DEMAND, InstanceType, Offering
from kerf.model.nodepool import NodePool
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.model.policies import FIRST_FIT
from kerf.model.quantities import COST_PER_HOUR
from kerf.testing.builders import a_pod, a_pool, an_instance_type, cards
from tests.engine.place.test_topology import spread
from tests.engine.worlds import G5, G5_2X, G5_12X, M5, a_hami_pool, bought, per_hour, planned, refused, some

WEB = {"app": "web"}


def as_karpenter(pods: list[Pod], pools: list[NodePool], types: list[InstanceType]) -> Plan:
    """The plan by first fit."""
    return planned(pods, pools, types, FIRST_FIT)


def test_two_one_gpu_pods_become_one_machine_of_four_cards() -> None:
    """A pod joins the open node as long as some type holds both: 5.672 instead of 2.012."""
    decided = as_karpenter(some(2, gpu=1), [a_pool()], [G5, G5_12X])

    assert [("g5.12xlarge", 2)] == bought(decided)
    assert 5_672_000 == per_hour(decided)


def test_five_one_gpu_pods_cost_6_678() -> None:
    """Four on the large machine, the fifth on a small one."""
    assert 6_678_000 == per_hour(as_karpenter(some(5, gpu=1), [a_pool()], [G5, G5_12X]))


def test_limits_are_charged_with_the_largest_type() -> None:
    """cpu 10 with types of 4 and 8 cores: the first node counts 8, so that there is no second."""
    decided = as_karpenter(some(5, gpu=1), [a_pool(limits={"cpu": 10})], [G5, G5_2X])

    assert [("g5.xlarge", 1)] == bought(decided)
    assert 1_006_000 == per_hour(decided)


@pytest.mark.parametrize("most", range(4))
def test_a_limit_of_nodes_holds_inside_a_batch(most: int) -> None:
    """Karpenter counts them before the batch alone, and would buy three: what a limit says must hold for any plan."""
    decided = as_karpenter(some(3, cpu=4), [a_pool(limits={"nodes": most})], [M5])

    assert (most, 3 - most) == (len(decided.launches), len(refused(decided)))
    assert all(f"limit nodes {most} of NodePool pool" in each.reason for each in decided.unplaced)


def in_zones(name: str = "t", **prices: str) -> InstanceType:
    """A type with one card and a price for each zone."""
    return replace(
        an_instance_type(name, cpu=16, devices=cards(1), zones=tuple(prices)),
        offerings=tuple(Offering(zone, ON_DEMAND, int(Decimal(price) * MICRO)) for zone, price in prices.items()),
    )


@pytest.mark.parametrize("most", range(0, 30, 2))
@pytest.mark.parametrize("spreads", [True, False])
def test_a_limit_of_cost_holds_in_whichever_zone_a_node_is(most: int, spreads: bool) -> None:
    """Seven pods over zones of three prices: what pods ask for decides what a node costs, and so what is counted."""
    pods = some(7, gpu=1, labels=WEB, **(spread() if spreads else {}))

    decided = as_karpenter(pods, [a_pool(limits={COST_PER_HOUR: most})], [in_zones(za="5", zb="5.2", zc="2")])

    assert per_hour(decided) <= most * MICRO
    assert 7 == sum(len(launch.pods) for launch in decided.launches) + len(refused(decided))
    assert all("limit kerf.dev/cost-per-hour" in each.reason for each in decided.unplaced)


def test_a_pod_that_would_lift_the_price_of_its_node_above_the_limit_waits() -> None:
    """An open node is in the cheap zone until a pod comes that asks for the other."""
    kinds = [in_zones("t", za="1"), in_zones("u", zb="3")]
    pods = [a_pod("a", cpu=2), a_pod("b", cpu=1, selector={ZONE: "zb"})]

    for most, launches in ((2, [("t", 1)]), (3, [("u", 2)])):
        assert launches == bought(as_karpenter(pods, [a_pool(limits={COST_PER_HOUR: most})], kinds))


def test_two_pools_each_keep_to_their_own_limit_of_cost() -> None:
    """What one has no money for is asked of the next by weight."""
    pools = [a_pool("a", limits={COST_PER_HOUR: 2}, weight=9), a_pool("b", limits={COST_PER_HOUR: 1})]

    decided = as_karpenter(some(5, gpu=1), pools, [in_zones(za="1")])

    assert ["a", "a", "b"] == sorted(launch.node_pool for launch in decided.launches)
    assert 2 == len(refused(decided))


def test_large_pods_come_first() -> None:
    """By cpu, then memory, whatever the queue says: the small pod fills the second node."""
    pods = [a_pod("a-small", cpu=1), a_pod("b-large", cpu=3, memory="1Gi"), a_pod("c-large", cpu=3, memory="2Gi")]

    decided = as_karpenter(pods, [a_pool()], [M5])

    assert [["default/a-small", "default/c-large"], ["default/b-large"]] == [
        sorted(p.pod for p in launch.pods) for launch in decided.launches
    ]


def test_a_pod_goes_to_the_open_node_with_fewest_pods() -> None:
    """Not to the first that has room."""
    pods = [*some(2, "large", cpu=3), *some(2, "small", cpu="500m")]

    assert [("m5.xlarge", 2), ("m5.xlarge", 2)] == bought(as_karpenter(pods, [a_pool()], [M5]))


def test_the_first_pool_by_weight_is_opened() -> None:
    """Equal weights: the later name, as Karpenter sorts; the price does not matter."""
    heavy = a_pool("heavy", types=["g5.2xlarge"], weight=5)
    pools = [a_pool("a", types=["g5.xlarge"]), heavy, a_pool("z", types=["g5.12xlarge"])]

    assert [("g5.2xlarge", 1)] == bought(as_karpenter(some(1, gpu=1), pools, [G5, G5_2X, G5_12X]))
    assert [("g5.12xlarge", 1)] == bought(as_karpenter(some(1, gpu=1), [pools[0], pools[2]], [G5, G5_12X]))


def test_an_open_node_keeps_the_zone_of_its_pods() -> None:
    """A pod of another zone opens another node."""
    kind = an_instance_type(zones=("us-east-1a", "us-east-1b"))
    pods = [a_pod(zone[-1], cpu=1, selector={ZONE: zone}) for zone in ("us-east-1a", "us-east-1b")]

    assert 2 == len(as_karpenter(pods, [a_pool()], [kind]).launches)


def test_first_fit_places_slices_card_by_card() -> None:
    """The comparison is fair: it knows cards, only its order and choice are Karpenter's."""
    decided = as_karpenter(some(5, gpu=1, gpumem=12000), [a_hami_pool()], [G5_12X])

    assert [("g5.12xlarge", 1), ("g5.12xlarge", 4)] == bought(decided)


def test_first_fit_names_no_alternatives() -> None:
    """What it would send along is not part of the comparison."""
    assert {()} == {launch.alternatives for launch in as_karpenter(some(2, gpu=1), [a_pool()], [G5, G5_2X]).launches}
