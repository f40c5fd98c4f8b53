"""A clock that is set while something waits: nothing ends early because of it, and nothing waits an hour longer."""

from collections.abc import Sequence
from typing import Any

import pytest

from kerf.controllers.conditions import Consolidatable, PodEvents
from kerf.controllers.nodeclaim.health import Health
from kerf.controllers.nodeclaim.lifecycle import Lifecycle
from kerf.controllers.provisioning import Provisioning
from kerf.controllers.runtime import Controller
from kerf.model.instancetypes import OfferingKey
from kerf.model.nodeclaim import CONSOLIDATABLE, LAUNCHED, REGISTERED, UNHEALTHY
from tests.controllers.cluster import Cluster, pod, pool
from tests.controllers.nodeclaim.test_health import BAD, tell
from tests.controllers.test_disruption import MAY_GO, going, start
from tests.sim.world import START_S, budget

HOUR, DAY = 3600, 86_400
FORWARD, BACK = (HOUR, DAY), (-HOUR, -DAY)
WEB: dict[str, Any] = {"labels": {"app": "web"}}


def set_by(cluster: Cluster, after_s: float, by_s: int) -> int:
    """Set the clock at that time; from then on times of the test are later by as much."""
    cluster.at(after_s, lambda: cluster.clock.set_by(by_s))
    return by_s


def leaving(cluster: Cluster, *pods: Any, **claim_given: Any) -> None:
    """A node with these pods whose claim is deleted."""
    cluster.put(pool(), *pods)
    cluster.running(1, **claim_given)
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))
    cluster.remove("NodeClaim", "gpu-1")


@pytest.mark.parametrize("by_s", [*FORWARD, *BACK])
def test_a_decision_rests_its_fifteen_seconds(cluster: Cluster, by_s: int) -> None:
    """An empty node goes fifteen seconds after that was seen, whatever the clock shows by then."""
    start(cluster, idle=[1])
    cluster.at(5)
    ahead_s = set_by(cluster, 5, by_s)

    cluster.at(14.5 + ahead_s)
    assert [] == going(cluster)
    cluster.at(15 + ahead_s)
    assert ["gpu-1"] == going(cluster)


@pytest.mark.parametrize("by_s", BACK)
def test_pods_that_wait_are_planned_for_after_the_clock_was_set_back(cluster: Cluster, by_s: int) -> None:
    """While the window in which more of them may come is open: it closes a second after the last one all the same."""
    cluster.put(pool(), pod("p"))
    parts = (cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings)
    cluster.start(Provisioning(*parts))
    ahead_s = set_by(cluster, 0.5, by_s)

    cluster.at(5 + ahead_s)
    assert 1 == len(cluster.names("NodeClaim"))


@pytest.mark.parametrize("by_s", BACK)
def test_nodes_are_looked_at_again_after_the_clock_was_set_back(cluster: Cluster, by_s: int) -> None:
    """A cluster in which nothing could go is looked at again when something can."""
    start(cluster)
    cluster.at(30)
    ahead_s = set_by(cluster, 30, by_s)
    cluster.running(1, **MAY_GO)

    cluster.at(60 + ahead_s)
    assert ["gpu-1"] == going(cluster)


@pytest.mark.parametrize("by_s", [*FORWARD, *BACK])
def test_a_pod_has_its_grace(cluster: Cluster, by_s: int) -> None:
    """Ten minutes; the node waits for it, and goes when it has ended."""
    leaving(cluster, pod("slow", node="node-1", terminationGracePeriodSeconds=600))
    ahead_s = set_by(cluster, 10, by_s)

    cluster.at(300 + ahead_s)
    assert ["slow"] == cluster.names("Pod")
    assert not cluster.is_ending()
    cluster.remove("Pod", "slow")
    cluster.at(320 + ahead_s)
    assert [] == cluster.names("NodeClaim")


