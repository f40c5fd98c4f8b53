"""JobSets: the Jobs that their controller makes of them, which is all that a plan needs.

One entry of `spec.replicatedJobs` is a Job template and how many Jobs there are of it; each has `parallelism` pods. All
Jobs count at once, also those that wait for others (`dependsOn`, `startupPolicy`): they come while the first still run.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kerf.manifests.admission import AdmissionDefaults
from kerf.manifests.decoded import Workload
from kerf.manifests.schema import Path, Problem, Report, Unknown
from kerf.manifests.workloads.decode import workload_of

Object = dict[str, Any]
JOB_SET_NAME = "jobset.sigs.k8s.io/jobset-name"
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
_MOST_JOBS = 10_000


@dataclass(frozen=True)
class JobSet:
    """The Jobs of a JobSet, in the order of its entries; none once it has ended."""

    jobs: tuple[Workload, ...]


def child_jobs(raw: Object) -> Iterator[tuple[int, Object]]:
    """(number of its entry, Job) for each Job of a checked JobSet, as its controller creates it."""
    name = raw["metadata"]["name"]
    for number, entry in enumerate(raw["spec"]["replicatedJobs"]):
        replicas = entry.get("replicas")
        for index in range(1 if replicas is None else replicas):
            marks = {JOB_SET_NAME: name, REPLICATED_JOB: entry["name"], JOB_INDEX: str(index)}
            yield number, _child(raw, entry["template"], f"{name}-{entry['name']}-{index}", marks)


def _child(raw: Object, template: Object, name: str, marks: dict[str, str]) -> Object:
    own, spec = template.get("metadata") or {}, template["spec"]
    pods = spec["template"]
    of_pods = pods.get("metadata") or {}
    queue = (raw["metadata"].get("labels") or {}) if raw["spec"].get("suspend") else {}
    labels = {**queue, **(own.get("labels") or {}), **marks}
    metadata = {"name": name, "labels": labels, "annotations": dict(own.get("annotations") or {})}
    if raw["metadata"].get("namespace"):
        metadata["namespace"] = raw["metadata"]["namespace"]
    marked = {**of_pods, "labels": {**(of_pods.get("labels") or {}), **marks}}
    body = {**spec, "template": {**pods, "metadata": marked, "spec": _completed(pods["spec"])}}
    if raw["spec"].get("suspend"):
        body["suspend"] = True
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": body}


def _completed(spec: Any) -> Any:
    """The spec of pods with the restartPolicy that JobSet's webhook gives them where they have none."""
    return {"restartPolicy": "OnFailure", **spec} if isinstance(spec, dict) and not spec.get("restartPolicy") else spec


def job_set_of(raw: Object, report: Report, admission: AdmissionDefaults, source: str) -> JobSet:
    """The Jobs as workloads; what is wrong with a template is said once, at its place in the JobSet."""
    count = sum(_replicas(entry) for entry in raw["spec"]["replicatedJobs"])
    if count > _MOST_JOBS:
        report.problem(("spec", "replicatedJobs"), f"at most {_MOST_JOBS} Jobs", count)
    if report.problems or (raw.get("status") or {}).get("terminalState"):
        return JobSet(())
    found, last = [], -1
    for number, child in child_jobs(raw):
        at: Path = ("spec", "replicatedJobs", number, "template")
        own = Report(root=at, place_of=report.place_of, written_of=report.written_of)
        job = workload_of(child, own, admission, source)
        if job is not None:
            found.append(job)
        if number != last:
            last = number
            _take(own, report, at)
    return JobSet(tuple(found))


def _replicas(entry: Object) -> int:
    return 1 if entry.get("replicas") is None else int(entry["replicas"])


def _take(own: Report, report: Report, at: Path) -> None:
    for found, taken in ((own.problems, report.problems), (own.refused, report.refused)):
        taken += [Problem((*at, *p.path), p.expected, p.got, p.hint, p.is_unquoted) for p in found]
    report.unknown += [Unknown((*at, *u.path), u.nearest) for u in own.unknown]


def with_jobs(workloads: Iterable[Workload], job_sets: Iterable[JobSet]) -> tuple[Workload, ...]:
    """The workloads, and the Jobs of JobSets that are not among them; by namespace, name and kind."""
    held = tuple(workloads)
    there = {workload.key for workload in held}
    made = (job for each in job_sets for job in each.jobs if job.key not in there)
    return tuple(sorted((*held, *made), key=lambda each: (each.namespace, each.name, each.kind)))
