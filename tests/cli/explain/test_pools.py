"""`kerf explain nodepool`: its figures are the ledger's, by which launches are refused."""

import json
import re

import pytest

from tests.cli.explain.test_patches import MAIN, a_deployment, a_pool, planned
from tests.patches import Object

TYPES = ["g4dn.xlarge", "g4dn.2xlarge"]


def a_limited_pool(resource: str, limit: str) -> Object:
    """Two types of one card each, of which the larger is an alternative to the other."""
    pool = a_pool()
    pool["spec"]["template"]["spec"]["requirements"][0]["values"] = TYPES
    pool["spec"]["limits"] = {resource: limit}
    return pool


@pytest.mark.parametrize("resource, limit", [("cpu", "12"), ("kerf.dev/cost-per-hour", "1.4"), ("nodes", "2")])
def test_what_the_table_has_planned_is_what_reaches_the_limit(resource: str, limit: str) -> None:
    """A node counts as the largest that its claim may become, in the table as in the refusal."""
    container = {**MAIN, "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    top = a_deployment({"containers": [container]})[0]
    top["spec"]["replicas"] = 4
    objects = [a_limited_pool(resource, limit), top]
    [figures] = planned(objects, "explain", "nodepool/blue", "-o", "json").data["items"][0]["limits"]
    reasons = {each["reason"] for each in json.loads(planned(objects, "plan", "-o", "json").stdout)["unplaced"]}
    said = {found.group(1) for reason in reasons if (found := re.search(r": (\S+) planned", reason))}

    assert {figures["planned"]} == said


def test_a_static_pool_says_what_it_keeps_and_of_what_it_buys() -> None:
    """Its nodes go for drift alone; pods are offered none of its types."""
    pool = a_pool()
    pool["spec"]["replicas"] = 3
    data = planned([pool], "explain", "nodepool/blue", "-o", "json").data["items"][0]
    text = planned([pool], "explain", "nodepool/blue").stdout

    assert (3, ["Drifted"]) == (data["replicas"], list(data["disruptionsAllowed"]))
    assert data["instanceTypes"]
    assert "static: keeps 3 nodes, in use or not (spec.replicas); may go now: " in text


def test_closed_budgets_say_when_they_open() -> None:
    """By reason, where a schedule says it."""
    pool = a_pool()
    pool["spec"]["disruption"] = {
        "consolidateAfter": "1m",
        "budgets": [{"nodes": "0", "schedule": "0 9 * * *", "duration": "8h", "reasons": ["Empty"]}],
    }
    text = planned([pool], "explain", "nodepool/blue").stdout

    opens = "0 when Empty before 2026-01-05T17:00:00Z"
    assert f"may go now: {opens}, any number when Underutilized, any number when Drifted" in text
    said = '{nodes: "0", reasons: [Empty], schedule: "0 9 * * *", duration: 8h}'
    assert f"  0 when Empty by its disruption budgets: {said}\n" in text


NODE = {
    "metadata": {
        "name": "n",
        "uid": "n",
        "labels": {
            "karpenter.sh/nodepool": "blue",
            "node.kubernetes.io/instance-type": "g4dn.xlarge",
            "karpenter.sh/capacity-type": "on-demand",
            "topology.kubernetes.io/zone": "us-east-1a",
            "karpenter.sh/initialized": "true",
        },
    },
    "apiVersion": "v1",
    "kind": "Node",
    "spec": {"providerID": "aws:///us-east-1a/i-n"},
    "status": {
        "allocatable": {"cpu": "3920m", "memory": "14Gi", "pods": "29", "nvidia.com/gpu": "1"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
CLAIM = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodeClaim",
    "metadata": {"name": "c", "uid": "c", "labels": {"karpenter.sh/nodepool": "blue"}},
    "spec": {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["blue"]}],
    },
    "status": {
        "providerID": "aws:///us-east-1a/i-n",
        "nodeName": "n",
        "conditions": [
            {"type": name, "status": "True", "reason": name, "lastTransitionTime": "2026-01-05T00:00:00Z"}
            for name in ("Launched", "Registered", "Initialized", "Drifted")
        ],
    },
}


@pytest.mark.parametrize("of_floor", [False, True])
@pytest.mark.parametrize("limit, may_go", [("1", False), ("2", True)])
def test_pool_and_node_agree_on_whether_a_drifted_node_may_go(limit: str, may_go: bool, of_floor: bool) -> None:
    """Where another node has to come first, and the limit of nodes leaves no room for it, none may go."""
    pool = a_pool()
    pool["spec"]["limits"] = {"nodes": limit}
    if of_floor:
        pool["metadata"]["annotations"] = {"kerf.dev/min-nodes": "1"}
    else:
        pool["spec"]["replicas"] = 1
    objects = [pool, NODE, CLAIM]
    data = planned(objects, "explain", "nodepool/blue", "-o", "json").data["items"][0]
    text = planned(objects, "explain", "nodepool/blue").stdout
    node = planned(objects, "explain", "node/n").stdout

    assert (0 if not may_go else data["disruptionsAllowed"]["Drifted"]) == data["disruptionsAllowed"]["Drifted"]
    assert (may_go, not may_go) == ("Node n: ready, goes" in node, "Node n: ready, stays" in node)
    assert may_go != ("  0 when Drifted: NodePool blue " in text and "its limit nodes leaves no room" in text)
    assert not may_go or data["disruptionsAllowed"]["Drifted"] != 0


def test_what_a_static_pool_has_too_many_is_the_same_wherever_it_is_asked() -> None:
    """The pool, the node, the note of a plan and the step of its consolidation name one node and one reason."""
    pool, labels = a_pool(), {"karpenter.sh/nodepool": "blue", "node.kubernetes.io/instance-type": "m5.xlarge"}
    pool["spec"]["replicas"] = 1
    shown = {"capacity": {"cpu": "4", "memory": "16Gi", "pods": "58"}}
    nodes: list[Object] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": shown}
        for name in ("n1", "n2")
    ]
    objects, why = [pool, *nodes], "NodePool blue states 1 replica"
    [found] = planned(objects, "explain", "nodepool/blue", "-o", "json").data["items"]
    [ending] = found["ending"]
    name = ending["node"]

    assert why == ending["why"]
    assert f"  {name} goes at once: {why}\n" in planned(objects, "explain", "nodepool/blue").stdout
    assert f"  goes: {why}\n" in planned(objects, "explain", f"node/{name}").stdout
    assert f"goes at once: {name};" in planned(objects, "plan").stdout
    assert re.search(rf"ScaledDown +{name} .*{why}", planned(objects, "plan", "--consolidate").stdout)
