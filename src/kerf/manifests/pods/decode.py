"""Pods to model values.

A workload's pods differ in their names only, so a spec is decoded once for all pods whose relevant parts are the same
bytes; they then share one PodSpec. The tolerations that Kerf adds to pods are left out of it (`Pod.reserved_for` has
them), else the pods of one workload would differ once they are planned. For a pod that no API server has seen, what the
server would add is added here: requests from limits, LimitRange defaults, priority from its class; and what it would
refuse is said in `invalid`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec

from kerf.errors import DecodeError, brief
from kerf.manifests.admission import AdmissionDefaults, Defaults
from kerf.manifests.kinds import POD_SPEC
from kerf.manifests.metadata import NO_TEXTS, Meta, instant, shared_text
from kerf.manifests.pods.claims import claim_template_of
from kerf.manifests.pods.nodeaffinity import node_affinity_of
from kerf.manifests.pods.refusal import refusals
from kerf.manifests.pods.resources import is_of_pods, refused_sums
from kerf.manifests.pods.selectors import node_labels_of
from kerf.manifests.pods.selectors import selector_of as selector_of
from kerf.manifests.pods.topology import REQUIRED, pod_affinity_of, spread_of
from kerf.manifests.schema import Path, Problem, Report, Unknown, path_text
from kerf.model.causes import FieldRefusal, Name, Quoted
from kerf.model.constraints import Toleration
from kerf.model.nodeclaim import READY, TRUE
from kerf.model.nodes import RESERVED_FOR
from kerf.model.pods import (
    DEFAULT_SCHEDULER,
    PENDING,
    READ_DOMAINS,
    RUNNING,
    Container,
    HostPort,
    Pod,
    PodSpec,
    is_daemon,
)
from kerf.model.quantities import Resources
from kerf.model.times import LONGEST_S
from kerf.model.topology import AFFINITY, ANTI_AFFINITY
from kerf.model.volumes import ClaimTemplate

_SPEC_PARTS = (
    "overhead",
    "nodeSelector",
    "affinity",
    "tolerations",
    "schedulerName",
    "priority",
    "priorityClassName",
    "schedulingGates",
    "topologySpreadConstraints",
    "resourceClaims",
    "resources",
    "hostNetwork",
    "terminationGracePeriodSeconds",
    "activeDeadlineSeconds",
    "workloadRef",
    "runtimeClassName",
)
_OF_A_DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
"""Begins the resource by which a container asks for a device of a class without a claim of its own."""
_VOLUME_PARTS = ("persistentVolumeClaim", "ephemeral")
_CONTAINER_PARTS = ("name", "resources", "ports", "restartPolicy", "securityContext")


RESIZE_PENDING, INFEASIBLE = "PodResizePending", "Infeasible"
"""A condition of a pod, and its reason where the node could never do what is asked."""
_NAMED = {"matchFields"}


@dataclass(frozen=True, slots=True)
class SpecReading:
    """A decoded spec, or what is wrong with it; paths count from the spec. `reserved_for` is the pod's.

    `invalid` is why an API server would refuse the spec; None where it would not.
    """

    spec: PodSpec | None
    invalid: Problem | None = None
    problems: tuple[Problem, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    reserved_for: tuple[str, ...] = ()


def read_spec(raw: Any, defaults: Defaults | None) -> SpecReading:
    """Decode the spec of a pod; `defaults` None for a pod that an API server has completed already."""
    part = raw if defaults is not None else _relevant(raw)
    return _read_bytes(_canonical(part), defaults)


def of_daemon(affinity: Any) -> Any:
    """The affinity of a DaemonSet's pod without the name of its node, which its controller writes there.

    The pod is bound to it already; with it no two pods of a DaemonSet would share a spec (kubernetes
    pkg/controller/daemon/util, `ReplaceDaemonSetPodNodeNameNodeAffinity`).
    """
    node = affinity.get("nodeAffinity") if isinstance(affinity, dict) else None
    if not isinstance(node, dict):
        return affinity
    required = node.get(REQUIRED)
    terms = required.get("nodeSelectorTerms") if isinstance(required, dict) else None
    if not isinstance(terms, list) or len(terms) != 1 or not isinstance(terms[0], dict) or terms[0].keys() != _NAMED:
        return affinity
    return {**affinity, "nodeAffinity": {name: held for name, held in node.items() if name != REQUIRED}}


def _relevant(raw: Any) -> Any:
    """The part of a live spec that Kerf reads: the rest (volumes of tokens, the node) differs from pod to pod."""
    if not isinstance(raw, dict):
        return raw
    part = {name: raw[name] for name in _SPEC_PARTS if name in raw}
    for name in ("containers", "initContainers"):
        if isinstance(raw.get(name), list):
            part[name] = [_relevant_container(container) for container in raw[name]]
        elif name in raw:
            part[name] = raw[name]
    volumes = raw.get("volumes")
    if isinstance(volumes, list):
        part["volumes"] = [v for v in volumes if not isinstance(v, dict) or not v.keys().isdisjoint(_VOLUME_PARTS)]
    return part


def _relevant_container(raw: Any) -> Any:
    return {name: raw[name] for name in _CONTAINER_PARTS if name in raw} if isinstance(raw, dict) else raw


def _canonical(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, order="deterministic")
    except (OverflowError, RecursionError, UnicodeEncodeError, TypeError):
        return json.dumps(value, sort_keys=True).encode()


@lru_cache(maxsize=16384)
def _read_bytes(encoded: bytes, defaults: Defaults | None) -> SpecReading:
    return reading_of(json.loads(encoded), defaults)


def reading_of(raw: Any, defaults: Defaults | None) -> SpecReading:
    """Decode the parts of a spec that `read_spec` has chosen; equal specs come out as one object."""
    report = Report()
    POD_SPEC.check(raw, (), report)
    unknown = tuple(report.unknown) if defaults is not None else ()
    if report.problems:
        return SpecReading(None, problems=tuple(report.problems), unknown=unknown)
    spec = _same(_spec(raw, defaults))
    reserved_for = tuple(t.get("value") or "" for t in raw.get("tolerations") or () if _is_reservation(t))
    if defaults is None:
        return SpecReading(spec, reserved_for=reserved_for)
    return SpecReading(spec, _refused(raw, spec, defaults), (), unknown, reserved_for)


def _refused(raw: Any, spec: PodSpec, defaults: Defaults) -> Problem | None:
    """Why a server would not take a new pod: its form, then what its plug-ins say; None where it would."""
    priority = defaults.priority_refused(spec.priority_class, raw.get("priority"))
    admission = filter(None, (priority, defaults.out_of_range(spec)))
    return next(chain(refusals(raw), refused_sums(raw, spec), admission), None)


@lru_cache(maxsize=16384)
def _same(spec: PodSpec) -> PodSpec:
    """The first of all equal specs."""
    return spec


def _spec(raw: dict[str, Any], defaults: Defaults | None) -> PodSpec:
    affinity, preferred = node_affinity_of(raw)
    class_name = raw.get("priorityClassName") or (defaults.priority_class if defaults else "")
    is_on_host = bool(raw.get("hostNetwork"))
    containers = tuple(_container(c, defaults, is_on_host) for c in raw.get("containers") or ())
    init_containers = tuple(_container(c, defaults, is_on_host) for c in raw.get("initContainers") or ())
    return PodSpec(
        containers=containers,
        init_containers=init_containers,
        overhead=Resources.parse(raw.get("overhead") or {}),
        node_selector=node_labels_of(raw.get("nodeSelector") or {}),
        affinity=affinity,
        preferred=preferred,
        tolerations=tuple(toleration_of(t) for t in raw.get("tolerations") or () if not _is_reservation(t)),
        scheduler_name=raw.get("schedulerName") or DEFAULT_SCHEDULER,
        priority=_priority(raw, class_name, defaults),
        priority_class=class_name,
        scheduling_gates=tuple(gate["name"] for gate in raw.get("schedulingGates") or ()),
        claims=tuple(_claims(raw)),
        not_planned=tuple(sorted(set(_not_planned(raw, (*init_containers, *containers))))),
        termination_grace_s=_grace_s(raw.get("terminationGracePeriodSeconds")),
        active_deadline_s=raw.get("activeDeadlineSeconds"),
        pod_requests=_pod_requests(raw),
        pod_limits=_of_pod((raw.get("resources") or {}).get("limits") or {}),
        workload_ref=_workload_ref(raw.get("workloadRef") or {}),
        claim_templates=tuple(_claim_templates(raw)),
        runtime_class=raw.get("runtimeClassName") or "",
        spread=spread_of(raw),
        pod_affinity=pod_affinity_of(raw, AFFINITY, is_live=defaults is None),
        pod_anti_affinity=pod_affinity_of(raw, ANTI_AFFINITY, is_live=defaults is None),
    )


def _priority(raw: dict[str, Any], class_name: str, defaults: Defaults | None) -> int:
    stated = raw.get("priority")
    return (stated or 0) if defaults is None else defaults.priority_of(class_name, stated)


def _pod_requests(raw: dict[str, Any]) -> Resources:
    """What the pod asks as a whole; a limit counts where neither it nor a container requests the resource.

    As the API server completes it (kubernetes pkg/apis/core/v1/defaults.go, setDefaultPodRequests).
    """
    stated = raw.get("resources") or {}
    requests = dict(stated.get("requests") or {})
    asked = {name for part in ("containers", "initContainers") for each in raw.get(part) or () for name in _asked(each)}
    for name, limit in (stated.get("limits") or {}).items():
        if name not in asked:
            requests.setdefault(name, limit)
    return _of_pod(requests)


def _of_pod(amounts: Mapping[str, Any]) -> Resources:
    return Resources.parse({name: amount for name, amount in amounts.items() if is_of_pods(name)})


def _asked(container: dict[str, Any]) -> set[str]:
    resources = container.get("resources") or {}
    return {*(resources.get("requests") or {}), *(resources.get("limits") or {})}


def _workload_ref(raw: dict[str, Any]) -> str:
    """`workload/group`, with the replica's key where it has one; empty without a reference."""
    parts = [raw.get(name) or "" for name in ("name", "podGroup", "podGroupReplicaKey")]
    return "/".join(part for part in parts if part) if parts[0] and parts[1] else ""


