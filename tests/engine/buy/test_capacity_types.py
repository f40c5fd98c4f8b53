"""Spot and on demand: the cheaper is bought, unless the pool or the pods allow the dearer alone."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.clouds.launching import choose
from kerf.controllers.actuator import claim_of
from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.instancetypes import ON_DEMAND, RESERVED, SPOT, InstanceType, NodeOverlay, Offering, OfferingKey
from kerf.model.nodepool import NodePool
from kerf.model.plan import Plan
from kerf.model.policies import COST, FIRST_FIT
from kerf.testing.builders import NOON_S, a_market, a_pod, a_pool, a_snapshot, an_instance_type, cards

ZONES = ("a", "b", "c")
DEAR_SPOT = {("a", SPOT): 800, ("a", ON_DEMAND): 300}


def sold_at(prices: dict[tuple[str, str], int], name: str = "g5.xlarge") -> InstanceType:
    """A type with one card at these prices, by zone and capacity type."""
    kind = an_instance_type(name, devices=cards(1), zones=ZONES, capacity_types=(SPOT, ON_DEMAND, RESERVED))
    offerings = tuple(Offering(zone, sort, price) for (zone, sort), price in prices.items())
    return replace(kind, offerings=offerings)


def bought(pool: NodePool, *types: InstanceType, strategy: str = COST, **asked: str) -> Plan:
    """What is bought for one pod that asks for a GPU, and these labels."""
    pod = a_pod(gpu=1, selector={key: value for key, value in asked.items() if value})
    return plan(a_snapshot(pools=[pool], pods=[pod]), a_market(*types), Options(strategy=strategy))


@pytest.mark.parametrize("strategy", [COST, FIRST_FIT])
def test_the_cheaper_capacity_type_is_bought(strategy: str) -> None:
    """Karpenter takes spot wherever it is allowed, whatever it costs."""
    pool = a_pool(capacity_types=(SPOT, ON_DEMAND))

    dear = bought(pool, sold_at(DEAR_SPOT), strategy=strategy).launches[0]
    cheap = bought(pool, sold_at({("a", SPOT): 200, ("a", ON_DEMAND): 300}), strategy=strategy).launches[0]
    equal = bought(pool, sold_at({("a", SPOT): 300, ("a", ON_DEMAND): 300}), strategy=strategy).launches[0]

    assert [(ON_DEMAND, 300), (SPOT, 200), (SPOT, 300)] == [
        (each.offering.capacity_type, each.price_micro) for each in (dear, cheap, equal)
    ]


def test_a_node_overlay_may_make_on_demand_the_cheaper_one() -> None:
    """A savings plan, told as a price adjustment of on demand."""
    on_demand = Requirements([Requirement.of(CAPACITY_TYPE, "In", (ON_DEMAND,))])
    overlay = NodeOverlay("savings-plan", on_demand, price_adjustment="-68%")
    kind = sold_at({("a", SPOT): 400, ("a", ON_DEMAND): 1_000})
    snapshot = a_snapshot(pools=[a_pool(capacity_types=())], pods=[a_pod(gpu=1)], overlays=(overlay,))

    made = plan(snapshot, a_market(kind), Options())

    assert [(ON_DEMAND, 320)] == [(each.offering.capacity_type, each.price_micro) for each in made.launches]
    assert "on demand" not in made.launches[0].why


def test_a_pool_or_a_pod_that_allows_spot_alone_is_named_where_that_costs_more() -> None:
    """Nothing is said where spot is the cheaper one, nor of an on-demand node."""
    pool, both = a_pool(capacity_types=(SPOT,)), a_pool(capacity_types=())
    by_pool = bought(pool, sold_at(DEAR_SPOT)).launches[0]
    by_pod = bought(both, sold_at(DEAR_SPOT), **{CAPACITY_TYPE: SPOT}).launches[0]
    cheap = bought(pool, sold_at({("a", SPOT): 200, ("a", ON_DEMAND): 300})).launches[0]
    elsewhere = bought(pool, sold_at({("a", SPOT): 200, ("b", ON_DEMAND): 100}), **{ZONE: "a"}).launches[0]

    assert by_pool.why.endswith("; on demand it costs 0.0003 USD/h, which NodePool pool does not allow")
    assert by_pod.why.endswith("; on demand it costs 0.0003 USD/h, which its pods do not allow")
    assert [SPOT, SPOT] == [each.offering.capacity_type for each in (by_pool, by_pod)]
    assert ["", ""] == [each.why.partition("; on demand")[1] for each in (cheap, elsewhere)]


def test_the_claim_asks_for_the_capacity_type_that_was_planned() -> None:
    """A cloud that tries spot first finds none that it may take."""
    kind = sold_at(DEAR_SPOT)
    claim = claim_of(bought(a_pool(capacity_types=()), kind).launches[0], a_pool(), NOON_S)

    assert {ON_DEMAND} == claim.requirements[CAPACITY_TYPE].values
    assert ON_DEMAND == choose([kind], claim, lambda key: True).offering.capacity_type


def test_a_claim_names_no_zone_in_which_it_would_be_bought_otherwise() -> None:
    """Spot that is sold out in one zone is not taken in another for more than on demand costs."""
    prices = {("a", SPOT): 200, ("b", SPOT): 800, ("c", SPOT): 250, ("b", ON_DEMAND): 300}
    kind = sold_at(prices)
    claim = claim_of(bought(a_pool(capacity_types=()), kind).launches[0], a_pool(), NOON_S)

    def without_the_first(key: OfferingKey) -> bool:
        return key.zone != "a"

    assert {"a", "c"} == claim.requirements[ZONE].values
    assert "c" == choose([kind], claim, without_the_first).offering.zone
    plain = bought(a_pool(capacity_types=()), sold_at({**prices, ("b", ON_DEMAND): 900})).launches[0]
    assert ZONE not in plain.requirements


def test_types_that_are_cheaper_on_spot_still_count_for_min_values() -> None:
    """The planned one is the cheapest, on demand; the others of the claim are such that are sold so as well."""
    asked = Requirement.of(INSTANCE_TYPE, "Exists", min_values=2)
    pool = a_pool(capacity_types=(), requirements=Requirements([asked]))
    other = sold_at({("a", SPOT): 350, ("a", ON_DEMAND): 900}, "g6.xlarge")

    made = bought(pool, sold_at(DEAR_SPOT), other)

    assert ["g5.xlarge"] == [each.offering.instance_type for each in made.launches]
    assert {"g5.xlarge", "g6.xlarge"} == made.launches[0].requirements[INSTANCE_TYPE].values


PRICES = st.dictionaries(
    st.tuples(st.sampled_from(ZONES), st.sampled_from((SPOT, ON_DEMAND))), st.integers(1, 9), min_size=1
)
CAPACITY_TYPES = st.lists(st.sampled_from((SPOT, ON_DEMAND)), unique=True)


@settings(max_examples=150, deadline=None)
@given(st.lists(PRICES, min_size=1, max_size=3), CAPACITY_TYPES, st.sampled_from(("", *ZONES)), st.booleans())
def test_what_is_bought_is_the_cheapest_that_pool_and_pod_allow(
    prices: list[dict[tuple[str, str], int]], capacity_types: list[str], zone: str, asks_spot: bool
) -> None:
    """Against all offerings, one by one; and the bound is no higher."""
    pool, types = a_pool(capacity_types=capacity_types), [sold_at(each, f"g{n}") for n, each in enumerate(prices)]
    allowed = [
        price
        for each in prices
        for (where, sort), price in each.items()
        if zone in ("", where) and sort in (capacity_types or (SPOT, ON_DEMAND)) and not (asks_spot and sort != SPOT)
    ]

    made = bought(pool, *types, **{ZONE: zone, CAPACITY_TYPE: SPOT if asks_spot else ""})

    assert ([min(allowed)] if allowed else []) == [each.price_micro for each in made.launches]
    bound = made.cost.bound_micro
    assert bound is None or not allowed or bound <= min(allowed)
