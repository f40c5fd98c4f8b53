"""One node filled with pods, exactly, card by card.

A fill is first-fit decreasing over shapes; within a shape every pod without devices is placed at once by division, and
pods with devices one by one by the family's own chooser. Results depend on how many pods of each shape remain only up
to what one node can hold, so that they are remembered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kerf.engine.place.devices import Taken, asks_devices, demand_of, place_on_devices
from kerf.engine.place.fit import check_resources, check_taints, narrowed, take
from kerf.engine.place.shapes import Shape, queue_order
from kerf.engine.place.target import Room, Target
from kerf.engine.supply.offered import OfferedType
from kerf.model.causes import Cause
from kerf.model.constraints import ZONE, Requirements
from kerf.model.gpu import DeviceState, Slice
from kerf.model.instancetypes import Offering
from kerf.model.large import Large
from kerf.model.plan import Misfit, PlacedPod
from kerf.model.pods import Pod, PodDemand
from kerf.model.quantities import COST_PER_HOUR, CPU, MEMORY, Resources

Counts = tuple[int, ...]
"""Pods by shape, in the order of the shapes."""


@dataclass(frozen=True, eq=False, repr=False)
class Load(Large):
    """A node full of pods: `counts` by shape; `slices` of each pod, by shape, in the order they were placed.

    `order` is how it was filled: shapes, each with how many of its pods came then.
    """

    offered: OfferedType
    counts: Counts
    slices: tuple[tuple[tuple[Slice, ...], ...], ...]
    room: Room
    offering: Offering
    order: tuple[tuple[int, int], ...] = ()

    @property
    def pods(self) -> int:
        """How many pods it holds."""
        return sum(self.counts)

    @cached_property
    def charge(self) -> Resources:
        """What the node counts against its pool's limits, wherever the cloud places it."""
        return charge(self.offered, self.offering, self.room.requirements)


def charge(offered: OfferedType, offering: Offering, requirements: Requirements) -> Resources:
    """What a node of the type counts: at the dearest price that the offering's capacity type has in the zones."""
    if COST_PER_HOUR not in offered.capacity:
        return offered.capacity
    zone = requirements.get(ZONE)
    prices = [
        o.price_micro
        for o in offered.offerings
        if o.capacity_type == offering.capacity_type and (zone is None or zone.has(o.zone))
    ]
    return offered.capacity.replaced({COST_PER_HOUR: max(prices, default=offering.price_micro)})


