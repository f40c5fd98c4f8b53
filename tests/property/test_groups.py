"""Groups get in as by the exact rule, whole or not at all, whatever the order of the input and of hashes."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import log2
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.cli.plan_json import plan_object
from kerf.engine.decide import decide, place_and_buy
from kerf.engine.explain.plan import explain
from kerf.engine.gangs import Gang, gangs, whole
from kerf.engine.options import Options
from kerf.engine.outcome import Outcome
from kerf.engine.world import World
from kerf.model.pods import Pod
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type

ROOT = Path(__file__).parents[2]
OPTIONS = Options(with_bound=False)
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


def members(name: str, amounts: Sequence[int], least: int, created_s: int = 0) -> list[Pod]:
    """A group of one pod for each amount of cpu."""
    labels = {"kerf.dev/pod-group": name, "kerf.dev/pod-group-min": str(least)}
    return [
        a_pod(f"{name}-{i}", cpu=cpu, uid=f"{name}-{i}", labels=labels, created_s=created_s)
        for i, cpu in enumerate(amounts)
    ]


GROUP = st.tuples(
    st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple), st.integers(1, 4), st.integers(0, 2)
)
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
    """Groups in the order of the queue, each if one whole try makes it and all that were taken before it whole.

    Groups of the kind of one that was refused are refused with it.
    """
    found, taken, hopeless = gangs(world.snapshot), list[Gang](), set[object]()
    for gang in found:
        tried = (*taken, gang)
        out = frozenset(pod.key for each in found if each not in tried for pod in each.pods)
        if gang.kind in hopeless:
            continue
        if all(each.is_whole(place_and_buy(world, OPTIONS, out)) for each in tried):
            taken.append(gang)
        else:
            hopeless.add(gang.kind)
    return {gang.name.name for gang in taken}


@settings(deadline=None)
@given(CASES)
def test_the_same_groups_get_in_as_by_the_exact_rule(case: Case) -> None:
    """One pass over what is left finds what a whole try for each group would, and each is whole."""
    world = case.world
    found = gangs(world.snapshot)
    made = whole(found, partial(place_and_buy, world, OPTIONS)).outcome
    names = got_in(found, made)

    assert all(gang.is_whole(made) for gang in found if gang.name.name in names)
    assert by_the_exact_rule(world) == names