def _grace_s(stated: int | None) -> int:
    """A server takes any number: it lets a pod of a negative one a second, and the longest stands for ever."""
    if stated is None:
        return 30
    return 1 if stated < 0 else min(stated, LONGEST_S)


def _container(raw: dict[str, Any], defaults: Defaults | None, is_on_host: bool) -> Container:
    resources = raw.get("resources") or {}
    limits = Resources.parse(resources.get("limits") or {})
    requests = Resources.parse(resources.get("requests") or {})
    if defaults is not None:
        requests = limits.replaced(requests)
        limits = defaults.limits.replaced(limits)
        requests = defaults.requests.replaced(requests)
    return Container(
        name=raw["name"],
        requests=limits.replaced(requests),
        limits=limits,
        is_sidecar=raw.get("restartPolicy") == "Always",
        is_privileged=(raw.get("securityContext") or {}).get("privileged") is True,
        host_ports=tuple(_host_ports(raw, is_on_host)),
    )


def _host_ports(raw: dict[str, Any], is_on_host: bool) -> Iterator[HostPort]:
    for port in raw.get("ports") or ():
        number = port.get("hostPort") or (port["containerPort"] if is_on_host else 0)
        if number:
            yield HostPort(number, port.get("protocol") or "TCP", port.get("hostIP") or "")


