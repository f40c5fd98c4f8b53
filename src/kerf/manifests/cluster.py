"""Nodes, NodeClasses, budgets, ConfigMaps, quotas, Namespaces, Services and RuntimeClasses to model values.

Forms have been checked before.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kerf.manifests.karpenter.bottlerocket import image_sharing
from kerf.manifests.karpenter.ec2 import KIND as EC2_KIND
from kerf.manifests.metadata import Meta, conditions_of, instant, shared_text, taints_of
from kerf.manifests.pods.decode import selector_of, toleration_of
from kerf.model.constraints import Requirements
from kerf.model.evidence import ClusterPolicy, read_version
from kerf.model.namespaces import NAMESPACE_NAME, Namespace, Service
from kerf.model.nodeclaim import READY, TRUE, Condition
from kerf.model.nodes import Node
from kerf.model.pods import RUNNING, Pod, PodDisruptionBudget
from kerf.model.quantities import Resources, quantity_of
from kerf.model.resourcequotas import QuotaScope
from kerf.model.runtimeclasses import RuntimeClass
from kerf.model.snapshot import ConfigMap, NodeClass, ResourceQuota

_HANDSHAKE = re.compile(r"[^/]*/node-(?:vgpu-)?handshake(?:-.*)?", re.DOTALL)
"""What HAMi's scheduler and a device plugin, and those of other vendors and Volcano, write twice in half a minute."""
_GONE = "Deleted"
_BESIDE_ID = ("zone", "availabilityZone", "name")
"""What says more of a thing with an id, the most telling first."""


def node_of(raw: dict[str, Any]) -> Node:
    """A Node. One without conditions is ready when a manifest describes it, and not when an API shows it."""
    meta, spec, status = Meta.of(raw), raw.get("spec") or {}, raw.get("status") or {}
    conditions = _node_conditions(status)
    ready = next((c for c in conditions if c.type == READY), None)
    return Node(
        name=meta.name,
        labels=meta.labels,
        annotations=_lasting(meta.annotations),
        taints=taints_of(spec.get("taints")),
        capacity=Resources.parse(status.get("capacity") or status.get("allocatable") or {}),
        allocatable=Resources.parse(status.get("allocatable") or status.get("capacity") or {}),
        provider_id=spec.get("providerID") or "",
        is_ready=not meta.uid if ready is None else ready.status == TRUE,
        ready_since_s=None if ready is None or not ready.since_s else ready.since_s,
        is_unschedulable=spec.get("unschedulable") is True,
        uid=meta.uid,
        resource_version=meta.resource_version,
        created_s=meta.created_s,
        deleted_s=meta.deleted_s,
        finalizers=meta.finalizers,
        conditions=conditions,
    )


