"""CronJobs: a Job whenever the schedule is due.

A run that could not start in time (suspended, or forbidden while the last one still runs) is started late, once,
unless `startingDeadlineSeconds` has passed: the wave of pods an autoscaler sees then is not on the hour.
"""

from itertools import takewhile

from kerf.model.times import instant_s, instant_text
from kerf.sim.kubernetes.jobs import finished_at_s, is_complete
from kerf.sim.kubernetes.reconcilers import Reconciler, created_s
from kerf.sim.kubernetes.schedules import due_times
from kerf.sim.objects import Json, JsonList, copied, is_deleting, name_of, owner_reference, uid_of


class CronJobs(Reconciler):
    """CronJobs with each concurrency policy."""

    kind = "CronJob"

    def reconcile(self, obj: Json) -> None:
        """Start the last run that is due and has not started, and come back for the next."""
        if is_deleting(obj):
            return
        jobs = self.controlled(obj, "Job")
        active = [job for job in jobs if finished_at_s(job) is None]
        self._prune(obj, jobs)
        self.set_status(obj, active=[{"kind": "Job", "name": name_of(job), "uid": uid_of(job)} for job in active])
        if obj["spec"].get("suspend"):
            return
        due_s = self._last_due_s(obj)
        if due_s is not None:
            self._run(obj, due_s, active)
        self._come_back(obj)

    def _last_due_s(self, obj: Json) -> float | None:
        spec, last = obj["spec"], obj["status"].get("lastScheduleTime")
        now_s = self.clock.now_s()
        since_s = instant_s(last) if last else created_s(obj)
        if spec.get("startingDeadlineSeconds") is not None:
            since_s = max(since_s, now_s - spec["startingDeadlineSeconds"])
        missed = takewhile(lambda due: due <= now_s, due_times(spec["schedule"], spec.get("timeZone"), since_s))
        return max(missed, default=None)

    def _come_back(self, obj: Json) -> None:
        spec = obj["spec"]
        next_s = next(due_times(spec["schedule"], spec.get("timeZone"), self.clock.now_s()), None)
        if next_s is not None:
            self.look_again(obj, next_s)

    def _run(self, obj: Json, due_s: float, active: JsonList) -> None:
        policy = obj["spec"].get("concurrencyPolicy", "Allow")
        if policy == "Forbid" and active:
            return
        if policy == "Replace":
            for job in active:
                self.delete(job)
        name = f"{name_of(obj)}-{int(due_s) // 60}"
        if self.api.get("Job", obj["metadata"]["namespace"], name) is None:
            self.api.create(_job(obj, name))
        self.set_status(obj, lastScheduleTime=instant_text(due_s))

    def _prune(self, obj: Json, jobs: JsonList) -> None:
        """Delete the oldest finished Jobs beyond the history limits."""
        finished = [job for job in jobs if finished_at_s(job) is not None]
        good = [job for job in finished if is_complete(job)]
        bad = [job for job in finished if not is_complete(job)]
        kept = obj["spec"].get("successfulJobsHistoryLimit", 3), obj["spec"].get("failedJobsHistoryLimit", 1)
        for held, limit in zip((good, bad), kept, strict=True):
            for job in held[: max(0, len(held) - limit)]:
                self.delete(job)


def _job(obj: Json, name: str) -> Json:
    template = obj["spec"]["jobTemplate"]
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": obj["metadata"]["namespace"],
            "labels": dict(metadata.get("labels") or {}),
            "annotations": dict(metadata.get("annotations") or {}),
            "ownerReferences": [owner_reference(obj)],
        },
        "spec": copied(template["spec"]),
    }
