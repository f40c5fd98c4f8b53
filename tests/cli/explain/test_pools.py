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
