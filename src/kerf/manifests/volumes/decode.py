"""Claims, volumes, StorageClasses, CSINodes and VolumeAttachments to model values; forms have been checked before."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from kerf.manifests.metadata import Meta, shared_text
from kerf.manifests.pods.claims import claim_template_of, requested_of, storage_of
from kerf.manifests.pods.selectors import node_expressions_of, selector_of
from kerf.model.constraints import ALIASES, ANYTHING, REGION, ZONE, Requirement, Requirements
from kerf.model.volumes import (
    BIND_COMPLETED,
    DEFAULT_CLASS,
    MIGRATED,
    NO_FORM,
    OLD_CLASS,
    OLD_DEFAULT_CLASS,
    SELECTED_NODE,
    ClaimTemplate,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    VolumeForm,
    names_node,
    zone_key,
)

Object = dict[str, Any]
_BETWEEN_ZONES = "__"
"""What stands between the zones in the label of a volume that is in several (cloud-provider LabelZonesToSet)."""


def volume_claim_of(raw: Object) -> PersistentVolumeClaim:
    """A PersistentVolumeClaim. One of a manifest that names a volume is bound to it, as its author means."""
    meta, spec, status = Meta.of(raw, is_namespaced=True), raw["spec"], raw.get("status") or {}
    volume, phase = spec.get("volumeName") or "", status.get("phase")
    has_completed = BIND_COMPLETED in meta.annotations or phase == "Bound"
    return PersistentVolumeClaim(
        shared_text(meta.namespace),
        meta.name,
        _class_of(spec, meta.annotations),
        volume,
        is_bound=bool(volume) and (has_completed or not meta.uid),
        is_lost=phase == "Lost",
        is_deleting=meta.deleted_s is not None,
        is_of_one_pod="ReadWriteOncePod" in (spec.get("accessModes") or ()),
        selected_node=shared_text(meta.annotations.get(SELECTED_NODE, "")),
        owner_uid=meta.owner.uid if meta.owner is not None and meta.owner.kind == "Pod" else "",
        requested_bytes=max(requested_of(spec), storage_of(status.get("allocatedResources"))),
        form=NO_FORM if volume else _form(spec),
        selector=ANYTHING if volume or spec.get("selector") is None else selector_of(spec["selector"]),
        attributes_classes=_attributes_classes(spec, status),
        is_new=not (meta.uid or volume or phase),
    )


def _attributes_classes(spec: Object, status: Object) -> tuple[str, ...]:
    """As quota counts them (kubernetes pkg/quota/v1/evaluator/core, getReferencedVolumeAttributesClassNames)."""
    target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    named = spec.get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"), target
    return tuple(sorted({shared_text(each) for each in named if each}))


def _form(spec: Object) -> VolumeForm:
    modes = frozenset(spec.get("accessModes") or ())
    return _shared_form(modes, spec.get("volumeMode") == "Block", spec.get("volumeAttributesClassName") or "")


@lru_cache(maxsize=256)
def _shared_form(modes: frozenset[str], is_block: bool, attributes_class: str) -> VolumeForm:
    return VolumeForm(modes, is_block, attributes_class)


def _class_of(spec: Mapping[str, Any], annotations: Mapping[str, str]) -> str | None:
    """The class a claim names, the old annotation first, as `GetPersistentVolumeClaimClass` of Kubernetes."""
    named = annotations.get(OLD_CLASS, spec.get("storageClassName"))
    return None if named is None else shared_text(named)


def volume_of(raw: Object) -> PersistentVolume:
    """A PersistentVolume with what its node affinity and its labels of zone and region ask of a node."""
    meta, spec = Meta.of(raw), raw["spec"]
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    terms = (_term(term) for term in required.get("nodeSelectorTerms") or ())
    is_open = (raw.get("status") or {}).get("phase") in (None, "Available", "Pending") and meta.deleted_s is None
    claim = spec.get("claimRef") or {}
    # Once it was bound the volume knows the claim's uid; of an old claim it is of no use to a new one of the same name.
    is_kept = is_open and bool(claim) and not claim.get("uid")
    is_free = is_open and not claim and (raw.get("status") or {}).get("phase") != "Pending"
    return PersistentVolume(
        meta.name,
        tuple(dict.fromkeys(terms)),
        _zones(meta.labels),
        shared_text(_driver_of(spec)),
        shared_text(spec.get("storageClassName") or ""),
        is_local=spec.get("local") is not None or spec.get("hostPath") is not None,
        is_free=is_free,
        capacity_bytes=storage_of(spec.get("capacity")),
        kept_for=f"{claim.get('namespace') or 'default'}/{claim.get('name')}" if is_kept else "",
        form=_form(spec) if is_free or is_kept else NO_FORM,
        labels=_labels(meta.labels) if is_free else (),
    )


def _labels(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Sorted, as they are spelt: a selector of a claim reads them so."""
    return tuple(sorted(labels.items()))


