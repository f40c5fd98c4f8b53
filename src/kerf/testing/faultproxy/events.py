"""Messages that EventBridge puts into the queue of a node autoscaler, and what they announce.

Their form is that of the rules that Karpenter's guide sets up: an envelope with `detail-type`, `source` and `detail`.
Sources: "Spot Instance interruption notices", "EC2 instance rebalance recommendations", "State change events" of
AWS' EC2 user guide and "AWS Health events" of its EventBridge guide.
"""

import json
from collections.abc import Callable, Iterable
from uuid import NAMESPACE_URL, uuid5

from kerf.testing.faultproxy.instances import TAKEN_BACK, InstanceTable, date
from kerf.testing.faultproxy.wire import Tree

NOTICE_S = 120
"""From the notice of a spot interruption to the end of the instance."""


class EventSwitches:
    """The switches. `send` gives the queue a body; without a queue every switch raises what `send` raises."""

    def __init__(self, instances: InstanceTable, now_s: Callable[[], float], send: Callable[[str], None]) -> None:
        self._instances, self._now_s, self._send = instances, now_s, send
        self._number = 0

    def spot_notice(self, instance: str, notice_s: float = NOTICE_S) -> None:
        """Spot takes the instance back: the warning now, the end after the notice."""
        detail = {"instance-id": instance, "instance-action": "terminate"}
        self._event("EC2 Spot Instance Interruption Warning", "aws.ec2", detail, [instance])
        self._instances.end(instance, self._now_s() + notice_s, TAKEN_BACK)

    def reservation_notice(self, instance: str, notice_s: float = NOTICE_S) -> None:
        """An interruptible reservation takes the instance back."""
        detail = {"instance-id": instance, "instance-action": "terminate"}
        self._event("EC2 Capacity Reservation Instance Interruption Warning", "aws.ec2", detail, [instance])
        self._instances.end(instance, self._now_s() + notice_s)

    def rebalance(self, instance: str) -> None:
        """Spot recommends to replace the instance; nothing ends it."""
        self._event("EC2 Instance Rebalance Recommendation", "aws.ec2", {"instance-id": instance}, [instance])

    def state_change(self, instance: str, state: str) -> None:
        """The instance has come to a state, e.g. `stopping`; `stopping` and `terminated` end it now."""
        detail = {"instance-id": instance, "state": state}
        self._event("EC2 Instance State-change Notification", "aws.ec2", detail, [instance])
        if state in ("stopping", "stopped", "shutting-down", "terminated"):
            self._instances.end(instance, self._now_s())

    def health(self, instances: Iterable[str], code: str = "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED") -> None:
        """AWS Health has scheduled a change for the instances."""
        named, start_s = list(instances), self._now_s() + 14 * 86400
        detail: Tree = {
            "eventArn": f"arn:aws:health:us-east-1::event/EC2/{code}/faultproxy",
            "eventTypeCode": code,
            "service": "EC2",
            "eventTypeCategory": "scheduledChange",
            "startTime": date(start_s),
            "endTime": date(start_s + 3600),
            "affectedEntities": [{"entityValue": instance} for instance in named],
            "eventDescription": [{"language": "en_US", "latestDescription": code}],
        }
        self._event("AWS Health Event", "aws.health", detail, named)

    def raw(self, body: str) -> None:
        """A message of any text."""
        self._send(body)

    def _event(self, kind: str, source: str, detail: Tree, instances: Iterable[str]) -> None:
        self._number += 1
        event = {
            "version": "0",
            "id": str(uuid5(NAMESPACE_URL, f"{kind} {self._number}")),
            "detail-type": kind,
            "source": source,
            "account": "123456789012",
            "time": date(self._now_s()),
            "region": "us-east-1",
            "resources": [f"arn:aws:ec2:us-east-1:123456789012:instance/{instance}" for instance in instances],
            "detail": detail,
        }
        self._send(json.dumps(event))
