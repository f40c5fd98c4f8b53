"""Shapes that other pods stand against, and when to try them again: once pods have come that may let them in.

kube-scheduler does the same. A pod that it has refused goes back to its queue when another one is bound, so a pod may
wait for one that is younger. Each placement is looked up by the counts that it changes: shapes that go by none of these
are not asked again.
"""

import heapq
from collections.abc import Iterator, Sequence

from kerf.engine.place.checks import openings
from kerf.engine.place.shapes import Shape
from kerf.engine.place.topology import TopologyLedger


class Retries:
    """The turns of shapes, which are given in queue order: each is tried once, and again when that may help."""

    def __init__(self, ledger: TopologyLedger, shapes: Sequence[Shape]) -> None:
        self._ledger, self._shapes = ledger, shapes
        for shape in shapes:
            # Terms that keep others off are known once a shape with them was asked for.
            ledger.checks(shape)
        self._refused: dict[int, tuple[Shape, int]] = {}
        """By number the shapes that wait, and how many openings each had seen then."""
        self._going_by: dict[int, dict[int, None]] = {}
        """By tally the numbers of shapes to be looked at again once pods have come that it counts."""
        self._due: list[int] = []

    def turns(self) -> Iterator[tuple[int, Shape]]:
        """All shapes, each with its number, then those to be tried again, the first of the queue first."""
        yield from enumerate(self._shapes)
        while self._due:
            number = heapq.heappop(self._due)
            if number not in self._refused:
                continue
            shape, seen = self._refused.pop(number)
            if seen == openings(self._ledger.checks(shape)):
                self.wait(number, shape)
            else:
                yield number, shape

    def wait(self, number: int, shape: Shape) -> None:
        """No node takes these pods of the shape as things stand."""
        checks = self._ledger.checks(shape)
        if checks:
            self._refused[number] = shape, openings(checks)
        for check in checks:
            self._going_by.setdefault(id(check.tally), {})[number] = None

    def come(self, shape: Shape) -> None:
        """Pods of the shape have come to nodes. Cost: the counts that they are in, and the shapes that go by these."""
        for tally in self._ledger.counting(shape) if self._going_by else ():
            for number in self._going_by.pop(id(tally), ()):
                heapq.heappush(self._due, number)
