"""The status of a window from one look to the next: its phase, its conditions, what its pods have used.

Pure, as all of the engine: what a controller has seen goes in, the status to be written comes out, and the same again
gives the same.
"""

import difflib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from kerf.engine.headroom.windows.phases import Turn, charged, missing_pools, turn_of
from kerf.errors import brief
from kerf.model.nodeclaim import FALSE, INITIALIZED, READY, TRUE, Condition, NodeClaim
from kerf.model.pods import Pod
from kerf.model.schedules import local_text
from kerf.model.times import instant_text
from kerf.model.windows import (
    CLOSED,
    CLOSING,
    FIRST_LEAD_S,
    OPEN,
    OPEN_CONDITION,
    QUOTA_EXHAUSTED,
    WARM_READY,
    WARMING,
    WINDOW_GATE,
    CapacityWindow,
    Reservation,
    WindowStatus,
    admitted_by,
)

_KEPT_LEADS = 20
_MARGIN_S, _STEP_S = 30, 60
"""A lead time is rounded up to minutes, and at least so much longer than what was seen: a plan takes its time too."""
_OPENING_S = 60
"""For so long a reservation is kept for a pod whose gate is still closed: its opener may be at work, or have died."""


@dataclass(frozen=True)
class Seen:
    """What the status follows from. `warm` is (asked, ready), None where nothing is kept warm now.

    `claims` are those of the window's pools; `is_ending`: pods of an opening that is over are still there.
    """

    turn: Turn
    pools: tuple[str, ...] = ()
    claims: tuple[NodeClaim, ...] = ()
    warm: tuple[int, int] | None = None
    is_ending: bool = False


def advanced(window: CapacityWindow, seen: Seen, now_s: float) -> WindowStatus:
    """The status as it should be now, save what pods that have ended give back (`settled`)."""
    turn, status = seen.turn, _begun_or_ended(window, seen.turn, now_s)
    phase = CLOSING if turn.phase == CLOSED and seen.is_ending else turn.phase
    leads = lead_times(status.lead_times_s, seen.claims)
    asked, ready = seen.warm or (sum(warm.replicas for warm in window.warm), 0)
    status = replace(
        status,
        phase=phase,
        opens_s=turn.opens_s,
        closes_s=turn.closes_s,
        lead_times_s=leads,
        lead_time_s=window.lead_time_s if window.lead_time_s is not None else learned_lead_s([s for _, s in leads]),
        warm_asked=asked,
        warm_ready=ready,
        observed_generation=window.generation,
    )
    return replace(status, conditions=_conditions(window, seen, status, int(now_s)))


def _begun_or_ended(window: CapacityWindow, turn: Turn, now_s: float) -> WindowStatus:
    """The status with the latest opening begun or ended, if it just was."""
    status = window.status
    is_open = status.last_opened_s is not None and status.last_closed_s is None
    if turn.phase != OPEN:
        if not is_open:
            return status
        ended_s = now_s if status.closes_s is None else min(now_s, status.closes_s)
        return replace(status, last_closed_s=int(ended_s))
    if is_open and status.last_opened_s == turn.opens_s:
        return status
    if status.last_opened_s == turn.opens_s:
        return replace(status, last_closed_s=None)
    return replace(status, last_opened_s=turn.opens_s, last_closed_s=None, settled=(), reservations=())


def lead_times(known: Sequence[tuple[str, int]], claims: Iterable[NodeClaim]) -> tuple[tuple[str, int], ...]:
    """The latest times from a claim's creation to the readiness of its node and devices, of claims gone and present."""
    ready = [
        (held.since_s, claim) for claim in claims if (held := claim.condition(INITIALIZED)) and held.status == TRUE
    ]
    ready.sort(key=lambda each: (each[0], each[1].name))
    there = {claim.name for _, claim in ready}
    gone = [each for each in known if each[0] not in there]
    present = [(claim.name, max(0, int(since_s - claim.created_s))) for since_s, claim in ready]
    return tuple([*gone, *present][-_KEPT_LEADS:])


