"""What pods mount: the stand-in refuses as kube-scheduler's filters for volumes do, and binds claims at once."""

from collections.abc import Iterator
from typing import Any

import pytest

from kerf.sim.kubernetes.workloads import Workloads
from kerf.sim.objects import Json
from tests.sim.cluster import Cluster, cpu_pod, ready_node, said

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
DRIVER = "csi.example.com"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Two nodes of two zones."""
    made = Cluster()
    Workloads(made.api, made.clock).start()
    made.create(ready_node("a", labels={ZONE: "z1"}), ready_node("b", labels={ZONE: "z2"}))
    yield made
    made.loop.close()


def with_claims(name: str, *claims: str, **spec: Any) -> Json:
    """A pod that mounts claims."""
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    return cpu_pod(name, volumes=volumes, **spec)


def claim(name: str, mode: str = "ReadWriteOnce", **spec: Any) -> Json:
    """A claim, bound to the volume of its name unless it says otherwise."""
    given = {"volumeName": name, "accessModes": [mode], **spec}
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}}
    return {**kind, "spec": {field: value for field, value in given.items() if value}}


def volume(name: str, zone: str = "", labels: Json | None = None, **spec: Any) -> Json:
    """A volume of a CSI driver, for the nodes of a zone where it names one."""
    given: Json = {"csi": {"driver": DRIVER, "volumeHandle": name}, "accessModes": ["ReadWriteOnce"], **spec}
    if zone:
        wanted = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        given["nodeAffinity"] = {"required": {"nodeSelectorTerms": [wanted]}}
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": given}


def storage(name: str, **fields: Any) -> Json:
    """A class whose claims wait for their first consumer."""
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return {**kind, "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer", **fields}


def csi_node(name: str, count: int) -> Json:
    """A node on which the driver attaches so many volumes."""
    driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": count}}
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}}
    return {**kind, "spec": {"drivers": [driver]}}


def test_a_claim_that_is_missing_keeps_its_pod_waiting(cluster: Cluster) -> None:
    """Of the pod, and of no node; it is tried when the claim comes."""
    cluster.create(with_claims("db", "data"))
    assert '0/2 nodes are available: persistentvolumeclaim "data" not found.' == said(cluster, "db")

    cluster.create(claim("data", volumeName=""))
    cluster.at(1)
    assert cluster.placed()["db"] in ("a", "b")


def test_a_volume_of_another_zone_keeps_its_pod_off(cluster: Cluster) -> None:
    """A volume lies where it was made."""
    cluster.create(volume("data", "z3"), claim("data"), with_claims("db", "data"))

    assert "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity." == said(cluster, "db")


def test_a_volume_s_label_names_its_zones(cluster: Cluster) -> None:
    """As volumes of old did, in either spelling."""
    old = "failure-domain.beta.kubernetes.io/zone"
    cluster.create(volume("data", labels={old: "z2__z3"}), claim("data"), with_claims("db", "data"))
    cluster.create(volume("logs", labels={ZONE: "z3"}), claim("logs"), with_claims("web", "logs"))

    assert "b" == cluster.placed()["db"]
    assert "0/2 nodes are available: 2 node(s) had no available volume zone." == said(cluster, "web")


def test_a_claim_for_one_pod_has_one(cluster: Cluster) -> None:
    """The second waits for the first to go."""
    cluster.create(volume("data"), claim("data", "ReadWriteOncePod"), with_claims("p0", "data"))
    cluster.create(with_claims("p1", "data"))
    assert "2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod" in said(cluster, "p1")

    cluster.at(1, lambda: cluster.api.delete("Pod", "default", "p0", grace_s=0))
    cluster.at(2)
    assert cluster.placed()["p1"]


def test_a_driver_attaches_only_so_many_volumes(cluster: Cluster) -> None:
    """A volume that is there already counts no more for a second pod."""
    names = ("v0", "v1", "v2")
    cluster.create(csi_node("a", 1), csi_node("b", 1), *map(volume, names), *map(claim, names))
    cluster.create(with_claims("p0", "v0"), with_claims("p1", "v1"), with_claims("p2", "v2"))
    cluster.create(with_claims("p3", "v0"))

    assert "0/2 nodes are available: 2 node(s) exceed max volume count." == said(cluster, "p2")
    assert cluster.placed()["p0"] == cluster.placed()["p3"]


def test_a_claim_that_waits_gets_a_volume_where_its_pod_is(cluster: Cluster) -> None:
    """A new one in an allowed zone; with the pod gone, the next one has to go there."""
    expressions = [{"key": ZONE, "values": ["z2"]}]
    cluster.create(storage("fast", allowedTopologies=[{"matchLabelExpressions": expressions}]))
    cluster.create(claim("data", volumeName="", storageClassName="fast"), with_claims("db", "data"))

    assert "b" == cluster.placed()["db"]
    bound = cluster.api.get("PersistentVolumeClaim", "default", "data") or {}
    made = cluster.api.get("PersistentVolume", "", bound["spec"]["volumeName"]) or {}
    assert ["z2"] == made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"]


def test_a_static_class_needs_a_volume_that_fits(cluster: Cluster) -> None:
    """Large enough, free, and in reach of the node."""
    of_class: Any = {"storageClassName": "static"}
    cluster.create(storage("static", provisioner="kubernetes.io/no-provisioner"))
    asked: Any = {"resources": {"requests": {"storage": "2Gi"}}, **of_class}
    cluster.create(
        claim("data", volumeName="", **asked), volume("small", "z1", capacity={"storage": "1Gi"}, **of_class)
    )
    cluster.create(with_claims("db", "data"))
    assert "2 node(s) didn't find available persistent volumes to bind" in said(cluster, "db")

    cluster.create(volume("large", "z2", capacity={"storage": "2Gi"}, **of_class))
    cluster.at(1)
    assert "b" == cluster.placed()["db"]


def test_an_ephemeral_volume_has_a_claim_of_its_own(cluster: Cluster) -> None:
    """The claim is made for the pod, and ends with it."""
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    cluster.create(cpu_pod("web", volumes=[{"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}]))
    cluster.at(1)

    assert cluster.placed()["web"]
    assert cluster.api.get("PersistentVolumeClaim", "default", "web-tmp")


def test_a_runtime_class_adds_its_overhead(cluster: Cluster) -> None:
    """At the pod's creation; its nodes are those that can run it."""
    overhead = {"overhead": {"podFixed": {"cpu": "3"}}, "scheduling": {"nodeSelector": {HOST: "a"}}}
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "heavy"}}
    cluster.create({**kind, **overhead}, *(cpu_pod(f"p{n}", "1", runtimeClassName="heavy") for n in range(2)))

    assert ["", "a"] == sorted(cluster.placed().values())
