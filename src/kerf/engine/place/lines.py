"""Pods of one shape, each put where the real scheduler would put it, without asking every node for every pod.

A node that refused a pod for its resources does so all the more with more pods. With constraints on other pods that is
not so: company opens a node, and a pod elsewhere evens out a spread. What such a constraint says is the same for all
nodes of a domain. So the nodes are taken cell by cell, a cell being the nodes that are in the same domains; a cell that
is refused waits as a whole until the counts it goes by have changed in a way that may open it. Where domains are as
small as nodes (`kubernetes.io/hostname`) the node itself waits.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from kerf.engine.place.checks import Check, openings
from kerf.engine.place.fit import Placed
from kerf.engine.place.shapes import Shape
from kerf.engine.place.topology import TopologyLedger

_Choice = tuple[float, int]
"""The scheduler's order (least first), and the number of a node."""
_FIRST: _Choice = (float("-inf"), -1)
"""The place of a cell whose best node is still to be found."""


class TrialNodes(Protocol):
    """What a line asks of the nodes of a trial."""

    ledger: TopologyLedger

    def mark(self) -> int:
        """A point in time."""
        ...

    def changed_since(self, mark: int) -> list[int]:
        """The nodes that were given another room since `mark`, each once."""
        ...

    def alone(self, index: int, shape: Shape) -> Placed | None:
        """A pod of the shape on a node, whatever pods are elsewhere; None where it does not fit."""
        ...


@dataclass(frozen=True, slots=True)
class Taking:
    """A node that takes a pod, and its place in the scheduler's order (least first).

    Without a `result` that is what a node like it said, and it is still to be asked itself.
    """

    index: int
    order: float
    result: Placed | None = None


@dataclass
class _Cell:
    """Nodes in the same domains. `unasked` are those not looked at yet, last one first; `refused` wait.

    `at` is the place of the cell among all, None while it waits.
    """

    unasked: list[int]
    sample: int
    at: _Choice | None = _FIRST
    choices: list[_Choice] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)


