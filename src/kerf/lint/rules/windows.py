"""CapacityWindows and the pods they hold back, and opportunistic pods."""

from itertools import islice, pairwise, takewhile

from kerf.lint.context import LintContext, held_by
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.spelling import nearest
from kerf.lint.subject import WORKLOADS, Subject, value_at
from kerf.manifests.schema import Path
from kerf.model.opportunistic import OPPORTUNISTIC
from kerf.model.schedules import due_times
from kerf.model.times import duration_text
from kerf.model.windows import ALLOW, EVICT, WINDOW_LABEL, CapacityWindow

_DISRUPTION_TARGET = "DisruptionTarget"
_YEAR_S = (1_767_225_600.0, 1_767_225_600.0 + 400 * 86_400)
"""From 2026-01-01T00:00:00Z for a year and a month."""
_MOST_OPENINGS = 1000


def _job(subject: Subject) -> Path:
    """Where the spec of the Job stands."""
    return ("spec", "jobTemplate", "spec") if subject.kind == "CronJob" else ("spec",)


def _ignores_disruption(subject: Subject) -> bool:
    for _, item in subject.items(*_job(subject), "podFailurePolicy", "rules"):
        conditions = item.get("onPodConditions")
        types = [value_at(c, ("type",)) for c in conditions] if isinstance(conditions, list) else []
        if item.get("action") == "Ignore" and _DISRUPTION_TARGET in types:
            return True
    return False


_POLICY = "podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}"


@rule("KL050", "evicted-job-fails", Severity.WARNING, ("Job", "CronJob"))
def evicted_job_fails(subject: Subject, context: LintContext) -> Notes:
    """A Job in a window that ends by eviction fails by it.

    A window with `atEnd: Evict` evicts what still runs when it closes. An evicted pod counts as a failure of its Job:
    with `backoffLimit: 0` the Job fails at once. The pod failure policy `Ignore` for `DisruptionTarget` makes the Job
    start the pod again, gated until the next opening; it needs `restartPolicy: Never`.
    """
    held = held_by(subject)
    if held is None or _ignores_disruption(subject):
        return
    for _, window in context.windows:
        if window.at_end == EVICT and window.selects(held.pod.namespace, held.pod.labels):
            message = (
                f"window {window.name} evicts its pods at its end, which counts as a failure of the {subject.kind}"
            )
            yield Note((*_job(subject), "podFailurePolicy"), message, _POLICY, at_key=True)
            return


@rule("KL051", "opportunistic-job-fails", Severity.WARNING, ("Job", "CronJob"))
def opportunistic_job_fails(subject: Subject, context: LintContext) -> Notes:
    """An opportunistic Job fails when its room is needed.

    Pods with `kerf.dev/opportunistic: "true"` use what is idle and are evicted when a planned pod needs it. An evicted
    pod counts as a failure of its Job unless the pod failure policy says `Ignore` for `DisruptionTarget`; it needs
    `restartPolicy: Never`.
    """
    del context
    if subject.label(OPPORTUNISTIC) == "true" and not _ignores_disruption(subject):
        message = f"its pods are evicted when their room is needed, which counts as a failure of the {subject.kind}"
        yield Note((*_job(subject), "podFailurePolicy"), message, _POLICY, at_key=True)


@rule("KL067", "held-job-ends", Severity.WARNING, ("Job",))
def held_job_ends(subject: Subject, context: LintContext) -> Notes:
    """A Job may end by its own deadline before its window opens.

    The `activeDeadlineSeconds` of a Job counts from its creation, also while a window holds its pods. Where the window
    stays closed for longer, a Job that is submitted early is ended before it has begun. In the pod template the same
    field counts from the start on a node. Looked at where the input has the window.
    """
    held, seconds = held_by(subject), subject.get("spec", "activeDeadlineSeconds")
    if held is None or isinstance(seconds, bool) or not isinstance(seconds, int) or subject.get("spec", "suspend"):
        return
    mine = [w for _, w in context.windows if not w.invalid and w.selects(held.pod.namespace, held.pod.labels)]
    if not mine or any(window.outside == ALLOW for window in mine):
        return
    longest_s, name = min((_longest_closed_s(window), window.name) for window in mine)
    if seconds <= longest_s:
        message = (
            f"a Job's clock runs while window {name} holds its pods, for up to {duration_text(int(longest_s))}; it may "
            f"end after {duration_text(seconds)} without having run"
        )
        yield Note(("spec", "activeDeadlineSeconds"), message, "state it in spec.template.spec", at_key=True)


