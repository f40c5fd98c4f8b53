"""Which pods get their cells before others: those that found none when all came in queue order.

A pod that may run in several zones takes the cheapest, and that can be the only one of a younger pod that must be away
from it. If the younger pod gets its cell first, the older one finds another zone. That is the order in which cells are
given, and not that of the scheduler: each pod is bound where it is planned, and `engine.buy.proving` asks whether the
order of the queue allows that. A pod that was refused may need others to come first, as company or to keep a spread
even. `WantedCells` says where those are wanted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kerf.engine.place.checks import Apart, Check, Even, Together, Welcome
from kerf.engine.place.shapes import queue_order
from kerf.engine.place.tallies import Company, Presence, Spread, Tally
from kerf.model.pods import Pod


def importance(pods: Iterable[Pod]) -> list[tuple[int, int]]:
    """Of pods that get no place: the lesser, the better. One of higher priority weighs more than any of lower ones."""
    return sorted(((pod.queue_priority, pod.spec.priority) for pod in pods), reverse=True)


def is_better(left: Mapping[str, Pod], than: Mapping[str, Pod]) -> bool:
    """Whether a plan that leaves these pods, by key, is better than one that leaves those.

    It leaves fewer, see `importance`, and of the pods that only one of the two leaves the first in the queue has its
    place: no pod loses a place to those that come after, however many they are.
    """
    changed = [left.get(key) or than[key] for key in left.keys() ^ than.keys()]
    first = min(changed, key=queue_order, default=None)
    return first is not None and first.key in than and importance(left.values()) < importance(than.values())


class Precedence:
    """How often pods were refused: those that were most often come first, and of these those with the least choice."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self.shapes: dict[int, None] = {}
        """Numbers of shapes some of whose pods were refused, the first refused first."""

    def refuse(self, number: int, pods: Sequence[Pod]) -> None:
        """Pods of a shape come before others from now on."""
        self.shapes[number] = None
        self._times.update(pod.key for pod in pods)

    def times(self, pod: Pod) -> int:
        """How often the pod was refused."""
        return self._times[pod.key]

    def of(self, pod: Pod, choices: int) -> tuple[int, int]:
        """Sort key, the first first, of a pod that has so many cells to choose from; equal for all never refused."""
        times = self._times[pod.key]
        return -times, choices if times else 0


QUEUE_ORDER = Precedence()
"""None comes before others."""


_NONE: Counter[Any] = Counter()


class WantedCells:
    """Where shapes that come before others want these to be: company in their domains, and even numbers.

    What keeps off them, or they keep off, is wanted where such a pod is already.
    """

    def __init__(self) -> None:
        self._company: dict[int, Counter[tuple[str, str]]] = {}
        self._even: dict[int, Counter[str]] = {}
        self._free: dict[int, Counter[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._company or self._even or self._free)

    def add(self, checks: Iterable[Check], sites: Sequence[int]) -> None:
        """What a shape asks, and the sites that it has or can have."""
        for check in checks:
            if isinstance(check, Together):
                pairs = zip(check.tally.keys, check.tally.values, strict=True)
                places = {(key, values[site]) for key, values in pairs for site in sites}
                found = self._company.setdefault(id(check.tally), Counter())
                found.update((key, value) for key, value in places if value is not None)
            elif isinstance(check, Even | Apart | Welcome):
                own = {value for site in sites if (value := check.tally.values[site]) is not None}
                wanted = self._even if isinstance(check, Even) else self._free
                wanted.setdefault(id(check.tally), Counter()).update(own)

    def met(self, tallies: Iterable[Tally], site: int) -> int:
        """How well a pod there that counts in these tallies meets what is wanted; less than 0 if it goes against it."""
        return sum([self._met(tally, site) for tally in tallies])

    def _met(self, tally: Tally, site: int) -> int:
        if isinstance(tally, Company):
            company = self._company.get(id(tally), _NONE)
            places = ((key, values[site]) for key, values in zip(tally.keys, tally.values, strict=True))
            # The first of a company counts twice: more than one may be needed, for it may itself wait for another.
            return sum([company[each] * (1 if each in tally.counts else 2) for each in places if each in company])
        if not isinstance(tally, Spread | Presence):
            return 0
        value = tally.values[site]
        if value is None:
            return 0
        if isinstance(tally, Presence):
            return 0 if value in tally.counts else -self._free.get(id(tally), _NONE)[value]
        if (own := self._even.get(id(tally))) is None:
            return 0
        return -own[value] if value in own else int(tally.counts.get(value, 0) <= tally.least(1))
