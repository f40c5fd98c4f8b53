"""Inputs of the benchmarks, made by rule from a seed: pods of twenty shapes, and a day of pods that come and go."""

import json
import random
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_CPU = ("100m", "250m", "500m", "1", "1500m", "2", "4")
_MEMORY = ("256Mi", "512Mi", "1Gi", "2Gi", "4Gi", "8Gi")
_CARD_MIB, _CARD_CORES = (1000, 4000, 8000, 12000), (0, 10, 30, 50)


def pool() -> Json:
    """One pool that allows every amd64 type on demand, with HAMi on its nodes."""
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template = {
        "metadata": {"labels": {"gpu": "on"}},
        "spec": {"nodeClassRef": reference, "requirements": requirements, "expireAfter": "Never"},
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "all"},
        "spec": {"template": template, "disruption": {"consolidateAfter": "60s"}},
    }


def shapes(count: int = 20, seed: int = 1) -> list[Json]:
    """Pod specs: a quarter asks a whole card, a quarter a slice, the rest cpu and memory only."""
    chance = random.Random(seed)
    specs = []
    for number in range(count):
        requests: Json = {"cpu": chance.choice(_CPU), "memory": chance.choice(_MEMORY)}
        limits: Json = {}
        if number % 4 < 2:
            limits["nvidia.com/gpu"] = "1"
        if number % 4 == 1:
            limits["nvidia.com/gpumem"] = str(chance.choice(_CARD_MIB))
            limits["nvidia.com/gpucores"] = str(chance.choice(_CARD_CORES))
        resources = {"requests": {**requests, **limits}, "limits": limits}
        specs.append({"containers": [{"name": "main", "image": "registry.example/app:1", "resources": resources}]})
    return specs


def pods(count: int) -> Json:
    """A List of one pool and `count` pods that take the shapes in turn."""
    specs = shapes()
    items = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{number}", "namespace": "load"},
            "spec": specs[number % len(specs)],
        }
        for number in range(count)
    ]
    return {"apiVersion": "v1", "kind": "List", "items": [pool(), *items]}


def manifests(count: int, pools: int = 20) -> list[Json]:
    """Deployments of the twenty shapes in turn, and among them pools of different families and limits."""
    specs = shapes()
    families = ("g4dn", "g5", "g6", "m5", "c6i", "r6i", "p4d", "m6g")
    made: list[Json] = []
    for number in range(pools):
        held = pool()
        held["metadata"] = {"name": f"pool-{number}"}
        family = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": [families[number % 8]]}
        held["spec"]["template"]["spec"]["requirements"].append(family)
        held["spec"]["limits"] = {"cpu": str(4 * (number + 1))}
        made.append(held)
    for number in range(count - pools):
        labels = {"app": f"app-{number}"}
        template = {"metadata": {"labels": labels}, "spec": specs[number % len(specs)]}
        made.append(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": f"app-{number}", "namespace": "load"},
                "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": template},
            }
        )
    return made


def day(jobs: int = 200, seed: int = 1) -> Json:
    """A scenario of one day in which `jobs` one-pod Jobs arrive at random minutes and run for up to two hours."""
    chance = random.Random(seed)
    specs = shapes()
    timeline = []
    for number, minute in enumerate(sorted(chance.randrange(1, 22 * 60) for _ in range(jobs))):
        template = {
            "metadata": {"annotations": {"kerf.dev/run-for": f"{chance.randrange(5, 120)}m"}},
            "spec": {**specs[number % len(specs)], "restartPolicy": "Never"},
        }
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": f"job-{number}", "namespace": "load"},
            "spec": {"parallelism": 1, "completions": 1, "template": template},
        }
        timeline.append({"at": f"{minute}m", "apply": job})
    return {
        "apiVersion": "kerf.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "day"},
        "spec": {
            "start": "2026-01-05T00:00:00Z",
            "duration": "24h",
            "seed": seed,
            "cloud": {
                "provider": "aws",
                "region": "us-east-1",
                "launch": "40s",
                "register": "35s",
                "devicesReady": "50s",
            },
            "objects": [pool()],
            "timeline": timeline,
        },
    }


def write(folder: Path, name: str, value: Json) -> Path:
    """Write one input as JSON; returns its path."""
    path = folder / name
    path.write_text(json.dumps(value), encoding="utf-8")
    return path
