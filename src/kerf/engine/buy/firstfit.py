"""Karpenter's order and choice, for comparison (`--strategy first-fit`).

Pods by cpu, then memory, largest first; a pod goes to the open node with fewest pods that still has a type left for
it, else opens a node of the first pool by weight. A node keeps every type that still holds its pods, and is bought as
the cheapest of them when all is done: that is why two one-GPU pods become one four-GPU machine. Limits are charged
with the largest type that is left at opening, and `nodes` not at all inside a batch (karpenter
pkg/controllers/provisioning/scheduling, v1.14).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from kerf.engine.buy.crowding import Crowd
from kerf.engine.buy.filling import Load, Purchase
from kerf.engine.buy.limits import Ledger
from kerf.engine.place.fit import fit
from kerf.engine.place.shapes import Shape
from kerf.engine.place.target import Room
from kerf.engine.supply.offered import OfferedType
from kerf.model.gpu import Slice
from kerf.model.plan import Misfit
from kerf.model.quantities import CPU, MEMORY, NODES, Resources


@dataclass
class _Open:
    """A node that is being filled: every type that still holds its pods, with what is left of it."""

    options: list[tuple[OfferedType, Room, tuple[tuple[Slice, ...], ...]]]
    members: list[int] = field(default_factory=list)
    closed_to: set[int] = field(default_factory=set)
    crowd: Crowd = field(default_factory=Crowd)

    def take(self, number: int, shape: Shape) -> None:
        """One more pod of the shape is on it."""
        self.members.append(number)
        self.crowd.add(shape.crowding, 1)


def first_fit(
    shapes: Sequence[Shape], offered_types: Sequence[OfferedType], ledger: Ledger, pods: Sequence[int] | None = None
) -> Purchase:
    """Nodes as Karpenter would open them, for so many pods of each shape (by default all); charges `ledger`."""
    left = [len(shape) for shape in shapes] if pods is None else list(pods)
    opened: list[_Open] = []
    order = sorted(
        range(len(shapes)), key=lambda n: (-shapes[n].requests.get(CPU, 0), -shapes[n].requests.get(MEMORY, 0), n)
    )
    pools = _by_pool(offered_types)
    for number in order:
        while left[number] and _place(number, shapes[number], opened, pools, ledger):
            left[number] -= 1
    return Purchase([(_settled(node, len(shapes)), 1) for node in opened], left)


def _by_pool(offered_types: Sequence[OfferedType]) -> list[list[OfferedType]]:
    pools: dict[str, list[OfferedType]] = {}
    for offered in sorted(offered_types, key=lambda c: c.pool.order):
        pools.setdefault(offered.pool.name, []).append(offered)
    return list(pools.values())


def _place(number: int, shape: Shape, opened: list[_Open], pools: list[list[OfferedType]], ledger: Ledger) -> bool:
    for node in sorted((n for n in opened if number not in n.closed_to), key=lambda n: len(n.members)):
        options = _narrow(node.options, shape) if node.crowd.room(shape.crowding) else []
        if options:
            node.options = options
            node.take(number, shape)
            return True
        node.closed_to.add(number)
    for pool in pools:
        allowed = [(c, c.room, ()) for c in pool if _within_limits(c, ledger)]
        options = _reserved(_narrow(allowed, shape))
        if options:
            opened.append(_Open(options))
            opened[-1].take(number, shape)
            _charge([offered for offered, _, _ in options], ledger)
            return True
    return False


def _reserved(
    options: list[tuple[OfferedType, Room, tuple[tuple[Slice, ...], ...]]],
) -> list[tuple[OfferedType, Room, tuple[tuple[Slice, ...], ...]]]:
    """Those of the first reservation where there is one: an open node keeps it, as in Karpenter's strict mode."""
    name = next((offered.reservation for offered, _, _ in options if offered.reservation), "")
    return [option for option in options if option[0].reservation == name]


def _narrow(
    options: Sequence[tuple[OfferedType, Room, tuple[tuple[Slice, ...], ...]]], shape: Shape
) -> list[tuple[OfferedType, Room, tuple[tuple[Slice, ...], ...]]]:
    kept = []
    cpu, memory = shape.requests.get(CPU, 0), shape.requests.get(MEMORY, 0)
    for offered, room, slices in options:
        # The cheapest question first: most nodes that are open are full.
        if (cpu and cpu > room.free.get(CPU, 0)) or (memory and memory > room.free.get(MEMORY, 0)):
            continue
        result = fit(offered.target, room, shape)
        if not isinstance(result, Misfit) and offered.offering_for(result.room.requirements) is not None:
            kept.append((offered, result.room, (*slices, result.slices)))
    return kept


def _within_limits(offered: OfferedType, ledger: Ledger) -> bool:
    charge = offered.capacity.without((NODES,))
    if ledger.room_for(offered, charge) == 0:
        return False
    limits = ledger.limit(offered.pool.name) or Resources()
    return NODES not in limits or limits[NODES] != ledger.used(offered.pool.name).get(NODES, 0)


def _charge(offered_types: Sequence[OfferedType], ledger: Ledger) -> None:
    most = Resources()
    for offered in offered_types:
        most = most.largest(offered.capacity.without((NODES,)))
    ledger.charge(offered_types[0].pool.name, most)


def _settled(node: _Open, shapes: int) -> Load:
    """The open node as its cheapest remaining type."""

    def launch_order(option: tuple[OfferedType, Room, tuple[tuple[Slice, ...], ...]]) -> tuple[int, str]:
        offering = option[0].offering_for(option[1].requirements)
        return (offering.price_micro if offering is not None else 0, option[0].kind.name)

    offered, room, slices = min(node.options, key=launch_order)
    counts: list[int] = [0] * shapes
    by_shape: list[list[tuple[Slice, ...]]] = [[] for _ in range(shapes)]
    for number, taken in zip(node.members, slices, strict=True):
        counts[number] += 1
        by_shape[number].append(taken)
    offering = offered.offering_for(room.requirements)
    assert offering is not None
    order = tuple((number, len(list(run))) for number, run in groupby(node.members))
    return Load(offered, tuple(counts), tuple(map(tuple, by_shape)), room, offering, order)
