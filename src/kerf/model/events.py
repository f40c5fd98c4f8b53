"""Events for people: one constructor each, with its text and the key by which repeats are dropped.

Reasons and wording are Karpenter's where it has the event (docs/reference/cluster.md), and Cluster Autoscaler's for
`TriggeredScaleUp`, so runbooks written for either keep working. Adapters only post them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kerf.errors import MOST_SHOWN, cut
from kerf.model.capacitybuffers import PROBLEMS as BUFFER_PROBLEMS
from kerf.model.causes import Cause, Paced
from kerf.model.nodeclaim import (
    DO_NOT_DISRUPT,
    OVERLOADED,
    PRICE_CAP_EXCEEDED,
    TERMINATION_TIMESTAMP,
    TRUE,
    Condition,
)
from kerf.model.nodepool import NodePool
from kerf.model.printable import one_line
from kerf.model.provisioningrequests import NODES_STARTING
from kerf.model.quantities import NODES, Resources, quantity_text
from kerf.model.schedules import local_text
from kerf.model.times import instant_text
from kerf.model.windows import CLOSED, CLOSING, OPEN, WARMING, CapacityWindow, WindowQuotaExhausted

NORMAL, WARNING = "Normal", "Warning"
NOMINATED = "Nominated"
_EXAMPLE = "2026-01-05T08:00:00Z"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One event. `regards` is (kind, `namespace/name` or name); equal `dedupe` within `period_s` is posted once.

    `uid` is the object's where only the teller knows it: kubectl describe shows an object the events of its own uid.
    """

    regards: tuple[str, str]
    type: str
    reason: str
    message: str
    dedupe: tuple[str, ...]
    period_s: float = 120
    uid: str = ""

    def __post_init__(self) -> None:
        """What it quotes of an object is shown on the terminals of others."""
        object.__setattr__(self, "message", one_line(self.message))


def _about(kind: str, key: str, type_: str, reason: str, message: str, period_s: float = 120) -> Occurrence:
    return Occurrence((kind, key), type_, reason, message, (kind, key, reason, message), period_s)


def failed_scheduling(pod_key: str, reason: str, cause: Cause) -> Occurrence:
    """Nothing can be bought for a pod, and why; repeated after five minutes.

    When a pool launches its next node is another figure every second: of such a reason the pool counts.
    """
    same = f"paced {cause.pool}" if isinstance(cause, Paced) else reason
    message, dedupe = f"Failed to schedule pod, {reason}", ("Pod", pod_key, "FailedScheduling", same)
    return Occurrence(("Pod", pod_key), WARNING, "FailedScheduling", message, dedupe, 300)


def left_for_later(pod_key: str, others: int, most: int, weight: int = 1) -> Occurrence:
    """A pass plans for no more shapes of pods; said once on the first pod of a namespace for all that it leaves.

    `weight` is as how many shapes the first counts, for the length of what it asks.
    """
    namespace = pod_key.partition("/")[0]
    more = f" and {others} more of the namespace wait" if others else " waits"
    text = f"Pod{more} for a later pass: one pass plans for {most} kinds of pods (--most-shapes), in turn from each "
    long = f"; this one counts as {weight}, as its spec has so many terms" if weight > 1 else ""
    dedupe = ("Namespace", namespace, "LeftForLater")
    return Occurrence(("Pod", pod_key), NORMAL, "LeftForLater", f"{text}namespace{long}", dedupe, 300)


def nominated(pod_key: str, target: str) -> Occurrence:
    """A pod has a place; `target` is `nodeclaim/x` or `node/y`."""
    return _about("Pod", pod_key, NORMAL, NOMINATED, f"Pod should schedule on: {target}")


def not_reserved(pod_key: str, claim: str, why: str) -> Occurrence:
    """A pod may not have the toleration of the node that was bought for it, so others may come before it."""
    return _about("Pod", pod_key, WARNING, "NotReserved", f"The node of {claim} cannot be reserved for this pod: {why}")


def rejected(
    pod_key: str, scheduler: str, node: str, said: str, retry_s: float | None, lacks: str = "", times: int = 1
) -> Occurrence:
    """A scheduler refuses a pod on the node that the plan has for it, or that was bought for it and lacks something."""
    until = "what is refused has changed"
    when = f"until {until}" if retry_s is None else f"before {instant_text(retry_s)}, unless {until}"
    what = f'{scheduler} refuses this pod on node {node}, where Kerf\'s plan has room for it: "{said}"'
    if lacks:
        what = f'node {node} was bought for this pod and cannot hold it: {lacks}; {scheduler} says "{said}"'
    often = f"; refused {times} times by now" if times > 1 else ""
    message = f"{what}; Kerf plans no other node for it {when}{often}"
    return Occurrence(("Pod", pod_key), WARNING, "RejectedByScheduler", message, ("Pod", pod_key, node, "rejected"))


