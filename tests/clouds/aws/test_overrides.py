"""Which offerings a launch names: filters, order, bounds."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kerf.clouds.aws.overrides import MOST_TYPES, overrides_of
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, RESERVATION_TYPE, ZONE_ID, Requirement, Requirements
from kerf.model.instancetypes import MICRO, ON_DEMAND, RESERVED, SPOT, InstanceType, Offering
from kerf.model.nodeclaim import PLANNED_OFFERING, NodeClaim
from kerf.testing.builders import an_instance_type, cards
from tests.clouds.market import MARKET, claim

GPUS = ("g5.xlarge", "g5.12xlarge")


def planned(wanted: NodeClaim, offering: str) -> NodeClaim:
    """The claim with the offering of its plan."""
    return replace(wanted, annotations={PLANNED_OFFERING: offering})


def sold(name: str, *offerings: Offering, gpus: int = 0) -> InstanceType:
    """A type with these offerings."""
    kinds = tuple(sorted({each.capacity_type for each in offerings}))
    return an_instance_type(name, cpu=4, devices=cards(gpus), capacity_types=kinds, offerings=offerings)


def named(wanted: NodeClaim, *types: InstanceType, factor: float = 1.5) -> list[str]:
    """The overrides in words, best first."""
    return [str(each.key) for each in overrides_of(wanted, types, factor).chosen]


def test_spot_goes_before_on_demand_and_only_one_capacity_type_is_asked() -> None:
    """Karpenter's order at launch; each zone is an override of its own."""
    assert ["g5.xlarge spot in us-east-1a", "g5.xlarge spot in us-east-1b"] == named(claim(types=GPUS), *MARKET)


def test_what_costs_more_than_the_factor_is_not_named() -> None:
    """EC2 would take it when it has more of it; g5.12xlarge costs four times as much."""
    wanted = claim(types=GPUS, capacity_types=(SPOT,))

    assert 2 == len(named(wanted, *MARKET, factor=3.9))
    assert 4 == len(named(wanted, *MARKET, factor=4))


def test_the_planned_offering_is_first_and_sets_the_bound() -> None:
    """A plan knows NodeOverlays, so the order is not that of the prices here, and EC2 is told to go by it."""
    wanted = planned(claim(types=GPUS, capacity_types=(SPOT,)), "g5.12xlarge/us-east-1b/spot")
    overrides = overrides_of(wanted, MARKET)

    assert "g5.12xlarge spot in us-east-1b" == str(overrides.chosen[0].key)
    assert (4, True, [0, 1, 2, 3]) == (
        len(overrides.chosen), overrides.by_priority, [each.priority for each in overrides.chosen]
    )  # fmt: skip
    assert not overrides_of(replace(wanted, annotations={}), MARKET).by_priority


def test_a_plain_type_is_taken_for_pods_that_ask_for_none_else() -> None:
    """GPUs fall out where a type without is left, as in Karpenter; unless a GPU was planned."""
    cheap_gpu = sold("g9.large", Offering("us-east-1a", ON_DEMAND, 1 * MICRO), gpus=1)
    plain = sold("m9.large", Offering("us-east-1a", ON_DEMAND, 2 * MICRO))

    assert ["m9.large on-demand in us-east-1a"] == named(claim(), cheap_gpu, plain)
    wanted = planned(claim(), "g9.large/us-east-1a/on-demand")
    assert "g9.large on-demand in us-east-1a" == named(wanted, cheap_gpu, plain)[0]


def test_spot_over_the_on_demand_price_falls_out() -> None:
    """The lowest on-demand price that the claim allows is the bound, unless no spot is left by it."""
    offers = [Offering("us-east-1a", ON_DEMAND, 10), Offering("us-east-1a", SPOT, 12), Offering("us-east-1b", SPOT, 9)]

    assert ["m9.large spot in us-east-1b"] == named(claim(), sold("m9.large", *offers))
    assert ["m9.large spot in us-east-1a"] == named(claim(), sold("m9.large", *offers[:2]))
    spot_only = claim(capacity_types=(SPOT,))
    assert ["us-east-1b", "us-east-1a"] == [each[-10:] for each in named(spot_only, sold("m9.large", *offers))]


def test_one_reservation_is_asked_for() -> None:
    """Its template names it: the planned one, else the one with most left."""
    first, second = (Offering("us-east-1a", RESERVED, 0, reservation=f"cr-{n}", most=n) for n in (1, 2))
    kind = sold("p5.48xlarge", first, second, gpus=8)

    assert ["p5.48xlarge reserved by cr-2 in us-east-1a"] == named(claim(), kind)
    wanted = planned(claim(), "p5.48xlarge/us-east-1a/reserved/cr-1")
    assert ["p5.48xlarge reserved by cr-1 in us-east-1a"] == named(wanted, kind)


def test_at_most_sixty_types_are_named() -> None:
    """The cheapest, each in all its zones."""
    zones = [f"us-east-1{letter}" for letter in "abcdef"]
    types = [sold(f"m{n}.large", *(Offering(zone, ON_DEMAND, 1000 + n) for zone in zones)) for n in range(70)]
    overrides = overrides_of(claim(), types)

    assert (MOST_TYPES, 6 * MOST_TYPES) == (len({e.kind.name for e in overrides.chosen}), len(overrides.chosen))
    assert "m0.large" == overrides.chosen[0].kind.name


def choosing(key: str, values: Sequence[str], min_values: int, capacity_type: str = ON_DEMAND) -> NodeClaim:
    """A claim that must keep the choice of so many values."""
    asked = Requirement.of(key, "In", values, min_values), Requirement.of(CAPACITY_TYPE, "In", [capacity_type])
    return replace(claim(), requirements=Requirements(asked))