def _lasting(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Without handshakes, save the word of those that say that the devices are gone: what they else hold is a time."""
    shaken = [key for key in annotations if _HANDSHAKE.fullmatch(key)]
    if not shaken:
        return annotations
    kept = {key: value for key, value in annotations.items() if key not in shaken}
    return kept | {key: _GONE for key in shaken if annotations[key].startswith(_GONE)}


def _node_conditions(status: dict[str, Any]) -> tuple[Condition, ...]:
    """The conditions by type, without their messages."""
    found = (
        Condition(
            shared_text(raw["type"]),
            shared_text(raw["status"]),
            shared_text(raw.get("reason") or ""),
            since_s=instant(raw.get("lastTransitionTime")) or 0,
        )
        for raw in status.get("conditions") or ()
    )
    return tuple(sorted(found, key=lambda condition: condition.type))


def node_class_of(raw: dict[str, Any]) -> NodeClass:
    """A provider's NodeClass; ready unless its Ready condition says otherwise, or it is being deleted."""
    status = raw.get("status") or {}
    conditions = conditions_of(status)
    ready = next((condition for condition in conditions if condition.type == READY), None)
    is_ready = ready is None or ready.status == TRUE
    reason = "" if ready is None or is_ready else ready.message or ready.reason
    group, meta = raw["apiVersion"].partition("/")[0], Meta.of(raw)
    if meta.deleted_s is not None:
        # As Karpenter, whose pools say that their NodeClass is terminating.
        is_ready, reason = False, "it is being deleted"
    return NodeClass(
        group,
        raw["kind"],
        meta.name,
        is_ready,
        reason,
        conditions,
        _selected(status),
        generation=meta.generation,
        sharing=image_sharing(raw) if raw["kind"] == EC2_KIND else None,
    )


def _selected(status: dict[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The lists of objects with an id, such as subnets and images."""
    found = {key: tuple(text for each in value if (text := _element(each))) for key, value in status.items()
             if key != "conditions" and isinstance(value, list)}  # fmt: skip
    return tuple((key, found[key]) for key in sorted(found) if found[key])


def _element(raw: Any) -> str:
    """`subnet-1 (us-east-1a)`, `ami-1 (al2023-2026)`; empty for what has no id."""
    if not isinstance(raw, dict) or not isinstance(raw.get("id"), str):
        return ""
    more = next((raw[key] for key in _BESIDE_ID if isinstance(raw.get(key), str) and raw[key]), "")
    return f"{raw['id']} ({more})" if more else raw["id"]


def config_map_of(raw: dict[str, Any]) -> ConfigMap:
    """A ConfigMap's text data."""
    meta = Meta.of(raw, is_namespaced=True)
    return ConfigMap(meta.namespace, meta.name, raw.get("data") or {}, meta.labels)


def cluster_policy_of(raw: dict[str, Any]) -> ClusterPolicy:
    """What a ClusterPolicy of NVIDIA's GPU operator says of its device plugin, which runs unless switched off."""
    spec = raw["spec"]
    plugin = spec.get("devicePlugin") or {}
    config, mig = plugin.get("config") or {}, spec.get("mig") or {}
    tolerations = (spec.get("daemonsets") or {}).get("tolerations")
    return ClusterPolicy(
        Meta.of(raw).name,
        has_plugin=plugin.get("enabled") is not False,
        config_map=config.get("name") or "",
        default=config.get("default") or "",
        mig_strategy=mig.get("strategy") or "",
        namespace=(raw.get("status") or {}).get("namespace") or "",
        tolerations=tuple(map(toleration_of, tolerations)) if tolerations else None,
        version=read_version(plugin.get("version") or ""),
    )


def quota_of(raw: dict[str, Any]) -> ResourceQuota:
    """The hard limits of a ResourceQuota, in the base unit of what each key counts."""
    meta = Meta.of(raw, is_namespaced=True)
    spec = raw["spec"]
    hard, selector = spec.get("hard") or {}, spec.get("scopeSelector") or {}
    scopes = [QuotaScope(name) for name in spec.get("scopes") or ()]
    for each in selector.get("matchExpressions") or ():
        scopes.append(QuotaScope(each["scopeName"], each["operator"], tuple(sorted(each.get("values") or ()))))
    amounts = {key: quantity_of(key.removeprefix("requests.").removeprefix("limits."), hard[key]) for key in hard}
    return ResourceQuota(meta.namespace, meta.name, dict(sorted(amounts.items())), scopes=tuple(scopes))


def namespace_of(raw: dict[str, Any]) -> Namespace:
    """A Namespace with its labels, and the one that the server adds."""
    meta = Meta.of(raw)
    return Namespace(meta.name, {**meta.labels, NAMESPACE_NAME: meta.name})


def service_of(raw: dict[str, Any]) -> Service:
    """A Service; without a selector its endpoints are made by hand and it selects no pod."""
    meta, selector = Meta.of(raw, is_namespaced=True), (raw.get("spec") or {}).get("selector") or {}
    return Service(shared_text(meta.namespace), meta.name, Requirements.spelt(selector) if selector else None)


def runtime_class_of(raw: dict[str, Any]) -> RuntimeClass:
    """A RuntimeClass with what admission adds to its pods."""
    scheduling = raw.get("scheduling") or {}
    return RuntimeClass(
        Meta.of(raw).name,
        Resources.parse((raw.get("overhead") or {}).get("podFixed") or {}),
        Requirements.of_labels(scheduling.get("nodeSelector") or {}),
        tuple(map(toleration_of, scheduling.get("tolerations") or ())),
    )


@dataclass(frozen=True, slots=True)
class BudgetReading:
    """A disruption budget; its two bounds matter only where no status says how many evictions it allows."""

    budget: PodDisruptionBudget
    has_status: bool
    min_available: int | str | None
    max_unavailable: int | str | None

    def completed(self, pods: Sequence[Pod]) -> PodDisruptionBudget:
        """The budget with the evictions it allows, counted over the running pods it covers (a share is rounded up)."""
        held = self.budget
        if self.has_status:
            return held
        expected = sum(1 for pod in pods if held.covers(pod) and not pod.is_ended)
        healthy = sum(1 for pod in pods if held.covers(pod) and pod.phase == RUNNING and pod.deleted_s is None)
        if self.max_unavailable is not None:
            desired = expected - _share(self.max_unavailable, expected)
        else:
            desired = _share(1 if self.min_available is None else self.min_available, expected)
        allowed = max(0, healthy - max(0, desired))
        return replace(held, disruptions_allowed=allowed)


def budget_of(raw: dict[str, Any]) -> BudgetReading:
    """A PodDisruptionBudget as far as the object itself says."""
    meta, spec = Meta.of(raw, is_namespaced=True), raw["spec"]
    allowed = (raw.get("status") or {}).get("disruptionsAllowed")
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    # As Karpenter's isFullyBlocking (pkg/utils/pdb): a number for minAvailable depends on how many pods there are.
    is_blocking = least == "100%" or most in (0, "0%")
    selector = selector_of(spec.get("selector"))
    lets_go = spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
    budget = PodDisruptionBudget(meta.namespace, meta.name, selector, allowed or 0, is_blocking, lets_go)
    return BudgetReading(budget, allowed is not None, least, most)


def _share(bound: int | str, expected: int) -> int:
    if isinstance(bound, int):
        return bound
    return -(-expected * int(bound[:-1]) // 100)
