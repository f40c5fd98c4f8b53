"""A dry run beside another autoscaler: says what Kerf would do, and compares it with what the other did.

The other's NodeClaims come in waves. When the pods of a wave are on its nodes, one decision is made for these pods
without these nodes, so it does not matter who of the two saw the pods first. Nothing is written: `kerf
shadow` asks the leader.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kerf.controllers.market import MarketBook
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine.decision import Decision
from kerf.engine.disruption.command import Command
from kerf.engine.explain.disruption import removal_text
from kerf.engine.explain.launches import why_launched, why_relabelled
from kerf.engine.options import Options
from kerf.engine.study.refit import Refit, refit
from kerf.engine.world import World
from kerf.model import events
from kerf.model.events import Occurrence
from kerf.model.nodeclaim import INITIALIZED, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.plan import Launch
from kerf.model.snapshot import ClusterSnapshot, Event, Synced, Upserted, Watched
from kerf.ports import Recorder
from kerf.state import ClusterState
from kerf.telemetry import logger

MOST_WAVES = 100
"""Waves that are remembered; the totals have all of them."""
_QUIET_S = 30.0
"""A wave ends when no claim has come for so long; pods are bound some seconds after their node is initialized."""
_LONGEST_S = 900.0
"""A wave is compared after so long even if some of its claims never came up: as long as a registration may take."""
_LOOK_S = 10.0


class Shadow:
    """Says what it would do, and does nothing: for a dry run beside the owner of the same objects."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def launch(self, decision: Decision) -> None:
        """An event on each pool that a node would be launched for, and on each node that would be relabelled."""
        for relabel in decision.relabels:
            self._recorder.record(events.would_relabel(relabel.node, why_relabelled(relabel)))
        self._tell(decision.launches)

    async def exchange(self, command: Command, snapshot: ClusterSnapshot) -> None:
        """An event on each claim that would go, and on each pool that a node would be launched for."""
        self._tell(command.launches)
        for deletion in command.deletions:
            why = removal_text(deletion, command.cost.currency)
            self._recorder.record(events.would_delete(deletion.claim, f"{deletion.reason}: {why}"))

    def _tell(self, launches: Iterable[Launch]) -> None:
        for launch in launches:
            why = why_launched(launch)
            self._recorder.record(events.would_launch(launch.node_pool, str(launch.offering), why))

    async def open(self, decision: Decision) -> None:
        """Nothing: the owner of the cluster does it."""

    async def release(self, node: Node) -> None:
        """Nothing: the taint is not ours."""

    async def tell_limit(self, pool: NodePool, message: str) -> None:
        """Nothing: the pool is not ours. Its pods get events."""


class ShadowRecorder:
    """`kerf.ports.Recorder` of a dry run: what is said of objects that another owns must not sound as if it were done.

    A verdict is marked as one and is no warning; that a pod has been given a place is not said at all.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def record(self, occurrence: Occurrence) -> None:
        """Post it as `dry run: ...`, or not at all."""
        if occurrence.reason == events.NOMINATED:
            return
        message, dedupe = f"dry run: {occurrence.message}", ("dry run", *occurrence.dedupe)
        self._recorder.record(replace(occurrence, type=events.NORMAL, message=message, dedupe=dedupe))


@dataclass(frozen=True)
class Wave:
    """What the other autoscaler launched between two instants, and what Kerf would have bought for the same pods.

    `failed` are claims of the wave that never came up; they count on neither side.
    """

    began_s: float
    ended_s: float
    refit: Refit
    failed: int = 0


@dataclass
class ShadowBook:
    """What was compared since this replica leads: the last waves, and sums over all."""

    since_s: float | None = None
    waves: deque[Wave] = field(default_factory=lambda: deque(maxlen=MOST_WAVES))
    count: int = 0
    pods: int = 0
    nodes: tuple[int, int] = (0, 0)
    price_micro: tuple[int, int] = (0, 0)

    def add(self, wave: Wave) -> None:
        """Remember a wave; pairs are (theirs, Kerf's)."""
        self.waves.append(wave)
        theirs, ours = wave.refit.present, wave.refit.planned
        self.count += 1
        self.pods += wave.refit.pods
        self.nodes = (self.nodes[0] + theirs.nodes, self.nodes[1] + ours.nodes)
        self.price_micro = (self.price_micro[0] + theirs.price_micro, self.price_micro[1] + ours.price_micro)


class ShadowComparison:
    """One loop: collects the claims of a wave, and compares it when its pods have their places.

    Claims that were there when the replica began to lead belong to no wave. Cost: one decision a wave, in the deciding
    thread, after all that is urgent.
    """

    name = "shadow"

    def __init__(
        self, state: ClusterState, ports: Ports, market: MarketBook, book: ShadowBook, options: Options
    ) -> None:
        self._state, self._ports, self._market, self._book, self._options = state, ports, market, book, options
        self._wave: dict[str, float] = {}
        self._latest_s = 0.0

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """Each claim that is new."""
        if isinstance(event, Synced):
            self._book.since_s = self._ports.clock.now_s()
        elif isinstance(event, Upserted) and isinstance(event.value, NodeClaim) and previous is None:
            return self._joining(event.value)
        return ()

    def _joining(self, claim: NodeClaim) -> tuple[str, ...]:
        # A watch that starts again reports old claims as well; they are no news.
        if self._book.since_s is None or claim.created_s < self._book.since_s or claim.is_deleting:
            return ()
        self._wave[claim.name] = claim.created_s
        self._latest_s = max(self._latest_s, claim.created_s)
        return ("wave",)

    async def reconcile(self, key: str) -> Result:
        """Compare the wave once it is over; look again until then."""
        now_s = self._ports.clock.now_s()
        if not self._wave:
            return DONE
        if not self._is_over(now_s):
            return Result(_LOOK_S)
        claims, self._wave = self._wave, {}
        snapshot = self._state.snapshot(now_s)
        found = [node for node in snapshot.nodes if node.claim is not None and node.claim.name in claims]
        up = [node.name for node in found if node.node is not None]
        world = World(snapshot, await self._market.market(snapshot))
        made = await self._ports.deciding.run(lambda: refit(world, frozenset(up), self._options), is_urgent=False)
        self._book.add(Wave(min(claims.values()), now_s, made, len(claims) - len(up)))
        logger(self.name).info(
            "compared",
            pods=made.pods,
            nodes=made.present.nodes,
            per_hour_micro=made.present.price_micro,
            kerf_nodes=made.planned.nodes,
            kerf_per_hour_micro=made.planned.price_micro,
            unplaced=made.unplaced,
        )
        return Result(0) if self._wave else DONE

    def _is_over(self, now_s: float) -> bool:
        if now_s < self._latest_s + _QUIET_S:
            return False
        if now_s >= self._latest_s + _LONGEST_S:
            return True
        found = (self._state.claim(name) for name in self._wave)
        return all(claim is None or _has_rested(claim, now_s) for claim in found)


def _has_rested(claim: NodeClaim, now_s: float) -> bool:
    """Whether the node has been initialized for so long that its pods are bound."""
    condition = claim.condition(INITIALIZED)
    return claim.is_true(INITIALIZED) and condition is not None and now_s >= condition.since_s + _QUIET_S
