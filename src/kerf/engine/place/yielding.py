"""Room that opportunistic pods give back: which of them must go so that a pod finds its place.

As kube-scheduler's preemption: on each node first all of them are thought away, then taken back one by one, the most
important first, as long as the pod still fits; the node that loses fewest is chosen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kerf.engine.place.devices import asks_devices, demand_of, emptied
from kerf.engine.place.fit import Placed
from kerf.engine.place.shapes import Shape, queue_order
from kerf.engine.place.target import Room, Target
from kerf.engine.place.trial import Trial, placed_pod
from kerf.model.gpu import DeviceState
from kerf.model.plan import Eviction, Misfit, NodePlacement
from kerf.model.pods import Pod, PodDemand
from kerf.sharing.family import Family, Occupant


@dataclass(frozen=True)
class _Choice:
    """A node that can take the pod once `victims` have gone, and what is left there then."""

    victims: tuple[Pod, ...]
    index: int
    result: Placed
    evicted: int


class Yielding:
    """What opportunistic pods hold on the nodes of a trial, and what of it has been given away so far."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._held: dict[int, list[Pod]] = {}
        for index, spot in enumerate(trial.spots):
            if mine := spot.cluster_node.opportunistic:
                self._held[index] = sorted(mine, key=queue_order)

    def place(
        self, shapes: Sequence[Shape]
    ) -> tuple[dict[str, NodePlacement], tuple[Eviction, ...], tuple[Shape, ...]]:
        """Places for pods, what must go for them, and the shapes of the pods that are left."""
        placed: dict[str, NodePlacement] = {}
        evictions: list[Eviction] = []
        if not self._held:
            return placed, (), tuple(shapes)
        left: list[Shape] = []
        for shape in shapes:
            for number, pod in enumerate(shape.pods):
                choice = self._best(shape)
                if choice is None:
                    left.append(Shape(shape.pods[number:]))
                    break
                name = self._trial.spots[choice.index].cluster_node.name
                placed[pod.key] = NodePlacement(placed_pod(pod, choice.result), name)
                evictions += self._take(choice, shape, pod)
        return placed, tuple(evictions), tuple(left)

    def _best(self, shape: Shape) -> _Choice | None:
        choices = [choice for index in sorted(self._held) if (choice := self._on(index, shape)) is not None]
        return min(choices, key=lambda choice: (choice.evicted, choice.index), default=None)

    def _on(self, index: int, shape: Shape) -> _Choice | None:
        victims = list(self._held.get(index, ()))
        best = self._tried(index, shape, victims)
        if best is None:
            return None
        # Those that are ending are gone in any case.
        for pod in [victim for victim in victims if victim.deleted_s is None]:
            fewer = [victim for victim in victims if victim is not pod]
            result = self._tried(index, shape, fewer)
            if result is not None:
                victims, best = fewer, result
        return _Choice(tuple(victims), index, best, sum(victim.deleted_s is None for victim in victims))

    def _tried(self, index: int, shape: Shape, gone: Sequence[Pod]) -> Placed | None:
        trial, mark = self._trial, self._trial.mark()
        room, leaving = without(trial.spots[index].target, trial.rooms[index], gone), set(map(id, gone))
        staying = [pod for pod in trial.spots[index].cluster_node.pods if id(pod) not in leaving and not pod.is_ended]
        devices = _with_staying(trial.spots[index].target.family, room.devices, staying) if gone else room.devices
        trial.occupy(index, replace(room, devices=devices), leaving=gone)
        result = trial.fit(index, shape)
        trial.undo_to(mark)
        return None if isinstance(result, Misfit) else result

    def _take(self, choice: _Choice, shape: Shape, pod: Pod) -> list[Eviction]:
        self._trial.occupy(choice.index, choice.result.room, pod, choice.victims)
        gone = set(map(id, choice.victims))
        self._held[choice.index] = [held for held in self._held[choice.index] if id(held) not in gone]
        spot = self._trial.spots[choice.index]
        is_ours = bool(spot.target.family.resources) and asks_devices(shape, spot.target)
        return [
            Eviction(victim.key, spot.cluster_node.name, pod.key, by_scheduler=not is_ours)
            for victim in choice.victims
            if victim.deleted_s is None
        ]


def without(target: Target, room: Room, pods: Sequence[Pod]) -> Room:
    """The room as it is once the pods have gone."""
    free, ports = room.free, list(room.ports)
    for pod in pods:
        free = free + target.counting.of(pod.spec.requests)
        for port in pod.spec.host_ports:
            if port in ports:
                ports.remove(port)
    return replace(room, free=free, ports=tuple(ports), devices=devices_without(target.family, room.devices, pods))


def devices_without(family: Family, devices: tuple[DeviceState, ...], pods: Sequence[Pod]) -> tuple[DeviceState, ...]:
    """The cards as they are once the pods have gone."""
    alone = family.occupied(tuple(map(emptied, devices)), _occupants(family, pods))
    left = list(devices)
    for index, mine in enumerate(alone):
        if mine.is_idle:
            continue
        # Where it is not known which of several equal cards a pod holds, another one may be in use instead.
        order = sorted(range(len(left)), key=lambda each: (each != index, -each))
        held = next((each for each in order if _holds(left[each], mine)), None)
        if held is not None:
            left[held] = _less(left[held], mine)
    return tuple(left)


def _with_staying(family: Family, devices: tuple[DeviceState, ...], staying: Sequence[Pod]) -> tuple[DeviceState, ...]:
    """The cards with all that stay: pods that a scheduler has nominated to what others still hold found no card."""
    if not devices or not staying:
        return devices
    held = family.occupied(tuple(map(emptied, devices)), _occupants(family, staying))
    used, counted = (sum(each.used_slots for each in cards) for cards in (held, devices))
    return held if used > counted else devices


def _occupants(family: Family, pods: Sequence[Pod]) -> list[Occupant]:
    demands = ((pod, demand_of(Shape((pod,)), family)) for pod in pods)
    held = ((pod, each if isinstance(each, PodDemand) and not each.is_empty else None) for pod, each in demands)
    return [Occupant(pod, each) for pod, each in held]


def _holds(card: DeviceState, part: DeviceState) -> bool:
    """Whether so much of the card is in use."""
    return card.used_slots >= part.used_slots and card.used_memory_mib >= part.used_memory_mib


def _less(card: DeviceState, part: DeviceState) -> DeviceState:
    return replace(
        card,
        used_memory_mib=card.used_memory_mib - part.used_memory_mib,
        used_cores=max(0, card.used_cores - part.used_cores),
        used_slots=card.used_slots - part.used_slots,
        placements=tuple(held for held in card.placements if held not in part.placements),
    )
