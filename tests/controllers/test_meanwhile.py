"""What changes while a decision is made beside the loop: the decision is not acted on, or it is made again."""

import asyncio
import threading
from collections.abc import Callable, Container
from dataclasses import replace
from typing import TypeVar

import pytest

from kerf.controllers.deciding import Threaded
from kerf.controllers.disruption import DisruptionController
from kerf.controllers.lastline import checked_command, checked_decision
from kerf.controllers.provisioning import Provisioning
from kerf.engine.explain.plan import explain
from kerf.model.promises import planned_type
from kerf.model.snapshot import Upserted
from kerf.sim.objects import Json
from tests.controllers.cluster import STAGES, Cluster, pod, pool
from tests.controllers.test_disruption import ANY_NUMBER, MAY_GO, going

_Made = TypeVar("_Made")
_TURNS = 50
"""Turns of the loop after which the state knows what was changed."""


class Meanwhile:
    """`Deciding` that lets something happen after the first work of a kind and before its answer, or in other `turns`.

    `asked` is how often it was given work of that kind.
    """

    def __init__(self, after: object, happens: Callable[[], object], turns: Container[int] = (1,)) -> None:
        self._after, self._happens, self._turns = after, happens, turns
        self.has_happened = False
        self.asked = 0

    async def run(self, work: Callable[[], _Made], *, is_urgent: bool = True) -> _Made:
        """See Deciding."""
        made = work()
        is_meant = getattr(work, "func", None) is self._after
        self.asked += is_meant
        if is_meant and self.asked in self._turns:
            self.has_happened = True
            self._happens()
            for _ in range(_TURNS):
                await asyncio.sleep(0)
        return made

    def is_awaited(self) -> bool:
        """See Deciding."""
        return False


def provisioned(cluster: Cluster, deciding: Meanwhile) -> None:
    """The controller, with that `Deciding`, at a pod that waits."""
    ports = replace(cluster.ports, deciding=deciding)
    cluster.put(pod("p", limits={"cpu": "1"}))
    cluster.start(Provisioning(cluster.state, ports, cluster.book, cluster.actuator, cluster.settings))


def tainted(cluster: Cluster) -> None:
    """No pod may come to the node any more."""
    cluster.api.patch("Node", "", "node-1", {"spec": {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}})


def with_room(cluster: Cluster) -> None:
    """A pool, and a node of it that has room for the pod."""
    cluster.put(pool())
    cluster.running(1, reached=STAGES)


def test_a_node_that_is_tainted_while_it_is_decided_is_not_promised(cluster: Cluster) -> None:
    """Another is bought for the pod."""
    with_room(cluster)
    provisioned(cluster, Meanwhile(checked_decision, lambda: tainted(cluster)))
    cluster.at(20)

    assert 2 == len(cluster.names("NodeClaim"))
    assert not [text for text in cluster.said("Nominated") if "node-1" in text]


def test_a_node_that_is_tainted_while_the_plan_is_explained_is_not_promised(cluster: Cluster) -> None:
    """The decision was good when it was made; the pod has its node with the next one."""
    with_room(cluster)
    provisioned(cluster, Meanwhile(explain, lambda: tainted(cluster)))
    cluster.at(30)

    assert 2 == len(cluster.names("NodeClaim"))
    assert not [text for text in cluster.said("Nominated") if "node-1" in text]


def test_of_a_decision_that_another_has_followed_nothing_is_said(cluster: Cluster) -> None:
    """While the first is explained a pool comes that takes the pod: that there is none is not said any more."""
    at_once = replace(cluster.settings, batch_idle_s=0.0)
    ports = replace(cluster.ports, deciding=Meanwhile(explain, lambda: cluster.api.create(pool())))
    cluster.put(pod("p", limits={"cpu": "1"}))
    cluster.start(Provisioning(cluster.state, ports, cluster.book, cluster.actuator, at_once))
    cluster.at(20)

    assert 1 == len(cluster.names("NodeClaim"))
    assert [] == cluster.said("FailedScheduling")


