"""`kerf plan --consolidate`: the steps in which nodes would go."""

import re

from kerf.cli.plan.consolidation import steps_lines, steps_object
from kerf.engine.study.steps import steps
from kerf.engine.world import World
from kerf.model.nodeclaim import DO_NOT_DISRUPT
from tests.cli.program import files, kerf
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, on, ours

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
