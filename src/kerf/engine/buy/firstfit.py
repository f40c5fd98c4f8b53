"""Karpenter's order and choice, for comparison (`--strategy first-fit`).

Pods by cpu, then memory, largest first; a pod goes to the open node with fewest pods that still has a type left for
it, else opens a node of the first pool by weight. A node keeps every type that still holds its pods, and is bought as
the cheapest of them when all is done: that is why two one-GPU pods become one four-GPU machine. Limits are charged
with the largest type that is left at opening (karpenter pkg/controllers/provisioning/scheduling, v1.14).

Not Karpenter's: `nodes` counts inside a batch, and so does cost, at what a node costs with the pods that are on it. No
plan breaks a limit, whatever it is compared with.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from kerf.engine.buy.crowding import Headcount, among, starting
from kerf.engine.buy.filling import Load, Purchase, charge
from kerf.engine.buy.flexibility import Counted, asks, lacking
from kerf.engine.buy.limits import Ledger
from kerf.engine.place.fit import fit
from kerf.engine.place.shapes import UNCROWDED, Crowding, Shape
from kerf.engine.place.target import Room
from kerf.engine.supply.offered import OfferedType
from kerf.model.gpu import Slice
from kerf.model.plan import Misfit
from kerf.model.quantities import COST_PER_HOUR, CPU, MEMORY, Resources

_Option = tuple[OfferedType, Room, tuple[tuple[Slice, ...], ...]]
"""A type, what is left of a node of it, and the slices of the pods that are there."""


@dataclass
class _Open:
    """A node that is being filled: every type that still holds its pods, with what is left of it."""

    options: list[_Option]
    members: list[int] = field(default_factory=list)
    crowds: dict[tuple[str, ...], Headcount] = field(default_factory=dict)
    """By the DaemonSets of a type who is on the node, should it become one of that type."""
    cost_micro: int = 0
    """What it counts of the cost that its pool limits."""

    def take(self, number: int, shape: Shape) -> None:
        """One more pod of the shape is on it."""
        self.members.append(number)
        for crowd in self.crowds.values():
            crowd.add(shape.crowding, 1)

    def beside(self, shape: Shape) -> list[_Option]:
        """The types on which the pods that are there let one more come."""
        if shape.crowding is UNCROWDED:
            return self.options
        open_to = {key for key, crowd in self.crowds.items() if crowd.room(shape.crowding)}
        return [option for option in self.options if _daemons_of(option[0]) in open_to]


def first_fit(
    shapes: Sequence[Shape],
    offered_types: Sequence[OfferedType],
    ledger: Ledger,
    pods: Sequence[int] | None = None,
    *,
    relaxes: bool = False,
) -> Purchase:
    """Nodes as Karpenter would open them, for so many pods of each shape (by default all); charges `ledger`.

    With `relaxes` a pool may open a node of fewer types than its minValues ask for, before the next pool is asked.
    """
    left = [len(shape) for shape in shapes] if pods is None else list(pods)
    opened: list[_Open] = []
    order = sorted(
        range(len(shapes)), key=lambda n: (-shapes[n].requests.get(CPU, 0), -shapes[n].requests.get(MEMORY, 0), n)
    )
    pools = _Pools(_by_pool(offered_types), among(shapes), relaxes)
    for number in order:
        # A node that has refused one pod of a shape has no place for the others, so it leaves the queue.
        open_to = [(len(node.members), at) for at, node in enumerate(opened)]
        heapq.heapify(open_to)
        while left[number] and _place(number, shapes[number], opened, open_to, pools, ledger):
            left[number] -= 1
    return Purchase([(_settled(node, len(shapes)), 1) for node in opened], left)


@dataclass(frozen=True)
class _Pools:
    """What each sells, in the order in which they are asked; whether they may go below minValues.

    `related` says which groups the pods of DaemonSets are in.
    """

    sold: list[list[OfferedType]]
    related: Crowding
    relaxes: bool


def _by_pool(offered_types: Sequence[OfferedType]) -> list[list[OfferedType]]:
    pools: dict[str, list[OfferedType]] = {}
    for offered in sorted(offered_types, key=lambda c: c.pool.order):
        pools.setdefault(offered.pool.name, []).append(offered)
    return list(pools.values())


def _place(
    number: int,
    shape: Shape,
    opened: list[_Open],
    open_to: list[tuple[int, int]],
    pools: _Pools,
    ledger: Ledger,
) -> bool:
    """One pod on a node; `open_to` is a heap of the nodes to ask: how many pods each has, and its number."""
    while open_to:
        pods, at = open_to[0]
        node = opened[at]
        options = _affordable(_narrow(node.beside(shape), shape), node, ledger)
        if options and not (_lacks(options) and not _lacks(node.options)):
            _charge_cost(options, node, ledger)
            node.options = options
            node.take(number, shape)
            heapq.heapreplace(open_to, (pods + 1, at))
            return True
        heapq.heappop(open_to)
    for pool in pools.sold:
        node = _Open([(c, c.room, ()) for c in pool if _within_limits(c, ledger)])
        node.crowds = {_daemons_of(c): starting(c, pools.related) for c, _, _ in node.options}
        options = _affordable(_reserved(_narrow(node.beside(shape), shape)), node, ledger)
        if options and (pools.relaxes or not _lacks(options)):
            node.options = options
            opened.append(node)
            node.take(number, shape)
            heapq.heappush(open_to, (1, len(opened) - 1))
            _charge([offered for offered, _, _ in options], ledger)
            _charge_cost(options, node, ledger)
            return True
    return False


def _daemons_of(offered: OfferedType) -> tuple[str, ...]:
    return tuple(each.key for each in offered.daemon_sets)


def _reserved(options: list[_Option]) -> list[_Option]:
    """Those of the first reservation where there is one: an open node keeps it, as in Karpenter's strict mode."""
    name = next((offered.reservation for offered, _, _ in options if offered.reservation), "")
    return [option for option in options if option[0].reservation == name]


