"""Under-used nodes go when their pods fit on others that are there."""

from dataclasses import replace
from typing import Any

from kerf.engine.disruption import consolidation, drift, emptiness, pricecaps, repacking, repair, staticdrift
from kerf.engine.disruption.consolidation import propose
from kerf.engine.disruption.first import METHODS
from kerf.engine.disruption.relocation import relocation
from kerf.engine.explain.disruption import explained
from kerf.engine.world import World
from kerf.model.nodeclaim import DRIFTED, LAUNCHED, REGISTERED, TRUE, Condition
from kerf.model.nodepool import UNDERUTILIZED, WHEN_EMPTY, Budget
from kerf.model.nodes import Node
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterSnapshot, Upserted
from kerf.sharing.hami.records import ALLOCATED, NODE
from kerf.state import ClusterState
from kerf.testing.builders import NOON_S, a_pod
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, may_go, on, ours, pool_with
from tests.engine.worlds import a_hami_node


def proposed(snapshot: ClusterSnapshot) -> list[Plan]:
    """All plans of the method."""
    return [explained(command) for command in propose(World(snapshot, MARKET), may_go(snapshot))]


def order(snapshot: ClusterSnapshot) -> list[str]:
    """Nodes in the order in which they would go."""
    return [plan.deletions[0].node for plan in proposed(snapshot)]


def test_methods_are_asked_emptiness_first() -> None:
    """As Karpenter's; what is above a price cap is replaced where nothing can just go. Only where a floor lets some of
    its nodes go, the cheapest fleet is looked for before an empty one does."""
    assert (
        repair.propose,
        repacking.propose_above_floors,
        emptiness.propose,
        staticdrift.propose,
        drift.propose,
        pricecaps.propose,
        repacking.propose,
        consolidation.propose,
    ) == METHODS


def test_a_node_goes_when_its_pods_fit_elsewhere() -> None:
    """The plan has one deletion, with where its pods go and what is saved."""
    snapshot = a_cluster([free_pool()], [ours("a"), ours("b")], [on("a", "x", cpu=1), on("b", "y", cpu=3)])

    deletion = proposed(snapshot)[0].deletions[0]

    assert ("a", UNDERUTILIZED, 192_000) == (deletion.node, deletion.reason, deletion.saved_micro)
    assert [("default/x", "b")] == [(m.pod.pod, m.node) for m in deletion.moved]
    assert "1 pod fits on other nodes, saves 0.192 USD/h" == deletion.why


def test_the_last_pod_is_not_moved_when_it_has_nowhere_to_go() -> None:
    """A cluster of one node keeps it."""
    assert [] == proposed(a_cluster([free_pool()], [ours("a")], [on("a", "x", cpu=1)]))


def test_all_pods_must_find_a_place() -> None:
    """One that fits nowhere keeps the node."""
    pods = [on("a", "x", cpu=1), on("a", "y", cpu=2), on("b", "z", cpu=2)]

    assert ["b"] == order(a_cluster([free_pool()], [ours("a"), ours("b")], [*pods[:1], pods[2]]))[1:]
    assert [] == [n for n in order(a_cluster([free_pool()], [ours("a"), ours("b")], pods)) if n == "a"]


def test_no_pod_is_moved_to_a_node_that_goes_for_drift_next() -> None:
    """It would move again; where no budget lets nodes go for drift, one that has drifted is as any other."""
    held = Budget("0", ("Drifted",)), Budget("100%")
    node, claim = ours("b")
    nodes = [ours("a"), (node, claim.with_condition(Condition(DRIFTED, TRUE, "NodePoolDrifted")))]
    pods = [on("a", "x", cpu=1), on("b", "y", cpu=3)]

    assert ["b"] == order(a_cluster([free_pool()], nodes, pods))
    assert {"a", "b"} == {*order(a_cluster([pool_with(*held)], nodes, pods))}


def test_empty_nodes_are_not_this_methods() -> None:
    """They go by emptiness, with its reason."""
    assert [] == proposed(a_cluster([free_pool()], [ours("a"), ours("b")]))


def test_when_empty_never_moves_a_pod() -> None:
    """Nor does consolidateAfter Never."""
    pods = [on("a", "x", cpu=1)]
    nodes = [ours("a"), ours("b")]
    never = replace(free_pool(), disruption=replace(free_pool().disruption, consolidate_after_s=None))

    assert [] == proposed(a_cluster([free_pool(policy=WHEN_EMPTY)], nodes, pods))
    assert [] == proposed(a_cluster([never], nodes, pods))


def test_a_starting_node_is_no_destination() -> None:
    """Nor a claim without a node, nor a node that goes."""
    pods = [on("a", "x", cpu=1)]
    starting = ours("b", reached=(LAUNCHED, REGISTERED))
    leaving = ours("c", deleted_s=NOON_S)

    assert [] == proposed(a_cluster([free_pool()], [ours("a"), starting, leaving], pods))


