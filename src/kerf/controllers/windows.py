"""Turns the phases of CapacityWindows, says in their status what is known, and ends what an opening has begun.

Nothing is remembered but in the status: after a restart the next look finds the same phase, or the one that has come
meanwhile. Capacity and gates follow from the phase by the next plan, see `provisioning`.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from kerf.config import Settings
from kerf.controllers.market import MarketBook
from kerf.controllers.options import options_of
from kerf.controllers.portions import Portions
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.decide import decide
from kerf.engine.headroom.windows.openings import Seen, advanced, is_over, settled
from kerf.engine.headroom.windows.phases import Turn, next_change_s, turn_of
from kerf.engine.headroom.windows.warm import warm_counts
from kerf.engine.world import World
from kerf.model import events
from kerf.model.nodeclaim import INITIALIZED, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.pods import Pod
from kerf.model.snapshot import Deleted, Event, Synced, Watched
from kerf.model.windows import EVICT, EVICTION_FINALIZER, OPEN, WARMING, WINDOW_LABEL, CapacityWindow, admitted_by
from kerf.ports import Conflict, EvictionBlocked, NotFound
from kerf.state import ClusterState
from kerf.telemetry import WINDOW_WARM, measure_phase


class CapacityWindows:
    """One window at a time."""

    name = "windows"

    def __init__(self, state: ClusterState, ports: Ports, book: MarketBook, settings: Settings) -> None:
        self._state, self._ports, self._book, self._settings = state, ports, book, settings
        # Claims whose nodes are known to be up; lost at a restart, which looks at all windows anyway.
        self._up: set[str] = set()

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """A window that changes; all of them when a pool comes or goes, or a node has joined; those of a pod."""
        if isinstance(event, Synced):
            return tuple(window.name for window in self._state.windows())
        value = event.value
        if isinstance(value, CapacityWindow):
            return () if isinstance(event, Deleted) else (value.name,)
        if isinstance(value, Pod):
            return self._of_pod(value) if WINDOW_LABEL in value.labels else ()
        is_news = isinstance(event, Deleted) or previous is None
        if isinstance(value, NodeClaim):
            is_news = self._has_joined(event, value)
        elif not isinstance(value, NodePool):
            return ()
        return tuple(window.name for window in self._state.windows()) if is_news else ()

    def _has_joined(self, event: Event, claim: NodeClaim) -> bool:
        """Whether a node has just joined or gone. What we wrote ourselves is no news by `previous`."""
        was_up, is_up = claim.uid in self._up, claim.is_true(INITIALIZED) and not isinstance(event, Deleted)
        if is_up:
            self._up.add(claim.uid)
        else:
            self._up.discard(claim.uid)
        return was_up != is_up

    def _of_pod(self, pod: Pod) -> tuple[str, ...]:
        admitted, _ = admitted_by(pod)
        windows = self._state.windows()
        return tuple(w.name for w in windows if w.name == admitted or w.selects(pod.namespace, pod.labels))

    async def reconcile(self, key: str) -> Result:
        """Write the status where it has changed, end what is over, come back for the next change."""
        window = self._state.window(key)
        if window is None or (window.deleted_s is not None and not window.is_ending_yet):
            return DONE
        now_s = self._ports.clock.now_s()
        turn = turn_of(window, now_s)
        seen = Seen(
            turn=turn,
            pools=tuple(pool.name for pool in self._state.pools()),
            claims=self._claims(window),
            warm=await self._warm(window) if window.warm and turn.phase in (WARMING, OPEN) else None,
            is_ending=any(True for _ in self._over(window)),
        )
        status = advanced(window, seen, now_s)
        status = settled(status, window, self._state.pod, now_s)
        if status != window.status:
            changed = replace(window, status=status)
            self._state.note(await self._ports.writer.update_window_status(changed))
            self._tell(window, changed)
        measure_phase(window.name, status.phase)
        window = await self._held(self._state.window(key) or window, turn)
        return await self._end(window)

    def _claims(self, window: CapacityWindow) -> tuple[NodeClaim, ...]:
        return tuple(c for c in self._state.claims() if not window.node_pools or c.node_pool in window.node_pools)

    async def _warm(self, window: CapacityWindow) -> tuple[int, int]:
        waiting = tuple(pod for pod in self._state.pending() if pod.unschedulable)
        part = Portions(self._state, self._settings).of(waiting)
        snapshot = self._state.snapshot(self._ports.clock.now_s(), part.pods)
        world = World(snapshot, await self._book.market(snapshot))
        options = options_of(self._settings)
        asked, ready = warm_counts(window, await self._ports.deciding.run(partial(decide, world, options)))
        WINDOW_WARM.labels(window.name, "asked").set(asked)
        WINDOW_WARM.labels(window.name, "ready").set(ready)
        return asked, ready

    def _tell(self, before: CapacityWindow, after: CapacityWindow) -> None:
        if before.status.phase != after.status.phase:
            self._ports.recorder.record(events.window_phase(after))
        for condition in after.status.conditions:
            held = before.status.condition(condition.type)
            if condition.type == "Ready" and (held is None or held.status != condition.status):
                self._ports.recorder.record(events.window_ready(after.name, condition))

    # The end of an opening.

    async def _held(self, window: CapacityWindow, turn: Turn) -> CapacityWindow:
        """The window, kept from vanishing while it has pods to evict or may have: its spec says how they end."""
        is_needed = window.at_end == EVICT and (turn.phase == OPEN or any(map(_is_evictable, self._over(window))))
        if is_needed == window.is_ending_yet or (is_needed and window.deleted_s is not None):
            return window
        others = tuple(name for name in window.finalizers if name != EVICTION_FINALIZER)
        finalizers = (*others, EVICTION_FINALIZER) if is_needed else others
        written = await self._ports.writer.update_window_finalizers(replace(window, finalizers=finalizers))
        self._state.note(written)
        return written

    def _over(self, window: CapacityWindow) -> Iterable[Pod]:
        """The pods that an opening has admitted which is over, by key."""
        mine = (pod for pod in self._state.windowed() if admitted_by(pod)[0] == window.name)
        return (pod for pod in mine if is_over(window, pod, self._ports.clock.now_s()))

    async def _end(self, window: CapacityWindow) -> Result:
        """Evict what may not go on; look again when the phase changes, or soon where an eviction is awaited."""
        now_s = self._ports.clock.now_s()
        is_awaited = False
        for pod in tuple(self._over(window)):
            if pod.deleted_s is not None:
                is_awaited = True
            elif not _is_evictable(pod):
                self._ports.recorder.record(events.left_pending(pod.key, window.name))
            elif not pod.node_name or window.at_end == EVICT:
                is_awaited = True
                await self._evict(window, pod, now_s)
        change_s = next_change_s(window, now_s)
        after_s = None if change_s is None else max(0.0, change_s - now_s)
        poll_s = self._settings.drain_poll_s
        return Result(min(poll_s, after_s or poll_s) if is_awaited else after_s)

    async def _evict(self, window: CapacityWindow, pod: Pod, now_s: float) -> None:
        deadline, closed_s = window.eviction_deadline_s, window.status.last_closed_s
        is_overdue = deadline is not None and closed_s is not None and now_s >= closed_s + deadline
        try:
            if is_overdue and pod.node_name:
                await self._ports.writer.delete_pod(pod, pod.spec.termination_grace_s)
            else:
                await self._ports.writer.evict(pod)
        except (EvictionBlocked, Conflict, NotFound):
            # A budget holds for now, or the pod is gone.
            return
        self._ports.recorder.record(events.evicted(pod.key, f"CapacityWindow {window.name} has closed"))


def _is_evictable(pod: Pod) -> bool:
    """Whether a pod comes back after an eviction, or runs; one by itself that runs nowhere is left for its author."""
    return bool(pod.node_name) or pod.owner is not None
