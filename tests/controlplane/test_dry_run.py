"""Beside another owner of the same objects, on a real control plane: by the audit log nothing of theirs is changed."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kerf.kube.rbac import roles
from tests.controlplane.cluster import Cluster, cluster
from tools.controlplane.installation import NAMESPACE, Replica
from tools.controlplane.server import Binaries

Object = dict[str, Any]
KERF = "system:serviceaccount:kerf-system:kerf"
WRITES = ("create", "update", "patch", "delete", "deletecollection")
ALWAYS = {"create events", "create selfsubjectaccessreviews"}
"""What a dry run may do besides keeping its own Lease."""
KARPENTER = {"namespace": "kube-system", "name": "karpenter-leader-election"}


def writes(site: Cluster) -> set[str]:
    """Every kind of write that Kerf's user has tried, refused ones too."""
    return {
        f"{event['verb']} {event['objectRef']['resource']}{_own(event)}"
        for event in site.plane.audit_events()
        if event["user"]["username"] == KERF and event["verb"] in WRITES
    }


def _own(event: Object) -> str:
    name = event["objectRef"].get("name", "")
    return f" {name}" if event["objectRef"]["resource"] == "leases" else ""


def own_lease(name: str) -> set[str]:
    """The writes that leading takes."""
    return {f"create leases {name}", f"update leases {name}"}


def pools(*names: str, **labels: str) -> Callable[[str], str]:
    """The pool of example 000 under other names, that many nodes at most, with these labels."""

    def changed(text: str) -> str:
        lines = "".join(f"\n    {key.replace('_', '/')}: {json.dumps(value)}" for key, value in labels.items())
        labelled = f"\n  labels:{lines}" if labels else ""
        one = text.replace("cpu: 10", "cpu: 100")
        return "\n---\n".join(one.replace("name: gpu-pool-1", f"name: {name}{labelled}") for name in names)

    return changed


def a_foreign_node(site: Cluster) -> None:
    """Of pool `theirs`, as Karpenter makes it: claim and node, long empty, which Kerf would take away."""
    labels = {
        "karpenter.sh/nodepool": "theirs",
        "node.kubernetes.io/instance-type": "g5.2xlarge",
        "karpenter.sh/capacity-type": "on-demand",
        "topology.kubernetes.io/zone": "us-east-1a",
    }
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    pool = site.plane.get("NodePool", "theirs")
    assert pool is not None
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "theirs", "uid": pool["metadata"]["uid"]}
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "theirs-1", "labels": labels, "ownerReferences": [{**owner, "blockOwnerDeletion": True}]},
        "spec": {"nodeClassRef": reference, "requirements": []},
    }
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "58"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "theirs-node",
            "labels": {**labels, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"providerID": "aws:///us-east-1a/i-1"},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
    site.plane.apply([claim, node])
    reached = ("Launched", "Registered", "Initialized", "Ready", "Consolidatable")
    long_ago = "2026-01-05T07:00:00Z"
    status = {
        "providerID": "aws:///us-east-1a/i-1",
        "nodeName": "theirs-node",
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": [
            {"type": name, "status": "True", "reason": name, "message": "", "lastTransitionTime": long_ago}
            for name in reached
        ],
    }
    path = "/apis/karpenter.sh/v1/nodeclaims/theirs-1/status"
    site.plane.request("PATCH", path, {"status": status}, content_type="application/merge-patch+json").good("status")


