"""The definitions on a real server: what it takes and refuses, that the decoder agrees, and what kubectl shows."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerf.errors import DecodeError
from kerf.kube.crds import crds
from kerf.manifests.decode import decode_object
from kerf.manifests.encode import node_claim_object, node_claim_status, node_pool_status
from kerf.model.nodeclaim import (
    DISRUPTION_REASON,
    FALSE,
    INITIALIZED,
    LAUNCHED,
    READY,
    REGISTERED,
    TRUE,
    UNKNOWN,
    Condition,
)
from kerf.model.quantities import NODES, Resources
from kerf.testing.builders import a_claim
from tools.controlplane.server import Answer, ControlPlane

EXAMPLES = Path(__file__).parents[2] / "examples"
GROUPS = ("karpenter.sh/v1", "karpenter.sh/v1alpha1", "karpenter.kwok.sh/v1alpha1")
PATHS = {"NodePool": "v1/nodepools", "NodeClaim": "v1/nodeclaims", "NodeOverlay": "v1alpha1/nodeoverlays"}
NODE: dict[str, Any] = {"nodeClassRef": {"group": "g.example", "kind": "K", "name": "n"}, "requirements": []}
LONG, DIGITS = "x" * 64, "9" * 5000
COMPARISON = "must have a single positive integer value"
STAGES = tuple(Condition(stage, TRUE, stage) for stage in (LAUNCHED, REGISTERED, INITIALIZED))
LATE = Condition(INITIALIZED, UNKNOWN, "DevicesNotRegistered", "0 of 1 GPUs registered")

Change = dict[str, Any]


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """A server with the definitions."""
    control_plane.install_crds(crds())
    return control_plane


def posted(plane: ControlPlane, obj: Change, *, dry: bool = True) -> Answer:
    """The server's answer to a new object; `dry` keeps nothing."""
    path = f"/apis/karpenter.sh/{PATHS[obj['kind']]}?fieldValidation=Strict{'&dryRun=All' if dry else ''}"
    return plane.request("POST", path, obj)


def made(kind: str, change: Change) -> Change:
    """An object of a kind: `change` is of its spec, of a pool's template where it has `template`."""
    spec: Change = {"requirements": []}
    if kind == "NodePool":
        template = change.get("template", {})
        spec = {"template": {"metadata": template.get("metadata", {}), "spec": {**NODE, **template.get("spec", {})}}}
        change = {name: value for name, value in change.items() if name != "template"}
    elif kind == "NodeClaim":
        spec = NODE
    version = PATHS[kind].partition("/")[0]
    return {
        "apiVersion": f"karpenter.sh/{version}",
        "kind": kind,
        "metadata": {"name": "p"},
        "spec": {**spec, **change},
    }


def node(**given: Any) -> Change:
    """A change of what a pool's nodes are."""
    return {"template": {"spec": given}}


def metadata(**given: Any) -> Change:
    """A change of what a pool's nodes are called."""
    return {"template": {"metadata": given}}


def asks(operator: str, *values: str, key: str = "a/b", **given: Any) -> Change:
    """One requirement."""
    return {"requirements": [{"key": key, "operator": operator, "values": list(values), **given}]}


def taint(**given: Any) -> Change:
    """One taint."""
    return {"taints": [{"key": "a", "effect": "NoSchedule", **given}]}


def budget(**given: Any) -> Change:
    """One budget."""
    return {"disruption": {"budgets": [given]}}


def shown(plane: ControlPlane, kind: str, name: str) -> dict[str, str]:
    """Column to text, as kubectl prints the object; an empty column is left out."""
    head, line = plane.kubectl("get", kind, name).stdout.splitlines()
    starts = [(found.start(), found.group()) for found in re.finditer(r"\S+", head)]
    ends = [*(start for start, _ in starts[1:]), None]
    cells = ((column, line[start:end].strip()) for (start, column), end in zip(starts, ends, strict=True))
    return {column: text for column, text in cells if text}


def test_every_manifest_of_the_examples_is_taken_and_read(plane: ControlPlane) -> None:
    """Unchanged, but for those that are wrong on purpose; and the decoder reads what the server makes of it."""
    paths = [path for path in sorted(EXAMPLES.rglob("*.yaml")) if path.parent != EXAMPLES / "lint"]
    found = [doc for path in paths for doc in yaml.safe_load_all(path.read_text("utf-8"))]
    ours = [doc for doc in found if isinstance(doc, dict) and doc.get("apiVersion") in GROUPS]
    inline = [obj for doc in found if isinstance(doc, dict) for obj in (doc.get("spec") or {}).get("objects", ())]
    ours += [obj for obj in inline if isinstance(obj, dict) and obj.get("apiVersion") in GROUPS]

    assert {"NodePool", "NodeOverlay"} <= {obj["kind"] for obj in ours}
    for obj in ours:
        if obj["kind"] in PATHS:
            assert decode_object(posted(plane, obj).good(obj["metadata"]["name"])) is not None


