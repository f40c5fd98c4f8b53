"""What changes while a decision is made beside the loop: the decision is not acted on, or it is made again."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from kerf.controllers.disruption import DisruptionController
from kerf.controllers.provisioning import Provisioning
from kerf.engine.decide import decide
from kerf.engine.disruption.first import first_command
from kerf.engine.explain.plan import explain
from tests.controllers.cluster import STAGES, Cluster, pod, pool
from tests.controllers.test_disruption import ANY_NUMBER, MAY_GO

_Made = TypeVar("_Made")
_TURNS = 50
"""Turns of the loop after which the state knows what was changed."""


class Meanwhile:
    """`Deciding` that lets something happen once, after the first work of a kind and before its answer.

    `asked` is how often it was given work of that kind.
    """

    def __init__(self, after: object, happens: Callable[[], object]) -> None:
        self._after, self._happens = after, happens
        self.has_happened = False
        self.asked = 0

    async def run(self, work: Callable[[], _Made], *, is_urgent: bool = True) -> _Made:
        """See Deciding."""
        made = work()
        is_meant = getattr(work, "func", None) is self._after
        self.asked += is_meant
        if is_meant and not self.has_happened:
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
    provisioned(cluster, Meanwhile(decide, lambda: tainted(cluster)))
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
    deciding = Meanwhile(decide, lambda: cluster.runtime.follow())
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
    deciding = Meanwhile(first_command, lambda: cluster.api.patch("Pod", "default", "p", change))
    ports = replace(cluster.ports, deciding=deciding)
    cluster.start(DisruptionController(cluster.state, ports, cluster.book, cluster.actuator, cluster.settings))
    cluster.at(35)

    assert 2 == deciding.asked
