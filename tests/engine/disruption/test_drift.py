"""Nodes that are not what their pool says go in Karpenter's order, and others come first."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.disruption.candidates import candidates
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.drift import propose
from kerf.engine.world import World
from kerf.model.constraints import Requirements
from kerf.model.nodeclaim import (
    CONSOLIDATABLE,
    DO_NOT_DISRUPT,
    DRIFTED,
    INITIALIZED,
    LAUNCHED,
    PLANNED_PODS,
    READY,
    REGISTERED,
    TRUE,
    Condition,
)
from kerf.model.nodepool import Budget, Disruption
from kerf.model.pods import PodDisruptionBudget
from kerf.model.provisioningrequests import CONSUMES
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.windows import WINDOW_LABEL
from kerf.testing.builders import a_pod, resources
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, may_go, on, ours, pool_with


def drifted(name: str, since_s: float = 0, **given: Any) -> tuple[Any, Any]:
    """A node that has drifted, and need not be quiet."""
    node, claim = ours(name, **given)
    return node, claim.with_condition(Condition(DRIFTED, TRUE, "NodePoolDrifted", since_s=since_s)).without_condition(
        CONSOLIDATABLE
    )


def commands(snapshot: ClusterSnapshot) -> list[Command]:
    """All that the method has, best first."""
    return list(propose(World(snapshot, MARKET), may_go(snapshot)))


def going(snapshot: ClusterSnapshot) -> list[list[str]]:
    """The nodes of each command."""
    return [[deletion.node for deletion in command.deletions] for command in commands(snapshot)]


def test_empty_nodes_go_first_as_many_as_the_budget_allows() -> None:
    """One command for all of them, and the one with a pod waits."""
    nodes = [drifted("a"), drifted("b"), drifted("c")]

    assert [["a", "b"]] == going(a_cluster([free_pool()], nodes, [on("c", "x", cpu=1)]))
    assert [["a"]] == going(a_cluster([pool_with(Budget("1"))], nodes, [on("c", "x", cpu=1)]))


def test_of_nodes_with_pods_the_one_that_drifted_first_goes() -> None:
    """Its pod does not fit on the other, so a node is bought before."""
    nodes = [drifted("a", since_s=20), drifted("b", since_s=10)]
    one = pool_with(Budget("1"))
    first = commands(a_cluster([one], nodes, [on("a", "x", cpu=3), on("b", "y", cpu=3)]))[0]

    assert (["b"], 1) == ([each.node for each in first.deletions], len(first.launches))
    assert (first.launches[0].name,) == first.deletions[0].replaced_by
    assert ("b",) == first.launches[0].replaces


def test_of_nodes_that_drifted_together_the_one_with_the_fewest_pods_goes() -> None:
    """What it has may come to one that goes later; a minute later it is another change."""
    pods, one = [on("a", "x", cpu=1), on("a", "y", cpu=1), on("b", "z", cpu=1)], pool_with(Budget("1"))

    together = [drifted("a", since_s=10), drifted("b", since_s=20)]
    assert ["b"] == going(a_cluster([one], together, pods))[0]
    apart = [drifted("a", since_s=10), drifted("b", since_s=70)]
    assert ["a"] == going(a_cluster([one], apart, pods))[0]


def test_several_nodes_may_come_in_the_place_of_one() -> None:
    """The type of the old node is not sold any more."""
    size = {"cpu": 16, "memory": "64Gi", "pods": 58}
    big = drifted("big", instance_type="m4.4xlarge", allocatable=size)
    pods = [on("big", f"p{number}", cpu=5) for number in range(3)]
    first = commands(a_cluster([free_pool()], [big], pods))[0]

    assert 3 == len(first.launches)
    assert {"m5.2xlarge"} == {each.offering.instance_type for each in first.launches}


def test_a_step_that_needs_several_nodes_of_a_type_on_trial_takes_another_type() -> None:
    """One node of such a type is launched at a time, and the step is taken whole."""
    size = {"cpu": 16, "memory": "64Gi", "pods": 58}
    big = drifted("big", instance_type="m4.4xlarge", allocatable=size)
    snapshot = a_cluster([free_pool()], [big], [on("big", f"p{number}", cpu=3) for number in range(4)])
    usual, trial = MARKET, replace(MARKET, probed=frozenset({("pool", "m5.2xlarge")}))
    first, other = (next(propose(World(snapshot, each), may_go(snapshot))) for each in (usual, trial))

    assert ["m5.2xlarge"] * 2 == [each.offering.instance_type for each in first.launches]
    assert ["m5.xlarge"] * 4 == [each.offering.instance_type for each in other.launches]


def test_a_node_whose_pods_find_no_place_lets_the_next_go() -> None:
    """A pod that asks for more than any type has."""
    size = {"cpu": 64, "memory": "256Gi", "pods": 58}
    nodes = [drifted("a", since_s=1, allocatable=size), drifted("b", since_s=2)]
    held = a_cluster([free_pool()], nodes, [on("a", "x", cpu=60), on("b", "y", cpu=3)])

    assert [["b"]] == going(held)


def test_budgets_for_drift_hold() -> None:
    """Others do not."""
    nodes = [drifted("a")]
    closed = pool_with(Budget("0", (DRIFTED,)), Budget("100%"))
    other = pool_with(Budget("0", ("Underutilized",)))

    assert ([], [["a"]]) == (going(a_cluster([closed], nodes)), going(a_cluster([other], nodes)))


def test_limits_hold_while_both_are_there() -> None:
    """Of one node in all there is no room for another before it goes."""
    pool = replace(free_pool(), limits=resources(nodes=1))

    assert [] == going(a_cluster([pool], [drifted("a")], [on("a", "x", cpu=3)]))


def test_a_drain_that_ends_by_itself_is_not_held_back_by_pods() -> None:
    """With terminationGracePeriod neither a pod's annotation nor a budget blocks drift; without, both do."""
    kept = on("a", "x", cpu=1, annotations={DO_NOT_DISRUPT: "true"})
    budget = PodDisruptionBudget("default", "none", Requirements.of_labels({"app": "x"}), 0)
    for pods, budgets in (([kept], ()), ([on("a", "x", cpu=1, labels={"app": "x"})], (budget,))):
        node, claim = drifted("a")
        held = a_cluster([free_pool()], [(node, claim)], pods, disruption_budgets=budgets)
        forced = a_cluster(
            [free_pool()],
            [(node, replace(claim, termination_grace_period_s=60))],
            pods,
            disruption_budgets=budgets,
        )

        assert ([], 1) == (going(held), len(candidates(held)[1]))
        assert [["a"]] == going(forced)


