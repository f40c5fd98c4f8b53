"""Changes that are tried where the one that the nearest miss asks for does not help, or is no change at all."""

from collections.abc import Iterator
from dataclasses import replace

from kerf.engine.explain.hints.asking import ask_less
from kerf.engine.explain.hints.labels import take_sold_value, take_value, tolerate
from kerf.engine.explain.hints.requirements import giving_way
from kerf.engine.explain.hints.situation import Advice, Situation, takers, widened_by
from kerf.engine.explain.hints.types import allow_type_with
from kerf.engine.place.shapes import Shape
from kerf.model import causes
from kerf.model.causes import TargetKind
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, WELL_KNOWN, ZONE, Requirement
from kerf.model.nodepool import NodePool
from kerf.model.plan import Misfit

_OF_MACHINES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/", "kerf.dev/")
"""Taints that say how a node is: a workload that tolerated them would run on nodes that start or go."""


def further(misfit: Misfit, shape: Shape, situation: Situation) -> Iterator[Advice]:
    """Less of a resource, a value that is sold, a pool that allows the pod's value or a type that has it, the taints of
    a node tolerated.

    What leads to another model of GPU than the pod asks for comes last.
    """
    cause, pool = misfit.cause, situation.snapshot.pool(misfit.target.node_pool)
    if shape.pod.kept_for is not None:
        return
    match cause:
        case causes.Insufficient() if pool is not None:
            # What a node has left now is no measure of a workload.
            less = ask_less(misfit, shape, situation)
            if less is not None:
                yield less
        case causes.LabelMismatch(asked) if pool is not None:
            exchanges = list[Advice]()
            for advice in _of_label(pool, asked, shape, situation):
                if advice.is_exchange:
                    exchanges.append(advice)
                else:
                    yield advice
            yield from exchanges
        case causes.UntoleratedTaint() if misfit.target.kind == TargetKind.NODE:
            yield from _tolerated(misfit, shape, situation)


def _of_label(pool: NodePool, asked: Requirement, shape: Shape, situation: Situation) -> Iterator[Advice]:
    """What pod or pool could say otherwise of the label."""
    is_named = asked.key in pool.requirements
    if not is_named:
        yield from _as_sold(pool, asked, shape, situation)
    wider = widened_by(pool, asked)
    if wider is not None:
        values = ", ".join(sorted(asked.values))
        yield replace(wider, hint=f"allow {asked.key} {values} in NodePool {pool.name}")
    if is_named:
        # The pool may allow what is asked, and that is too small or not for sale.
        yield from _as_sold(pool, asked, shape, situation)
    if asked.key not in pool.template_requirements():
        other = allow_type_with(asked, pool, shape, situation)
        if other is not None:
            yield other
        if asked.key not in WELL_KNOWN:
            sold = take_sold_value(pool, asked, shape, situation)
            if sold is not None:
                yield sold
        yield from giving_way(pool, asked, shape, situation)


def _as_sold(pool: NodePool, asked: Requirement, shape: Shape, situation: Situation) -> Iterator[Advice]:
    """The pod asks for what the cheapest type of the pool has that would take it without the requirement."""
    if asked.key not in (ZONE, CAPACITY_TYPE, INSTANCE_TYPE):
        return
    spec = shape.spec
    anywhere = replace(
        spec,
        node_selector=spec.node_selector.without((asked.key,)),
        affinity=tuple(term.without((asked.key,)) for term in spec.affinity),
    )
    bare = Shape((replace(shape.pod, spec=anywhere),))
    found = takers(bare, pool, situation) or []
    sold = next((o for each in sorted(found, key=lambda each: each.order) for o in each.offerings), None)
    if sold is None:
        return
    value = {ZONE: sold.zone, CAPACITY_TYPE: sold.capacity_type}.get(asked.key)
    value = value or min(found, key=lambda each: each.order).kind.name
    held = Requirement.of(asked.key, "In", (value,))
    hint = f'no node of NodePool {pool.name} can have {asked}: let the pod ask {asked.key} "{value}"'
    if asked.key in pool.requirements:
        hint = f'let the pod ask {asked.key} "{value}", which NodePool {pool.name} allows'
    yield take_value(held, shape, situation, hint=hint)


def _tolerated(misfit: Misfit, shape: Shape, situation: Situation) -> Iterator[Advice]:
    """The taints of a node that is there, where they are not of its state."""
    spots = situation.evidence.trial.spots
    spot = next((each for each in spots if each.target.name == misfit.target), None)
    if spot is not None and not any(taint.key.startswith(_OF_MACHINES) for taint in spot.target.taints):
        found = tolerate(spot.target.taints, shape, situation)
        yield replace(found, hint=f"{found.hint}, as {misfit.target} has room for it")
