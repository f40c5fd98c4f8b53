"""What EC2 announces about instances: five kinds of messages in a queue, and status checks that are polled.

A spot instance ends two minutes after its notice, and the notice comes once. So a message is deleted only when the next
turn begins, which says that Kerf has acted on it; after a crash it comes again. A message that Kerf does not understand
is logged and deleted, or it would come again for ever.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kerf.cloudprovider import Interruption, InterruptionKind, News
from kerf.clouds.aws.api import EC2, SQS, Api, ApiFailed
from kerf.clouds.aws.instances import Instances
from kerf.clouds.aws.replies import reading
from kerf.errors import cut
from kerf.model.instancetypes import SPOT
from kerf.model.times import instant_s
from kerf.telemetry import (
    INTERRUPTION_MESSAGES,
    KARPENTER_DELETED,
    KARPENTER_QUEUED_SECONDS,
    KARPENTER_RECEIVED,
    KARPENTER_UNHEALTHY,
    logger,
)

_WAIT_S, _HIDDEN_S, _MOST = 20, 20, 10
"""A long poll and the number of messages, both the most that SQS takes; and how long others do not see a message."""
_NOTICE_S = 120.0
"""From the notice to the end (EC2 user guide, "Spot Instance interruption notices", 2026-11)."""
_DAY_S = 86_400.0
_SPOT = "EC2 Spot Instance Interruption Warning"
_KINDS = {
    _SPOT: InterruptionKind.SPOT,
    "EC2 Capacity Reservation Instance Interruption Warning": InterruptionKind.RESERVATION,
    "EC2 Instance Rebalance Recommendation": InterruptionKind.REBALANCE,
}
_STATES = {
    "stopping": InterruptionKind.STOPPING,
    "stopped": InterruptionKind.STOPPING,
    "shutting-down": InterruptionKind.TERMINATING,
    "terminated": InterruptionKind.TERMINATING,
}
_STATE_CHANGE, _HEALTH = "EC2 Instance State-change Notification", "AWS Health Event"
_IMPAIRED, _ENDING = "impaired", ("instance-retirement", "instance-stop")
"""Of a status check, and of events after which the instance does not run; after the others it does."""
_SYSTEM_STATUS, _EVENT_STATUS = "system_status", "event_status"
"""Karpenter's words in metrics for what it finds by looking: the machine below an instance, and its events."""
_OVER, _RESOLVED = "closed", "RESOLVED"
"""Of a health event, and of an entity in it (AWS Health API reference, "Event" and "AffectedEntity", 2026-11)."""
_MOST_LETTERS = 200
_INSTANCE = re.compile(r"i-[0-9a-f]{1,17}")

Announced = tuple[str, Interruption]
"""Instance id and what is announced about it."""


@dataclass(frozen=True, slots=True)
class Understood:
    """A message: what kind it is, for the metric, what it announces, by instance id, and when that happened."""

    kind: str
    announced: tuple[Announced, ...] = ()
    happened_s: float | None = None

    @property
    def counted_as(self) -> str:
        """Karpenter's word for it in metrics; `no_op` for one that announces nothing."""
        return next((each.counted_as for _, each in self.announced), "no_op")


def understood(body: str) -> Understood | None:
    """What a message says; None for one that is no event of the five kinds.

    A change of state that ends nothing, and a health event that is no scheduled change, are understood and announce
    nothing.
    """
    try:
        event = json.loads(body)
        happened_s = _happened_s(event.get("time"))
        found = _read(event["detail-type"], event["detail"], happened_s)
        return None if found is None else replace(found, happened_s=happened_s)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _happened_s(time: object) -> float | None:
    """When it did; None where that cannot be read, since a notice counts all the same."""
    try:
        return instant_s(time) if isinstance(time, str) else None
    except (ValueError, OverflowError):
        return None


