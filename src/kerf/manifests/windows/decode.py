"""CapacityWindows to model values; form and rules have been checked before."""

from dataclasses import replace
from typing import Any

from kerf.manifests.admission import AdmissionDefaults
from kerf.manifests.metadata import Meta, conditions_of, instant
from kerf.manifests.pods.decode import selector_of, spec_at
from kerf.manifests.schema import Report
from kerf.manifests.windows.form import window_verdict
from kerf.model.constraints import NODE_POOL, Requirement, Requirements, Toleration
from kerf.model.pods import Pod
from kerf.model.quantities import quantity
from kerf.model.times import duration_s
from kerf.model.windows import (
    FINISH,
    HOLD,
    PER_NAMESPACE,
    WINDOW_LABEL,
    CapacityWindow,
    Quota,
    Reservation,
    WarmCapacity,
    WindowStatus,
)

_MILLI_GPU_HOUR = 36_000
"""In ten-thousandths of a card times seconds."""


def window_of(raw: dict[str, Any], report: Report, admission: AdmissionDefaults, source: str) -> CapacityWindow:
    """A CapacityWindow with the defaults of its CRD."""
    meta, spec = Meta.of(raw), raw["spec"]
    pools = tuple(spec.get("nodePools") or ())
    quota, lead, deadline = spec.get("quota"), spec.get("leadTime"), spec.get("evictionDeadline")
    warm = tuple(
        _warm(meta.name, index, each, pools, (report, admission, source))
        for index, each in enumerate(spec.get("warm") or ())
    )
    return CapacityWindow(
        name=meta.name,
        schedule=spec["schedule"],
        time_zone=spec.get("timeZone") or "UTC",
        duration_s=duration_s(spec["duration"]) or 0,
        selector=selector_of(spec["pods"]["selector"]),
        namespaces=tuple(spec["pods"].get("namespaces") or ()),
        node_pools=pools,
        warm=warm,
        lead_time_s=None if lead is None else duration_s(lead),
        outside=spec.get("outside") or HOLD,
        at_end=spec.get("atEnd") or FINISH,
        eviction_deadline_s=None if deadline is None else duration_s(deadline),
        queue_priority=spec.get("queuePriority") or 0,
        quota=None if quota is None else _quota(quota),
        uid=meta.uid,
        resource_version=meta.resource_version,
        generation=meta.generation,
        created_s=meta.created_s,
        deleted_s=meta.deleted_s,
        finalizers=meta.finalizers,
        status=_status(raw.get("status") or {}),
        invalid=window_verdict(raw) or next((str(w.pod.invalid) for w in warm if w.pod.invalid is not None), ""),
    )


def _quota(raw: dict[str, Any]) -> Quota:
    return Quota(quantity(raw["gpuHours"], milli=True) * _MILLI_GPU_HOUR, raw.get("per") or PER_NAMESPACE)


def _warm(
    window: str,
    index: int,
    raw: dict[str, Any],
    pools: tuple[str, ...],
    reading: tuple[Report, AdmissionDefaults, str],
) -> WarmCapacity:
    """The pod has no uid: what an API server and a sharing family would add to it is added where it is planned."""
    report, admission, source = reading
    template = raw["template"]
    metadata = template.get("metadata") or {}
    path = ("spec", "warm", index, "template", "spec")
    spec, invalid = spec_at(template["spec"], path, report, admission, "")
    if pools:
        within = Requirements([Requirement.of(NODE_POOL, "In", pools)])
        spec = replace(spec, node_selector=spec.node_selector.intersect(within))
    is_exclusive = bool(raw.get("exclusive"))
    if is_exclusive:
        spec = replace(spec, tolerations=(*spec.tolerations, Toleration(WINDOW_LABEL, "Equal", window, "NoSchedule")))
    pod = Pod(
        namespace="",
        name=f"{window}-{index}",
        spec=spec,
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        invalid=invalid,
        source=source,
    )
    return WarmCapacity(raw["replicas"], pod, is_exclusive)


def _status(raw: dict[str, Any]) -> WindowStatus:
    lead, warm = raw.get("leadTime"), raw.get("warm") or {}
    return WindowStatus(
        phase=raw.get("phase") or "",
        opens_s=instant(raw.get("opensAt")),
        closes_s=instant(raw.get("closesAt")),
        last_opened_s=instant(raw.get("lastOpenedAt")),
        last_closed_s=instant(raw.get("lastClosedAt")),
        lead_time_s=None if lead is None else duration_s(lead),
        lead_times_s=tuple((each["nodeClaim"], each["seconds"]) for each in raw.get("leadTimes") or ()),
        warm_asked=warm.get("asked") or 0,
        warm_ready=warm.get("ready") or 0,
        settled=tuple(sorted((u["namespace"], u["settled"]) for u in raw.get("used") or () if u.get("settled"))),
        reservations=tuple(_reservation(each) for each in raw.get("reservations") or ()),
        conditions=conditions_of(raw),
        observed_generation=raw.get("observedGeneration") or 0,
    )


def _reservation(raw: dict[str, Any]) -> Reservation:
    since, until = instant(raw["since"]) or 0, instant(raw["until"]) or 0
    return Reservation(f"{raw['namespace']}/{raw['name']}", raw["uid"], raw["share"], since, until)
