"""Takes nodes away: asks each method in turn, waits, looks again, then acts; the first plan wins.

As in Karpenter a decision rests fifteen seconds and must come out the same again, because pods that were just created
may be on their way to the very node.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kerf.config import Settings
from kerf.controllers.actuator import Acts
from kerf.controllers.market import MarketBook
from kerf.controllers.provisioning import is_provisionable
from kerf.controllers.runtime import Ports, Result
from kerf.engine import provisioning
from kerf.engine.bookings import bookings
from kerf.engine.disruption import METHODS
from kerf.engine.disruption.candidates import candidates
from kerf.engine.disruption.pricecaps import kept_for
from kerf.engine.explain import sharing as words
from kerf.engine.prewarm import prewarming_pods
from kerf.model import events
from kerf.model.nodeclaim import CONSOLIDATABLE, DISRUPTED_TAINT, NodeClaim
from kerf.model.nodepool import EMPTY
from kerf.model.plan import Deletion, Plan
from kerf.model.pods import is_virtual
from kerf.model.snapshot import ClusterSnapshot, Deleted, Event, Synced, Watched
from kerf.model.windows import OPEN, WARMING
from kerf.state import ClusterState


class Disruption:
    """One pass over all nodes, every ten seconds and when the time of a node's consolidateAfter is over."""

    name = "disruption"

    def __init__(self, state: ClusterState, ports: Ports, book: MarketBook, actuator: Acts, settings: Settings) -> None:
        self._state, self._ports, self._book, self._actuator, self._settings = state, ports, book, actuator, settings
        # What was decided and when; lost at a restart, which only means deciding once more.
        self._resting: tuple[tuple[str, ...], float] | None = None
        # Claims whose time is over, and those whose deletion is under way: the watch may not tell of it yet.
        self._ripe: set[str] = set()
        self._going: set[str] = set()
        # Until when the cluster as it is at a version needs no second look.
        self._settled: tuple[int, float] = (-1, 0)

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Begins with the first full state; goes on by its own requeue, and at once when a node may go.

        Not while a decision rests: with every further node it would rest anew.
        """
        if isinstance(event, Synced):
            self._ripe = {claim.name for claim in self._state.claims() if claim.is_true(CONSOLIDATABLE)}
            return ("nodes",)
        value = event.value
        if not isinstance(value, NodeClaim):
            return ()
        was_ripe = value.name in self._ripe
        if isinstance(event, Deleted) or not value.is_true(CONSOLIDATABLE):
            self._ripe.discard(value.name)
            return ()
        self._ripe.add(value.name)
        return () if was_ripe or self._resting is not None else ("nodes",)

    async def reconcile(self, key: str) -> Result:
        """Decide; act on what was decided the same way a rest ago."""
        now, poll = self._ports.clock.now_s(), Result(self._settings.disruption_poll_s)
        version, until_s = self._settled
        if version == self._state.version and now < until_s:
            return poll
        await self._release_leftovers(self._state.snapshot(now))
        snapshot = self._state.snapshot(now)
        for held in snapshot.nodes:
            if held.problem is not None:
                self._ports.recorder.record(events.cards_not_understood(held.name, words.reason(held.problem)))
        plan = await self._first_plan(snapshot, await self._kept_warm(snapshot))
        if plan is None:
            self._resting = None
            self._settled = (self._state.version, now + self._settings.settled_s)
            return poll
        names = (*(deletion.claim for deletion in plan.deletions), *(each.replaces for each in plan.launches))
        if self._resting is None or self._resting[0] != names:
            self._resting = (names, now)
            return Result(self._settings.validation_s)
        if now < self._resting[1] + self._settings.validation_s:
            return Result(self._resting[1] + self._settings.validation_s - now)
        self._resting = None
        deletions = await self._unawaited(plan.deletions)
        if deletions:
            self._ports.feed.publish(snapshot, replace(plan, deletions=deletions))
        for deletion in deletions:
            await self._actuator.delete(deletion)
            self._going.add(deletion.claim)
        if plan.launches:
            self._ports.feed.publish(snapshot, plan)
            await self._actuator.launch(plan, snapshot)
        return poll

    async def _unawaited(self, deletions: Sequence[Deletion]) -> tuple[Deletion, ...]:
        """Those of nodes on which no waiting pod has its place, for a scheduler tries again only after a while.

        Empty nodes go one without the other; what was decided together, so that pods move, goes together or not.
        """
        waiting = tuple(pod for pod in self._state.pending() if is_provisionable(pod))
        if not waiting:
            return tuple(deletions)
        snapshot = self._state.snapshot(self._ports.clock.now_s(), waiting)
        options = provisioning.Options(self._settings.strategy, with_bound=False)
        plan = provisioning.plan(snapshot, await self._book.market(snapshot), options)
        awaited = {placement.node for placement in plan.placements}
        held = [deletion for deletion in deletions if deletion.node in awaited]
        for deletion in held:
            text = "node is nominated for a pending pod"
            self._ports.recorder.record(events.disruption_blocked("Node", deletion.node, text))
        if held and any(deletion.reason != EMPTY for deletion in deletions):
            return ()
        return tuple(deletion for deletion in deletions if deletion not in held)

    async def _release_leftovers(self, snapshot: ClusterSnapshot) -> None:
        # A tainted node whose claim stays was left by a crash, or by a write that failed.
        self._going.intersection_update(held.claim.name for held in snapshot.nodes if held.claim is not None)
        for held in snapshot.nodes:
            if held.node is None or held.claim is None or held.is_deleting or held.claim.name in self._going:
                continue
            if any(taint.key == DISRUPTED_TAINT.key for taint in held.node.taints):
                await self._actuator.release(held.node)

    async def _kept_warm(self, snapshot: ClusterSnapshot) -> frozenset[str]:
        """Nodes on which windows, runs of CronJobs or requests keep places; nothing is to be taken away there."""
        is_open = any(window.warm and window.status.phase in (WARMING, OPEN) for window in snapshot.windows)
        if not is_open and not prewarming_pods(snapshot) and not any(each.pods for each in bookings(snapshot)):
            return frozenset()
        waiting = tuple(pod for pod in self._state.pending() if is_provisionable(pod))
        snapshot = self._state.snapshot(snapshot.taken_at_s, waiting)
        options = provisioning.Options(self._settings.strategy, with_bound=False)
        plan = provisioning.plan(snapshot, await self._book.market(snapshot), options)
        return frozenset(placement.node for placement in plan.placements if is_virtual(placement.pod.pod))

    async def _first_plan(self, snapshot: ClusterSnapshot, kept: frozenset[str]) -> Plan | None:
        found, blocked = candidates(snapshot)
        found = tuple(candidate for candidate in found if candidate.node.name not in kept)
        for block in blocked:
            self._ports.recorder.record(events.disruption_blocked("Node", block.node, block.why))
        if not found:
            return None
        market = await self._book.market(snapshot)
        found = tuple(each for each in found if each.pods or not kept_for(each, snapshot, market))
        return next((plan for method in METHODS for plan in method(snapshot, market, found)), None)
