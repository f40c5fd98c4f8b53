"""Ways to fill a node: what they are worth, and the best one with each shape."""

import numpy as np
import pytest

from kerf.engine.buy.wholenodes import Fills


@pytest.mark.parametrize(("fills", "most"), [(1, 3), (40, 2), (3_000, 4)])
def test_what_a_fill_is_worth_is_the_sum_over_its_pods(fills: int, most: int) -> None:
    """Of whole numbers exactly, and whatever other shapes are worth that the node takes none of."""
    chance = np.random.default_rng(fills)
    counts = (chance.integers(0, most, (fills, 9)) * (chance.random((fills, 9)) < 0.3)).astype(np.uint8)
    shapes, worth = np.array([8, 2, 5, 11, 3, 4, 0, 9, 7]), chance.integers(0, 10**12, 12)

    found = Fills(shapes, counts).worth(worth)

    assert (counts.astype(np.int64) @ worth[shapes]).tolist() == found.tolist()


def test_the_best_fill_is_found_for_each_shape_that_some_fill_has() -> None:
    """Of equal ones the first; also for a shape that only the worst of many fills has."""
    chance = np.random.default_rng(7)
    counts = (chance.random((2_000, 6)) < 0.2).astype(np.uint8)
    worth = np.array([0.3, 0.1, 0.3, 0.2, 0.7, 0.0])
    # One shape is in one poor fill alone, and one in none.
    counts[:, 5] = counts[:, 1] = 0
    counts[1_234] = [0, 1, 0, 0, 0, 0]
    fills = Fills(np.arange(6), counts)
    values = fills.worth(worth)

    found = fills.best(np.argsort(-values, kind="stable"))

    assert {int(np.where(column > 0, values, -1).argmax()) for column in counts.T if column.any()} == found
    assert 1_234 in found
