"""Instance types that would take a pod: larger ones, those a price cap keeps out, those that are misspelt."""

from dataclasses import replace
from itertools import chain

from kerf.engine.explain.hints.models import of_pool
from kerf.engine.explain.hints.situation import (
    Advice,
    Situation,
    changing_pool,
    requirements_of,
    takers,
    with_requirement,
)
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.offered import OfferedType
from kerf.model.causes import Cause, Insufficient, NoCards, ShownOtherwise, TypeUnknown
from kerf.model.constraints import ARCH, INSTANCE_TYPE, Requirement, Toleration
from kerf.model.instancetypes import price_text
from kerf.model.nodepool import NodePool
from kerf.model.plan import Misfit, Patch
from kerf.sharing.hami.shortage import CoresShort, MemoryShort, ProfilesTooSmall, TooFewCards
from kerf.sharing.nvidia.partitions import TooFewParts
from kerf.sharing.nvidia.whole import TooFewGpus
from kerf.sharing.vendors import title_of

_OF_SIZE = (CoresShort, MemoryShort, ProfilesTooSmall, TooFewCards, TooFewGpus, TooFewParts)
"""What keeps a pod from cards that are there because it asks for more than they have."""
_OF_NVIDIA, _NONE_SOLD = "nvidia.com/", "no instance type that is sold here"
ANY_TAINT = (Toleration("", "Exists"),)
"""Tolerations of a pod that no taint keeps off."""


def allow_larger_type(pool: NodePool, misfit: Misfit, shape: Shape, situation: Situation) -> Advice:
    """The cheapest type of the whole market that would take the pod, were it allowed in the pool.

    Where the pool names no types, words: those about size only where size is the cause.
    """
    named = pool.requirements.get(INSTANCE_TYPE)
    if named is None or named.complement:
        return Advice(_without(pool, misfit, situation))
    opened = replace(pool, requirements=pool.requirements.without((INSTANCE_TYPE,)))
    # A pod's image is built for one architecture: stay with that of the types that are allowed now.
    known = architectures(pool, situation)
    found = takers(shape, opened, situation)
    if found is None:
        # Of types that were not looked at nothing is known.
        return Advice("")
    large = [each for each in found if each.kind.requirements[ARCH].values & known]
    if not large and _is_shown_otherwise(misfit.cause):
        return Advice(_without(pool, misfit, situation))
    if not large:
        if isinstance(misfit.cause, Insufficient) and not _is_anywhere(misfit.cause.worst.resource, situation):
            return Advice(_sold_nowhere(_NONE_SOLD, misfit.cause.worst.resource))
        less = "; ask for less" if isinstance(misfit.cause, (Insufficient, *_OF_SIZE)) else ""
        return Advice(f"{_NONE_SOLD} takes the pod{less}")
    return allowing(pool, min(large, key=lambda c: c.order), situation)


def _without(pool: NodePool, misfit: Misfit, situation: Situation) -> str:
    """What all types that the pool allows lack; empty where the reason has said it."""
    cause, allows = misfit.cause, f"no instance type that NodePool {pool.name} allows"
    match cause:
        case NoCards():
            return f"{allows} has a GPU; allow one that has"
        case ShownOtherwise(worst):
            return f"no node of NodePool {pool.name} shows {worst.resource}: its GPUs are shown as {cause.shown}"
        case Insufficient(worst, cards=TooFewParts(there=0, shown=shown)) if shown:
            return f"no node of NodePool {pool.name} shows {worst.resource}: its GPUs are shown as {', '.join(shown)}"
        case Insufficient(worst):
            offered = situation.supply.by_pool.get(pool.name, ())
            most = max((each.shown.get(worst.resource, 0) for each in offered), default=0)
            if most >= worst.needed > 0:
                return f"{allows} has room for all that the pod asks; ask for less or allow others"
            if not most:
                if _is_anywhere(worst.resource, situation):
                    return f"{allows} has {worst.resource}; allow one that has"
                return _sold_nowhere(allows, worst.resource)
        case TooFewParts(there=0):
            return ""
        case _ if not isinstance(cause, _OF_SIZE):
            return ""
    return f"{allows} is large enough; ask for less or allow others"


def _is_shown_otherwise(cause: Cause) -> bool:
    """Whether the cards are there, and the pool's nodes show them by another name whatever their type."""
    is_by_parts = isinstance(cause, Insufficient) and isinstance(cause.cards, TooFewParts) and not cause.cards.there
    return isinstance(cause, ShownOtherwise) or is_by_parts


def _is_anywhere(resource: str, situation: Situation) -> bool:
    """Whether a type that is sold, or that some pool offers, has any of a resource."""
    elsewhere = (each.shown for offered in situation.supply.by_pool.values() for each in offered)
    capacities = (kind.capacity for kind in situation.market.types)
    return any(each.get(resource, 0) for each in chain(elsewhere, capacities))


