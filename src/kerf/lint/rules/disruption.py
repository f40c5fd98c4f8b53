"""Nodes that never go, or go at once."""

from kerf.errors import brief
from kerf.lint.context import Held, LintContext
from kerf.lint.findings import Note, Notes, Severity
from kerf.lint.registry import rule
from kerf.lint.subject import WORKLOADS, Subject
from kerf.manifests.rules import schedule_of
from kerf.manifests.schema import Path
from kerf.model.eviction import value_problem
from kerf.model.nodepool import NodePool
from kerf.model.schedules import longest_gap_s

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_ENDLESS = ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet")


@rule("KL046", "never-disrupted", Severity.WARNING, ("NodePool", *WORKLOADS))
def never_disrupted(subject: Subject, context: LintContext) -> Notes:
    """Pods that never end forbid for ever that their node goes.

    `karpenter.sh/do-not-disrupt: "true"` on pods of a Deployment, StatefulSet or DaemonSet, or on a whole pool, keeps a
    node that is almost empty, too expensive or out of date: consolidation passes it over, and drift and expiry end it
    only where the pool has a `terminationGracePeriod`. It is meant for work that ends by itself. A PodDisruptionBudget
    says how many pods may be moved at once.
    """
    del context
    if subject.kind == "NodePool":
        path: Path = ("spec", "template", "metadata", "annotations", DO_NOT_DISRUPT)
        if subject.text(*path) == "true":
            message = "no node of this pool is ever consolidated or replaced, empty ones neither"
            yield Note(path, message, "budgets of spec.disruption bound how many go at once", at_key=True)
        return
    path = (*(subject.template or ()), "metadata", "annotations", DO_NOT_DISRUPT)
    if subject.kind in _ENDLESS and subject.text(*path) == "true":
        message = f"pods of a {subject.kind} never end, so their nodes are never consolidated or replaced"
        yield Note(path, message, "a PodDisruptionBudget bounds how many pods are moved at once", at_key=True)


@rule("KL077", "do-not-disrupt-ignored", Severity.WARNING, ("NodePool", "NodeClaim", "Node", *WORKLOADS))
def do_not_disrupt_ignored(subject: Subject, context: LintContext) -> Notes:
    """`karpenter.sh/do-not-disrupt` has a value that is ignored.

    On a pod it is `true`, or a time from its start such as `4h` or `1h30m`; on a node, its claim or a pool it is `true`
    alone. With any other value, such as `True`, `yes`, `1d` or `0s`, pods are evicted and nodes are replaced as if it
    was not there. `false` says so, and is no finding.
    """
    del context
    is_node = subject.kind in ("NodePool", "NodeClaim", "Node")
    template: Path = ("spec", "template") if subject.kind == "NodePool" else () if is_node else (subject.template or ())
    path: Path = (*template, "metadata", "annotations", DO_NOT_DISRUPT)
    value = subject.get(*path)
    if not isinstance(value, str) or value in ("true", "false"):
        return
    if is_node:
        yield Note(path, f'expected "true", got {brief(value)}: on nodes it does nothing', '"true"')
    elif problem := value_problem(value):
        yield Note(path, f"{problem}: it does nothing", '"true", or a duration such as 4h')


@rule("KL047", "nodes-never-go", Severity.WARNING, ("NodePool",))
def nodes_never_go(subject: Subject, context: LintContext) -> Notes:
    """Nodes of a pool stay although they are empty.

    `consolidateAfter: Never`, or a budget of 0 nodes at all hours for every reason or for empty nodes: what was
    launched for a peak is paid for until it is deleted by hand. State how long a node must be quiet, `consolidateAfter:
    10m`, and give a budget of 0 a `schedule` and a `duration`, the hours in which nothing may go. `@hourly` for `2h`
    are all hours as well. Documents 000, line 12, and 004, step 3.
    """
    pool = subject.value
    if not isinstance(pool, NodePool) or pool.replicas is not None:
        return
    del context
    if pool.disruption.consolidate_after_s is None:
        message = "consolidateAfter Never: an empty node of this pool is paid for until it is deleted by hand"
        yield Note(("spec", "disruption", "consolidateAfter"), message, "consolidateAfter: 10m")
    if pool.invalid_schedule:
        return
    for index, budget in enumerate(pool.disruption.budgets):
        for_all = not budget.reasons or "Empty" in budget.reasons
        if budget.nodes not in ("0", "0%") or not for_all:
            continue
        path: Path = ("spec", "disruption", "budgets", index)
        if budget.schedule is None or budget.duration_s is None:
            message = f"budget {budget.nodes} at all hours: an empty node of this pool never goes"
            yield Note((*path, "nodes"), message, "schedule and duration say when nothing may go")
        elif longest_gap_s(budget.schedule) <= budget.duration_s:
            message = (
                f"budget {budget.nodes} counts again before its duration is over, so at all hours: "
                "an empty node of this pool never goes"
            )
            yield Note((*path, "duration"), message, "a duration that ends before the schedule is due again")


