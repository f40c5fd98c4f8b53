"""examples/001-monitoring on a real control plane: what is applied is taken, and the autoscaler scales."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.chart import rendered
from tests.controlplane.custom_metrics import CustomMetrics
from tests.controlplane.definitions import definitions
from tools.controlplane.server import Binaries, ControlPlane

EXAMPLE = Path(__file__).parents[2] / "examples" / "001-monitoring"
WORK = 320
"""Percent of a GPU that there is to do: four pods at 80."""


@pytest.fixture(scope="module")
def plane(binaries: Binaries) -> Iterator[ControlPlane]:
    """With a node of ten GPUs, and the definitions of the Prometheus operator."""
    crds = definitions("monitoring.coreos.com_podmonitors", "monitoring.coreos.com_prometheusrules")
    labels = {"karpenter.sh/capacity-type": "on-demand"}
    metadata = {"name": "gpus", "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": labels}
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "10"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"allocatable": amounts, "capacity": amounts},
    }
    with ControlPlane(binaries) as made:
        made.install_crds(crds)
        made.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}}, node])
        made.kubectl("patch", "node", "gpus", "--subresource=status", "-p", yaml.safe_dump({"status": node["status"]}))
        yield made


def test_every_manifest_of_the_example_is_taken(plane: ControlPlane) -> None:
    """001-15, 001-16, 001-18, 001-19: with strict validation, an unknown field being an error."""
    applied = plane.kubectl("apply", "--validate=strict", "-f", str(EXAMPLE))

    assert "" == applied.stderr
    assert 9 == len(applied.stdout.splitlines())


def test_001_18_the_monitor_finds_what_the_chart_makes(binaries: Binaries) -> None:
    """001-18: namespace, labels and port of Kerf's pods, every 30 seconds."""
    monitors = yaml.safe_load_all((EXAMPLE / "monitors.yaml").read_text(encoding="utf-8"))
    spec: Any = next(each["spec"] for each in monitors if each["metadata"]["name"] == "kerf")
    chart = rendered(binaries, {})
    (deployment,) = chart.of_kind("Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]

    assert [deployment["metadata"]["namespace"]] == spec["namespaceSelector"]["matchNames"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    (endpoint,) = spec["podMetricsEndpoints"]
    assert endpoint["port"] in {port["name"] for port in chart.container["ports"]}
    assert "30s" == endpoint["interval"]


def test_001_15_the_autoscaler_brings_the_mean_to_its_target(plane: ControlPlane) -> None:
    """001-15: from one pod to the four that do the work at 80 % each, and no further."""
    plane.kubectl("apply", "-f", str(EXAMPLE))

    def busy(namespace: str, selector: str) -> dict[str, int]:
        pods = [pod for pod in plane.list("Pod", namespace, selector=selector) if pod["status"]["phase"] == "Running"]
        return {pod["metadata"]["name"]: min(100, WORK // len(pods)) for pod in pods}

    with CustomMetrics("gpu_utilization", busy) as metrics:
        plane.apply(metrics.registration("monitoring"))

        plane.wait_until(lambda: 4 == replicas(plane), 180, "four replicas")
        asked = metrics.asked
        plane.wait_until(lambda: asked + 3 <= metrics.asked, 90, "three more looks")

    assert 4 == replicas(plane)
    scaler: Any = plane.get("HorizontalPodAutoscaler", "gpu-task")
    assert "80" == scaler["status"]["currentMetrics"][0]["pods"]["current"]["averageValue"]


def replicas(plane: ControlPlane) -> int:
    """What the autoscaler has set."""
    found: Any = plane.get("Deployment", "gpu-task")
    return int(found["spec"]["replicas"])