@dataclass(repr=False)
class Purchase(Large):
    """Loads with how often each is bought, and the pods by shape that are left; `notes` on a search that failed."""

    loads: list[tuple[Load, int]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    notes: tuple[Cause, ...] = ()

    @property
    def rank(self) -> tuple[int, int, int]:
        """Sort key, the best first: pods left, price, nodes."""
        return (
            sum(self.left),
            sum(load.offering.price_micro * times for load, times in self.loads),
            sum(times for _, times in self.loads),
        )


_Amounts = npt.NDArray[np.int64]
_MOST = 2**62


def measured(amounts: Mapping[str, int], name: str) -> int:
    """An amount, cut to what an array of 64 bits can hold."""
    amount = amounts.get(name, 0)
    return amount if -_MOST < amount < _MOST else max(-_MOST, min(amount, _MOST))


def _next_that_fits(asked: _Amounts, first: int, room: Room) -> int | None:
    """The column, from `first` on, of the next shape whose cpu and memory the room still has; None when none has.

    Most shapes ask for more than is left of a nearly full node: one look at all of them is cheaper than a try of each.
    """
    cpu, memory = (max(0, measured(room.free, name)) for name in (CPU, MEMORY))
    fits = (asked[0, first:] <= cpu) & (asked[1, first:] <= memory)
    found = int(fits.argmax()) if fits.size else 0
    return first + found if fits.size and fits[found] else None


class Filler:
    """Fills nodes for one set of shapes and remembers what it found."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self.shapes = tuple(shapes)
        self._alone: dict[tuple[int, int], int] = {}
        self._device_counts: dict[tuple[int, tuple[object, ...]], int | None] = {}
        self._loads: dict[tuple[int, Counts], Load | None] = {}
        self._asks: dict[tuple[int, str, int], bool] = {}
        self._held: dict[int, _Amounts] = {}
        self._asked: _Amounts | None = None

    def alone(self, number: int, offered: OfferedType) -> int:
        """How many pods of one shape an empty node of the type holds; 0 when none fits there."""
        key = (number, id(offered))
        if key not in self._alone:
            self._alone[key] = self._count_alone(number, offered)
        return self._alone[key]

    def _count_alone(self, number: int, offered: OfferedType) -> int:
        shape, target, room = self.shapes[number], offered.target, offered.room
        by_resources = shape.counted(target.uncounted).times_in(room.free)
        # The cheapest question first: most pairs of shape and type end here.
        if by_resources == 0 or check_taints(target, shape) is not None:
            return 0
        if check_resources(target, room, shape) is not None:
            return 0
        requirements = narrowed(target, room, shape)
        if isinstance(requirements, Misfit) or offered.offering_for(requirements) is None:
            return 0
        by_devices = self._count_devices(number, offered)
        most = 1 if shape.spec.host_ports else len(shape)
        return min(n for n in (by_devices, by_resources, most) if n is not None)

    def _count_devices(self, number: int, offered: OfferedType) -> int | None:
        """How often the shape fits the type's idle devices; None when it asks for none."""
        key = (number, offered.layout)
        if key not in self._device_counts:
            self._device_counts[key] = count_on_idle_devices(self.shapes[number], offered)
        return self._device_counts[key]

    def _asks_devices(self, number: int, target: Target) -> bool:
        key = (number, target.family.name, id(target.families))
        if key not in self._asks:
            self._asks[key] = asks_devices(self.shapes[number], target)
        return self._asks[key]

    def fill(self, offered: OfferedType, remaining: Sequence[int]) -> Load | None:
        """As many of the remaining pods as one node holds; None when it holds none of them."""
        clipped = tuple(min(n, self.alone(number, offered)) if n else 0 for number, n in enumerate(remaining))
        key = (id(offered), clipped)
        if key not in self._loads:
            self._loads[key] = self._fill(offered, clipped) if any(clipped) else None
        return self._loads[key]

    def _fill(self, offered: OfferedType, wanted: Counts) -> Load | None:
        room = offered.room
        counts: list[int] = [0] * len(wanted)
        slices: list[list[tuple[Slice, ...]]] = [[] for _ in wanted]
        order, amounts = self._order(offered, wanted)
        asked = amounts[:, order]
        at = _next_that_fits(asked, 0, room)
        while at is not None:
            number = int(order[at])
            room = self._add(offered, room, number, wanted[number], counts, slices)
            at = _next_that_fits(asked, at + 1, room)
        offering = offered.offering_for(room.requirements)
        if offering is None or not any(counts):
            return None
        filled = tuple((number, counts[number]) for number in order.tolist() if counts[number])
        return Load(offered, tuple(counts), tuple(map(tuple, slices)), room, offering, filled)

    def _order(self, offered: OfferedType, wanted: Counts) -> tuple[_Amounts, _Amounts]:
        """The wanted shapes in the order in which they are filled in; cpu and memory of all shapes.

        Only wanted ones are asked whether they fit: one that cannot be planned for must not stop the others.
        """
        held = self._held.setdefault(id(offered), np.full(len(self.shapes), -1, dtype=np.int64))
        numbers = np.flatnonzero(wanted)
        for number in numbers[held[numbers] < 0].tolist():
            held[number] = self.alone(number, offered)
        if self._asked is None:
            asked = [[measured(shape.requests, name) for shape in self.shapes] for name in (CPU, MEMORY)]
            self._asked = np.array(asked, dtype=np.int64)
        return numbers[np.lexsort((numbers, held[numbers]))], self._asked

    def _add(
        self,
        offered: OfferedType,
        room: Room,
        number: int,
        wanted: int,
        counts: list[int],
        slices: list[list[tuple[Slice, ...]]],
    ) -> Room:
        shape, target = self.shapes[number], offered.target
        requirements = narrowed(target, room, shape)
        if isinstance(requirements, Misfit) or offered.offering_for(requirements) is None:
            return room
        narrower = replace(room, requirements=requirements)
        if not shape.spec.host_ports and not self._asks_devices(number, target):
            requests = shape.counted(target.uncounted)
            times = requests.times_in(room.free)
            many = wanted if times is None else min(wanted, times)
            if many:
                counts[number] += many
                slices[number].extend([()] * many)
                return replace(narrower, free=room.free - requests * many)
            return room
        for _ in range(wanted):
            if check_resources(target, narrower, shape) is not None:
                break
            placed = take(target, narrower, shape)
            if isinstance(placed, Misfit):
                break
            narrower = placed.room
            counts[number] += 1
            slices[number].append(placed.slices)
        return narrower if counts[number] else room


def named(load: Load, members: Sequence[tuple[int, Pod]]) -> tuple[PlacedPod, ...]:
    """The pods of a load with their slices, in queue order; `members` are (number of the shape, pod)."""
    cursors = [iter(slices) for slices in load.slices]
    placed = [
        (queue_order(pod), PlacedPod(pod.key, tuple(replace(part, pod=pod.key) for part in next(cursors[number]))))
        for number, pod in members
    ]
    return tuple(item for _, item in sorted(placed, key=lambda pair: pair[0]))


def count_on_idle_devices(shape: Shape, offered: OfferedType) -> int | None:
    """How many pods of the shape idle devices of the type hold; None when the pods ask for no device."""
    if not asks_devices(shape, offered.target):
        return None
    devices = offered.room.devices
    demand = demand_of(shape, offered.target.family)
    # On equal idle cards one-card pods fill each alike: count one and multiply.
    if isinstance(demand, PodDemand) and _is_one_card(demand) and _all_alike(devices):
        return _fill_devices(shape, offered, devices[:1]) * len(devices)
    return _fill_devices(shape, offered, devices)


def _is_one_card(demand: PodDemand) -> bool:
    asking = [c.request for c in demand.containers if c.request is not None]
    return len(demand.containers) == 1 and len(asking) == 1 and asking[0].count == 1


def _all_alike(devices: tuple[DeviceState, ...]) -> bool:
    return bool(devices) and len({replace(d, id="", index=0) for d in devices}) == 1


def _fill_devices(shape: Shape, offered: OfferedType, devices: tuple[DeviceState, ...]) -> int:
    count = 0
    while count < len(shape):
        taken = place_on_devices(offered.target, devices, shape)
        if not isinstance(taken, Taken):
            break
        devices = taken.devices
        count += 1
    return count
