"""A moto server for the whole run, and the fault proxy before it, empty for each test.

moto takes three seconds to start and about as long for its first call of EC2, so it is started once; a reset between
two tests takes a fraction of that.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.request import Request, urlopen

import pytest

from kerf.testing.faultproxy.server import FaultProxy, SteppedClock

REGION = "us-east-1"
# It ends when our end of its standard input closes, however this process ends.
_MOTO = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
sys.stdin.read()
"""
_ENVIRONMENT = {"MOTO_EC2_LOAD_DEFAULT_AMIS": "false"}


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


@contextmanager
def moto() -> Iterator[str]:
    """The URL of a moto server in a process of its own."""
    command = [sys.executable, "-c", _MOTO]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **_ENVIRONMENT},
    )
    assert process.stdout is not None
    host, port = process.stdout.readline().split()
    yield f"http://{host}:{port}"
    process.communicate()


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
