"""G2, G3: when a scheduler's refusal is its last word, what is noted of it, and that the note outlives Kerf."""

import json
from typing import Any

import pytest

from kerf.controllers.lastword import LastWord
from kerf.controllers.provisioning import Provisioning
from kerf.sim.objects import Json
from tests.controllers.cluster import Cluster, pod, pool

CARD = {"nvidia.com/gpu": "1", "cpu": "4", "memory": "16Gi", "pods": "58"}
AGAIN = "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."
MISSING = '0/1 nodes are available: persistentvolumeclaim "data" not found.'


def start(cluster: Cluster) -> None:
    """The controllers, also in a second life."""
    provisioning = Provisioning(cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings)
    cluster.start(provisioning, LastWord(cluster.state, cluster.ports, provisioning.expectations, cluster.settings))


def with_a_node(cluster: Cluster, *pods: Json, plan: str = '{"default/p": [0]}') -> None:
    """A node that was bought for a pod, up since now, and pods that wait."""
    cluster.put(pool())
    cluster.running(1, node={"allocatable": CARD}, annotations={"kerf.dev/planned-pods": plan})
    cluster.put(*pods)
    start(cluster)


def says(cluster: Cluster, message: str, name: str = "p") -> None:
    """The scheduler refuses the pod, and says so."""
    refused = [{"type": "PodScheduled", "status": "False", "message": message}]
    cluster.change("Pod", name, status={"conditions": refused})


def note(cluster: Cluster, name: str = "p") -> dict[str, Any]:
    """What is noted on a pod; empty for nothing."""
    held: dict[str, Any] = json.loads(cluster.pod(name).annotations.get("kerf.dev/rejected", "{}"))
    return held


def test_eleven_minutes_are_two_attempts_whatever_the_api_shows(cluster: Cluster) -> None:
    """kube-scheduler writes nothing when it says the same again; events on pod and claim say it."""
    with_a_node(cluster, pod())
    cluster.at(655)
    assert {} == note(cluster)

    cluster.at(700)
    assert ["node-1"] == note(cluster)["nodes"]
    assert 2 == len(cluster.said("RejectedByScheduler"))


def test_two_new_messages_are_two_attempts_after_two_minutes(cluster: Cluster) -> None:
    """One alone may have begun before the node was up."""
    with_a_node(cluster, pod())
    cluster.at(20, lambda: None)
    says(cluster, AGAIN)
    cluster.at(200)
    assert {} == note(cluster)

    says(cluster, AGAIN.replace("0/1", "0/2"))
    cluster.at(231)
    assert AGAIN.replace("0/1", "0/2") == note(cluster)["said"]


def test_a_pod_that_is_bound_in_time_is_not_rejected(cluster: Cluster) -> None:
    """However often its scheduler said no before."""
    with_a_node(cluster, pod())
    says(cluster, AGAIN)
    cluster.at(100, lambda: cluster.api.bind("default", "p", "node-1"))
    cluster.at(1500)

    assert {} == note(cluster)


def test_a_restart_neither_forgets_the_note_nor_the_time(cluster: Cluster) -> None:
    """The claim says since when its node is up, the pod what was said."""
    with_a_node(cluster, pod())
    cluster.at(500)
    cluster.crash()
    start(cluster)
    cluster.at(700)
    noted = note(cluster)
    cluster.crash()
    start(cluster)
    cluster.at(900)

    assert ["node-1"] == noted["nodes"]
    assert noted == note(cluster)
    assert ["gpu-1"] == cluster.names("NodeClaim")


def test_a_restart_in_the_pause_buys_nothing_and_its_end_buys_one_node(cluster: Cluster) -> None:
    """The first pause is five minutes; the node that was refused is still there, and not taken."""
    with_a_node(cluster, pod())
    cluster.at(700)
    again_s = note(cluster)["again"] - note(cluster)["at"]
    cluster.crash()
    start(cluster)
    cluster.at(950)
    assert ["gpu-1"] == cluster.names("NodeClaim")

    cluster.at(1050)
    assert (300, 2) == (again_s, len(cluster.names("NodeClaim")))


def test_pods_of_one_wave_count_once(cluster: Cluster) -> None:
    """Ten replicas that are rejected together do not make the pause a thousand times as long."""
    pods = [pod(f"p-{number}", owner="ReplicaSet", limits={"cpu": "100m"}) for number in range(10)]
    with_a_node(cluster, *pods)
    cluster.at(700)

    assert {1} == {note(cluster, f"p-{number}")["times"] for number in range(10)}


@pytest.mark.parametrize("times, is_held", [(3, False), (4, True)])
def test_a_workload_that_was_rejected_often_gets_no_try_by_making_its_pods_again(
    cluster: Cluster, times: int, is_held: bool
) -> None:
    """A tenant could buy a node every few minutes otherwise. The first tries are free."""
    with_a_node(cluster, pod(owner="Job"))
    cluster.at(700)
    held = {**note(cluster), "times": times - 1, "again": int(cluster.clock.now_s()), "nodes": []}
    cluster.change("Pod", "p", metadata={"annotations": {"kerf.dev/rejected": json.dumps(held)}})
    cluster.at(1500)
    assert times == note(cluster)["times"]

    cluster.remove("Pod", "p")
    cluster.put(pod("q", owner="Job"))
    cluster.at(1502)
    assert is_held == bool(note(cluster, "q"))


def test_what_the_pod_itself_lacks_is_waited_for_without_a_node(cluster: Cluster) -> None:
    """As long as the scheduler names the claim of a volume no pause ends; once it does not, a node is planned."""
    with_a_node(cluster, pod(refused=MISSING))
    cluster.at(5000)
    assert ["gpu-1"] == cluster.names("NodeClaim")

    says(cluster, AGAIN)
    cluster.at(5015)
    assert 2 == len(cluster.names("NodeClaim"))