def _read(kind: str, detail: Mapping[str, Any], happened_s: float | None) -> Understood | None:
    if kind in _KINDS:
        ends = kind != "EC2 Instance Rebalance Recommendation"
        deadline_s = happened_s + _NOTICE_S if ends and happened_s is not None else None
        return Understood(kind, ((_instance(detail["instance-id"]), Interruption(_KINDS[kind], deadline_s)),))
    if kind == _STATE_CHANGE:
        named = _STATES.get(detail["state"])
        return Understood(kind, ((_instance(detail["instance-id"]), Interruption(named)),) if named is not None else ())
    if kind == _HEALTH:
        return Understood(kind, tuple(_scheduled(detail)))
    return None


def _instance(value: object) -> str:
    """An instance id. Raises ValueError for what is none: EC2 would refuse all others of the same call with it."""
    if not isinstance(value, str) or _INSTANCE.fullmatch(value) is None:
        raise ValueError("no instance id")
    return value


def _scheduled(detail: Mapping[str, Any]) -> Iterable[Announced]:
    if detail.get("service") != "EC2" or detail.get("eventTypeCategory") != "scheduledChange":
        return
    if detail.get("statusCode") == _OVER:
        return
    what = cut(str(detail.get("eventTypeCode") or ""), _MOST_LETTERS)
    for entity in detail.get("affectedEntities") or ():
        value = entity["entityValue"]
        if not isinstance(value, str):
            raise ValueError("no entity")
        # Events about EC2 name volumes and hosts as well, and instances that are over with the change.
        if _INSTANCE.fullmatch(value) and entity.get("status") != _RESOLVED:
            yield value, Interruption(InterruptionKind.SCHEDULED, None, what)


class InterruptionQueue:
    """The queue of a cluster, by its name. One turn at a time."""

    def __init__(self, api: Api, instances: Instances, name: str, now_s: Callable[[], float]) -> None:
        self._api, self._instances, self._name, self._now_s = api, instances, name, now_s
        self._url = ""
        self._done: list[str] = []

    async def turn(self) -> News:
        """Delete what was acted on, and wait up to 20 s for messages. Raises ApiFailed, Throttled."""
        if not self._url:
            found = await self._api.call(SQS, "GetQueueUrl", QueueName=self._name)
            with reading("GetQueueUrl"):
                self._url = str(found["QueueUrl"])
        await self._delete()
        reply = await self._api.call(
            SQS,
            "ReceiveMessage",
            QueueUrl=self._url,
            MaxNumberOfMessages=_MOST,
            WaitTimeSeconds=_WAIT_S,
            VisibilityTimeout=_HIDDEN_S,
        )
        messages: Sequence[Mapping[str, Any]] = reply.get("Messages") or ()
        events = [event for message in messages if (event := _counted(message)) is not None]
        now_s = self._now_s()
        said = [each for event in events for each in event.announced]
        news = await news_of(self._instances, [(number, _within_notice(number, each, now_s)) for number, each in said])
        for each in events:
            if each.announced and each.happened_s is not None:
                KARPENTER_QUEUED_SECONDS.observe(max(self._now_s() - each.happened_s, 0.0))
        self._done = [message["ReceiptHandle"] for message in messages if "ReceiptHandle" in message]
        return news

    async def _delete(self) -> None:
        """Delete the messages of the last turn; one that cannot be deleted comes again, and its claim goes already."""
        while self._done:
            try:
                await self._api.call(SQS, "DeleteMessage", QueueUrl=self._url, ReceiptHandle=self._done[-1])
                KARPENTER_DELETED.inc()
            except ApiFailed as error:
                logger("interruption").warning("a message cannot be deleted", error=str(error))
            self._done.pop()


def _counted(message: Mapping[str, Any]) -> Understood | None:
    found = understood(message.get("Body", ""))
    INTERRUPTION_MESSAGES.labels(found.kind if found is not None else "unknown").inc()
    if found is not None:
        KARPENTER_RECEIVED.labels(found.counted_as).inc()
    else:
        logger("interruption").warning("a message is not understood", body=cut(message.get("Body", ""), _MOST_LETTERS))
    return found