def learned_lead_s(seconds: Sequence[int]) -> int:
    """The 95th percentile by nearest rank, with a margin, in whole minutes; the first guess without any."""
    if not seconds:
        return FIRST_LEAD_S
    p95 = sorted(seconds)[max(0, -(-len(seconds) * 95 // 100) - 1)]
    return math.ceil((p95 + _MARGIN_S) / _STEP_S) * _STEP_S


# Conditions.


def _conditions(window: CapacityWindow, seen: Seen, status: WindowStatus, now_s: int) -> tuple[Condition, ...]:
    found = [_ready(window, seen.pools), _open(window, seen.turn)]
    if window.warm:
        found.append(_warm(seen))
    if window.quota is not None:
        held = status.condition(QUOTA_EXHAUSTED)
        is_kept = held is not None and seen.turn.phase == OPEN and bool(charged(replace(window, status=status)))
        found.append(held if held is not None and is_kept else Condition(QUOTA_EXHAUSTED, FALSE, "WithinQuota"))
    return tuple(sorted((_since(window.status, each, now_s) for each in found), key=lambda c: c.type))


def _since(status: WindowStatus, condition: Condition, now_s: int) -> Condition:
    held = status.condition(condition.type)
    kept = held is not None and held.status == condition.status
    return replace(condition, since_s=held.since_s if held is not None and kept else now_s)


def _ready(window: CapacityWindow, pools: tuple[str, ...]) -> Condition:
    if window.invalid:
        return Condition(READY, FALSE, "Invalid", f"it opens nothing: {window.invalid}")
    missing = missing_pools(window, pools)
    if not missing:
        return Condition(READY, TRUE, READY)
    path = f"spec.nodePools[{window.node_pools.index(missing[0])}]"
    close = difflib.get_close_matches(missing[0], pools, 1)
    hint = f"is `{close[0]}` meant?" if close else f"there is {', '.join(pools[:5]) or 'none'}"
    text = f"{path}: expected a NodePool of the cluster, got {brief(missing[0])} (hint: {hint})"
    return Condition(READY, FALSE, "NodePoolNotFound", text)


def _open(window: CapacityWindow, turn: Turn) -> Condition:
    if turn.phase == OPEN and turn.closes_s is not None:
        return Condition(OPEN_CONDITION, TRUE, OPEN, f"until {local_text(turn.closes_s, window.time_zone)}")
    if turn.opens_s is None:
        return Condition(OPEN_CONDITION, FALSE, CLOSED, "" if window.invalid else "it never opens again")
    return Condition(OPEN_CONDITION, FALSE, CLOSED, f"opens at {local_text(turn.opens_s, window.time_zone)}")


def _warm(seen: Seen) -> Condition:
    if seen.warm is None:
        return Condition(WARM_READY, FALSE, CLOSED, "nothing is kept ready now")
    asked, ready = seen.warm
    if ready >= asked:
        return Condition(WARM_READY, TRUE, "Ready", f"{ready} of {asked} ready")
    return Condition(WARM_READY, FALSE, WARMING, f"{ready} of {asked} ready")


# What pods have used.


def settled(
    status: WindowStatus, window: CapacityWindow, pod_of: Callable[[str], Pod | None], now_s: float
) -> WindowStatus:
    """The status with the use of ended pods in place of what was reserved for them.

    A pod that was never let in gives all back. One that is gone unseen has used all its time up to now.
    """
    if window.quota is None:
        return replace(status, settled=(), reservations=())
    used, kept = dict(status.settled), []
    for held in status.reservations:
        pod = pod_of(held.pod)
        pod = pod if pod is not None and pod.uid == held.uid else None
        if pod is not None and WINDOW_GATE in pod.spec.scheduling_gates:
            if now_s < held.since_s + _OPENING_S:
                kept.append(held)
        elif pod is not None and not pod.is_ended:
            kept.append(held)
        else:
            used[held.namespace] = used.get(held.namespace, 0) + _use(held, pod, now_s)
    return replace(status, settled=tuple(sorted(used.items())), reservations=tuple(kept))


def _use(held: Reservation, pod: Pod | None, now_s: float) -> int:
    if pod is None:
        return held.used(now_s)
    if not pod.node_name:
        return 0
    return replace(held, since_s=max(held.since_s, pod.started_s or 0)).used(now_s)


def is_over(window: CapacityWindow, pod: Pod, now_s: float) -> bool:
    """Whether the opening that admitted a pod is over; never for one that came outside of any."""
    _, opened = admitted_by(pod)
    if not opened or pod.is_ended:
        return False
    turn = turn_of(window, now_s)
    return turn.phase != OPEN or turn.opens_s is None or opened != instant_text(turn.opens_s)
