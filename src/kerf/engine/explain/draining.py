"""The words for a node that is being drained: which pod it waits for, why, and what would free it."""

from collections.abc import Sequence
from typing import assert_never

from kerf.engine.draining import (
    Awaited,
    Drain,
    Ending,
    EvictionRefused,
    HeldByBudget,
    HeldByBudgets,
    LaterTier,
    Protected,
    Tier,
    ToEvict,
)
from kerf.model.nodeclaim import DO_NOT_DISRUPT
from kerf.model.times import instant_text

_MOST_SHOWN = 3
_LONG_S = 60.0
"""A pod that ends sooner is not worth a word: most do."""
_TIERS = {
    Tier.ORDINARY: "other pods",
    Tier.DAEMON: "daemons",
    Tier.CRITICAL: "critical pods",
    Tier.CRITICAL_DAEMON: "critical daemons",
}


def awaited_text(awaited: Awaited) -> str:
    """Why a pod is still there, and what would free it, in one sentence without its full stop."""
    text = _why_text(awaited)
    if awaited.deleted_from_s is not None:
        return f"{text}; it is deleted at {instant_text(awaited.deleted_from_s)} whatever holds it"
    return f"{text}; {remedy}" if (remedy := remedy_text(awaited)) else text


def forced_text(forced: Sequence[Awaited]) -> str:
    """Which pods a drain ends by force that has not begun, and when; empty for none."""
    more = len(forced) - _MOST_SHOWN
    return "; ".join((*map(awaited_text, forced[:_MOST_SHOWN]), *([f"and {more} more pods"] if more > 0 else [])))


def _why_text(awaited: Awaited) -> str:
    pod, why = awaited.pod.key, awaited.why
    match why:
        case ToEvict():
            return f"pod {pod} is evicted"
        case Ending(until_s):
            return f"pod {pod} has until {instant_text(until_s)} to end"
        case LaterTier(tier):
            return f"pod {pod} is evicted after {_TIERS[tier]}"
        case Protected(until_s):
            until = "" if until_s is None else f" until {instant_text(until_s)}"
            return f'pod {pod} has "{DO_NOT_DISRUPT}" annotation{until}'
        case HeldByBudget(budget, is_blocking, said):
            when = "never allows an eviction" if is_blocking else "allows no eviction now"
            return f"pod {pod} is held by PodDisruptionBudget {budget}, which {when}" + (f' ("{said}")' if said else "")
        case HeldByBudgets(budgets):
            return f"pod {pod} is covered by PodDisruptionBudgets {', '.join(budgets)}, and the API evicts no such pod"
        case EvictionRefused(said):
            return f'the API refuses to evict pod {pod}: "{said}"'
    assert_never(why)


def remedy_text(awaited: Awaited) -> str:
    """What a person can do to let the pod go; empty where it goes by itself."""
    pod, why = awaited.pod, awaited.why
    match why:
        case ToEvict() | Ending() | LaterTier():
            return ""
        case Protected():
            return f"to free it: kubectl annotate pod -n {pod.namespace} {pod.name} {DO_NOT_DISRUPT}-"
        case HeldByBudget(_, is_blocking=True):
            return "to free it: let the budget allow a disruption"
        case HeldByBudget():
            return "to free it: another ready pod that the budget covers, or a budget that allows more"
        case HeldByBudgets():
            return "to free it: leave one of the budgets"
        case EvictionRefused():
            return f"to free it: kubectl delete pod -n {pod.namespace} {pod.name}"
    assert_never(why)


def held_text(drain: Drain, now_s: float) -> str:
    """What holds a drain: its first held pods, else the last pod that has more than a minute to end; empty for none."""
    ending = [each for each in drain.awaited if isinstance(each.why, Ending) and each.why.until_s > now_s + _LONG_S]
    shown = drain.held or tuple(ending[-1:])
    more = len(shown) - _MOST_SHOWN
    return "; ".join((*map(awaited_text, shown[:_MOST_SHOWN]), *([f"and {more} more pods"] if more > 0 else [])))


def failed_draining_text(drain: Drain) -> str:
    """The event of a drain that cannot go on: Karpenter's sentence, then which pod it is, why, and what frees it."""
    text = f"Failed to drain node, {drain.waiting} pods are waiting to be evicted"
    held = drain.held
    if not held:
        return text
    more = f" (and {len(held) - 1} more are held)" if len(held) > 1 else ""
    return f"{text}: {awaited_text(held[0])}{more}"
