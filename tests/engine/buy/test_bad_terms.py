"""Constraints that make no sense: a reason on that pod, and the others are planned."""

from typing import Any

import pytest

from kerf.model.constraints import ANYTHING, ZONE, Requirement, Requirements
from kerf.model.plan import Plan
from kerf.testing.builders import a_pool, an_instance_type
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
