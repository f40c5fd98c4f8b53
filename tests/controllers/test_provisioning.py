"""When a batch of pods is planned for, which pods count, and what they are told."""

import json
from dataclasses import replace

import pytest

from kerf.controllers.actuator import Actuator
from kerf.controllers.deciding import Buyers
from kerf.controllers.provisioning import Provisioning
from kerf.engine.decision import Decision
from kerf.engine.leaving import with_leaving
from kerf.errors import ApiError
from kerf.model.snapshot import ClusterNode
from kerf.sim.objects import Json
from tests.controllers.cluster import Cluster, pod, pool
from tests.sim.world import node


def start(cluster: Cluster) -> None:
    """Begin with nothing but a pool that sells g5.xlarge."""
    cluster.put(pool())
    parts = (cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings)
    cluster.start(Provisioning(*parts))


def planned_at(cluster: Cluster) -> list[float]:
    """When plans were made."""
    return [at_s for at_s, _ in cluster.feed.plans]


def bought_for(cluster: Cluster) -> list[list[str]]:
    """The pods of each claim."""
    notes = [obj["metadata"]["annotations"]["kerf.dev/planned-pods"] for obj in cluster.api.list("NodeClaim")]
    return [sorted(json.loads(note)) for note in notes]


def appear(cluster: Cluster, *times: float) -> None:
    """A refused pod at each of these times."""
    for number, after_s in enumerate(times):
        cluster.at(after_s)
        cluster.put(pod(f"p{number}"))


@pytest.mark.parametrize(
    ("times", "closes_s"),
    [
        ((0,), 1),
        ((0, 0.5), 1.5),
        ((0, 0.75, 1.5, 2.25), 3.25),
        ((0, 3), 1),
        (tuple(number * 0.75 for number in range(20)), 10),
    ],
)
def test_a_window_closes_a_second_after_the_last_new_pod(
    cluster: Cluster, times: tuple[float, ...], closes_s: float
) -> None:
    """At the latest ten seconds after the first one."""
    start(cluster)
    appear(cluster, *times)
    cluster.at(20)

    assert closes_s == planned_at(cluster)[0]


def test_the_same_pod_does_not_extend_the_window(cluster: Cluster) -> None:
    """A scheduler refuses a waiting pod again and again; that is no news."""
    start(cluster)
    appear(cluster, 0)
    for after_s in (0.4, 0.8):
        cluster.at(after_s)
        cluster.change("Pod", "p0", metadata={"labels": {"at": str(after_s)}})
    cluster.at(5)

    assert [1] == planned_at(cluster)


def test_pods_that_wait_on_are_planned_for_again_when_something_has_changed(cluster: Cluster) -> None:
    """Every ten seconds and a window Kerf looks; from the same cluster and market the same plan would come."""
    start(cluster)
    appear(cluster, 0)
    cluster.at(50)
    planned = planned_at(cluster)
    cluster.put(pool("another", labels={"a": "b"}))
    cluster.at(100)

    assert len(planned) < len(planned_at(cluster)) <= len(planned) + 2


def test_a_batch_is_planned_as_one_and_bought_once(cluster: Cluster) -> None:
    """Two pods for a GPU each: two claims of one card, and later plans see that they are on their way."""
    start(cluster)
    appear(cluster, 0, 0.5)
    cluster.at(30)

    assert [["default/p0"], ["default/p1"]] == sorted(bought_for(cluster))


@pytest.mark.parametrize(
    "left_out",
    [
        pod(refused=None),
        pod(owner="DaemonSet"),
        pod(nominated="node-1"),
        pod(node="node-1"),
    ],
    ids=["not refused yet", "of a DaemonSet", "nominated", "bound"],
)
def test_only_pods_that_their_scheduler_refused_count(cluster: Cluster, left_out: Json) -> None:
    """Who may still be placed, who comes with every node and who has a place waits for nothing we could buy."""
    start(cluster)
    cluster.put(node("node-1"))
    cluster.put(left_out)
    cluster.at(60)

    assert ([], []) == (planned_at(cluster), cluster.names("NodeClaim"))