def toleration_of(raw: dict[str, Any]) -> Toleration:
    """A toleration of a pod or a RuntimeClass."""
    texts = raw.get("key") or "", raw.get("operator") or "Equal", raw.get("value") or "", raw.get("effect") or ""
    return Toleration(*texts, raw.get("tolerationSeconds"))


def _is_reservation(toleration: dict[str, Any]) -> bool:
    return toleration.get("key") == RESERVED_FOR


def _claims(raw: dict[str, Any]) -> Iterator[str]:
    for volume in raw.get("volumes") or ():
        claim = volume.get("persistentVolumeClaim")
        if claim is not None:
            yield claim["claimName"]


def _claim_templates(raw: dict[str, Any]) -> Iterator[ClaimTemplate]:
    for volume in raw.get("volumes") or ():
        if volume.get("ephemeral") is not None and volume.get("name"):
            of_claim = (volume["ephemeral"].get("volumeClaimTemplate") or {}).get("spec") or {}
            yield claim_template_of(volume["name"], of_claim, is_ephemeral=True)


def _not_planned(raw: dict[str, Any], containers: Iterable[Container]) -> Iterator[str]:
    if raw.get("resourceClaims"):
        yield "resourceClaims"
    asked = (each for container in containers for each in container.requests.items())
    # kube-scheduler makes a resource claim for it (KEP-5004), and no node shows it.
    yield from (name for name, amount in asked if amount > 0 and name.startswith(_OF_A_DEVICE_CLASS))


