"""The quick way of decoding a live object must equal the long one, whatever is in the object."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from benchmarks import live_objects
from kerf.errors import DecodeError
from kerf.manifests.decode import decode_object
from kerf.manifests.live import decode_live
from tests.property.test_manifests import JUNK, OBJECTS, often, paths_of

RICH_POD: dict[str, Any] = {
    "metadata": {
        "name": "rich",
        "namespace": "team",
        "uid": "u",
        "resourceVersion": "3",
        "deletionTimestamp": "2026-01-05T07:00:00.123Z",
        "annotations": {"hami.io/vgpu-node": "n1", "kerf.dev/pinned": "17", "other.example/x": "y"},
        "labels": {"app": "a", "apps.kubernetes.io/pod-index": "0"},
        "finalizers": ["f"],
        "ownerReferences": [{"kind": "A", "name": "a"}, {"kind": "B", "name": "b", "uid": "x", "controller": True}],
    },
    "spec": {
        "initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "init"}],
        "containers": [
            {
                "name": "m",
                "resources": {"limits": {"nvidia.com/gpu": 1}},
                "ports": [{"containerPort": 1, "hostPort": 80}],
            },
            {"name": "n", "securityContext": {"privileged": True}, "resources": {"requests": {"cpu": 0.5}}},
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["3"]}]}]
                }
            }
        },
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [
            {"key": "k", "operator": "Exists"},
            {"key": "kerf.dev/reserved-for", "operator": "Equal", "value": "claim-1", "effect": "NoSchedule"},
        ],
        "schedulingGates": [{"name": "wait"}],
        "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "e", "ephemeral": {}}],
        "overhead": {"cpu": "10m"},
        "priority": 5,
        "terminationGracePeriodSeconds": 0,
    },
    "status": {
        "phase": "Pending",
        "nominatedNodeName": "n2",
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "no", "lastTransitionTime": None}],
        "initContainerStatuses": [{"name": "init", "state": {"terminated": {"exitCode": 0}}}],
    },
}
LIVE = [
    ("Pod", "v1", RICH_POD),
    ("Pod", "v1", live_objects.pod(7)),
    ("Pod", "v1", live_objects.pod(8, is_bound=False)),
    ("Node", "v1", live_objects.node(3)),
    ("NodeClaim", "karpenter.sh/v1", live_objects.claim(3)),
]
EXAMPLES = [(obj["kind"], obj["apiVersion"], obj) for obj in OBJECTS if isinstance(obj, dict) and "kind" in obj]


def outcome(decode: Callable[[], Any]) -> Any:
    """The value, or the text of the error."""
    try:
        return decode()
    except DecodeError as error:
        return str(error)


def same_both_ways(kind: str, version: str, obj: Any) -> None:
    """By its bytes and by its dictionary."""
    text = json.dumps(obj)
    known = {"apiVersion": version, "kind": kind, **obj} if isinstance(obj, dict) else obj
    expected = outcome(lambda: decode_object(json.loads(json.dumps(known))))

    assert expected == outcome(lambda: decode_live(text.encode(), kind, version))


def test_live_objects_and_examples_come_out_equal() -> None:
    """As they are."""
    for kind, version, obj in (*LIVE, *EXAMPLES):
        same_both_ways(kind, version, obj)


@st.composite
def damaged(draw: Callable[..., Any]) -> tuple[str, str, Any]:
    """A live object, or an example, with up to three places replaced, removed or added."""
    kind, version, obj = draw(st.sampled_from(LIVE) | st.sampled_from(EXAMPLES))
    value = deepcopy(obj)
    for _ in range(draw(st.integers(0, 3))):
        *path, last = draw(st.sampled_from([p for p in paths_of(value)[1:] if "managedFields" not in p]))
        holder = value
        for step in path:
            holder = holder[step]
        action = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if action == "replace":
            holder[last] = deepcopy(draw(JUNK))
        elif action == "remove":
            del holder[last]
        elif isinstance(holder, dict):
            holder[draw(st.text(max_size=5))] = deepcopy(draw(JUNK))
        if not isinstance(value, dict) or not paths_of(value)[1:]:
            break
    return kind, version, value


@often
@given(damaged())
def test_a_damaged_object_comes_out_equal(given_: tuple[str, str, Any]) -> None:
    """The same value, or the same words about what is wrong."""
    same_both_ways(*given_)


TEXTS = st.sampled_from(["", "a", "b-1", "Ü", "\ud800", "x" * 64]) | st.text(max_size=4)
INSTANTS = st.sampled_from(
    [
        "2026-01-05T07:00:00Z",
        "2026-02-30T07:00:00Z",
        "2026-01-05t07:00:00z",
        "2026-01-05 07:00:00Z",
        "2026-01-05T24:00:00Z",
        "2026-01-05T07:00:60Z",
        "2026-01-05T07:00:00.5+05:30",
        "0000-01-05T07:00:00Z",
        "1970-01-01T00:00:00Z",
        None,
        7,
    ]
)


@often
@given(
    st.fixed_dictionaries(
        {"name": TEXTS | st.just("p"), "uid": st.just("u")},
        optional={
            "namespace": TEXTS,
            "labels": st.dictionaries(TEXTS, TEXTS | st.none(), max_size=3) | st.none(),
            "annotations": st.dictionaries(st.sampled_from(["hami.io/a", "b/c", "d"]), TEXTS, max_size=3) | st.none(),
            "creationTimestamp": INSTANTS,
            "deletionTimestamp": INSTANTS,
            "generation": st.sampled_from([0, 1, -1, 2**53, 1.0, True, None]),
            "resourceVersion": st.sampled_from(["5", None, 5]),
        },
    ),
    st.fixed_dictionaries(
        {"type": TEXTS, "status": st.sampled_from(["True", "False", "x"])},
        optional={"lastTransitionTime": INSTANTS, "message": TEXTS | st.none()},
    ),
)
def test_unusual_metadata_and_conditions_come_out_equal(metadata: Any, condition: Any) -> None:
    """Odd names, instants, numbers and empty parts."""
    same_both_ways("Pod", "v1", {**RICH_POD, "metadata": metadata, "status": {"conditions": [condition]}})
