"""Which pod holds what of which physical GPU.

The model keeps sums for each card. Who holds what is found by asking the sharing family again, one pod after the other
in the order in which the state did, so the parts add up to the sums.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kerf.model.gpu import DeviceState
from kerf.model.pods import Pod, PodDemand
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.sharing.family import Family, Occupant
from kerf.sharing.registry import families_of, family_named


@dataclass(frozen=True, slots=True)
class Holder:
    """What one pod holds of one card: MiB, percent points, containers.

    `is_bound` False: annotations alone say so. HAMi counts them before the pod is bound, also where a user wrote them.
    """

    pod: str
    memory_mib: int
    cores: int
    slots: int
    is_bound: bool = True


@dataclass(frozen=True)
class Card:
    """A card of a node and its holders, in name order."""

    node: str
    device: DeviceState
    holders: tuple[Holder, ...] = ()


def cards_of(node: ClusterNode, snapshot: ClusterSnapshot) -> tuple[Card, ...]:
    """The node's cards by index; none for a node without."""
    if not node.devices:
        return ()
    family = family_named(node.family, families_of(snapshot))
    now = tuple(_idle(device) for device in node.devices)
    held: dict[int, list[Holder]] = {device.index: [] for device in now}
    for pod in _occupants(node, snapshot, family):
        after = family.occupied(now, (Occupant(pod, _demand(pod, family)),))
        for before, device in zip(now, after, strict=True):
            part = Holder(
                pod.key,
                device.used_memory_mib - before.used_memory_mib,
                device.used_cores - before.used_cores,
                device.used_slots - before.used_slots,
                is_bound=bool(pod.node_name),
            )
            if part.memory_mib or part.cores or part.slots:
                held[device.index].append(part)
        now = after
    return tuple(
        Card(node.name, device, tuple(held[device.index])) for device in sorted(node.devices, key=lambda d: d.index)
    )


def _occupants(node: ClusterNode, snapshot: ClusterSnapshot, family: Family) -> Iterator[Pod]:
    yield from node.pods
    if node.node is not None:
        yield from (pod for pod in snapshot.pending if family.booked_node(pod) == node.name)


def _idle(device: DeviceState) -> DeviceState:
    parts = tuple(replace(part, used=0) for part in device.partitions)
    return replace(device, used_memory_mib=0, used_cores=0, used_slots=0, placements=(), partitions=parts)


def _demand(pod: Pod, family: Family) -> PodDemand | None:
    demand = family.demand(pod)
    return demand if isinstance(demand, PodDemand) and not demand.is_empty else None
