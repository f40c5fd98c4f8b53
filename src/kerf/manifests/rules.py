"""Rules of Karpenter's objects that no single field can state (the CEL rules of its CRDs).

Each function notes problems in the report; the types have been checked before.
"""

import re
from datetime import UTC, datetime
from typing import Any

from kerf.manifests.schema import Path, Report
from kerf.model.constraints import CAPACITY_TYPE, HOSTNAME, NODE_POOL

_DOMAIN = "karpenter.sh"
_BOUND = re.compile(r"[0-9]{1,18}", re.ASCII)
_BASIC_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
_MACROS = ("@annually", "@yearly", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def check_requirement(raw: dict[str, Any], path: Path, report: Report, *, values_for_not_in: bool = False) -> None:
    """Operator and values must agree; comparisons take exactly one whole number."""
    operator, values = raw["operator"], raw.get("values") or []
    at = (*path, "values")
    if operator in ("Gt", "Lt", "Gte", "Lte"):
        if len(values) != 1 or _BOUND.fullmatch(values[0]) is None:
            report.problem(at, f"exactly one whole number that is not negative, for {operator}", values or None)
    elif operator == "In" or (operator == "NotIn" and values_for_not_in):
        if not values:
            report.problem(at, f"at least one value, for {operator}", None)
    elif operator in ("Exists", "DoesNotExist") and values:
        report.problem(at, f"no values, for {operator}", values)
    least = raw.get("minValues")
    if operator == "In" and least is not None and len(values) < least:
        report.problem((*path, "minValues"), f"at most the {len(values)} values of this requirement", least)


def _check_key(key: str, path: Path, report: Report, allowed: tuple[str, ...]) -> None:
    domain = key.rpartition("/")[0]
    if key in allowed:
        return
    if key == HOSTNAME:
        report.problem(path, "a label other than the node's name", key)
    elif domain == _DOMAIN or domain.endswith(f".{_DOMAIN}"):
        report.problem(path, f"a label outside {_DOMAIN}, which is reserved", key, "use a domain of your own")


def check_requirements(raws: list[dict[str, Any]], path: Path, report: Report, allowed: tuple[str, ...]) -> None:
    """Every requirement, and the keys that Karpenter keeps to itself."""
    for index, raw in enumerate(raws):
        check_requirement(raw, (*path, index), report)
        _check_key(raw["key"], (*path, index, "key"), report, allowed)


def check_node_pool(spec: dict[str, Any], report: Report) -> None:
    """Labels, requirements, budgets, and what a static pool may not have."""
    template = spec["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    for key in labels:
        _check_key(key, ("spec", "template", "metadata", "labels", key), report, (CAPACITY_TYPE,))
    path: Path = ("spec", "template", "spec", "requirements")
    check_requirements(template["spec"]["requirements"], path, report, (CAPACITY_TYPE,))
    for index, budget in enumerate((spec.get("disruption") or {}).get("budgets") or []):
        _check_budget(budget, ("spec", "disruption", "budgets", index), report)
    if spec.get("replicas") is not None:
        _check_static(spec, report)


def _check_static(spec: dict[str, Any], report: Report) -> None:
    for name in spec.get("limits") or {}:
        if name != "nodes":
            report.problem(("spec", "limits", name), "only `nodes` on a pool with replicas", name)
    if spec.get("weight") is not None:
        report.problem(("spec", "weight"), "no weight on a pool with replicas", spec["weight"])


def _check_budget(budget: dict[str, Any], path: Path, report: Report) -> None:
    schedule, duration = budget.get("schedule"), budget.get("duration")
    if (schedule is None) != (duration is None):
        lacking = "duration" if duration is None else "schedule"
        report.problem((*path, lacking), "schedule and duration together, or neither", None)
    if schedule is not None and schedule not in _MACROS and not _is_cron(schedule):
        report.problem((*path, "schedule"), "a cron expression of five fields", schedule)


def _is_cron(text: str) -> bool:
    from cronsim import CronSim, CronSimError  # pools with schedules are rare, and start-up time is not

    try:
        CronSim(text, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError:
        return False
    return True


def check_node_overlay(spec: dict[str, Any], report: Report) -> None:
    """At most one price; no capacity of what every machine has."""
    for index, raw in enumerate(spec["requirements"]):
        check_requirement(raw, ("spec", "requirements", index), report, values_for_not_in=True)
    if spec.get("price") is not None and spec.get("priceAdjustment") is not None:
        report.problem(("spec", "priceAdjustment"), "only one of price and priceAdjustment", spec["priceAdjustment"])
    adjustment = spec.get("priceAdjustment") or ""
    if adjustment.startswith("-") and adjustment.endswith("%") and float(adjustment[1:-1]) > 100:
        report.problem(("spec", "priceAdjustment"), "at least -100%", adjustment)
    for name in _BASIC_RESOURCES:
        if name in (spec.get("capacity") or {}):
            report.problem(("spec", "capacity", name), "an extended resource", name, "the machine fixes this one")


def check_node_claim(spec: dict[str, Any], report: Report) -> None:
    """Requirements, as in a pool, save that a claim may name its pool."""
    check_requirements(spec["requirements"], ("spec", "requirements"), report, (CAPACITY_TYPE, NODE_POOL))
