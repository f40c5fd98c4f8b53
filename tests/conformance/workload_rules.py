"""Who makes pods and takes them away, and what the API server makes of a new pod: workloads and admission."""

import pytest

from kerf.errors import ApiError
from kerf.sim.objects import condition_of, name_of
from tests.conformance.cluster import LABEL, Cluster, labelled, obj, rules

RULES, rule = rules()


# Workloads.


@rule
def a_deployment_removes_those_who_wait_first(cluster: Cluster) -> None:
    """Then those who share a node with more of its pods: so nodes become empty later, not sooner."""
    cluster.add_node("a", "1")
    cluster.add_node("b", "350m", unschedulable=True)
    cluster.add_workload("Deployment", replicas=4, pod={"cpu": "300m"})
    cluster.until(lambda: len([1 for node in cluster.places().values() if node]) == 3, "three are bound")
    cluster.uncordon("b")
    cluster.until_places("a", "a", "a", "b")
    cluster.patch("Deployment", "web", {"spec": {"replicas": 5}})
    cluster.until_places("", "a", "a", "a", "b")
    cluster.until_ready(*(name for name, node in cluster.places().items() if node))

    for left in (["a", "a", "a", "b"], ["a", "a", "b"], ["a", "b"]):
        cluster.patch("Deployment", "web", {"spec": {"replicas": len(left)}})
        cluster.until_places(*left)


@rule
def a_deletion_cost_decides_among_equals(cluster: Cluster) -> None:
    """The cheapest of the ready pods goes first."""
    cluster.add_node("a")
    cluster.add_workload("ReplicaSet", replicas=3)
    cluster.until_pods(3)
    cluster.until_ready(*cluster.pods())
    dear = cluster.pods()[1]
    cost = {"controller.kubernetes.io/pod-deletion-cost": "5"}
    cluster.patch("Pod", dear, {"metadata": {"annotations": cost}})
    cluster.rest(1)
    cluster.patch("ReplicaSet", "web", {"spec": {"replicas": 1}})

    cluster.until(lambda: cluster.pods() == [dear], "the dear one is left")


@rule
def an_evicted_pod_is_replaced_under_another_name(cluster: Cluster) -> None:
    """At once, while the old one still ends, and not by a StatefulSet, whose names are fixed."""
    cluster.add_silent_node("a")
    there = {"nodeName": cluster.own("a")}
    cluster.add_workload("ReplicaSet", "web", replicas=1, pod=there)
    cluster.add_workload("StatefulSet", "db", replicas=1, serviceName="db", pod=there)
    cluster.until_pods(2)
    old = cluster.pods()
    assert "db-0" == old[0]
    cluster.until_bound(*old)
    for name in old:
        cluster.evict(name)

    cluster.until_pods(1)
    cluster.rest(2)
    assert 3 == len(cluster.all_of("Pod"))
    assert cluster.pods()[0] not in old
    cluster.delete("Pod", "db-0", 0)
    cluster.until(lambda: "db-0" in cluster.pods(), "the other is made again")


@rule
def a_stateful_set_goes_by_numbers(cluster: Cluster) -> None:
    """One after the other upwards, each once the one before is ready, and downwards from the last."""
    cluster.add_workload("StatefulSet", "db", replicas=3, serviceName="db")
    cluster.until(lambda: cluster.pods() == ["db-0"], "the first exists")
    cluster.until_refused("db-0")
    cluster.rest(1)
    assert ["db-0"] == cluster.pods()
    cluster.add_node("a")
    cluster.until_pods(3)
    cluster.until_ready("db-0", "db-1", "db-2")

    cluster.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
    cluster.until_gone("Pod", "db-1", "db-2")
    assert ["db-0"] == cluster.pods()


@rule
def a_deployment_scales_and_rolls_over_replica_sets(cluster: Cluster) -> None:
    """Another template is another ReplicaSet; the old one ends without a pod, and the Deployment owns both."""
    cluster.add_node("a")
    cluster.add_workload("Deployment", replicas=2)
    cluster.until_pods(2)
    before = cluster.pods()
    cluster.patch("Deployment", "web", {"spec": {"replicas": 3}})
    cluster.until_pods(3)
    assert {*before} < {*cluster.pods()}
    before = cluster.pods()

    template = {"metadata": {"annotations": {"kerf.dev/version": "2"}}}
    cluster.patch("Deployment", "web", {"spec": {"template": template}})
    cluster.until(lambda: len(cluster.pods()) == 3 and not {*before} & {*cluster.pods()}, "all are new", 120)
    assert [0, 3] == sorted(held["spec"]["replicas"] for held in cluster.all_of("ReplicaSet"))


@rule
def a_daemon_comes_with_its_node(cluster: Cluster) -> None:
    """One pod for each node that its selector takes, also where there is no room left for it."""
    cluster.add_node("a", "1")
    cluster.add_pod("large", "900m")
    cluster.until_bound("large")
    cluster.add_workload("DaemonSet", "agent", pod={"cpu": "200m"})
    cluster.add_node("b", "1")
    cluster.until_places("", "a", "b")

    cluster.patch("Node", "b", labelled(LABEL, "another"))
    cluster.until_pods(2)


