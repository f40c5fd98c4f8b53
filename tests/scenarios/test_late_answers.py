"""Answers to writes come late, in any order, or never, while the watch is fast: nothing sticks or is bought twice."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from kerf.sim.course.report import SimulationReport
from kerf.sim.course.scenario import read_scenario
from kerf.sim.kubernetes.answers import Way
from kerf.sim.simulation import run
from tests.scenarios.test_restarts import SCENARIOS

FORTY = Path(__file__).with_name("late-answers.yaml")
VERBS = (
    "create_node_claim",
    "update_node_claim",
    "update_node_claim_status",
    "delete_node_claim",
    "update_node",
    "evict",
)
MOST_LATE_S = 5.0
LONG = pytest.mark.long
NAMES_NODES = {"drains"}
"""Its steps name nodes by the order in which they come, which is another one here."""


def missed(report: SimulationReport) -> list[str]:
    """The expectations that were not met."""
    return [f"{outcome.expected}: {outcome.got}" for outcome in report.outcomes if not outcome.is_met]


def repeated(report: SimulationReport) -> dict[tuple[str, str], int]:
    """What was said of one claim more than once."""
    said = Counter((row.what, row.object) for row in report.rows if row.object.startswith("nodeclaim/"))
    return {what: times for what, times in said.items() if times > 1}


def of_chance(seed: object, *, most_s: float = MOST_LATE_S, lost: float = 0.0) -> Callable[[str], Way]:
    """Requests and answers that are late by chance, up to so much; a share of the answers is lost."""
    chance = random.Random(str(seed))
    return lambda verb: Way(chance.uniform(0, most_s / 10), chance.uniform(0, most_s), chance.random() < lost)


@pytest.mark.parametrize("late_s", [0.25, pytest.param(1.0, marks=LONG), pytest.param(5.0, marks=LONG)])
@pytest.mark.parametrize("verb", VERBS)
def test_a_late_answer_to_one_kind_of_write_changes_nothing_that_is_bought(verb: str, late_s: float) -> None:
    """Whatever the watch has shown of the object in the meantime stays."""
    report = run(read_scenario(str(FORTY)), way_of=lambda each: Way(answer_s=late_s if each == verb else 0.0))

    assert [] == missed(report)
    assert {} == repeated(report)
    assert (10, 10) == (report.totals.launches, report.totals.deletions)


@pytest.mark.parametrize("seed", range(6))
def test_answers_late_by_chance_leave_nothing_stuck(seed: int) -> None:
    """Every kind at once, by up to five seconds, so answers overtake each other."""
    report = run(read_scenario(str(FORTY)), way_of=of_chance(seed))

    assert [] == missed(report)
    assert {} == repeated(report)
    assert (10, 10) == (report.totals.launches, report.totals.deletions)


@pytest.mark.parametrize("seed", range(8))
def test_answers_that_never_come_leave_nothing_stuck(seed: int) -> None:
    """One in ten is lost after the write was carried out: it is looked for, not bought again and again."""
    report = run(read_scenario(str(FORTY)), way_of=of_chance(seed, most_s=1.0, lost=0.1))

    assert [] == missed(report)


@pytest.mark.parametrize("name", sorted(SCENARIOS.keys() - NAMES_NODES))
def test_lateness_changes_no_expectation(name: str) -> None:
    """Groups, requests, windows, drains, pins: each writes in its own way, and each answer is late by up to 0.3 s."""
    report = run(read_scenario(str(SCENARIOS[name])), way_of=of_chance(name, most_s=0.3))

    assert [] == missed(report)
