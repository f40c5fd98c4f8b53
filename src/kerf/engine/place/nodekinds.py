"""Which nodes answer alike, so a shape that one of them refuses is not tried on the others.

Nodes are seldom equal in everything, and need not be: a refusal rests on one of three things. It is taints and labels,
or what is left of countable resources, or the cards. A thousand nodes with full cards answer alike, whatever else runs
on them.
"""

from collections.abc import Hashable, Sequence, Set
from dataclasses import fields
from operator import attrgetter

from kerf.engine.place.noderooms import NodeRoom
from kerf.engine.place.target import Room, Target
from kerf.model.constraints import HOSTNAME
from kerf.model.gpu import DeviceState
from kerf.model.plan import Stage

Kind = tuple[int, int, int]
"""Numbers of a node's taints and labels, of its resources and ports, and of its cards: equal for what is equal."""
_ADMISSION, _RESOURCES, _CARDS = range(3)
_DECIDING = {Stage.TAINTS: _ADMISSION, Stage.REQUIREMENTS: _ADMISSION, Stage.RESOURCES: _RESOURCES}

# In their order on the node, since schedulers go by it among equal cards; the UUID is no part of a card's state.
_state = attrgetter(*(field.name for field in fields(DeviceState) if field.name != "id"))


_ALIKE = "alike"
"""What a node's findings have of it, as long as it has its room."""


class _Alike:
    """The parts of a kind. Nodes share one, so many snapshots need not compare what it is made of."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Hashable, Hashable, Hashable]) -> None:
        self.parts = parts


class NodeKinds:
    """The kinds of some nodes, each worked out when it is first asked for and again once its room has changed."""

    def __init__(self, spots: Sequence[NodeRoom]) -> None:
        self._spots = spots
        self._known: dict[Hashable, int] = {}
        self._alike: dict[Hashable, _Alike] = {}
        self._kinds: dict[_Alike, Kind] = {}
        self._held: list[tuple[Room, Kind] | None] = [None] * len(spots)

    def copy(self) -> "NodeKinds":
        """The same; neither changes with the other. Linear in the nodes."""
        other = NodeKinds(self._spots)
        other._known, other._held = dict(self._known), list(self._held)
        other._alike, other._kinds = dict(self._alike), dict(self._kinds)
        return other

    def of(self, index: int, room: Room) -> Kind:
        """The kind of a node with such a room."""
        held = self._held[index]
        if held is None or held[0] is not room:
            alike = self._alike_at(index, room)
            kind = self._kinds.get(alike)
            if kind is None:
                first, second, third = alike.parts
                kind = self._kinds[alike] = self._number(first), self._number(second), self._number(third)
            held = self._held[index] = room, kind
        return held[1]

    def _alike_at(self, index: int, room: Room) -> _Alike:
        spot = self._spots[index]
        target, findings = spot.target, spot.cluster_node.findings
        (of, had), known = findings.get(_ALIKE, ((None, None), None))
        if known is not None and of is target and had is room:
            found: _Alike = known
            return found
        parts = _admission(target, room), _resources(target, room), _cards(target, room)
        alike = self._alike.setdefault(parts, _Alike(parts))
        if room is spot.room:
            findings[_ALIKE] = (target, room), alike
        return alike

    def numbers(self, rooms: Sequence[Room]) -> list[int]:
        """By node, a number that is equal for nodes of one kind. Linear in the nodes."""
        numbers: dict[Kind, int] = {}
        return [numbers.setdefault(self.of(index, room), len(numbers)) for index, room in enumerate(rooms)]

    def next_unlike(self, refusing: Set[int], unasked: list[int], rooms: Sequence[Room]) -> int | None:
        """Take nodes off the end of `unasked` until one has no number that is `refusing`; None where all have one.

        `rooms` are those of all nodes. Each shape that nothing takes looks at all nodes here, so a look must be short.
        """
        while unasked:
            index = unasked.pop()
            held, room = self._held[index], rooms[index]
            first, second, third = held[1] if held is not None and held[0] is room else self.of(index, room)
            if first not in refusing and second not in refusing and third not in refusing:
                return index
        return None

    def _number(self, part: Hashable) -> int:
        return self._known.setdefault(part, len(self._known))


def deciding(kind: Kind, stage: Stage) -> int:
    """The number of what decided a refusal at the stage: nodes with the same number refuse the same pods.

    It holds except for pods that ask for a node by its name, and those that tell equal cards apart.
    """
    # What a family never serves it serves on no card of its own.
    return kind[_DECIDING.get(stage, _CARDS)]


def _admission(target: Target, room: Room) -> Hashable:
    """What decides whether pods may run there at all."""
    if target.is_open:
        return (target.taints, target.requirements, room.requirements, target.pool, target.sold)
    return (target.taints, frozenset((key, value) for key, value in target.labels.items() if key != HOSTNAME))


def _resources(target: Target, room: Room) -> Hashable:
    # Which resources count at all depends on whose the cards are.
    family = target.family.name, target.neuron_cores
    if not target.volume_limits:
        return (family, room.free, room.ports)
    return (family, room.free, room.ports, room.attached, frozenset(target.volume_limits.items()))


def _cards(target: Target, room: Room) -> Hashable:
    return (target.family.name, tuple(map(_state, room.devices)))
