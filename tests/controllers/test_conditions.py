"""When a node may go, and what a pool counts."""

from itertools import groupby
from typing import Any

import pytest

from kerf.controllers.conditions import Consolidatable, OverlayStatus, PodEvents, PoolStatus, digest
from kerf.model.nodeclaim import PODS_SEEN
from kerf.sim.objects import Json
from tests.controllers.cluster import Cluster, pod, pool
from tests.sim.world import START_S


def start(cluster: Cluster, *pods: Json, after: str = "30s", **claim_given: Any) -> None:
    """A node with these pods, its pool, and the controllers of this room."""
    cluster.put(pool(disruption={"consolidateAfter": after}))
    cluster.running(1, **claim_given)
    cluster.put(*pods)
    begin(cluster)


def begin(cluster: Cluster) -> None:
    """The controllers, also a second life of them."""
    parts = (cluster.state, cluster.ports)
    cluster.start(PodEvents(*parts), Consolidatable(*parts), PoolStatus(*parts))


def event_at(cluster: Cluster) -> float | None:
    """lastPodEventTime in seconds since the start; None when there is none."""
    last = cluster.claim().last_pod_event_s
    return None if last is None else last - START_S


def test_a_pod_that_comes_or_goes_is_noted(cluster: Cluster) -> None:
    """On the claim of its node."""
    start(cluster)
    assert event_at(cluster) is None
    cluster.at(20)
    cluster.put(pod(node="node-1"))
    assert 20 == event_at(cluster)

    cluster.at(50)
    cluster.remove("Pod", "p")
    assert 50 == event_at(cluster)


def test_a_pod_that_ends_has_left(cluster: Cluster) -> None:
    """A Job's pod stays in the API when it has succeeded."""
    start(cluster, pod(node="node-1"))
    cluster.at(60)
    cluster.change("Pod", "p", status={"phase": "Succeeded"})

    assert 60 == event_at(cluster)


def test_the_time_is_written_at_most_every_ten_seconds(cluster: Cluster) -> None:
    """Twenty pods in twenty seconds make two writes."""
    start(cluster)
    seen = []
    for second in range(20, 40):
        cluster.at(second)
        cluster.put(pod(f"p{second}", node="node-1"))
        seen.append(event_at(cluster))

    assert [20.0] * 10 + [30.0] * 10 == seen


def test_the_pods_of_a_burst_are_noted_as_seldom_and_the_last_note_has_them_all(cluster: Cluster) -> None:
    """Twenty pods in twenty seconds make three notes."""
    start(cluster)
    notes = []
    for second in range(20, 60):
        cluster.at(second)
        if second < 40:
            cluster.put(pod(f"p{second}", node="node-1"))
        notes.append(cluster.claim().annotations[PODS_SEEN])

    assert [10, 10, 20] == [len(list(alike)) for _, alike in groupby(notes)]
    assert digest(cluster.pod(f"p{second}").uid for second in range(20, 40)) == notes[-1]


def test_a_burst_that_a_crash_cuts_off_is_seen_to_its_end(cluster: Cluster) -> None:
    """What was not noted yet counts as of the next start: the node rests longer, never shorter."""
    start(cluster)
    for second in (20, 22):
        cluster.at(second)
        cluster.put(pod(f"p{second}", node="node-1"))
    cluster.crash()
    cluster.at(35)
    begin(cluster)

    assert 35 == event_at(cluster)


@pytest.mark.parametrize("owner", ["DaemonSet", "Node"])
def test_daemon_pods_do_not_count(cluster: Cluster, owner: str) -> None:
    """They come with every node and go with it."""
    start(cluster)
    cluster.at(20)
    cluster.put(pod(node="node-1", owner=owner))

    assert event_at(cluster) is None


def test_a_change_of_a_pod_is_no_event(cluster: Cluster) -> None:
    """Nor is our own start."""
    start(cluster, pod(node="node-1"))
    cluster.at(20)
    cluster.change("Pod", "p", metadata={"labels": {"a": "b"}})
    cluster.at(40)
    cluster.crash()
    begin(cluster)

    assert 0 == event_at(cluster)


def test_a_pod_that_left_while_kerf_was_down_starts_the_clock(cluster: Cluster) -> None:
    """Else the node would seem to have been idle all the time and would go at once."""
    start(cluster, pod("a", node="node-1"), pod("b", node="node-1"))
    cluster.at(40)
    cluster.crash()
    cluster.remove("Pod", "b")
    cluster.at(100)
    begin(cluster)

    assert 100 == event_at(cluster)


@pytest.mark.parametrize(("after", "since_s"), [("0s", 0), ("30s", 30), ("1h", 3600)])
def test_a_node_may_go_after_consolidate_after(cluster: Cluster, after: str, since_s: float) -> None:
    """From its initialisation on, while no pod comes or goes."""
    start(cluster, after=after)
    if since_s:
        cluster.at(since_s - 1)
        assert not cluster.claim().is_true("Consolidatable")
    cluster.at(since_s)

    assert ("True", "Consolidatable", "") == cluster.condition("Consolidatable")


def test_never_means_never(cluster: Cluster) -> None:
    """`consolidateAfter: Never`."""
    start(cluster, after="Never")
    cluster.at(100_000)

    assert not cluster.claim().is_true("Consolidatable")


def test_a_pod_event_takes_the_condition_away_and_starts_again(cluster: Cluster) -> None:
    """True again a full consolidateAfter later."""
    start(cluster)
    cluster.at(40)
    cluster.put(pod(node="node-1"))
    cluster.at(69)
    assert cluster.claim().condition("Consolidatable") is None

    cluster.at(70)
    assert cluster.claim().is_true("Consolidatable")


