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
