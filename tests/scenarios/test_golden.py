"""Each scenario beside this file, run twice: what is expected comes, the same each time, and as it came before.

The second run is where Kerf is killed, in some states, and what must come of a fault comes of it all the same. The
scenarios of `test_restarts.py` are killed there, in more states.
`KERF_UPDATE=1` writes the `.out` files; the diff is then part of the review.
"""

import os
import random
from pathlib import Path

import pytest

from kerf.cli.simulating import report_lines
from kerf.sim.course.scenario import read_scenario
from tests.scenarios import test_restarts
from tests.scenarios.crashes import Ending, beside, calm, digest, missed

SCENARIOS = sorted(Path(__file__).parent.glob("*.yaml"))
CRASHED_IN_MORE_STATES = set(test_restarts.SCENARIOS.values())
OTHERS = [path for path in SCENARIOS if path not in CRASHED_IN_MORE_STATES]

CRASHES, CRASHES_IN_THE_GATE, CRASHES_OF_DAYS = 50, 1, 3
"""The last of a scenario that lasts longer than a day."""

A_DAY_S, A_WEEK_S = 86_400, 604_800


def as_long_as_it_lasts(path: Path) -> object:
    """A scenario of a week is long."""
    is_long = read_scenario(str(path)).duration_s >= A_WEEK_S
    return pytest.param(path, marks=pytest.mark.long) if is_long else path


def crashed(path: Path, states: list[list[int]], most: int) -> tuple[Ending, dict[int, Ending]]:
    """What comes of it, and of a crash at seeded events, no two of them in one state."""
    scenario = read_scenario(str(path))
    most = min(len(states), most if scenario.duration_s <= A_DAY_S else min(most, CRASHES_OF_DAYS))
    chosen = random.Random(path.stem).sample([state[0] for state in states], most)
    ending, found = beside(scenario, chosen)
    assert sorted(chosen) == sorted(found)
    return ending, found


@pytest.mark.parametrize("path", [as_long_as_it_lasts(path) for path in SCENARIOS], ids=lambda path: path.stem)
def test_a_scenario_runs_as_it_did(path: Path) -> None:
    """Timeline, bill and expectations are what the `.out` file holds: a changed line is a changed decision.

    All expectations are met; no chance but the seed's; and a crash in one state changes nothing that counts. One
    test, because two workers that share a scenario would each play it.
    """
    report, states = calm(read_scenario(str(path)))
    golden, printed = path.with_suffix(".out"), "\n".join(report_lines(report)) + "\n"
    if os.environ.get("KERF_UPDATE"):
        golden.write_text(printed, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == printed

    assert report.outcomes
    assert () == missed(report)

    again, crashes = crashed(path, states, 0 if path in CRASHED_IN_MORE_STATES else CRASHES_IN_THE_GATE)
    assert digest(report) == again.digest
    assert {} == {event: ending for event, ending in crashes.items() if not ending.is_good}


@pytest.mark.long
@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.stem)
def test_a_crash_in_many_states_changes_nothing_that_counts(path: Path) -> None:
    """Fifty of each scenario, or all where there are fewer."""
    _, states = calm(read_scenario(str(path)))
    _, found = crashed(path, states, CRASHES)

    assert found
    assert {} == {event: ending for event, ending in found.items() if not ending.is_good}