def test_a_node_that_is_not_initialised_may_not_go(cluster: Cluster) -> None:
    """However long it takes."""
    start(cluster, reached=("Launched", "Registered"))
    cluster.at(10_000)

    assert cluster.claim().condition("Consolidatable") is None


def test_a_shorter_time_counts_at_once(cluster: Cluster) -> None:
    """A pool that changes is looked at again."""
    start(cluster, after="1h")
    cluster.at(60)
    cluster.change("NodePool", "gpu", spec={"disruption": {"consolidateAfter": "30s"}})

    assert cluster.claim().is_true("Consolidatable")


def test_a_pool_counts_its_claims(cluster: Cluster) -> None:
    """Capacity and nodes, also of those on their way; another pool's do not count."""
    start(cluster)
    cluster.claimed("gpu-2", reached=("Launched",))
    cluster.claimed("other-1", pool="other")

    status = cluster.api.list("NodePool")[0]["status"]
    assert {"cpu": "8", "memory": "32Gi", "nodes": "2", "nvidia.com/gpu": "2", "pods": "116"} == status["resources"]
    assert 2 == status["nodes"]
    assert [("ValidationSucceeded", "True"), ("Ready", "True")] == [
        (c["type"], c["status"]) for c in status["conditions"]
    ]


def test_a_pool_without_its_node_class_says_so(cluster: Cluster) -> None:
    """In a cluster a NodeClass that does not exist is no NodeClass; it is ready when it appears."""
    cluster.state.assumes_node_classes = False
    start(cluster)
    _, before = cluster.api.list("NodePool")[0]["status"]["conditions"]
    cluster.put({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"}})
    _, after = cluster.api.list("NodePool")[0]["status"]["conditions"]

    assert ("False", "NodePoolNotReady") == (before["status"], before["reason"])
    assert "EC2NodeClass" in before["message"]
    assert ("True", "Ready") == (after["status"], after["reason"])


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"limits": {"cpu": "1e1.5"}}, {"ValidationSucceeded": "False", "Ready": "False"}),
        (
            {"disruption": {"budgets": [{"nodes": "1", "schedule": "TZ=UTC 0 9 * * 1", "duration": "1h"}]}},
            {"ValidationSucceeded": "False", "Ready": "True"},
        ),
    ],
)
def test_a_pool_that_cannot_be_carried_out_says_why(
    cluster: Cluster, spec: dict[str, Any], expected: dict[str, str]
) -> None:
    """It takes no nodes, unless only a schedule is broken; when it is mended, both conditions are True."""
    start(cluster)
    cluster.change("NodePool", "gpu", spec=spec)
    conditions = cluster.api.list("NodePool")[0]["status"]["conditions"]
    cluster.change("NodePool", "gpu", spec={"limits": {"cpu": "1"}, "disruption": {"budgets": None}})
    mended = cluster.api.list("NodePool")[0]["status"]["conditions"]

    assert expected == {c["type"]: c["status"] for c in conditions}
    assert "NodePoolValidationFailed" == conditions[0]["reason"]
    assert ": expected " in conditions[0]["message"]
    assert ["True", "True"] == [c["status"] for c in mended]


def test_a_pool_keeps_what_others_say_of_it(cluster: Cluster) -> None:
    """A condition that is not ours to judge."""
    start(cluster)
    theirs = {"type": "NodeRegistrationHealthy", "status": "True", "reason": "Healthy", "message": ""}
    pool_ = cluster.api.get("NodePool", "", "gpu")
    assert pool_ is not None
    kept = [*pool_["status"]["conditions"], {**theirs, "lastTransitionTime": "2026-01-05T07:00:00Z"}]
    cluster.change("NodePool", "gpu", spec={"limits": {"cpu": "1e1.5"}}, status={"conditions": kept})
    conditions = cluster.api.list("NodePool")[0]["status"]["conditions"]

    told = {c["type"]: c["status"] for c in conditions}
    assert {"ValidationSucceeded": "False", "Ready": "False", "NodeRegistrationHealthy": "True"} == told


def test_a_sharing_mode_that_is_none_is_said(cluster: Cluster) -> None:
    """It counts as absent, so that the pool takes nodes as before."""
    start(cluster)
    cluster.change("NodePool", "gpu", metadata={"annotations": {"kerf.dev/gpu-sharing": "maybe"}})
    validated, ready = cluster.api.list("NodePool")[0]["status"]["conditions"]

    assert (
        "annotation kerf.dev/gpu-sharing: expected one of hami, mig, mps, none, time-slicing, whole, got maybe"
        == validated["message"]
    )
    assert ["False", "True"] == [validated["status"], ready["status"]]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a b", ("False", "RuntimeValidation", "spec.requirements[0].values[0]: expected text that is a label value")),
        ("a", ("True", "ValidationSucceeded", "")),
    ],
)
def test_an_overlay_says_whether_it_is_applied(cluster: Cluster, value: str, expected: tuple[str, str, str]) -> None:
    """One that the API took and that cannot be carried out is not, and says why."""
    requirements = [{"key": "a/b", "operator": "In", "values": [value]}]
    named = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "o"}}
    cluster.put({**named, "spec": {"requirements": requirements, "price": "1"}})
    cluster.start(OverlayStatus(cluster.state, cluster.ports, cluster.book))

    validated, ready = cluster.api.list("NodeOverlay")[0]["status"]["conditions"]
    assert expected[:2] == (validated["status"], validated["reason"])
    assert validated["message"].startswith(expected[2])
    assert expected[0] == ready["status"]
