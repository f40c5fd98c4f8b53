"""Nodes that go once others are up: waits for these, then deletes; where one of them fails, the old node stays.

What is to be done stands on the claims alone: `kerf.dev/replaced-by` on one that goes, `kerf.dev/replaces` on those in
its place. Each old node waits for its own. So a launch that fails takes back the nodes whose pods were to go there, and
no others.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain

from kerf.config import Settings
from kerf.controllers.actuator import Actuator
from kerf.controllers.market import MarketBook
from kerf.controllers.options import options_of
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.disruption.handover import Handover, handovers
from kerf.engine.leaving import moves
from kerf.engine.supply.warmstart import WarmStart
from kerf.engine.world import World
from kerf.model.market import Market
from kerf.model.nodeclaim import DISRUPTION_REASON, INITIALIZED, REGISTERED_LESS, REPLACED_BY, REPLACES, NodeClaim
from kerf.model.nodeclaim import UNHEALTHY as CONDITION
from kerf.model.nodepool import UNHEALTHY
from kerf.model.snapshot import Event, Synced, Watched
from kerf.state import ClusterState

_AGAIN_S = 1.0
_LOOK_S = 5.0
"""Look again after so long at a node whose pods wait for nodes that are on their way."""


class Replacing:
    """One claim at a time: of a node that goes, or of one in its place."""

    name = "replacing"

    def __init__(
        self, state: ClusterState, ports: Ports, book: MarketBook, actuator: Actuator, settings: Settings
    ) -> None:
        self._state, self._ports, self._book, self._actuator = state, ports, book, actuator
        self._settings = settings
        # What the last decision found for all nodes that go, and the version and the market that it was made from.
        self._found: tuple[int, Market | None, Mapping[str, Handover]] = (-1, None, {})
        # What that decision has left to the next.
        self._kept = WarmStart()

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Claims that go for others; when one in their place changes, those that wait for it, and itself."""
        if isinstance(event, Synced):
            held = {REPLACED_BY, REPLACES}
            return tuple(claim.name for claim in self._state.claims() if held & claim.annotations.keys())
        value = event.value
        if not isinstance(value, NodeClaim):
            return ()
        own = (value.name,) if {REPLACED_BY, REPLACES} & value.annotations.keys() else ()
        return (*own, *value.replaces)

    async def reconcile(self, key: str) -> Result:
        """Wait, delete, or take back; and end what was bought for a node that stays after all."""
        claim = self._state.claim(key)
        if claim is None or claim.is_deleting:
            return DONE
        if self._actuator.is_under_way(key) or any(map(self._actuator.is_under_way, claim.replaces)):
            return Result(_AGAIN_S)
        if claim.replaces:
            await self._end_if_needless(claim)
        if REPLACED_BY not in claim.annotations:
            return DONE
        if _is_sound_again(claim):
            why = "the node stays: it is sound again, before others are up in its place"
            await self._actuator.take_back(claim, why)
            return Result(then=claim.replaced_by)
        failed = [name for name in claim.replaced_by if not self._is_coming(name, key)]
        if failed or not claim.replaced_by:
            await self._actuator.take_back(claim, self._why(failed))
            return DONE if not claim.replaced_by else Result(then=claim.replaced_by)
        if not all(self._is_up(name) for name in claim.replaced_by):
            return DONE
        found = await self._handover(claim)
        # What has changed while it was decided is looked at again.
        claim = self._state.claim(key)
        if claim is None or claim.is_deleting or REPLACED_BY not in claim.annotations:
            return DONE
        if found == Handover.NOWHERE:
            why = f"the node stays: {self._taken_by(claim)}, and nothing else has room"
            for each in self._waiting_alike(claim):
                await self._actuator.take_back(each, why)
            return Result(then=claim.replaced_by)
        if found == Handover.COMING:
            return Result(_LOOK_S)
        for each in self._waiting_alike(claim):
            await self._actuator.end(each)
        return DONE

    def _waiting_alike(self, claim: NodeClaim) -> tuple[NodeClaim, ...]:
        """The claims that wait for the very same ones, with itself: a group of pods may be on their nodes, which go
        together or not at all."""
        names = sorted({claim.name, *chain.from_iterable(new.replaces for new in self._news(claim))})
        olds = filter(None, map(self._state.claim, names))
        return tuple(old for old in olds if not old.is_deleting and old.replaced_by == claim.replaced_by)

    async def _handover(self, claim: NodeClaim) -> Handover:
        """Where the pods of the claim's node, and of those that wait alike, can go: the worst of these.

        On nodes that no pod has come to yet, and that have what was predicted, they go as planned.
        """
        news = self._news(claim)
        pods = (pod for new in news for pod in self._state.pods_on(new.node_name))
        nodes = [self._state.node_of(each) for each in self._waiting_alike(claim)]
        is_whole = not any(REGISTERED_LESS in new.annotations for new in news)
        # A static pool would have too many nodes: the old one went all the same, as a surplus.
        is_as_planned = is_whole and (self._is_of_static_pool(claim) or not any(map(moves, pods)))
        if self._state.node_of(claim) is None or is_as_planned:
            return Handover.READY
        snapshot = self._state.snapshot(self._ports.clock.now_s())
        market = await self._book.market(snapshot)
        version, known, found = self._found
        if version != snapshot.version or known is not market:
            world = World(snapshot, market, options_of(self._settings), kept=self._kept)
            # Of a fleet hundreds ask at once, and none of them must keep pods that wait from their plan.
            found = await self._ports.deciding.run(partial(handovers, world), is_urgent=False)
            self._found, self._kept = (snapshot.version, market, found), world.left() or self._kept
        all_found = {found.get(node.name, Handover.READY) for node in nodes if node is not None}
        return next(each for each in (Handover.NOWHERE, Handover.COMING, Handover.READY) if each in all_found)

    def _is_of_static_pool(self, claim: NodeClaim) -> bool:
        pool = self._state.pool(claim.node_pool)
        return pool is not None and pool.replicas is not None

    def _news(self, claim: NodeClaim) -> tuple[NodeClaim, ...]:
        return tuple(filter(None, map(self._state.claim, claim.replaced_by)))

    def _taken_by(self, claim: NodeClaim) -> str:
        """Why what was bought for its pods has no room for them."""
        less = (
            f"{new.name}: {new.annotations[REGISTERED_LESS]}"
            for new in self._news(claim)
            if REGISTERED_LESS in new.annotations
        )
        return next(less, "other pods have taken what was bought in its place")

    def _is_coming(self, name: str, old: str) -> bool:
        """Whether the claim is there in the place of the other: only then does it wake that one once it is up."""
        claim = self._state.claim(name)
        return claim is not None and not claim.is_deleting and old in claim.replaces

    def _is_up(self, name: str) -> bool:
        claim = self._state.claim(name)
        return claim is not None and claim.is_true(INITIALIZED)

    def _why(self, failed: list[str]) -> str:
        names = ", ".join(failed) or "no claim"
        return f"the node stays: {names} was to come in its place, and did not"

    async def _end_if_needless(self, claim: NodeClaim) -> None:
        """Delete a claim for which no node goes any more, unless pods are on its node: then it is as any other."""
        olds = (self._state.claim(name) for name in claim.replaces)
        if any(old is not None and (old.is_deleting or claim.name in old.replaced_by) for old in olds):
            return
        if any(self._state.claim(name) is None for name in claim.replaces):
            # Pods of one that is gone may be on their way.
            return
        if claim.node_name and any(moves(pod) for pod in self._state.pods_on(claim.node_name)):
            return
        await self._actuator.end(claim)


def _is_sound_again(claim: NodeClaim) -> bool:
    """Whether the node was to go because it was broken, and is no longer."""
    reason = claim.condition(DISRUPTION_REASON)
    return reason is not None and reason.reason == UNHEALTHY and not claim.is_true(CONDITION)
