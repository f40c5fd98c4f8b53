"""What a scheduler said of a pod is noted on the pod, and holds until pod, pool or what is named has changed."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.model.pods import Owner, Pod
from kerf.model.rejections import REJECTED, Rejection, asked_by, rejection_of, workload_of, written
from kerf.testing.builders import a_pod

MISSING = '0/3 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/3 nodes are available.'
APART = "0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 2 Insufficient nvidia.com/gpu."


def rejected(said: str = APART, **given: Any) -> Pod:
    """A pod with a note of the instant 100, in force until 400."""
    pod = a_pod(uid="u", unschedulable=said)
    held = Rejection("u", asked_by(pod), said, ("node-1",), (("gpu", 3),), 1, 100, 400)
    return replace(pod, annotations={REJECTED: str(written(replace(held, **given))[REJECTED])})


def is_in_force(pod: Pod, generation: int = 3, now_s: float = 200) -> bool:
    """Whether nothing may be planned for the pod."""
    found = rejection_of(pod)
    return found is not None and found.is_in_force(pod, {"gpu": generation}, now_s)


def test_it_holds_while_nothing_changes() -> None:
    """It is read as it was written."""
    assert is_in_force(rejected())


@pytest.mark.parametrize(
    "change",
    [{"uid": "v"}, {"labels": {"app": "other"}}, {"annotations": {}}, {"annotations": {REJECTED: "{"}}],
    ids=["made again", "labelled", "taken away", "broken"],
)
def test_it_ends_when_the_pod_has_changed(change: dict[str, Any]) -> None:
    """Another pod of the name, another label, or no note that can be read."""
    assert not is_in_force(replace(rejected(), **change))


def test_it_ends_with_a_change_of_the_pool_and_with_time() -> None:
    """The generation of the spec; the instant itself is the end."""
    assert not is_in_force(rejected(), generation=4)
    assert is_in_force(rejected(), now_s=399)
    assert not is_in_force(rejected(), now_s=400)


def test_a_missing_claim_that_is_named_no_more_ends_it() -> None:
    """What the scheduler says of the pod alone has changed; what it says of nodes changes with every node."""
    assert is_in_force(replace(rejected(MISSING), unschedulable=MISSING.replace("0/3", "0/2")))
    assert not is_in_force(replace(rejected(MISSING), unschedulable=APART))
    assert is_in_force(rejected(MISSING), now_s=10_000)
    assert not is_in_force(rejected(MISSING, times=5), now_s=10_000)
    assert is_in_force(replace(rejected(), unschedulable="0/2 nodes are available: 2 Insufficient nvidia.com/gpu."))


@pytest.mark.parametrize(
    ("kind", "name", "labels", "expected"),
    [
        ("ReplicaSet", "web-5d9f", {"pod-template-hash": "5d9f"}, ("default", "Deployment", "web")),
        ("ReplicaSet", "web-5d9f", {}, ("default", "ReplicaSet", "web-5d9f")),
        ("Job", "nightly-29384729", {}, ("default", "CronJob", "nightly")),
        ("Job", "train-2", {}, ("default", "Job", "train-2")),
        ("StatefulSet", "db", {}, ("default", "StatefulSet", "db")),
    ],
)
def test_a_workload_is_what_makes_the_pod_again(
    kind: str, name: str, labels: dict[str, str], expected: tuple[str, str, str]
) -> None:
    """Each rollout and each run has a name of its own, and belongs to one workload all the same."""
    assert expected == workload_of(a_pod(labels=labels, owner=Owner(kind, name)))
