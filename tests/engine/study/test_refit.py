"""Nodes that are there, beside those that Kerf would buy for their pods."""

from kerf.engine.options import Options
from kerf.engine.study.refit import Fleet, Refit, refit, without
from kerf.engine.world import World
from kerf.model.nodes import Node
from kerf.model.pods import Owner, Pod
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type

MARKET = a_market(an_instance_type("m5.xlarge", price="0.20"), an_instance_type("m5.2xlarge", cpu=8, price="0.40"))
OPTIONS = Options(with_bound=False)
LARGE, SMALL = ("m5.2xlarge", "on-demand"), ("m5.xlarge", "on-demand")


def on(node: str, name: str, cpu: int = 1, owner: str = "ReplicaSet") -> Pod:
    """A pod that runs there."""
    return a_pod(name, cpu=cpu, node_name=node, phase="Running", owner=Owner(owner, name, "apps/v1"))


def a_cluster(*pods: Pod, others: tuple[Node, ...] = ()) -> ClusterSnapshot:
    """Two nodes of 8 cores, bought for the pool, with these pods, and nodes that no pool bought."""
    names, kind = ("a", "b"), "m5.2xlarge"
    nodes = [a_node(name, instance_type=kind, allocatable={"cpu": 8, "memory": "16Gi", "pods": 58}) for name in names]
    claims = [a_claim(f"claim-{name}", node_name=name, instance_type=kind) for name in names]
    return a_snapshot(pools=[a_pool()], pods=pods, nodes=[*nodes, *others], claims=claims)


def refitted(snapshot: ClusterSnapshot, *nodes: str) -> Refit:
    """One of these nodes."""
    return refit(World(snapshot, MARKET), nodes, OPTIONS)


def test_pods_of_two_large_nodes_go_on_one_small_one() -> None:
    """Both sides with their prices."""
    made = refitted(a_cluster(on("a", "x"), on("b", "y")), "a", "b")

    assert Refit(2, Fleet(2, 800_000, {LARGE: 2}), Fleet(1, 200_000, {SMALL: 1})) == made


def test_only_the_nodes_that_are_named_are_compared() -> None:
    """The other takes pods first, as in any plan."""
    made = refitted(a_cluster(on("a", "x"), on("b", "y")), "a", "gone")

    assert Refit(1, Fleet(1, 400_000, {LARGE: 1}), Fleet(), placed_on_others=1) == made


def test_pods_of_daemon_sets_and_static_pods_ask_for_nothing() -> None:
    """They come with any node."""
    made = refitted(a_cluster(on("a", "x", owner="DaemonSet"), on("b", "y", owner="Node")), "a", "b")

    assert (0, Fleet()) == (made.pods, made.planned)


def test_a_pod_that_no_type_holds_any_more_is_counted() -> None:
    """A type that is not sold today may hold what nothing else holds."""
    assert 1 == refitted(a_cluster(on("a", "x", cpu=8), on("b", "y", cpu=9)), "a", "b").unplaced


def test_pods_that_wait_are_on_neither_side() -> None:
    """The present nodes do not hold them."""
    snapshot = a_cluster(on("a", "x"), a_pod("waiting", cpu=3))

    assert ["default/x"] == [pod.key for pod in without(snapshot, ("a", "b")).pending]
    assert ["default/x"] == [pod.key for pod in without(snapshot, ("b", "a")).pending]


def test_nodes_of_no_pool_take_no_pods() -> None:
    """Their room is not paid for in the comparison."""
    system = a_node("system", instance_type="m5.2xlarge", allocatable={"cpu": 8, "memory": "16Gi", "pods": 58})
    made = refitted(a_cluster(on("a", "x"), on("b", "y"), others=(system,)), "a", "b")

    assert (0, 1) == (made.placed_on_others, made.planned.nodes)
