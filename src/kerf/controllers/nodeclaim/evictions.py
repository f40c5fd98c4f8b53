"""Asks the pods of a node that goes to end, and remembers for a while which evictions the API has refused.

A refusal is asked again after one second, then two, up to ten: a drain that a budget holds for hours costs six calls a
minute and pod. That is remembered in memory only, since forgetting it costs one call.
"""

from dataclasses import dataclass

from kerf.controllers.elapsed import Steady, passed_s
from kerf.controllers.market import MarketBook
from kerf.controllers.runtime import Ports
from kerf.engine.draining import Drain, drain_of
from kerf.model import events
from kerf.model.eviction import Budgets
from kerf.model.nodepool import UNDERUTILIZED
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodDisruptionBudget
from kerf.ports import Conflict, EvictionBlocked, NotFound, WriteRefused
from kerf.state import ClusterState

_FIRST_RETRY_S, _LAST_RETRY_S = 1.0, 10.0
"""Karpenter's queue waits up to ten seconds as well."""
_MOST_DOUBLINGS = 4
"""More lead past the last wait; and no float holds the second of a pod that is refused for hours."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """What the API answered last, how often it refused, and when to ask again (`passed_s`)."""

    said: str
    times: int
    again_s: float


class Evictions:
    """The pods of nodes that go, one node at a time."""

    def __init__(self, state: ClusterState, ports: Ports, book: MarketBook) -> None:
        self._state, self._ports, self._book = state, ports, book
        self._refused: dict[str, dict[str, _Refusal]] = {}
        """By node, then by the pod's uid."""
        self._steady = Steady(ports.clock)
        self._known: tuple[tuple[PodDisruptionBudget, ...], Budgets] = ((), Budgets(()))

    async def go_on(self, node: Node, deadline_s: float | None, reason: str) -> tuple[Drain, float]:
        """Evict and delete what is due on a node; what it waits for then, and the seconds until the next try.

        The seconds are infinite where nothing but an event of a pod changes anything.
        """
        drain = self._look(node, deadline_s)
        for pod, grace_s in drain.overdue:
            await self._delete(pod, grace_s, deadline_s or 0)
        for pod in drain.evictable:
            held = self._refused.get(node.name, {}).get(pod.uid)
            if held is None or passed_s() >= held.again_s:
                await self._evict(node, pod, reason, 0 if held is None else held.times)
        drain = self._look(node, deadline_s)
        there = {each.pod.uid for each in drain.awaited}
        left = {uid: held for uid, held in self._refused.pop(node.name, {}).items() if uid in there}
        if left:
            self._refused[node.name] = left
        waits = [held.again_s - passed_s() for held in left.values()]
        waits += [] if drain.next_s is None else [drain.next_s - self.now_s(node)]
        return drain, min(waits, default=float("inf"))

    def now_s(self, node: Node) -> float:
        """The time for the node's drain: a clock that is set forward ends no pod's grace early."""
        return self._steady.earliest_s(node.uid)

    def forget(self, node: Node) -> None:
        """The drain is over."""
        self._steady.forget(node.uid)
        self._refused.pop(node.name, None)

    def _look(self, node: Node, deadline_s: float | None) -> Drain:
        refused = {uid: held.said for uid, held in self._refused.get(node.name, {}).items()}
        pods = self._state.pods_on(node.name)
        return drain_of(pods, self._budgets(), self.now_s(node), deadline_s, refused)

    def _budgets(self) -> Budgets:
        held = self._state.disruption_budgets()
        if held is not self._known[0]:
            self._known = held, Budgets(held)
        return self._known[1]

    async def _evict(self, node: Node, pod: Pod, reason: str, times: int) -> None:
        try:
            await self._ports.writer.evict(pod)
        except (EvictionBlocked, WriteRefused) as error:
            again_s = passed_s() + min(_LAST_RETRY_S, _FIRST_RETRY_S * 2 ** min(times, _MOST_DOUBLINGS))
            self._refused.setdefault(node.name, {})[pod.uid] = _Refusal(str(error), times + 1, again_s)
            return
        except (Conflict, NotFound):
            # The pod is gone, or another one has its name.
            return
        self._refused.get(node.name, {}).pop(pod.uid, None)
        claim = self._state.claim_of(node)
        if reason == UNDERUTILIZED and claim is not None:
            self._book.moves.evicted(claim.name)
        self._ports.recorder.record(events.evicted(pod.key, reason))

    async def _delete(self, pod: Pod, grace_s: int, deadline_s: float) -> None:
        try:
            await self._ports.writer.delete_pod(pod, grace_s)
        except (Conflict, NotFound):
            return
        own_s = pod.spec.termination_grace_s
        self._ports.recorder.record(events.deleted_in_time(pod.key, deadline_s, grace_s, own_s))
