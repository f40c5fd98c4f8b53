"""The controllers that make pods to model values."""

from dataclasses import replace
from typing import Any

from kerf.errors import MOST_SHOWN, cut
from kerf.manifests.admission import AdmissionDefaults
from kerf.manifests.decoded import Workload
from kerf.manifests.metadata import Meta, instant
from kerf.manifests.pods.decode import field_refusal, selector_of, spec_at
from kerf.manifests.pods.refusal import policy_expected, policy_hint
from kerf.manifests.pods.volumes import with_claim_templates
from kerf.manifests.schema import Path, Problem, Report, mistake
from kerf.manifests.volumes.decode import claim_templates_of
from kerf.model.constraints import Toleration
from kerf.model.cronjobs import CronJob
from kerf.model.evidence import READ_VARIABLES, read_arguments, read_image, read_mounts
from kerf.model.groups import KUEUE_QUEUE
from kerf.model.pods import Owner, Pod, PodSpec
from kerf.model.snapshot import DaemonSet, PluginContainer
from kerf.model.volumes import ClaimTemplate

# The DaemonSet controller adds these (kubernetes pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations).
_DAEMON_TOLERATIONS = (
    Toleration("node.kubernetes.io/not-ready", "Exists", effect="NoExecute"),
    Toleration("node.kubernetes.io/unreachable", "Exists", effect="NoExecute"),
    Toleration("node.kubernetes.io/disk-pressure", "Exists", effect="NoSchedule"),
    Toleration("node.kubernetes.io/memory-pressure", "Exists", effect="NoSchedule"),
    Toleration("node.kubernetes.io/pid-pressure", "Exists", effect="NoSchedule"),
    Toleration("node.kubernetes.io/unschedulable", "Exists", effect="NoSchedule"),
)

_OF_PODS = ("hami.io/", "nvidia.com/")
"""Beginnings of annotations that mean something on pods, and that their authors like to write above."""


def _template_pod(
    raw: dict[str, Any], template: dict[str, Any], path: Path, report: Report, admission: AdmissionDefaults, source: str
) -> Pod:
    """The pod that a controller would make; it has no uid, since no API has seen it."""
    meta = Meta.of(raw, is_namespaced=True)
    spec, invalid = spec_at(template["spec"], (*path, "spec"), report, admission, meta.namespace)
    of_template = template.get("metadata") or {}
    labels = of_template.get("labels") or {}
    selector = raw["spec"].get("selector")
    unmet = selector_of(selector).unsatisfied_by(labels) if selector else None
    if invalid is None and unmet is not None:
        held = labels.get(unmet.key)
        expected = f"{cut(str(unmet), MOST_SHOWN)}, as the selector of its {raw['kind']} asks"
        why = mistake(("metadata", "labels", unmet.key), expected, held)
        invalid = field_refusal(why, path, report)
    if invalid is None and not meta.uid and isinstance(template["spec"], dict):
        invalid = field_refusal(_refused_policy(raw["kind"], template["spec"]), (*path, "spec"), report)
    return Pod(
        namespace=meta.namespace,
        name=meta.name,
        spec=spec,
        labels=labels,
        annotations=of_template.get("annotations") or {},
        created_s=meta.created_s,
        owner=Owner(raw["kind"], meta.name, meta.uid),
        invalid=invalid,
        source=source,
    )


def _node_of(spec: Any) -> str:
    """The node that the pods name, past every scheduler: nothing is bought for them."""
    name = spec.get("nodeName") if isinstance(spec, dict) else None
    return name if isinstance(name, str) else ""


def _refused_policy(kind: str, spec: dict[str, Any]) -> Problem | None:
    expected = policy_expected(kind, spec)
    problem = mistake(("restartPolicy",), expected, spec.get("restartPolicy"), policy_hint(kind))
    return problem if expected else None


def _is_left_out(raw: dict[str, Any], template: dict[str, Any], path: Path, report: Report) -> bool:
    """Whether a server would not take the object, which has no pods of its own that could be refused."""
    if report.refused:
        report.doubts += report.refused
        return True
    spec = template["spec"]
    expected = "" if Meta.of(raw).uid or not isinstance(spec, dict) else policy_expected(raw["kind"], spec)
    if expected:
        hint = policy_hint(raw["kind"])
        report.doubt((*path, "spec", "restartPolicy"), expected, spec.get("restartPolicy"), hint)
    return bool(expected)


def daemon_set_of(raw: dict[str, Any], report: Report, admission: AdmissionDefaults, source: str) -> DaemonSet | None:
    """A DaemonSet as the pod it puts on a node, with the tolerations its controller adds.

    None, with a doubt in `report`, for a new one that a server would not take.
    """
    pod = _template_pod(raw, raw["spec"]["template"], ("spec", "template"), report, admission, source)
    if _is_left_out(raw, raw["spec"]["template"], ("spec", "template"), report):
        return None
    spec = replace(pod.spec, tolerations=(*pod.spec.tolerations, *_DAEMON_TOLERATIONS))
    containers = raw["spec"]["template"]["spec"].get("containers") or ()
    mounts = read_mounts(raw["spec"]["template"]["spec"])
    return DaemonSet(pod.namespace, pod.name, replace(pod, spec=spec), tuple(map(_program, containers)), mounts)


