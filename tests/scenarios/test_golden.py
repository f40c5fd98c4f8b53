"""Each scenario beside this file, run twice: what is expected comes, the same each time, and as it came before.

`KERF_UPDATE=1` writes the `.out` files; the diff is then part of the review.
"""

import os
from pathlib import Path

import pytest

from kerf.cli.simulate import report_lines
from kerf.sim.course.report import SimulationReport
from kerf.sim.course.scenario import read_scenario
from kerf.sim.simulation import run
from tests.scenarios.crashes import missed

SCENARIOS = sorted(Path(__file__).parent.glob("*.yaml"))


@pytest.fixture(scope="module", params=SCENARIOS, ids=lambda path: path.stem)
def scenario(request: pytest.FixtureRequest) -> Path:
    """One after the other, each for all tests before the next."""
    path: Path = request.param
    return path


@pytest.fixture(scope="module")
def report(scenario: Path) -> SimulationReport:
    """What comes of it, with the invariants looked at after every event."""
    return run(read_scenario(str(scenario)))


def test_a_scenario_runs_as_it_did(scenario: Path, report: SimulationReport) -> None:
    """Timeline, bill and expectations are what the `.out` file holds: a changed line is a changed decision."""
    golden, printed = scenario.with_suffix(".out"), "\n".join(report_lines(report)) + "\n"

    if os.environ.get("KERF_UPDATE"):
        golden.write_text(printed, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == printed


def test_what_is_expected_comes(report: SimulationReport) -> None:
    """All expectations are met."""
    assert report.outcomes
    assert () == missed(report)


def test_the_same_scenario_gives_the_same_report(scenario: Path, report: SimulationReport) -> None:
    """No chance but the seed's."""
    assert report == run(read_scenario(str(scenario)))