@pytest.mark.parametrize("least", range(1, 7))
def test_min_values_are_kept_over_the_price_factor(least: int) -> None:
    """Each type costs twice the one before it: as many are named as the claim asks for, and no more of the dear."""
    kinds = [sold(f"m{size}.large", Offering("us-east-1a", ON_DEMAND, 2**size)) for size in range(6)]
    wanted = choosing(INSTANCE_TYPE, [each.name for each in kinds], least)

    assert [f"m{size}.large on-demand in us-east-1a" for size in range(least)] == named(wanted, *reversed(kinds))


def test_a_type_beyond_the_factor_is_named_where_it_is_cheapest() -> None:
    """Its other zones would cost more, and the choice of types is there without them. All have the value once."""
    zones = ("us-east-1a", "us-east-1b")
    kinds = [
        sold("m1.large", *(Offering(zone, SPOT, 10) for zone in zones)),
        sold("m2.large", *(Offering(zone, SPOT, 100 + at) for at, zone in enumerate(zones))),
        sold("m3.large", *(Offering(zone, SPOT, 200) for zone in zones)),
    ]
    wanted = choosing(INSTANCE_TYPE, ["m1.large", "m2.large", "m3.large"], 2, SPOT)

    first = [f"m1.large spot in {zone}" for zone in zones]
    assert [*first, "m2.large spot in us-east-1a"] == named(wanted, *kinds)


def test_min_values_go_before_filters() -> None:
    """Exotic types, and spot over the on-demand price, stay where the choice would be too small without them."""
    zone, names = "us-east-1a", ["g9.large", "m9.large"]
    kinds = [sold("g9.large", Offering(zone, ON_DEMAND, 10), gpus=1), sold("m9.large", Offering(zone, ON_DEMAND, 10))]
    assert 1 == len(named(choosing(INSTANCE_TYPE, names, 1), *kinds))
    assert 2 == len(named(choosing(INSTANCE_TYPE, names, 2), *kinds))

    spot = [
        sold("m8.large", Offering(zone, SPOT, 9), Offering(zone, ON_DEMAND, 10)),
        sold("m9.large", Offering(zone, SPOT, 11), Offering(zone, ON_DEMAND, 12)),
    ]
    asked = Requirement.of(INSTANCE_TYPE, "In", ["m8.large", "m9.large"], 2)
    either = replace(claim(), requirements=Requirements([asked]))
    assert ["m8.large", "m9.large"] == [each.partition(" ")[0] for each in named(either, *spot)]


def test_what_is_sold_is_named_where_it_is_less_than_min_values() -> None:
    """A launch is no place to refuse: the claim was planned with the choice."""
    kinds = [sold(f"m{size}.large", Offering("us-east-1a", ON_DEMAND, 4**size)) for size in range(3)]

    assert 3 == len(named(choosing(INSTANCE_TYPE, ["m0.large", "m1.large", "m2.large", "m9.large"], 4), *kinds))


def test_sixty_types_have_the_values_that_are_asked_for() -> None:
    """The cheapest of each family are among them, though seventy of the first are cheaper."""
    many = [sold(f"m1.{n}", Offering("us-east-1a", ON_DEMAND, 1000 + n)) for n in range(70)]
    other = sold("c1.0", Offering("us-east-1a", ON_DEMAND, 1400))
    family = "karpenter.k8s.aws/instance-family"
    kinds = [
        replace(each, requirements=each.requirements.intersect(Requirements.of_labels({family: each.name[:2]})))
        for each in (*many, other)
    ]
    found = {each.partition(" ")[0] for each in named(choosing(family, ["m1", "c1"], 2), *kinds)}

    assert {"c1.0", *(f"m1.{n}" for n in range(59))} == found


def asking(key: str, *values: str, operator: str = "In") -> NodeClaim:
    """A claim that requires only this."""
    return replace(claim(), requirements=Requirements([Requirement.of(key, operator, values)]))


def test_a_claim_gets_the_zone_whose_id_it_requires() -> None:
    """And nothing where no subnet is in such a zone."""
    offers = [
        Offering(f"us-east-1{zone}", ON_DEMAND, 10, zone_id=f"use1-az{number}") for zone, number in (("a", 6), ("b", 1))
    ]
    kind = sold("m9.large", *offers)

    assert ["m9.large on-demand in us-east-1b"] == named(asking(ZONE_ID, "use1-az1"), kind)
    assert [] == named(asking(ZONE_ID, "use1-az9"), kind)


def test_a_claim_gets_the_sort_of_reservation_that_it_requires() -> None:
    """What is bought otherwise is of no reservation: a claim that wants one does not get it."""
    held = {name: ((RESERVATION_TYPE, name),) for name in ("default", "capacity-block")}
    zone = "us-east-1a"
    default, block = (
        Offering(zone, RESERVED, 0, reservation=f"cr-{name}", most=1, reservation_labels=held[name]) for name in held
    )
    kind = sold("p5.48xlarge", default, block, Offering(zone, ON_DEMAND, 10), gpus=8)

    for name in held:
        found = [f"p5.48xlarge reserved by cr-{name} in us-east-1a"]
        assert found == named(asking(RESERVATION_TYPE, name), kind)
    assert [] == named(asking(RESERVATION_TYPE, "other"), kind)
    free = ["p5.48xlarge on-demand in us-east-1a"]
    assert free == named(asking(RESERVATION_TYPE, operator="DoesNotExist"), kind)


@pytest.mark.parametrize("wanted", [claim(types=("x1.large",)), claim(zones=("eu-west-1a",))])
def test_nothing_is_named_where_nothing_is_allowed(wanted: NodeClaim) -> None:
    """The caller says so on the claim."""
    assert [] == named(wanted, *MARKET)
