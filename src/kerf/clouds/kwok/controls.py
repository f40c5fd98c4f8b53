"""How a person makes the acted-out cloud slow, poor or faulty: the ConfigMap `kerf-kwok` in Kerf's namespace.

It is read on each use, so `kubectl edit` has its effect at once. What a fault has struck is written down in the
same ConfigMap (key `struck`): a fault of one node must not strike the next one too, not even after a restart.

    data:
      settings: "{launch: 2s, register: 1s, devicesReady: 500ms, terminate: 1s}"
      stockouts: "[{instanceType: g5.xlarge, zone: us-east-1a, capacityType: spot, until: '2026-01-05T08:00:00Z'}]"
      deviceFaults: "[{kind: registers-less, nodePool: g5-nodepool, nodes: 1, memoryPercent: 80}]"
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec
import yaml

from kerf.clouds.device_plugins import FAULT_KINDS
from kerf.clouds.kwok.records import InstanceRecord, Json, KwokLatencies, ObjectStore, date_text
from kerf.clouds.launching import Selection
from kerf.errors import DecodeError
from kerf.model.instancetypes import OfferingKey
from kerf.model.times import instant_s
from kerf.ports import NotFound
from kerf.telemetry import logger

CONTROLS = "kerf-kwok"
_STRUCK = "struck"
_SETTINGS = {
    "launch": "launch_s",
    "register": "register_s",
    "devicesReady": "devices_ready_s",
    "terminate": "terminate_s",
    "interruptionNotice": "notice_s",
    "startupTaints": "startup_s",
    "jitter": "jitter_s",
}
_LONGEST = 32 * 1024
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ms|h|m|s))+", re.ASCII)
_PART = re.compile(r"([0-9.]+)(ms|h|m|s)", re.ASCII)
_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_MOST_COMPLAINTS = 1000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StockOut:
    """Offerings that cannot be had before `until_s`."""

    selection: Selection
    until_s: float = float("inf")


@dataclass(frozen=True, slots=True)
class NodeFault:
    """What goes wrong with the next `nodes` nodes of a pool (of any pool when it is empty), as long as it is listed.

    `kind` is one of FAULT_KINDS; `memory_percent` is what each card registers of its memory with `registers-less`.
    """

    kind: str
    node_pool: str = ""
    nodes: int = 1
    memory_percent: int = 80

    @property
    def key(self) -> str:
        """What the ConfigMap calls it where it says whom it has struck: raising `nodes` lets it go on."""
        return "/".join((self.kind, self.node_pool or "*", str(self.memory_percent)))


@dataclass(frozen=True)
class Controls:
    """The ConfigMap as it was read. `struck` has, by the key of a fault, the claims it has struck, and when."""

    latencies: KwokLatencies
    stock_outs: tuple[StockOut, ...] = ()
    faults: tuple[NodeFault, ...] = ()
    struck: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def is_in_stock(self, key: OfferingKey, now_s: float) -> bool:
        """Whether the offering can be had."""
        return not any(now_s < out.until_s and out.selection.covers(key) for out in self.stock_outs)

    def strike_s(self, fault: NodeFault, record: InstanceRecord) -> float | None:
        """When the fault struck the instance; None when it did not."""
        text = self.struck.get(fault.key, {}).get(record.instance.claim_uid)
        return None if text is None else instant_s(text)


class Complaints:
    """Says each thing once: what a person has written wrongly is met again at every look."""

    def __init__(self) -> None:
        self._made: set[str] = set()

    def about(self, error: DecodeError) -> None:
        """Log it, unless it was logged before."""
        text = str(error)
        if text not in self._made and len(self._made) < _MOST_COMPLAINTS:
            self._made.add(text)
            logger("kwok").warning("ignored", error=text)


class ControlBook:
    """Reads the controls, and writes down whom a fault has struck. `defaults` hold where the ConfigMap is silent."""

    def __init__(self, store: ObjectStore, namespace: str, latencies: KwokLatencies, complaints: Complaints) -> None:
        self._store, self._namespace, self.defaults = store, namespace, latencies
        self._complain = complaints.about
        self._last: tuple[Json, Controls] | None = None
        self._striking = asyncio.Lock()

    async def read(self) -> Controls:
        """The controls as they are now; the same object as before when nothing has changed. Raises ApiError."""
        try:
            found = await self._store.get("ConfigMap", self._namespace, CONTROLS)
        except NotFound:
            found = {}
        data = found.get("data") or {}
        if self._last is None or self._last[0] != data:
            place = f"ConfigMap {self._namespace}/{CONTROLS}"
            self._last = data, _Reading(place, self._complain).controls(data, self.defaults)
        return self._last[1]

    async def strike(
        self, kind: str, record: InstanceRecord, now_s: float, *, is_new: bool
    ) -> tuple[NodeFault, float] | None:
        """The first fault of that kind that strikes the instance, and since when; None when it is spared.

        `is_new`: a fault that has nodes left may take it; else only one that has struck it before counts.
        """
        controls = await self.read()
        for fault in controls.faults:
            if fault.kind == kind and fault.node_pool in ("", record.node_pool):
                since = controls.strike_s(fault, record)
                if since is None and is_new:
                    since = await self._take(fault, record, now_s)
                if since is not None:
                    return fault, since
        return None

    async def _take(self, fault: NodeFault, record: InstanceRecord, now_s: float) -> float | None:
        async with self._striking:
            struck = (await self.read()).struck
            victims = struck.get(fault.key, {})
            if len(victims) >= fault.nodes:
                return None
            added = {**struck, fault.key: {**victims, record.instance.claim_uid: date_text(now_s)}}
            text = msgspec.json.encode(added, order="sorted").decode()
            await self._store.patch("ConfigMap", self._namespace, CONTROLS, {"data": {_STRUCK: text}})
        return now_s


class _Reading:
    """One pass over the ConfigMap; each entry that cannot be read is reported and left out."""

    def __init__(self, place: str, complain: Callable[[DecodeError], None]) -> None:
        self._place, self._complain = place, complain

    def controls(self, data: Mapping[str, str], latencies: KwokLatencies) -> Controls:
        return Controls(
            self._latencies(data, latencies),
            tuple(self._entries(data, "stockouts", self._stock_out)),
            _merged(self._entries(data, "deviceFaults", self._fault)),
            self._struck(data.get(_STRUCK, "{}")),
        )

    def _latencies(self, data: Mapping[str, str], latencies: KwokLatencies) -> KwokLatencies:
        given = self._parsed(data, "settings")
        if not isinstance(given, dict):
            return self._ignored("data.settings", "a mapping", given, latencies) if given else latencies
        for key, value in given.items():
            path = f"data.settings.{key}"
            seconds = _seconds(value)
            if key not in _SETTINGS:
                self._ignored(path, f"one of {', '.join(_SETTINGS)}", f"<the key {key}>", None)
            elif seconds is None:
                self._ignored(path, "a duration such as 2s or 500ms", value, None)
            else:
                latencies = replace(latencies, **{_SETTINGS[key]: seconds})
        return latencies

    def _entries(self, data: Mapping[str, str], key: str, read: Callable[[Json, str], T]) -> Iterator[T]:
        given = self._parsed(data, key)
        if not isinstance(given, list):
            if given:
                self._ignored(f"data.{key}", "a list", given, None)
            return
        for position, entry in enumerate(given):
            path = f"data.{key}[{position}]"
            try:
                if not isinstance(entry, dict):
                    raise self._error(path, "a mapping", entry)
                yield read(entry, path)
            except DecodeError as error:
                self._complain(error)

    def _stock_out(self, entry: Json, path: str) -> StockOut:
        texts = self._texts(entry, path, ("instanceType", "zone", "capacityType", "until"))
        until = texts.pop("until")
        try:
            until_s = instant_s(until) if until else float("inf")
        except ValueError as error:
            raise self._error(f"{path}.until", "an instant such as 2026-01-05T08:00:00Z", until) from error
        return StockOut(Selection(*(text or None for text in texts.values())), until_s)

    def _fault(self, entry: Json, path: str) -> NodeFault:
        texts = self._texts(entry, path, ("kind", "nodePool", "nodes", "memoryPercent"))
        if texts["kind"] not in FAULT_KINDS:
            raise self._error(f"{path}.kind", f"one of {', '.join(FAULT_KINDS)}", texts["kind"])
        nodes = self._number(texts["nodes"] or "1", f"{path}.nodes", 1, 100_000)
        percent = self._number(texts["memoryPercent"] or "80", f"{path}.memoryPercent", 1, 100)
        return NodeFault(texts["kind"], texts["nodePool"], nodes, percent)

    def _struck(self, text: str) -> Mapping[str, Mapping[str, str]]:
        try:
            struck = msgspec.json.decode(text, type=dict[str, dict[str, str]])
            for date in (date for victims in struck.values() for date in victims.values()):
                instant_s(date)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return self._ignored(f"data.{_STRUCK}", "JSON as Kerf wrote it", text[:100], {})
        return struck

    def _parsed(self, data: Mapping[str, str], key: str) -> object:
        """YAML or JSON with every scalar as text; None when there is nothing to read."""
        text = data.get(key, "")
        if len(text) > _LONGEST:
            return self._ignored(f"data.{key}", f"at most {_LONGEST} characters", f"<{len(text)}>", None)
        try:
            return yaml.load(text, Loader=yaml.BaseLoader)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            return self._ignored(f"data.{key}", "YAML", f"<text that is none: {' '.join(str(error).split())}>", None)

    def _texts(self, entry: Json, path: str, names: Sequence[str]) -> dict[str, str]:
        for name, value in entry.items():
            if name not in names:
                raise self._error(f"{path}.{name}", f"one of {', '.join(names)}", f"<the key {name}>")
            if not isinstance(value, str):
                raise self._error(f"{path}.{name}", "text", value)
        return {name: entry.get(name, "") for name in names}

    def _number(self, text: str, path: str, least: int, most: int) -> int:
        if text.isascii() and text.isdecimal() and len(text) < 10 and least <= int(text) <= most:
            return int(text)
        raise self._error(path, f"a whole number from {least} to {most}", text)

    def _error(self, path: str, expected: str, got: object) -> DecodeError:
        # A list may hold itself a million times over by aliases: only text is shown.
        shown = got if isinstance(got, str) else "<a mapping>" if isinstance(got, dict) else "<a list>"
        return DecodeError(path, expected, shown[:200], place=self._place)

    def _ignored(self, path: str, expected: str, got: object, instead: T) -> T:
        self._complain(self._error(path, expected, got))
        return instead


def _merged(faults: Iterator[NodeFault]) -> tuple[NodeFault, ...]:
    """Entries that differ in `nodes` alone are one fault of so many nodes."""
    found: dict[str, NodeFault] = {}
    for fault in faults:
        held = found.get(fault.key)
        found[fault.key] = fault if held is None else replace(fault, nodes=fault.nodes + held.nodes)
    return tuple(found.values())


def _seconds(text: object) -> float | None:
    """Seconds of `1m30s`, `500ms` or a plain number; None for anything else."""
    if not isinstance(text, str):
        return None
    if re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", text, re.ASCII):
        return float(text)
    if _DURATION.fullmatch(text) is None:
        return None
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))
