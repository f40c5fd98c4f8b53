"""Which nodes may go, and which are blocked (karpenter disruption rules, v1.14)."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.disruption.candidates import candidates
from kerf.engine.disruption.causes import Blocked, DoNotDisrupt
from kerf.model.causes import Name
from kerf.model.nodeclaim import (
    CONSOLIDATABLE,
    DO_NOT_DISRUPT,
    INITIALIZED,
    LAUNCHED,
    REGISTERED,
    TRUE,
    Condition,
)
from kerf.model.pods import Owner
from kerf.model.promises import Promises, written
from kerf.model.rejections import REJECTED
from kerf.testing.builders import NOON_S, a_node, a_pod, a_snapshot
from tests.engine.disruption.clusters import a_cluster, free_pool, may_go, on, ours
from tests.engine.disruption.test_drift import drifted

PROTECTED = {DO_NOT_DISRUPT: "true"}


@pytest.mark.parametrize(
    "reached",
    [(LAUNCHED, REGISTERED, CONSOLIDATABLE), (LAUNCHED, REGISTERED, INITIALIZED)],
    ids=["not initialised", "not consolidatable"],
)
def test_only_initialised_consolidatable_nodes_may_go(reached: tuple[str, ...]) -> None:
    """Others are not even blocked: nobody asks for them."""
    assert ((), ()) == candidates(a_cluster([free_pool()], [ours("a", reached=reached)]))


def test_nodes_that_are_not_ours_or_go_already_are_left_alone() -> None:
    """No claim, no pool, or a deletion under way."""
    nodes = [ours("b", pool="unknown"), ours("c", deleted_s=NOON_S)]
    snapshot = a_cluster([free_pool()], [*nodes, ours("d")])
    foreign = replace(snapshot, nodes=(*snapshot.nodes, *a_snapshot(nodes=[a_node("e")]).nodes))

    assert ["d"] == [c.node.name for c in may_go(foreign)]


def test_daemons_and_ended_pods_do_not_move() -> None:
    """A node with nothing else is empty."""
    pods = [on("a", "agent", owner=Owner("DaemonSet", "agent")), on("a", "web"), a_pod("job", node_name="a")]
    pods[2] = replace(pods[2], phase="Succeeded")

    assert ["web"] == [pod.name for pod in may_go(a_cluster([free_pool()], [ours("a")], pods))[0].pods]


def test_blocked_nodes_are_reported_with_their_reason() -> None:
    """They are listed beside the candidates."""
    nodes = [ours("a", annotations=PROTECTED), ours("b")]

    found, blocked = candidates(a_cluster([free_pool()], nodes))

    assert ["b"] == [candidate.node.name for candidate in found]
    assert (Blocked(Name("a"), DoNotDisrupt()),) == blocked


def test_the_annotation_counts_on_the_claim_too() -> None:
    """Its value is what it is on a node."""
    node, claim = ours("a")

    def blocked(value: str) -> tuple[Blocked, ...]:
        held = replace(claim, annotations={DO_NOT_DISRUPT: value})
        return candidates(a_cluster([free_pool()], [(node, held)]))[1]

    assert (Blocked(Name("a"), DoNotDisrupt(is_of_claim=True)),) == blocked("true")
    assert () == blocked("false")


def test_a_node_of_a_static_pool_is_no_candidate_to_save_money() -> None:
    """Whatever a claim of the time before it was static says; one that has drifted is one."""
    pool = replace(free_pool(), replicas=1)
    (each,) = may_go(a_cluster([pool], [ours("a"), drifted("b")]))

    assert ("b", False) == (each.node.name, each.is_quiet)


@pytest.mark.parametrize(
    ("age_s", "waits", "is_quiet"),
    [
        pytest.param(60, {}, False, id="its scheduler has not come to it"),
        pytest.param(1_199, {}, False, id="nor after minutes"),
        pytest.param(1_200, {}, True, id="nor ever"),
        pytest.param(60, {"annotations": {REJECTED: "{}"}}, True, id="its scheduler will not"),
        pytest.param(60, {"node_name": "b", "phase": "Running"}, True, id="it runs elsewhere"),
    ],
)
def test_a_node_of_a_burst_is_not_under_used_while_its_pods_are_to_come(
    age_s: float, waits: dict[str, Any], is_quiet: bool
) -> None:
    """One of the two pods for which it was bought is bound, and stays; the other waits for its scheduler."""
    node, claim = ours("a")
    claim = replace(claim, annotations=written(Promises({"default/first": (), "default/second": ()})))
    claim = claim.without_condition(INITIALIZED)
    claim = claim.with_condition(Condition(INITIALIZED, TRUE, INITIALIZED, since_s=NOON_S - age_s))
    pods = [on("a", "first", cpu=1), a_pod("second", cpu=1, **waits)]
    found = may_go(a_cluster([free_pool()], [(node, claim), ours("b")], pods))

    assert [("a", is_quiet), ("b", True)] == [(each.node.name, each.is_quiet) for each in found]
