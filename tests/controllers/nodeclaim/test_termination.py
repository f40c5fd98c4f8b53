"""The end of a claim: who is evicted when, what may hold it up, and what is let go in which order."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kerf.cloudprovider import Instance
from kerf.clouds.fake import FakeCloud, Latencies
from kerf.controllers.nodeclaim.lifecycle import Lifecycle
from kerf.model.nodeclaim import (
    DISRUPTED_TAINT,
    DISRUPTION_REASON,
    DO_NOT_DISRUPT,
    DRAINED,
    EXCLUDED_FROM_LOAD_BALANCERS,
    GPUS_HEALTHY,
    INSTANCE_TERMINATING,
    LAUNCHED,
    READY,
    REGISTERED,
    TERMINATION_FINALIZER,
    TERMINATION_TIMESTAMP,
    TRUE,
    UNHEALTHY,
    VOLUMES_DETACHED,
    Condition,
)
from kerf.model.quantities import Resources
from kerf.model.times import instant_text
from kerf.sim.objects import Json
from tests.clouds.market import MARKET
from tests.controllers.cluster import STAGES, Cluster, pod, pool
from tests.sim.world import START_S, budget

CRITICAL = "system-node-critical"
WEB = {"labels": {"app": "web"}}


def going(cluster: Cluster, *pods: Json, node: Json | None = None, **claim_given: Any) -> None:
    """A node with these pods whose claim is deleted while its lifecycle runs."""
    cluster.put(pool(), *pods)
    cluster.running(1, node=node, **claim_given)
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))
    cluster.remove("NodeClaim", "gpu-1")


def here(name: str, **given: Any) -> Json:
    """A pod on the node that goes."""
    return pod(name, node="node-1", **given)


def leaving(cluster: Cluster) -> list[str]:
    """The pods that were asked to end and are still there."""
    return [obj["metadata"]["name"] for obj in cluster.api.list("Pod") if "deletionTimestamp" in obj["metadata"]]


def test_everything_goes_in_order(cluster: Cluster) -> None:
    """Taint, pods, instance until the cloud no longer knows it, node, claim."""
    going(cluster, here("a"))
    assert (DISRUPTED_TAINT,) == cluster.node().taints
    cluster.at(7)
    cluster.remove("Pod", "a")
    assert cluster.cloud.is_terminating(cluster.claim().provider_id)
    assert (["node-1"], ["gpu-1"]) == (cluster.names("Node"), cluster.names("NodeClaim"))

    cluster.at(12.5)
    assert ([], [], ()) == (cluster.names("Node"), cluster.names("NodeClaim"), cluster.cloud.instances)
    removed = [change.obj["kind"] for change in cluster.api.events if change.type == "DELETED"]
    assert ["Pod", "Node", "NodeClaim"] == removed
    assert ["instance and node node-1 are gone"] == cluster.said("Terminated")


def test_a_node_that_waits_for_a_finalizer_of_others_is_not_said_to_be_gone(cluster: Cluster) -> None:
    """Its instance is, so its claim goes."""
    going(cluster, node={"finalizers": (TERMINATION_FINALIZER, "example.com/hold")})
    cluster.at(30)

    assert (["node-1"], []) == (cluster.names("Node"), cluster.names("NodeClaim"))
    said = "the instance is gone; node node-1 waits for the finalizers of others: example.com/hold"
    assert [said] == cluster.said("Terminated")


def test_pods_are_evicted_tier_by_tier(cluster: Cluster) -> None:
    """Ordinary ones, then daemons, then critical ones, then critical daemons; all of a tier at once."""
    daemon = {"owner": "DaemonSet"}
    pods = [here("a"), here("b"), here("c", **daemon), here("d", priorityClassName=CRITICAL)]
    going(cluster, *pods, here("e", priorityClassName=CRITICAL, **daemon))
    seen = []
    while leaving(cluster):
        seen.append(leaving(cluster))
        for name in seen[-1]:
            cluster.remove("Pod", name)
        cluster.at(cluster.now_s + 5)

    assert [["a", "b"], ["c"], ["d"], ["e"]] == seen
    assert ["Evicted pod: its node is terminated"] * 5 == cluster.said("Evicted")


@pytest.mark.parametrize(
    "stays",
    [
        here("a", owner="Node"),
        here("a", tolerations=[{"operator": "Exists"}]),
        here("a", tolerations=[{"key": "karpenter.sh/disrupted", "operator": "Exists"}]),
    ],
    ids=["static", "tolerates everything", "tolerates the disruption"],
)
def test_pods_that_nothing_waits_for(cluster: Cluster, stays: Json) -> None:
    """They are not evicted; the node goes under them."""
    going(cluster, stays)
    cluster.at(10)

    assert ([], [], []) == (leaving(cluster), cluster.names("NodeClaim"), cluster.said("Evicted"))


def test_a_budget_holds_a_drain_up(cluster: Cluster) -> None:
    """People are told, and it is tried again until the budget allows it."""
    going(cluster, here("a", **WEB), budget(minAvailable=1))
    cluster.at(60)
    assert ([], ["gpu-1"]) == (leaving(cluster), cluster.names("NodeClaim"))
    answer = "cannot evict pod a: the disruption budget web needs 1 healthy pods and has 1 currently"
    held = f'pod default/a is held by PodDisruptionBudget web, which allows no eviction now ("{answer}")'
    freed = "to free it: another ready pod that the budget covers, or a budget that allows more"
    said = f"Failed to drain node, 1 pods are waiting to be evicted: {held}; {freed}"
    assert [said] == cluster.said("FailedDraining")
    assert ("Unknown", "Draining", f"{held}; {freed}") == cluster.condition(DRAINED)

    cluster.at(60, lambda: cluster.api.delete("PodDisruptionBudget", "default", "web"))
    cluster.at(65)
    assert ["a"] == leaving(cluster)


def test_the_grace_period_of_a_pool_ends_what_a_budget_forbids(cluster: Cluster) -> None:
    """terminationGracePeriod 5 min: the pod is deleted when its own 30 s still end in time."""
    going(cluster, here("a", **WEB), budget(minAvailable=1), termination_grace_period_s=300)
    cluster.at(269)
    assert [] == leaving(cluster)

    cluster.at(270)
    assert ["a"] == leaving(cluster)
    ends = instant_text(START_S + 300)
    assert [f"All pods will be deleted by {ends}"] * 2 == cluster.said("TerminationGracePeriodExpiring")
    text = f"Deleting the pod to accommodate the terminationTime {ends} of the node; it has 30 of its 30 "
    text += "terminationGracePeriodSeconds, and neither its budget nor do-not-disrupt counts"
    assert [text] == cluster.said("Disrupted")


def test_an_answer_of_429_is_waited_for_longer_each_time(cluster: Cluster) -> None:
    """After 1 s, 2, 4, 8, then every 10 s, however often something else wakes the drain."""
    going(cluster, here("a", **WEB), here("b", owner="DaemonSet"), budget(minAvailable=1))
    asked, evict = [], cluster.api.evict

    def counted(namespace: str, name: str) -> None:
        asked.append(cluster.now_s)
        evict(namespace, name)

    cluster.api.evict = counted  # type: ignore[method-assign]
    for second in range(1, 46):
        cluster.at(second)
        cluster.change("NodeClaim", "gpu-1", metadata={"labels": {"second": str(second)}})

    assert [1, 3, 7, 15, 25, 35, 45] == asked


def test_a_budget_that_holds_a_drain_for_a_day_lets_the_others_go(cluster: Cluster) -> None:
    """However often the API has refused one pod, it is asked again, and a pod that comes later goes."""
    going(cluster, here("a", **WEB), budget(minAvailable=1))
    cluster.at(86_400)
    cluster.put(here("b"))
    cluster.at(86_420)
    assert ["b"] == leaving(cluster)

    cluster.at(86_430, lambda: cluster.api.delete("PodDisruptionBudget", "default", "web"))
    cluster.at(86_440)
    assert ["a", "b"] == sorted(leaving(cluster))


def test_do_not_disrupt_holds_a_drain_for_ever(cluster: Cluster) -> None:
    """And with it daemons. The claim says which pod it is and how it is freed; then it goes on at once."""
    marked = here("a", annotations={DO_NOT_DISRUPT: "true"})
    going(cluster, marked, here("b"), here("c", owner="DaemonSet"))
    cluster.remove("Pod", "b")
    cluster.at(1200)
    assert ([], ["gpu-1"]) == (leaving(cluster), cluster.names("NodeClaim"))
    text = 'pod default/a has "karpenter.sh/do-not-disrupt" annotation; '
    text += "to free it: kubectl annotate pod -n default a karpenter.sh/do-not-disrupt-"
    assert ("Unknown", "Draining", text) == cluster.condition(DRAINED)

    cluster.change("Pod", "a", metadata={"annotations": {DO_NOT_DISRUPT: None}})
    cluster.at(1205)
    assert ["a"] == leaving(cluster)


def test_do_not_disrupt_for_a_time_holds_a_drain_as_long(cluster: Cluster) -> None:
    """Counted from the pod's start, here its creation."""
    going(cluster, here("a", annotations={DO_NOT_DISRUPT: "2m"}))
    cluster.at(119)
    assert [] == leaving(cluster)

    cluster.at(120)
    assert ["a"] == leaving(cluster)


