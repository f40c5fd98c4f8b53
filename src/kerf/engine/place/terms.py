"""Which of a pod's many terms of node affinity a node can satisfy, without asking each of them.

A term is no larger than any other object that a user may write, and a pod may have thousands. One label of each is
compared with the node's by an index, and the few terms that are left are asked as any others.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from kerf.model.constraints import HOSTNAME, NODE_NAME, WELL_KNOWN, Requirement, Requirements

FEW = 8
"""So many terms are asked one by one: to look for those that count costs more."""
_NAMES = frozenset({HOSTNAME, NODE_NAME})


class _Asked:
    """The terms that are found by one label: by its values, by the least number that it has to be, and the others."""

    def __init__(self) -> None:
        self._by_value: dict[str, list[int]] = {}
        self._from: list[tuple[int, int]] = []
        self._others: list[tuple[Requirement, int]] = []

    def add(self, requirement: Requirement, number: int) -> None:
        if not requirement.complement:
            for value in requirement.values:
                self._by_value.setdefault(value, []).append(number)
        elif requirement.at_least is not None:
            self._from.append((requirement.at_least, number))
        else:
            self._others.append((requirement, number))

    def close(self) -> None:
        """Nothing more is added."""
        self._from.sort()

    def every(self) -> Iterable[int]:
        """All of the terms."""
        for numbers in self._by_value.values():
            yield from numbers
        yield from (number for _, number in self._from)
        yield from (number for _, number in self._others)

    def agreeing(self, held: Requirement) -> Iterable[int]:
        """Those that have a value in common with what a node has of the label, and perhaps more."""
        if held.complement:
            for value, numbers in self._by_value.items():
                if held.has(value):
                    yield from numbers
            yield from (number for _, number in self._from)
        else:
            for value in held.values & self._by_value.keys():
                yield from self._by_value[value]
            most = max((int(value) for value in held.values if _is_plain_number(value)), default=None)
            # What is written another way, or is too large for Kubernetes to read, is asked about as any other.
            is_plain = all(map(_is_plain_number, held.values))
            end = len(self._from) if not is_plain else 0 if most is None else bisect_right(self._from, (most, _LAST))
            yield from (number for _, number in self._from[:end])
        yield from (number for requirement, number in self._others if not requirement.excludes(held))


_LAST = 2**62
_DIGITS = 18


def _is_plain_number(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= _DIGITS


class TermIndex:
    """Terms in their order; the first that a node satisfies counts.

    Cost to make: linear in what they ask. `may_agree`: the labels of the node, and the terms that it names.
    """

    def __init__(self, terms: Sequence[Requirements]) -> None:
        self._always: list[int] = []
        self._asked: dict[str, _Asked] = {}
        for number, term in enumerate(terms):
            chosen = _rarest(term)
            if chosen is None:
                self._always.append(number)
            else:
                self._asked.setdefault(chosen.key, _Asked()).add(chosen, number)
        for each in self._asked.values():
            each.close()

    def may_agree(self, held: Mapping[str, Requirement], *, is_open: bool) -> list[int]:
        """The numbers, in order, of all terms that a node with these labels may satisfy, and perhaps a few more.

        `is_open` says that it is a node to be bought, which gets the labels that every node has.
        """
        found = [*self._always]
        few = held.keys() & self._asked.keys()
        for key in few:
            found.extend(self._asked[key].agreeing(held[key]))
        if is_open:
            for key in (WELL_KNOWN & self._asked.keys()) - few:
                found.extend(self._asked[key].every())
        # The name of a node that is there stands among its labels only where it is asked for.
        for key in _NAMES & (self._asked.keys() - few):
            found.extend(self._asked[key].every())
        return sorted(set(found))


def _rarest(term: Requirements) -> Requirement | None:
    """What of a term sets most nodes apart: a label that they must have, best one that not every node has, with the
    fewest values; None where it asks for none."""
    needed = [each for each in term.values() if not each.allows_absence]
    return min(needed, key=_vagueness, default=None)


def _vagueness(asked: Requirement) -> tuple[bool, bool, int, str]:
    is_finite = not asked.complement
    return not is_finite, asked.key in WELL_KNOWN, len(asked.values), asked.key
