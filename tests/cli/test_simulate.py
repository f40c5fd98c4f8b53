"""`kerf simulate`: forms of the report and exit codes."""

import json
from pathlib import Path

import pytest

from tests.cli.program import kerf

SCENARIO = """
apiVersion: kerf.dev/v1alpha1
kind: Scenario
metadata: {name: tiny}
spec:
  duration: 5m
  objects:
    - apiVersion: karpenter.sh/v1
      kind: NodePool
      metadata: {name: general}
      spec:
        template:
          spec:
            nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
            requirements:
              - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}
              - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
    - apiVersion: v1
      kind: Pod
      metadata: {name: web}
      spec: {containers: [{name: main, image: x, resources: {requests: {cpu: CPU}}}]}
EXPECT
"""


def scenario(tmp_path: Path, cpu: str = "1", nodes: int | None = None, name: str = "tiny") -> str:
    """A scenario of one pod; `nodes` is what it expects at its end, None for nothing."""
    expect = "" if nodes is None else f"  expect:\n    - {{at: 5m, nodes: {{nodePool: general, count: {nodes}}}}}"
    path = tmp_path / f"{name}.yaml"
    path.write_text(SCENARIO.replace("CPU", cpu).replace("EXPECT", expect), encoding="utf-8")
    return str(path)


def test_met_expectations_are_zero_and_missed_ones_three(tmp_path: Path) -> None:
    """Exit 3 when an expectation is missed; the table says what came instead."""
    met, missed = kerf("simulate", scenario(tmp_path, nodes=1)), kerf("simulate", scenario(tmp_path, nodes=2))

    assert (0, 3) == (met.returncode, missed.returncode)
    assert "1 expectation, 0 missed\n" in met.stdout
    assert "5m  MISSED" in missed.stdout


def test_without_expectations_a_pod_left_over_needs_a_look(tmp_path: Path) -> None:
    """Exit 3 for a pod that has no place at the end."""
    assert 0 == kerf("simulate", scenario(tmp_path)).returncode
    assert 3 == kerf("simulate", scenario(tmp_path, cpu="100")).returncode


def test_the_report_is_the_same_every_time(tmp_path: Path) -> None:
    """Same scenario and seed: same bytes, for any hash seed."""
    path = scenario(tmp_path, nodes=1)
    outputs = {kerf("simulate", path, "-o", "json", environment={"PYTHONHASHSEED": seed}).stdout for seed in "012"}

    assert 1 == len(outputs)


def test_several_scenarios_are_a_list(tmp_path: Path) -> None:
    """One report as it is, several as a ReportList."""
    paths = [scenario(tmp_path, name=name) for name in ("a", "b")]

    assert "Report" == kerf("simulate", paths[0], "-o", "json").data["kind"]
    assert ["Report", "Report"] == [r["kind"] for r in kerf("simulate", *paths, "-o", "json").data["items"]]


def test_a_chart_is_an_svg_file(tmp_path: Path) -> None:
    """--chart FILE.svg; a file that cannot be written is exit 2."""
    path, chart = scenario(tmp_path), tmp_path / "chart.svg"

    assert 0 == kerf("simulate", path, "--chart", str(chart)).returncode
    assert chart.read_text(encoding="utf-8").startswith("<svg ")
    assert 2 == kerf("simulate", path, "--chart", str(tmp_path / "no" / "chart.svg")).returncode


def test_a_summary_has_a_row_for_each_kind_of_thing(tmp_path: Path) -> None:
    """How often, first and last; the totals stay."""
    whole, short = (kerf("simulate", scenario(tmp_path), *flags).stdout for flags in ((), ("--summary",)))

    assert "WHAT" in short
    assert "TIMES  FIRST" in short
    assert "claim created" in short
    assert [line for line in whole.splitlines() if line.startswith(("cost:", "pods:"))] == [
        line for line in short.splitlines() if line.startswith(("cost:", "pods:"))
    ]


TRACE = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"


