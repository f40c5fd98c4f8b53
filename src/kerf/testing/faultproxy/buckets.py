"""Token buckets by which EC2 throttles an account, one for each API action in a region.

Source: "Request throttling for the Amazon EC2 API" in AWS' EC2 developer guide, its tables of request and resource
token buckets, read on 2026-11-25. CreateFleet is in neither table: as a mutating action it has the bucket of these,
and the instances that it launches are taken from the resource bucket of RunInstances, which is an assumption.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kerf.testing.faultproxy.calls import ApiCall
from kerf.testing.faultproxy.wire import CallRefused


@dataclass(frozen=True, slots=True)
class BucketSize:
    """What a bucket holds when it is full, and how many tokens come back a second."""

    capacity: float
    refill_per_s: float


READS = BucketSize(100, 20)
"""Describe, Get, List and Search actions."""
UNFILTERED = BucketSize(50, 10)
"""The same of `_LARGE` without filter, ids and pages."""
WRITES = BucketSize(50, 5)
"""All other actions."""
OWN = {
    "CreateLaunchTemplateVersion": BucketSize(100, 5),
    "CreateTags": BucketSize(100, 10),
    "DeleteTags": BucketSize(100, 10),
    "ModifyLaunchTemplate": BucketSize(100, 5),
    "RunInstances": BucketSize(5, 2),
}
"""Actions with a request bucket of their own."""
RESOURCES = {"RunInstances": BucketSize(1000, 2), "TerminateInstances": BucketSize(1000, 20)}
"""Resource buckets: a token an instance."""
_LARGE = (
    "DescribeInstances",
    "DescribeInstanceStatus",
    "DescribeNetworkInterfaces",
    "DescribeSecurityGroups",
    "DescribeVolumes",
)
_PAGED = ("Filter", "MaxResults", "NextToken", "InstanceId", "GroupId")


class ApiBuckets:
    """The buckets of one region. `sizes` are those that a test has set, by action; None is without limit."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self.sizes: dict[str, BucketSize | None] = {}
        self._tokens: dict[str, tuple[float, float]] = {}

    def take(self, call: ApiCall, instances: int) -> None:
        """Take what the call costs. Raises CallRefused with RequestLimitExceeded where a bucket has too little.

        A throttled call takes nothing.
        """
        needs = [(f"requests {call.action}", self._requests(call), 1.0)]
        of_resource = "RunInstances" if call.action == "CreateFleet" else call.action
        if instances and of_resource in RESOURCES:
            name = f"instances {of_resource}"
            needs.append((name, self.sizes.get(name, RESOURCES[of_resource]), float(instances)))
        levels = {name: self._level(name, size) for name, size, _ in needs if size is not None}
        if any(levels[name] < cost for name, size, cost in needs if size is not None):
            raise CallRefused("RequestLimitExceeded", "Request limit exceeded.", 503)
        for name, size, cost in needs:
            if size is not None:
                self._tokens[name] = (levels[name] - cost, self._now_s())

    def _requests(self, call: ApiCall) -> BucketSize | None:
        if call.action in self.sizes:
            return self.sizes[call.action]
        if call.action.startswith(("Describe", "Get", "List", "Search")):
            is_plain = not any(name in call.parameters for name in _PAGED)
            return UNFILTERED if call.action in _LARGE and is_plain else READS
        return OWN.get(call.action, WRITES)

    def _level(self, name: str, size: BucketSize) -> float:
        level, since_s = self._tokens.get(name, (size.capacity, self._now_s()))
        return min(size.capacity, level + (self._now_s() - since_s) * size.refill_per_s)
