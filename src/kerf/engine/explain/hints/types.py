"""Instance types that would take a pod: larger ones, those a price cap keeps out, those that are misspelt."""

from dataclasses import replace

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
from kerf.model.causes import TypeUnknown
from kerf.model.constraints import ARCH, INSTANCE_TYPE, Requirement, Toleration
from kerf.model.instancetypes import price_text
from kerf.model.nodepool import NodePool
from kerf.model.plan import Patch

ANY_TAINT = (Toleration("", "Exists"),)
"""Tolerations of a pod that no taint keeps off."""


def allow_larger_type(pool: NodePool, shape: Shape, situation: Situation) -> Advice:
    """The cheapest type of the whole market that would take the pod, were it allowed in the pool."""
    named = pool.requirements.get(INSTANCE_TYPE)
    if named is None or named.complement:
        return Advice(
            f"no instance type that NodePool {pool.name} allows is large enough; ask for less or allow others"
        )
    opened = replace(pool, requirements=pool.requirements.without((INSTANCE_TYPE,)))
    # A pod's image is built for one architecture: stay with that of the types that are allowed now.
    known = architectures(pool, situation)
    large = [c for c in takers(shape, opened, situation) if c.kind.requirements[ARCH].values & known]
    if not large:
        return Advice("no instance type that is sold here holds the pod; ask for less")
    return allowing(pool, min(large, key=lambda c: c.order), situation)


def allow_type_with(asked: Requirement, pool: NodePool, shape: Shape, situation: Situation) -> Advice | None:
    """The cheapest type with the label that a pod asks, where the pool names types that have another value of it.

    Taints aside, it takes the pod. None where the pool names no types, or none is sold that does.
    """
    named = pool.requirements.get(INSTANCE_TYPE)
    if named is None or named.complement or asked.key == INSTANCE_TYPE:
        return None
    opened = replace(pool, requirements=pool.requirements.without((INSTANCE_TYPE,)))
    tolerant = Shape((replace(shape.pod, spec=replace(shape.spec, tolerations=ANY_TAINT)),))
    found = sorted(takers(tolerant, opened, situation), key=lambda each: each.order)
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
    named = pool.requirements[INSTANCE_TYPE]
    values = (named.values - {wrong}) | {right}
    fixed = with_requirement(pool, replace(named, values=frozenset(values)))
    change = {"template": {"spec": {"requirements": requirements_of(fixed)}}}
    hint = f"write {right} instead of {wrong} in NodePool {pool.name}"
    return changing_pool(hint, fixed, change)
