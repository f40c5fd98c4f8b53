"""`kerf plan`: formats, order of the input, what is told where."""

import itertools
import json
from pathlib import Path

import pytest
import yaml

from kerf.engine.bounding import bounded
from kerf.engine.decide import decide
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type
from tests.cli.program import (
    CLUSTER,
    POOL_000,
    POOL_003,
    POOL_004,
    ROOT,
    THREE,
    WORKLOAD_000,
    WORKLOAD_003,
    WORKLOAD_004,
    files,
    kerf,
)

PLAN_STDIN = ("plan", "-o", "json", "-f", "-")
KEYS = [
    "apiVersion",
    "kind",
    "strategy",
    "gpus",
    "cost",
    "lowerBound",
    "launches",
    "deletions",
    "replacements",
    "evictions",
    "placements",
    "unplaced",
    "notes",
    "admissions",
]


def test_all_placed_is_zero_and_some_left_is_three() -> None:
    """Exit 0 when every pod has a place, 3 when one has none."""
    assert 0 == kerf("plan", *files(POOL_004, WORKLOAD_004)).returncode
    assert 3 == kerf("plan", *files(POOL_000, WORKLOAD_000)).returncode


def test_json_has_the_keys_of_the_reference_in_their_order() -> None:
    """The keys of a Plan are a contract."""
    data = kerf("plan", *files(POOL_003, WORKLOAD_003), *THREE, "-o", "json").data

    assert KEYS == list(data)
    assert {"currency": "USD", "perHourBefore": 0, "perHourAfter": 2.012, "perHourLowerBound": 2.012} == data["cost"]
    assert {"paid": 2, "allocated": 1.5, "kerf": 0.25} == data["gpus"]


def test_a_launch_shows_each_slice_under_its_card() -> None:
    """003: two pods on one card, each with container, memory and cores."""
    data = kerf("plan", *files(POOL_003, WORKLOAD_003), *THREE, "-o", "json").data
    (card,) = data["launches"][0]["devices"]

    assert (0, "A10G", 22888) == (card["index"], card["model"], card["memoryMiB"])
    held = {"container": "inference", "memoryMiB": 1000, "cores": 50}
    assert [{"pod": f"default/gpu-inference-{i}", **held} for i in (0, 1)] == card["slices"]


def test_a_node_without_accelerator_has_no_devices() -> None:
    """`devices` of a launch appear when the node has accelerators."""
    data = kerf("plan", *files("examples/002-batch"), "-o", "json").data

    assert [False] == ["devices" in launch for launch in data["launches"]]


@pytest.mark.parametrize("paths", [(POOL_000, WORKLOAD_000), (CLUSTER,)])
def test_yaml_has_the_same_data_as_json(paths: tuple[str, ...]) -> None:
    """-o yaml and -o json tell the same."""
    as_json, as_yaml = (kerf("plan", *files(*paths), "-o", form).stdout for form in ("json", "yaml"))

    assert json.loads(as_json) == yaml.safe_load(as_yaml)


def test_the_table_says_every_line_why() -> None:
    """Launch, cost, GPUs, pods without a place with hint and a ready command."""
    lines = kerf("plan", *files(POOL_000, WORKLOAD_000)).stdout.splitlines()

    assert ["NODEPOOL", "ACTION", "TARGET", "USD/H", "PODS", "WHY"] == lines[0].split()
    assert lines[1].startswith("gpu-pool-1  launch  g5.2xlarge, on-demand  1.212  1     1 pod needs 1 GPU")
    assert "cost: 0.00 -> 1.212 USD/h; lower bound 1.212: this plan is optimal" in lines
    assert "GPUs: 1 paid, 1 allocated, kerf 0 %" in lines
    assert "1 pod placed, 4 not:" in lines
    assert any(line.startswith("  default/gpu-app-1 and 3 more  limits: limit cpu 10 ") for line in lines)
    assert """    kubectl patch nodepool gpu-pool-1 --type merge -p '{"spec": {"limits": {"cpu": "40"}}}'""" in lines


