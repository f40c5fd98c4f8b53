"""A whole run: Kerf on the embedded cluster, what the scenario does to it, and the sums."""

from collections import Counter
from pathlib import Path

import pytest

from kerf.errors import InputError
from kerf.sim.course.report import SimulationReport, Waits
from kerf.sim.course.scenario import Scenario, read_scenario
from kerf.sim.simulation import run
from tests.examples import IS_ALL

SCENARIO = """\
apiVersion: kerf.dev/v1alpha1
kind: Scenario
metadata: {name: one-gpu}
spec:
  duration: 1h
  cloud: {launch: 40s, register: 35s, ready: 5s, devicesReady: 50s, terminate: 5s}
  objects:
    - apiVersion: karpenter.sh/v1
      kind: NodePool
      metadata: {name: gpus}
      spec:
        template:
          spec:
            nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
            requirements:
              - {key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge]}
              - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec:
        replicas: 1
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}
"""


def scenario(directory: Path, *parts: str, text: str = SCENARIO) -> Scenario:
    """The scenario with further parts of its spec."""
    path = directory / "s.yaml"
    path.write_text(text + "".join(parts), encoding="utf-8")
    return read_scenario(str(path))


def rows(report: SimulationReport, *what: str) -> list[tuple[float, str, str]]:
    """The rows of some kinds, without their why."""
    return [(row.at_s, row.what, row.object) for row in report.rows if row.what in what]


def test_a_pod_gets_a_node_stage_by_stage(tmp_path: Path) -> None:
    """1 s of batching, 40 s launch, 35 s to join, 5 s to get ready, 50 s for its card from registration on."""
    report = run(scenario(tmp_path))

    node = "node/ip-10-0-0-1"
    assert [(81, "node ready", node), (126, "bound", "pod/default/web-0")] == rows(report, "node ready", "bound")
    assert [1, 41, 76, 126] == [
        row.at_s for row in report.rows if row.what in ("claim created", "Launched", "Registered", "Initialized")
    ]


def test_totals_are_sums_of_what_happened(tmp_path: Path) -> None:
    """Paid from 1 s to 3600 s at 1.006 $/h; used from 126 s on; the pod waited 126 s."""
    totals = run(scenario(tmp_path)).totals

    assert round(1_006_000 * 3599 / 3600) == totals.cost_micro
    assert (3599 / 3600, 3599 / 3600, 3474 / 3600) == (
        totals.node_hours,
        totals.gpu_hours_paid,
        totals.gpu_hours_allocated,
    )
    assert (1, 0, Waits(126, 126, 126, 126), 1, 0, 0) == (
        totals.pods_placed,
        totals.pods_unplaced,
        totals.waits,
        totals.launches,
        totals.deletions,
        totals.evictions,
    )


def test_a_part_of_a_card_is_paid_and_allocated_as_that_part(tmp_path: Path) -> None:
    """g6f.2xlarge has a quarter of an L4, and the pod has all of it."""
    report = run(scenario(tmp_path, text=SCENARIO.replace("g5.xlarge", "g6f.2xlarge")))

    assert (3599 / 3600 / 4, 3474 / 3600 / 4) == (report.totals.gpu_hours_paid, report.totals.gpu_hours_allocated)
    assert [(0.25, 2500)] == [(s.gpus_paid, s.gpus_used) for s in report.samples][-1:]


def test_slices_count_by_their_largest_share(tmp_path: Path) -> None:
    """003-1: half of the cores and a 23rd of the memory is half a card."""
    text = SCENARIO.replace(
        "metadata: {name: gpus}\n      spec:\n        template:\n",
        "metadata: {name: gpus}\n      spec:\n        template:\n          metadata: {labels: {gpu: 'on'}}\n",
    )
    sliced = text.replace("nvidia.com/gpu: 1", "nvidia.com/gpumem: 1000, nvidia.com/gpucores: 50")

    assert 3474 / 3600 / 2 == pytest.approx(run(scenario(tmp_path, text=sliced)).totals.gpu_hours_allocated)


def test_cost_per_hour_is_a_row_when_it_changes(tmp_path: Path) -> None:
    """Up with the launch, down with the end of the instance."""
    report = run(scenario(tmp_path, "  timeline: [{at: 30m, scale: {deployment: web, replicas: 0}}]\n"))

    assert ["0.00 -> 1.006 USD/h", "1.006 -> 0.00 USD/h"] == [row.why for row in report.rows if row.what == "cost"]


