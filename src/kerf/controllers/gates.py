"""Opens scheduling gates: the last step of a plan, after what it buys has been asked for.

What a pod may use of a quota is written down before its gate opens, never after: a crash in between then holds too
much for a minute, and no quota is ever exceeded by pods that were not counted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kerf.engine.decision import Decision
from kerf.model import events
from kerf.model.nodeclaim import FALSE, TRUE, Condition
from kerf.model.plan import Admission, Eviction
from kerf.model.times import instant_text
from kerf.model.windows import (
    ADMITTED,
    QUOTA_EXHAUSTED,
    CapacityWindow,
    Reservation,
    WindowQuotaExhausted,
    admitted_text,
)
from kerf.ports import Clock, Conflict, EvictionBlocked, KubeWriter, NotFound, Recorder
from kerf.state import ClusterState
from kerf.telemetry import PODS_ADMITTED


class Gates:
    """Carries out the admissions of plans."""

    def __init__(self, state: ClusterState, writer: KubeWriter, recorder: Recorder, clock: Clock) -> None:
        self._state, self._writer, self._recorder, self._clock = state, writer, recorder, clock

    async def open(self, decision: Decision) -> None:
        """Reserve and open, window by window, each pod that still waits as it did; tell which quotas are used up.

        Opportunistic pods go first where their place is needed and no scheduler would take it.
        """
        for eviction in decision.evictions:
            await self._make_room(eviction)
        by_window: dict[str, list[Admission]] = {}
        for admission in decision.admissions:
            by_window.setdefault(admission.window, []).append(admission)
        for name, admitted in by_window.items():
            window = self._state.window(name)
            if name and (window is None or not await self._reserve(window, admitted)):
                continue
            for admission in admitted:
                await self._open(admission)
        await self._tell_quotas(decision)

    async def _make_room(self, eviction: Eviction) -> None:
        """As in preemption, a budget that forbids it counts for less than the pod that waits."""
        pod, waiting = self._state.pod(eviction.pod), self._state.pod(eviction.for_pod)
        if pod is None or waiting is None or eviction.by_scheduler:
            return
        if not waiting.is_pending or pod.deleted_s is not None or not pod.is_opportunistic:
            return
        try:
            await self._writer.evict(pod)
        except EvictionBlocked:
            await self._writer.delete_pod(pod, pod.spec.termination_grace_s)
        except (Conflict, NotFound):
            return
        self._recorder.record(events.evicted(pod.key, f"opportunistic, and pod {waiting.key} needs its place"))

    async def _reserve(self, window: CapacityWindow, admitted: Sequence[Admission]) -> bool:
        """Write down what the pods may use; False when the window is not open any more as it was for the plan."""
        status, opened = window.status, {each.opened_s for each in admitted}
        if None not in opened and opened != {status.last_opened_s}:
            return False
        new = {held.uid: held for each in admitted if (held := self._reservation(each)) is not None}
        if not new:
            return True
        kept = tuple(held for held in status.reservations if held.uid not in new)
        changed = replace(window, status=replace(status, reservations=(*kept, *new.values())))
        self._state.note(await self._writer.update_window_status(changed))
        return True

    def _reservation(self, admission: Admission) -> Reservation | None:
        pod = self._state.pod(admission.pod)
        if pod is None or admission.until_s is None:
            return None
        now_s = int(self._clock.now_s())
        return Reservation(pod.key, pod.uid, admission.share, now_s, max(now_s, int(admission.until_s)))

    async def _open(self, admission: Admission) -> None:
        pod = self._state.pod(admission.pod)
        if pod is None or not pod.is_pending or not set(admission.gates) & set(pod.spec.scheduling_gates):
            return
        opened = "" if admission.opened_s is None else instant_text(admission.opened_s)
        notes = {ADMITTED: admitted_text(admission.window, opened)} if admission.window else {}
        try:
            await self._writer.open_gates(pod, admission.gates, notes)
        except (Conflict, NotFound):
            # It is gone, or its gate is open already.
            return
        PODS_ADMITTED.labels(admission.window).inc()
        self._recorder.record(events.admitted(pod.key, admission.window))

    async def _tell_quotas(self, decision: Decision) -> None:
        """Set QuotaExhausted on the windows whose quota keeps pods waiting, and end it on the others."""
        waiting = _over_quota(decision)
        for window in self._state.windows():
            number = waiting.get(window.name, 0)
            held = window.status.condition(QUOTA_EXHAUSTED)
            if window.quota is None or held is None or (held.status == TRUE) == bool(number):
                continue
            text = f"{number} {'pod waits' if number == 1 else 'pods wait'} for what is reserved" if number else ""
            status, reason = (TRUE, QUOTA_EXHAUSTED) if number else (FALSE, "WithinQuota")
            verdict = Condition(QUOTA_EXHAUSTED, status, reason, text, int(self._clock.now_s()))
            others = tuple(c for c in window.status.conditions if c.type != QUOTA_EXHAUSTED)
            conditions = tuple(sorted((*others, verdict), key=lambda c: c.type))
            changed = replace(window, status=replace(window.status, conditions=conditions))
            self._state.note(await self._writer.update_window_status(changed))
            if number:
                self._recorder.record(events.quota_exhausted(window.name, text))


def _over_quota(decision: Decision) -> Mapping[str, int]:
    """By window, how many pods its quota keeps waiting."""
    found: Counter[str] = Counter()
    for refusal in decision.refusals:
        if isinstance(refusal.cause, WindowQuotaExhausted):
            found[refusal.cause.window] += len(refusal.pods)
    return found