def test_a_pod_that_several_budgets_cover_is_never_asked_for(cluster: Cluster) -> None:
    """The API would answer with an error each time; the others go."""
    other = budget(minAvailable=0)
    other["metadata"]["name"] = "another"
    going(cluster, here("a", **WEB), here("b"), budget(minAvailable=0), other)

    assert ["b"] == leaving(cluster)
    assert "covered by PodDisruptionBudgets another, web" in cluster.said("FailedDraining")[0]


def test_the_end_of_a_node_waits_for_no_tier(cluster: Cluster) -> None:
    """A critical pod with 200 s of grace is deleted at 100 s of 300, although an ordinary one is still there.

    One that wants more than is left gets what is left, and never less than a second.
    """
    long, longer = {"terminationGracePeriodSeconds": 200}, {"terminationGracePeriodSeconds": 900}
    protected = {DO_NOT_DISRUPT: "true"}
    pods = [here("a", annotations=protected), here("b", priorityClassName=CRITICAL, **long), here("c", **longer)]
    going(cluster, *pods, termination_grace_period_s=300)
    assert ["c"] == leaving(cluster)
    assert START_S + 300 == cluster.pod("c").deleted_s

    cluster.at(100)
    assert ["b", "c"] == leaving(cluster)
    cluster.at(270)
    assert ["a", "b", "c"] == leaving(cluster)