@pytest.mark.parametrize("by_s", FORWARD)
def test_a_termination_grace_period_is_as_long_as_it_says(cluster: Cluster, by_s: int) -> None:
    """A pod that may not be disrupted keeps its node for ten minutes, not for an instant."""
    kept: dict[str, Any] = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}, "terminationGracePeriodSeconds": 5}
    protected = pod("kept", node="node-1", **kept)
    leaving(cluster, protected, termination_grace_period_s=600)
    ahead_s = set_by(cluster, 10, by_s)

    cluster.at(500 + ahead_s)
    assert "deletionTimestamp" not in cluster.api.get("Pod", "default", "kept")["metadata"]  # type: ignore[index]
    cluster.at(640 + ahead_s)
    assert "deletionTimestamp" in cluster.api.get("Pod", "default", "kept")["metadata"]  # type: ignore[index]


@pytest.mark.parametrize("by_s", BACK)
@pytest.mark.parametrize("at_s", [1, 6])
def test_a_drain_ends_although_the_clock_was_set_back(cluster: Cluster, by_s: int, at_s: int) -> None:
    """While it lasts its least time, and while the cloud ends the instance."""
    leaving(cluster)
    ahead_s = set_by(cluster, at_s, by_s)

    cluster.at(30 + ahead_s)
    assert [] == cluster.names("NodeClaim")


@pytest.mark.parametrize("by_s", [*FORWARD, *BACK])
def test_an_eviction_that_was_refused_is_asked_again(cluster: Cluster, by_s: int) -> None:
    """Within ten seconds of the time when its budget allows it."""
    blocked = budget(maxUnavailable=0)
    cluster.put(blocked)
    leaving(cluster, pod("a", node="node-1", **WEB))
    ahead_s = set_by(cluster, 10, by_s)
    cluster.at(20 + ahead_s)
    cluster.at(cluster.now_s, lambda: cluster.api.delete("PodDisruptionBudget", "default", "web"))
    cluster.at(32 + ahead_s)

    assert "deletionTimestamp" in cluster.api.get("Pod", "default", "a")["metadata"]  # type: ignore[index]


@pytest.mark.parametrize("by_s", [*FORWARD, *BACK])
@pytest.mark.parametrize(("reached", "after_s"), [((LAUNCHED,), 900), ((LAUNCHED, REGISTERED), 900)])
def test_a_node_that_starts_has_its_time(cluster: Cluster, reached: Sequence[str], after_s: float, by_s: int) -> None:
    """Fifteen minutes to register or become ready; then it is given up."""
    cluster.put(pool(), pod("p"))
    claim = cluster.claimed(reached=reached, node_name="node-1" if REGISTERED in reached else "")
    if REGISTERED in reached:
        cluster.joined(claim, is_ready=False)
    controllers: list[Controller] = [Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings)]
    cluster.start(*controllers)
    ahead_s = set_by(cluster, 60, by_s)
    cluster.at(70 + ahead_s)
    cluster.change("NodeClaim", "gpu-1", metadata={"annotations": {"touched": "now"}})

    cluster.at(after_s - 60 + ahead_s)
    assert not cluster.claim().is_deleting
    cluster.at(after_s + 60 + ahead_s)
    assert [] == cluster.names("NodeClaim")


@pytest.mark.parametrize("by_s", [*FORWARD, *BACK])
def test_a_condition_of_a_node_is_tolerated_as_long_as_its_provider_says(cluster: Cluster, by_s: int) -> None:
    """Ten minutes for cards. Else a clock that is set would make all nodes broken that are not ready for a moment."""
    cluster.put(pool())
    cluster.running()
    cluster.start(Health(cluster.state, cluster.ports, repairs=True))
    cluster.at(60)
    tell(cluster, BAD)
    ahead_s = set_by(cluster, 70, by_s)
    cluster.at(300 + ahead_s)
    cluster.change("Node", "node-1", metadata={"labels": {"touched": "now"}})

    cluster.at(655 + ahead_s)
    assert cluster.claim().condition(UNHEALTHY) is None
    cluster.at(665 + ahead_s)
    assert cluster.claim().is_true(UNHEALTHY)


