"""The bound on what nodes can take never says no to pods that fit, and says no to most that do not."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.place.spare import Spare, SummedRequests
from kerf.testing.builders import a_pod
from tests.examples import examples

AMOUNTS = st.tuples(st.integers(-2, 8), st.integers(-2, 8))
ASKED = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=4)


def needs(asked: list[tuple[int, int]]) -> SummedRequests:
    """Of pods that ask for so many thousandths of a core and bytes."""
    return SummedRequests.of(a_pod(f"p{n}", cpu=f"{cpu}m", memory=memory) for n, (cpu, memory) in enumerate(asked))


def fits(free: list[tuple[int, int]], asked: list[tuple[int, int]], closed: int) -> bool:
    """Whether some way to place the pods on the nodes exists, by trying all."""
    open_ = [number for number in range(len(free)) if number != closed]
    for homes in product(open_, repeat=len(asked)):
        left = [list(each) for each in free]
        for home, each in zip(homes, asked, strict=True):
            for at in (0, 1):
                left[home][at] -= each[at]
        # What nobody asks for may be overfull.
        wanted = {(home, at) for home, each in zip(homes, asked, strict=True) for at in (0, 1) if each[at]}
        if all(left[home][at] >= 0 for home, at in wanted):
            return True
    return False


@given(st.lists(AMOUNTS, min_size=1, max_size=4), ASKED, st.integers(-1, 3))
@examples(300, derandomize=True)
def test_it_never_refuses_what_fits(free: list[tuple[int, int]], asked: list[tuple[int, int]], closed: int) -> None:
    """Whichever node is closed, and however overfull some are."""
    closed = min(closed, len(free) - 1)
    spare = Spare(np.array(free, dtype=np.int64))
    assert spare.may_take(needs(asked), closed) or not fits(free, asked, closed)


def test_full_nodes_take_nothing() -> None:
    """By the sum of what is left, by the number of places, and without the node that is closed."""
    spare = Spare(np.array([(3, 9), (3, 9), (8, 9)], dtype=np.int64))
    assert not spare.may_take(needs([(5, 1), (5, 1), (5, 1)]))
    assert not spare.may_take(needs([(4, 1), (4, 1), (4, 1)]))
    assert spare.may_take(needs([(4, 1), (4, 1)]))
    assert not spare.may_take(needs([(4, 1)]), closed=2)
