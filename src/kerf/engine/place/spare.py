"""What all nodes together could still take at the most, by cpu and memory alone: most questions end here.

On a settled fleet nearly every node is full, and for nearly every node that might go the answer is no. That answer must
cost next to nothing: it is asked for all of them after each change.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kerf.engine.place.target import measured
from kerf.model.pods import Pod

_Amounts = tuple[int, int]
_ANY = 2**40
"""More pods than there are: of what asks for nothing."""


@dataclass(frozen=True)
class SummedRequests:
    """What some pods ask together: how many ask for each (cpu, memory), in thousandths of a core and bytes."""

    counts: tuple[tuple[_Amounts, int], ...]
    total: _Amounts
    least: _Amounts

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> "SummedRequests":
        """Of these pods, each on its own. Linear in pods."""
        counts = Counter(_asked(pod) for pod in pods)
        cpu, memory = (sum(asked[at] * n for asked, n in counts.items()) for at in (0, 1))
        least = (min((asked[at] for asked in counts), default=0) for at in (0, 1))
        return cls(tuple(sorted(counts.items())), (cpu, memory), (next(least), next(least)))


class Spare:
    """Of the nodes of a trial as it stands; `free` has cpu and memory by number of the node.

    An answer is `no` only where the pods cannot all be placed whatever else holds. Cost of a question: the logarithm of
    the nodes, and the nodes once for each amount that is new; linear in the nodes at the beginning.
    """

    def __init__(self, free: npt.NDArray[np.int64]) -> None:
        self._free = np.maximum(free, 0)
        orders = [np.argsort(self._free[:, at], kind="stable") for at in (0, 1)]
        self._sorted: list[list[int]] = [self._free[order, at].tolist() for at, order in enumerate(orders)]
        # Sums over the nodes from each one on, in the order of what is free.
        self._sums = [_sums_from(self._free[order].tolist()) for order in orders]
        self._rows: list[list[int]] = self._free.tolist()
        self._places: dict[_Amounts, int] = {}

    def may_take(self, needs: SummedRequests, closed: int = -1) -> bool:
        """Whether all of the pods might fit on the nodes but the `closed` one."""
        own = self._rows[closed] if closed >= 0 else [-1, -1]
        for at, least in enumerate(needs.least):
            cpu, memory = self._sums[at][bisect_left(self._sorted[at], least)]
            if own[at] >= least:
                cpu, memory = cpu - own[0], memory - own[1]
            if cpu < needs.total[0] or memory < needs.total[1]:
                return False
        return all(number <= self._most(asked) - _places(own, asked) for asked, number in needs.counts)

    def _most(self, asked: _Amounts) -> int:
        """How many pods that ask so much fit on all nodes together."""
        if asked not in self._places:
            by_one = [self._free[:, at] // amount for at, amount in enumerate(asked) if amount]
            self._places[asked] = int(np.minimum.reduce(by_one).sum()) if by_one else _ANY
        return self._places[asked]


def _sums_from(rows: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    sums = [(0, 0)]
    for cpu, memory in reversed(rows):
        sums.append((sums[-1][0] + cpu, sums[-1][1] + memory))
    return sums[::-1]


def _asked(pod: Pod) -> _Amounts:
    cpu, memory = measured(pod.spec.requests)
    return max(0, cpu), max(0, memory)


def _places(free: Iterable[int], asked: _Amounts) -> int:
    return max(0, min((have // amount for have, amount in zip(free, asked, strict=True) if amount), default=0))
