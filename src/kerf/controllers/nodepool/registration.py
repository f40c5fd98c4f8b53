"""Says of each NodePool whether its claims register, by the last four that did or did not; as Karpenter.

Two failures of four are too many. Nothing is decided by it: a person, or a tool, sees that a pool or its NodeClass is
broken. What it knows begins again when either changes, for the failures were of what it was before. The outcomes are
kept in memory, and after a restart they begin with what the condition says.
"""

from collections import deque
from collections.abc import Iterable

from kerf.controllers.runtime import DONE, Ports, Result
from kerf.model.nodeclaim import FALSE, TRUE, UNKNOWN, Condition
from kerf.model.nodepool import NODE_REGISTRATION_HEALTHY, NodePool
from kerf.model.snapshot import Event, NodeClass, Synced, Watched
from kerf.ports import NotFound
from kerf.state import ClusterState

_LAST, _TOO_MANY = 4, 2
"""Karpenter's ring buffer has four outcomes, and half of it failed is unhealthy."""
_LONGEST = 300
REGISTRATION_FAILED = "RegistrationFailed"


class RegistrationHealth:
    """Keeps the condition NodeRegistrationHealthy; `Lifecycle` says how each claim came out."""

    name = "registration-health"

    def __init__(self, state: ClusterState, ports: Ports) -> None:
        self._state, self._ports = state, ports
        self._outcomes: dict[str, deque[bool]] = {}
        """By the pool's uid, oldest first."""

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """A pool whose spec has changed, and the pools of a NodeClass whose spec has."""
        if isinstance(event, Synced) or not isinstance(event.value, NodePool | NodeClass):
            return ()
        value = event.value
        is_changed = isinstance(previous, NodePool | NodeClass) and previous.generation != value.generation
        if not is_changed:
            return ()
        if isinstance(value, NodePool):
            return (value.name,)
        return tuple(pool.name for pool in self._state.pools() if pool.node_class == value.reference)

    async def reconcile(self, key: str) -> Result:
        """Forget what was known of the pool as it was before."""
        pool = self._state.pool(key)
        if pool is None:
            return DONE
        self._outcomes[pool.uid] = deque(maxlen=_LAST)
        if _held(pool) is not None:
            await self._say(pool, UNKNOWN, "NodePoolOrNodeClassChanged", "")
        return DONE

    async def registered(self, node_pool: str) -> None:
        """A node of the pool has registered."""
        pool = self._state.pool(node_pool)
        if pool is not None and self._note(pool, is_good=True):
            await self._say(pool, TRUE, NODE_REGISTRATION_HEALTHY, "")

    async def failed(self, node_pool: str, reason: str, text: str) -> None:
        """A claim of the pool was given up before its node registered."""
        pool = self._state.pool(node_pool)
        if pool is not None and not self._note(pool, is_good=False):
            await self._say(pool, FALSE, reason, text[:_LONGEST])

    def _note(self, pool: NodePool, *, is_good: bool) -> bool:
        """Take an outcome; whether the pool is healthy with it."""
        outcomes = self._outcomes.get(pool.uid)
        if outcomes is None:
            held = _held(pool)
            begins = {TRUE: [True], FALSE: [False] * _TOO_MANY}.get(held.status if held is not None else "", [])
            outcomes = self._outcomes[pool.uid] = deque(begins, maxlen=_LAST)
        outcomes.append(is_good)
        return outcomes.count(False) < _TOO_MANY

    async def _say(self, pool: NodePool, status: str, reason: str, message: str) -> None:
        held = _held(pool)
        if held is not None and (held.status, held.reason, held.message) == (status, reason, message):
            return
        since_s = held.since_s if held is not None and held.status == status else self._ports.clock.now_s()
        condition = Condition(NODE_REGISTRATION_HEALTHY, status, reason, message, since_s)
        try:
            await self._ports.writer.update_node_pool_status(pool.name, None, (condition,))
        except NotFound:
            return


def _held(pool: NodePool) -> Condition | None:
    return next((condition for condition in pool.conditions if condition.type == NODE_REGISTRATION_HEALTHY), None)
