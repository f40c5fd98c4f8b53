"""Which prices moves are judged by, where some have changed within a day."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.disruption.causes import Alternative, Lacks
from kerf.engine.disruption.lasting import node_price, saved_micro
from kerf.engine.disruption.repacking import propose
from kerf.engine.world import World
from kerf.model.instancetypes import OfferingKey
from kerf.model.market import PriceHistory
from kerf.model.plan import Launch
from kerf.testing.builders import NOON_S
from tests.engine.disruption.clusters import a_cluster, free_pool, may_go
from tests.engine.disruption.test_repacking import LARGE, node, other, serving

HOUR_S, DAY_S = 3_600, 86_400
BIG, SMALL = (OfferingKey(name, "us-east-1a", "on-demand") for name in ("m5.4xlarge", "m5.xlarge"))
BIG_MICRO, SMALL_MICRO = 768_000, 192_000
CLUSTER = a_cluster([free_pool()], [node("big", "m5.4xlarge", 16)], [serving("big", "a", 3)])


def changed(
    offering: OfferingKey, now_micro: int, before_micro: int, ago_s: float, *, changes: int = 1
) -> PriceHistory:
    """A price that has changed so long ago; until then it was the same for a day."""
    prices = sorted((now_micro, before_micro))
    return PriceHistory(offering, now_micro, before_micro, before_micro, DAY_S, changes, NOON_S - ago_s, *prices)


def moves(*histories: PriceHistory) -> bool:
    """Whether a node of four times the size that its pod needs makes way."""
    return next(propose(World(CLUSTER, replace(LARGE, price_histories=histories)), may_go(CLUSTER)), None) is not None


def test_a_price_that_has_risen_counts_once_it_has_cost_what_a_move_costs() -> None:
    """From 0.10 to 0.768 an hour: a quarter of an hour of 0.768 is 0.192, and that is lost in 1,035 s."""
    assert moves()
    assert not moves(changed(BIG, BIG_MICRO, 100_000, 1_034))
    assert moves(changed(BIG, BIG_MICRO, 100_000, 1_035))


@pytest.mark.parametrize(("changes", "after_s"), [(1, 1_035), (2, 4 * 1_035)])
def test_each_further_change_within_a_day_makes_that_four_times_as_long(changes: int, after_s: float) -> None:
    """As long as the mean of the day does not say so itself."""
    at = changed(BIG, BIG_MICRO, 100_000, after_s - 20, changes=changes)

    assert not moves(at)
    assert moves(replace(at, changed_s=NOON_S - after_s - 10))


def test_what_is_to_be_bought_counts_for_what_it_costs_over_time() -> None:
    """A type that fell just now from five times its price is not run after; one that has risen is."""
    assert not moves(changed(SMALL, SMALL_MICRO, 5 * SMALL_MICRO, 60))
    assert moves(changed(SMALL, SMALL_MICRO, SMALL_MICRO // 2, 60))


def test_a_step_that_saves_by_a_changed_price_alone_waits_until_it_has_saved_what_it_costs() -> None:
    """A node of 0.768 that cost 0.19 makes way for one of 0.192: 15 minutes of that are saved in 5; by then the price
    itself has not cost 15 minutes of 0.768. Against one of 0.70 it takes as long as
    15 minutes of that, and half an hour of the 0.51 that would be lost if it cost 0.19 again."""
    (big,) = CLUSTER.nodes
    (launch,) = next(propose(World(CLUSTER, LARGE), may_go(CLUSTER))).launches
    alike = replace(launch, price_micro=700_000)

    def saves(launch: Launch, ago_s: float) -> bool:
        histories = (changed(BIG, BIG_MICRO, 190_000, ago_s),)
        return saved_micro([big], [launch], World(CLUSTER, replace(LARGE, price_histories=histories))) > 0

    assert not saves(launch, 1_195)
    assert saves(launch, 1_196)
    assert not saves(alike, 22_764)
    assert saves(alike, 22_765)


def test_after_a_day_without_change_the_price_of_now_counts() -> None:
    """However often it had changed."""
    assert moves(changed(BIG, BIG_MICRO, 1, DAY_S, changes=50))


def test_it_is_said_that_prices_keep_a_node() -> None:
    """As what stands against what could be bought."""
    found = other(CLUSTER, replace(LARGE, price_histories=(changed(BIG, BIG_MICRO, 100_000, 60),)))

    assert isinstance(found, Alternative)
    assert Lacks.PRICE == found.lacks


@given(
    st.integers(1, 10**9), st.integers(1, 10**9), st.integers(1, 10**9), st.integers(0, DAY_S), st.integers(1, 2_000)
)
def test_a_node_counts_for_no_more_than_it_costs_now_and_no_step_for_more_than_it_saves_now(
    before_micro: int, mean_micro: int, price_micro: int, ago_s: int, changes: int
) -> None:
    """Whatever the history says, for a price of the pool that is another than the cloud's, too."""
    low, *_, high = sorted((before_micro, mean_micro, price_micro))
    history = PriceHistory(BIG, price_micro, before_micro, mean_micro, DAY_S, changes, NOON_S - ago_s, low, high)
    world = World(CLUSTER, replace(LARGE, price_histories=(history,)))
    (big,) = world.snapshot.nodes

    assert 0 <= node_price(big, world) <= BIG_MICRO
    (launch,) = next(propose(World(CLUSTER, LARGE), may_go(CLUSTER))).launches
    for bought in (launch, replace(launch, offering=BIG)):
        assert saved_micro([big], [bought], world) <= BIG_MICRO - launch.price_micro
