"""The annotations in which HAMi keeps its books: cards on the node, shares on the pod.

HAMi has no other store, so these are what Kerf reads occupancy from, and what the simulator's stand-ins write. Keys
and forms of HAMi v2.10.0 as recorded from it (tests/data/hami), and the older colon form of the register.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NoReturn

from kerf.errors import DecodeError
from kerf.model.gpu import DeviceState, Placement, Profile, Slice
from kerf.model.nodes import Node
from kerf.model.pods import PodDemand
from kerf.sharing.family import Fit

REGISTER, PAIR_SCORES = "hami.io/node-nvidia-register", "hami.io/node-nvidia-score"
CORDON, HANDSHAKE, LOCK = "hami.io/device-cordon", "hami.io/node-handshake", "hami.io/mutex.lock"
NODE, TIME = "hami.io/vgpu-node", "hami.io/vgpu-time"
TO_ALLOCATE, ALLOCATED = "hami.io/vgpu-devices-to-allocate", "hami.io/vgpu-devices-allocated"
MIG_ALLOCATIONS = "hami.io/vgpu-mig-allocations"
BIND_PHASE, BIND_TIME = "hami.io/bind-phase", "hami.io/bind-time"
_VENDOR = "NVIDIA"
_GONE = "Deleted"
_INT32 = 2**31 - 1
_USUAL = 16_384
"""Characters of a record that is remembered: one of a hundred cards has a third of it, and any user may write more."""
_AMOUNT = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class RecordedShare:
    """One card's share of one container, as HAMi wrote it down."""

    device_id: str
    memory_mib: int
    cores: int
    placement: Placement | None = None


def is_registered(annotations: Mapping[str, str]) -> bool:
    """Whether a node with these annotations has cards that HAMi gives out.

    Where the device plugin went, older schedulers leave the register and say so in the handshake (HAMi#1839).
    """
    return bool(annotations.get(REGISTER)) and not annotations.get(HANDSHAKE, "").startswith(_GONE)


def register_annotation(devices: Sequence[DeviceState]) -> str:
    """What HAMi's device plugin writes for these cards; zero, false and empty fields are left out, as Go does."""
    return _compact([_without_zeros(_registered(device)) for device in devices])


def _registered(device: DeviceState) -> dict[str, object]:
    return {
        "id": device.id,
        "index": device.index,
        "count": device.slots,
        "devmem": device.memory_mib,
        "devcore": device.cores,
        "type": device.model,
        "numa": device.numa,
        "mode": device.mode,
        "migProfiles": [_profile_record(profile) for profile in device.profiles],
        "health": device.healthy,
    }


def _profile_record(profile: Profile) -> dict[str, object]:
    return {
        "name": profile.name,
        "memoryMB": profile.memory_mib,
        "core": profile.cores,
        "sliceCount": profile.slice_count,
        "placements": [{"start": start, "size": profile.size} for start in profile.starts],
    }


def _without_zeros(record: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in record.items() if value}


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


@lru_cache(maxsize=8192)
def parse_register(text: str, place: str = "") -> tuple[DeviceState, ...]:
    """The idle cards that a register annotation names, in its order; no two have one UUID or index. Raises DecodeError.

    Both forms: the JSON list, and the older `id,count,mem,core,type,numa,health[,index,mode]:` of each card. A node is
    looked at for each of its pods that comes or goes, and its register hardly ever changes.
    """
    if not text.lstrip().startswith("["):
        return _distinct(_parse_legacy(text, place), place)
    return _distinct([_device(fields) for fields in _objects(REGISTER, text, place)], place)


def _distinct(devices: Sequence[DeviceState], place: str) -> tuple[DeviceState, ...]:
    """The cards, each with an index of its own. Raises DecodeError for one that stands there twice.

    HAMi knows a card by its UUID, and what a pod holds of a UUID would count on one of two such cards alone. An index
    is for order only: where two cards have one, they are numbered in the order in which HAMi would sort them.
    """
    first: dict[str, int] = {}
    for position, device in enumerate(devices):
        before = first.setdefault(device.id, position)
        if before != position:
            path, expected = f"{REGISTER}[{position}].id", "the UUID of a card that stands nowhere else"
            hint = f"entry {before} has it too, and HAMi knows cards by it alone"
            raise DecodeError(path, expected, device.id, place=place, hint=hint)
    if len({device.index for device in devices}) == len(devices):
        return tuple(devices)
    order = sorted(range(len(devices)), key=lambda position: devices[position].index)
    number = {position: rank for rank, position in enumerate(order)}
    return tuple(replace(device, index=number[position]) for position, device in enumerate(devices))


