"""Reading a catalogue file: the KWOK generator's JSON, checked field by field.

Go's decoder, for which the shape was made, takes keys in any case and silently drops what it does not know, so a
file in the older shape (`capacityType`, `zone`) yields offerings without a place. Here that is an error with its path.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TypeVar

from kerf.catalog.gpus import shape_of
from kerf.errors import DecodeError
from kerf.model.constraints import CAPACITY_TYPE, REGION, RESERVATION, ZONE
from kerf.model.gpu import NVIDIA_GPU, DeviceShape
from kerf.model.instancetypes import CAPACITY_TYPE_ORDER, MICRO, RESERVED, Offering
from kerf.model.quantities import CPU, MEMORY, QuantityError, Resources, quantity_of

Value = TypeVar("Value")

OLD_SHAPE = 'write "requirements": [{"key", "operator", "values"}] as the KWOK generator does'
ENTRY_KEYS = ("name", "architecture", "operatingSystems", "resources", "offerings", "overhead", "labels", "devices")
OFFERING_KEYS = ("price", "available", "requirements", "reservationCapacity", "capacityOverride")
DEVICE_KEYS = ("model", "memoryMiB", "count")
MOST_CARDS, MOST_MEMORY_MIB, MOST_PRICE = 1024, 2**31 - 1, 10**9
"""Bounds far above any machine, so a slip of the keyboard does not fill memory."""
MOST_RESERVED = 1_000_000
_MOST_UNPRICED = 4
"""How many offerings without a price are named."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One type of a file; `resources` is capacity, `overhead` None means KWOK's own."""

    name: str
    architecture: str
    systems: tuple[str, ...]
    resources: Resources
    offerings: tuple[Offering, ...]
    overhead: Resources | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[DeviceShape, ...] = ()