def _within_notice(number: str, each: Interruption, now_s: float) -> Interruption:
    """A deadline that has passed or is far away is brought to the two minutes of a notice, from its receipt on.

    The instance is still there, and a drain goes by its deadline: by that of the year 9999 it would never end.
    """
    deadline_s = each.deadline_s
    if deadline_s is None or now_s < deadline_s < now_s + _DAY_S:
        return each
    logger("interruption").warning("a notice has an impossible time", instance=number, deadline_s=int(deadline_s))
    return replace(each, deadline_s=now_s + _NOTICE_S)


async def news_of(instances: Instances, announced: Iterable[Announced]) -> News:
    """By provider id; instances that are not there, or not this cluster's, are left out.

    Of several about one instance the first that is no advice counts. A spot notice marks the offering: there is no
    more of it just now.
    """
    by_id: dict[str, Interruption] = {}
    for number, each in announced:
        held = by_id.get(number)
        if held is None or (held.kind.is_advice and not each.kind.is_advice):
            by_id[number] = each
    located = await instances.located(by_id) if by_id else {}
    interruptions, sold_out = {}, {}
    for number, instance in sorted(located.items()):
        interruptions[instance.provider_id] = by_id[number]
        if by_id[number].kind is InterruptionKind.SPOT and instance.offering.capacity_type == SPOT:
            sold_out[instance.offering] = "interrupted"
    return News(interruptions, sold_out)


class StatusChecks:
    """Instances whose checks fail at two looks in a row, or whose end EC2 has scheduled."""

    def __init__(self, api: Api, instances: Instances) -> None:
        self._api, self._instances = api, instances
        self._impaired: frozenset[str] = frozenset()
        self._known: frozenset[tuple[str, str]] = frozenset()

    async def turn(self) -> News:
        """Look once. Raises ApiFailed, Throttled."""
        listed: Sequence[Mapping[str, Any]] = await self._api.pages(EC2, "DescribeInstanceStatus", "InstanceStatuses")
        found = [each for each in listed if "InstanceId" in each]
        ours = {each.instance.provider_id.rpartition("/")[2] for each in self._instances.listed()}
        impaired = frozenset(each["InstanceId"] for each in found if _is_impaired(each)) & ours
        hosts = {each["InstanceId"] for each in found if _is_host_impaired(each)}
        announced = [
            (number, Interruption(InterruptionKind.UNHEALTHY, word=_SYSTEM_STATUS if number in hosts else ""))
            for number in sorted(impaired & self._impaired)
        ]
        self._impaired = impaired
        for each in found:
            if each["InstanceId"] in ours:
                announced += _events(each)
        self._count(announced)
        return await news_of(self._instances, announced)

    def _count(self, announced: Iterable[Announced]) -> None:
        found = frozenset((number, each.counted_as) for number, each in announced)
        for _, category in found - self._known:
            KARPENTER_UNHEALTHY.labels(category).inc()
        self._known = found


def _is_impaired(status: Mapping[str, Any]) -> bool:
    checks = (status.get("InstanceStatus") or {}, status.get("SystemStatus") or {})
    return any(check.get("Status") == _IMPAIRED for check in checks)


def _is_host_impaired(status: Mapping[str, Any]) -> bool:
    """Whether it is the machine below the instance, and not what runs on it."""
    return (status.get("SystemStatus") or {}).get("Status") == _IMPAIRED


def _events(status: Mapping[str, Any]) -> Iterable[Announced]:
    """Events that end the instance or stop it. One that is over says so in its description (EC2 user guide, "Scheduled
    events for your instances", 2026-11)."""
    for event in status.get("Events") or ():
        code, text = event.get("Code", ""), event.get("Description", "")
        if code not in _ENDING or text.startswith(("[Completed]", "[Canceled]")):
            continue
        before = event.get("NotBefore")
        deadline_s = before.timestamp() if before is not None else None
        detail = cut(code, _MOST_LETTERS)
        yield status["InstanceId"], Interruption(InterruptionKind.SCHEDULED, deadline_s, detail, _EVENT_STATUS)
