"""Pools that would buy where pods with constraints on others can be: another zone, another type, a higher limit."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from kerf.engine.buy.cells import site_of
from kerf.engine.decision import Decision
from kerf.engine.explain.hints.again import Again, Question
from kerf.engine.explain.hints.models import of_pool
from kerf.engine.explain.hints.situation import Advice, changing_pool, requirements_of, with_requirement
from kerf.engine.place.shapes import group
from kerf.model.constraints import (
    ALIASES,
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    WELL_KNOWN,
    ZONE,
    Requirement,
    Requirements,
    is_label_value,
    is_reserved,
)
from kerf.model.nodepool import NodePool
from kerf.model.quantities import Resources, quantity_text

_MOST_POOLS, _MOST_VALUES = 4, 3
_MOST_LABELS = 2
_FEW_TYPES, _MOST_OF_SIZE = 32, 3
_TYPES_A_LOOK = 10
"""Types that a pool offers besides cost as much as one look at a pod (`Decision.work`)."""
Idea = tuple[Advice, Again]
"""A change that was tried, and the decision with it."""


def wider_pools(keys: Sequence[str], question: Question) -> Iterator[Idea]:
    """Pools that allow more values of a label: those by which the pods go first, then what is sold in general.

    What a decision without the requirement buys says which value is worth allowing.
    """
    named = [ALIASES.get(key, key) for key in keys if key != HOSTNAME]
    for pool in _pools(question):
        for key in dict.fromkeys((*named, ZONE, INSTANCE_TYPE, CAPACITY_TYPE)):
            yield from _wider(pool, key, question)


def wider_machines(question: Question) -> Iterator[Idea]:
    """Pools that allow further values of a label by which they choose among types, such as a family or a size."""
    for pool in _pools(question):
        types = question.decision.world.market.types_of(pool.node_class)
        keys = (
            key for key in sorted(pool.requirements.keys() - WELL_KNOWN) if any(key in t.requirements for t in types)
        )
        for key in islice(keys, _MOST_LABELS):
            yield from _wider(pool, key, question)


def _pools(question: Question) -> list[NodePool]:
    return sorted(question.snapshot.node_pools, key=lambda pool: pool.order)[:_MOST_POOLS]


def _wider(pool: NodePool, key: str, question: Question) -> Iterator[Idea]:
    held = pool.requirements.get(key)
    if held is None or held.complement or not held.values:
        return
    others = pool.requirements.without((key,)).intersect(_architecture(pool, question))
    opened = question.with_pool(_of_fewer_types(replace(pool, requirements=others), question))
    if opened is None or not opened.served:
        return
    found = sorted(_bought_with(opened.made, pool, key) - held.values)
    for values in dict.fromkeys((*((value,) for value in found[:_MOST_VALUES]), tuple(found))):
        if not values:
            continue
        widened = with_requirement(pool, replace(held, values=held.values | frozenset(values)))
        tried = question.with_pool(widened)
        if tried is not None and tried.served:
            hint = f"allow {key} {', '.join(values)} in NodePool {pool.name}{_of_others(pool, tried, question)}"
            change = {"template": {"spec": {"requirements": requirements_of(widened)}}}
            yield changing_pool(hint, widened, change), tried


def _of_others(pool: NodePool, tried: Again, question: Question) -> str:
    """What is said of the GPUs that the pods get, where the pool has others now."""
    mine = {pod.key for pod in question.pods}
    loads = [node.load for node in tried.made.bought if any(pod.key in mine for pod in node.pods)]
    return of_pool(
        pool, (load.offered.kind for load in loads if load.offered.pool.name == pool.name), question.decision.world
    )


def _of_fewer_types(pool: NodePool, question: Question) -> NodePool:
    """The pool with those types alone that pods which wait are likely to get, where it offers many.

    For each shape the cheapest that hold one pod of it, two, four and so on up to all that wait, since nodes hold
    others beside. It depends on the pods that wait and not on those in question, so equal pools stay equal. A decision
    costs by types, and most of a catalogue is of no use to any of the pods. Cost: shapes times types.
    """
    known = next((few for opened, few in question.few if opened == pool), None)
    if known is None:
        known = _few_types(pool, question)
        question.few.append((pool, known))
    return known


def _few_types(pool: NodePool, question: Question) -> NodePool:
    world = question.decision.world.with_pools((pool,))
    offered = world.supply.by_pool.get(pool.name, ())
    if len(offered) <= _FEW_TYPES:
        return pool
    question.tries.pay(len(offered) // _TYPES_A_LOOK)
    pending, holding = question.snapshot.pending, world.holding
    rows = holding.rows(sorted(offered, key=lambda each: each.order))
    useful = set[int]()
    for shape in group(pending):
        fits = holding.alone(shape, holding.kind(shape))[rows] > 0
        counts = np.where(fits, holding.divided(shape.requests)[rows], 0)
        wanted = 1
        while len(found := np.flatnonzero(counts >= wanted)) and wanted <= len(pending):
            useful.update(found[:_MOST_OF_SIZE].tolist())
            wanted *= 2
    names = {holding.types[row].kind.name for row in rows[sorted(useful)].tolist()}
    named = Requirements([Requirement.of(INSTANCE_TYPE, "In", sorted(names))])
    return replace(pool, requirements=pool.requirements.intersect(named))


def _architecture(pool: NodePool, question: Question) -> Requirements:
    """That of the types which the pool offers, where it states none: a pod's image is built for one."""
    offered = question.decision.world.supply.by_pool.get(pool.name, ())
    values = {value for each in offered for value in each.kind.requirements[ARCH].values}
    stated = Requirement.of(ARCH, "In", tuple(sorted(values or {"amd64"})))
    return Requirements() if ARCH in pool.requirements else Requirements([stated])


