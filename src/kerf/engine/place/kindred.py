"""Anti-affinity terms that differ only in whom they leave out: one count for all of them, less what each leaves out.

A term such as `tenant NotIn [a]` means nearly every pod, and a thousand of them mean a thousand pods each. What they
mean except for their exceptions is the same, and exceptions are few, and are found by their labels.
"""

from collections.abc import Iterable, Sequence
from typing import cast

from kerf.engine.place.tallies import Aversion, Tally

FEW = 8
"""So many terms are asked one by one."""


class Kindred:
    """Terms of pods that keep others off, in one kind of domain, and that mean the same pods except for exceptions."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        """Those of the tallies of single terms."""
        self.tallies: list[Aversion] = []
        self._leaving_out: dict[tuple[str, str], list[int]] = {}

    def add(self, number: int, tally: Aversion, less: Iterable[tuple[str, str]]) -> None:
        """One term more, and labels of which each pod has one that it does not mean, of those that all would."""
        self.numbers.append(number)
        self.tallies.append(tally)
        for label in less:
            self._leaving_out.setdefault(label, []).append(number)

    def leaving_out(self, labels: Iterable[tuple[str, str]]) -> set[int]:
        """The terms that may not mean a pod with such labels, of those that all would mean except for exceptions."""
        return {number for label in labels for number in self._leaving_out.get(label, ())}

    def copy(self, tallies: Sequence[Tally]) -> "Kindred":
        """The same with tallies of another ledger; neither changes with the other."""
        other = Kindred()
        other.numbers, other.tallies = list(self.numbers), [cast(Aversion, tallies[number]) for number in self.numbers]
        other._leaving_out = {label: list(numbers) for label, numbers in self._leaving_out.items()}
        return other
