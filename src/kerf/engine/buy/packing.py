"""The search for the cheapest nodes that hold groups of equal pods.

Pods have few shapes, so the search is over nodes full of pods and how often each is bought. For many pods of
several shapes prices choose the nodes (`priced`); what comes that near to the least that the pods cost needs no rival.
All of it is searched as if there were no limits first, and under those that bind only where they do (`binding`).
Where limits leave pods over, nodes that serve most of them are looked for, too (`serving`).
Else it is greedy: the load that serves the most value for its price is bought as often as it repeats, where the value
of a pod is what it costs alone on its best type. Several such searches run (all types together, each type alone,
fullest nodes first where limits bind, Karpenter's own, and every way to part the pods where they are few) and the best
is kept: fewest pods left, then cheapest, then fewest nodes.

Pool weight comes first: pods go to the pools of the highest weight that can hold them, whatever that costs. Among pools
of one weight reservations come first: their instances are paid for, used or not.
"""

import math
import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from kerf.engine.buy.binding import allows, asked_by, limits_of, under, within_limits
from kerf.engine.buy.columngeneration import MOST_ROUNDS, most_kinds
from kerf.engine.buy.dominance import undominated
from kerf.engine.buy.filling import Filler, Load, Purchase
from kerf.engine.buy.firstfit import first_fit
from kerf.engine.buy.flexibility import asks
from kerf.engine.buy.fullnodes import MARGIN, FillRule, cheapest_per_value, full_nodes, fullest, values_of
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.mixing import mixed, suits
from kerf.engine.buy.partition import cheapest_partition
from kerf.engine.buy.priced import Priced, priced
from kerf.engine.buy.relaxation import price_of
from kerf.engine.buy.serving import is_limited, served, unserved
from kerf.engine.place.shapes import UNCROWDED, Shape
from kerf.engine.supply.holding import Holding
from kerf.engine.supply.offered import OfferedType
from kerf.model.causes import (
    Cause,
    FarFromBound,
    FilledOneByOne,
    Name,
    NeverFilled,
    NotCompared,
    SearchFailed,
    ServedMost,
    SolverFailed,
    TooManyKinds,
)
from kerf.model.quantities import CPU, MEMORY, Resources

_MOST_SINGLE_TYPES = 40
"""How many types are tried alone; beyond that the mixed search is as good and trying costs time."""

_CLOSE, _FAR = 1.015, 1.05
"""Relative: a purchase by prices that costs no more than so much of what all pods cost at least needs no rival; one
that costs more than the other has each type alone as rivals, too."""

_MOST_COMPARED, _MOST_COMPARED_FAR = 5_000, 30_000
"""Pods times types up to which Karpenter's choice is tried too, which looks at every pod by itself: the first where
prices chose nodes that are not far from the least, and for each type alone; the second, a second of work, elsewhere."""

_MOST_SETS = 3_000
"""Sets of the pods, times types, up to which every way to part them among nodes is gone through."""


class Effort(NamedTuple):
    """What goes into one purchase: `rounds` of prices; `serves`: under limits also a search for what serves most pods;
    `compares`: rivals beside what prices and full nodes give, and the cheapest nodes for the pods that limits leave."""

    rounds: int = MOST_ROUNDS
    serves: bool = True
    compares: bool = True


_FEW_ROUNDS = 4
USUAL = Effort()
BRIEF = Effort(_FEW_ROUNDS, compares=False)
"""Where it is asked what the pods of one attempt among several would get."""
QUICK = Effort(_FEW_ROUNDS, serves=False, compares=False)
"""Where it is only asked which pods would get nodes."""

BuyInTier = Callable[[Filler, Sequence[OfferedType], Sequence[int], Ledger], Purchase]
"""Nodes for pods among offered types of one weight; leaves the ledger as it is."""


def cheapest_nodes(
    shapes: Sequence[Shape],
    offered_types: Sequence[OfferedType],
    ledger: Ledger,
    holding: Holding | None = None,
    *,
    relaxes: bool = False,
    effort: Effort = USUAL,
) -> Purchase:
    """Loads for as many pods as can be placed, tier by tier of pool weight; charges `ledger`.

    A search that fails takes no pod's node away: nodes are then filled first-fit, and `notes` says so. A shape for
    which even that fails is left, and the others get their nodes. `holding` is what other purchases have found. With
    `relaxes` minValues of a pool give way before a pool of less weight is asked.
    """
    try:
        holding = holding or Holding()
        holding.know(offered_types)
        fillers = _fillers(shapes, holding, offered_types, relaxes=relaxes)
        purchase = _search(fillers, offered_types, ledger, effort)
        purchase.filler = None if fillers[-1].keeps_choice else fillers[-1]
    except Exception as error:  # our own bug must not stop every pod
        purchase = _without_search(shapes, offered_types, ledger, error)
        purchase.binding = limits_of(offered_types, ledger)
    _charge(purchase, ledger)
    return purchase