@rule("KL078", "schedule-never-due", Severity.WARNING, ("NodePool",))
def schedule_never_due(subject: Subject, context: LintContext) -> Notes:
    """A disruption budget in the cluster has a schedule that is never due, or that cannot be read.

    A server accepts any text of five fields: `0 0 31 2 *` is the 31st of February. Then no budget of the pool can be
    worked out, so no node of it is disrupted: nodes that are empty, too expensive or out of date stay until they
    expire. KL001 reports the same in a manifest.
    """
    del context
    if not isinstance(subject.value, NodePool) or not subject.value.invalid_schedule:
        return
    for path, budget in subject.items("spec", "disruption", "budgets"):
        stated = budget.get("schedule")
        if isinstance(stated, str) and schedule_of(stated) is None:
            message = f"schedule {brief(stated)} is never due or cannot be read: no node of this pool is disrupted"
            yield Note((*path, "schedule"), message, "five fields of cron in UTC, such as 0 9 * * mon-fri")


@rule("KL048", "gpu-nodes-go-at-once", Severity.INFO, ("NodePool",))
def gpu_nodes_go_at_once(subject: Subject, context: LintContext) -> Notes:
    """GPU nodes go as soon as their last pod has.

    `consolidateAfter` is 0s, its default. A machine with GPUs needs minutes until its cards are there (launch, boot,
    driver, device plugin), so pods that come and go buy a new one each time. ACK waits ten minutes by default
    (document 004, step 3); document 001 wrote `ttlSecondsAfterEmpty: 300`.
    """
    pool = subject.value
    if not isinstance(pool, NodePool) or pool.replicas is not None or pool.disruption.consolidate_after_s != 0:
        return
    kinds = context.types(pool)
    if kinds and all(kind.gpu_count > 0 for kind in kinds):
        stated = subject.get("spec", "disruption", "consolidateAfter")
        which = "consolidateAfter 0s" if stated is not None else "no consolidateAfter, so 0s"
        path: Path = ("spec", "disruption", "consolidateAfter")
        yield Note(path, f"{which}: a GPU node goes as soon as its last pod has", "consolidateAfter: 10m", at_key=True)


@rule("KL049", "deadline-without-grace", Severity.INFO, ("NodePool",))
def deadline_without_grace(subject: Subject, context: LintContext) -> Notes:
    """Nodes expire, and work that may not be disturbed holds them for ever.

    A node is drained at the age `expireAfter` (720h by default). A pod with `karpenter.sh/do-not-disrupt` or a budget
    that allows nothing holds the drain for ever unless `terminationGracePeriod` ends it: the node is old, tainted and
    paid for.
    """
    pool = subject.value
    if not isinstance(pool, NodePool) or pool.expire_after_s is None or pool.termination_grace_period_s is not None:
        return
    for held in context.workloads:
        annotated = held.pod.annotations.get(DO_NOT_DISRUPT) == "true" and not _ends(held)
        if annotated and context.agrees(held.pod, pool) and context.fits(held.pod, pool):
            path: Path = ("spec", "template", "spec", "terminationGracePeriod")
            message = (
                f"no terminationGracePeriod: {held.subject.title} ({DO_NOT_DISRUPT}) holds an expired node for ever"
            )
            yield Note(path, message, "terminationGracePeriod: 24h", at_key=True)
            return


def _ends(held: Held) -> bool:
    """Whether the pods end by a deadline of their own, or of their Job."""
    job = ("spec", "jobTemplate", "spec") if held.subject.kind == "CronJob" else ("spec",)
    return held.pod.spec.active_deadline_s is not None or held.subject.get(*job, "activeDeadlineSeconds") is not None
