"""Work by the clock: CronJobs that are warmed up for, priorities."""

import re
from typing import Any

from kerf.errors import brief
from kerf.lint.context import LintContext, asks_cards, held_by
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.subject import Subject
from kerf.manifests.schema import Path
from kerf.model.cronjobs import PREWARM, PREWARM_CRON_JOBS

_HOURS = re.compile(r"\b(peak|off-peak|hours?|morning|noon|afternoon|evening|night|daytime|weekends?)\b", re.IGNORECASE)


def _is_warmed(subject: Subject, context: LintContext) -> bool:
    if subject.annotation(PREWARM):
        return subject.annotation(PREWARM) != "off"
    held = held_by(subject)
    return held is not None and any(
        pool.stated_annotations.get(PREWARM_CRON_JOBS) and context.agrees(held.pod, pool) for _, pool in context.pools
    )


def _asks_cards(subject: Subject) -> bool:
    held = held_by(subject)
    return held is not None and asks_cards(held.pod.spec.requests)


@rule("KL052", "cron-job-without-deadline", Severity.WARNING, ("CronJob",))
def cron_job_without_deadline(subject: Subject, context: LintContext) -> Notes:
    """A CronJob on GPUs, or one that nodes are warmed up for, has no end.

    A schedule says when a Job begins, not when it ends: a run that hangs holds its cards until the next one, and
    beyond. The slot `8 to 12` of document 001 is `0 8 * * *` with `activeDeadlineSeconds: 14400`. Document 001, line
    12.
    """
    if not (_is_warmed(subject, context) or _asks_cards(subject)):
        return
    path: Path = ("spec", "jobTemplate", "spec", "activeDeadlineSeconds")
    of_pod = subject.get("spec", "jobTemplate", "spec", "template", "spec", "activeDeadlineSeconds")
    if subject.get(*path) is None and of_pod is None:
        message = "no activeDeadlineSeconds: a schedule says when a run begins, nothing says when it ends"
        yield Note(path, message, "activeDeadlineSeconds: 14400 ends it after four hours", at_key=True)


@rule("KL053", "cron-job-without-time-zone", Severity.WARNING, ("CronJob",))
def cron_job_without_time_zone(subject: Subject, context: LintContext) -> Notes:
    """A CronJob on GPUs, or one that nodes are warmed up for, has no time zone.

    Without `timeZone` the schedule is that of the kube-controller-manager, which nothing in the cluster shows: UTC on
    most managed services, so `0 8 * * *` is 16:00 in Shanghai. Nodes would be warm at the wrong hour. Document
    001, line 12.
    """
    if (_is_warmed(subject, context) or _asks_cards(subject)) and not subject.text("spec", "timeZone"):
        schedule = subject.text("spec", "schedule")
        if schedule.startswith(("TZ=", "CRON_TZ=")):
            return
        message = f"no timeZone: {schedule} is by the clock of the kube-controller-manager, mostly UTC"
        yield Note(("spec", "schedule"), message, "timeZone: Asia/Shanghai")


@rule("KL054", "missed-while-warming", Severity.WARNING, ("CronJob",))
def missed_while_warming(subject: Subject, context: LintContext) -> Notes:
    """A CronJob that nodes are warmed up for is suspended, or gives up before a node could be there.

    A suspended CronJob starts nothing, so nothing is warmed up either. With a `startingDeadlineSeconds` below ten
    seconds the controller, which looks every ten, may never start a run at all.
    """
    if not _is_warmed(subject, context):
        return
    if subject.get("spec", "suspend") is True:
        yield Note(("spec", "suspend"), "suspended: nothing is started, and nothing warmed up", f"drop {PREWARM}")
    deadline: Any = subject.get("spec", "startingDeadlineSeconds")
    if isinstance(deadline, int) and not isinstance(deadline, bool) and deadline < 10:
        message = f"startingDeadlineSeconds {deadline}: the controller looks every 10 s and may miss every run"
        yield Note(("spec", "startingDeadlineSeconds"), message, "startingDeadlineSeconds: 300")


@rule("KL055", "priority-by-the-clock", Severity.INFO, ("PriorityClass",))
def priority_by_the_clock(subject: Subject, context: LintContext) -> Notes:
    """The description of a PriorityClass speaks of hours.

    A priority orders scheduling and preemption at all hours; its description has no effect. What may run when is said
    by a CapacityWindow, whose `queuePriority` holds while it is open. Document 001, line 11.
    """
    del context
    found = _HOURS.search(subject.text("description"))
    if found is not None:
        message = f"the description speaks of {brief(found.group())}; a priority holds at all hours"
        yield Note(("description",), message, "a CapacityWindow says when pods may run")
