"""A dump of a real cluster with a leader in it: what it remembers comes through the API server, and the plan again.

Kerf runs as a process here, so a Pod object with this machine's address stands for its pod: the server's proxy leads
to it as it would to any.
"""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster, cluster
from tests.controlplane.test_live_commands import Reader
from tools.controlplane.server import Binaries

POD = "kerf-0"
TO_DECISIONS = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "kerf-decisions"}


def own_address() -> str:
    """An address of this machine that is not loopback, to which the server's proxy refuses to go; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        found: str = probe.getsockname()[0]
    return found


@pytest.fixture(scope="module")
def led(binaries: Binaries) -> Iterator[tuple[Cluster, str]]:
    """Three pods that a leader has bought for, and the port on which its pod is asked."""
    with cluster(binaries, with_hami=True) as made:
        replica = made.installation.run("--metrics-address=0.0.0.0:0", environment={"POD_NAME": POD})
        made.until(lambda: replica.ready()[0], "Kerf is ready")
        container = {"name": "controller", "image": "kerf"}
        metadata = {"name": POD, "namespace": "kerf-system"}
        made.plane.apply(
            [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}]
        )
        address = own_address()
        status = {"status": {"podIP": address, "podIPs": [{"ip": address}]}}
        made.plane.kubectl(
            "patch", "pod", POD, "-n", "kerf-system", "--subresource=status", "--type=merge", "-p", json.dumps(status)
        )
        made.apply("003-hami/nodepool.yaml")
        made.apply("003-hami/workload.yaml", lambda text: text.replace("replicas: 0", "replicas: 3"))
        made.until(lambda: 3 == len(made.pods("Running")), "three pods run")
        yield made, replica.address("metrics").rpartition(":")[2]
        replica.program.terminate(30)


@pytest.fixture
def reader(led: tuple[Cluster, str], tmp_path: Path) -> Reader:
    """One who may view."""
    return Reader(led[0].plane, tmp_path)


def dumped(reader: Reader, port: str, *arguments: str) -> tuple[Any, str]:
    """The header of a dump, which lies at `dump` afterwards, and what is said of it."""
    done = reader.kerf("snapshot", "--leader-port", port, *arguments)
    assert 0 == done.returncode, done.stderr
    (reader.folder / "dump").write_text(done.stdout, encoding="utf-8")
    return done.data["items"][0], done.stderr


def test_who_may_view_gets_a_dump_without_the_leaders_memory(led: tuple[Cluster, str], reader: Reader) -> None:
    """And is told which line of a role would give it."""
    header, told = dumped(reader, led[1])

    assert [] == header["decisions"]
    assert "the leader's stock-outs, back-offs and decisions: forbidden: " in header["missing"][-1]
    assert "resourceNames: [kerf-dry-run-leader-election, kerf-leader-election]" in told


def test_who_has_the_role_gets_all_of_it_and_the_plan_again(led: tuple[Cluster, str], reader: Reader) -> None:
    """Through the server's proxy, with a token that only Kerf accepts; a live plan of that instant is the same."""
    site, port = led
    site.plane.kubectl("create", "rolebinding", "d", "--role=kerf-decisions", "--user=reader", "-n", "kerf-system")
    site.until(lambda: dumped(reader, port)[0]["decisions"], "the authoriser knows the role")
    header, told = dumped(reader, port)
    live = reader.kerf("plan", "--now", header["takenAt"], "-o", "json")

    assert "without the leader" not in told
    assert {"g5-nodepool"} == {launch["nodePool"] for each in header["decisions"] for launch in each["launches"]}
    assert live.stdout == reader.kerf("plan", "--replay", str(reader.folder / "dump"), "-o", "json").stdout
