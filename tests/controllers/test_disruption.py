"""When a node is taken away: after a rest, when the decision comes out the same, one method at a time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kerf.clouds.fake import FakeCloud
from kerf.controllers.disruption import DisruptionController
from kerf.manifests.encode import node_claim_status
from kerf.model.instancetypes import InstanceType
from kerf.model.nodeclaim import DISRUPTED_TAINT, Condition, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.times import instant_text
from kerf.ports import Conflict
from kerf.sim.kubernetes.adapter import SimWriter
from kerf.sim.objects import Json
from tests.clouds.market import MARKET
from tests.controllers.cluster import STAGES, Cluster, pod, pool

MAY_GO: Json = {"reached": (*STAGES, "Consolidatable")}
ANY_NUMBER: Json = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}


def start(cluster: Cluster, *, idle: Sequence[int] = (), **disruption: Any) -> None:
    """Nodes that are empty and may go, in a pool, and the controller."""
    cluster.put(pool(disruption={**ANY_NUMBER, **disruption}))
    for number in idle:
        cluster.running(number, **MAY_GO)
    begin(cluster)


def begin(cluster: Cluster) -> None:
    """The controller, also in a second life."""
    parts = (cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings)
    cluster.start(DisruptionController(*parts))


def going(cluster: Cluster) -> list[str]:
    """The claims that are being deleted."""
    return [obj["metadata"]["name"] for obj in cluster.api.list("NodeClaim") if "deletionTimestamp" in obj["metadata"]]


class Counting(FakeCloud):
    """A cloud that counts how often its market is asked for."""

    asked = 0

    async def instance_types(self, pool: NodePool) -> Sequence[InstanceType]:
        """Count, and answer."""
        self.asked += 1
        return await super().instance_types(pool)


def test_a_decision_rests_fifteen_seconds(cluster: Cluster) -> None:
    """Then it comes out the same and is carried out; the plan is published."""
    start(cluster, idle=[1])
    cluster.at(14.5)
    assert ([], []) == (going(cluster), cluster.feed.plans)

    cluster.at(15)
    assert (["gpu-1"], (DISRUPTED_TAINT,)) == (going(cluster), cluster.node().taints)
    assert ("True", "Empty") == cluster.condition("DisruptionReason")[:2]
    assert [15] == [at_s for at_s, _ in cluster.feed.plans]


class Refusing(SimWriter):
    """A server that refuses the first write of a claim's status, which another controller has just changed."""

    is_done = False

    async def update_node_claim_status(self, claim: NodeClaim) -> NodeClaim:
        """Refuse once, for gpu-1."""
        if claim.name == "gpu-1" and not self.is_done:
            self.is_done = True
            raise Conflict("the object has been modified")
        return await super().update_node_claim_status(claim)


def test_a_deletion_that_is_refused_stops_no_other_and_is_decided_again(cluster: Cluster) -> None:
    """The node is tainted by then; it takes pods again, and goes after another rest."""
    cluster.ports = replace(cluster.ports, writer=Refusing(cluster.api))
    cluster.use(cluster.cloud)
    start(cluster, idle=[1, 2], budgets=[{"nodes": "2"}])
    cluster.at(15)
    assert (["gpu-2"], (DISRUPTED_TAINT,)) == (going(cluster), cluster.node().taints)

    cluster.at(25)
    assert () == cluster.node().taints
    cluster.at(40)
    assert (["gpu-1", "gpu-2"], (DISRUPTED_TAINT,)) == (going(cluster), cluster.node().taints)


def test_a_node_is_looked_at_when_its_time_is_over(cluster: Cluster) -> None:
    """consolidateAfter ends at 3 s, between two passes; the node goes after the rest, and not a pass later."""
    claim = cluster.running(1)
    start(cluster)
    cluster.at(3)
    ripe = Condition("Consolidatable", "True", "Consolidatable", since_s=cluster.clock.now_s())
    cluster.change("NodeClaim", "gpu-1", status=node_claim_status(claim.with_condition(ripe)))

    cluster.at(17.5)
    assert [] == going(cluster)
    cluster.at(18)
    assert ["gpu-1"] == going(cluster)


