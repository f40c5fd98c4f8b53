"""Shapes that other pods stand against, and when to try them again: once pods have come that may let them in.

kube-scheduler does the same. A pod that it has refused goes back to its queue when another one is bound, so a pod may
wait for one that is younger. Each placement is looked up by the counts that it changes: shapes that go by none of these
are not asked again.
"""

import heapq
from collections.abc import Iterator, Sequence

from kerf.engine.place.rounds import Backlog
from kerf.engine.place.shapes import Shape
from kerf.engine.place.topology import TopologyLedger


class Retries:
    """The turns of shapes, which are given in queue order: each is tried once, and again when that may help."""

    def __init__(self, ledger: TopologyLedger, shapes: Sequence[Shape]) -> None:
        self._ledger, self._shapes = ledger, shapes
        for shape in shapes:
            # Terms that keep others off are known once a shape with them was asked for.
            ledger.checks(shape)
        self._refused: dict[int, Shape] = {}
        self._waiting, self._due = Backlog(), list[int]()

    def turns(self) -> Iterator[tuple[int, Shape]]:
        """All shapes, each with its number, then those to be tried again, the first of the queue first."""
        yield from enumerate(self._shapes)
        while self._due:
            number = heapq.heappop(self._due)
            shape = self._refused.get(number)
            if shape is not None and not self._waiting.is_shut(number, self._ledger.checks(shape)):
                del self._refused[number]
                yield number, shape

    def wait(self, number: int, shape: Shape) -> None:
        """No node takes these pods of the shape as things stand."""
        checks = self._ledger.checks(shape)
        if checks:
            self._refused[number] = shape
            self._waiting.refuse(number, checks)

    def come(self, shape: Shape) -> None:
        """Pods of the shape have come to nodes. Cost: the counts that they are in, and the shapes that go by these."""
        if self._refused:
            for number in self._waiting.come(self._ledger.counting(shape)):
                heapq.heappush(self._due, number)
