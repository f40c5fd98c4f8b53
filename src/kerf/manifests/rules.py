"""Rules of Karpenter's objects that no single field can state, and what becomes of an object that breaks them.

There are two sorts. The CRDs refuse some objects by CEL rules; no server has such an object, and a manifest with one is
an error. Others a server takes and Karpenter refuses only when it runs (its RuntimeValidate), or takes although they
are mistakes. In a manifest these are errors too. A live object, which has a uid, must be read nevertheless, and is said
by its verdict: empty, or what is wrong with it.

The functions note problems in the report; the forms of single fields have been checked before.
"""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from kerf.errors import DecodeError
from kerf.manifests.schema import LABEL_KEY, LABEL_VALUE, Path, Report, is_quantity, path_text
from kerf.model.constraints import CAPACITY_TYPE, HOSTNAME, NODE_POOL
from kerf.model.instancetypes import CAPACITY_TYPE_ORDER

Object = dict[str, Any]
COMPARISONS = ("Gt", "Lt", "Gte", "Lte")
_DOMAIN = "karpenter.sh"
_BOUND = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)
_REDUCTION = re.compile(r"-(?:[0-9]{1,2}(?:\.[0-9]+)?|100)%", re.ASCII)
_BASIC_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
_MACROS = ("@annually", "@yearly", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_CRON: tuple[tuple[int, int, tuple[str, ...]], ...] = (
    (0, 59, ()),
    (0, 23, ()),
    (1, 31, ()),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
"""Least, most and names (the first is the least) of minute, hour, day, month and weekday."""
_MOST_MISTAKES = 3
"""Problems that a verdict gives."""
_MOST_LETTERS = 300
"""Of each: a path may hold a key of any length, and the API takes no endless message."""
_TEMPLATE: Path = ("spec", "template", "spec")


# What the CRDs refuse.


def check_node_pool(raw: Object, report: Report) -> None:
    """Labels, requirements, budgets, and what a static pool may not have."""
    spec = raw["spec"]
    labels: Path = ("spec", "template", "metadata", "labels")
    for key in _labels(spec):
        _check_key(key, (*labels, key), report, (CAPACITY_TYPE,))
    _check_requirements(spec["template"]["spec"]["requirements"], _TEMPLATE, report, (CAPACITY_TYPE,))
    for budget, path in _budgets(spec):
        _check_budget(budget, path, report)
    if spec.get("replicas") is not None:
        _check_static(spec, report)
    if not report.is_live:
        _note_unusable_pool(spec, report)
        _note_schedules(spec, report)
        _note_mistakes(spec["template"]["spec"], _TEMPLATE, report)


def check_node_claim(raw: Object, report: Report) -> None:
    """Requirements, as in a pool, save that a claim may name its pool. No mistakes: claims are not written by hand."""
    _check_requirements(raw["spec"]["requirements"], ("spec",), report, (CAPACITY_TYPE, NODE_POOL))


def check_node_overlay(raw: Object, report: Report) -> None:
    """At most one price; no capacity of what every machine has."""
    spec = raw["spec"]
    _check_requirements(
        spec["requirements"], ("spec",), report, (CAPACITY_TYPE, NODE_POOL), needs_values=("In", "NotIn")
    )
    if spec.get("price") is not None and spec.get("priceAdjustment") is not None:
        report.problem(("spec", "priceAdjustment"), "only one of price and priceAdjustment", spec["priceAdjustment"])
    adjustment = spec.get("priceAdjustment") or ""
    if adjustment.startswith("-") and adjustment.endswith("%") and _REDUCTION.fullmatch(adjustment) is None:
        report.problem(("spec", "priceAdjustment"), "at least -100%, such as -10% or -7.5%", adjustment)
    for name in _BASIC_RESOURCES:
        if name in (spec.get("capacity") or {}):
            report.problem(("spec", "capacity", name), "an extended resource", name, "the machine fixes this one")
    if not report.is_live:
        _note_unusable_overlay(spec, report)
        _note_mistakes(spec, ("spec",), report)


def _labels(spec: Object) -> Iterable[str]:
    return (spec["template"].get("metadata") or {}).get("labels") or {}


def _budgets(spec: Object) -> Iterable[tuple[Object, Path]]:
    budgets = (spec.get("disruption") or {}).get("budgets") or []
    return ((budget, ("spec", "disruption", "budgets", index)) for index, budget in enumerate(budgets))


def _check_key(key: str, path: Path, report: Report, allowed: tuple[str, ...]) -> None:
    if key in allowed:
        return
    if key == HOSTNAME:
        report.problem(path, "a label other than the node's name", key)
    elif key.partition("/")[0].endswith(_DOMAIN):
        report.problem(path, f"a label outside {_DOMAIN}, which is reserved", key, "use a domain of your own")


def _check_requirements(
    raws: list[Object],
    node: Path,
    report: Report,
    allowed: tuple[str, ...],
    *,
    needs_values: tuple[str, ...] = ("In",),
) -> None:
    """Keys, of which Karpenter keeps some for itself, and values."""
    for index, raw in enumerate(raws):
        path: Path = (*node, "requirements", index)
        _check_key(raw["key"], (*path, "key"), report, allowed)
        _check_values(raw, path, report, needs_values)


def _check_values(raw: Object, path: Path, report: Report, needs_values: tuple[str, ...]) -> None:
    operator, values, least = raw["operator"], raw.get("values") or [], raw.get("minValues")
    if operator in COMPARISONS and bound(values) is None:
        expected = f"exactly one whole number that is not negative, for {operator}"
        report.problem((*path, "values"), expected, values or None)
    elif operator in needs_values and not values:
        report.problem((*path, "values"), f"at least one value, for {operator}", None)
    if operator == "In" and least is not None and len(values) < least:
        report.problem((*path, "minValues"), f"at most the {len(values)} values of this requirement", least)


def bound(values: list[str]) -> int | None:
    """The one number that a comparison is with, as Go reads it; None where it is not one or negative."""
    found = _BOUND.fullmatch(values[0]) if len(values) == 1 else None
    number = int(found[2]) if found is not None else -1
    return None if found is None or number >= 2**63 or (number > 0 and found[1] == "-") else number


def _check_static(spec: Object, report: Report) -> None:
    for name in spec.get("limits") or {}:
        if name != "nodes":
            report.problem(("spec", "limits", name), "only `nodes` on a pool with replicas", name)
    if spec.get("weight") is not None:
        report.problem(("spec", "weight"), "no weight on a pool with replicas", spec["weight"])


def _check_budget(budget: Object, path: Path, report: Report) -> None:
    schedule, duration = budget.get("schedule"), budget.get("duration")
    if (schedule is None) != (duration is None):
        lacking = "duration" if duration is None else "schedule"
        report.problem((*path, lacking), "schedule and duration together, or neither", None)
    reasons = budget.get("reasons") or []
    for index, reason in enumerate(reasons):
        if reason in reasons[:index]:
            report.problem((*path, "reasons", index), "each reason once", reason)


# What a server takes.


def pool_verdict(spec: Object) -> str:
    """Why a NodePool can have no nodes."""
    return _verdict(_note_unusable_pool, spec)


def schedule_verdict(spec: Object) -> str:
    """Why no budget of a NodePool can be reckoned: Karpenter then disrupts none of its nodes."""
    return _verdict(_note_schedules, spec)


def overlay_verdict(spec: Object) -> str:
    """Why a NodeOverlay is applied nowhere."""
    return _verdict(_note_unusable_overlay, spec)


def _verdict(note: Callable[[Object, Report], None], spec: Object) -> str:
    report = Report()
    note(spec, report)
    mistakes = [str(DecodeError(path_text(p.path), p.expected, p.got))[:_MOST_LETTERS] for p in report.problems]
    more = [f"and {len(mistakes) - _MOST_MISTAKES} more"] if len(mistakes) > _MOST_MISTAKES else []
    return "; ".join((*mistakes[:_MOST_MISTAKES], *more))


def _note_unusable_pool(spec: Object, report: Report) -> None:
    for key in _labels(spec):
        if not LABEL_KEY.accepts(key):
            report.problem(("spec", "template", "metadata", "labels", key), LABEL_KEY.expected, key)
    _note_unusable_node(spec["template"]["spec"], _TEMPLATE, report)
    _note_unreadable(spec.get("limits"), ("spec", "limits"), report)


def _note_unusable_node(node: Object, path: Path, report: Report) -> None:
    _note_labels(node["requirements"], path, report)
    seen: set[tuple[str, str]] = set()
    for name in ("taints", "startupTaints"):
        for index, taint in enumerate(node.get(name) or []):
            at: Path = (*path, name, index)
            for field in ("key", "value"):
                text = taint.get(field)
                if text is not None and not LABEL_KEY.accepts(text):
                    expected = "a name of at most 63 letters, digits, -, _ and ., with a domain before it or none"
                    report.problem((*at, field), expected, text)
            if (taint["key"], taint["effect"]) in seen:
                report.problem(at, "one taint of a key and an effect", f"{taint['key']}:{taint['effect']}")
            seen.add((taint["key"], taint["effect"]))


def _note_unusable_overlay(spec: Object, report: Report) -> None:
    _note_labels(spec["requirements"], ("spec",), report)
    _note_unreadable(spec.get("capacity"), ("spec", "capacity"), report)


def _note_labels(raws: list[Object], node: Path, report: Report) -> None:
    """Requirements whose keys or values no label can have, or that no machine can meet."""
    hint = "requirements compare labels; a resource such as nvidia.com/gpu is asked for in the limits of a pod"
    for index, raw in enumerate(raws):
        path, values = (*node, "requirements", index), raw.get("values") or []
        if not LABEL_KEY.accepts(raw["key"]):
            report.problem((*path, "key"), LABEL_KEY.expected, raw["key"])
        if raw["operator"] in COMPARISONS and bound(values) is None:
            continue
        wrong = [(at, value) for at, value in enumerate(values) if not LABEL_VALUE.accepts(value)]
        for at, value in wrong:
            report.problem((*path, "values", at), LABEL_VALUE.expected, value, hint)
        if raw["key"] == CAPACITY_TYPE and raw["operator"] == "In" and not wrong:
            least = raw.get("minValues") or 1
            if sum(1 for value in values if value in CAPACITY_TYPE_ORDER) < min(least, len(values)):
                report.problem((*path, "values"), f"at least {least} of {', '.join(CAPACITY_TYPE_ORDER)}", values)


def _note_unreadable(amounts: Object | None, path: Path, report: Report) -> None:
    for name, amount in (amounts or {}).items():
        if amount is not None and not is_quantity(name, amount):
            report.problem((*path, name), "a quantity", amount)


def _note_mistakes(node: Object, path: Path, report: Report) -> None:
    for index, raw in enumerate(node["requirements"]):
        _note_vain_values(raw, (*path, "requirements", index), report)


def _note_vain_values(raw: Object, path: Path, report: Report) -> None:
    if raw["operator"] in ("Exists", "DoesNotExist") and raw.get("values"):
        report.problem((*path, "values"), f"no values, for {raw['operator']}", raw["values"])


def _note_schedules(spec: Object, report: Report) -> None:
    for budget, path in _budgets(spec):
        schedule = budget.get("schedule")
        if schedule is not None and schedule_of(schedule) is None:
            expected = "a cron expression of five fields in UTC that is due some day, or a macro such as @daily"
            report.problem((*path, "schedule"), expected, schedule)


def schedule_of(text: str) -> str | None:
    """A macro as it is; else five fields of numbers or `*`, as robfig/cron, which Karpenter uses, reads the text.

    None for what it does not read, such as a time zone, and for what is never due.
    """
    from cronsim import CronSim, CronSimError  # pools with schedules are rare, and start-up time is not

    if text in _MACROS:
        return text
    fields = text.split()
    if len(fields) != len(_CRON):
        return None
    try:
        plain = " ".join(_numbers(field, *bounds) for field, bounds in zip(fields, _CRON, strict=True))
        CronSim(plain, datetime(2026, 1, 1, tzinfo=UTC))
    except (ValueError, CronSimError):
        return None
    return plain


def _numbers(field: str, least: int, most: int, names: tuple[str, ...]) -> str:
    """The numbers of a field of cron, `*` where days are not restricted by it. Raises ValueError."""
    found: set[int] = set()
    is_star = False
    for part in filter(None, field.split(",")):
        span, slash, every = part.partition("/")
        low, dash, high = span.partition("-")
        step = _number(every) if slash else 1
        if low in ("*", "?"):
            start, end, is_star = least, most, is_star or step == 1
        else:
            start = _number(low, least, names)
            end = _number(high, least, names) if dash else (most if slash else start)
        if not least <= start <= end <= most or step < 1:
            raise ValueError(part)
        found.update(range(start, end + 1, step))
    if not found:
        raise ValueError(field)
    return "*" if is_star else ",".join(map(str, sorted(found)))


def _number(text: str, least: int = 0, names: tuple[str, ...] = ()) -> int:
    if text.lower() in names:
        return least + names.index(text.lower())
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)
