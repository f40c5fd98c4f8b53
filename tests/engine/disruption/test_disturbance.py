"""What a pod that is moved loses: the time until its successor works, and of one that ends some day its work so far."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.disruption.disturbance import RESTART_COST, Restarts
from kerf.model.pods import Owner, Pod
from kerf.testing.builders import NOON_S, a_pod

WEB, RUN = Owner("ReplicaSet", "web"), Owner("Job", "train")
AN_HOUR_AGO_S = NOON_S - 3600


def a_replica(name: str, starting_s: int | None, **given: Any) -> Pod:
    """A pod that has run for an hour, and took so long to be ready."""
    return a_pod(name, created_s=AN_HOUR_AGO_S, starting_s=starting_s, **{"owner": WEB, **given})


@pytest.mark.parametrize(
    ("measured", "lost_s"),
    [([], 60), ([None, None], 60), ([300], 300), ([20, 300, 9_000], 300), ([20, 300], 20), ([0, None], 0)],
    ids=["none", "nothing measured", "one", "the middle one", "the lesser of two", "at once"],
)
def test_a_pod_that_serves_loses_what_its_workload_takes_to_start(measured: list[int | None], lost_s: float) -> None:
    """Half of the pods that are there took no longer; where none says, it is a minute."""
    pods = [a_replica(f"web-{number}", seconds) for number, seconds in enumerate(measured)]
    assert lost_s == Restarts(pods).lost_s(a_replica("moved", None), NOON_S)


def test_workloads_are_measured_apart() -> None:
    """Also those of one name in two namespaces."""
    others = [a_replica("a", 500, namespace="team"), a_replica("b", 700, owner=Owner("ReplicaSet", "db"))]
    assert 60 == Restarts(others).lost_s(a_replica("moved", None), NOON_S)


def test_a_pod_that_ends_some_day_loses_its_work_too() -> None:
    """A Job begins again from nothing, and so does a pod that nobody makes again."""
    pods = [a_replica("train-1", 40, owner=RUN)]
    assert 3640 == Restarts(pods).lost_s(a_replica("moved", None, owner=RUN), NOON_S)
    assert 3660 == Restarts(pods).lost_s(a_replica("bare", None, owner=None), NOON_S)


@pytest.mark.parametrize(("stated", "lost_s"), [("5m", 300), ("0s", 0), ("five", 3660), ("Never", 3660)])
def test_a_pod_may_state_what_its_move_costs(stated: str, lost_s: float) -> None:
    """What cannot be read counts for nothing: the bare pod loses its hour of work, and a minute."""
    pod = a_replica("bare", None, owner=None)
    assert lost_s == Restarts([]).lost_s(replace(pod, annotations={RESTART_COST: stated}), NOON_S)
