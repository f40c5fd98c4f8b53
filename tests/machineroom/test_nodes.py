"""Who is let in, and what a Node of the room has."""

from dataclasses import replace

import pytest

from tests.machineroom.documents import CA, CLUSTER, ENDPOINT, UNREGISTERED
from tools.controlplane.machineroom.nodes import Ec2Machine, JoinableCluster, check, node_of
from tools.controlplane.machineroom.userdata import Joining, NeverJoins

JOINING = Joining(CLUSTER, ENDPOINT, CA, {"team": "a"}, (UNREGISTERED,), max_pods=58)
MACHINE = Ec2Machine("i-1", "g5.xlarge", "us-east-1b", "ip-10-0-0-1.ec2.internal", ["sg-1", "sg-2"], "nodes")
SITE = JoinableCluster(CLUSTER, ENDPOINT, CA, frozenset({"sg-2"}), frozenset({"nodes"}))


def test_a_machine_that_has_everything_right_joins() -> None:
    """One of its groups is enough."""
    check(MACHINE, JOINING, SITE)


@pytest.mark.parametrize(
    "machine, joining, why",
    [
        (MACHINE, replace(JOINING, cluster="other"), "token for the cluster other"),
        (MACHINE, replace(JOINING, endpoint="https://127.0.0.1:1"), "no server answers"),
        (MACHINE, replace(JOINING, ca="eA=="), "unknown authority"),
        (replace(MACHINE, groups=["sg-1"]), JOINING, "i/o timeout"),
        (replace(MACHINE, role="admin"), JOINING, "Unauthorized: the role admin"),
        (replace(MACHINE, role=""), JOINING, "Unauthorized: the role <none>"),
    ],
)
def test_a_machine_with_one_thing_wrong_never_joins(machine: Ec2Machine, joining: Joining, why: str) -> None:
    """Cluster, endpoint, CA, group and role: each alone is enough."""
    with pytest.raises(NeverJoins, match=why):
        check(machine, joining, SITE)


def test_a_node_is_named_and_placed_as_on_aws() -> None:
    """Name and hostname are the private DNS name; labels and taints of the user data; no GPU before its plugin."""
    node = node_of(MACHINE, JOINING, "2026-01-05T07:00:00Z")

    labels, spec, status = node["metadata"]["labels"], node["spec"], node["status"]
    assert ("ip-10-0-0-1.ec2.internal", "aws:///us-east-1b/i-1") == (node["metadata"]["name"], spec["providerID"])
    assert ("a", "g5.xlarge", "us-east-1b", "us-east-1", "amd64") == (
        labels["team"],
        labels["node.kubernetes.io/instance-type"],
        labels["topology.kubernetes.io/zone"],
        labels["topology.kubernetes.io/region"],
        labels["kubernetes.io/arch"],
    )
    assert [UNREGISTERED] == spec["taints"]
    assert ("4", "58", None) == tuple(status["capacity"].get(name) for name in ("cpu", "pods", "nvidia.com/gpu"))
