"""Purchases for many pods of many shapes, by prices: nodes that `columngeneration` chooses, each verified card by card.

What it cannot choose for (pods that keep others off, that need ports), and pods that a node turns out not to hold, are
left for the search by full nodes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kerf.engine.buy.bound import is_about, remember
from kerf.engine.buy.columngeneration import MOST_ROUNDS, NEAR, Column, Columns, Search, columns_of, most_kinds
from kerf.engine.buy.dot import dot
from kerf.engine.buy.filling import Filler, Load, Purchase
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.pricesplits import plain_splits, split
from kerf.engine.buy.relaxation import Floats, Relaxation, relaxed
from kerf.engine.buy.wholecards import by_whole_cards
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.holding import Amounts
from kerf.engine.supply.offered import OfferedType
from kerf.engine.supply.warmth import KeptColumn
from kerf.model.lowerbound import NANO

_FEW_PODS = 20
"""Of fewer, and of pods that are all equal, full nodes are found as well without prices."""

_TRUSTED = 1.05
"""What nodes cost in parts says what pods cost at least only where it is that near to what is proven. Where it is not,
the nodes that were found may be bad ones: of few pods of each shape, or of pods with several slices."""

_MUCH_THE_SAME = 0.001
"""Relative: known columns are as good as when they were found as long as they are no farther from the bound."""


@dataclass(frozen=True, eq=False)
class Priced:
    """A purchase; how many of its pods no type holds at all, and what the others cost at least, in micro-units.

    Where prices have settled near a proven bound, at least is what they would cost if nodes could be bought in parts:
    that is nearer than the bound, and no proof. `proven_micro` is the bound in any case, and `parts_micro` what they
    would cost in parts; 0 where prices have not settled. `has_failed` says that the solver did.
    """

    purchase: Purchase
    homeless: int
    least_micro: float
    proven_micro: float = 0.0
    parts_micro: float = 0.0
    has_failed: bool = False

    def is_within(self, factor: float) -> bool:
        """Whether all that can have a node have one, for no more than so many times the least."""
        left, price_micro, _ = self.purchase.rank
        return left == self.homeless and price_micro <= self.least_micro * factor


def priced(
    filler: Filler,
    offered_types: Sequence[OfferedType],
    left: Sequence[int],
    ledger: Ledger,
    *,
    most_rounds: int = MOST_ROUNDS,
    tier: Sequence[OfferedType] = (),
) -> Priced | None:
    """Nodes for as many of the pods as prices can choose for; None for few pods, too many kinds, or a free type.

    `offered_types` beat each other in some respect, and are all that is worth a look of the `tier`. The ledger stays as
    it is. Cost: see `columns_of`; less where the filler's holding has kept of earlier decisions what is needed now.
    """
    if any(each.price_micro <= 0 for each in offered_types):
        # Any node is worth more than that.
        return None
    held = filler.held_by(offered_types, np.arange(len(left)))
    numbers = np.flatnonzero((np.array(left) > 0) & held.any(axis=0))
    if (
        len(numbers) < 2
        or len(numbers) > most_kinds(most_rounds)
        or sum(left[at] for at in numbers.tolist()) < _FEW_PODS
    ):
        return None
    shapes = [Shape(filler.shapes[at].pods[: left[at]]) for at in numbers.tolist()]
    part = Filler(shapes, filler.holding)
    relaxation = relaxed(part, offered_types)
    frugal = _frugal(held[:, numbers], offered_types, ledger)
    known = _columns_so_far(filler, numbers)
    least_micro, found = _chosen(_Question(part, relaxation, tier, frugal, ledger, most_rounds, known))
    _note(filler, found, numbers)
    purchase = _bought(filler, found, numbers, left, ledger)
    homeless = sum(left) - int(relaxation.demand.sum())
    is_trusted = least_micro < found.parts_micro <= least_micro * _TRUSTED
    nearest_micro = found.parts_micro if is_trusted else least_micro
    return Priced(purchase, homeless, nearest_micro, least_micro, found.parts_micro, found.has_failed)


def most_served(
    filler: Filler,
    offered_types: Sequence[OfferedType],
    left: Sequence[int],
    ledger: Ledger,
    unserved: Floats,
    *,
    most_rounds: int = MOST_ROUNDS,
) -> Purchase:
    """Nodes for the pods of which limits leave over as little as possible; `unserved` is what each costs without one.

    By number of the shape, in micro-units. No nodes for too many kinds of pods, or where a type is free. The ledger
    stays as it is. Cost: as `priced`, without what is kept of earlier decisions.
    """
    if any(each.price_micro <= 0 for each in offered_types):
        # Any node is worth more than that.
        return Purchase(left=list(left))
    held = filler.held_by(offered_types, np.arange(len(left)))
    numbers = np.flatnonzero((np.array(left) > 0) & held.any(axis=0))
    if not len(numbers) or len(numbers) > most_kinds(most_rounds):
        return Purchase(left=list(left))
    shapes = [Shape(filler.shapes[at].pods[: left[at]]) for at in numbers.tolist()]
    part = Filler(shapes, filler.holding)
    relaxation = relaxed(part, offered_types)
    frugal = _frugal(held[:, numbers], offered_types, ledger)
    worth, types = _best_prices(_Question(part, relaxation, offered_types, frugal, ledger, most_rounds))
    known = _columns_so_far(filler, numbers)
    search = Search(most_rounds, known, keeps=True, unserved=unserved[numbers])
    found = columns_of(part, relaxation, types, worth, ledger, search)
    _note(filler, found, numbers)
    return _bought(filler, found, numbers, left, ledger)


def _columns_so_far(filler: Filler, numbers: Amounts) -> tuple[Column, ...]:
    """What searches with the filler have found for shapes of these numbers."""
    return tuple(_asked_for(filler.columns, {at: place for place, at in enumerate(numbers.tolist())}))


def _note(filler: Filler, found: Columns, numbers: Amounts) -> None:
    """Keep columns for shapes of these numbers for the next search with the filler."""
    more = (_kept(column, numbers) for column, _ in found.known)
    filler.columns = list({column.key: column for column in (*filler.columns, *more)}.values())


def _bought(filler: Filler, found: Columns, numbers: Amounts, left: Sequence[int], ledger: Ledger) -> Purchase:
    """The nodes of columns for the shapes of these numbers, each as it really is when it is filled."""
    purchase, spent = Purchase(left=list(left)), ledger.copy()
    remaining = np.array(left, dtype=np.int64)
    for column, times in found.bought:
        asked = replace(
            column,
            counts=_spread(column.counts, numbers, left),
            turns=_spread(column.turns, numbers, left),
            choices={int(numbers[at]): tuple(numbers[list(able)].tolist()) for at, able in column.choices.items()},
        )
        _buy(filler, asked, times, remaining, spent, purchase)
    purchase.left = remaining.tolist()
    return purchase


@dataclass(frozen=True, eq=False)
class _Question:
    """What prices are asked; `frugal` are numbers of types that are looked at in any case.

    `known` are columns to begin with.
    """

    part: Filler
    relaxation: Relaxation
    tier: Sequence[OfferedType]
    frugal: set[int]
    ledger: Ledger
    most_rounds: int
    known: Sequence[Column] = ()


def _chosen(asked: _Question) -> tuple[float, Columns]:
    """What the pods cost at least, in micro-units, and the nodes for them.

    Known columns come first: where they are near what known prices prove, neither is looked for again.
    """
    warmth, relaxation = asked.part.holding.warmth, asked.relaxation
    if warmth is None:
        worth, types = _best_prices(asked)
        search = Search(asked.most_rounds, asked.known, keeps=True)
        found = columns_of(asked.part, relaxation, types, worth, asked.ledger, search)
        return float(dot(worth, relaxation.demand)), found
    known = [*_known_columns(asked), *asked.known]
    of_known, enough = {id(column.offered) for column in known}, max(NEAR, warmth.gap + _MUCH_THE_SAME)
    own = [at for at, each in enumerate(relaxation.types) if id(each) in of_known or at in asked.frugal]
    unsought = replace(asked, most_rounds=0)
    proof = warmth.proof(asked.tier)
    numbers = [asked.part.holding.shape_number(shape) for shape in asked.part.shapes]
    if known and proof is not None and is_about(proof, asked.part, asked.tier):
        worth = np.array(proof.worths(numbers, relaxation.demand.tolist()), dtype=np.float64) / NANO
        found = _columns(unsought, own, worth, known, enough)
        if found.bought:
            return float(dot(worth, relaxation.demand)), found
    worth, types = _best_prices(asked)
    if asked.most_rounds >= MOST_ROUNDS:
        remember(asked.part, by_whole_cards(relaxation), asked.tier, asked.most_rounds)
    found = _columns(unsought, own, worth, known, enough) if known else Columns([])
    found = found if found.bought else _columns(asked, types, worth, known, enough if known else 0.0)
    return float(dot(worth, relaxation.demand)), found


def _columns(asked: _Question, types: Sequence[int], worth: Floats, known: Sequence[Column], enough: float) -> Columns:
    """The nodes, beginning with columns that are known; what is found is kept."""
    part, holding, warmth = asked.part, asked.part.holding, asked.part.holding.warmth
    search = Search(asked.most_rounds, known, enough, keeps=True)
    found = columns_of(part, asked.relaxation, types, worth, asked.ledger, search)
    if warmth is not None and found.known:
        numbers = np.array([holding.shape_number(shape) for shape in part.shapes], dtype=np.int64)
        warmth.note(((_kept(column, numbers), is_used) for column, is_used in found.known), found.gap, enough)
    return found


def _best_prices(asked: _Question) -> tuple[Floats, list[int]]:
    """What pods are worth at the best prices, and the types that have a say in them."""
    kinds = by_whole_cards(asked.relaxation)
    is_quick = asked.most_rounds < MOST_ROUNDS
    plain, whole = (plain_splits(kinds), None) if is_quick else split(asked.part, kinds)
    best = whole or plain
    place = {id(offered): at for at, offered in enumerate(asked.relaxation.types)}
    said = {*plain.source.tolist(), *best.source.tolist(), *best.whole}
    return best.worth, sorted({*(place[id(kinds.types[at])] for at in said), *asked.frugal})


def _kept(column: Column, numbers: Amounts) -> KeptColumn:
    """The column by the holding's numbers of shapes; `numbers` are these by shape."""
    some = np.flatnonzero(column.counts)
    some = some[np.argsort(numbers[some], kind="stable")]
    return KeptColumn(column.offered, tuple(numbers[some].tolist()), tuple(column.counts[some].tolist()))


