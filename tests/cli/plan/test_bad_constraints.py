"""Constraints that make no sense: a reason on that pod, and the others of the input are planned."""

import json
from pathlib import Path
from typing import Any

from tests.cli.explain.test_patches import MAIN, a_pool, planned
from tests.cli.program import kerf
from tests.patches import Object

REQUIRED, PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))
CONTAINERS = [{**MAIN, "resources": {"requests": {"cpu": "100m"}}}]
ZONE = "topology.kubernetes.io/zone"


def spread(**given: Any) -> Object:
    """A spec with a spread of all pods over zones."""
    constraint = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    return {"topologySpreadConstraints": [{**constraint, **given}]}


def near(kind: str = "podAffinity", **given: Any) -> Object:
    """A spec with one required term of pod affinity."""
    return {"affinity": {kind: {REQUIRED: [{"topologyKey": ZONE, "labelSelector": {}, **given}]}}}


def on_nodes(*expressions: Object, **preferred: Any) -> Object:
    """A spec with one required term of node affinity, or a preferred one."""
    node: Object = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}
    return {"affinity": {"nodeAffinity": {PREFERRED: [preferred]} if preferred else node}}


def either(*terms: Object) -> Object:
    """A spec of which one term of node affinity must hold."""
    stated = {"nodeSelectorTerms": [{"matchExpressions": [each]} for each in terms]}
    return {"affinity": {"nodeAffinity": {REQUIRED: stated}}}


OLD_ZONE, ZONE = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"
BOTH = {"matchExpressions": [{"key": "a", "operator": word, "values": ["x"]} for word in ("In", "NotIn")]}
REASONS: dict[str, tuple[Object, str]] = {
    "negative-skew": (spread(maxSkew=-1), "maxSkew: expected at least 1, got -1"),
    "no-skew": (spread(maxSkew=0), "maxSkew: expected at least 1, got 0"),
    "no-key": (spread(topologyKey=""), "topologyKey: expected a label key"),
    "unknown-key-of-spread": (spread(topologyKey="example.com/no-such"), "no label example.com/no-such"),
    "unknown-key-of-affinity": (near(topologyKey="example.com/no-such"), "no label example.com/no-such"),
    "selects-nothing": (near(labelSelector=None), "its podAffinity selects nothing"),
    "in-and-not-in": (near(labelSelector=BOTH), "podAffinity: nothing can satisfy both a In [x] and a NotIn [x]"),
    "nodes-in-and-not-in": (
        on_nodes(*BOTH["matchExpressions"]),
        "nodeAffinity: nothing can satisfy both a In [x] and a NotIn [x]",
    ),
    "two-spellings": (
        {"nodeSelector": {OLD_ZONE: "za", ZONE: "zb"}},
        f"nodeSelector: nothing can satisfy both {ZONE} In [za] and {ZONE} In [zb]",
    ),
    "selector-against-affinity": (
        {"nodeSelector": {OLD_ZONE: "za"}, **on_nodes({"key": ZONE, "operator": "NotIn", "values": ["za"]})},
        f"nodeSelector and nodeAffinity: nothing can satisfy both {ZONE} In [za] and {ZONE} NotIn [za]",
    ),
    "one-term-of-two": (
        {
            "nodeSelector": {"a": "x"},
            **either({"key": "a", "operator": "DoesNotExist"}, {"key": "b", "operator": "Exists"}),
        },
        "the pod asks a In [x], NodePool blue has no label a",
    ),
    "no-values": (
        on_nodes({"key": "a", "operator": "In"}),
        "values: expected at least one value for In",
    ),
    "weight-0": (on_nodes(weight=0, preference={"matchFields": []}), "weight: expected a weight from 1 to 100, got 0"),
    "toleration": ({"tolerations": [{"value": "x"}]}, "operator: expected Exists where there is no key"),
    "no-claim": (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "absent"}}]},
        "absent",
    ),
}


def a_pod(name: str, spec: Object) -> Object:
    """A new pod."""
    labels = {"app": name}
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "data", "labels": labels}}
    return {**head, "spec": {"containers": CONTAINERS, **spec}}


def test_each_has_its_reason_and_the_others_are_planned() -> None:
    """All of them in one input beside good pods; selectors that match everything are no mistake."""
    a_claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "other", "namespace": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    good = {"plain": {}, "even": spread(), "beside-any": near()}
    specs = {**{name: bad for name, (bad, _) in REASONS.items()}, **good}
    pods = [a_pod(name, spec) for name, spec in specs.items()]

    plan = json.loads(planned([a_pool(), a_claim, *pods], "plan", "--output", "json").stdout)

    reasons = {each["pod"].partition("/")[2]: each["reason"] for each in plan["unplaced"]}
    assert REASONS.keys() == reasons.keys()
    assert {} == {name: reasons[name] for name, (_, why) in REASONS.items() if why not in reasons[name]}
    assert {f"data/{name}" for name in good} == {pod for launch in plan["launches"] for pod in launch["pods"]}


TEXT = """apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: data}
spec:
  containers: [{name: main, image: i}]
  tolerations:
    - {key: gpu, operator: exists}
"""


def test_what_is_refused_is_said_with_place_field_and_hint(tmp_path: Path) -> None:
    """Pods with the same mistake are one row; a large value is cut, and in a list of JSON the item is named."""
    (tmp_path / "a.yaml").write_text("---\n".join(TEXT.replace("NAME", name) for name in ("one", "two")))
    long = a_pod("long", {"nodeSelector": {"zone": "x" * 1000}})
    listed = {"apiVersion": "v1", "kind": "List", "items": [a_pool(), long]}
    (tmp_path / "b.json").write_text(json.dumps(listed))

    text = kerf("plan", "-f", str(tmp_path)).stdout
    assert (
        "  data/one and 1 more  invalid: spec.tolerations[0].operator: "
        "expected one of Equal, Exists, Gt, Lt, got 'exists'\n"
        f"    at: {tmp_path}/a.yaml:7:28 and 1 more\n"
        "    hint: is `Exists` meant?\n"
    ) in text
    refused = json.loads(kerf("plan", "-f", str(tmp_path), "--output", "json").stdout)["unplaced"]
    (found,) = (each for each in refused if each["pod"] == "data/long")
    assert f"{tmp_path}/b.json#items[1]" == found["place"]
    assert found["reason"].startswith("spec.nodeSelector.zone: expected text that is a label value")
    assert found["reason"].endswith(f"got <'{'x' * 76}...>")
    explained = kerf("explain", "pod", "data/two", "-f", str(tmp_path)).stdout
    assert f"  at: {tmp_path}/a.yaml:15:28\n  hint: is `Exists` meant?\n" in explained
