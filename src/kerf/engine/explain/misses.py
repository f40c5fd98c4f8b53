"""Why nothing that could be bought takes a pod: what each type of a pool lacks, and which of them comes nearest.

The checks that refused the pod are asked again of the evidence that the refusal carries.
"""

import difflib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from kerf.engine.buy.filling import charge
from kerf.engine.buy.flexibility import asks, lacking
from kerf.engine.decision import Evidence
from kerf.engine.explain.typelabels import with_all_values
from kerf.engine.place.devices import asks_cards, place_on_devices
from kerf.engine.place.fit import fit, nearest
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.allowed import excluding
from kerf.engine.supply.offered import OfferedType, with_others
from kerf.model import causes
from kerf.model.causes import Cause, Lack, Name, TargetKind, TargetName
from kerf.model.constraints import untolerated
from kerf.model.market import Market
from kerf.model.nodeclaim import COMING_LABELS
from kerf.model.nodepool import NodePool
from kerf.model.plan import Misfit, Stage
from kerf.model.quantities import NODES, Resources


def nearest_in(pool: NodePool, shape: Shape, evidence: Evidence) -> Misfit | None:
    """The pool's answer: its nearest type's misfit; None when it would take the pod after all."""
    refused = misses_in(pool, shape, evidence)
    return nearest(refused) if refused else None


def limit_in(pool: NodePool, shape: Shape, evidence: Evidence) -> Misfit | None:
    """The limit that keeps off pods which the pool would take where a node costs least; None where none does.

    A claim counts the highest price that it may come to, and other pods may keep these from the cheapest domain.
    """
    found = []
    for offered in takers_in(pool, shape, evidence):
        result = fit(offered.target, offered.room, shape)
        offering = None if isinstance(result, Misfit) else offered.offering_for(result.room.requirements)
        if isinstance(result, Misfit) or offering is None:
            continue
        charged = charge(offered, offering, result.room.requirements)
        if exceeded := evidence.after.exceeded_by(offered, charged):
            cause = _limit(exceeded[0], offered, charged, evidence)
            lack = (Lack(cause.more, cause.resource),)
            found.append(Misfit(offered.target.name, Stage.LIMITS, cause, lack, offered.price_micro))
    return nearest(found) if found else None


def takers_in(pool: NodePool, shape: Shape, evidence: Evidence) -> list[OfferedType]:
    """The types of the pool that would take the pod were it alone: they can be bought, and limits let them."""
    if pool.name in dict(evidence.world.supply.pool_problems):
        return []
    offered_types = evidence.world.supply.by_pool.get(pool.name, ())
    return [each for each in offered_types if _misfit(each, shape, evidence) is None]


def misses(shape: Shape, evidence: Evidence) -> list[Misfit]:
    """What the pools lack, the nearest first: of each pool the nearest miss of every cause.

    Pools without a GPU come last where the pods ask for one: another is nearer, whatever keeps it out.
    """
    found: dict[tuple[str, object], Misfit] = {}
    bare = {pool.name for pool in evidence.world.snapshot.node_pools if lacks_cards(pool, shape, evidence)}
    for pool in evidence.world.snapshot.node_pools:
        for misfit in misses_in(pool, shape, evidence):
            key = pool.name, _kind(misfit.cause)
            found[key] = nearest([misfit, found[key]]) if key in found else misfit
    return [found[key] for key in sorted(found, key=lambda key: (key[0] in bare, found[key].order))]


def lacks_cards(pool: NodePool, shape: Shape, evidence: Evidence) -> bool:
    """Whether the pods ask for GPUs and the pool has types, none of which has one."""
    supply = evidence.world.supply
    if not asks_cards(shape, supply.families):
        return False
    held = [*supply.by_pool.get(pool.name, ()), *(c for c in supply.unavailable if c.pool.name == pool.name)]
    return bool(held) and not any(offered.kind.devices for offered in held)


def _kind(cause: Cause) -> object:
    """Causes of one kind have one remedy: of labels one for each key, of limits one for each resource."""
    if isinstance(cause, causes.LabelMismatch):
        return type(cause), cause.asked.key
    return (type(cause), cause.resource) if isinstance(cause, causes.LimitReached) else type(cause)


