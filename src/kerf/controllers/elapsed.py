"""Time that has really passed: a clock that is set, forward or back, ends no wait early and makes none longer.

What is written on objects is the clock's time, as everywhere in Kubernetes. How long something has waited is counted
here, by the loop that timers run on.
"""

import asyncio
from collections.abc import Hashable
from typing import NamedTuple

from kerf.ports import Clock

_SET_S = 1.0
"""A clock that is kept right is moved by less, again and again."""


def passed_s() -> float:
    """Seconds since some moment in the past, by a clock that is never set. Only on a running loop."""
    return asyncio.get_running_loop().time()


class ClockSet:
    """By how much the clock was set since it was asked last; for times that are kept as the clock shows them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_s: float | None = None

    def by_s(self) -> float:
        """Seconds, forward or back, from one on; 0 at the first question. Less is left until it has added up."""
        ahead_s = self._clock.now_s() - passed_s()
        by_s = 0.0 if self._ahead_s is None else ahead_s - self._ahead_s
        if self._ahead_s is not None and abs(by_s) < _SET_S:
            return 0.0
        self._ahead_s = ahead_s
        return by_s


class _Began(NamedTuple):
    at_s: float
    passed_s: float
    about: Hashable


class Steady:
    """The time for each of several waits, as if the clock had not been set since the wait was looked at first.

    After a restart each is looked at first once more, so then the clock's time decides.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: dict[str, _Began] = {}

    def now_s(self, key: str, about: Hashable = None) -> float:
        """Seconds since the epoch: the clock's time of the first look, and what has passed since.

        With another `about` than at the last look it is another wait.
        """
        began = self._began.get(key)
        if began is None or began.about != about:
            began = self._began[key] = _Began(self._clock.now_s(), passed_s(), about)
        # Two clocks of floats differ by less than a microsecond; a wait that has that long left would never end.
        return round(began.at_s + (passed_s() - began.passed_s), 3)

    def earliest_s(self, key: str) -> float:
        """That, or less where the clock shows less: for times that were written before it was set, and since."""
        return min(self._clock.now_s(), self.now_s(key))

    def forget(self, key: str) -> None:
        """The wait is over."""
        self._began.pop(key, None)
