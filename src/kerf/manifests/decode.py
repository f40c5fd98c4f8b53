"""Documents to model values: which kind is read by whom, and one report of all that is wrong.

The order of documents must not matter, although a LimitRange or a PriorityClass changes pods that stand before it, so
those two kinds are read first. All documents are tried before the first error is raised.

An object of a tenant that no server would take is none of the cluster: its pods are there with the reason, and one
without pods is left out with a warning. What a pool or a provider says is wrong for everybody, and an error.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from kerf.errors import DecodeError, DecodeErrors, InputError
from kerf.manifests import kinds, usage
from kerf.manifests.admission import AdmissionDefaults, admission_of
from kerf.manifests.cluster import BudgetReading
from kerf.manifests.decoded import Decoded, Workload, scalable_of
from kerf.manifests.dispatch import FIRST, Value, is_live, kind_of, read
from kerf.manifests.documents import Document
from kerf.manifests.pods.live import listed_pod
from kerf.manifests.read import Documents
from kerf.manifests.schema import NAME, Problem, Report, path_text, shown
from kerf.manifests.workloads.jobsets import JobSet, with_jobs
from kerf.manifests.workloads.refused import refused_of
from kerf.model.capacitybuffers import CapacityBuffer, Scalable
from kerf.model.dump import DUMP, ClusterDump
from kerf.model.evidence import ClusterPolicy
from kerf.model.groups import PodGroup
from kerf.model.instancetypes import NodeOverlay
from kerf.model.keys import DOMAIN
from kerf.model.namespaces import Namespace, Service
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.provisioningrequests import PodTemplate, ProvisioningRequest
from kerf.model.runtimeclasses import RuntimeClass
from kerf.model.snapshot import ConfigMap, DaemonSet, NodeClass, ResourceQuota, Watched
from kerf.model.usage import NodeUsage, PodUsage
from kerf.model.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from kerf.model.windows import CapacityWindow

Object = dict[str, Any]
_NOT_FOLLOWED = (frozenset(kinds.WORKLOADS) | usage.KINDS | {DUMP, "JobSet"}) - {"CronJob"}
"""Kinds that are read from documents only."""
_OF_TENANTS = frozenset(kinds.WORKLOADS) | {
    *FIRST,
    "CapacityBuffer",
    "DaemonSet",
    "JobSet",
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "PodTemplate",
    "ResourceQuota",
    "RuntimeClass",
    "Service",
    "StorageClass",
}
"""Kinds of which a server refuses one object, and the others are planned."""
_HEARD_EVERY = 256
"""Documents after which it is said how far it is."""


@dataclass
class _Collected:
    """What has been decoded so far, and where each object stands."""

    values: list[Value] = field(default_factory=list)
    seen: dict[tuple[str, str, str, str], Document] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    errors: list[InputError] = field(default_factory=list)
    left_out: list[InputError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    newest_s: float = 0
    graces: dict[str, float] = field(default_factory=dict)
    """By key of pods that end, how long they may take from their deletion on, in seconds."""

    def add_deletion(self, pod: Pod, stated_s: object) -> None:
        """Note when a pod was deleted: its `deletionTimestamp` is the end of its grace, which lies ahead.

        `stated_s` is `deletionGracePeriodSeconds`, which a server writes; without it the grace is that of its spec.
        """
        if pod.deleted_s is None:
            return
        grace_s = float(stated_s if isinstance(stated_s, int) and stated_s >= 0 else pod.spec.termination_grace_s)
        self.graces[pod.key] = grace_s
        self.newest_s = max(self.newest_s, pod.deleted_s - grace_s)


def decode(
    documents: Documents,
    now_s: float | None = None,
    *,
    skips_broken: bool = False,
    tell: Callable[[float], None] | None = None,
) -> Decoded:
    """All documents as model values; with `skips_broken` those that cannot be decoded become warnings.

    `tell` hears now and then how much is done, 0 to 1.

    Objects that state no creation time are as new as `now_s`, by default the newest instant of the input. Raises
    DecodeErrors with every error of every document, but not of new objects of tenants that no server would take.
    """
    collected = _Collected()
    admission = _admission(documents)
    for number, entry in enumerate(documents.entries):
        if tell is not None and number % _HEARD_EVERY == 0:
            tell(number / len(documents.entries))
        if isinstance(entry, InputError):
            collected.errors.append(entry)
            continue
        try:
            _decode_into(collected, entry, admission)
        except InputError as error:
            collected.errors.append(error)
    if collected.errors and not skips_broken:
        raise DecodeErrors(collected.errors)
    collected.warnings += [f"left out: {error}" for error in collected.errors]
    found = _sorted(collected, now_s)
    return replace(found, absent_classes=_absent_classes(found, admission))


def _absent_classes(found: Decoded, admission: AdmissionDefaults) -> tuple[str, ...]:
    """PriorityClasses of new pods that are taken for there, because the input has none: it may lack the kind."""
    if admission.elsewhere.priorities:
        return ()
    specs = {id(pod.spec): pod.spec for pod in found.pods if not pod.uid}
    specs.update((id(each.template.spec), each.template.spec) for each in found.workloads)
    names = {spec.priority_class for spec in specs.values()}
    return tuple(sorted(name for name in names if admission.elsewhere.is_absent(name)))


def decode_object(raw: Object, known: Object | None = None) -> Watched | None:
    """One object of a live API; None for a kind that Kerf does not follow. Raises DecodeError.

    `known` is an earlier form of it that could be read, if its values are never changed: what both hold as one value
    is not checked again.
    """
    value = _live(raw, _NOT_FOLLOWED, known)
    if isinstance(value, BudgetReading):
        return value.budget
    return value.cron_job if isinstance(value, Workload) else cast(Watched | None, value)


def decode_scalable(raw: Object) -> Scalable | None:
    """A workload of a live API as what a CapacityBuffer may name; None for any other object. Raises DecodeError."""
    value = _live(raw)
    return scalable_of(value) if isinstance(value, Workload) else None


def _live(raw: Object, passed_over: Collection[str] = (), known: Object | None = None) -> Value | None:
    kind = kind_of(raw)
    if kind is None or raw["kind"] in passed_over:
        return None
    report = Report(known=known)
    # Keys that mean nothing are a matter of documents.
    value = read(kind, raw, report, AdmissionDefaults(), "", notes_keys=False)
    if report.problems:
        meta = raw.get("metadata")
        name = meta.get("name") if isinstance(meta, dict) else None
        raise _error(report.problems[0], f"{raw['kind']} {name or '?'}", "")
    return value


def _admission(documents: Iterable[Document]) -> AdmissionDefaults:
    """What the LimitRanges and PriorityClasses add; faulty ones are passed over here and reported in their turn."""
    found: dict[str, list[Object]] = {kind: [] for kind in FIRST}
    for document in documents:
        if not any(document.may_be(kind) for kind in FIRST):
            continue
        try:
            raw = document.value()
        except InputError:
            continue
        report = Report()
        kind = _first_kind(raw)
        if kind:
            FIRST[kind].check(raw, (), report)
            if not report.problems:
                found[kind].append(raw)
    return admission_of(found["PriorityClass"], found["LimitRange"])


def _first_kind(raw: Any) -> str:
    """The kind of an object that is read before all others; empty for every other."""
    kind = raw.get("kind") if isinstance(raw, dict) else None
    return kind if isinstance(kind, str) and kind in FIRST else ""


def _decode_into(collected: _Collected, document: Document, admission: AdmissionDefaults) -> None:
    listed = listed_pod(document)
    if listed is not None:
        collected.newest_s = max(collected.newest_s, listed.newest_s)
        _refuse_second(collected, ("v1", "Pod", listed.pod.namespace, listed.pod.name), document)
        collected.values.append(listed.pod)
        collected.add_deletion(listed.pod, listed.deletion_grace_s)
        return
    raw = document.value()
    report, value = Report(place_of=document.near, written_of=document.written), None
    first = _first_kind(raw)
    if first:
        report.is_live = is_live(raw)
        FIRST[first].check(raw, (), report)
        if raw.get("apiVersion") is None:
            report.problem(("apiVersion",), "text such as v1 or Pod", None)
    else:
        kind = kind_of(raw, document.place)
        if kind is None:
            # A list with items is its items by now.
            if raw["kind"] == "List" and raw["apiVersion"] == "v1":
                if raw.get("items") is not None:
                    place = document.place(("items",))
                    raise DecodeError("items", "a list of objects", shown(raw["items"]), place=place)
                return
            collected.skipped[raw["kind"]] += 1
            return
        value = read(kind, raw, report, admission, document.source)
    if report.problems and (report.is_live or raw["kind"] not in _OF_TENANTS):
        collected.errors += _errors(report, document)
        return
    if report.problems:
        value = refused_of(raw, report, document.source)
        if value is None:
            wrong = _errors(report, document)
            collected.left_out += wrong
            collected.warnings += [f"left out: {error}" for error in wrong]
            return
    collected.newest_s = max(collected.newest_s, report.newest_s)
    collected.warnings += _doubts(report, document)
    if raw["kind"] in usage.KINDS:
        # Several samples of one pod are no two pods.
        collected.values += [] if value is None else [value]
        return
    meta = raw["metadata"]
    collected.warnings += _warnings(report, document)
    namespace = meta.get("namespace") if NAME.accepts(meta.get("namespace")) else ""
    _refuse_second(collected, (raw["apiVersion"], raw["kind"], namespace, meta["name"]), document)
    if value is not None:
        collected.values.append(value)
    if isinstance(value, Pod):
        collected.add_deletion(value, meta.get("deletionGracePeriodSeconds"))


def _refuse_second(collected: _Collected, key: tuple[str, str, str, str], document: Document) -> None:
    """Two documents of one object (version, kind, namespace, name): it is unknown which is meant."""
    first = collected.seen.setdefault(key, document)
    if first is not document:
        _, kind, _, name = key
        expected = f"one {kind} of this name, the first stands at {first.place()}"
        raise DecodeError("metadata.name", expected, name, place=document.place(("metadata", "name")))


def _error(problem: Problem, place: str, written: str) -> DecodeError:
    hint = f'quote it: "{written}"' if problem.is_unquoted and written else problem.hint
    return DecodeError(path_text(problem.path), problem.expected, problem.got, place=place, hint=hint)


def _errors(report: Report, document: Document) -> list[DecodeError]:
    return [_error(p, document.place(p.path), document.written(p.path)) for p in report.problems]


def _warnings(report: Report, document: Document) -> list[str]:
    """A line for each unknown name; of an object that a server has taken only for keys, which it does not judge."""
    lines = []
    for unknown in report.unknown:
        if report.is_live and not str(unknown.path[-1]).startswith(DOMAIN):
            continue
        meant = f"; is `{unknown.nearest}` meant?" if unknown.nearest else ""
        place = document.place(unknown.path, at_key=True)
        lines.append(f"{place}: {path_text(unknown.path)}: unknown field, ignored{meant}")
    return lines


def _doubts(report: Report, document: Document) -> list[str]:
    return [f"left out: {_error(p, document.place(p.path), '')}" for p in report.doubts]


_Kept = TypeVar("_Kept", NodePool, NodeClaim, Node, Pod, ProvisioningRequest, CapacityBuffer)
_Named = TypeVar("_Named")


def _of(collected: _Collected, kind: type[_Named]) -> tuple[_Named, ...]:
    """The values of one class by namespace and name."""
    found = [value for value in collected.values if isinstance(value, kind)]
    return tuple(sorted(found, key=_name_order))


def _name_order(value: object) -> tuple[str, str, str]:
    return getattr(value, "namespace", ""), getattr(value, "name", ""), getattr(value, "kind", "")


def _dated(values: tuple[_Kept, ...], now_s: float | None) -> tuple[_Kept, ...]:
    """The same, with a creation time for those that state none."""
    return values if now_s is None else tuple(v if v.created_s else replace(v, created_s=now_s) for v in values)


def _dated_workload(workload: Workload, now_s: float | None) -> Workload:
    return replace(workload, template=_dated((workload.template,), now_s)[0])


def _ending_from(pods: tuple[Pod, ...], graces: Mapping[str, float], now_s: float | None) -> tuple[Pod, ...]:
    """The pods; those deleted only after `now_s`, as it may be given, count as deleted then."""
    if now_s is None or not graces:
        return pods
    ends = (None if pod.deleted_s is None else min(pod.deleted_s, now_s + graces[pod.key]) for pod in pods)
    return tuple(
        pod if end_s == pod.deleted_s else replace(pod, deleted_s=end_s) for pod, end_s in zip(pods, ends, strict=True)
    )


def _sorted(collected: _Collected, now_s: float | None) -> Decoded:
    dump = next((value for value in collected.values if isinstance(value, ClusterDump)), None)
    # A dump says when it was taken: objects may state later instants, such as the end of a window.
    taken_s = None if dump is None else dump.taken_at_s
    newest_s = taken_s if taken_s is not None else collected.newest_s or None
    now_s = newest_s if now_s is None else now_s
    pods = _ending_from(_dated(_of(collected, Pod), now_s), collected.graces, now_s)
    budgets = sorted(
        (value.completed(pods) for value in collected.values if isinstance(value, BudgetReading)), key=_name_order
    )
    samples = sorted(
        (value for value in collected.values if isinstance(value, PodUsage | NodeUsage)), key=usage.age_order
    )
    job_sets = [value for value in collected.values if isinstance(value, JobSet)]
    return Decoded(
        node_pools=_dated(_of(collected, NodePool), now_s),
        node_claims=_dated(_of(collected, NodeClaim), now_s),
        overlays=_of(collected, NodeOverlay),
        node_classes=_of(collected, NodeClass),
        nodes=_dated(_of(collected, Node), now_s),
        pods=pods,
        workloads=tuple(_dated_workload(w, now_s) for w in with_jobs(_of(collected, Workload), job_sets)),
        daemon_sets=_of(collected, DaemonSet),
        disruption_budgets=tuple(budgets),
        config_maps=_of(collected, ConfigMap),
        quotas=_of(collected, ResourceQuota),
        cluster_policies=_of(collected, ClusterPolicy),
        windows=_of(collected, CapacityWindow),
        usage=usage.newest(samples),
        pod_samples=tuple(sample for sample in samples if isinstance(sample, PodUsage)),
        pod_groups=_of(collected, PodGroup),
        pod_templates=_of(collected, PodTemplate),
        provisioning_requests=_dated(_of(collected, ProvisioningRequest), now_s),
        capacity_buffers=_dated(_of(collected, CapacityBuffer), now_s),
        namespaces=_of(collected, Namespace),
        services=_of(collected, Service),
        volume_claims=_of(collected, PersistentVolumeClaim),
        volumes=_of(collected, PersistentVolume),
        storage_classes=_of(collected, StorageClass),
        csi_nodes=_of(collected, CSINode),
        volume_attachments=_of(collected, VolumeAttachment),
        runtime_classes=_of(collected, RuntimeClass),
        skipped_kinds=dict(sorted(collected.skipped.items())),
        warnings=tuple(collected.warnings),
        left_out=tuple(collected.left_out),
        newest_s=newest_s,
        dump=dump,
    )