def misses_in(pool: NodePool, shape: Shape, evidence: Evidence) -> list[Misfit]:
    """Why types of the pool refuse the pod; empty when one that counts would take it after all."""
    supply, where = evidence.world.supply, TargetName(TargetKind.NODE_POOL, Name(pool.name))
    problem = dict(supply.pool_problems).get(pool.name)
    if problem is not None:
        # Were it open, it would still not be for every pod.
        closed = Misfit(where, Stage.OFFERINGS, causes.PoolClosed(Name(pool.name), problem))
        return [_kept_out(pool, shape, where) or closed]
    offered_types = supply.by_pool.get(pool.name, ())
    unavailable = [c for c in supply.unavailable if c.pool.name == pool.name]
    if asks_cards(shape, supply.families) and any(each.kind.devices for each in (*offered_types, *unavailable)):
        offered_types = tuple(each for each in offered_types if each.kind.devices)
        unavailable = [each for each in unavailable if each.kind.devices]
    found = [_misfit(offered, shape, evidence) for offered in _furthest(offered_types, unavailable, shape, evidence)]
    if not found:
        return [Misfit(where, Stage.OFFERINGS, _nothing_offered(pool, evidence))]
    every = (*supply.by_pool.get(pool.name, ()), *unavailable)
    refused = [with_all_values(misfit, pool, every) for misfit in found if misfit is not None]
    # Of a type whose reservation the pods asked for, that is the answer, and not that they ask for no other offering.
    used_up = {each.target for each in refused if isinstance(each.cause, causes.ReservationUsedUp)}
    reasons = with_others([(each.target.instance_type, each.cause) for each in refused])
    refused = [replace(each, cause=cause) for each, cause in zip(refused, reasons, strict=True)]
    return [each for each in refused if each.target not in used_up or isinstance(each.cause, causes.ReservationUsedUp)]


def _kept_out(pool: NodePool, shape: Shape, where: TargetName) -> Misfit | None:
    """What the template of a pool without types says against the pods; None where it would let them in."""
    taint = untolerated(tuple(pool.taints), shape.spec.tolerations)
    if taint is not None:
        return Misfit(where, Stage.TAINTS, causes.UntoleratedTaint(taint), shortfall=1)
    held = pool.template_requirements().intersect(COMING_LABELS)
    clashes = [alternative.conflict(held) for alternative in shape.spec.alternatives_new]
    if clashes[0] is None or not all(clashes):
        return None
    asked = clashes[0][0]
    return Misfit(where, Stage.REQUIREMENTS, causes.LabelMismatch(asked, held.get(asked.key), where), shortfall=2)


def _furthest(
    offered_types: Sequence[OfferedType], unavailable: Sequence[OfferedType], shape: Shape, evidence: Evidence
) -> tuple[OfferedType, ...]:
    """The types of a pool among which the nearest is: where a limit alone keeps a type out, none that is too small.

    Of those that labels or taints refuse in one way there is one. Types that are too small come no further than cards,
    and of those that a limit keeps out the cheapest is nearest.
    """
    holding = evidence.world.holding
    rows = holding.rows(offered_types)
    limited = np.isin(rows, evidence.limited) & (holding.alone(shape, holding.kind(shape))[rows] > 0)
    found, others = np.zeros(0, dtype=np.int64), np.arange(len(rows))
    if limited.any():
        price = min(offered_types[at].price_micro for at in np.flatnonzero(limited).tolist())
        found = np.array([at for at in np.flatnonzero(limited).tolist() if offered_types[at].price_micro == price])
        others = np.flatnonzero(~limited & ~holding.lacking(shape)[rows])
    if not any(map(evidence.after.is_used_up, offered_types)):
        others = others[holding.distinct(shape, rows[others])]
    return (*(offered_types[at] for at in (*found.tolist(), *others.tolist())), *unavailable)


