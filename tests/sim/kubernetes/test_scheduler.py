"""kube-scheduler's stand-in: order of the queue, filters and their words, scores, nominations, back-off."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from kerf.sim.kubernetes.selectors import Expression
from kerf.sim.objects import Json
from tests.sim.cluster import Cluster, cpu_pod, ready_node


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """An empty cluster; its loop is closed after the test."""
    built = Cluster()
    yield built
    built.loop.close()


def message(cluster: Cluster, name: str = "web") -> str:
    """What the scheduler says of a pod."""
    conditions: list[Json] = cluster.pod(name)["status"].get("conditions") or []
    return next((str(c["message"]) for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")


def affinity(kind: str, *terms: Json) -> Json:
    """A node affinity of required terms, each of one expression or field."""
    return {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{kind: [t]} for t in terms]}
            }
        }
    }


def test_the_emptier_node_wins_and_equal_ones_go_by_name(cluster: Cluster) -> None:
    """LeastAllocated spreads; the first pod goes to the first node by name."""
    cluster.create(ready_node("b"), ready_node("a"), cpu_pod("p0"), cpu_pod("p1"), cpu_pod("p2"))

    assert {"p0": "a", "p1": "b", "p2": "a"} == cluster.placed()


def test_higher_priority_goes_first(cluster: Cluster) -> None:
    """Priority before creation before name; PriorityClass gives the number."""
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    cluster.create(high, cpu_pod("a", "3"), cpu_pod("z", "3", priorityClassName="high"), ready_node("n"))

    assert {"a": "", "z": "n"} == cluster.placed()


def test_a_pod_that_was_bound_is_not_tried_again_for_an_older_event(cluster: Cluster) -> None:
    """What was written before the binding is told after it; kube-scheduler skips such a pod, too."""
    failed: list[object] = []
    cluster.loop.set_exception_handler(lambda _, context: failed.append(context))
    cluster.create(ready_node("a"), cpu_pod("web"))
    bound = cluster.pod("web")
    older = {**bound, "spec": {key: value for key, value in bound["spec"].items() if key != "nodeName"}}

    for listener in cluster.api.listeners:
        listener("MODIFIED", older)
    cluster.loop.run_until_complete(asyncio.sleep(1))

    assert ([], {"web": "a"}) == (failed, cluster.placed())


NODE_TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("node", "pod", "said"),
    [
        ({}, {"cpu": "5"}, "1 Insufficient cpu"),
        ({"unschedulable": True}, {}, "1 node(s) were unschedulable"),
        ({"taints": [NODE_TAINT]}, {}, "1 node(s) had untolerated taint(s)"),
        ({}, {"nodeSelector": {"a": "b"}}, "1 node(s) didn't match Pod's node affinity/selector"),
        (
            {},
            affinity("matchExpressions", {"key": "a", "operator": "In", "values": ["b"]}),
            "1 node(s) didn't match Pod's node affinity/selector",
        ),
        (
            {},
            affinity("matchFields", {"key": "metadata.name", "operator": "In", "values": ["other"]}),
            "1 node(s) didn't satisfy plugin(s) [NodeAffinity]",
        ),
    ],
)
def test_a_refusal_is_in_kube_scheduler_s_words(
    cluster: Cluster, node: dict[str, Any], pod: dict[str, Any], said: str
) -> None:
    """The message that people know from `kubectl describe`."""
    cluster.create(ready_node("n", **node), cpu_pod("web", **pod))

    assert f"0/1 nodes are available: {said}." == message(cluster)


def test_reasons_are_counted_over_nodes(cluster: Cluster) -> None:
    """One message for all nodes, reasons in the order of their text."""
    cluster.create(ready_node("a"), ready_node("b"), ready_node("c", taints=[NODE_TAINT]), cpu_pod("web", "5"))

    said = "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
    assert said == message(cluster)


def test_without_nodes_there_is_nothing_to_say(cluster: Cluster) -> None:
    """kube-scheduler's own words for an empty cluster."""
    cluster.create(cpu_pod("web"))

    assert "no nodes available to schedule pods" == message(cluster)


