"""Karpenter's objects to model values; forms and rules have been checked before."""

from typing import Any

from kerf.manifests.decode_meta import Meta, conditions_of, instant, taints_of
from kerf.model.constraints import NODE_POOL, Requirement, Requirements
from kerf.model.instancetypes import NodeOverlay
from kerf.model.nodeclaim import NodeClaim, NodeClassRef
from kerf.model.nodepool import WHEN_EMPTY_OR_UNDERUTILIZED, Budget, Disruption, NodePool
from kerf.model.quantities import Resources
from kerf.model.times import duration_s


def _requirements(raws: list[dict[str, Any]]) -> Requirements:
    return Requirements(
        Requirement.of(raw["key"], raw["operator"], raw.get("values") or (), raw.get("minValues")) for raw in raws
    )


def _node_class(raw: dict[str, Any]) -> NodeClassRef:
    return NodeClassRef(raw["group"], raw["kind"], raw["name"])


def _duration(text: str | None, default: str) -> int | None:
    return duration_s(default if text is None else text)


def node_pool_of(raw: dict[str, Any]) -> NodePool:
    """A NodePool with the defaults of its CRD."""
    meta, spec, status = Meta.of(raw), raw["spec"], raw.get("status") or {}
    template, of_template = spec["template"]["spec"], spec["template"].get("metadata") or {}
    limits = spec.get("limits")
    return NodePool(
        name=meta.name,
        node_class=_node_class(template["nodeClassRef"]),
        requirements=_requirements(template["requirements"]),
        labels=of_template.get("labels") or {},
        annotations=of_template.get("annotations") or {},
        taints=taints_of(template.get("taints")),
        startup_taints=taints_of(template.get("startupTaints")),
        limits=None if limits is None else Resources.parse(limits),
        weight=spec.get("weight") or 0,
        replicas=spec.get("replicas"),
        disruption=_disruption(spec.get("disruption") or {}),
        expire_after_s=_duration(template.get("expireAfter"), "720h"),
        termination_grace_period_s=_duration(template.get("terminationGracePeriod"), "Never"),
        own_annotations=meta.annotations,
        uid=meta.uid,
        generation=meta.generation,
        created_s=meta.created_s,
        deleted_s=meta.deleted_s,
        conditions=conditions_of(status),
        resources=Resources.parse(status.get("resources") or {}),
    )


def _disruption(raw: dict[str, Any]) -> Disruption:
    budgets = raw.get("budgets")
    return Disruption(
        consolidate_after_s=_duration(raw.get("consolidateAfter"), "0s"),
        policy=raw.get("consolidationPolicy") or WHEN_EMPTY_OR_UNDERUTILIZED,
        budgets=(Budget(),) if budgets is None else tuple(_budget(budget) for budget in budgets),
    )


def _budget(raw: dict[str, Any]) -> Budget:
    nodes, duration = raw.get("nodes"), raw.get("duration")
    return Budget(
        nodes="10%" if nodes is None else str(nodes),
        reasons=tuple(raw.get("reasons") or ()),
        schedule=raw.get("schedule"),
        duration_s=None if duration is None else duration_s(duration),
    )


def node_claim_of(raw: dict[str, Any]) -> NodeClaim:
    """A NodeClaim; its pool is the one its label names, empty when it has none."""
    meta, spec, status = Meta.of(raw), raw["spec"], raw.get("status") or {}
    return NodeClaim(
        name=meta.name,
        node_pool=meta.labels.get(NODE_POOL, ""),
        node_class=_node_class(spec["nodeClassRef"]),
        requirements=_requirements(spec["requirements"]),
        requests=Resources.parse((spec.get("resources") or {}).get("requests") or {}),
        taints=taints_of(spec.get("taints")),
        startup_taints=taints_of(spec.get("startupTaints")),
        labels=meta.labels,
        annotations=meta.annotations,
        expire_after_s=_duration(spec.get("expireAfter"), "720h"),
        termination_grace_period_s=_duration(spec.get("terminationGracePeriod"), "Never"),
        uid=meta.uid,
        resource_version=meta.resource_version,
        created_s=meta.created_s,
        deleted_s=meta.deleted_s,
        finalizers=meta.finalizers,
        provider_id=status.get("providerID") or "",
        node_name=status.get("nodeName") or "",
        capacity=Resources.parse(status.get("capacity") or {}),
        allocatable=Resources.parse(status.get("allocatable") or {}),
        conditions=conditions_of(status),
        last_pod_event_s=instant(status.get("lastPodEventTime")),
    )


def node_overlay_of(raw: dict[str, Any]) -> NodeOverlay:
    """A NodeOverlay; prices stay the text they are."""
    meta, spec = Meta.of(raw), raw["spec"]
    return NodeOverlay(
        name=meta.name,
        requirements=_requirements(spec["requirements"]),
        price=spec.get("price"),
        price_adjustment=spec.get("priceAdjustment"),
        capacity=Resources.parse(spec.get("capacity") or {}),
        weight=spec.get("weight") or 0,
        generation=meta.generation,
        conditions=conditions_of(raw.get("status") or {}),
    )