class _Reader:
    """Takes values out of decoded JSON and says where a wrong one stands; collects notes on keys that are not read.

    `unpriced` are notes on offerings that are left out, because they have no price.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.notes: list[str] = []
        self.unpriced: list[str] = []

    def wrong(self, path: str, expected: str, got: object, hint: str = "") -> DecodeError:
        """The error for a value that is not as expected."""
        return DecodeError(path, expected, float(got) if isinstance(got, Decimal) else got, place=self.place, hint=hint)

    def mapping(self, value: object, path: str, keys: tuple[str, ...]) -> dict[str, object]:
        """An object with its keys in the spelling of `keys`, whatever their case; others are noted."""
        if not isinstance(value, dict):
            raise self.wrong(path, "an object", _shown(value))
        spelling = {key.lower(): key for key in keys}
        found = {}
        for key, held in value.items():
            if key.lower() in spelling:
                found[spelling[key.lower()]] = held
            else:
                self.notes.append(f"{self.place}: {path}.{key} is not read")
        return found

    def items(self, value: object, path: str) -> list[tuple[str, object]]:
        """The elements of a list, each with its path."""
        if not isinstance(value, list):
            raise self.wrong(path, "a list", _shown(value))
        return [(f"{path}[{index}]", held) for index, held in enumerate(value)]

    def text(self, value: object, path: str) -> str:
        """A text that is not empty."""
        if not isinstance(value, str) or not value:
            raise self.wrong(path, "a text", _shown(value))
        return value

    def texts(self, value: object, path: str) -> tuple[str, ...]:
        """A list of at least one text."""
        found = tuple(self.text(held, at) for at, held in self.items(value, path))
        if not found:
            raise self.wrong(path, "at least one text", "<an empty list>")
        return found

    def whole(self, value: object, path: str, most: int) -> int:
        """A whole number from 1 to `most`."""
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            raise self.wrong(path, f"a whole number from 1 to {most}", _shown(value))
        return value

    def named(self, value: object, path: str, read: Callable[[str, object, str], Value]) -> dict[str, Value]:
        """An object of any keys; `read` takes key, value and path."""
        if not isinstance(value, dict):
            raise self.wrong(path, "an object", _shown(value))
        return {key: read(key, held, f"{path}.{key}") for key, held in value.items()}

    def amount(self, name: str, value: object, path: str) -> int:
        """A quantity of a resource, in its base unit; not negative."""
        text = str(value) if isinstance(value, Decimal) else value
        if not isinstance(text, str | int) or isinstance(text, bool):
            raise self.wrong(path, "a quantity", _shown(value))
        try:
            found = quantity_of(name, text)
        except QuantityError:
            raise self.wrong(path, "a quantity like 4, 500m or 16Gi", value) from None
        if found < 0:
            raise self.wrong(path, "a quantity that is not negative", value)
        return found


def _shown(value: object) -> object:
    """A value for a message: scalars as they are, the rest by their kind."""
    kinds = {dict: "<an object>", list: "<a list>", type(None): "<nothing>"}
    return kinds.get(type(value), value)


def read(text: str, place: str) -> tuple[list[Entry], tuple[str, ...]]:
    """The entries of a file in their order, and notes on what is not read or left out. Raises DecodeError."""
    reader = _Reader(place)
    document = _parsed(text, place)
    entries = [_entry(reader, value, path) for path, value in reader.items(document, "")]
    seen: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if entry.name in seen:
            raise reader.wrong(f"[{index}].name", f"a name other than that of [{seen[entry.name]}]", entry.name)
        seen[entry.name] = index
    more = len(reader.unpriced) - _MOST_UNPRICED
    if more > 0:
        text = "1 offering more has no price and is" if more == 1 else f"{more} offerings more have no price and are"
        reader.unpriced[_MOST_UNPRICED:] = [f"{place}: {text} left out"]
    return entries, (*reader.notes, *reader.unpriced)


def _parsed(text: str, place: str) -> object:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:
            if key in found:
                raise DecodeError(key, "each key once", key, place=place)
            found[key] = value
        return found

    try:
        return json.loads(text, parse_float=Decimal, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        at = f"{place}:{error.lineno}:{error.colno}"
        raise DecodeError("", "JSON", f"<{error.msg}>", place=at) from None
    except RecursionError:
        raise DecodeError("", "JSON", "<too many levels>", place=place) from None
    except ValueError:
        raise DecodeError("", "JSON", "<a number of too many digits>", place=place) from None


def _entry(reader: _Reader, value: object, path: str) -> Entry:
    held = reader.mapping(value, path, ENTRY_KEYS)
    name = reader.text(held.get("name"), f"{path}.name")
    resources = Resources(reader.named(held.get("resources"), f"{path}.resources", reader.amount))
    for needed in (CPU, MEMORY):
        if needed not in resources:
            raise reader.wrong(f"{path}.resources.{needed}", "a quantity", "<nothing>")
    offered = [
        offering
        for at, each in reader.items(held.get("offerings"), f"{path}.offerings")
        for offering in _offerings(reader, each, at, name)
    ]
    overhead = held.get("overhead")
    cards = _devices(reader, held.get("devices", []), f"{path}.devices")
    return Entry(
        name,
        reader.text(held.get("architecture", "amd64"), f"{path}.architecture"),
        reader.texts(held.get("operatingSystems", ["linux"]), f"{path}.operatingSystems"),
        _with_cards(reader, resources, cards, path),
        tuple(offered),
        None if overhead is None else Resources(reader.named(overhead, f"{path}.overhead", reader.amount)),
        reader.named(held.get("labels", {}), f"{path}.labels", lambda _, each, at: reader.text(each, at)),
        cards,
    )


def _with_cards(reader: _Reader, resources: Resources, cards: tuple[DeviceShape, ...], path: str) -> Resources:
    """The resources, with `nvidia.com/gpu` filled in from the devices; both must agree where both are given."""
    if not cards:
        return resources
    stated = resources.get(NVIDIA_GPU, len(cards))
    if stated != len(cards):
        raise reader.wrong(f"{path}.resources.{NVIDIA_GPU}", f"{len(cards)}, the number of devices", stated)
    return resources.replaced({NVIDIA_GPU: len(cards)})


def _offerings(reader: _Reader, value: object, path: str, name: str) -> list[Offering]:
    """One offering a zone and capacity type that the requirements name; a reserved one also a reservation.

    None without a price, as catalogues that are made by a program have them: that takes no plan for the others away.
    """
    held = reader.mapping(value, path, OFFERING_KEYS)
    known: dict[str, tuple[str, ...]] = {ZONE: (), CAPACITY_TYPE: (), REGION: (), RESERVATION: ()}
    sets = known | _requirements(reader, held.get("requirements"), path)
    for key in (ZONE, CAPACITY_TYPE):
        if not sets[key]:
            raise reader.wrong(f"{path}.requirements", f"a requirement on {key}", "<none>", OLD_SHAPE)
    for kind in sets[CAPACITY_TYPE]:
        if kind not in CAPACITY_TYPE_ORDER:
            raise reader.wrong(f"{path}.requirements", "a capacity type: reserved, spot or on-demand", kind)
    available = held.get("available", True)
    if not isinstance(available, bool):
        raise reader.wrong(f"{path}.available", "true or false", _shown(available))
    stated = reader.named(held.get("capacityOverride", {}), f"{path}.capacityOverride", reader.amount)
    most = _most(reader, held, sets[RESERVATION], path)
    if _is_no_price(held.get("price")):
        sold = f"{' and '.join(sets[CAPACITY_TYPE])} in {', '.join(sets[ZONE])}"
        got = _shown(held.get("price"))
        reader.unpriced.append(f"{reader.place}: {name}, {sold}, has no price (got {got}) and is left out")
        return []
    price = _price(reader, held.get("price"), f"{path}.price")
    common = Offering("", "", price, available, capacity=Resources(stated))
    reserved = {RESERVED: [replace(common, reservation=id_, most=most) for id_ in sets[RESERVATION]]}
    return [
        replace(each, zone=zone, capacity_type=kind)
        for zone in sets[ZONE]
        for kind in sets[CAPACITY_TYPE]
        for each in reserved.get(kind) or [common]
    ]


def _most(reader: _Reader, held: dict[str, object], reservations: tuple[str, ...], path: str) -> int | None:
    """How many instances a reservation has, which must be stated; None without one."""
    stated = held.get("reservationCapacity")
    if not reservations:
        return None
    if not isinstance(stated, int) or isinstance(stated, bool) or not 0 <= stated <= MOST_RESERVED:
        expected = f"how many instances the reservation has, from 0 to {MOST_RESERVED}"
        raise reader.wrong(f"{path}.reservationCapacity", expected, _shown(stated))
    return stated


def _requirements(reader: _Reader, value: object, path: str) -> dict[str, tuple[str, ...]]:
    """The values that an offering's requirements allow, by key."""
    if value is None:
        raise reader.wrong(f"{path}.requirements", "a list", "<nothing>", OLD_SHAPE)
    sets = {}
    for at, each in reader.items(value, f"{path}.requirements"):
        held = reader.mapping(each, at, ("key", "operator", "values"))
        key = reader.text(held.get("key"), f"{at}.key")
        if key not in (ZONE, CAPACITY_TYPE, REGION, RESERVATION):
            raise reader.wrong(f"{at}.key", f"{ZONE} or {CAPACITY_TYPE}", key, "labels of the type go under `labels`")
        if held.get("operator") != "In":
            raise reader.wrong(f"{at}.operator", "In", _shown(held.get("operator")))
        sets[key] = reader.texts(held.get("values"), f"{at}.values")
    return sets


