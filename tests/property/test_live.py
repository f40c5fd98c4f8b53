"""The quick way of decoding a live object must equal the long one, whatever is in the object."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import live_objects
from kerf.errors import DecodeError, InputError
from kerf.lint.linter import lint
from kerf.manifests.decode import decode, decode_object
from kerf.manifests.live import decode_live
from kerf.manifests.read import Documents, parse_json
from kerf.model.market import Market
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


EITHER = st.sampled_from(LIVE) | st.sampled_from(EXAMPLES)


@st.composite
def damaged(draw: Callable[..., Any], objects: st.SearchStrategy[Any] = EITHER) -> tuple[str, str, Any]:
    """One of them, live objects and examples by default, with up to three places replaced, removed or added."""
    kind, version, obj = draw(objects)
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


def listed(pod: Any) -> Documents:
    """As a server answers it, in a list of pods, which is read the quick way."""
    return parse_json(b'{"kind":"PodList","apiVersion":"v1","items":[' + json.dumps(pod).encode() + b"]}", "pods.json")


def stating_its_kind(pod: Any) -> Documents:
    """The same in a list of anything, with every other byte in its place."""
    whole = {**pod, "kind": pod.get("kind", "Pod"), "apiVersion": pod.get("apiVersion", "v1")}
    return parse_json(
        b'{"kind":"List",   "apiVersion":"v1","items":[' + json.dumps(whole).encode() + b"]}", "pods.json"
    )


def same_of_a_list(pod: Any) -> None:
    """To whoever decodes it, warnings and the newest instant included, and to lint."""

    def decoded(documents: Documents) -> Any:
        try:
            found = decode(documents)
        except InputError as error:
            return str(error)
        return replace(found, left_out=()), [str(each) for each in found.left_out]

    def linted(documents: Documents) -> Any:
        found = lint(documents, {}, lambda _: Market(()), is_live=True)
        return found, [(subject.raw, subject.value) for subject in found.subjects]

    assert decoded(stating_its_kind(pod)) == decoded(listed(pod))
    assert linted(stating_its_kind(pod)) == linted(listed(pod))


def is_strict_json(text: str) -> bool:
    """Which all is that a server sends; Python writes infinities and halves of characters too."""
    try:
        msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return False
    return True


PODS = [each for each in LIVE if each[0] == "Pod"]


def test_a_listed_pod_comes_out_equal() -> None:
    """As it is, and with keys of Kerf's domain, known and not."""
    for _, _, pod in PODS:
        same_of_a_list(pod)
        for key in ("kerf.dev/pinned", "kerf.dev/pined"):
            same_of_a_list({**pod, "metadata": {**pod["metadata"], "annotations": {key: "1"}}})
            same_of_a_list({**pod, "metadata": {**pod["metadata"], "labels": {key: "1"}}})


@often
@given(damaged(st.sampled_from(PODS)))
def test_a_damaged_pod_of_a_list_comes_out_equal(given_: tuple[str, str, Any]) -> None:
    """The same value and findings, or the same words about what is wrong."""
    _, _, pod = given_
    if isinstance(pod, dict) and is_strict_json(json.dumps(pod)):
        same_of_a_list(pod)


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
