"""Reads a plan that `kerf plan -o json` has printed. Any user may have changed it: each field is checked first.

What the JSON of a plan has no field for is taken as the plan's own words have it: a node asks for its type, its
capacity type and its zone.
"""

import re
import sys
from pathlib import Path
from typing import Any

import msgspec

from kerf.errors import DecodeError, InputError, brief
from kerf.model.instancetypes import MICRO

API_VERSION = "kerf.dev/v1alpha1"
_MOST_BYTES = 256 * 1024 * 1024
_PLACE = re.compile(r"(?P<what>.*?)(?: - at `(?P<path>[^`]*)`)?", re.DOTALL)
_OF_STEPS = "`kerf plan --consolidate` puts each of its steps to the rules itself; give what `kerf plan -o json` prints"
_HINT = "give what `kerf plan -o json` prints"


class SliceRow(msgspec.Struct, rename="camel"):
    """A part of one card."""

    pod: str
    container: str
    memory_mib: int = msgspec.field(name="memoryMiB")
    cores: int
    resource: str = ""
    profile: str = ""
    start: int = 0


class DeviceRow(msgspec.Struct, rename="camel"):
    """A card with its parts."""

    index: int
    slices: list[SliceRow] = []


class LaunchRow(msgspec.Struct, rename="camel"):
    """A node to buy."""

    name: str
    node_pool: str
    instance_type: str
    capacity_type: str
    zone: str
    per_hour: float
    pods: list[str]
    alternatives: list[str] = []
    devices: list[DeviceRow] = []
    labels: dict[str, str] = {}
    replaces: list[str] = []


class PlacementRow(msgspec.Struct, rename="camel"):
    """A pod on a node that is there."""

    pod: str
    node: str
    devices: list[DeviceRow] = []


class UnplacedRow(msgspec.Struct, rename="camel"):
    """A pod that has no place."""

    pod: str


class DeletionRow(msgspec.Struct, rename="camel"):
    """A node that goes; `launches` come in its place first, and `moves` says where its pods go that move."""

    node: str
    node_pool: str
    per_hour_saved: float
    reason: str = ""
    launches: list[str] = []
    moves: list[PlacementRow] = []


class RelabelRow(msgspec.Struct, rename="camel"):
    """An idle node that gets another configuration."""

    node: str
    node_pool: str
    labels: dict[str, str]
    pods: list[str] = []


class EvictionRow(msgspec.Struct, rename="camel"):
    """A pod that makes room."""

    pod: str
    node: str
    for_pod: str = msgspec.field(name="for")
    by: str = "kerf"


class CostRow(msgspec.Struct, rename="camel"):
    """What the cluster costs an hour."""

    currency: str
    per_hour_before: float
    per_hour_after: float
    per_hour_lower_bound: float | None = None


class GpusRow(msgspec.Struct, rename="camel"):
    """Cards that are paid for, and how much of them is allocated."""

    paid: float
    allocated: float


class ProofPrice(msgspec.Struct, rename="camel"):
    """The price of a type in parts."""

    node_pool: str
    instance_type: str
    per_hour: float
    parts: dict[str, float] = {}
    cards: int = 0
    card: float = 0

    @property
    def total(self) -> float:
        """What all parts come to."""
        return sum(self.parts.values()) + self.cards * self.card


class ProofNode(msgspec.Struct, rename="camel"):
    """A type that needs no prices of parts."""

    node_pool: str
    instance_type: str


class ProofWorth(msgspec.Struct, rename="camel"):
    """What equal pods are worth, each."""

    pod: str
    pods: int
    per_hour: float


class ProofRow(msgspec.Struct, rename="camel"):
    """What proves the bound."""

    per_hour: float
    least_node_per_hour: float = msgspec.field(name="dearestNodePerHour")
    worth: list[ProofWorth]
    prices: list[ProofPrice] = []
    whole_nodes: list[ProofNode] = []


