"""While a plan takes seconds the replica lives on: it renews its Lease, answers, reads, and acts on no stale plan."""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchmarks.long_plans import LongPlans, p99
from tests.controlplane.cluster import FAST, Cluster, cluster
from tests.controlplane.test_replicas import QUICK, leads, lease
from tools.controlplane.installation import NAMESPACE, Installation, Replica
from tools.controlplane.server import Binaries

PLAN_S = 10
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  disruption: {consolidateAfter: Never}
"""
MERGE = "application/strategic-merge-patch+json"


@dataclass
class Site:
    """A cluster with one pool, and a replica whose plans can be long."""

    cluster: Cluster
    plans: LongPlans
    replica: Replica
    renewed: set[str] = field(default_factory=set)
    most_pending: float = 0

    def look(self) -> None:
        """Note when the Lease was renewed last, and how many pods the replica knows to wait."""
        self.renewed.add(lease(self.cluster)["renewTime"])
        self.most_pending = max(self.most_pending, self.replica.metric("kerf_pending_pods"))

    def long(self, work: str, for_s: float, *pods: str) -> None:
        """Create the pods, and wait until the thread is at the long work for them."""
        self.plans.lengthen(work, for_s)
        for name in pods:
            create(self.cluster, name)
        self.cluster.until(lambda: self.plans.has_begun, "the plan has begun")

    def until_ended(self) -> None:
        """Wait for the end of the long work."""
        self.cluster.until(lambda: self.plans.has_ended, "the plan has ended")


@pytest.fixture
def site(binaries: Binaries, tmp_path: Path) -> Iterator[Site]:
    """The replica leads; it loses its Lease after three seconds in which it does not renew it."""
    plans = LongPlans(tmp_path)
    with cluster(binaries) as made:
        made.plane.apply(POOL)
        installation = Installation(made.plane, plans.program)
        replica = installation.run(*FAST, *QUICK, environment={"PATH": os.defpath, "POD_NAME": "kerf-a"})
        made.until(lambda: replica.ready()[0] and leads(replica), "it leads")
        yield Site(made, plans, replica)
        assert "never awaited" not in replica.program.tail(10_000)
        assert "Traceback" not in replica.program.tail(10_000)


def create(site: Cluster, name: str, cpu: str = "500m") -> None:
    """A pod that its scheduler, which is not there, has refused: it is bound to no node, whatever room there is."""
    container = {"name": "main", "image": "ubuntu:22.04", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": "none", "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    site.plane.request("POST", "/api/v1/namespaces/default/pods", pod).good("create a pod")
    refused = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available",
    }
    patch(site, f"/api/v1/namespaces/default/pods/{name}/status", {"status": {"conditions": [refused]}})


def patch(site: Cluster, path: str, change: dict[str, Any]) -> None:
    """Change an object."""
    site.plane.request("PATCH", path, change, content_type=MERGE).good(path)


def with_node(site: Site) -> str:
    """The name of a node with room, bought for a pod that is gone by now."""
    create(site.cluster, "first")
    site.cluster.until(lambda: is_up(site), "the node is up")
    site.cluster.plane.kubectl("delete", "pod", "first", "--now")
    site.cluster.until(lambda: 0 == site.replica.metric("kerf_pending_pods"), "nothing waits")
    (node,) = site.cluster.names("nodes")
    return node


def is_up(site: Site) -> bool:
    """Whether there is a claim, and its node is up."""
    claims = site.cluster.names("nodeclaims")
    return bool(claims) and "True" == site.cluster.condition("NodeClaim", claims[0], "Initialized").get("status")


def taint(site: Site, node: str) -> None:
    """No pod may come to the node any more."""
    site.cluster.plane.kubectl("taint", "nodes", node, "maintenance=:NoSchedule")


def holder(site: Site, identity: str) -> None:
    """Give the Lease to a holder that keeps it for long."""
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    spec = {"holderIdentity": identity, "renewTime": now, "leaseDurationSeconds": 60}
    patch(
        site.cluster,
        f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/kerf-leader-election",
        {"spec": spec},
    )


def test_a_plan_of_ten_seconds_keeps_nothing_else_waiting(site: Site) -> None:
    """The Lease is renewed, each probe answered, and a pod that comes meanwhile known, all before the plan ends."""
    site.long("decide", PLAN_S, "a", "b")
    create(site.cluster, "late")
    answers = site.plans.probed(site.replica, site.look)
    print(f"{len(answers)} answers of /readyz, p99 {p99(answers):.3f} s")

    assert len(answers) >= 10
    assert len(site.renewed) >= 3
    assert 3 == site.most_pending
    assert (True, 0) == (leads(site.replica), lease(site.cluster)["leaseTransitions"])
    site.cluster.until(lambda: site.cluster.events("Nominated", "late"), "the late pod has its turn")
    assert ["a", "b"] == planned_first(site)


def planned_first(site: Site) -> list[str]:
    """The names of the pods for which the first claim was created."""
    created = site.cluster.created_claims()[0]["objectRef"]["name"]
    claim = site.cluster.plane.get("NodeClaim", created) or {}
    return [key.partition("/")[2] for key in json.loads(claim["metadata"]["annotations"]["kerf.dev/planned-pods"])]


@pytest.mark.parametrize("work", ["decide", pytest.param("explain", marks=pytest.mark.long)])
def test_a_node_that_is_tainted_during_the_plan_is_not_used(site: Site, work: str) -> None:
    """No event names it, neither after the decision nor after its explanation; the next plan buys another node."""
    node = with_node(site)
    site.long(work, 4, "second")
    taint(site, node)
    assert site.plans.is_made
    site.until_ended()
    site.cluster.until(lambda: 2 == len(site.cluster.created_claims()), "another node is bought")
    # A claim is there before the words about it are.
    site.cluster.until(lambda: site.cluster.events("Nominated", "second"), "it is nominated")

    (said,) = site.cluster.events("Nominated", "second")
    assert node not in said


@pytest.mark.long
def test_the_node_is_used_when_nothing_taints_it(site: Site) -> None:
    """What the test above would see if the plan were not looked at again."""
    node = with_node(site)
    site.long("decide", 1, "second")
    site.cluster.until(lambda: site.cluster.events("Nominated", "second"), "it is nominated")

    assert node in site.cluster.events("Nominated", "second")[0]
    assert 1 == len(site.cluster.created_claims())


def test_nothing_is_done_when_the_lease_is_lost_during_the_plan(site: Site) -> None:
    """What the thread finds is dropped. The next lead decides anew, and buys once."""
    site.long("decide", PLAN_S, "a")
    holder(site, "another")
    site.cluster.until(lambda: not leads(site.replica), "it follows")
    assert site.plans.is_made
    site.until_ended()
    time.sleep(2)
    assert ([], []) == (site.cluster.created_claims(), site.cluster.events("Nominated"))

    holder(site, "")
    site.cluster.until(lambda: site.cluster.events("Nominated", "a"), "it leads again and buys")
    assert 1 == len(site.cluster.created_claims())


def test_who_is_asked_to_stop_does_not_wait_for_the_plan(site: Site) -> None:
    """SIGTERM: exit 0 with the Lease given up, before the plan would have ended."""
    site.long("decide", 60, "a")

    assert 0 == site.replica.program.terminate(30)
    assert not site.plans.has_ended
    assert "" == lease(site.cluster).get("holderIdentity", "")
    assert [] == site.cluster.created_claims()