class _Fields:
    """Typed access to one JSON object; what is absent is Go's zero value."""

    def __init__(self, value: object, path: str, place: str) -> None:
        if not isinstance(value, dict):
            raise DecodeError(path, "an object", value, place=place)
        self._value, self._path, self._place = value, path, place

    def text(self, name: str) -> str:
        value = self._value.get(name, "")
        return value if isinstance(value, str) else self._refuse(name, "text")

    def number(self, name: str, *, least: int = 0) -> int:
        value = self._value.get(name, 0)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= _INT32:
            return int(value)
        return self._refuse(name, "a whole number")

    def truth(self, name: str) -> bool:
        value = self._value.get(name, False)
        return value if isinstance(value, bool) else self._refuse(name, "true or false")

    def objects(self, name: str) -> list["_Fields"]:
        value = self._value.get(name) or []
        entries = value if isinstance(value, list) else self._refuse(name, "a list")
        return [_Fields(entry, f"{self._path}.{name}[{i}]", self._place) for i, entry in enumerate(entries)]

    def object(self, name: str) -> "_Fields":
        return _Fields(self._value.get(name) or {}, f"{self._path}.{name}", self._place)

    def _refuse(self, name: str, expected: str) -> NoReturn:
        raise DecodeError(f"{self._path}.{name}", expected, self._value[name], place=self._place)


def _device(fields: _Fields) -> DeviceState:
    return DeviceState(
        id=fields.text("id"),
        index=fields.number("index"),
        model=fields.text("type"),
        memory_mib=fields.number("devmem"),
        cores=fields.number("devcore"),
        slots=fields.number("count"),
        numa=fields.number("numa", least=-1),
        mode=fields.text("mode"),
        healthy=fields.truth("health"),
        profiles=tuple(_profile(profile) for profile in fields.objects("migProfiles")),
    )


def _profile(fields: _Fields) -> Profile:
    places = fields.objects("placements")
    return Profile(
        name=fields.text("name"),
        size=places[0].number("size") if places else 0,
        starts=tuple(place.number("start") for place in places),
        memory_mib=fields.number("memoryMB"),
        cores=fields.number("core"),
        slice_count=fields.number("sliceCount"),
    )


def _parse_legacy(text: str, place: str) -> tuple[DeviceState, ...]:
    entries = [entry for entry in text.strip().split(":") if entry.strip()]
    return tuple(_legacy_device(entry, position, place) for position, entry in enumerate(entries))


def _legacy_device(entry: str, position: int, place: str) -> DeviceState:
    values = [value.strip() for value in entry.split(",")]
    path, expected = f"{REGISTER}[{position}]", "a JSON list, or id,count,mem,core,type,numa,health[,index,mode]"
    if len(values) not in (7, 9):
        raise DecodeError(path, expected, entry, place=place)
    identity, count, memory, cores, model, numa, health = values[:7]
    index, mode = values[7:] or (str(position), "")
    texts = (index, memory, cores, count, numa.removeprefix("-"))
    if not all(_AMOUNT.fullmatch(text) for text in texts):
        raise DecodeError(path, expected, entry, place=place)
    numbers = [int(text) for text in texts]
    return DeviceState(
        identity,
        numbers[0],
        model,
        memory_mib=numbers[1],
        cores=numbers[2],
        slots=numbers[3],
        numa=int(numa),
        mode=mode,
        healthy=health in ("true", "True", "1"),
    )


def node_devices(node: Node) -> tuple[DeviceState, ...] | None:
    """The idle cards of a node, with its cordoned ones marked; None while none are registered. Raises DecodeError."""
    text = node.annotations.get(REGISTER, "")
    if not text.strip():
        return None
    cordoned = frozenset(entry.strip() for entry in node.annotations.get(CORDON, "").split(",") if entry.strip())
    devices = parse_register(text, f"Node {node.name}")
    if not devices:
        return None
    return tuple(replace(d, cordoned=True) if d.id in cordoned else d for d in devices)


def node_pair_scores(node: Node, devices: Sequence[DeviceState]) -> tuple[tuple[int, ...], ...] | None:
    """How well the node's cards are linked, by position in `devices`; None when it does not say, or not readably."""
    text = node.annotations.get(PAIR_SCORES, "")
    if not text.strip():
        return None
    place = f"Node {node.name}"
    try:
        fields = _objects(PAIR_SCORES, text, place)
        rows = {entry.text("uuid"): entry.object("score") for entry in fields}
        nothing = _Fields({}, PAIR_SCORES, place)
        return tuple(tuple(rows.get(a.id, nothing).number(b.id) for b in devices) for a in devices)
    except DecodeError:
        return None