def _misfit(offered: OfferedType, shape: Shape, evidence: Evidence) -> Misfit | None:
    result = fit(offered.target, offered.room, shape)
    if isinstance(result, Misfit):
        return _with_cards(result, offered, shape)
    name, price = offered.target.name, offered.price_micro
    exceeded = evidence.after.exceeded_by(offered)
    if exceeded:
        cause = _limit(exceeded[0], offered, offered.capacity, evidence)
        return Misfit(name, Stage.LIMITS, cause, (Lack(cause.more, cause.resource),), price)
    if evidence.after.is_used_up(offered):
        used_up = causes.ReservationUsedUp(Name(offered.kind.name), Name(offered.reservation))
        return Misfit(name, Stage.OFFERINGS, used_up, shortfall=price)
    if offered.refused is not None:
        above_cap = offered.over_price_cap[0].price_micro if offered.over_price_cap else 0
        return Misfit(name, Stage.OFFERINGS, offered.refused, shortfall=price or above_cap)
    if offered.offering_for(result.room.requirements) is None:
        return Misfit(name, Stage.OFFERINGS, causes.NoOfferingLeft(result.room.requirements), shortfall=price)
    too_few = {} if evidence.relaxes else _too_few(offered, shape, evidence)
    for key, found in too_few.items():
        wanted = offered.pool.min_values[key]
        unmet = causes.MinValuesUnmet(Name(offered.pool.name), Name(key), wanted, found)
        return Misfit(name, Stage.OFFERINGS, unmet, shortfall=wanted - found)
    return None


def _with_cards(misfit: Misfit, offered: OfferedType, shape: Shape) -> Misfit:
    """The misfit with what the cards of the type lack as well: resources are asked for first, and are not all."""
    cause = misfit.cause
    if type(cause) is not causes.Insufficient or not offered.room.devices:
        return misfit
    found = place_on_devices(offered.target, offered.room.devices, shape)
    if not isinstance(found, Misfit) or found.stage != Stage.DEVICES or not found.missing:
        return misfit
    # Parts of cards that the plugin shows under a name are lacking as that resource already.
    missing = tuple(dict.fromkeys((*misfit.missing, *found.missing)))
    return replace(misfit, cause=replace(cause, cards=found.cause), missing=missing)


def _too_few(offered: OfferedType, shape: Shape, evidence: Evidence) -> dict[str, int]:
    """By label how many values the types have that hold a pod and that limits allow, where they are too few."""
    if not asks(offered):
        return {}
    held = [
        each.kind
        for each in evidence.world.supply.by_pool[offered.pool.name]
        if not evidence.after.exceeded_by(each) and not isinstance(fit(each.target, each.room, shape), Misfit)
    ]
    return lacking(offered.pool, held)


def _limit(resource: str, offered: OfferedType, charged: Resources, evidence: Evidence) -> causes.LimitReached:
    """The limit with its figures: what it is, what is in use, what this plan adds, what one more node needs."""
    pool = offered.pool.name
    limit = (evidence.after.limit(pool) or Resources()).get(resource, 0)
    used = evidence.before.used(pool).get(resource, 0)
    counted = evidence.after.used(pool).get(resource, 0) - used
    more = 1 if resource == NODES else charged[resource]
    planned = counted - evidence.after.kept_free(pool).get(resource, 0)
    # Where there is room beside what is planned, larger types that the cloud may take are what is in the way.
    planned = planned if used + planned + more > limit else counted
    cards = len(offered.kind.devices) if resource in offered.target.family.kubelet_capacity(offered.room.devices) else 0
    return causes.LimitReached(Name(pool), Name(resource), limit, used, planned, more, cards if cards != more else 0)


def _nothing_offered(pool: NodePool, evidence: Evidence) -> Cause:
    """No type of the market passes the pool's requirements: name the culprit, a type where it names types."""
    market = evidence.world.market
    if not pool.named_types:
        found = evidence.world.supply.part(pool).unsatisfiable
        return causes.NoTypeMatches(Name(pool.name), found.asked, found.labels)
    known = tuple(kind.name for kind in market.types_of(pool.node_class))
    return causes.NamedTypesUnusable(
        Name(pool.name), tuple(_unusable(Name(name), pool, market, known) for name in sorted(pool.named_types))
    )


def _unusable(name: Name, pool: NodePool, market: Market, known: tuple[str, ...]) -> Cause:
    kind = market.find(name, pool.node_class)
    if kind is not None:
        found = excluding(pool, kind)
        return causes.TypeUnmatched(name, found.asked, found.labels)
    if name in market.not_sold:
        return causes.TypeNotSold(name, causes.Quoted(market.not_sold[name]))
    return causes.TypeUnknown(name, Name(_nearest(name, known)))


@lru_cache(maxsize=256)
def _nearest(name: str, known: tuple[str, ...]) -> str:
    """The known name that is most like this one; empty where none is. Each refused shape of a pool asks it again."""
    return next(iter(difflib.get_close_matches(name, known, 1)), "")
