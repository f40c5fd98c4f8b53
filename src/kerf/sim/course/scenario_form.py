"""The form of a Scenario document, and its actions and expectations as values.

Each action and each expectation is one named field whose form stands beside the function that makes its value, so
a new one is one entry here.
"""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from kerf.clouds.device_plugins import FAULT_KINDS
from kerf.config import NODE_REPAIR, SWITCH
from kerf.manifests.schema import (
    ANYTHING,
    COUNT,
    DURATION,
    FILLED,
    INSTANT,
    NAME,
    TEXTS,
    WHOLE,
    ListOf,
    Path,
    Record,
    Report,
    Scalar,
    Schema,
    one_of,
    whole,
)
from kerf.model.instancetypes import MICRO, ON_DEMAND, RESERVED, SPOT
from kerf.model.policies import MIN_VALUES, PREFERENCES
from kerf.model.times import duration_s
from kerf.sim.course.steps import (
    Action,
    CostExpected,
    Delete,
    EventExpected,
    Expected,
    Fault,
    Interrupt,
    LostReply,
    NodeCondition,
    NodesExpected,
    PodsExpected,
    Price,
    Refuse,
    Restart,
    Scale,
    StockOut,
    Throttle,
)
from kerf.sim.kubernetes.scoring import STRATEGIES, ScoringStrategy
from kerf.sim.objects import Json, is_cluster_wide
from kerf.sim.traces.names import FORMATS
from kerf.sim.traces.timedpods import SHARING

API_VERSION, KIND = "kerf.dev/v1alpha1", "Scenario"
APPLY = "apply"
"""The action whose objects `scenario` reads, since they may stand in files."""

_SCALABLE = {"deployment": "Deployment", "statefulset": "StatefulSet", "replicaset": "ReplicaSet"}
_CAPACITY_TYPE = one_of(RESERVED, SPOT, ON_DEMAND)
_ONE_OR_MORE = whole(1)
_REPLICAS = whole(0, 1_000_000)
_MOST_MONEY = 1_000_000_000


