"""Where decisions are made: in the loop itself, or in one thread beside it, one at a time for all controllers.

A decision on a large cluster takes seconds. In the loop it would keep the lease from being renewed, watches from being
read and probes from being answered. A thread works on a frozen snapshot; what has changed meanwhile is looked at
before anything is done.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from kerf.engine.decision import Decision
from kerf.engine.disruption.command import Command
from kerf.engine.trial import is_usable
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.state import ClusterState

_Made = TypeVar("_Made")


class Deciding(Protocol):
    """Runs work that only computes."""

    async def run(self, work: Callable[[], _Made], *, is_urgent: bool = True) -> _Made:
        """What `work` returns. Work that is not urgent, such as explaining, waits for all that is."""
        ...


class Inline:
    """`Deciding` in the loop itself: for virtual time, where nothing else goes on meanwhile."""

    async def run(self, work: Callable[[], _Made], *, is_urgent: bool = True) -> _Made:
        """See Deciding."""
        del is_urgent
        return work()


class Threaded:
    """`Deciding` in one thread."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="decide")
        self._turns = asyncio.Condition()
        self._is_busy, self._urgent = False, 0

    async def run(self, work: Callable[[], _Made], *, is_urgent: bool = True) -> _Made:
        """See Deciding. A cancelled caller gets nothing; the thread ends what it has begun before it takes more."""
        async with self._turns:
            self._urgent += is_urgent
            try:
                await self._turns.wait_for(lambda: not self._is_busy and (is_urgent or not self._urgent))
            finally:
                self._urgent -= is_urgent
            self._is_busy = True
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            async with self._turns:
                self._is_busy = False
                self._turns.notify_all()

    def close(self) -> None:
        """Take no more work; does not wait."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def still_holds(decision: Decision, state: ClusterState) -> bool:
    """Whether the pools that buy and the nodes that take pods are as they were when it was decided.

    The actuator leaves out pods that have gone; a pool that was changed, or a node that was tainted, may change
    everything. Cost: launches and the nodes of placements.
    """
    before = decision.world.snapshot
    for name in sorted({launch.node_pool for launch in decision.launches}):
        pool, known = state.pool(name), before.pool(name)
        if pool is None or known is None or pool.deleted_s is not None or pool.generation != known.generation:
            return False
    nodes = sorted({placement.node for placement in decision.placements})
    return all(_still_takes(state.cluster_node(name), before.node(name)) for name in nodes)


def _still_takes(now: ClusterNode | None, before: ClusterNode | None) -> bool:
    if now is None or before is None or not is_usable(now):
        # A claim whose node has joined meanwhile is looked up by another name; nothing was decided against it.
        return now is None and before is not None and before.node is None
    if now.node is None or before.node is None:
        return True
    return set(now.node.taints) <= set(before.node.taints)


def still_goes(command: Command, snapshot: ClusterSnapshot, state: ClusterState) -> bool:
    """Whether the nodes that a command takes away hold the same pods as when it was decided, and no pod comes."""
    coming = {pod.nominated_node for pod in state.pending() if pod.nominated_node}
    for deletion in command.deletions:
        now, before = state.cluster_node(deletion.node), snapshot.node(deletion.node)
        if now is None or before is None or now.is_deleting or deletion.node in coming:
            return False
        if {pod.uid for pod in now.pods if not pod.is_ended} - {pod.uid for pod in before.pods}:
            return False
    return True