def test_a_pod_counts_from_its_refusal_on(cluster: Cluster) -> None:
    """Not from its creation: the scheduler may need its time."""
    start(cluster)
    cluster.put(pod(refused=None))
    cluster.at(7)
    cluster.change("Pod", "p", status={"conditions": [{"type": "PodScheduled", "status": "False", "message": "no"}]})
    cluster.at(10)

    assert [8] == planned_at(cluster)


def test_a_pod_whose_nomination_is_taken_away_counts_again(cluster: Cluster) -> None:
    """Its node is gone, so that it needs another one."""
    start(cluster)
    cluster.put(node("node-1"))
    cluster.put(pod(nominated="node-1"))
    cluster.at(5)
    cluster.change("Pod", "p", status={"nominatedNodeName": None})
    cluster.at(10)

    assert [6] == planned_at(cluster)


def test_a_claim_that_goes_takes_its_places_along(cluster: Cluster) -> None:
    """The pod it was bought for gets another claim within a window, without waiting for the next plan."""
    start(cluster)
    appear(cluster, 0)
    cluster.at(2)
    (first,) = cluster.names("NodeClaim")
    cluster.remove("NodeClaim", first)
    cluster.at(4)

    assert [1, 3] == planned_at(cluster)
    assert [["default/p0"], ["default/p0"]] == bought_for(cluster)


def test_a_new_pool_is_news(cluster: Cluster) -> None:
    """Another generation of a pool too; its status is not."""
    start(cluster)
    appear(cluster, 0)
    cluster.at(3)
    cluster.change("NodePool", "gpu", status={"resources": {"cpu": "1"}})
    cluster.at(5)
    cluster.change("NodePool", "gpu", spec={"weight": 1})
    cluster.at(8)

    assert [1, 6] == planned_at(cluster)


def test_a_pod_that_nothing_can_hold_learns_why_and_what_would_help(cluster: Cluster) -> None:
    """FailedScheduling, with the figures of the nearest miss and the smallest change."""
    start(cluster)
    cluster.put(pod(limits={"nvidia.com/gpu": "4"}))
    cluster.at(2)

    why = "needs 4 whole GPUs; 1 of 1 are idle (NodePool gpu/g5.xlarge)"
    hint = "allow instance type g5.12xlarge (20.00 USD/h) with 22888 MiB a GPU in NodePool gpu"
    assert [f"Failed to schedule pod, {why}; {hint}"] == cluster.said("FailedScheduling")


def test_a_pool_at_its_limit_says_so_until_it_is_raised(cluster: Cluster) -> None:
    """With the figures and how many pods wait; a pool that never was at its limit says nothing."""
    start(cluster)
    cluster.change("NodePool", "gpu", spec={"limits": {"nodes": "1"}})
    cluster.put(pool("other", types=("m5.large",)))
    appear(cluster, 0, 0.1, 0.2)
    cluster.at(3)
    at_limit = limits_told(cluster)
    cluster.change("NodePool", "gpu", spec={"limits": {"nodes": "9"}})
    cluster.at(30)

    why = "limit nodes 1 of NodePool gpu: 1 planned, 1 more needed; 2 pods wait"
    assert {"gpu": ("True", "LimitsReached", why)} == at_limit
    assert {"gpu": ("False", "WithinLimits", "")} == limits_told(cluster)


def limits_told(cluster: Cluster) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message of the condition LimitsReached, by pool."""
    return {
        obj["metadata"]["name"]: (told["status"], told["reason"], told.get("message", ""))
        for obj in cluster.api.list("NodePool")
        for told in obj.get("status", {}).get("conditions", ())
        if told["type"] == "LimitsReached"
    }


def test_a_pod_that_will_fit_on_a_node_on_its_way_learns_so(cluster: Cluster) -> None:
    """Nothing is bought a second time; the pod hears on which claim it should schedule."""
    start(cluster)
    appear(cluster, 0)
    cluster.at(13)

    (claim,) = cluster.names("NodeClaim")
    assert f"Pod should schedule on: nodeclaim/{claim}" == cluster.said("Nominated")[-1]


def test_throttling_only_delays(cluster: Cluster) -> None:
    """The market cannot be read for a while; the window's pods are not forgotten."""
    start(cluster)
    cluster.cloud.throttle(cluster.clock.now_s() + 8, retry_after_s=5)
    appear(cluster, 0)
    cluster.at(20)

    assert 11 == planned_at(cluster)[0]


