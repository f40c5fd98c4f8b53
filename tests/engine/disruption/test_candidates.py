"""Which nodes may go, what forbids it, and how many the budgets allow (karpenter disruption rules, v1.14)."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.disruption.candidates import Allowance, allowed, blocked_by, candidates, is_protected
from kerf.model.constraints import Requirements
from kerf.model.nodeclaim import CONSOLIDATABLE, DISRUPTED_TAINT, DO_NOT_DISRUPT, INITIALIZED, LAUNCHED, REGISTERED
from kerf.model.nodepool import EMPTY, UNDERUTILIZED, Budget
from kerf.model.pods import Owner, PodDisruptionBudget
from kerf.testing.builders import NOON_S, a_node, a_pod, a_pool, a_snapshot
from tests.engine.disruption.clusters import a_cluster, free_pool, may_go, on, ours, pool_with

PROTECTED = {DO_NOT_DISRUPT: "true"}
HOUR_S = 3600


def room_in(budget: Budget, number: int = 10, reason: str = EMPTY, **given: Any) -> int | None:
    """How many of so many healthy nodes a single budget lets go."""
    pool = pool_with(budget)
    return allowed(a_cluster([pool], [ours(f"n-{n}") for n in range(number)], **given), pool, reason)


@pytest.mark.parametrize(
    "nodes, number, expected",
    [("10%", 1, 1), ("10%", 10, 1), ("10%", 11, 2), ("0%", 10, 0), ("100%", 3, 3), ("0", 3, 0), ("5", 3, 5)],
)
def test_percentages_are_rounded_up(nodes: str, number: int, expected: int) -> None:
    """10 % of one node is one node; numbers are taken as they are."""
    assert expected == room_in(Budget(nodes), number)


def test_the_default_budget_is_ten_percent() -> None:
    """A pool that states none lets one of its ten nodes go at a time."""
    pool = a_pool()

    assert 1 == allowed(a_cluster([pool], [ours(f"n-{n}") for n in range(10)]), pool, EMPTY)


def test_the_least_of_the_active_budgets_holds() -> None:
    """Budgets are met all together."""
    pool = pool_with(Budget("50%"), Budget("2"), Budget("90%"))

    assert 2 == allowed(a_cluster([pool], [ours(f"n-{n}") for n in range(10)]), pool, EMPTY)


def test_a_budget_for_other_reasons_does_not_hold() -> None:
    """No active budget at all means any number."""
    budget = Budget("0", reasons=(UNDERUTILIZED,))

    assert room_in(budget, reason=EMPTY) is None
    assert 0 == room_in(budget, reason=UNDERUTILIZED)


@pytest.mark.parametrize(
    "schedule, hours, expected",
    [
        ("0 9 * * *", 8, 0),
        ("0 9 * * *", 4, 0),
        ("0 9 * * *", 3, None),
        ("0 12 * * *", 1, 0),
        ("0 9 * * *", 2, None),
        ("0 13 * * *", 8, None),
        ("0 9 * * mon", 8, 0),
        ("0 9 * * tue", 8, None),
        ("@daily", 13, 0),
        ("@daily", 11, None),
        ("@hourly", 1, 0),
    ],
)
def test_a_schedule_opens_a_window_in_utc(schedule: str, hours: int, expected: int | None) -> None:
    """At noon on a Monday: the budget holds from each hit of its cron for its duration, the end excluded."""
    assert expected == room_in(Budget("0", schedule=schedule, duration_s=hours * HOUR_S))


def test_nodes_that_go_or_are_not_ready_use_the_budget() -> None:
    """They are disrupted already, whoever did it."""
    pool = pool_with(Budget("3"))
    healthy = [ours(f"n-{n}") for n in range(8)]

    def left(*others: Any) -> int | None:
        return allowed(a_cluster([pool], [*healthy, *others]), pool, EMPTY)

    assert 3 == left()
    assert 2 == left(ours("gone", deleted_s=NOON_S))
    assert 2 == left(ours("sick", is_ready=False))
    assert 0 == left(*(ours(f"x-{n}", is_ready=False) for n in range(5)))


def test_nodes_that_start_count_for_nothing() -> None:
    """Neither as healthy ones nor as ones that go; nor do other pools' nodes."""
    pool = pool_with(Budget("50%"))
    starting = [ours(f"s-{n}", reached=(LAUNCHED, REGISTERED), is_ready=False) for n in range(4)]
    others = [ours(f"o-{n}", pool="other") for n in range(4)]

    assert 1 == allowed(a_cluster([pool], [ours("a"), ours("b"), *starting, *others]), pool, EMPTY)


def test_an_allowance_counts_while_a_plan_is_made() -> None:
    """Each pool for itself; an unknown pool has none."""
    pools = [pool_with(Budget("1"), name="a"), pool_with(Budget("0", reasons=(UNDERUTILIZED,)), name="b")]
    allowance = Allowance(a_cluster(pools, [ours("n", pool="a")]), EMPTY)

    assert [True, False] == [allowance.take("a") for _ in range(2)]
    assert [True, True] == [allowance.take("b") for _ in range(2)]
    assert not allowance.take("unknown")


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


