"""Where decisions are made: in the loop itself, or in one thread beside it, one at a time for all controllers.

A decision on a large cluster takes seconds. In the loop it would keep the lease from being renewed, watches from being
read and probes from being answered. A thread works on a frozen snapshot; what has changed meanwhile is looked at
before anything is done.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

from kerf.engine.decision import Decision
from kerf.engine.disruption.command import Command
from kerf.engine.place.trial import is_usable
from kerf.model.nodes import OPENING_TAINTS, Node
from kerf.model.plan import NodePlacement
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.state import ClusterState

_Made = TypeVar("_Made")


class Deciding(Protocol):
    """Runs work that only computes."""

    async def run(self, work: Callable[[], _Made], *, is_urgent: bool = True) -> _Made:
        """What `work` returns. Work that is not urgent, such as explaining, waits for all that is."""
        ...

    def is_awaited(self) -> bool:
        """Whether urgent work waits for what is done now; may be asked by that, in its thread."""
        ...


class Inline:
    """`Deciding` in the loop itself: for virtual time, where nothing else goes on meanwhile."""

    async def run(self, work: Callable[[], _Made], *, is_urgent: bool = True) -> _Made:
        """See Deciding."""
        del is_urgent
        return work()

    def is_awaited(self) -> bool:
        """Never: nothing goes on beside it."""
        return False


class Threaded:
    """`Deciding` in one thread."""

    def __init__(self) -> None:
        self._turns = asyncio.Condition()
        self._is_busy, self._urgent = False, 0
        self._asked: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        # A daemon, unlike the threads of an executor: a process that is asked to stop does not wait for a plan's end.
        self._thread = Thread(target=_answer, args=(self._asked,), name="decide", daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[], _Made], *, is_urgent: bool = True) -> _Made:
        """See Deciding. A cancelled caller gets nothing; the thread ends what it has begun before it takes more."""
        async with self._turns:
            self._urgent += is_urgent
            try:
                await self._turns.wait_for(lambda: not self._is_busy and (is_urgent or not self._urgent))
            finally:
                self._urgent -= is_urgent
                # An urgent one that was cancelled while it waited has kept the others from their turn.
                self._turns.notify_all()
            self._is_busy = True
        made: Future[_Made] = Future()
        self._asked.put((made, work))
        try:
            return await asyncio.wrap_future(made)
        finally:
            # Before anything is awaited: a second cancellation must not leave the thread taken for ever.
            self._is_busy = False
            async with self._turns:
                self._turns.notify_all()

    def is_awaited(self) -> bool:
        """See Deciding."""
        return self._urgent > 0

    def close(self) -> None:
        """Take no more work; does not wait."""
        self._asked.put(None)


def _answer(asked: "SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]") -> None:
    """Do what is asked, in order, unless it was cancelled before its turn; what is raised is the asker's."""
    while (each := asked.get()) is not None:
        made, work = each
        if not made.set_running_or_notify_cancel():
            continue
        try:
            made.set_result(work())
        except BaseException as error:
            made.set_exception(error)
        # What was made may be large, and the next may be long in coming.
        del each, made, work


MOST_DROPPED = 3
"""Decisions in a row that are dropped for a node that has changed; the next is carried out as far as it holds."""


def still_holds(decision: Decision, state: ClusterState, dropped: int = 0) -> bool:
    """Whether the pools that buy and the nodes that take pods are as they were when it was decided.

    The actuator leaves out pods that have gone; a pool that was changed, or a node that was tainted or filled, may
    change everything. `dropped` counts the decisions in a row that did not hold. After MOST_DROPPED nodes count no
    more: on a large cluster some node changes during each decision, and launches for all would wait for ever. Of nodes
    that do not hold nothing is said then (`still_takes`). Cost: launches and the pods of nodes with placements.
    """
    before = decision.world.snapshot
    for name in sorted({launch.node_pool for launch in decision.launches}):
        pool, known = state.pool(name), before.pool(name)
        if pool is None or known is None or pool.deleted_s is not None or pool.generation != known.generation:
            return False
    if dropped >= MOST_DROPPED:
        return True
    planned = planned_pods(decision.placements)
    return all(still_takes(node, before, state, pods) for node, pods in sorted(planned.items()))


def planned_pods(placements: Iterable[NodePlacement]) -> dict[str, set[str]]:
    """By node the pods that are placed there, as `namespace/name`."""
    found: dict[str, set[str]] = {}
    for placement in placements:
        found.setdefault(placement.node, set()).add(placement.pod.pod)
    return found


def still_takes(node: str, before: ClusterSnapshot, state: ClusterState, planned: Collection[str] = ()) -> bool:
    """Whether a node, or a claim that is to become one, takes the pods that are `planned` there as it did.

    It is there, usable, has no further taint, offers no less and bears the same labels, and no other pod has come.
    """
    was, now = before.node(node), state.cluster_node(node)
    if was is None:
        return False
    if now is None:
        # A claim whose node has joined meanwhile goes by the node's name; a node that is gone takes nothing.
        claim = state.claim(was.claim.name) if was.node is None and was.claim is not None else None
        return claim is not None and not claim.is_deleting
    if not is_usable(now) or _newcomers(was, now).difference(planned):
        return False
    return now.node is None or was.node is None or _offers_as_before(was.node, now.node, is_whole=was.is_registered)


def _newcomers(was: ClusterNode, now: ClusterNode) -> set[str]:
    """Pods that have come to the node; those of DaemonSets were reckoned with before."""
    there = {pod.uid for pod in was.pods}
    return {pod.key for pod in now.pods if not pod.is_ended and not pod.is_daemon and pod.uid not in there}


def _offers_as_before(was: Node, now: Node, *, is_whole: bool) -> bool:
    """Whether it has no further taint but Kerf's own of a node that opens, no less of anything, and the same labels.

    A node that is not `is_whole` yet gets labels and resources while it starts; those that it has stay.
    """
    if {taint for taint in now.taints if taint.key not in OPENING_TAINTS} - set(was.taints):
        return False
    if any(now.allocatable.get(name, 0) < amount for name, amount in was.allocatable.items()):
        return False
    return was.labels == now.labels if is_whole else was.labels.items() <= now.labels.items()


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