def test_of_a_pod_that_is_bound_while_the_plan_is_explained_nothing_is_said(cluster: Cluster) -> None:
    """It has no place in the plan, and a scheduler has found it one meanwhile: it did not fail (A9)."""
    bound = {"spec": {"nodeName": "elsewhere"}}
    provisioned(cluster, Meanwhile(explain, lambda: cluster.api.patch("Pod", "default", "p", bound)))
    cluster.at(20)

    assert [] == cluster.said("FailedScheduling")


def test_a_lead_that_ends_while_it_is_decided_buys_nothing(cluster: Cluster) -> None:
    """The next lead decides anew, and buys once."""
    cluster.put(pool())
    deciding = Meanwhile(checked_decision, lambda: cluster.runtime.follow())
    provisioned(cluster, deciding)
    cluster.at(20)
    assert (True, []) == (deciding.has_happened, cluster.names("NodeClaim"))

    cluster.at(21, cluster.runtime.lead)
    cluster.at(30)
    assert 1 == len(cluster.names("NodeClaim"))


def test_what_changes_while_a_node_is_looked_at_is_looked_at_again(cluster: Cluster) -> None:
    """It does not count as seen: the next look comes after ten seconds and not after five minutes."""
    cluster.put(pool(disruption=ANY_NUMBER), pod(node="node-1"))
    cluster.running(1, **MAY_GO)
    change = {"metadata": {"labels": {"a": "b"}}}
    deciding = Meanwhile(checked_command, lambda: cluster.api.patch("Pod", "default", "p", change))
    ports = replace(cluster.ports, deciding=deciding)
    cluster.start(DisruptionController(cluster.state, ports, cluster.book, cluster.actuator, cluster.settings))
    cluster.at(35)

    assert 2 == deciding.asked


def taken_away(cluster: Cluster, change: Callable[[], object]) -> list[str]:
    """The claims that go, where this changes while the command is decided that has rested."""
    deciding = Meanwhile(checked_command, change, turns=(2,))
    ports = replace(cluster.ports, deciding=deciding)
    cluster.start(DisruptionController(cluster.state, ports, cluster.book, cluster.actuator, cluster.settings))
    cluster.at(35)
    assert deciding.has_happened
    return going(cluster)


KEPT: Json = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}


