"""A plan for random workloads with all constraints is what the scheduler makes of it, whenever the nodes come."""

import json
from pathlib import Path

import pytest

from kerf.sim.course.scenario import read_scenario
from kerf.sim.simulation import run
from tests.differential.bought import Course, settled
from tests.differential.workloads import HOST, ZONE, ZONES, Json, RandomWorkloads, random_workloads

PODS, PART = 30, 5


def played(folder: Path, workloads: RandomWorkloads) -> Course:
    """All pods at once; nodes come within half a minute of each other. Raises InvariantBroken for a second purchase."""
    pods = {"apiVersion": "v1", "kind": "List", "items": workloads.pods}
    spec = {
        "duration": "8m",
        "seed": workloads.seed,
        "cloud": {"jitter": "30s"},
        "objects": workloads.objects,
        "timeline": [{"at": "1s", "apply": pods}],
    }
    path = folder / f"{workloads.seed}.json"
    scenario = {"apiVersion": "kerf.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "random"}, "spec": spec}
    path.write_text(json.dumps(scenario), encoding="utf-8")
    course = Course()
    run(read_scenario(str(path)), watch=course.note)
    return course


def a_standing_node(name: str, zone: str, cpu: str) -> Json:
    """A node of no pool with room."""
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "20"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    labels = {ZONE: zone, HOST: name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
    metadata, spec = {"name": name, "labels": labels}, {"providerID": f"x://{name}"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def test_room_that_a_bought_node_opens_is_used(tmp_path: Path) -> None:
    """Three zones are asked for and two have nodes: one comes, and six of nine pods go to those that were there."""
    workloads = random_workloads(0, 0)
    even = {
        "maxSkew": 1,
        "minDomains": 3,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "w"}},
    }
    asked = {"name": "main", "resources": {"requests": {"cpu": "100m"}}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"w-{number}", "namespace": "default", "labels": {"app": "w"}},
            "spec": {"containers": [asked], "topologySpreadConstraints": [even]},
        }
        for number in range(9)
    ]
    nodes = [a_standing_node(f"n{number}", zone, "4") for number, zone in enumerate(ZONES[:2])]

    course = played(tmp_path, RandomWorkloads(0, [*workloads.objects, *nodes], pods))

    assert ({}, 1) == (course.wait, course.claims)


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(PART, 170, PART))])
def test_what_is_bought_is_followed(tmp_path: Path, first: int) -> None:
    """Every pod is bound, none waits or was displaced, and no node came that was not planned."""
    for seed in range(first, first + PART):
        workloads, nodes = settled(seed, PODS)
        course = played(tmp_path, workloads)

        assert ({}, nodes) == (course.wait, course.claims), seed


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_what_is_bought_for_many_is_followed(tmp_path: Path, seed: int) -> None:
    """The same with 100 pods."""
    workloads, nodes = settled(seed, 100)
    course = played(tmp_path, workloads)

    assert ({}, nodes) == (course.wait, course.claims)