def _bought_with(made: Decision, pool: NodePool, key: str) -> set[str]:
    """The values of the label that nodes of the pool would have."""
    loads = (node.load for node in made.bought if node.load.offered.pool.name == pool.name)
    found = (site_of(load, "").labels.get(key) for load in loads)
    return {value for value in found if value is not None}


def higher_limits(question: Question) -> Iterator[Idea]:
    """Pools with the limits that a decision without any would need."""
    for pool in _pools(question):
        limits = pool.limits or Resources()
        freed = question.with_pool(replace(pool, limits=None)) if limits else None
        if freed is None or not freed.served:
            continue
        used = freed.used(pool.name)
        needed = {name: used.get(name, 0) for name, limit in limits.items() if used.get(name, 0) > limit}
        raised = replace(pool, limits=limits.replaced(needed))
        tried = question.with_pool(raised) if needed else None
        if tried is not None and tried.served:
            texts = {name: quantity_text(name, amount) for name, amount in sorted(needed.items())}
            stated = ", ".join(f"{text} is a {name} limit" for name, text in texts.items())
            hint = f"{stated} of NodePool {pool.name} that leaves room"
            yield changing_pool(hint, raised, {"limits": texts}), tried


def labelled_pools(key: str, question: Question) -> Iterator[Idea]:
    """Pools whose template gets a label that the pods go by: with a value that nodes have, or the pool's name."""
    if key in WELL_KNOWN or ALIASES.get(key, key) in WELL_KNOWN or is_reserved(key):
        return
    nodes = (node.node for node in question.snapshot.nodes if node.node is not None)
    known = sorted({node.labels[key] for node in nodes if key in node.labels})[:_MOST_VALUES]
    for pool in _pools(question):
        if key in pool.template_requirements():
            continue
        for value in filter(is_label_value, (*known, pool.name)):
            changed = replace(pool, labels={**pool.labels, key: value})
            tried = question.with_pool(changed)
            if tried is not None and tried.served:
                hint = f'add the label {key}: "{value}" to the template of NodePool {pool.name}'
                yield changing_pool(hint, changed, {"template": {"metadata": {"labels": {key: value}}}}), tried