def _known_columns(asked: _Question) -> Iterator[Column]:
    """The columns that were kept of earlier decisions."""
    warmth, holding = asked.part.holding.warmth, asked.part.holding
    place = {holding.shape_number(shape): at for at, shape in enumerate(asked.part.shapes)}
    return _asked_for(warmth.columns(asked.relaxation.types) if warmth is not None else (), place)


def _asked_for(columns: Iterable[KeptColumn], place: Mapping[int, int]) -> Iterator[Column]:
    """The columns with those of their pods that are asked for; without those that have none of them.

    `place` is by number of the shape, as columns have it, which one it is of those that are asked for.
    """
    for column in columns:
        counts = np.zeros(len(place), dtype=np.int64)
        for number, count in zip(column.shapes, column.counts, strict=True):
            if number in place:
                counts[place[number]] = count
        if counts.any():
            yield Column(column.offered, counts, counts)


def _frugal(held: Amounts, offered_types: Sequence[OfferedType], ledger: Ledger) -> set[int]:
    """Types that take least of a limit for a pod of some shape, and the cheapest of those that take nothing of it.

    `held` is by type and shape how many pods an empty node holds. Prices alone may want none of them.
    """
    asked = [ledger.left_for(each) for each in offered_types]
    price = np.array([each.price_micro for each in offered_types], dtype=np.float64)
    found = set[int]()
    for name in dict.fromkeys(name for each in asked for name in each):
        amount = np.array([each[name][0] if name in each else 0 for each in asked], dtype=np.float64)
        for cost, others in ((amount, amount <= 0), (price, amount > 0)):
            able = (held > 0) & ~others[:, None]
            each = np.divide(cost[:, None], held, out=np.full(held.shape, np.inf), where=able)
            found.update(each.argmin(axis=0)[able.any(axis=0)].tolist())
    return found