class Unlucky(Actuator):
    """Its first launch fails before anything is written."""

    tries = 0

    async def launch(self, decision: Decision) -> None:
        """Fail once."""
        self.tries += 1
        if self.tries == 1:
            raise ApiError("no answer")
        await super().launch(decision)


def test_a_plan_that_could_not_be_carried_out_is_made_again(cluster: Cluster) -> None:
    """Although nothing has changed since: what was planned is not there."""
    cluster.put(pool(), pod())
    actuator = Unlucky(cluster.state, cluster.ports.writer, cluster.recorder, cluster.clock, 30)
    cluster.start(Provisioning(cluster.state, cluster.ports, cluster.book, actuator, cluster.settings))
    cluster.at(60)

    assert [["default/p"]] == bought_for(cluster)


def test_pods_of_a_node_that_goes_are_bought_for_while_they_run(cluster: Cluster) -> None:
    """Once, however often it is planned again; and nothing says of a pod that runs where it should go."""
    start(cluster)
    cluster.running()
    cluster.put(pod("web-1", node="node-1", owner="ReplicaSet"))
    cluster.at(10)
    assert ["gpu-1"] == cluster.names("NodeClaim")

    cluster.remove("NodeClaim", "gpu-1")
    cluster.at(60)
    (new,) = (name for name in cluster.names("NodeClaim") if name != "gpu-1")

    assert ["default/web-1"] == list(json.loads(cluster.claim(new).annotations["kerf.dev/planned-pods"]))
    assert [] == cluster.said("Nominated")


def test_nothing_is_bought_for_a_pod_that_was_evicted_while_it_was_decided(cluster: Cluster) -> None:
    """Its successor is another pod, for which the next plan is made."""
    start(cluster)
    cluster.running()
    cluster.put(pod("web-1", node="node-1", owner="ReplicaSet"))
    before = with_leaving(replace(cluster.read(), nodes=tuple(map(going, cluster.read().nodes))))
    buyers = Buyers(before, cluster.state)
    assert buyers.waits("default/web-1")

    cluster.at(cluster.now_s, lambda: cluster.api.delete("Pod", "default", "web-1"))
    cluster.read()
    assert not buyers.waits("default/web-1")


def going(node: ClusterNode) -> ClusterNode:
    """The node, whose claim is being deleted."""
    return replace(node, claim=replace(node.claim, deleted_s=node.claim.created_s)) if node.claim is not None else node


def churn(cluster: Cluster, until_s: int) -> None:
    """Every five seconds a pod that no plan is for comes, until then."""
    for number in range(int(cluster.now_s) // 5 + 1, until_s // 5):
        cluster.at(number * 5)
        cluster.put(pod(f"other-{number}", node="node-1", limits={}))


def test_a_pod_larger_than_any_machine_is_not_planned_for_at_each_change(cluster: Cluster) -> None:
    """Pods that come and go make no room for it. It is looked at again every five minutes."""
    start(cluster)
    cluster.running(1)
    cluster.put(pod("huge", limits={"cpu": "10000"}))
    churn(cluster, 300)
    assert [1] == planned_at(cluster)

    churn(cluster, 320)
    assert 2 == len(planned_at(cluster))


def test_a_node_large_enough_is_news_for_it(cluster: Cluster) -> None:
    """So is a pool that changes, and a pod that is smaller."""
    start(cluster)
    cluster.put(pod("huge", limits={"cpu": "10000"}))
    churn(cluster, 50)
    assert [1] == planned_at(cluster)

    cluster.change("NodePool", "gpu", spec={"weight": 1})
    churn(cluster, 70)
    assert 2 == len(planned_at(cluster))

    cluster.put({**node("large"), "status": {"allocatable": {"cpu": "20000", "memory": "1Ti", "pods": "9"}}})
    churn(cluster, 100)
    assert 2 < len(planned_at(cluster))