def _fillers(
    shapes: Sequence[Shape], holding: Holding, offered_types: Sequence[OfferedType], *, relaxes: bool
) -> tuple[Filler, ...]:
    """What fills nodes, and what does where that leaves pods over."""
    if not any(map(asks, offered_types)):
        return (Filler(shapes, holding),)
    strict = Filler(shapes, holding, keeps_choice=True)
    return (strict, Filler(shapes, holding)) if relaxes else (strict,)


def _search(
    fillers: Sequence[Filler], offered_types: Sequence[OfferedType], ledger: Ledger, effort: Effort
) -> Purchase:
    shapes, pods = fillers[0].shapes, [len(shape) for shape in fillers[0].shapes]
    purchase = _by_tier(fillers, offered_types, pods, ledger, partial(_buy_in_tier, effort=effort))
    notes, work = list[Cause](), sum(pods) * len(offered_types)

    def best(*others: Purchase) -> Purchase:
        return min((purchase, *others), key=lambda each: (unserved(shapes, each.left), each.rank))

    # With minValues that may give way strict nodes are bought first, and what they leave may cost more by itself.
    is_rivalled = len(fillers) > 1 and len({each.pool.weight for each in offered_types}) == 1
    is_compared = effort.compares and work <= (_MOST_COMPARED_FAR if is_rivalled else _MOST_COMPARED)
    rivals, binding = list[Purchase](), purchase.binding or frozenset()
    if is_compared and (is_rivalled or any(purchase.left)):
        rivals = under(binding, offered_types, ledger, partial(_as_first_fit, fillers[-1], offered_types, pods))
    if is_rivalled:
        purchase = best(*rivals)
    are_short = is_limited(fillers[-1], offered_types, purchase.left, ledger.only(binding))
    cheapest, is_limit = purchase, effort.serves and are_short
    if is_limit:
        serving = partial(_serving, fillers, offered_types, pods, effort=effort)
        purchase = best(*under(binding, offered_types, ledger, serving))
    # Counted tier by tier, a limit may have gone to pods that had another place.
    purchase = min([purchase, *rivals], key=lambda each: unserved(shapes, each.left))
    if effort.compares and not is_compared and (is_rivalled or is_limit):
        notes.append(NotCompared(sum(pods), len(offered_types), serves=is_limit))
    if sum(purchase.left) < sum(cheapest.left):
        notes.append(ServedMost(sum(purchase.left), sum(cheapest.left) - sum(purchase.left)))
    purchase.notes = (*purchase.notes, *(each for each in notes if each not in purchase.notes))
    return purchase


def _serving(
    fillers: Sequence[Filler],
    offered_types: Sequence[OfferedType],
    pods: Sequence[int],
    ledger: Ledger,
    *,
    effort: Effort,
) -> Iterator[Purchase]:
    """Nodes for as many of the pods as limits allow, tier by tier; with rivals also the cheapest for the same pods."""
    cheapest = partial(_buy_in_tier, effort=effort)
    open_to = [each for each in offered_types if ledger.room_for(each) is None]
    numbers = np.arange(len(pods))
    # A pool without a limit has room for these, so in one with a limit others come first.
    later: list[int] = np.minimum(fillers[-1].held_by(open_to, numbers).max(axis=0, initial=0), 1).tolist()

    def buy(filler: Filler, tier: Sequence[OfferedType], left: Sequence[int], spent: Ledger) -> Purchase:
        if all(spent.room_for(each) is None for each in tier):
            return cheapest(filler, tier, left, spent)
        return served(filler, tier, left, spent, later, effort.rounds)

    found = _by_tier(fillers, offered_types, pods, ledger, buy)
    yield found
    if not effort.compares:
        return
    same = _by_tier(fillers, offered_types, list(map(operator.sub, pods, found.left)), ledger, cheapest)
    if not any(same.left):
        same.left = found.left
        yield same


