"""A spot notice with two minutes for twenty pods in slices: what is asked of the cloud when, and who goes first."""

from pathlib import Path

import pytest

from kerf.sim.course.report import Row
from kerf.sim.course.scenario import read_scenario
from tests.scenarios.crashes import calm

SCENARIO = Path(__file__).with_name("spot-notice.yaml")
NOTICE_S = 600


@pytest.fixture(scope="module")
def rows() -> tuple[Row, ...]:
    """What happens from the notice on."""
    report, _ = calm(read_scenario(str(SCENARIO)))
    assert report.is_met
    return tuple(row for row in report.rows if row.at_s >= NOTICE_S)


def of(rows: tuple[Row, ...], what: str) -> list[Row]:
    """The rows of one kind, in their order."""
    return [row for row in rows if row.what == what]


def test_the_new_node_is_asked_for_within_a_second_and_before_any_eviction(rows: tuple[Row, ...]) -> None:
    """Two minutes are as long as a node takes."""
    (bought,) = of(rows, "claim created")

    assert bought.at_s <= NOTICE_S + 1
    assert rows.index(bought) < min(rows.index(row) for row in of(rows, "Evicted"))


def test_the_least_priority_goes_first(rows: tuple[Row, ...]) -> None:
    """Each is asked once."""
    evicted = [row.object.partition("/default/")[2].partition("-")[0] for row in of(rows, "Evicted")]

    assert ["low"] * 8 + ["middle"] * 6 + ["high"] * 6 == evicted


def test_none_is_lost(rows: tuple[Row, ...]) -> None:
    """All have ended by themselves long before the cloud takes the machine, and all run again on their slices."""
    removed, gone = of(rows, "removed"), of(rows, "node removed")

    assert 20 == len(removed)
    assert max(row.at_s for row in removed) < gone[0].at_s <= NOTICE_S + 120
    assert 20 == len(of(rows, "bound"))