def test_a_changed_decision_rests_again(cluster: Cluster) -> None:
    """A second node became empty meanwhile: both go, fifteen seconds after that was seen."""
    start(cluster, idle=[1])
    cluster.at(5)
    cluster.running(2, **MAY_GO)
    cluster.at(29.5)
    assert [] == going(cluster)

    cluster.at(30)
    assert ["gpu-1", "gpu-2"] == going(cluster)


def test_a_pod_that_comes_during_the_rest_keeps_the_node(cluster: Cluster) -> None:
    """That is what the rest is for."""
    start(cluster, idle=[1])
    cluster.at(10)
    cluster.put(pod(node="node-1"))
    cluster.at(60)

    assert [] == going(cluster)


def test_a_restart_decides_once_more(cluster: Cluster) -> None:
    """What rests is forgotten, which only costs another rest."""
    start(cluster, idle=[1])
    cluster.at(10)
    cluster.crash()
    begin(cluster)
    cluster.at(24.5)
    assert [] == going(cluster)

    cluster.at(25)
    assert ["gpu-1"] == going(cluster)


def test_a_budget_lets_so_many_go_at_once(cluster: Cluster) -> None:
    """One of three at a time; the next only when the first is gone."""
    start(cluster, idle=[1, 2, 3], budgets=[{"nodes": "1"}])
    cluster.at(100)

    assert ["gpu-1"] == going(cluster)


def test_the_first_method_with_a_plan_wins(cluster: Cluster) -> None:
    """An empty node goes; the one whose pod would fit elsewhere waits for its turn."""
    cluster.put(pod(node="node-1"))
    start(cluster, idle=[1, 2, 3])
    cluster.at(15)

    assert ["gpu-2", "gpu-3"] == going(cluster)


def test_pods_that_fit_on_other_nodes_make_a_node_superfluous(cluster: Cluster) -> None:
    """Underutilized: its one pod asks for cpu only and the other node has room; the dearer or first one goes."""
    cluster.put(pod("a", node="node-1", limits={"cpu": "1"}), pod("b", node="node-2", limits={"cpu": "1"}))
    start(cluster, idle=[1, 2])
    cluster.at(15)

    assert ["gpu-1"] == going(cluster)
    assert "Underutilized" == cluster.condition("DisruptionReason")[1]


def test_a_settled_cluster_is_not_looked_at_twice(cluster: Cluster) -> None:
    """While nothing changes the market is asked for every five minutes and not every ten seconds."""
    cluster.use(cloud := Counting(MARKET, cluster.clock))
    cluster.put(pod(node="node-1"))
    start(cluster, idle=[1])
    cluster.at(cluster.now_s + 299)
    assert 1 == cloud.asked

    cluster.change("Pod", "p", metadata={"labels": {"a": "b"}})
    cluster.at(cluster.now_s + 15)
    assert 2 == cloud.asked


def test_time_alone_can_change_a_decision(cluster: Cluster) -> None:
    """So a settled cluster is looked at again after five minutes."""
    cluster.use(cloud := Counting(MARKET, cluster.clock))
    cluster.put(pod(node="node-1"))
    start(cluster, idle=[1])
    cluster.at(cluster.now_s + 320)

    assert 2 == cloud.asked


def test_what_a_crash_left_closed_is_opened_again(cluster: Cluster) -> None:
    """The taint was written, the deletion was not: the node is free for pods until it is decided on again."""
    cluster.put(pod(node="node-1"))
    cluster.put(pool(disruption=ANY_NUMBER))
    cluster.running(1, node={"taints": (DISRUPTED_TAINT,)})
    begin(cluster)

    assert () == cluster.node().taints


def test_a_node_that_goes_keeps_its_taint(cluster: Cluster) -> None:
    """Its claim is being deleted: that is no leftover."""
    cluster.put(pool(disruption=ANY_NUMBER))
    cluster.running(1, node={"taints": (DISRUPTED_TAINT,)})
    cluster.remove("NodeClaim", "gpu-1")
    begin(cluster)
    cluster.at(60)

    assert (DISRUPTED_TAINT,) == cluster.node().taints


