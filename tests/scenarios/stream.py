"""A steady stream of equal Jobs, and how their pods came to their places."""

import json
from bisect import bisect_left, insort
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerf.sim.course.report import SimulationReport, Waits
from kerf.sim.course.scenario import read_scenario
from kerf.sim.simulation import run

Json = dict[str, Any]
NAMESPACE = "data"


@dataclass(frozen=True)
class Stream:
    """So many Jobs a minute, for so many minutes, each of one pod that runs for `run_s`."""

    a_minute: int
    minutes: int
    run_s: int


@dataclass(frozen=True, slots=True)
class Workload:
    """What each pod asks, the type of its nodes, and how long one of these takes to be there for it."""

    instance_type: str
    resources: Json
    labels: Json
    start_s: float


CPU = Workload("m5.4xlarge", {"requests": {"cpu": "900m", "memory": "1Gi"}}, {}, 80)
SLICES = Workload("g5.2xlarge", {"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000}}, {"gpu": "on"}, 125)


@dataclass(frozen=True)
class Came:
    """When each pod was made and bound, in seconds, in the order of their age, and what came of it in all."""

    made_s: tuple[float, ...]
    bound_s: tuple[float, ...]
    report: SimulationReport

    @property
    def p95_s(self) -> float:
        """How long 95 of 100 pods waited at most."""
        return Waits.of([bound - made for made, bound in zip(self.made_s, self.bound_s, strict=True)]).p95

    @property
    def inversions(self) -> float:
        """The share of pairs of pods of which the younger started first."""
        after: list[float] = []
        found = 0
        for bound_s in reversed(self.bound_s):
            found += bisect_left(after, bound_s)
            insort(after, bound_s)
        return found / (len(self.bound_s) * (len(self.bound_s) - 1) / 2)

    @property
    def neighbours(self) -> float:
        """The share of pods that started later than the one that came next."""
        late = sum(first > second for first, second in zip(self.bound_s, self.bound_s[1:], strict=False))
        return late / (len(self.bound_s) - 1)


def job(number: int, workload: Workload, run_s: int) -> Json:
    """One of them."""
    container = {"name": "main", "image": "run:1", "resources": workload.resources}
    template = {
        "metadata": {"annotations": {"kerf.dev/run-for": f"{run_s}s"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    metadata = {"name": f"run-{number:05d}", "namespace": NAMESPACE}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def pool(workload: Workload) -> Json:
    """A pool of one type, whose nodes go a minute after their last pod."""
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [workload.instance_type]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template = {
        "metadata": {"labels": workload.labels},
        "spec": {"nodeClassRef": reference, "requirements": requirements},
    }
    disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "batch"},
        "spec": {"template": template, "disruption": disruption},
    }


def played(directory: Path, stream: Stream, workload: Workload) -> Came:
    """The stream, until ten minutes after its last Job; raises InvariantBroken where a pod is bought for twice."""
    at: dict[int, list[Json]] = {}
    for number in range(stream.a_minute * stream.minutes):
        at.setdefault(number * 60 // stream.a_minute, []).append(job(number, workload, stream.run_s))
    steps = [{"at": f"{s}s", "apply": {"apiVersion": "v1", "kind": "List", "items": made}} for s, made in at.items()]
    spec = {"duration": f"{stream.minutes + 10}m", "objects": [pool(workload)], "timeline": steps}
    path = directory / "stream.json"
    scenario = {"apiVersion": "kerf.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "stream"}, "spec": spec}
    path.write_text(json.dumps(scenario), encoding="utf-8")
    return _came(path)


def _came(path: Path) -> Came:
    now_s = 0.0
    made: dict[str, float] = {}
    bound: dict[str, float] = {}

    def progress(at_s: float) -> None:
        nonlocal now_s
        now_s = at_s

    def watch(_: str, obj: Json) -> None:
        if obj["kind"] == "Pod":
            made.setdefault(obj["metadata"]["name"], now_s)
            if obj["spec"].get("nodeName"):
                bound.setdefault(obj["metadata"]["name"], now_s)

    report = run(read_scenario(str(path)), progress=progress, watch=watch)
    names = sorted(made, key=lambda name: (made[name], name))
    return Came(tuple(made[name] for name in names), tuple(bound[name] for name in names), report)