_NO_SPEC = PodSpec(())


def spec_at(
    raw: Any, path: Path, report: Report, admission: AdmissionDefaults, namespace: str
) -> tuple[PodSpec, FieldRefusal | None]:
    """(spec, why the API server would refuse it) of the spec at `path`, one without containers where it has no form."""
    reading = _reading_at(raw, path, report, admission.defaults(namespace))
    return reading.spec or _NO_SPEC, field_refusal(reading.invalid, path, report)


def field_refusal(problem: Problem | None, at: Path, report: Report) -> FieldRefusal | None:
    """What is said of a problem, whose path counts from `at` in the object of the report; None where there is none."""
    if problem is None:
        return None
    path, got = (*report.root, *at, *problem.path), problem.got
    written = report.written_of(path) if problem.is_unquoted else ""
    hint = f'quote it: "{written}"' if written else problem.hint
    shown = got if isinstance(got, str) and got.startswith("<") else brief(got)
    # An error cuts what a user may have written at any length.
    error = DecodeError(path_text(path), problem.expected, got, hint=hint)
    texts = Quoted(error.expected), Quoted(shown), Quoted(error.hint)
    return FieldRefusal(Name(error.path), *texts, Name(report.place_of(path)))


def _reading_at(raw: Any, path: Path, report: Report, defaults: Defaults | None) -> SpecReading:
    """The spec at `path`; `defaults` None for a pod that an API server has completed already.

    A wrong form is a problem of such a pod, which it cannot have; a new one is refused for it, and only that one.
    """
    reading = read_spec(raw, defaults)
    problems = [Problem((*path, *p.path), p.expected, p.got, p.hint, p.is_unquoted) for p in reading.problems]
    report.unknown += [Unknown((*path, *u.path), u.nearest) for u in reading.unknown]
    if defaults is None or not problems:
        report.problems += problems
        return reading
    report.refused += problems
    return replace(reading, invalid=reading.problems[0])


def pod_of(raw: dict[str, Any], report: Report, admission: AdmissionDefaults, source: str) -> Pod:
    """A Pod as the API shows it, or as a manifest describes it."""
    meta = Meta.of(raw, is_namespaced=True)
    status = raw.get("status") or {}
    spec = raw.get("spec")
    if meta.uid and is_daemon(meta.owner) and isinstance(spec, dict) and spec.get("nodeName") and spec.get("affinity"):
        spec = {**spec, "affinity": of_daemon(spec["affinity"])}
    reading = _reading_at(spec, ("spec",), report, None if meta.uid else admission.defaults(meta.namespace))
    decoded = reading.spec or _NO_SPEC
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    if isinstance(spec, dict) and spec.get("nodeName"):
        pending = conditions.get(RESIZE_PENDING) or {}
        decoded = resized(decoded, _statuses(status), is_infeasible=pending.get("reason") == INFEASIBLE)
    scheduled, ready = (conditions.get(name) or {} for name in ("PodScheduled", READY))
    return Pod(
        namespace=meta.namespace,
        name=meta.name,
        spec=decoded,
        labels=meta.labels,
        annotations=kept_annotations(meta.annotations) if meta.uid else meta.annotations,
        uid=meta.uid,
        resource_version=meta.resource_version,
        created_s=meta.created_s,
        deleted_s=meta.deleted_s,
        started_s=instant(status.get("startTime")),
        node_name=_node_name(spec, report),
        nominated_node=status.get("nominatedNodeName") or "",
        phase=status.get("phase") or PENDING,
        owner=meta.owner,
        unschedulable=(scheduled.get("message") or "") if scheduled.get("status") == "False" else "",
        invalid=None if meta.uid else field_refusal(reading.invalid, ("spec",), report),
        initialised=is_initialised(decoded, status.get("initContainerStatuses") or ()),
        source=source,
        reserved_for=reading.reserved_for,
        is_ready=is_ready(status.get("phase"), ready.get("status")),
        starting_s=starting_s(status.get("startTime"), ready.get("status"), ready.get("lastTransitionTime")),
    )


