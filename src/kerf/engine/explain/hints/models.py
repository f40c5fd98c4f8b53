"""GPU models that a change exchanges: a hint that leads a pod to cards that it did not ask for says which.

What a pod asks for by the labels of its nodes, such as an instance type or family, is a model of GPU as well; so is
what a pool names. How fast other cards do the work, only its owner knows.
"""

from collections.abc import Iterable
from itertools import islice

from kerf.engine.explain.causes import some
from kerf.engine.place.devices import asks_cards
from kerf.engine.place.shapes import Shape
from kerf.engine.world import World
from kerf.model.constraints import INSTANCE_TYPE, WELL_KNOWN, Requirements
from kerf.model.instancetypes import InstanceType
from kerf.model.nodepool import NodePool
from kerf.model.pods import PodSpec

_OF_NO_MACHINE = WELL_KNOWN - {INSTANCE_TYPE}
_MOST_TERMS = 20
"""Terms of a pod that are looked at."""


def of_pod(shape: Shape, changed: PodSpec, world: World) -> str:
    """`, with H100 in place of B200` where the pods ask for GPUs and the changed spec leads to other models.

    Empty where they ask for no kind of machine. Cost: types, for each term of a pod.
    """
    before, after = (list(islice(spec.alternatives, _MOST_TERMS)) for spec in (shape.spec, changed))
    if not any(term.keys() - _OF_NO_MACHINE for term in before) or not asks_cards(shape, world.supply.families):
        return ""
    classes = dict.fromkeys(pool.node_class for pool in world.snapshot.node_pools)
    old = _models(before, (kind for each in classes for kind in world.market.types_of(each)))
    offered = (each for each in world.supply.available if each.kind.devices)
    new = {
        model
        for each in offered
        if any(term.conflict(each.target.requirements) is None for term in after)
        for model in _models_of(each.kind)
    }
    beside = f" in place of {_listed(old)}" if old else ""
    return f", with {_listed(new)}{beside}" if new and not new & old else ""


def of_pool(pool: NodePool, added: Iterable[InstanceType], world: World) -> str:
    """`, with L4 where it has A10G now` for types that a pool is to allow beside those that it names, sold or not."""
    old = _models([pool.template_requirements()], world.market.types_of(pool.node_class))
    new = {model for kind in added for model in _models_of(kind)}
    return f", with {_listed(new)} where it has {_listed(old)} now" if old and new and not new & old else ""


def _models(terms: Iterable[Requirements], kinds: Iterable[InstanceType]) -> set[str]:
    held = list(terms)
    return {
        model
        for kind in kinds
        if kind.devices and any(term.conflict(kind.requirements) is None for term in held)
        for model in _models_of(kind)
    }


def _models_of(kind: InstanceType) -> set[str]:
    return {shape.model.name for shape in kind.devices}


def _listed(models: set[str]) -> str:
    return some(sorted(models))
