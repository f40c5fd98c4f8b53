"""Ends claims at the age that they state: `expireAfter`, as Karpenter's. No budget holds that back.

A pool that asks for it (`kerf.dev/replace-expired`) gets nodes in the place of an old one before it goes: then a claim
counts as drifted once it is old, and the budgets for drift hold.
"""

from collections.abc import Iterable

from kerf.controllers.actuator import Actuator
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.model import events
from kerf.model.nodeclaim import DISRUPTION_REASON, INITIALIZED, TRUE, Condition, NodeClaim
from kerf.model.nodepool import EXPIRED
from kerf.model.snapshot import Deleted, Event, Synced, Watched
from kerf.model.times import duration_text
from kerf.state import ClusterState

_SOON_S = 10.0
_AGAIN_S = 300.0
"""A pool may ask for replacements, and cease to."""
_LONGEST_S = 86400.0
"""A clock that jumps is noticed within a day."""


class Expiration:
    """One claim at a time, when its time is over."""

    name = "expiration"

    def __init__(self, state: ClusterState, ports: Ports, actuator: Actuator) -> None:
        self._state, self._ports, self._actuator = state, ports, actuator
        self._known: set[str] = set()

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Claims that were not looked at yet: the spec of a claim never changes."""
        if isinstance(event, Synced):
            return self._news(self._state.claims())
        value = event.value
        if not isinstance(value, NodeClaim):
            return ()
        if isinstance(event, Deleted):
            self._known.discard(value.uid)
            return ()
        return self._news((value,))

    def _news(self, claims: Iterable[NodeClaim]) -> tuple[str, ...]:
        # What was there before an event says nothing: the state knows our own claims before the watch has them.
        news = [claim for claim in claims if claim.uid not in self._known]
        self._known.update(claim.uid for claim in news)
        return tuple(claim.name for claim in news)

    async def reconcile(self, key: str) -> Result:
        """Delete the claim, or look again when it is old enough."""
        claim = self._state.claim(key)
        if claim is None or claim.is_deleting or claim.expire_after_s is None or claim.expires_s is None:
            return DONE
        pool, is_up = self._state.pool(claim.node_pool), claim.is_true(INITIALIZED)
        is_replaced = pool is not None and pool.replaces_expired
        if is_replaced and is_up:
            return Result(_AGAIN_S)
        left_s = claim.expires_s - self._ports.clock.now_s()
        if left_s > 0:
            return Result(min(left_s, _AGAIN_S if is_replaced else _LONGEST_S))
        if not is_up:
            # It has its deadlines, and would be bought again at once.
            self._ports.recorder.record(events.expires_too_soon(claim.node_pool, duration_text(claim.expire_after_s)))
            return Result(_SOON_S)
        why = f"expireAfter {duration_text(claim.expire_after_s)} is over"
        reason = Condition(DISRUPTION_REASON, TRUE, EXPIRED, why, self._ports.clock.now_s())
        await self._actuator.end(await self._ports.writer.update_node_claim_status(claim.with_condition(reason)))
        return DONE
