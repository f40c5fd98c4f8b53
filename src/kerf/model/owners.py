"""Who makes a pod in the end: the object in whose template a change lasts.

A pod names its controller, and not the controller of that one. A change of a ReplicaSet, or of one Job of a CronJob, is
lost with the next rollout or run, so advice must reach the top.
"""

import re
from collections.abc import Container

from kerf.model.pods import Owner, Pod

HASH_LABEL = "pod-template-hash"
"""On the pods of a ReplicaSet that a Deployment made; the set is named after the Deployment and it."""
_ROLLOUT_HASH_LABEL = "rollouts-pod-template-hash"
_JOB_SET_LABEL = "jobset.sigs.k8s.io/jobset-name"
_RUN = re.compile(r"(.+)-\d{7,9}", re.ASCII)


def top_owner(pod: Pod, cron_jobs: Container[str] = ()) -> Owner | None:
    """The topmost controller of the pod that can be known; None for a bare pod.

    What the input says of the controllers above counts, else their names: a ReplicaSet is named after its Deployment
    and the hash of the template, which its pods have as a label; a Job after its CronJob and the minute of its run
    (kubernetes pkg/controller/cronjob, getJobName). `cron_jobs` are known ones, as `namespace/name`.
    """
    owner = pod.owner
    if owner is None:
        return None
    while owner.controller is not None:
        owner = owner.controller
    match owner.kind:
        case "ReplicaSet":
            return _of_replica_set(owner, pod)
        case "Job":
            return _of_job(owner, pod, cron_jobs)
    return owner


def _of_replica_set(owner: Owner, pod: Pod) -> Owner:
    for label, kind in ((HASH_LABEL, "Deployment"), (_ROLLOUT_HASH_LABEL, "Rollout")):
        template_hash = pod.labels.get(label)
        if template_hash and owner.name.endswith(f"-{template_hash}"):
            return Owner(kind, owner.name.removesuffix(f"-{template_hash}"))
    return owner


def _of_job(owner: Owner, pod: Pod, cron_jobs: Container[str]) -> Owner:
    job_set = pod.labels.get(_JOB_SET_LABEL)
    if job_set:
        return Owner("JobSet", job_set)
    run = _RUN.fullmatch(owner.name)
    if run is not None and f"{pod.namespace}/{run.group(1)}" in cron_jobs:
        return Owner("CronJob", run.group(1))
    return owner