def _lacks(options: Sequence[_Option]) -> bool:
    """Whether the types have fewer values than their pool asks for by minValues."""
    first = options[0][0]
    return asks(first) and bool(lacking(first.pool, [offered.kind for offered, _, _ in options]))


def _narrow(options: Sequence[_Option], shape: Shape) -> list[_Option]:
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
    return ledger.room_for(offered, offered.capacity.without((COST_PER_HOUR,))) != 0


def _charge(offered_types: Sequence[OfferedType], ledger: Ledger) -> None:
    most = Resources()
    for offered in offered_types:
        most = most.largest(offered.capacity.without((COST_PER_HOUR,)))
    ledger.charge(offered_types[0].pool.name, most)


def _affordable(options: list[_Option], node: _Open, ledger: Ledger) -> list[_Option]:
    """The types that the node can be within what its pool may cost: which offering it is bought by decides that.

    None where the one that it would be bought as needs others beside it which are not.
    """
    most = _most_micro(options, node, ledger)
    if most is None:
        return options
    within = [option for option in options if _charge_of(option)[COST_PER_HOUR] <= most]
    return within if within and _cost_micro(within) <= most else []


def _most_micro(options: Sequence[_Option], node: _Open, ledger: Ledger) -> int | None:
    """What the node may count of its pool's cost; None for any amount."""
    pool = options[0][0].pool.name if options else ""
    limits = ledger.limit(pool)
    if limits is None or COST_PER_HOUR not in limits:
        return None
    return limits[COST_PER_HOUR] - ledger.used(pool).get(COST_PER_HOUR, 0) + node.cost_micro


def _charge_cost(options: Sequence[_Option], node: _Open, ledger: Ledger) -> None:
    """Count what the node costs now in place of what it did."""
    if _most_micro(options, node, ledger) is not None:
        cost = _cost_micro(options)
        ledger.charge(options[0][0].pool.name, {COST_PER_HOUR: cost - node.cost_micro})
        node.cost_micro = cost


def _cost_micro(options: Sequence[_Option]) -> int:
    """What a node counts that is bought as the cheapest of the types, by whichever of those that its claim names."""
    offered, room, _ = planned = min(options, key=_launch_order)
    offering = offered.offering_for(room.requirements)
    assert offering is not None
    needed = _needed(offered, sorted((option[0] for option in options), key=lambda each: each.order))
    others = (charge(other, offering, room.requirements)[COST_PER_HOUR] for other in needed)
    return max(_charge_of(planned)[COST_PER_HOUR], *others, 0)


def _charge_of(option: _Option) -> Resources:
    offered, room, _ = option
    offering = offered.offering_for(room.requirements)
    assert offering is not None
    return charge(offered, offering, room.requirements)


def _launch_order(option: _Option) -> tuple[int, str]:
    offering = option[0].offering_for(option[1].requirements)
    return (offering.price_micro if offering is not None else 0, option[0].kind.name)


def _settled(node: _Open, shapes: int) -> Load:
    """The open node as its cheapest remaining type."""
    offered, room, slices = min(node.options, key=_launch_order)
    by_shape: dict[int, list[tuple[Slice, ...]]] = {}
    for number, taken in zip(node.members, slices, strict=True):
        by_shape.setdefault(number, []).append(taken)
    offering = offered.offering_for(room.requirements)
    assert offering is not None
    order = tuple((number, len(list(run))) for number, run in groupby(node.members))
    needed = _needed(offered, sorted((option[0] for option in node.options), key=lambda each: each.order))
    held = tuple((number, len(by_shape[number])) for number in sorted(by_shape))
    taken_by = {number: tuple(by_shape[number]) for number, _ in held}
    return Load(offered, shapes, held, taken_by, room, offering, order, needed)


def _needed(planned: OfferedType, others: Sequence[OfferedType]) -> tuple[OfferedType, ...]:
    """The cheapest types that a claim must name beside the planned one, because its pool asks for a choice."""
    if not asks(planned):
        return ()
    counted = Counted(planned.pool)
    counted.adds(planned.kind)
    return tuple(other for other in others if not counted.is_enough and counted.adds(other.kind))
