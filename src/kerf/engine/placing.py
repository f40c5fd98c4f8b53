"""Places on nodes that are there or on their way, in the order in which pods have a right to them.

Pods that wait come first, then room that is kept; last, and without leaving a trace in what is bought, opportunistic
pods take what is idle.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kerf.engine.shapes import Shape
from kerf.engine.trial import Spot, Trial
from kerf.engine.virtual import exclusive_window
from kerf.engine.yielding import Yielding
from kerf.model.constraints import Taint
from kerf.model.plan import Eviction, NodePlacement, Stage, Unplaced
from kerf.model.pods import is_virtual

NO_IDLE_CAPACITY = "NoIdleCapacity"


@dataclass
class Places:
    """Pods with a place, what must go for them, and the shapes that are left: to buy for, and apart for each window
    that has nodes of its own."""

    found: dict[str, NodePlacement] = field(default_factory=dict)
    evictions: tuple[Eviction, ...] = ()
    left: tuple[Shape, ...] = ()
    exclusive: dict[str, tuple[Shape, ...]] = field(default_factory=dict)
    mark: int = 0


def find_places(trial: Trial, shapes: Sequence[Shape], taints: Mapping[str, Taint]) -> Places:
    """Places for pods and for room that is kept; `taints` are those of windows with nodes of their own.

    `mark` is where the trial stood before any room was kept.
    """
    real = tuple(shape for shape in shapes if not is_virtual(shape.pod.key))
    places = Places()
    places.found, real = trial.place_as_planned(real)
    real = _placed(trial, real, places)
    yielding = Yielding(trial)
    found, places.evictions, real = yielding.place(real)
    places.found.update(found)
    places.mark = trial.mark()
    kept, virtual = trial.place_as_planned([shape for shape in shapes if is_virtual(shape.pod.key)])
    places.found.update(kept)
    common = _placed(trial, [shape for shape in virtual if not exclusive_window(shape.pod)], places)
    # What opportunistic pods hold is as good as free, and none has to go before a pod comes.
    found, _, common = yielding.place(common)
    places.found.update(found)
    places.left = (*real, *common)
    for name, taint in taints.items():
        own = [shape for shape in virtual if exclusive_window(shape.pod) == name]
        left = _placed(trial, own, places, taint)
        if left:
            places.exclusive[name] = left
    return places


def _placed(trial: Trial, shapes: Sequence[Shape], places: Places, taint: Taint | None = None) -> tuple[Shape, ...]:
    """Place what fits, on nodes with the taint if one is given; the shapes that are left."""

    def has_taint(spot: Spot) -> bool:
        return taint in spot.target.taints

    left = []
    for shape in shapes:
        found, others = trial.place(shape, among=None if taint is None else has_taint)
        places.found.update(found)
        if others:
            left.append(Shape(others))
    return tuple(left)


def place_idle(trial: Trial, shapes: Sequence[Shape], places: Places) -> tuple[Unplaced, ...]:
    """Opportunistic pods on nodes that are up, where nobody else is to be; those that have no place wait."""
    trial.undo_to(places.mark)
    unplaced: list[Unplaced] = []
    for shape in shapes:
        found, left = trial.place(shape, among=_is_up)
        places.found.update(found)
        reason = f"{NO_IDLE_CAPACITY}: no node has room to spare for it, and none is bought for an opportunistic pod"
        hint = "it comes when others leave room; without its label kerf.dev/opportunistic a node would be bought"
        unplaced += (Unplaced(pod.key, Stage.WINDOWS, reason, hint) for pod in left)
    return tuple(unplaced)


def _is_up(spot: Spot) -> bool:
    return spot.cluster_node.node is not None and spot.cluster_node.is_initialized
