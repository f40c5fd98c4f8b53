"""Means and intervals of runs, and how they are drawn."""

import math
import operator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kerf.sim.objects import Json
from kerf.sim.sweep.axes import read_sweep
from kerf.sim.sweep.cells import SweepCell
from kerf.sim.sweep.plot import svg
from kerf.sim.sweep.summary import QUANTILES, Mean, grouped
from tests.sim.sweep.files import write


def result(cost: float) -> Json:
    """Of a run that cost so much."""
    waits = {"p50": 1, "p95": 2, "p99": 3, "max": 4}
    return {
        "currency": "USD",
        "cost": cost,
        "overBoundPercent": None,
        "waitSeconds": waits,
        "moves": 0,
        "podsUnplaced": 0,
    }


@pytest.fixture
def cell(tmp_path: Path) -> SweepCell:
    """One of a sweep."""
    return read_sweep(write(tmp_path)).cells[0]


def test_an_interval_is_students() -> None:
    """Of 1, 2, 3: 4.3027 times the root of 1/3. One run says nothing of others; equal runs leave no doubt."""
    of_three = Mean.of([3, 1, 2])
    assert 2 == of_three.mean
    assert of_three.half == pytest.approx(4.3027 / 3**0.5)
    assert Mean.of([5]) == Mean(5, None)
    assert Mean.of([5, 5, 5, 5]) == Mean(5, 0)
    assert Mean.of([0.0, 1.0] * 50).half == pytest.approx(2.0423 * (25 / 99 / 100) ** 0.5)


@pytest.mark.parametrize("free", range(1, 31))
def test_the_quantiles_hold_95_percent(free: int) -> None:
    """The density of Student's t, summed by Simpson's rule between them, is 0.95."""
    scale = math.gamma((free + 1) / 2) / (math.sqrt(free * math.pi) * math.gamma(free / 2))
    width = QUANTILES[free - 1] / 2000
    weights = (1, *(4 if step % 2 else 2 for step in range(1, 2000)), 1)
    density = (scale * (1 + (width * step) ** 2 / free) ** (-(free + 1) / 2) for step in range(2001))

    assert 0.95 == pytest.approx(2 * width / 3 * sum(map(operator.mul, weights, density)), abs=1e-5)


def test_policies_are_compared_seed_by_seed(cell: SweepCell) -> None:
    """What a seed makes expensive for both cancels out: each costs a tenth more, whatever the seeds come to."""
    other = {"name": "other"}
    runs = [(replace(cell, seed=seed), result(cost)) for seed, cost in ((1, 10.0), (2, 100.0))]
    runs += [(replace(cell, seed=seed, policy=other), result(cost)) for seed, cost in ((1, 11.0), (2, 110.0), (3, 7.0))]
    first, second = grouped(runs)

    assert first.against_first is None
    assert second.against_first is not None
    assert second.against_first.mean == pytest.approx(10)
    assert second.against_first.half == pytest.approx(0, abs=1e-9)
    assert (1, 2, 3) == second.seeds
    assert "overBoundPercent" not in second.means


def test_a_plot_is_xml_with_a_dot_for_each_mean(cell: SweepCell) -> None:
    """Also of nothing, and of names that mean something in XML."""
    named = replace(cell, policy={"name": "<&>"})
    drawn = ElementTree.fromstring(svg("a & b", grouped([(cell, result(2.0)), (named, result(3.0))])))

    assert 6 == len(drawn.findall("{http://www.w3.org/2000/svg}circle"))
    ElementTree.fromstring(svg("nothing", ()))
