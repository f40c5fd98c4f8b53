"""Queues, back-off and the wiring of the controllers.

A controller names the keys that an event touches and reconciles one key at a time. Nothing sleeps and nothing is
remembered that could not be read again: stopping the runtime anywhere and starting another loses only time.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from kerf.cloudprovider import CloudProvider, Throttled
from kerf.controllers.deciding import Deciding, Inline
from kerf.controllers.elapsed import passed_s
from kerf.errors import DecodeError, KerfError, brief
from kerf.model import events
from kerf.model.snapshot import Event, Relisted, Synced, Watched, key_of
from kerf.ports import (
    Clock,
    Conflict,
    KubeReader,
    KubeWriter,
    NodeClassStore,
    NotFound,
    PlanFeed,
    Recorder,
    Scalables,
    UsageSource,
)
from kerf.state import ClusterState
from kerf.telemetry import RECONCILE_SECONDS, RECONCILES, logger

_FIRST_RETRY_S, _LAST_RETRY_S = 1.0, 60.0
_MOST_DOUBLINGS = 6
"""More lead past the last wait; and no float holds the second of a key that has failed all day."""
_MOST_AT_ONCE = 1_000
"""Karpenter's least for the claims that it leads through their life at a time."""
_REFUSED_S = 60.0
"""After so long of writes that meet newer objects all the time a line in the log says so."""
_OUTCOMES = ("done", "conflict", "throttled", "failed")


@dataclass(frozen=True)
class Ports:
    """Everything the controllers may touch.

    `usage` is None where nothing says what is used, `node_classes` where the provider has no kind of its own,
    `scalables` where workloads cannot be asked for.
    """

    clock: Clock
    reader: KubeReader
    writer: KubeWriter
    recorder: Recorder
    cloud: CloudProvider
    feed: PlanFeed
    usage: UsageSource | None = None
    deciding: Deciding = field(default_factory=Inline)
    node_classes: NodeClassStore | None = None
    scalables: Scalables | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """Look at the key again after so many seconds; None: not before an event touches it. At those of `then`, now."""

    requeue_after_s: float | None = None
    then: tuple[str, ...] = ()


DONE = Result()


class Controller(Protocol):
    """One loop."""

    name: str

    def keys(self, event: Event, previous: Watched | None) -> Iterable[str]:
        """The keys that an event touches; `previous` is the object before it. Called after the state has changed."""
        ...

    async def reconcile(self, key: str) -> Result:
        """Bring the world of one key closer to what it should be. Must be safe to repeat at any time."""
        ...


class _Worker:
    """The queue of one controller: each key at most once at a time, again when it was touched meanwhile.

    No more than `_MOST_AT_ONCE` keys run at a time, and the others in their turn: what begins with thousands of objects
    would else be as many tasks in memory for each controller.
    """

    def __init__(self, controller: Controller, clock: Clock, note: Callable[[Watched], None]) -> None:
        self._controller, self._clock, self._note = controller, clock, note
        # Looked up once: a loop that polls counts a hundred thousand passes in a simulated week.
        self._seconds = RECONCILE_SECONDS.labels(controller.name)
        self._outcomes = {outcome: RECONCILES.labels(controller.name, outcome) for outcome in _OUTCOMES}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._queued: dict[str, None] = {}
        self._touched: set[str] = set()
        self._due: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        # Since when each key has met nothing but conflicts (`passed_s`); infinite once that is said.
        self._refused_s: dict[str, float] = {}
        self._stopped = False

    def enqueue(self, key: str) -> None:
        """Reconcile the key now, or once more when it is being reconciled."""
        if self._stopped:
            return
        self._due.pop(key, None)
        if key in self._running:
            self._touched.add(key)
        elif len(self._running) >= _MOST_AT_ONCE:
            self._queued[key] = None
        else:
            self._begin(key)

    def _begin(self, key: str) -> None:
        task = asyncio.get_running_loop().create_task(self._run(key), name=f"{self._controller.name}:{key}")
        self._running[key] = task

    async def _run(self, key: str) -> None:
        began_s = self._clock.now_s()
        result = await self._attempt(key)
        self._seconds.observe(max(0.0, self._clock.now_s() - began_s))
        self._running.pop(key, None)
        if self._queued and not self._stopped:
            following = next(iter(self._queued))
            del self._queued[following]
            self._begin(following)
        if key in self._touched:
            self._touched.discard(key)
            self.enqueue(key)
        elif result.requeue_after_s is not None:
            self._enqueue_at(key, self._clock.now_s() + result.requeue_after_s)
        for other in result.then:
            self.enqueue(other)

    async def _attempt(self, key: str) -> Result:
        try:
            result = await self._controller.reconcile(key)
        except Conflict as error:
            return self._overtaken(key, error)
        except NotFound:
            # What it was about is gone: look again, and never end here, or a loop that polls would stop for good.
            return self._backing_off(key)
        except Throttled as error:
            self._count("throttled")
            return Result(error.retry_after_s)
        except KerfError as error:
            logger(self._controller.name).warning("reconcile failed", key=key, error=str(error))
            return self._backing_off(key)
        except Exception as error:
            # Our own bug on one key must not end the loop for that key, nor for the others.
            report_bug(f"controller {self._controller.name} failed on {brief(key)}", error)
            return self._backing_off(key)
        self._failures.pop(key, None)
        self._refused_s.pop(key, None)
        self._count("done")
        return result

    def _overtaken(self, key: str, error: Conflict) -> Result:
        """The object is another by now: take note of it, and decide again in a moment."""
        self._count("conflict")
        if error.current is not None:
            self._note(error.current)
        since_s = self._refused_s.setdefault(key, passed_s())
        if passed_s() >= since_s + _REFUSED_S:
            self._refused_s[key] = math.inf
            log = logger(self._controller.name)
            log.warning("its writes meet a newer object again and again", key=key, seconds=_REFUSED_S, error=str(error))
        return Result(_FIRST_RETRY_S)

    def _count(self, outcome: str) -> None:
        self._outcomes[outcome].inc()

    def _backing_off(self, key: str) -> Result:
        self._count("failed")
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return Result(min(_LAST_RETRY_S, _FIRST_RETRY_S * 2 ** min(failures - 1, _MOST_DOUBLINGS)))

    def _enqueue_at(self, key: str, when_s: float) -> None:
        if key in self._due and self._due[key] <= when_s:
            return
        self._due[key] = when_s

        def due() -> None:
            if self._due.get(key) == when_s:
                self.enqueue(key)

        self._clock.call_at(when_s, due)

    def stop(self) -> None:
        """Forget everything at once, as a crash would."""
        self._stopped = True
        for task in self._running.values():
            task.cancel()


