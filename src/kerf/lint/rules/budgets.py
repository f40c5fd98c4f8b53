"""PodDisruptionBudgets that hold nodes for ever."""

from collections.abc import Iterator

from kerf.lint.context import LintContext
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.subject import Subject
from kerf.manifests.cluster import BudgetReading
from kerf.model.pods import Pod


@rule("KL045", "budget-blocks-for-ever", Severity.WARNING, ("PodDisruptionBudget",))
def blocks_for_ever(subject: Subject, context: LintContext) -> Notes:
    """A disruption budget never allows an eviction.

    `maxUnavailable: 0`, `minAvailable: 100%`, or a `minAvailable` of as many pods as there are: a node that holds one
    of these pods can be neither consolidated nor drained, so it is paid for until the pod is deleted by
    hand, and upgrades of nodes hang. Let one pod go (`maxUnavailable: 1`), and run two where one may not be missed.
    Karpenter's event is `DisruptionBlocked`.
    """
    reading = subject.value
    if not isinstance(reading, BudgetReading):
        return
    for field, bound in (("maxUnavailable", reading.max_unavailable), ("minAvailable", reading.min_available)):
        why = _why(field, bound, reading, context)
        if why:
            yield Note(("spec", field), f"{field} {bound} allows no eviction{why}", "maxUnavailable: 1 lets one go")


def _why(field: str, bound: int | str | None, reading: BudgetReading, context: LintContext) -> str | None:
    """What follows `allows no eviction`; None when it allows one."""
    if bound is None:
        return None
    if field == "maxUnavailable":
        return ": its pods hold their nodes for ever" if bound in (0, "0%") else None
    if isinstance(bound, str) and bound.endswith("%") and bound[:-1].isdecimal() and int(bound[:-1]) >= 100:
        return ": its pods hold their nodes for ever"
    covered = [held for held in context.workloads if reading.budget.covers(held.pod) and held.replicas > 0]
    if not covered or not isinstance(bound, int):
        return None
    pods = sum(held.replicas for held in covered)
    names = ", ".join(held.subject.title for held in covered)
    has_more = any(_may_grow(held.subject, context) for held in covered)
    return f": {names} has {pods}" if bound >= pods and not has_more else None


def _may_grow(subject: Subject, context: LintContext) -> bool:
    """Whether an HPA of the input scales the workload, so its number of pods is not known."""
    return any(
        scaler.namespace == subject.namespace
        and scaler.text("spec", "scaleTargetRef", "kind") == subject.kind
        and scaler.text("spec", "scaleTargetRef", "name") == subject.name
        for scaler in context.of_kind("HorizontalPodAutoscaler")
    )


@rule("KL087", "several-budgets", Severity.WARNING, ("PodDisruptionBudget",))
def several_budgets(subject: Subject, context: LintContext) -> Notes:
    """Pods are covered by several disruption budgets, so the API evicts none of them.

    The eviction API answers such a request with an error, whatever the budgets allow: a node with one of these pods can
    be neither consolidated nor drained until all budgets but one are gone, or the pod is deleted by hand. Kubernetes
    asks for selectors that do not overlap. Helm charts that bring a budget of their own beside one for the whole
    namespace are the usual cause. Karpenter's event is `eviction does not support multiple PDBs`.
    """
    mine = subject.value
    others = [
        (each, each.value)
        for each in context.of_kind("PodDisruptionBudget")
        if each.index < subject.index and each.namespace == subject.namespace
    ]
    if not isinstance(mine, BudgetReading) or not others:
        return
    covered = [(title, pod) for title, pod in _pods(context) if mine.budget.covers(pod)]
    for other, value in others:
        if not isinstance(value, BudgetReading):
            continue
        both = [title for title, pod in covered if value.budget.covers(pod)]
        if both:
            more = f" and {len(both) - 1} more" if len(both) > 1 else ""
            message = (
                f"covers pods of {both[0]}{more}, as PodDisruptionBudget {other.name} does: the API evicts no such pod"
            )
            yield Note(("spec", "selector"), message, "leave one of the budgets", at_key=True)


def _pods(context: LintContext) -> Iterator[tuple[str, Pod]]:
    """The pods of workloads, and those that run, each with who it is or is made by; ended ones need no eviction."""
    for held in context.workloads:
        if held.replicas > 0 and held.subject.kind != "DaemonSet" and not held.pod.is_ended:
            yield held.subject.title, held.pod
    for subject in context.of_kind("Pod"):
        is_made = subject.is_live and bool(subject.get("metadata", "ownerReferences"))
        if is_made and isinstance(subject.value, Pod) and not subject.value.is_ended:
            yield subject.title, subject.value
