"""`run`, `plan` and `explain` see one world: at many instants of live runs they answer alike.

The cluster at an instant is written as `kerf snapshot` writes it. What a plan of that file says is compared with what
the controllers decide from the state that they have then.
"""

import contextlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kerf.cli.main import run as kerf
from kerf.config import Settings
from kerf.controllers.options import options_of
from kerf.controllers.provisioning import is_provisionable
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.world import World
from kerf.manifests.clusterdump.encode import dumped
from kerf.model.placeholders import is_virtual
from kerf.model.snapshot import Upserted
from kerf.model.times import instant_text
from kerf.sim.course.scenario import Scenario, read_scenario
from kerf.sim.kubernetes.decoding import decoded
from kerf.sim.objects import Json, ObjectKey, key_of
from kerf.sim.simulation import run
from kerf.state import ClusterState

HERE = Path(__file__).parent
EVERY_S = 20
MOST = 12
"""Instants of one run that are compared, the first at which other pods wait than at the one before."""
PREEMPTING = """
apiVersion: kerf.dev/v1alpha1
kind: Scenario
metadata: {name: preempting}
spec:
  duration: 12m
  objects:
    - {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
    - apiVersion: karpenter.sh/v1
      kind: NodePool
      metadata: {name: cpu}
      spec:
        template:
          spec:
            nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
            requirements:
              - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}
              - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
    - &low
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: low, namespace: default}
      spec: &replicas
        replicas: 1
        selector: {matchLabels: {app: low}}
        template:
          metadata: {labels: {app: low}}
          spec:
            containers: [{name: main, image: x, resources: {requests: {cpu: "3", memory: 1Gi}}}]
  timeline:
    - at: 4m19s
      apply:
        apiVersion: v1
        kind: Pod
        metadata: {name: high, namespace: default}
        spec:
          priorityClassName: high
          containers: [{name: main, image: x, resources: {requests: {cpu: "3", memory: 1Gi}}}]
    - at: 4m19s
      apply:
        apiVersion: v1
        kind: Pod
        metadata: {name: small, namespace: default}
        spec:
          containers: [{name: main, image: x, resources: {requests: {cpu: 500m, memory: 1Gi}}}]
"""


@dataclass(frozen=True)
class Instant:
    """The objects of a cluster at a time."""

    at_s: float
    objects: tuple[Json, ...]


def instants(scenario: Scenario) -> list[Instant]:
    """What there was every twenty seconds of a run."""
    there: dict[ObjectKey, Json] = {}
    found: list[Instant] = []
    change: list[tuple[str, Json]] = []

    def changed(kind: str, obj: Json) -> None:
        change.append((kind, obj))

    def passing(after_s: float) -> None:
        # Called after `changed`, with the time of that change: until then there was what there had been.
        while after_s > (due_s := EVERY_S * (len(found) + 1)):
            found.append(Instant(scenario.start_s + due_s, tuple(there[key] for key in sorted(there))))
        for kind, obj in change:
            if kind == "DELETED":
                there.pop(key_of(obj), None)
            else:
                there[key_of(obj)] = obj
        change.clear()

    run(scenario, progress=passing, watch=changed)
    return found


@dataclass(frozen=True)
class Answer:
    """Which pods share a new node of which type, which go where, and which get no place."""

    launches: list[tuple[str, list[str]]]
    placements: dict[str, str]
    unplaced: list[str]


def decided_by_run(instant: Instant, scenario: Scenario) -> tuple[Answer, bool]:
    """What the controllers decide; and whether a scheduler has looked at all pods that wait, as they wait for it."""
    state = ClusterState(assume_node_classes=True)
    for obj in instant.objects:
        value = decoded(obj)
        if value is not None:
            state.apply(Upserted(value))
    pending = state.pending()
    waiting = tuple(pod for pod in pending if is_provisionable(pod))
    world = World(state.snapshot(instant.at_s, waiting), scenario.market)
    return _answer(decide(world, options_of(Settings()))), waiting == pending


def _answer(decision: Decision) -> Answer:
    return Answer(
        sorted(
            (each.offering.instance_type, sorted(p.pod for p in each.pods if not is_virtual(p.pod)))
            for each in decision.launches
        ),
        {each.pod.pod: each.node for each in decision.placements if not is_virtual(each.pod.pod)},
        sorted(pod.key for refusal in decision.refusals for pod in refusal.pods if not is_virtual(pod.key)),
    )


def printed(*arguments: str) -> Mapping[str, Any]:
    """What a command prints as JSON."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = kerf([*arguments, "-o", "json"])
    assert code in (0, 3), err.getvalue()
    found: Mapping[str, Any] = json.loads(out.getvalue())
    return found


def dump_of(instant: Instant, path: Path) -> str:
    """The file that `kerf snapshot` would write."""
    kept = (dumped(obj)[0] for obj in instant.objects)
    file = path / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [each for each in kept if each]}))
    return str(file)


def decided_by_plan(plan: Mapping[str, Any]) -> Answer:
    """The same of a printed plan."""
    return Answer(
        sorted((each["instanceType"], sorted(each["pods"])) for each in plan["launches"]),
        {each["pod"]: each["node"] for each in plan["placements"]},
        sorted(each["pod"] for each in plan["unplaced"]),
    )


def verdicts(explained: Mapping[str, Any]) -> dict[str, list[str]]:
    """The pods by the verdict that `explain` gives of them."""
    found: dict[str, list[str]] = {}
    for item in explained["items"]:
        found.setdefault(item["verdict"], []).append(f"{item['namespace']}/{item['name']}")
    return found


def preempting(path: Path) -> Path:
    """A scenario in which a pod waits for one that it replaces, a second before an instant that is looked at."""
    file = path / "preempting.yaml"
    file.write_text(PREEMPTING, encoding="utf-8")
    return file


@pytest.mark.parametrize("name", ["preempting", "late-answers", "gang", "never-joins", "sizes"])
def test_run_plan_and_explain_say_the_same_of_each_instant(name: str, tmp_path: Path) -> None:
    """Where the scheduler has looked at every pod that waits: of a newer one `run` waits for that."""
    scenario = read_scenario(str(preempting(tmp_path) if name == "preempting" else HERE / f"{name}.yaml"))
    compared = 0
    last: tuple[str, ...] = ()
    for instant in instants(scenario):
        waiting = [obj for obj in instant.objects if obj["kind"] == "Pod" and not obj["spec"].get("nodeName")]
        marks = tuple(obj["metadata"]["resourceVersion"] for obj in waiting)
        if not waiting or marks == last or compared == MOST:
            continue
        last = marks
        wanted, is_whole = decided_by_run(instant, scenario)
        if not is_whole:
            continue
        dump, now = dump_of(instant, tmp_path), instant_text(instant.at_s)
        plan = decided_by_plan(printed("plan", "-f", dump, "--now", now))
        assert (instant.at_s - scenario.start_s, wanted) == (instant.at_s - scenario.start_s, plan)
        said = verdicts(printed("explain", "-f", dump, "--now", now))
        bought = sorted(pod for _, pods in plan.launches for pod in pods)
        assert (bought, sorted(plan.placements), plan.unplaced) == (
            sorted(said.get("new-node", [])),
            sorted(said.get("on-node", [])),
            sorted(said.get("no-place", [])),
        )
        compared += 1

    assert compared > 0
