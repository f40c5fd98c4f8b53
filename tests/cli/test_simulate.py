"""`kerf simulate`: forms of the report and exit codes."""

from pathlib import Path

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
