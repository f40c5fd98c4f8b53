"""minValues of NodePools: a claim must leave the cloud a choice of types, so one sold-out type stops no pod.

Of a label with minValues the types of a claim need so many values among them (Karpenter: `SatisfiesMinValues` in
pkg/cloudprovider/types.go). The types of a claim are the planned one and its alternatives, which hold the same pods.
So a load that only few types hold is too large, and the search makes it smaller until enough do.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from kerf.engine.supply.holding import Amounts, Holding
from kerf.engine.supply.offered import OfferedType
from kerf.model.instancetypes import InstanceType
from kerf.model.nodepool import NodePool


def lacking(pool: NodePool, kinds: Iterable[InstanceType]) -> dict[str, int]:
    """By label how many values the types have, where the pool asks for more; in the order of the labels.

    Only values that the pool allows count.
    """
    found = {key: _values(pool, key, kinds) for key in sorted(pool.min_values)} if pool.min_values else {}
    return {key: len(values) for key, values in found.items() if len(values) < pool.min_values[key]}


def _values(pool: NodePool, key: str, kinds: Iterable[InstanceType]) -> set[str]:
    return {value for kind in kinds for value in _own(pool, key, kind)}


def _own(pool: NodePool, key: str, kind: InstanceType) -> Iterable[str]:
    held = kind.requirements.get(key)
    return () if held is None or held.complement else filter(pool.requirements[key].has, held.values)


class Counted:
    """Counts the values of types one after the other, until the pool has enough."""

    def __init__(self, pool: NodePool) -> None:
        self._pool = pool
        self._values: Mapping[str, set[str]] = {key: set() for key in pool.min_values}

    def adds(self, kind: InstanceType) -> bool:
        """Count a type; whether it has a value that was missing and that no type before it had."""
        is_new = False
        for key, values in self._values.items():
            before = len(values)
            values.update(_own(self._pool, key, kind))
            is_new |= before < min(len(values), self._pool.min_values[key])
        return is_new

    @property
    def is_enough(self) -> bool:
        """Whether no label lacks values."""
        return all(len(values) >= self._pool.min_values[key] for key, values in self._values.items())


class Interchangeable:
    """Types that can stand in for each other in one claim, by pool, among those that a holding knows.

    Types with cards and without are in one group: `Filler.holds` says which of them hold the pods of a load. Only of
    pools with minValues. What a reservation sells is in none: it is there whatever the cloud has in stock.
    """

    def __init__(self, holding: Holding) -> None:
        self._holding, self._seen = holding, 0
        self._members: dict[Hashable, list[OfferedType]] = {}

    def of(self, offered: OfferedType) -> Sequence[OfferedType]:
        """The types of the group, in the order of the holding; none for a pool without minValues."""
        self._look()
        return self._members.get(_group(offered), ()) if asks(offered) else ()

    def capped(self, alone: Amounts) -> Amounts:
        """How many pods of a shape a node holds, cut to as many as enough types of its group hold. Cost: types."""
        self._look()
        if not self._members:
            return alone
        capped = alone.copy()
        for members in self._members.values():
            rows = self._holding.rows(members)
            capped[rows] = np.minimum(alone[rows], _most(members, alone[rows]))
        return capped

    def _look(self) -> None:
        types = self._holding.types
        for offered in types[self._seen :]:
            if asks(offered):
                self._members.setdefault(_group(offered), []).append(offered)
        self._seen = len(types)


def asks(offered: OfferedType) -> bool:
    """Whether a claim of the type must keep some choice of types."""
    return bool(offered.pool.min_values) and not offered.reservation


def _group(offered: OfferedType) -> Hashable:
    labels = tuple(sorted(offered.pool.chosen_labels.items()))
    return offered.pool.name, labels, offered.target.taints


def _most(members: Sequence[OfferedType], alone: Amounts) -> int:
    """The most pods that so many of the types hold that their values are enough; 0 where all are too few."""
    counted = Counted(members[0].pool)
    for at in np.argsort(-alone, kind="stable").tolist():
        counted.adds(members[at].kind)
        if counted.is_enough:
            return int(alone[at])
    return 0
