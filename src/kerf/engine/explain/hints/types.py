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
from kerf.model.constraints import ARCH, INSTANCE_TYPE
from kerf.model.instancetypes import price_text
from kerf.model.nodepool import NodePool
from kerf.model.plan import Patch


def allow_larger_type(pool: NodePool, shape: Shape, situation: Situation) -> Advice:
    """The cheapest type of the whole market that would take the pod, were it allowed in the pool."""
    named = pool.requirements.get(INSTANCE_TYPE)
    if named is None or named.complement:
        return Advice(
            f"no instance type that NodePool {pool.name} allows is large enough; ask for less or allow others"
        )
    opened = replace(pool, requirements=pool.requirements.without((INSTANCE_TYPE,)))
    # A pod's image is built for one architecture: stay with that of the types that are allowed now.
    allowed = [
        kind for name in sorted(named.values) if (kind := situation.market.find(name, pool.node_class)) is not None
    ]
    architectures = {value for kind in allowed for value in kind.requirements[ARCH].values}
    large = [c for c in takers(shape, opened, situation) if c.kind.requirements[ARCH].values & architectures]
    if not large:
        return Advice("no instance type that is sold here holds the pod; ask for less")
    return allowing(pool, min(large, key=lambda c: c.order), situation)


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
    """An instance type that nobody sells, and the known name that is nearest."""
    wrong, right = unknown.instance_type, unknown.nearest
    named = pool.requirements[INSTANCE_TYPE]
    values = (named.values - {wrong}) | {right}
    mended = with_requirement(pool, replace(named, values=frozenset(values)))
    change = {"template": {"spec": {"requirements": requirements_of(mended)}}}
    hint = f"write {right} instead of {wrong} in NodePool {pool.name}"
    return changing_pool(hint, mended, change)
