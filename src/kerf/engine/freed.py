"""Idle nodes that take pods as they are, freed once more: under other labels they may hold more of all that wait.

A second try beside the plan that leaves them alone. Which of both is cheaper is seen when both have bought.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kerf.engine.buy.relabelling import Relabelling, has_choice, relabelled
from kerf.engine.headroom.bookings import buys_nothing
from kerf.engine.place.fit import fit
from kerf.engine.place.noderooms import NodeRoom
from kerf.engine.place.shapes import Shape
from kerf.engine.place.target import Room
from kerf.engine.place.trial import Trial
from kerf.engine.placing import Places
from kerf.engine.world import World
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Misfit
from kerf.model.pods import Pod
from kerf.model.promises import read


@dataclass(frozen=True)
class Freed:
    """`rooms` by node, without the pods that have lost their places there, which are among the shapes of `places`."""

    rooms: Mapping[str, Room]
    places: Places
    moved: frozenset[str]


def freed(trial: Trial, places: Places, shapes: Sequence[Shape], world: World) -> Freed | None:
    """All such nodes at once; None where there is none. `shapes` are all that were tried.

    A node keeps its pods if one of them is room that is kept, was promised the node, must not be bought for, or has its
    place in relation to other pods; and pods that ask for no card keep their places in any case. Cost: nodes,
    placements, and a look at each such pod.
    """
    if not places.found:
        return None
    pods = {pod.key: pod for shape in shapes for pod in shape.pods}
    by_node: dict[str, list[tuple[Pod, bool]]] = {}
    for key, placement in places.found.items():
        by_node.setdefault(placement.node, []).append((pods[key], bool(placement.pod.slices)))
    busy = {eviction.node for eviction in places.evictions}
    rooms: dict[str, Room] = {}
    moved: set[str] = set()
    for spot in trial.spots:
        found = by_node.get(spot.cluster_node.name, [])
        if spot.cluster_node.name in busy or not any(asks for _, asks in found) or not has_choice(spot, world):
            continue
        room = _room(spot, found, trial)
        if room is not None:
            rooms[spot.cluster_node.name] = room
            moved.update(pod.key for pod, asks in found if asks)
    if not rooms:
        return None
    left = moved.union(pod.key for shape in places.left for pod in shape.pods)
    waiting = (tuple(pod for pod in shape.pods if pod.key in left) for shape in shapes)
    kept = {key: placement for key, placement in places.found.items() if key not in moved}
    again = tuple(Shape(each) for each in waiting if each)
    return Freed(rooms, replace(places, found=kept, left=again), frozenset(moved))


def _room(spot: NodeRoom, found: Sequence[tuple[Pod, bool]], trial: Trial) -> Room | None:
    """The node with those of its new pods that ask for no card; None where it must keep all."""
    claim = spot.cluster_node.claim
    promised = read(claim.annotations).pods if claim is not None else {}
    if any(is_virtual(pod.key) or buys_nothing(pod) or pod.key in promised for pod, _ in found):
        return None
    # Where they may go depends on where they are counted now.
    if any(trial.ledger.concerns(Shape((pod,))) for pod, _ in found):
        return None
    room = spot.room
    for pod, asks in found:
        if asks:
            continue
        result = fit(spot.target, room, Shape((pod,)))
        if isinstance(result, Misfit):
            return None
        room = result.room
    return room


def served(again: Freed, trial: Trial, world: World) -> tuple[Places, Relabelling] | None:
    """The places when the nodes that serve most pods have got other labels; None where no freed node gets any.

    Pods that have lost their places go to other nodes where they can: the `trial` has them then. What is left of the
    relabelling is to be bought for.
    """
    found = dict(again.places.found)
    left: list[Shape] = []
    for shape in again.places.left:
        mine = tuple(pod for pod in shape.pods if pod.key in again.moved)
        if mine:
            placed, _ = trial.place(Shape(mine), among=lambda spot: spot.cluster_node.name not in again.rooms)
            found.update(placed)
        others = tuple(pod for pod in shape.pods if pod.key not in found)
        if others:
            left.append(Shape(others))
    changed = relabelled(left, trial, world, again.rooms)
    if not any(relabel.node in again.rooms for relabel in changed.relabels):
        return None
    return replace(again.places, found=found), changed
