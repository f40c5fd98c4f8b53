"""What the drain of a node does next: which pods are evicted or deleted now, and what each of the others waits for.

The rules are Karpenter's. Pods go in four tiers: ordinary ones, daemons, critical ones, critical daemons; and in a tier
in the order of their priority, the least first, as kubelet ends those of a node that is shut down. A pod with
do-not-disrupt and one that a budget protects hold the drain, and with it the later tiers. Only the claim's termination
time ends that: each pod is then deleted early enough to have its own grace, whatever its tier.

All is read off pods, budgets and the time, so the controller and `kerf explain` say the same.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from math import inf, isfinite

from kerf.engine.leaving import moves
from kerf.model.eviction import Budgets, protected_until_s
from kerf.model.nodeclaim import DISRUPTED_TAINT
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.model.volumes import PersistentVolumeClaim, VolumeAttachment

STUCK_S = 60.0
"""A pod that is still there so long after its grace has ended will not end by itself, as in Karpenter."""
MIN_DRAIN_S = 5.0
"""A drain lasts at least so long, as Karpenter's: a pod may have been bound before the taint was seen."""
_CRITICAL_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
_CRITICAL = 2_000_000_000
"""Priority from which these classes begin."""


class Tier(IntEnum):
    """Who goes before whom."""

    ORDINARY = 0
    DAEMON = 1
    CRITICAL = 2
    CRITICAL_DAEMON = 3


@dataclass(frozen=True, slots=True)
class ToEvict:
    """Nothing is known to hold it."""


@dataclass(frozen=True, slots=True)
class Ending:
    """It was asked to end, and has until then."""

    until_s: float


@dataclass(frozen=True, slots=True)
class Protected:
    """Its do-not-disrupt holds; until when, None where the annotation says `true`."""

    until_s: float | None


@dataclass(frozen=True, slots=True)
class HeldByBudget:
    """A PodDisruptionBudget allows no eviction now, or never (`is_blocking`); `said` is what the API answered."""

    budget: str
    is_blocking: bool = False
    said: str = ""


@dataclass(frozen=True, slots=True)
class HeldByBudgets:
    """Several PodDisruptionBudgets cover it; the API evicts no such pod."""

    budgets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EvictionRefused:
    """The API refused, for another reason than a budget."""

    said: str


@dataclass(frozen=True, slots=True)
class LaterTier:
    """Pods of an earlier tier are still there."""

    tier: Tier


Held = Protected | HeldByBudget | HeldByBudgets | EvictionRefused
Why = ToEvict | Ending | LaterTier | Held


@dataclass(frozen=True, slots=True)
class Awaited:
    """A pod that the drain waits for, why it is still there, and from when on it is deleted (None: never)."""

    pod: Pod
    why: Why
    deleted_from_s: float | None = None


@dataclass(frozen=True, slots=True)
class Drain:
    """One look at a node that is being drained.

    `awaited` are the pods that are still there, by tier, priority and key; the drain is over when there are none.
    `evictable` are those to be evicted now, held by a budget or not: the API decides that. `overdue` are those to be
    deleted now, each with its grace in seconds. `next_s` is when the next look finds something else although nothing
    happens.
    """

    awaited: tuple[Awaited, ...] = ()
    evictable: tuple[Pod, ...] = ()
    overdue: tuple[tuple[Pod, int], ...] = ()
    next_s: float | None = None

    @property
    def held(self) -> tuple[Awaited, ...]:
        """The pods that keep the drain from going on, by tier, priority and key."""
        return tuple(each for each in self.awaited if isinstance(each.why, Held))

    @property
    def waiting(self) -> int:
        """How many pods are still to be evicted."""
        return sum(1 for each in self.awaited if not isinstance(each.why, Ending))


def tier_of(pod: Pod) -> Tier:
    """When a pod goes: a daemon after the others, and whatever is critical after all that is not."""
    is_critical = pod.spec.priority_class in _CRITICAL_CLASSES or pod.spec.priority >= _CRITICAL
    return Tier(2 * is_critical + pod.is_daemon)


def is_awaited(pod: Pod, now_s: float) -> bool:
    """Whether a drain waits for the pod: not one that has ended, is static or stuck, or tolerates the disruption."""
    if pod.is_ended or (pod.owner is not None and pod.owner.kind == "Node"):
        return False
    if pod.deleted_s is not None and now_s >= pod.deleted_s + STUCK_S:
        return False
    return not any(toleration.tolerates(DISRUPTED_TAINT) for toleration in pod.spec.tolerations)


