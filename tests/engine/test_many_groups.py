"""Groups that never fit take nothing from others, however many they are and whatever pods go by."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from types import FrameType

import pytest

from kerf.engine import remainder
from kerf.engine.decide import decide, place_and_buy
from kerf.engine.decision import Decision
from kerf.engine.explain.causes import cause_text
from kerf.engine.explain.plan import explain
from kerf.engine.gangs import gangs, whole
from kerf.engine.options import Options
from kerf.engine.outcome import Outcome
from kerf.engine.world import World
from kerf.model.constraints import HOSTNAME, ZONE, Requirements
from kerf.model.groups import GroupUntried
from kerf.model.pods import Pod
from kerf.model.quantities import CPU
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type

MARKET = a_market(an_instance_type("m5.xlarge", cpu=4, memory="16Gi", zones=("us-east-1a", "us-east-1b")))
OPTIONS = Options(with_bound=False)
SIZES = pytest.mark.parametrize("number", [1, 7, 12, 20, pytest.param(161, marks=pytest.mark.long)])
FROM_ALL = PodAffinity((PodAffinityTerm(HOSTNAME, Requirements(), namespace_selector=Requirements()),))


def members(name: str, amounts: Iterable[int | str], namespace: str = "good", **given: object) -> list[Pod]:
    """A group of one pod for each amount of cpu, all of them needed."""
    held = list(amounts)
    labels = {"kerf.dev/pod-group": name, "kerf.dev/pod-group-min": str(len(held))}
    return [
        a_pod(f"{name}-{i}", namespace=namespace, cpu=cpu, uid=f"{namespace}-{name}-{i}", labels=labels, **given)
        for i, cpu in enumerate(held)
    ]


def even(name: str) -> tuple[TopologySpreadConstraint, ...]:
    """The pods of a group, evenly over zones."""
    return (TopologySpreadConstraint(ZONE, 1, Requirements.of_labels({"kerf.dev/pod-group": name})),)


def impossible(number: int) -> list[Pod]:
    """So many older groups of one pod that no type holds."""
    return [pod for n in range(number) for pod in members(f"e{n:03}", [1_000 + n], "evil", created_s=1)]


def decided(pods: Iterable[Pod], cpu: int | None = None) -> Decision:
    """What is done for them, with one pool of so much cpu at most."""
    pools = [a_pool(limits=None if cpu is None else {CPU: cpu})]
    return decide(World(a_snapshot(pods=pods, pools=pools), MARKET), OPTIONS)


def served(made: Decision) -> set[str]:
    """The pods that get a node."""
    return {pod.pod for launch in made.launches for pod in launch.pods}


@SIZES
@pytest.mark.parametrize("spread", [(), even("good")], ids=["plain", "spread"])
def test_groups_that_no_type_holds_take_no_place_of_a_younger_group(
    number: int, spread: tuple[TopologySpreadConstraint, ...]
) -> None:
    """Also where its pods go by others, and each impossible group is of a kind of its own."""
    good = members("good", [1, 1, 1], created_s=2, spread=spread)
    made = decided([*impossible(number), *good])

    assert {pod.key for pod in good} == served(made)
    assert number == made.unserved


@SIZES
def test_groups_that_stay_off_all_others_get_in_beside_groups_that_no_type_holds(number: int) -> None:
    """Each pod on a node of its own."""
    good = members("good", [1, 1], created_s=2, pod_anti_affinity=FROM_ALL)
    made = decided([*impossible(number), *good])

    assert {pod.key for pod in good} == served(made)
    assert 2 == len(made.launches)


@SIZES
def test_groups_over_a_limit_alone_take_no_place_of_a_younger_group(number: int) -> None:
    """A type holds each of their pods, and the limit not all of them."""
    older = [pod for n in range(number) for pod in members(f"e{n:03}", [f"{3000 + n}m"] * 4, "evil", created_s=1)]
    good = members("good", [1, 1], created_s=2, spread=even("good"))

    assert {pod.key for pod in good} == served(decided([*older, *good], cpu=12))


@SIZES
@pytest.mark.parametrize("kind", ["plain", "spread", "kept-off"])
def test_one_group_that_no_type_holds_takes_nothing_from_many(number: int, kind: str) -> None:
    """Neither from groups of which each spreads its pods, nor from those that a single pod keeps off its node."""
    groups = {f"g{n:03}": f"{1000 + 5 * n}m" for n in range(number)}
    pods = [
        pod
        for name, cpu in groups.items()
        for pod in members(name, [cpu] * 2, created_s=2, spread=even(name) if kind == "spread" else ())
    ]
    if kind == "kept-off":
        pods.append(a_pod("away", namespace="evil", cpu=1, pod_anti_affinity=FROM_ALL))

    assert {pod.key for pod in pods} == served(decided([*impossible(1), *pods]))


@pytest.mark.parametrize("number, cpu", [(12, 24), (20, 40), (40, 80), pytest.param(161, 480, marks=pytest.mark.long)])
def test_at_a_limit_as_many_groups_get_in_where_each_spreads_its_pods(number: int, cpu: int) -> None:
    """Nodes in two zones hold them as well as any: what goes by others is no reason to refuse them."""
    placed = []
    for is_even in (False, True):
        names = [f"g{n:03}" for n in range(number)]
        groups = (
            members(name, [f"{1000 + 5 * n}m"] * 2, created_s=n, spread=even(name) if is_even else ())
            for n, name in enumerate(names)
        )
        placed.append(len(served(decided([pod for group in groups for pod in group], cpu))))

    assert placed[1] >= 0.8 * placed[0] > 0


def test_equal_groups_of_which_one_is_kept_off_are_not_refused_for_each_other() -> None:
    """The older one must not be beside a pod that is on every node it could have; the younger one may."""
    away = PodAffinity((PodAffinityTerm(ZONE, Requirements.of_labels({"kerf.dev/pod-group": "old"})),))
    single = a_pod("single", namespace="good", cpu=1, created_s=0, priority=1, pod_anti_affinity=away)
    everywhere = [
        a_pod(f"s{zone}", namespace="good", cpu=1, priority=1, selector={ZONE: zone}, pod_anti_affinity=away)
        for zone in ("us-east-1a", "us-east-1b")
    ]
    others = [pod for n in range(9) for pod in members(f"x{n}", [100 + n], created_s=1)]
    pods = [single, *everywhere, *others, *members("old", [1], created_s=2), *members("young", [1], created_s=3)]
    found = served(decided(pods))

    assert "good/young-0" in found
    assert "good/old-0" not in found


def test_no_group_is_refused_for_what_is_not_true() -> None:
    """A reason names what is lacked: a type is offered."""
    spread = [pod for n in range(20) for pod in members(f"g{n:02}", [f"{1000 + 5 * n}m"] * 2, spread=even(f"g{n:02}"))]
    made = explain(decided([*impossible(12), *spread], cpu=24))

    assert made.unplaced
    assert not [each.reason for each in made.unplaced if "offers any instance type" in each.reason]


def test_groups_that_break_each_other_are_taken_in_turn_of_namespaces() -> None:
    """What is left once the tries are spent was not tried, and says so: one tenant does not use up all of them."""
    evil = [pod for n in range(60) for pod in members(f"e{n:02}", ["100m"], "evil", created_s=1)]
    good = members("good", ["100m"], created_s=2)
    world = World(a_snapshot(pods=[*evil, *good], pools=[a_pool()]), MARKET)
    found = gangs(world.snapshot)
    tries: list[int] = []

    def attempt(out: frozenset[str]) -> Outcome:
        """No two groups of the one tenant are whole together, though each finds room on what is left."""
        tries.append(1)
        theirs = sorted(pod.key for gang in found for pod in gang.pods if pod.namespace == "evil")
        there = [key for key in theirs if key not in out]
        made = place_and_buy(world, OPTIONS, out)
        for key in there[1:]:
            made.places.found.pop(key, None)
            made.bought_for.discard(key)
        return made

    chosen = whole(found, attempt, attempt)

    assert chosen.outcome.holds("good/good-0")
    untried = [each for each in chosen.refusals if isinstance(each.cause, GroupUntried)]
    assert 0 < len(untried) < 60
    assert {"not tried in this round, other groups come first"} == {cause_text(each.cause) for each in untried}
    assert len(tries) <= 3 * 8 + 32 + 16 + 11
    assert 61 == len({p.key for r in chosen.refusals for p in r.pods}) + 2


@SIZES
def test_what_quick_tries_let_in_gets_nodes_by_an_attempt(number: int) -> None:
    """A group that breaks there is refused with what stopped it, and nothing of a quick try is in the plan."""
    pods = [pod for n in range(number) for pod in members(f"g{n:03}", [f"{100 + n}m"])]
    world = World(a_snapshot(pods=pods, pools=[a_pool()]), MARKET)
    out = pods[number // 2].key

    def attempt(left_out: frozenset[str]) -> Outcome:
        return place_and_buy(world, OPTIONS, left_out | {out})

    def quick(left_out: frozenset[str]) -> Outcome:
        return place_and_buy(world, replace(OPTIONS, quick=True), left_out)

    chosen = whole(gangs(world.snapshot), attempt, quick)

    assert {pod.key for pod in pods if not chosen.outcome.holds(pod.key)} == {out}
    assert [pod.key for refusal in chosen.refusals for pod in refusal.pods] == [out]
    planned = {placed.pod for launch in chosen.outcome.launches for placed in launch.pods}
    assert planned == {pod.key for pod in pods} - {out}


def test_where_nearly_all_groups_find_room_quickly_an_attempt_finds_it_for_all() -> None:
    """A quick try that leaves few pods over says little of what there is room for."""
    pods = [pod for n in range(20) for pod in members(f"g{n:03}", ["600m"] * 4)]
    world = World(a_snapshot(pods=pods, pools=[a_pool()]), MARKET)
    last = pods[-1].key

    def quick(left_out: frozenset[str]) -> Outcome:
        return place_and_buy(world, replace(OPTIONS, quick=True), left_out | {last})

    chosen = whole(gangs(world.snapshot), partial(place_and_buy, world, OPTIONS), quick)

    assert all(map(chosen.outcome.holds, (pod.key for pod in pods)))
    assert not chosen.refusals


def test_twice_as_many_equal_groups_at_a_limit_cost_little_more_than_twice() -> None:
    """A node that is full is not looked at again for each group that comes later."""
    few, many = (calls([pod for n in range(count) for pod in members(f"g{n}", ["1"] * 4)]) for count in (100, 200))

    assert many < 2.2 * few


def calls(pods: list[Pod]) -> int:
    """How many functions a plan for them, half of which find room, calls to look at what a try has left."""
    count, before = 0, sys.getprofile()

    def counted(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename == remainder.__file__

    sys.setprofile(counted)
    try:
        made = decided(pods, cpu=len(pods) // 2)
    finally:
        sys.setprofile(before)
    assert len(pods) // 2 == len(served(made))
    return count