def test_the_termination_time_is_written_when_a_deletion_begins(cluster: Cluster) -> None:
    """RFC 3339; without a grace period there is none."""
    going(cluster, here("a"), termination_grace_period_s=300)
    assert instant_text(START_S + 300) == cluster.claim().annotations[TERMINATION_TIMESTAMP]


@pytest.mark.parametrize(
    ("condition", "grace_s", "ends_s"),
    [("Ready", None, 600), ("AcceleratedHardwareReady", None, 300), ("Ready", 60, 60), (GPUS_HEALTHY, None, None)],
)
def test_the_drain_of_a_broken_node_has_an_end(
    cluster: Cluster, condition: str, grace_s: int | None, ends_s: int | None
) -> None:
    """That of its condition, or its own where that is sooner. A broken card alone ends none."""
    said = (Condition(DISRUPTION_REASON, TRUE, "Unhealthy"), Condition(UNHEALTHY, TRUE, condition))
    stages = tuple(Condition(stage, TRUE, stage, since_s=START_S) for stage in STAGES)
    marked = here("a", annotations={DO_NOT_DISRUPT: "true"})
    going(cluster, marked, conditions=(*stages, *said), termination_grace_period_s=grace_s)

    written = cluster.claim().annotations.get(TERMINATION_TIMESTAMP)
    assert (None if ends_s is None else instant_text(START_S + ends_s)) == written
    cluster.at((ends_s or 3600) - 31)
    assert [] == leaving(cluster)
    cluster.at((ends_s or 3600) - 30)
    assert ([] if ends_s is None else ["a"]) == leaving(cluster)


def test_a_broken_node_that_goes_for_another_reason_has_no_such_end(cluster: Cluster) -> None:
    """A person deletes it: what they forbid on a pod still counts."""
    stages = tuple(Condition(stage, TRUE, stage, since_s=START_S) for stage in STAGES)
    going(cluster, here("a"), conditions=(*stages, Condition(UNHEALTHY, TRUE, "Ready")))
    assert TERMINATION_TIMESTAMP not in cluster.claim().annotations


