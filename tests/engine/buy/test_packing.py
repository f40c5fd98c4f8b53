"""The cheapest nodes for groups of equal pods."""

from dataclasses import replace

import pytest

from kerf.engine.buy.dominance import undominated
from kerf.engine.buy.filling import Filler
from kerf.engine.place.shapes import group
from kerf.model.constraints import CAPACITY_TYPE, ZONE, Requirement, Requirements
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.instancetypes import ON_DEMAND, SPOT, Offering
from kerf.model.pods import Pod
from kerf.model.policies import FIRST_FIT
from kerf.testing.builders import a_pod, a_pool, an_instance_type, cards
from tests.engine.worlds import (
    G5,
    G5_2X,
    G5_12X,
    M5,
    a_hami_pool,
    bought,
    only_unplaced,
    per_hour,
    planned,
    port_spec,
    refused,
    some,
    supply_of,
)


def test_two_one_gpu_pods_are_two_small_machines() -> None:
    """2 x g5.xlarge for 2.012, not a machine of four cards for 5.672."""
    decided = planned(some(2, gpu=1), [a_pool()], [G5, G5_12X])

    assert [("g5.xlarge", 1), ("g5.xlarge", 1)] == bought(decided)
    assert 2_012_000 == per_hour(decided)


def test_four_cards_are_bought_where_they_cost_less_than_four_machines() -> None:
    """The value of a load for its price decides, not the price alone."""
    cheap = an_instance_type("quad", cpu=48, memory="192Gi", devices=cards(4), price="3.00")

    assert [("g5.xlarge", 1), ("quad", 4)] == bought(planned(some(5, gpu=1), [a_pool()], [G5, cheap]))


def test_slices_are_counted_card_by_card() -> None:
    """Five pods of 12000 MiB need five cards: two machines of four, although the sum would fit one."""
    decided = planned(some(5, gpu=1, gpumem=12000), [a_hami_pool()], [G5_12X])

    assert [("g5.12xlarge", 1), ("g5.12xlarge", 4)] == bought(decided)


def test_the_cheaper_way_to_five_cards_is_found() -> None:
    """With single-card machines allowed: five of them, 5.03."""
    assert 5_030_000 == per_hour(planned(some(5, gpu=1, gpumem=12000), [a_hami_pool()], [G5, G5_12X]))


def test_a_higher_weight_is_used_first_whatever_it_costs() -> None:
    """Pods go to the pool of weight 20 until its limit, the rest to the cheaper pool of weight 10."""
    dear = a_pool("dear", types=["g5.2xlarge"], weight=20, limits={"nodes": 2})
    cheap = a_pool("cheap", types=["g5.xlarge"], weight=10)

    decided = planned(some(5, gpu=1), [cheap, dear], [G5, G5_2X])

    assert ["dear", "dear", "cheap", "cheap", "cheap"] == [launch.node_pool for launch in decided.launches]


def test_pools_of_equal_weight_are_one_market() -> None:
    """The cheaper of two pools is used, whatever its name."""
    pools = [a_pool("z", types=["g5.xlarge"]), a_pool("a", types=["g5.2xlarge"])]

    assert ["z"] == [launch.node_pool for launch in planned(some(1, gpu=1), pools, [G5, G5_2X]).launches]


@pytest.mark.parametrize("key, values", [(ZONE, ("us-east-1a", "us-east-1b")), (CAPACITY_TYPE, (SPOT, ON_DEMAND))])
def test_pods_of_different_zones_share_no_node(key: str, values: tuple[str, str]) -> None:
    """A node is in one zone and of one capacity type."""
    kind = an_instance_type(zones=("us-east-1a", "us-east-1b"), capacity_types=(SPOT, ON_DEMAND))
    pods = [a_pod(value, cpu=1, selector={key: value}) for value in values]

    decided = planned(pods, [a_pool(capacity_types=())], [kind])

    assert 2 == len(decided.launches)
    assert set(values) == {
        getattr(launch.offering, key.rpartition("/")[2].replace("-", "_")) for launch in decided.launches
    }


