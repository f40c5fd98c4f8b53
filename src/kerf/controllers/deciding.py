"""Where decisions are made: in the loop itself, or in one thread beside it, one at a time for all controllers.

A decision on a large cluster takes seconds. In the loop it would keep the lease from being renewed, watches from being
read and probes from being answered. A thread works on a frozen snapshot; what has changed meanwhile is looked at
before anything is done.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

from kerf.controllers.garbage import Garbage
from kerf.engine.buy.limits import Ledger
from kerf.engine.decision import Decision
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.standing import standing
from kerf.engine.leaving import moves
from kerf.engine.place.noderooms import is_usable
from kerf.engine.world import World
from kerf.model.nodepool import is_read_alike
from kerf.model.nodes import OPENING_TAINTS
from kerf.model.placeholders import is_virtual
from kerf.model.plan import Launch
from kerf.model.pods import Pod
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.state import ClusterState

_Made = TypeVar("_Made")
_Asked = SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
_PAUSE_S = 0.2
"""After so long without anything to do most of what was decided is done, and the next is not asked for yet."""


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
        self._asked: _Asked = SimpleQueue()
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


def _answer(asked: _Asked) -> None:
    """Do what is asked, in order, unless it was cancelled before its turn; what is raised is the asker's."""
    garbage = Garbage()
    while (each := _next(asked, garbage)) is not None:
        made, work = each
        if not made.set_running_or_notify_cancel():
            continue
        try:
            made.set_result(work())
        except BaseException as error:
            made.set_exception(error)
        # What was made may be large, and the next may be long in coming.
        del each, made, work


def _next(asked: _Asked, garbage: Garbage) -> tuple[Future[Any], Callable[[], Any]] | None:
    """What is asked next; where that is long in coming, garbage is looked for first."""
    try:
        return asked.get(timeout=_PAUSE_S)
    except Empty:
        garbage.look()
        return asked.get()


MOST_DROPPED = 3
"""Decisions in a row that are dropped for nodes or pods that have changed; the next is done as far as it holds."""


def still_holds(decision: Decision, state: ClusterState, dropped: int = 0) -> bool:
    """Whether pools that buy, pods that are bought for and nodes that take pods are as they were when it was decided.

    A pool that was changed, a pod that was made again, or a node that was tainted or filled, may change everything.
    What another controller has bought meanwhile counts against limits. `dropped` counts the decisions in a row that did
    not hold. After MOST_DROPPED only the pools and their limits count: on a large
    cluster some node or pod changes during each decision, and launches for all would wait for ever. The actuator leaves
    out launches none of whose pods holds (`Buyers`), and of nodes that do not hold nothing is said (`Takers.takes`).
    Cost: launches, pods that wait, and pods of those nodes; and all nodes where a pool that buys has limits.
    """
    before = decision.world.snapshot
    for name in sorted({launch.node_pool for launch in decision.launches}):
        pool, known = state.pool(name), before.pool(name)
        if pool is None or known is None or pool.deleted_s is not None or not is_read_alike(pool, known):
            return False
    if not _within_limits(decision, state):
        return False
    if dropped >= MOST_DROPPED:
        return True
    return Buyers(before, state).hold(decision.launches) and Takers(decision, state).holds()


def _within_limits(decision: Decision, state: ClusterState) -> bool:
    """Whether no limit is exceeded by what the decision buys because more of it is used than when it was decided."""
    before = decision.world
    limited = {each.node_pool for each in decision.launches if _limits(before.snapshot, each.node_pool) is not None}
    if not limited or state.version == before.snapshot.version:
        return True
    was, used = Ledger.of(before), Ledger.of(before.of(state.snapshot(before.snapshot.taken_at_s, ())))
    for name in sorted(limited):
        bought = Resources.total((each.charge, 1) for each in decision.launches if each.node_pool == name)
        for resource, limit in (_limits(before.snapshot, name) or Resources()).items():
            has_grown = used.used(name).get(resource, 0) > was.used(name).get(resource, 0)
            amount = bought.get(resource, 0)
            if has_grown and amount > 0 and used.used(name).get(resource, 0) + amount > limit:
                return False
    return True


def _limits(snapshot: ClusterSnapshot, name: str) -> Resources | None:
    pool = snapshot.pool(name)
    return None if pool is None else pool.limits