def money_micro(value: object) -> int:
    """An amount such as 1.006 in millionths. Raises ValueError for what is none, is a billion or more, or too fine."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(value)
    try:
        micro = Decimal(str(value)) * MICRO
    except InvalidOperation:
        raise ValueError(value) from None
    if not micro.is_finite() or not 0 <= micro < _MOST_MONEY * MICRO or micro != micro.to_integral_value():
        raise ValueError(value)
    return int(micro)


def reference(text: str) -> tuple[str, str]:
    """(namespace, name) of `namespace/name`, or of a `name` in the namespace `default`."""
    namespace, _, name = text.rpartition("/")
    return namespace or "default", name


def _is_reference(value: object) -> bool:
    return isinstance(value, str) and all(value.split("/")) and value.count("/") <= 1


_REFERENCE = Scalar("text such as default/web (namespace and name)", _is_reference)
_MONEY = Scalar("an amount such as 1.006, with at most six decimals", lambda value: money_micro(value) >= 0)


class _OneOf:
    """A record in which exactly one of some fields is given."""

    def __init__(self, what: str, names: Iterable[str], fields: Mapping[str, Schema], required: str) -> None:
        self._what, self._names, self._known = what, tuple(names), frozenset(fields)
        self._record = Record(fields, (required,))

    def check(self, value: Any, path: Path, report: Report) -> None:
        """See Schema."""
        self._record.check(value, path, report)
        if not isinstance(value, dict) or not self._known.issuperset(value):
            return
        found = [name for name in self._names if value.get(name) is not None]
        if len(found) != 1:
            expected = f"one {self._what} ({', '.join(self._names)})"
            report.problem(path, expected, " and ".join(found) or None)

    def fits(self, value: Any, report: Report) -> bool:
        """See Schema."""
        if not self._record.fits(value, report):
            return False
        return sum(value.get(name) is not None for name in self._names) == 1


class _Form(NamedTuple):
    """How an action or an expectation is written, and what makes its value."""

    schema: Schema
    read: Callable[[Json], Any]


def _seconds(raw: Json, name: str, default: str) -> int:
    return duration_s(raw.get(name, default)) or 0


def _scale(raw: Json) -> Scale:
    key = next(name for name in _SCALABLE if name in raw)
    return Scale(_SCALABLE[key], *reference(raw[key]), raw["replicas"])


def _stock_out(raw: Json) -> StockOut:
    for_s = duration_s(raw["for"]) if "for" in raw else None
    return StockOut(raw.get("instanceType"), raw.get("zone"), raw.get("capacityType"), for_s)


def _refuse(raw: Json) -> Refuse:
    for_s = duration_s(raw["for"]) if "for" in raw else None
    return Refuse(raw.get("namespace", "default"), raw["podLabels"], raw["message"], for_s)


def _price(raw: Json) -> Price:
    return Price(raw["instanceType"], money_micro(raw["perHour"]), raw.get("zone"), raw.get("capacityType"))


def _fault(raw: Json) -> Fault:
    return Fault(raw["kind"], raw.get("nodePool", ""), raw.get("nodes", 1), raw.get("memoryPercent", 80))


def _delete(raw: Json) -> Delete:
    namespace, name = reference(raw["name"])
    return Delete(raw["kind"], "" if is_cluster_wide(raw["kind"]) else namespace, name)


def _restart(raw: Json) -> Restart:
    del raw  # It has no fields.
    return Restart()


_OFFERINGS: dict[str, Schema] = {"instanceType": FILLED, "zone": FILLED, "capacityType": _CAPACITY_TYPE}
_NODES: dict[str, Schema] = {
    "nodePool": NAME,
    "instanceType": FILLED,
    "capacityType": _CAPACITY_TYPE,
    "count": COUNT,
    "most": COUNT,
}
_REFUSED: dict[str, Schema] = {"namespace": NAME, "podLabels": TEXTS, "message": FILLED, "for": DURATION}
_CONDITION: dict[str, Schema] = {"node": NAME, "type": FILLED, "status": one_of("True", "False", "Unknown")}
_FAULT: dict[str, Schema] = {
    "nodePool": NAME,
    "kind": one_of(*FAULT_KINDS),
    "nodes": _ONE_OR_MORE,
    "memoryPercent": whole(1, 100),
}


_SCALE = _OneOf("workload", _SCALABLE, {**dict.fromkeys(_SCALABLE, _REFERENCE), "replicas": _REPLICAS}, "replicas")

_ACTIONS: dict[str, _Form] = {
    "scale": _Form(_SCALE, _scale),
    "stockout": _Form(Record({**_OFFERINGS, "for": DURATION}), _stock_out),
    "price": _Form(Record({**_OFFERINGS, "perHour": _MONEY}, ("instanceType", "perHour")), _price),
    "deviceFault": _Form(Record(_FAULT, ("kind",)), _fault),
    "interrupt": _Form(
        Record({"nodePool": NAME, "nodes": _ONE_OR_MORE}),
        lambda raw: Interrupt(raw.get("nodePool", ""), raw.get("nodes", 1)),
    ),
    "throttle": _Form(
        Record({"for": DURATION, "retryAfter": DURATION}, ("for",)),
        lambda raw: Throttle(_seconds(raw, "for", ""), _seconds(raw, "retryAfter", "5s")),
    ),
    "refuse": _Form(Record(_REFUSED, ("podLabels", "message")), _refuse),
    "lostReply": _Form(Record({"launches": _ONE_OR_MORE}), lambda raw: LostReply(raw.get("launches", 1))),
    "delete": _Form(Record({"kind": FILLED, "name": _REFERENCE}, ("kind", "name")), _delete),
    "condition": _Form(
        Record(
            {"node": NAME, "type": FILLED, "status": one_of("True", "False", "Unknown")}, ("node", "type", "status")
        ),
        lambda raw: NodeCondition(raw["node"], raw["type"], raw["status"]),
    ),
    "restart": _Form(Record({}), _restart),
}


def _money_of(raw: Json, name: str) -> int | None:
    return money_micro(raw[name]) if raw.get(name) is not None else None


_EXPECTATIONS: dict[str, _Form] = {
    "nodes": _Form(
        Record(_NODES),
        lambda raw: NodesExpected(
            raw.get("nodePool", ""),
            raw.get("instanceType", ""),
            raw.get("capacityType", ""),
            raw.get("count"),
            raw.get("most"),
        ),
    ),
    "pods": _Form(
        Record({"namespace": NAME, "pending": COUNT, "running": COUNT}),
        lambda raw: PodsExpected(raw.get("namespace", ""), raw.get("pending"), raw.get("running")),
    ),
    "cost": _Form(
        Record({"perHour": _MONEY, "total": _MONEY}),
        lambda raw: CostExpected(_money_of(raw, "perHour"), _money_of(raw, "total")),
    ),
    "event": _Form(
        Record({"reason": FILLED, "contains": FILLED, "regards": FILLED, "count": COUNT}, ("reason",)),
        lambda raw: EventExpected(raw["reason"], raw.get("contains", ""), raw.get("regards", ""), raw.get("count")),
    ),
}

_LATENCIES = ("launch", "register", "ready", "devicesReady", "terminate", "jitter")
_CLOUD: dict[str, Schema] = {
    "provider": one_of("aws", "alibaba", "kwok"),
    "region": FILLED,
    "catalog": FILLED,
    **dict.fromkeys(_LATENCIES, DURATION),
}
_SCORING: dict[str, Schema] = {
    "type": one_of(*STRATEGIES),
    "resources": ListOf(Record({"name": FILLED, "weight": whole(1, 100)}, ("name",))),
}
TRACE: dict[str, Schema] = {
    "file": FILLED,
    "format": one_of(*FORMATS),
    "copies": whole(1, 10_000),
    "skip": DURATION,
    "span": DURATION,
    "longest": DURATION,
    "restart": DURATION,
    "sharing": one_of(*SHARING),
    "boundEvery": DURATION,
}
TRACE_NAMES = tuple(TRACE)
ACTION_NAMES = (*_ACTIONS, APPLY)
EXPECTATION_NAMES = tuple(_EXPECTATIONS)
CLOUD_NAMES = tuple(_CLOUD)

_STEP = _OneOf(
    "action",
    ACTION_NAMES,
    {"at": DURATION, APPLY: ANYTHING, **{name: form.schema for name, form in _ACTIONS.items()}},
    "at",
)
_EXPECTED = _OneOf(
    "expectation",
    EXPECTATION_NAMES,
    {"at": DURATION, **{name: form.schema for name, form in _EXPECTATIONS.items()}},
    "at",
)
SCENARIO = Record(
    {
        "apiVersion": one_of(API_VERSION),
        "kind": one_of(KIND),
        "metadata": Record({"name": NAME}, ("name",)),
        "spec": Record(
            {
                "start": INSTANT,
                "duration": DURATION,
                "seed": WHOLE,
                "cloud": Record(_CLOUD),
                "settings": Record(
                    {
                        "preferencePolicy": one_of(*PREFERENCES),
                        "minValuesPolicy": one_of(*MIN_VALUES),
                        "defaultSpread": FILLED,
                        "spotToSpotConsolidation": one_of(*SWITCH),
                        "nodeRepair": one_of(*NODE_REPAIR),
                    }
                ),
                "scheduler": Record({"scoringStrategy": Record(_SCORING)}),
                "objects": ListOf(ANYTHING),
                "trace": Record(TRACE, ("file",)),
                "timeline": ListOf(_STEP),
                "expect": ListOf(_EXPECTED),
            },
            ("duration",),
        ),
    },
    ("apiVersion", "kind", "metadata", "spec"),
)
"""The whole document. Objects are not looked into: files and manifests are read apart."""


def action_of(raw: Json) -> Action | None:
    """The action of a checked timeline entry; None for `apply`."""
    name = next((name for name in _ACTIONS if raw.get(name) is not None), None)
    action: Action | None = None if name is None else _ACTIONS[name].read(_given(raw[name]))
    return action


def expected_of(raw: Json) -> Expected:
    """What a checked entry of `expect` expects."""
    name = next(name for name in _EXPECTATIONS if raw.get(name) is not None)
    expected: Expected = _EXPECTATIONS[name].read(_given(raw[name]))
    return expected


def scoring_of(raw: Json) -> ScoringStrategy:
    """The strategy of a checked `scoringStrategy`; what it leaves out is as in kube-scheduler."""
    default = ScoringStrategy()
    resources = tuple((each["name"], each.get("weight") or 1) for each in raw.get("resources") or ())
    return ScoringStrategy(raw.get("type") or default.type, resources or default.resources)


def _given(raw: Json) -> Json:
    """The fields that are given; `null` means that one is not."""
    return {name: value for name, value in raw.items() if value is not None}
