"""Which of many pods a node to be can still have by the labels that they ask for, all at once on arrays.

`fit.narrowed` answers for one pod. Where hundreds ask for different labels, each pod that comes onto a node would make
it ask all the others again. Here two requirements of one label are compared once, whichever pods ask for them.
"""

from collections.abc import Sequence

import numpy as np

from kerf.engine.place.fit import label_misfit
from kerf.engine.place.shapes import Shape
from kerf.engine.place.target import Room
from kerf.engine.supply.holding import Bools
from kerf.engine.supply.offered import OfferedType
from kerf.model.constraints import CAPACITY_TYPE, ZONE, ZONE_ID, Requirement, Requirements
from kerf.model.quantities import NOTHING

_SOLD_BY = (ZONE, ZONE_ID, CAPACITY_TYPE)
MOST_KEPT = 256
"""So many answers are kept, each an array of a byte for each term or kind: where every node differs, none is asked for
again. A memo that is full is emptied."""


class Wants:
    """What shapes ask of labels, by their place in the sequence; of a shape's terms one must hold."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        terms: dict[Requirements, int] = {}
        named = [[terms.setdefault(term, len(terms)) for term in shape.spec.alternatives_new] for shape in shapes]
        self._terms = tuple(terms)
        self._named = np.array([number for numbers in named for number in numbers], dtype=np.int64)
        self._firsts = np.cumsum([0, *(len(numbers) for numbers in named)])[:-1]
        self._asking: dict[str, _Asking] = {}
        self._parts: dict[Requirements, list[int]] = {}
        for number, term in enumerate(self._terms):
            for key, requirement in term.items():
                self._asking.setdefault(key, _Asking()).add(requirement, number)
            part = Requirements(term[key] for key in _SOLD_BY if key in term)
            self._parts.setdefault(part, []).append(number)
        self._allowed: dict[int, Bools] = {}
        self._excluded: dict[Requirement, Bools] = {}

    def agreeing(self, row: int, offered: OfferedType, terms: Requirements) -> Bools:
        """By shape whether a node of the type that asks for `terms` so far can have such a pod; `row` is its name.

        As `Filler.agreed` for each. Cost: on arrays the terms of all shapes, a time for each label of `terms`.
        """
        found = self._allowed_on(row, offered) & self._sold(offered, terms)
        for key in self._asking.keys() & terms.keys():
            found = found & ~self._excluded_by(terms[key])
        agreeing: Bools = np.logical_or.reduceat(found[self._named], self._firsts)
        return agreeing

    def _allowed_on(self, row: int, offered: OfferedType) -> Bools:
        """By term whether it agrees with what the type has by itself."""
        if row not in self._allowed:
            empty = Room(NOTHING)
            allowed = [not term or label_misfit(offered.target, empty, term) is None for term in self._terms]
            self._allowed[row] = np.array(allowed, dtype=np.bool_)
        return self._allowed[row]

    def _sold(self, offered: OfferedType, terms: Requirements) -> Bools:
        """By term whether the type can be had with it."""
        held = Requirements(terms[key] for key in _SOLD_BY if key in terms)
        found = np.zeros(len(self._terms), dtype=np.bool_)
        for part, numbers in self._parts.items():
            found[numbers] = offered.offering_for(held.intersect(part)) is not None
        return found

    def _excluded_by(self, requirement: Requirement) -> Bools:
        """By term whether it cannot be together with a requirement of one label."""
        if requirement not in self._excluded:
            if len(self._excluded) >= MOST_KEPT:
                self._excluded.clear()
            found = np.zeros(len(self._terms), dtype=np.bool_)
            self._asking[requirement.key].exclude(requirement, found)
            self._excluded[requirement] = found
        return self._excluded[requirement]


class _Asking:
    """The terms, by number, that ask for one label; those that name its values also by value."""

    def __init__(self) -> None:
        self._listing: list[int] = []
        self._by_value: dict[str, list[int]] = {}
        self._others: dict[Requirement, list[int]] = {}

    def add(self, requirement: Requirement, number: int) -> None:
        """A term that asks for it."""
        if requirement.complement or not requirement.values:
            self._others.setdefault(requirement, []).append(number)
            return
        self._listing.append(number)
        for value in requirement.values:
            self._by_value.setdefault(value, []).append(number)

    def exclude(self, requirement: Requirement, found: Bools) -> None:
        """Mark the terms that cannot be together with it."""
        found[self._listing] = True
        allowed = filter(requirement.has, self._by_value) if requirement.complement else requirement.values
        for value in allowed:
            found[self._by_value.get(value, [])] = False
        for other, numbers in self._others.items():
            found[numbers] = other.excludes(requirement)
