"""Of equal pods the oldest goes first: who takes whose place on a node that opens."""

from typing import Any

import pytest

from kerf.engine.place.ages import elders
from kerf.engine.place.shapes import Readings
from kerf.model.opportunistic import OPPORTUNISTIC
from kerf.model.pods import Pod
from kerf.testing.builders import NOON_S, a_pod

ONE_AGE_S = 30


def a_run(name: str, after_s: float, **given: Any) -> Pod:
    """A pod that came so long after noon."""
    return a_pod(name, **{"cpu": "1", "created_s": NOON_S + after_s, "uid": name, **given})


def test_the_oldest_take_the_places_of_the_youngest() -> None:
    """The node was bought for the two that came last; one that is younger than both stays where it is."""
    planned = [a_run("late", 100), a_run("later", 110)]
    others = [a_run("latest", 120), a_run("first", 0), a_run("second", 10)]

    found = {"default/late": "default/first", "default/later": "default/second"}
    assert found == elders(planned, others, ONE_AGE_S) == elders(planned[::-1], others[::-1], ONE_AGE_S)


def test_a_pod_that_is_among_the_oldest_keeps_its_place() -> None:
    """Only who is not gives way."""
    planned = [a_run("first", 0), a_run("late", 100)]

    assert {"default/late": "default/second"} == elders(planned, [a_run("second", 10)], ONE_AGE_S)


@pytest.mark.parametrize(("after_s", "gives_way"), [(30, False), (31, True)])
def test_pods_of_one_age_do_not_change_places(after_s: float, gives_way: bool) -> None:
    """Each exchange is a write, and any order among them will do."""
    assert gives_way == bool(elders([a_run("p", after_s)], [a_run("q", 0)], ONE_AGE_S))


@pytest.mark.parametrize(
    "other",
    [
        {"cpu": "2"},
        {"priority": 1000},
        {"namespace": "team-a"},
        {"labels": {"kerf.dev/window": "nightly"}},
        {"annotations": {"kerf.dev/admitted-by": "nightly"}},
        {"labels": {"kerf.dev/pod-group": "all"}},
    ],
    ids=["size", "priority", "namespace", "window", "admission", "group"],
)
def test_only_equal_pods_change_places(other: dict[str, Any]) -> None:
    """Another size does not fit; what priority, a quota, a window or a group gave to one is not another's."""
    assert {} == elders([a_run("p", 100)], [a_run("q", 0, **other)], ONE_AGE_S)


@pytest.mark.parametrize("label", [{"kerf.dev/pod-group": "all"}, {OPPORTUNISTIC: "true"}], ids=["group", "idle"])
def test_some_pods_have_no_peers(label: dict[str, str]) -> None:
    """The pods of a group start together or not at all; opportunistic ones have no place of their own."""
    assert {} == elders([a_run("p", 100, labels=label)], [a_run("q", 0, labels=label)], ONE_AGE_S)


def test_pods_that_differ_for_a_selector_do_not_change_places() -> None:
    """The label says whom an anti-affinity means, so beside others the places are not equal; without one they are."""
    young, old = a_run("p", 100, labels={"app": "web"}), a_run("q", 0, labels={"app": "db"})

    assert {} == elders([young], [old], ONE_AGE_S, Readings(labels=frozenset({"app"})))
    assert {"default/p": "default/q"} == elders([young], [old], ONE_AGE_S)