def test_without_a_grace_period_there_is_no_termination_time(cluster: Cluster) -> None:
    """Nothing ends the drain."""
    going(cluster, here("a"))
    assert TERMINATION_TIMESTAMP not in cluster.claim().annotations


@pytest.mark.parametrize("grace_s", [None, 3600])
def test_a_termination_time_that_is_there_already_decides(cluster: Cluster, grace_s: int | None) -> None:
    """Whoever wrote it, also where the spec says another, or none."""
    held = {TERMINATION_TIMESTAMP: instant_text(START_S + 60)}
    going(cluster, here("a", **WEB), budget(minAvailable=1), annotations=held, termination_grace_period_s=grace_s)
    cluster.at(29)
    assert [] == leaving(cluster)

    cluster.at(30)
    assert (["a"], held) == (leaving(cluster), dict(cluster.claim().annotations))


@pytest.mark.parametrize("grace_s, written", [(None, "soon"), (300, instant_text(START_S + 300))])
def test_a_termination_time_that_cannot_be_read_counts_as_absent(
    cluster: Cluster, grace_s: int | None, written: str
) -> None:
    """It is said on the claim; where the spec has a grace period, that is written in its place."""
    annotations = {TERMINATION_TIMESTAMP: "soon"}
    going(cluster, here("a"), annotations=annotations, termination_grace_period_s=grace_s)

    assert written == cluster.claim().annotations[TERMINATION_TIMESTAMP]
    text = f"annotation {TERMINATION_TIMESTAMP} counts as absent: expected an instant such as 2026-01-05T08:00:00Z"
    text += ", got soon"
    assert [text] == cluster.said("NotUnderstood")


def test_a_node_that_goes_gets_no_traffic_of_load_balancers(cluster: Cluster) -> None:
    """By Kubernetes' own label, which service controllers read; one that is there stays as it is."""
    going(cluster, here("a"))
    assert "karpenter" == cluster.node().labels[EXCLUDED_FROM_LOAD_BALANCERS]


def test_a_drain_lasts_five_seconds_at_least(cluster: Cluster) -> None:
    """A pod may have been bound to it before its scheduler saw the taint."""
    going(cluster)
    cluster.at(4)
    assert (False, ("Unknown", "Draining", "")) == (cluster.is_ending(), cluster.condition(DRAINED))
    cluster.put(here("late"))
    cluster.at(5)
    assert ["late"] == leaving(cluster)

    cluster.remove("Pod", "late")
    assert (True, ("True", DRAINED, "")) == (cluster.is_ending(), cluster.condition(DRAINED))
    assert ("True", VOLUMES_DETACHED, "") == cluster.condition(VOLUMES_DETACHED)
    assert ("True", INSTANCE_TERMINATING, "") == cluster.condition(INSTANCE_TERMINATING)


def attachment(name: str, volume: str | None, node: str = "node-1") -> Json:
    """A VolumeAttachment of a PersistentVolume, or of a volume that its pod states."""
    source: Json = {"inlineVolumeSpec": {}} if volume is None else {"persistentVolumeName": volume}
    spec = {"attacher": "ebs.csi.aws.com", "nodeName": node, "source": source}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"attached": True},
    }


