"""Groups of pods and ProvisioningRequests on a real API server: all or none, through a crash, as Kueue expects it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster, cluster
from tests.controlplane.group_definitions import definitions
from tests.controlplane.interposer import AFTER, Interposer, Kill
from tests.controlplane.test_crashes import Lives, short_lived
from tools.controlplane.server import Binaries

Json = dict[str, Any]
POD = {"cpu": "2500m"}
"""Of which a c5.xlarge holds one."""
ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"


@pytest.fixture(scope="module")
def lives(binaries: Binaries) -> Iterator[Lives]:
    """Kerf, dead, on a cluster that knows the kinds of Kueue and of the schedulers."""
    with cluster(binaries) as site, Interposer(site.plane) as proxy:
        site.plane.install_crds(definitions())
        yield Lives(site, proxy)


def limited(nodes: int) -> Json:
    """The pool, of so many nodes at most."""
    made = short_lived("batch", "c5.xlarge", {})
    made["metadata"]["annotations"] = {"kerf.dev/booking-namespaces": "default"}
    made["spec"]["limits"] = {"nodes": nodes}
    return made


def pod_spec(**fields: Any) -> Json:
    """A pod that takes a node of its own and ends at once when it is asked to."""
    container = {"name": "main", "image": "main", "resources": {"requests": POD, "limits": POD}}
    return {"terminationGracePeriodSeconds": 0, "containers": [container], **fields}


def service(name: str, pods: int, labels: dict[str, str]) -> Json:
    """So many pods with these labels, until it is deleted."""
    labels = {"app": name, **labels}
    template = {"metadata": {"labels": labels}, "spec": pod_spec()}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": pods, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def suspended_job(name: str, pods: int, annotations: dict[str, str]) -> Json:
    """A Job as Kueue leaves it until it is admitted; kwok ends its pods soon after they have started."""
    template = {"metadata": {"annotations": annotations}, "spec": pod_spec(restartPolicy="Never")}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"parallelism": pods, "completions": pods, "suspend": True, "template": template},
    }


def group(name: str, least: int) -> dict[str, str]:
    """Kerf's own labels."""
    return {"kerf.dev/pod-group": name, "kerf.dev/pod-group-min": str(least)}


