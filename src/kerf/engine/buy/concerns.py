"""Which of the shapes to buy for go by other pods, and which are counted by one that does."""

from collections.abc import Sequence
from functools import cached_property

from kerf.engine.buy.cells import daemon_pods
from kerf.engine.buy.crowding import Manners
from kerf.engine.place.checks import Together
from kerf.engine.place.shapes import Shape
from kerf.engine.place.tallies import Tally
from kerf.engine.place.topology import TopologyLedger
from kerf.engine.supply.offered import OfferedType
from kerf.model.constraints import HOSTNAME


class Concerns:
    """Which of the shapes go by other pods, or are counted by one that does; each is asked before any is answered."""

    def __init__(self, ledger: TopologyLedger, shapes: Sequence[Shape], offered_types: Sequence[OfferedType]) -> None:
        self.ledger, self.shapes, self._offered_types = ledger, shapes, offered_types
        for shape in shapes:
            # Terms that keep others off are known once a shape with them was asked for.
            ledger.checks(shape)
        ledger.expect(daemon_pods(offered_types))
        self.checks = [ledger.checks(shape) for shape in shapes]
        self._used: dict[int, Tally] = {
            id(tally): tally for each in self.checks for check in each for tally in check.tallies
        }

    @property
    def are_none(self) -> bool:
        """Whether no shape goes by other pods."""
        return not self._used

    @cached_property
    def manners(self) -> Manners:
        """How they get on with each other on one node."""
        return Manners(self.ledger, self.shapes, self.checks, self._offered_types)

    @cached_property
    def counted(self) -> list[tuple[Tally, ...]]:
        """By shape the tallies that it counts in, of those that some shape goes by."""
        found = (self.ledger.counting(shape) for shape in self.shapes)
        return [tuple(tally for tally in tallies if id(tally) in self._used) for tallies in found]

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The labels that say in which cell a node is: all that some shape goes by, but names of nodes."""
        return tuple(sorted({key for each in self.checks for check in each for key in check.keys} - {HOSTNAME}))

    def keys_of(self, number: int) -> tuple[str, ...]:
        """The labels of which a value must be known for pods of the shape."""
        asked = [check.keys for check in self.checks[number]]
        asked += [keys_by for tally in self.counted[number] for keys_by in self._keys_by[id(tally)]]
        if self._shares_nodes(number):
            # Those that share a node must be known to be in one cell.
            return self.keys
        return tuple(sorted({key for keys in asked for key in keys} - {HOSTNAME}))

    def _shares_nodes(self, number: int) -> bool:
        """Whether affinity terms of the shape, or of others that mean it, go by single nodes."""
        if any(isinstance(check, Together) and HOSTNAME in check.keys for check in self.checks[number]):
            return True
        return any(id(tally) in self._of_nodes for tally in self.counted[number])

    @cached_property
    def _of_nodes(self) -> frozenset[int]:
        found = (check for each in self.checks for check in each if isinstance(check, Together))
        return frozenset(id(tally) for check in found if HOSTNAME in check.keys for tally in check.tallies)

    def has_company(self, number: int, check: Together) -> bool:
        """Whether pods are there before any is bought for that the shape must be with, as such a check has it."""
        asked = check.keys, check.reaches
        same = (each for each in self.checks[number] if isinstance(each, Together))
        return any(not each.is_absent for each in same if (each.keys, each.reaches) == asked)

    def followers(self, number: int) -> list[int]:
        """The tallies in which the shape counts and with whose pods others must be."""
        return [id(tally) for tally in self.counted[number] if id(tally) in self.seekers]

    @cached_property
    def seekers(self) -> dict[int, list[int]]:
        """By tally the shapes that must be with its pods."""
        found: dict[int, list[int]] = {}
        for number, checks in enumerate(self.checks):
            for tally in dict.fromkeys(
                id(tally) for check in checks if isinstance(check, Together) for tally in check.tallies
            ):
                found.setdefault(tally, []).append(number)
        return found

    @cached_property
    def _keys_by(self) -> dict[int, set[tuple[str, ...]]]:
        found: dict[int, set[tuple[str, ...]]] = {}
        for checks in self.checks:
            for check in checks:
                for tally in check.tallies:
                    found.setdefault(id(tally), set()).add(check.keys)
        return found

    def is_bound(self, number: int) -> bool:
        """Whether it matters in which cell pods of the shape are, or beside whom."""
        return bool(self.checks[number] or self.counted[number])
