"""Who of a node that goes is evicted when, what holds the others, and the words for it."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from kerf.engine.draining import (
    Awaited,
    Drain,
    Ending,
    EvictionRefused,
    HeldByBudget,
    HeldByBudgets,
    LaterTier,
    Protected,
    Tier,
    ToEvict,
    Why,
    drain_of,
    forced,
    tier_of,
)
from kerf.engine.explain.draining import awaited_text, failed_draining_text, held_text
from kerf.model.constraints import Requirements
from kerf.model.eviction import Budgets, protected_until_s
from kerf.model.nodeclaim import DO_NOT_DISRUPT
from kerf.model.opportunistic import OPPORTUNISTIC
from kerf.model.pods import Owner, Pod, PodDisruptionBudget
from kerf.testing.builders import NOON_S, a_pod

CRITICAL: dict[str, Any] = {"priority_class": "system-node-critical"}
DAEMON: dict[str, Any] = {"owner": Owner("DaemonSet", "d")}
PROTECTED = {DO_NOT_DISRUPT: "true"}
NO_BUDGETS = Budgets(())


def a_budget(name: str = "web", **given: Any) -> PodDisruptionBudget:
    """A budget that allows nothing, for pods labelled `app: web`."""
    return PodDisruptionBudget("default", name, Requirements.of_labels({"app": "web"}), **given)


def whys(drain: Drain) -> dict[str, Why]:
    """By the pods' names, in the order in which the drain has them."""
    return {each.pod.name: each.why for each in drain.awaited}


@pytest.mark.parametrize(
    "tier, given",
    [
        (Tier.ORDINARY, {}),
        (Tier.ORDINARY, {"priority": 1_999_999_999}),
        (Tier.DAEMON, DAEMON),
        (Tier.CRITICAL, CRITICAL),
        (Tier.CRITICAL, {"priority_class": "system-cluster-critical"}),
        (Tier.CRITICAL, {"priority": 2_000_000_000}),
        (Tier.CRITICAL_DAEMON, {**CRITICAL, **DAEMON}),
    ],
)
def test_the_tier_follows_from_owner_and_class(tier: Tier, given: dict[str, Any]) -> None:
    """Karpenter knows the two classes by name; a priority of theirs counts as much."""
    assert tier is tier_of(a_pod(**given))


def test_in_a_tier_the_least_priority_goes_first() -> None:
    """As kubelet ends the pods of a node that is shut down; of equals by their names. Tiers come before priorities."""
    pods = [a_pod("b", priority=10), a_pod("a", priority=10), a_pod("c", priority=-5), a_pod("d", priority=100)]
    drain = drain_of([a_pod("e", priority=-100, **DAEMON), *pods], NO_BUDGETS, NOON_S)

    assert ["c", "a", "b", "d"] == [pod.name for pod in drain.evictable]
    assert ["c", "a", "b", "d", "e"] == [each.pod.name for each in drain.awaited]


def test_only_the_first_tier_is_evicted() -> None:
    """In the order of names; the others wait for it, whatever holds them."""
    pods = [a_pod("d", **DAEMON), a_pod("b"), a_pod("a"), a_pod("c", annotations=PROTECTED, **CRITICAL)]
    drain = drain_of(pods, NO_BUDGETS, NOON_S)

    assert ["a", "b"] == [pod.name for pod in drain.evictable]
    later = LaterTier(Tier.ORDINARY)
    assert {"a": ToEvict(), "b": ToEvict(), "d": later, "c": later} == whys(drain)
    assert ((), 4, None) == (drain.held, drain.waiting, drain.next_s)


def test_what_nothing_ends_is_not_waited_for() -> None:
    """Ended pods, static ones, and those that are there a minute after their grace."""
    stuck, ending = a_pod("s", deleted_s=NOON_S - 60), a_pod("e", deleted_s=NOON_S - 59)
    pods = [a_pod("a", phase="Succeeded"), a_pod("n", owner=Owner("Node", "n")), stuck, ending]

    assert {"e": Ending(NOON_S - 59)} == whys(drain_of(pods, NO_BUDGETS, NOON_S))
    assert NOON_S + 1 == drain_of(pods, NO_BUDGETS, NOON_S).next_s


