"""Which pods the schedulers try, where they put them, and what closes a node: gates, nominations, cordons, taints."""

import re
from dataclasses import replace

import pytest

from kerf.errors import ApiError
from kerf.model.constraints import Taint
from kerf.model.nodes import reservation
from kerf.model.pods import Pod
from kerf.sim.objects import condition_of, labels_of
from tests.conformance.cluster import Cluster, labelled, rules
from tests.conformance.raw_api import Json

RULES, rule = rules()


@rule
def a_gate_holds_a_pod(cluster: Cluster) -> None:
    """It is said to be held from the first moment, is not tried, and goes once the last gate is taken away."""
    cluster.add_node("a")
    created = cluster.add_pod("web", schedulingGates=[{"name": "kerf.dev/hold"}])
    said = condition_of(created, "PodScheduled") or {}
    assert ("False", "SchedulingGated") == (said.get("status"), said.get("reason"))
    cluster.rest(2)
    assert ("", "") == (cluster.place("web"), cluster.refusal("web"))

    cluster.patch("Pod", "web", {"spec": {"schedulingGates": None}})
    cluster.until_bound("web")


@rule
def a_pod_that_fits_nowhere_is_told_why(cluster: Cluster) -> None:
    """In kube-scheduler's words, and until it fits."""
    cluster.add_node("a", "1")
    cluster.add_pod("web", "2")
    cluster.until_refused("web")
    assert re.match(r"0/\d+ nodes are available: .*1 Insufficient cpu", cluster.refusal("web"))
    assert cluster.refusal("web") == cluster.pod("web").unschedulable

    cluster.add_node("b")
    cluster.until_bound("web")
    said = condition_of(cluster.get("Pod", "web"), "PodScheduled") or {}
    assert ("b", "True", None) == (cluster.place("web"), said["status"], said.get("reason"))


@rule
def a_pod_of_higher_priority_takes_the_place_of_as_few_as_needed(cluster: Cluster) -> None:
    """Preemption: the victim has its time to end, and the pod is nominated to the node meanwhile."""
    cluster.add_node("a", "2")
    for name, priority in (("low", -10), ("lower", -20)):
        cluster.create(_class(name, priority))
        cluster.add_pod(name, "900m", priorityClassName=cluster.own(name))
    cluster.until_bound("low", "lower")
    cluster.add_pod("web", "900m")

    cluster.until_bound("web")
    assert ["low", "web"] == cluster.pods()


@rule
def a_class_that_preempts_nobody_waits(cluster: Cluster) -> None:
    """However much it ranks above those that hold the place."""
    cluster.add_node("a", "1")
    cluster.create(_class("low", -10), {**_class("meek", 10), "preemptionPolicy": "Never"})
    cluster.add_pod("low", "900m", priorityClassName=cluster.own("low"))
    cluster.until_bound("low")
    cluster.add_pod("web", "900m", priorityClassName=cluster.own("meek"))

    cluster.until_refused("web")
    cluster.rest(2)
    assert ["low", "web"] == cluster.pods()


def _class(name: str, value: int) -> Json:
    """A PriorityClass."""
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


@rule
def a_nomination_decides_between_equal_nodes(cluster: Cluster) -> None:
    """And is gone once the pod is bound."""
    for name in ("a", "b", "c"):
        cluster.add_node(name)
    for name in ("a", "b", "c"):
        cluster.add_pod(f"to-{name}", schedulingGates=[{"name": "kerf.dev/hold"}])
        cluster.nominate(f"to-{name}", name)
    assert "b" == cluster.nomination("to-b") == cluster.short(cluster.pod("to-b").nominated_node)
    for name in ("a", "b", "c"):
        cluster.patch("Pod", f"to-{name}", {"spec": {"schedulingGates": None}})

    cluster.until_bound("to-a", "to-b", "to-c")
    assert {"to-a": "a", "to-b": "b", "to-c": "c"} == cluster.places()
    cluster.until(lambda: not any(cluster.nomination(f"to-{name}") for name in "abc"), "nominations are cleared")


@rule
def a_nomination_keeps_equals_off(cluster: Cluster) -> None:
    """Pods of the same priority do not get the room that is promised, however early they came."""
    cluster.add_node("a", unschedulable=True)
    cluster.add_pod("early", "3")
    cluster.add_pod("late", "3")
    cluster.until_refused("early", "late")
    cluster.nominate("late", "a")
    cluster.uncordon("a")

    cluster.until_bound("late")
    cluster.until(lambda: "early" in cluster.pods() and cluster.refusal("early"), "early was tried")
    assert {"early": "", "late": "a"} == cluster.places()


