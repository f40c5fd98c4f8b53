"""Reading scenarios: what they may say, and where they are wrong."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kerf.errors import DecodeError, DecodeErrors
from kerf.sim.course.scenario import Scenario, read_scenario
from kerf.sim.course.steps import (
    Apply,
    Delete,
    Fault,
    Interrupt,
    LostReply,
    NodesExpected,
    Price,
    Restart,
    Scale,
    StockOut,
    Throttle,
)
from kerf.sim.kubernetes.scoring import LEAST_ALLOCATED, MOST_ALLOCATED, ScoringStrategy

HEAD = """\
apiVersion: kerf.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec:
  duration: 1h
"""
OBJECTS = """\
  objects:
    - apiVersion: karpenter.sh/v1
      kind: NodePool
      metadata: {name: gpus}
      spec:
        template:
          spec:
            nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
            requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge]}]
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec:
        replicas: 1
        selector: {matchLabels: {app: web}}
        template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main}]}}
"""


def read(directory: Path, *parts: str, files: dict[str, str] | None = None) -> Scenario:
    """A scenario of these parts, with files beside it."""
    for name, text in (files or {}).items():
        (directory / name).write_text(text, encoding="utf-8")
    path = directory / "s.yaml"
    path.write_text(HEAD + "".join(parts), encoding="utf-8")
    return read_scenario(str(path))


def refusal(directory: Path, *parts: str, **options: Any) -> str:
    """The errors of a scenario, without the directory."""
    with pytest.raises((DecodeError, DecodeErrors)) as caught:
        read(directory, *parts, **options)
    return str(caught.value).replace(f"{directory}/", "")


def test_defaults(tmp_path: Path) -> None:
    """A scenario needs a name and a duration; the cloud is AWS, and everything takes what it takes there."""
    scenario = read(tmp_path)

    assert ("s", 1_767_596_400, 3600, 0) == (scenario.name, scenario.start_s, scenario.duration_s, scenario.seed)
    cloud = scenario.cloud
    assert ("aws", 40, 35, 50) == (cloud.provider, cloud.launch_s, cloud.register_s, cloud.devices_ready_s)


def test_cloud_settings(tmp_path: Path) -> None:
    """Provider, region and each latency."""
    scenario = read(tmp_path, "  cloud: {provider: alibaba, region: cn-shanghai, launch: 2m, ready: 9s, jitter: 1m}\n")

    assert ("alibaba", 120, 9, 60) == tuple(
        getattr(scenario.cloud, name) for name in ("provider", "launch_s", "ready_s", "jitter_s")
    )
    assert ("CNY", "cn-shanghai") == (scenario.market.currency, scenario.market.region)


def test_the_pools_name_the_provider(tmp_path: Path) -> None:
    """Without a provider it is that of the NodeClasses."""
    pools = OBJECTS.replace("karpenter.k8s.aws, kind: EC2NodeClass", "karpenter.alibabacloud.com, kind: ECSNodeClass")

    assert "alibaba" == read(tmp_path, pools).cloud.provider


@pytest.mark.parametrize(
    ("written", "action"),
    [
        ("scale: {deployment: default/web, replicas: 3}", Scale("Deployment", "default", "web", 3)),
        ("scale: {deployment: web, replicas: 0}", Scale("Deployment", "default", "web", 0)),
        (
            "stockout: {instanceType: g5.xlarge, zone: us-east-1a, capacityType: spot, for: 10m}",
            StockOut("g5.xlarge", "us-east-1a", "spot", 600),
        ),
        ("stockout: {}", StockOut()),
        (
            "price: {instanceType: g5.xlarge, capacityType: on-demand, perHour: 1.12}",
            Price("g5.xlarge", 1_120_000, None, "on-demand"),
        ),
        ("deviceFault: {nodePool: gpus, kind: never-registers, nodes: 2}", Fault("never-registers", "gpus", 2, 80)),
        ("deviceFault: {kind: registers-less, memoryPercent: 50}", Fault("registers-less", "", 1, 50)),
        ("interrupt: {nodePool: gpus, nodes: 2}", Interrupt("gpus", 2)),
        ("throttle: {for: 1m, retryAfter: 9s}", Throttle(60, 9)),
        ("lostReply: {launches: 2}", LostReply(2)),
        ("delete: {kind: Pod, name: default/x}", Delete("Pod", "default", "x")),
        ("delete: {kind: NodePool, name: gpus}", Delete("NodePool", "", "gpus")),
        ("restart: {}", Restart()),
    ],
)
def test_actions(tmp_path: Path, written: str, action: object) -> None:
    """Each action of the timeline, with its defaults."""
    scenario = read(tmp_path, OBJECTS, f"  timeline: [{{at: 5m, {written}}}]\n")

    assert [(300, action)] == [(step.at_s, step.action) for step in scenario.timeline]


def test_steps_are_in_time_order(tmp_path: Path) -> None:
    """However they are written; those of one time as they are written."""
    steps = "{at: 5m, restart: {}}, {at: 1m, lostReply: {}}, {at: 5m, lostReply: {}}"
    scenario = read(tmp_path, f"  timeline: [{steps}]\n")

    assert [LostReply(1), Restart(), LostReply(1)] == [step.action for step in scenario.timeline]


def test_objects_are_files_or_stand_inline(tmp_path: Path) -> None:
    """Files beside the scenario, with all their documents; `apply` takes the same."""
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n"
    files = {
        "a.yaml": config.replace("NAME", "a") + "---\n" + config.replace("NAME", "b"),
        "c.yaml": config.replace("NAME", "c"),
    }
    scenario = read(tmp_path, "  objects: [a.yaml]\n  timeline: [{at: 1m, apply: c.yaml}]\n", files=files)

    assert ["a", "b"] == [obj["metadata"]["name"] for obj in scenario.objects]
    (step,) = scenario.timeline
    assert isinstance(step.action, Apply)
    assert ["c"] == [obj["metadata"]["name"] for obj in step.action.objects]


def test_the_order_of_objects_means_nothing(tmp_path: Path) -> None:
    """They are created in an order of their own, so that shuffled documents give the same bytes."""
    first, second = OBJECTS.removeprefix("  objects:\n").split("    - apiVersion: apps/v1")
    shuffled = "  objects:\n    - apiVersion: apps/v1" + second + first

    assert read(tmp_path, OBJECTS).objects == read(tmp_path, shuffled).objects


def test_an_expectation_keeps_how_it_is_written(tmp_path: Path) -> None:
    """For the report, which shows what was expected beside what came."""
    (expectation,) = read(tmp_path, OBJECTS, "  expect: [{at: 1m, nodes: {nodePool: gpus, count: 2}}]\n").expectations

    assert NodesExpected(node_pool="gpus", count=2) == expectation.expected
    assert {"nodes": {"nodePool": "gpus", "count": 2}} == expectation.written


def test_kinds_that_are_not_read_are_left_out(tmp_path: Path) -> None:
    """As by `kerf plan`: said, and no error."""
    secret = "  objects: [{apiVersion: v1, kind: Secret, metadata: {name: web}}]\n"
    scenario = read(tmp_path, secret)

    assert ((), ("kinds that Kerf does not read, left out: 1 Secret",)) == (scenario.objects, scenario.warnings)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("  duraton: 1h\n", "s.yaml:6:3: spec: expected a known field, got 'duraton' (hint: is `duration` meant?)"),
        ("  seed: x\n", "s.yaml:6:9: spec.seed: expected a whole number, got 'x'"),
        (
            "  objects: [nope.yaml]\n",
            "s.yaml:6:13: spec.objects[0]: expected a file beside the scenario, got 'nope.yaml'",
        ),
        (
            "  timeline: [{at: 2h, restart: {}}]\n",
            "spec.timeline[0].at: expected a time within the duration of 1h, got '2h'",
        ),
        ("  timeline: [{restart: {}}]\n", "spec.timeline[0].at: expected a value, got <nothing>"),
        ("  timeline: [{at: 1m}]\n", "spec.timeline[0]: expected one action (scale, stockout,"),
        ("  timeline: [{at: 1m, restart: {}, lostReply: {}}]\n", "got 'lostReply and restart'"),
        ("  timeline: [{at: 1m, rescale: {}}]\n", "got 'rescale' (hint: is `scale` meant?)"),
        ("  timeline: [{at: 1m, scale: {deployment: a/b/c, replicas: 1}}]\n", "expected text such as default/web"),
        ("  timeline: [{at: 1m, scale: {deployment: web}}]\n", "spec.timeline[0].scale.replicas: expected a value"),
        (
            "  timeline: [{at: 1m, scale: {deployment: wob, replicas: 1}}]\n",
            "expected a Deployment of the scenario, got 'default/wob' (hint: is `default/web` meant?)",
        ),
        (
            "  timeline: [{at: 1m, delete: {kind: Deployment, name: nope}}]\n",
            "delete.name: expected a Deployment of the scenario",
        ),
        (
            "  timeline: [{at: 1m, interrupt: {nodePool: gpu}}]\n",
            "interrupt.nodePool: expected a NodePool of the scenario, got 'gpu' (hint: is `gpus` meant?)",
        ),
        (
            "  timeline: [{at: 1m, stockout: {instanceType: g5.xlrge}}]\n",
            "expected an instance type of the catalogue, got 'g5.xlrge' (hint: is `g5.xlarge` meant?)",
        ),
        (
            "  timeline: [{at: 1m, stockout: {instanceType: g5.xlarge, zone: mars}}]\n",
            "stockout.zone: expected one of us-east-1a, us-east-1b",
        ),
        (
            "  timeline: [{at: 1m, price: {instanceType: g5.xlarge, perHour: -1}}]\n",
            "price.perHour: expected an amount such as 1.006",
        ),
        ("  timeline: [{at: 1m, deviceFault: {kind: slow}}]\n", "deviceFault.kind: expected one of never-joins,"),
        (
            "  expect: [{at: 1m, nodes: {nodePool: gpu, count: 1}}]\n",
            "spec.expect[0].nodes.nodePool: expected a NodePool",
        ),
        ("  expect: [{at: 1m, cost: {perHour: 1.0000001}}]\n", "at most six decimals, got 1.0000001"),
        ("  cloud: {provider: gcp}\n", "spec.cloud.provider: expected one of aws, alibaba, kwok, got 'gcp'"),
    ],
)
def test_a_slip_is_an_error_with_its_place(tmp_path: Path, part: str, said: str) -> None:
    """File, line, column, path, what was expected and what came, and a hint where one is known."""
    objects = "" if part.startswith("  objects") else OBJECTS

    assert said in refusal(tmp_path, part, objects)


def test_every_slip_is_reported(tmp_path: Path) -> None:
    """One does not hide the next."""
    said = refusal(tmp_path, "  seed: x\n  cloud: {provider: gcp}\n")

    assert 2 == len(said.splitlines())


def test_an_object_that_cannot_be_decoded_is_an_error(tmp_path: Path) -> None:
    """With its place in its own file."""
    files = {"p.yaml": "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\nspec: {weight: heavy}\n"}

    assert "p.yaml:4:16: spec.weight: expected" in refusal(tmp_path, "  objects: [p.yaml]\n", files=files)


def test_two_scenarios_in_a_file_are_one_too_many(tmp_path: Path) -> None:
    """Nobody knows which is meant."""
    assert "expected one document of kind Scenario" in refusal(tmp_path, "---\n" + HEAD)


def test_a_scheduler_that_fills_nodes(tmp_path: Path) -> None:
    """What is left out is as in kube-scheduler."""
    read_of = partial(read, tmp_path, OBJECTS)

    found = [
        read_of(text).scoring
        for text in (
            "",
            "  scheduler: {}\n",
            "  scheduler: {scoringStrategy: {type: MostAllocated}}\n",
            "  scheduler: {scoringStrategy: {resources: [{name: nvidia.com/gpu, weight: 5}, {name: cpu}]}}\n",
        )
    ]

    filling = ScoringStrategy(MOST_ALLOCATED)
    weighed = ScoringStrategy(LEAST_ALLOCATED, (("nvidia.com/gpu", 5), ("cpu", 1)))
    assert [ScoringStrategy(), ScoringStrategy(), filling, weighed] == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{type: MostAlocated}", "one of LeastAllocated, MostAllocated"),
        ("{resources: [{weight: 1}]}", "name"),
        ("{resources: [{name: cpu, weight: 0}]}", "from 1 to 100"),
        ("{kind: MostAllocated}", "a known field"),
    ],
)
def test_a_strategy_that_there_is_not(tmp_path: Path, text: str, said: str) -> None:
    """With its place."""
    told = refusal(tmp_path, OBJECTS, f"  scheduler: {{scoringStrategy: {text}}}\n")

    assert said in told
    assert "spec.scheduler.scoringStrategy" in told
