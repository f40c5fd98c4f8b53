"""Figures of a refusal are those of the moment of refusal, however late they are put into words."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from kerf.cli.plan.json import plan_object
from kerf.engine.decide import decide, place_and_buy
from kerf.engine.decision import Refusal
from kerf.engine.explain.causes import misfit_sentence
from kerf.engine.explain.plan import explain
from kerf.engine.explain.refusals import Telling
from kerf.engine.gangs import gangs, whole
from kerf.engine.options import Options
from kerf.engine.outcome import Outcome
from kerf.engine.place.shapes import group
from kerf.engine.placing import place_idle
from kerf.engine.world import World
from kerf.model.constraints import Requirements, Toleration
from kerf.model.opportunistic import OPPORTUNISTIC, PRIORITY
from kerf.model.plan import Plan, Unplaced
from kerf.model.pods import Pod
from kerf.model.quantities import CPU, NODES, Resources
from kerf.model.uses import Use
from kerf.model.windows import WINDOW_LABEL, CapacityWindow, WarmCapacity, WindowStatus
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type

MARKET = a_market(an_instance_type("small", cpu=4), an_instance_type("large", cpu=16))
OPTIONS = Options(with_bound=False)


def a_window(name: str, **cpu: int) -> CapacityWindow:
    """An open window that keeps nodes of its own: one place for each of these amounts of cpu."""
    toleration = Toleration(WINDOW_LABEL, "Equal", name, "NoSchedule")
    warm = tuple(
        WarmCapacity(1, a_pod(key, namespace="", cpu=amount, tolerations=(toleration,)), True)
        for key, amount in cpu.items()
    )
    selector = Requirements.of_labels({WINDOW_LABEL: name})
    status = WindowStatus(observed_generation=1)
    return CapacityWindow(name, "0 12 * * *", "UTC", 7200, selector=selector, status=status, warm=warm)


def a_world(*pods: Pod, limits: dict[str, str | int] | None = None, **given: Any) -> World:
    """One pool of small and large nodes."""
    return World(
        a_snapshot(pods=pods, pools=[a_pool(limits=limits, own_annotations={Use.WINDOW: "*"})], **given), MARKET
    )


def members(number: int, name: str = "train") -> tuple[Pod, ...]:
    """A group of which each pod takes a large node."""
    labels = {"kerf.dev/pod-group": name, "kerf.dev/pod-group-min": str(number)}
    return tuple(a_pod(f"{name}-{i}", cpu=13, labels=labels, uid=f"{name}-{i}") for i in range(number))


def seeker(cpu: int) -> Pod:
    """An opportunistic pod."""
    labels = {OPPORTUNISTIC: "true"}
    return a_pod("seeker", cpu=cpu, uid="s", labels=labels, scheduling_gates=(OPPORTUNISTIC,), priority=PRIORITY)


def window_and_limit() -> World:
    """The window buys a small node after the large pod was refused."""
    return a_world(a_pod("one", cpu=3), a_pod("two", cpu=15), limits={"cpu": 12}, windows=(a_window("day", place=3),))


def two_windows() -> World:
    """The second buys after a place of the first was refused."""
    windows = a_window("a", place=3, wide=15), a_window("b", place=3)
    return a_world(limits={"cpu": 12}, windows=windows)


def opportunistic_and_refused() -> World:
    """The opportunistic pod takes room of the node that the other was refused on."""
    return a_world(a_pod("wide", cpu=40), seeker(2), nodes=[a_node("n")], claims=[a_claim("c", node_name="n")])


def refused_group() -> World:
    """After the group was refused one single pod gets a node."""
    return a_world(
        *members(3),
        a_pod("single", cpu=3, created_s=9),
        limits={"nodes": 3},
        nodes=[a_node("n", allocatable={"cpu": 0})],
        claims=[a_claim("c", node_name="n")],
    )


# Tests

SAID = {
    window_and_limit: {"default/two": ["limit cpu 12 of NodePool pool: 4 planned, 16 more needed"]},
    two_windows: {"capacitywindow:a/exclusive-1-0": ["limit cpu 12 of NodePool pool: 4 planned, 16 more needed"]},
    opportunistic_and_refused: {
        "default/wide": [
            "Insufficient cpu: needs 40 cpu, 16 free, 24 cpu missing (NodePool pool/large)",
            "Insufficient cpu: needs 40 cpu, 4 free, 36 cpu missing (node n)",
        ]
    },
    refused_group: {
        f"default/train-{i}": [
            "limit nodes 3 of NodePool pool: 1 in use, 2 planned, 1 more needed",
            "Insufficient cpu: needs 13 cpu, 0 free, 13 cpu, 1 pods missing (node n)",
        ]
        for i in range(3)
    },
}
"""Each world with the near misses of its refused pods."""
LATER = {
    window_and_limit: ["limit cpu 12 of NodePool pool: 8 planned, 16 more needed"],
    two_windows: ["limit cpu 12 of NodePool pool: 8 planned, 16 more needed"],
    opportunistic_and_refused: [
        "Insufficient cpu: needs 40 cpu, 16 free, 24 cpu missing (NodePool pool/large)",
        "Insufficient cpu: needs 40 cpu, 2 free, 38 cpu missing (node n)",
    ],
    # With one node for the single pod the limit leaves room, so the nearest miss is another.
    refused_group: [
        "Insufficient cpu: needs 13 cpu, 4 free, 9 cpu missing (NodePool pool/small)",
        "Insufficient cpu: needs 13 cpu, 0 free, 13 cpu, 1 pods missing (node n)",
    ],
}
"""What would be said of the first of them if the figures were taken after the decision."""

each_world = pytest.mark.parametrize("world", SAID, ids=lambda world: world.__name__)
Case = Callable[[], World]


def misses(found: Iterable[Unplaced]) -> dict[str, list[str]]:
    """The near misses of each pod."""
    return {each.pod: [misfit_sentence(misfit) for misfit in each.misfits] for each in found}


def shown(plan: Plan, world: World) -> str:
    """The bytes of the plan."""
    return json.dumps(plan_object(plan, world))


def told(refusals: Iterable[Refusal]) -> list[Unplaced]:
    """Refusals in words; nothing was told before, so nothing is remembered."""
    telling = Telling()
    return [entry for refusal in refusals for entry in telling.unplaced(refusal)]


def spend(made: Outcome) -> None:
    """What else may come of a try: limits run out and every node is full."""
    made.ledger.charge("pool", Resources({CPU: 99_000, NODES: 99}))
    made.before.charge("pool", Resources({CPU: 99_000, NODES: 99}))
    for index, room in enumerate(made.trial.rooms):
        made.trial.occupy(index, replace(room, free=Resources()))


@each_world
def test_figures_are_those_of_the_moment_of_refusal(world: Case) -> None:
    """What is bought or placed after it does not count, though the decision goes on."""
    plan = explain(decide(world(), OPTIONS))

    assert SAID[world] == misses(plan.unplaced)
    assert plan.launches or plan.placements


@each_world
def test_figures_taken_later_would_be_others(world: Case) -> None:
    """So the test above would notice: the refusals are told again with a try as it stands after all."""
    decision = decide(world(), OPTIONS)
    last = place_and_buy(decision.world, OPTIONS, frozenset(pod.key for pod in members(3)))
    place_idle(last.trial, group(last.waiting.opportunistic), last.places)
    (first, *_) = (refusal.innermost for refusal in decision.refusals)
    assert first.evidence is not None
    late = replace(first, evidence=replace(first.evidence, after=last.ledger, trial=last.trial))

    assert LATER[world] == next(iter(misses(told([late])).values()))


@each_world
def test_a_decision_is_explained_twice_with_the_same_bytes(world: Case) -> None:
    """Explaining, which tries hints, changes nothing of the evidence."""
    decision = decide(world(), OPTIONS)

    assert shown(explain(decision), decision.world) == shown(explain(decision), decision.world)


@each_world
def test_what_becomes_of_a_try_does_not_reach_its_refusals(world: Case) -> None:
    """The evidence is a copy: limits spent and nodes filled by hand change no word, hints included."""
    there, tries = world(), list[Outcome]()

    def attempt(out: frozenset[str]) -> Outcome:
        tries.append(place_and_buy(there, OPTIONS, out))
        return tries[-1]

    chosen = whole(gangs(there.snapshot), attempt, attempt)
    refusals = (*chosen.outcome.refusals, *chosen.refusals)
    before = told(refusals)
    for made in tries:
        spend(made)

    assert before
    assert before == told(refusals)