class PlanFile(msgspec.Struct, rename="camel"):
    """The whole plan, as far as rules look at it."""

    kind: str
    api_version: str
    cost: CostRow
    gpus: GpusRow
    launches: list[LaunchRow]
    placements: list[PlacementRow]
    deletions: list[DeletionRow] = []
    replacements: list[DeletionRow] = []
    relabels: list[RelabelRow] = []
    evictions: list[EvictionRow] = []
    unplaced: list[UnplacedRow] = []
    lower_bound: ProofRow | None = None


def read_plan(path: str) -> PlanFile:
    """The plan of a file, or of standard input for `-`. Raises InputError, and DecodeError with the field's place."""
    return decoded(_bytes(path), "standard input" if path == "-" else path)


def decoded(data: bytes, place: str) -> PlanFile:
    """The plan in these bytes; `place` is what they were read from."""
    try:
        raw = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"{place}: expected JSON, got {_what(error)}\nhint: {_HINT}") from error
    if not isinstance(raw, dict):
        raise DecodeError("", "the JSON object of a plan", raw, place=place, hint=_HINT)
    if raw.get("kind") != "Plan":
        hint = _OF_STEPS if raw.get("kind") == "Consolidation" else _HINT
        raise DecodeError("kind", "Plan", raw.get("kind"), place=place, hint=hint)
    if raw.get("apiVersion") != API_VERSION:
        raise DecodeError("apiVersion", API_VERSION, raw.get("apiVersion"), place=place, hint=_HINT)
    try:
        found = msgspec.convert(raw, PlanFile)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _refused(error, raw, place) from error
    _check_money(found, place)
    return found


def _bytes(path: str) -> bytes:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: expected a file with a plan, got {_what(error)}\nhint: {_HINT}") from error
    if len(data) > _MOST_BYTES:
        raise InputError(f"{path}: expected at most {_MOST_BYTES} bytes, got more\nhint: {_HINT}")
    return data


def _what(error: Exception) -> str:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return brief(said or "too deep a nesting")


def _refused(error: Exception, raw: Any, place: str) -> DecodeError:
    """The field that is not as it is read, from msgspec's `Expected X, got Y - at $.field`."""
    found = _PLACE.fullmatch(str(error))
    path = (found["path"] or "") if found is not None else ""
    what = (found["what"] if found is not None else str(error)).replace("`", "")
    expected = what.partition(", got ")[0].removeprefix("Expected ")
    return DecodeError(path.removeprefix("$").removeprefix("."), expected, _at(raw, path), place=place, hint=_HINT)


def _at(raw: Any, path: str) -> Any:
    """The value at a path such as `$.launches[0].pods`; what is there as far as it goes."""
    value = raw
    for name, index in re.findall(r"\.([A-Za-z0-9_]+)|\[(\d+)\]", path):
        try:
            value = value[name] if name else value[int(index)]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def micro(amount: float) -> int:
    """Money of the JSON in millionths."""
    return round(amount * MICRO)


def _check_money(plan: PlanFile, place: str) -> None:
    """Amounts that are no amounts of money: JSON has numbers beyond all that is counted."""
    amounts = [("cost.perHourBefore", plan.cost.per_hour_before), ("cost.perHourAfter", plan.cost.per_hour_after)]
    amounts += [("cost.perHourLowerBound", plan.cost.per_hour_lower_bound or 0)]
    amounts += [(f"launches[{at}].perHour", each.per_hour) for at, each in enumerate(plan.launches)]
    amounts += [("gpus.paid", plan.gpus.paid), ("gpus.allocated", plan.gpus.allocated)]
    for name, rows in (("deletions", plan.deletions), ("replacements", plan.replacements)):
        amounts += [(f"{name}[{at}].perHourSaved", each.per_hour_saved) for at, each in enumerate(rows)]
    for path, amount in amounts:
        if not abs(amount) < 1e12:
            raise DecodeError(path, "an amount below 1,000,000,000,000", amount, place=place, hint=_HINT)
