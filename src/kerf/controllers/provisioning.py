"""Batch window, then plan, then act.

A pod counts once kube-scheduler (or HAMi's) has said that it fits nowhere. The window is Karpenter's: it closes one
second after the last new pod, at the latest ten after the first.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kerf.config import Settings
from kerf.controllers.actuator import Actuator
from kerf.controllers.market import MarketBook
from kerf.controllers.runtime import DONE, Ports, Result
from kerf.engine import provisioning
from kerf.model import events
from kerf.model.market import Market
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterSnapshot, Deleted, Event, Synced, Watched
from kerf.state import ClusterState


@dataclass
class _Window:
    """When the pods of the present batch came; lost at a restart, which only opens another window."""

    pods: set[str] = field(default_factory=set)
    first_s: float = 0
    last_s: float = 0


class Provisioning:
    """Buys nodes for pods that fit nowhere."""

    name = "provisioning"

    def __init__(
        self, state: ClusterState, ports: Ports, book: MarketBook, actuator: Actuator, settings: Settings
    ) -> None:
        self._state, self._ports, self._book, self._actuator, self._settings = state, ports, book, actuator, settings
        self._window = _Window()
        # What the last plan was made from: while that is unchanged, so is the plan.
        self._planned: tuple[int, Market] | None = None

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """One key: pods that wait, pools that change, claims that go."""
        if isinstance(event, Synced):
            return ("pods",)
        value = event.value
        if isinstance(value, Pod):
            was_waiting = isinstance(previous, Pod) and is_provisionable(previous)
            return ("pods",) if is_provisionable(value) and not was_waiting else ()
        if isinstance(value, NodeClaim):
            # A claim that goes takes the places of the pods it was bought for along.
            return ("pods",) if value.is_deleting or isinstance(event, Deleted) else ()
        return ("pods",) if isinstance(value, NodePool) and _changed(value, previous) else ()

    async def reconcile(self, key: str) -> Result:
        """Plan for all waiting pods once the window has closed."""
        now = self._ports.clock.now_s()
        waiting = tuple(pod for pod in self._state.pods() if is_provisionable(pod))
        if not waiting:
            self._window = _Window()
            return DONE
        still_open_s = self._still_open_s(waiting, now)
        if still_open_s > 0:
            return Result(still_open_s)
        snapshot = replace(self._state.snapshot(now), pending=waiting)
        version = self._state.version
        market = await self._book.market(snapshot)
        if self._planned == (version, market):
            self._window = _Window()
            return Result(self._settings.replan_s)
        options = provisioning.Options(self._settings.strategy, self._settings.follow, with_bound=False)
        plan = provisioning.plan(snapshot, market, options)
        self._ports.feed.publish(snapshot, plan)
        self._window = _Window()
        self._planned = (version, market)
        await self._actuator.launch(plan, snapshot)
        self._tell(plan, snapshot)
        return Result(self._settings.replan_s)

    def _still_open_s(self, waiting: Iterable[Pod], now: float) -> float:
        window = self._window
        new = {pod.uid for pod in waiting} - window.pods
        if new:
            window.first_s = window.first_s if window.pods else now
            window.last_s = now
            window.pods |= new
        closes = min(window.last_s + self._settings.batch_idle_s, window.first_s + self._settings.batch_max_s)
        return closes - now

    def _tell(self, plan: Plan, snapshot: ClusterSnapshot) -> None:
        named = {node.name: "node" if node.node is not None else "nodeclaim" for node in snapshot.nodes}
        for placement in plan.placements:
            target = f"{named.get(placement.node, 'node')}/{placement.node}"
            self._ports.recorder.record(events.nominated(placement.pod.pod, target))
        for unplaced in plan.unplaced:
            hint = f"; {unplaced.hint}" if unplaced.hint else ""
            self._ports.recorder.record(events.failed_scheduling(unplaced.pod, unplaced.reason + hint))


def is_provisionable(pod: Pod) -> bool:
    """Whether nodes may be bought for it: its scheduler has refused it, and no DaemonSet owns it."""
    return pod.is_pending and bool(pod.unschedulable) and not pod.nominated_node and not pod.is_daemon


def _changed(pool: NodePool, previous: Watched | None) -> bool:
    return not isinstance(previous, NodePool) or pool.generation != previous.generation