def test_a_node_that_may_not_be_disrupted_stays() -> None:
    """The node's own annotation holds whatever its pool says."""
    node, claim = drifted("a", annotations={DO_NOT_DISRUPT: "true"})

    assert [] == going(a_cluster([free_pool()], [(node, replace(claim, termination_grace_period_s=60))]))


def test_drift_waits_for_no_quiet() -> None:
    """A pool whose consolidateAfter is Never replaces what has drifted."""
    pool = replace(free_pool(), disruption=Disruption(None, budgets=(Budget("100%"),)))

    assert [["a"]] == going(a_cluster([pool], [drifted("a")]))


def starting(name: str) -> tuple[Any, Any]:
    """A node that is there and not initialised yet."""
    return ours(name, reached=(LAUNCHED, REGISTERED))


def in_use(name: str) -> tuple[Any, Any]:
    """A node whose own consolidateAfter still runs."""
    return ours(name, reached=(LAUNCHED, REGISTERED, INITIALIZED, READY))


def test_pods_do_not_move_to_a_node_that_has_drifted() -> None:
    """They would move again: a node is bought, though another drifted one has room."""
    nodes = [drifted("a", since_s=1), drifted("b", since_s=2)]
    pods, one = [on("a", "x", cpu=1), on("b", "y", cpu=1)], pool_with(Budget("1"))
    first = commands(a_cluster([one], nodes, pods))[0]
    both = commands(a_cluster([free_pool()], nodes, pods))[0]

    assert (["a"], 1) == ([each.node for each in first.deletions], len(first.launches))
    assert (["a", "b"], 1) == ([each.node for each in both.deletions], len(both.launches))
    assert () == first.deletions[0].moved == both.deletions[0].moved == both.deletions[1].moved


def test_pods_move_to_any_node_that_stays() -> None:
    """Also where its own consolidateAfter runs: a node that was just bought has room for the next ones."""
    pool = replace(free_pool(), disruption=Disruption(300, budgets=(Budget("100%"),)))
    nodes = [drifted("a"), in_use("b")]
    first = commands(a_cluster([pool], nodes, [on("a", "x", cpu=1), on("b", "y", cpu=1)]))[0]

    assert (["a"], ["b"], ()) == (
        [each.node for each in first.deletions],
        [place.node for place in first.deletions[0].moved],
        first.launches,
    )


