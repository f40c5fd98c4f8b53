"""Model values to the objects of the API that Kerf writes.

Decoding what is encoded gives the same value again; instants lose their fractions, as in the API. A requirement set
that no single operator can state becomes several entries of one key.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kerf.model.capacitybuffers import BufferStatus
from kerf.model.constraints import NODE_POOL, Requirement, Requirements, Taint
from kerf.model.events import Occurrence
from kerf.model.nodeclaim import INITIALIZED, LAUNCHED, READY, REGISTERED, Condition, NodeClaim, NodeClassRef
from kerf.model.nodes import Node
from kerf.model.quantities import NODES, Resources, quantity_text
from kerf.model.times import duration_text, instant_text

Object = dict[str, Any]
_KARPENTER = "karpenter.sh/v1"
_VERSIONS = {
    "NodeClaim": _KARPENTER,
    "NodePool": _KARPENTER,
    "NodeOverlay": "karpenter.sh/v1alpha1",
    "CapacityWindow": "kerf.dev/v1alpha1",
    "CronJob": "batch/v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "Job": "batch/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "PodDisruptionBudget": "policy/v1",
    "CapacityBuffer": "autoscaling.x-k8s.io/v1beta1",
    "ProvisioningRequest": "autoscaling.x-k8s.io/v1",
    "KWOKNodeClass": "karpenter.kwok.sh/v1alpha1",
    "EC2NodeClass": "karpenter.k8s.aws/v1",
    "ECSNodeClass": "karpenter.k8s.alibabacloud/v1alpha1",
}
"""Of the kinds that events are about, as far as they are not of the core group."""
_COMPONENT = "kerf"
_CONDITION_ORDER = {LAUNCHED: 0, REGISTERED: 1, INITIALIZED: 2, READY: 4}


def node_claim_object(claim: NodeClaim, pool_uid: str = "") -> Object:
    """A whole NodeClaim; with `pool_uid` it is owned by its NodePool."""
    metadata = _metadata(claim)
    if claim.node_pool:
        metadata["labels"] = {**metadata.get("labels", {}), NODE_POOL: claim.node_pool}
    if pool_uid:
        metadata["ownerReferences"] = [_owner("NodePool", claim.node_pool, pool_uid)]
    spec: Object = {
        "nodeClassRef": _node_class(claim.node_class),
        "requirements": requirement_list(claim.requirements),
        "resources": {"requests": resource_texts(claim.requests)},
        "expireAfter": duration_text(claim.expire_after_s),
    }
    if claim.taints:
        spec["taints"] = [taint_object(taint) for taint in claim.taints]
    if claim.startup_taints:
        spec["startupTaints"] = [taint_object(taint) for taint in claim.startup_taints]
    if claim.termination_grace_period_s is not None:
        spec["terminationGracePeriod"] = duration_text(claim.termination_grace_period_s)
    return {
        "apiVersion": _KARPENTER,
        "kind": "NodeClaim",
        "metadata": metadata,
        "spec": spec,
        "status": node_claim_status(claim),
    }


def node_claim_status(claim: NodeClaim) -> Object:
    """The status of a NodeClaim; what is not known yet is left out."""
    status: Object = {"conditions": condition_list(claim.conditions)}
    for name, text in (("providerID", claim.provider_id), ("nodeName", claim.node_name)):
        if text:
            status[name] = text
    for name, resources in (("capacity", claim.capacity), ("allocatable", claim.allocatable)):
        if resources:
            status[name] = resource_texts(resources)
    if claim.last_pod_event_s is not None:
        status["lastPodEventTime"] = instant_text(claim.last_pod_event_s)
    return status


def node_merged(raw: Object, node: Node) -> Object:
    """The node `raw` with what Kerf may change taken from `node`: metadata that we own, taints, cordon.

    All else stays as it is. `metadata.resourceVersion` becomes that of `node`, so an update of an old version is
    refused.
    """
    metadata = {**raw.get("metadata", {}), **_metadata(node)}
    for name, value in (("labels", node.labels), ("annotations", node.annotations), ("finalizers", node.finalizers)):
        if not value:
            metadata.pop(name, None)
    spec = {**raw.get("spec", {})}
    spec.pop("taints", None)
    spec.pop("unschedulable", None)
    if node.taints:
        spec["taints"] = _taints_kept(raw.get("spec", {}).get("taints") or (), node.taints)
    if node.is_unschedulable:
        spec["unschedulable"] = True
    return {**raw, "metadata": metadata, "spec": spec}


def _taints_kept(raws: Iterable[Object], taints: Iterable[Taint]) -> list[Object]:
    # A NoExecute taint carries the time since which it evicts: writing it again would start the clock again.
    held = {(raw.get("key"), raw.get("value") or "", raw.get("effect")): raw for raw in raws}
    return [held.get((taint.key, taint.value, taint.effect)) or taint_object(taint) for taint in taints]


def node_pool_status(resources: Resources, conditions: Iterable[Condition]) -> Object:
    """The status of a NodePool: what its nodes sum up to, their number (a column and `scale` read it), conditions."""
    return {
        "resources": resource_texts(resources),
        "nodes": resources.get(NODES, 0),
        "conditions": condition_list(conditions),
    }


def node_pool_status_merged(held: Object, resources: Resources | None, conditions: Iterable[Condition]) -> Object:
    """`held`, the status of a NodePool, with these conditions in place of those of their types, and the others kept.

    Without `resources` those that it has stay.
    """
    written = node_pool_status(resources or Resources(), conditions)
    types = {condition["type"] for condition in written["conditions"]}
    others = [condition for condition in held.get("conditions") or () if condition["type"] not in types]
    counted = {} if resources is None else {name: written[name] for name in ("resources", "nodes")}
    return {**held, **counted, "conditions": [*others, *written["conditions"]]}


def event_object(occurrence: Occurrence, now_s: float) -> Object:
    """A core/v1 Event. Its name follows from what happened and when, so writing it twice makes one event."""
    kind, key = occurrence.regards
    namespace, _, name = key.rpartition("/")
    identity = "\0".join((*occurrence.dedupe, str(int(now_s))))
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    regards = {"apiVersion": _VERSIONS.get(kind, "v1"), "kind": kind, "name": name}
    if namespace:
        regards["namespace"] = namespace
    if occurrence.uid:
        regards["uid"] = occurrence.uid
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{digest}", "namespace": namespace or "default"},
        "involvedObject": regards,
        "type": occurrence.type,
        "reason": occurrence.reason,
        "message": occurrence.message,
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
        "reportingInstance": _COMPONENT,
        "firstTimestamp": instant_text(now_s),
        "lastTimestamp": instant_text(now_s),
        "count": 1,
    }


def _metadata(value: NodeClaim | Node) -> Object:
    metadata: Object = {"name": value.name}
    texts = {"uid": value.uid, "resourceVersion": value.resource_version}
    metadata.update({name: text for name, text in texts.items() if text})
    if value.labels:
        metadata["labels"] = dict(sorted(value.labels.items()))
    if value.annotations:
        metadata["annotations"] = dict(sorted(value.annotations.items()))
    if value.finalizers:
        metadata["finalizers"] = list(value.finalizers)
    if value.created_s:
        metadata["creationTimestamp"] = instant_text(value.created_s)
    if value.deleted_s is not None:
        metadata["deletionTimestamp"] = instant_text(value.deleted_s)
    return metadata


def _owner(kind: str, name: str, uid: str) -> Object:
    return {"apiVersion": _VERSIONS[kind], "kind": kind, "name": name, "uid": uid, "blockOwnerDeletion": True}


def _node_class(reference: NodeClassRef) -> Object:
    return {"group": reference.group, "kind": reference.kind, "name": reference.name}


def requirement_list(requirements: Requirements) -> list[Object]:
    """The `requirements` of a spec, by key."""
    return [entry for key in sorted(requirements) for entry in _entries(requirements[key])]


def _entries(requirement: Requirement) -> Iterator[Object]:
    for index, (operator, values) in enumerate(requirement.forms()):
        entry: Object = {"key": requirement.key, "operator": operator}
        if values:
            entry["values"] = list(values)
        if index == 0 and requirement.min_values is not None:
            entry["minValues"] = requirement.min_values
        yield entry


def resource_texts(resources: Mapping[str, int]) -> dict[str, str]:
    """Quantities as the API writes them, by name."""
    return {name: quantity_text(name, resources[name]) for name in sorted(resources)}


def taint_object(taint: Taint) -> Object:
    """A taint of a node or a template."""
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, **value, "effect": taint.effect}


def toleration_object(taint: Taint) -> Object:
    """The toleration of a pod that lets it onto nodes with exactly this taint, as the API shows it."""
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}


def buffer_status(status: BufferStatus) -> Object:
    """The status of a CapacityBuffer, without what is not known."""
    held = {
        "replicas": status.replicas,
        "podTemplateRef": {"name": status.pod_template} if status.pod_template else None,
        "podTemplateGeneration": status.pod_template_generation,
        "provisioningStrategy": status.strategy or None,
        "conditions": condition_list(status.conditions),
    }
    return {name: value for name, value in held.items() if value is not None}


def condition_list(conditions: Iterable[Condition]) -> list[Object]:
    """Status conditions: the stages of a claim in their order, others by type, Ready last.

    Columns show the first that is not True, which has to be the stage that is awaited and not the sum of all.
    """
    return [
        {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason or condition.type,
            "message": condition.message,
            "lastTransitionTime": instant_text(condition.since_s),
        }
        for condition in sorted(conditions, key=lambda held: (_CONDITION_ORDER.get(held.type, 3), held.type))
    ]
