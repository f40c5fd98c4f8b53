"""A static pool has as many nodes as it states: more are bought, surplus ones go."""

from typing import Any

from kerf.controllers.conditions import Consolidatable, PoolStatus
from kerf.controllers.nodepool.static import StaticPools
from kerf.controllers.provisioning import Provisioning
from kerf.model.nodeclaim import DO_NOT_DISRUPT, DRIFTED, TRUE, Condition
from kerf.sim.objects import Json
from tests.controllers.cluster import STAGES, Cluster, pod, pool


def static(replicas: int, **given: Any) -> Json:
    """A pool of so many nodes."""
    return pool(replicas=replicas, disruption={"budgets": [{"nodes": "0"}]}, **given)


def begin(cluster: Cluster) -> None:
    """The controllers, also in a second life."""
    parts = (cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings)
    cluster.start(
        Provisioning(*parts),
        StaticPools(cluster.state, cluster.ports, cluster.actuator),
        PoolStatus(cluster.state, cluster.ports),
        Consolidatable(cluster.state, cluster.ports),
    )


def staying(cluster: Cluster) -> list[str]:
    """The claims that are not being deleted."""
    return [c["metadata"]["name"] for c in cluster.api.list("NodeClaim") if "deletionTimestamp" not in c["metadata"]]


def test_missing_nodes_are_bought_though_no_pod_waits(cluster: Cluster) -> None:
    """And a pod that waits buys none there."""
    cluster.put(static(3), pod("a"))
    begin(cluster)
    cluster.at(30)

    assert 3 == len(staying(cluster))
    assert {"NodePool gpu keeps 3 nodes (spec.replicas) and has 0"} == {
        text.partition(": ")[2] for text in cluster.said("BelowMinNodes")
    }
    (held,) = cluster.api.list("NodePool")
    ready = next(each for each in held["status"]["conditions"] if each["type"] == "Ready")
    assert "True" == ready["status"]


def test_a_limit_of_nodes_holds(cluster: Cluster) -> None:
    """The event says so."""
    cluster.put(static(3, limits={"nodes": "2"}))
    begin(cluster)
    cluster.at(30)

    assert 2 == len(staying(cluster))


def test_surplus_nodes_go_whatever_budgets_say(cluster: Cluster) -> None:
    """One without a node first, then an empty one, then the one with fewer pods."""
    cluster.put(static(4))
    for number in (1, 2, 3):
        cluster.running(number)
    cluster.claimed("gpu-4", reached=())
    cluster.put(pod("a", node="node-1", limits={"cpu": "100m"}), pod("b", node="node-1", limits={"cpu": "100m"}))
    cluster.put(pod("c", node="node-2", limits={"cpu": "100m"}))
    begin(cluster)
    assert 4 == len(staying(cluster))

    for replicas, left in ((3, ["gpu-1", "gpu-2", "gpu-3"]), (2, ["gpu-1", "gpu-2"]), (1, ["gpu-1"]), (0, [])):
        cluster.change("NodePool", "gpu", spec={"replicas": replicas})
        assert left == staying(cluster)
    assert ("True", "ScaledDown") == cluster.condition("DisruptionReason")[:2]


def test_of_surplus_nodes_those_that_have_drifted_go_first(cluster: Cluster) -> None:
    """Although pods run there and the new ones are empty or still to come: these would only be bought again."""
    cluster.put(static(4))
    up = tuple(Condition(stage, TRUE, stage) for stage in STAGES)
    drifted = Condition(DRIFTED, TRUE, "NodePoolDrifted")
    for number in (1, 2, 3):
        cluster.running(number, conditions=(*up, drifted) if number < 3 else up)
        cluster.put(pod(f"p{number}", node=f"node-{number}", limits={"cpu": "100m"}))
    cluster.put(pod("kept", node="node-2", limits={"cpu": "100m"}, annotations={DO_NOT_DISRUPT: "true"}))
    cluster.claimed("gpu-4", reached=())
    begin(cluster)

    for replicas, left in ((3, ["gpu-2", "gpu-3", "gpu-4"]), (2, ["gpu-2", "gpu-3"]), (1, ["gpu-2"]), (0, [])):
        cluster.change("NodePool", "gpu", spec={"replicas": replicas})
        assert left == staying(cluster)


def test_nodes_of_a_static_pool_are_not_consolidated(cluster: Cluster) -> None:
    """Empty as they are."""
    cluster.put(static(1))
    cluster.running()
    begin(cluster)
    cluster.at(3600)

    assert not cluster.claim().is_true("Consolidatable")
