"""002-6: N jobs a node are what is left of it divided by N, and not its size divided by N."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.study.sizing.density import Division, divided, held
from kerf.engine.supply.offered import OfferedType, supply
from kerf.model.instancetypes import InstanceType
from kerf.model.nodepool import NodePool
from kerf.model.quantities import Resources
from kerf.model.snapshot import DaemonSet
from kerf.testing.builders import a_market, a_pool, a_snapshot, an_instance_type, cards, resources
from tests.engine.worlds import a_daemon_set, a_hami_pool

M5 = an_instance_type("m5.xlarge", cpu=4, memory="16Gi", overhead=resources(cpu="80m", memory="1Gi"))
G5_12X = an_instance_type("g5.12xlarge", cpu=48, memory="192Gi", devices=cards(4))


def offered(kind: InstanceType = M5, pool: NodePool | None = None, daemons: tuple[DaemonSet, ...] = ()) -> OfferedType:
    """The type as a pool offers it."""
    return supply(a_snapshot(pools=[pool or a_pool()], daemon_sets=daemons), a_market(kind)).available[0]


def share(division: Division, name: str) -> tuple[int, ...]:
    """Machine, reserved, daemons, left, each, naive, how many the naive fit."""
    found = next(share for share in division.shares if share.resource == name)
    return (found.machine, found.reserved, found.daemons, found.left, found.each, found.naive, found.naive_fit)


def test_four_jobs_on_four_cpus_get_980m_because_1_gives_three() -> None:
    """Kubelet and system keep 80m of the machine."""
    division = divided(offered(), 4)

    assert (4000, 80, 0, 3920, 980, 1000, 3) == share(division, "cpu")
    assert resources(cpu="980m", memory="3840Mi") == division.each
    assert (4, 3) == (division.fit, division.naive_fit)


def test_daemon_sets_are_taken_off() -> None:
    """What they ask is asked on every node."""
    division = divided(offered(daemons=(a_daemon_set(cpu="120m", memory="1Gi"),)), 4)

    assert (4000, 80, 120, 3800, 950, 1000, 3) == share(division, "cpu")
    assert (4, 57) == (division.fit, division.pods_left)


def test_the_limit_of_pods_counts_too() -> None:
    """58 pods a node, however little each asks."""
    division = divided(offered(), 60)

    assert (58, False) == (division.fit, division.is_possible)


def test_gpu_memory_is_divided_by_card() -> None:
    """Six jobs on four cards are two slices a card: a sixth of the sum would fit a card once."""
    division = divided(offered(G5_12X, a_hami_pool()), 6)

    assert resources(gpu=1, gpumem=11444, cores=50) == division.cards
    assert 6 == division.fit
    assert 4 == held(offered(G5_12X, a_hami_pool()), resources(gpu=1, gpumem=4 * 22888 // 6), 6)


@pytest.mark.parametrize(("jobs", "each"), [(2, 2), (4, 1), (3, 1)])
def test_whole_cards_are_dealt_out_while_there_are_enough(jobs: int, each: int) -> None:
    """With HAMi or without."""
    for pool in (a_hami_pool(), a_pool()):
        division = divided(offered(G5_12X, pool), jobs)
        assert (resources(gpu=each), True) == (division.cards, division.is_possible)


def test_cards_that_cannot_be_divided_so_often_are_not() -> None:
    """Whole cards not at all, HAMi's into ten slots."""
    assert Resources() == divided(offered(G5_12X), 5).cards
    assert Resources() == divided(offered(G5_12X, a_hami_pool()), 41).cards
    assert resources(gpu=1, gpumem=2288, cores=10) == divided(offered(G5_12X, a_hami_pool()), 40).cards


@given(jobs=st.integers(1, 58), daemon=st.integers(0, 3000))
def test_what_is_advised_fits(jobs: int, daemon: int) -> None:
    """Whatever DaemonSets ask: as many as asked for, and with one milli more of cpu no longer."""
    kind = offered(daemons=(a_daemon_set(cpu=f"{daemon}m"),) if daemon else ())
    division = divided(kind, jobs)
    if not division.each["cpu"] or division.pods_left < jobs:
        return

    assert jobs == division.fit
    more = Resources({"cpu": (3920 - daemon) // jobs + 1})
    assert held(kind, more, jobs) < jobs