def _program(container: dict[str, Any]) -> PluginContainer:
    variables = (each for each in container.get("env") or () if isinstance(each, dict))
    environment = (
        (each["name"], str(each.get("value") or "")) for each in variables if each.get("name") in READ_VARIABLES
    )
    arguments = read_arguments((*(container.get("command") or ()), *(container.get("args") or ())))
    return PluginContainer(read_image(container.get("image")), arguments, tuple(environment))


def workload_of(raw: dict[str, Any], report: Report, admission: AdmissionDefaults, source: str) -> Workload | None:
    """A Deployment, ReplicaSet, StatefulSet, Job or CronJob.

    None, with a doubt in `report`, for a new CronJob that a server would not take.
    """
    meta, spec, kind = Meta.of(raw, is_namespaced=True), raw["spec"], raw["kind"]
    path: Path = ("spec", "template")
    if kind == "CronJob":
        path, spec = ("spec", "jobTemplate", "spec", "template"), spec["jobTemplate"]["spec"]
    made = spec["template"]
    if spec.get("volumeClaimTemplates"):
        made = {**made, "spec": with_claim_templates(made["spec"], spec["volumeClaimTemplates"])}
    template = replace(_template_pod(raw, made, path, report, admission, source), node_name=_node_of(made["spec"]))
    if kind == "CronJob" and _is_left_out(raw, spec["template"], path, report):
        return None
    if spec.get("volumeClaimTemplates"):
        template = replace(template, spec=_with_claims(template.spec, claim_templates_of(spec["volumeClaimTemplates"])))
    return Workload(
        kind=kind,
        namespace=meta.namespace,
        name=meta.name,
        replicas=_replicas(kind, spec, raw.get("status") or {}),
        template=template,
        uid=meta.uid,
        first_ordinal=(spec.get("ordinals") or {}).get("start") or 0,
        owner=meta.owner,
        cron_job=_cron_job(raw, template, meta) if kind == "CronJob" else None,
        suspended=_suspended(spec, meta) if kind == "Job" else "",
        deadline_s=_whole(spec.get("activeDeadlineSeconds")) if kind == "Job" else None,
        started_s=instant((raw.get("status") or {}).get("startTime")) if kind == "Job" else None,
        mounts=read_mounts(spec["template"]["spec"], by_flags=False) if kind == "Deployment" else (),
        beside=_beside(raw, template, meta),
    )


def _beside(raw: dict[str, Any], template: Pod, meta: Meta) -> tuple[str, ...]:
    """Keys of annotations that no pod gets: of the object, and of the Jobs of a CronJob."""
    of_jobs = raw["spec"]["jobTemplate"].get("metadata") if raw["kind"] == "CronJob" else None
    between = of_jobs.get("annotations") if isinstance(of_jobs, dict) else None
    stated = {*meta.annotations, *(between if isinstance(between, dict) else ())} - template.annotations.keys()
    return tuple(sorted(key for key in stated if isinstance(key, str) and key.startswith(_OF_PODS)))


def _with_claims(spec: PodSpec, templates: tuple[ClaimTemplate, ...]) -> PodSpec:
    """The spec with claims of a StatefulSet, which go before volumes of their names."""
    names = {template.name for template in templates}
    others = tuple(held for held in spec.claim_templates if held.name not in names)
    claims = tuple(name for name in spec.claims if name not in names)
    return replace(spec, claims=claims, claim_templates=(*others, *templates))


def _suspended(spec: dict[str, Any], meta: Meta) -> str:
    """Why a Job has no pods, whatever else it says."""
    if not spec.get("suspend"):
        return ""
    queue = meta.labels.get(KUEUE_QUEUE)
    return "suspended by spec.suspend" + (f"; held by Kueue until queue {queue} has quota for it" if queue else "")


def _cron_job(raw: dict[str, Any], template: Pod, meta: Meta) -> CronJob:
    spec, job = raw["spec"], raw["spec"]["jobTemplate"]["spec"]
    return CronJob(
        namespace=meta.namespace,
        name=meta.name,
        schedule=spec["schedule"],
        pod=template,
        time_zone=_text(spec.get("timeZone")),
        pods=_replicas("Job", job, {}),
        is_suspended=bool(spec.get("suspend")),
        has_deadline=job.get("activeDeadlineSeconds") is not None or template.spec.active_deadline_s is not None,
        starting_deadline_s=_whole(spec.get("startingDeadlineSeconds")),
        annotations=meta.annotations,
        uid=meta.uid,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _replicas(kind: str, spec: dict[str, Any], status: dict[str, Any]) -> int:
    """How many pods the controller keeps now."""
    if kind == "CronJob":
        return 0
    if kind != "Job":
        replicas = spec.get("replicas")
        return 1 if replicas is None else int(replicas)
    if spec.get("suspend"):
        return 0
    parallelism = 1 if spec.get("parallelism") is None else int(spec["parallelism"])
    if spec.get("completions") is None:
        return parallelism
    return max(0, min(parallelism, int(spec["completions"]) - (status.get("succeeded") or 0)))
