"""Pods that come to the nodes they are planned for, as far as other pods let them: in the order of the queue.

Which of them can come depends on the order. A pod that counts in the spread of others, and asks for none itself, comes
to its node at any time; come too early, it keeps those others from theirs.
"""

import heapq
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from kerf.engine.place.checks import openings
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
    found: dict[tuple[int, int], list[Destined]] = {}
    for each in sorted(waiting, key=lambda each: queue_order(each.pod), reverse=True):
        found.setdefault((id(each.shape), each.node), []).append(each)
    lines, shut, is_moving, number_of_round = list(found.values()), dict[int, int](), True, -1
    while is_moving:
        is_moving, number_of_round = False, number_of_round + 1
        heads = [(queue_order(line[-1].pod), number) for number, line in enumerate(lines) if line]
        heapq.heapify(heads)
        while heads:
            _, number = heapq.heappop(heads)
            line = lines[number]
            checks = ledger.checks(line[-1].shape)
            opened = openings(checks)
            if shut.get(number) == opened:
                continue
            if not ledger.allows(checks, line[-1].node):
                shut[number] = opened
                continue
            if late is not None and number_of_round:
                late[line[-1].pod.key] = number_of_round
            come(line.pop())
            is_moving = True
            if line:
                heapq.heappush(heads, (queue_order(line[-1].pod), number))
    return tuple(sorted((each for line in lines for each in line), key=lambda each: queue_order(each.pod)))