def _without_search(
    shapes: Sequence[Shape], offered_types: Sequence[OfferedType], ledger: Ledger, error: Exception
) -> Purchase:
    """Nodes filled first-fit, together if that can be done, else each shape alone; without shapes that always fail."""
    notes: list[Cause] = [SearchFailed(Name(type(error).__name__))]
    sound = set()
    # What a failed search remembers may be half done.
    holding = Holding(offered_types)
    for number, shape in enumerate(shapes):
        try:
            _filled_first_fit(_strict(shapes, holding), offered_types, {number}, ledger)
            sound.add(number)
        except Exception as problem:
            notes.append(NeverFilled(Name(shape.pod.key), len(shape) - 1, Name(type(problem).__name__)))
    try:
        purchase = _filled_first_fit(_strict(shapes, holding), offered_types, sound, ledger)
    except Exception:
        spent, purchase = ledger.copy(), Purchase(left=[len(shape) for shape in shapes])
        for number in sorted(sound):
            alone = _filled_first_fit(_strict(shapes, holding), offered_types, {number}, spent)
            _charge(alone, spent)
            purchase.loads.extend(alone.loads)
            purchase.left[number] = alone.left[number]
    purchase.notes = tuple(notes)
    return purchase


def _strict(shapes: Sequence[Shape], holding: Holding) -> Filler:
    return Filler(shapes, holding, keeps_choice=True)


def _filled_first_fit(
    filler: Filler, offered_types: Sequence[OfferedType], numbers: Collection[int], ledger: Ledger
) -> Purchase:
    """Nodes for the shapes of these numbers without any search; the pods of the others are all left."""
    pods = [len(shape) for shape in filler.shapes]
    wanted = [count if number in numbers else 0 for number, count in enumerate(pods)]
    purchase = _by_tier((filler,), offered_types, wanted, ledger, _buy_greedily)
    kept_out = (0 if number in numbers else count for number, count in enumerate(pods))
    purchase.left = list(map(operator.add, purchase.left, kept_out))
    return purchase


def _charge(purchase: Purchase, ledger: Ledger) -> None:
    # Nodes of one type are charged alike, and often there are many loads of it.
    charges: dict[tuple[str, Resources], int] = {}
    for load, times in purchase.loads:
        key = load.offered.pool.name, load.charge
        charges[key] = charges.get(key, 0) + times
    for (pool, charge), times in charges.items():
        ledger.charge(pool, charge, times)


def _by_tier(
    fillers: Sequence[Filler], offered_types: Sequence[OfferedType], pods: Sequence[int], ledger: Ledger, buy: BuyInTier
) -> Purchase:
    purchase, ledger = Purchase(left=list(pods)), ledger.copy()
    tiers: dict[tuple[int, bool], list[OfferedType]] = {}
    for offered in offered_types:
        tiers.setdefault((-offered.pool.weight, not offered.reservation), []).append(offered)
    for _, tier in sorted(tiers.items(), key=lambda each: each[0]):
        for filler in fillers:
            if not any(purchase.left):
                break
            bought = buy(filler, tier, purchase.left, ledger)
            _charge(bought, ledger)
            purchase.loads.extend(bought.loads)
            purchase.left, purchase.notes = bought.left, tuple(dict.fromkeys((*purchase.notes, *bought.notes)))
            purchase.binding = (purchase.binding or frozenset()) | (bought.binding or frozenset())
    return purchase


def _buy_greedily(filler: Filler, tier: Sequence[OfferedType], left: Sequence[int], ledger: Ledger) -> Purchase:
    ordered = sorted(tier, key=lambda c: c.order)
    return full_nodes(filler, ordered, values_of(filler, ordered, left), left, ledger, FillRule(cheapest_per_value))


def _buy_in_tier(
    filler: Filler,
    tier: Sequence[OfferedType],
    left: Sequence[int],
    ledger: Ledger,
    *,
    effort: Effort,
) -> Purchase:
    """The cheapest nodes, chosen as if there were no limits where these allow it."""
    wanted = asked_by(filler, tier, left) if limits_of(tier, ledger) else {}
    return within_limits(tier, ledger, wanted, partial(_cheapest_in_tier, filler, left, effort))