def test_a_pod_without_a_zone_joins_one_with() -> None:
    """Whoever does not care goes where another must."""
    pods = [a_pod("a", cpu=1, selector={ZONE: "us-east-1b"}), a_pod("b", cpu=1)]
    kind = an_instance_type(zones=("us-east-1a", "us-east-1b"))

    decided = planned(pods, [a_pool()], [kind])

    assert [("m5.xlarge", 2)] == bought(decided)
    assert "us-east-1b" == decided.launches[0].offering.zone


def test_the_price_of_the_pods_own_zone_decides() -> None:
    """A type that is cheaper elsewhere is not bought where it is dearer than another."""
    zones = [("us-east-1a", 1_000_000), ("us-east-1b", 3_000_000)]
    uneven = replace(
        an_instance_type("a.xlarge", zones=("us-east-1a", "us-east-1b")),
        offerings=tuple(Offering(zone, ON_DEMAND, price) for zone, price in zones),
    )
    even = an_instance_type("b.xlarge", zones=("us-east-1a", "us-east-1b"), price="2.00")

    decided = planned([a_pod(cpu=1, selector={ZONE: "us-east-1b"})], [a_pool()], [uneven, even])

    assert [("b.xlarge", 1)] == bought(decided)


def test_the_fullest_nodes_are_bought_where_their_number_is_limited() -> None:
    """One node for four pods: the machine of four cards, although single ones are cheaper a pod."""
    decided = planned(some(4, gpu=1), [a_pool(limits={"nodes": 1})], [G5, G5_12X])

    assert [("g5.12xlarge", 4)] == bought(decided)


def test_a_limit_on_cpu_buys_many_small_machines() -> None:
    """cpu 10: two g5.xlarge place two pods, one g5.2xlarge only one."""
    decided = planned(some(5, gpu=1), [a_pool(limits={"cpu": 10})], [G5, G5_2X])

    assert [("g5.xlarge", 1), ("g5.xlarge", 1)] == bought(decided)
    assert 3 == len(refused(decided))


def test_the_last_node_is_the_cheapest_that_holds_its_pods() -> None:
    """Three pods of 3 cores on machines of 8: two together, the third on a machine of 4."""
    large = an_instance_type("large", cpu=8, memory="32Gi", price="0.30")

    assert [("large", 2), ("m5.xlarge", 1)] == bought(planned(some(3, cpu=3), [a_pool()], [M5, large]))


def test_small_pods_fill_the_gaps_of_large_ones() -> None:
    """Different shapes share a node."""
    pods = [*some(2, "large", cpu=3), *some(2, "small", cpu=1)]

    assert [("m5.xlarge", 2), ("m5.xlarge", 2)] == bought(planned(pods, [a_pool()], [M5]))


def test_pods_without_devices_ride_on_nodes_with() -> None:
    """A GPU node's spare cores are used before another node is bought."""
    pods = [a_pod("gpu", gpu=1, cpu=1), a_pod("web", cpu=2)]

    assert [("g5.xlarge", 2)] == bought(planned(pods, [a_pool()], [M5, G5]))


def test_a_host_port_needs_a_node_each() -> None:
    """Equal pods with a host port never share a node."""
    spec = port_spec(80)
    pods: list[Pod] = [a_pod(f"p-{n}", spec=spec) for n in range(3)]

    assert [("m5.xlarge", 1)] * 3 == bought(planned(pods, [a_pool()], [M5]))


def test_a_type_that_another_beats_is_not_looked_at() -> None:
    """Dearer and no larger in anything that is asked: out; larger in it: in."""
    same = an_instance_type("m5d.xlarge", cpu=4, memory="16Gi", price="0.3")
    large = an_instance_type("m5.2xlarge", cpu=8, memory="32Gi", price="0.384")
    offered = supply_of(a_pool(), types=[M5, same, large])

    kept = undominated(Filler(group([a_pod(cpu=1)])), offered.available, [1])

    assert ["m5.xlarge", "m5.2xlarge"] == [offered.kind.name for offered in kept]