def request(name: str, pods: int, parameters: dict[str, str] | None = None) -> list[Json]:
    """What Kueue makes of a workload: a PodTemplate, and the ProvisioningRequest for so many of it."""
    spec: Json = {
        "provisioningClassName": ATOMIC,
        "podSets": [{"podTemplateRef": {"name": f"ppt-{name}-main"}, "count": pods}],
        "parameters": parameters or {},
    }
    metadata = {"name": name, "namespace": "default"}
    template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {**metadata, "name": f"ppt-{name}-main"}}
    asked = {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": metadata}
    return [{**template, "template": {"spec": pod_spec()}}, {**asked, "spec": spec}]


def conditions(site: Cluster, name: str) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message of each condition of a request."""
    found = site.plane.get("ProvisioningRequest", name, "default") or {}
    held = found.get("status", {}).get("conditions", ())
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in held}


def ended(lives: Lives) -> None:
    """Everything goes, and nothing was left behind."""
    site = lives.site
    site.plane.kubectl("delete", "deployments,jobs", "--all")
    site.plane.kubectl("delete", "provisioningrequests.autoscaling.x-k8s.io", "--all")
    lives.until(lambda: [] == site.names("nodeclaims") == site.instances(), "all is gone")
    lives.end()


def test_a_group_is_bought_whole_once_the_limit_allows_it(lives: Lives) -> None:
    """Room for five of eight: nothing is bought, and each pod says so; a limit of eight: all at once."""
    site = lives.site
    site.plane.apply([limited(5)])
    lives.begin()
    site.plane.apply([service("train", 8, group("train", 8))])
    text = "group train: 5 of 8 have room: limit nodes 5 of NodePool batch: 5 planned, 1 more needed"
    lives.until(lambda: 8 == sum(text in said for said in site.events("FailedScheduling")), "each pod is told")

    assert [] == site.names("nodeclaims")

    site.plane.apply([limited(8)])
    lives.until(lambda: 8 == len(site.pods("Running")), "all run")
    assert (8, 8) == lives.bought()
    ended(lives)


@pytest.mark.long
def test_a_group_survives_a_crash_between_the_third_and_the_fourth_launch(lives: Lives) -> None:
    """The next life counts the three that are on their way and buys five."""
    site = lives.site
    site.plane.apply([limited(8)])
    kill = Kill("create nodeclaims", AFTER, skips=2)
    lives.begin(kill)
    site.plane.apply([service("train", 8, group("train", 8))])
    lives.until(lambda: kill.struck, "Kerf dies after the third claim")
    lives.until(lambda: 8 == len(site.pods("Running")), "all run")

    assert (8, 8) == lives.bought()
    ended(lives)


def test_a_pod_group_of_the_coscheduling_plugin_is_a_group(lives: Lives) -> None:
    """Its object says how many; kube-scheduler itself knows nothing of it."""
    site = lives.site
    groups = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup"}
    site.plane.apply([limited(2)])
    lives.begin()
    site.plane.apply([{**groups, "metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 3}}])
    site.plane.apply([service("g", 3, {"scheduling.x-k8s.io/pod-group": "g"})])
    text = "group g: 2 of 3 have room: limit nodes 2 of NodePool batch"
    lives.until(lambda: 3 == sum(text in said for said in site.events("FailedScheduling")), "each pod is told")

    assert [] == site.names("nodeclaims")
    ended(lives)


def test_what_kueue_asks_for_is_provisioned_and_taken(lives: Lives) -> None:
    """A suspended Job makes no pods; its request gets eight nodes; resumed, its pods take them and buy nothing."""
    site = lives.site
    takes = {
        "autoscaling.x-k8s.io/consume-provisioning-request": "train",
        "autoscaling.x-k8s.io/provisioning-class-name": ATOMIC,
    }
    site.plane.apply([limited(8)])
    lives.begin()
    site.plane.apply([suspended_job("train", 8, takes), *request("train", 8)])
    lives.until(lambda: conditions(site, "train").get("Provisioned", ("",))[0] == "True", "it is provisioned")

    assert ("True", "Accepted", "Kerf looks for room for it") == conditions(site, "train")["Accepted"]
    assert ("True", "CapacityIsFound", "8 places on nodes that are up, kept for 10m") == (
        conditions(site, "train")["Provisioned"]
    )
    assert [] == site.pods()

    site.plane.kubectl("patch", "job", "train", "--type=merge", '--patch={"spec":{"suspend":false}}')
    lives.until(lambda: 8 == len(site.pods("Succeeded")), "all have run")
    lives.until(lambda: "BookingExpired" in conditions(site, "train"), "the booking is over")
    assert "CapacityBookingConsumed" == conditions(site, "train")["BookingExpired"][1]
    assert (8, 8) == lives.bought()
    ended(lives)


def test_a_request_over_the_limit_fails_with_its_figures(lives: Lives) -> None:
    """At once where it may not be tried again, which lets Kueue try another flavour; else it waits and says why."""
    site = lives.site
    site.plane.apply([limited(5)])
    lives.begin()
    site.plane.apply([*request("once", 8, {"noRetry": "true"}), *request("patient", 8)])
    text = "5 of 8 have room: limit nodes 5 of NodePool batch: 5 planned, 1 more needed"
    lives.until(lambda: "Failed" in conditions(site, "once"), "it fails")
    lives.until(lambda: "Provisioned" in conditions(site, "patient"), "the other waits")

    assert ("True", "CapacityIsNotFound", text) == conditions(site, "once")["Failed"]
    assert ("False", "CapacityIsNotFound", text) == conditions(site, "patient")["Provisioned"]
    assert (0, 0) == lives.bought()
    ended(lives)


def test_a_pod_that_kueue_holds_buys_nothing_until_it_is_let_go(lives: Lives) -> None:
    """Kueue holds pods of its own by a scheduling gate; what is asked of the cloud is asked when it takes it away."""
    site = lives.site
    site.plane.apply([limited(2)])
    lives.begin()
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    metadata = {"name": "held", "namespace": "default"}
    site.plane.apply(
        [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(schedulingGates=gates)}]
    )
    site.plane.apply([service("free", 1, {})])
    lives.until(lambda: 1 == len(site.pods("Running")), "the other runs")
    assert (1, 1) == lives.bought()

    opened = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
    path = "/api/v1/namespaces/default/pods/held"
    site.plane.request("PATCH", path, opened, content_type="application/json-patch+json").good("open the gate")
    lives.until(lambda: 2 == len(site.pods("Running")), "it runs")
    assert (2, 2) == lives.bought()
    site.plane.delete("Pod", "held", "default")
    ended(lives)