def _cheapest_in_tier(
    filler: Filler, left: Sequence[int], effort: Effort, tier: Sequence[OfferedType], ledger: Ledger
) -> Purchase:
    useful = undominated(filler, tier, left, ledger)
    if not useful:
        return Purchase(left=list(left))
    if suits(filler, useful, left, ledger):
        return mixed(filler, useful, left)
    values = values_of(filler, useful, left)
    chosen = _by_prices(filler, useful, values, left, ledger, effort.rounds, tier)
    settled = [] if chosen is None else [_settled(filler, useful, chosen.purchase, ledger)]
    if chosen is not None and settled:
        settled[0].notes = _notes(filler, left, chosen, effort.rounds)
    # By minValues a claim names types, too, that are not worth buying.
    rivals = tier if filler.keeps_choice else useful
    work = sum(left) * len(rivals)
    if chosen is not None and chosen.is_within(_CLOSE):
        if work <= _MOST_COMPARED and effort.compares and not chosen.is_within(1):
            more = [_settled(filler, useful, each, ledger) for each in _as_first_fit(filler, rivals, left, ledger)]
            notes, settled = settled[0].notes, [min([*settled, *more], key=lambda purchase: purchase.rank)]
            settled[0].notes = notes
        settled[0].notes = (*settled[0].notes, *_far(settled[0], chosen))
        return settled[0]
    best = full_nodes(filler, useful, values, left, ledger, FillRule(cheapest_per_value))
    if len(useful) == 1 and sum(map(bool, left)) == 1:
        # Full nodes are the fewest of a type that hold equal pods.
        return best
    is_far = chosen is None or not chosen.is_within(_FAR)
    tries = [full_nodes(filler, useful, values, left, ledger, FillRule(fullest))] if sum(best.left) else []
    is_compared = effort.compares and work <= (_MOST_COMPARED_FAR if is_far else _MOST_COMPARED)
    if is_far and effort.compares and len(useful) <= _MOST_SINGLE_TYPES:
        promising = _promising(filler, useful, left, best)
        tries += [full_nodes(filler, [only], values, left, ledger, FillRule(cheapest_per_value)) for only in promising]
        if work <= _MOST_COMPARED:
            tries += [bought for only in promising for bought in _as_first_fit(filler, [only], left, ledger)]
    if is_compared:
        tries += _as_first_fit(filler, rivals, left, ledger)
    tries += _parted(filler, useful, left, ledger)
    settled.append(_settled(filler, useful, min([best, *tries], key=_preference), ledger))
    found = min(settled, key=_preference)
    found.notes = (*_notes(filler, left, chosen, effort.rounds), *_far(found, chosen))
    if is_far and effort.compares and not is_compared:
        found.notes = (*found.notes, NotCompared(sum(left), len(useful)))
    return found


def _notes(filler: Filler, left: Sequence[int], chosen: Priced | None, rounds: int) -> tuple[Cause, ...]:
    """For how many of the pods prices cannot choose nodes."""
    if chosen is not None:
        return ((SolverFailed(),) if chosen.has_failed else ()) + _left_out(filler, left)
    kinds, most = sum(1 for count in left if count), most_kinds(rounds)
    return (TooManyKinds(kinds, most),) if kinds > most else ()


def _far(found: Purchase, chosen: Priced | None) -> tuple[Cause, ...]:
    """How far from what is proven the nodes are, where prices could choose for all pods and that is much."""
    if chosen is None or chosen.proven_micro <= 0:
        return ()
    homeless, price_micro, _ = found.rank
    if homeless != chosen.homeless or price_micro <= chosen.proven_micro * _FAR:
        return ()
    parts_micro = round(chosen.parts_micro) if chosen.parts_micro > 0 else None
    pods = sum(load.pods * times for load, times in found.loads)
    return (FarFromBound(pods, price_micro, round(chosen.proven_micro), parts_micro),)


