"""What the admission policies of Kerf do with new pods, and how their gates are opened."""

import pytest

from kerf.errors import ApiError
from kerf.model.opportunistic import OPPORTUNISTIC, PRIORITY_CLASS
from kerf.model.windows import ADMITTED, WINDOW_GATE, WINDOW_LABEL
from kerf.ports import Conflict
from tests.conformance.cluster import Cluster, obj, rules
from tests.conformance.raw_api import Json

RULES, rule = rules()


def made(cluster: Cluster, labels: dict[str, str], **spec: object) -> Json:
    """A pod with these labels, as it is stored."""
    containers = [{"name": "main", "image": "none"}]
    return cluster.create(obj("v1", "Pod", "p", {"containers": containers, **spec}, labels=labels))


def gates(pod: Json) -> list[str]:
    """The names of its scheduling gates."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]


def tolerated(pod: Json) -> list[tuple[str, str]]:
    """Key and value of what it tolerates of windows."""
    held = pod["spec"].get("tolerations") or ()
    return [(each["key"], each["value"]) for each in held if each.get("key") == WINDOW_LABEL]


@rule
def a_pod_for_a_window_is_held_and_tolerates_its_nodes(cluster: Cluster) -> None:
    """The gate is added beside those of others, and no scheduler looks at the pod."""
    pod = made(cluster, {WINDOW_LABEL: "morning"}, schedulingGates=[{"name": "example.com/other"}])

    assert (["example.com/other", WINDOW_GATE], [(WINDOW_LABEL, "morning")]) == (gates(pod), tolerated(pod))
    assert ["SchedulingGated"] == [c["reason"] for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"]


@rule
def a_gate_of_the_users_own_is_not_doubled(cluster: Cluster) -> None:
    """On servers without the policies it stands in the template."""
    pod = made(cluster, {WINDOW_LABEL: "morning"}, schedulingGates=[{"name": WINDOW_GATE}])

    assert [WINDOW_GATE] == gates(pod)


@rule
def other_pods_are_let_alone(cluster: Cluster) -> None:
    """No label, no gate."""
    assert [] == gates(made(cluster, {"app": "web"}))


@rule
def a_pod_that_names_its_node_is_not_held(cluster: Cluster) -> None:
    """A gate beside a node name is refused by the API, so that DaemonSets and static pods would break."""
    assert [] == gates(made(cluster, {WINDOW_LABEL: "morning"}, nodeName="somewhere"))


@rule
def an_opportunistic_pod_is_held_and_ranks_below_all_others(cluster: Cluster) -> None:
    """By the PriorityClass that comes with the policies."""
    pod = made(cluster, {OPPORTUNISTIC: "true"}, priorityClassName=PRIORITY_CLASS)

    assert ([OPPORTUNISTIC], -100, "Never") == (gates(pod), pod["spec"]["priority"], pod["spec"]["preemptionPolicy"])


@rule
def an_opportunistic_pod_without_the_class_is_refused(cluster: Cluster) -> None:
    """It would rank with those that it is to give way to."""
    with pytest.raises(ApiError, match=f"must have priorityClassName {PRIORITY_CLASS}"):
        made(cluster, {OPPORTUNISTIC: "true"})


@rule
def both_labels_give_both_gates(cluster: Cluster) -> None:
    """An opportunistic pod of a window waits for both."""
    pod = made(cluster, {OPPORTUNISTIC: "true", WINDOW_LABEL: "x"}, priorityClassName=PRIORITY_CLASS)

    assert {OPPORTUNISTIC, WINDOW_GATE} == set(gates(pod))


@rule
def a_gate_is_opened_alone_and_noted(cluster: Cluster) -> None:
    """That of another owner stays; the second opener is told that it came too late."""
    made(cluster, {WINDOW_LABEL: "morning"}, schedulingGates=[{"name": "example.com/other"}])
    pod = cluster.pod("p")
    cluster.write(lambda writer: writer.open_gates(pod, [WINDOW_GATE], {ADMITTED: "morning"}))
    opened = cluster.get("Pod", "p")

    assert (["example.com/other"], "morning") == (gates(opened), opened["metadata"]["annotations"][ADMITTED])
    with pytest.raises(Conflict):
        cluster.write(lambda writer: writer.open_gates(pod, [WINDOW_GATE], {ADMITTED: "morning"}))


@rule
def labels_that_come_later_change_nothing(cluster: Cluster) -> None:
    """A gate can be given at creation only, and stays when the label goes."""
    made(cluster, {WINDOW_LABEL: "morning"})
    patch = {"metadata": {"labels": {WINDOW_LABEL: None}}}

    assert [WINDOW_GATE] == gates(cluster.patch("Pod", "p", patch))