def test_equal_launches_are_one_row() -> None:
    """A plan of many equal nodes can be read."""
    lines = kerf("plan", *files(POOL_004, WORKLOAD_004)).stdout.splitlines()

    assert lines[1].startswith("gpu-a10   launch  2 x ecs.gn7i-c8g1.2xlarge, on-demand  19.0652  2     each: ")


def test_wide_adds_zones_and_cards() -> None:
    """-o wide has a row a launch and a row a slice."""
    lines = kerf("plan", *files(POOL_003, WORKLOAD_003), *THREE, "-o", "wide").stdout.splitlines()

    assert ["g5-nodepool", "launch", "g5.xlarge", "launch-0", "us-east-1a", "on-demand"] == lines[1].split()[:6]
    slices = [line.split() for line in lines if line.startswith("launch-")]
    assert [("launch-0", "default/gpu-inference-0"), ("launch-0", "default/gpu-inference-1")] == [
        (row[0], row[5]) for row in slices[:2]
    ]


def test_the_order_of_documents_and_the_hash_seed_change_no_byte() -> None:
    """Same input, same bytes, for any order of documents and any PYTHONHASHSEED."""
    texts = [_text(path) for path in (POOL_003, WORKLOAD_003, CLUSTER)]
    outputs = {
        kerf(*PLAN_STDIN, *THREE, stdin="\n---\n".join(order), environment={"PYTHONHASHSEED": seed}).stdout
        for order, seed in zip(itertools.permutations(texts), itertools.cycle("012"), strict=False)
    }

    assert 1 == len(outputs)


def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_timings_are_one_line_on_stderr_and_change_no_output() -> None:
    """--timings tells seconds, bytes and counts, on stderr alone."""
    plan = ("plan", *files(POOL_004, WORKLOAD_004))
    plain, timed = kerf(*plan), kerf(*plan, "--timings")
    told = json.loads(timed.stderr)

    assert plain.stdout == timed.stdout
    seconds, memory = ["read_s", "plan_s", "bound_s", "render_s"], ["peak_rss_bytes", "rss_after_imports_bytes"]
    assert [*seconds, *memory, "pods", "shapes"] == list(told)
    assert (2, 1) == (told["pods"], told["shapes"])


def test_the_newest_instant_is_now_unless_now_is_given() -> None:
    """A node goes once consolidateAfter is over by --now, whose default is the newest instant of the input."""
    now = ("--now", "2026-01-05T10:05:00Z")
    by_default, later = (kerf("plan", *files(CLUSTER), *more, "-o", "json").data for more in ((), now))

    assert [] == by_default["deletions"]
    assert [
        {
            "node": "ip-10-0-0-2",
            "nodePool": "g5",
            "reason": "Empty",
            "perHourSaved": 1.006,
            "why": "empty for 10m30s, saves 1.006 USD/h",
        }
    ] == later["deletions"]
    assert (3.018, 2.012, None) == tuple(later["cost"][f"perHour{name}"] for name in ("Before", "After", "LowerBound"))


@pytest.mark.parametrize("pod", ["ghost", "inference-0"])
def test_a_sample_of_usage_is_not_the_present(pod: str) -> None:
    """One of 2036, of a pod that is not there or of one that is, makes no node empty for ten years."""
    sample = f"""---
apiVersion: metrics.k8s.io/v1beta1
kind: PodMetrics
metadata: {{name: {pod}, namespace: default}}
timestamp: "2036-01-01T00:00:00Z"
window: 30s
containers: [{{name: main, usage: {{cpu: 100m, memory: 10Mi}}}}]
"""
    data = kerf("plan", "-f", "-", "-o", "json", stdin=f"{_text(CLUSTER)}\n{sample}").data

    assert kerf("plan", *files(CLUSTER), "-o", "json").data == data


