"""001-23: the company of document 001, for the first two of its thirty days, and the table that the guide shows.

What plays the two days is long; windows in the gate are those of `scenarios/test_golden.py`.
"""

from pathlib import Path

import pytest
import yaml

from kerf.sim.course.chart import svg
from tests.scenarios.conftest import refusals
from tools.case_001 import Figures, figures, simulated, span, table

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "one-day-for-many.md"


@pytest.fixture(scope="module")
def worlds() -> tuple[Figures, Figures, Figures]:
    """Before, after, and the control."""
    return figures("before", 2), figures("after", 2), figures("control", 2)


@pytest.mark.long
def test_the_static_pool_is_that_of_the_document(worlds: tuple[Figures, Figures, Figures]) -> None:
    """35 % of what $12,000 buy: the premise of the comparison."""
    before, _, _ = worlds

    assert 34.5 <= before.utilisation_percent <= 35.5
    assert 11_500 <= before.bill <= 12_000


@pytest.mark.long
def test_windows_use_what_they_pay_for(worlds: tuple[Figures, Figures, Figures]) -> None:
    """As much as the document says, for less, and whoever has a window finds its node ready."""
    _, after, _ = worlds

    assert 75 <= after.utilisation_percent
    assert after.bill < 8_500
    assert 10 >= max(after.team_waits_s)
    assert len(after.spare_waits_s) >= 60


@pytest.mark.long
def test_the_control_is_cheaper_and_its_pods_wait_for_their_nodes(worlds: tuple[Figures, Figures, Figures]) -> None:
    """What windows buy is readiness at the hour: no money, and no utilisation."""
    _, after, control = worlds

    assert control.bill < after.bill
    assert control.utilisation_percent > after.utilisation_percent
    assert (True, True) == (max(after.team_waits_s) < 10, min(control.team_waits_s) > 60)


def test_pods_that_fill_what_windows_leave_idle_break_no_rule() -> None:
    """They make way for the pods that the room is kept for, so both may be planned on one card."""
    before = refusals()
    simulated("after", 1)

    assert before == refusals()


def test_the_control_has_the_same_jobs_at_the_same_hours() -> None:
    """Only what windows need is left out: labels, and the priority of opportunistic pods."""
    jobs = [_jobs(name) for name in ("windows", "control-jobs")]

    assert jobs[0] == jobs[1]


def _jobs(name: str) -> list[tuple[str, str, int, str]]:
    """(name, schedule, pods, how long) of the CronJobs of a file."""
    documents = yaml.safe_load_all((ROOT / "examples" / "001-case" / f"{name}.yaml").read_text(encoding="utf-8"))
    found = []
    for each in (document for document in documents if document["kind"] == "CronJob"):
        job = each["spec"]["jobTemplate"]["spec"]
        lasts = job["template"]["metadata"]["annotations"]["kerf.dev/run-for"]
        found.append((each["metadata"]["name"], each["spec"]["schedule"], job["parallelism"], lasts))
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", ["before", "after"])
def test_the_pictures_are_of_these_days(name: str) -> None:
    """`python -m tools.case_001 --charts` draws them."""
    assert (GUIDE.parent / f"one-day-{name}.svg").read_text(encoding="utf-8") == svg(simulated(name, 2))


@pytest.mark.long
def test_what_is_not_reached_is_said(worlds: tuple[Figures, Figures, Figures]) -> None:
    """In the same table: best-effort jobs still wait for the next gap."""
    text = table(*worlds)

    assert "| waiting of best effort, p95 | 2 h | 15 min |" in text
    assert "**no**" in text


def test_the_guide_shows_the_table_of_thirty_days() -> None:
    """Its head and its rows are those that the tool prints; `make bench` compares the figures."""
    shown = [line for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    made = table(*(Figures(50, 1, (1,), (1,), 1),) * 3).splitlines()

    assert made[0] == shown[0]
    assert [line.split("|")[1] for line in made] == [line.split("|")[1] for line in shown]


@pytest.mark.parametrize(("seconds", "text"), [(1.4, "1 s"), (61, "1 min"), (12_600, "3 h 30 min")])
def test_spans_are_shown_in_words(seconds: float, text: str) -> None:
    """To the second below a minute, to the minute above."""
    assert text == span(seconds)
