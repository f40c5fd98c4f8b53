"""Constraints that make no sense: a reason on that pod, and the others are planned."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from kerf.model.constraints import ANYTHING, HOSTNAME, ZONE, Requirement, Requirements
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.testing.builders import a_pod, a_pool, an_instance_type
from tests.engine.buy.test_spreading import webs
from tests.engine.place.test_topology import away, near, spread
from tests.engine.worlds import planned, refused, some

KINDS = [an_instance_type("small", cpu=4, zones=("za", "zb"))]
NEVER_BOTH = Requirements([Requirement.of("app", "In", ("web",)), Requirement.of("app", "NotIn", ("web",))])
DB = Requirements.of_labels({"app": "db"})


def made(pods: list[Any]) -> Plan:
    """The plan with one type in two zones."""
    return planned(pods, [a_pool()], KINDS)


@pytest.mark.parametrize(
    "asked",
    [near(ZONE, NEVER_BOTH), near(ZONE, DB), near("no/such-key"), spread("no/such-key")],
    ids=["contradiction", "nobody", "unknown key of affinity", "unknown key of spread"],
)
def test_a_pod_that_nothing_can_serve_stops_no_other(asked: dict[str, Any]) -> None:
    """It is refused with a reason, and nothing is bought for it."""
    plan = made([*webs(1, "odd", **asked), *some(3, "plain", cpu=1)])

    assert ["default/odd-0"] == refused(plan)
    assert plan.unplaced[0].reason
    assert 1 == len(plan.launches)


def test_a_selector_that_matches_everything_takes_one_zone_alone() -> None:
    """Anti-affinity against any pod: one zone for each of two, and none for the third."""
    plan = made(webs(3, **away(ZONE, ANYTHING)))

    assert 2 == len(plan.launches)
    assert 1 == len(plan.unplaced)


def test_pods_that_each_wait_for_the_other_are_refused() -> None:
    """Web wants to be near db, and db near web; the scheduler binds neither first."""
    pods = [*webs(1, **near(ZONE, DB)), *webs(1, "db", labels={"app": "db"}, **near(ZONE))]

    plan = made([*pods, *some(1, "plain", cpu=1)])

    assert ["default/db-0", "default/web-0"] == sorted(refused(plan))
    assert 1 == len(plan.launches)


def of_own_label(number: int) -> Pod:
    """Spread over zones and kept apart by a label that no other pod has."""
    mine = Requirements.of_labels({f"key-{number}": "x"})
    asked = {**spread(selector=mine), **away(selector=mine)}
    return a_pod(f"p-{number}", cpu="100m", labels={f"key-{number}": "x"}, **asked)


def of_own_value(number: int) -> Pod:
    """The same by a value that no other pod has."""
    mine = Requirements.of_labels({"app": f"v-{number}"})
    asked = {**spread(selector=mine), **away(selector=mine)}
    return a_pod(f"p-{number}", cpu="100m", labels={"app": f"v-{number}"}, **asked)


def with_any_of_own_key(number: int) -> Pod:
    """Beside the pods that have a key which no other pod has, whatever its value."""
    mine = Requirements([Requirement.of(f"key-{number}", "Exists")])
    return a_pod(f"p-{number}", cpu="100m", labels={f"key-{number}": "x"}, **near(ZONE, mine))


def linked(number: int) -> Pod:
    """One in a row, in which each must be in the zone of the next younger one."""
    seeks = near(ZONE, Requirements.of_labels({"app": f"v-{number - 1}"})) if number else {}
    return a_pod(f"p-{number:03}", cpu="10m", labels={"app": f"v-{number}"}, created_s=-float(number), **seeks)


def sharing_nodes(number: int) -> Pod:
    """One of a pair that shares a node."""
    seeks = near(HOSTNAME, Requirements.of_labels({"app": f"v-{number - 1}"})) if number % 2 else {}
    return a_pod(f"p-{number:03}", cpu="100m", labels={"app": f"v-{number}"}, **seeks)


def calls(pods: list[Pod]) -> int:
    """How many calls of functions the plan for them takes; all get a place."""
    before, count = sys.getprofile(), 0

    def counted(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        plan = made(pods)
    finally:
        sys.setprofile(before)
    assert [] == refused(plan)
    return count


@pytest.mark.parametrize("one", [of_own_label, of_own_value, with_any_of_own_key, linked, sharing_nodes])
def test_twice_as_many_distinct_labels_cost_little_more_than_twice(one: Callable[[int], Pod]) -> None:
    """So 10,000 of them end no plan: what a pod goes by is found by its labels, and never by all other pods."""
    few, many = (calls([one(number) for number in range(count)]) for count in (30, 60))

    assert many < 2.6 * few