def traced(tmp_path: Path, *rows: str) -> str:
    """A trace with these rows."""
    path = tmp_path / "pods.csv"
    path.write_text(TRACE + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return str(path)


def test_a_trace_is_replayed_in_a_scenario(tmp_path: Path) -> None:
    """Beside what it has; the report says what came of the pods, and how far the cost is above the bound."""
    trace = traced(tmp_path, "a,1000,1024,0,0,0,120,0", "b,1000,1024,0,0,30,150,30")
    done = kerf("simulate", scenario(tmp_path), "--trace", trace, "--duration", "10m", "--bound-every", "1m")

    assert 0 == done.returncode
    assert "trace: 2 pods came, 2 ended; of all waits 99 % are at most 1m" in done.stdout
    assert "re-pack bound: 0." in done.stdout
    assert "taken every 1m: " in done.stdout


def test_a_trace_needs_no_scenario(tmp_path: Path) -> None:
    """There are two pools then, and it lasts an hour longer than its last pod."""
    trace = traced(tmp_path, "a,1000,1024,1,500,0,120,0")
    done = kerf("simulate", "--trace", trace, "--bound-every", "1m", "-o", "json")
    report = json.loads(done.stdout)

    assert ("trace", "1h1s") == (report["metadata"]["name"], report["duration"])
    assert (1, 0, 1) == tuple(report["replay"][name] for name in ("pods", "again", "ended"))
    assert report["replay"]["overBoundPercent"] > 0
    assert [] == report["timeline"]


def test_a_replay_says_why_pods_have_no_place(tmp_path: Path) -> None:
    """Without a timeline nothing else would: by reason, the one of most pods first."""
    large = [f"large-{n},1000,1024,1000,1000,0,120,0" for n in range(2)]
    wide = "wide,100000000,1024,0,0,10,120,10"
    trace = traced(tmp_path, "a,1000,1024,0,0,0,120,0", wide, *large)
    flags = ("simulate", "--trace", trace, "--duration", "10m", "--bound-every", "0s")

    shown, report = kerf(*flags), kerf(*flags, "-o", "json").data

    lines = [line for line in shown.stdout.splitlines() if line.startswith("not placed: ")]
    assert lines[0].startswith("not placed: 2 pods, first pod/trace/large-0: Failed to schedule pod, ")
    assert lines[1].startswith("not placed: 1 pod, first pod/trace/wide: Failed to schedule pod, ")
    assert [(2, "trace/large-0"), (1, "trace/wide")] == [(e["pods"], e["first"]) for e in report["unplaced"]]
    assert "1000 GPUs" in report["unplaced"][0]["why"]


def test_the_bound_of_a_short_replay_is_taken_more_often(tmp_path: Path) -> None:
    """Two hundred times, at most once a minute and at least once an hour; --bound-every says another interval."""
    trace = traced(tmp_path, "a,1000,1024,1,500,0,9000,0")
    for duration, every in (("6h", "2m: "), ("90m", "1m: "), ("240h", "1h")):
        assert f"taken every {every}" in kerf("simulate", "--trace", trace, "--duration", duration).stdout
    given = kerf("simulate", "--trace", trace, "--duration", "6h", "--bound-every", "30m").stdout
    assert "taken every 30m" in given


@pytest.mark.parametrize("comes_s, why", [(1500, "the cost is below it"), (3300, "no pod ran when it was taken")])
def test_a_bound_that_is_taken_too_seldom_says_so(tmp_path: Path, comes_s: int, why: str) -> None:
    """No policy costs less than the bound of all moments: one that comes out above the cost is of too few of them."""
    trace = traced(tmp_path, *(f"p{n},1000,1024,1,1000,{comes_s},{comes_s + 360},{comes_s}" for n in range(8)))
    flags = ("simulate", "--trace", trace, "--bound-every", "1h")

    shown, report = kerf(*flags).stdout, kerf(*flags, "-o", "json").data

    assert f", taken every 1h: {why}; take --bound-every 1m" in shown
    assert report["replay"]["overBoundPercent"] is None


def test_a_replay_is_the_same_every_time(tmp_path: Path) -> None:
    """For any hash seed."""
    trace = traced(tmp_path, *(f"p{n},900,1024,0,0,{n * 20},{n * 20 + 200},{n * 20}" for n in range(12)))
    arguments = ("simulate", scenario(tmp_path), "--trace", trace, "--copies", "2", "--duration", "15m", "-o", "json")

    assert 1 == len({kerf(*arguments, environment={"PYTHONHASHSEED": seed}).stdout for seed in "012"})


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((), "expected a SCENARIO, or --trace FILE.csv"),
        (("SCENARIO", "--copies", "2"), "--trace FILE.csv: expected with the other flags of a trace"),
        (("SCENARIO", "--duration", "1d"), "expected a duration such as 30s, 10m or 1h30m, got '1d'"),
        (("SCENARIO", "--duration", "1m"), "--duration 1m: expected at least 5m, when the scenario has its last step"),
        (("--trace", "none.csv"), "--trace none.csv: expected a CSV file that can be read, got: No such file"),
        (("--trace", "TRACE"), "pods.csv:2: cpu_milli: expected a number from 0 on, got 'x'"),
    ],
)
def test_what_is_wrong_with_a_replay_is_said(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    """Exit code 2, before anything is run."""
    names = {"SCENARIO": scenario(tmp_path, nodes=1), "TRACE": traced(tmp_path, "a,x,1,0,0,0,9,0")}
    done = kerf("simulate", *(names.get(each, each) for each in arguments))

    assert 2 == done.returncode
    assert said in done.stderr
    assert "" == done.stdout
