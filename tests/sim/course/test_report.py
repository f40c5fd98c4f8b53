"""The report as others read it: names of fields, numbers, times; and its chart."""

import xml.etree.ElementTree as ElementTree

import pytest

from kerf.sim.course.chart import svg
from kerf.sim.course.report import CheckedExpectation, Row, Sample, SimulationReport, Totals, Waits, offset_text

TOTALS = Totals(
    cost_micro=2_012_000,
    node_hours=2.0,
    gpu_hours_paid=2.0,
    gpu_hours_allocated=1.5,
    pods_placed=3,
    pods_unplaced=1,
    waits=Waits(126, 126, 128, 130.5),
    launches=2,
    deletions=1,
)
REPORT = SimulationReport(
    "inference",
    start_s=1_767_596_400,
    duration_s=3600,
    currency="USD",
    totals=TOTALS,
    rows=(Row(100.5, "bound", "pod/default/a", "node n"),),
    samples=(Sample(0, 0, 0, 0, 3, 0), Sample(60, 2, 2, 5000, 0, 2_012_000)),
    outcomes=(CheckedExpectation(900, {"nodes": {"count": 2}}, {"nodes": {"count": 1}}, False),),
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (100, "1m40s"), (3600, "1h"), (0.5, "0.5s"), (100.25, "1m40.25s"), (3661.0009, "1h1m1.001s")],
)
def test_times_are_written_as_in_a_scenario(seconds: float, text: str) -> None:
    """Since the start, to the millisecond."""
    assert text == offset_text(seconds)


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ([], Waits()),
        ([7.0], Waits(7, 7, 7, 7)),
        ([4.0, 1.0, 3.0, 2.0], Waits(2, 4, 4, 4)),
        (list(range(1, 101)), Waits(50, 95, 99, 100)),
    ],
)
def test_waits_are_by_nearest_rank(waits: list[float], expected: Waits) -> None:
    """A value that occurred, never one between two."""
    assert expected == Waits.of(waits)


def test_the_totals_are_those_of_the_contract() -> None:
    """Names and numbers as docs/reference/scenario.md has them."""
    totals = REPORT.to_object()["totals"]

    assert {"cost": 2.012, "currency": "USD", "nodeHours": 2} == {
        k: totals[k] for k in ("cost", "currency", "nodeHours")
    }
    assert (2, 1.5, 0.25) == (totals["gpuHoursPaid"], totals["gpuHoursAllocated"], totals["kerf"])
    assert (3, 1, {"p50": 126, "p95": 126, "p99": 128, "max": 130.5}) == (
        totals["podsPlaced"],
        totals["podsUnplaced"],
        totals["waitSeconds"],
    )
    assert (2, 1, 0) == (totals["launches"], totals["deletions"], totals["evictions"])


def test_timeline_and_expectations_are_those_of_the_contract() -> None:
    """A row a fact; an expectation beside what came."""
    shown = REPORT.to_object()

    assert [{"at": "1m40.5s", "what": "bound", "object": "pod/default/a", "why": "node n"}] == shown["timeline"]
    outcome = {"at": "15m", "expected": {"nodes": {"count": 2}}, "got": {"nodes": {"count": 1}}, "ok": False}
    assert [outcome] == shown["expectations"]


def test_without_gpus_there_is_no_waste() -> None:
    """Nothing paid, nothing wasted."""
    assert 0 == Totals().kerf


def test_the_chart_is_a_file_of_its_own() -> None:
    """Well-formed, with a title, nothing loaded from elsewhere."""
    chart = svg(REPORT)

    root = ElementTree.fromstring(chart)
    assert "inference: 2.01 USD in 1h" == root.findtext("{http://www.w3.org/2000/svg}title")
    assert "http" not in chart.replace("http://www.w3.org/2000/svg", "")


def test_the_chart_names_its_axes_and_lines() -> None:
    """What each band and line is, and when."""
    texts = [element.text for element in ElementTree.fromstring(svg(REPORT)).iter("{http://www.w3.org/2000/svg}text")]

    for text in (
        "Nodes",
        "Cost",
        "per hour",
        "GPUs",
        "paid",
        "used",
        "Pods",
        "pending",
        "time since the start",
        "0s",
        "30m",
        "1h",
    ):
        assert text in texts


def test_the_chart_draws_steps() -> None:
    """A level holds until it changes: pods fall from three to none at one minute of sixty."""
    assert 'd="M64 584H78.5V714H936"' in svg(REPORT)


def test_an_empty_chart_is_a_chart() -> None:
    """A run in which nothing happened."""
    ElementTree.fromstring(svg(SimulationReport("nothing <&>", 0, 0, "USD")))