def _statuses(status: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    for part in ("containerStatuses", "initContainerStatuses"):
        yield from status.get(part) or ()


def resized(spec: PodSpec, statuses: Iterable[Mapping[str, Any]], *, is_infeasible: bool = False) -> PodSpec:
    """The spec of a bound pod with what its containers hold, where kubelet has given them more than they ask now.

    As kube-scheduler counts (component-helpers resource.PodRequests): the largest of what a container asks, was
    allocated and runs with; without what it asks where kubelet calls that resize infeasible. Of init containers
    sidecars alone are resized.
    """
    held = {each.get("name"): each for each in statuses if each.get("allocatedResources") or each.get("resources")}
    if not held:
        return spec
    containers = tuple(_resized(each, held.get(each.name), is_infeasible) for each in spec.containers)
    init = tuple(
        _resized(each, held.get(each.name), is_infeasible) if each.is_sidecar else each for each in spec.init_containers
    )
    if (containers, init) == (spec.containers, spec.init_containers):
        return spec
    return _same(replace(spec, containers=containers, init_containers=init))


def _resized(container: Container, status: Mapping[str, Any] | None, is_infeasible: bool) -> Container:
    if status is None:
        return container
    allocated = Resources.parse(status.get("allocatedResources") or {})
    running = Resources.parse((status.get("resources") or {}).get("requests") or {})
    held = allocated.largest(running)
    return replace(container, requests=held if is_infeasible and held else container.requests.largest(held))


def _node_name(spec: Any, report: Report) -> str:
    """Where the pod is bound; empty for none. It is no part of a spec's shape, so it is checked here."""
    held = spec.get("nodeName") if isinstance(spec, dict) else None
    if held is None or isinstance(held, str):
        return held or ""
    path = ("spec", "nodeName")
    # A manifest's spec was checked with it, a live one without.
    if all(problem.path != path for problem in (*report.problems, *report.refused)):
        report.problem(path, "text", held)
    return ""


def kept_annotations(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Those of a live pod that some decision may read, whole: HAMi counts all of a record, however long it is.

    The API takes at most 256 KiB of annotations together (TotalAnnotationSizeLimitB, apimachinery).
    """
    kept = {shared_text(key): text for key, text in annotations.items() if key.partition("/")[0] in READ_DOMAINS}
    return kept or NO_TEXTS


def is_ready(phase: str | None, said: str | None) -> bool:
    """Whether a pod serves, by its phase and the status of its Ready condition; without one it does while it runs."""
    return said == TRUE if said is not None else phase == RUNNING


def starting_s(started: str | None, said: str | None, since: str | None) -> int | None:
    """Seconds from the start of a pod to its being ready, by its start time and its Ready condition; None where it is
    not ready or does not say both."""
    first, then = instant(started), instant(since)
    return max(0, int(then - first)) if said == TRUE and first is not None and then is not None else None


def is_initialised(spec: PodSpec, statuses: Iterable[Mapping[str, Any]]) -> bool:
    """Whether every init container but the sidecars has ended well."""
    sidecars = {c.name for c in spec.init_containers if c.is_sidecar}
    own = [s for s in statuses if s.get("name") not in sidecars]
    ended = [(s.get("state") or {}).get("terminated") for s in own]
    return bool(ended) and all(end is not None and end.get("exitCode") == 0 for end in ended)
