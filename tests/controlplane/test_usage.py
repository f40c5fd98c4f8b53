"""Usage on a real control plane: metrics-server tells it, Kerf remembers it over a restart, and goes on without it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kerf.engine.study.usage.history import WorkloadName, entries_of, entry_key, shard_of
from kerf.model.usage import SHARD_LABEL
from tests.cli.program import Result
from tests.conftest import LEFT_OUT
from tests.controlplane.cluster import Cluster, cluster
from tests.controlplane.kubelet_metrics import KubeletMetrics, registration
from tools.controlplane.installation import NAMESPACE, Replica
from tools.controlplane.process import Ports, Program
from tools.controlplane.server import Binaries

BUILD = Path(__file__).parents[2] / "controlplane" / "programs.py"
WEB = WorkloadName("default", "Deployment", "web")
CORES, MEMORY_BYTES = 0.25, 100 * 2**20
USAGE = ("--usage-poll=1s", "--usage-checkpoint=2s")


@pytest.fixture(scope="module")
def metrics_server() -> Path:
    """The program of today's lock."""
    command = [sys.executable, str(BUILD), "metrics-server", "--print"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    program = Path(printed.stdout.strip()) / "metrics-server"
    if not program.exists():
        reason = f"{LEFT_OUT}: metrics-server missing; build with `make controlplane`"
        if os.environ.get("KERF_REQUIRE_CONTROLPLANE") == "1":
            pytest.fail(f"{reason} (KERF_REQUIRE_CONTROLPLANE=1)")
        pytest.skip(reason)
    return program


@dataclass
class Site:
    """A node with three pods of a Deployment that ask for nothing, its kubelet's metrics, and metrics-server."""

    cluster: Cluster
    server: Program

    def samples(self) -> int:
        """How many of the Deployment's cpu are in the checkpoint."""
        shard: Any = self.cluster.plane.get("ConfigMap", shard_of(WEB), NAMESPACE) or {}
        found, broken = entries_of(shard.get("data") or {})
        assert not broken
        return found[WEB].sketches["main", "cpu"].count if WEB in found else 0

    def advice(self) -> Result:
        """What an ordinary reader is told."""
        kubeconfig = f"--kubeconfig={self.cluster.plane.kubeconfig('reader')}"
        command = (sys.executable, "-c", "from kerf.cli.main import entry; entry()", "advise", "requests")
        done = subprocess.run(
            [*command, "deployment/web", kubeconfig, "-o", "json"], capture_output=True, text=True, check=False
        )
        return Result(done.args, done.returncode, done.stdout, done.stderr)

    def start(self) -> Replica:
        """Kerf, with looks and checkpoints that follow each other fast."""
        return self.cluster.start(*USAGE)


@pytest.fixture(scope="module")
def site(binaries: Binaries, metrics_server: Path) -> Iterator[Site]:
    """All of it, once metrics-server has scraped twice."""
    with cluster(binaries) as made:
        plane = made.plane
        plane.apply([node(), deployment()])
        made.until(lambda: 3 == len(made.pods("Running")), "three pods run")
        keys = [f"default/{pod['metadata']['name']}" for pod in made.pods()]
        with KubeletMetrics(dict.fromkeys(keys, CORES), MEMORY_BYTES) as kubelet, a_port() as port:
            server = plane.launch("metrics-server", command(metrics_server, made, kubelet.port, port))
            plane.apply(registration(port))
            made.until(lambda: 3 == len(items(made)), "metrics of three pods", 180)
            yield Site(made, server)


@contextmanager
def a_port() -> Iterator[int]:
    """A free port that is nobody else's meanwhile."""
    ports = Ports()
    try:
        yield ports.reserve()
    finally:
        ports.release()


def command(program: Path, site: Cluster, kubelet_port: int, port: int) -> list[str | Path]:
    """It asks each kubelet at its node's address, and takes any certificate."""
    kubeconfig = site.plane.kubeconfig()
    return [
        program,
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--permit-port-sharing=true",
        f"--cert-dir={site.plane.folder / 'metrics-server'}",
        "--kubelet-insecure-tls",
        f"--kubelet-port={kubelet_port}",
        "--kubelet-preferred-address-types=InternalIP",
        "--metric-resolution=10s",
        "--kubelet-request-timeout=5s",
    ]


def items(site: Cluster) -> list[Any]:
    """What metrics.k8s.io tells of pods; nothing while it does not answer."""
    answer = site.plane.request("GET", "/apis/metrics.k8s.io/v1beta1/pods")
    return list(answer.body["items"]) if answer.status == 200 else []


def test_usage_is_remembered_over_a_restart_and_without_a_metrics_server(site: Site) -> None:
    """002-4, 002-10: samples from the real metrics-server, advice within 5 % of the truth, told to a mere reader."""
    replica = site.start()
    site.cluster.until(lambda: 3 <= site.samples(), "a checkpoint")
    assert 0 == replica.program.terminate(30)
    before = site.samples()

    replica = site.start()
    site.cluster.until(lambda: before + 3 <= site.samples(), "the history goes on")
    told = site.advice()

    assert (0, "") == (told.returncode, told.stderr)
    assert {"advice", 3} == {told.data["label"], told.data["pods"]}
    cpu, memory = told.data["rows"]
    assert CORES * 1000 == pytest.approx(int(cpu["p95"].removesuffix("m")), rel=0.05)
    assert ("100Mi", "120Mi") == (memory["peak"], memory["advice"])
    assert cpu["samples"] >= before + 3

    site.server.kill()
    again = site.advice()
    assert 0 == again.returncode
    assert again.stderr.startswith("note: without usage: metrics.k8s.io does not answer: HTTP 503")
    assert 1 == again.stderr.count("\n")
    site.cluster.until(lambda: "without usage" in replica.program.tail(50), "Kerf says that nobody tells")
    assert replica.ready()[0]
    site.server.start()
    known = site.samples()
    site.cluster.until(lambda: known + 3 <= site.samples(), "it comes back by itself", 120)


def test_a_broken_checkpoint_is_begun_again(site: Site) -> None:
    """002, bad input: told in the log and to whoever asks; the workloads beside it keep their history."""
    plane = site.cluster.plane
    for name, program in list(plane.pids().items()):
        if name.startswith("kerf-") and program:
            plane.program(name).terminate(30)
    held = site.samples()
    plane.kubectl("patch", "configmap", shard_of(WEB), f"-n{NAMESPACE}", "-p", '{"data": {"junk": "{"}}')
    assert "data.junk: expected a checkpoint of usage" in site.advice().stderr

    replica = site.start()

    def is_mended() -> bool:
        shard: Any = plane.get("ConfigMap", shard_of(WEB), NAMESPACE)
        return {entry_key(WEB)} == set(shard["data"])

    site.cluster.until(is_mended, "the entry that cannot be read is gone")
    assert held <= site.samples()
    assert "checkpoint started again" in replica.program.log.read_text(encoding="utf-8")
    assert {"v1"} == {
        found["metadata"]["labels"][SHARD_LABEL] for found in plane.list("ConfigMap", NAMESPACE, selector=SHARD_LABEL)
    }


def node() -> dict[str, Any]:
    """A fake one, so that kwok keeps it and runs its pods."""
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "58"}
    metadata = {"name": "node-1", "annotations": {"kwok.x-k8s.io/node": "fake"}}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def deployment() -> dict[str, Any]:
    """Three pods that ask for nothing."""
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "main"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": pod},
    }
