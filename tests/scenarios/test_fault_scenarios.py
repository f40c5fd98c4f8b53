"""Every scenario beside this file: each names a fault, and states what must come of it all the same."""

import random
from pathlib import Path

import pytest

from kerf.sim.report import SimulationReport
from kerf.sim.scenario import read_scenario
from kerf.sim.simulation import run

SCENARIOS = sorted(Path(__file__).parent.glob("*.yaml"))
RESTARTS, RESTARTS_OF_DAYS = 50, 4
"""The second of a scenario that lasts longer than a day; `test_restarts.py` has the same objects in an hour."""

every_scenario = pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)


def missed(report: SimulationReport) -> list[object]:
    """The expectations that were not met."""
    return [outcome for outcome in report.outcomes if not outcome.is_met]


@every_scenario
def test_what_is_expected_comes(path: Path) -> None:
    """All expectations are met, with the invariants looked at after every event."""
    report = run(read_scenario(str(path)))

    assert report.outcomes
    assert [] == missed(report)


@every_scenario
def test_the_same_scenario_gives_the_same_report(path: Path) -> None:
    """No chance but the seed's."""
    scenario = read_scenario(str(path))

    assert run(scenario) == run(scenario)


@every_scenario
def test_a_crash_anywhere_changes_nothing_that_counts(path: Path) -> None:
    """Kerf is killed at one of fifty seeded events: every expectation is met all the same."""
    scenario = read_scenario(str(path))
    events = run(scenario).events
    most = RESTARTS if scenario.duration_s <= 86_400 else RESTARTS_OF_DAYS
    for number in random.Random(path.stem).sample(range(events), min(most, events)):
        assert [] == missed(run(scenario, restart_at=number.__eq__)), f"killed after event {number}"
