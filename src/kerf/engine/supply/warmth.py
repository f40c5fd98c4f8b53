"""What purchases of one decision leave to those of the next: ways to fill nodes, and prices that prove a bound.

A way to fill a node is a fact of the pods' shapes and the type, however many pods there are; and prices at which no
node is worth more than it costs prove a bound for any number of the same pods. So both outlive a decision, as long as
the type is sold as it was.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kerf.engine.supply.offered import OfferedType
from kerf.model.large import Large
from kerf.model.lowerbound import Ignored, PriceSplit, WholeType

Amounts = npt.NDArray[np.int64]
_MOST_COLUMNS = 3_000
"""Kept for one cluster; about 300 bytes each."""
_MOST_IDLE = 20
"""After so many decisions in a row that chose by prices and did not use a column it is dropped."""
_MOST_PROOFS = 8
"""Of so many sets of types, those that were asked last."""


@dataclass(frozen=True, eq=False, repr=False)
class KeptColumn(Large):
    """A way to fill a node of a type: numbers of shapes (`Holding.shape_number`), rising, and how many pods of each.

    `idle` is in how many decisions since its last use it was of no use.
    """

    offered: OfferedType
    shapes: tuple[int, ...]
    counts: tuple[int, ...]
    idle: int = 0

    @property
    def key(self) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Equal for equal columns of one supply."""
        return id(self.offered), self.shapes, self.counts

    def idle_for(self, decisions: int) -> "KeptColumn":
        """The same that was of no use in so many decisions."""
        return self if decisions == self.idle else KeptColumn(self.offered, self.shapes, self.counts, decisions)


@dataclass(frozen=True, eq=False, repr=False)
class KeptProof(Large):
    """Prices at which no node of `offered` is worth more than it costs: `worth` by number of the shape, in nano-units.

    They hold for any number of pods, but of a shape in `most`: only while there are no more than that in all.
    `step_micro` divides every price.
    """

    offered: tuple[OfferedType, ...]
    worth: Mapping[int, int]
    most: Mapping[int, int]
    step_micro: int
    splits: tuple[PriceSplit, ...]
    whole: tuple[WholeType, ...]
    ignored: tuple[Ignored, ...]

    def worths(self, numbers: Iterable[int], pods: Iterable[int]) -> list[int]:
        """What each of so many pods of the shapes is worth, in nano-units.

        More pods than `most` are together worth what so many are: a node of some of them is then worth no more. Pods of
        which it says nothing are worth nothing: that proves less, and holds.
        """
        found = []
        for number, count in zip(numbers, pods, strict=True):
            worth, most = self.worth.get(number, 0), self.most.get(number, count)
            found.append(worth * most // count if most < count else worth)
        return found


class Warmth:
    """What was kept, as purchases of one decision ask for it, and what they find.

    What they find is for the next decision: until then no purchase is answered from it, so each gets the same answer
    however many came before it.
    """

    def __init__(self, columns: Iterable[KeptColumn] = (), proofs: Iterable[KeptProof] = (), gap: float = 0.0) -> None:
        self._columns: dict[int, list[KeptColumn]] = {}
        for column in columns:
            self._columns.setdefault(id(column.offered), []).append(column)
        self._proofs = {_named(proof.offered): proof for proof in proofs}
        self.gap = gap
        """Relative: what nodes in parts cost above the proven bound when columns were looked for last, or since."""
        self._found: dict[tuple[int, tuple[int, ...], tuple[int, ...]], KeptColumn] = {}
        self._proven: dict[tuple[int, ...], KeptProof] = {}
        self._next_gap, self._has_chosen = gap, False

    def columns(self, offered_types: Iterable[OfferedType]) -> list[KeptColumn]:
        """Those that were kept for these types, by type and in their order."""
        return [column for offered in offered_types for column in self._columns.get(id(offered), ())]

    def proof(self, offered_types: Sequence[OfferedType]) -> KeptProof | None:
        """What was kept for exactly these types; None once this decision has found better prices for them."""
        name = _named(offered_types)
        return None if name in self._proven else self._proofs.get(name)

    def note_proof(self, proof: KeptProof) -> None:
        """Prices that this decision has found."""
        self._proven[_named(proof.offered)] = proof

    def note(self, columns: Iterable[tuple[KeptColumn, bool]], gap: float, enough: float) -> None:
        """Columns that a purchase has known, and whether it used each; the gap, and the one that would have done."""
        self._has_chosen = True
        for column, is_used in columns:
            known = self._found.get(column.key)
            if known is None or (is_used and known.idle):
                self._found[column.key] = column.idle_for(0 if is_used else 1)
        # What did for the last pods is no aim for the next: so it does not grow from plan to plan.
        self._next_gap = min(self._next_gap, gap) if gap <= enough else gap

    def next_gap(self) -> float:
        """`gap` for the next decision."""
        return self._next_gap

    def next_columns(self) -> tuple[KeptColumn, ...]:
        """The columns for the next decision, those that were of use last first; no more than `_MOST_COLUMNS`."""
        if not self._has_chosen:
            return tuple(column for held in self._columns.values() for column in held)
        found = dict(self._found)
        for held in self._columns.values():
            for column in held:
                now = found.get(column.key)
                if now is None or now.idle:
                    found[column.key] = column.idle_for(column.idle + 1)
        kept = sorted((each for each in found.values() if each.idle <= _MOST_IDLE), key=lambda each: each.idle)
        return tuple(kept[:_MOST_COLUMNS])

    def next_proofs(self) -> tuple[KeptProof, ...]:
        """The proofs for the next decision: those of this one first."""
        others = (proof for name, proof in self._proofs.items() if name not in self._proven)
        return (*self._proven.values(), *others)[:_MOST_PROOFS]


def _named(offered_types: Iterable[OfferedType]) -> tuple[int, ...]:
    """A name for a list of types as they are offered; they must be kept as long as it is."""
    return tuple(map(id, offered_types))


def sold_alike(columns: Iterable[KeptColumn], offered_types: Iterable[OfferedType]) -> Iterator[KeptColumn]:
    """The columns that still hold: those whose type is among these, or is sold there as it was.

    Cost: linear, and a comparison of rooms and offerings for each type that is another object.
    """
    there = {id(offered): offered for offered in offered_types}
    by_name: dict[tuple[str, str], list[OfferedType]] | None = None
    same: dict[int, OfferedType | None] = {}
    for column in columns:
        before = column.offered
        if id(before) in there:
            yield column
            continue
        if by_name is None:
            by_name = {}
            for offered in there.values():
                by_name.setdefault((offered.pool.name, offered.kind.name), []).append(offered)
        if id(before) not in same:
            named = by_name.get((before.pool.name, before.kind.name), ())
            same[id(before)] = next((each for each in named if _is_alike(before, each)), None)
        now = same[id(before)]
        if now is not None:
            yield replace(column, offered=now)


def _is_alike(before: OfferedType, now: OfferedType) -> bool:
    """Whether a type is sold for the same prices, and has the same room under the same terms."""
    return (
        before.offerings == now.offerings
        and before.room.free == now.room.free
        and before.room.devices == now.room.devices
        and before.room.requirements == now.room.requirements
        and before.target.taints == now.target.taints
        and before.target.requirements == now.target.requirements
        and before.target.family.name == now.target.family.name
    )