def not_used(claim: str, pod_key: str, scheduler: str, said: str) -> Occurrence:
    """The node of a claim is held for a pod no more, because its scheduler does not want it there."""
    message = f'{scheduler} refuses pod {pod_key} here: "{said}"; the node is held for it no more'
    return _about("NodeClaim", claim, WARNING, "RejectedByScheduler", message)


def triggered_scale_up(pod_key: str, claim: str, pool: NodePool, before: int, after: int) -> Occurrence:
    """A pod made us buy nodes, in Cluster Autoscaler's wording; once per pod and claim.

    Where other things than nodes are limited, these are the maximum.
    """
    message = f"pod triggered scale-up: [{{{pool.name} {before}->{after} (max: {_most(pool.limits)})}}]"
    return Occurrence(("Pod", pod_key), NORMAL, "TriggeredScaleUp", message, ("Pod", pod_key, claim), float("inf"))


def _most(limits: Resources | None) -> str:
    """What a pool may have at most: its nodes as a number, then all else that is limited, by name."""
    if not limits:
        return "unlimited"
    nodes = [str(limits[NODES])] if NODES in limits else []
    others = [f"{name} {quantity_text(name, amount)}" for name, amount in sorted(limits.items()) if name != NODES]
    return ", ".join((*nodes, *others))


def not_understood(kind: str, key: str, why: str) -> Occurrence:
    """An object that cannot be read: its last good form counts, or none."""
    return _about(
        kind, key, WARNING, "NotUnderstood", f"Kerf cannot read this object and goes by its last form: {why}", 3600
    )


def cards_not_understood(node: str, why: str) -> Occurrence:
    """What a node says of its cards cannot be read."""
    message = f"Kerf cannot read the GPUs of this node and plans nothing on it: {why}"
    return _about("Node", node, WARNING, "NotUnderstood", message, 3600)


def promise_not_understood(claim: str, why: str) -> Occurrence:
    """An annotation in which a claim promises something cannot be read; plans go on without what it said."""
    message = f"Kerf cannot read an annotation of this claim, so it promises nothing: {why}"
    return _about("NodeClaim", claim, WARNING, "NotUnderstood", message, 3600)


def would_launch(pool: str, what: str, why: str) -> Occurrence:
    """A dry run: a node that would be launched now."""
    return _about("NodePool", pool, NORMAL, "WouldLaunch", f"dry run: would launch {what}: {why}", 300)


def relabelled(node: str, why: str) -> Occurrence:
    """A node is given another configuration of GPU sharing."""
    return _about("Node", node, NORMAL, "GPUSharingChanged", why, 300)


def would_relabel(node: str, why: str) -> Occurrence:
    """A dry run: a node that would be given another configuration of GPU sharing now."""
    return _about("Node", node, NORMAL, "WouldChangeGPUSharing", f"dry run: {why}", 300)


def would_delete(claim: str, why: str) -> Occurrence:
    """A dry run: a node that would be removed now."""
    return _about("NodeClaim", claim, NORMAL, "WouldDisrupt", f"dry run: would remove its node: {why}", 300)


def insufficient_capacity(claim: str, detail: str) -> Occurrence:
    """The cloud is sold out of what a claim asked for."""
    return _about("NodeClaim", claim, WARNING, "InsufficientCapacityError", f"NodeClaim {claim} event: {detail}")


def node_class_not_ready(claim: str, detail: str) -> Occurrence:
    """A claim's NodeClass cannot be used."""
    return _about("NodeClaim", claim, WARNING, "NodeClassNotReady", f"NodeClaim {claim} event: {detail}")


def node_class_waits(kind: str, name: str, claims: Sequence[str]) -> Occurrence:
    """A NodeClass that is being deleted has claims still."""
    more = f" and {len(claims) - 5} more" if len(claims) > 5 else ""
    message = f"waits for the end of NodeClaims {', '.join(claims[:5])}{more}"
    return _about(kind, name, NORMAL, "WaitingOnNodeClaimTermination", message, 300)


def drifted(claim: str, reason: str) -> Occurrence:
    """The node of a claim is not what its pool or its NodeClass says now."""
    message = f"its node is not what its NodePool or NodeClass says now: {reason}"
    return _about("NodeClaim", claim, NORMAL, "Drifted", message, 300)


def unhealthy(node: str, condition: str) -> Occurrence:
    """A node is broken, and is to be replaced."""
    return _about("Node", node, WARNING, "NodeUnhealthy", f"Node condition {condition} is not tolerated any longer")