def _driver_of(spec: Mapping[str, Any]) -> str:
    driver: str = (spec.get("csi") or {}).get("driver") or ""
    return driver or next((name for kind, name in MIGRATED.items() if spec.get(kind) is not None), "")


def _term(raw: Object) -> Requirements:
    found = node_expressions_of({**each, "key": zone_key(each["key"])} for each in raw.get("matchExpressions") or ())
    return _shared(found)


def _zones(labels: Mapping[str, str]) -> Requirements:
    held = ((key, labels[key]) for key in sorted(labels) if ALIASES.get(key, key) in (ZONE, REGION))
    found = Requirements(Requirement.of(key, "In", text.split(_BETWEEN_ZONES)) for key, text in held)
    return _shared(found) if found else ANYTHING


@lru_cache(maxsize=4096)
def _shared(terms: Requirements) -> Requirements:
    """The first of all equal ones: thousands of volumes are in one zone."""
    return terms


def storage_class_of(raw: Object) -> StorageClass:
    """A StorageClass; without a binding mode its volumes are made at once."""
    meta = Meta.of(raw)
    is_default = any(meta.annotations.get(key) == "true" for key in (DEFAULT_CLASS, OLD_DEFAULT_CLASS))
    topologies = (_topology(term) for term in raw.get("allowedTopologies") or ())
    return StorageClass(
        meta.name,
        raw["provisioner"],
        raw.get("volumeBindingMode") == "WaitForFirstConsumer",
        tuple(dict.fromkeys(topologies)),
        is_default,
        meta.created_s,
    )


def _topology(raw: Object) -> Requirements:
    return Requirements(
        Requirement.of(zone_key(each["key"]), "In", each["values"]) for each in raw.get("matchLabelExpressions") or ()
    )


def csi_node_of(raw: Object) -> CSINode:
    """A CSINode with the limits of its drivers, by name, and those whose volumes all nodes reach, or this one alone."""
    drivers = raw["spec"].get("drivers") or ()
    everywhere = sorted(shared_text(each["name"]) for each in drivers if not each.get("topologyKeys"))
    of_node = sorted(
        shared_text(each["name"]) for each in drivers if any(map(names_node, each.get("topologyKeys") or ()))
    )
    limits = {each["name"]: (each.get("allocatable") or {}).get("count") for each in drivers}
    return CSINode(
        shared_text(Meta.of(raw).name),
        tuple(sorted((shared_text(name), count) for name, count in limits.items() if count is not None)),
        tuple(everywhere),
        tuple(of_node),
    )


def volume_attachment_of(raw: Object) -> VolumeAttachment:
    """A VolumeAttachment; one without a status is not attached yet."""
    spec, status = raw["spec"], raw.get("status") or {}
    volume = spec["source"].get("persistentVolumeName") or ""
    return VolumeAttachment(
        Meta.of(raw).name, shared_text(spec["nodeName"]), shared_text(volume), status.get("attached") is True
    )


def claim_templates_of(raws: Iterable[Object]) -> tuple[ClaimTemplate, ...]:
    """Of a StatefulSet; one without a name makes no claim."""
    named = (((raw.get("metadata") or {}).get("name"), raw.get("spec") or {}) for raw in raws)
    return tuple(claim_template_of(name, spec) for name, spec in named if name)
