"""The form of a Scenario document, and its actions and expectations as values.

Each action and each expectation is one named field with its own form beside the function that makes the value of it,
so that a new one is one entry here.
"""

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from kerf.manifests.schema import (
    ANYTHING,
    BOOLEAN,
    COUNT,
    DURATION,
    FILLED,
    INSTANT,
    NAME,
    TEXT,
    ListOf,
    Record,
    Scalar,
    Schema,
    one_of,
    whole,
)
from kerf.manifests.times import duration_s
from kerf.model.instancetypes import MICRO, ON_DEMAND, RESERVED, SPOT
from kerf.sim.device_plugins import FAULT_KINDS
from kerf.sim.objects import Json, is_cluster_wide
from kerf.sim.steps import (
    Action,
    CostExpected,
    Delete,
    EventExpected,
    Expected,
    Fault,
    Interrupt,
    LostReply,
    NodesExpected,
    PodsExpected,
    Price,
    Restart,
    Scale,
    StockOut,
    Throttle,
)

SCALABLE = {"deployment": "Deployment", "statefulset": "StatefulSet", "replicaset": "ReplicaSet"}
_CAPACITY_TYPE = one_of(RESERVED, SPOT, ON_DEMAND)
_ONE_OR_MORE = whole(1)


def money_micro(value: object) -> int:
    """An amount such as 1.006 in millionths. Raises ValueError for what is no amount of that precision."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(value)
    try:
        micro = Decimal(str(value)) * MICRO
    except InvalidOperation:
        raise ValueError(value) from None
    if not micro.is_finite() or micro < 0 or micro != micro.to_integral_value():
        raise ValueError(value)
    return int(micro)


def _is_money(value: object) -> bool:
    return money_micro(value) >= 0


def reference(text: str) -> tuple[str, str]:
    """(namespace, name) of `namespace/name` or `name`, which is in the namespace `default`."""
    namespace, _, name = text.rpartition("/")
    return namespace or "default", name


def _is_reference(value: object) -> bool:
    return isinstance(value, str) and 1 <= len([p for p in value.split("/") if p]) == value.count("/") + 1 <= 2


_REFERENCE = Scalar("text such as default/web (namespace and name)", _is_reference)
_MONEY = Scalar("an amount such as 1.006, with at most six decimals", _is_money)


class _Form(NamedTuple):
    """How one action or expectation is written, and the value of it."""

    schema: Schema
    read: Callable[[Any], Any]


class _OneOf:
    """A record that has exactly one of some fields."""

    def __init__(self, record: Record, names: tuple[str, ...], what: str) -> None:
        self._record, self._names, self._what = record, names, what

    def check(self, value: Any, path: tuple[str | int, ...], report: Any) -> None:
        self._record.check(value, path, report)
        if isinstance(value, dict):
            found = [name for name in value if name in self._names and value[name] is not None]
            unknown = [name for name in value if name not in self._names and name != "at"]
            if len(found) != 1 and not unknown:
                got = ", ".join(found) or "<nothing>"
                report.problem(path, f"exactly one {self._what}: {', '.join(self._names)}", got)


def _scale(raw: Json) -> Scale:
    key = next(name for name in SCALABLE if name in raw)
    return Scale(SCALABLE[key], *reference(raw[key]), raw["replicas"])


def _stock_out(raw: Json) -> StockOut:
    for_s = duration_s(raw["for"]) if "for" in raw else None
    return StockOut(raw.get("instanceType"), raw.get("zone"), raw.get("capacityType"), for_s)


def _price(raw: Json) -> Price:
    return Price(raw["instanceType"], money_micro(raw["perHour"]), raw.get("zone"), raw.get("capacityType"))


def _fault(raw: Json) -> Fault:
    return Fault(raw["kind"], raw.get("nodePool", ""), raw.get("nodes", 1), raw.get("memoryPercent", 80))


def _delete(raw: Json) -> Delete:
    namespace, name = reference(raw["name"])
    return Delete(raw["kind"], "" if is_cluster_wide(raw["kind"]) else namespace, name)


_OFFERINGS: dict[str, Schema] = {"instanceType": FILLED, "zone": FILLED, "capacityType": _CAPACITY_TYPE}
_FAULT = {"nodePool": NAME, "kind": one_of(*FAULT_KINDS), "nodes": _ONE_OR_MORE, "memoryPercent": whole(1, 100)}
_SCALE = Record({**dict.fromkeys(SCALABLE, _REFERENCE), "replicas": COUNT}, ("replicas",))

ACTIONS: dict[str, _Form] = {
    "scale": _Form(_OneOf(_SCALE, tuple(SCALABLE), "workload"), _scale),
    "stockout": _Form(Record({**_OFFERINGS, "for": DURATION}), _stock_out),
    "price": _Form(Record({**_OFFERINGS, "perHour": _MONEY}, ("instanceType", "perHour")), _price),
    "deviceFault": _Form(Record(_FAULT, ("kind",)), _fault),
    "interrupt": _Form(
        Record({"nodePool": NAME, "nodes": _ONE_OR_MORE}), lambda raw: Interrupt(raw.get("nodePool", ""), raw.get("nodes", 1))
    ),
    "throttle": _Form(
        Record({"for": DURATION, "retryAfter": DURATION}, ("for",)),
        lambda raw: Throttle(duration_s(raw["for"]) or 0, duration_s(raw.get("retryAfter", "5s")) or 0),
    ),
    "lostReply": _Form(Record({"launches": _ONE_OR_MORE}), lambda raw: LostReply(raw.get("launches", 1))),
    "delete": _Form(Record({"kind": FILLED, "name": _REFERENCE}, ("kind", "name")), _delete),
    "restart": _Form(Record({}), lambda raw: Restart()),
}
"""By field name. `apply` is not among them: its objects are read by `scenario`."""
