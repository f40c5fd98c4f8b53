"""Types that are alike to pods of a kind by taints, labels, ports or offerings, so one of them answers for all.

A catalogue has a thousand types and a cluster a dozen pools, and a pod that asks for a label of its own asks for one
that most of them say nothing of.
"""

from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kerf.engine.place.shapes import Shape
from kerf.engine.supply.offered import OfferedType
from kerf.model.constraints import Requirement

Amounts = npt.NDArray[np.int64]
_Number = TypeVar("_Number", bound=np.integer[Any])
_NONE, _UNKNOWN = -1, -2
"""The number of a label that a type says nothing of, and of one that was not looked for yet."""


def inherited(known: npt.NDArray[_Number], origins: Amounts, unknown: int) -> npt.NDArray[_Number]:
    """Answers by row, in another order of the rows: `origins` are the rows as they were, less than 0 for new ones."""
    is_known = (origins >= 0) & (origins < len(known))
    found = np.full(len(origins), unknown, dtype=known.dtype)
    found[is_known] = known[origins[is_known]]
    return found


class Classes:
    """Numbers of what types have alike, by row; rows come in one order, and their types are kept by the caller.

    `before` knows some of the types in another order: `origins` are by row the row there, less than 0 for a new type.
    """

    def __init__(self, before: "Classes | None" = None, origins: Amounts | None = None) -> None:
        self._before, self._origins = before, origins
        self._plain: dict[Hashable, int] = {} if before is None else before._plain
        self._numbers: dict[Requirement, int] = {} if before is None else before._numbers
        self._by_identity: dict[int, tuple[Requirement, int]] = {} if before is None else before._by_identity
        self._stated: set[str] = set() if before is None else before._stated
        """Labels that some type says something of: pods may ask for thousands of others."""
        self._read = 0
        self._known: dict[str | None, Amounts] = {}
        """By label the numbers of what the types state of it; by None what all pods tell apart."""

    def of(self, labels: Iterable[str], types: list[OfferedType], rows: Amounts) -> Amounts:
        """Of these rows, a number that is equal for types that are alike to every pod that asks for these labels.

        Cost: rows that are new to a label, each once; then one sort of these rows for each label that some type has.
        """
        found = self._values(None, types)[rows]
        for label in sorted(self._stated_by(types).intersection(labels)):
            _, stated = np.unique(self._values(label, types)[rows], return_inverse=True)
            _, found = np.unique(found * (int(stated.max(initial=0)) + 1) + stated, return_inverse=True)
        return found.astype(np.int64)

    def _stated_by(self, types: list[OfferedType]) -> set[str]:
        """The labels of all these types, and perhaps of others. Cost: those that were not read yet."""
        for row in range(self._read, len(types)):
            if self._origins is None or row >= len(self._origins) or self._origins[row] < 0:
                self._stated.update(types[row].target.requirements)
        self._read = len(types)
        return self._stated

    def _values(self, label: str | None, types: list[OfferedType]) -> Amounts:
        known = self._known.get(label)
        if known is None or len(known) < len(types):
            known = self._inherited(label) if known is None else known
            more = np.full(len(types) - len(known), _UNKNOWN, dtype=np.int64)
            known = self._known[label] = np.concatenate([known, more])
            for row in np.flatnonzero(known == _UNKNOWN).tolist():
                known[row] = self._number(types[row], label)
        return known

    def _inherited(self, label: str | None) -> Amounts:
        """What is known from before, where all types that came since are still to be asked."""
        if self._before is None or self._origins is None or label not in self._before._known:
            return np.zeros(0, dtype=np.int64)
        return inherited(self._before._known[label], self._origins, _UNKNOWN)

    def _plain_number(self, offered: OfferedType) -> int:
        return self._plain.setdefault(_plain(offered), len(self._plain))

    def _number(self, offered: OfferedType, label: str | None) -> int:
        if label is None:
            return self._plain_number(offered)
        requirements = offered.target.requirements
        if label not in requirements:
            return _NONE
        stated = requirements[label]
        held = self._by_identity.get(id(stated))
        if held is None:
            number = self._numbers.setdefault(stated, len(self._numbers))
            # Kept, so no other can get its identity.
            held = self._by_identity[id(stated)] = stated, number
        return held[1]


def _plain(offered: OfferedType) -> Hashable:
    """What pods tell apart whatever labels they ask for."""
    target, room = offered.target, offered.room
    sold = tuple((each.zone, each.zone_id, each.capacity_type) for each in offered.offerings)
    return target.is_open, target.taints, target.sold, room.ports, room.requirements, sold


def asked_of(shape: Shape) -> Hashable:
    """What `admits` reads of a shape: equal for pods that the same types admit."""
    spec = shape.spec
    terms = spec.alternatives_new, spec.alternatives
    return terms, spec.tolerations, spec.wish.avoids_taints, spec.host_ports


def labels_asked(shape: Shape) -> set[str]:
    """The labels of a type by which `narrowed` decides for the shape."""
    terms = (*shape.spec.alternatives_new, *shape.spec.alternatives)
    return {label for each in terms for label in each}
