"""`kerf explain nodeclass`: whether it can be used, what its selectors found, and who uses it."""

import json

import pytest

from tests.cli.explain.test_patches import a_pool
from tests.cli.program import kerf
from tests.patches import Object

SUBNETS = [{"id": "subnet-1", "zone": "us-east-1a"}, {"id": "subnet-2", "zone": "us-east-1b"}]
CONDITIONS = [
    {"type": "SubnetsReady", "status": "True", "reason": "SubnetsReady", "message": ""},
    {"type": "Ready", "status": "False", "reason": "AMIsNotReady", "message": "no AMI matches alias al2023@v1"},
]


def a_node_class(**status: object) -> Object:
    """The NodeClass of the pool, as its controller left it."""
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": {"role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}]},
        "status": status,
    }


def explained(*objects: Object, name: str = "nodeclass/default", output: str = "table") -> str:
    """What the command prints."""
    found = kerf("explain", name, "-o", output, "-f", "-", stdin=json.dumps({"kind": "List", "items": list(objects)}))
    assert 0 == found.returncode, found.stderr
    return found.stdout


def test_what_is_wrong_comes_first() -> None:
    """With the controller's own words; what its selectors found says why."""
    lines = explained(a_pool(), a_node_class(conditions=CONDITIONS, subnets=SUBNETS)).splitlines()

    assert [
        "EC2NodeClass default: not ready: no AMI matches alias al2023@v1",
        "  used by NodePool blue, 0 NodeClaims",
        "  subnets: subnet-1 (us-east-1a), subnet-2 (us-east-1b)",
        "",
        "  CONDITION     STATUS  REASON        MESSAGE",
        "  Ready         False   AMIsNotReady  no AMI matches alias al2023@v1",
        "  SubnetsReady  True    SubnetsReady  -",
    ] == lines[:7]


@pytest.mark.parametrize("alias", ["ec2nc/default", "ec2nodeclass/default", "nodeclasses/default"])
def test_it_is_named_as_kubectl_names_it(alias: str) -> None:
    """Short names of the definitions, and one word for all kinds."""
    assert explained(a_node_class(), name=alias).startswith("EC2NodeClass default: ready\n")


def test_one_that_no_controller_has_seen_says_so() -> None:
    """Kerf takes it for ready: manifests state no conditions."""
    assert "  used by no NodePool, 0 NodeClaims" in explained(a_node_class()).splitlines()
    assert "  it has no conditions: no controller has looked at it yet" in explained(a_node_class()).splitlines()


def test_json_has_the_same() -> None:
    """Conditions in the order of their types."""
    [item] = json.loads(explained(a_node_class(conditions=CONDITIONS, subnets=SUBNETS), output="json"))["items"]

    assert (False, ["Ready", "SubnetsReady"]) == (item["ready"], [each["type"] for each in item["conditions"]])
    assert {"subnets": ["subnet-1 (us-east-1a)", "subnet-2 (us-east-1b)"]} == item["selected"]
