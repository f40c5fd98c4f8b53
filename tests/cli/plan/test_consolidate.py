"""`kerf plan --consolidate`: the steps in which nodes would go."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
import yaml

from kerf.cli.plan.consolidation import steps_lines, steps_object
from kerf.cli.plan.planning import passing_steps
from kerf.engine.explain.violations import left_out_notes
from kerf.engine.study.steps import steps
from kerf.engine.world import World
from kerf.model.nodeclaim import DO_NOT_DISRUPT
from kerf.model.violations import PlanRule
from tests.cli.program import ROOT, files, kerf
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, on, ours
from tests.engine.disruption.test_drift import drifted
from tests.engine.disruption.test_ending import aged

CLUSTER = (*files("examples/nodes-over-time/cluster.yaml"), "--now", "2026-01-05T08:00:00Z")


def test_each_step_says_what_goes_what_comes_and_what_it_saves() -> None:
    """And which nodes something keeps."""
    done = kerf("plan", *CLUSTER, "--consolidate", "-o", "json")

    data = done.data
    assert (0, "Consolidation") == (done.returncode, data["kind"])
    assert (1.344, 0.96, 2) == (data["perHourBefore"], data["perHourAfter"], data["podsMoved"])
    (step,) = data["steps"]
    assert ("Underutilized", 0.384) == (step["reason"], step["perHourSaved"])
    assert [("large", ["launch-0"])] == [(each["node"], each["launches"]) for each in step["nodes"]]
    assert ["m5.2xlarge"] == [each["instanceType"] for each in step["launches"]]
    assert [["default/shop-0", "default/shop-1"]] == [each["pods"] for each in step["launches"]]
    assert [["large"]] == [each["replaces"] for each in step["launches"]]
    assert ["full", "kept"] == [each["node"] for each in data["staying"]]
    assert [("full", "2026-02-04T06:00:00Z"), ("kept", "2026-02-04T06:00:00Z")] == [
        (each["node"], each["at"]) for each in data["expiring"]
    ]


def test_a_plan_shows_the_first_step() -> None:
    """The old node goes once the new one is up, and its pods count as placed already."""
    plan = kerf("plan", *CLUSTER, "-o", "json").data

    assert [] == plan["deletions"]
    (replaced,) = plan["replacements"]
    assert ("large", ["launch-0"], 0.768) == (replaced["node"], replaced["launches"], replaced["perHourSaved"])
    assert [["large"]] == [launch["replaces"] for launch in plan["launches"]]
    assert (1.344, 0.96) == (plan["cost"]["perHourBefore"], plan["cost"]["perHourAfter"])
    assert "0 pods placed, 0 not" in kerf("plan", *CLUSTER).stdout


def test_manifests_without_nodes_have_no_steps() -> None:
    """That is said."""
    pools = files("examples/000-gpu-pools/pool.yaml", "examples/000-gpu-pools/workload.yaml")

    assert "no node would go\n" == kerf("plan", *pools, "--consolidate").stdout


def test_old_nodes_go_and_their_pods_are_said_to_move() -> None:
    """Whatever else keeps them, but for pods that may not be evicted."""
    late = (*files("examples/nodes-over-time/cluster.yaml"), "--now", "2026-03-05T08:00:00Z")
    (step, *_) = kerf("plan", *late, "--consolidate", "-o", "json").data["steps"]
    plan = kerf("plan", *late)

    assert ("Expired", ["full", "large"]) == (step["reason"], [each["node"] for each in step["nodes"]])
    assert [] == step["podsWithoutPlace"]
    assert "note: 3 nodes are as old as expireAfter and go at once" in plan.stdout
    assert "expireAfter 720h is over" in kerf("explain", "node/kept", *late).stdout
    held = 'pods that may not be evicted have ended (pod default/train-0 has "karpenter.sh/do-not-disrupt" annotation;'
    assert held in kerf("plan", *late, "--consolidate").stdout
    assert "goes: expireAfter 720h is over" in kerf("explain", "node/large", *late).stdout


def test_nodes_that_stay_for_causes_of_one_kind_are_one_row() -> None:
    """Forty nodes, each with a pod of its own that may not be evicted; JSON says it of each."""
    names = [f"n-{number:02}" for number in range(40)]
    pods = [on(name, f"p-{name}", cpu=1, annotations={DO_NOT_DISRUPT: "true"}) for name in names]
    world = World(a_cluster([free_pool()], [ours(name) for name in names], pods), MARKET)

    (row,) = [line for line in steps_lines((), world, None) if line.startswith("n-")]
    named = "default/p-n-00, default/p-n-01, default/p-n-02 and 37 more"
    said = f'pods have "{DO_NOT_DISRUPT}" annotation: {named}'
    assert ["n-00, n-01, n-02 and 37 more", "40", said] == re.split(" {2,}", row)
    staying = steps_object((), world, None)["staying"]
    assert names == [each["node"] for each in staying]
    assert 'pod default/p-n-39 has "karpenter.sh/do-not-disrupt" annotation' == staying[39]["why"]


def test_what_costs_as_little_as_it_can_is_said_to() -> None:
    """No percentage of nothing; and without steps the cost is what it is."""
    world = World(a_cluster([free_pool()], [ours("idle"), ours("used")], [on("used", "x", cpu=3)]), MARKET)
    found = list(steps(world))
    none = World(a_cluster([free_pool()], [ours("used")], [on("used", "x", cpu=3)]), MARKET)
    data = steps_object([], none, None)

    assert "so it is the cheapest possible" in "\n".join(steps_lines(found, world, found[-1].after_micro))
    assert (0.192, 0.192, []) == (data["perHourBefore"], data["perHourAfter"], data["steps"])


def test_it_stands_in_place_of_a_plan() -> None:
    """As a comparison does."""
    done = kerf("plan", *CLUSTER, "--consolidate", "--strategies")

    assert 2 == done.returncode
    assert "--consolidate: expected neither --compare, --strategies nor --calendar" in done.stderr


def _two_cards(runs: int, waits: int) -> str:
    """Two nodes of one A10G, on each a slice of so many MiB that may move; and a slice that waits."""
    labels = {
        "gpu": "on",
        "karpenter.sh/nodepool": "gpu",
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.sh/initialized": "true",
        "karpenter.sh/registered": "true",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "g5.xlarge",
        "topology.kubernetes.io/zone": "us-east-1a",
    }
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    sold = {"node.kubernetes.io/instance-type": "g5.xlarge", "karpenter.sh/capacity-type": "on-demand"}
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in sold.items()]
    template = {
        "metadata": {"labels": {"gpu": "on"}},
        "spec": {"nodeClassRef": reference, "requirements": requirements},
    }
    disruption = {"consolidateAfter": "5m", "consolidationPolicy": "WhenEmptyOrUnderutilized"}
    long_ago = "2026-11-27T08:00:00Z"
    reached = [
        {"type": each, "status": "True", "reason": each, "lastTransitionTime": long_ago}
        for each in ("Launched", "Registered", "Initialized", "Consolidatable")
    ]
    items: list[dict[str, Any]] = [
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "gpu"},
            "spec": {"template": template, "disruption": disruption},
        }
    ]
    for at in range(2):
        card = {"id": f"GPU-{at}", "count": 10, "devmem": 22888, "devcore": 100, "type": "NVIDIA A10G", "health": True}
        record = {
            "hami.io/bind-phase": "success",
            "hami.io/vgpu-node": f"n{at}",
            "hami.io/vgpu-devices-allocated": f"GPU-{at},NVIDIA,{runs},20:;",
        }
        machine = f"aws:///us-east-1a/i-{at}"
        items += [
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "metadata": {"name": f"gpu-{at}", "labels": labels, "creationTimestamp": long_ago},
                "spec": {"nodeClassRef": reference, "requirements": []},
                "status": {"conditions": reached, "nodeName": f"n{at}", "providerID": machine},
            },
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": f"n{at}",
                    "labels": labels,
                    "annotations": {"hami.io/node-nvidia-register": json.dumps([card])},
                    "creationTimestamp": long_ago,
                },
                "spec": {"providerID": machine},
                "status": {
                    "allocatable": {"cpu": "3920m", "memory": "14900Mi", "nvidia.com/gpu": "10", "pods": "58"},
                    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": long_ago}],
                },
            },
            _slice(f"runs-{at}", runs, 20, {"nodeName": f"n{at}"}, record),
        ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, _slice("waits", waits, 40, {}, {})]})


def _slice(name: str, mib: int, cores: int, spec: dict[str, Any], annotations: dict[str, str]) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpucores": cores, "nvidia.com/gpumem": mib}
    container = {"name": "main", "image": "i", "resources": {"limits": limits, "requests": {"cpu": "1"}}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    metadata = {"name": name, "namespace": "ml", "uid": name, "annotations": annotations, "ownerReferences": [owner]}
    waits = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    status = {"phase": "Running"} if spec else {"phase": "Pending", "conditions": waits}
    spec = {"schedulerName": "hami-scheduler", "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("runs", "waits", "goes"),
    [(9000, 12000, 0), (9000, 13888, 0), (11000, 11000, 0), (12000, 9000, 0), (9000, 4000, 1)],
)
def test_a_plan_and_its_steps_agree_on_room_that_a_waiting_pod_gets(runs: int, waits: int, goes: int) -> None:
    """A node goes where its slice fits beside the other and the one that waits; no more is allocated than is paid."""
    given, at = _two_cards(runs, waits), ("--now", "2026-11-28T12:00:00Z")
    plan = kerf("plan", "-f", "-", *at, "-o", "json", stdin=given).data
    steps_data = kerf("plan", "-f", "-", *at, "--consolidate", "-o", "json", stdin=given).data

    assert (1, goes) == (len(plan["placements"]), len(plan["deletions"]))
    assert goes == sum(len(step["nodes"]) for step in steps_data["steps"])
    assert plan["gpus"]["allocated"] <= plan["gpus"]["paid"] == 2 - goes


@pytest.mark.parametrize("pair", [drifted("old"), aged("old", 3)], ids=["drifted", "expired"])
def test_a_pod_that_a_drain_will_end_by_force_is_named_with_its_time(pair: tuple[Any, Any]) -> None:
    """Of a node with a termination grace period; without one the node stays for the pod."""
    node, claim = pair
    pods = [on("old", "train", cpu=1, annotations={DO_NOT_DISRUPT: "true"}), on("old", "other", cpu=1)]
    held = World(a_cluster([free_pool()], [(node, claim)], pods), MARKET)
    ends = a_cluster([free_pool()], [(node, replace(claim, termination_grace_period_s=86_400))], pods)
    forced = World(ends, MARKET)
    (note,) = (each for each in steps_object(list(steps(forced)), forced, None)["notes"] if "drain" in each)

    assert [] == list(steps(held)) == steps_object([], held, None)["forced"]
    protected = f'pod default/train has "{DO_NOT_DISRUPT}" annotation'
    said = f"the drain of old ends by terminationGracePeriod: {protected}; it is deleted at 2026-01-06T11:59:30Z"
    assert f"{said} whatever holds it" == note
    data = steps_object(list(steps(forced)), forced, None)["forced"]
    assert [{"pod": "default/train", "node": "old", "deletedFrom": "2026-01-06T11:59:30Z"}] == data


def _names(each: dict[str, Any]) -> tuple[str, str]:
    """Its own, and that of the node it is on."""
    return each["metadata"]["name"], each["spec"].get("nodeName", "")


def over_time(*, waits: bool = False) -> str:
    """The cluster of the guide, in which the drifted node `kept` ends after a day whatever holds its pod, for which
    there is no other room; or, in place of that, its node `large` alone with a pod that waits."""
    objects = [each for each in yaml.safe_load_all((ROOT / CLUSTER[1]).read_text(encoding="utf-8")) if each]
    condition = {"type": "Drifted", "status": "True", "reason": "NodePoolDrifted", "message": ""}
    if waits:
        objects = [each for each in objects if {"kept", "full"}.isdisjoint({*_names(each)})]
    for each in objects:
        if each["kind"] == "NodeClaim" and each["metadata"]["name"] == "kept" and not waits:
            each["spec"]["terminationGracePeriod"] = "24h"
            each["status"]["conditions"].append({**condition, "lastTransitionTime": "2026-01-05T06:00:00Z"})
        if each["metadata"]["name"].startswith("shop-") and not waits:
            each["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "5500m"
    waiting = {"name": "late", "creationTimestamp": "2026-01-05T06:00:00Z"}
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "500m"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": waiting, "spec": {"containers": [container]}}
    return "\n---\n".join(map(json.dumps, [*objects, *([pod] if waits else [])]))


def test_a_plan_and_its_steps_agree_on_what_is_bought_for_a_pod_that_goes_by_force() -> None:
    """The plan deletes the node now, and names the pod, its time, and the cost once there is a node for it."""
    given, at = over_time(), ("--now", "2026-01-05T08:00:00Z")
    plan = kerf("plan", "-f", "-", *at, "-o", "json", stdin=given).data
    steps_data = kerf("plan", "-f", "-", *at, "--consolidate", "-o", "json", stdin=given).data
    first = steps_data["steps"][0]
    named = "the drain of kept ends by terminationGracePeriod: pod default/train-0 has"
    then = f"1 x {first['launches'][0]['instanceType']} is bought then, and the cost is {first['perHourAfter']} USD/h"

    assert ["kept"] == [each["node"] for each in plan["deletions"]] == [each["node"] for each in first["nodes"]]
    assert 1 == sum(each.startswith(named) for each in plan["notes"])
    assert f"1 pod of kept is planned for when it has to leave: {then}" in plan["notes"]


def test_it_is_said_that_a_pod_which_waits_counts_as_there() -> None:
    """A plan keeps the node that it comes to until it is there; the steps begin once it is."""
    given, at = over_time(waits=True), ("--now", "2026-01-05T08:00:00Z")
    plan = kerf("plan", "-f", "-", *at, "-o", "json", stdin=given).data
    steps_data = kerf("plan", "-f", "-", *at, "--consolidate", "-o", "json", stdin=given).data
    note = "1 pod (default/late) that waits counts as there, and a step moves it on"

    assert [("default/late", "large")] == [(each["pod"], each["node"]) for each in plan["placements"]]
    assert "large" not in [each["node"] for each in (*plan["deletions"], *plan["replacements"])]
    assert "large" in [each["node"] for step in steps_data["steps"] for each in step["nodes"]]
    assert 1 == sum(each.startswith(note) for each in steps_data["notes"])


def test_steps_end_before_one_that_breaks_a_rule() -> None:
    """What comes after it would build on it; which rule that is stands among the notes."""
    world = World(a_cluster([free_pool()], [ours("a"), ours("b")], [on("a", "x", cpu=1), on("b", "y", cpu=1)]), MARKET)
    (step,) = steps(world)
    (gone,) = step.decided.deletions
    false = replace(step, decided=replace(step.decided, deletions=(replace(gone, moved=()),)))

    assert ([step], ()) == passing_steps([step])
    passed, wrong = passing_steps([step, false, step])
    assert ([step], {PlanRule.POD_LOST}) == (passed, {each.rule for each in wrong})
    (note,) = left_out_notes(wrong)
    assert note in steps_object(passed, world, None, [note])["notes"]
    assert f"note: {note}" in steps_lines(passed, world, None, [note])