def gpu_broken(node: str, text: str) -> Occurrence:
    """A card of a node that was sound is broken or gone: no new slice comes to it."""
    return _about("Node", node, WARNING, "GPUBroken", f"{text}; no new slice comes to it")


def node_repair_blocked(pool: str, broken: int, nodes: int) -> Occurrence:
    """Too much of a pool is broken for a repair to help; repeated after 15 minutes."""
    text = f"more than 20% nodes are unhealthy in the nodepool: {broken} of {nodes}; none of them is replaced"
    return _about("NodePool", pool, WARNING, "NodeRepairBlocked", text, 900)


def stage_reached(claim: str, stage: str, detail: str) -> Occurrence:
    """A claim has taken a step: Launched, Registered, Initialized."""
    return _about("NodeClaim", claim, NORMAL, stage, detail)


def stage_overdue(claim: str, stage: str, detail: str) -> Occurrence:
    """A claim missed the deadline of a stage and is deleted."""
    return _about("NodeClaim", claim, WARNING, f"{stage}TimedOut", detail)


def registered_less(claim: str, what: str) -> Occurrence:
    """A node has fewer or smaller cards than were predicted, and is initialised with what it has."""
    message = f"{what}; the node is initialised with what it has, because pods can use it"
    return _about("NodeClaim", claim, WARNING, "RegisteredLess", message)


def disruption_terminating(kind: str, name: str, reason: str) -> Occurrence:
    """A node is being removed; `reason` is Empty or Underutilized with its why."""
    return _about(kind, name, NORMAL, "DisruptionTerminating", f"Disrupting {kind}: {reason}")


def disruption_blocked(kind: str, name: str, why: str) -> Occurrence:
    """A node would go, and something forbids it."""
    return _about(kind, name, NORMAL, "DisruptionBlocked", why)


def unconsolidatable(node: str, why: str) -> Occurrence:
    """A node may go to save money and stays, because nothing would be saved; repeated after a quarter of an hour."""
    return _about("Node", node, NORMAL, "Unconsolidatable", why, 900)


def protection_invalid(kind: str, name: str, problem: str) -> Occurrence:
    """The do-not-disrupt of an object says nothing that counts, so it protects nothing; repeated after an hour."""
    text = f"Invalid {DO_NOT_DISRUPT} annotation: {problem}, ignoring annotation"
    return _about(kind, name, WARNING, "InvalidDoNotDisruptAnnotation", text, 3600)


def node_protection_invalid(kind: str, name: str, value: str) -> Occurrence:
    """The same of a node or a claim, where times do not count; repeated after an hour."""
    return protection_invalid(kind, name, f'on nodes it is "true" or nothing, got "{cut(value, MOST_SHOWN)}"')


def protected_until(pod_key: str, until_s: float) -> Occurrence:
    """The do-not-disrupt of the pod is a time; once."""
    text = f"The {DO_NOT_DISRUPT} grace period will elapse at {instant_text(until_s)}"
    return _about("Pod", pod_key, NORMAL, "DoNotDisruptUntil", text, float("inf"))


def protection_elapsed(pod_key: str, until_s: float) -> Occurrence:
    """That time is over; once for each time."""
    text = f"The {DO_NOT_DISRUPT} grace period has elapsed, pod is now disruptable"
    dedupe = ("Pod", pod_key, "DoNotDisruptGracePeriodElapsed", instant_text(until_s))
    return Occurrence(("Pod", pod_key), NORMAL, "DoNotDisruptGracePeriodElapsed", text, dedupe, float("inf"))


def below_floor(pool: str, claim: str, why: str) -> Occurrence:
    """A node is bought because its pool has fewer than it keeps."""
    return _about("NodePool", pool, NORMAL, "BelowMinNodes", f"launching NodeClaim {claim}: {why}")


def floor_unmet(pool: str, why: str) -> Occurrence:
    """A pool has fewer nodes than it keeps, and none can be bought; repeated after five minutes."""
    return _about("NodePool", pool, WARNING, "MinNodesUnmet", why, 300)


def replacing(claim: str, by: str, what: str) -> Occurrence:
    """A node is bought in place of another, which goes once it is up."""
    return _about("NodeClaim", claim, NORMAL, "Replacing", f"launching NodeClaim {by} in its place: {what}")


def expires_too_soon(pool: str, after: str) -> Occurrence:
    """Nodes of a pool are too old before they are ready."""
    goes = "its nodes go when they have been up as long as they took to start"
    text = f"expireAfter {after} is over before a node is ready: {goes}"
    return _about("NodePool", pool, WARNING, "ExpireAfterTooShort", text, 900)


