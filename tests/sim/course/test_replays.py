"""A trace in the simulator: its pods come, run, end and come again; the bound is what they cost at least."""

from dataclasses import replace
from pathlib import Path

import pytest

from kerf.engine.disruption.disturbance import RESTART_COST
from kerf.sim.course.report import SimulationReport
from kerf.sim.course.scenario import Scenario, read_scenario
from kerf.sim.objects import Json, annotations_of
from kerf.sim.simulation import run

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
SCENARIO = """
apiVersion: kerf.dev/v1alpha1
kind: Scenario
metadata: {name: traced}
spec:
  duration: 2h
  trace: {file: pods.csv, boundEvery: 10m}
  objects:
    - apiVersion: karpenter.sh/v1
      kind: NodePool
      metadata: {name: general}
      spec:
        disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}
        template:
          spec:
            nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
            requirements:
              - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge, m5.2xlarge]}
              - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
"""
M5_XLARGE = 192_000


def scenario(folder: Path, *rows: str, more: str = "") -> Scenario:
    """With these pods."""
    (folder / "pods.csv").write_text(HEADER + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    (folder / "s.yaml").write_text(SCENARIO + more, encoding="utf-8")
    return read_scenario(str(folder / "s.yaml"))


def counted(report: SimulationReport) -> dict[str, int]:
    """How often each thing happened."""
    return {each.what: each.times for each in report.counts}


def test_pods_come_run_and_are_gone(tmp_path: Path) -> None:
    """Once they have run for as long as in the trace, counted from their start, they are deleted; so is their node."""
    report = run(scenario(tmp_path, "a,3000,1024,0,0,60,660,60", "b,500,1024,0,0,120,420,125"))

    assert report.replayed is not None
    assert (2, 0, 2) == (report.replayed.pods, report.replayed.again, report.replayed.ended)
    assert (2, 0, 1, 1) == (
        report.totals.pods_placed,
        report.totals.pods_unplaced,
        report.totals.launches,
        report.totals.deletions,
    )
    assert () == report.rows
    assert {"bound": 2, "ended": 2} == {what: counted(report)[what] for what in ("bound", "ended")}


def test_a_pod_whose_node_is_taken_back_comes_again(tmp_path: Path) -> None:
    """Under another name, and runs from its beginning, as a Job's would."""
    taken = "  timeline:\n    - {at: 15m, interrupt: {nodePool: general, nodes: 1}}\n"
    report = run(scenario(tmp_path, "a,3000,1024,0,0,60,3660,60", more=taken))

    assert report.replayed is not None
    assert (1, 1, 1) == (report.replayed.pods, report.replayed.again, report.replayed.ended)
    assert 2 == report.totals.launches


def test_a_pod_that_keeps_its_work_runs_what_is_left(tmp_path: Path) -> None:
    """And a minute more, for its restart; one that begins anew runs for longer."""
    taken = "  timeline:\n    - {at: 45m, interrupt: {nodePool: general, nodes: 1}}\n"
    rows = ("a,3000,1024,0,0,60,3660,60", "b,500,1024,0,0,6960,6970,6960")
    begun = scenario(tmp_path, *rows, more=taken)
    assert begun.replay is not None
    kept = replace(begun, replay=replace(begun.replay, source=replace(begun.replay.source, restart_s=60)))

    anew, further = run(begun), run(kept)
    assert anew.totals.cost_micro - further.totals.cost_micro > 1_700 * M5_XLARGE // 3_600
    assert [1, 1] == [each.replayed.again for each in (anew, further) if each.replayed is not None]


@pytest.mark.parametrize(("restart_s", "stated"), [(None, set()), (60, {"60s"})], ids=["all of it", "a minute"])
def test_a_pod_says_what_its_move_costs(tmp_path: Path, restart_s: int | None, stated: set[str]) -> None:
    """As one with checkpoints does; one that would begin anew says nothing."""
    begun = scenario(tmp_path, "a,3000,1024,0,0,60,660,60")
    assert begun.replay is not None
    said: set[str] = set()

    def watch(_: str, obj: Json) -> None:
        if obj["kind"] == "Pod":
            said.update(text for key, text in annotations_of(obj).items() if key == RESTART_COST)

    source = replace(begun.replay.source, restart_s=restart_s)
    run(replace(begun, replay=replace(begun.replay, source=source)), watch=watch)
    assert stated == said


def test_the_bound_is_what_the_running_pods_cost_at_least(tmp_path: Path) -> None:
    """One pod that fills a machine: its price for as long as it runs, to the interval in which the bound is taken."""
    report = run(scenario(tmp_path, "a,3000,1024,0,0,0,3600,0"))
    assert report.replayed is not None
    bound = report.replayed.bound

    assert bound is not None
    assert (600, 12, 0) == (bound.every_s, bound.samples, bound.unproven)
    assert M5_XLARGE == bound.micro
    assert bound.micro < report.totals.cost_micro
    assert report.over_bound == pytest.approx(report.totals.cost_micro / bound.micro - 1)


def test_pods_on_nodes_that_cost_nothing_are_not_in_the_bound(tmp_path: Path) -> None:
    """A node of the scenario costs nothing, so what runs there need not be bought for."""
    held = """    - apiVersion: v1
      kind: Node
      metadata: {name: own}
      spec: {}
      status:
        allocatable: {cpu: "16", memory: 64Gi, pods: "110"}
        conditions: [{type: Ready, status: "True"}]
"""
    report = run(scenario(tmp_path, "a,3000,1024,0,0,0,3600,0", more=held))

    assert (0, 1) == (report.totals.launches, report.totals.pods_placed)
    assert report.replayed is not None
    assert report.replayed.bound is not None
    assert 0 == report.replayed.bound.micro
    assert report.over_bound is None


def test_a_replay_gives_the_same_report_again(tmp_path: Path) -> None:
    """Copies are moved by the seed alone."""
    made = scenario(tmp_path, *(f"p{n},1000,1024,0,0,{n * 40},{n * 40 + 900},{n * 40}" for n in range(20)))
    assert made.replay is not None
    copied = replace(made, replay=replace(made.replay, source=replace(made.replay.source, copies=3)), seed=5)

    first, second = run(copied), run(copied)
    assert first.to_object() == second.to_object()
    assert 60 == first.totals.pods_placed
    assert first.to_object() != run(replace(copied, seed=6)).to_object()
