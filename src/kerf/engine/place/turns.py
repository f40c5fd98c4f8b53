"""In which turns pods must come to the cards that a plan gives them.

HAMi takes pods in an order that cannot be foreseen: each that was refused comes back after a time of its own. Most
loads of a card hold in any order. Some do not: a pod without cores is refused where others have taken all cores, but
they may come after it. Pods of a later turn must be kept off until all of the earlier ones have their places.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from kerf.engine.place.devices import demand_of, only, reopened
from kerf.engine.place.shapes import Kinds, Shape
from kerf.model.gpu import DeviceState
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodDemand
from kerf.sharing.family import Family, NoFit, Refused

_Devices = tuple[DeviceState, ...]


@dataclass(frozen=True, eq=False)
class _Planned:
    """A pod and the indexes of the cards that it is to have; `kind` is equal for pods that are equal to the family."""

    pod: Pod
    cards: frozenset[int]
    kind: object


def turns(
    family: Family,
    devices: Sequence[DeviceState],
    node: Node | None,
    plan: Mapping[str, frozenset[int]],
    pods: Sequence[Pod],
) -> tuple[tuple[Pod, ...], ...]:
    """The pods in turns; within a turn they may come in any order. One turn where any order will do.

    `pods` are those that still wait, in the order of the plan, in which they fit; `plan` are the cards of each by its
    key. Each card counts alone, beside those that it shares a pod with. Cost for such a set of cards: pods x kinds of
    pods x turns.
    """
    kinds = Kinds()
    planned = [_Planned(pod, plan[pod.key], (kinds.of(pod), plan[pod.key])) for pod in pods]
    groups = ([planned[at] for at in numbers] for numbers in apart([each.cards for each in planned]))
    found = [list(_Order(family, tuple(devices), node).turns(group)) for group in groups]
    # What shares no card goes side by side.
    merged = (tuple(each.pod for turn in side if turn for each in turn) for side in zip_longest(*found))
    place = {pod.key: number for number, pod in enumerate(pods)}
    return tuple(tuple(sorted(turn, key=lambda pod: place[pod.key])) for turn in merged)


def apart(cards: Sequence[frozenset[int]]) -> list[list[int]]:
    """Numbers of pods with these cards, in groups that share no card, each in their order."""
    groups: list[tuple[set[int], list[int]]] = []
    for number, own in enumerate(cards):
        touched = [group for group in groups if not group[0].isdisjoint(own)]
        if len(touched) == 1:
            touched[0][0].update(own)
            touched[0][1].append(number)
            continue
        groups = [group for group in groups if group not in touched]
        groups.append((set(own).union(*(group[0] for group in touched)), [*chain(*(g[1] for g in touched)), number]))
    return [sorted(numbers) for _, numbers in groups]


class _Order:
    """One set of cards."""

    def __init__(self, family: Family, devices: _Devices, node: Node | None) -> None:
        self._family, self._devices, self._node = family, devices, node
        self._demands: dict[object, PodDemand | Refused] = {}
        """What pods ask, by their kind."""

    def turns(self, waiting: Sequence[_Planned]) -> Iterator[Sequence[_Planned]]:
        """The turns, first to last."""
        kinds = self._demands = {each.kind: demand_of(Shape((each.pod,)), self._family) for each in waiting}
        demands = [demand for demand in kinds.values() if isinstance(demand, PodDemand)]
        if len(kinds) == 1 or len(demands) < len(kinds):
            # A pod that the family would not take at all was changed since: to wait for it would be in vain.
            yield waiting
            return
        if self._is_cut(waiting) or any(len(demand.asking) > 1 for demand in demands):
            # Where they lie depends on who came before, so only the plan's own order is sure.
            yield from ([each] for each in waiting)
            return
        late: list[Sequence[_Planned]] = []
        rest = list(waiting)
        while rest:
            # With fewer pods there is more room: who fits after all others fits in any order.
            last = self._last(rest)
            if not last or all(each.kind in last for each in rest):
                break
            late.append([each for each in rest if each.kind in last])
            rest = [each for each in rest if each.kind not in last]
        yield rest
        yield from reversed(late)

    def _is_cut(self, waiting: Sequence[_Planned]) -> bool:
        """Whether MIG instances are cut of a card."""
        cards = frozenset[int]().union(*(each.cards for each in waiting))
        return any(device.profiles for device in self._devices if device.index in cards)

    def _last(self, rest: Sequence[_Planned]) -> set[object]:
        """The kinds of which a pod fits after all others."""
        found = set[object]()
        for kind in dict.fromkeys(each.kind for each in rest):
            at = max(number for number, each in enumerate(rest) if each.kind == kind)
            if self._fit((*rest[:at], *rest[at + 1 :], rest[at])):
                found.add(kind)
        return found

    def _fit(self, pods: Sequence[_Planned]) -> bool:
        """Whether they fit in this order."""
        devices, cards = self._devices, None
        for each in pods:
            demand = self._demands[each.kind]
            if isinstance(demand, Refused):
                return False
            if cards != each.cards:
                # Most of them share one card.
                devices, cards = only(reopened(devices, self._devices), each.cards), each.cards
            result = self._family.fit(devices, demand, each.pod, self._node, ())
            if isinstance(result, NoFit):
                return False
            devices = result.devices
        return True
