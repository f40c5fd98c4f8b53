"""Many at once, within the buckets by which EC2 throttles an account. Time is that of the cloud's clock."""

import asyncio
import heapq
from collections import Counter
from collections.abc import Awaitable
from typing import Any

import pytest

from kerf.cloudprovider import Instance, Withdrawn
from kerf.clouds.aws.buckets import Buckets
from kerf.clouds.aws.clients import BotoApi
from kerf.clouds.aws.provider import AwsCloud
from kerf.model.nodeclaim import NodeClaim
from kerf.testing.faultproxy.server import SteppedClock
from tests.awscloud import REGION
from tests.clouds.aws.eks import CLUSTER, Eks

CLAIMS, INSTANCES = 200, 1000
MOST_S = 60
"""In which all claims must be launched."""


class Turns:
    """Sleep on the cloud's clock, which moves on when all that is left to do sleeps."""

    def __init__(self, clock: SteppedClock) -> None:
        self._clock, self._asleep = clock, list[tuple[float, int, asyncio.Event]]()
        self._number = 0

    async def sleep(self, seconds: float) -> None:
        """Return when the clock says so."""
        self._number += 1
        woken = asyncio.Event()
        heapq.heappush(self._asleep, (self._clock() + seconds, self._number, woken))
        await woken.wait()

    async def done(self, calls: list[Awaitable[Any]]) -> list[Any]:
        """What the calls give, in their order."""
        tasks = [asyncio.ensure_future(call) for call in calls]
        while left := [task for task in tasks if not task.done()]:
            if len(left) > len(self._asleep):
                await asyncio.wait(left, timeout=0.001, return_when=asyncio.FIRST_COMPLETED)
                continue
            when_s, _, woken = heapq.heappop(self._asleep)
            self._clock.advance(max(0.0, when_s - self._clock()))
            woken.set()
            await asyncio.sleep(0)
        return [task.result() for task in tasks]


@pytest.fixture
def turns(eks: Eks) -> Turns:
    """With it the provider's own buckets go by the cloud's clock, as the cloud's do."""
    return Turns(eks.cloud.clock)


def test_two_hundred_claims_at_once_are_launched_within_a_minute(
    eks: Eks, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One instance and one call a claim, one launch template for all, and nothing throttled."""
    provider = _within_buckets(eks, turns, monkeypatch)
    claims = [eks.claim(number, zones=("us-east-1a",)) for number in range(CLAIMS)]
    began_s, first = eks.clock.now_s(), len(eks.cloud.proxy.calls)

    found: list[Instance] = eks.done(turns.done([provider.create(claim) for claim in claims]))
    eks.api.close()

    calls = eks.cloud.proxy.calls[first:]
    assert {"ec2:CreateFleet": CLAIMS, "ec2:CreateLaunchTemplate": 1} == Counter(call.name for call in calls)
    assert {"ok"} == {call.outcome for call in calls}
    assert [claim.uid for claim in claims] == [instance.claim_uid for instance in found]
    living = Counter(row.tags["kerf.dev/claim-uid"] for row in eks.cloud.proxy.instances.living())
    assert dict.fromkeys((claim.uid for claim in claims), 1) == living
    assert MOST_S >= eks.clock.now_s() - began_s


def test_claims_that_go_while_they_stand_in_line_are_not_launched(
    eks: Eks, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred, all deleted after ten seconds: forty went at once and four a second, and of the rest none."""
    provider = _within_buckets(eks, turns, monkeypatch)
    claims = [eks.claim(number, zones=("us-east-1a",)) for number in range(CLAIMS)]
    began_s = eks.clock.now_s()
    provider.launches_while(lambda claim: eks.clock.now_s() < began_s + 10)

    async def launched(claim: NodeClaim) -> Instance | None:
        try:
            return await provider.create(claim)
        except Withdrawn:
            return None

    found: list[Instance | None] = eks.done(turns.done([launched(claim) for claim in claims]))
    eks.api.close()

    assert 15 >= eks.clock.now_s() - began_s
    made = {instance.claim_uid for instance in found if instance is not None}
    assert 40 <= len(made) <= 80
    assert made == {row.tags["kerf.dev/claim-uid"] for row in eks.cloud.proxy.instances.living()}


def _within_buckets(eks: Eks, turns: Turns, monkeypatch: pytest.MonkeyPatch) -> AwsCloud:
    """A provider whose own buckets go by the cloud's clock."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "kerf")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    buckets = Buckets(now_s=eks.cloud.clock, sleep=turns.sleep)
    eks.api = BotoApi(REGION, endpoint=eks.cloud.proxy.url, buckets=buckets)
    return eks.life()


@pytest.mark.parametrize(("count", "pages"), [(INSTANCES, 1), (INSTANCES + 1, 2)])
def test_a_thousand_instances_are_listed_in_one_call(eks: Eks, count: int, pages: int) -> None:
    """A page of EC2 has as many; each more thousand is one call more, and none is throttled."""
    tags = {"kubernetes.io/cluster/" + CLUSTER: "owned", "karpenter.sh/nodepool": "gpu"}
    eks.cloud.proxy.instances.seed(count, tags)
    first = len(eks.cloud.proxy.calls)

    assert count == len(eks.done(eks.provider.list_instances()))
    calls = [(call.name, call.outcome) for call in eks.cloud.proxy.calls[first:]]
    assert [("ec2:DescribeInstances", "ok")] * pages == calls
