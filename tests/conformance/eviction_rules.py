"""How pods end: deleted with a grace, evicted against a budget, lost with their node."""

from dataclasses import replace

import pytest

from kerf.errors import ApiError
from kerf.model.pods import Pod
from kerf.ports import Conflict, EvictionBlocked, NotFound
from kerf.sim.objects import condition_of, is_ready, name_of
from tests.conformance.cluster import Cluster, obj, rules

RULES, rule = rules()


@rule
def a_pod_on_no_node_goes_at_once(cluster: Cluster) -> None:
    """Whether it is deleted with a grace or evicted despite a budget."""
    cluster.add_pod("deleted", schedulerName="nobody")
    cluster.add_pod("evicted", schedulerName="nobody")
    cluster.add_budget(minAvailable=2)
    deleted, evicted = cluster.pod("deleted"), cluster.pod("evicted")

    cluster.write(lambda writer: writer.delete_pod(deleted, 30))
    cluster.write(lambda writer: writer.evict(evicted))
    assert [] == cluster.all_of("Pod")


@rule
def a_pod_on_a_node_ends_before_it_goes(cluster: Cluster) -> None:
    """It is marked with the time at which its grace ends, and gone when its kubelet has ended it."""
    cluster.add_node("a")
    cluster.add_pod("web", terminationGracePeriodSeconds=40)
    cluster.until_ready("web")
    pod = cluster.pod("web")
    cluster.follow()
    cluster.write(lambda writer: writer.delete_pod(pod, 20))
    cluster.until_gone("Pod", "web")
    cluster.until(lambda: cluster.known(Pod) == [], "the reader knows")

    last = [value for what, value in cluster.told(Pod) if what == "has"][-1]
    assert last.deleted_s is not None
    assert last.uid == cluster.told(Pod)[-1][1].uid


@rule
def a_grace_can_only_be_shortened(cluster: Cluster) -> None:
    """Where no kubelet ends the pod: the mark moves, and with no grace at all the pod is gone at once."""
    cluster.add_silent_node("a")
    cluster.add_pod("web", schedulerName="nobody", nodeName=cluster.own("a"), terminationGracePeriodSeconds=300)
    pod = cluster.pod("web")
    graces = []
    for grace_s in (200, 250, 100):
        cluster.delete("Pod", "web", grace_s)
        graces.append(cluster.get("Pod", "web")["metadata"]["deletionGracePeriodSeconds"])
    assert [200, 200, 100] == graces

    cluster.write(lambda writer: writer.delete_pod(pod, 0))
    assert cluster.find("Pod", "web") is None


@rule
def a_budget_blocks_until_a_replacement_is_ready(cluster: Cluster) -> None:
    """Two of three may not be fewer; who was evicted is replaced, and only a ready replacement lets the next go."""
    cluster.add_node("a")
    cluster.add_workload("ReplicaSet", replicas=3)
    cluster.until_pods(3)
    first, second, third = cluster.pods()
    cluster.until_ready(first, second, third)
    cluster.add_budget("web", minAvailable=2)
    cluster.until(lambda: cluster.allowed("web") == 1, "one may go")
    pods = [cluster.pod(name) for name in (first, second)]
    cluster.change_node("a", lambda node: replace(node, is_unschedulable=True))

    cluster.write(lambda writer: writer.evict(pods[0]))
    cluster.until_pods(3)
    with pytest.raises(EvictionBlocked):
        cluster.write(lambda writer: writer.evict(pods[1]))
    cluster.uncordon("a")
    cluster.until_ready(*cluster.pods())
    cluster.until(lambda: cluster.allowed("web") == 1, "one may go again")
    cluster.write(lambda writer: writer.evict(pods[1]))
    cluster.until(lambda: third in cluster.pods() and second not in cluster.pods(), "the third has stayed")


@rule
def a_budget_counts_what_its_owner_wants(cluster: Cluster) -> None:
    """`maxUnavailable` and percentages are of the owner's replicas, whether or not these exist, and round up."""
    cluster.add_node("a", "1")
    cluster.add_workload("ReplicaSet", replicas=3, pod={"cpu": "400m"})
    cluster.add_budget("web", maxUnavailable="30%")
    cluster.until(lambda: sum(is_ready(pod) for pod in cluster.all_of("Pod")) == 2, "two run")
    ready = next(name_of(pod) for pod in cluster.all_of("Pod") if is_ready(pod))
    wanted = {"expectedPods": 3, "desiredHealthy": 2, "currentHealthy": 2, "disruptionsAllowed": 0}
    cluster.until(lambda: wanted.items() <= cluster.get("PodDisruptionBudget", "web")["status"].items(), "counted")
    pod = cluster.pod(ready)

    with pytest.raises(EvictionBlocked):
        cluster.write(lambda writer: writer.evict(pod))


