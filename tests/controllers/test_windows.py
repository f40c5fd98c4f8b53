"""The controllers of windows, beside provisioning: what is written, in which order, and what a crash leaves."""

from typing import Any

from kerf.controllers.provisioning import Provisioning
from kerf.controllers.windows import CapacityWindows
from kerf.model.windows import ADMITTED, EVICTION_FINALIZER, WINDOW_GATE, WINDOW_LABEL, CapacityWindow
from kerf.sim.objects import Json
from tests.controllers.cluster import Cluster, pod, pool

GATED = "Scheduling is blocked due to non-empty scheduling gates"


def window(name: str = "w", *, opens: str = "0 * * * *", **spec: Any) -> Json:
    """Open for half an hour from each full hour, which is when the test's clock starts."""
    selector = {"matchLabels": {WINDOW_LABEL: name}}
    given = {"schedule": opens, "duration": "30m", "leadTime": "5m", "pods": {"selector": selector}, **spec}
    return {"apiVersion": "kerf.dev/v1alpha1", "kind": "CapacityWindow", "metadata": {"name": name}, "spec": given}


def held(name: str = "p", **given: Any) -> Json:
    """A pod for the window."""
    return pod(name, refused=GATED, labels={WINDOW_LABEL: "w"}, **given)


def gates(cluster: Cluster, name: str = "p") -> list[str]:
    """The gates that a pod still has."""
    return list(cluster.pod(name).spec.scheduling_gates)


def status(cluster: Cluster, name: str = "w") -> CapacityWindow:
    """The window as it is written."""
    value = cluster._read("CapacityWindow", "", name)
    assert isinstance(value, CapacityWindow)
    return value


def start(cluster: Cluster) -> None:
    """Kerf's two controllers."""
    windows = CapacityWindows(cluster.state, cluster.ports, cluster.book, cluster.settings)
    plans = Provisioning(cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings)
    cluster.start(windows, plans)


def test_a_gate_opens_once_a_place_has_been_asked_for(cluster: Cluster) -> None:
    """First the claim, then the gate, with the opening that it was opened in."""
    cluster.put(pool(), window(), held())
    start(cluster)
    cluster.at(2)
    written = [change.obj for change in cluster.api.events if change.obj["kind"] in ("NodeClaim", "Pod")]

    assert ([], "w@2026-01-05T07:00:00Z") == (gates(cluster), cluster.pod().annotations[ADMITTED])
    assert ["NodeClaim", "Pod"] == [obj["kind"] for obj in written[-2:]]


def test_a_gate_of_another_owner_is_never_touched(cluster: Cluster) -> None:
    """And ours stays as long as that one does."""
    cluster.put(pool(), window(), held(schedulingGates=[{"name": "example.com/other"}]))
    start(cluster)
    cluster.at(20)

    assert (["example.com/other", WINDOW_GATE], []) == (gates(cluster), cluster.names("NodeClaim"))


def test_a_reservation_is_written_before_its_gate_opens(cluster: Cluster) -> None:
    """So that no crash in between lets a pod use what nobody counted."""
    cluster.put(pool(), window(quota={"gpuHours": "1"}), held())
    start(cluster)
    cluster.at(2)
    kinds = [
        change.obj["kind"]
        for change in cluster.api.events
        if change.obj.get("status", {}).get("reservations") or ADMITTED in change.obj["metadata"].get("annotations", {})
    ]

    assert ["CapacityWindow", "Pod"] == kinds[:2]
    assert [("default/p", 10_000)] == [(r.pod, r.share) for r in status(cluster).status.reservations]


def test_an_opener_that_died_after_reserving_is_followed_by_one_that_opens(cluster: Cluster) -> None:
    """With what was reserved: the quota holds one pod, and that one is let in."""
    cluster.put(pool(), held())
    instants = {"opensAt": "2026-01-05T07:00:00Z", "closesAt": "2026-01-05T07:30:00Z"}
    reserved = {"share": 10_000, "since": instants["opensAt"], "until": instants["closesAt"]}
    left = [{"namespace": "default", "name": "p", "uid": cluster.pod().uid, **reserved}]
    begun = {"phase": "Open", "lastOpenedAt": instants["opensAt"], "observedGeneration": 1, **instants}
    cluster.put({**window(quota={"gpuHours": "500m"}), "status": {**begun, "reservations": left}})
    start(cluster)
    cluster.at(15)

    assert (1, []) == (len(status(cluster).status.reservations), gates(cluster))


