"""Fleets made of a seed: the same text each time, and days of them in which nothing may break."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.abovebound import WHAT, above
from benchmarks.bench_random import HAPPENS, outcome
from benchmarks.randomfleet import random_fleet
from kerf.sim.course.scenario import read_scenario

_PRINTS = (
    "from benchmarks.randomfleet import random_fleet as made; f = made(3, 2, 40); print(f.scenario, f.types, f.trace)"
)


def test_a_seed_gives_the_same_text_for_every_hash_seed() -> None:
    """Another seed gives another."""
    texts = {
        subprocess.run(
            [sys.executable, "-c", _PRINTS],
            env={**os.environ, "PYTHONHASHSEED": str(each)},
            cwd=Path(__file__).parent.parent,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for each in (0, 1)
    }

    assert 1 == len(texts)
    assert random_fleet(3, 2, 40) == random_fleet(3, 2, 40) != random_fleet(4, 2, 40)


def test_a_month_has_everything_many_times(tmp_path: Path) -> None:
    """Each kind of step stands in it, and the scenario can be read."""
    fleet = random_fleet(1, 30, 400)
    steps = fleet.scenario["spec"]["timeline"]
    kinds = [next(name for name in step if name != "at") for step in steps]

    for kind in ("scale", "apply", "price", "stockout", "interrupt", "deviceFault", "throttle", "lostReply", "restart"):
        assert kinds.count(kind) >= 5, kind
    assert {"Deployment", "StatefulSet", "PodDisruptionBudget", "NodePool"} == {
        each["kind"] for each in fleet.scenario["spec"]["objects"]
    }
    assert "do-not-disrupt" in json.dumps(fleet.scenario)
    assert len(steps) == len(read_scenario(str(fleet.write(tmp_path))).timeline)


@pytest.mark.long
@pytest.mark.parametrize(
    "seed, cards, faults, over", [(11, 40, 4, 0.25), (12, 40, 4, 0.25), (1, 420, 1, 0.2), (2, 420, 1, 0.2)]
)
def test_three_days_keep_every_invariant(seed: int, cards: int, faults: int, over: float) -> None:
    """Each pod has its place at the end, and the fleet costs little more than if it were packed again at any moment.

    Of few cards the parts of nodes that only a bound can buy weigh more. A large fleet takes half an hour of CPU.
    """
    found = outcome(seed, 3, cards, faults=faults)

    assert "" == found.broken
    assert found.report is not None
    assert 0 == found.report.totals.pods_unplaced
    assert found.report.over_bound is not None
    assert found.report.over_bound < over
    assert found.watch.growth_percent < 30


@pytest.mark.long
def test_six_hours_of_a_large_fleet_keep_every_invariant() -> None:
    """It comes up to some 300 cards while everything happens to it, more often than in the days above."""
    found = outcome(2, 0.25, 420, faults=20)

    assert "" == found.broken
    assert found.report is not None
    assert 0 == found.report.totals.pods_unplaced
    assert frozenset() == HAPPENS - {row.what for row in found.report.counts}


def test_what_is_paid_above_the_bound_is_all_of_what_it_is_paid_for() -> None:
    """Each machine counts once, and of an hour of few cards some is paid for more than one thing."""
    found = dict(above(1, 12, 0.5, 1))

    assert [*found] == ["all", *WHAT]
    assert found["all"] == pytest.approx(sum(found[what] for what in WHAT))
    assert found["all"] > 0