def test_what_forbids_it_is_said(cluster: Cluster) -> None:
    """DisruptionBlocked on the node, in Karpenter's words."""
    cluster.put(pod(node="node-1", annotations={"karpenter.sh/do-not-disrupt": "true"}))
    start(cluster, idle=[1])
    cluster.at(60)

    assert [] == going(cluster)
    assert ['pod default/p has "karpenter.sh/do-not-disrupt" annotation'] == cluster.said("DisruptionBlocked")


def test_a_protection_that_says_nothing_is_reported_on_the_pod(cluster: Cluster) -> None:
    """In Karpenter's words, once; the pod's node goes as if the annotation were not there."""
    cluster.put(pod(node="node-1", annotations={"karpenter.sh/do-not-disrupt": "9999999h"}))
    start(cluster, idle=[1, 2])
    cluster.at(60)

    why = 'failed to parse "9999999h" as a duration: time: invalid duration "9999999h"'
    said = f"Invalid karpenter.sh/do-not-disrupt annotation: {why}, ignoring annotation"
    assert [said] == cluster.said("InvalidDoNotDisruptAnnotation")
    assert [] == cluster.said("DisruptionBlocked")


@pytest.mark.parametrize(("value", "times"), [("2h", 1), ("True", 1), ("false", 0)])
def test_a_time_on_a_node_protects_nothing_and_says_so(cluster: Cluster, value: str, times: int) -> None:
    """On nodes Karpenter knows `true` alone; the node goes."""
    cluster.put(pool(disruption=ANY_NUMBER))
    cluster.running(node={"annotations": {"karpenter.sh/do-not-disrupt": value}}, **MAY_GO)
    begin(cluster)
    cluster.at(60)

    assert ["gpu-1"] == going(cluster)
    said = cluster.said("InvalidDoNotDisruptAnnotation")
    expected = f'Invalid karpenter.sh/do-not-disrupt annotation: on nodes it is "true" or nothing, got "{value}"'
    assert [f"{expected}, ignoring annotation"] * times == said


def test_a_node_on_which_a_waiting_pod_has_its_place_stays(cluster: Cluster) -> None:
    """A scheduler tries again only after a while: the node that was bought for the pod is not empty until then."""
    cluster.put(pod(limits={"cpu": "1"}))
    start(cluster, idle=[1, 2])
    cluster.at(60)

    assert 1 == len(going(cluster))
    assert ["node is nominated for a pending pod"] == cluster.said("DisruptionBlocked")


def test_a_pod_that_is_protected_for_a_time_says_until_when(cluster: Cluster) -> None:
    """One event for the time, and one when it is over; each once, in Karpenter's words."""
    cluster.put(pod("p", node="node-1", annotations={"karpenter.sh/do-not-disrupt": "10m"}))
    start(cluster, idle=[1])
    cluster.at(120)
    until = instant_text(cluster.clock.now_s() - 120 + 600)
    said = f"The karpenter.sh/do-not-disrupt grace period will elapse at {until}"
    assert ([said], []) == (cluster.said("DoNotDisruptUntil"), cluster.said("DoNotDisruptGracePeriodElapsed"))

    cluster.at(610)
    over = "The karpenter.sh/do-not-disrupt grace period has elapsed, pod is now disruptable"
    assert ([said], [over]) == (cluster.said("DoNotDisruptUntil"), cluster.said("DoNotDisruptGracePeriodElapsed"))


@pytest.mark.parametrize(("ago_s", "times"), [(3500, 1), (3700, 0)])
def test_a_protection_that_ended_long_ago_is_no_news(cluster: Cluster, ago_s: int, times: int) -> None:
    """After a restart each is looked at as if for the first time."""
    began = instant_text(cluster.clock.now_s() - 60 - ago_s)
    held = pod("p", node="node-1", annotations={"karpenter.sh/do-not-disrupt": "1m"})
    cluster.put({**held, "status": {**held.get("status", {}), "startTime": began}})
    start(cluster, idle=[1])
    cluster.at(30)

    assert times == len(cluster.said("DoNotDisruptGracePeriodElapsed"))
    assert [] == cluster.said("DoNotDisruptUntil")


