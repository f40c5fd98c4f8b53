"""The end of a claim: who is evicted when, what may hold it up, and what is let go in which order."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kerf.cloudprovider import Instance
from kerf.clouds.fake import FakeCloud, Latencies
from kerf.controllers.nodeclaim.lifecycle import Lifecycle
from kerf.model.nodeclaim import DISRUPTED_TAINT
from kerf.sim.objects import Json
from tests.clouds.market import MARKET
from tests.controllers.cluster import Cluster, pod, pool
from tests.sim.world import budget

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
def test_pods_that_nobody_waits_for(cluster: Cluster, stays: Json) -> None:
    """They are not evicted; the node goes under them."""
    going(cluster, stays)
    cluster.at(10)

    assert ([], [], []) == (leaving(cluster), cluster.names("NodeClaim"), cluster.said("Evicted"))


def test_a_budget_holds_a_drain_up(cluster: Cluster) -> None:
    """People are told, and it is tried again until the budget allows it."""
    going(cluster, here("a", **WEB), budget(minAvailable=1))
    cluster.at(60)
    assert ([], ["gpu-1"]) == (leaving(cluster), cluster.names("NodeClaim"))
    assert ["Failed to drain node, 1 pods are waiting to be evicted"] == cluster.said("FailedDraining")

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


def test_a_node_that_is_not_ready_waits_for_nobody(cluster: Cluster) -> None:
    """Its kubelet ends no pod any more."""
    going(cluster, here("a"), node={"is_ready": False})
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