class Line:
    """Pods of one shape, and the nodes that take one, in the order in which the real scheduler prefers them.

    Without `has_preferences` that is the order of the nodes, so a node is looked at once those before it are full.
    `taken` takes nodes off the end of a list until one takes a pod, and says which; None once the list is empty.
    Cost: the nodes that are looked at, of which those alike ask but one until their turn comes, and for each pod the
    checks of the cells that have opened since the last one.
    """

    def __init__(
        self,
        nodes: TrialNodes,
        shape: Shape,
        candidates: Sequence[int],
        taken: Callable[[list[int]], Taking | None],
        *,
        has_preferences: bool,
    ) -> None:
        self._nodes, self._shape, self._candidates, self._taken = nodes, shape, candidates, taken
        self._results: dict[int, Placed] = {}
        # The order of nodes that were not asked themselves.
        self._likely: dict[int, float] = {}
        self._cell_of: dict[int, int] = {}
        self._seen = nodes.mark()
        self._is_eager = has_preferences
        self._look(candidates)

    def _look(self, candidates: Sequence[int]) -> None:
        """Read the checks, and sort the nodes into cells."""
        ledger, self._checks = self._nodes.ledger, self._nodes.ledger.checks(self._shape)
        self._version, self._openings = ledger.version, openings(self._checks)
        fine = [check for check in self._checks if any(map(ledger.domains.is_fine, check.keys))]
        self._fine: tuple[Check, ...] = tuple(fine)
        self._coarse = tuple(check for check in self._checks if check not in fine)
        self._cells = [_Cell(found[::-1], found[0]) for found in self._sorted(candidates)]
        self._closed: list[int] = []
        self._heads: list[tuple[_Choice, int]] = [(_FIRST, number) for number in range(len(self._cells))]
        self._cell_of = {}
        if len(self._cells) > 1:
            self._cell_of = {index: number for number, cell in enumerate(self._cells) for index in cell.unasked}

    def _sorted(self, candidates: Sequence[int]) -> list[list[int]]:
        """The nodes by what decides the coarse checks."""
        if not self._coarse or not candidates:
            return [list(candidates)] if candidates else []
        keys = tuple(sorted({key for check in self._coarse for key in check.keys}))
        asked = np.array(candidates, dtype=np.int64)
        cells = self._nodes.ledger.domains.cells(keys)[asked]
        order = np.argsort(cells, kind="stable")
        starts = np.flatnonzero(np.diff(cells[order])) + 1
        found: list[list[int]] = [part.tolist() for part in np.split(asked[order], starts)]
        return found

    def take(self) -> tuple[int, Placed] | None:
        """The best node for one more pod, and the pod there; None where no node takes it. The caller places it."""
        self._catch_up()
        if any(check.is_shut for check in self._checks):
            return None
        while self._heads:
            place, number = self._heads[0]
            cell = self._cells[number]
            if place != cell.at:
                heapq.heappop(self._heads)
                continue
            is_open = not self._coarse or self._nodes.ledger.allows(self._coarse, cell.sample)
            head = self._head(cell) if is_open else None
            if head is None:
                heapq.heappop(self._heads)
                cell.at = None
                self._closed.append(number)
            elif head == place:
                return head[1], self._results[head[1]]
            else:
                cell.at = head
                heapq.heapreplace(self._heads, (head, number))
        return None

    def _catch_up(self) -> None:
        """Heed what was placed since the last pod, by this line or by others."""
        nodes = self._nodes
        if nodes.ledger.version != self._version:
            self._look(self._candidates)
            self._results.clear()
            self._likely.clear()
        else:
            for index in nodes.changed_since(self._seen):
                if index in self._results or index in self._likely:
                    self._look_again(index)
        self._seen = nodes.mark()
        opened = openings(self._checks)
        if opened != self._openings:
            self._openings = opened
            self._reopen()

    def _reopen(self) -> None:
        """Let all that wait be asked again."""
        closed, self._closed = self._closed, []
        if not self._checks:
            return
        for number in closed if not self._fine else range(len(self._cells)):
            cell = self._cells[number]
            if cell.at is not None and not cell.refused:
                continue
            for index in cell.refused:
                if index in self._results:
                    heapq.heappush(cell.choices, (self._results[index].order, index))
            cell.refused.clear()
            cell.at = _FIRST
            heapq.heappush(self._heads, (_FIRST, number))

    def _look_again(self, index: int) -> None:
        before, likely = self._results.pop(index, None), self._likely.pop(index, None)
        result = self._nodes.alone(index, self._shape)
        if result is None:
            return
        self._results[index] = result
        if result.order != (likely if before is None else before.order):
            number, place = self._cell_of.get(index, 0), (result.order, index)
            cell = self._cells[number]
            heapq.heappush(cell.choices, place)
            if cell.at is not None and place < cell.at:
                cell.at = place
                heapq.heappush(self._heads, (place, number))

    def _head(self, cell: _Cell) -> _Choice | None:
        """The best node of the cell that takes a pod; None where none does."""
        while True:
            # Without preferences those that were found first come first in the order of the nodes, too.
            while cell.unasked and (self._is_eager or not cell.choices):
                self._ask(cell)
            if not cell.choices:
                return None
            order, index = cell.choices[0]
            if self._likely.get(index) == order:
                self._look_again(index)
            result = self._results.get(index)
            if result is None or result.order != order:
                heapq.heappop(cell.choices)
            elif self._fine and not self._nodes.ledger.allows(self._fine, index):
                heapq.heappop(cell.choices)
                cell.refused.append(index)
            else:
                return order, index

    def _ask(self, cell: _Cell) -> None:
        found = self._taken(cell.unasked)
        if found is None:
            return
        if found.result is None:
            self._likely[found.index] = found.order
        else:
            self._results[found.index] = found.result
        heapq.heappush(cell.choices, (found.order, found.index))