def _objects(path: str, text: str, place: str) -> list["_Fields"]:
    """The objects of a JSON list. Raises DecodeError."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecodeError(path, "a JSON list", f"<text that is no JSON: {error}>", place=place) from error
    if not isinstance(entries, list):
        raise DecodeError(path, "a JSON list", entries, place=place)
    return [_Fields(entry, f"{path}[{i}]", place) for i, entry in enumerate(entries)]


def allocation_annotations(fit: Fit, demand: PodDemand, node_name: str, now_s: float) -> dict[str, str]:
    """What HAMi's filter writes on the pod when it chooses this node; all of it before the pod is bound."""
    text = allocation_text(fit, demand)
    written = {NODE: node_name, TIME: str(int(now_s)), TO_ALLOCATE: text, ALLOCATED: text}
    instances = mig_text(fit, demand)
    return {**written, MIG_ALLOCATIONS: instances} if instances else written


def allocation_text(fit: Fit, demand: PodDemand) -> str:
    """`UUID,NVIDIA,MiB,cores:` for each card, `;` after each container, in the order of allocation."""
    return "".join(f"{''.join(map(_share_text, segment))};" for segment in _segments(fit, demand))


def _share_text(share: Slice) -> str:
    return f"{share.device_id},{_VENDOR},{share.memory_mib},{share.cores}:"


def _segments(fit: Fit, demand: PodDemand) -> list[list[Slice]]:
    counts_empty = any(device.model == _VENDOR for device in fit.devices)
    names = [c.name for c in demand.containers if c.request is not None or counts_empty]
    return [[share for share in fit.slices if share.container == name] for name in names]


def mig_text(fit: Fit, demand: PodDemand) -> str:
    """The list of MIG instances, as JSON; empty when there are none."""
    records = [
        {
            "containerIndex": container,
            "deviceIndex": position,
            "gpuUUID": share.device_id,
            "profile": share.placement.profile,
            "placement": {"start": share.placement.start, "size": share.placement.size},
        }
        for container, segment in enumerate(_segments(fit, demand))
        for position, share in enumerate(segment)
        if share.placement is not None
    ]
    return _compact(records) if records else ""


def parse_allocation(annotations: Mapping[str, str], place: str = "") -> tuple[tuple[RecordedShare, ...], ...] | None:
    """What each container holds by HAMi's record, init containers first; None without a record. Raises DecodeError."""
    text, instances = annotations.get(ALLOCATED, ""), annotations.get(MIG_ALLOCATIONS, "")
    if not text.strip():
        return None
    is_usual = len(text) + len(instances) <= _USUAL
    return _remembered(text, instances, place) if is_usual else _allocation(text, instances, place)


@lru_cache(maxsize=16384)
def _remembered(text: str, mig_text: str, place: str) -> tuple[tuple[RecordedShare, ...], ...]:
    """Read once: the record of a pod is asked for whenever anything on its node changes."""
    return _allocation(text, mig_text, place)


def _allocation(text: str, mig_text: str, place: str) -> tuple[tuple[RecordedShare, ...], ...]:
    instances = _instances(mig_text, place)
    return tuple(
        tuple(_recorded(entry, instances.get((container, position)), place) for position, entry in enumerate(entries))
        for container, entries in enumerate(_split(segment, ":") for segment in text.split(";")[:-1])
    )


def _split(text: str, separator: str) -> list[str]:
    return [part for part in text.split(separator) if part]


def _recorded(entry: str, placement: Placement | None, place: str) -> RecordedShare:
    values = entry.split(",")
    if len(values) != 4 or not all(_AMOUNT.fullmatch(number) for number in values[2:]):
        raise DecodeError(ALLOCATED, "UUID,type,MiB,cores", entry, place=place)
    return RecordedShare(values[0], int(values[2]), int(values[3]), placement)


def _instances(text: str, place: str) -> dict[tuple[int, int], Placement]:
    if not text.strip():
        return {}
    fields = _objects(MIG_ALLOCATIONS, text, place)
    return {(f.number("containerIndex"), f.number("deviceIndex")): _placement(f) for f in fields}


def _placement(fields: _Fields) -> Placement:
    at = fields.object("placement")
    return Placement(fields.text("profile"), at.number("start"), at.number("size"))
