"""Pods whose volumes are where no node of a pool may be."""

from dataclasses import replace

from kerf.engine.explain.hints.situation import Advice, changing_pool, requirements_of
from kerf.model.constraints import Requirement, Requirements
from kerf.model.nodepool import NodePool


def allow_place(pool: NodePool, asked: Requirement) -> Advice:
    """The pool allows the values that the volumes ask for as well: a volume cannot move, and its pod must follow it."""
    held = pool.requirements.get(asked.key)
    values = ", ".join(sorted(asked.values))
    if held is None or held.complement or asked.complement or not asked.values:
        return Advice(f"no node of NodePool {pool.name} can be where its volumes are")
    allowed = Requirement(asked.key, False, held.values | asked.values, min_values=held.min_values)
    others = pool.requirements.without((asked.key,))
    widened = replace(pool, requirements=others.intersect(Requirements([allowed])))
    hint = f"allow {asked.key} {values} in NodePool {pool.name}, where its volumes are"
    return changing_pool(hint, widened, {"template": {"spec": {"requirements": requirements_of(widened)}}})
