"""Says in the conditions of ProvisioningRequests what became of them: Kueue waits for that before it admits a workload.

Room is found, bought and kept by the same plans as for pods (`provisioning`, `disruption`); here a plan is only asked
how far it is. Nothing is remembered but in the conditions, so a restart goes on where they are.
"""

from collections.abc import Iterable
from functools import partial

from kerf.config import Settings
from kerf.controllers.deciding import still_holds
from kerf.controllers.market import MarketBook
from kerf.controllers.options import options_of
from kerf.controllers.portions import Portions
from kerf.controllers.provisioning import is_provisionable
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.decide import decide
from kerf.engine.explain.requests import advanced, verdict
from kerf.engine.headroom.bookings import Booking, bookings, next_change_s
from kerf.engine.world import World
from kerf.model import events
from kerf.model.nodeclaim import INITIALIZED, NodeClaim
from kerf.model.pods import Pod
from kerf.model.provisioningrequests import PodTemplate, ProvisioningRequest, consumed_request
from kerf.model.snapshot import Deleted, Event, Synced, Watched
from kerf.ports import Conflict, NotFound
from kerf.state import ClusterState


class ProvisioningRequests:
    """All of them at once: they share what is free."""

    name = "provisioningrequests"

    def __init__(self, state: ClusterState, ports: Ports, book: MarketBook, settings: Settings) -> None:
        self._state, self._ports, self._book, self._settings = state, ports, book, settings
        # How many decisions in a row did not hold.
        self._dropped = 0

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """One key: requests and templates that change, nodes that come up, pods that take what was booked."""
        if isinstance(event, Synced):
            return ("requests",)
        if not any(each.is_ours and not each.is_over for each in self._state.provisioning_requests()):
            return ()
        value = event.value
        is_news = isinstance(value, ProvisioningRequest | PodTemplate)
        is_up = isinstance(value, NodeClaim) and (isinstance(event, Deleted) or value.is_true(INITIALIZED))
        takes = isinstance(value, Pod) and bool(consumed_request(value))
        return ("requests",) if is_news or is_up or takes else ()

    async def reconcile(self, key: str) -> Result:
        """Write the conditions that have changed; again soon while any request waits, else when a booking ends."""
        now_s = self._ports.clock.now_s()
        waiting = tuple(pod for pod in self._state.pending() if is_provisionable(pod))
        snapshot = self._state.snapshot(now_s, Portions(self._state, self._settings).of(waiting).pods)
        found = bookings(snapshot)
        if not found:
            return DONE
        world = World(snapshot, await self._book.market(snapshot))
        options = options_of(self._settings)
        decision = await self._ports.deciding.run(partial(decide, world, options))
        if not still_holds(decision, self._state, self._dropped):
            self._dropped += 1
            return Result(self._settings.batch_idle_s)
        self._dropped = 0
        changes_s = []
        for booking in found:
            request = advanced(booking, verdict(booking, decision), now_s)
            if request.conditions != booking.request.conditions:
                await self._write(booking, request)
            if request.is_over:
                continue
            left_s = max(0.0, next_change_s(request) - now_s)
            changes_s.append(left_s if request.booked_until_s is not None else min(left_s, self._settings.replan_s))
        return Result(min(changes_s)) if changes_s else DONE

    async def _write(self, booking: Booking, request: ProvisioningRequest) -> None:
        try:
            self._state.note(await self._ports.writer.update_provisioning_request_status(request))
        except (Conflict, NotFound):
            # Another has written, or it is gone: the watch shows it, and brings us back.
            return
        for condition in request.conditions:
            held = booking.request.condition(condition.type)
            if held is None or (held.status, held.reason) != (condition.status, condition.reason):
                self._ports.recorder.record(events.request_changed(request.key, condition))
