"""What nodes for the pods of a decision cost at least."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import chain

from kerf.engine.buy.bound import proven
from kerf.engine.buy.following import runs
from kerf.engine.decision import Decision
from kerf.engine.place.devices import demands
from kerf.engine.place.shapes import Shape, group_asking
from kerf.engine.place.trial import Trial
from kerf.model.causes import BoundAbovePlan
from kerf.model.lowerbound import Ignored, LowerBound
from kerf.model.pods import Pod, PodSpec
from kerf.model.volumes import NO_MOUNTS


def bounded(decision: Decision, shapes: Sequence[Shape] = ()) -> Decision:
    """The decision with its lower bound; as it is where all pods might go on nodes there are.

    `shapes` are those that were to be bought for, where known: with nodes for all of them they need no new grouping.
    Where nodes there are take some of the pods, others could take their places: then the bound is of those pods, shape
    by shape, that such nodes could not take even if the plan had put no other pods on them.
    """
    world = decision.world
    bought: list[tuple[Hashable, Sequence[Pod]]] = [(id(shape), shape.pods) for shape in shapes]
    if sum(map(len, shapes)) != sum(len(node.pods) for node in decision.bought):
        # Of nodes that are bought of one load those of one shape are equal.
        bought = list(runs(decision.bought))
    shapes = _unserved(decision, bought) if decision.placements else _grouped(bought)
    if decision.placements and not shapes:
        return decision
    bound: LowerBound | None = LowerBound(0, 0)
    if world.market.types and shapes:
        bound = proven(shapes, world.supply.available, world.holding)
        if bound is not None and any(pods[0].spec.has_relations for _, pods in bought):
            bound = replace(bound, ignored=(Ignored.OTHER_PODS, *bound.ignored))
    return _stated(decision, bound)


def _stated(decision: Decision, bound: LowerBound | None) -> Decision:
    """The decision with the bound; without it, and with a note, where its nodes cost less than was proven of them."""
    price_micro = sum(node.load.offering.price_micro for node in decision.bought)
    if bound is None or bound.micro <= price_micro:
        return replace(decision, cost=replace(decision.cost, bound=bound))
    note = BoundAbovePlan(bound.micro, price_micro)
    return replace(decision, cost=replace(decision.cost, bound=None), notes=(*decision.notes, note))


def _unserved(decision: Decision, bought: Sequence[tuple[Hashable, Sequence[Pod]]]) -> tuple[Shape, ...]:
    """The pods, of the shapes that were bought for, that nodes there are refuse while nothing else of the plan is on
    them.

    None where such nodes could be cleared or relabelled for them. Cost: the cards of all nodes; for each shape the
    kinds of nodes and the pods that they take, or all nodes where pods that are there stand against it.
    """
    world = decision.world
    is_chosen = any(offered.pool.chosen_labels for offered in world.supply.available)
    if not bought or decision.evictions or decision.relabels or world.snapshot.windows or is_chosen:
        return ()
    placed = {placement.pod.pod for placement in decision.placements}
    there = ((pod.key, (pod,)) for pod in decision.pending if pod.key in placed)
    # They come last in their shapes, so those that no node takes are among them.
    needing = {pod.key for _, pods in bought for pod in pods}
    trial = Trial(world.snapshot, world.market, volumes=world.volumes)
    is_cut = any(device.profiles for room in trial.rooms for device in room.devices)
    found = (
        _beyond(trial, shape, is_cut=is_cut)
        for shape in _grouped(chain(there, bought))
        if shape.pods[-1].key in needing
    )
    return tuple(shape for shape in found if shape is not None)


def _beyond(trial: Trial, shape: Shape, *, is_cut: bool) -> Shape | None:
    """The pods of the shape that nodes there are cannot take; None for none. Nothing is left of the try.

    How many they take can be counted where it does not matter which nodes and cards are taken first: of pods with one
    slice at most and no volumes, and with none where MIG cuts the cards of some node (`is_cut`). Of others none count
    where some node takes one.
    """
    if not _is_countable(trial, shape, is_cut=is_cut):
        return None if _takes_one(trial, shape) else shape
    mark = trial.mark()
    left = trial.place(shape)[1]
    trial.undo_to(mark)
    return Shape(left, shape.asked) if left else None


def _is_countable(trial: Trial, shape: Shape, *, is_cut: bool) -> bool:
    if shape.spec.mounts != NO_MOUNTS:
        return False
    asked = [demand for _, demand in demands(shape, tuple(target.family for target in trial.samples))]
    counts = [sum(each.request.count for each in demand.asking if each.request) for demand in asked]
    return not asked or (not is_cut and max(counts) <= 1)


def _takes_one(trial: Trial, shape: Shape) -> bool:
    """Whether some node takes a pod of the shape. Nothing is left of the try."""
    one = Shape(shape.pods[:1], shape.asked)
    if not trial.ledger.concerns(one):
        # Which node the scheduler would prefer does not matter here, and to find it all nodes must be asked.
        return trial.takes_alone(one)
    mark = trial.mark()
    left = trial.place(one)[1]
    trial.undo_to(mark)
    return not left


def alone(pods: Iterable[Pod]) -> tuple[Shape, ...]:
    """The pods as they would be on nodes of their own, grouped: a bound leaves out what they ask of others."""
    return _grouped((id(pod), (pod,)) for pod in pods)


def _grouped(runs: Iterable[tuple[Hashable, Sequence[Pod]]]) -> tuple[Shape, ...]:
    known: dict[int, PodSpec] = {}

    def of(spec: PodSpec) -> PodSpec:
        # The spec that is asked for is the pod's, so its identity stays its own.
        if id(spec) not in known:
            asks_more = spec.preferred or spec.has_relations
            known[id(spec)] = replace(spec.alone(), preferred=()) if asks_more else spec
        return known[id(spec)]

    return group_asking(runs, of)
