"""How often hints are tried, and what is said of those that are not."""

import pytest

from kerf.engine.decide import decide
from kerf.engine.explain.hints.tries import Tries
from kerf.engine.explain.plan import explain
from kerf.model.plan import Plan
from kerf.testing.builders import a_pod
from tests.engine.explain.test_evidence import OPTIONS, a_world


def explained(tries: Tries | None) -> Plan:
    """Four shapes that a limit leaves out, each of which a higher one would place."""
    world = a_world(*(a_pod(f"p{cpu}", cpu=cpu) for cpu in (1, 2, 3, 4)), limits={"cpu": "1m"})
    return explain(decide(world, OPTIONS), tries)


def test_hints_that_cannot_be_tried_come_without_a_patch() -> None:
    """The reasons are the same, and a note says that some hints were not tried."""
    tried, untried = explained(None), explained(Tries(0))

    assert [each.reason for each in tried.unplaced] == [each.reason for each in untried.unplaced]
    assert (True, False) == tuple(any(each.patch for each in plan.unplaced) for plan in (tried, untried))
    assert (False, True) == tuple(
        any("too much is refused" in note for note in plan.notes) for plan in (tried, untried)
    )


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_a_limit_that_was_not_searched_to_the_end_is_not_called_the_smallest(most: int) -> None:
    """It is one that does; whichever try was the last."""
    hints = {each.hint for each in explained(Tries(most)).unplaced}

    assert not [hint for hint in hints if "smallest" in hint]


def test_tries_end_for_good_once_something_better_is_to_be_done() -> None:
    """Even where it is done soon."""
    wanted = iter([True, False, True])
    tries = Tries(10, lambda: next(wanted))

    assert [True, False, False] == [tries.take() for _ in range(3)]
    assert tries.are_over
