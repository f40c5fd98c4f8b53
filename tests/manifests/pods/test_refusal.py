"""A new pod that the API server would refuse has a reason; the others of the input are planned."""

from typing import Any

import pytest

from kerf.manifests.admission import Defaults
from kerf.manifests.pods.decode import SpecReading, read_spec
from tests.manifests.texts import decoded, pod, pod_text


def read(defaults: Defaults | None = None, **spec: Any) -> SpecReading:
    """A spec of one container with more fields."""
    return read_spec({"containers": [{"name": "a"}], **spec}, defaults or Defaults())


@pytest.mark.parametrize(
    ("toleration", "why"),
    [
        ({}, "operator must be Exists where there is no key, got Equal"),
        ({"value": "x"}, "operator must be Exists where there is no key, got Equal"),
        ({"operator": "Equal"}, "operator must be Exists where there is no key, got Equal"),
        ({"key": "k", "operator": "Exists", "value": "x"}, "value must be empty for Exists, got 'x'"),
        ({"key": "k", "tolerationSeconds": 5}, "effect must be NoExecute where tolerationSeconds is set, got ''"),
        (
            {"key": "k", "tolerationSeconds": 0, "effect": "NoSchedule"},
            "effect must be NoExecute where tolerationSeconds is set, got 'NoSchedule'",
        ),
        ({"key": "a b", "operator": "Exists"}, "key must be"),
        ({"key": "k", "value": "-x"}, "value must be"),
        ({"key": "k", "operator": "Gt", "value": "x"}, "value must be a whole number for Gt, got 'x'"),
        ({"key": "k", "operator": "Lt", "value": "007"}, "value must be a whole number for Lt, got '007'"),
    ],
)
def test_a_toleration_that_makes_no_sense_is_a_reason(toleration: dict[str, Any], why: str) -> None:
    """ValidateTolerations; a live pod has passed it."""
    assert read(tolerations=[toleration]).invalid.startswith(f"tolerations[0].{why}")
    assert "" == read_spec({"containers": [{"name": "a"}], "tolerations": [toleration]}, None).invalid


@pytest.mark.parametrize(
    "toleration",
    [
        {"operator": "Exists"},
        {"key": "k"},
        {"key": "k", "value": "x", "effect": "NoExecute", "tolerationSeconds": 0},
        {"key": "k", "operator": "Gt", "value": "-5"},
    ],
)
def test_a_toleration_that_does_is_none(toleration: dict[str, Any]) -> None:
    """All that the server takes."""
    assert "" == read(tolerations=[toleration]).invalid


@pytest.mark.parametrize(
    ("volumes", "why"),
    [
        ([{"name": "v", "ephemeral": {}}], "volumes[0].ephemeral has no volumeClaimTemplate"),
        ([{"name": "v", "emptyDir": {}}, {"name": "v", "hostPath": {}}], "two volumes are named v"),
        ([{"emptyDir": {}}], "volumes[0] has no name"),
    ],
)
def test_a_volume_that_makes_no_sense_is_a_reason(volumes: list[Any], why: str) -> None:
    """ValidateVolumes."""
    assert why == read(volumes=volumes).invalid


@pytest.mark.parametrize("part", ["containers", "initContainers"])
def test_a_restart_policy_that_no_server_knows_is_a_reason(part: str) -> None:
    """Each container may have one of its own."""
    bad: dict[str, Any] = {part: [{"name": "b", "restartPolicy": "Sometimes"}]}

    why = "container b: restartPolicy must be one of Always, Never, OnFailure, got 'Sometimes'"
    assert why == read(**bad).invalid
    assert "" == read(initContainers=[{"name": "b", "restartPolicy": "OnFailure"}]).invalid


CLASSES = Defaults(priorities=(("high", 1000), ("usual", 7)), priority_class="usual")


@pytest.mark.parametrize(
    ("defaults", "spec", "why"),
    [
        (Defaults(), {"priority": 9}, "priority must be 0 without a priorityClassName, got 9"),
        (CLASSES, {"priority": 9}, "priority must be 7, which its PriorityClass gives, got 9"),
        (
            CLASSES,
            {"priority": 9, "priorityClassName": "high"},
            "priority must be 1000, which its PriorityClass gives, got 9",
        ),
        (CLASSES, {"priorityClassName": "absent"}, "there is no PriorityClass absent"),
        (Defaults(), {"priority": 0}, ""),
        (CLASSES, {"priority": 1000, "priorityClassName": "high"}, ""),
        (CLASSES, {"priorityClassName": "system-node-critical"}, ""),
    ],
)
def test_a_priority_that_admission_does_not_give_is_a_reason(
    defaults: Defaults, spec: dict[str, Any], why: str
) -> None:
    """The plug-in Priority works it out from the class, and takes no other."""
    assert why == read(defaults, **spec).invalid


def test_where_the_input_has_no_classes_the_stated_priority_counts_and_the_class_is_named() -> None:
    """It may lack the kind: the pod is planned, and a warning says what is not known."""
    spec = "containers: [{name: a}]\npriorityClassName: high\npriority: 9"
    read = decoded(pod_text(spec))

    assert (9, "") == (read.pods[0].spec.priority, read.pods[0].invalid)
    assert 0 == pod("containers: [{name: a}]\npriorityClassName: high").spec.priority