def test_pods_that_wait_take_their_place_first() -> None:
    """Room that a pending pod needs is not given to a moved one; `a`, where it goes, is nominated and stays."""
    nodes, pods = [ours("a"), ours("b")], [on("a", "x", cpu=2), on("b", "y", cpu=2)]

    assert ["a"] == order(a_cluster([free_pool()], nodes, pods))[:1]
    assert ["a"] == order(a_cluster([free_pool()], nodes, [*pods, a_pod("new", cpu=2)]))


def test_the_most_expensive_goes_first() -> None:
    """Price over what the move disturbs."""
    nodes = [ours("a"), ours("b", instance_type="m5.2xlarge"), ours("c")]
    pods = [on(name, f"p-{name}", cpu=1) for name in "abc"]

    assert ["b", "a", "c"] == order(a_cluster([free_pool()], nodes, pods))


def test_of_equal_prices_the_node_that_disturbs_least_goes_first() -> None:
    """Fewer pods, lower priority, lower deletion cost; a broken deletion cost is none."""
    nodes = [ours("a"), ours("b"), ours("c"), ours("d")]
    costly = {"controller.kubernetes.io/pod-deletion-cost": str(2**27)}
    broken = {"controller.kubernetes.io/pod-deletion-cost": "much"}
    pods = [
        on("a", "a-1", cpu="100m", priority=2**25),
        on("b", "b-1", cpu="100m", annotations=broken),
        on("c", "c-1", cpu="100m"),
        on("c", "c-2", cpu="100m"),
        on("c", "c-3", cpu="100m"),
        on("d", "d-1", cpu="100m", annotations=costly),
    ]

    assert ["b", "a", "d", "c"] == order(a_cluster([free_pool()], nodes, pods))


def test_a_closed_budget_keeps_the_node() -> None:
    """A budget for Underutilized alone too."""
    nodes, pods = [ours("a"), ours("b")], [on("a", "x", cpu=1)]

    assert [] == proposed(a_cluster([pool_with(Budget("0", reasons=(UNDERUTILIZED,)))], nodes, pods))


def test_a_node_whose_price_is_unknown_saves_nothing() -> None:
    """A type that the market does not know is no reason to move pods."""
    nodes = [ours("a", instance_type="unknown"), ours("b")]

    assert [] == proposed(a_cluster([free_pool()], nodes, [on("a", "x", cpu=1)]))


def hami_cluster(first: list[int], second: list[int], memory_mib: int = 22888) -> ClusterSnapshot:
    """Two HAMi nodes of two cards; each number is a slice on the card of that position."""
    state = ClusterState()
    state.apply(Upserted(free_pool()))
    amounts: dict[str, Any] = {"allocatable": {"cpu": 8, "pods": 58, "nvidia.com/gpu": 20}}
    for name, slices in (("a", first), ("b", second)):
        node, claim = ours(name, instance_type="g5.xlarge", **amounts)
        state.apply(Upserted(_numbered(a_hami_node(node, 2, memory_mib), name)))
        state.apply(Upserted(claim))
        for card, size in enumerate(slices):
            state.apply(Upserted(_holding(name, card, size)))
    return state.snapshot(NOON_S)


def _numbered(node: Node, name: str) -> Node:
    register = {key: text.replace("gpu-", f"{name}-gpu-") for key, text in node.annotations.items()}
    return replace(node, annotations=register)


def _holding(node: str, card: int, size: int) -> Pod:
    record = {NODE: node, ALLOCATED: f"{node}-gpu-{card},NVIDIA,{size},0:;"}
    fields: dict[str, Any] = {"gpu": 1, "gpumem": size, "scheduler_name": "hami-scheduler", "uid": f"{node}{card}"}
    return on(node, f"{node}-{card}", annotations=record, **fields)


def test_slices_move_only_where_one_card_holds_them() -> None:
    """12000 MiB are free on each card of the other node, 24000 in sum: a slice of 20000 stays, one of 10000 moves."""
    large, small = hami_cluster([20000], [10888, 10888]), hami_cluster([10000], [10888, 10888])

    assert "a" not in order(large)
    assert ["a"] == order(small)[:1]


def test_a_moved_pod_is_planned_without_its_old_record() -> None:
    """What HAMi wrote for the old node says nothing of the new one."""
    snapshot = hami_cluster([10000], [10000])

    moved = relocation(World(snapshot, MARKET), may_go(snapshot)[0])

    assert moved is not None
    assert [("default/a-0", "b")] == [(m.pod.pod, m.node) for m in moved]
    assert 1 == len(moved[0].pod.slices)
