"""Pods that can never come because each must be with another one of them first.

kube-scheduler binds a pod beside others only once these are bound; only a pod that is its own company may come first.
Of pods that seek each other in a circle none ever is the first, so no node helps. They are found before places are
sought, and named with those that wait for them in vain.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kerf.engine.place.checks import Together
from kerf.engine.place.shapes import Shape
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
    sought = {number: check for number, shape in enumerate(shapes) if (check := _absent_company(shape, ledger))}
    if not sought:
        return {}
    waiting = _Waiting(shapes, sought, ledger, others)
    waiting.release()
    waiting.leave_dead_ends()
    return waiting.circles(shapes)


def _absent_company(shape: Shape, ledger: TopologyLedger) -> Together | None:
    """The pods that one of the shape must be with, where none of them is anywhere and it is none itself."""
    if not shape.spec.pod_affinity.required:
        return None
    found = (check for check in ledger.checks(shape) if isinstance(check, Together))
    return next((check for check in found if not check.is_own and check.is_absent), None)


class _Waiting:
    """Shapes by number, and by number of a company those that seek it and those that are sought.

    A company may be that of many shapes, of which each has members that it does not mean: those it is `without`.
    """

    def __init__(
        self, shapes: Sequence[Shape], sought: Mapping[int, Together], ledger: TopologyLedger, others: Iterable[Pod]
    ) -> None:
        self._sought = {number: tuple(map(id, check.tallies)) for number, check in sought.items()}
        self._seekers: dict[int, list[int]] = {}
        for number, companies in self._sought.items():
            for company in companies:
                self._seekers.setdefault(company, []).append(number)
        self._members: dict[int, list[int]] = {company: [] for company in self._seekers}
        self._in: dict[int, list[int]] = {}
        less: dict[int, list[int]] = {id(tally): [] for check in sought.values() for tally in check.less}
        for number, shape in enumerate(shapes):
            counted = list(map(id, ledger.counting(shape)))
            self._in[number] = [company for company in counted if company in self._seekers]
            for company in self._in[number]:
                self._members[company].append(number)
            for tally in counted:
                if tally in less:
                    less[tally].append(number)
        self._without = {
            number: frozenset(each for tally in check.less for each in less[id(tally)])
            for number, check in sought.items()
        }
        counted_in = (frozenset(id(tally) for tally in ledger.counting(Shape((pod,)))) for pod in others)
        self._others = [
            (found, found.intersection(less)) for found in counted_in if not found.isdisjoint(self._seekers)
        ]
        self._less = {number: frozenset(map(id, check.less)) for number, check in sought.items()}
        self._stuck = set(self._sought)

    def release(self) -> None:
        """Leave out those whose company may come: a pod of it seeks none, or its own company may come."""
        free = deque(number for number in self._in if number not in self._stuck)
        for companies, without in self._others:
            for company in sorted(companies.intersection(self._seekers), key=lambda each: self._members[each][:1]):
                free.extend(self._freed(company, [n for n in self._seekers[company] if self._less[n] & without]))
        while free:
            number = free.popleft()
            for company in self._in[number]:
                left = self._seekers.get(company, ())
                free.extend(self._freed(company, [each for each in left if number in self._without[each]]))

    def _freed(self, company: int, left: list[int]) -> Iterator[int]:
        """Those that seek the company and are stuck, but those that are `left`."""
        kept = frozenset(left)
        found = [number for number in self._seekers.pop(company, ()) if number not in kept and number in self._stuck]
        if left:
            self._seekers[company] = left
        self._stuck.difference_update(found)
        yield from found

    def leave_dead_ends(self) -> None:
        """Leave out those that wait for what no pod is, or for such a pod alone."""
        live = {company: sum(number in self._stuck for number in found) for company, found in self._members.items()}
        seekers = {
            company: [number for number in found if number in self._stuck] for company, found in self._seekers.items()
        }
        most = {
            company: max((len(self._without[each]) for each in found), default=0) for company, found in seekers.items()
        }
        dead = deque(number for number in self._sought if number in self._stuck and self._is_dead(number, live))
        while dead:
            number = dead.popleft()
            if number not in self._stuck:
                continue
            self._stuck.discard(number)
            for company in self._in[number]:
                live[company] -= 1
                if live[company] <= most.get(company, 0):
                    dead.extend(
                        each for each in seekers.get(company, ()) if each in self._stuck and self._is_dead(each, live)
                    )

    def _is_dead(self, number: int, live: Mapping[int, int]) -> bool:
        held = sum(live[company] for company in self._sought[number])
        return held <= len(self._without[number]) and held == len(self._without[number] & self._stuck)

    def circles(self, shapes: Sequence[Shape]) -> Mapping[int, AffinityCircle]:
        """Those that are left, each with the circle to which its first company leads."""
        stuck = self._stuck
        members = {company: [each for each in found if each in stuck] for company, found in self._members.items()}
        following = {number: self._first(number, members) for number in sorted(stuck)}
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

    def _first(self, number: int, members: Mapping[int, Sequence[int]]) -> int:
        """The first of those that it seeks."""
        without = self._without[number]
        found = (next((n for n in members[company] if n not in without), None) for company in self._sought[number])
        return min(each for each in found if each is not None)


def _named(number: int, circle: Sequence[int], places: Mapping[int, int], shapes: Sequence[Shape]) -> AffinityCircle:
    """The circle from the shape on where it is one of it."""
    is_one = number in places and circle[places[number]] == number
    first = places[number] if is_one else 0
    few = (circle[(first + step) % len(circle)] for step in range(min(_NAMED, len(circle))))
    return AffinityCircle(tuple(Name(shapes[each].pod.key) for each in few), len(circle), is_one)
