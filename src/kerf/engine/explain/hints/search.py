"""The smallest change that helps, tried before it is said: one thing, or two or three together where each blocks.

A change that lets a pod past one check may meet the next. So every change is bought for again, and where one alone does
not do, what then stands in the way is changed too.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from kerf.engine.buy.filling import Purchase
from kerf.engine.buy.limits import Ledger
from kerf.engine.decision import Buy, Evidence
from kerf.engine.explain.causes import counted_launches, lost_text
from kerf.engine.explain.hints import advise
from kerf.engine.explain.hints.further import further
from kerf.engine.explain.hints.groups import is_of_limits, limits_of
from kerf.engine.explain.hints.limits import is_searched
from kerf.engine.explain.hints.situation import MOST_WORLDS, Advice, Change, Situation, with_pool
from kerf.engine.explain.misses import misses
from kerf.engine.pacing import launches_left
from kerf.engine.place.fit import fit
from kerf.engine.place.shapes import Shape
from kerf.engine.place.weights import weight_of
from kerf.engine.supply.offered import OfferedType
from kerf.engine.world import World
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Misfit, Patch
from kerf.model.pods import Pod, PodSpec
from kerf.model.quantities import Resources

_BREADTHS = (4, 2, 2)
"""How many changes are tried first, beside each of these that does not do, and beside both."""
_BY_NAME = {"containers": "name", "initContainers": "name", "topologySpreadConstraints": "topologyKey"}
ALONE = ", which alone does not help"
NOTHING = f"{ALONE}; Kerf found no change that does"


@dataclass(frozen=True, eq=False)
class _Tried:
    """A change as it turned out: `served` of the pods it is for get a place with it, in a situation that it makes.

    `pace` says which pools launch too few nodes a minute for all of them to come at once; empty for none. `lost` are
    other pods that had a place and have none with it.
    """

    advice: Advice
    shape: Shape
    situation: Situation
    served: int
    pace: str = ""
    lost: tuple[str, ...] = ()

    @property
    def is_harmless(self) -> bool:
        """Whether all of the pods get a place, and no other loses its own."""
        return self.served == len(self.shape) and not self.lost


def smallest(shape: Shape, worst: Misfit, situation: Situation) -> Advice:
    """What would help pods of the shape: the change that the nearest miss asks for, else another one, else several.

    Where none places all of them, the one that places most; where none places any, words that say so. Each try is a
    purchase; once there are none left the hint comes untried and without its patch.
    """
    first = advise(shape, worst, situation)
    start = _Tried(Advice(), shape, situation, 0)
    untried, of_no_use = (
        (Advice(first.hint), Advice(first.hint, extent=NOTHING)) if first.can_be_tried else (first, first)
    )

    def changes(held: _Tried, number: int, breadth: int) -> Iterator[Advice]:
        if number == 0 and not first.can_be_tried:
            return islice(_further((worst,), held), breadth)
        return _changes(held, breadth, first if number == 0 else None)

    level, best = [start], start
    for number, breadth in enumerate(_BREADTHS):
        following: list[_Tried] = []
        for held in level:
            for advice in changes(held, number, breadth):
                found = _tried(held, advice)
                if found is None:
                    return _said(best, shape) if best.served else untried
                if found.is_harmless:
                    return _said(found, shape)
                best = max(best, found, key=_rank)
                following.append(found)
        if best.served == len(shape):
            break
        level = following[:breadth]
    return _said(best, shape) if best.served else of_no_use


def _further(refused: Iterable[Misfit], held: _Tried) -> Iterator[Advice]:
    """More for the same misfits and for the nearest node."""
    for misfit in refused:
        yield from further(misfit, held.shape, held.situation)
    on_node = held.situation.evidence.trial.nearest(held.shape)
    if on_node is not None:
        yield from further(on_node, held.shape, held.situation)


def _said(best: _Tried, shape: Shape) -> Advice:
    """How many of the pods it places where it is not all, and who loses a place."""
    places = "" if best.served == len(shape) else f"; that places {best.served} of these {len(shape)} pods"
    return replace(
        best.advice, extent=f"{places}{best.pace}", effect=lost_text(best.lost), is_partial=best.served < len(shape)
    )


def _rank(tried: _Tried) -> tuple[int, int]:
    """Sort key, the best last: pods that get a place, pods that lose theirs."""
    return tried.served, -len(tried.lost)


def _changes(held: _Tried, breadth: int, first: Advice | None) -> Iterator[Advice]:
    """What could be changed next, that of the nearest miss first, each once; the last one may exchange models of GPU.

    A pod that asks for a model is led to another only where nothing else does.
    """
    said, exchanges = list[Advice](), list[Advice]()
    for advice in chain(() if first is None else (first,), _advised(held)):
        if len(said) + bool(exchanges) == breadth:
            break
        if not advice.can_be_tried or any(map(advice.changes_as, (*said, *exchanges))):
            continue
        if advice.is_exchange:
            exchanges.append(advice)
            continue
        said.append(advice)
        yield advice
    yield from exchanges[: breadth - len(said)]


def _advised(held: _Tried) -> Iterator[Advice]:
    """What helps against each of the misses, then more for the same."""
    refused = misses(held.shape, held.situation.evidence)
    yield from (advise(held.shape, misfit, held.situation) for misfit in refused)
    yield from _further(refused, held)


def _tried(held: _Tried, advice: Advice) -> _Tried | None:
    """The pods with the change, first on nodes there are, then on bought ones; None where there is no try left."""
    situation = held.situation
    evidence = situation.evidence
    if not situation.tries.take(len(evidence.world.supply.available) * weight_of(held.shape.spec)):
        return None
    world = evidence.world if advice.pool is None else with_pool(advice.pool, situation)
    changed, trial = held.shape, evidence.trial
    waiting: tuple[Pod, ...] = changed.pods
    if advice.spec is not None:
        changed, trial = _with_spec(held.shape, advice.spec), trial.copy()
        waiting = trial.place(changed)[1]
    both = joined(held.advice, advice)
    if not waiting:
        return _Tried(both, changed, situation, len(changed))
    shapes, at = _to_buy_for(situation, held.shape, waiting)
    before = Ledger(world.snapshot.node_pools, _used(situation, world))
    after, buy = before.copy(), evidence.buy if world is evidence.world else evidence.buy_in(world)
    launches: Counter[str] = Counter()
    if is_searched(situation):
        if waiting is held.shape.pods:
            purchase, after = _bought(situation, world, buy, before)
        else:
            purchase = buy(shapes, world.supply.available, after)
        left = purchase.left
        for load, times in purchase.loads:
            launches[load.offered.pool.name] += times
        lost = _lost(shapes, left, at, situation.left)
    else:
        taker = _taker(shapes[0], world, after)
        left, lost = [len(shapes[0]) if taker is None else 0], ()
        # How many nodes they would need is not known here, so the pace is named where it could be in the way.
        launches.update({} if taker is None else {taker.pool.name: len(shapes[0])})
    again = Evidence(world, trial, before, after, shapes, tuple(left), buy)
    return _Tried(
        both,
        changed,
        Situation(again, situation.tries, worlds=situation.worlds, first_left=situation.left),
        len(changed) - min(left[at], len(changed)),
        _pace(launches, world),
        lost,
    )


def _bought(situation: Situation, world: World, buy: Buy, before: Ledger) -> tuple[Purchase, Ledger]:
    """What is bought in the world for the pods as they are, and the limits then: once, whichever of them ask."""
    for known, purchase, after in situation.bought:
        if known is world:
            return purchase, after
    after = before.copy()
    purchase = buy(situation.shapes, world.supply.available, after)
    situation.bought.append((world, purchase, after))
    del situation.bought[:-MOST_WORLDS]
    return purchase, after


def _lost(shapes: Sequence[Shape], left: Sequence[int], at: int, before: Sequence[int]) -> tuple[str, ...]:
    """The pods of other shapes that are left over and were not; the last ones of a shape are."""
    return tuple(
        pod.key
        for number, shape in enumerate(shapes)
        if number != at and left[number] > before[number]
        for pod in shape.pods[len(shape) - left[number] : len(shape) - before[number]]
        if not is_virtual(pod.key)
    )


def _pace(launches: Mapping[str, int], world: World) -> str:
    """What is said of the pools that must make more launches than they may now."""
    paces = {name: left for name, left in launches_left(world.snapshot, launches).items() if left[0] < launches[name]}
    return "".join(
        f"; NodePool {name} makes {counted_launches(per_minute)} a minute"
        for name, (_, per_minute) in sorted(paces.items())
    )


def _taker(shape: Shape, world: World, ledger: Ledger) -> OfferedType | None:
    """A type that takes one of the pods, can be bought, and is within its limits: a look in place of a purchase."""
    for offered in world.supply.available:
        if ledger.room_for(offered) == 0:
            continue
        result = fit(offered.target, offered.room, shape)
        if not isinstance(result, Misfit) and offered.offering_for(result.room.requirements) is not None:
            return offered
    return None


def _with_spec(shape: Shape, spec: PodSpec) -> Shape:
    return Shape(tuple(replace(pod, spec=spec) for pod in shape.pods))


def _to_buy_for(situation: Situation, shape: Shape, waiting: tuple[Pod, ...]) -> tuple[tuple[Shape, ...], int]:
    """All that is to be bought for, with these pods in place of the shape's, and where they are in it.

    Where that is too much to buy again for each try, these alone: one of them is looked at, beside what was bought.
    """
    if not is_searched(situation):
        return (Shape(waiting),), 0
    keys, found, at = {pod.key for pod in shape.pods}, list[Shape](), 0
    for number, each in enumerate(situation.shapes):
        others = tuple(pod for pod in each.pods if pod.key not in keys)
        if len(others) == len(each):
            found.append(each)
            continue
        at, spec = number, waiting[0].spec
        # As long as the pods ask the same, they stay in the domain that they have by others.
        asked = each.asked if spec is each.pods[0].spec else None
        found.append(Shape((*(replace(pod, spec=spec) for pod in others), *waiting), asked))
    return tuple(found), at


def _used(situation: Situation, world: World) -> dict[str, Resources]:
    ledger = situation.before if is_searched(situation) else situation.after
    return {pool.name: ledger.used(pool.name) for pool in world.snapshot.node_pools}


def joined(one: Advice, other: Advice) -> Advice:
    """Both changes as one, which helps as far as the other does.

    The patch of what makes the pod comes first, then those of pools. A limit that the other raises further is said
    once.
    """
    if one.is_words:
        return other
    parts = (*(each for each in one.parts or (one,) if not _is_of_same_limits(each, other)), other)
    patches: dict[tuple[str, str], Patch] = {}
    for patch in filter(None, (patch for each in parts for patch in (each.patch, *each.more))):
        held = patches.get((patch.kind, patch.name))
        change = patch.change if held is None else merged(held.change, patch.change)
        patches[patch.kind, patch.name] = replace(patch, change=change)
    ordered = tuple(sorted(patches.values(), key=lambda patch: patch.kind == "NodePool"))
    return replace(
        other,
        hint="; and ".join(each.hint for each in parts),
        patch=ordered[0] if ordered else None,
        change=merged(one.change, other.change),
        pool=other.pool or one.pool,
        spec=other.spec or one.spec,
        more=ordered[1:],
        effect="",
        parts=parts,
    )


def _is_of_same_limits(one: Advice, other: Advice) -> bool:
    """Whether all that it changes are limits of a pool that the other sets, too."""
    if one.patch is None or other.patch is None or one.more or one.spec is not None:
        return False
    same = is_of_limits(one.patch) and one.patch.name == other.patch.name
    return same and limits_of(one.patch).keys() <= limits_of(other.patch).keys()


def merged(one: Change, other: Change) -> Change:
    """Both merge patches as one, containers and the like by their names; where both set a value, that of the other."""
    result = dict(one)
    for key, value in other.items():
        held = result.get(key)
        if isinstance(held, Mapping) and isinstance(value, Mapping):
            result[key] = merged(held, value)
        elif key in _BY_NAME and isinstance(held, list) and isinstance(value, list):
            result[key] = _by_name(held, value, _BY_NAME[key])
        else:
            result[key] = value
    return result


def _by_name(one: Sequence[Change], other: Sequence[Change], name: str) -> list[Change]:
    """Entries of both, each once."""
    found = {each[name]: each for each in one}
    for each in other:
        found[each[name]] = merged(found.get(each[name], {}), each)
    return list(found.values())
