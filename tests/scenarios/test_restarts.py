"""Kerf holds no hidden state: killed and started again at any event, it ends where it would have ended."""

from itertools import count
from pathlib import Path

import pytest

from kerf.sim.report import SimulationReport
from kerf.sim.scenario import read_scenario
from kerf.sim.simulation import run

EXAMPLES = Path(__file__).parents[2] / "examples"
SCENARIOS = {
    **{name: EXAMPLES / name / "scenario.yaml" for name in ("000-gpu-pools", "003-hami", "004-ack")},
    # Pins, an eviction, and an end at which nothing is left.
    "moved slices": Path(__file__).with_name("moved-slices.yaml"),
    # Reservations, gates, the end of an opening, opportunistic pods.
    "windows": Path(__file__).with_name("windows-evict.yaml"),
    # Eight nodes that are bought together: among the events is the one between the third claim and the fourth.
    "gang": Path(__file__).with_name("gang.yaml"),
    # Conditions that Kueue waits for, a booking, pods that take it.
    "requests": Path(__file__).with_name("provisioning-request.yaml"),
    # Pods that wait for a request and are bound to its nodes one by one while it is not provisioned yet.
    "late requests": Path(__file__).with_name("provisioning-request-late.yaml"),
    # A bucket that must not be full again after a restart.
    "pacing": Path(__file__).with_name("pacing.yaml"),
}
PARTS = 8
"""Each scenario's events are split over so many tests, so that they run side by side."""


def missed(report: SimulationReport) -> list[object]:
    """Expectations that were not met."""
    return [(o.at_s, o.expected, o.got) for o in report.outcomes if not o.is_met]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_crash_at_any_event_changes_no_expectation(name: str, part: int) -> None:
    """After every single event, and so before and after every single write.

    Invariants (no lost pod, no leaked or doubled instance, no overfull card) hold all the time.
    """
    scenario = read_scenario(str(SCENARIOS[name]))
    counted = count()
    calm = run(scenario, restart_at=lambda _: next(counted) < 0)
    events = range(next(counted))

    assert [] == missed(calm)
    for at in events[part::PARTS]:
        crashed = run(scenario, restart_at=at.__eq__)
        assert [] == missed(crashed), f"killed at event {at} of {len(events)}"
