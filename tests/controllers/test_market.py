"""What the controllers remember of a market, and for how long."""

from itertools import pairwise

import pytest

from kerf.model.instancetypes import OfferingKey
from kerf.model.market import Market
from tests.controllers.cluster import Cluster, pool
from tests.sim.world import START_S

G5 = OfferingKey("g5.xlarge", "us-east-1a", "on-demand")


def market(cluster: Cluster) -> Market:
    """The market as the next plan would see it."""
    return cluster.done(cluster.book.market(cluster.read()))


def sold_out_until(cluster: Cluster) -> list[float]:
    """When each sold-out offering is tried again, in seconds since the start."""
    return [held.until_s - START_S for held in market(cluster).sold_out]


def test_a_sold_out_offering_rests_three_minutes_doubling_to_thirty(cluster: Cluster) -> None:
    """Each refusal at the very end of the rest before it doubles the rest."""
    rests = []
    for _ in range(6):
        began = cluster.now_s
        cluster.book.mark_sold_out({G5: "insufficient capacity"})
        (until_s,) = sold_out_until(cluster)
        rests.append((until_s - began) / 60)
        cluster.at(until_s)

    assert [3, 6, 12, 24, 30, 30] == rests
    assert [] == sold_out_until(cluster)


def test_a_refusal_while_it_rests_changes_nothing(cluster: Cluster) -> None:
    """Five launches that fail together are one refusal."""
    cluster.book.mark_sold_out({G5: "insufficient capacity"})
    cluster.at(100)
    cluster.book.mark_sold_out({G5: "insufficient capacity"})

    assert [180] == sold_out_until(cluster)


@pytest.mark.parametrize(("after_s", "rest_s"), [(180 + 1799, 360), (180 + 1800, 180)])
def test_a_refusal_long_after_the_last_starts_over(cluster: Cluster, after_s: float, rest_s: float) -> None:
    """Half an hour without a refusal forgets the earlier ones."""
    cluster.book.mark_sold_out({G5: "insufficient capacity"})
    cluster.at(after_s)
    cluster.book.mark_sold_out({G5: "insufficient capacity"})

    assert [after_s + rest_s] == sold_out_until(cluster)


def test_a_type_backs_off_in_its_pool_only(cluster: Cluster) -> None:
    """5 minutes, doubling to 30, for each pool and type by itself."""
    cluster.book.back_off("gpu", "g5.xlarge", "it never registered")
    cluster.at(300)
    cluster.book.back_off("gpu", "g5.xlarge", "it never registered")
    cluster.book.back_off("other", "g5.xlarge", "it lacks a card")

    held = [(b.node_pool, b.until_s - START_S, b.reason) for b in market(cluster).back_offs]
    assert [("gpu", 900, "it never registered"), ("other", 600, "it lacks a card")] == held


def test_an_unchanged_market_is_the_same_object(cluster: Cluster) -> None:
    """So that what was derived from it can be used again; a price and a stock-out, and its end, make another."""
    cluster.put(pool())
    seen = [market(cluster), market(cluster)]
    cluster.cloud.set_price(9_000_000, "g5.xlarge")
    seen += [market(cluster), market(cluster)]
    cluster.book.mark_sold_out({G5: "insufficient capacity"})
    seen += [market(cluster), market(cluster)]
    cluster.at(180)
    seen += [market(cluster)]

    assert [True, False, True, False, True, False] == [a is b for a, b in pairwise(seen)]


@pytest.mark.parametrize(
    ("noted", "observed"),
    [
        ('{"g5.xlarge": 22000}', {("gpu", "g5.xlarge"): 22000}),
        ('["g5.xlarge"]', {}),
        ("{", {}),
    ],
)
def test_what_cards_registered_is_read_from_the_pool(
    cluster: Cluster, noted: str, observed: dict[tuple[str, str], int]
) -> None:
    """The annotation survives a restart; one that somebody broke is ignored."""
    cluster.put(pool(annotations={"kerf.dev/observed-devices": noted}))

    assert observed == market(cluster).observed_memory_mib


def failed_and_rested(cluster: Cluster) -> None:
    """A type has failed in the pool, and its back-off is over."""
    cluster.book.back_off("gpu", "g5.xlarge", "it never registered")
    cluster.at(cluster.now_s + 301)


def test_after_a_failure_one_node_of_a_type_is_launched_at_a_time(cluster: Cluster) -> None:
    """F9: while that one is on its way the type backs off, and the reason says why."""
    failed_and_rested(cluster)
    assert ({("gpu", "g5.xlarge")}, ()) == (set(market(cluster).probed), market(cluster).back_offs)

    cluster.claimed(reached=())
    (held,) = market(cluster).back_offs
    assert (set(), "one node is tried at a time: it never registered") == (set(market(cluster).probed), held.reason)


def test_a_node_that_comes_up_ends_what_failed_before(cluster: Cluster) -> None:
    """Its type is launched as any other again."""
    failed_and_rested(cluster)
    cluster.book.succeeded("gpu", "g5.xlarge")

    assert (frozenset(), ()) == (market(cluster).probed, market(cluster).back_offs)
