"""A moto server for the whole run, and the fault proxy before it, empty for each test.

moto takes three seconds to start and about as long for its first call of EC2, so it is started once; a reset between
two tests takes a fraction of that.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.request import Request, urlopen

import pytest

from kerf.testing.faultproxy.server import FaultProxy, SteppedClock
from tools.controlplane.moto import moto

REGION = "us-east-1"


@dataclass(frozen=True)
class AwsCloud:
    """The proxy before moto, and its clock, which a test advances."""

    proxy: FaultProxy
    clock: SteppedClock

    def client(self, service: str, read_timeout: float = 300) -> Any:
        """A client of boto3 that retries nothing."""
        return client(service, self.proxy.url, read_timeout)


@cache
def _session() -> Any:
    # Most tests of a run need no boto3, whose import takes half a second.
    import boto3

    return boto3.session.Session("access", "secret", region_name=REGION)


@cache
def client(service: str, url: str, read_timeout: float = 300) -> Any:
    """A client of boto3 at the URL that retries nothing."""
    from botocore.config import Config

    config = Config(retries={"total_max_attempts": 1, "mode": "standard"}, read_timeout=read_timeout)
    return _session().client(service, endpoint_url=url, config=config)


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """The moto server of the run."""
    with moto() as url:
        yield url


@pytest.fixture(scope="session")
def _proxy(moto_url: str) -> Iterator[tuple[FaultProxy, SteppedClock]]:
    clock = SteppedClock()
    with FaultProxy(moto_url, now_s=clock, region=REGION) as proxy:
        yield proxy, clock


@pytest.fixture
def aws_cloud(moto_url: str, _proxy: tuple[FaultProxy, SteppedClock]) -> Iterator[AwsCloud]:
    """An empty cloud: moto's default VPC with a subnet in each zone, and nothing else."""
    proxy, clock = _proxy
    urlopen(Request(f"{moto_url}/moto-api/reset", method="POST")).close()
    proxy.reset()
    yield AwsCloud(proxy, clock)
    proxy.faults.release_all()