@rule
def who_is_not_ready_may_go_while_enough_are(cluster: Cluster) -> None:
    """Under the default policy; `AlwaysAllow` lets the unready go at any time."""
    cluster.add_node("a")
    for name in ("well", "ill"):
        cluster.add_pod(name)
    cluster.until_ready("well", "ill")
    cluster.add_budget(minAvailable=2)
    cluster.set_ready("ill", False)
    cluster.until(lambda: cluster.get("PodDisruptionBudget", "alone")["status"]["currentHealthy"] == 1, "one is ill")
    ill, well = cluster.pod("ill"), cluster.pod("well")
    with pytest.raises(EvictionBlocked):
        cluster.write(lambda writer: writer.evict(ill))

    cluster.patch("PodDisruptionBudget", "alone", {"spec": {"minAvailable": 1}})
    cluster.until(lambda: cluster.get("PodDisruptionBudget", "alone")["status"]["desiredHealthy"] == 1, "one is enough")
    with pytest.raises(EvictionBlocked):
        cluster.write(lambda writer: writer.evict(well))
    cluster.write(lambda writer: writer.evict(ill))
    cluster.until_gone("Pod", "ill")


@rule
def always_allow_lets_the_unready_go(cluster: Cluster) -> None:
    """However few are healthy."""
    cluster.add_node("a")
    cluster.add_pod("ill")
    cluster.until_ready("ill")
    cluster.set_ready("ill", False)
    cluster.add_budget(minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow")
    ill = cluster.pod("ill")
    cluster.write(lambda writer: writer.evict(ill))

    cluster.until_gone("Pod", "ill")


@rule
def two_budgets_forbid_an_eviction_for_good(cluster: Cluster) -> None:
    """It is no matter of waiting: another error than EvictionBlocked."""
    cluster.add_node("a")
    cluster.add_pod("web", labels={"tier": "front"})
    cluster.until_ready("web")
    cluster.add_budget(minAvailable=0)
    spec = {"selector": {"matchLabels": {"tier": "front"}}, "minAvailable": 0}
    cluster.create(obj("policy/v1", "PodDisruptionBudget", "front", spec))
    pod = cluster.pod("web")

    with pytest.raises(ApiError, match="more than one PodDisruptionBudget") as refused:
        cluster.write(lambda writer: writer.evict(pod))
    assert not isinstance(refused.value, EvictionBlocked | Conflict | NotFound)


@rule
def an_evicted_pod_says_so(cluster: Cluster) -> None:
    """It is marked as disrupted in the words that Jobs and people look for; a second eviction is harmless."""
    cluster.add_silent_node("a")
    cluster.add_pod("web", schedulerName="nobody", nodeName=cluster.own("a"))
    pod = cluster.pod("web")
    cluster.write(lambda writer: writer.evict(pod))
    marked = cluster.get("Pod", "web")
    cluster.write(lambda writer: writer.evict(pod))

    said = condition_of(marked, "DisruptionTarget") or {}
    assert ("True", "EvictionByEvictionAPI") == (said["status"], said["reason"])
    assert 30 == marked["metadata"]["deletionGracePeriodSeconds"]
    assert marked["metadata"]["deletionTimestamp"] == cluster.get("Pod", "web")["metadata"]["deletionTimestamp"]


@rule
def the_pods_of_a_lost_node_are_removed(cluster: Cluster) -> None:
    """By force, once the node has been missing for a while, since nobody is left to end them; and then replaced."""
    machine = cluster.node_object("a")
    del machine["metadata"]["annotations"]
    cluster.create(machine)
    cluster.add_workload("ReplicaSet", replicas=1, pod={"nodeSelector": {"kubernetes.io/hostname": cluster.own("a")}})
    cluster.until_pods(1)
    (name,) = cluster.pods()
    cluster.until_bound(name)
    cluster.follow()
    cluster.delete("Node", "a")
    cluster.until_gone("Pod", name, within_s=120)
    cluster.until_pods(1)

    said = [pod for what, pod in cluster.told(Pod) if what == "lost"]
    assert [name] == [pod.name for pod in said]