def test_pods_that_still_wait_at_the_end_go_back_behind_the_gate(cluster: Cluster) -> None:
    """Their controller makes them anew, held; one that nobody would make again is left and reported."""
    cluster.put(pool(), window(), held("owned", owner="ReplicaSet"), held("bare"))
    start(cluster)
    cluster.at(30 * 60 + 1)

    assert ["bare"] == [name for name in cluster.names("Pod") if name in ("owned", "bare")]
    assert "no controller would make it again" in cluster.said("WindowClosed")[-1]


def test_a_budget_holds_until_the_deadline(cluster: Cluster) -> None:
    """With Evict: then the pod goes with its own grace."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {WINDOW_LABEL: "w"}}},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
    }
    notes = {ADMITTED: "w@2026-01-05T07:00:00Z"}
    running = pod("p", node="node-1", labels={WINDOW_LABEL: "w"}, annotations=notes)
    cluster.put(pool(), window(atEnd="Evict", evictionDeadline="10m"), budget)
    cluster.running()
    cluster.put(running)
    start(cluster)
    cluster.at(39 * 60)
    before = cluster.pod().deleted_s
    cluster.at(41 * 60)

    assert (None, True) == (before, cluster.pod().deleted_s is not None)


def test_one_bad_window_does_not_stop_the_others(cluster: Cluster) -> None:
    """Its condition says what is wrong, its pods are held, and the good one opens."""
    bad = window("bad", opens="0 25 * * *")
    cluster.put(pool(), bad, window(), held(), pod("q", refused=GATED, labels={WINDOW_LABEL: "bad"}))
    start(cluster)
    cluster.at(2)
    ready = status(cluster, "bad").status.condition("Ready")

    assert ready is not None
    assert ("False", "Invalid") == (ready.status, ready.reason)
    assert ([], [WINDOW_GATE]) == (gates(cluster), gates(cluster, "q"))


def test_a_lead_time_is_learned_from_nodes_that_joined(cluster: Cluster) -> None:
    """Also after a restart, and also when the nodes have gone."""
    cluster.put(pool(), window(leadTime=None))
    cluster.running()
    start(cluster)
    cluster.at(1)
    cluster.crash()
    cluster.remove("NodeClaim", "gpu-1")
    start(cluster)
    cluster.at(30)

    assert ((("gpu-1", 0),), 60) == (status(cluster).status.lead_times_s, status(cluster).status.lead_time_s)


def running_in_the_window(name: str = "p") -> Json:
    """A pod that the present opening has admitted and that runs."""
    notes = {ADMITTED: "w@2026-01-05T07:00:00Z"}
    return pod(name, node="node-1", labels={WINDOW_LABEL: "w"}, annotations=notes)


def finalizers(cluster: Cluster, name: str = "w") -> tuple[str, ...]:
    """What holds the window."""
    return status(cluster, name).finalizers


def test_a_window_that_is_deleted_while_open_still_evicts(cluster: Cluster) -> None:
    """Its spec says how its pods end, so it stays until they have; also where Kerf was started again meanwhile."""
    cluster.put(pool(), window(atEnd="Evict"))
    cluster.running()
    cluster.put(running_in_the_window())
    start(cluster)
    cluster.at(60)
    cluster.crash()
    cluster.api.delete("CapacityWindow", "", "w")
    start(cluster)
    cluster.at(120)

    assert ((EVICTION_FINALIZER,), True) == (finalizers(cluster), cluster.pod().deleted_s is not None)
    cluster.at(130, lambda: cluster.api.delete("Pod", "default", "p", grace_s=0))
    assert cluster.api.get("CapacityWindow", "", "w") is None


def test_a_deleted_window_whose_pods_may_finish_is_gone_at_once(cluster: Cluster) -> None:
    """Nothing holds it, and its pods run on."""
    cluster.put(pool(), window())
    cluster.running()
    cluster.put(running_in_the_window())
    start(cluster)
    cluster.at(60)
    cluster.api.delete("CapacityWindow", "", "w")
    cluster.at(120)

    assert (None, None) == (cluster.api.get("CapacityWindow", "", "w"), cluster.pod().deleted_s)


def test_nothing_holds_a_window_that_is_closed(cluster: Cluster) -> None:
    """The finalizer goes with the last pod that it evicts; one that waits for its author holds nothing."""
    cluster.put(pool(), window(atEnd="Evict"), held("bare"))
    start(cluster)
    cluster.at(60)
    opened = finalizers(cluster)
    cluster.at(30 * 60 + 1)

    assert ((EVICTION_FINALIZER,), ()) == (opened, finalizers(cluster))
