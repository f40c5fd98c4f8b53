"""001-23: the company of document 001, for the first two of its thirty days, and the table that the guide shows."""

from pathlib import Path

import pytest

from kerf.sim.course.chart import svg
from tools.case_001 import Figures, figures, simulated, span, table

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "001-one-day-for-many.md"


@pytest.fixture(scope="module")
def worlds() -> tuple[Figures, Figures]:
    """Before and after."""
    return figures("before", 2), figures("after", 2)


def test_the_static_pool_is_that_of_the_document(worlds: tuple[Figures, Figures]) -> None:
    """35 % of what $12,000 buy: the premise of the comparison."""
    before, _ = worlds

    assert 34.5 <= before.utilisation_percent <= 35.5
    assert 11_500 <= before.bill <= 12_000


def test_windows_use_what_they_pay_for(worlds: tuple[Figures, Figures]) -> None:
    """As much as the document says, for less, and whoever has a window finds its node ready."""
    _, after = worlds

    assert 75 <= after.utilisation_percent
    assert after.bill < 8_500
    assert 10 >= max(after.team_waits_s)
    assert len(after.spare_waits_s) >= 60


@pytest.mark.parametrize("name", ["before", "after"])
def test_the_pictures_are_of_these_days(name: str) -> None:
    """`python -m tools.case_001 --charts` draws them."""
    assert (GUIDE.parent / f"001-case-{name}.svg").read_text(encoding="utf-8") == svg(simulated(name, 2))


def test_what_is_not_reached_is_said(worlds: tuple[Figures, Figures]) -> None:
    """In the same table: best-effort jobs still wait for the next gap."""
    text = table(*worlds)

    assert "| waiting of best effort, p95 | 2 h | 15 min |" in text
    assert "**no**" in text


def test_the_guide_shows_the_table_of_thirty_days() -> None:
    """Its head and its rows are those that the tool prints; `make bench` compares the figures."""
    shown = [line for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    made = table(*(Figures(50, 1, (1,), (1,), 1),) * 2).splitlines()

    assert made[0] == shown[0]
    assert [line.split("|")[1] for line in made] == [line.split("|")[1] for line in shown]


@pytest.mark.parametrize(("seconds", "text"), [(1.4, "1 s"), (61, "1 min"), (12_600, "3 h 30 min")])
def test_spans_are_told_in_words(seconds: float, text: str) -> None:
    """To the second below a minute, to the minute above."""
    assert text == span(seconds)
