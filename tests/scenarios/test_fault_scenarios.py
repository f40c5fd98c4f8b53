"""Every scenario beside this file names a fault; what must come of it comes of it after a crash of Kerf too."""

import random
from pathlib import Path

import pytest

from kerf.sim.course.scenario import read_scenario
from tests.scenarios import test_restarts
from tests.scenarios.crashes import endings, states

SCENARIOS = sorted(set(Path(__file__).parent.glob("*.yaml")) - set(test_restarts.SCENARIOS.values()))
"""Those of `test_restarts.py` are killed there, in all their states."""

CRASHES, CRASHES_IN_THE_GATE, CRASHES_OF_DAYS = 50, 3, 3
"""The last of a scenario that lasts longer than a day."""

A_DAY_S, A_WEEK_S = 86_400, 604_800
SHORTER_THAN_A_WEEK = [path for path in SCENARIOS if read_scenario(str(path)).duration_s < A_WEEK_S]

every_scenario = pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)


def crashed(path: Path, most: int) -> None:
    """Kill Kerf at seeded events, no two of them in one state; every expectation is met all the same."""
    scenario = read_scenario(str(path))
    chosen = random.Random(path.stem)
    most = most if scenario.duration_s <= A_DAY_S else CRASHES_OF_DAYS
    firsts = [state[0] for state in states(scenario)]
    found = endings(scenario, chosen.sample(firsts, min(most, len(firsts))))

    assert min(most, len(firsts)) == len(found)
    assert {} == {event: ending for event, ending in found.items() if not ending.is_good}


@pytest.mark.parametrize("path", SHORTER_THAN_A_WEEK, ids=lambda path: path.stem)
def test_a_crash_in_some_states_changes_nothing_that_counts(path: Path) -> None:
    """Three of each scenario; the scenarios of `test_restarts.py` have all."""
    crashed(path, CRASHES_IN_THE_GATE)


@pytest.mark.long
@every_scenario
def test_a_crash_in_many_states_changes_nothing_that_counts(path: Path) -> None:
    """Fifty of each scenario, or all where there are fewer."""
    crashed(path, CRASHES)
