"""Says in the status of CapacityBuffers how much of their room is there, and looks up the workloads that they name.

Room is found, bought and kept by the same plans as for pods (`provisioning`, `disruption`); here a plan is only asked
how far it is. A workload is asked for and not followed, as in Karpenter, where a buffer is looked at every 30 seconds:
of the thousands in a cluster buffers name a few.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from kerf.config import Settings
from kerf.controllers.deciding import still_holds
from kerf.controllers.market import MarketBook
from kerf.controllers.options import options_of
from kerf.controllers.portions import Portions
from kerf.controllers.provisioning import is_provisionable
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.decide import decide
from kerf.engine.explain.buffers import buffer_status, buffer_verdict
from kerf.engine.headroom.buffers import Buffered, buffered
from kerf.engine.world import World
from kerf.errors import ApiError, DecodeError
from kerf.model import events
from kerf.model.capacitybuffers import BufferStatus, CapacityBuffer
from kerf.model.nodeclaim import INITIALIZED, NodeClaim
from kerf.model.provisioningrequests import PodTemplate
from kerf.model.snapshot import Deleted, Event, Synced, Upserted, Watched
from kerf.ports import Conflict, NotFound, WriteRefused
from kerf.state import ClusterState

_AGAIN_S = 30.0
"""Karpenter's: so often a buffer is looked at."""
_MOST_ASKED = 100
"""Workloads that are asked for in one pass; the others come with the next ones."""


class CapacityBuffers:
    """All of them at once: they share what is free. With `writes` off it only looks up workloads."""

    name = "capacitybuffers"

    def __init__(
        self, state: ClusterState, ports: Ports, book: MarketBook, settings: Settings, *, writes: bool = True
    ) -> None:
        self._state, self._ports, self._book, self._settings = state, ports, book, settings
        self._writes = writes
        # When each workload that a buffer names was asked for last.
        self._asked_s: dict[str, float] = {}
        # How many decisions in a row did not hold.
        self._dropped = 0
        # The version of the state for which all statuses were written.
        self._reported = -1

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """One key: buffers and templates that change, nodes that come up or go."""
        if isinstance(event, Synced):
            return ("buffers",)
        value = event.value
        if isinstance(value, CapacityBuffer):
            return ("buffers",)
        is_up = isinstance(value, NodeClaim) and (isinstance(event, Deleted) or value.is_true(INITIALIZED))
        if not (is_up or isinstance(value, PodTemplate)):
            return ()
        return ("buffers",) if any(each.is_kept for each in self._state.capacity_buffers()) else ()

    async def reconcile(self, key: str) -> Result:
        """Look up what is named, and write what has changed; again after half a minute while there is any buffer."""
        now_s = self._ports.clock.now_s()
        kept = [each for each in self._state.capacity_buffers() if each.is_kept]
        are_all_asked = await self._look_up(kept, now_s)
        if not kept:
            return DONE
        if not self._writes or self._reported == self._state.version:
            return Result(_AGAIN_S if are_all_asked else self._settings.batch_idle_s)
        version = self._state.version
        waiting = tuple(pod for pod in self._state.pending() if is_provisionable(pod))
        snapshot = self._state.snapshot(now_s, Portions(self._state, self._settings).of(waiting).pods)
        found = buffered(snapshot)
        world = World(snapshot, await self._book.market(snapshot))
        decision = await self._ports.deciding.run(partial(decide, world, options_of(self._settings)))
        if not still_holds(decision, self._state, self._dropped):
            self._dropped += 1
            return Result(self._settings.batch_idle_s)
        self._dropped = 0
        statuses = [(each, buffer_status(each, buffer_verdict(each, decision), now_s)) for each in found]
        changed = [(each, status) for each, status in statuses if status != each.buffer.status]
        for each, status in changed:
            await self._write(each, status)
        self._reported = version if not changed else -1
        return Result(_AGAIN_S if are_all_asked else self._settings.batch_idle_s)

    async def _look_up(self, kept: Iterable[CapacityBuffer], now_s: float) -> bool:
        """Ask for the workloads that were not asked for lately; whether none is left. The state then has what is there.

        One that cannot be asked for stays as it was known: without it its buffer would be given up.
        """
        if self._ports.scalables is None:
            return True
        named = {each.scalable_key: each for each in kept if each.scalable_key}
        for scalable in self._state.scalables():
            if scalable.key not in named:
                self._state.apply(Deleted(scalable))
        self._asked_s = {key: at_s for key, at_s in self._asked_s.items() if key in named}
        due = sorted(key for key in named if now_s >= self._asked_s.get(key, float("-inf")) + _AGAIN_S)
        due.sort(key=lambda key: self._asked_s.get(key, float("-inf")))
        held = {each.key: each for each in self._state.scalables()}
        for key in due[:_MOST_ASKED]:
            ref = named[key].scalable
            assert ref is not None
            self._asked_s[key] = now_s
            try:
                found = await self._ports.scalables.scalable(named[key].namespace, ref.kind, ref.name)
            except DecodeError:
                found = None
            except ApiError:
                continue
            if found is not None and found != held.get(key):
                self._state.apply(Upserted(found))
            elif found is None and key in held:
                self._state.apply(Deleted(held[key]))
        return len(due) <= _MOST_ASKED

    async def _write(self, found: Buffered, status: BufferStatus) -> None:
        buffer = found.buffer
        try:
            written = replace(buffer, status=status)
            self._state.note(await self._ports.writer.update_capacity_buffer_status(written))
        except (Conflict, NotFound, WriteRefused):
            # Another has written, or it is gone: the watch says so, and brings us back. What is refused stops no other.
            return
        for condition in status.conditions:
            held = buffer.status.condition(condition.type)
            if held is None or (held.status, held.reason) != (condition.status, condition.reason):
                self._ports.recorder.record(events.buffer_changed(buffer.key, condition))
