"""Where nodes to be bought can be: domains of several topology keys at once, and a stand-in for all nodes there.

Pods that go by a zone, a capacity type or another label of pools are given such a cell before nodes are chosen, and are
from then on pods that ask for it. So the search knows nothing of other pods, and equal pods become at most as many
shapes as there are cells.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from kerf.engine.buy.filling import Load
from kerf.engine.place.domains import Site, settled_site
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.holding import Amounts, Bools, Holding
from kerf.engine.supply.offered import OfferedType
from kerf.model.constraints import (
    ALIASES,
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    NODE_POOL,
    ZONE,
    ZONE_ID,
    Requirement,
    Requirements,
    Taint,
)
from kerf.model.instancetypes import Offering
from kerf.model.pods import Pod, PodSpec
from kerf.model.preferences import NO_WISH
from kerf.model.quantities import Resources

Place = tuple[str | None, ...]
"""One value for each key; None where nodes have no such label."""
NEW = "<new node"
"""How the name of a stand-in begins: no node has such a name."""
_NO_PRICE = 1 << 62
_MOST_KEPT = 16


@dataclass(eq=False)
class Cell:
    """Nodes to be that have these labels: what sells them, by row of `holding`, and the least price of each."""

    place: Place
    prices: dict[int, int] = field(default_factory=dict)
    kinds: dict[int, tuple[Requirements, tuple[Taint, ...]]] = field(default_factory=dict)

    def site(self, keys: Sequence[str], number: int) -> Site:
        """The stand-in for all of them."""
        labels = {key: value for key, value in zip(keys, self.place, strict=True) if value is not None}
        name = f"{NEW} {number}>"
        return Site(name, {HOSTNAME: name, **labels}, kinds=tuple(self.kinds.values()))


class Cells:
    """The cells of some types by some labels, with what was asked of them; it stays the same for every purchase."""

    def __init__(self, keys: Sequence[str], held: tuple[Cell, ...], holding: Holding) -> None:
        self.held, self._holding = held, holding
        self.sites = tuple(cell.site(keys, at) for at, cell in enumerate(held))
        """The stand-ins."""
        self._arrays = [
            (np.fromiter(cell.prices.keys(), dtype=np.int64), np.fromiter(cell.prices.values(), dtype=np.int64))
            for cell in held
        ]
        self._prices: dict[tuple[int, int, Resources, int], tuple[int, int] | None] = {}

    def cheapest(self, cell: int, shape: Shape, is_open: Bools | None = None) -> tuple[int, int] | None:
        """See `cheapest_in`; of the rows only those that are open. One answer for all shapes that are bought alike."""
        rows, prices = self._arrays[cell]
        if is_open is not None:
            useful = is_open[rows]
            return cheapest_in(prices[useful], shape, rows[useful], self._holding)
        key = cell, self._holding.kind(shape), shape.requests, len(shape)
        if key not in self._prices:
            self._prices[key] = cheapest_in(prices, shape, rows, self._holding)
        return self._prices[key]


def cells(keys: Sequence[str], offered_types: Sequence[OfferedType], holding: Holding) -> Cells:
    """All of them, in the order of their labels. Cost: types times offerings, once for equal labels and types."""
    rows = holding.rows(offered_types)
    question = ("cells", tuple(keys), rows.tobytes())
    known = holding.kept.get(question)
    if not isinstance(known, Cells):
        if len(holding.kept) >= _MOST_KEPT:
            holding.kept.clear()
        known = holding.kept[question] = Cells(keys, _cells(keys, offered_types, rows.tolist()), holding)
    return known


def _cells(keys: Sequence[str], offered_types: Sequence[OfferedType], rows: Sequence[int]) -> tuple[Cell, ...]:
    found: dict[Place, Cell] = {}
    stated = {key for offered in offered_types for key in offered.target.requirements}
    # Pods may name many labels that no node to be has.
    varying = [at for at, key in enumerate(keys) if _is_known(key) or ALIASES.get(key, key) in stated]
    for row, offered in zip(rows, offered_types, strict=True):
        for offering in offered.offerings:
            for values in product(*(_values(keys[at], offered, offering) for at in varying)):
                cell = found.get(values)
                if cell is None:
                    cell = found[values] = Cell(_placed(values, varying, len(keys)))
                cell.prices[row] = min(offering.price_micro, cell.prices.get(row, offering.price_micro))
                target = offered.target
                cell.kinds.setdefault(row, (target.requirements, target.taints))
    return tuple(found[values] for values in sorted(found, key=lambda values: tuple(value or "" for value in values)))


def _placed(values: Place, at: Sequence[int], labels: int) -> Place:
    """The values of so many labels: these at their places, none of the others."""
    place: list[str | None] = [None] * labels
    for number, value in zip(at, values, strict=True):
        place[number] = value
    return tuple(place)


def _is_known(key: str) -> bool:
    """Whether the offering says it of each node."""
    return ALIASES.get(key, key) in (ZONE_ID, ZONE, CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL)


def _values(key: str, offered: OfferedType, offering: Offering) -> tuple[str | None, ...]:
    """What a node of the type may have for the label."""
    key = ALIASES.get(key, key)
    known = {
        **_zone_id(offering),
        ZONE: offering.zone,
        CAPACITY_TYPE: offering.capacity_type,
        INSTANCE_TYPE: offered.kind.name,
        NODE_POOL: offered.pool.name,
    }
    if key in known:
        return (known[key],)
    stated = offered.target.requirements.get(key)
    return (None,) if stated is None or stated.complement or not stated.values else tuple(sorted(stated.values))


def _zone_id(offering: Offering) -> dict[str, str]:
    return {ZONE_ID: offering.zone_id} if offering.zone_id else {}


def asking_for(spec: PodSpec, keys: Sequence[str], place: Place) -> PodSpec:
    """The spec of pods that are to run there, without what they ask of others, or would rather have."""
    wanted = Requirements(
        Requirement.of(key, "DoesNotExist") if value is None else Requirement.of(key, "In", (value,))
        for key, value in zip(keys, place, strict=True)
    )
    affinity = tuple(term.intersect(wanted) for term in spec.affinity) if spec.affinity else (wanted,)
    free = replace(spec.alone(), affinity=affinity)
    return free if spec.wish is NO_WISH else replace(free, wish=spec.wish.settled)


class SpecsOfCells:
    """Specs of pods that are to run in cells, one object for pods that differ only in what they ask of others."""

    def __init__(self) -> None:
        # A spec is kept beside what is made of it: an identity is free again once its object is gone.
        self._bare: dict[int, tuple[PodSpec, PodSpec]] = {}
        self._by_value: dict[PodSpec, PodSpec] = {}
        self._made: dict[tuple[int, tuple[str, ...], Place], PodSpec] = {}

    def of(self, spec: PodSpec, keys: tuple[str, ...], place: Place) -> PodSpec:
        """See `asking_for`."""
        held = self._bare.get(id(spec))
        if held is None:
            bare = spec.alone()
            held = self._bare[id(spec)] = spec, self._by_value.setdefault(bare, bare)
        key = id(held[1]), keys, place
        if key not in self._made:
            self._made[key] = asking_for(held[1], keys, place)
        return self._made[key]


def daemon_pods(offered_types: Iterable[OfferedType]) -> list[Pod]:
    """The pods that DaemonSets would put on nodes of the types, one of each DaemonSet."""
    return list({each.key: each.pod for offered in offered_types for each in offered.daemon_sets}.values())


def cheapest_in(cell_prices: Amounts, shape: Shape, rows: Amounts, holding: Holding) -> tuple[int, int] | None:
    """What one of the pods costs on the best type for it, and the row of that; None where no type takes it.

    `cell_prices` are by row, for those of `rows` that are sold there.
    """
    held = holding.alone(shape, holding.kind(shape), rows)[rows]
    found = np.where(held > 0, cell_prices // np.maximum(held, 1), _NO_PRICE)
    at = int(found.argmin()) if len(found) else 0
    return (int(found[at]), int(rows[at])) if len(found) and found[at] < _NO_PRICE else None


def site_of(load: Load, name: str) -> Site:
    """A node that was bought, with the labels that it is planned with."""
    return settled_site(name, {**planned_labels(load), HOSTNAME: name}, load.offered.target.taints)


def planned_labels(load: Load) -> dict[str, str]:
    """The labels that a node for the load is planned with, but its name."""
    offered, offering = load.offered, load.offering
    stated = offered.target.requirements.intersect(load.room.requirements).intersect(offered.pool.requirements)
    labels = {
        **offered.labels_for(stated),
        **stated.labels(),
        **_zone_id(offering),
        ZONE: offering.zone,
        CAPACITY_TYPE: offering.capacity_type,
        INSTANCE_TYPE: offered.kind.name,
        NODE_POOL: offered.pool.name,
    }
    return {**{old: labels[new] for old, new in ALIASES.items() if new in labels}, **labels}