class Runtime:
    """The controllers on one state, fed by one reader.

    The state follows the cluster from `start` on; the controllers act from `lead` to `follow`, so a replica that
    takes over has read everything already. They are made again each time: what they remember of an earlier lead, such
    as a decision that rests, is older than what another leader has done since.
    """

    def __init__(
        self,
        ports: Ports,
        state: ClusterState,
        controllers: Callable[[], Iterable[Controller]],
        dry_run: Callable[[], Iterable[Controller]] = tuple,
    ) -> None:
        self._ports, self._state = ports, state
        self._controllers, self._dry_run = controllers, dry_run
        self._workers: list[tuple[Controller, _Worker]] = []
        # What was said of objects that cannot be read, by kind and key; a follower keeps it for when it leads.
        self._misread: dict[tuple[str, str], str] = {}
        self._reading: asyncio.Task[None] | None = None
        self._is_stopped = False

    @property
    def state(self) -> ClusterState:
        """The cluster as it is known here; for reading only."""
        return self._state

    def start(self) -> None:
        """Begin to read on the running loop."""
        self._reading = self._spawn(self._read(), "state")

    def lead(self, *, is_dry_run: bool = False) -> None:
        """Let the controllers act, or those of a dry run: on all that is known, and on each change from now on."""
        self.follow()
        leading = self._dry_run() if is_dry_run else self._controllers()
        self._workers = [(each, _Worker(each, self._ports.clock, self._state.note)) for each in leading]
        for (kind, key), why in self._misread.items():
            self.misread(kind, key, why)
        if self._state.is_synced:
            self._dispatch(Synced(), None)

    def misread(self, kind: str, key: str, why: str) -> None:
        """Say on an object that it cannot be read, now or when this replica leads."""
        self._misread[kind, key] = why
        if self._workers:
            self._ports.recorder.record(events.not_understood(kind, key, why))

    def follow(self) -> None:
        """Stop the controllers at once, wherever they are; go on reading."""
        for _, worker in self._workers:
            worker.stop()
        self._workers = []

    def stop(self) -> None:
        """End at once, wherever everything is."""
        self._is_stopped = True
        if self._reading is not None:
            self._reading.cancel()
        self.follow()

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> "asyncio.Task[None]":
        return asyncio.get_running_loop().create_task(work, name=name)

    async def _read(self) -> None:
        try:
            await self._follow()
        except Exception as error:
            # Without events the state would freeze and decisions go on: read everything again.
            report_bug("reading the cluster failed", error)
            again_s = self._ports.clock.now_s() + _FIRST_RETRY_S
            self._ports.clock.call_at(again_s, self._read_again)

    def _read_again(self) -> None:
        if not self._is_stopped:
            self._reading = self._spawn(self._read(), "state")

    async def _follow(self) -> None:
        async for report in self._ports.reader.events():
            for event in self._state.relist(report) if isinstance(report, Relisted) else (report,):
                self._take(event)

    def _take(self, event: Event) -> None:
        named = ("", "") if isinstance(event, Synced) else key_of(event.value)
        previous = None if isinstance(event, Synced) else self._state.find(*named)
        is_news = True
        try:
            is_news = self._state.apply(event)
        except DecodeError as error:
            # One bad object must not stop decisions about the others: its last good form stays.
            logger("state").warning("object left as it was", error=str(error))
            self.misread(*named, str(error))
        else:
            self._misread.pop(named, None)
        if self._state.is_synced and is_news:
            self._dispatch(event, previous)

    def _dispatch(self, event: Event, previous: Watched | None) -> None:
        # Nothing is decided on a half-read cluster: until Synced, events only fill the state.
        for controller, worker in self._workers:
            for key in controller.keys(event, previous):
                worker.enqueue(key)


def report_bug(message: str, error: Exception) -> None:
    """Hand an unexpected exception to the loop's handler: the simulator stops, a cluster's log gets its traceback."""
    asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})
