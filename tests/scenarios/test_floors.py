"""A pool at its floor goes on living: what breaks or drifts there is replaced, and it never has fewer nodes."""

from pathlib import Path

from kerf.sim.course.report import SimulationReport
from kerf.sim.course.scenario import read_scenario
from kerf.sim.simulation import run
from tests.scenarios.test_last_word import times, whys


def pool(version: str, *types: str) -> str:
    """A pool that keeps one node, as the value of `apply`; another version of its template drifts."""
    return f"""\
{{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {{name: a, annotations: {{kerf.dev/min-nodes: "1"}}}}, spec: {{
        disruption: {{consolidateAfter: 30s, budgets: [{{nodes: "100%"}}]}},
        template: {{metadata: {{labels: {{v: {version}}}}}, spec: {{
          nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}},
          requirements: [
            {{key: node.kubernetes.io/instance-type, operator: In, values: [{", ".join(types)}]}},
            {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}]}}}}}}}}"""


def played(folder: Path, timeline: str, *types: str, replicas: int) -> SimulationReport:
    """Four hours of that pool and a Deployment of 1.2 cores a pod."""
    container = "{name: m, image: x, resources: {requests: {cpu: 1200m}}}"
    template = f"{{metadata: {{labels: {{a: d}}}}, spec: {{containers: [{container}]}}}}"
    text = f"""\
apiVersion: kerf.dev/v1alpha1
kind: Scenario
metadata: {{name: floor}}
spec:
  duration: 4h
  settings: {{nodeRepair: "On"}}
  objects:
    - {pool("one", *types)}
    - {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: d, namespace: default}},
       spec: {{replicas: {replicas}, selector: {{matchLabels: {{a: d}}}}, template: {template}}}}}
  timeline:
{timeline}
"""
    path = folder / "s.yaml"
    path.write_text(text, encoding="utf-8")
    return run(read_scenario(str(path)))


def nodes(report: SimulationReport) -> list[int]:
    """How many are up after each that comes or goes."""
    came = [(at_s, 1) for at_s in times(report, "node ready")]
    went = [(at_s, -1) for at_s in times(report, "node removed")]
    found, held = [], 0
    for _, change in sorted([*came, *went]):
        held += change
        found.append(held)
    return found


def test_a_broken_node_of_the_floor_is_replaced(tmp_path: Path) -> None:
    """The other is up first."""
    report = played(
        tmp_path,
        '    - {at: 1h, condition: {node: ip-10-0-0-1, type: Ready, status: "False"}}',
        "m5.xlarge",
        replicas=1,
    )

    assert [1, 2, 1] == nodes(report)
    assert 2 == len(times(report, "claim created"))
    assert 0 == report.totals.pods_unplaced


def test_a_node_of_the_floor_that_drifts_is_replaced_with_its_pods_and_without(tmp_path: Path) -> None:
    """The pool shrinks to its floor, changes while a pod runs there, and once more while none does."""
    timeline = "\n".join(
        (
            "    - {at: 30m, scale: {deployment: default/d, replicas: 1}}",
            f"    - {{at: 1h, apply: {pool('two', 'm5.xlarge')}}}",
            "    - {at: 2h, scale: {deployment: default/d, replicas: 0}}",
            f"    - {{at: 3h, apply: {pool('three', 'm5.xlarge')}}}",
        )
    )
    report = played(tmp_path, timeline, "m5.xlarge", replicas=10)

    assert [1, 2, 3, 4, 3, 2, 1, 2, 1, 2, 1] == nodes(report)
    assert 6 == len(times(report, "claim created"))


def test_an_empty_node_of_the_floor_makes_way_for_a_cheaper_one(tmp_path: Path) -> None:
    """Ten pods fill a large node; without them the pool keeps the smallest that it may have."""
    timeline = "    - {at: 1h, scale: {deployment: default/d, replicas: 0}}"
    report = played(tmp_path, timeline, "m5.xlarge", "m5.4xlarge", replicas=10)

    assert 1 == nodes(report)[-1]
    assert min(nodes(report)) == 1
    last = whys(report, "Launched")[-1]
    assert "launched m5.xlarge" in last