def test_a_node_that_a_pod_is_to_go_on_is_not_deleted() -> None:
    """No node is deleted on which the same plan places a pod."""
    pod = _text(CLUSTER).replace("nvidia.com/gpumem: 40000", "nvidia.com/gpumem: 20000")
    data = kerf("plan", "-f", "-", "--now", "2026-01-05T10:05:00Z", "-o", "json", stdin=pod).data

    assert [("default/train-0", "ip-10-0-0-2")] == [(p["pod"], p["node"]) for p in data["placements"]]
    assert [[0]] == [[card["index"] for card in p["devices"]] for p in data["placements"]]
    assert [] == data["deletions"]


@pytest.mark.parametrize(
    "flags, pods",
    [(("-n", "other"), 0), (("-n", "default"), 5), (("-l", "app=gpu-app"), 5), (("-l", "app!=gpu-app"), 0)],
)
def test_a_namespace_and_a_selector_choose_the_pods(flags: tuple[str, ...], pods: int) -> None:
    """-n and -l plan for the pods that they name only."""
    data = kerf("plan", *files(POOL_000, WORKLOAD_000), *flags, "-o", "json").data

    assert pods == len(data["unplaced"]) + sum(len(launch["pods"]) for launch in data["launches"])


def test_kinds_that_are_not_read_are_counted_on_stderr(tmp_path: Path) -> None:
    """A note tells what was passed over; it is no data."""
    other = tmp_path / "ingress.yaml"
    other.write_text("{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x}, spec: {}}")
    done = kerf("plan", *files(POOL_004, WORKLOAD_004, str(other)))

    assert (0, "note: kinds that Kerf does not read: Ingress (1)\n") == (done.returncode, done.stderr)


def test_a_bound_that_comes_later_is_the_same() -> None:
    """`bounded` gives a decision the bound that it would have had at once."""
    market = a_market(an_instance_type("small", cpu=2, price="0.50"), an_instance_type("large", cpu=8, price="1.10"))
    snapshot = a_snapshot(pools=[a_pool()], pods=[a_pod(f"p-{i}", cpu=1 + i % 2) for i in range(7)])
    later = decide(World(snapshot, market), Options(with_bound=False))

    assert decide(World(snapshot, market)).cost == bounded(later).cost
    assert later.cost.bound_micro is None


def hami_map(namespace: str, count: int) -> str:
    """HAMi's ConfigMap in a namespace."""
    name = f"{{name: hami-scheduler-device, namespace: {namespace}}}"
    text = f"{{device-config.yaml: 'nvidia: {{deviceSplitCount: {count}}}'}}"
    return f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name}\ndata: {text}\n"


PLAN_003 = ("plan", *files(POOL_003, WORKLOAD_003), *THREE, "-f", "-")


def test_a_tenants_config_map_changes_no_plan_and_is_named() -> None:
    """It has the name of HAMi's own and says something else."""
    alone = kerf(*PLAN_003, stdin=hami_map("kube-system", 4))
    beside = kerf(*PLAN_003, stdin=hami_map("kube-system", 4) + hami_map("team-a", 1))

    assert (alone.returncode, alone.stdout) == (beside.returncode, beside.stdout)
    assert "note: not read: ConfigMap team-a/hami-scheduler-device: GPU plugins are configured in" in beside.stderr


def test_two_configurations_of_plugins_that_differ_are_said() -> None:
    """Both names, to the pods that need one; where a plugin is in another namespace, a variable says so."""
    stdin = hami_map("kube-system", 4) + hami_map("hami", 1)
    own = kerf(*PLAN_003, stdin=stdin, environment={"KERF_PLUGIN_NAMESPACES": "hami,kube-system"})
    wrong = kerf(*PLAN_003, stdin=stdin, environment={"KERF_PLUGIN_NAMESPACES": "Hami"})

    assert (3, 2, 0) == (own.returncode, wrong.returncode, kerf(*PLAN_003, stdin=stdin).returncode)
    assert "hami/hami-scheduler-device, kube-system/hami-scheduler-device differ" in own.stderr
    assert "KERF_PLUGIN_NAMESPACES" in wrong.stderr