@rule
def a_job_ends_with_its_completions(cluster: Cluster) -> None:
    """Two at a time, three in all; its pods stay as they ended, and hold nothing."""
    cluster.add_node("a", "1")
    ends = {"kerf.dev/run-for": "1s"}
    pod = {"cpu": "400m", "restartPolicy": "Never"}
    cluster.add_workload("Job", "train", pod=pod, annotations=ends, completions=3, parallelism=2)
    cluster.until(lambda: condition_of(cluster.get("Job", "train"), "Complete"), "it is complete")

    assert {"succeeded": 3}.items() <= cluster.get("Job", "train")["status"].items()
    assert ["Succeeded"] * 3 == [pod["status"]["phase"] for pod in cluster.all_of("Pod")]
    cluster.add_pod("large", "900m")
    cluster.until_bound("large")


@rule
def a_job_is_given_up_after_its_failures(cluster: Cluster) -> None:
    """A failed pod stays and is replaced after a back-off; one failure more than allowed ends the Job."""
    pod = {"restartPolicy": "Never", "schedulerName": "nobody"}
    cluster.add_workload("Job", "train", pod=pod, backoffLimit=1)
    for number in (1, 2):
        cluster.until_pods(number)
        (name,) = [name_of(pod) for pod in cluster.all_of("Pod") if pod["status"]["phase"] == "Pending"]
        cluster.set_status("Pod", name, phase="Failed")

    cluster.until(lambda: condition_of(cluster.get("Job", "train"), "Failed"), "it has failed")
    said = condition_of(cluster.get("Job", "train"), "Failed") or {}
    assert ("BackoffLimitExceeded", 2) == (said["reason"], cluster.get("Job", "train")["status"]["failed"])


# Admission.


@rule
def a_priority_class_becomes_a_number(cluster: Cluster) -> None:
    """Also the ones of the system; a class that is not there refuses the pod."""
    cluster.create({**obj("scheduling.k8s.io/v1", "PriorityClass", "high"), "value": 1000})
    plain = cluster.add_pod("plain", schedulerName="nobody")
    high = cluster.add_pod("high", schedulerName="nobody", priorityClassName=cluster.own("high"))
    with pytest.raises(ApiError, match="no PriorityClass with name never-there was found"):
        cluster.add_pod("lost", priorityClassName="never-there")

    assert (0, 1000) == (plain["spec"]["priority"], high["spec"]["priority"])
    assert ["high", "plain"] == cluster.pods()


@rule
def what_a_pod_does_not_say_is_filled_in(cluster: Cluster) -> None:
    """Requests from its limits, then from the namespace's LimitRange; and what it bears when its node is ill."""
    item = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"memory": "1Gi"}}
    cluster.create(obj("v1", "LimitRange", "sizes", {"limits": [item]}))
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "main", "image": "none", "resources": resources}
    spec = cluster.add_pod("web", containers=[container], schedulerName="nobody")["spec"]

    assert {
        "limits": {"cpu": "2", "nvidia.com/gpu": "1"},
        "requests": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"},
    } == spec["containers"][0]["resources"]
    borne = [(t["key"], t["effect"], t["tolerationSeconds"]) for t in spec["tolerations"]]
    assert [
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    ] == borne
    assert (30, "Always", "default-scheduler") == tuple(
        {**spec, "schedulerName": "default-scheduler"}[field]
        for field in ("terminationGracePeriodSeconds", "restartPolicy", "schedulerName")
    )


def _is_refused(cluster: Cluster, cpu: str) -> bool:
    """Whether no pod of this size can be made; one that could be is taken away again."""
    try:
        cluster.add_pod("probe", cpu, schedulerName="nobody")
    except ApiError:
        return True
    cluster.delete("Pod", "probe")
    return False


@rule
def a_quota_refuses_what_is_over_it(cluster: Cluster) -> None:
    """The sum of the namespace's pods that have not ended; a ReplicaSet makes what it may and tries again later."""
    cluster.create(obj("v1", "ResourceQuota", "all", {"hard": {"requests.cpu": "1", "pods": "2"}}))
    cluster.until(lambda: _is_refused(cluster, "2"), "admission has seen its status: until then it lets all pass")
    cluster.add_pod("first", "600m", schedulerName="nobody")
    with pytest.raises(ApiError, match=r"exceeded quota: all, requested: requests\.cpu=600m"):
        cluster.add_pod("second", "600m", schedulerName="nobody")
    cluster.add_workload("ReplicaSet", replicas=3)
    cluster.until_pods(2)
    cluster.until(
        lambda: {"pods": "2", "requests.cpu": "700m"} == cluster.get("ResourceQuota", "all")["status"]["used"], "used"
    )

    cluster.delete("Pod", "first")
    cluster.until(lambda: "first" not in cluster.pods() and len(cluster.pods()) == 2, "another one has come", 120)


@rule
def higher_priority_goes_first(cluster: Cluster) -> None:
    """Of two that wait for one place; a nomination holds only against its equals and lower ones."""
    cluster.create({**obj("scheduling.k8s.io/v1", "PriorityClass", "high"), "value": 1000})
    cluster.add_node("a", unschedulable=True)
    cluster.add_pod("low", "3")
    cluster.add_pod("high", "3", priorityClassName=cluster.own("high"))
    cluster.until_refused("low", "high")
    cluster.nominate("low", "a")
    cluster.uncordon("a")

    cluster.until_bound("high")
    assert {"high": "a", "low": ""} == cluster.places()
