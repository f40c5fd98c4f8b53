"""What HAMi's pods hold of the cards of a node.

HAMi's record on the pod is the truth: percentages, defaults and MIG profiles are resolved in it. It says nothing of
which segment is an init container's; HAMi takes the first ones for that, and so must a caller that wants its sums.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from kerf.errors import DecodeError
from kerf.model.gpu import DeviceState
from kerf.model.pods import Pod, PodDemand
from kerf.sharing.family import Occupant
from kerf.sharing.hami.fit import Segment, Share
from kerf.sharing.hami.options import MIG_MODE
from kerf.sharing.hami.records import RecordedShare, parse_allocation

_Use = tuple[int, int, int]


def held(segments: Sequence[Segment], init_count: int, *, init_done: bool = False) -> dict[int, _Use]:
    """MiB, cores and slots that HAMi books per position: the larger of any init container and all app containers.

    The first `init_count` segments count as the init containers', since HAMi's record says no more; with an init
    container that asks for no GPU it therefore books less than was taken. With `init_done` only the rest is held.
    """
    peaks: dict[int, _Use] = {}
    for share in _shares(segments[init_count:]):
        memory, cores, slots = peaks.get(share.position, (0, 0, 0))
        peaks[share.position] = memory + share.memory_mib, cores + share.cores, slots + 1
    # HAMi takes the larger of each single share here, also where one container has several instances of a MIG card.
    for share in _shares(segments[: 0 if init_done else init_count]):
        memory, cores, slots = peaks.get(share.position, (0, 0, 0))
        peaks[share.position] = max(memory, share.memory_mib), max(cores, share.cores), max(slots, 1)
    return peaks


def _shares(segments: Sequence[Segment]) -> Iterator[Share]:
    return (share for segment in segments for share in segment)


def booked(
    devices: Sequence[DeviceState], segments: Sequence[Segment], init_count: int, *, init_done: bool = False
) -> tuple[DeviceState, ...]:
    """The cards with what HAMi books for one pod."""
    after = list(devices)
    for position, (memory, cores, slots) in held(segments, init_count, init_done=init_done).items():
        after[position] = after[position].taking(memory, cores, slots)
    for share in _shares(segments[init_count if init_done else 0 :]):
        card = after[share.position]
        if share.placement is not None:
            after[share.position] = card.taking(0, 0, 0, share.placement)
        elif card.mode == MIG_MODE:
            # HAMi takes nothing more from a card of whose instances one has an unknown place.
            after[share.position] = replace(card, healthy=False)
    return tuple(after)


def with_occupant(devices: Sequence[DeviceState], occupant: Occupant) -> tuple[DeviceState, ...]:
    """The cards with what one pod holds: by HAMi's record, else booked from its demand on the emptiest cards."""
    pod = occupant.pod
    recorded = record_of(pod)
    if recorded is not None:
        positions = {device.id: position for position, device in enumerate(devices)}
        segments = _placed(recorded, positions)
        return booked(devices, segments, len(pod.spec.init_containers), init_done=pod.initialised)
    if occupant.demand is None:
        return tuple(devices)
    segments = _guessed(devices, occupant.demand)
    init_count = sum(c.is_init and c.request is not None for c in occupant.demand.containers)
    return booked(devices, segments, init_count, init_done=pod.initialised)


def with_occupants(devices: Sequence[DeviceState], occupants: Iterable[Occupant]) -> tuple[DeviceState, ...]:
    """The cards with what all these pods hold, as `with_occupant` has them one after the other.

    What HAMi has recorded adds up, so each card changes once. Only MIG instances have places of their own, and a pod
    without a record goes by what those before it have left.
    """
    there = [occupant for occupant in occupants if not occupant.pod.is_ended]
    records = [record_of(occupant.pod) for occupant in there]
    is_plain = not any(device.mode == MIG_MODE or device.profiles for device in devices)
    if not is_plain or any(
        record is None and occupant.demand is not None for record, occupant in zip(records, there, strict=True)
    ):
        return _one_by_one(devices, there)
    ids = tuple(device.id for device in devices)
    sums: dict[int, _Use] = {}
    for occupant, record in zip(there, records, strict=True):
        pod = occupant.pod
        uses = _uses(record or (), ids, len(pod.spec.init_containers), pod.initialised)
        if uses is None:
            return _one_by_one(devices, there)
        for position, use in uses:
            memory, cores, slots = sums.get(position, (0, 0, 0))
            sums[position] = memory + use[0], cores + use[1], slots + use[2]
    summed = list(devices)
    for position, use in sums.items():
        summed[position] = summed[position].taking(*use)
    return tuple(summed)


# Remembered, because the pods of a node are looked at again whenever one of them comes or goes.
@lru_cache(maxsize=16384)
def _uses(
    record: tuple[tuple[RecordedShare, ...], ...], ids: tuple[str, ...], init_count: int, init_done: bool
) -> tuple[tuple[int, _Use], ...] | None:
    """By position of a card what a pod with this record holds; None where it has MIG instances."""
    segments = _placed(record, {each: position for position, each in enumerate(ids)})
    if any(share.placement is not None for share in _shares(segments)):
        return None
    return tuple(held(segments, init_count, init_done=init_done).items())


def _one_by_one(devices: Sequence[DeviceState], occupants: Iterable[Occupant]) -> tuple[DeviceState, ...]:
    after = tuple(devices)
    for occupant in occupants:
        after = with_occupant(after, occupant)
    return after


def recorded_use(pod: Pod) -> tuple[int, int]:
    """MiB and cores that the pod holds on all its cards by HAMi's record; zero without one."""
    recorded = record_of(pod) or ()
    positions = {share.device_id: 0 for segment in recorded for share in segment}
    positions = {device_id: position for position, device_id in enumerate(positions)}
    use = held(_placed(recorded, positions), len(pod.spec.init_containers), init_done=pod.initialised).values()
    return sum(memory for memory, _, _ in use), sum(cores for _, cores, _ in use)


def record_of(pod: Pod) -> tuple[tuple[RecordedShare, ...], ...] | None:
    """HAMi's record; None without one, or with one that HAMi itself could not read either."""
    try:
        return parse_allocation(pod.annotations)
    except DecodeError:
        return None


def _placed(recorded: Sequence[Sequence[RecordedShare]], positions: Mapping[str, int]) -> list[Segment]:
    """The recorded shares of cards that are still there."""
    return [
        tuple(
            Share(positions[s.device_id], s.memory_mib, s.cores, s.placement)
            for s in segment
            if s.device_id in positions
        )
        for segment in recorded
    ]


def _guessed(devices: Sequence[DeviceState], demand: PodDemand) -> list[Segment]:
    """Shares on the cards with most free memory, so what is left is never overrated."""
    by_room = sorted(range(len(devices)), key=lambda i: (-devices[i].free_memory_mib, devices[i].index))
    return [
        tuple(Share(i, ask.memory_on(devices[i]), min(ask.cores, 100)) for i in by_room[: ask.count])
        for ask in (container.request for container in demand.containers)
        if ask is not None
    ]