def drain_of(
    pods: Iterable[Pod],
    budgets: Budgets,
    now_s: float,
    deadline_s: float | None = None,
    refused: Mapping[str, str] | None = None,
) -> Drain:
    """What to do with the pods of a node, whose last is to have gone by `deadline_s`; None: when nothing holds it.

    `refused` has what the API answered to the last eviction, by the pod's uid. Cost: the pods, and for those of the
    first tier the budgets that share a label with them.
    """
    answers = refused or {}
    left = sorted((pod for pod in pods if is_awaited(pod, now_s)), key=_order)
    awaited: list[Awaited] = []
    evictable: list[Pod] = []
    overdue: list[tuple[Pod, int]] = []
    next_s = inf
    for pod in left:
        due_s = inf if deadline_s is None else deadline_s - pod.spec.termination_grace_s
        if deadline_s is not None and _is_overdue(pod, due_s, deadline_s, now_s):
            grace_s = max(1, min(pod.spec.termination_grace_s, int(deadline_s - now_s)))
            overdue.append((pod, grace_s))
            awaited.append(Awaited(pod, Ending(now_s + grace_s)))
            continue
        if pod.deleted_s is not None:
            next_s = min(next_s, pod.deleted_s + STUCK_S)
            awaited.append(Awaited(pod, Ending(pod.deleted_s)))
            continue
        next_s = min(next_s, due_s)
        why = _why(pod, tier_of(left[0]), budgets, now_s, answers.get(pod.uid))
        if isinstance(why, Protected):
            next_s = min(next_s, why.until_s or inf)
        elif isinstance(why, ToEvict | HeldByBudget | EvictionRefused):
            evictable.append(pod)
        awaited.append(Awaited(pod, why, due_s if isfinite(due_s) else None))
    return Drain(tuple(awaited), tuple(evictable), tuple(overdue), next_s if isfinite(next_s) else None)


def forced(pods: Iterable[Pod], budgets: Budgets, begins_s: float, grace_s: float) -> tuple[Awaited, ...]:
    """The pods that would hold a drain for ever which begins then and lasts no longer than its claim's termination
    grace period: each with when it is deleted at the earliest, by key. Cost: as `drain_of`."""
    found = list[Awaited]()
    for pod in sorted(pods, key=lambda each: each.key):
        due_s = max(begins_s, begins_s + grace_s - pod.spec.termination_grace_s)
        for held in drain_of([pod], budgets, begins_s).held:
            is_free_before = (
                isinstance(held.why, Protected) and held.why.until_s is not None and held.why.until_s < due_s
            )
            if not is_free_before and not (isinstance(held.why, HeldByBudget) and not held.why.is_blocking):
                found.append(Awaited(pod, held.why, due_s))
    return tuple(found)


def forced_from(node: ClusterNode, snapshot: ClusterSnapshot, begins_s: float) -> tuple[Awaited, ...]:
    """Those of a node of which the drain begins then; none where nothing sets it an end."""
    grace_s = None if node.claim is None else node.claim.termination_grace_period_s
    if grace_s is None:
        return ()
    return forced((pod for pod in node.pods if moves(pod)), Budgets(snapshot.disruption_budgets), begins_s, grace_s)


def _order(pod: Pod) -> tuple[Tier, int, str]:
    return tier_of(pod), pod.spec.priority, pod.key


def _is_overdue(pod: Pod, due_s: float, deadline_s: float, now_s: float) -> bool:
    """Whether the pod has to be deleted now to be gone in time; also one whose grace is longer than that."""
    if pod.deleted_s is None:
        return now_s >= due_s
    return pod.deleted_s > max(deadline_s, now_s + 1)


def _why(pod: Pod, tier: Tier, budgets: Budgets, now_s: float, answer: str | None) -> Why:
    if tier_of(pod) != tier:
        return LaterTier(tier)
    # An opportunistic pod only takes what others leave idle, and asks for nothing.
    until_s = 0.0 if pod.is_opportunistic else protected_until_s(pod)
    if now_s < until_s:
        return Protected(until_s if isfinite(until_s) else None)
    covering = budgets.covering(pod)
    if len(covering) > 1:
        return HeldByBudgets(tuple(sorted(budget.name for budget in covering)))
    if covering and (answer is not None or covering[0].holds(pod)):
        return HeldByBudget(covering[0].name, covering[0].is_blocking, answer or "")
    return ToEvict() if answer is None else EvictionRefused(answer)


def awaited_attachments(
    attachments: Iterable[VolumeAttachment],
    pods: Iterable[Pod],
    claim_of: Callable[[str], PersistentVolumeClaim | None],
    now_s: float,
) -> tuple[VolumeAttachment, ...]:
    """The attachments of a drained node that are still to go: until then its volumes cannot be used elsewhere.

    Not those of volumes that a pod which is not waited for still uses, and those without a PersistentVolume. `claim_of`
    finds a claim by `namespace/name`.
    """
    staying = (pod for pod in pods if not is_awaited(pod, now_s))
    found = (claim_of(f"{pod.namespace}/{name}") for pod in staying for name in pod.claim_names)
    kept = {claim.volume for claim in found if claim is not None}
    return tuple(each for each in attachments if each.volume and each.volume not in kept)