def _promising(filler: Filler, useful: Sequence[OfferedType], left: Sequence[int], best: Purchase) -> list[OfferedType]:
    """The types of which nodes alone might hold as many of the pods as the best purchase for no more.

    Of each a node is full of cpu and memory at the most, and of pods of one shape with as many as it holds alone.
    """
    numbers = np.flatnonzero(np.array(left) > 0)
    pods, held = np.array(left)[numbers], filler.held_by(useful, numbers)
    rows = filler.holding.rows(useful)
    nodes = np.where(held > 0, -(-pods // np.maximum(held, 1)), 0).max(axis=1, initial=0).astype(np.float64)
    for name in (CPU, MEMORY):
        asked = np.where(held > 0, pods.astype(np.float64) * filler.asked(name)[numbers], 0.0).sum(axis=1)
        has = np.maximum(filler.holding.amounts(name)[rows], 1).astype(np.float64)
        nodes = np.maximum(nodes, np.ceil(asked / has / MARGIN))
    homeless = np.where(held > 0, 0, pods).sum(axis=1).tolist()
    unserved, price_micro, _ = best.rank
    found = []
    for offered, count, missing in zip(useful, nodes.tolist(), homeless, strict=True):
        if (missing, int(count) * price_of(offered)) <= (unserved, price_micro):
            found.append(offered)
    return found


def _preference(purchase: Purchase) -> tuple[int, int, int, bool]:
    """Sort key, the best first: by `rank`; of equals what the scheduler fills by itself as planned in any order.

    That are nodes of one type with pods of one kind (`buy.following`).
    """
    held = {(id(load.offered), tuple(number for number, _ in load.held)) for load, _ in purchase.loads}
    return *purchase.rank, len(held) > 1 or any(len(numbers) > 1 for _, numbers in held)


def _left_out(filler: Filler, left: Sequence[int]) -> tuple[Cause, ...]:
    """How many of the pods prices cannot choose nodes for, although they do for others."""
    apart = ports = 0
    for shape, count in zip(filler.shapes, left, strict=True):
        if shape.crowding is not UNCROWDED:
            apart += count
        elif shape.spec.host_ports:
            ports += count
    return (FilledOneByOne(apart, ports),) if apart or ports else ()


def _settled(filler: Filler, useful: Sequence[OfferedType], purchase: Purchase, ledger: Ledger) -> Purchase:
    """The same on cheaper types, where these hold the same pods."""
    limited = frozenset(offered.pool.name for offered in useful if ledger.limit(offered.pool.name) is not None)
    question = "cheapest", filler.holding.rows(useful).tobytes(), limited
    purchase.loads = [(_cheapest_holder(filler, useful, load, question), times) for load, times in purchase.loads]
    return purchase


def _by_prices(
    filler: Filler,
    useful: Sequence[OfferedType],
    values: Sequence[int],
    left: Sequence[int],
    ledger: Ledger,
    rounds: int,
    tier: Sequence[OfferedType],
) -> Priced | None:
    """What prices choose, and full nodes for the rest; None where prices are of no use."""
    chosen = priced(filler, useful, left, ledger, most_rounds=rounds, tier=tier)
    if chosen is None or not any(chosen.purchase.left):
        return chosen
    purchase, spent = chosen.purchase, ledger.copy()
    _charge(purchase, spent)
    rest = full_nodes(filler, useful, values, purchase.left, spent, FillRule(cheapest_per_value))
    return replace(chosen, purchase=Purchase([*purchase.loads, *rest.loads], rest.left))


def _as_first_fit(
    filler: Filler, offered_types: Sequence[OfferedType], left: Sequence[int], ledger: Ledger
) -> list[Purchase]:
    """What Karpenter would buy, where that keeps to the limits; else nothing."""
    purchase = first_fit(filler.shapes, offered_types, ledger.copy(), left, relaxes=not filler.keeps_choice)
    return [purchase] if allows(ledger, purchase) else []


def _parted(
    filler: Filler, offered_types: Sequence[OfferedType], left: Sequence[int], ledger: Ledger
) -> list[Purchase]:
    """The cheapest of all ways to part few pods among nodes; nothing where they are many, or break a limit."""
    if len(offered_types) * math.prod(count + 1 for count in left) > _MOST_SETS:
        return []
    purchase = cheapest_partition(filler, offered_types, left)
    return [purchase] if allows(ledger, purchase) else []


def _cheapest_holder(
    filler: Filler, offered_types: Sequence[OfferedType], load: Load, question: tuple[str, bytes, frozenset[str]]
) -> Load:
    """The same pods on a cheaper type of the same pool that charges no limit more, where there is one.

    The `question` names the types, and which of their pools are limited; where none of them is, that is remembered of
    all nodes that are filled so.
    """
    findings = None if filler.keeps_choice else load.findings
    if findings is not None and question in findings:
        return load
    numbers, counts = np.array(load.held, dtype=np.int64).reshape(-1, 2).T
    # A node that holds too few pods of some shape alone does not hold them all.
    able = np.all(filler.held_by(offered_types, numbers) >= counts, axis=1)
    for offered, is_able in zip(offered_types, able, strict=True):
        if offered.price_micro >= load.offering.price_micro:
            break
        if not is_able or offered.pool.name != load.offered.pool.name:
            continue
        if offered.reservation != load.offered.reservation:
            continue
        if load.offered.pool.name in question[2] and offered.capacity.shortfall(load.offered.capacity):
            continue
        if not filler.keeps_choice and filler.takes_alike(offered, load) is False:
            continue
        held = filler.fill(offered, load.counts) if filler.keeps_choice else filler.fill_alike(offered, load)
        if held is not None and held.held == load.held and held.offering.price_micro < load.offering.price_micro:
            return held
    if findings is not None:
        findings[question] = None
    return load
