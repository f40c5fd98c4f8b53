"""Sketches of usage: how exact they are, that they merge in any order, and that foreign bytes are refused."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.study.usage.sketch import Sketch

DAY = 20_000
VALUES = st.lists(st.integers(0, 2**53), min_size=1, max_size=40)
SKETCHES = st.lists(st.tuples(st.integers(DAY, DAY + 3), VALUES), max_size=4).map(
    lambda days: merged(*(Sketch.of(day, values) for day, values in days))
)


def merged(*sketches: Sketch) -> Sketch:
    """All of them in one."""
    whole = Sketch()
    for sketch in sketches:
        whole = whole.merged(sketch)
    return whole


def exact(values: list[int], percent: int) -> int:
    """The percentile by the nearest rank."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


@given(VALUES, st.sampled_from((50, 90, 95, 99, 100)))
def test_a_percentile_is_right_within_two_and_a_half_percent(values: list[int], percent: int) -> None:
    """Of any values, by the nearest rank; small ones exactly."""
    told, right = Sketch.of(DAY, values).percentile(percent), exact(values, percent)

    assert abs(told - right) <= right * 0.025
    assert right > 40 or told == right


@pytest.mark.parametrize("seed", range(3))
def test_a_known_distribution_over_eight_days_gives_its_p95(seed: int) -> None:
    """A log-normal distribution, whose p95 is known: within 5 % of it, and the peak exactly."""
    drawn = random.Random(seed)
    days = [[int(400 * drawn.lognormvariate(0, 0.4)) for _ in range(1440)] for _ in range(8)]
    whole = merged(*(Sketch.of(DAY + number, values) for number, values in enumerate(days)))

    assert 400 * math.exp(0.4 * 1.6449) == pytest.approx(whole.percentile(95), rel=0.05)
    assert max(map(max, days)) == whole.peak
    assert 8 * 1440 == whole.count


@given(SKETCHES, SKETCHES, SKETCHES)
def test_merging_is_associative_and_commutative(one: Sketch, two: Sketch, three: Sketch) -> None:
    """To the same bytes, so that neither restarts nor the order of samples show."""
    assert one.merged(two) == two.merged(one)
    assert one.merged(two).merged(three) == one.merged(two.merged(three))
    assert one.merged(Sketch()) == one


@given(SKETCHES)
def test_a_sketch_is_read_back_from_its_bytes(sketch: Sketch) -> None:
    """And what is cut off is refused rather than read as something else, unless it is cut between two days."""
    assert sketch == Sketch.checked(sketch.data)
    for end in range(len(sketch.data)):
        try:
            cut = Sketch.checked(sketch.data[:end])
        except ValueError:
            continue
        assert cut.count < sketch.count


@given(st.binary(max_size=60))
def test_foreign_bytes_are_a_sketch_or_a_value_error(data: bytes) -> None:
    """Nothing else is raised, and what is taken is what we would have written."""
    try:
        sketch = Sketch.checked(data)
    except ValueError:
        return
    assert sketch.merged(Sketch()) == sketch


def test_days_are_dropped_whole() -> None:
    """The oldest go; the peak goes with its day."""
    both = merged(Sketch.of(DAY, [900]), Sketch.of(DAY + 1, [100]))

    assert (900, 100, 0) == tuple(both.since(DAY + number).peak for number in range(3))


def test_a_typical_sketch_is_small() -> None:
    """Eight days of cpu with a spread of a third: less than a kilobyte."""
    drawn = random.Random(1)
    sketches = (Sketch.of(DAY + n, [int(500 * drawn.lognormvariate(0, 0.35)) for _ in range(1440)]) for n in range(8))

    assert len(merged(*sketches).data) < 1000
