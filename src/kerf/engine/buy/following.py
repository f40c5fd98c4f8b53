"""How a plan will be followed: by the scheduler's own rules, on reserved nodes, or by pinned cards.

A plan that the scheduler will not follow is no plan. Nodes come up in any order and pods take the first place that the
scheduler likes, so that `replay` is promised only where every order leads to an equal result.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from kerf.engine.buy.filling import Load
from kerf.engine.place.devices import asks_devices
from kerf.engine.place.fit import Placed, fit
from kerf.engine.place.shapes import Shape
from kerf.engine.place.target import Room
from kerf.engine.place.turns import turns
from kerf.engine.supply.offered import OfferedType
from kerf.model.constraints import HOSTNAME
from kerf.model.gpu import NVIDIA_GPU, DeviceState
from kerf.model.groups import group_of
from kerf.model.plan import PIN, REPLAY, RESERVE, Launch
from kerf.model.pods import Pod, PodSpec

_MOST_TRIES, _FIT_TRIES = 10_000, 10
"""Looks at a node that going through all orders may take, and what a first look costs; beyond, slices are pinned."""


@dataclass(frozen=True, eq=False)
class Bought:
    """One node of a purchase and its pods."""

    load: Load
    pods: tuple[Pod, ...]


def with_follow(
    launches: Sequence[Launch],
    bought: Sequence[Bought],
    shapes: Sequence[Shape],
    follow: str,
    coming: Collection[str] = (),
) -> tuple[Launch, ...]:
    """The launches, each marked; `follow` other than `auto` is taken as it is (`off` means replay).

    `coming` is how the plans of nodes on their way are followed: pods that are free would take the places there of
    those that are bound to them.
    """
    if follow != "auto":
        return tuple(replace(launch, follow=REPLAY if follow == "off" else follow) for launch in launches)
    slices = [i for i, b in enumerate(bought) if _has_own_scheduler(b, shapes)]
    sliced = frozenset(slices)
    others = [i for i in range(len(bought)) if i not in sliced]
    marks = dict.fromkeys(slices, PIN) if PIN in coming or not _replays(slices, bought, shapes) else {}
    if RESERVE in coming or _crossing(others, bought):
        marks.update(dict.fromkeys(others, RESERVE))
    marks.update((i, RESERVE) for i in others if _is_shown_whole_first(bought[i]))
    # A pod that came later and takes the place of one of a group leaves all of the group without use.
    together = [i for i, node in enumerate(bought) if any(map(group_of, node.pods))]
    marks.update((i, PIN if i in sliced else RESERVE) for i in together)
    # The scheduler would put them into any domain that is even just then: nodes come one by one.
    known: dict[int, bool] = {}
    placed = [i for i, node in enumerate(bought) if any(_goes_by_others(pod.spec, known) for pod in node.pods)]
    marks.update((i, PIN if i in sliced else RESERVE) for i in placed)
    followed = (replace(launch, follow=marks.get(i, REPLAY)) for i, launch in enumerate(launches))
    return tuple(
        _in_turns(launch, node) if launch.follow == PIN else launch
        for launch, node in zip(followed, bought, strict=True)
    )


def _goes_by_others(spec: PodSpec, known: dict[int, bool]) -> bool:
    """Whether the domain of the pods was planned for; `known` are the answers by the identity of specs."""
    if id(spec) not in known:
        away = any(term.key != HOSTNAME for term in spec.pod_anti_affinity.required)
        is_spread = any(constraint.key != HOSTNAME for constraint in spec.required_spread)
        known[id(spec)] = away or is_spread or bool(spec.pod_affinity.required)
    return known[id(spec)]


def _in_turns(launch: Launch, node: Bought) -> Launch:
    """The launch of pinned pods with the turns in which they must come."""
    load = node.load
    cards = {placed.pod: frozenset(part.device for part in placed.slices) for placed in launch.pods}
    pods = iter(node.pods)
    by_shape = [iter(list(islice(pods, count))) for count in load.counts]
    filled = (pod for number, count in load.order for pod in islice(by_shape[number], count))
    waiting = [pod for pod in filled if cards[pod.key]]
    target = load.offered.target
    found = turns(target.family, load.offered.room.devices, None, cards, waiting)
    turn_of = {pod.key: turn for turn, pods in enumerate(found) for pod in pods}
    return replace(launch, pods=tuple(replace(each, turn=turn_of.get(each.pod, 0)) for each in launch.pods))


def _has_own_scheduler(node: Bought, shapes: Sequence[Shape]) -> bool:
    """Whether the family's own scheduler gives out the node's cards: a reserved node binds no pod to a card."""
    target = node.load.offered.target
    members = [shapes[number] for number, count in enumerate(node.load.counts) if count]
    return bool(target.family.resources) and any(asks_devices(shape, target) for shape in members)


def _is_shown_whole_first(node: Bought) -> bool:
    """Whether pods could take a whole card before the MIG manager has cut it (gpu-operator#2670).

    With the strategy `single` both have one name, so that the node must stay closed until it shows its instances.
    """
    devices = node.load.offered.room.devices
    return any(part.profile and part.resource == NVIDIA_GPU for device in devices for part in device.partitions)


def _crossing(indexes: Sequence[int], bought: Sequence[Bought]) -> bool:
    """Whether pods of one node could take the place of others on another: different loads side by side."""
    kinds = {id(bought[i].load.offered) for i in indexes}
    members = {tuple(n for n, count in enumerate(bought[i].load.counts) if count) for i in indexes}
    return len(kinds) > 1 or len(members) > 1 or any(len(m) > 1 for m in members)


def _replays(indexes: Sequence[int], bought: Sequence[Bought], shapes: Sequence[Shape]) -> bool:
    """Whether the real scheduler ends with the planned loads on the planned cards, however nodes and pods come."""
    if not indexes or not _crossing(indexes, bought):
        return True
    offered_types = {id(bought[i].load.offered) for i in indexes}
    pods = sum(len(bought[i].pods) for i in indexes)
    if len(offered_types) > 1 or pods * len(indexes) > _MOST_TRIES:
        return False
    orders = _Orders(bought[indexes[0]].load.offered, shapes)
    loads = (bought[i].load for i in indexes)
    return orders.all_lead_to(Counter((load.counts, load.room.devices) for load in loads))


_Node = tuple[tuple[int, ...], int]
"""How many pods of each shape a node has, and the number of the room that is left."""

_Full = tuple[tuple[int, ...], tuple[DeviceState, ...]]
"""How many pods of each shape a node has, and its cards."""


class _Moment(NamedTuple):
    """Which nodes have joined, how many pods of each shape wait, and how many nodes are to come."""

    nodes: tuple[_Node, ...]
    waiting: tuple[int, ...]
    coming: int


class _Orders:
    """Every order in which nodes join and pods are placed.

    No queue says which: binds that collide are tried again later, and so are pods that were refused.
    """

    def __init__(self, offered: OfferedType, shapes: Sequence[Shape]) -> None:
        self._candidate, self._shapes = offered, shapes
        self._tries = 0
        # Rooms are numbered, because many moments have the same ones and a number is quick to compare.
        self._rooms = [offered.room]
        self._numbers = {offered.room: 0}
        self._fits: dict[tuple[int, int], tuple[float, int] | None] = {}

    def all_lead_to(self, planned: Counter[_Full]) -> bool:
        """Whether each ends with these nodes; False also where there are too many orders to tell."""
        waiting = tuple(map(sum, zip(*(counts for counts, _ in planned.elements()), strict=True)))
        to_see, seen = [_Moment((), waiting, planned.total())], set()
        while to_see:
            moment = to_see.pop()
            if moment in seen:
                continue
            seen.add(moment)
            after = list(self._after(moment))
            if self._tries > _MOST_TRIES or not (after or planned == Counter(map(self._full, moment.nodes))):
                return False
            to_see += after
        return True

    def _full(self, node: _Node) -> _Full:
        return node[0], self._rooms[node[1]].devices

    def _after(self, moment: _Moment) -> Iterator[_Moment]:
        nodes, waiting, coming = moment
        if coming:
            yield _Moment(tuple(sorted((*nodes, ((0,) * len(self._shapes), 0)))), waiting, coming - 1)
        for number, count in enumerate(waiting):
            if count:
                left = _changed(waiting, number, -1)
                yield from (_Moment(placed, left, coming) for placed in self._placed(nodes, number))

    def _placed(self, nodes: tuple[_Node, ...], number: int) -> Iterator[tuple[_Node, ...]]:
        """The nodes with one more pod, for each node that the scheduler may choose for it; none where none takes it."""
        found = [(self._fit(node[1], number), node) for node in dict.fromkeys(nodes)]
        best = min((fitted[0] for fitted, _ in found if fitted is not None), default=0.0)
        for fitted, node in found:
            if fitted is not None and fitted[0] == best:
                at = nodes.index(node)
                more = (_changed(node[0], number, 1), fitted[1])
                yield tuple(sorted((*nodes[:at], more, *nodes[at + 1 :])))

    def _fit(self, room: int, number: int) -> tuple[float, int] | None:
        """The order and the number of the room that is left; None where a pod of the shape does not fit."""
        self._tries += 1
        key = (room, number)
        if key not in self._fits:
            self._tries += _FIT_TRIES
            result = fit(self._candidate.target, self._rooms[room], self._shapes[number])
            self._fits[key] = (result.order, self._number(result.room)) if isinstance(result, Placed) else None
        return self._fits[key]

    def _number(self, room: Room) -> int:
        number = self._numbers.setdefault(room, len(self._rooms))
        if number == len(self._rooms):
            self._rooms.append(room)
        return number


def _changed(counts: tuple[int, ...], number: int, by: int) -> tuple[int, ...]:
    return (*counts[:number], counts[number] + by, *counts[number + 1 :])