class Buyers:
    """How the pods for which nodes are bought stand now, compared with what they were when it was decided."""

    def __init__(self, before: ClusterSnapshot, state: ClusterState) -> None:
        self._before, self._state = {pod.key: pod for pod in before.pending}, state
        self._leaving = before.leaving

    def hold(self, launches: Iterable[Launch]) -> bool:
        """Whether each of their pods still waits as it did."""
        return all(self.waits(placed.pod) for launch in launches for placed in launch.pods)

    def waits(self, key: str) -> bool:
        """Whether the pod is there, waits, and is the one that was planned; one that is to come always does.

        One that leaves its node is still there, and not evicted: then it is its successor that waits.
        """
        pod = self._state.pod(key)
        if pod is None:
            return is_virtual(key)
        stands = pod.is_pending or (self.leaves(key) and pod.node_name == self._leaving[key] and moves(pod))
        return stands and not self.is_another(key)

    def leaves(self, key: str) -> bool:
        """Whether it was planned for as a pod of a node that goes."""
        return key in self._leaving

    def is_another(self, key: str) -> bool:
        """Whether the pod was deleted and made again under its name, or resized: it may ask for something else."""
        pod, before = self._state.pod(key), self._before.get(key)
        return pod is not None and before is not None and (pod.uid != before.uid or not pod.asks_as(before))


class Takers:
    """How nodes that take pods by a decision stand now, compared with what they were when it was made."""

    def __init__(self, decision: Decision, state: ClusterState) -> None:
        self._before, self._state = decision.world.snapshot, state
        self._buyers = Buyers(self._before, state)
        self._daemons = {(each.namespace, each.name) for each in self._before.daemon_sets}
        self._planned: dict[str, set[str]] = {}
        for placement in decision.placements:
            self._planned.setdefault(placement.node, set()).add(placement.pod.pod)

    def holds(self) -> bool:
        """Whether each of the nodes takes its pods."""
        return all(map(self.takes, sorted(self._planned)))

    def takes(self, node: str) -> bool:
        """Whether a node, or a claim that is to become one, takes the pods that are planned there as it did.

        It is there, usable, has no further taint, offers no less, bears the same labels and has the same cards; no
        other pod has come, none was resized, and none of the planned ones was made again.
        """
        was, now = self._before.node(node), self._state.cluster_node(node)
        planned = self._planned.get(node, set())
        if was is None or any(map(self._buyers.is_another, planned)):
            return False
        if now is None:
            # A claim whose node has joined meanwhile goes by the node's name; a node that is gone takes nothing.
            claim = self._state.claim(was.claim.name) if was.node is None and was.claim is not None else None
            return claim is not None and not claim.is_deleting
        if not is_usable(now) or self._newcomers(was, now) - planned:
            return False
        return now.node is None or was.node is None or _offers_as_before(was, now)

    def _newcomers(self, was: ClusterNode, now: ClusterNode) -> set[str]:
        """Pods that have come to the node, or were resized there; those of known DaemonSets were reckoned with."""
        there = {pod.uid: pod for pod in was.pods}
        return {pod.key for pod in now.pods if not pod.is_ended and self._is_news(pod, there.get(pod.uid))}

    def _is_news(self, pod: Pod, before: Pod | None) -> bool:
        if before is not None:
            return not pod.asks_as(before)
        owner = pod.owner
        return owner is None or not pod.is_daemon or (pod.namespace, owner.name) not in self._daemons


def _offers_as_before(was: ClusterNode, now: ClusterNode) -> bool:
    """Whether it has no further taint but Kerf's own of a node that opens, no less of anything, and the same labels.

    A node that is not registered yet gets labels, resources and cards while it starts; those that it has stay.
    """
    assert was.node is not None
    assert now.node is not None
    before, after = was.node, now.node
    if {taint for taint in after.taints if taint.key not in OPENING_TAINTS} - set(before.taints):
        return False
    if any(after.allocatable.get(name, 0) < amount for name, amount in before.allocatable.items()):
        return False
    if not was.is_registered:
        return before.labels.items() <= after.labels.items()
    return before.labels == after.labels and (not was.devices_observed or _cards(was) == _cards(now))


def _cards(node: ClusterNode) -> list[tuple[str, int, int, int, bool, bool]]:
    """What the cards are, whatever is used of them."""
    return [(d.id, d.memory_mib, d.cores, d.slots, d.healthy, d.cordoned) for d in node.devices]


def still_goes(command: Command, before: World, state: ClusterState, now_s: float, dropped: int = 0) -> Command | None:
    """What of a command is to be carried out now; None where it is to be decided again.

    All of it, or after MOST_DROPPED commands in a row that did not stand what is left of it: a node that may not go
    never goes. Cost: `standing`, and nothing where the state has not changed.
    """
    if state.version == before.snapshot.version:
        return command
    left = standing(command, before, state.snapshot(now_s))
    return left if left is command or dropped >= MOST_DROPPED else None
