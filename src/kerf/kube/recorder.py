"""Posts the events that people read with `kubectl describe` and `kubectl get events`.

Controllers tell what happens while they decide, and must not wait for it to be written: thirty thousand pods that
nothing can hold are thirty thousand events within a second. So they wait in a queue for each namespace, and one task
posts one of each in turn: who floods one namespace keeps the events of no other waiting. All queues have limited room
together; where it is used up, the namespace with the most events loses its last one. What is lost is counted, and may
be reported again at once.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from kerf.errors import ApiError
from kerf.kube.client import KubeClient, TooManyRequests, Unauthorized, Unreachable
from kerf.kube.resources import DRY_RUN, EVENTS, RUN, access
from kerf.manifests.encode import event_object
from kerf.model.events import Occurrence
from kerf.ports import AlreadyExists, Clock
from kerf.telemetry import EVENTS_DROPPED, logger

CREATE_EVENT = access("create", EVENTS, by=(RUN, DRY_RUN))

UidOf = Callable[[str, str], str | None]
"""The uid of the object of a kind and a key (`namespace/name` or name); None when it is not known."""
_NEWS_S = 600.0
"""What could not be posted for so long is of no use any more."""
_MOST_RETRY_S = 30.0
_MOST_MESSAGE = 1024
"""Characters; the newer API of events allows no more. A text may quote whatever an annotation says."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`room` for events that wait, how many are `remembered` so as not to be repeated, and the pause after a failure,
    which doubles up to half a minute."""

    room: int = 10_000
    remembered: int = 65_536
    first_retry_s: float = 1.0


@dataclass(frozen=True, slots=True)
class _Queued:
    """An event that waits to be posted. Its object's uid was looked up at once: the object may be gone by then."""

    at_s: float
    uid: str | None
    digest: bytes
    occurrence: Occurrence


class _Turns:
    """Events that wait, by namespace: those of one in their order, and the namespaces in turn."""

    def __init__(self) -> None:
        # The next in turn is first. One that has had its turn goes behind the others.
        self._queues: dict[str, deque[_Queued]] = {}
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def put(self, queued: _Queued) -> None:
        self._queues.setdefault(_namespace_of(queued), deque()).append(queued)
        self._number += 1

    def take(self) -> _Queued:
        """The first of the namespace whose turn it is."""
        namespace = next(iter(self._queues))
        queue = self._queues.pop(namespace)
        self._number -= 1
        found = queue.popleft()
        if queue:
            self._queues[namespace] = queue
        return found

    def take_last(self) -> _Queued:
        """The last of the namespace with the most, the first by name of equal ones. Linear in namespaces."""
        namespace = min(self._queues, key=lambda each: (-len(self._queues[each]), each))
        self._number -= 1
        found = self._queues[namespace].pop()
        if not self._queues[namespace]:
            del self._queues[namespace]
        return found


def _namespace_of(queued: _Queued) -> str:
    """Of the object that it is about; empty for what lies in none."""
    return queued.occurrence.regards[1].rpartition("/")[0]


class KubeRecorder:
    """`kerf.ports.Recorder` over the Kubernetes API. `start` it on the running loop, and `close` it at the end.

    What was reported lately is remembered in memory only: after a restart things are said again. `dropped` counts the
    events that were never posted.
    """

    def __init__(self, client: KubeClient, clock: Clock, uid_of: UidOf, limits: Limits | None = None) -> None:
        self._client, self._clock, self._uid_of = client, clock, uid_of
        self._limits = limits or Limits()
        self._waiting = _Turns()
        self._has_more, self._is_idle = asyncio.Event(), asyncio.Event()
        self._is_idle.set()
        self._last_s: dict[bytes, float] = {}
        self._posting: asyncio.Task[None] | None = None
        self._is_closed = False
        self._is_losing = False
        self.dropped = 0

    def record(self, occurrence: Occurrence) -> None:
        """Post it soon, unless an equal one was recorded within its own period. Never waits, never raises."""
        now_s = self._clock.now_s()
        digest = blake2b("\0".join(occurrence.dedupe).encode(), digest_size=16).digest()
        last_s = self._last_s.get(digest)
        if last_s is not None and 0 <= now_s - last_s < occurrence.period_s:
            return
        uid = occurrence.uid or self._uid_of(*occurrence.regards)
        queued = _Queued(now_s, uid, digest, occurrence)
        self._remember(queued)
        if self._is_closed:
            self._drop(queued, "recorder closed")
            return
        self._waiting.put(queued)
        if len(self._waiting) > self._limits.room:
            self._drop(self._waiting.take_last(), "too many events of its namespace wait")
        self._has_more.set()
        self._is_idle.clear()

    def start(self) -> None:
        """Begin to post; what was recorded before is kept until then."""
        self._posting = asyncio.get_running_loop().create_task(self._post_all(), name="recorder")

    async def close(self, deadline_s: float = 5.0) -> None:
        """Take no more, post what waits for at most so many seconds, and end; what is left then is dropped."""
        self._is_closed = True
        if self._posting is not None:
            try:
                async with asyncio.timeout(deadline_s):
                    await self._is_idle.wait()
            except TimeoutError:
                pass
            self._posting.cancel()
            await asyncio.gather(self._posting, return_exceptions=True)
        while self._waiting:
            self._drop(self._waiting.take(), "recorder closed")
        self._is_idle.set()

    def _remember(self, queued: _Queued) -> None:
        # Taken out first, so the order of the keys is the order of the times and the oldest goes first.
        self._last_s.pop(queued.digest, None)
        self._last_s[queued.digest] = queued.at_s
        if len(self._last_s) > self._limits.remembered:
            del self._last_s[next(iter(self._last_s))]

    def _drop(self, queued: _Queued, why: str) -> None:
        self.dropped += 1
        EVENTS_DROPPED.inc()
        # It was not said, so it may be when it happens again.
        self._last_s.pop(queued.digest, None)
        if not self._is_losing:
            logger("recorder").warning("events are lost", reason=queued.occurrence.reason, error=why)
        self._is_losing = True

    async def _post_all(self) -> None:
        while True:
            if not self._waiting:
                self._has_more.clear()
                self._is_idle.set()
                await self._has_more.wait()
            queued = self._waiting.take()
            try:
                await self._post(queued)
                self._is_losing = False
            except asyncio.CancelledError:
                self._drop(queued, "recorder closed")
                raise
            except Exception as error:
                # Whatever is wrong with this one, the others are still to be posted.
                self._drop(queued, f"{type(error).__name__}: {error}")

    async def _post(self, queued: _Queued) -> None:
        """Try until it is posted, or old, or refused. Its name is its own, so a repetition makes no second one."""
        event = _event(queued)
        retry_s = self._limits.first_retry_s
        while True:
            try:
                await self._client.call(CREATE_EVENT, namespace=event["metadata"]["namespace"], body=event)
                return
            except AlreadyExists:
                return
            except ApiError as error:
                may_pass = isinstance(error, Unreachable | TooManyRequests | Unauthorized)
                if not may_pass or self._clock.now_s() - queued.at_s >= _NEWS_S:
                    raise
            await asyncio.sleep(retry_s)
            retry_s = min(_MOST_RETRY_S, retry_s * 2)


def _event(queued: _Queued) -> dict[str, Any]:
    event = event_object(queued.occurrence, queued.at_s)
    if queued.uid:
        # kubectl describe shows the events of this very object, not of another of its name.
        event["involvedObject"]["uid"] = queued.uid
    message = event["message"]
    if len(message) > _MOST_MESSAGE:
        event["message"] = message[: _MOST_MESSAGE - 3] + "..."
    return event
