"""A new pod that the API server would refuse has a reason; the others of the input are planned."""

from typing import Any

import pytest

from kerf.manifests.admission import Defaults
from kerf.manifests.pods.decode import SpecReading, read_spec
from tests.manifests.pods.specs import GOOD, REFUSED, TAKEN, Spec
from tests.manifests.texts import decoded, pod, pod_text, said


def read(defaults: Defaults | None = None, **spec: Any) -> SpecReading:
    """A spec of one container with more fields."""
    return read_spec({"containers": [{"name": "a"}], **spec}, defaults or Defaults())


@pytest.mark.parametrize(
    ("toleration", "why"),
    [
        ({}, "operator: expected Exists where there is no key, got 'Equal'"),
        ({"value": "x"}, "operator: expected Exists where there is no key, got 'Equal'"),
        ({"operator": "Equal"}, "operator: expected Exists where there is no key, got 'Equal'"),
        ({"key": "k", "operator": "Exists", "value": "x"}, "value: expected nothing for Exists, got 'x'"),
        (
            {"key": "k", "tolerationSeconds": 5},
            "effect: expected NoExecute where tolerationSeconds is set, got <",
        ),
        (
            {"key": "k", "tolerationSeconds": 0, "effect": "NoSchedule"},
            "effect: expected NoExecute where tolerationSeconds is set, got 'NoSchedule'",
        ),
        ({"key": "a b", "operator": "Exists"}, "key: expected a label key"),
        ({"key": "k", "value": "-x"}, "value: expected text that is a label value"),
        ({"key": "k", "operator": "Gt", "value": "x"}, "value: expected a whole number for Gt, got 'x'"),
        ({"key": "k", "operator": "Lt", "value": "007"}, "value: expected a whole number for Lt, got '007'"),
        ({"key": "k", "operator": "Like"}, "operator: expected one of Equal, Exists, Gt, Lt, got 'Like'"),
        (
            {"key": "k", "effect": "NoStart"},
            "effect: expected one of NoSchedule, PreferNoSchedule, NoExecute, got 'NoStart'",
        ),
    ],
)
def test_a_toleration_that_makes_no_sense_is_a_reason(toleration: dict[str, Any], why: str) -> None:
    """ValidateTolerations; a live pod has passed it."""
    assert said(read(tolerations=[toleration]).invalid).startswith(f"tolerations[0].{why}")
    assert "" == said(read_spec({"containers": [{"name": "a"}], "tolerations": [toleration]}, None).invalid)


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
    assert "" == said(read(tolerations=[toleration]).invalid)


@pytest.mark.parametrize(
    ("volumes", "why"),
    [
        (
            [{"name": "v", "ephemeral": {}}],
            "volumes[0].ephemeral.volumeClaimTemplate: expected a template of its claim",
        ),
        (
            [{"name": "v", "emptyDir": {}}, {"name": "v", "hostPath": {}}],
            "volumes[1].name: expected a name that no other",
        ),
        ([{"emptyDir": {}}], "volumes[0].name: expected a name, got <nothing>"),
    ],
)
def test_a_volume_that_makes_no_sense_is_a_reason(volumes: list[Any], why: str) -> None:
    """ValidateVolumes."""
    assert why in said(read(volumes=volumes).invalid)


@pytest.mark.parametrize("part", ["containers", "initContainers"])
def test_a_restart_policy_that_no_server_knows_is_a_reason(part: str) -> None:
    """Each container may have one of its own."""
    bad: dict[str, Any] = {part: [{"name": "b", "restartPolicy": "Sometimes"}]}

    bad["containers"] = bad.get("containers") or [{"name": "a"}]

    why = f"{part}[0].restartPolicy: expected one of Always, Never, OnFailure, got 'Sometimes'"
    assert why == said(read(**bad).invalid)
    assert "" == said(read(initContainers=[{"name": "b", "restartPolicy": "OnFailure"}]).invalid)


def test_the_pods_own_restart_policy_is_one_of_three() -> None:
    """That of the whole pod."""
    assert "restartPolicy: expected one of Always, Never, OnFailure, got 'Bogus'" == said(
        read(restartPolicy="Bogus").invalid
    )
    assert "" == said(read(restartPolicy="Never").invalid)


