"""Events for people: one constructor each, with its text and the key by which repeats are dropped.

Reasons and wording are Karpenter's where it has the event (docs/reference/cluster.md), and Cluster Autoscaler's for
`TriggeredScaleUp`, so that runbooks written for either keep working. Adapters only post them.
"""

from dataclasses import dataclass

NORMAL, WARNING = "Normal", "Warning"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One event. `regards` is (kind, `namespace/name` or name); equal `dedupe` within `period_s` is posted once."""

    regards: tuple[str, str]
    type: str
    reason: str
    message: str
    dedupe: tuple[str, ...]
    period_s: float = 120


def _about(kind: str, key: str, type_: str, reason: str, message: str, period_s: float = 120) -> Occurrence:
    return Occurrence((kind, key), type_, reason, message, (kind, key, reason, message), period_s)


def failed_scheduling(pod_key: str, reason: str) -> Occurrence:
    """Nothing can be bought for a pod, and why; repeated after five minutes."""
    return _about("Pod", pod_key, WARNING, "FailedScheduling", f"Failed to schedule pod, {reason}", 300)


def nominated(pod_key: str, target: str) -> Occurrence:
    """A pod has a place; `target` is `nodeclaim/x` or `node/y`."""
    return _about("Pod", pod_key, NORMAL, "Nominated", f"Pod should schedule on: {target}")


def triggered_scale_up(pod_key: str, claim: str, pool: str, before: int, after: int, most: int | None) -> Occurrence:
    """A pod made us buy nodes, in Cluster Autoscaler's wording; once per pod and claim."""
    limit = "unlimited" if most is None else str(most)
    message = f"pod triggered scale-up: [{{{pool} {before}->{after} (max: {limit})}}]"
    return Occurrence(("Pod", pod_key), NORMAL, "TriggeredScaleUp", message, ("Pod", pod_key, claim), float("inf"))


def insufficient_capacity(claim: str, detail: str) -> Occurrence:
    """The cloud is sold out of what a claim asked for."""
    return _about("NodeClaim", claim, WARNING, "InsufficientCapacityError", f"NodeClaim {claim} event: {detail}")


def node_class_not_ready(claim: str, detail: str) -> Occurrence:
    """A claim's NodeClass cannot be used."""
    return _about("NodeClaim", claim, WARNING, "NodeClassNotReady", f"NodeClaim {claim} event: {detail}")


def stage_reached(claim: str, stage: str, detail: str) -> Occurrence:
    """A claim has taken a step: Launched, Registered, Initialized."""
    return _about("NodeClaim", claim, NORMAL, stage, detail)


def stage_overdue(claim: str, stage: str, detail: str) -> Occurrence:
    """A claim missed the deadline of a stage and is deleted."""
    return _about("NodeClaim", claim, WARNING, f"{stage}TimedOut", detail)


def disruption_terminating(kind: str, name: str, reason: str) -> Occurrence:
    """A node is being removed; `reason` is Empty or Underutilized with its why."""
    return _about(kind, name, NORMAL, "DisruptionTerminating", f"Disrupting {kind}: {reason}")


def disruption_blocked(kind: str, name: str, why: str) -> Occurrence:
    """A node would go, and something forbids it."""
    return _about(kind, name, NORMAL, "DisruptionBlocked", why)


def evicted(pod_key: str, reason: str) -> Occurrence:
    """A pod was evicted from a node that goes."""
    return _about("Pod", pod_key, NORMAL, "Evicted", f"Evicted pod: {reason}")


def failed_draining(node: str, waiting: int) -> Occurrence:
    """A node cannot be emptied yet."""
    return _about(
        "Node", node, WARNING, "FailedDraining", f"Failed to drain node, {waiting} pods are waiting to be evicted"
    )


def terminated(claim: str, node: str) -> Occurrence:
    """Nothing is left of a claim; `node` is empty when none had registered."""
    what = f"instance and node {node} are gone" if node else "no instance is left and no node had registered"
    return _about("NodeClaim", claim, NORMAL, "Terminated", what)


def pinned(pod_key: str, node: str, device_id: str) -> Occurrence:
    """A pod was pinned to the planned card."""
    return _about("Pod", pod_key, NORMAL, "Pinned", f"Pinned to GPU {device_id} of node {node}, as planned")


def interrupted(claim: str, detail: str) -> Occurrence:
    """The cloud takes an instance back."""
    return _about("NodeClaim", claim, WARNING, "TerminatingOnInterruption", detail)
