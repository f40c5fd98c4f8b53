"""CapacityWindows and the pods they hold back, and opportunistic pods."""

from kerf.lint.context import LintContext, held_by
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.spelling import nearest
from kerf.lint.subject import WORKLOADS, Subject, value_at
from kerf.manifests.schema import Path
from kerf.model.opportunistic import OPPORTUNISTIC
from kerf.model.windows import EVICT, WINDOW_LABEL, CapacityWindow

_DISRUPTION_TARGET = "DisruptionTarget"


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

    Its capacity is bought in its pools alone, so that nothing is warm when it opens. Looked at where the input has
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
