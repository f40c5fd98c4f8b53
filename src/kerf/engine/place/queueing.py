"""Pods that come to the nodes they are planned for, as far as other pods let them: in the order of the queue.

Which of them can come depends on the order. A pod that counts in the spread of others, and asks for none itself, comes
to its node at any time; come too early, it keeps those others from theirs.
"""

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple

from kerf.engine.place.checks import Check
from kerf.engine.place.rounds import Backlog
from kerf.engine.place.shapes import Shape, queue_order
from kerf.engine.place.topology import TopologyLedger
from kerf.model.pods import Pod


class Destined(NamedTuple):
    """A pod, a shape that it is equal to, and the number of the node that is planned for it."""

    shape: Shape
    pod: Pod
    node: int


def destined(pods: Iterable[tuple[Pod, int]], ledger: TopologyLedger) -> list[Destined]:
    """Each pod with its node, those that are equal to the ledger under one shape. Linear in the pods."""
    shapes: dict[Hashable, Shape] = {}
    found = []
    for pod, node in pods:
        shape = Shape((pod,))
        found.append(Destined(shapes.setdefault(ledger.likeness(shape), shape), pod, node))
    return found


def come_in_order(
    waiting: Iterable[Destined],
    ledger: TopologyLedger,
    come: Callable[[Destined], None],
    late: dict[str, int] | None = None,
) -> tuple[Destined, ...]:
    """Let the pods `come` round after round, as the scheduler tries again those that it has refused; those that cannot.

    `late` is filled with the round, by key, of pods that come after the first; within a round they come in queue order.
    Rooms are not looked at. Pods of one shape and node are one line, of which a round asks the first until it is
    refused. Cost: pods x log(lines), and the lines each time that one of them opens again.
    """
    found: dict[tuple[int, int], list[tuple[int, Destined]]] = {}
    for rank, each in _ranked(waiting):
        found.setdefault((id(each.shape), each.node), []).append((rank, each))
    lines, shut, known = list(found.values()), Backlog(), _KnownChecks(ledger)
    due: dict[int, None] = dict.fromkeys(range(len(lines)))
    number_of_round = -1
    while due:
        number_of_round += 1
        heads = [(lines[number][-1][0], number) for number in due if lines[number]]
        due = {}
        heapq.heapify(heads)
        while heads:
            _, number = heapq.heappop(heads)
            line = lines[number]
            first = line[-1][1]
            checks = known.of(first.shape)
            if shut.is_shut(number, checks):
                continue
            if not ledger.allows(checks, first.node):
                shut.refuse(number, checks)
                continue
            if late is not None and number_of_round:
                late[first.pod.key] = number_of_round
            line.pop()
            come(first)
            if not shut.is_empty:
                due.update(dict.fromkeys(shut.come(ledger.counting(first.shape))))
            if line:
                heapq.heappush(heads, (line[-1][0], number))
    return tuple(sorted((each for line in lines for _, each in line), key=lambda each: queue_order(each.pod)))


class _KnownChecks:
    """The checks of shapes, asked for once until more pods keep others off."""

    def __init__(self, ledger: TopologyLedger) -> None:
        self._ledger = ledger
        # The shape is kept beside its checks: an identity is free again once its object is gone.
        self._known: dict[int, tuple[Shape, int, tuple[Check, ...]]] = {}

    def of(self, shape: Shape) -> tuple[Check, ...]:
        """Those of a shape."""
        held = self._known.get(id(shape))
        if held is None or held[1] != self._ledger.version:
            checks = self._ledger.checks(shape)
            held = self._known[id(shape)] = shape, self._ledger.version, checks
        return held[2]


def _ranked(waiting: Iterable[Destined]) -> Iterator[tuple[int, Destined]]:
    """The last of the queue first, each with a number that grows along the queue; equal ones have one number."""
    keyed = sorted(((queue_order(each.pod), each) for each in waiting), key=lambda pair: pair[0], reverse=True)
    rank, before = 0, None
    for order, each in keyed:
        rank -= order != before
        before = order
        yield rank, each
