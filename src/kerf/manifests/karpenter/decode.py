"""Karpenter's objects to model values; forms and rules have been checked before.

What a server accepts is read, and where Karpenter could not carry it out the value says so. Numbers of any length are
cut to ones that are as good as endless: nothing behind this module should have to think of them.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kerf.manifests.metadata import Meta, conditions_of, instant, taints_of
from kerf.manifests.rules import COMPARISONS, bound, overlay_verdict, pool_verdict, schedule_of, schedule_verdict
from kerf.manifests.schema import is_quantity
from kerf.model.constraints import NODE_POOL, Requirement, Requirements
from kerf.model.instancetypes import NodeOverlay
from kerf.model.nodeclaim import NodeClaim, NodeClassRef
from kerf.model.nodepool import WHEN_EMPTY_OR_UNDERUTILIZED, Budget, Disruption, NodePool
from kerf.model.quantities import NOTHING, Resources
from kerf.model.times import duration_s

_EXPIRY = "720h"
"""The default of `expireAfter`."""
_LARGE_COUNT = 10**9
_PRICE_DIGITS = 15
"""Of a price before the point, and after it."""


def _requirements(raws: list[dict[str, Any]]) -> Requirements:
    return _required(tuple((raw["key"], raw["operator"], tuple(_values(raw)), raw.get("minValues")) for raw in raws))


@lru_cache(maxsize=4096)
def _required(rows: tuple[tuple[str, str, tuple[str, ...], int | None], ...]) -> Requirements:
    """Read once: a claim is reported again and again with the requirements that it was made with."""
    return Requirements(Requirement.of(key, operator, values, least) for key, operator, values, least in rows)


def _values(raw: dict[str, Any]) -> list[str]:
    values: list[str] = raw.get("values") or []
    return [str(bound(values))] if raw["operator"] in COMPARISONS else values


def _resources(raw: Mapping[str, Any] | None) -> Resources:
    """What can be read of it; null is absent."""
    return _parsed(tuple(raw.items())) if raw else NOTHING


@lru_cache(maxsize=4096)
def _parsed(items: tuple[tuple[str, Any], ...]) -> Resources:
    """One value for all nodes of a type, which state the same."""
    return Resources.parse({name: text for name, text in items if is_quantity(name, text)})


def _texts(raw: Mapping[str, str | None] | None) -> dict[str, str]:
    return {key: text for key, text in (raw or {}).items() if text is not None}


def _node_class(raw: dict[str, Any]) -> NodeClassRef:
    return NodeClassRef(raw["group"], raw["kind"], raw["name"])


def _duration(text: str | None, default: str) -> int | None:
    return duration_s(default if text is None else text)


def node_pool_of(raw: dict[str, Any]) -> NodePool:
    """A NodePool with the defaults of its CRD."""
    meta, spec, status = Meta.of(raw), raw["spec"], raw.get("status") or {}
    template, of_template = spec["template"]["spec"], spec["template"].get("metadata") or {}
    limits, invalid_schedule = spec.get("limits"), schedule_verdict(spec)
    return NodePool(
        name=meta.name,
        node_class=_node_class(template["nodeClassRef"]),
        requirements=_requirements(template["requirements"]),
        labels=_texts(of_template.get("labels")),
        annotations=_texts(of_template.get("annotations")),
        taints=taints_of(template.get("taints")),
        startup_taints=taints_of(template.get("startupTaints")),
        limits=None if limits is None else _resources(limits),
        weight=int(spec.get("weight") or 0),
        replicas=spec.get("replicas"),
        disruption=_disruption(spec.get("disruption") or {}, is_closed=bool(invalid_schedule)),
        expire_after_s=_duration(template.get("expireAfter"), _EXPIRY),
        termination_grace_period_s=_duration(template.get("terminationGracePeriod"), "Never"),
        own_labels=meta.labels,
        own_annotations=meta.annotations,
        uid=meta.uid,
        generation=meta.generation,
        created_s=meta.created_s,
        deleted_s=meta.deleted_s,
        conditions=conditions_of(status),
        resources=_resources(status.get("resources")),
        invalid=pool_verdict(spec),
        invalid_schedule=invalid_schedule,
    )


def _disruption(raw: dict[str, Any], *, is_closed: bool) -> Disruption:
    """`is_closed`: a schedule cannot be reckoned, which forbids all disruption, as in Karpenter."""
    budgets = [{"nodes": "0"}] if is_closed else raw.get("budgets")
    return Disruption(
        consolidate_after_s=_duration(raw.get("consolidateAfter"), "0s"),
        policy=raw.get("consolidationPolicy") or WHEN_EMPTY_OR_UNDERUTILIZED,
        budgets=(Budget(),) if budgets is None else tuple(_budget(budget) for budget in budgets),
    )


def _budget(raw: dict[str, Any]) -> Budget:
    nodes, duration, schedule = raw.get("nodes") or "10%", raw.get("duration"), raw.get("schedule")
    return Budget(
        nodes=nodes if len(nodes) < 10 else str(_LARGE_COUNT),
        reasons=tuple(raw.get("reasons") or ()),
        schedule=None if schedule is None else schedule_of(schedule),
        duration_s=None if duration is None else duration_s(duration),
        stated_schedule=" ".join((schedule or "").split()),
    )


def node_claim_of(raw: dict[str, Any]) -> NodeClaim:
    """A NodeClaim; its pool is the one its label names, empty when it has none."""
    meta, spec, status = Meta.of(raw), raw["spec"], raw.get("status") or {}
    return NodeClaim(
        name=meta.name,
        node_pool=meta.labels.get(NODE_POOL, ""),
        node_class=_node_class(spec["nodeClassRef"]),
        requirements=_requirements(spec["requirements"]),
        requests=_resources((spec.get("resources") or {}).get("requests")),
        taints=taints_of(spec.get("taints")),
        startup_taints=taints_of(spec.get("startupTaints")),
        labels=meta.labels,
        annotations=meta.annotations,
        expire_after_s=_duration(spec.get("expireAfter"), _EXPIRY),
        termination_grace_period_s=_duration(spec.get("terminationGracePeriod"), "Never"),
        uid=meta.uid,
        resource_version=meta.resource_version,
        created_s=meta.created_s,
        deleted_s=meta.deleted_s,
        finalizers=meta.finalizers,
        provider_id=status.get("providerID") or "",
        node_name=status.get("nodeName") or "",
        capacity=_resources(status.get("capacity")),
        allocatable=_resources(status.get("allocatable")),
        conditions=conditions_of(status),
        last_pod_event_s=instant(status.get("lastPodEventTime")),
    )


def node_overlay_of(raw: dict[str, Any]) -> NodeOverlay:
    """A NodeOverlay; prices stay the text they are, save for digits beyond any price."""
    meta, spec = Meta.of(raw), raw["spec"]
    return NodeOverlay(
        name=meta.name,
        requirements=_requirements(spec["requirements"]),
        price=_price(spec.get("price")),
        price_adjustment=_price(spec.get("priceAdjustment")),
        capacity=_resources(spec.get("capacity")),
        weight=int(spec.get("weight") or 0),
        generation=meta.generation,
        conditions=conditions_of(raw.get("status") or {}),
        invalid=overlay_verdict(spec),
    )


def _price(text: str | None) -> str | None:
    if text is None or len(text) <= _PRICE_DIGITS:
        return text
    sign, percent = text[0] if text[0] in "+-" else "", "%" if text.endswith("%") else ""
    whole, point, fraction = text.strip("+-%").partition(".")
    whole = whole.lstrip("0") or "0"
    whole = whole if len(whole) <= _PRICE_DIGITS else "9" * _PRICE_DIGITS
    return f"{sign}{whole}{point}{fraction[:_PRICE_DIGITS]}{percent}"