@rule
def an_uncordon_that_leaves_the_taint_costs_the_nominations(cluster: Cluster) -> None:
    """The scheduler sees `unschedulable` go before the control plane's own taint goes: it tries and fails in between.

    So who opens a node takes the taint away in the same write.
    """
    cluster.add_node("a", unschedulable=True)
    cluster.add_pod("web")
    cluster.until_refused("web")
    cluster.rest(3)
    cluster.nominate("web", "a")
    cluster.follow()
    cluster.patch("Node", "a", {"spec": {"unschedulable": None}})
    cluster.until_bound("web")
    cluster.until(lambda: cluster.told(Pod)[-1][1].node_name, "the reader knows")

    told = [(pod.nominated_node != "", pod.node_name != "") for _, pod in cluster.told(Pod)]
    assert (False, False) in told


@rule
def a_reserved_node_takes_those_who_tolerate_it(cluster: Cluster) -> None:
    """In whatever order they were refused; the others wait until the reservation ends. Kerf follows plans with it."""
    cluster.add_node("a", unschedulable=True)
    cluster.add_pod("early", "1")
    cluster.add_pod("late", "1")
    cluster.until_refused("early", "late")
    late, taint = cluster.pod("late"), reservation("c")
    cluster.write(lambda writer: writer.tolerate(late, taint))
    cluster.change_node("a", lambda node: replace(node, is_unschedulable=False, taints=(taint,)))
    cluster.until_bound("late")
    cluster.rest(3)
    assert {"early": "", "late": "a"} == cluster.places()

    cluster.change_node("a", lambda node: replace(node, taints=()))
    cluster.until_bound("early")


@rule
def a_toleration_that_comes_after_the_taint_is_as_good(cluster: Cluster) -> None:
    """The scheduler tries a pod again when it has got one."""
    taint = reservation("c")
    cluster.add_node("a", taints=[{"key": taint.key, "value": taint.value, "effect": taint.effect}])
    cluster.add_pod("web", "1")
    cluster.until_refused("web")
    web = cluster.pod("web")
    cluster.write(lambda writer: writer.tolerate(web, taint))

    cluster.until_bound("web")


@rule
def a_failed_attempt_clears_the_nomination(cluster: Cluster) -> None:
    """Why Kerf nominates nobody: before its node is open a pod loses its nomination once another change lets it try."""
    cluster.add_node("a", unschedulable=True)
    cluster.add_pod("web", "1")
    cluster.until_refused("web")
    cluster.nominate("web", "a")
    cluster.rest(2)
    assert "a" == cluster.nomination("web")
    cluster.add_node("b", "100m")

    cluster.until(lambda: not cluster.nomination("web"), "the nomination is gone")


@rule
def what_cannot_help_makes_nobody_try(cluster: Cluster) -> None:
    """A change that cannot cure what the pod was refused for costs no attempt, and so no nomination."""
    cluster.add_node("a", "100m")
    cluster.add_pod("web", "1")
    cluster.until_refused("web")
    cluster.nominate("web", "a")
    cluster.patch("Node", "a", labelled("x", "y"))
    cluster.patch("Node", "a", {"metadata": {"annotations": {"x": "y"}}})
    cluster.patch("Pod", "web", {"metadata": {"annotations": {"x": "y"}}})
    cluster.add_pod("other", "1")
    cluster.until_refused("other")
    cluster.rest(3)
    assert "a" == cluster.nomination("web")

    cluster.add_node("b")
    cluster.until_bound("web")


@rule
def a_nomination_may_name_a_node_of_the_future(cluster: Cluster) -> None:
    """It stays while nobody tries the pod; once the node is there, it counts as any other."""
    cluster.add_pod("early", "3", schedulingGates=[{"name": "kerf.dev/hold"}])
    cluster.add_pod("late", "3", schedulingGates=[{"name": "kerf.dev/hold"}])
    cluster.nominate("late", "a")
    cluster.rest(2)
    cluster.add_node("a")
    cluster.add_node("b")
    assert "a" == cluster.nomination("late")
    for name in ("early", "late"):
        cluster.patch("Pod", name, {"spec": {"schedulingGates": None}})

    cluster.until_bound("early", "late")
    assert "a" == cluster.place("late")