def test_budgets_that_hold_a_node_are_an_event_of_its_pool(cluster: Cluster) -> None:
    """DisruptionBlocked in Karpenter's words, with the budget of several that does it and when it ends."""
    hours = {"nodes": "0", "schedule": "0 0 * * *", "duration": "23h"}
    start(cluster, idle=[1], budgets=[{"nodes": "100%"}, hours])
    cluster.at(30)

    assert [] == going(cluster)
    assert [
        "No allowed disruptions for disruption reason Empty due to blocking budget: budgets[1] "
        '{nodes: "0", schedule: "0 0 * * *", duration: 23h}, until 2026-01-05T23:00:00Z'
    ] == sorted(set(cluster.said("DisruptionBlocked")))


def test_a_budget_that_nodes_on_their_way_out_use_up_is_no_news(cluster: Cluster) -> None:
    """One goes, the other waits for its turn."""
    start(cluster, idle=[1, 2], budgets=[{"nodes": "1"}])
    cluster.at(60)

    assert 1 == len(going(cluster))
    assert [] == [said for said in cluster.said("DisruptionBlocked") if "budget" in said]


def test_a_budget_for_nothing_that_would_go_is_no_news(cluster: Cluster) -> None:
    """The pool has no node that would go for its reason."""
    start(cluster, idle=[1], budgets=[{"nodes": "0", "reasons": ["Drifted", "Underutilized"]}])
    cluster.at(30)

    assert ["gpu-1"] == going(cluster)
    assert [] == cluster.said("DisruptionBlocked")


def test_a_pool_that_keeps_what_is_in_use_is_not_planned_for_at_each_change(cluster: Cluster) -> None:
    """While no quiet node of it is empty no method could ask for one, and pods come and go; what keeps is said once a
    minute all the same."""
    cloud = Counting(MARKET, cluster.clock)
    cluster.use(cloud)
    cluster.put(pool(disruption={**ANY_NUMBER, "consolidationPolicy": "WhenEmpty"}))
    cluster.running(1, **MAY_GO)
    cluster.put(pod("a", node="node-1"))
    begin(cluster)
    began_s, first = cluster.now_s, cloud.asked

    for number in range(5):
        cluster.at(began_s + 1 + number * 10)
        cluster.put(pod(f"other-{number}"))
    assert first == cloud.asked
    cluster.at(began_s + 65)
    assert first + 1 == cloud.asked


def test_an_empty_node_of_such_a_pool_goes_as_soon(cluster: Cluster) -> None:
    """It is looked at whenever one may go."""
    start(cluster, idle=[1], consolidationPolicy="WhenEmpty")
    cluster.at(15)

    assert ["gpu-1"] == going(cluster)


def too_large(cluster: Cluster) -> None:
    """A node of four cards, one of which a pod uses, in a pool that also has nodes of one."""
    types = ("g5.xlarge", "g5.12xlarge")
    cluster.put(pool(types=types, disruption={**ANY_NUMBER}))
    size = {"nvidia.com/gpu": "4", "cpu": "48", "memory": "192Gi", "pods": "58"}
    cluster.running(1, instance_type="g5.12xlarge", **MAY_GO, node={"allocatable": size})
    cluster.put(pod("a", node="node-1", owner="ReplicaSet"))
    begin(cluster)


def test_a_replacement_rests_and_then_its_nodes_are_bought(cluster: Cluster) -> None:
    """The old node is closed and marked, and stays until the other is up."""
    too_large(cluster)
    cluster.at(14.5)
    assert ["gpu-1"] == cluster.names("NodeClaim")

    cluster.at(16)
    (new,) = cluster.claim().replaced_by
    assert ["gpu-1", new] == sorted(cluster.names("NodeClaim"))
    assert ((DISRUPTED_TAINT,), []) == (cluster.node().taints, going(cluster))
    assert ("True", "Underutilized", "1 pod costs less on 1 new node, saves 16.00 USD/h") == cluster.condition(
        "DisruptionReason"
    )