def test_no_node_has_devices_for_resource_claims(cluster: Cluster) -> None:
    """Nothing in the cluster publishes ResourceSlices; nodes that come are looked at, and refuse it too."""
    cluster.create(ready_node("a"), cpu_pod("web", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]))
    cluster.create(ready_node("b"))

    assert {"web": ""} == cluster.placed()
    assert "0/2 nodes are available: 2 cannot allocate all claims." == message(cluster)


def test_a_full_node_takes_no_more_pods(cluster: Cluster) -> None:
    """`pods` is a resource too: ten on this node."""
    cluster.create(ready_node("n"), *(cpu_pod(f"p{i:02}", "1m") for i in range(11)))

    assert "0/1 nodes are available: 1 Too many pods." == message(cluster, "p10")


def test_a_port_of_the_node_is_taken_once(cluster: Cluster) -> None:
    """Two pods of one host port need two nodes."""
    ports: Json = {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
    cluster.create(ready_node("n"), cpu_pod("a", **ports), cpu_pod("web", **ports))

    said = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    assert said == message(cluster)


def test_a_toleration_opens_a_tainted_node(cluster: Cluster) -> None:
    """Also a cordoned one, as for DaemonSets."""
    anything: Json = {"tolerations": [{"operator": "Exists"}]}
    cluster.create(ready_node("n", taints=[NODE_TAINT], unschedulable=True), cpu_pod("web", **anything))

    assert {"web": "n"} == cluster.placed()


def test_a_soft_taint_and_a_preference_only_weigh(cluster: Cluster) -> None:
    """PreferNoSchedule loses to a clean node, and a preferred label wins over an emptier node."""
    soft = {"key": "old", "effect": "PreferNoSchedule"}
    term = {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}
    wish: Json = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}
    cluster.create(ready_node("a", taints=[soft]), ready_node("b"), ready_node("c", labels={"disk": "ssd"}))
    cluster.create(cpu_pod("any"), cpu_pod("picky", **wish))

    assert {"any": "b", "picky": "c"} == cluster.placed()


def test_a_pod_with_gates_is_left(cluster: Cluster) -> None:
    """It is not in the queue; what is said of it was said when it was created."""
    cluster.create(ready_node("n"), cpu_pod("web", schedulingGates=[{"name": "hold"}]))

    said = "Scheduling is blocked due to non-empty scheduling gates"
    assert ({"web": ""}, said) == (cluster.placed(), message(cluster))


def test_another_scheduler_s_pod_is_left(cluster: Cluster) -> None:
    """Only the profiles that are played here."""
    cluster.create(ready_node("n"), cpu_pod("web", schedulerName="volcano"))

    assert {"web": ""} == cluster.placed()


def test_a_new_node_lets_a_refused_pod_in_at_once(cluster: Cluster) -> None:
    """However often it was refused: with nothing better to do the scheduler waits for no back-off."""
    cluster.create(ready_node("small", cpu="1"), cpu_pod("web", "5"))
    for after_s in range(1, 6):
        patch = {"metadata": {"labels": {"a": str(after_s)}}, "spec": {"unschedulable": after_s % 2 == 1}}
        cluster.at(after_s, partial(cluster.api.patch, "Node", "", "small", patch))
    cluster.at(6, lambda: cluster.api.create(ready_node("large", cpu="8")))

    cluster.at(6.1)
    assert {"web": "large"} == cluster.placed()


def test_without_nodes_a_pod_waits_for_its_back_off(cluster: Cluster) -> None:
    """Failures at 0, 2, 5, 10, 19 and 30 s: back-offs of 1 to 10 s end with the second that they end in."""
    cluster.create(cpu_pod("web"))
    cluster.at(19.5, lambda: cluster.api.create(ready_node("n")))

    cluster.at(29.9)
    assert {"web": ""} == cluster.placed()
    cluster.at(30.1)
    assert {"web": "n"} == cluster.placed()