def test_a_pod_of_a_group_is_not_rejected_while_the_others_nodes_are_on_their_way(cluster: Cluster) -> None:
    """Its scheduler waits for all of them, and names no node."""
    group = {"kerf.dev/pod-group": "g"}
    with_a_node(cluster, *(pod(name, labels=group, annotations={"kerf.dev/pod-group-min": "2"}) for name in "pq"))
    cluster.at(1500)

    assert 2 == len(cluster.names("NodeClaim"))
    assert {} == note(cluster, "p") == note(cluster, "q")


def test_workloads_of_two_namespaces_have_two_counts(cluster: Cluster) -> None:
    """A tenant's rejections lengthen no other tenant's pause, though the workloads have one name."""
    other = pod("o", owner="ReplicaSet", limits={"cpu": "100m"})
    other["metadata"]["namespace"] = "other"
    mine = pod(owner="ReplicaSet", limits={"cpu": "100m"})
    with_a_node(cluster, mine)
    cluster.at(700)
    cluster.put(other)
    cluster.at(1400)

    raw = cluster.api.get("Pod", "other", "o")
    assert raw is not None
    assert 1 == json.loads(raw["metadata"]["annotations"]["kerf.dev/rejected"])["times"]


LACKING = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
FAST = {"disk": "fast"}


def with_another_node_than_planned(cluster: Cluster, *pods: Json) -> None:
    """A node that was bought for pods that need a label of its pool, which the node does not have."""
    cluster.put(pool(labels=FAST))
    names = json.dumps({f"default/{each['metadata']['name']}": [0] for each in pods})
    cluster.running(1, node={"allocatable": CARD}, annotations={"kerf.dev/planned-pods": names})
    cluster.put(*pods)
    start(cluster)


def choosy(name: str = "p", **given: Any) -> Json:
    """A pod that needs the label."""
    return pod(name, nodeSelector=FAST, refused=LACKING, **given)


def test_no_second_node_is_bought_for_a_pod_that_the_first_one_does_not_help(cluster: Cluster) -> None:
    """The event and the note name the node, what it lacks, and what the scheduler says."""
    with_another_node_than_planned(cluster, choosy())
    cluster.at(20)
    assert ["gpu-1"] == cluster.names("NodeClaim")
    assert any("node node-1 was bought for it and cannot hold it" in said for said in cluster.said("FailedScheduling"))

    cluster.at(200)
    assert ["gpu-1"] == cluster.names("NodeClaim")
    (said,) = (each for each in cluster.said("RejectedByScheduler") if "this pod" in each)
    assert "node node-1 was bought for this pod and cannot hold it: the pod asks disk In [fast]" in said
    assert LACKING in said
    assert ["node-1"] == note(cluster)["nodes"]


def test_after_the_pause_one_more_is_tried_and_the_next_pause_is_longer(cluster: Cluster) -> None:
    """Five minutes, then ten: of a label that nobody sets no node is the last."""
    with_another_node_than_planned(cluster, choosy())
    cluster.at(60)
    first = note(cluster)
    assert 300 == first["again"] - first["at"]

    cluster.at(400)
    (second,) = set(cluster.names("NodeClaim")) - {"gpu-1"}
    ready = [{"type": kind, "status": "True"} for kind in ("Initialized", "Launched", "Ready", "Registered")]
    reached = {"conditions": ready, "nodeName": "node-2", "providerID": "aws:///us-east-1a/i-2"}
    cluster.change("NodeClaim", second, status=reached)
    cluster.joined(cluster.claim(second), "node-2", allocatable=CARD)
    cluster.at(500)
    again = note(cluster)
    assert (["node-1", "node-2"], 600) == (again["nodes"], again["again"] - again["at"])
    assert 2 == len(cluster.names("NodeClaim"))


def test_what_comes_late_helps(cluster: Cluster) -> None:
    """The label is set 20 s later: nothing is noted, and nothing bought."""
    with_another_node_than_planned(cluster, choosy())
    cluster.at(20)
    cluster.change("Node", "node-1", metadata={"labels": FAST})
    cluster.at(200)

    assert {} == note(cluster)
    assert ["gpu-1"] == cluster.names("NodeClaim")


def test_a_node_that_goes_before_it_is_noted_is_noted_then(cluster: Cluster) -> None:
    """An empty node may go at once, and all that is known of it goes along."""
    with_another_node_than_planned(cluster, choosy())
    cluster.at(5)
    cluster.remove("NodeClaim", "gpu-1")
    cluster.at(30)

    assert ["node-1"] == note(cluster)["nodes"]
    assert ["gpu-1"] == cluster.names("NodeClaim")


def test_equal_pods_wait_with_it_and_others_do_not(cluster: Cluster) -> None:
    """Another replica would get such a node too; a pod that needs no label gets one."""
    with_another_node_than_planned(cluster, choosy(owner="ReplicaSet"))
    cluster.at(60)
    cluster.put(choosy("q", owner="ReplicaSet"))
    cluster.at(80)
    assert ["gpu-1"] == cluster.names("NodeClaim")

    cluster.put(pod("plain"), pod("more"))
    cluster.at(100)
    assert 2 == len(cluster.names("NodeClaim"))


def test_a_node_whose_room_others_have_taken_says_nothing_against_another(cluster: Cluster) -> None:
    """It was as planned: a second one is bought."""
    cluster.put(pool())
    cluster.running(1, node={"allocatable": CARD}, annotations={"kerf.dev/planned-pods": '{"default/p": [0]}'})
    cluster.put(pod("thief", node="node-1"), pod())
    start(cluster)
    cluster.at(20)

    assert 2 == len(cluster.names("NodeClaim"))
