"""Jobs that start one after the other for ten minutes: a scenario, and the same Jobs as one plan would see them."""

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]
_OVER_S = 600


def pool(instance_type: str) -> Json:
    """A pool of one type, whose nodes stay as long as their pods."""
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"nodeClassRef": reference, "requirements": requirements}
    disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "batch"},
        "spec": {"template": {"spec": spec}, "disruption": disruption},
    }


def job(number: int) -> Json:
    """A run of an hour."""
    container = {"name": "main", "image": "run:1", "resources": {"requests": {"cpu": "900m", "memory": "1Gi"}}}
    template = {
        "metadata": {"annotations": {"kerf.dev/run-for": "1h"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"run-{number}", "namespace": "data"},
        "spec": {"template": template},
    }


def write(folder: Path, jobs: int, instance_type: str) -> tuple[Path, Path]:
    """(the scenario, all of it at once) as files."""
    at: dict[int, list[Json]] = {}
    for number in range(jobs):
        at.setdefault(number * _OVER_S // jobs, []).append(job(number))
    steps = [{"at": f"{s}s", "apply": {"apiVersion": "v1", "kind": "List", "items": made}} for s, made in at.items()]
    scenario = {
        "apiVersion": "kerf.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "burst"},
        "spec": {
            "duration": "20m",
            "objects": [pool(instance_type)],
            "timeline": steps,
            "expect": [{"at": "20m", "pods": {"pending": 0, "running": jobs}}],
        },
    }
    everything = {"apiVersion": "v1", "kind": "List", "items": [pool(instance_type), *map(job, range(jobs))]}
    paths = folder / "burst.json", folder / "burst-at-once.json"
    for path, document in zip(paths, (scenario, everything), strict=True):
        path.write_text(json.dumps(document), encoding="utf-8")
    return paths