REFUSED: list[tuple[str, Change, str]] = [
    ("NodePool", node(**asks("In")), "requirements with operator 'In' must have a value defined"),
    ("NodePool", node(**asks("Gt", "-1")), COMPARISON),
    ("NodePool", node(**asks("In", "a", minValues=2)), "must have at least that many values specified"),
    ("NodePool", node(**asks("Exists", key="my-karpenter.sh/x")), 'label domain "karpenter.sh" is restricted'),
    ("NodePool", node(**asks("Exists", key="karpenter.sh/nodepool")), 'label "karpenter.sh/nodepool" is restricted'),
    ("NodePool", node(**asks("Exists", key="kubernetes.io/hostname")), 'label "kubernetes.io/hostname" is restricted'),
    ("NodePool", node(**asks("Exists", key="a..b/c")), "requirements[0].key in body should match"),
    ("NodePool", node(**taint(effect="Never")), 'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'),
    ("NodePool", node(**taint(value="")), "taints[0].value in body should match"),
    ("NodePool", node(expireAfter="1d"), "expireAfter in body should match"),
    ("NodePool", node(nodeClassRef={"group": "", "kind": "K", "name": "n"}), "group may not be empty"),
    ("NodePool", metadata(labels={"kubernetes.io/hostname": "x"}), 'label "kubernetes.io/hostname" is restricted'),
    ("NodePool", metadata(labels={f"l{n}": "v" for n in range(101)}), "Too many: 101: must have at most 100 items"),
    ("NodePool", budget(nodes="1", schedule="@daily"), "'schedule' must be set with 'duration'"),
    ("NodePool", budget(nodes="1", schedule="@daily", duration="10s"), "duration in body should match"),
    ("NodePool", budget(nodes="101%"), "nodes in body should match"),
    ("NodePool", budget(nodes=5), "nodes in body must be of type string"),
    ("NodePool", budget(nodes="1", reasons=["Empty", "Empty"]), 'Duplicate value: "Empty"'),
    ("NodePool", budget(nodes="1", reasons=["Expired"]), 'supported values: "Underutilized", "Empty", "Drifted"'),
    ("NodePool", {"weight": 101}, "should be less than or equal to 100"),
    ("NodePool", {"limits": {"cpu": 1.5}}, "must be of type integer,string"),
    ("NodePool", {"limits": {"cpu": "4 cores"}}, "limits.cpu in body should match"),
    ("NodePool", {"replicas": 1, "weight": 2}, "'weight' is not supported on static NodePools"),
    ("NodePool", {"replicas": 1, "limits": {"cpu": 2}}, "only 'limits.nodes' is supported on static NodePools"),
    ("NodePool", {"replicas": 2**31}, "should be less than or equal to 2147483647"),
    ("NodeClaim", asks("Lte"), COMPARISON),
    ("NodeClaim", asks("Exists", key="karpenter.sh/x"), 'label domain "karpenter.sh" is restricted'),
    ("NodeOverlay", asks("NotIn"), "requirements with operator 'NotIn' must have a value defined"),
    ("NodeOverlay", asks("Exists", key="karpenter.sh/x"), 'label domain "karpenter.sh" is restricted'),
    ("NodeOverlay", {"price": "1", "priceAdjustment": "+1"}, "cannot set both 'price' and 'priceAdjustment'"),
    ("NodeOverlay", {"priceAdjustment": "-101%"}, "priceAdjustment in body should match"),
    ("NodeOverlay", {"priceAdjustment": "-100.0%"}, "priceAdjustment in body should match"),
    ("NodeOverlay", {"capacity": {"cpu": 4}}, "invalid resource restricted"),
]


@pytest.mark.parametrize(("kind", "change", "words"), REFUSED)
def test_what_the_server_refuses_the_decoder_refuses(
    plane: ControlPlane, kind: str, change: Change, words: str
) -> None:
    """With Karpenter's words here; ours give the same field."""
    obj = made(kind, change)
    answer = posted(plane, obj)

    assert 422 == answer.status
    assert words in answer.body["message"]
    with pytest.raises(DecodeError):
        decode_object(obj)