LONG = "x" * 64
TEXT = "text that is a label value (at most 63 letters, digits, -, _ and .)"


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        ({"zone": LONG}, f"nodeSelector.zone: expected {TEXT}, got '{LONG}'"),
        ({"a b": "x"}, "nodeSelector[\"a b\"]: expected a label key such as example.com/name, got 'a b'"),
        ({"zone": ""}, ""),
    ],
)
def test_a_node_selector_that_no_node_can_have_is_a_reason(selector: dict[str, str], why: str) -> None:
    """It selects by labels, and these have a form."""
    assert why == said(read(nodeSelector=selector).invalid)
    assert "" == said(read_spec({"containers": [{"name": "a"}], "nodeSelector": selector}, None).invalid)


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        ({"matchLabels": {"app": LONG}}, f"matchLabels.app: expected {TEXT}, got '{LONG}'"),
        (
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", LONG]}]},
            f"matchExpressions[0].values[1]: expected {TEXT}, got '{LONG}'",
        ),
        (
            {"matchExpressions": [{"key": "a b", "operator": "Exists"}]},
            "matchExpressions[0].key: expected a label key such as app.kubernetes.io/name, got 'a b'",
        ),
    ],
)
def test_a_selector_of_pods_that_no_pod_can_meet_is_a_reason(selector: dict[str, Any], why: str) -> None:
    """Of affinity and of spread alike."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spread = {**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}

    at = "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector"
    assert f"{at}.{why}" == said(read(affinity=affinity).invalid)
    assert f"topologySpreadConstraints[0].labelSelector.{why}" == said(read(topologySpreadConstraints=[spread]).invalid)


@pytest.mark.parametrize(
    ("port", "why"),
    [
        ({"containerPort": 0}, "containerPort: expected a port from 1 to 65535, got 0"),
        ({"containerPort": 80, "hostPort": 65_536}, "hostPort: expected a port from 1 to 65535, got 65536"),
        ({"containerPort": 80, "protocol": "HTTP"}, "protocol: expected one of TCP, UDP, SCTP, got 'HTTP'"),
    ],
)
def test_a_port_that_there_is_not_is_a_reason(port: dict[str, Any], why: str) -> None:
    """Of one container."""
    bad = {"name": "b", "ports": [{"containerPort": 80, "hostPort": 0, "protocol": "UDP"}, port]}

    assert f"containers[0].ports[1].{why}" == said(read(containers=[bad]).invalid)


ABSENT = "priorityClassName: expected a PriorityClass that there is"
CLASSES = Defaults(priorities=(("high", 1000), ("usual", 7)), priority_class="usual")


@pytest.mark.parametrize(
    ("defaults", "spec", "why"),
    [
        (Defaults(), {"priority": 9}, "priority: expected 0, as without a priorityClassName, got 9"),
        (CLASSES, {"priority": 9}, "priority: expected 7, which its PriorityClass gives, got 9"),
        (
            CLASSES,
            {"priority": 9, "priorityClassName": "high"},
            "priority: expected 1000, which its PriorityClass gives, got 9",
        ),
        (
            CLASSES,
            {"priorityClassName": "absent"},
            f"{ABSENT}, got 'absent'",
        ),
        (Defaults(), {"priority": 0}, ""),
        (CLASSES, {"priority": 1000, "priorityClassName": "high"}, ""),
        (CLASSES, {"priorityClassName": "system-node-critical"}, ""),
    ],
)
def test_a_priority_that_admission_does_not_give_is_a_reason(
    defaults: Defaults, spec: dict[str, Any], why: str
) -> None:
    """The plug-in Priority works it out from the class, and takes no other."""
    assert why == said(read(defaults, **spec).invalid)


def test_where_the_input_has_no_classes_the_stated_priority_counts_and_the_class_is_named() -> None:
    """It may lack the kind: the pod is planned, and a warning says what is not known."""
    spec = "containers: [{name: a}]\npriorityClassName: high\npriority: 9"
    read = decoded(pod_text(spec))

    assert (9, "") == (read.pods[0].spec.priority, said(read.pods[0].invalid))
    assert 0 == pod("containers: [{name: a}]\npriorityClassName: high").spec.priority


@pytest.mark.parametrize("change", REFUSED, ids=str)
def test_what_a_server_refuses_is_refused_and_nothing_of_a_pod_that_runs(change: Spec) -> None:
    """A live pod has passed the server, whatever a newer one says."""
    reading = read_spec({**GOOD, **change}, Defaults())

    assert reading.problems or reading.invalid
    assert read_spec({**GOOD, **change}, None).invalid is None


@pytest.mark.parametrize("change", TAKEN, ids=str)
def test_what_a_server_takes_is_taken(change: Spec) -> None:
    """Their like."""
    reading = read_spec({**GOOD, **change}, Defaults())

    assert ((), (), None) == (reading.problems, reading.unknown, reading.invalid)
