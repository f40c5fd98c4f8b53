"""A proven lower bound on what any plan for the same pods costs per hour.

The relaxation (`relaxation`) lets pods be cut to pieces and nodes be bought in parts, but charges every pod its share
of what is summed over a node, and each slice its piece of one physical card. Small nodes are taken whole where all ways
to fill one can be listed (`wholenodes`). `pricesplits` looks for the split of the
types' prices at which all pods are worth most; any split gives a valid bound. So its floats are rounded to whole
numbers here, held to each type's price, and what pods are worth is counted again in integers. Rounded up where it is
safe: some node must be bought for the most demanding pod, nodes come whole with a single price in sight, and bills are
made of whole prices.
"""

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kerf.engine.buy.dominance import undominated
from kerf.engine.buy.dot import dot
from kerf.engine.buy.filling import Filler
from kerf.engine.buy.pricesplits import MOST_ROUNDS, Splits, split
from kerf.engine.buy.relaxation import PLACES, Floats, Relaxation, price_of, relaxed
from kerf.engine.buy.wholecards import by_whole_cards, whole_cards_of
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.holding import Amounts, Holding
from kerf.engine.supply.offered import OfferedType
from kerf.engine.supply.warmth import KeptProof, Warmth
from kerf.model.lowerbound import NANO, Ignored, LowerBound, PieceWorth, PodWorth, PriceSplit, WholeType

_BITS = 80
"""The price of one byte is rounded down to so small a part of a nano-unit."""
_CLOSE = 1e-9
"""Much more than what floating point loses of sums of a few dozen amounts that are not negative."""
_LITTLE = 0.001
"""Relative: so much of what all pods are worth may be of shapes that a kept proof does not know."""
_MOST_EXACT = 2**52
"""A price of more nano-units is not split: sums of some hundred parts must find place in 64 bits."""


@dataclass(frozen=True, eq=False)
class _Prices:
    """Prices in nano-units times 2**_BITS by type: of a unit of each resource, of each piece, and of a card.

    `parts` are, of the types that have a split of their own, the parts by resource, the pieces and the card, in
    nano-units.
    """

    units: list[list[int]]
    pieces: list[list[int]]
    parts: dict[int, tuple[list[int], list[int], int]]


def lower_bound(shapes: Sequence[Shape], offered_types: Sequence[OfferedType]) -> int | None:
    """Micro-units per hour that nodes for all these pods cost at least; 0 for no pods, None when some pod fits nowhere.

    The pods are taken to need new nodes. Cost: see `proven`.
    """
    if not shapes:
        return 0
    bound = proven(shapes, offered_types)
    return None if bound is None else bound.micro


