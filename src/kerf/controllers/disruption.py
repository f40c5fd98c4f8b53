"""Takes nodes away: asks each method in turn, waits, looks again, then acts; the first plan wins.

As in Karpenter a decision rests fifteen seconds and must come out the same again, because pods that were just created
may be on their way to the very node.
"""

from collections.abc import Iterable

from kerf.config import Settings
from kerf.controllers.actuator import Actuator
from kerf.controllers.market import MarketBook
from kerf.controllers.runtime import Ports, Result
from kerf.engine.disruption import METHODS
from kerf.engine.disruption.candidates import candidates
from kerf.model import events
from kerf.model.nodeclaim import DISRUPTED_TAINT
from kerf.model.plan import Plan
from kerf.model.snapshot import ClusterSnapshot, Event, Synced, Watched
from kerf.state import ClusterState


class Disruption:
    """One pass over all nodes, every ten seconds."""

    name = "disruption"

    def __init__(
        self, state: ClusterState, ports: Ports, book: MarketBook, actuator: Actuator, settings: Settings
    ) -> None:
        self._state, self._ports, self._book, self._actuator, self._settings = state, ports, book, actuator, settings
        # What was decided and when; lost at a restart, which only means deciding once more.
        self._resting: tuple[tuple[str, ...], float] | None = None
        # Until when the cluster as it is at a version needs no second look.
        self._settled: tuple[int, float] = (-1, 0)

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Begins with the first full state; goes on by its own requeue."""
        return ("nodes",) if isinstance(event, Synced) else ()

    async def reconcile(self, key: str) -> Result:
        """Decide; act on what was decided the same way a rest ago."""
        now, poll = self._ports.clock.now_s(), Result(self._settings.disruption_poll_s)
        version, until_s = self._settled
        if version == self._state.version and now < until_s:
            return poll
        await self._release_leftovers(self._state.snapshot(now))
        snapshot = self._state.snapshot(now)
        plan = await self._first_plan(snapshot)
        if plan is None:
            self._resting = None
            self._settled = (self._state.version, now + self._settings.settled_s)
            return poll
        names = tuple(deletion.claim for deletion in plan.deletions)
        if self._resting is None or self._resting[0] != names:
            self._resting = (names, now)
            return Result(self._settings.validation_s)
        if now < self._resting[1] + self._settings.validation_s:
            return Result(self._resting[1] + self._settings.validation_s - now)
        self._resting = None
        self._ports.feed.publish(snapshot, plan)
        for deletion in plan.deletions:
            await self._actuator.delete(deletion)
        return poll

    async def _release_leftovers(self, snapshot: ClusterSnapshot) -> None:
        # Nothing is being deleted while this runs, so that a tainted node whose claim stays was left by a crash.
        for held in snapshot.nodes:
            tainted = held.node is not None and any(t.key == DISRUPTED_TAINT.key for t in held.node.taints)
            if tainted and held.node is not None and held.claim is not None and not held.is_deleting:
                await self._actuator.release(held.node)

    async def _first_plan(self, snapshot: ClusterSnapshot) -> Plan | None:
        found, blocked = candidates(snapshot)
        for block in blocked:
            self._ports.recorder.record(events.disruption_blocked("Node", block.node, block.why))
        if not found:
            return None
        market = await self._book.market(snapshot)
        return next((plan for method in METHODS for plan in method(snapshot, market, found)), None)
