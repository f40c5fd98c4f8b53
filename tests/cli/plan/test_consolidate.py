"""`kerf plan --consolidate`: the steps in which nodes would go."""

from tests.cli.program import files, kerf

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
    assert ["full", "kept"] == [each["node"] for each in data["staying"]]


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


def test_it_stands_in_place_of_a_plan() -> None:
    """As a comparison does."""
    done = kerf("plan", *CLUSTER, "--consolidate", "--strategies")

    assert 2 == done.returncode
    assert "--consolidate: expected neither --compare, --strategies nor --calendar" in done.stderr