def price_cap_exceeded(claim: str, text: str) -> Occurrence:
    """A node that runs costs more than its pool allows by now."""
    message = f"{text}; no further node is bought at it, and this one is kept until its pods have a cheaper place"
    return _about("NodeClaim", claim, WARNING, PRICE_CAP_EXCEEDED, message)


def node_overloaded(node: str, text: str, since_s: float) -> Occurrence:
    """A node is busy although little is asked of it; once an episode, which has begun at `since_s`."""
    message = f"Node {text}: pods ask for less than they use, so the scheduler goes on filling it"
    return Occurrence(("Node", node), WARNING, OVERLOADED, message, (OVERLOADED, node, str(since_s)), float("inf"))


def workload_overloads(kind: str, key: str, uid: str, text: str, since_s: float) -> Occurrence:
    """The pods of a workload overload nodes, and nothing is bought because nothing waits; once an episode."""
    message = f"{text}; nothing waits, so no node is bought (hint: kerf explain {kind.lower()}/{key})"
    dedupe = (OVERLOADED, kind, key, str(since_s))
    return Occurrence((kind, key), WARNING, "OverloadsNode", message, dedupe, float("inf"), uid)


def evicted(pod_key: str, reason: str) -> Occurrence:
    """A pod was evicted from a node that goes."""
    return _about("Pod", pod_key, NORMAL, "Evicted", f"Evicted pod: {reason}")


def failed_draining(node: str, text: str, held_by: str) -> Occurrence:
    """A node cannot be emptied yet; said again when something else holds it, not whenever fewer pods wait."""
    return Occurrence(("Node", node), WARNING, "FailedDraining", text, ("Node", node, "FailedDraining", held_by))


def grace_period_expiring(kind: str, name: str, deadline_s: float) -> Occurrence:
    """A node is drained that has an end; once."""
    text = f"All pods will be deleted by {instant_text(deadline_s)}"
    return _about(kind, name, WARNING, "TerminationGracePeriodExpiring", text, float("inf"))


def deleted_in_time(pod_key: str, deadline_s: float, grace_s: int, own_grace_s: int) -> Occurrence:
    """A pod is deleted whatever protects it, because its node has an end."""
    text = (
        f"Deleting the pod to accommodate the terminationTime {instant_text(deadline_s)} of the node; it has {grace_s} "
        f"of its {own_grace_s} terminationGracePeriodSeconds, and neither its budget nor do-not-disrupt counts"
    )
    return _about("Pod", pod_key, NORMAL, "Disrupted", text)


def awaiting_detachment(node: str, attachments: Sequence[str]) -> Occurrence:
    """A drained node has volumes that are not detached yet."""
    more = f" and {len(attachments) - 5} more" if len(attachments) > 5 else ""
    text = f"Awaiting deletion of VolumeAttachments bound to node: {', '.join(attachments[:5])}{more}"
    return _about("Node", node, NORMAL, "AwaitingVolumeDetachment", text)


def termination_time_not_understood(claim: str, value: str) -> Occurrence:
    """The annotation holds another thing than an instant."""
    text = f"annotation {TERMINATION_TIMESTAMP} counts as absent: expected an instant such as {_EXAMPLE}, got {value}"
    return _about("NodeClaim", claim, WARNING, "NotUnderstood", text, 3600)


def terminated(claim: str, node: str, waits_for: Sequence[str] = ()) -> Occurrence:
    """Nothing is left of a claim; `node` is empty when none had registered. It may wait for finalizers of others."""
    what = f"instance and node {node} are gone" if node else "no instance is left and no node had registered"
    if waits_for:
        what = f"the instance is gone; node {node} waits for the finalizers of others: {', '.join(sorted(waits_for))}"
    return _about("NodeClaim", claim, NORMAL, "Terminated", what)


def failed_consistency_check(claim: str, text: str) -> Occurrence:
    """A node is smaller than the cloud promised."""
    return _about("NodeClaim", claim, WARNING, "FailedConsistencyCheck", text, 600)


def released(node: str) -> Occurrence:
    """A node was deleted because both its claim and its instance are gone."""
    return _about("Node", node, NORMAL, "Terminated", "its NodeClaim and its instance are gone")


def pinned(pod_key: str, node: str, device_id: str) -> Occurrence:
    """A pod was pinned to the planned card."""
    return _about("Pod", pod_key, NORMAL, "Pinned", f"Pinned to GPU {device_id} of node {node}, as planned")


def interrupted(claim: str, detail: str) -> Occurrence:
    """The cloud takes an instance back."""
    return _about("NodeClaim", claim, WARNING, "TerminatingOnInterruption", detail)


