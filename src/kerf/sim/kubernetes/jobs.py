"""Jobs: pods until enough of them have succeeded.

What matters beside an autoscaler: a pod that was evicted, or whose node vanished, counts as failed unless the Job's
failure policy ignores disruptions, its replacement waits for a back-off, and a Job that failed too often is given up.
Left out: a back-off limit per index, success policies, and `podReplacementPolicy` (a terminating pod is replaced).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kerf.model.times import instant_s
from kerf.ports import Clock
from kerf.sim.kubernetes.api import DELETED, Change, InMemoryApi
from kerf.sim.kubernetes.kubelet import RUN_FOR
from kerf.sim.kubernetes.reconcilers import Key, PodMaker, Queue, Watcher
from kerf.sim.kubernetes.replicas import deletion_order
from kerf.sim.objects import (
    Json,
    JsonList,
    annotations_of,
    condition_of,
    controller_of,
    is_active,
    is_deleting,
    is_ready,
    name_of,
    phase_of,
    uid_of,
    with_condition,
)

INDEX = "batch.kubernetes.io/job-completion-index"
JOB_NAME = "batch.kubernetes.io/job-name"

_FIRST_BACKOFF_S, _LAST_BACKOFF_S = 10, 600


@dataclass(slots=True)
class _Tally:
    """How the pods of one Job ended, by uid.

    `ignored` ended and do not count; `indexes` are distinct completions; `streak` counts failures since a success.
    """

    succeeded: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)
    indexes: set[str] = field(default_factory=set)
    streak: int = 0
    last_failure_s: float = 0

    def retry_at_s(self) -> float:
        """When the next pod may be made."""
        if not self.streak:
            return 0
        return self.last_failure_s + min(_LAST_BACKOFF_S, _FIRST_BACKOFF_S << min(self.streak - 1, 10))


class Jobs(Watcher):
    """Jobs, indexed or not, with a number of completions or as a work queue."""

    kind = "Job"

    def __init__(self, api: InMemoryApi, clock: Clock, queue: Queue, pods: PodMaker) -> None:
        super().__init__(api, clock, queue, pods)
        self._tallies: dict[str, _Tally] = {}

    def notice(self, change: Change) -> Iterable[Key]:
        """Count a pod that is gone: its end can be read nowhere else."""
        obj = change.obj
        if change.type != DELETED:
            return ()
        if obj["kind"] == "Job":
            self._tallies.pop(uid_of(obj), None)
        owner = controller_of(obj) if obj["kind"] == "Pod" else None
        job = self.api.get("Job", obj["metadata"]["namespace"], owner["name"]) if owner is not None else None
        if job is not None and owner is not None and uid_of(job) == owner["uid"]:
            self._count(job, obj)
        return ()

    def reconcile(self, obj: Json) -> None:
        """Make the next pods, or state that the Job is complete or has failed."""
        if is_deleting(obj):
            return
        finished_s = finished_at_s(obj)
        if finished_s is not None:
            self._expire(obj, finished_s)
            return
        pods = self.controlled(obj)
        active = []
        for pod in pods:
            if is_active(pod):
                active.append(pod)
            else:
                self._count(obj, pod)
        self._start(obj)
        failure = self._failure(obj)
        if failure:
            self._finish(obj, "Failed", failure, active)
        elif self._is_complete(obj, active):
            self._finish(obj, "Complete", "CompletionsReached", active)
        else:
            self._adjust(obj, active)
            self._report(obj, active)

    def _tally(self, obj: Json) -> _Tally:
        return self._tallies.setdefault(uid_of(obj), _Tally())

    def _count(self, obj: Json, pod: Json) -> None:
        """Take note of a pod that has ended, is going, or is gone."""
        tally, uid = self._tally(obj), uid_of(pod)
        if uid in tally.succeeded or uid in tally.failed or uid in tally.ignored:
            return
        if phase_of(pod) == "Succeeded":
            tally.succeeded.add(uid)
            tally.indexes.add(annotations_of(pod).get(INDEX, uid))
            tally.streak = 0
        elif _ignores(obj, pod):
            tally.ignored.add(uid)
        else:
            tally.failed.add(uid)
            tally.streak += 1
            tally.last_failure_s = self.clock.now_s()

    def _start(self, obj: Json) -> None:
        if "startTime" in obj["status"] or obj["spec"].get("suspend"):
            return
        self.set_status(obj, startTime=self.now_text())
        deadline_s = obj["spec"].get("activeDeadlineSeconds")
        if deadline_s is not None:
            self.look_again(obj, self.clock.now_s() + deadline_s)

    def _failure(self, obj: Json) -> str:
        """Why the Job is to be given up; empty while it is not."""
        if len(self._tally(obj).failed) > obj["spec"].get("backoffLimit", 6):
            return "BackoffLimitExceeded"
        start, deadline_s = obj["status"].get("startTime"), obj["spec"].get("activeDeadlineSeconds")
        if start and deadline_s is not None and self.clock.now_s() >= instant_s(start) + deadline_s:
            return "DeadlineExceeded"
        return ""

    def _is_complete(self, obj: Json, active: JsonList) -> bool:
        tally, completions = self._tally(obj), obj["spec"].get("completions")
        if completions is None:
            return not active and bool(tally.succeeded)
        return len(tally.indexes) >= int(completions)

    def _finish(self, obj: Json, condition: str, reason: str, active: JsonList) -> None:
        for pod in active:
            self.delete(pod)
        now = self.now_text()
        conditions = with_condition(obj, {"type": condition, "status": "True", "reason": reason}, now)
        completed = {"completionTime": now} if condition == "Complete" else {}
        self._report(obj, [], conditions=conditions, **completed)

    def _expire(self, obj: Json, finished_s: float) -> None:
        keep_s = obj["spec"].get("ttlSecondsAfterFinished")
        if keep_s is None:
            return
        if self.clock.now_s() >= finished_s + keep_s:
            self.delete(obj)
        else:
            self.look_again(obj, finished_s + keep_s)

    def _adjust(self, obj: Json, active: JsonList) -> None:
        tally, wanted = self._tally(obj), self._wanted(obj, len(active))
        if len(active) > wanted:
            for pod in deletion_order(active, counts_cost=False)[: len(active) - wanted]:
                tally.ignored.add(uid_of(pod))
                self.delete(pod)
        if len(active) >= wanted:
            return
        if self.clock.now_s() < tally.retry_at_s():
            self.look_again(obj, tally.retry_at_s())
            return
        for index in self._free_indexes(obj, active, wanted - len(active)):
            self.pods.create_numbered(name_of(obj), self._pod(obj, index))

    def _wanted(self, obj: Json, active: int) -> int:
        """How many pods should be active now."""
        spec, tally = obj["spec"], self._tally(obj)
        if spec.get("suspend"):
            return 0
        parallelism: int = spec.get("parallelism", 1)
        if spec.get("completions") is None:
            # A work queue: once a pod has succeeded the others finish what they have, and none is added.
            return active if tally.succeeded else parallelism
        missing: int = spec["completions"] - len(tally.indexes)
        return min(parallelism, missing)

    def _free_indexes(self, obj: Json, active: JsonList, count: int) -> list[str]:
        if obj["spec"].get("completionMode") != "Indexed":
            return [""] * count
        taken = self._tally(obj).indexes | {annotations_of(pod).get(INDEX, "") for pod in active}
        every = (str(index) for index in range(obj["spec"]["completions"]))
        return [index for index in every if index not in taken][:count]

    def _pod(self, obj: Json, index: str) -> Json:
        labels = {JOB_NAME: name_of(obj), "job-name": name_of(obj), "batch.kubernetes.io/controller-uid": uid_of(obj)}
        labels |= {INDEX: index} if index else {}
        pod = self.pods.make(obj, obj["spec"]["template"], labels=labels)
        pod["spec"].setdefault("restartPolicy", "Never")
        if index:
            pod["metadata"]["annotations"][INDEX] = index
        if RUN_FOR in annotations_of(obj):
            pod["metadata"]["annotations"].setdefault(RUN_FOR, annotations_of(obj)[RUN_FOR])
        return pod

    def _report(self, obj: Json, active: JsonList, **fields: object) -> None:
        tally = self._tally(obj)
        self.set_status(
            obj,
            active=len(active),
            ready=sum(1 for pod in active if is_ready(pod)),
            succeeded=len(tally.succeeded),
            failed=len(tally.failed),
            **fields,
        )


def finished_at_s(job: Json) -> float | None:
    """When a Job completed or failed, in seconds since the epoch; None while it has not."""
    found = [condition_of(job, type_) for type_ in ("Complete", "Failed")]
    times = [instant_s(c["lastTransitionTime"]) for c in found if c is not None and c["status"] == "True"]
    return min(times, default=None)


def is_complete(job: Json) -> bool:
    """Whether a Job has finished well."""
    return condition_of(job, "Complete") is not None


def _ignores(job: Json, pod: Json) -> bool:
    """Whether the Job's failure policy does not count this end, e.g. because of the condition DisruptionTarget."""
    for rule in (job["spec"].get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            held = condition_of(pod, pattern["type"])
            if held is not None and held["status"] == pattern.get("status", "True"):
                return bool(rule["action"] == "Ignore")
    return False
