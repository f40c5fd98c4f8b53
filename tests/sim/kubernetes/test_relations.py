"""What pods ask of each other and of volumes: the stand-in refuses as kube-scheduler does what Kerf does not plan."""

from collections.abc import Iterator
from typing import Any

import pytest

from kerf.sim.objects import Json
from tests.sim.cluster import Cluster, cpu_pod, ready_node

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
MEANT = {"matchLabels": {"app": "web"}}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Two nodes of two zones."""
    made = Cluster()
    made.create(ready_node("a", labels={ZONE: "z1"}), ready_node("b", labels={ZONE: "z2"}))
    yield made
    made.loop.close()


def related(name: str, kind: str, key: str = HOST, **metadata: Any) -> Json:
    """A pod labelled `app: web` with a required term of that kind about such pods."""
    term = {"topologyKey": key, "labelSelector": MEANT}
    pod = cpu_pod(name, affinity={kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    pod["metadata"].update({"labels": {"app": "web"}, **metadata})
    return pod


def with_claim(name: str, claim: str) -> Json:
    """A pod that mounts a claim of a volume."""
    return cpu_pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim}}])


def said(cluster: Cluster, name: str) -> str:
    """What the scheduler said of the pod last."""
    conditions = cluster.pod(name)["status"].get("conditions", [])
    return next((c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")


def test_pods_that_keep_apart_take_a_node_each_and_the_third_waits(cluster: Cluster) -> None:
    """Also against a pod that has no term itself."""
    cluster.create(*(related(f"web-{number}", "podAntiAffinity") for number in range(3)))

    assert ["", "a", "b"] == sorted(cluster.placed().values())
    (waiting,) = [name for name, node in cluster.placed().items() if not node]
    assert "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules." == said(cluster, waiting)


def test_what_others_keep_off_learns_it(cluster: Cluster) -> None:
    """It asks for nothing itself."""
    cluster.create(*(related(f"web-{number}", "podAntiAffinity") for number in range(2)))
    plain = cpu_pod("plain")
    plain["metadata"]["labels"] = {"app": "web"}
    cluster.create(plain)

    assert "2 node(s) didn't satisfy existing pods anti-affinity rules" in said(cluster, "plain")


def test_a_pod_that_wants_company_comes_when_it_is_there(cluster: Cluster) -> None:
    """The first of its own kind needs none; one of another kind waits for a pod of the domain."""
    lonely = related("lonely", "podAffinity", ZONE, labels={"app": "other"})
    cluster.create(lonely)
    assert "2 node(s) didn't match pod affinity rules" in said(cluster, "lonely")

    cluster.create(related("first", "podAffinity", ZONE))
    cluster.at(1)
    assert cluster.placed()["first"] == cluster.placed()["lonely"] != ""


def test_a_claim_that_is_missing_keeps_its_pod_waiting(cluster: Cluster) -> None:
    """Of the pod, and of no node; it is tried when the claim comes."""
    cluster.create(with_claim("db", "data"))
    assert '0/2 nodes are available: persistentvolumeclaim "data" not found.' == said(cluster, "db")

    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": {}}
    cluster.create(volume, {**claim, "spec": {"volumeName": "pv"}})
    assert cluster.placed()["db"] in ("a", "b")


def test_a_volume_of_another_zone_keeps_its_pod_off(cluster: Cluster) -> None:
    """A volume lies where it was made."""
    wanted = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z3"]}]}
    spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": [wanted]}}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": spec}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}
    cluster.create(volume, {**claim, "spec": {"volumeName": "pv"}}, with_claim("db", "data"))

    assert "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity." == said(cluster, "db")
