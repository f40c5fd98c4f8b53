"""For how many pods a CapacityBuffer keeps room, and what counts as a change of it."""

from dataclasses import replace

import pytest

from kerf.model.capacitybuffers import BufferStatus, CapacityBuffer, ScalableRef
from kerf.model.nodeclaim import FALSE, TRUE, Condition
from kerf.model.quantities import Resources

ASKED = {"cpu": 1000, "memory": 2**30, "pods": 1}
WEB = ScalableRef("apps", "Deployment", "web")


@pytest.mark.parametrize(
    ("given", "scale", "wanted"),
    [
        pytest.param({"replicas": 5}, None, 5, id="replicas"),
        pytest.param({"percentage": 20}, 10, 2, id="percentage"),
        pytest.param({"percentage": 20}, 1, 1, id="rounded up"),
        pytest.param({"percentage": 150}, 3, 5, id="more than there are"),
        pytest.param({"replicas": 5, "percentage": 80}, 10, 8, id="the larger"),
        pytest.param({"replicas": 5, "percentage": 80, "limits": {"cpu": 4000}}, 10, 4, id="at most the limits"),
        pytest.param({"limits": {"cpu": 5999, "memory": 9 * 2**30}}, None, 5, id="as many as the limits hold"),
        pytest.param({"limits": {"cpu": 999}}, None, 0, id="not one"),
        pytest.param({"limits": {"nvidia.com/gpu": 4}}, None, 0, id="limits of what no pod asks say nothing"),
        pytest.param({"replicas": 3, "limits": {"nvidia.com/gpu": 1}}, None, 3, id="and limit nothing"),
        pytest.param({"percentage": 20, "limits": {"cpu": 5000}}, 0, 0, id="a share of nothing"),
        pytest.param({"replicas": 0}, None, 0, id="none"),
        pytest.param({"limits": {"cpu": 10**15}}, None, 2**31 - 1, id="no more than a status can say"),
        pytest.param({}, 3, 0, id="nothing said"),
    ],
)
def test_room_is_wanted_for_the_larger_number_within_the_limits(
    given: dict[str, object], scale: int | None, wanted: int
) -> None:
    """Karpenter's rule; but a percentage of nothing is nothing, where Karpenter takes the limits in its place."""
    limits = given.pop("limits", None)
    held = Resources(limits) if isinstance(limits, dict) else None
    buffer = replace(CapacityBuffer("team", "b", "t", limits=held), **given)  # type: ignore[arg-type]

    assert wanted == buffer.wanted(ASKED, scale)


def test_what_it_says_of_itself_is_no_change() -> None:
    """Its status and its version are written by Kerf."""
    buffer = CapacityBuffer("team", "b", "t", replicas=1)

    assert buffer.asks_as(replace(buffer, status=BufferStatus(1), resource_version="2"))
    assert not buffer.asks_as(replace(buffer, replicas=2))


def test_only_workloads_of_apps_have_a_key() -> None:
    """A kind of somebody else may have one's name."""
    assert "team/Deployment/web" == CapacityBuffer("team", "b", scalable=WEB).scalable_key
    assert "" == CapacityBuffer("team", "b", scalable=replace(WEB, group="example.com")).scalable_key
    assert "" == CapacityBuffer("team", "b", "t").scalable_key


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    """Another reason is no transition."""
    status = BufferStatus().with_condition(Condition("Provisioning", FALSE, "BufferEmpty", "", 10))

    again = status.with_condition(Condition("Provisioning", FALSE, "RequiresNewCapacity", "", 20))
    there = again.with_condition(Condition("Provisioning", TRUE, "FitsExistingCapacity", "", 30))

    assert (10, 30) == (again.conditions[0].since_s, there.conditions[0].since_s)
    assert there.is_true("Provisioning")
