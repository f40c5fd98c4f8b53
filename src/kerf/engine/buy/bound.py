"""A proven lower bound on what any plan for the same pods costs per hour.

The relaxation lets pods be cut to pieces and nodes be bought in parts, but charges every pod its share of one node:
per resource, and per card where it asks for a GPU. In dual form: split the price of each type over its resources;
a pod is worth at most the sum of its shares of those parts, on the type where that sum is least. The best split is a
linear program (HiGHS), and any split gives a valid bound. Rounded up where it is safe: some node must be bought for
the most demanding pod, nodes come whole with a single price in sight, and bills are made of whole prices.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from kerf.engine.buy.filling import Filler
from kerf.engine.buy.packing import undominated
from kerf.engine.place.devices import Taken, asks_devices, place_on_devices
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.holding import Holding
from kerf.engine.supply.offered import OfferedType
from kerf.model.gpu import DeviceState
from kerf.model.instancetypes import MICRO
from kerf.model.quantities import Resources

_MOST_COUNTED_SHAPES = 32
"""Up to so many shapes the whole number of equal pods that a node holds is a resource of its own: it tightens the
bound where pods do not divide a node evenly, and costs a column a type and shape."""
_MOST_ROWS = 8_000
"""Shapes times types beyond which the bound is a little rougher: see `_roughly`."""
_NEARLY = 100_000
"""A type may have one part in so many more for its price than the one that implies it."""
_MEMORY, _CORES, _SLOTS = "card memory", "card cores", "card slots"
_MEMORY_OVER_HALF, _CORES_OVER_HALF = "cards over half in memory", "cards over half in cores"


def lower_bound(shapes: Sequence[Shape], offered_types: Sequence[OfferedType]) -> int | None:
    """Micro-units per hour that nodes for all these pods cost at least; 0 for no pods, None when some pod fits nowhere.

    The pods are taken to need new nodes. Cost: one linear program of shapes x types that beat no other.
    """
    if not shapes:
        return 0
    filler = Filler(shapes, Holding(offered_types))
    useful = undominated(filler, offered_types, [len(shape) for shape in shapes])
    rows = [(number, c) for number in range(len(shapes)) for c in useful if filler.alone(number, c)]
    if {number for number, _ in rows} != set(range(len(shapes))):
        return None
    relaxed = _relaxed(filler, useful, rows) if len(rows) <= _MOST_ROWS else _roughly(filler, useful, rows)
    dearest_pod = max(min(_price(c) for n, c in rows if n == number) for number in range(len(shapes)))
    prices = {_price(c) for c in useful}
    # Whatever is bought, the bill is a multiple of what all prices are multiples of.
    step = prices.pop() if len(prices) == 1 else math.gcd(*(o.price_micro for c in useful for o in c.offerings))
    if step:
        relaxed = -(-relaxed // step) * step
    return max(relaxed, dearest_pod)


def _roughly(filler: Filler, useful: Sequence[OfferedType], rows: Sequence[tuple[int, OfferedType]]) -> int:
    """The relaxation without types that others imply, and without the whole number of pods that a node holds."""
    needed = _unimplied(filler, useful)
    here = set(map(id, needed))
    relaxed = _relaxed(filler, needed, [row for row in rows if id(row[1]) in here], are_counted=False)
    return relaxed * _NEARLY // (_NEARLY + 1) if len(needed) < len(useful) else relaxed


def _unimplied(filler: Filler, useful: Sequence[OfferedType]) -> list[OfferedType]:
    """The types less those that have no more of anything for their price than another that takes the same pods.

    A split of the other's price, each part scaled by what this one has of the resource, is a split of this one's, and
    every pod is worth the same by both. So it is, less one part in `_NEARLY`, where this one has hardly more: prices
    are rounded. All are kept where cards count. Cost: types times those that are kept.
    """
    uncounted = {offered.target.uncounted for offered in useful}
    asks = any(asks_devices(shape, offered.target) for shape in filler.shapes for offered in _of_families(useful))
    if len(uncounted) > 1 or asks:
        return list(useful)
    names = sorted({n for s in filler.shapes for n, amount in s.counted(*uncounted).items() if amount > 0})
    has = [[offered.room.free.get(name, 0) for name in names] for offered in useful]
    takes = filler.held(range(len(filler.shapes)))[filler.holding.rows(useful)] > 0
    prices = list(map(_price, useful))

    def is_implied(at: int, by: int) -> bool:
        price, other = prices[at] * (_NEARLY + 1), prices[by] * _NEARLY
        is_worse = all(other * mine <= price * its for mine, its in zip(has[at], has[by], strict=True))
        return is_worse and bool((takes[by] | ~takes[at]).all())

    kept: list[int] = []
    # The most for its price first, by what is asked of most nodes first.
    for at in sorted(range(len(useful)), key=lambda n: (-sum(has[n][:2]) / max(1, prices[n]), n)):
        if not any(is_implied(at, by) for by in kept):
            kept.append(at)
    return [useful[at] for at in sorted(kept)]


def _of_families(useful: Sequence[OfferedType]) -> list[OfferedType]:
    """One of each family of sharing."""
    return list({(each.target.family.name, id(each.target.families)): each for each in useful}.values())


def _price(offered: OfferedType) -> int:
    """The least that it is sold for: its first offering may be dearer (spot comes before on-demand at any price)."""
    return min(offering.price_micro for offering in offered.offerings)


def _relaxed(
    filler: Filler,
    useful: Sequence[OfferedType],
    rows: Sequence[tuple[int, OfferedType]],
    *,
    are_counted: bool = True,
) -> int:
    """The best split of prices; with `are_counted` places on a node are a resource where shapes are few."""
    import highspy
    import numpy

    shares = [_shares(filler, number, offered) for number, offered in rows]
    if are_counted and len(filler.shapes) <= _MOST_COUNTED_SHAPES:
        for (number, offered), share in zip(rows, shares, strict=True):
            if _counts_exactly(filler.shapes[number], offered):
                share[f"places of shape {number}"] = Fraction(1, filler.alone(number, offered))
    names = sorted({name for share in shares for name in share})
    position = {id(c): index for index, c in enumerate(useful)}
    worth, part = len(filler.shapes), len(names)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    for column in range(worth + len(useful) * part):
        solver.addVar(0.0, highspy.kHighsInf)
        solver.changeColCost(column, -float(len(filler.shapes[column])) if column < worth else 0.0)
    for index, offered in enumerate(useful):
        split = numpy.arange(worth + index * part, worth + (index + 1) * part, dtype=numpy.int32)
        solver.addRow(-highspy.kHighsInf, _price(offered) / MICRO, part, split, numpy.ones(part))
    for (number, offered), share in zip(rows, shares, strict=True):
        start = worth + position[id(offered)] * part
        at = numpy.array([number, *(start + names.index(name) for name in share)], dtype=numpy.int32)
        value = numpy.array([1.0, *(-float(amount) for amount in share.values())])
        solver.addRow(-highspy.kHighsInf, 0.0, len(at), at, value)
    solver.run()
    found = list(solver.getSolution().col_value)[worth:]
    splits = [_exact_split(_price(c), found[i * part : (i + 1) * part]) for i, c in enumerate(useful)]
    return _worth(filler, rows, shares, [dict(zip(names, splits[position[id(c)]], strict=True)) for _, c in rows])


def _exact_split(price_micro: int, found: Sequence[float]) -> list[int]:
    """The solver's split in whole micro-units that never sum to more than the price, so that the bound is proven."""
    split = [max(0, round(amount * MICRO)) for amount in found]
    over = sum(split)
    return [amount * price_micro // over for amount in split] if over > price_micro else split


def _worth(
    filler: Filler,
    rows: Sequence[tuple[int, OfferedType]],
    shares: Sequence[dict[str, Fraction]],
    splits: Sequence[dict[str, int]],
) -> int:
    """Sum over pods of the least that their shares of a node's split price come to; rounded down."""
    least: dict[int, Fraction] = {}
    for (number, _), share, split in zip(rows, shares, splits, strict=True):
        value = sum((amount * split[name] for name, amount in share.items()), Fraction(0))
        least[number] = min(value, least.get(number, value))
    return int(sum(value * len(filler.shapes[number]) for number, value in least.items()))


def _shares(filler: Filler, number: int, offered: OfferedType) -> dict[str, Fraction]:
    """The part of one node that one pod takes, by resource; of its cards by `_card_shares`."""
    shape, target = filler.shapes[number], offered.target
    asked: Resources = shape.counted(target.uncounted)
    shares = {name: Fraction(amount, offered.room.free[name]) for name, amount in asked.items() if amount > 0}
    if asks_devices(shape, target):
        shares.update(_card_shares(shape, offered))
    return shares


def _counts_exactly(shape: Shape, offered: OfferedType) -> bool:
    """Whether no node holds more pods of the shape than one that holds nothing else.

    Pods that take several cards in part may leave gaps when they come alone, which others' order would have avoided.
    """
    if not asks_devices(shape, offered.target):
        return True
    used = _used_cards(shape, offered)
    return used is not None and (len(used) == 1 or all(_over_half(*card) for card in used))


def _over_half(memory: int, cores: int, card: DeviceState) -> bool:
    return 2 * memory > card.memory_mib or 2 * cores > card.cores


def _used_cards(shape: Shape, offered: OfferedType) -> list[tuple[int, int, DeviceState]] | None:
    """Memory and cores of each card that one pod takes, one slice a card; None when several containers take some."""
    devices = offered.room.devices
    taken = place_on_devices(offered.target, devices, shape)
    assert isinstance(taken, Taken)
    if len({part.container for part in taken.slices}) > 1:
        return None
    pairs = zip(devices, taken.devices, strict=True)
    return [
        (after.used_memory_mib - before.used_memory_mib, after.used_cores - before.used_cores, before)
        for before, after in pairs
        if after.used_slots > before.used_slots
    ]


def _card_shares(shape: Shape, offered: OfferedType) -> dict[str, Fraction]:
    """What one pod takes of the node's cards: memory, cores, slots, and cards for slices over half of one.

    Two slices that each take more than half of a card's memory cannot share it, nor two that take more than half of
    its cores, so that there are at most as many of each as cards: this is what a sum over the node misses. One of
    each kind can share a card, which is why they are counted apart.
    """
    devices = offered.room.devices
    taken = place_on_devices(offered.target, devices, shape)
    assert isinstance(taken, Taken)
    pairs = list(zip(devices, taken.devices, strict=True))
    single = _used_cards(shape, offered) or []
    sums = {
        _MEMORY: (sum(a.used_memory_mib - b.used_memory_mib for b, a in pairs), sum(d.memory_mib for d in devices)),
        _CORES: (sum(a.used_cores - b.used_cores for b, a in pairs), sum(d.cores for d in devices)),
        _SLOTS: (sum(a.used_slots - b.used_slots for b, a in pairs), sum(d.slots for d in devices)),
        _MEMORY_OVER_HALF: (sum(1 for memory, _, card in single if 2 * memory > card.memory_mib), len(devices)),
        _CORES_OVER_HALF: (sum(1 for _, cores, card in single if 2 * cores > card.cores), len(devices)),
    }
    return {name: Fraction(part, whole) for name, (part, whole) in sums.items() if part > 0 and whole > 0}
