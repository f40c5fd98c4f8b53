"""minValues of NodePools: how many types a claim names at least, and what that does to loads, limits and pools."""

from itertools import permutations
from random import Random
from typing import Any

import pytest

from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.model.causes import MinValuesUnmet, Name
from kerf.model.constraints import INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.instancetypes import RESERVED, SPOT, InstanceType, Offering
from kerf.model.nodepool import NodePool
from kerf.model.plan import Plan
from kerf.model.policies import BEST_EFFORT, COST, FIRST_FIT, STRICT
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type, cards
from tests.engine.worlds import only_unplaced, planned, some

FAMILY = "karpenter.k8s.aws/instance-family"
TYPES = [
    an_instance_type(
        f"{family}.{cpu}", cpu=cpu, memory=f"{4 * cpu}Gi", price=f"{cpu * factor / 10}", labels={FAMILY: family}
    )
    for family, factor in (("a", 1), ("b", 2), ("c", 3))
    for cpu in (2, 4, 8)
]
"""Three families of three sizes; the later family costs more."""


def asking(key: str, least: int, name: str = "pool", **given: Any) -> NodePool:
    """A pool that asks for so many values of a label."""
    asked = Requirement.of(key, "Exists", min_values=least)
    return a_pool(name, requirements=Requirements([asked]), **given)


def relaxed(pods: list[Any], pools: list[NodePool], types: list[InstanceType]) -> Plan:
    """A plan that may relax minValues."""
    return plan(a_snapshot(pools=pools, pods=pods), a_market(*types), Options(min_values=BEST_EFFORT))


def values(decided: Plan, key: str) -> list[int]:
    """How many values of the label the types of each launch have."""
    known = {kind.name: kind for kind in TYPES}
    named = [(each.offering.instance_type, *each.alternatives) for each in decided.launches]
    return [len({value for name in names for value in known[name].requirements[key].values}) for names in named]


@pytest.mark.parametrize("strategy", [COST, FIRST_FIT])
@pytest.mark.parametrize("key, least", [(INSTANCE_TYPE, 5), (FAMILY, 3)])
def test_a_claim_names_types_of_so_many_values(strategy: str, key: str, least: int) -> None:
    """Types, or families, of which each holds the pod."""
    decided = planned([a_pod(cpu=1)], [asking(key, least)], TYPES, strategy)

    assert least <= values(decided, key)[0]


@pytest.mark.parametrize("strategy", [COST, FIRST_FIT])
def test_a_load_gets_as_small_as_enough_types_hold(strategy: str) -> None:
    """Seven types hold 2 cpu: no node has more, though one of 8 cpu would hold all."""
    decided = planned(some(4, cpu=2), [asking(INSTANCE_TYPE, 7)], TYPES, strategy)

    assert [1, 1, 1, 1] == [len(each.pods) for each in decided.launches]
    assert all(7 <= number for number in values(decided, INSTANCE_TYPE))


def test_a_load_is_no_smaller_than_it_must_be() -> None:
    """Six types hold 4 cpu."""
    decided = planned(some(4, cpu=2), [asking(INSTANCE_TYPE, 6)], TYPES)

    assert [2, 2] == [len(each.pods) for each in decided.launches]


@pytest.mark.parametrize("strategy", [COST, FIRST_FIT])
def test_a_pod_that_too_few_types_hold_waits(strategy: str) -> None:
    """Three types hold 8 cpu, the pool asks for four."""
    left = only_unplaced(planned([a_pod(cpu=8)], [asking(INSTANCE_TYPE, 4)], TYPES, strategy))

    assert MinValuesUnmet(Name("pool"), Name(INSTANCE_TYPE), 4, 3) == left.misfits[0].cause
    assert "minValues requirement is not met for label node.kubernetes.io/instance-type" in left.reason
    assert left.hint.startswith("lower minValues of node.kubernetes.io/instance-type in NodePool pool to 3")
    assert left.patch is not None


def test_a_lower_pool_takes_what_strict_min_values_refuse() -> None:
    """It asks for nothing."""
    pools = [asking(INSTANCE_TYPE, 4, "heavy", weight=10), a_pool("light")]

    launch = planned([a_pod(cpu=8)], pools, TYPES).launches[0]

    assert ("light", False) == (launch.node_pool, launch.is_relaxed)


def test_best_effort_relaxes_before_a_lower_pool_is_asked() -> None:
    """The claim asks for as many as there are, and says so."""
    pools = [asking(INSTANCE_TYPE, 4, "heavy", weight=10), a_pool("light")]

    launch = relaxed([a_pod(cpu=8)], pools, TYPES).launches[0]

    assert ("heavy", True, 3) == (launch.node_pool, launch.is_relaxed, launch.requirements[INSTANCE_TYPE].min_values)
    assert "it names fewer types than minValues of the pool ask for" in launch.why


def test_best_effort_relaxes_for_no_pod_that_has_a_place_otherwise() -> None:
    """A small pod beside a large one."""
    launches = relaxed([a_pod("s", cpu=1), a_pod("l", cpu=8)], [asking(INSTANCE_TYPE, 4)], TYPES).launches

    assert {"default/s": False, "default/l": True} == {each.pods[0].pod: each.is_relaxed for each in launches}


def test_what_a_claim_must_name_counts_against_limits() -> None:
    """The cloud may take any: with 4 cpu left the types of 8 cpu are no choice, so seven are too many."""
    pool = asking(INSTANCE_TYPE, 7, limits={"cpu": 4})

    left = only_unplaced(planned([a_pod(cpu=1)], [pool], TYPES))

    assert MinValuesUnmet(Name("pool"), Name(INSTANCE_TYPE), 7, 6) == left.misfits[0].cause


