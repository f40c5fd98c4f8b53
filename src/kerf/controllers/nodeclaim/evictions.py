"""Asks the pods of a node that goes to end, and remembers for a while which evictions the API has refused.

A refusal is asked again after one second, then two, up to ten: a drain that a budget holds for hours costs six calls a
minute and pod. That is remembered in memory only, since forgetting it costs one call.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kerf.controllers.runtime import Ports
from kerf.engine.draining import Drain, Ending, ToEvict, drain_of
from kerf.model import events
from kerf.model.eviction import Budgets
from kerf.model.nodeclaim import INITIALIZED, NodeClaim
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodDemand, PodDisruptionBudget
from kerf.ports import Conflict, EvictionBlocked, NotFound, WriteRefused
from kerf.sharing.family import Family
from kerf.sharing.registry import demand_of
from kerf.state import ClusterState

YIELDS_S = 60.0
"""So long pods give way to those of more cards: a node is paid for meanwhile."""
_FIRST_RETRY_S, _LAST_RETRY_S = 1.0, 10.0
"""Karpenter's queue waits up to ten seconds as well."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """What the API answered last, how often it refused, and when to ask again."""

    said: str
    times: int
    again_s: float


class Evictions:
    """The pods of nodes that go, one node at a time."""

    def __init__(self, state: ClusterState, ports: Ports) -> None:
        self._state, self._ports = state, ports
        self._refused: dict[str, dict[str, _Refusal]] = {}
        """By node, then by the pod's uid."""
        self._known: tuple[tuple[PodDisruptionBudget, ...], Budgets] = ((), Budgets(()))

    async def go_on(
        self, node: Node, deadline_s: float | None, reason: str, yields_until_s: float = 0.0
    ) -> tuple[Drain, float]:
        """Evict and delete what is due on a node; what it waits for then, and the seconds until the next try.

        Until `yields_until_s` pods of more cards go first. The seconds are infinite where nothing but an event of a pod
        changes anything.
        """
        drain = self._look(node, deadline_s)
        for pod, grace_s in drain.overdue:
            await self._delete(pod, grace_s, deadline_s or 0)
        first = self._first(node, drain) if self._now() < yields_until_s else drain.evictable
        for pod in first:
            held = self._refused.get(node.name, {}).get(pod.uid)
            if held is None or self._now() >= held.again_s:
                await self._evict(node, pod, reason, 0 if held is None else held.times)
        drain = self._look(node, deadline_s)
        there = {each.pod.uid for each in drain.awaited}
        left = {uid: held for uid, held in self._refused.pop(node.name, {}).items() if uid in there}
        if left:
            self._refused[node.name] = left
        times = [held.again_s for held in left.values()]
        times += [] if drain.next_s is None else [drain.next_s]
        times += [self._now() + _FIRST_RETRY_S] if len(first) < len(drain.evictable) else []
        return drain, min(times, default=float("inf")) - self._now()

    def _first(self, node: Node, drain: Drain) -> Sequence[Pod]:
        """Those of the evictable pods that are to go now: none with cards while others with more are on their way.

        What asks for most goes first, since schedulers take successors in the order in which they come.
        """
        family = self._state.family_of(node, self._state.claim_of(node))
        asked = {pod.uid: _asked(pod, family) for pod in drain.evictable}
        fewest = min((cards for cards, *_ in asked.values() if cards), default=0)
        if not fewest:
            return drain.evictable
        most = max(self._on_their_way(family, fewest), default=0)
        first = [pod for pod in drain.evictable if not 0 < asked[pod.uid][0] < most]
        return sorted(first, key=lambda pod: (pod.spec.priority, *(-each for each in asked[pod.uid])))

    def _on_their_way(self, family: Family, fewest: int) -> Iterator[int]:
        """The cards of pods that ask for more than the fewest, and leave nodes in whose place others are up, or wait
        since a short while.

        Not of those that something keeps there, since that may last for ever.
        """
        now_s, budgets = self._now(), self._budgets()
        for claim in self._state.claims():
            if claim.replaced_by and self._goes_now(claim, now_s):
                pods = self._state.pods_on(claim.node_name)
                larger = [pod for pod in pods if _asked(pod, family)[0] > fewest]
                awaited = drain_of(larger, budgets, now_s).awaited if larger else ()
                yield from (_asked(e.pod, family)[0] for e in awaited if isinstance(e.why, ToEvict | Ending))
        for pod in self._state.pending():
            if now_s < pod.created_s + YIELDS_S:
                yield _asked(pod, family)[0]

    def _goes_now(self, claim: NodeClaim, now_s: float) -> bool:
        if claim.deleted_s is not None:
            return now_s < claim.deleted_s + YIELDS_S
        return all((new := self._state.claim(name)) and new.is_true(INITIALIZED) for name in claim.replaced_by)

    def _look(self, node: Node, deadline_s: float | None) -> Drain:
        refused = {uid: held.said for uid, held in self._refused.get(node.name, {}).items()}
        pods = self._state.pods_on(node.name)
        return drain_of(pods, self._budgets(), self._now(), deadline_s, refused)

    def _budgets(self) -> Budgets:
        held = self._state.disruption_budgets()
        if held is not self._known[0]:
            self._known = held, Budgets(held)
        return self._known[1]

    async def _evict(self, node: Node, pod: Pod, reason: str, times: int) -> None:
        try:
            await self._ports.writer.evict(pod)
        except (EvictionBlocked, WriteRefused) as error:
            again_s = self._now() + min(_LAST_RETRY_S, _FIRST_RETRY_S * 2**times)
            self._refused.setdefault(node.name, {})[pod.uid] = _Refusal(str(error), times + 1, again_s)
            return
        except (Conflict, NotFound):
            # The pod is gone, or another one has its name.
            return
        self._refused.get(node.name, {}).pop(pod.uid, None)
        self._ports.recorder.record(events.evicted(pod.key, reason))

    async def _delete(self, pod: Pod, grace_s: int, deadline_s: float) -> None:
        try:
            await self._ports.writer.delete_pod(pod, grace_s)
        except (Conflict, NotFound):
            return
        own_s = pod.spec.termination_grace_s
        self._ports.recorder.record(events.deleted_in_time(pod.key, deadline_s, grace_s, own_s))

    def _now(self) -> float:
        return self._ports.clock.now_s()


def _asked(pod: Pod, family: Family) -> tuple[int, int, int]:
    """How many cards the pod asks for on nodes of the family, and how much of them: in MiB, or in percent."""
    demand = demand_of(pod, family)
    asking = demand.asking if isinstance(demand, PodDemand) else ()
    found = [each.request for each in asking if each.request is not None and not each.is_init]
    cards, memory = sum(each.count for each in found), sum(each.memory_mib * each.count for each in found)
    return cards, memory, sum(each.memory_percent * each.count for each in found)
