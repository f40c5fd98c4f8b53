"""Empty nodes go, as many as the budgets allow."""

from dataclasses import replace

from kerf.engine.disruption.causes import EmptyFor
from kerf.engine.disruption.emptiness import propose
from kerf.engine.explain.disruption import explained
from kerf.engine.world import World
from kerf.model.nodepool import EMPTY, WHEN_EMPTY, Budget, Disruption
from kerf.model.plan import Deletion, Plan
from kerf.model.pods import Owner
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.sharing.registry import FAMILIES, family_named
from kerf.testing.builders import NOON_S, a_pool, cards
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, may_go, on, ours, pool_with


def proposed(snapshot: ClusterSnapshot) -> list[Plan]:
    """All plans of the method."""
    return [explained(command) for command in propose(World(snapshot, MARKET), may_go(snapshot))]


def test_all_empty_nodes_go_in_one_plan() -> None:
    """What runs nothing but daemons is empty; a node with a pod stays."""
    pods = [on("a", "agent", owner=Owner("DaemonSet", "agent")), on("b", "web")]

    plans = proposed(a_cluster([free_pool()], [ours(name) for name in "abc"], pods))

    assert [["a", "c"]] == [[d.node for d in plan.deletions] for plan in plans]


def test_no_empty_node_is_no_plan() -> None:
    """Nothing is proposed."""
    assert [] == proposed(a_cluster([free_pool()], [ours("a")], [on("a", "web")]))


def test_a_deletion_says_how_long_and_how_much() -> None:
    """Node, claim, saved price, and since when it was empty."""
    node = ours("a", last_pod_event_s=NOON_S - 600)

    deletion = proposed(a_cluster([free_pool()], [node]))[0].deletions[0]

    why = "empty for 10m, saves 0.192 USD/h"
    assert Deletion("a", "a", "pool", 192_000, EMPTY, EmptyFor(600), why=why) == deletion


def test_a_node_that_never_had_a_pod_is_empty_since_it_was_initialised() -> None:
    """The condition's time counts then."""
    node, claim = ours("a")
    conditions = tuple(replace(c, since_s=NOON_S - 60) for c in claim.conditions)

    plan = proposed(a_cluster([free_pool()], [(node, replace(claim, conditions=conditions))]))[0]

    assert plan.deletions[0].why.startswith("empty for 1m,")


def test_the_most_expensive_go_first_where_the_budget_is_short() -> None:
    """Equal prices by name."""
    nodes = [ours("a"), ours("b", instance_type="g5.xlarge"), ours("c")]

    plan = proposed(a_cluster([pool_with(Budget("2"))], nodes))[0]

    assert ["b", "a"] == [d.node for d in plan.deletions]


def test_a_closed_budget_keeps_all() -> None:
    """Also when it closes for this reason alone."""
    assert [] == proposed(a_cluster([pool_with(Budget("0", reasons=(EMPTY,)))], [ours("a")]))


def test_never_means_never() -> None:
    """consolidateAfter Never keeps empty nodes; the policy WhenEmpty does not."""
    never = a_pool(disruption=Disruption(None))
    when_empty = a_pool(disruption=Disruption(0, policy=WHEN_EMPTY))

    assert [] == proposed(a_cluster([never], [ours("a")]))
    assert 1 == len(proposed(a_cluster([when_empty], [ours("a")])))


def test_cost_and_cards_fall_with_the_nodes() -> None:
    """The plan says what the cluster costs before and after, and how many cards are left."""
    snapshot = a_cluster([free_pool()], [ours("a", instance_type="g5.xlarge"), ours("b")], [on("b", "web")])
    devices = family_named("whole", FAMILIES).predict(cards(1), {}, {})
    first = snapshot.nodes[0]
    with_card = ClusterNode(first.node, first.claim, first.pods, devices, "whole")

    plan = proposed(replace(snapshot, nodes=(with_card, *snapshot.nodes[1:])))[0]

    assert (1_198_000, 192_000) == (plan.cost.before_micro, plan.cost.after_micro)
    assert 0 == plan.gpus.paid