@rule("KL070", "lead-above-period", Severity.WARNING, ("CapacityWindow",))
def lead_above_period(subject: Subject, context: LintContext) -> Notes:
    """The lead time of a window is as long as it is closed: its capacity is never let go.

    What a window keeps warm is bought `leadTime` before it opens. Where the window is never closed for longer than
    that, its nodes are there and paid for at all hours, which `warm` without hours says better: `kerf.dev/min-nodes` of
    the pool.
    """
    del context
    window = subject.value
    if not isinstance(window, CapacityWindow) or window.invalid or window.lead_time_s is None or not window.warm:
        return
    longest_s = int(_longest_closed_s(window))
    if window.lead_time_s >= longest_s:
        message = (
            f"leadTime {duration_text(window.lead_time_s)}: the window is never closed for longer than "
            f"{duration_text(longest_s)}, so its capacity is kept at all hours"
        )
        yield Note(("spec", "leadTime"), message, "a shorter leadTime, or kerf.dev/min-nodes on the pool")


def _longest_closed_s(window: CapacityWindow) -> float:
    """How long it stays closed at most, in the year from 2026 on."""
    openings = takewhile(lambda due_s: due_s < _YEAR_S[1], due_times(window.schedule, window.time_zone, _YEAR_S[0]))
    few = islice(openings, _MOST_OPENINGS)
    return max((b - a - window.duration_s for a, b in pairwise(few)), default=_YEAR_S[1] - _YEAR_S[0])


@rule("KL057", "window-not-found", Severity.ERROR, WORKLOADS)
def window_not_found(subject: Subject, context: LintContext) -> Notes:
    """Pods are held for a window that does not exist.

    A pod with the label `kerf.dev/window` is gated when it is made, and only a window that selects it opens the gate.
    Where none does, it waits for ever: its reason is `WindowNotFound`. Looked at where the input has windows.
    """
    held = held_by(subject)
    windows = context.windows
    if held is None or WINDOW_LABEL not in held.pod.labels or len(windows) != len(context.of_kind("CapacityWindow")):
        return
    if windows and not any(window.selects(held.pod.namespace, held.pod.labels) for _, window in windows):
        label = held.pod.labels[WINDOW_LABEL]
        close = nearest(label, [window.name for _, window in windows], 0.6)
        hint = f"is {close} meant?" if close and close != label else "see its selector and its namespaces"
        path: Path = (*(subject.template or ()), "metadata", "labels", WINDOW_LABEL)
        yield Note(path, f"{WINDOW_LABEL}: {label}: no window of the input selects these pods", hint)


@rule("KL058", "window-of-missing-pool", Severity.ERROR, ("CapacityWindow",))
def window_of_missing_pool(subject: Subject, context: LintContext) -> Notes:
    """A window names a NodePool that does not exist.

    Its capacity is bought in its pools alone, so nothing is warm when it opens. Looked at where the input has
    pools.
    """
    window = subject.value
    if not isinstance(window, CapacityWindow):
        return
    known = [pool.name for pool in context.of_kind("NodePool")]
    for index, name in enumerate(window.node_pools if known else ()):
        if name not in known:
            close = nearest(name, known, 0.6)
            hint = f"is {close} meant?" if close else f"the input has {', '.join(sorted(known))}"
            yield Note(("spec", "nodePools", index), f"there is no NodePool {name}", hint)