def test_what_no_longer_stands_after_the_rest_is_not_done(cluster: Cluster) -> None:
    """A pod that must not be disrupted has come: nothing is bought and nothing marked."""
    too_large(cluster)
    cluster.at(10)
    kept = {"karpenter.sh/do-not-disrupt": "true"}
    cluster.put(pod("b", node="node-1", annotations=kept, limits={"cpu": "1"}))
    cluster.at(60)

    assert ["gpu-1"] == cluster.names("NodeClaim")
    assert ((), ()) == (cluster.claim().replaced_by, cluster.node().taints)


@pytest.mark.parametrize(
    ("disruption", "said"),
    [
        ({}, ["Can't replace with a cheaper node: see kerf explain node node-1"]),
        (
            {"consolidationPolicy": "WhenEmpty"},
            ['NodePool "gpu" has consolidation policy WhenEmpty, but node is not empty'],
        ),
        ({"budgets": [{"nodes": "0"}]}, []),
    ],
)
def test_a_node_in_use_says_why_it_is_not_consolidated(cluster: Cluster, disruption: Json, said: list[str]) -> None:
    """Unconsolidatable on the node in Karpenter's words, once in a quarter of an hour; budgets speak for themselves."""
    cluster.put(pool(disruption={**ANY_NUMBER, **disruption}))
    cluster.running(1, **MAY_GO)
    cluster.put(pod("a", node="node-1", owner="ReplicaSet"))
    begin(cluster)

    cluster.at(890)
    assert said == cluster.said("Unconsolidatable")
    cluster.at(1000)
    assert said * 2 == cluster.said("Unconsolidatable")


def test_an_empty_node_and_one_that_goes_are_not_unconsolidatable(cluster: Cluster) -> None:
    """The empty one goes, and the one whose pod fits nowhere is named once that has gone."""
    start(cluster, idle=[1, 2])
    cluster.put(pod("a", node="node-2", owner="ReplicaSet"))
    cluster.at(14)
    assert [] == cluster.said("Unconsolidatable")

    cluster.at(60)
    assert ["gpu-1"] == going(cluster)
    assert ["Can't replace with a cheaper node: see kerf explain node node-2"] == cluster.said("Unconsolidatable")


def test_of_many_nodes_all_are_named_in_turn(cluster: Cluster) -> None:
    """A hundred a look."""
    cluster.put(pool(disruption=ANY_NUMBER))
    for number in range(130):
        cluster.running(number, **MAY_GO)
        cluster.put(pod(f"p{number}", node=f"node-{number}", owner="ReplicaSet"))
    begin(cluster)

    cluster.at(5)
    assert 100 == len(set(cluster.said("Unconsolidatable")))
    cluster.at(400)
    assert 130 == len(set(cluster.said("Unconsolidatable")))


def test_a_drifted_node_without_a_place_says_so(cluster: Cluster) -> None:
    """In Karpenter's words, on the node; it stays, since nothing that is for sale holds its pod."""
    up = tuple(Condition(stage, "True", stage) for stage in STAGES)
    drifted = Condition("Drifted", "True", "NodePoolDrifted")
    cluster.put(pool(disruption=ANY_NUMBER, types=("g5.xlarge",)))
    size = {"nvidia.com/gpu": "4", "cpu": "48", "memory": "192Gi", "pods": "58"}
    cluster.running(1, instance_type="g5.12xlarge", conditions=(*up, drifted), node={"allocatable": size})
    cluster.put(pod("a", node="node-1", owner="ReplicaSet", limits={"nvidia.com/gpu": "4"}))
    begin(cluster)
    cluster.at(60)

    assert [] == going(cluster)
    said = "not all pods would schedule: its pod finds no place on other nodes, nor on what can be bought"
    assert {said} == set(cluster.said("DisruptionBlocked"))
