"""Kerf holds no hidden state: killed and started again at any event, it ends where it would have ended."""

from itertools import count
from pathlib import Path

import pytest

from kerf.sim.report import Report
from kerf.sim.scenario import read_scenario
from kerf.sim.simulation import run

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCUMENTS = ("000-gpu-pools", "003-hami", "004-ack")
PARTS = 8
"""Each document's events are split over so many tests, so that they run side by side."""


def missed(report: Report) -> list[object]:
    """Expectations that were not met."""
    return [(o.at_s, o.expected, o.got) for o in report.outcomes if not o.is_met]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_crash_at_any_event_of_a_document_changes_no_expectation(document: str, part: int) -> None:
    """Every single event; invariants (no lost pod, no leaked or doubled instance, no overfull card) hold after each."""
    scenario = read_scenario(str(EXAMPLES / document / "scenario.yaml"))
    counted = count()
    calm = run(scenario, restart_at=lambda _: next(counted) < 0)
    events = range(next(counted))

    assert [] == missed(calm)
    for at in events[part::PARTS]:
        crashed = run(scenario, restart_at=at.__eq__)
        assert [] == missed(crashed), f"killed at event {at} of {len(events)}"