@pytest.mark.parametrize(
    "value, until_s",
    [("true", inf), ("10m", 600.0), ("false", 0), ("", 0), ("Never", 0), ("-5m", 0)],
)
def test_do_not_disrupt_holds_until(value: str, until_s: float) -> None:
    """From the pod's start on; what says nothing sensible is ignored."""
    pod = a_pod(annotations={DO_NOT_DISRUPT: value}, created_s=0, started_s=None)
    assert until_s == protected_until_s(pod)


def test_a_protected_pod_is_not_evicted() -> None:
    """And what it holds is looked at again when its time is over. An opportunistic pod has no such right."""
    for_long = a_pod("a", annotations=PROTECTED)
    for_a_time = a_pod("b", annotations={DO_NOT_DISRUPT: "10m"}, created_s=NOON_S, started_s=NOON_S)
    idle = a_pod("c", annotations=PROTECTED, labels={OPPORTUNISTIC: "true"})
    drain = drain_of([for_long, for_a_time, idle], NO_BUDGETS, NOON_S)

    assert {"a": Protected(None), "b": Protected(NOON_S + 600), "c": ToEvict()} == whys(drain)
    assert ((idle,), NOON_S + 600) == (drain.evictable, drain.next_s)


def test_a_pod_that_a_budget_covers_is_asked_for_and_one_of_several_budgets_never() -> None:
    """Whether one budget allows it only the API knows; several it never lets go. Its answer is kept."""
    pod = a_pod("a", labels={"app": "web"}, uid="uid-a")
    one, other = a_budget(is_blocking=True), a_budget("another", disruptions_allowed=5)

    held = drain_of([pod], Budgets([one]), NOON_S, refused={"uid-a": "no"})
    assert ((pod,), {"a": HeldByBudget("web", is_blocking=True, said="no")}) == (held.evictable, whys(held))
    assert {"a": ToEvict()} == whys(drain_of([pod], Budgets([other]), NOON_S))
    lenient = replace(one, lets_unready_go=True)
    assert {"a": ToEvict()} == whys(drain_of([pod], Budgets([lenient]), NOON_S))
    assert {"a": ToEvict()} != whys(drain_of([replace(pod, is_ready=True)], Budgets([lenient]), NOON_S))
    both = drain_of([pod], Budgets([one, other]), NOON_S)
    assert ((), {"a": HeldByBudgets(("another", "web"))}) == (both.evictable, whys(both))
    refused = drain_of([pod], NO_BUDGETS, NOON_S, refused={"uid-a": "no"})
    assert ((pod,), {"a": EvictionRefused("no")}) == (refused.evictable, whys(refused))


@pytest.mark.parametrize(
    "left_s, own_s, given_s",
    [(31, 30, None), (30, 30, 30), (10, 30, 10), (0.5, 30, 1), (0, 30, 1), (-5, 30, 1), (10, 0, None), (0, 0, 1)],
)
def test_each_pod_is_deleted_early_enough_for_its_own_grace(left_s: float, own_s: int, given_s: int | None) -> None:
    """What is left where that is less, and a second at least: 0 would be no grace but the end of the object."""
    pod = a_pod(annotations=PROTECTED, termination_grace_s=own_s)
    drain = drain_of([pod], NO_BUDGETS, NOON_S, NOON_S + left_s)

    assert (() if given_s is None else ((pod, given_s),)) == drain.overdue
    if given_s is None:
        assert NOON_S + left_s - own_s == drain.next_s == drain.awaited[0].deleted_from_s


def test_a_pod_that_was_given_longer_than_its_node_has_is_deleted_again() -> None:
    """Once: the shorter grace that it has then ends in time, or at once."""
    late = a_pod(deleted_s=NOON_S + 3600, termination_grace_s=3600)
    assert ((late, 60),) == drain_of([late], NO_BUDGETS, NOON_S, NOON_S + 60).overdue

    for deadline_s, ends_s in ((NOON_S + 60, NOON_S + 60), (NOON_S - 60, NOON_S + 1)):
        again = a_pod(deleted_s=ends_s, termination_grace_s=3600)
        assert () == drain_of([again], NO_BUDGETS, NOON_S, deadline_s).overdue