def quiet(cluster: Cluster) -> None:
    """A node whose pod came long ago, in a pool whose consolidateAfter is ten minutes."""
    cluster.put(pool(disruption={"consolidateAfter": "10m"}), pod("p", node="node-1"))
    cluster.running()
    cluster.start(PodEvents(cluster.state, cluster.ports), Consolidatable(cluster.state, cluster.ports))
    cluster.at(700)
    assert cluster.claim().is_true(CONSOLIDATABLE)


@pytest.mark.parametrize("by_s", [*FORWARD, *BACK])
def test_a_node_is_quiet_for_as_long_as_its_pool_says(cluster: Cluster, by_s: int) -> None:
    """From when the pod left."""
    quiet(cluster)
    cluster.remove("Pod", "p")
    ahead_s = set_by(cluster, 710, by_s)
    cluster.at(720 + ahead_s)
    cluster.change("NodeClaim", "gpu-1", metadata={"annotations": {"touched": "now"}})

    cluster.at(1290 + ahead_s)
    assert not cluster.claim().is_true(CONSOLIDATABLE)
    cluster.at(1310 + ahead_s)
    assert cluster.claim().is_true(CONSOLIDATABLE)


@pytest.mark.parametrize("by_s", [*FORWARD, *BACK])
def test_a_pod_that_comes_after_the_clock_was_set_is_noted(cluster: Cluster, by_s: int) -> None:
    """Also where the last that came or went is still to come by the clock."""
    quiet(cluster)
    ahead_s = set_by(cluster, 710, by_s)
    cluster.at(720 + ahead_s)
    cluster.put(pod("q", node="node-1"))

    cluster.at(721 + ahead_s)
    assert not cluster.claim().is_true(CONSOLIDATABLE)
    assert START_S + 720 + ahead_s == cluster.claim().last_pod_event_s


G5 = OfferingKey("g5.xlarge", "us-east-1a", "on-demand")


def withheld(cluster: Cluster) -> tuple[int, int]:
    """How many offerings are left out, and how many types."""
    held = cluster.at(cluster.now_s, cluster.book.withheld)
    return len(held.sold_out), len(held.back_offs)


def refuse(cluster: Cluster) -> None:
    """The offering is sold out, and a node of its type does not register."""
    cluster.book.mark_sold_out({G5: "insufficient capacity"})
    cluster.book.back_off("gpu", "g5.xlarge", "it never registered")


@pytest.mark.parametrize("by_s", [*FORWARD, *BACK])
def test_what_the_cloud_refused_rests_as_long_as_it_was_to(cluster: Cluster, by_s: int) -> None:
    """Three minutes for an offering that is sold out, five for a type that failed."""
    cluster.at(0, lambda: refuse(cluster))
    ahead_s = set_by(cluster, 60, by_s)

    found = [(cluster.at(after_s + ahead_s), withheld(cluster))[1] for after_s in (179, 181, 299, 301)]
    assert [(1, 1), (0, 1), (0, 1), (0, 0)] == found


@pytest.mark.parametrize("by_s", [*FORWARD, *BACK])
def test_a_refusal_right_after_the_clock_was_set_doubles_the_rest(cluster: Cluster, by_s: int) -> None:
    """The one before is not forgotten, and it counts as over only once it is; the times shown are the clock's."""
    cluster.at(0, lambda: refuse(cluster))
    ahead_s = set_by(cluster, 60, by_s)
    cluster.at(61 + ahead_s, lambda: refuse(cluster))
    held = cluster.at(cluster.now_s, cluster.book.withheld)
    assert [180.0 + ahead_s] == [each.until_s - START_S for each in held.sold_out]
    assert [300.0 + ahead_s] == [each.until_s - START_S for each in held.back_offs]

    cluster.at(301 + ahead_s, lambda: refuse(cluster))
    held = cluster.at(cluster.now_s, cluster.book.withheld)
    assert [301.0 + 360 + ahead_s] == [each.until_s - START_S for each in held.sold_out]
    assert [301.0 + 600 + ahead_s] == [each.until_s - START_S for each in held.back_offs]