def test_samples_are_the_levels_of_the_chart(tmp_path: Path) -> None:
    """A pod waits, a card is paid for, a node joins, the card is used."""
    samples = run(scenario(tmp_path)).samples

    assert [(0, 0, 0, 0, 1), (1, 0, 1, 0, 1), (76, 1, 1, 0, 1), (126, 1, 1, 10_000, 0)] == [
        (s.at_s, s.nodes, s.gpus_paid, s.gpus_used, s.pending) for s in samples
    ]


def test_a_missed_expectation_shows_what_came(tmp_path: Path) -> None:
    """In the form in which it was written."""
    expect = "  expect: [{at: 30m, nodes: {nodePool: gpus, count: 2}}, {at: 30m, cost: {perHour: 1.006}}]\n"
    report = run(scenario(tmp_path, expect))

    assert [False, True] == [outcome.is_met for outcome in report.outcomes]
    assert {"nodes": {"nodePool": "gpus", "count": 1}} == report.outcomes[0].got
    assert not report.is_met


def test_an_expectation_looks_before_the_step_of_its_time(tmp_path: Path) -> None:
    """What is true when the time comes, not what comes of it."""
    parts = (
        "  timeline: [{at: 30m, delete: {kind: Deployment, name: web}}]\n  expect: [{at: 30m, pods: {running: 1}}]\n"
    )

    assert run(scenario(tmp_path, parts)).is_met


def test_applied_objects_replace_and_appear(tmp_path: Path) -> None:
    """`apply` changes what is there and creates what is not."""
    more = SCENARIO[SCENARIO.index("    - apiVersion: apps/v1") :].replace("replicas: 1", "replicas: 2")
    (tmp_path / "more.yaml").write_text("apiVersion: v1\nkind: List\nitems:\n" + more, encoding="utf-8")
    report = run(scenario(tmp_path, "  timeline: [{at: 10m, apply: more.yaml}]\n"))

    assert (2, 2) == (report.totals.pods_placed, report.totals.launches)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            "delete: {kind: Pod, name: web-7}",
            "expected an object that is there then, got <Pod default/web-7 not found>",
        ),
        ("interrupt: {nodePool: gpus, nodes: 2}", "expected at least 2 running instances then, got 1"),
    ],
)
def test_a_step_on_what_is_not_there_ends_the_run(tmp_path: Path, step: str, said: str) -> None:
    """Only the run can tell; the error has the place of the step."""
    with pytest.raises(InputError, match=r"s\.yaml:\d+:\d+: spec\.timeline\[0\]\.") as caught:
        run(scenario(tmp_path, f"  timeline: [{{at: 10m, {step}}}]\n"))
    assert said in str(caught.value)


def test_kerf_can_be_killed_at_any_event(tmp_path: Path) -> None:
    """The rest of the cluster goes on; the new Kerf takes up what it finds. In the gate at each third event."""
    read = scenario(tmp_path)
    undisturbed = run(read)
    for number in range(0, undisturbed.events, 1 if IS_ALL else 3):
        totals = run(read, restart_at=lambda moment: moment.number == number).totals  # noqa: B023
        assert (1, 1, 0) == (totals.pods_placed, totals.launches, totals.pods_unplaced)


def test_progress_is_reported(tmp_path: Path) -> None:
    """For whoever watches a long run: never backwards, to the last event."""
    heard: list[float] = []
    report = run(scenario(tmp_path), progress=heard.append)

    assert report.events == len(heard)
    assert sorted(heard) == heard


CRON_JOB = """\
    - apiVersion: batch/v1
      kind: CronJob
      metadata: {name: c, annotations: {kerf.dev/prewarm: auto}}
      spec:
        schedule: "*/30 * * * *"
        timeZone: UTC
        jobTemplate:
          spec:
            parallelism: 2
            template:
              spec: {restartPolicy: Never, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}
"""
BROKEN_MAP = """\
  timeline:
    - at: 5m
      apply:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: hami-scheduler-device, namespace: kube-system}
        data: {device-config.yaml: "nvidia: ["}
    - {at: 10m, scale: {deployment: default/web, replicas: 0}}
"""


