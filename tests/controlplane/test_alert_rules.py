"""Rules of examples/001-monitoring, tried by promtool on series made up for the case."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import LEFT_OUT

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "001-monitoring"
HELD = 'kerf_pod_gpus{namespace="ml", pod="train", node="n", instance="kerf-0"}'
BUSY = 'DCGM_FI_DEV_GPU_UTIL{namespace="ml", pod="train", gpu="0"}'
CARD = 'kerf_gpu_allocated_ratio{nodepool="p", node="n", gpu="0", model="T4"}'

Series = dict[str, str]


@pytest.fixture(scope="module")
def promtool() -> Path:
    """The program; where it was not built the tests are skipped, loudly."""
    command = [sys.executable, str(ROOT / "controlplane" / "programs.py"), "promtool", "--print"]
    folder = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    if not (folder / "promtool").exists():
        reason = f"{LEFT_OUT}: promtool missing; build with `make controlplane`"
        if os.environ.get("KERF_REQUIRE_CONTROLPLANE") == "1":
            pytest.fail(f"{reason} (KERF_REQUIRE_CONTROLPLANE=1)")
        pytest.skip(reason)
    return folder / "promtool"


def told(promtool: Path, folder: Path, series: Series, **case: Any) -> str:
    """What promtool says of a case on series of 30 s; empty when it is as expected."""
    rules = yaml.safe_load((EXAMPLE / "rules.yaml").read_text(encoding="utf-8"))["spec"]
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules), encoding="utf-8")
    test = {
        "interval": "30s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        **case,
    }
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": "30s", "tests": [test]}
    (folder / "test.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    command = [str(promtool), "test", "rules", str(folder / "test.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def idle(at: str, *fired: tuple[dict[str, str], str]) -> Any:
    """What HighGPUIdle says at a time: labels and summary of each alert."""
    alerts = [
        {"exp_labels": {"severity": "warning", **labels}, "exp_annotations": {"summary": summary}}
        for labels, summary in fired
    ]
    return [{"eval_time": at, "alertname": "HighGPUIdle", "exp_alerts": alerts}]


def unused(percent: int) -> tuple[dict[str, str], str]:
    """The alert about the pod."""
    labels = {"namespace": "ml", "pod": "train", "reason": "unused"}
    return labels, f"ml/train leaves {percent} % of its GPU idle"


def unallocated(percent: int) -> tuple[dict[str, str], str]:
    """The alert about the node."""
    labels = {"nodepool": "p", "node": "n", "reason": "unallocated"}
    return labels, f"n has {percent} % of its GPUs idle: kerf explain node/n"


@pytest.mark.parametrize(
    ("series", "at", "fired"),
    [
        ({HELD: "1x60", BUSY: "49x60"}, "10m", [unused(51)]),
        ({HELD: "1x60", BUSY: "49x60"}, "9m30s", []),
        ({HELD: "1x60", BUSY: "51x60"}, "30m", []),
        ({HELD: "1x60", BUSY: "50x60"}, "30m", []),
        # One busy minute begins the ten anew.
        ({HELD: "1x80", BUSY: "0x9 100x3 0x40"}, "10m", []),
        # No sample at all: the exporter is not there, or does not see the pod.
        ({HELD: "0.5x60"}, "10m", [unused(100)]),
        # Nobody holds it, so that it is nobody's waste; the exporter's own pod is none either.
        ({BUSY: "0x60"}, "30m", []),
        # Two replicas of Kerf tell the same.
        ({HELD: "1x60", HELD.replace("kerf-0", "kerf-1"): "1x60", BUSY: "0x60"}, "10m", [unused(100)]),
        # A pod with two GPUs is judged by both together.
        ({HELD: "2x60", BUSY: "0x60", BUSY.replace('"0"', '"1"'): "100x60"}, "30m", []),
        ({CARD: "0.49x60"}, "10m", [unallocated(51)]),
        ({CARD: "0.49x60"}, "9m30s", []),
        ({CARD: "0.51x60"}, "30m", []),
        ({CARD: "0x60", CARD.replace('gpu="0"', 'gpu="1"'): "1x60"}, "30m", []),
    ],
)
def test_001_19_high_gpu_idle(
    promtool: Path, tmp_path: Path, series: Series, at: str, fired: list[tuple[dict[str, str], str]]
) -> None:
    """001-19: more than 50 % idle for ten minutes, also for a pod without any sample; never at 49 %."""
    assert "" == told(promtool, tmp_path, series, alert_rule_test=idle(at, *fired))


def test_001_19_the_documents_own_expression_is_never_true(promtool: Path, tmp_path: Path) -> None:
    """001-19: whatever the exporters say, since nobody has that metric; this is why the rule was written anew."""
    expression = "100 * (1 - rate(container_gpu_utilization[5m]) / kube_pod_container_resource_limits) > 50"
    limits = 'kube_pod_container_resource_limits{resource="nvidia_com_gpu", namespace="ml", pod="train"}'
    case = {"expr": expression, "eval_time": "10m", "exp_samples": []}

    assert "" == told(promtool, tmp_path, {BUSY: "0x60", limits: "1x60"}, promql_expr_test=[case])


def test_001_15_the_adapter_asks_prometheus_what_the_autoscaler_needs(promtool: Path, tmp_path: Path) -> None:
    """001-15: one value a pod, the mean of its GPUs over a minute."""
    values = yaml.safe_load((EXAMPLE / "adapter" / "values.yaml").read_text(encoding="utf-8"))
    (rule,) = values["rules"]["custom"]
    query = rule["metricsQuery"].replace("<<.GroupBy>>", "pod").replace("<<.Series>>", "DCGM_FI_DEV_GPU_UTIL")
    query = query.replace("<<.LabelMatchers>>", 'namespace="ml",pod=~"train|other"')
    case = {"expr": query, "eval_time": "10m", "exp_samples": [{"labels": '{pod="train"}', "value": 70}]}
    series = {BUSY: "40x60", BUSY.replace('"0"', '"1"'): "100x60", BUSY.replace("ml", "elsewhere"): "0x60"}

    assert "" == told(promtool, tmp_path, series, promql_expr_test=[case])