def mounted(claim: str, volume: str) -> tuple[Json, Json]:
    """A bound PersistentVolumeClaim, and the field of a pod's spec that mounts it."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": volume}
    metadata = {"name": claim, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    mount = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}, mount


def test_volumes_are_detached_before_the_instance_goes(cluster: Cluster) -> None:
    """Else the pods that moved would wait for minutes for their volumes; nothing else is waited for.

    Not a volume of a pod that stays until the end, nor one without a PersistentVolume, nor another node's.
    """
    claim, mount = mounted("logs", "pv-logs")
    stays = here("stays", tolerations=[{"operator": "Exists"}], **mount)
    others = attachment("b", "pv-logs"), attachment("c", None), attachment("d", "pv-1", node="elsewhere")
    going(cluster, claim, stays, attachment("a", "pv-data"), *others)
    cluster.at(600)
    assert (False, ("True", DRAINED, "")) == (cluster.is_ending(), cluster.condition(DRAINED))
    text = "VolumeAttachments a are still there"
    assert ("Unknown", "AwaitingVolumeDetachment", text) == cluster.condition(VOLUMES_DETACHED)
    assert "Awaiting deletion of VolumeAttachments bound to node: a" == cluster.said("AwaitingVolumeDetachment")[0]

    cluster.remove("VolumeAttachment", "a")
    assert (True, ("True", VOLUMES_DETACHED, "")) == (cluster.is_ending(), cluster.condition(VOLUMES_DETACHED))


def test_the_end_of_a_node_waits_for_no_volume(cluster: Cluster) -> None:
    """A driver that is gone detaches nothing."""
    going(cluster, attachment("a", "pv-data"), termination_grace_period_s=60)
    cluster.at(59)
    assert not cluster.is_ending()

    cluster.at(60)
    said = ("False", "TerminationGracePeriodElapsed", "VolumeAttachments a were still there")
    assert (True, said) == (cluster.is_ending(), cluster.condition(VOLUMES_DETACHED))


def test_a_node_whose_instance_is_gone_waits_for_nothing(cluster: Cluster) -> None:
    """It is not ready and the cloud has no such instance: no kubelet ends its pods any more."""
    cluster.put(pool(), here("a", annotations={DO_NOT_DISRUPT: "true"}))
    claim = cluster.running(1, node={"is_ready": False})
    cluster.done(cluster.cloud.delete(claim.provider_id))
    cluster.at(6)
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))
    cluster.remove("NodeClaim", "gpu-1")

    assert ([], [], 6) == (cluster.names("NodeClaim"), cluster.names("Node"), cluster.now_s)


def test_a_node_that_is_not_ready_is_drained_while_its_instance_is_there(cluster: Cluster) -> None:
    """Its pods may run still; those that nobody ends are stuck a minute after their grace."""
    going(cluster, here("a"), node={"is_ready": False})
    assert ["a"] == leaving(cluster)
    cluster.at(89)
    assert not cluster.is_ending()

    cluster.at(90)
    assert cluster.is_ending()


def test_a_node_that_never_served_waits_for_nothing(cluster: Cluster) -> None:
    """It has never become ready."""
    going(cluster, here("a"), node={"is_ready": False}, reached=(LAUNCHED, REGISTERED))
    cluster.at(10)

    assert ([], ()) == (cluster.names("NodeClaim"), cluster.cloud.instances)


def test_a_stuck_pod_holds_nothing_up(cluster: Cluster) -> None:
    """A minute after its grace has ended it will not end by itself, as in Karpenter."""
    going(cluster, here("a", terminationGracePeriodSeconds=20))
    cluster.at(79)
    assert ["gpu-1"] == cluster.names("NodeClaim")

    cluster.at(100)
    assert ([], ()) == (cluster.names("NodeClaim"), cluster.cloud.instances)


def test_a_claim_that_never_heard_of_its_launch_leaves_no_instance(cluster: Cluster) -> None:
    """The reply was lost and the claim deleted: the instance is found by the claim's uid."""
    claim = cluster.claimed(reached=())
    cluster.done(cluster.cloud.create(claim))
    cluster.remove("NodeClaim", "gpu-1")
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))
    cluster.at(20)

    assert ([], ()) == (cluster.names("NodeClaim"), cluster.cloud.instances)
    assert ["no instance is left and no node had registered"] == cluster.said("Terminated")


class Inherited(FakeCloud):
    """One in which another autoscaler launched, which gives instances no uid of their claim."""

    async def list_instances(self) -> Sequence[Instance]:
        """Without it."""
        return [replace(instance, claim_uid="") for instance in await super().list_instances()]


def test_what_another_autoscaler_had_under_way_for_a_claim_goes_with_it(cluster: Cluster) -> None:
    """On the day of the switch: no other program would end the instance, which is never garbage."""
    cluster.use(Inherited(MARKET, cluster.clock, latencies=Latencies(0, 5)))
    claim = cluster.claimed(reached=())
    older = replace(claim, name="gpu-2", uid="uid-2")
    for each in (claim, older):
        cluster.done(cluster.cloud.create(each))
    cluster.remove("NodeClaim", "gpu-1")
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))
    cluster.at(20)

    assert [] == cluster.names("NodeClaim")
    assert ["gpu-2"] == [instance.claim_name for instance in cluster.cloud.instances]


