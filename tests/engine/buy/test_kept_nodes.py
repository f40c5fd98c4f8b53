"""Nodes that a pool keeps though no pod waits: one plan buys so many at most, and says what is left."""

import pytest

from kerf.engine.buy.floors import MOST_AT_ONCE, floor_launches
from kerf.engine.buy.limits import Ledger
from kerf.engine.explain.causes import cause_text
from kerf.engine.world import World
from kerf.model.causes import FloorUnmet, MostOfOnePlan, Name
from kerf.model.nodepool import NodePool
from kerf.model.plan import Launch
from kerf.testing.builders import a_market, a_pool, a_snapshot
from tests.engine.worlds import M5


def kept(*pools: NodePool) -> tuple[tuple[Launch, ...], tuple[FloorUnmet, ...]]:
    """What is bought for the pools, and what is not."""
    world = World(a_snapshot(pools=pools), a_market(M5))
    return floor_launches(world, Ledger.of(world), ())


@pytest.mark.parametrize("stated", [MOST_AT_ONCE + 1, 100_000])
def test_one_plan_buys_no_more_than_a_cluster_has(stated: int) -> None:
    """By `spec.replicas` and by the annotation, for each pool; the rest is said with what it waits for."""
    launches, unmet = kept(
        a_pool("a", replicas=stated),
        a_pool("b", annotations={"kerf.dev/min-nodes": str(stated)}),
        a_pool("c", replicas=2),
    )
    most = MostOfOnePlan(MOST_AT_ONCE)

    assert [MOST_AT_ONCE, MOST_AT_ONCE, 2] == [sum(each.node_pool == name for each in launches) for name in "abc"]
    assert len(launches) == len({each.name for each in launches})
    assert unmet == (
        FloorUnmet(Name("a"), MOST_AT_ONCE, stated, most, is_static=True),
        FloorUnmet(Name("b"), MOST_AT_ONCE, stated, most, is_static=False),
    )
    assert cause_text(unmet[0]).endswith("one plan buys at most 5000 nodes for it, the next plan more")


def test_as_many_as_one_plan_buys_are_all_there() -> None:
    """Nothing is left, so nothing is said; equal nodes share what they state."""
    launches, unmet = kept(a_pool(replicas=MOST_AT_ONCE))

    assert (MOST_AT_ONCE, ()) == (len(launches), unmet)
    assert 1 == len({id(each.requirements) for each in launches})


def test_a_limit_below_that_is_what_is_said() -> None:
    """The limit is reached first."""
    launches, unmet = kept(a_pool(replicas=1_000_000_000, limits={"nodes": 3}))

    assert (3, 3) == (len(launches), unmet[0].held)
    assert "its limit nodes leaves no room for a m5.xlarge" in cause_text(unmet[0])