def _is_no_price(value: object) -> bool:
    """Whether it is none, or a number that no price is. JSON has no NaN and no infinity, Python's reader knows both."""
    if isinstance(value, float):
        return not math.isfinite(value)
    return value is None or (isinstance(value, int | Decimal) and value < 0)


def _price(reader: _Reader, value: object, path: str) -> int:
    """Millionths of the currency's unit an hour, half up; at least one of what costs anything."""
    if not isinstance(value, int | Decimal) or isinstance(value, bool) or not 0 <= value <= MOST_PRICE:
        raise reader.wrong(path, f"a price per hour from 0 to {MOST_PRICE}", _shown(value))
    return max(int(value > 0), int((Decimal(value) * MICRO + Decimal("0.5")) // 1))


def _devices(reader: _Reader, value: object, path: str) -> tuple[DeviceShape, ...]:
    """The cards in index order; `memoryMiB` is what registers, so nothing is taken off."""
    shapes: list[DeviceShape] = []
    for at, each in reader.items(value, path):
        held = reader.mapping(each, at, DEVICE_KEYS)
        memory = reader.whole(held.get("memoryMiB"), f"{at}.memoryMiB", MOST_MEMORY_MIB)
        model = reader.text(held.get("model"), f"{at}.model")
        count = reader.whole(held.get("count", 1), f"{at}.count", MOST_CARDS)
        shapes += [shape_of(model, memory, f"{reader.place}, {at}.memoryMiB")] * count
    return tuple(shapes)
