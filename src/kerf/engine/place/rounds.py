"""Pods that are tried round after round, as kube-scheduler tries again those that it has refused.

A round takes the pods in queue order. Most of those that were refused would be refused again, because nothing has come
that they go by. So of each kind of pods it is known which counts it goes by, and only a change of these gives it
another turn: in a long chain that saves a look at every pod for each that comes.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence

from kerf.engine.place.checks import Check, openings
from kerf.engine.place.tallies import Tally


class Backlog:
    """Numbers of what was refused, by the counts that may open a node to it."""

    def __init__(self) -> None:
        self._going_by: dict[int, dict[int, None]] = {}
        self._seen: dict[int, Hashable] = {}

    @property
    def is_empty(self) -> bool:
        """Whether none waits for anything to come."""
        return not self._going_by

    def refuse(self, number: int, checks: Sequence[Check]) -> None:
        """It is refused as things stand."""
        self._seen[number] = openings(checks)
        for tally in (tally for check in checks for tally in check.tallies):
            self._going_by.setdefault(id(tally), {})[number] = None

    def is_shut(self, number: int, checks: Sequence[Check]) -> bool:
        """Whether it was refused, and nothing has changed since that it goes by. Then it still waits."""
        if self._seen.get(number) != openings(checks):
            return False
        self.refuse(number, checks)
        return True

    def come(self, tallies: Iterable[Tally]) -> Iterator[int]:
        """A pod that they count has come: what may have another turn, each once until it is refused again."""
        for tally in tallies:
            yield from self._going_by.pop(id(tally), ())

    def open_all(self) -> Iterator[int]:
        """A domain has come to be, by which any of them may go."""
        going_by, self._going_by = self._going_by, {}
        for numbers in going_by.values():
            yield from numbers


class Rounds:
    """The turns of pods, by their places in the queue; `kinds` has the number of the kind of each."""

    def __init__(self, kinds: Sequence[int]) -> None:
        self._kinds = kinds
        self._places: dict[int, list[int]] = {}
        for place, kind in enumerate(kinds):
            self._places.setdefault(kind, []).append(place)
        self._now: list[int] = []
        self._next: dict[int, None] = dict.fromkeys(self._places)
        self._at = -1

    def turns(self) -> Iterator[int]:
        """Places in the queue, each kind's first in a round; further ones as `give` and `notice` say."""
        while self._next:
            due, self._next = self._next, {}
            self._now = sorted(self._places[kind][0] for kind in due if self._places[kind])
            while self._now:
                self._at = heapq.heappop(self._now)
                yield self._at

    def is_waiting(self, place: int) -> bool:
        """Whether the pod there has not come yet."""
        places = self._places[self._kinds[place]]
        at = bisect_left(places, place)
        return at < len(places) and places[at] == place

    def give(self, place: int) -> None:
        """The pod there has come; the next one of its kind has a turn."""
        places = self._places[self._kinds[place]]
        places.pop(bisect_left(places, place))
        self.notice((self._kinds[place],))

    def notice(self, kinds: Iterable[int]) -> None:
        """They may be let in now: those after this turn in this round, those before it in the next."""
        for kind in kinds:
            places = self._places[kind]
            after = bisect_right(places, self._at)
            if after < len(places):
                heapq.heappush(self._now, places[after])
            if after:
                self._next[kind] = None

    def left(self) -> list[int]:
        """The places of those that have not come."""
        return sorted(place for places in self._places.values() for place in places)
