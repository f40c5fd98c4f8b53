"""PodGroups, PodTemplates, ProvisioningRequests and CapacityBuffers to model values; form has been checked before."""

from typing import Any

from kerf.manifests.admission import AdmissionDefaults
from kerf.manifests.metadata import Meta, conditions_of
from kerf.manifests.pods.decode import spec_at
from kerf.manifests.schema import Report
from kerf.model.capacitybuffers import ACTIVE, BufferStatus, CapacityBuffer, ScalableRef
from kerf.model.groups import CoschedulingGroup, NativeWorkload, PodGroup, VolcanoGroup
from kerf.model.pods import Pod
from kerf.model.provisioningrequests import PodSet, PodTemplate, ProvisioningRequest
from kerf.model.quantities import Resources

Object = dict[str, Any]


def coscheduling_group_of(raw: Object) -> PodGroup:
    """A PodGroup of the coscheduling plugin."""
    return _group(CoschedulingGroup, raw)


def volcano_group_of(raw: Object) -> PodGroup:
    """A PodGroup of Volcano."""
    return _group(VolcanoGroup, raw)


def _group(kind: type[PodGroup], raw: Object) -> PodGroup:
    meta = Meta.of(raw, is_namespaced=True)
    return kind(meta.namespace, meta.name, raw["spec"].get("minMember") or 0, meta.uid, meta.resource_version)


def native_workload_of(raw: Object) -> NativeWorkload:
    """A Workload of Kubernetes itself; groups with the policy `basic` are no gangs."""
    meta, gangs = Meta.of(raw, is_namespaced=True), []
    for group in raw["spec"].get("podGroups") or ():
        least = ((group.get("policy") or {}).get("gang") or {}).get("minCount")
        gangs += [] if least is None else [(group["name"], least)]
    return NativeWorkload(meta.namespace, meta.name, 0, meta.uid, meta.resource_version, tuple(gangs))


def pod_template_of(raw: Object, report: Report, admission: AdmissionDefaults, source: str) -> PodTemplate:
    """A PodTemplate as the pod that would be made of it."""
    meta, template = Meta.of(raw, is_namespaced=True), raw["template"]
    metadata = template.get("metadata") or {}
    spec, invalid = spec_at(template["spec"], ("template", "spec"), report, admission, meta.namespace)
    pod = Pod(
        namespace=meta.namespace,
        name=meta.name,
        spec=spec,
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        invalid=invalid,
        source=source,
    )
    return PodTemplate(meta.namespace, meta.name, pod, meta.uid, meta.resource_version, meta.generation)


def provisioning_request_of(raw: Object) -> ProvisioningRequest:
    """A ProvisioningRequest of any class."""
    meta, spec = Meta.of(raw, is_namespaced=True), raw["spec"]
    return ProvisioningRequest(
        namespace=meta.namespace,
        name=meta.name,
        class_name=spec["provisioningClassName"],
        pod_sets=tuple(PodSet(each["podTemplateRef"]["name"], each["count"]) for each in spec["podSets"]),
        parameters=spec.get("parameters") or {},
        uid=meta.uid,
        resource_version=meta.resource_version,
        created_s=meta.created_s,
        deleted_s=meta.deleted_s,
        conditions=conditions_of(raw.get("status") or {}),
    )


def capacity_buffer_of(raw: Object) -> CapacityBuffer:
    """A CapacityBuffer of any strategy."""
    meta, spec, status = Meta.of(raw, is_namespaced=True), raw["spec"], raw.get("status") or {}
    template, scalable, limits = spec.get("podTemplateRef"), spec.get("scalableRef"), spec.get("limits")
    return CapacityBuffer(
        namespace=meta.namespace,
        name=meta.name,
        pod_template=template["name"] if template is not None else "",
        scalable=None
        if scalable is None
        else ScalableRef(scalable.get("apiGroup") or "", scalable["kind"], scalable["name"]),
        replicas=spec.get("replicas"),
        percentage=spec.get("percentage"),
        limits=None if limits is None else Resources.parse(limits),
        strategy=spec.get("provisioningStrategy") or ACTIVE,
        uid=meta.uid,
        resource_version=meta.resource_version,
        created_s=meta.created_s,
        deleted_s=meta.deleted_s,
        status=BufferStatus(
            status.get("replicas"),
            (status.get("podTemplateRef") or {}).get("name") or "",
            status.get("podTemplateGeneration"),
            status.get("provisioningStrategy") or "",
            conditions_of(status),
        ),
    )