def _spread(each: Amounts, numbers: Amounts, left: Sequence[int]) -> Amounts:
    """The same by the numbers of all shapes."""
    found = np.zeros(len(left), dtype=np.int64)
    found[numbers] = each
    return found


def filled(filler: Filler, column: Column, asked: Amounts) -> Load | None:
    """A node with as many of the pods as it holds, in the order that serves more of them."""
    load = filler.fill(column.offered, asked)
    if load is not None and load.pods < int(asked.sum()):
        other = filler.fill_in_turns(column.offered, asked, column.turns)
        load = other if other is not None and other.pods > load.pods else load
    return load


def _buy(filler: Filler, column: Column, times: int, remaining: Amounts, spent: Ledger, purchase: Purchase) -> None:
    """So many nodes, as full as what remains allows and as the node really holds."""
    offered = column.offered
    while times:
        load = filled(filler, column, column.asking(remaining))
        if load is None:
            return
        room = spent.room_for(offered, load.charge)
        many = min(times, *(int(remaining[number]) // count for number, count in load.held))
        many = many if room is None else min(many, room)
        if not many:
            return
        purchase.loads.append((load, many))
        spent.charge(offered.pool.name, load.charge, many)
        for number, count in load.held:
            remaining[number] -= count * many
        times -= many
