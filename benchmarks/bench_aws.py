"""Figures of the AWS provider on moto behind the fault proxy, whose buckets throttle as EC2's do, by the real clock.

Run as `python -m benchmarks.bench_aws burst`. The memory is that of this process beyond its imports, the proxy and its
record of all calls included; moto is a process of its own.
"""

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import boto3  # noqa: F401 - the provider imports it late, and it counts as an import

from kerf.clouds.aws.clients import BotoApi
from kerf.model.nodeclaim import NodeClaim
from kerf.testing.faultproxy.server import FaultProxy, SteppedClock
from tests.awscloud import REGION, AwsCloud
from tests.clouds.aws.eks import ACCESS_KEY, CLUSTER, Eks
from tools.controlplane.moto import moto

_CLAIMS, _INSTANCES = 200, 1000
_KIB = 1024


class _RealClock(SteppedClock):
    """The clock of the machine: nothing has to be advanced."""

    def __call__(self) -> float:
        return time.time()


@contextmanager
def _cluster() -> Iterator[Eks]:
    os.environ |= {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": "secret"}
    clock = _RealClock()
    with ExitStack() as stack:
        proxy = stack.enter_context(FaultProxy(stack.enter_context(moto()), now_s=clock, region=REGION))
        api = BotoApi(REGION, endpoint=proxy.url)
        stack.callback(api.close)
        yield Eks(AwsCloud(proxy, clock), api)


def burst() -> dict[str, float]:
    """200 claims at once until the last is launched, then 1,000 more instances listed."""
    before_mib = _resident_mib()
    with _cluster() as eks:
        claims = [eks.claim(number, zones=("us-east-1a",)) for number in range(_CLAIMS)]
        began_s = time.perf_counter()
        eks.done(_all(eks, claims))
        burst_s = time.perf_counter() - began_s
        tags = {f"kubernetes.io/cluster/{CLUSTER}": "owned", "karpenter.sh/nodepool": "gpu"}
        eks.cloud.proxy.instances.seed(_INSTANCES, tags)
        began_s = time.perf_counter()
        listed = len(eks.done(eks.provider.list_instances()))
        list_s = time.perf_counter() - began_s
        throttled = sum(call.outcome == "RequestLimitExceeded" for call in eks.cloud.proxy.calls)
    if listed != _CLAIMS + _INSTANCES:
        raise SystemExit(f"{listed} instances are listed")
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB
    return {
        "aws_200_claims_s": burst_s,
        "aws_200_claims_throttled": throttled,
        "aws_1200_instances_listed_s": list_s,
        "aws_over_imports_mib": peak_mib - before_mib,
    }


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


async def _all(eks: Eks, claims: list[NodeClaim]) -> None:
    await asyncio.gather(*(eks.provider.create(claim) for claim in claims))


SETS = {"burst": burst}

if __name__ == "__main__":
    print(json.dumps(SETS[sys.argv[1]]()))
