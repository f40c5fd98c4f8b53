"""Opportunistic pods take what is idle, and give back just as much as is needed."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.disruption.candidates import candidates
from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.model.nodeclaim import CONSOLIDATABLE, INITIALIZED, LAUNCHED, READY, REGISTERED, TRUE, Condition
from kerf.model.opportunistic import OPPORTUNISTIC, PRIORITY
from kerf.model.plan import Plan
from kerf.model.pods import RUNNING, Pod
from kerf.model.snapshot import ClusterNode
from kerf.sharing.family import Occupant
from kerf.sharing.nvidia.whole import Whole
from kerf.testing.builders import NOON_S, a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type, cards

MARKET = a_market(an_instance_type("gpu", devices=cards(2), cpu=4))
STAGES = (CONSOLIDATABLE, INITIALIZED, LAUNCHED, READY, REGISTERED)


def seeker(name: str = "o", **given: Any) -> Pod:
    """A pod that is held until idle capacity holds it; it asks for a card."""
    asked = {"gpu": 1, "uid": name, "scheduling_gates": (OPPORTUNISTIC,), "priority": PRIORITY, **given}
    return a_pod(name, labels={OPPORTUNISTIC: "true"}, **asked)


def taker(name: str, **given: Any) -> Pod:
    """One that has found its place, on the only node."""
    return seeker(name, scheduling_gates=(), node_name="n", phase=RUNNING, **given)


def node(*pods: Pod, is_up: bool = True) -> ClusterNode:
    """A node with two cards and these pods."""
    amounts: dict[str, str | int] = {"cpu": 4, "memory": "16Gi", "pods": 58, "nvidia.com/gpu": 2}
    there = a_node("n", pool="gpu", instance_type="gpu", allocatable=amounts)
    family = Whole()
    demands = ((pod, family.demand(pod)) for pod in pods)
    occupants = [Occupant(pod, demand) for pod, demand in demands if not hasattr(demand, "reason")]
    reached = STAGES if is_up else (LAUNCHED, REGISTERED)
    claim = a_claim("c", pool="gpu", instance_type="gpu", node_name="n", reached=reached, created_s=NOON_S - 900)
    cards_there = family.occupied(family.inventory(there) or (), occupants)
    return ClusterNode(there, claim, pods, cards_there, "whole")


def planned(*pending: Pod, nodes: tuple[ClusterNode, ...] = ()) -> Plan:
    """The plan, with a pool of two-card nodes to buy from."""
    snapshot = a_snapshot(pools=[a_pool("gpu")], pods=pending, nodes=nodes)
    return plan(snapshot, MARKET, Options(with_bound=False))


def test_none_is_ever_bought_for_them() -> None:
    """They wait, and say for what."""
    made = planned(seeker())

    assert ((), ()) == (made.launches, made.admissions)
    assert ["NoIdleCapacity"] == [each.reason.partition(":")[0] for each in made.unplaced]


def test_as_many_come_as_idle_cards_hold() -> None:
    """Two cards, one is used: one of two pods comes."""
    used = a_pod("u", gpu=1, uid="u", node_name="n", phase=RUNNING)
    made = planned(seeker("o-1"), seeker("o-2"), nodes=(node(used),))

    assert [("default/o-1", (OPPORTUNISTIC,), "")] == [(a.pod, a.gates, a.window) for a in made.admissions]
    assert ["default/o-2"] == [each.pod for each in made.unplaced]


def test_pods_that_wait_come_first() -> None:
    """What is idle is what they leave."""
    made = planned(seeker("a"), a_pod("w-1", gpu=1, uid="1"), a_pod("w-2", gpu=1, uid="2"), nodes=(node(),))

    assert (["default/w-1", "default/w-2"], ()) == ([p.pod.pod for p in made.placements], made.admissions)


def test_a_node_on_its_way_is_not_idle() -> None:
    """It was bought for others, who may be slower than they are."""
    assert () == planned(seeker(), nodes=(node(is_up=False),)).admissions


def test_gates_of_others_hold_them() -> None:
    """Ours stays closed as long."""
    made = planned(seeker(scheduling_gates=(OPPORTUNISTIC, "example.com/other")), nodes=(node(),))

    assert ((), ["held"]) == (made.admissions, [each.stage.value for each in made.unplaced])


@pytest.mark.parametrize("asked, gone", [(1, ["default/young"]), (2, ["default/old", "default/young"])])
def test_just_enough_of_them_go_for_a_pod(asked: int, gone: list[str]) -> None:
    """The youngest first; nothing is bought. Whole cards are kube-scheduler's to take."""
    takers = (taker("old", created_s=1), taker("young", created_s=2))
    made = planned(a_pod("w", gpu=asked, uid="w"), nodes=(node(*takers),))

    assert ((), ["default/w"]) == (made.launches, [p.pod.pod for p in made.placements])
    assert gone == sorted(each.pod for each in made.evictions)
    assert all(each.by_scheduler for each in made.evictions)


def test_one_that_is_going_already_is_enough() -> None:
    """No second one is sent after it."""
    takers = (taker("old", created_s=1, deleted_s=NOON_S + 30), taker("young", created_s=2))

    assert () == planned(a_pod("w", gpu=1, uid="w"), nodes=(node(*takers),)).evictions


def test_idle_cards_are_taken_before_any_pod_goes() -> None:
    """One card is free."""
    made = planned(a_pod("w", gpu=1, uid="w"), nodes=(node(taker("o")),))

    assert (["n"], ()) == ([p.node for p in made.placements], made.evictions)


def test_what_they_free_is_not_given_away_twice() -> None:
    """Three pods of a card each: two places are freed, and a node is bought for the third."""
    pods = tuple(a_pod(f"w-{n}", gpu=1, uid=str(n)) for n in range(3))
    made = planned(*pods, nodes=(node(taker("o-1"), taker("o-2")),))

    assert (2, 2, 1) == (len(made.evictions), len(made.placements), len(made.launches))


@pytest.mark.parametrize("others, is_empty", [((), True), ((a_pod("u", node_name="n", phase=RUNNING),), False)])
def test_a_node_with_nothing_else_counts_as_empty(others: tuple[Pod, ...], is_empty: bool) -> None:
    """Whatever they ask for themselves."""
    protected = replace(taker("o"), annotations={"karpenter.sh/do-not-disrupt": "true"})
    snapshot = a_snapshot(pools=[a_pool("gpu")], nodes=[node(protected, *others)])
    (found,), blocked = candidates(snapshot)

    assert (is_empty, ()) == (not found.pods, blocked)
    assert Condition(CONSOLIDATABLE, TRUE, CONSOLIDATABLE) in found.claim.conditions