def karpenter_leads(site: Cluster, holder: str = "karpenter-6f8-abcde") -> None:
    """Somebody renews Karpenter's Lease, for an hour; an empty holder gives it up."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 3600, "renewTime": now, "acquireTime": now}
    site.plane.apply([{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": KARPENTER, "spec": spec}])


def leading(replica: Replica) -> bool:
    """Whether it leads."""
    return 1 == replica.metric("kerf_leading")


def said(replica: Replica, text: str) -> bool:
    """Whether a line of its log has the text."""
    return text in replica.program.log.read_text(encoding="utf-8")


def test_a_dry_run_writes_nothing_but_its_lease_and_events(binaries: Binaries) -> None:
    """It says what it would launch and remove, under its own role, and says nothing as if it were done."""
    with cluster(binaries) as site:
        site.apply("000-gpu-pools/pool.yaml", pools("theirs"))
        a_foreign_node(site)
        site.apply("000-gpu-pools/workload.yaml")
        site.plane.apply(roles(NAMESPACE, "kerf", "kwok", is_dry_run=True))
        replica = site.start("--dry-run", "--acted-out-on-real-cluster")
        site.until(lambda: site.events("WouldLaunch", "theirs"), "it says what it would launch")
        site.until(lambda: site.events("WouldDisrupt", "theirs-1"), "it says what it would remove")

        assert ALWAYS | own_lease("kerf-dry-run-leader-election") == writes(site)
        assert (["theirs-1"], ["theirs-node"]) == (site.names("nodeclaims"), site.names("nodes"))
        assert [] == site.events("Nominated") + site.events("TriggeredScaleUp")
        assert (True, "ok\n") == replica.ready()
        assert 0 == replica.program.terminate(10)


def test_an_ordinary_run_is_a_dry_run_while_karpenter_leads(binaries: Binaries) -> None:
    """Its live Lease is enough, in whatever namespace; when it is given up Kerf acts, and stops when it is back."""
    with cluster(binaries) as site:
        karpenter_leads(site)
        site.apply("000-gpu-pools/pool.yaml", pools("gpu-pool-1"))
        site.apply("000-gpu-pools/workload.yaml")
        replica = site.start()
        site.until(lambda: site.events("WouldLaunch", "gpu-pool-1"), "it says what it would launch")
        assert ALWAYS | own_lease("kerf-leader-election") == writes(site)
        assert said(replica, 'event="Karpenter leads here: dry run"')

        karpenter_leads(site, holder="")
        site.until(lambda: 5 == len(site.pods("Running")), "it acts")
        assert said(replica, 'event="Karpenter leads no more"')

        karpenter_leads(site)
        site.until(lambda: 2 <= replica.program.log.read_text().count("leads here: dry run"), "a dry run again", 30)
        site.plane.kubectl("scale", "deployment/gpu-app", "--replicas=7")
        site.until(lambda: 3 <= replica.program.log.read_text().count("event=planned"), "it plans for two more")
        assert 5 == len(site.created_claims())


@pytest.mark.parametrize(
    "is_beside", [True, pytest.param(False, marks=pytest.mark.long)], ids=["beside Karpenter", "alone"]
)
def test_only_pools_with_the_label_are_acted_on(binaries: Binaries, is_beside: bool) -> None:
    """Kerf serves its own pools for real, and touches neither the others nor their claims and nodes."""
    with cluster(binaries) as site:
        if is_beside:
            karpenter_leads(site)
        site.apply("000-gpu-pools/pool.yaml", pools("theirs"))
        a_foreign_node(site)
        site.apply("000-gpu-pools/pool.yaml", pools("ours", **{"kerf.dev_managed": "true"}))
        before = [site.plane.get("NodePool", "theirs"), site.plane.get("NodeClaim", "theirs-1")]
        replica = site.start("--managed-selector=kerf.dev/managed=true", "--acted-out-on-real-cluster")
        site.apply("000-gpu-pools/workload.yaml")
        site.until(lambda: 5 == len(site.pods("Running")), "five pods run")

        made = [claim["objectRef"]["name"] for claim in site.created_claims() if claim["user"]["username"] == KERF]
        assert ["ours"] * 5 == [name.rpartition("-")[0] for name in made]
        assert before == [site.plane.get("NodePool", "theirs"), site.plane.get("NodeClaim", "theirs-1")]
        assert [] == site.events("WouldLaunch")
        assert is_beside == said(replica, "karpenter-6f8-abcde")
        assert leading(replica)


@pytest.mark.long
def test_a_pool_that_is_given_away_keeps_its_nodes(binaries: Binaries) -> None:
    """Its label goes while its nodes run: from then on they are another's, and no instance of theirs is collected."""
    with cluster(binaries) as site:
        site.apply("000-gpu-pools/pool.yaml", pools("ours", **{"kerf.dev_managed": "true"}))
        replica = site.start("--managed-selector=kerf.dev/managed=true", "--acted-out-on-real-cluster")
        site.apply("000-gpu-pools/workload.yaml")
        site.until(lambda: 5 == len(site.pods("Running")), "five pods run")
        site.plane.kubectl("label", "nodepool", "ours", "kerf.dev/managed-")
        site.plane.kubectl("scale", "deployment/gpu-app", "--replicas=0")
        collected = replica.metric("kerf_reconciles_total", controller="garbage-collection")
        site.until(
            lambda: collected + 6 <= replica.metric("kerf_reconciles_total", controller="garbage-collection"),
            "instances were looked through, older than orphans may be",
        )

        assert 5 == len(site.instances()) == len(site.names("nodeclaims")) == len(site.names("nodes"))