def test_a_pod_that_ends_makes_room(cluster: Cluster) -> None:
    """What has succeeded holds nothing."""
    short = cpu_pod("a", "3", restartPolicy="Never")
    short["metadata"]["annotations"] = {"kerf.dev/run-for": "1m"}
    cluster.create(ready_node("n"), short, cpu_pod("b", "3"))
    assert {"a": "n", "b": ""} == cluster.placed()

    cluster.at(65)
    assert {"a": "n", "b": "n"} == cluster.placed()


def nominate(cluster: Cluster, name: str, node: str) -> None:
    """What Kerf writes on a pod."""
    status = {"nominatedNodeName": node}
    cluster.api.patch("Pod", "default", name, {"status": status}, subresource="status")


def test_a_nomination_is_honoured(cluster: Cluster) -> None:
    """Of two equal nodes the nominated one, although the other is first by name."""
    cluster.create(ready_node("full", cpu="0"), cpu_pod("web"))
    cluster.at(0.1, lambda: nominate(cluster, "web", "b"))
    cluster.at(2, lambda: [cluster.api.create(ready_node("a")), cluster.api.create(ready_node("b"))])

    cluster.at(3)
    assert {"web": "b"} == cluster.placed()


def test_a_nomination_reserves_room(cluster: Cluster) -> None:
    """Others of no higher priority stay off a node that is promised, even before it is there."""
    cluster.create(ready_node("full", cpu="0"), cpu_pod("a", "3"), cpu_pod("z", "3"))
    cluster.at(0.1, lambda: nominate(cluster, "z", "n"))
    cluster.at(2, lambda: cluster.api.create(ready_node("n")))

    cluster.at(3)
    assert {"a": "", "z": "n"} == cluster.placed()


def test_a_nomination_ends_with_its_pod(cluster: Cluster) -> None:
    """Who was kept off then gets the room."""
    cluster.create(ready_node("full", cpu="0"), cpu_pod("a", "3"), cpu_pod("z", "3", schedulingGates=[{"name": "h"}]))
    cluster.at(0.1, lambda: nominate(cluster, "z", "n"))
    cluster.at(2, lambda: cluster.api.create(ready_node("n")))
    cluster.at(3, lambda: cluster.api.delete("Pod", "default", "z"))

    cluster.at(4)
    assert {"a": "n"} == cluster.placed()


def test_the_other_scheduler_s_nominations_reserve_nothing(cluster: Cluster) -> None:
    """HAMi's profile runs in a process of its own, which knows its own pods only."""
    theirs = cpu_pod("z", "3", schedulerName="hami-scheduler")
    cluster.create(ready_node("full", cpu="0"), cpu_pod("a", "3"), theirs)
    cluster.at(0.1, lambda: nominate(cluster, "z", "n"))
    cluster.at(2, lambda: cluster.api.create(ready_node("n")))

    cluster.at(3)
    assert {"a": "n", "z": ""} == cluster.placed()


def test_a_failed_attempt_clears_the_nomination(cluster: Cluster) -> None:
    """As tried with kube-scheduler 1.36: without nodes, every try fails."""
    cluster.create(cpu_pod("web", "3"))
    cluster.at(0.1, lambda: nominate(cluster, "web", "n"))

    cluster.at(3)
    assert "nominatedNodeName" not in cluster.pod("web")["status"]


def test_a_pod_is_tried_again_after_five_minutes(cluster: Cluster) -> None:
    """Even if nothing changed; the next round of thirty seconds costs it its nomination."""
    cluster.create(ready_node("full", cpu="0"), cpu_pod("web"))
    cluster.at(0.1, lambda: nominate(cluster, "web", "n"))

    cluster.at(299)
    assert "n" == cluster.pod("web")["status"]["nominatedNodeName"]
    cluster.at(331)
    assert "nominatedNodeName" not in cluster.pod("web")["status"]


@pytest.mark.parametrize("value, is_within", [("8", True), ("1_0", False), ("9" * 20, False), ("large", False)])
def test_bounds_hold_of_numbers_of_64_bits_alone(value: str, is_within: bool) -> None:
    """As strconv.ParseInt reads the label of a node."""
    assert is_within is Expression("size", "Gt", frozenset({"7"})).holds({"size": value})
