"""001-22: what controllers do for floors and price caps of NodePools."""

import pytest

from kerf.controllers.conditions import PoolStatus
from kerf.controllers.disruption import DisruptionController
from kerf.controllers.nodeclaim.pricecaps import PriceCaps
from kerf.controllers.provisioning import Provisioning
from kerf.sim.objects import Json
from tests.controllers.cluster import STAGES, Cluster, pod, pool

CAP, FLOOR = "kerf.dev/max-price-per-hour", "kerf.dev/min-nodes"


def overlay(price: str) -> Json:
    """g5.xlarge at another price."""
    wanted = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.xlarge"]}]
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "discount"},
        "spec": {"requirements": wanted, "price": price},
    }


def start_caps(cluster: Cluster) -> None:
    """The controller that marks nodes, also in a second life."""
    cluster.start(PriceCaps(cluster.state, cluster.ports, cluster.book, cluster.settings))


def start_floors(cluster: Cluster) -> None:
    """The controllers that buy and take away."""
    parts = (cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings)
    cluster.start(Provisioning(*parts), DisruptionController(*parts))


def staying(cluster: Cluster) -> list[str]:
    """The claims that are not being deleted."""
    return [c["metadata"]["name"] for c in cluster.api.list("NodeClaim") if "deletionTimestamp" not in c["metadata"]]


def marked(cluster: Cluster) -> tuple[str, str]:
    """Status and message of the mark; empty without one."""
    held = cluster.claim().condition("PriceCapExceeded")
    return ("", "") if held is None else (held.status, held.message)


def test_a_node_whose_price_rises_above_the_cap_is_marked_once_and_kept(cluster: Cluster) -> None:
    """When it falls again the mark is taken back; a restart in between says nothing anew."""
    cluster.put(pool(annotations={CAP: "0.90"}), overlay("0.70"))
    cluster.running(1)
    start_caps(cluster)
    cluster.at(60)
    assert ("", "") == marked(cluster)

    cluster.change("NodeOverlay", "discount", spec={"price": "1.12"})
    assert ("True", "price 1.12 > cap 0.90") == marked(cluster)
    cluster.crash()
    start_caps(cluster)
    cluster.at(600)
    assert 1 == len(cluster.said("PriceCapExceeded"))
    assert ["gpu-1"] == cluster.names("NodeClaim")

    cluster.change("NodeOverlay", "discount", spec={"price": "0.90"})
    assert ("False", "") == marked(cluster)


def test_prices_of_the_cloud_are_looked_up_again(cluster: Cluster) -> None:
    """Nobody announces them; a mark goes with the cap, too."""
    cluster.put(pool(annotations={CAP: "4.50"}))
    cluster.running(1)
    start_caps(cluster)
    cluster.at(10, lambda: cluster.cloud.set_price(5_000_000, "g5.xlarge"))
    cluster.at(40)
    assert ("True", "price 5.00 > cap 4.50") == marked(cluster)

    cluster.change("NodePool", "gpu", metadata={"annotations": {CAP: None}})
    assert "False" == marked(cluster)[0]


def test_a_floor_is_bought_without_a_pod_and_again_when_a_node_is_lost(cluster: Cluster) -> None:
    """An annotation that comes later counts at once, though it is no part of the generation."""
    cluster.put(pool())
    start_floors(cluster)
    cluster.change("NodePool", "gpu", metadata={"annotations": {FLOOR: "2"}})
    cluster.at(30)
    first = cluster.names("NodeClaim")
    cluster.remove("NodeClaim", first[0])
    cluster.at(60)

    assert (2, 2) == (len(first), len(staying(cluster)))
    assert first[1] in staying(cluster)
    assert "2 nodes (kerf.dev/min-nodes) and has 0" in cluster.said("BelowMinNodes")[0]


def test_empty_nodes_of_the_floor_stay(cluster: Cluster) -> None:
    """Of three empty nodes one goes."""
    budgets = [{"nodes": "100%"}]
    cluster.put(pool(annotations={FLOOR: "2"}, disruption={"consolidateAfter": "0s", "budgets": budgets}))
    for number in (1, 2, 3):
        cluster.running(number, reached=(*STAGES, "Consolidatable"))
    start_floors(cluster)
    cluster.at(120)

    assert 2 == len(staying(cluster))


def test_a_floor_that_cannot_be_had_is_said(cluster: Cluster) -> None:
    """On the pool, and not at every look."""
    cluster.put(pool(annotations={FLOOR: "2"}, limits={"nodes": "1"}))
    start_floors(cluster)
    cluster.at(200)

    assert ["NodePool gpu has 1 of 2 nodes (kerf.dev/min-nodes): its limit nodes leaves no room for a g5.xlarge"] == (
        cluster.said("MinNodesUnmet")
    )


@pytest.mark.parametrize(
    ("key", "is_ready"), [(CAP, "False"), ("kerf.dev/max-price-per-gpu-hour", "False"), (FLOOR, "True")]
)
def test_an_annotation_that_cannot_be_read_is_said_on_the_pool(cluster: Cluster, key: str, is_ready: str) -> None:
    """A broken price stops the pool, a broken floor only disruption; place, expectation and value are named."""
    cluster.put(pool(annotations={key: "many"}))
    cluster.start(PoolStatus(cluster.state, cluster.ports))
    conditions = {c["type"]: c for c in cluster.api.list("NodePool")[0]["status"]["conditions"]}

    assert ("False", is_ready) == (conditions["ValidationSucceeded"]["status"], conditions["Ready"]["status"])
    assert f"annotation {key}: expected " in conditions["ValidationSucceeded"]["message"]
    assert "got 'many'" in conditions["ValidationSucceeded"]["message"]


def test_a_node_over_its_price_cap_is_replaced_once(cluster: Cluster) -> None:
    """A restart finds the new claim and buys no second one."""
    budgets = [{"nodes": "100%"}]
    types = ("g5.xlarge", "m5.large")
    cluster.put(pool(types=types, annotations={CAP: "1.50"}, disruption={"consolidateAfter": "0s", "budgets": budgets}))
    card = {"nvidia.com/gpu": "1", "cpu": "4", "memory": "16Gi", "pods": "58"}
    cluster.running(1, reached=(*STAGES, "Consolidatable"), node={"allocatable": card})
    cluster.put(pod(node="node-1", owner="ReplicaSet", limits={"cpu": "1"}))
    start_floors(cluster)
    cluster.at(20)
    first = cluster.names("NodeClaim")
    cluster.crash()
    start_floors(cluster)
    cluster.at(400)

    assert 2 == len(first) == len(cluster.names("NodeClaim"))
    successor = next(claim for claim in cluster.api.list("NodeClaim") if claim["metadata"]["name"] != "gpu-1")
    annotations = successor["metadata"]["annotations"]
    assert ("gpu-1", "1.00") == (annotations["kerf.dev/replaces"], annotations["kerf.dev/planned-price"])
    assert "takes 1 pod of node node-1, which then goes" in cluster.said("Replacing")[0]
    assert "price 4.00 > cap 1.50" in cluster.condition("DisruptionReason")[2]