def why_not(*pods: Any, node: Any = None, **given: Any) -> str:
    """What forbids to disrupt node `a`."""
    held, claim = node or ours("a")
    return blocked_by(held, pods, a_cluster([free_pool()], [(held, claim)], pods, **given))


def test_a_marked_or_protected_node_stays() -> None:
    """Only the value `true` protects a node."""
    assert "node is deleting or marked for deletion" == why_not(node=ours("a", taints=(DISRUPTED_TAINT,)))
    assert f'disruption is blocked through the "{DO_NOT_DISRUPT}" annotation' == (
        why_not(node=ours("a", annotations=PROTECTED))
    )
    assert "" == why_not(node=ours("a", annotations={DO_NOT_DISRUPT: "1h"}))


def test_a_node_that_a_pending_pod_waits_for_stays() -> None:
    """Its nomination is a promise."""
    assert "node is nominated for a pending pod" == why_not(a_pod("p", nominated_node="a"))


@pytest.mark.parametrize("owner", [None, Owner("DaemonSet", "x"), Owner("Node", "a")], ids=["any", "daemon", "mirror"])
def test_a_protected_pod_holds_its_node(owner: Owner | None) -> None:
    """Also a DaemonSet's and a mirror pod."""
    assert f'pod default/p has "{DO_NOT_DISRUPT}" annotation' == why_not(
        on("a", "p", owner=owner, annotations=PROTECTED)
    )


@pytest.mark.parametrize("state", [{"phase": "Succeeded"}, {"deleted_s": NOON_S}], ids=["ended", "terminating"])
def test_a_pod_that_is_over_holds_nothing(state: dict[str, Any]) -> None:
    """Terminal and terminating pods never block."""
    assert "" == why_not(replace(on("a", "p", annotations=PROTECTED), **state))


@pytest.mark.parametrize(
    "value, age_s, protected",
    [
        ("true", 10**9, True),
        ("True", 0, False),
        ("false", 0, False),
        ("", 0, False),
        ("1h30m", 5399, True),
        ("1h30m", 5400, False),
        ("45s", 44, True),
        ("0s", 0, False),
        ("10", 0, False),
        ("m", 0, False),
        ("-5m", 0, False),
    ],
)
def test_protection_is_true_or_a_duration_from_the_pods_start(value: str, age_s: float, protected: bool) -> None:
    """Anything else is ignored."""
    pod = on("a", "p", annotations={DO_NOT_DISRUPT: value}, started_s=NOON_S - age_s)

    assert protected == is_protected(pod, NOON_S)


def test_a_pod_that_never_started_is_as_old_as_its_object() -> None:
    """The duration counts from creation then."""
    pod = a_pod("p", annotations={DO_NOT_DISRUPT: "1h"}, created_s=NOON_S - 1800)

    assert is_protected(pod, NOON_S)
    assert not is_protected(pod, NOON_S + 1800)


def a_budget(name: str = "web", allowed: int = 0, **labels: str) -> PodDisruptionBudget:
    """A PodDisruptionBudget for pods with these labels."""
    return PodDisruptionBudget("default", name, Requirements.of_labels(labels), allowed)


def test_an_exhausted_budget_holds_the_node() -> None:
    """A PodDisruptionBudget that allows an eviction does not, nor one for other pods."""
    pod = on("a", "p", labels={"app": "web"})

    assert "pdb default/web prevents pod evictions" == why_not(pod, disruption_budgets=(a_budget(app="web"),))
    assert "" == why_not(pod, disruption_budgets=(a_budget(allowed=1, app="web"),))
    assert "" == why_not(pod, disruption_budgets=(a_budget(app="db"),))


def test_two_budgets_on_one_pod_hold_it_for_ever() -> None:
    """The eviction API refuses such a pod whatever they allow."""
    both = (a_budget("one", 5), a_budget("two", 5))

    assert "eviction does not support multiple PDBs (pod default/p)" == why_not(on("a", "p"), disruption_budgets=both)


def test_a_budget_does_not_hold_a_mirror_pod_and_holds_a_daemon() -> None:
    """The kubelet makes a mirror pod from its file; nobody evicts it."""
    mirror, daemon = (on("a", "p", owner=Owner(kind, "x")) for kind in ("Node", "DaemonSet"))

    assert "" == why_not(mirror, disruption_budgets=(a_budget(),))
    assert "pdb default/web prevents pod evictions" == why_not(daemon, disruption_budgets=(a_budget(),))


def test_blocked_nodes_are_told_with_their_reason() -> None:
    """They are listed beside the candidates."""
    nodes = [ours("a", annotations=PROTECTED), ours("b")]

    found, blocked = candidates(a_cluster([free_pool()], nodes))

    assert ["b"] == [candidate.node.name for candidate in found]
    assert ["a"] == [held.node for held in blocked]
