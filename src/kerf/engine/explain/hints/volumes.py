"""Pods whose volumes are where no node of a pool may be."""

from dataclasses import replace

from kerf.engine.explain.hints.labels import take_value
from kerf.engine.explain.hints.situation import Advice, Situation, widened_by
from kerf.engine.place.shapes import Shape
from kerf.model.constraints import Requirement
from kerf.model.nodepool import NodePool


def allow_place(pool: NodePool, asked: Requirement) -> Advice:
    """The pool allows the values that the volumes ask for as well: a volume cannot move, and its pod must follow it."""
    wider = widened_by(pool, asked)
    if wider is None:
        return Advice(f"no node of NodePool {pool.name} can be where its volumes are")
    values = ", ".join(sorted(asked.values))
    return replace(wider, hint=f"allow {asked.key} {values} in NodePool {pool.name}, where its volumes are")


def follow_volumes(pool: NodePool, volumes: Requirement, shape: Shape, situation: Situation) -> Advice:
    """The pod asks for a value with which its volumes can be, and that nodes of the pool may have."""
    held = pool.template_requirements().get(volumes.key)
    both = volumes if held is None else volumes.intersect(held)
    if both.complement or not both.values:
        return Advice(f"no node of NodePool {pool.name} can be where its volumes are")
    return take_value(both, shape, situation, "its volumes ask")