def proven(
    shapes: Sequence[Shape],
    offered_types: Sequence[OfferedType],
    holding: Holding | None = None,
    *,
    most_rounds: int = MOST_ROUNDS,
) -> LowerBound | None:
    """The bound with its proof, for at least one shape; None when some pod fits nowhere.

    `holding` is what other purchases have found, and earlier decisions: prices that prove a bound for other numbers of
    the same pods are taken as they are, until a purchase finds them too low. Cost: at most so many rounds of a linear
    program of shapes and of types that beat no other, and hardly of pods. Fewer rounds give a lower bound that is as
    valid.
    """
    filler = Filler(shapes, holding or Holding(offered_types))
    warmth = filler.holding.warmth
    kept = None if warmth is None else warmth.proof(offered_types)
    if kept is not None and is_about(kept, filler, offered_types):
        return _as_kept(kept, filler)
    useful = undominated(filler, offered_types, [len(shape) for shape in shapes])
    if not useful:
        return None
    relaxation = by_whole_cards(relaxed(filler, useful))
    if not relaxation.takes.any(axis=1).all():
        return None
    by_price = sorted(range(len(relaxation.types)), key=relaxation.price_micro.__getitem__)
    cheapest = relaxation.takes[:, by_price].argmax(axis=1).tolist()
    node_micro = max(relaxation.price_micro[by_price[first]] for first in cheapest)
    if max(relaxation.price_micro) * NANO > _MOST_EXACT:
        return LowerBound(node_micro, node_micro, ignored=(Ignored.BUDGET,))
    best = _best_proof(filler, relaxation, most_rounds)
    if warmth is not None:
        _note(warmth, filler, best, relaxation, offered_types)
    # Whatever is bought, the bill is a multiple of what all prices are multiples of.
    distinct = set(relaxation.price_micro)
    step = distinct.pop() if len(distinct) == 1 else math.gcd(*(o.price_micro for c in useful for o in c.offerings))
    micro = -(-best.total // (step * NANO << _BITS)) * step if step else 0
    worth = zip(shapes, best.worth, strict=True)
    return LowerBound(
        max(micro, node_micro),
        node_micro,
        tuple(_split(relaxation, at, *held) for at, held in sorted(best.prices.parts.items())),
        _whole(relaxation, best.splits),
        tuple(PodWorth(shape.pods[0].key, len(shape), each >> _BITS) for shape, each in worth),
        tuple(_ignored(useful, best.splits)),
    )


def proven_of_served(
    shapes: Sequence[Shape], offered_types: Sequence[OfferedType], holding: Holding
) -> tuple[LowerBound | None, Sequence[Shape]]:
    """The bound of those shapes that some type holds, and these: a pod that fits nowhere takes it from no other.

    None where no type holds any, or nothing can be proven. It holds for all shapes, as nodes for more cost no less.
    Cost: see `proven`; where a pod fits nowhere twice.
    """
    bound = proven(shapes, offered_types, holding)
    if bound is not None:
        return bound, shapes
    held = Filler(shapes, holding).held_by(offered_types, np.arange(len(shapes)))
    served = [shapes[at] for at in np.flatnonzero((held > 0).any(axis=0)).tolist()]
    return (proven(served, offered_types, holding) if served else None), served


def is_about(proof: KeptProof, filler: Filler, offered_types: Sequence[OfferedType]) -> bool:
    """Whether the proof says something of all shapes, save for some whose pods cost little though they come alone."""
    numbers = list(map(filler.holding.shape_number, filler.shapes))
    missing = [at for at, number in enumerate(numbers) if number not in proof.worth]
    if not missing:
        return True
    held = filler.held_by(offered_types, np.array(missing))
    price = np.array([[price_of(each)] for each in offered_types], dtype=np.float64)
    alone = np.divide(price, held, out=np.full(held.shape, np.inf), where=held > 0).min(axis=0, initial=np.inf)
    pods = list(map(len, filler.shapes))
    total = sum(map(operator.mul, proof.worths(numbers, pods), pods))
    cost = sum(each * pods[at] for at, each in zip(missing, alone.tolist(), strict=True))
    return bool(cost * NANO <= total * _LITTLE)


def remember(filler: Filler, relaxation: Relaxation, offered_types: Sequence[OfferedType], most_rounds: int) -> None:
    """Keep the best prices for the next decision; `offered_types` are all of which the relaxation has the useful ones,
    as `by_whole_cards` makes them.

    Nothing is kept where the filler's holding keeps nothing, or the prices hold for so many pods alone.
    """
    warmth = filler.holding.warmth
    if warmth is not None and max(relaxation.price_micro) * NANO <= _MOST_EXACT:
        # The purchase has asked for as many rounds, and the bound will: so they are gone through once.
        best = _best_proof(filler, relaxation, max(MOST_ROUNDS, most_rounds))
        _note(warmth, filler, best, relaxation, offered_types)


def _note(
    warmth: Warmth, filler: Filler, best: "_Proof", relaxation: Relaxation, offered_types: Sequence[OfferedType]
) -> None:
    if any(name.startswith(PLACES) for name in relaxation.resources):
        return
    numbers = [filler.holding.shape_number(shape) for shape in filler.shapes]
    whole = [relaxation.types[at] for at in sorted(best.splits.whole)]
    held = filler.held_by(whole, np.arange(len(numbers)))
    # Of these no node was looked at that holds more than there were.
    few = np.flatnonzero((held >= relaxation.demand).any(axis=0)).tolist()
    warmth.note_proof(
        KeptProof(
            tuple(offered_types),
            {number: each >> _BITS for number, each in zip(numbers, best.worth, strict=True)},
            {numbers[at]: int(relaxation.demand[at]) for at in few},
            math.gcd(*(offering.price_micro for each in offered_types for offering in each.offerings)),
            tuple(_split(relaxation, at, *prices) for at, prices in sorted(best.prices.parts.items())),
            _whole(relaxation, best.splits),
            tuple(_ignored(offered_types, best.splits)),
        )
    )


def _as_kept(proof: KeptProof, filler: Filler) -> LowerBound | None:
    """The bound that known prices prove; None when some pod fits nowhere."""
    shapes, offered_types = filler.shapes, proof.offered
    held = filler.held_by(offered_types, np.arange(len(shapes))) > 0
    if not held.any(axis=0).all():
        return None
    price = np.array(list(map(price_of, offered_types)), dtype=np.int64)
    node_micro = int(np.where(held, price[:, None], _MOST_EXACT).min(axis=0).max())
    pods = list(map(len, shapes))
    worth = proof.worths(map(filler.holding.shape_number, shapes), pods)
    total, step = sum(map(operator.mul, worth, pods)), proof.step_micro
    micro = -(-total // (step * NANO)) * step if step else 0
    worths = (PodWorth(s.pods[0].key, len(s), each) for s, each in zip(shapes, worth, strict=True))
    ignored = tuple(dict.fromkeys((*proof.ignored, Ignored.BUDGET)))
    return LowerBound(max(micro, node_micro), node_micro, proof.splits, proof.whole, tuple(worths), ignored)


def _best_proof(filler: Filler, relaxation: Relaxation, most_rounds: int) -> "_Proof":
    found = [_proof(relaxation, splits) for splits in split(filler, relaxation, most_rounds) if splits is not None]
    return max(found, key=lambda proof: proof.total)


@dataclass(frozen=True, eq=False)
class _Proof:
    """Splits in whole numbers: `worth` by shape and their sum over the pods (`total`), in nano-units times 2**_BITS."""

    splits: Splits
    prices: _Prices
    worth: list[int]
    total: int


def _proof(relaxation: Relaxation, splits: Splits) -> _Proof:
    prices = _prices(relaxation, splits)
    worth = _worth(relaxation, splits, prices)
    if splits.whole:
        worth = [each << _BITS for each in _held_to_fills(relaxation, splits, [each >> _BITS for each in worth])]
    total = sum(each * count for each, count in zip(worth, relaxation.demand.tolist(), strict=True))
    return _Proof(splits, prices, worth, total)


def _held_to_fills(relaxation: Relaxation, splits: Splits, worth: list[int]) -> list[int]:
    """Whole nano-units by shape, lowered until no fill of a type is worth more than the type costs."""
    held = np.array(worth, dtype=np.int64)
    for at, found in sorted(splits.whole.items()):
        price = relaxation.price_micro[at] * NANO
        fullest = int(found.worth(held).max(initial=0))
        if fullest > price:
            held[found.shapes] = [each * price // fullest for each in held[found.shapes].tolist()]
    lowered: list[int] = held.tolist()
    return lowered


def _prices(relaxation: Relaxation, splits: Splits) -> _Prices:
    """Whole numbers that never sum to more than the price of the type."""
    own = sorted(set(splits.source.tolist()) - splits.whole.keys())
    parts: dict[int, tuple[list[int], list[int], int]] = {}
    for at in own:
        group = relaxation.groups[int(relaxation.group[at])]
        most = relaxation.price_micro[at] * NANO
        held = _rounded(splits.parts[at], most)
        held[relaxation.amounts[at] <= 0] = 0
        slices = _rounded(splits.pieces[at], most)
        card = int(dot(group.counts, slices).max()) if group.sizes else 0
        parts[at] = _fitted(most, held.tolist(), slices.tolist(), card, int(relaxation.cards[at]))
    bases = {}
    for at, (part_nano, piece_nano, card_nano) in parts.items():
        has = relaxation.amounts[at].tolist()
        unit = [(p << _BITS) // h if p else 0 for p, h in zip(part_nano, has, strict=True)]
        bases[at] = unit, [piece << _BITS for piece in piece_nano], card_nano << _BITS
    units, pieces = [], []
    for at, source in enumerate(splits.source.tolist()):
        if at in splits.whole:
            units.append([0] * len(relaxation.resources))
            pieces.append([0] * len(splits.pieces[at]))
            continue
        unit, piece, card_price = bases[source]
        if at != source:
            # The same prices of a unit, scaled to what this type has for its price.
            has = relaxation.amounts[at].tolist()
            need = sum(u * h for u, h in zip(unit, has, strict=True)) + card_price * int(relaxation.cards[at])
            price = relaxation.price_micro[at] * NANO << _BITS
            if need:
                unit, piece = [u * price // need for u in unit], [p * price // need for p in piece]
        units.append(unit)
        pieces.append(piece)
    return _Prices(units, pieces, parts)


def _rounded(micro: Floats, most: int) -> Amounts:
    """Whole nano-units from 0 to `most`; 0 for what is no number."""
    found: Amounts = np.rint(np.clip(np.nan_to_num(micro * NANO, nan=0.0), 0.0, float(most))).astype(np.int64)
    return found


def _fitted(price: int, parts: list[int], pieces: list[int], card: int, cards: int) -> tuple[list[int], list[int], int]:
    """The same, scaled down where it is more than the price. Rounded down, no pattern costs more than the card."""
    over = sum(parts) + card * cards
    if over <= price:
        return parts, pieces, card
    return [p * price // over for p in parts], [p * price // over for p in pieces], card * price // over


def _worth(relaxation: Relaxation, splits: Splits, prices: _Prices) -> list[int]:
    """By shape the least that one of its pods is worth on any type that takes it, in nano-units times 2**_BITS.

    With types that are bought whole, no more than the splits say: these types are left out here.
    Cost: in floats for all types, in integers for those that come nearest.
    """
    about = np.full(relaxation.takes.shape, np.inf)
    for number, group in enumerate(relaxation.groups):
        held = np.flatnonzero(relaxation.group == number)
        unit = np.array([[u / 2.0**_BITS for u in prices.units[at]] for at in held.tolist()])
        found = dot(group.asked[:, group.sums].astype(np.float64), unit[:, group.sums].T)
        if group.sizes:
            piece = np.array([[p / 2.0**_BITS for p in prices.pieces[at]] for at in held.tolist()])
            found += dot(group.slices.astype(np.float64), piece.T)
        about[:, held] = found
    about[~relaxation.takes] = np.inf
    about[:, sorted(splits.whole)] = np.inf
    nearest = (about <= about.min(axis=1, keepdims=True) * (1 + _CLOSE) + _CLOSE) & (about < np.inf)
    most = [worth << _BITS for worth in _rounded(splits.worth, _MOST_EXACT).tolist()] if splits.whole else []
    return [
        min(most[shape : shape + 1] + _values(relaxation, shape, np.flatnonzero(near), prices))
        for shape, near in enumerate(nearest)
    ]


def _values(relaxation: Relaxation, shape: int, types: Amounts, prices: _Prices) -> list[int]:
    """What a pod of the shape is worth on each of these types, exactly."""
    asked: dict[int, tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {}
    found: list[int] = []
    for at in types.tolist():
        number = int(relaxation.group[at])
        if number not in asked:
            group = relaxation.groups[number]
            asked[number] = _some(group.asked[shape]), _some(group.slices[shape])
        sums, slices = asked[number]
        unit, piece = prices.units[at], prices.pieces[at]
        found.append(sum(n * unit[k] for k, n in sums) + sum(n * piece[k] for k, n in slices))
    return found


def _some(amounts: Amounts) -> list[tuple[int, int]]:
    """Those that are not 0, by place."""
    return [(at, int(amounts[at])) for at in np.flatnonzero(amounts).tolist()]


def _split(relaxation: Relaxation, at: int, parts: list[int], pieces: list[int], card: int) -> PriceSplit:
    offered, sizes = relaxation.types[at], relaxation.groups[int(relaxation.group[at])].sizes
    named = [(name, part) for name, part in zip(relaxation.resources, parts, strict=True) if part]
    worth = [
        PieceWorth(0, 0, size, piece) if isinstance(size, str) else PieceWorth(*size, "", piece)
        for size, piece in zip(sizes, pieces, strict=True)
        if piece
    ]
    cards = int(relaxation.cards[at]) if card else 0
    name, price = offered.kind.name, relaxation.price_micro[at]
    whole = whole_cards_of(relaxation, at)
    return PriceSplit(offered.pool.name, name, price, tuple(named), cards, card, tuple(worth), whole)


def _whole(relaxation: Relaxation, splits: Splits) -> tuple[WholeType, ...]:
    return tuple(
        WholeType(relaxation.types[at].pool.name, relaxation.types[at].kind.name, whole_cards_of(relaxation, at))
        for at in sorted(splits.whole)
    )


def _ignored(useful: Sequence[OfferedType], splits: Splits) -> Iterator[Ignored]:
    """What the bound takes no notice of here, as far as the types show it."""
    if any(offered.pool.limits for offered in useful):
        yield Ignored.LIMITS
    if any(offered.pool.min_values for offered in useful):
        yield Ignored.MIN_VALUES
    if any(len({o.price_micro for o in offered.offerings}) > 1 for offered in useful):
        yield Ignored.OTHER_PRICES
    if any(offered.reservation for offered in useful):
        yield Ignored.RESERVATIONS
    if not splits.is_best:
        yield Ignored.BUDGET