def test_a_pod_that_takes_the_room_of_a_run_is_no_second_purchase(tmp_path: Path) -> None:
    """The nodes of a prewarmed run are on their way, a pod comes that goes on one, and the run gets another."""
    slow = SCENARIO.replace("launch: 40s", "launch: 6m").replace("replicas: 1", "replicas: 0")
    comes = "  timeline: [{at: 22m, scale: {deployment: default/web, replicas: 1}}]\n"
    report = run(scenario(tmp_path, CRON_JOB, "  start: 2026-01-05T07:00:00Z\n", comes, text=slow))

    assert ["pod/default/web-0"] == [pod for _, _, pod in rows(report, "bound") if "web" in pod]


@pytest.mark.parametrize("fault", ["unhealthy", "lost", "registers-less"])
def test_a_fault_of_cards_that_are_lost_changes_nothing(tmp_path: Path, fault: str) -> None:
    """There is no first card any more that could break."""
    lost = f"  timeline: [{{at: 5m, deviceFault: {{kind: lost}}}}, {{at: 6m, deviceFault: {{kind: {fault}}}}}]\n"

    assert 1 == len(rows(run(scenario(tmp_path, lost)), "bound"))


def test_a_map_that_breaks_at_run_time_does_not_end_the_simulation(tmp_path: Path) -> None:
    """Kerf says that it cannot read it, and plugins keep what they could read."""
    report = run(scenario(tmp_path, BROKEN_MAP))

    assert [600] == [at_s for at_s, _, _ in rows(report, "scale")]
    assert ["configmap/kube-system/hami-scheduler-device"] == [name for _, _, name in rows(report, "NotUnderstood")]


def test_a_job_that_its_window_outlives_has_a_row(tmp_path: Path) -> None:
    """Its own deadline ends it while its pods are held."""
    job = """\
    - apiVersion: kerf.dev/v1alpha1
      kind: CapacityWindow
      metadata: {name: w}
      spec: {schedule: "0 22 * * *", duration: 1h, pods: {selector: {matchLabels: {kerf.dev/window: w}}}}
    - apiVersion: batch/v1
      kind: Job
      metadata: {name: train}
      spec:
        activeDeadlineSeconds: 1200
        template:
          metadata: {labels: {kerf.dev/window: w}}
          spec:
            restartPolicy: Never
            containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]
"""
    report = run(scenario(tmp_path, job))

    assert [(1200, "job failed", "job/default/train")] == rows(report, "job failed")


def test_a_job_set_runs_its_jobs_again_when_one_fails(tmp_path: Path) -> None:
    """As often as its failure policy allows; then it has failed."""
    job_set = """\
    - apiVersion: jobset.x-k8s.io/v1alpha2
      kind: JobSet
      metadata: {name: set}
      spec:
        failurePolicy: {maxRestarts: 1}
        replicatedJobs:
          - name: a
            replicas: 2
            template:
              spec:
                activeDeadlineSeconds: 60
                template: {spec: {containers: [{name: main, resources: {requests: {cpu: "100"}}}]}}
"""
    report = run(scenario(tmp_path, job_set))

    assert {60: 2, 120: 2} == Counter(int(at_s) for at_s, _, name in rows(report, "job failed") if "set-a" in name)


QUOTA = """\
    - apiVersion: v1
      kind: ResourceQuota
      metadata: {name: few}
      spec: {hard: {pods: "%s"}}
"""


def test_a_workload_whose_pods_admission_refuses_has_fewer_and_the_timeline_says_why(tmp_path: Path) -> None:
    """Nothing is lost: once the quota allows more, they come."""
    timeline = "  timeline: [{at: 30m, delete: {kind: ResourceQuota, name: few}}]\n"
    three = SCENARIO.replace("replicas: 1", "replicas: 3")

    report = run(scenario(tmp_path, QUOTA % 2, text=three))
    later = run(scenario(tmp_path, QUOTA % 2, timeline, text=three))

    assert (2, 3) == (report.totals.pods_placed, later.totals.pods_placed)
    (refused,) = [row for row in report.rows if row.what == "refused"]
    assert refused.object.startswith("ReplicaSet default/web-")
    assert "exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2" in refused.why


