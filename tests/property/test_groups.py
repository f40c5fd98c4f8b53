"""Groups get in as by the exact rule, whole or not at all, whatever the order of the input and of hashes."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log2
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kerf.cli.plan.json import plan_object
from kerf.engine.decide import decide, place_and_buy
from kerf.engine.explain.plan import explain
from kerf.engine.gangs import Gang, gangs, whole
from kerf.engine.options import Options
from kerf.engine.outcome import Outcome
from kerf.engine.world import World
from kerf.model.pods import Pod
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type
from tests.examples import examples

ROOT = Path(__file__).parents[2]
OPTIONS = Options(with_bound=False)
QUICK = replace(OPTIONS, quick=True)
SMALL, LARGE = an_instance_type("small", cpu=4), an_instance_type("large", cpu=16)


@dataclass(frozen=True)
class Case:
    """A small world: of each group the cpu of its pods, its minimum and its age; the cpu of single pods."""

    groups: tuple[tuple[tuple[int, ...], int, int], ...]
    singles: tuple[int, ...]
    limits: tuple[str, int]
    has_large: bool
    seed: int

    @property
    def world(self) -> World:
        """The world, its pods in the order of the seed."""
        pods = [a_pod(f"single-{number}", cpu=cpu) for number, cpu in enumerate(self.singles)]
        for number, (amounts, least, created_s) in enumerate(self.groups):
            pods += members(f"g{number}", amounts, min(least, len(amounts)), created_s)
        Random(self.seed).shuffle(pods)
        market = a_market(*((SMALL, LARGE) if self.has_large else (SMALL,)))
        return World(a_snapshot(pods=pods, pools=[a_pool(limits=dict([self.limits]))]), market)


def members(name: str, amounts: Sequence[int | str], least: int, created_s: int = 0) -> list[Pod]:
    """A group of one pod for each amount of cpu."""
    labels = {"kerf.dev/pod-group": name, "kerf.dev/pod-group-min": str(least)}
    return [
        a_pod(f"{name}-{i}", cpu=cpu, uid=f"{name}-{i}", labels=labels, created_s=created_s)
        for i, cpu in enumerate(amounts)
    ]


GROUP = st.tuples(st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple), st.integers(1, 4), st.integers(0, 2))
LIMITS = st.one_of(st.tuples(st.just("nodes"), st.integers(0, 8)), st.tuples(st.just("cpu"), st.integers(0, 48)))
CASES = st.builds(
    Case,
    groups=st.lists(GROUP, max_size=6).map(tuple),
    singles=st.lists(st.integers(1, 7), max_size=3).map(tuple),
    limits=LIMITS,
    has_large=st.booleans(),
    seed=st.integers(0, 9),
)


def got_in(found: Sequence[Gang], made: Outcome) -> set[str]:
    """The groups of which any pod has a place."""
    return {gang.name.name for gang in found if any(made.holds(pod.key) for pod in gang.pods)}


def by_the_exact_rule(world: World) -> set[str]:
    """All groups where one whole try makes them so; else in the order of the queue each if one whole try makes it and
    all that were taken before it whole.

    A try with all comes first, for it may find room that a part of them leaves unused: which pods of no group are
    refused beside them can differ. Groups of the kind of one that was refused are refused with it.
    """
    found, taken, hopeless = gangs(world.snapshot), list[Gang](), set[object]()
    everyone = place_and_buy(world, OPTIONS, frozenset())
    if all(gang.is_whole(everyone) for gang in found):
        return {gang.name.name for gang in found}
    for gang in found:
        tried = (*taken, gang)
        out = frozenset(pod.key for each in found if each not in tried for pod in each.pods)
        kind = gang.needed, tuple(sorted(Counter(id(pod.spec) for pod in gang.pods).items()))
        if kind in hopeless:
            continue
        if all(each.is_whole(place_and_buy(world, OPTIONS, out)) for each in tried):
            taken.append(gang)
        else:
            hopeless.add(kind)
    return {gang.name.name for gang in taken}


TOGETHER = Case(
    groups=(((1, 1, 1, 2), 1, 0), ((1, 1), 2, 0), ((1,), 1, 0)),
    singles=(1, 2, 7),
    limits=("cpu", 16),
    has_large=True,
    seed=0,
)
"""Three groups that are whole together, for then the largest single pod gets no node; the first two alone are not."""


@given(CASES)
@example(TOGETHER)
def test_the_same_groups_get_in_as_by_the_exact_rule(case: Case) -> None:
    """One pass over what is left finds what a whole try for each group would, and each is whole."""
    world = case.world
    found = gangs(world.snapshot)
    made = whole(found, partial(place_and_buy, world, OPTIONS), partial(place_and_buy, world, QUICK)).outcome
    names = got_in(found, made)

    assert all(gang.is_whole(made) for gang in found if gang.name.name in names)
    assert by_the_exact_rule(world) == names


@given(CASES, st.integers(0, 9))
@examples(30, least=10)
def test_the_order_of_the_input_does_not_matter(case: Case, seed: int) -> None:
    """Pods come in any order from the API; the bytes of the plan are the same."""
    assert plan_bytes(case) == plan_bytes(replace(case, seed=seed))


def plan_bytes(case: Case) -> str:
    """The plan as its JSON."""
    world = case.world
    return json.dumps(plan_object(explain(decide(world, OPTIONS)), world))


def many(number: int, limit: int, tight: bool = False) -> World:
    """So many groups of four, no two of equal pods, and a limit on nodes of four cpu.

    `tight`: pods of which three fill a node, so how they are packed decides.
    """
    first, step = (900, 7) if tight else (3_000, 1)
    groups = (members(f"g{i:03}", [f"{first + step * i}m"] * 4, 4, i) for i in range(number))
    pods = [pod for group in groups for pod in group]
    return World(a_snapshot(pods=pods, pools=[a_pool(limits={"nodes": limit})]), a_market(SMALL))


def tries_of(world: World) -> tuple[int, list[str]]:
    """How many whole tries a search makes, and the groups that get in; each is whole."""
    found, tries = gangs(world.snapshot), list[Outcome]()

    def attempt(options: Options, out: frozenset[str]) -> Outcome:
        tries.append(place_and_buy(world, options, out))
        return tries[-1]

    made = whole(found, partial(attempt, OPTIONS), partial(attempt, QUICK)).outcome
    names = got_in(found, made)
    assert all(gang.is_whole(made) for gang in found if gang.name.name in names)
    return len(tries), sorted(names)


@pytest.mark.parametrize("number", [40, 200])
def test_many_groups_need_few_whole_tries(number: int) -> None:
    """Half of them are over the limit: the first half gets in."""
    tries, names = tries_of(many(number, 2 * number))

    assert [f"g{i:03}" for i in range(number // 2)] == names
    assert tries <= log2(number) + 4


@pytest.mark.parametrize("number, limit", [(12, 11), (20, 17), (40, 33)])
def test_groups_that_share_nodes_are_whole_or_get_nothing(number: int, limit: int) -> None:
    """How they are packed together is not how they were let in; few tries settle it, and most of the room is used."""
    tries, names = tries_of(many(number, limit, tight=True))

    assert tries <= 5 * (log2(number) + 4)
    assert 4 * len(names) >= 2 * limit


HASHED = Case(
    groups=(((3, 7, 2, 1), 1, 2), ((5, 4), 2, 1), ((1,), 1, 0), ((4, 2, 4, 4), 4, 2), ((2, 2), 2, 1)),
    singles=(3, 7),
    limits=("cpu", 38),
    has_large=True,
    seed=3,
)
"""Some of its groups get in, some are refused, and a hint on its limit is tried."""


def test_the_order_of_hashes_does_not_matter() -> None:
    """Two interpreters with other seeds of hashes write the same bytes."""
    code = "from tests.property.test_groups import HASHED, plan_bytes; print(plan_bytes(HASHED))"
    written = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert [plan_bytes(HASHED) + "\n"] == list(written)
    assert '"group ' in written.pop()
