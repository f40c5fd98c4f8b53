"""Which pods must be kept apart on a node to be bought: no more groups than can come in each other's way."""

from collections.abc import Callable

import pytest

from kerf.engine.buy.concerns import Concerns
from kerf.engine.buy.crowding import Headcount
from kerf.engine.place.shapes import UNCROWDED, Crowding, Readings, group
from kerf.engine.place.trial import Trial
from kerf.model.constraints import HOSTNAME, Requirements
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterSnapshot, DaemonSet
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot
from tests.engine.worlds import M5, a_daemon_set, supply_of


def apart(app: str, number: int = 0) -> Pod:
    """A pod that lets no other of its workload onto its node."""
    away = PodAffinity((PodAffinityTerm(HOSTNAME, Requirements.of_labels({"app": app})),))
    return a_pod(f"{app}-{number}", labels={"app": app}, pod_anti_affinity=away)


def even(app: str, number: int = 0) -> Pod:
    """A pod of a workload of which a node takes one more than another."""
    spread = (TopologySpreadConstraint(HOSTNAME, 1, Requirements.of_labels({"app": app})),)
    return a_pod(f"{app}-{number}", labels={"app": app}, spread=spread)


def crowdings(*pods: Pod, daemon_sets: tuple[DaemonSet, ...] = ()) -> tuple[Crowding, ...]:
    """How they get on, shape by shape."""
    snapshot: ClusterSnapshot = a_snapshot(pools=[a_pool()], pods=pods, daemon_sets=daemon_sets)
    offered = supply_of(a_pool(), types=[M5], daemon_sets=daemon_sets).available
    ledger = Trial(snapshot, a_market(M5)).ledger
    return Concerns(ledger, group(pods, Readings.of(snapshot)), offered).manners.crowdings


@pytest.mark.parametrize("made", [apart, even])
def test_a_pod_that_is_alone_in_its_group_keeps_no_other_off(made: Callable[[str], Pod]) -> None:
    """Of any number of workloads with one pod each none costs a group."""
    assert [UNCROWDED] * 5 == list(crowdings(*(made(f"app-{n}") for n in range(5))))


def test_two_pods_of_a_workload_are_a_group_beside_others_that_are_none() -> None:
    """It is the pods that wait that count, and not their shapes."""
    one, two = crowdings(apart("one"), apart("two", 0), apart("two", 1))

    assert UNCROWDED == one
    assert {1} == {most for _, most in two.most}


def test_a_pod_of_a_daemon_set_counts_beside_one_that_is_alone() -> None:
    """It is on each node before the pod comes."""
    daemon_set = a_daemon_set(labels={"app": "one"})

    assert UNCROWDED not in crowdings(apart("one"), daemon_sets=(daemon_set,))


@pytest.mark.parametrize(
    "there, comes, room",
    [
        ((), Crowding((1,), ((1, 1),)), 1),
        ((Crowding((1,), ((1, 1),)),), Crowding((1,), ((1, 1),)), 0),
        ((Crowding((2,)),), Crowding((1,), ((2, 0),)), 0),
        ((Crowding((1,), ((2, 0),)),), Crowding((2,)), 0),
        ((Crowding((1, 2), ((2, 3),)),), Crowding((2,), ((2, 3),)), 2),
        ((Crowding((2,)),) * 3, Crowding((2,), ((2, 2),)), 0),
        ((Crowding((2,)),) * 2, Crowding((1,), ((2, 2),)), 1 << 62),
        ((Crowding((2,)),) * 3, Crowding((1,), ((2, 2),)), 0),
        ((Crowding((2,)),), Crowding((1,), apart=((2, ()),)), 0),
        ((Crowding((2, 3)),), Crowding((1,), apart=((2, (3, 4)),)), 1 << 62),
        ((Crowding((2, 3)), Crowding((2,))), Crowding((1,), apart=((2, (3,)),)), 0),
        ((Crowding((2, 2, 3)),), Crowding((1,), apart=((2, (3,)),)), 0),
        ((), Crowding((2,), apart=((2, (3,)),)), 1),
        ((), Crowding((2, 3), apart=((2, (3,)),)), 1 << 62),
    ],
)
def test_a_pod_comes_as_long_as_neither_it_nor_one_that_is_there_allows_fewer(
    there: tuple[Crowding, ...], comes: Crowding, room: int
) -> None:
    """One pod of a group is enough against those that allow none of it; others are counted, less those let pass."""
    crowd = Headcount()
    for each in there:
        crowd.add(each, 1)

    assert room == crowd.room(comes)
