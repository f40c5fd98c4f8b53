"""Pods that must share nodes: who seeks whom, and who can come to a node once a first pod is there.

Affinity makes chains: c must be with b, and b with a. All of a chain is on one node, so those that are linked, however
many times over, are one group. A pod that seeks others may come when one of each company that it seeks is there. Links
are followed on a list, so no chain is too long.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kerf.engine.place.checks import Together


@dataclass(frozen=True, eq=False)
class Colocation:
    """Numbers of shapes: pods of the `seekers` must share a node with a pod of the `sought`, as the check has it.

    `is_open` says that none of these runs yet, so a seeker that is one of them may come alone. Where many seek nearly
    the same, `checks` are by seeker their own, and `without` those of the sought that a seeker does not mean.
    """

    seekers: tuple[int, ...]
    sought: tuple[int, ...]
    check: Together
    is_open: bool
    checks: Mapping[int, Together] = field(default_factory=dict)
    without: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def check_of(self, seeker: int) -> Together:
        """What the seeker itself asks."""
        return self.checks.get(seeker, self.check)

    def is_for(self, seeker: int, number: int) -> bool:
        """Whether one of the sought is company for the seeker."""
        return number not in self.without.get(seeker, ())


@dataclass(frozen=True, eq=False)
class Colocated:
    """Shapes by number that are linked by companies, in the order in which the first pod of each comes."""

    members: tuple[int, ...]
    companies: tuple[Colocation, ...]

    @cached_property
    def seeking(self) -> Mapping[int, tuple[int, ...]]:
        """By number of a seeker the companies, by their numbers here, of each of which it must have one beside it."""
        return _by_member((each.seekers for each in self.companies), self.members)

    @cached_property
    def counted(self) -> Mapping[int, tuple[int, ...]]:
        """By number of a shape the companies that its pods are sought for."""
        return _by_member((each.sought for each in self.companies), self.members)

    @cached_property
    def opening(self) -> Mapping[int, int]:
        """By company the shape whose first pod comes before all others of it; none of one that is never empty."""
        found: dict[int, int] = {}
        for number in self.members:
            for company in self.counted.get(number, ()):
                if self.companies[company].is_open:
                    found.setdefault(company, number)
        return found

    def following(self, first: Sequence[int], left: Sequence[int]) -> dict[int, int]:
        """Those that can be on a node which begins with the `first`, by number with the turn in which they come.

        Of shapes without pods left none comes. Cost: the links of the group.
        """
        turns, alone = dict.fromkeys(first, 0), dict[int, Sequence[int]]()
        missing = {number: len(sought) for number, sought in self.seeking.items()}
        waiting = deque(first)
        while waiting:
            number = waiting.popleft()
            for company in self.counted.get(number, ()):
                held = self.companies[company]
                seekers = alone.get(company, held.seekers)
                alone[company] = [each for each in seekers if not held.is_for(each, number)] if held.without else ()
                for seeker in seekers:
                    if not held.is_for(seeker, number):
                        continue
                    missing[seeker] -= 1
                    if not missing[seeker] and seeker not in turns and left[seeker]:
                        turns[seeker] = turns[number] + 1
                        waiting.append(seeker)
        return turns


def _by_member(sets: Iterable[Sequence[int]], members: Iterable[int]) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for company, numbers in enumerate(sets):
        for number in numbers:
            found.setdefault(number, []).append(company)
    return {number: tuple(found[number]) for number in members if number in found}


def colocated(companies: Iterable[Colocation], turns: Mapping[int, int]) -> tuple[Colocated, ...]:
    """The groups, in the order of their first companies; `turns` are by number when its first pod comes.

    Cost: linear in the links, and the members are sorted.
    """
    links = _Links()
    known = list(companies)
    for each in known:
        for number in (*each.seekers, *each.sought):
            links.join(each.seekers[0], number)
    groups: dict[int, list[Colocation]] = {}
    for each in known:
        groups.setdefault(links.first(each.seekers[0]), []).append(each)
    return tuple(
        Colocated(
            tuple(sorted({n for each in group for n in (*each.seekers, *each.sought)}, key=turns.__getitem__)),
            tuple(group),
        )
        for group in groups.values()
    )


@dataclass
class _Links:
    """Numbers that are linked, over any number of others, have the same first."""

    _before: dict[int, int] = field(default_factory=dict)

    def first(self, number: int) -> int:
        """The one that stands for all that it is linked with."""
        path = []
        while (before := self._before.get(number, number)) != number:
            path.append(number)
            number = before
        for each in path:
            self._before[each] = number
        return number

    def join(self, one: int, other: int) -> None:
        """Link two and all that they are linked with."""
        first, second = self.first(one), self.first(other)
        if first != second:
            self._before[second] = first
