"""Cards that were cut beforehand: replicas of NVIDIA's device plugin, and MIG instances.

kube-scheduler compares numbers alone, so a pod fits exactly where its number is left. Kubelet gives the card with
the fewest parts taken first (`distributed`, the plugin's default policy), and of that Kerf makes its account of each
card; it cannot be read anywhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kerf.model.causes import Cause, Lack, Name
from kerf.model.gpu import DeviceState, Partition, Slice
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodDemand
from kerf.model.quantities import Resources
from kerf.model.snapshot import ResourceQuota
from kerf.sharing.family import Fit, NoFit, Occupant
from kerf.sharing.nvidia.kubelet import KubeletCounted, asked_resources, dealt, peak, shared_out

ADMISSION_ERROR = "UnexpectedAdmissionError"
"""How kubelet fails a pod that asks more replicas than the plugin gives to one container."""


@dataclass(frozen=True, slots=True)
class TooFewParts(Cause):
    """Fewer parts of the resource are free than are wanted. `shown` are the names of all the cards' parts, sorted.

    `there` is 0 where the cards have no such part at all: they are shown by other names, or not.
    """

    resource: Name
    wanted: int
    free: int
    there: int
    shown: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class TooManyAtOnce(Cause):
    """One container asks more of a shared resource than kubelet gives to one: `most`.

    The card has `parts` of it, each with that much memory and percent of its cores; 0 MiB where nothing is promised.
    """

    resource: Name
    asked: int
    most: int
    parts: int
    part_mib: int
    part_cores: int


class Partitioned(KubeletCounted):
    """The half of a `Family` that is alike for all whose cards were cut beforehand."""

    def kubelet_capacity(self, devices: Sequence[DeviceState]) -> Resources:
        """The parts of healthy cards by resource."""
        return shown(devices)

    def divided(self, devices: Sequence[DeviceState], jobs: int) -> Resources:
        """Parts as they were cut, as many as kubelet lets one container have."""
        each = shared_out(shown(devices), jobs)
        most = {part.resource: part.most for device in devices for part in device.partitions if part.most}
        return Resources({name: min(amount, most.get(name, amount)) for name, amount in each.items()})

    def has_record(self, pod: Pod) -> bool:
        """Never: the plugin writes nothing on pods."""
        del pod
        return False

    def occupied(self, devices: Sequence[DeviceState], occupants: Sequence[Occupant]) -> tuple[DeviceState, ...]:
        """`devices` with a part taken for each that the pods hold, on the card with the fewest taken."""
        return occupied(devices, occupants)

    def fit(
        self,
        devices: Sequence[DeviceState],
        demand: PodDemand,
        pod: Pod,
        node: Node | None,
        quotas: Sequence[ResourceQuota],
    ) -> Fit | NoFit:
        """As many parts of each resource as it asks, whichever cards they are of."""
        del node, quotas
        return place(devices, demand, pod)


def shown(devices: Iterable[DeviceState]) -> Resources:
    """What kubelet shows of the healthy cards."""
    total = Resources()
    for device in devices:
        if device.healthy:
            for part in device.partitions:
                total = total + Resources({part.resource: part.count})
    return total


def place(devices: Sequence[DeviceState], demand: PodDemand, pod: Pod) -> Fit | NoFit:
    """The parts that the pod gets, or which of them are too few. Init containers reuse those of the app containers."""
    after, slices = list(devices), list[Slice]()
    for resource in asked_resources(demand):
        refused = _too_many_at_once(devices, demand, resource)
        if refused is not None:
            return refused
        wanted = peak(demand, resource, init_done=False)
        taken = _take(after, resource, wanted)
        if len(taken) < wanted:
            return _too_few(devices, resource, wanted)
        for container, held in dealt(demand, resource):
            slices.extend(
                Slice(pod.key, container, card.index, card.id, part.memory_mib, part.cores, resource=resource)
                for card, part in (taken[at] for at in held)
            )
    return Fit(tuple(slices), tuple(after))


def occupied(devices: Sequence[DeviceState], occupants: Sequence[Occupant]) -> tuple[DeviceState, ...]:
    """`devices` with what the pods hold; of a pod that holds more than there is, all there is."""
    after = list(devices)
    for occupant in occupants:
        if occupant.demand is not None and not occupant.pod.is_ended:
            for resource in asked_resources(occupant.demand):
                _take(after, resource, peak(occupant.demand, resource, init_done=occupant.pod.initialised))
    return tuple(after)


def _take(devices: list[DeviceState], resource: str, count: int) -> list[tuple[DeviceState, Partition]]:
    """Take up to `count` parts off `devices`, in place; the cards and parts in the order in which they were taken."""
    taken = []
    for _ in range(count):
        free = [
            (part.used, device.index, position, number)
            for position, device in enumerate(devices)
            if device.healthy and not device.cordoned
            for number, part in enumerate(device.partitions)
            if part.resource == resource and part.free > 0
        ]
        if not free:
            break
        _, _, position, number = min(free)
        device = devices[position]
        part = device.partitions[number]
        parts = (*device.partitions[:number], replace(part, used=part.used + 1), *device.partitions[number + 1 :])
        devices[position] = replace(device.taking(part.memory_mib, part.cores), partitions=parts)
        taken.append((device, part))
    return taken


def _too_many_at_once(devices: Sequence[DeviceState], demand: PodDemand, resource: str) -> NoFit | None:
    asked = max(c.request.count for c in demand.containers if c.request is not None and c.request.resource == resource)
    part = next((p for d in devices for p in d.partitions if p.resource == resource and 0 < p.most < asked), None)
    if part is None:
        return None
    return NoFit(TooManyAtOnce(Name(resource), asked, part.most, part.count, part.memory_mib, part.cores))


def _too_few(devices: Sequence[DeviceState], resource: str, wanted: int) -> NoFit:
    usable = [device for device in devices if device.healthy and not device.cordoned]
    free = sum(part.free for device in usable for part in device.partitions if part.resource == resource)
    there, name = shown(devices), Name(resource)
    cause = TooFewParts(name, wanted, free, there.get(resource, 0), tuple(map(Name, sorted(there))))
    return NoFit(cause, (Lack(wanted - free, name),), wanted - free)


def short_part(predicted: Sequence[DeviceState], observed: Sequence[DeviceState]) -> tuple[str, int, int] | None:
    """The first resource, by name, of which kubelet shows less than was predicted, with both numbers; else None."""
    there = shown(observed)
    for name, amount in sorted(shown(predicted).items()):
        if there.get(name, 0) < amount:
            return name, there.get(name, 0), amount
    return None
