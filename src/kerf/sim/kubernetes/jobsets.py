"""JobSets: their Jobs, and all of them again when one fails.

Left out: `dependsOn` and `startupPolicy` (all Jobs begin at once), failure rules by reason, success policies other than
that all Jobs complete, and the headless service.
"""

from kerf.manifests.workloads.jobsets import child_jobs
from kerf.sim.kubernetes.jobs import finished_at_s, is_complete
from kerf.sim.kubernetes.reconcilers import Reconciler
from kerf.sim.objects import Json, JsonList, is_deleting, name_of, owner_reference


class JobSets(Reconciler):
    """JobSets with a number of restarts."""

    kind = "JobSet"

    def reconcile(self, obj: Json) -> None:
        """Make the Jobs that are missing, or state that the JobSet has ended."""
        if is_deleting(obj) or obj["status"].get("terminalState"):
            return
        jobs = self.controlled(obj, "Job")
        wanted = [job for _, job in child_jobs(obj)]
        if any(finished_at_s(job) is not None and not is_complete(job) for job in jobs):
            self._fail(obj, jobs)
        elif len(jobs) == len(wanted) and all(map(is_complete, jobs)):
            self.set_status(obj, terminalState="Completed")
        else:
            self._make(obj, jobs, wanted)

    def _fail(self, obj: Json, jobs: JsonList) -> None:
        most = (obj["spec"].get("failurePolicy") or {}).get("maxRestarts", 0)
        restarts = obj["status"].get("restarts", 0)
        if restarts >= most:
            self.set_status(obj, terminalState="Failed")
            jobs = [job for job in jobs if finished_at_s(job) is None]
        else:
            self.set_status(obj, restarts=restarts + 1)
        for job in jobs:
            self.delete(job)

    def _make(self, obj: Json, jobs: JsonList, wanted: JsonList) -> None:
        there = {name_of(job): job for job in jobs}
        for job in wanted:
            held, is_suspended = there.get(name_of(job)), bool(job["spec"].get("suspend"))
            if held is None:
                metadata = {**job["metadata"], "ownerReferences": [owner_reference(obj)]}
                self.api.create({**job, "metadata": metadata})
            elif bool(held["spec"].get("suspend")) != is_suspended and finished_at_s(held) is None:
                namespace = held["metadata"]["namespace"]
                self.api.patch("Job", namespace, name_of(held), {"spec": {"suspend": is_suspended}})