TAKEN: list[tuple[str, Change]] = [
    ("NodePool", node(**asks("Exists", "x"))),
    ("NodePool", node(**asks("Gt", "+1"))),
    ("NodePool", node(**asks("Gt", "0" * 5000 + "1"))),
    ("NodePool", node(**asks("In", "a b", LONG))),
    ("NodePool", node(**asks("Exists", key=LONG))),
    ("NodePool", node(**taint(key=LONG, value=LONG))),
    ("NodePool", node(**taint(value="a/b"))),
    ("NodePool", node(expireAfter=f"{DIGITS}h")),
    ("NodePool", metadata(labels={"a b": "c", "d": None})),
    ("NodePool", budget(nodes=DIGITS, reasons=["Unhealthy"])),
    ("NodePool", budget(nodes="1", schedule="TZ=UTC 0 9 * * 1", duration=f"{DIGITS}h")),
    ("NodePool", budget(nodes="1", schedule="@dailyfoo", duration="1h")),
    ("NodePool", {"weight": 1.0, "limits": {"cpu": "1e1.5", "memory": -1, "pods": None, "nodes": DIGITS}}),
    ("NodeClaim", asks("In", "a b", LONG, key=LONG)),
    ("NodeClaim", {**taint(key=LONG), "resources": {"requests": {"cpu": -1, "memory": "1e1.5"}}}),
    ("NodeOverlay", {**asks("In", "a b"), "price": DIGITS, "capacity": {"a/b": "-1", "c": "1e999"}}),
    ("NodeOverlay", {**asks("Exists", "x"), "priceAdjustment": "+.5%", "weight": 1.0}),
]


@pytest.mark.parametrize(("kind", "change"), TAKEN)
def test_what_the_server_takes_the_decoder_reads(plane: ControlPlane, kind: str, change: Change) -> None:
    """However odd it is: one object that cannot be read would stop all decisions about it."""
    stored = posted(plane, made(kind, change)).good(kind)

    assert stored["metadata"]["uid"]
    assert "p" == getattr(decode_object(stored), "name", None)


@pytest.fixture
def claim_name(plane: ControlPlane) -> Iterator[str]:
    """A name that no claim has; a claim that gets it goes with the test."""
    yield "stage"
    plane.delete("NodeClaim", "stage")


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((), {}),
        (
            (Condition(LAUNCHED, UNKNOWN, "LaunchFailed", "not authorised"),),
            {"AWAITS": "Launched", "REASON": "LaunchFailed"},
        ),
        (
            (STAGES[0], Condition(REGISTERED, UNKNOWN, "NodeNotFound"), Condition(READY, FALSE, "NotReady")),
            {"READY": "False", "AWAITS": "Registered", "REASON": "NodeNotFound"},
        ),
        (
            (*STAGES[:2], LATE, Condition("Drifted", FALSE), Condition(READY, FALSE, "NotReady")),
            {"READY": "False", "AWAITS": "Initialized", "REASON": "DevicesNotRegistered"},
        ),
        ((*STAGES, Condition(READY, TRUE)), {"READY": "True"}),
        (
            (*STAGES, Condition(READY, TRUE), Condition(DISRUPTION_REASON, TRUE, "Underutilized")),
            {"READY": "True", "LEAVES": "Underutilized"},
        ),
    ],
)
def test_a_claim_shows_its_stage_and_why(
    plane: ControlPlane, claim_name: str, conditions: tuple[Condition, ...], expected: dict[str, str]
) -> None:
    """In the columns of `kubectl get nodeclaims`, with the status as Kerf writes it."""
    claim = a_claim(claim_name, conditions=conditions)
    obj = {name: value for name, value in node_claim_object(claim).items() if name != "status"}
    posted(plane, obj, dry=False).good("the claim")
    path = f"/apis/karpenter.sh/v1/nodeclaims/{claim_name}/status"
    status = {"status": node_claim_status(claim)}
    plane.request("PATCH", path, status, content_type="application/merge-patch+json").good("its status")

    cells = shown(plane, "nodeclaims", claim_name)
    assert ("m5.xlarge", "on-demand") == (cells["TYPE"], cells["CAPACITY"])
    assert expected == {column: cells[column] for column in ("READY", "AWAITS", "REASON", "LEAVES") if column in cells}


def test_a_pool_shows_how_many_nodes_it_has(plane: ControlPlane) -> None:
    """To people in a column, and to autoscalers in the scale sub-resource."""
    posted(plane, made("NodePool", {"replicas": 5}), dry=False).good("the pool")
    try:
        path = "/apis/karpenter.sh/v1/nodepools/p"
        status = {"status": node_pool_status(Resources({NODES: 3}), [Condition(READY, TRUE)])}
        plane.request("PATCH", f"{path}/status", status, content_type="application/merge-patch+json").good("its status")
        scale = plane.request("GET", f"{path}/scale").good("its scale")
        cells = shown(plane, "nodepools", "p")
    finally:
        plane.delete("NodePool", "p")

    assert ("3", "True") == (cells["NODES"], cells["READY"])
    assert (5, 3) == (scale["spec"]["replicas"], scale["status"]["replicas"])
