"""Pods that can never come because each must be with another one of them first.

kube-scheduler binds a pod beside others only once these are bound; only a pod that is its own company may come first.
Of pods that seek each other in a circle none ever is the first, so no node helps. They are found before places are
sought, and named with those that wait for them in vain.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kerf.engine.place.checks import Together
from kerf.engine.place.shapes import Shape
from kerf.engine.place.tallies import Tally
from kerf.engine.place.topology import TopologyLedger
from kerf.model.causes import Name
from kerf.model.pods import Pod
from kerf.model.topology import AffinityCircle

_NAMED = 5
"""So many pods of a circle are named."""


def in_circles(
    shapes: Sequence[Shape], ledger: TopologyLedger, others: Iterable[Pod] = ()
) -> Mapping[int, AffinityCircle]:
    """By number the shapes of which no pod can be the first, each with its circle. Linear in shapes and their terms.

    `others` are pods that wait, too, and are not planned for: once they run, they may be the first.
    """
    sought = {number: tally for number, shape in enumerate(shapes) if (tally := _absent_company(shape, ledger))}
    if not sought:
        return {}
    waiting = _Waiting(shapes, sought, ledger, others)
    waiting.release()
    waiting.leave_dead_ends()
    return waiting.circles(shapes)


def _absent_company(shape: Shape, ledger: TopologyLedger) -> Tally | None:
    """The pods that one of the shape must be with, where none of them is anywhere and it is none itself."""
    if not shape.spec.pod_affinity.required:
        return None
    found = (check for check in ledger.checks(shape) if isinstance(check, Together))
    return next((check.tally for check in found if not check.is_own and not check.tally.counts), None)


class _Waiting:
    """Shapes by number, and by number of a company those that seek it and those that are sought."""

    def __init__(
        self, shapes: Sequence[Shape], sought: Mapping[int, Tally], ledger: TopologyLedger, others: Iterable[Pod]
    ) -> None:
        self._sought = {number: id(tally) for number, tally in sought.items()}
        self._seekers: dict[int, list[int]] = {}
        for number, company in self._sought.items():
            self._seekers.setdefault(company, []).append(number)
        self._members: dict[int, list[int]] = {company: [] for company in self._seekers}
        self._in: dict[int, list[int]] = {}
        for number, shape in enumerate(shapes):
            found = [company for company in map(id, ledger.counting(shape)) if company in self._seekers]
            self._in[number] = found
            for company in found:
                self._members[company].append(number)
        self._open = {id(tally) for pod in others for tally in ledger.counting(Shape((pod,)))}.intersection(
            self._seekers
        )
        self._stuck = set(self._sought)

    def release(self) -> None:
        """Leave out those whose company may come: a pod of it seeks none, or its own company may come."""
        free = deque(number for number in self._in if number not in self._stuck)
        for company in sorted(self._open, key=lambda each: self._seekers[each][0]):
            free.extend(self._freed(company))
        while free:
            for company in self._in[free.popleft()]:
                free.extend(self._freed(company))

    def _freed(self, company: int) -> Iterator[int]:
        self._open.add(company)
        for number in self._seekers.pop(company, ()):
            self._stuck.discard(number)
            yield number

    def leave_dead_ends(self) -> None:
        """Leave out those that wait for what no pod is, or for such a pod alone."""
        live = {company: sum(number in self._stuck for number in self._members[company]) for company in self._seekers}
        dead = deque(number for company, count in live.items() if not count for number in self._seekers[company])
        while dead:
            number = dead.popleft()
            self._stuck.discard(number)
            for company in self._in[number]:
                if company in live:
                    live[company] -= 1
                    dead.extend(self._seekers[company] if not live[company] else ())

    def circles(self, shapes: Sequence[Shape]) -> Mapping[int, AffinityCircle]:
        """Those that are left, each with the circle to which its first company leads."""
        stuck = self._stuck
        first = {
            company: next((each for each in members if each in stuck), -1) for company, members in self._members.items()
        }
        following = {number: first[self._sought[number]] for number in sorted(stuck)}
        circle_of: dict[int, tuple[int, ...]] = {}
        places: dict[int, int] = {}
        for start in following:
            path, place, number = list[int](), dict[int, int](), start
            while number not in circle_of and number not in place:
                place[number] = len(path)
                path.append(number)
                number = following[number]
            circle = circle_of.get(number)
            if circle is None:
                circle = tuple(path[place[number] :])
                places.update((each, at) for at, each in enumerate(circle))
            circle_of.update(dict.fromkeys(path, circle))
        return {number: _named(number, circle_of[number], places, shapes) for number in following}


def _named(number: int, circle: Sequence[int], places: Mapping[int, int], shapes: Sequence[Shape]) -> AffinityCircle:
    """The circle from the shape on where it is one of it."""
    is_one = number in places and circle[places[number]] == number
    first = places[number] if is_one else 0
    few = (circle[(first + step) % len(circle)] for step in range(min(_NAMED, len(circle))))
    return AffinityCircle(tuple(Name(shapes[each].pod.key) for each in few), len(circle), is_one)
