"""Places on nodes that are there or on their way, in the order in which pods have a right to them.

Pods that wait come first, then room that is kept; last, and without leaving a trace in what is bought, opportunistic
pods take what is idle.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from kerf.engine.decision import Refusal
from kerf.engine.headroom.bookings import buys_nothing, is_check
from kerf.engine.place.noderooms import NodeRoom
from kerf.engine.place.preferences import Forms, formed
from kerf.engine.place.queueing import Destined
from kerf.engine.place.retrying import Retries
from kerf.engine.place.shapes import Shape
from kerf.engine.place.target import Room
from kerf.engine.place.trial import Trial, placed_pod
from kerf.engine.place.yielding import Yielding
from kerf.model.causes import Name, NoIdleCapacity, NoRoomOfRequest
from kerf.model.constraints import Taint
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Eviction, NodePlacement, Stage
from kerf.model.pods import Pod
from kerf.model.preferences import Preference
from kerf.model.provisioningrequests import consumed_request


@dataclass
class Places:
    """Pods with a place, what must go for them, and the shapes that are left: to buy for, to buy nothing for, and apart
    for each window that has nodes of its own. `dropped` are preferences that do not hold there, by key of the pod.
    `joined` are those that nodes to be bought let in, each with the number of its node and the room left there."""

    found: dict[str, NodePlacement] = field(default_factory=dict)
    evictions: tuple[Eviction, ...] = ()
    left: tuple[Shape, ...] = ()
    unbought: tuple[Shape, ...] = ()
    exclusive: dict[str, tuple[Shape, ...]] = field(default_factory=dict)
    dropped: dict[str, tuple[Preference, ...]] = field(default_factory=dict)
    mark: int = 0
    joined: tuple[tuple[int, Room, Pod], ...] = ()


_NO_PREFERENCES = Forms(are_ignored=True)


def find_places(
    trial: Trial, shapes: Sequence[Shape], taints: Mapping[str, Taint], forms: Forms = _NO_PREFERENCES
) -> Places:
    """Places for pods and for room that is kept; `taints` are those of windows with nodes of their own.

    Of the nodes there are or on their way those come first that have what pods prefer, by `forms`; a node that has not
    is taken all the same before one is bought. That is not Karpenter's rule, which buys a node for the preference. But
    kube-scheduler only scores preferences: it binds the pod to the node that is there, and the new one stays empty.

    `mark` is where the trial stood before any room was kept.
    """
    real = tuple(shape for shape in shapes if not is_virtual(shape.pod.key))
    places = Places()
    places.found, real = _as_planned(trial, real, forms)
    real = _preferred(trial, _in_order(trial, real, places), places, forms)
    yielding = Yielding(trial)
    found, places.evictions, real = yielding.place(real)
    places.found.update(found)
    places.mark = trial.mark()
    kept, virtual, _ = trial.place_as_planned([shape for shape in shapes if is_virtual(shape.pod.key)])
    places.found.update(kept)
    checks = _placed(trial, [shape for shape in virtual if is_check(shape.pod)], places, among=_is_up)
    common = [shape for shape in virtual if not _is_exclusive(shape) and not is_check(shape.pod)]
    # What opportunistic pods hold is as good as free, and none has to go before a pod comes.
    found, _, kept_for = yielding.place(_placed(trial, common, places))
    places.found.update(found)
    left = (*real, *kept_for, *checks)
    places.left = tuple(shape for shape in left if not buys_nothing(shape.pod))
    places.unbought = tuple(shape for shape in left if buys_nothing(shape.pod))
    for name, taint in taints.items():
        own = [shape for shape in virtual if _is_exclusive(shape, name)]
        left = _placed(trial, own, places, among=partial(_has_taint, taint))
        if left:
            places.exclusive[name] = left
    return places


def _as_planned(
    trial: Trial, shapes: tuple[Shape, ...], forms: Forms
) -> tuple[dict[str, NodePlacement], tuple[Shape, ...]]:
    """Promised pods on their claims, and the shapes that are left.

    A promise that others stand against may have been made beside pods that are still to come, to a node that is there.
    So these are thought in their places before it is given up. Cost: where one is in doubt, each pod is placed twice.
    """
    mark = trial.mark()
    made = trial.place_as_planned(shapes)
    if not made.unmet:
        return made.placed, made.left
    doubtful = {each.pod.key for each in made.unmet}
    others = (tuple(pod for pod in shape.pods if pod.key not in doubtful) for shape in made.left)
    thought = Places()
    _preferred(trial, _in_order(trial, [Shape(pods) for pods in others if pods], thought), thought, forms)
    broken = {each.pod.key for each in trial.unmet(made.unmet)}
    trial.undo_to(mark)
    made = trial.place_as_planned(shapes, frozenset(doubtful - broken))
    return made.placed, made.left


def _in_order(trial: Trial, shapes: Sequence[Shape], places: Places) -> tuple[Shape, ...]:
    """Pods whose cards their own scheduler gives out, one by one as it takes them; the shapes that are left.

    What is left of a card depends on who came before. What kube-scheduler counts is placed shape by shape: for 10,000
    pods of 200 shapes the order of the queue would take minutes.
    """
    in_order = [shape for shape in shapes if trial.has_own_scheduler(shape)]
    if len(in_order) < 2:
        return tuple(shapes)
    found = trial.place_in_order(in_order)
    places.found.update(found)
    left = ((shape, tuple(pod for pod in shape.pods if pod.key not in found)) for shape in shapes)
    return tuple(shape if len(pods) == len(shape) else Shape(pods) for shape, pods in left if pods)


def _placed(
    trial: Trial, shapes: Sequence[Shape], places: Places, among: Callable[[NodeRoom], bool] | None = None
) -> tuple[Shape, ...]:
    """Place what fits, among some nodes where it is said which; the shapes that are left."""
    left = []
    for shape in shapes:
        found, others = trial.place(shape, among=among)
        places.found.update(found)
        if others:
            left.append(Shape(others))
    return tuple(left)


def _preferred(trial: Trial, shapes: Sequence[Shape], places: Places, forms: Forms) -> tuple[Shape, ...]:
    """Place what fits, each pod with as many of its preferences as a node has; the shapes that are left.

    A shape that other pods stand against is tried again once pods have come that may let it in.
    """
    left, retries = dict[int, Shape](), Retries(trial.ledger, shapes)
    for rank, shape in retries.turns():
        pods = _in_forms(trial, shape, places, forms)
        if len(pods) < len(shape):
            retries.come(shape)
        left.pop(rank, None)
        if pods:
            left[rank] = shape if pods is shape.pods else Shape(pods)
            retries.wait(rank, left[rank])
    return tuple(left[rank] for rank in sorted(left))


def _in_forms(trial: Trial, shape: Shape, places: Places, forms: Forms) -> tuple[Pod, ...]:
    """Place what fits of one shape in each of its forms; the pods that are left."""
    pods = shape.pods
    for form in forms.of(shape.spec):
        found, pods = trial.place(formed(shape if pods is shape.pods else Shape(pods), form))
        places.found.update(found)
        if form.dropped:
            places.dropped.update(dict.fromkeys(found, form.dropped))
        if not pods:
            break
    return pods


def _is_exclusive(shape: Shape, window: str = "") -> bool:
    """Whether room is kept on nodes that only a window's pods may use: that window's, or any's."""
    kept = shape.pod.kept_for
    return kept is not None and kept.is_exclusive and window in ("", kept.name)