def test_fewer_cards_charged_keep_a_type_in_the_race() -> None:
    """Where the pool limits GPUs, a dearer machine without them is not beaten by a cheaper one with."""
    cheap_gpu = an_instance_type("gpu.xlarge", cpu=4, memory="16Gi", devices=cards(1), price="0.1")

    decided = planned([a_pod(cpu=1)], [a_pool(limits={NVIDIA_GPU: 0})], [M5, cheap_gpu])

    assert [("m5.xlarge", 1)] == bought(decided)


def test_many_pods_cost_no_more_than_one_by_one() -> None:
    """Loads repeat: 1000 equal pods are 250 full nodes."""
    decided = planned(some(1000, cpu=1), [a_pool()], [M5])

    assert {("m5.xlarge", 4)} == set(bought(decided))
    assert 250 == len(decided.launches)


@pytest.mark.parametrize("count", [19, 20, 40])
def test_pods_with_two_slices_of_which_no_two_are_alike_share_cards(count: int) -> None:
    """Each takes a quarter of two cards: eight share a node of four. A pod more makes it no other search."""
    pods = [a_pod(f"p{at}", gpu=2, gpumem=5000, cores=25, cpu=f"{100 + at}m") for at in range(count)]

    assert -(-count // 8) * 5_672_000 == per_hour(planned(pods, [a_hami_pool()], [G5_12X]))


def test_a_type_alone_counts_as_well_where_prices_find_no_good_mix() -> None:
    """Of many kinds of pods with one pod each what is found by prices may be far from the bound."""
    pods = [a_pod(f"p{at}", gpu=1, gpumem=1000 + 37 * at, cores=0, cpu=f"{100 + 13 * at}m") for at in range(120)]
    types = [G5, G5_2X, G5_12X]
    each = (per_hour(planned(pods, [a_hami_pool()], [kind])) for kind in types)

    assert per_hour(planned(pods, [a_hami_pool()], types)) <= min(each)


def test_a_pod_without_a_target_is_left_with_its_stage() -> None:
    """What fits no type is left, the others are served."""
    pods = [a_pod("huge", cpu=99), a_pod("small", cpu=1)]

    decided = planned(pods, [a_pool()], [M5])

    assert [("m5.xlarge", 1)] == bought(decided)
    assert "default/huge" == only_unplaced(decided).pod


def test_an_affinity_on_a_cloud_label_chooses_among_types() -> None:
    """A bound on the number of GPUs is a requirement like any other."""
    types = [
        an_instance_type(
            f"g.{n}", devices=cards(n), price=str(n), labels={"karpenter.k8s.aws/instance-gpu-count": str(n)}
        )
        for n in (1, 4)
    ]
    more_than_one = Requirements([Requirement.of("karpenter.k8s.aws/instance-gpu-count", "Gt", ("1",))])

    assert [("g.4", 1)] == bought(planned([a_pod(gpu=1, affinity=(more_than_one,))], [a_pool()], types))


def test_nodes_by_prices_that_are_nearly_the_cheapest_cost_no_more_than_first_fit() -> None:
    """Few pods are compared also where what prices choose is within 1.5 % of the bound."""
    pods = [
        *some(4, "g0", cpu=4, memory="512Mi", gpu=1),
        *some(1, "g1", cpu=4, memory="512Mi", gpu=1),
        *some(3, "g2", cpu=4, memory="4Gi", gpu=1),
        *some(1, "g3", cpu=3, memory="4Gi", gpu=1),
        *some(3, "g4", cpu=1, memory="512Mi", gpu=2),
        *some(5, "g5", cpu=4, memory="6Gi", gpu=1),
        *some(3, "g6", cpu=4, memory="512Mi"),
    ]
    one = an_instance_type("one", cpu=8, memory="32Gi", devices=cards(1), pods=3, price="0.8415")
    two = an_instance_type("two", cpu=16, memory="128Gi", devices=cards(2), pods=3, price="1.6087")
    large = an_instance_type("large", cpu=32, memory="128Gi", devices=cards(2), pods=110, price="2.67")
    none = an_instance_type("none", cpu=4, memory="16Gi", price="0.2354")
    types = [one, two, large, none]

    assert 16_087_000 == per_hour(planned(pods, [a_pool()], types, FIRST_FIT))
    assert 16_087_000 == per_hour(planned(pods, [a_pool()], types))