def test_a_pod_of_the_scenario_that_admission_refuses_ends_nothing(tmp_path: Path) -> None:
    """As with kubectl: it is not there, and all else is."""
    pod = """\
    - apiVersion: v1
      kind: Pod
      metadata: {name: large}
      spec: {containers: [{name: main, resources: {limits: {cpu: 3}}}]}
"""
    report = run(scenario(tmp_path, QUOTA % 0, pod))

    refused = [row.object for row in report.rows if row.what == "refused"]
    assert (0, "Pod default/large") == (report.totals.pods_placed, refused[0])


def test_a_limit_range_that_comes_later_holds_for_the_pods_after_it(tmp_path: Path) -> None:
    """A pod that runs stays; the next is refused, and the timeline has its figures."""
    timeline = """\
  timeline:
    - at: 10m
      apply: {apiVersion: v1, kind: LimitRange, metadata: {name: small}, spec: {limits: [%s]}}
    - {at: 20m, scale: {deployment: web, replicas: 2}}
"""
    largest = "{type: Container, max: {cpu: 2}, default: {cpu: 3}}"
    report = run(scenario(tmp_path, timeline % largest))

    assert 1 == report.totals.pods_placed
    (refused,) = [row for row in report.rows if row.what == "refused"]
    assert "expected at most 2, the max of a LimitRange of its namespace, got '3'" in refused.why


SET = """\
    - apiVersion: apps/v1
      kind: StatefulSet
      metadata: {name: db}
      spec:
        replicas: %s
        selector: {matchLabels: {app: db}}
        volumeClaimTemplates:
          - metadata: {name: data}
            spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
        template:
          metadata: {labels: {app: db}}
          spec: {containers: [{name: main, resources: {limits: {cpu: %s}}}]}
"""


def test_a_set_that_waits_for_its_first_pod_has_lost_none(tmp_path: Path) -> None:
    """No type has 500 cores, so that the second pod is never made."""
    report = run(scenario(tmp_path, SET % (3, 500)))

    assert (1, 1) == (report.totals.pods_placed, report.totals.pods_unplaced)


def test_a_pod_of_a_set_comes_back_to_its_claim(tmp_path: Path) -> None:
    """Scaled to nothing and up again: the claim is bound by then."""
    timeline = """\
  timeline:
    - {at: 10m, scale: {statefulset: db, replicas: 0}}
    - {at: 20m, scale: {statefulset: db, replicas: 1}}
"""
    report = run(scenario(tmp_path, SET % (1, 1), timeline))

    assert (3, 0) == (report.totals.pods_placed, report.totals.pods_unplaced)


@pytest.mark.parametrize(
    ("requirement", "selector"),
    [
        ("{key: team, operator: In, values: [red, blue]}", "team: blue"),
        ("{key: team, operator: Exists}", "team: red"),
        ("{key: example.com/size, operator: Gt, values: ['3']}", "example.com/size: '7'"),
        ("{key: kubernetes.io/os, operator: In, values: [linux]}", "beta.kubernetes.io/os: linux"),
    ],
)
def test_a_node_has_the_labels_that_its_pool_requires(tmp_path: Path, requirement: str, selector: str) -> None:
    """Of the values that it allows the one that its pod asks for; a node without it would be bought again and again."""
    text = SCENARIO.replace(
        "            requirements:\n", f"            requirements:\n              - {requirement}\n"
    )
    text = text.replace("spec: {containers:", f"spec: {{nodeSelector: {{{selector}}}, containers:")
    report = run(scenario(tmp_path, text=text))

    assert (1, 1) == (report.totals.pods_placed, report.totals.launches)


def test_the_old_name_of_the_zone_is_that_of_a_node_on_its_way_too(tmp_path: Path) -> None:
    """Else a second node is bought for the pod before the first has registered."""
    even = (
        "topologySpreadConstraints: [{maxSkew: 1, topologyKey: failure-domain.beta.kubernetes.io/zone, "
        "whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]"
    )
    text = SCENARIO.replace("spec: {containers:", f"spec: {{{even}, containers:").replace("replicas: 1", "replicas: 2")
    report = run(scenario(tmp_path, text=text))

    assert (2, 2) == (report.totals.pods_placed, report.totals.launches)