def _sold_nowhere(subject: str, resource: str) -> str:
    """That no type has a resource by the catalogue, whose it is, and how Kerf can learn of types that have it."""
    title = title_of(resource)
    whole = f"{resource} ({title})" if title else resource
    text = f"{subject} has {whole}" + ("" if subject == _NONE_SOLD else ", and none is sold")
    if "/" not in resource or resource.startswith(_OF_NVIDIA):
        return text
    return f"{text}, by the catalogue; where one has it, a NodeOverlay with that capacity says so"


def allow_type_with(asked: Requirement, pool: NodePool, shape: Shape, situation: Situation) -> Advice | None:
    """The cheapest type with the label that a pod asks, where the pool names types that have another value of it.

    Taints aside, it takes the pod. None where the pool names no types, or none is sold that does.
    """
    named = pool.requirements.get(INSTANCE_TYPE)
    if named is None or named.complement or asked.key == INSTANCE_TYPE:
        return None
    opened = replace(pool, requirements=pool.requirements.without((INSTANCE_TYPE,)))
    tolerant = Shape((replace(shape.pod, spec=replace(shape.spec, tolerations=ANY_TAINT)),))
    found = sorted(takers(tolerant, opened, situation) or (), key=lambda each: each.order)
    known = architectures(pool, situation)
    same = [each for each in found if each.kind.requirements[ARCH].values & known]
    if not found:
        return None
    advice = allowing(pool, (same or found)[0], situation)
    # A pod that asks for an architecture has an image for it.
    return advice if same or asked.key == ARCH else replace(advice, hint=f"{advice.hint}, if the images run there")


def architectures(pool: NodePool, situation: Situation) -> set[str]:
    """Those of the types that the pool names and that are sold; none where it names no types."""
    named = pool.requirements.get(INSTANCE_TYPE)
    names = () if named is None or named.complement else sorted(named.values)
    known = (kind for name in names if (kind := situation.market.find(name, pool.node_class)) is not None)
    return {value for kind in known for value in kind.requirements[ARCH].values}


def allowing(pool: NodePool, best: OfferedType, situation: Situation) -> Advice:
    """The type in the list of a pool that names its types."""
    named = pool.requirements[INSTANCE_TYPE]
    memory = f" with {best.kind.devices[0].memory_mib} MiB a GPU" if best.kind.devices else ""
    price = f"{price_text(best.price_micro)} {situation.market.currency}/h"
    hint = f"allow instance type {best.kind.name} ({price}){memory} in NodePool {pool.name}"
    hint += of_pool(pool, (best.kind,), situation.evidence.world)
    widened = with_requirement(pool, replace(named, values=frozenset({*named.values, best.kind.name})))
    return changing_pool(hint, widened, {"template": {"spec": {"requirements": requirements_of(widened)}}})


def raise_cap(pool: NodePool, name: str, situation: Situation) -> Advice:
    """The least cap under which the pool offers the type of that name; on the template where that states it."""
    refused = next((c for c in situation.supply.unavailable if (c.pool.name, c.kind.name) == (pool.name, name)), None)
    if refused is None:
        return Advice()
    needed = pool.bounds.needed_for(refused.kind, refused.over_price_cap[0])
    stated = ", ".join(f'{key}: "{value}"' for key, value in needed.items())
    hint = f"{stated} is the least cap of NodePool {pool.name} that lets {name} in; or allow a cheaper instance type"
    on_template = {key: value for key, value in needed.items() if key in pool.annotations}
    on_pool = {key: value for key, value in needed.items() if key not in pool.annotations}
    raised = replace(
        pool, annotations={**pool.annotations, **on_template}, own_annotations={**pool.own_annotations, **on_pool}
    )
    change: dict[str, object] = {"metadata": {"annotations": on_pool}} if on_pool else {}
    if on_template:
        change["spec"] = {"template": {"metadata": {"annotations": on_template}}}
    return Advice(hint, Patch("NodePool", pool.name, change), pool=raised)


def spell_right(pool: NodePool, unknown: TypeUnknown) -> Advice:
    """An instance type that is not sold, and the known name that is nearest."""
    wrong, right = unknown.instance_type, unknown.nearest
    named = pool.requirements.get(INSTANCE_TYPE)
    if named is None or wrong not in named.values:
        fixed = replace(pool, labels={**pool.labels, INSTANCE_TYPE: right})
        hint = f"write {right} instead of {wrong} among the labels of the template of NodePool {pool.name}"
        return changing_pool(hint, fixed, {"template": {"metadata": {"labels": {INSTANCE_TYPE: right}}}})
    values = (named.values - {wrong}) | {right}
    fixed = with_requirement(pool, replace(named, values=frozenset(values)))
    change = {"template": {"spec": {"requirements": requirements_of(fixed)}}}
    hint = f"write {right} instead of {wrong} in NodePool {pool.name}"
    return changing_pool(hint, fixed, change)
