"""How many nodes of a pool the budgets let go (karpenter disruption rules, v1.14)."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.disruption.budgets import Allowance, Census
from kerf.model.nodeclaim import INSTANCE_TERMINATING, LAUNCHED, REGISTERED, REPLACED_BY
from kerf.model.nodepool import DRIFTED, EMPTY, UNDERUTILIZED, UNHEALTHY, Budget, NodePool
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import NOON_S, a_pool
from tests.engine.disruption.clusters import REACHED, a_cluster, ours, pool_with

HOUR_S = 3600


def may_go_of(snapshot: ClusterSnapshot, pool: NodePool, reason: str) -> int | None:
    """How many nodes of the pool may go now."""
    return Census(snapshot).allowed(pool, reason)


def room_in(budget: Budget, number: int = 10, reason: str = EMPTY, **given: Any) -> int | None:
    """How many of so many healthy nodes a single budget lets go."""
    pool = pool_with(budget)
    return may_go_of(a_cluster([pool], [ours(f"n-{n}") for n in range(number)], **given), pool, reason)


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

    assert 1 == may_go_of(a_cluster([pool], [ours(f"n-{n}") for n in range(10)]), pool, EMPTY)


def test_the_least_of_the_active_budgets_holds() -> None:
    """Budgets are met all together."""
    pool = pool_with(Budget("50%"), Budget("2"), Budget("90%"))

    assert 2 == may_go_of(a_cluster([pool], [ours(f"n-{n}") for n in range(10)]), pool, EMPTY)


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
        return may_go_of(a_cluster([pool], [*healthy, *others]), pool, EMPTY)

    assert 3 == left()
    assert 2 == left(ours("gone", deleted_s=NOON_S))
    assert 2 == left(ours("sick", is_ready=False))
    assert 0 == left(*(ours(f"x-{n}", is_ready=False) for n in range(5)))


OUT_OF_SERVICE: dict[str, dict[str, Any]] = {
    "claim deleted": {"deleted_s": NOON_S},
    "node deleted": {"node_deleted_s": NOON_S},
    "marked": {"annotations": {REPLACED_BY: "others"}},
    "not ready": {"is_ready": False},
}


def node_that(name: str, *, node_deleted_s: float | None = None, annotations: Any = None, **given: Any) -> Any:
    """A node of ours that is out of service in one of these ways."""
    node, claim = ours(name, **given)
    marked = replace(claim, annotations={**claim.annotations, **(annotations or {})})
    return replace(node, deleted_s=node_deleted_s), marked


@pytest.mark.parametrize("way", OUT_OF_SERVICE)
@pytest.mark.parametrize(
    "nodes, number, left",
    [
        ("100%", 1, [1, 0]),
        ("100%", 2, [2, 1, 0]),
        ("100%", 3, [3, 2, 1, 0]),
        ("100%", 7, [7, 6, 5, 4]),
        ("50%", 1, [1, 0]),
        ("50%", 2, [1, 0, 0]),
        ("50%", 3, [2, 1, 0, 0]),
        ("50%", 7, [4, 3, 2, 1, 0]),
        ("10%", 3, [1, 0]),
        ("10%", 7, [1, 0]),
        ("10%", 11, [2, 1, 0]),
        ("2", 2, [2, 1, 0]),
    ],
)
def test_percentages_count_nodes_that_go_as_the_others(nodes: str, number: int, left: list[int], way: str) -> None:
    """All that are initialised, as Karpenter counts: the first that goes makes no second one wait for its end."""
    pool = pool_with(Budget(nodes))
    for going, expected in enumerate(left):
        held = [node_that(f"n-{n}", **(OUT_OF_SERVICE[way] if n < going else {})) for n in range(number)]
        assert expected == may_go_of(a_cluster([pool], held), pool, DRIFTED)


def test_a_node_counts_until_it_is_gone() -> None:
    """Also while its instance ends, which Karpenter counts no more: of a budget of one there is never a second."""
    pool = pool_with(Budget("1"))
    ended = ours("ended", deleted_s=NOON_S, reached=(*REACHED, INSTANCE_TERMINATING))

    assert 0 == may_go_of(a_cluster([pool], [ours("a"), ours("b"), ended]), pool, EMPTY)


def test_a_node_that_never_was_initialised_uses_no_budget_by_its_end() -> None:
    """No pod of it is disrupted, whatever has become of it."""
    pool = pool_with(Budget("1"))
    failed = ours("failed", reached=(LAUNCHED, REGISTERED), is_ready=False, deleted_s=NOON_S)

    assert 1 == may_go_of(a_cluster([pool], [ours("a"), failed]), pool, EMPTY)


def test_a_broken_node_does_not_keep_itself_from_repair() -> None:
    """One that is not ready is counted, and uses nothing of what may be repaired; one that goes does."""
    pool = pool_with(Budget("50%"))
    broken = [ours(f"b-{n}", is_ready=False) for n in range(2)]

    assert 1 == may_go_of(a_cluster([pool], broken), pool, UNHEALTHY)
    assert 0 == may_go_of(a_cluster([pool], [broken[0], ours("gone", deleted_s=NOON_S)]), pool, UNHEALTHY)


def test_nodes_that_start_count_for_nothing() -> None:
    """Neither as healthy ones nor as ones that go; nor do other pools' nodes."""
    pool = pool_with(Budget("50%"))
    starting = [ours(f"s-{n}", reached=(LAUNCHED, REGISTERED), is_ready=False) for n in range(4)]
    others = [ours(f"o-{n}", pool="other") for n in range(4)]

    assert 1 == may_go_of(a_cluster([pool], [ours("a"), ours("b"), *starting, *others]), pool, EMPTY)


def test_an_allowance_counts_while_a_plan_is_made() -> None:
    """Each pool for itself; an unknown pool has none."""
    pools = [pool_with(Budget("1"), name="a"), pool_with(Budget("0", reasons=(UNDERUTILIZED,)), name="b")]
    allowance = Allowance(a_cluster(pools, [ours("n", pool="a")]), EMPTY)

    assert [True, False] == [allowance.take("a") for _ in range(2)]
    assert [True, True] == [allowance.take("b") for _ in range(2)]
    assert not allowance.take("unknown")


@pytest.mark.parametrize(
    "budgets, hours",
    [
        ((Budget("0", schedule="0 9 * * *", duration_s=8 * HOUR_S),), 5),
        ((Budget("0", schedule="@hourly", duration_s=2 * HOUR_S),), None),
        ((Budget("0"), Budget("0", schedule="0 9 * * *", duration_s=8 * HOUR_S)), None),
        ((Budget("0", schedule="0 9 * * *", duration_s=8 * HOUR_S), Budget("1")), 5),
        (
            (
                Budget("0", schedule="0 9 * * *", duration_s=4 * HOUR_S),
                Budget("0%", schedule="0 13 * * *", duration_s=HOUR_S),
            ),
            2,
        ),
        ((Budget("0", reasons=(UNDERUTILIZED,)),), 0),
        ((Budget("0", schedule="0 3 * * *", duration_s=HOUR_S),), 0),
    ],
    ids=["ends", "begins again", "another never ends", "another is open", "one after another", "of others", "later"],
)
def test_closed_budgets_say_when_they_open(budgets: tuple[Budget, ...], hours: float | None) -> None:
    """Hours from noon; 0 where they are open now, None where no schedule ends it."""
    pool = pool_with(*budgets)
    opens_s = Census(a_cluster([pool], [ours("a")])).opens_s(pool, EMPTY)

    assert hours == (None if opens_s is None else (opens_s - NOON_S) / HOUR_S)
