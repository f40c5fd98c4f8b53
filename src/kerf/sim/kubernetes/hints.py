"""kube-scheduler's queueing hints for what pods ask of other pods and of volumes.

A pod that was refused is tried again only after a change that may cure it, and each attempt in vain costs it its
nomination; so a hint that says too much is as wrong as one that says too little. Source: Kubernetes 1.36,
`isSchedulableAfter...` of plugins/{podtopologyspread,interpodaffinity,volumerestrictions,nodevolumelimits}.
"""

from kerf.model.pods import Pod
from kerf.sim.kubernetes.affinity import PodTerm, required_terms
from kerf.sim.kubernetes.filters import POD_AFFINITY, SPREAD, VOLUME_LIMITS, VOLUME_RESTRICTIONS, VOLUME_ZONE, VOLUMES
from kerf.sim.kubernetes.rooms import claim_names, mounts_of
from kerf.sim.kubernetes.spread import DO_NOT_SCHEDULE, constraints_of
from kerf.sim.objects import Json, labels_of, name_of

Plugins = frozenset[str]
_NONE: Plugins = frozenset()
_OF_CLAIMS = frozenset({VOLUME_RESTRICTIONS, VOLUME_LIMITS, VOLUMES, VOLUME_ZONE})
_OF_KINDS = {
    "PersistentVolume": frozenset({VOLUMES, VOLUME_ZONE}),
    "StorageClass": frozenset({VOLUMES, VOLUME_ZONE}),
    "CSINode": frozenset({VOLUME_LIMITS, VOLUMES}),
    "VolumeAttachment": frozenset({VOLUME_LIMITS}),
}
VOLUME_KINDS = frozenset({"PersistentVolumeClaim", *_OF_KINDS})
"""The kinds whose changes may let a pod mount its volumes."""


def cured_by_coming(raw: Json, other: Pod) -> Plugins:
    """Whose refusal of a waiting pod (its document) may be over, now that another pod is on a node."""
    cured = _spread(raw, other)
    return cured | {POD_AFFINITY} if _meets_all(required_terms(raw, "podAffinity"), other) else cured


def cured_by_leaving(raw: Json, pod: Pod, other: Pod, other_raw: Json) -> Plugins:
    """Whose refusal of a waiting pod may be over, now that another has left its node."""
    found = set(_spread(raw, other))
    mine, theirs = required_terms(raw, "podAntiAffinity"), required_terms(other_raw, "podAntiAffinity")
    if _meets_all(mine, other) or _meets_all(theirs, pod):
        found.add(POD_AFFINITY)
    mounts = mounts_of(other_raw)
    if mounts:
        found.add(VOLUME_LIMITS)
        claims = {*claim_names(mounts_of(raw))}
        has_disks = any(not volume.get("persistentVolumeClaim") for volume in mounts)
        if other.namespace == pod.namespace and (has_disks or not claims.isdisjoint(claim_names(mounts))):
            found.add(VOLUME_RESTRICTIONS)
    return frozenset(found)


def cured_by_volume(raw: Json, changed: Json) -> Plugins:
    """Whose refusal of a waiting pod may be over, now that an object of `VOLUME_KINDS` is new or has changed."""
    if changed["kind"] != "PersistentVolumeClaim":
        return _OF_KINDS[changed["kind"]]
    meta = raw["metadata"]
    if changed["metadata"].get("namespace") != meta.get("namespace"):
        return _NONE
    mounts = mounts_of(raw)
    ephemeral = [f"{meta['name']}-{volume['name']}" for volume in mounts if volume.get("ephemeral")]
    return _OF_CLAIMS if name_of(changed) in (*claim_names(mounts), *ephemeral) else _NONE


def _spread(raw: Json, other: Pod) -> Plugins:
    if other.namespace != (raw["metadata"].get("namespace") or "default"):
        return _NONE
    constraints = constraints_of(raw, DO_NOT_SCHEDULE)
    return frozenset({SPREAD}) if any(c.selector.matches(other.labels) for c in constraints) else _NONE


def _meets_all(terms: list[PodTerm], other: Pod) -> bool:
    # The hint knows no labels of namespaces (it passes nil for them).
    return bool(terms) and all(term.means(other, {}) for term in terms)


def is_of_others(raw: Json) -> bool:
    """Whether a pod asks anything of other pods or mounts anything: more than its spec and its room count then."""
    spec = raw["spec"]
    return bool(spec.get("topologySpreadConstraints") or spec.get("affinity") or mounts_of(raw))


def marks_of(raw: Json) -> str:
    """What sets pods apart that ask something of others; equal for pods of one workload."""
    spec = raw["spec"]
    parts = (labels_of(raw), spec.get("topologySpreadConstraints"), spec.get("affinity"), mounts_of(raw))
    return repr(parts)