def test_a_claim_without_instance_goes_at_once(cluster: Cluster) -> None:
    """Nothing was launched for it."""
    cluster.claimed(reached=())
    cluster.remove("NodeClaim", "gpu-1")
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))

    assert ([], 0) == (cluster.names("NodeClaim"), cluster.now_s)


def test_other_finalizers_stay(cluster: Cluster) -> None:
    """We let go of what we hold, and of nothing else."""
    going(cluster, finalizers=("karpenter.sh/termination", "example.com/keep"))
    cluster.at(20)

    assert (("example.com/keep",), []) == (cluster.claim().finalizers, cluster.names("Node"))
    text = "the instance is gone; the object waits for the finalizers of others: example.com/keep"
    assert ("True", "InstanceTerminated", text) == cluster.condition(INSTANCE_TERMINATING)
    assert ("False", "InstanceTerminated", text) == cluster.condition(READY)


def test_a_claim_that_only_others_keep_stands_for_nothing(cluster: Cluster) -> None:
    """It counts against no limit and is no capacity on its way; the cloud is asked for nothing more."""
    going(cluster, finalizers=("karpenter.sh/termination", "example.com/keep"))
    assert 1 == cluster.state.counted("gpu")["nodes"]
    cluster.at(20)
    assert (Resources(), ()) == (cluster.state.counted("gpu"), cluster.state.snapshot(START_S).nodes)

    cluster.cloud.throttle(float("inf"))
    cluster.change("NodeClaim", "gpu-1", metadata={"labels": {"a": "b"}})
    cluster.change("NodeClaim", "gpu-1", metadata={"finalizers": None})
    assert [] == cluster.names("NodeClaim")


def test_a_foreign_finalizer_on_a_node_does_not_hold_its_claim(cluster: Cluster) -> None:
    """The instance is gone, so is the claim; the Node object is theirs to let go."""
    going(cluster, node={"finalizers": ("karpenter.sh/termination", "example.com/keep")})
    cluster.at(20)

    assert ([], ("example.com/keep",)) == (cluster.names("NodeClaim"), cluster.node().finalizers)
    assert cluster.node().deleted_s is not None


def test_a_pod_that_never_ends_holds_one_node_not_the_others(cluster: Cluster) -> None:
    """A foreign finalizer on a pod: it is stuck a minute after its grace, and the next node goes meanwhile."""
    cluster.put(pool(), here("a"), pod("b", node="node-2"))
    for number in (1, 2):
        cluster.running(number)
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))
    for number in (1, 2):
        cluster.remove("NodeClaim", f"gpu-{number}")
    cluster.remove("Pod", "b")
    cluster.at(15)
    assert ["gpu-1"] == cluster.names("NodeClaim")

    cluster.at(100)
    assert [] == cluster.names("NodeClaim")


def test_a_throttled_cloud_only_delays_the_end(cluster: Cluster) -> None:
    """The claim keeps its finalizer until the instance is known to be gone."""
    cluster.put(pool())
    cluster.running(1)
    cluster.cloud.throttle(cluster.clock.now_s() + 30)
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))
    cluster.remove("NodeClaim", "gpu-1")
    cluster.at(29)
    assert (["gpu-1"], 1) == (cluster.names("NodeClaim"), len(cluster.cloud.instances))

    cluster.at(45)
    assert ([], ()) == (cluster.names("NodeClaim"), cluster.cloud.instances)


def test_a_crash_in_a_drain_changes_nothing(cluster: Cluster) -> None:
    """The next life takes the drain up where it stood; no pod is evicted twice."""
    going(cluster, here("a"), here("b", owner="DaemonSet"))
    cluster.crash()
    cluster.remove("Pod", "a")
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))
    assert ["b"] == leaving(cluster)

    cluster.remove("Pod", "b")
    cluster.at(20)
    assert ([], 2) == (cluster.names("NodeClaim"), len(cluster.said("Evicted")))