@pytest.mark.parametrize(
    "kind, name, change",
    [
        ("Node", "node-1", KEPT),
        ("NodePool", "gpu", {"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}}),
        ("NodePool", "gpu", {"spec": {"disruption": {"consolidateAfter": "Never"}}}),
        ("Node", "node-1", {"metadata": {"labels": {"a": "b"}}}),
    ],
    ids=["do-not-disrupt", "a budget of 0", "Never", "a label"],
)
def test_an_empty_node_that_is_kept_while_it_is_decided_stays(
    cluster: Cluster, kind: str, name: str, change: Json
) -> None:
    """It is decided again, from what is there then; what keeps no node lets it go at once."""
    cluster.put(pool(disruption=ANY_NUMBER))
    cluster.running(1, **MAY_GO)

    gone = taken_away(cluster, lambda: cluster.api.patch(kind, "", name, change))

    assert (["gpu-1"] if "labels" in change.get("metadata", {}) else []) == gone


@pytest.mark.parametrize(
    "kind, name, change",
    [
        ("Pod", "a", KEPT),
        ("Node", "node-2", {"spec": {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}}),
        ("Node", "node-2", {"spec": {"unschedulable": True}}),
    ],
    ids=["do-not-disrupt", "tainted", "cordoned"],
)
def test_a_node_whose_pods_cannot_move_once_it_is_decided_stays(
    cluster: Cluster, kind: str, name: str, change: Json
) -> None:
    """The pod is protected, or has no place any more."""
    cluster.put(pool(disruption=ANY_NUMBER))
    pods = [pod(each, node=f"node-{n}", limits={"cpu": str(n)}, owner="ReplicaSet") for n, each in enumerate("ab", 1)]
    cluster.put(*pods)
    cluster.running(1, **MAY_GO)
    cluster.running(2, **MAY_GO)
    namespace = "default" if kind == "Pod" else ""

    assert "gpu-1" not in taken_away(cluster, lambda: cluster.api.patch(kind, namespace, name, change))


def test_a_node_that_changes_during_each_decision_keeps_only_itself(cluster: Cluster) -> None:
    """Three commands for both are dropped, after 15 s of rest each; the fourth takes the other node."""
    cluster.put(pool(disruption=ANY_NUMBER))
    cluster.running(1, **MAY_GO)
    cluster.running(2, **MAY_GO)

    def kept_for_a_moment() -> None:
        cluster.api.patch("Node", "", "node-1", KEPT)
        free = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": None}}}
        cluster.loop.call_later(0.5, lambda: cluster.api.patch("Node", "", "node-1", free))

    ports = replace(cluster.ports, deciding=Meanwhile(checked_command, kept_for_a_moment, turns=range(1, 99)))
    cluster.start(DisruptionController(cluster.state, ports, cluster.book, cluster.actuator, cluster.settings))
    cluster.at(62)
    assert [] == going(cluster)

    cluster.at(64)
    assert ["gpu-2"] == going(cluster)


def test_a_pod_that_is_made_again_while_it_is_decided_gets_one_node(cluster: Cluster) -> None:
    """It asks for four GPUs then, and nothing is bought for the one of before."""
    cluster.put(pool(types=("g5.xlarge", "g5.12xlarge")), pod("p"))

    def again() -> None:
        cluster.api.remove_pod("default", "p")
        larger = pod("p", limits={"nvidia.com/gpu": "4"})
        cluster.api.create(larger)
        cluster.api.patch("Pod", "default", "p", {"status": larger["status"]}, subresource="status")

    ports = replace(cluster.ports, deciding=Meanwhile(checked_decision, again))
    cluster.start(Provisioning(cluster.state, ports, cluster.book, cluster.actuator, cluster.settings))
    cluster.at(30)

    assert ["g5.12xlarge"] == [planned_type(claim) for claim in cluster.state.claims()]


class Held:
    """`Deciding` in a thread that has made its answer, and keeps it until it is let go."""

    def __init__(self) -> None:
        self._thread = Threaded()
        self.made, self.let_go = threading.Event(), threading.Event()

    async def run(self, work: Callable[[], _Made], *, is_urgent: bool = True) -> _Made:
        """See Deciding."""

        def held() -> _Made:
            made = work()
            self.made.set()
            assert self.let_go.wait(10)
            return made

        return await self._thread.run(held, is_urgent=is_urgent)

    def is_awaited(self) -> bool:
        """See Deciding."""
        return self._thread.is_awaited()

    def close(self) -> None:
        """End the thread."""
        self._thread.close()


@pytest.mark.parametrize("annotations", [{}, {"karpenter.sh/do-not-disrupt": "true"}], ids=["as it was", "kept"])
def test_a_node_that_is_kept_while_the_thread_decides_stays(cluster: Cluster, annotations: dict[str, str]) -> None:
    """The loop has gone on meanwhile, and knows what the thread did not."""
    cluster.put(pool(disruption=ANY_NUMBER))
    cluster.running(1, **MAY_GO)
    cluster.read()
    deciding = Held()
    ports, at_once = replace(cluster.ports, deciding=deciding), replace(cluster.settings, validation_s=0.0)
    controller = DisruptionController(cluster.state, ports, cluster.book, cluster.actuator, at_once)

    async def main() -> None:
        deciding.let_go.set()
        await controller.reconcile("nodes")
        deciding.made.clear()
        deciding.let_go.clear()
        second = asyncio.create_task(controller.reconcile("nodes"))
        while not deciding.made.is_set():
            await asyncio.sleep(0)
        cluster.state.apply(Upserted(replace(cluster.node(), annotations=annotations)))
        deciding.let_go.set()
        await second
        deciding.close()

    asyncio.run(main())

    assert ([] if annotations else ["gpu-1"]) == going(cluster)