def test_values_that_the_pool_does_not_allow_do_not_count() -> None:
    """Types of two zones, of which the pool allows one."""
    kinds = [an_instance_type("m5.xlarge", zones=("us-east-1a", "us-east-1b"))]
    asked = Requirement.of(ZONE, "In", ("us-east-1a", "us-east-1c"), min_values=2)
    pool = a_pool(requirements=Requirements([asked]))

    assert (
        MinValuesUnmet(Name("pool"), Name(ZONE), 2, 1)
        == only_unplaced(planned([a_pod()], [pool], kinds)).misfits[0].cause
    )


def test_a_claim_asks_for_no_more_values_than_it_names() -> None:
    """The API refuses one that does; the pod chose one of the two zones."""
    kinds = [an_instance_type("m5.xlarge", zones=("us-east-1a", "us-east-1b"))]
    asked = Requirement.of(ZONE, "In", ("us-east-1a", "us-east-1b"), min_values=2)

    launch = planned(
        [a_pod(selector={ZONE: "us-east-1a"})], [a_pool(requirements=Requirements([asked]))], kinds
    ).launches[0]

    assert (frozenset({"us-east-1a"}), 1) == (launch.requirements[ZONE].values, launch.requirements[ZONE].min_values)


def test_a_reservation_needs_no_choice() -> None:
    """Its instance is there, whatever the cloud has in stock."""
    sold = Offering("us-east-1a", RESERVED, 0, reservation="r", most=1), Offering("us-east-1a", SPOT, 1)
    kind = an_instance_type("m5.xlarge", capacity_types=(RESERVED, SPOT), offerings=sold)

    launch = planned([a_pod()], [asking(INSTANCE_TYPE, 2, capacity_types=(RESERVED, SPOT))], [kind]).launches[0]

    assert "r" == launch.offering.reservation
    assert launch.requirements[INSTANCE_TYPE].min_values is None


MIXED = [
    an_instance_type("cpu-s", price="1"),
    an_instance_type("gpu-a", price="2.9", devices=cards(1)),
    an_instance_type("gpu-b", price="3.2", devices=cards(1)),
    an_instance_type("gpu-c", price="6", devices=cards(2)),
]
"""All of one size, with no card, one, or two."""


@pytest.mark.parametrize("strategy", [COST, FIRST_FIT])
@pytest.mark.parametrize("count", [1, 15])
@pytest.mark.parametrize("least", [1, 2, 3, 4])
def test_pods_without_gpus_get_the_cheapest_type_whatever_cards_its_stand_ins_have(
    least: int, count: int, strategy: str
) -> None:
    """A type with cards holds them as well, so none is bought to leave a choice: it is named beside the cheapest."""
    decided = planned(some(count, cpu=3), [asking(INSTANCE_TYPE, least)], MIXED, strategy)

    assert {"cpu-s"} == {launch.offering.instance_type for launch in decided.launches}
    assert all(least <= 1 + len(launch.alternatives) for launch in decided.launches)


@pytest.mark.parametrize("least, named", [(2, ["gpu-b"]), (3, ["gpu-b", "gpu-c"])])
def test_types_with_as_many_cards_are_named_first(least: int, named: list[str]) -> None:
    """One with more cards, cheaper or not, only where the others are too few."""
    cheap = an_instance_type("gpu-c", price="3", devices=cards(2))

    launch = planned([a_pod(gpu=1)], [asking(INSTANCE_TYPE, least)], [*MIXED[:3], cheap]).launches[0]

    assert "gpu-a" == launch.offering.instance_type
    assert named == sorted(launch.alternatives)


@pytest.mark.parametrize("asked", [{}, {"gpu": 1}])
def test_a_stricter_value_is_never_cheaper(asked: dict[str, Any]) -> None:
    """Of all types in any order of their prices: each value leaves fewer loads to choose from."""
    for prices in permutations(("1", "2.9", "3.2", "6")):
        kinds = [
            an_instance_type(kind.name, devices=kind.devices, price=price)
            for kind, price in zip(MIXED, prices, strict=True)
        ]
        decided = [planned(some(3, cpu=1, **asked), [asking(INSTANCE_TYPE, least)], kinds) for least in (1, 2, 3)]
        costs = [sum(launch.price_micro for launch in each.launches) for each in decided]

        assert [0, 0, 0] == [len(each.unplaced) for each in decided]
        assert sorted(costs) == costs


@pytest.mark.parametrize("policy", [STRICT, BEST_EFFORT])
@pytest.mark.parametrize("seed", range(6))
def test_types_that_only_a_claim_names_count_for_first_fit_too(seed: int, policy: str) -> None:
    """The small type is worth nothing beside the large, cheap one, but claims name it: no plan costs more."""
    types = [
        an_instance_type("small", cpu=4, memory="16Gi", pods=3, price="2.90"),
        an_instance_type("large", cpu=8, memory="16Gi", pods=8, price="2.13"),
        an_instance_type("tiny", cpu=2, memory="4Gi", pods=8, price="3.58"),
    ]
    random = Random(seed)
    pods = [
        pod
        for number in range(20)
        for pod in some(
            random.randint(1, 5),
            f"g{number}",
            cpu=random.choice(("500m", "1", "2", "3", "4", "6")),
            memory=random.choice(("512Mi", "1Gi", "4Gi", "6Gi")),
        )
    ]
    snapshot, market = a_snapshot(pools=[asking(INSTANCE_TYPE, 2)], pods=pods), a_market(*types)

    made = (plan(snapshot, market, Options(strategy, min_values=policy)) for strategy in (COST, FIRST_FIT))
    cost, first_fit = ((len(each.unplaced), each.cost.after_micro) for each in made)

    assert cost <= first_fit