@rule
def a_cordon_keeps_pods_off_but_not_daemons(cluster: Cluster) -> None:
    """The control plane puts its own taint on a cordoned node, and takes it away afterwards."""
    cluster.add_node("a")
    cluster.add_workload("DaemonSet", "agent")
    cluster.until_pods(1)
    cluster.change_node("a", lambda node: replace(node, is_unschedulable=True))
    cluster.until(lambda: cluster.system_taints("a") == [("unschedulable", "NoSchedule")], "the taint is there")
    cluster.add_workload("DaemonSet", "late-agent")
    cluster.add_pod("web")
    cluster.until_refused("web")
    cluster.until_pods(3)
    cluster.until_bound(*(name for name in cluster.pods() if name != "web"))

    cluster.change_node("a", lambda node: replace(node, is_unschedulable=False))
    cluster.until_bound("web")
    cluster.until(lambda: not cluster.system_taints("a"), "the taint is gone")


@rule
def a_taint_keeps_daemons_off(cluster: Cluster) -> None:
    """A DaemonSet without a toleration has no pod there at all, not even one that waits; one that tolerates it has."""
    taint = Taint("kerf.dev/starting")
    tolerated = {"tolerations": [{"key": taint.key, "operator": "Exists"}]}
    cluster.add_node("a", taints=[{"key": taint.key, "effect": taint.effect}])
    cluster.add_workload("DaemonSet", "plain")
    cluster.add_workload("DaemonSet", "tolerant", pod=tolerated)
    cluster.until_pods(1)
    cluster.rest(1)
    assert ["tolerant"] == [labels_of(pod)["app"] for pod in cluster.all_of("Pod")]

    cluster.change_node("a", lambda node: replace(node, taints=()))
    cluster.until_pods(2)


@rule
def a_taint_that_comes_later_leaves_pods_where_they_are(cluster: Cluster) -> None:
    """NoSchedule is for those who come; it takes no daemon away either."""
    cluster.add_node("a")
    cluster.add_workload("DaemonSet", "agent")
    cluster.until_pods(1)
    cluster.add_pod("web")
    cluster.until_ready(*cluster.pods())
    before = cluster.pods()
    cluster.change_node("a", lambda node: replace(node, taints=(Taint("kerf.dev/closed"),)))
    cluster.rest(3)

    assert before == cluster.pods()


@rule
def no_execute_evicts(cluster: Cluster) -> None:
    """At once who does not tolerate it, later who does so for a time, never who does so at all; no budget is asked."""
    cluster.add_node("a")
    taint = {"key": "kerf.dev/leave", "effect": "NoExecute"}
    tolerated = {"key": taint["key"], "operator": "Exists", "effect": "NoExecute"}
    cluster.add_pod("now")
    cluster.add_pod("soon", tolerations=[{**tolerated, "tolerationSeconds": 3}])
    cluster.add_pod("never", tolerations=[tolerated])
    cluster.until_ready("now", "soon", "never")
    cluster.add_budget(minAvailable=3)
    cluster.follow()
    cluster.patch("Node", "a", {"spec": {"taints": [taint]}})

    cluster.until_gone("Pod", "now")
    assert cluster.find("Pod", "soon")
    cluster.until_gone("Pod", "soon")
    assert ["never"] == cluster.pods()
    cluster.until(lambda: cluster.known(Pod) == ["never"], "the reader knows")


@rule
def a_node_that_is_not_ready_is_tainted(cluster: Cluster) -> None:
    """It takes neither pods nor daemons, and becomes open by the control plane itself when it is ready."""
    machine = cluster.node_object("a")
    del machine["metadata"]["annotations"]
    machine["status"]["conditions"][0]["status"] = "False"
    cluster.create(machine)
    cluster.add_workload("DaemonSet", "agent")
    cluster.add_pod("web")
    cluster.until(lambda: ("not-ready", "NoSchedule") in cluster.system_taints("a"), "it is tainted")
    cluster.until_refused("web")
    assert ["web"] == cluster.pods()

    machine["status"]["conditions"][0]["status"] = "True"
    cluster.set_status("Node", "a", conditions=machine["status"]["conditions"])
    cluster.until(lambda: not cluster.system_taints("a"), "it is open")
    cluster.until_pods(2)
    cluster.until_bound(*cluster.pods())


@rule
def a_bound_pod_is_bound_for_good(cluster: Cluster) -> None:
    """To bind it again is a conflict, and so is to bind one that is held or on its way out."""
    cluster.add_node("a")
    cluster.add_pod("web", schedulerName="nobody")
    cluster.add_pod("held", schedulingGates=[{"name": "kerf.dev/hold"}])
    cluster.bind("web", "a")
    said = condition_of(cluster.get("Pod", "web"), "PodScheduled") or {}
    assert ("a", "True") == (cluster.place("web"), said["status"])

    for name in ("web", "held"):
        with pytest.raises(ApiError):
            cluster.bind(name, "a")