def advised(claim: str, reason: str, detail: str) -> Occurrence:
    """The cloud says something of an instance that stays."""
    return _about("NodeClaim", claim, NORMAL, reason, detail or "the cloud advises to replace its instance")


_PHASES = {WARMING: "WindowWarming", OPEN: "WindowOpened", CLOSING: "WindowClosing", CLOSED: "WindowClosed"}


def window_phase(window: CapacityWindow) -> Occurrence:
    """A window has come to another phase; what it says ends with when that changes."""
    status, zone = window.status, window.time_zone
    opens = f"opens at {local_text(status.opens_s, zone)}" if status.opens_s is not None else "does not open again"
    texts = {
        WARMING: f"buys what it keeps ready; it {opens}",
        OPEN: f"is open until {local_text(status.closes_s, zone)}" if status.closes_s is not None else "is open",
        CLOSING: "has closed; pods that it let in are still there",
        CLOSED: f"is closed and {opens}",
    }
    message = f"CapacityWindow {texts.get(status.phase, status.phase)}"
    return _about("CapacityWindow", window.name, NORMAL, _PHASES.get(status.phase, status.phase), message)


def window_ready(window: str, condition: Condition) -> Occurrence:
    """A window can be followed, or what keeps it from being."""
    type_, reason = (NORMAL, "Ready") if condition.status == TRUE else (WARNING, condition.reason)
    return _about("CapacityWindow", window, type_, reason, condition.message or "CapacityWindow can be followed")


def quota_exhausted(window: str, text: str) -> Occurrence:
    """A window's quota keeps pods waiting."""
    return _about("CapacityWindow", window, WARNING, "QuotaExhausted", text, 3600)


def warm_unplaced(window: str, reason: str) -> Occurrence:
    """What a window is to keep ready has no place; repeated after five minutes."""
    return _about("CapacityWindow", window, WARNING, "WarmCapacityUnplaced", reason, 300)


def prewarm_unplaced(cron_job: str, reason: str) -> Occurrence:
    """The pods of a CronJob's next run have no place; repeated after five minutes."""
    return _about("CronJob", cron_job, WARNING, "PrewarmUnplaced", reason, 300)


def prewarm_warning(cron_job: str, why: str) -> Occurrence:
    """What keeps a run from its warm node, or lets it hold the node for ever; once for each reason."""
    return _about("CronJob", cron_job, WARNING, "PrewarmWarning", why, float("inf"))


def held(pod_key: str, reason: str, cause: Cause) -> Occurrence:
    """A pod waits for a window, or for idle capacity, and why; once for each reason.

    What is left of a quota, and what a pod would reserve of it, is another figure every second.
    """
    same = "QuotaExhausted" if isinstance(cause, WindowQuotaExhausted) else reason
    return Occurrence(("Pod", pod_key), NORMAL, "Held", f"Pod is held: {reason}", ("Held", pod_key, same), float("inf"))


def admitted(pod_key: str, window: str) -> Occurrence:
    """The gate of a pod was opened; an empty window: idle capacity holds it."""
    who = f"CapacityWindow {window} is open" if window else "idle capacity holds it"
    return _about("Pod", pod_key, NORMAL, "Admitted", f"Gate opened: {who}")


def left_pending(pod_key: str, window: str) -> Occurrence:
    """A window has closed over a pod that it let in and that found no node; no controller would make it again."""
    text = (
        f"CapacityWindow {window} has closed and the pod still waits; no controller would make it again, so it is left"
    )
    return _about("Pod", pod_key, WARNING, "WindowClosed", text, float("inf"))


def request_changed(request: str, condition: Condition) -> Occurrence:
    """What a ProvisioningRequest asked for is there, is not, or is kept no longer; once for each reason."""
    is_good = condition.status == TRUE and condition.type != "Failed"
    type_ = NORMAL if is_good or condition.reason == NODES_STARTING else WARNING
    dedupe = ("ProvisioningRequest", request, condition.type, condition.status, condition.reason)
    return Occurrence(("ProvisioningRequest", request), type_, condition.reason, condition.message, dedupe)


def buffer_changed(buffer: str, condition: Condition) -> Occurrence:
    """The room of a CapacityBuffer is there, is not, or cannot be known; once for each reason."""
    is_wrong = condition.reason in BUFFER_PROBLEMS
    dedupe = ("CapacityBuffer", buffer, condition.type, condition.status, condition.reason)
    return Occurrence(
        ("CapacityBuffer", buffer), WARNING if is_wrong else NORMAL, condition.reason, condition.message, dedupe
    )
