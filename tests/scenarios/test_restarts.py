"""Kerf holds no hidden state: killed and started again at any event, it ends where it would have ended."""

import random
from pathlib import Path

import pytest

from kerf.sim.course.scenario import read_scenario
from tests.scenarios.crashes import endings, states

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
    # Nodes that stay reserved for seconds, while their pods back off.
    "sizes": Path(__file__).with_name("sizes.yaml"),
    # Marks of nodes that go once others are up, among them one whose replacement is sold out.
    "replaced": Path(__file__).with_name("behaviour-64.yaml"),
    # Taint, tiers, budgets, grace periods, volumes, an instance that vanishes: each step of a node's end.
    "drains": Path(__file__).with_name("behaviour-70.yaml"),
    # A bucket that must not be full again after a restart.
    "pacing": Path(__file__).with_name("pacing.yaml"),
}
PARTS = 2
"""Each scenario's crashes are split over so many tests, so that they run side by side."""

IN_THE_GATE = 6
"""At most so many states of each scenario, drawn by a seed: an even step would meet one kind of write every time."""

every_part = pytest.mark.parametrize("part", range(PARTS))
every_scenario = pytest.mark.parametrize("name", SCENARIOS)


@every_part
@every_scenario
def test_a_crash_in_any_state_changes_no_expectation(name: str, part: int) -> None:
    """After the first event of one state and the last of the next, and so around writes and calls of each kind.

    Which of a state's events it is makes no difference, as the long test below shows; it also takes every state.

    Invariants (no lost pod, no leaked or doubled instance, no overfull card) hold all the time.
    """
    scenario = read_scenario(str(SCENARIOS[name]))
    events = [state[-(number % 2)] for number, state in enumerate(states(scenario))]
    drawn = sorted(random.Random(name).sample(events, min(len(events), IN_THE_GATE)))[part::PARTS]
    found = endings(scenario, drawn)

    assert drawn == sorted(found)
    assert {} == {event: ending for event, ending in found.items() if not ending.is_good}


@pytest.mark.long
@every_part
@every_scenario
def test_a_crash_at_any_event_changes_no_expectation(name: str, part: int) -> None:
    """After every single event; and in one state it makes no difference after which, to the byte."""
    scenario = read_scenario(str(SCENARIOS[name]))
    mine = states(scenario)[part::PARTS]
    found = endings(scenario, {event for state in mine for event in state})

    assert {} == {event: ending for event, ending in found.items() if not ending.is_good}
    assert [] == [state for state in mine if len({found[event].digest for event in state}) > 1]
