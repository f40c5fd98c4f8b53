"""What the controllers remember of a market, and for how long."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pytest

from kerf.clouds.fake import FakeCloud
from kerf.model.instancetypes import InstanceType, OfferingKey
from kerf.model.market import Market, Withheld
from kerf.model.nodepool import NodePool
from kerf.model.quantities import MEMORY, Resources
from tests.clouds.market import MARKET
from tests.controllers.cluster import Cluster, pool
from tests.sim.world import START_S

G5 = OfferingKey("g5.xlarge", "us-east-1a", "on-demand")


def market(cluster: Cluster) -> Market:
    """The market as the next plan would see it."""
    return cluster.done(cluster.book.market(cluster.read()))


def now(cluster: Cluster, act: Callable[[], object]) -> Any:
    """What that answers on the loop."""
    return cluster.at(cluster.now_s, act)


def withheld(cluster: Cluster) -> Withheld:
    """What is left alone just now."""
    held: Withheld = now(cluster, cluster.book.withheld)
    return held


def sold_out_until(cluster: Cluster) -> list[float]:
    """When each sold-out offering is tried again, in seconds since the start."""
    return [held.until_s - START_S for held in market(cluster).sold_out]


def test_a_sold_out_offering_rests_three_minutes_doubling_to_thirty(cluster: Cluster) -> None:
    """Each refusal at the very end of the rest before it doubles the rest."""
    rests = []
    for _ in range(6):
        began = cluster.now_s
        now(cluster, lambda: cluster.book.mark_sold_out({G5: "insufficient capacity"}))
        (until_s,) = sold_out_until(cluster)
        rests.append((until_s - began) / 60)
        cluster.at(until_s)

    assert [3, 6, 12, 24, 30, 30] == rests
    assert [] == sold_out_until(cluster)


def test_pods_whose_move_saved_nothing_stay_an_hour_doubling_to_four(cluster: Cluster) -> None:
    """Every pod of the workload; each failure within a day after such a rest doubles it."""
    web, rests = ("default", "Deployment", "web"), []
    for _ in range(4):
        began = cluster.now_s
        now(cluster, lambda: cluster.book.let_stay([web]))
        (held,) = market(cluster).move_pauses
        assert (held,) == withheld(cluster).move_pauses
        rests.append((held.until_s - START_S - began) / 3_600)
        assert {web} == market(cluster).staying_workloads
        cluster.at(held.until_s - START_S)

    assert [1, 2, 4, 4] == rests
    assert ((), frozenset()) == (market(cluster).move_pauses, market(cluster).staying_workloads)


def test_a_refusal_while_it_rests_changes_nothing(cluster: Cluster) -> None:
    """Five launches that fail together are one refusal."""
    now(cluster, lambda: cluster.book.mark_sold_out({G5: "insufficient capacity"}))
    cluster.at(100)
    now(cluster, lambda: cluster.book.mark_sold_out({G5: "insufficient capacity"}))

    assert [180] == sold_out_until(cluster)


@pytest.mark.parametrize(("after_s", "rest_s"), [(180 + 1799, 360), (180 + 1800, 180)])
def test_a_refusal_long_after_the_last_starts_over(cluster: Cluster, after_s: float, rest_s: float) -> None:
    """Half an hour without a refusal forgets the earlier ones."""
    now(cluster, lambda: cluster.book.mark_sold_out({G5: "insufficient capacity"}))
    cluster.at(after_s)
    now(cluster, lambda: cluster.book.mark_sold_out({G5: "insufficient capacity"}))

    assert [after_s + rest_s] == sold_out_until(cluster)


def test_a_type_backs_off_in_its_pool_only(cluster: Cluster) -> None:
    """5 minutes, doubling to 30, for each pool and type by itself."""
    now(cluster, lambda: cluster.book.back_off("gpu", "g5.xlarge", "it never registered"))
    cluster.at(300)
    now(cluster, lambda: cluster.book.back_off("gpu", "g5.xlarge", "it never registered"))
    now(cluster, lambda: cluster.book.back_off("other", "g5.xlarge", "it lacks a card"))

    held = [(b.node_pool, b.until_s - START_S, b.said) for b in market(cluster).back_offs]
    assert [("gpu", 900, "it never registered"), ("other", 600, "it lacks a card")] == held


def test_an_unchanged_market_is_the_same_object(cluster: Cluster) -> None:
    """So that what was derived from it can be used again; a price and a stock-out, and its end, make another."""
    cluster.put(pool())
    seen = [market(cluster), market(cluster)]
    cluster.cloud.set_price(9_000_000, "g5.xlarge")
    seen += [market(cluster), market(cluster)]
    now(cluster, lambda: cluster.book.mark_sold_out({G5: "insufficient capacity"}))
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
    now(cluster, lambda: cluster.book.back_off("gpu", "g5.xlarge", "it never registered"))
    cluster.at(cluster.now_s + 301)


def test_after_a_failure_one_node_of_a_type_is_launched_at_a_time(cluster: Cluster) -> None:
    """F9: while that one is on its way the type backs off, and the reason says why."""
    failed_and_rested(cluster)
    assert ({("gpu", "g5.xlarge")}, ()) == (set(market(cluster).probed), market(cluster).back_offs)

    cluster.claimed(reached=())
    (held,) = market(cluster).back_offs
    assert (set(), True, "it never registered") == (set(market(cluster).probed), held.is_tried, held.said)


def test_a_dump_gets_what_the_last_decision_left_alone(cluster: Cluster) -> None:
    """A type that may be launched one at a time, then the one that is on its way; nothing of it is lost in a replay."""
    failed_and_rested(cluster)
    assert frozenset() == withheld(cluster).probed
    assert {("gpu", "g5.xlarge")} == market(cluster).probed == withheld(cluster).probed

    cluster.claimed(reached=())
    assert market(cluster).back_offs == withheld(cluster).back_offs
    assert [True] == [each.is_tried for each in withheld(cluster).back_offs]


def test_a_node_that_comes_up_ends_what_failed_before(cluster: Cluster) -> None:
    """Its type is launched as any other again."""
    failed_and_rested(cluster)
    now(cluster, lambda: cluster.book.succeeded("gpu", "g5.xlarge"))

    assert (frozenset(), ()) == (market(cluster).probed, market(cluster).back_offs)


class TwoClasses(FakeCloud):
    """A cloud whose NodeClass `small` leaves pods half of a machine's memory."""

    async def instance_types(self, pool: NodePool) -> Sequence[InstanceType]:
        """By the pool's NodeClass; the same values until a price changes."""
        whole = tuple(await super().instance_types(pool))
        return _halved(whole) if pool.node_class.name == "small" else whole


@lru_cache(maxsize=1)
def _halved(types: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
    return tuple(replace(kind, overhead=Resources({MEMORY: kind.capacity[MEMORY] // 2})) for kind in types)


def test_pools_buy_what_their_own_node_class_sells(cluster: Cluster) -> None:
    """Two NodeClasses with one name of a type: neither's machine stands for the other's, and nothing is made anew."""
    cluster.use(TwoClasses(MARKET, cluster.clock))
    small = pool("small")
    small["spec"]["template"]["spec"]["nodeClassRef"]["name"] = "small"
    cluster.put(pool())
    cluster.put(small)

    found, snapshot = market(cluster), cluster.read()
    sold = {held.name: found.find("g5.xlarge", held.node_class) for held in snapshot.node_pools}
    memory = {name: kind.allocatable[MEMORY] for name, kind in sold.items() if kind is not None}
    assert memory["gpu"] == 2 * memory["small"]
    assert found.find("g5.xlarge") == sold["gpu"]
    assert found is market(cluster)
