"""What only ever shows zeros was not measured: no request is advised from it."""

import pytest

from kerf.engine.study.usage.history import history_of
from kerf.engine.study.usage.requests import advised_requests
from kerf.model.pods import Container
from kerf.model.usage import ContainerUsage, PodUsage

MIB = 2**20


@pytest.mark.parametrize(
    "millis, mib, expected",
    [(0, 0, [None, None]), (0, 10, [1, 12 * MIB]), (5, 0, [6, MIB])],
)
def test_only_zeros_are_no_advice(millis: int, mib: int, expected: list[int | None]) -> None:
    """A container that only slept still has memory, and gets the least cpu."""
    used = ContainerUsage("main", millis, mib * MIB)
    history = history_of(PodUsage("data", "p", at_s, 15, (used,)) for at_s in (0, 60))
    rows = advised_requests(history, [Container("main")])

    assert expected == [row.advised for row in rows]
    assert [2, 2] == [row.samples for row in rows]
