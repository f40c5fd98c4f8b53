"""CapacityBuffers on a real API server: refused in Karpenter's words, kept by nodes, through a crash at each write."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster, cluster
from tests.controlplane.interposer import AFTER, BEFORE, Interposer, Kill
from tests.controlplane.test_crashes import Lives, deployment, short_lived
from tools.controlplane.server import Binaries

Json = dict[str, Any]
POD = {"cpu": "2500m"}
"""Of which a c5.xlarge holds one."""
WRITES = (
    "patch capacitybuffers/status: ReadyForProvisioning=True status.replicas",
    "patch capacitybuffers/status: Provisioning=True",
)


@pytest.fixture(scope="module")
def lives(binaries: Binaries) -> Iterator[Lives]:
    """Kerf, dead, on a cluster with a pool that lets the namespace have room."""
    with cluster(binaries) as site, Interposer(site.plane) as proxy:
        made = short_lived("plain", "c5.xlarge", {})
        made["metadata"]["annotations"] = {"kerf.dev/buffer-namespaces": "default"}
        site.plane.apply([made])
        yield Lives(site, proxy)


def buffer(name: str, **spec: Any) -> Json:
    """A CapacityBuffer."""
    head = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer"}
    return {**head, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def share(name: str = "spare", of: str = "web") -> Json:
    """Of half a Deployment."""
    return buffer(name, scalableRef={"apiGroup": "apps", "kind": "Deployment", "name": of}, percentage=50)


def template(name: str = "one") -> Json:
    """A PodTemplate of a pod that takes a node of its own."""
    spec = {"containers": [{"name": "main", "image": "main", "resources": {"requests": POD, "limits": POD}}]}
    head = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name, "namespace": "default"}}
    return {**head, "template": {"spec": spec}}


def reasons(site: Cluster, name: str = "spare") -> dict[str, str]:
    """Of a buffer's conditions."""
    found = next((each for each in site.plane.list("capacitybuffers") if each["metadata"]["name"] == name), {})
    return {each["type"]: each["reason"] for each in found.get("status", {}).get("conditions", ())}


def ended(lives: Lives) -> None:
    """No buffer is left, and then no node."""
    site = lives.site
    site.plane.kubectl("delete", "capacitybuffers,deployments,podtemplates", "--all")
    lives.until(lambda: [] == site.names("nodeclaims") == site.instances(), "all is gone")
    lives.end()


def test_a_server_refuses_what_a_file_may_not_say(lives: Lives) -> None:
    """In the words of Karpenter's definition."""
    plane = lives.site.plane
    path = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers?dryRun=All"
    both = buffer("b", podTemplateRef={"name": "t"}, scalableRef={"kind": "Deployment", "name": "w"}, replicas=1)

    bare = buffer("b", podTemplateRef={"name": "t"})
    refused = [str(plane.request("POST", path, each).body) for each in (both, bare)]

    assert "You must define either PodTemplateRef or ScalableRef, but not both" in refused[0]
    assert "replicas or limits must also be set" in refused[1]


@pytest.mark.parametrize("when", [pytest.param(BEFORE, marks=pytest.mark.long), AFTER])
def test_room_is_kept_once_through_a_crash_at_each_write(lives: Lives, when: str) -> None:
    """A node for a buffer of a Deployment's share, which stays though it is empty; none is bought twice."""
    site = lives.site
    kills = [Kill(kind, when) for kind in WRITES]
    lives.begin(*kills)
    site.plane.apply([deployment("web", "plain", 2, POD), share()])
    lives.until(lambda: 2 == len(site.pods("Running")), "its pods run")
    lives.until(lambda: "FitsExistingCapacity" == reasons(site).get("Provisioning"), "its room is there")
    lives.until(lambda: all(kill.struck for kill in kills), f"each write was met: {[kill.kind for kill in kills]}")

    assert "Resolved" == reasons(site)["ReadyForProvisioning"]
    assert (3, 3) == lives.bought()

    site.plane.kubectl("scale", "deployment", "web", "--replicas=3")
    lives.until(lambda: 3 == len(site.pods("Running")), "the third pod takes the room")
    lives.until(lambda: 5 == lives.bought()[0], "room for two is bought again")
    ended(lives)


def test_a_template_that_is_gone_is_said(lives: Lives) -> None:
    """And its nodes go."""
    site = lives.site
    lives.begin()
    site.plane.apply([template(), buffer("spare", podTemplateRef={"name": "one"}, replicas=1)])
    lives.until(lambda: "FitsExistingCapacity" == reasons(site).get("Provisioning"), "its room is there")

    site.plane.delete("PodTemplate", "one", "default")
    lives.until(lambda: "PodTemplateNotFound" == reasons(site)["ReadyForProvisioning"], "it says so")
    lives.until(lambda: [] == site.names("nodeclaims"), "its node goes")
    ended(lives)