def test_as_many_go_at_once_as_budgets_allow() -> None:
    """In their order; each waits for what is bought for its pods alone."""
    nodes = [drifted(name, since_s=100 * number) for number, name in enumerate("edcba")]
    pods = [on(name, f"of-{name}", cpu=3) for name in "abcde"]
    first = commands(a_cluster([pool_with(Budget("3"))], nodes, pods))[0]

    assert ["e", "d", "c"] == [each.node for each in first.deletions]
    assert [(f"of-{each.node}",) for each in first.deletions] == [
        tuple(
            placed.pod.removeprefix("default/")
            for launch in first.launches
            for placed in launch.pods
            if launch.name in each.replaced_by and placed.pod.endswith(each.node)
        )
        for each in first.deletions
    ]
    assert all(len(each.replaced_by) == 1 for each in first.deletions)


def test_of_those_that_go_at_once_one_without_a_place_waits() -> None:
    """The others go; where limits leave room for two more nodes, those that fit on two."""
    large = {"cpu": 64, "memory": "256Gi", "pods": 58}
    nodes = [drifted("a", allocatable=large), *(drifted(name) for name in "bcde")]
    pods = [on(name, f"of-{name}", cpu=3) for name in "abcde"]
    stuck = [on("a", "of-a", cpu=60), *pods[1:]]

    assert ["b", "c", "d", "e"] == going(a_cluster([free_pool()], nodes, stuck))[0]
    assert ["a", "b", "c", "d"] == (going(a_cluster([replace(free_pool(), limits=resources(nodes=7))], nodes, pods))[0])


def test_a_node_waits_for_one_that_starts_and_has_room() -> None:
    """Nothing is bought beside it; a node whose pods do not fit there goes meanwhile."""
    nodes = [drifted("a", since_s=1), starting("b")]

    assert [] == going(a_cluster([free_pool()], nodes, [on("a", "x", cpu=1)]))
    assert [["c"]] == going(
        a_cluster(
            [free_pool()],
            [*nodes, drifted("c", since_s=2, instance_type="m5.2xlarge")],
            [on("a", "x", cpu=1), on("c", "y", cpu=5)],
        )
    )


def test_a_node_waits_for_one_that_starts_for_a_pod_of_it() -> None:
    """A step that was taken back in part leaves such a node; another is not bought for the same pod."""
    pods = [on("a", "x", cpu=3), on("b", "y", cpu=3)]
    node, claim = starting("b")
    promised = replace(claim, annotations={**claim.annotations, PLANNED_PODS: f'{{"{pods[0].key}": []}}'})

    assert [["a"]] == going(a_cluster([free_pool()], [drifted("a"), (node, claim)], pods))
    assert [] == going(a_cluster([free_pool()], [drifted("a"), (node, promised)], pods))


def test_where_only_drifted_nodes_have_room_they_take_the_pods() -> None:
    """The pool may have no more nodes: else none of them would ever go."""
    pool = replace(free_pool(), limits=resources(nodes=2))
    nodes = [drifted("a", since_s=1), drifted("b", since_s=2)]
    first = commands(a_cluster([pool], nodes, [on("a", "x", cpu=1), on("b", "y", cpu=1)]))[0]

    assert (["a"], ["b"], ()) == (
        [each.node for each in first.deletions],
        [place.node for place in first.deletions[0].moved],
        first.launches,
    )


def test_a_pod_that_waits_for_room_on_the_node_finds_another_place() -> None:
    """The plan has put it there; the node goes all the same, and only its own pods are moved."""
    nodes = [drifted("a"), in_use("b")]
    pods = [on("a", "x", cpu=1), on("b", "y", cpu=1), a_pod("waits", cpu=1)]
    first = commands(a_cluster([free_pool()], nodes, pods))[0]

    assert ["default/x"] == [place.pod.pod for place in first.deletions[0].moved]


@pytest.mark.parametrize(
    "given", [{"annotations": {CONSUMES[0]: "train"}}, {"labels": {WINDOW_LABEL: "night"}}], ids=["request", "window"]
)
def test_a_node_stays_with_a_pod_that_may_find_no_place_again(given: dict[str, Any]) -> None:
    """A request or a window that is not open judges a pod when it comes; it ends where it is, and the others go."""
    pods = [on("a", "held", cpu=1, **given), on("b", "free", cpu=1)]
    nodes = [drifted("a"), drifted("b"), ours("c")]

    assert [["b"]] == going(a_cluster([free_pool()], nodes, pods))
