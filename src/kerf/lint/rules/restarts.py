"""What pods state of their restarts."""

from kerf.engine.disruption.disturbance import RESTART_COST, restart_cost_s
from kerf.errors import brief
from kerf.lint.context import LintContext, held_by
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.subject import WORKLOADS, Subject


@rule("KL076", "restart-cost-unreadable", Severity.WARNING, WORKLOADS)
def restart_cost_unreadable(subject: Subject, context: LintContext) -> Notes:
    """The annotation `kerf.dev/restart-cost` of a pod is no duration, so it does nothing.

    It says how much of its work a move of the pod throws away. Without it a pod of a Job is taken to lose all of its
    work, and seldom moves to save money.
    """
    del context
    held = held_by(subject)
    if held is None or RESTART_COST not in held.pod.annotations or restart_cost_s(held.pod) is not None:
        return
    got = held.pod.annotations[RESTART_COST]
    path = (*(subject.template or ()), "metadata", "annotations", RESTART_COST)
    yield Note(path, f"expected a duration such as 5m, got {brief(got)}: it does nothing", "5m")