def _has_taint(taint: Taint, spot: NodeRoom) -> bool:
    return taint in spot.target.taints


def unbought(trial: Trial, shapes: Sequence[Shape], requests: Container[str]) -> tuple[Refusal, ...]:
    """Pods for which nothing is bought and that found no room, with what the nearest node lacks.

    `requests` are the ProvisioningRequests that are there, by `namespace/name`.
    """
    refusals: list[Refusal] = []
    for shape in shapes:
        found = trial.nearest(shape)
        stage, misfits = (Stage.RESOURCES, ()) if found is None else (found.stage, (found,))
        for pod in shape.pods:
            request = consumed_request(pod)
            cause = NoRoomOfRequest(Name(request), not request or request in requests)
            refusals.append(Refusal((pod,), stage, cause, misfits))
    return tuple(refusals)


def join(trial: Trial, places: Places, joining: Iterable[Destined]) -> Places:
    """The same with pods more, which are in the trial from now on; their nodes have room for them."""
    found, joined = dict(places.found), list(places.joined)
    for shape, pod, node in joining:
        result = trial.alone(node, shape)
        assert result is not None, f"no room for {pod.key}"
        found[pod.key] = NodePlacement(placed_pod(pod, result), trial.spots[node].cluster_node.name)
        joined.append((node, result.room, pod))
        trial.occupy(node, result.room, pod)
    return replace(places, found=found, joined=tuple(joined)) if len(joined) > len(places.joined) else places


def join_again(trial: Trial, places: Places) -> None:
    """Have those in the trial that have joined, after it was taken back to before; room that was kept stays so."""
    for node, room, pod in places.joined:
        trial.occupy(node, room, pod)


def place_idle(trial: Trial, shapes: Sequence[Shape], places: Places) -> tuple[Refusal, ...]:
    """Opportunistic pods on nodes that are up, where no other pod is to be; those that have no place wait."""
    trial.undo_to(places.mark)
    join_again(trial, places)
    refusals: list[Refusal] = []
    for shape in shapes:
        found, left = trial.place(shape, among=_is_up)
        places.found.update(found)
        if left:
            refusals.append(Refusal(left, Stage.WINDOWS, NoIdleCapacity()))
    return tuple(refusals)


def _is_up(spot: NodeRoom) -> bool:
    return spot.cluster_node.node is not None and spot.cluster_node.is_initialized
