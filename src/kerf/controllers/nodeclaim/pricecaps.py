"""Marks nodes whose price has risen above a cap of their pool.

They are paid already and their pods run, so nothing is taken away for it: the claim says what is wrong, once, and the
node goes like any other when its pods have another place.
"""

from collections.abc import Iterable

from kerf.config import Settings
from kerf.controllers.market import MarketBook
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.explain.causes import cause_text
from kerf.engine.supply.caps import excess
from kerf.engine.world import World
from kerf.model import events
from kerf.model.instancetypes import NodeOverlay
from kerf.model.nodeclaim import FALSE, PRICE_CAP_EXCEEDED, TRUE, Condition, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.promises import planned_type
from kerf.model.snapshot import Event, Synced, Watched
from kerf.model.times import instant_text
from kerf.state import ClusterState


class PriceCaps:
    """Keeps the condition PriceCapExceeded of every claim whose pool has a price cap, or had one."""

    name = "price-caps"

    def __init__(self, state: ClusterState, ports: Ports, book: MarketBook, settings: Settings) -> None:
        self._state, self._ports, self._book, self._settings = state, ports, book, settings

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """One key: caps and overlays that change. Prices of the cloud are looked up again and again."""
        if isinstance(event, Synced):
            return ("nodes",)
        value = event.value
        if isinstance(value, NodePool):
            is_new = not isinstance(previous, NodePool) or previous.bounds != value.bounds
            return ("nodes",) if is_new else ()
        return ("nodes",) if isinstance(value, NodeOverlay) else ()

    async def reconcile(self, key: str) -> Result:
        """Compare every node with the caps of its pool; write what has changed."""
        pools = {pool.name for pool in self._state.pools() if pool.bounds.has_cap}
        marked = any(claim.is_true(PRICE_CAP_EXCEEDED) for claim in self._state.claims())
        if not pools and not marked:
            return DONE
        snapshot = self._state.snapshot(self._ports.clock.now_s())
        world = World(snapshot, await self._book.market(snapshot))
        for node in snapshot.nodes:
            if node.claim is not None and not node.is_deleting:
                over = excess(node, snapshot.pool(node.claim.node_pool), world.supply)
                await self._mark(node.claim, "" if over is None else cause_text(over) + self._pause(node.claim))
        return Result(self._settings.instance_poll_s) if pools else DONE

    def _pause(self, claim: NodeClaim) -> str:
        """From when the node may be replaced, where its price went to and fro; empty where that is now."""
        mine = (claim.node_pool, planned_type(claim))
        until = next((p.until_s for p in self._book.pauses() if (p.node_pool, p.instance_type) == mine), None)
        return (
            "" if until is None else f"; its price goes to and fro, replaced at {instant_text(until)} at the earliest"
        )

    async def _mark(self, claim: NodeClaim, text: str) -> None:
        held = claim.condition(PRICE_CAP_EXCEEDED)
        status, reason = (TRUE, PRICE_CAP_EXCEEDED) if text else (FALSE, "WithinPriceCap")
        if (held is None and not text) or (held is not None and (held.status, held.message) == (status, text)):
            return
        condition = Condition(PRICE_CAP_EXCEEDED, status, reason, text, self._ports.clock.now_s())
        self._state.note(await self._ports.writer.update_node_claim_status(claim.with_condition(condition)))
        if text and not claim.is_true(PRICE_CAP_EXCEEDED):
            self._ports.recorder.record(events.price_cap_exceeded(claim.name, text))