@pytest.mark.parametrize(
    "why, until_s, said",
    [
        (ToEvict(), None, "pod default/p is evicted"),
        (Ending(NOON_S + 5), None, "pod default/p has until 2026-01-05T12:00:05Z to end"),
        (LaterTier(Tier.DAEMON), None, "pod default/p is evicted after daemons"),
        (
            Protected(None),
            None,
            'pod default/p has "karpenter.sh/do-not-disrupt" annotation; '
            "to free it: kubectl annotate pod -n default p karpenter.sh/do-not-disrupt-",
        ),
        (
            Protected(NOON_S),
            NOON_S + 5,
            'pod default/p has "karpenter.sh/do-not-disrupt" annotation until 2026-01-05T12:00:00Z; '
            "it is deleted at 2026-01-05T12:00:05Z whatever holds it",
        ),
        (
            HeldByBudget("web", is_blocking=True),
            None,
            "pod default/p is held by PodDisruptionBudget web, which never allows an eviction; "
            "to free it: let the budget allow a disruption",
        ),
        (
            HeldByBudget("web", said="has 1"),
            None,
            'pod default/p is held by PodDisruptionBudget web, which allows no eviction now ("has 1"); '
            "to free it: another ready pod that the budget covers, or a budget that allows more",
        ),
        (
            HeldByBudgets(("a", "b")),
            None,
            "pod default/p is covered by PodDisruptionBudgets a, b, and the API evicts no such pod; "
            "to free it: leave one of the budgets",
        ),
        (
            EvictionRefused("denied"),
            None,
            'the API refuses to evict pod default/p: "denied"; to free it: kubectl delete pod -n default p',
        ),
    ],
)
def test_each_reason_has_its_words_and_what_would_free_the_pod(why: Why, until_s: float | None, said: str) -> None:
    """Where the node has an end, that is when it goes."""
    assert said == awaited_text(Awaited(a_pod(), why, until_s))


def test_a_drain_names_what_holds_it_first() -> None:
    """Karpenter's sentence, then one pod; the claim names three, and the last that ends where none is held."""
    held = [Awaited(a_pod(name), EvictionRefused("no")) for name in "abcd"]
    ending = Awaited(a_pod("e"), Ending(NOON_S))
    drain = Drain((*held, ending))

    start = "Failed to drain node, 4 pods are waiting to be evicted: the API refuses to evict pod default/a"
    assert failed_draining_text(drain).startswith(start)
    assert failed_draining_text(drain).endswith("(and 3 more are held)")
    assert held_text(drain, NOON_S).endswith("kubectl delete pod -n default c; and 1 more pods")
    assert "" == held_text(Drain((ending, Awaited(a_pod(), ToEvict()))), NOON_S)
    long = Awaited(a_pod("f"), Ending(NOON_S + 61))
    assert awaited_text(long) == held_text(Drain((long, ending)), NOON_S)
    assert "Failed to drain node, 0 pods are waiting to be evicted" == failed_draining_text(Drain((ending,)))


def test_the_order_of_pods_does_not_matter() -> None:
    """The same drain, whoever lists them."""
    pods: list[Pod] = [a_pod("b", **DAEMON), a_pod("a"), a_pod("c", deleted_s=NOON_S)]
    assert drain_of(pods, NO_BUDGETS, NOON_S, NOON_S + 99) == drain_of(pods[::-1], NO_BUDGETS, NOON_S, NOON_S + 99)


@pytest.mark.parametrize(
    "given, budgets, why",
    [
        ({}, [], None),
        ({"annotations": PROTECTED}, [], Protected(None)),
        ({"annotations": {DO_NOT_DISRUPT: "10m"}, "created_s": NOON_S}, [], None),
        ({"annotations": {DO_NOT_DISRUPT: "2h"}, "created_s": NOON_S}, [], Protected(NOON_S + 7_200)),
        ({}, [{"is_blocking": True}], HeldByBudget("web", is_blocking=True)),
        ({}, [{}], None),
        ({}, [{"name": "a"}, {"name": "b"}], HeldByBudgets(("a", "b"))),
        ({**CRITICAL, "annotations": PROTECTED}, [], Protected(None)),
    ],
)
def test_a_drain_that_ends_names_beforehand_whom_it_ends_by_force(
    given: dict[str, Any], budgets: list[dict[str, Any]], why: Why | None
) -> None:
    """What would hold it for ever, each with when it is deleted: its own grace before the end. Not what is free before,
    and not what a budget may let go."""
    pod = a_pod("x", labels={"app": "web"}, termination_grace_s=30, **given)
    held = Budgets(tuple(a_budget(**each) for each in budgets))
    found = forced([pod, a_pod("free")], held, NOON_S, 3_600)

    assert ([] if why is None else [Awaited(pod, why, NOON_S + 3_570)]) == list(found)
