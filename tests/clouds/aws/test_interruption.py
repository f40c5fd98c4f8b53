"""Messages of EC2: which instance ends, why, and by when."""

import json
from typing import Any

import pytest

from kerf.cloudprovider import Interruption, InterruptionKind
from kerf.clouds.aws.interruption import understood
from kerf.clouds.aws.stack import RULES

AT, AT_S = "2026-11-25T12:00:00Z", 1795608000.0


def event(kind: str, **detail: Any) -> str:
    """A message as EventBridge puts it into the queue."""
    return json.dumps({"version": "0", "detail-type": kind, "source": "aws.ec2", "time": AT, "detail": detail})


def of(body: str) -> tuple[tuple[str, Interruption], ...]:
    """What a message announces."""
    found = understood(body)
    assert found is not None
    return found.announced


@pytest.mark.parametrize(
    ("body", "announced"),
    [
        (
            event("EC2 Spot Instance Interruption Warning", **{"instance-id": "i-1", "instance-action": "terminate"}),
            Interruption(InterruptionKind.SPOT, AT_S + 120),
        ),
        (
            event(
                "EC2 Capacity Reservation Instance Interruption Warning",
                **{"instance-id": "i-1", "instance-action": "terminate"},
            ),
            Interruption(InterruptionKind.RESERVATION, AT_S + 120),
        ),
        (
            event("EC2 Instance Rebalance Recommendation", **{"instance-id": "i-1"}),
            Interruption(InterruptionKind.REBALANCE),
        ),
        (
            event("EC2 Instance State-change Notification", **{"instance-id": "i-1", "state": "stopping"}),
            Interruption(InterruptionKind.STOPPING),
        ),
        (
            event("EC2 Instance State-change Notification", **{"instance-id": "i-1", "state": "shutting-down"}),
            Interruption(InterruptionKind.TERMINATING),
        ),
        (
            event(
                "AWS Health Event",
                service="EC2",
                eventTypeCategory="scheduledChange",
                eventTypeCode="AWS_EC2_RETIREMENT",
                affectedEntities=[{"entityValue": "i-1"}],
            ),
            Interruption(InterruptionKind.SCHEDULED, None, "AWS_EC2_RETIREMENT"),
        ),
    ],
)
def test_each_kind_of_message_says_what_ends(body: str, announced: Interruption) -> None:
    """The five kinds that the stack's rules send; a notice has two minutes from its time on."""
    assert (("i-1", announced),) == of(body)
    assert json.loads(body)["detail-type"] in {kind for _, kind in RULES.values()}


@pytest.mark.parametrize(
    ("body", "counted_as"),
    [
        (event("EC2 Spot Instance Interruption Warning", **{"instance-id": "i-1"}), "spot_interrupted"),
        (
            event("EC2 Capacity Reservation Instance Interruption Warning", **{"instance-id": "i-1"}),
            "capacity_reservation_interrupted",
        ),
        (event("EC2 Instance Rebalance Recommendation", **{"instance-id": "i-1"}), "rebalance_recommendation"),
        (
            event("EC2 Instance State-change Notification", **{"instance-id": "i-1", "state": "stopped"}),
            "instance_stopped",
        ),
        (
            event("EC2 Instance State-change Notification", **{"instance-id": "i-1", "state": "terminated"}),
            "instance_terminated",
        ),
        (event("EC2 Instance State-change Notification", **{"instance-id": "i-1", "state": "running"}), "no_op"),
        (
            event(
                "AWS Health Event",
                service="EC2",
                eventTypeCategory="scheduledChange",
                affectedEntities=[{"entityValue": "i-1"}],
            ),
            "scheduled_change",
        ),
    ],
)
def test_messages_are_counted_in_karpenters_words(body: str, counted_as: str) -> None:
    """Those of its metrics `interruption_received_messages_total` and `nodeclaims_disrupted_total`."""
    found = understood(body)

    assert found is not None
    assert counted_as == found.counted_as


@pytest.mark.parametrize(
    "body",
    [
        event("EC2 Instance State-change Notification", **{"instance-id": "i-1", "state": "running"}),
        event("AWS Health Event", service="RDS", eventTypeCategory="scheduledChange", affectedEntities=[]),
        event("AWS Health Event", service="EC2", eventTypeCategory="issue", affectedEntities=[{"entityValue": "i-1"}]),
    ],
)
def test_what_ends_nothing_is_understood_and_announces_nothing(body: str) -> None:
    """Such messages are most of the queue."""
    assert () == of(body)


@pytest.mark.parametrize("time", ["", None, "soon", 7, "2026-13-01T00:00:00Z"])
def test_a_notice_counts_although_its_time_cannot_be_read(time: object) -> None:
    """The instance ends all the same; only by when is not known."""
    body = json.loads(event("EC2 Spot Instance Interruption Warning", **{"instance-id": "i-1"}))
    found = understood(json.dumps({**body, "time": time}))

    assert found is not None
    assert (None, (("i-1", Interruption(InterruptionKind.SPOT)),)) == (found.happened_s, found.announced)


NO_IDS: tuple[object, ...] = (None, 7, {}, ["i-1"], "x")
NO_INSTANCES = (
    *(event("EC2 Spot Instance Interruption Warning", **{"instance-id": given}) for given in NO_IDS),
    event(
        "AWS Health Event", service="EC2", eventTypeCategory="scheduledChange", affectedEntities=[{"entityValue": 1}]
    ),
)


@pytest.mark.parametrize(
    "body",
    ["", "no JSON", "[]", "3", '"text"', "{}", event("EC2 Something New"), event("AWS Health Event")[:-2],
     event("EC2 Spot Instance Interruption Warning"), "[" * 100_000, *NO_INSTANCES],
)  # fmt: skip
def test_a_message_that_is_no_event_is_not_understood(body: str) -> None:
    """Its sender may be anybody who can write to the queue."""
    assert understood(body) is None


def health(**detail: Any) -> str:
    """A scheduled change of instance i-1."""
    given = {"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": [{"entityValue": "i-1"}]}
    return event("AWS Health Event", **{**given, **detail})


@pytest.mark.parametrize(
    ("detail", "instances"),
    [
        ({"statusCode": "upcoming"}, ["i-1"]),
        ({"statusCode": "open"}, ["i-1"]),
        ({"statusCode": "closed"}, []),
        ({"affectedEntities": [{"entityValue": "i-1", "status": "PENDING"}]}, ["i-1"]),
        ({"affectedEntities": [{"entityValue": "i-1", "status": "RESOLVED"}, {"entityValue": "i-2"}]}, ["i-2"]),
        ({"affectedEntities": [{"entityValue": "vol-1"}, {"entityValue": "i-2"}]}, ["i-2"]),
        ({"affectedEntities": [{"entityValue": "vol-1"}]}, []),
    ],
)
def test_a_health_event_ends_the_instances_that_its_change_is_still_to_meet(
    detail: dict[str, Any], instances: list[str]
) -> None:
    """Not those of an event that is closed; what else it names is left out, and takes no instance along."""
    assert instances == [number for number, _ in of(health(**detail))]
