"""Follow one resource: list it, watch it from there, and tell what changed, for ever and exactly once.

Everything on the way may fail: a watch ends, falls silent, is cut inside an object or learns that its version is
compacted away. What a reader must never see then is a gap (a change that is not reported) or a phantom (a deletion that
did not happen). Both come from taking the stream for the truth; here the truth is the mirror, what was last reported of
each object. A list, however it became necessary, is only compared with it.
"""

import asyncio
import gc
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from kerf.errors import ApiError, DecodeError
from kerf.kube.client import Forbidden, Gone, Invalid, KubeClient, TooManyRequests, Unreachable, error_of
from kerf.kube.health import ResourceHealth
from kerf.kube.resources import Access, Resource
from kerf.manifests.live import Identity, WatchEvent, decode_event, decode_list, identity_of, status_of
from kerf.model.snapshot import Deleted, Event, Relisted, Report, Upserted, Watched, key_of
from kerf.ports import NotFound
from kerf.telemetry import logger

_PATIENCE = 5
"""Failures in a row after which a version is no longer trusted, and an optional resource no longer waited for."""

Decode = Callable[[msgspec.Raw, str, str], Watched | None]
"""(object, kind, apiVersion) -> model value; None for what the model does not follow. May raise anything."""
Tell = Callable[[Sequence[Report]], Awaitable[None]]
Undecodable = Callable[[Resource, str, str, str, Exception], None]
"""(resource, namespace, name, uid, error): this form of the object cannot be read, its last good form stays."""


@dataclass(frozen=True, slots=True)
class FollowedResource:
    """A resource and the accesses that following it takes; an access to one name follows that object only."""

    listing: Access
    watching: Access
    is_required: bool = False

    @property
    def resource(self) -> Resource:
        """The resource, as the API serves it."""
        return self.listing.resource

    @property
    def selector(self) -> dict[str, str]:
        """The parameters that limit it to the one name; a role with resourceNames allows nothing wider."""
        return {"fieldSelector": f"metadata.name={self.listing.names[0]}"} if self.listing.names else {}


@dataclass(frozen=True, slots=True)
class Pace:
    """How often and how long, in seconds, and where time and chance come from."""

    page: int = 500
    silence_s: float = 75
    watch_s: tuple[int, int] = (240, 300)
    first_backoff_s: float = 0.2
    most_backoff_s: float = 30
    missing_s: float = 30
    now_s: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random

    def spread(self, wait_s: float) -> float:
        """Between a half and the whole of it, so those who failed together do not return together."""
        return wait_s * (0.5 + self.chance() / 2)


class Backoff:
    """How long to wait after a failure: twice as long each time, until something has gone well."""

    def __init__(self, pace: Pace) -> None:
        self._pace, self.failures = pace, 0

    def reset(self) -> None:
        """An event was decoded. The clean end of a watch proves nothing: a broken proxy ends them all cleanly."""
        self.failures = 0

    def next_s(self) -> float:
        """The next wait."""
        # The exponent is bounded: a server may be away for days.
        wait_s = min(self._pace.most_backoff_s, self._pace.first_backoff_s * 2 ** min(self.failures, 30))
        self.failures += 1
        return self._pace.spread(wait_s)


class Lines:
    """Whole lines out of chunks that are cut anywhere; linear in their length, however long a line is."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes. What is never completed is never given."""
        head, *tail = chunk.split(b"\n")
        self._begun.append(head)
        if not tail:
            return []
        whole = [b"".join(self._begun), *tail[:-1]]
        self._begun = [tail[-1]]
        return [line for line in whole if line]


class _Entry(msgspec.Struct, gc=False):
    """What is known of one object: the version seen last, the value last reported, and the list that saw it last.

    The value is None when nothing was reported of it; it is older than the version when that one cannot be decoded.
    """

    uid: str
    version: str
    value: Watched | None
    round: int


class Mirror:
    """What was last reported of each object of one resource; says which events a page or a change makes of it.

    Versions are compared for equality only: their order is the server's business.
    """

    def __init__(self, resource: Resource, decode: Decode, on_undecodable: Undecodable) -> None:
        self._resource, self._decode, self._on_undecodable = resource, decode, on_undecodable
        self._entries: dict[str, _Entry] = {}
        self._round, self._is_whole = 0, False

    def forget_versions(self) -> None:
        """Tell everything again at the next list: a new reader listens, which may have lost events."""
        for held in self._entries.values():
            held.version = ""

    def begin(self) -> None:
        """A list begins."""
        self._round += 1

    def seen(self, raw: msgspec.Raw) -> tuple[Event, ...]:
        """The events of an object as it is now: none when this version was reported already."""
        meta = self._identified(raw)
        if meta is None:
            return ()
        key = _key(meta)
        held = self._entries.get(key)
        if held is not None and held.uid == meta.uid:
            held.round = self._round
            if held.version == meta.resource_version:
                return ()
            held.version = meta.resource_version
            return self._changed(held, raw, meta)
        # Made again under its name: another object, even if no deletion was seen.
        gone = () if held is None or held.value is None else (Deleted(held.value),)
        held = _Entry(meta.uid, meta.resource_version, None, self._round)
        events = gone + self._changed(held, raw, meta)
        self._entries[key if held.value is None else _one(key, key_of(held.value)[1])] = held
        return events

    def gone(self, raw: msgspec.Raw) -> tuple[Event, ...]:
        """The events of an object that was deleted: with the form last reported, since its very last may be
        unreadable."""
        meta = self._identified(raw)
        held = self._entries.pop(_key(meta), None) if meta is not None else None
        return () if held is None or held.value is None else (Deleted(held.value),)

    def relisted(self, version: str) -> tuple[Relisted, ...]:
        """That the list which now ends was whole. Of the first one nothing: no writes came before it."""
        was_whole, self._is_whole = self._is_whole, True
        return (Relisted(self._resource.kind, version),) if was_whole else ()

    def vanished(self) -> list[Event]:
        keys = [key for key, held in self._entries.items() if held.round != self._round]
        values = [self._entries.pop(key).value for key in keys]
        return [Deleted(value) for value in values if value is not None]

    def _changed(self, held: _Entry, raw: msgspec.Raw, meta: Identity) -> tuple[Event, ...]:
        try:
            value = self._decode(raw, self._resource.kind, self._resource.api_version)
        except Exception as error:
            # Any user may write an object, and whatever one of them does to a decoder must not hide the others.
            self._refuse(meta, error)
            return ()
        last, held.value = held.value, value
        if value is not None:
            held.uid = _one(held.uid, getattr(value, "uid", ""))
            held.version = _one(held.version, getattr(value, "resource_version", ""))
            return (Upserted(value),)
        return () if last is None else (Deleted(last),)

    def _identified(self, raw: msgspec.Raw) -> Identity | None:
        try:
            return identity_of(raw)
        except DecodeError as error:
            self._refuse(Identity("", "", "", ""), error)
            return None

    def _refuse(self, meta: Identity, error: Exception) -> None:
        logger("reader").warning(
            "object left as it was",
            resource=str(self._resource),
            object=_key(meta),
            error=str(error),
        )
        self._on_undecodable(self._resource, meta.namespace, meta.name, meta.uid, error)


def _one(text: str, other: str) -> str:
    """`other` where the two are equal: what is held twice of 100,000 pods is one text, and not two."""
    return other if other == text else text


def _key(meta: Identity) -> str:
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class Reflector:
    """The loop of one resource. `settled` is called after the first list, and when there is none to wait for."""

    def __init__(
        self,
        client: KubeClient,
        followed: FollowedResource,
        mirror: Mirror,
        tell: Tell,
        settled: Callable[[], Awaitable[None]],
        pace: Pace,
    ) -> None:
        self._client, self._followed, self._mirror = client, followed, mirror
        self._tell, self._settled, self._pace = tell, settled, pace
        self._backoff = Backoff(pace)
        self._version = ""
        self._lists = 0
        self._heard_s = self._began_s = pace.now_s()
        # Since when there is no watch; None while there is one.
        self._lost_s: float | None = None
        self._missing = self._last_error = ""
        self.is_synced = False

    @property
    def is_settled(self) -> bool:
        """Whether it need not be waited for: it is listed, or it is optional and cannot be had."""
        return self.is_synced or (bool(self._missing) and not self._followed.is_required)

    def health(self) -> ResourceHealth:
        """As of now."""
        return ResourceHealth(
            resource=self._followed.resource,
            is_required=self._followed.is_required,
            is_synced=self.is_synced,
            missing=self._missing,
            silent_s=max(0.0, self._pace.now_s() - self._heard_s),
            lost_s=0.0 if self._lost_s is None else max(0.0, self._pace.now_s() - self._lost_s),
            relists=max(0, self._lists - 1),
            last_error=self._last_error,
        )

    async def run(self) -> None:
        """List and watch; ends only by cancellation."""
        while True:
            self._began_s = self._pace.now_s()
            try:
                if not self._version:
                    await self._list()
                self._began_s = self._pace.now_s()
                await self._watch()
                wait_s = self._backoff.next_s()
            except (ApiError, DecodeError) as error:
                wait_s = self._failed(error)
            except Exception as error:
                # Our own bug must not end the loop; a list sets right what it has left behind.
                logger("reader").error("following failed", resource=str(self._followed.resource), exc_info=error)
                self._version = ""
                wait_s = self._failed(error)
            if self._lost_s is None:
                self._lost_s = self._pace.now_s()
            if self.is_settled and not self.is_synced:
                await self._settled()
            # The wait counts from the beginning of what has failed: what held for minutes is tried again at once.
            await asyncio.sleep(max(0.0, wait_s - (self._pace.now_s() - self._began_s)))

    def _failed(self, error: Exception) -> float:
        """Note the error; how long to wait, in seconds, counted from the beginning of what has failed."""
        last_error, self._last_error = self._last_error, str(error) or type(error).__name__
        lasted_s = self._pace.now_s() - self._began_s
        is_missing = isinstance(error, Forbidden | NotFound)
        if last_error != self._last_error:
            log = logger("reader").bind(resource=str(self._followed.resource))
            if isinstance(error, NotFound) and not self._followed.is_required:
                # Every cluster has the NodeClasses of its own cloud only.
                log.info("kind not installed")
            else:
                (log.warning if is_missing else log.info)("cannot be followed", error=self._last_error)
        if is_missing:
            # What was reported stays: an API server that starts, or a role that is fixed, answers like this for a
            # while, and nothing would be worse than to take all claims for deleted.
            self._missing, self._version = self._last_error, ""
            return lasted_s + self._pace.spread(self._pace.missing_s)
        wait_s = self._backoff.next_s()
        is_hopeless = self._backoff.failures >= _PATIENCE
        if is_hopeless or isinstance(error, Gone | Invalid | DecodeError):
            self._version = ""
        if is_hopeless and not (self.is_synced or self._followed.is_required):
            self._missing = self._last_error
        return max(wait_s, lasted_s + error.retry_after_s) if isinstance(error, TooManyRequests) else wait_s

    async def _list(self) -> None:
        """Tell what a list shows. Raises ApiError."""
        for _ in range(2):
            try:
                await self._list_by(self._pace.page)
                return
            except Gone as error:
                logger("reader").info("list expired", resource=str(self._followed.resource), error=str(error))
        # Pages are compacted away faster than they are read: only all in one piece is sure to come.
        await self._list_by(None)

    async def _list_by(self, page_size: int | None) -> None:
        self._mirror.begin()
        params: dict[str, str | int] = {**self._followed.selector}
        if page_size is not None:
            params["limit"] = page_size
        version = ""
        while True:
            answer = await self._client.call(self._followed.listing, params=params)
            # A list that goes on for minutes is no watch, and yet the server answers.
            self._heard_s = self._lost_s = self._pace.now_s()
            with _collector_off():
                page = decode_list(answer)
                if not page.resource_version:
                    # Anything in JSON would else pass for an empty list, and so for the deletion of all there is.
                    raise DecodeError("metadata.resourceVersion", "the version of a list", page.resource_version)
                events = [event for raw in page.items for event in self._mirror.seen(raw)]
            del answer
            await self._tell(events)
            # The first page's: what a later one would add to it is then seen by the watch.
            version = version or page.resource_version
            if not page.continue_token:
                break
            params["continue"] = page.continue_token
        await self._tell([*self._mirror.vanished(), *self._mirror.relisted(version)])
        self._version, self._lists = version, self._lists + 1
        if not self.is_synced:
            self.is_synced = True
            await self._settled()

    async def _watch(self) -> None:
        """Tell what a watch shows, until the server ends it. Raises ApiError."""
        silence_s, (shortest_s, longest_s) = self._pace.silence_s, self._pace.watch_s
        params: dict[str, str | int] = {
            **self._followed.selector,
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": shortest_s + int((longest_s - shortest_s) * self._pace.chance()),
        }
        opened_s = None
        try:
            async with self._client.watch(self._followed.watching, params=params, silence_s=silence_s) as chunks:
                opened_s = self._heard_s = self._pace.now_s()
                self._lost_s = None
                self._missing = self._last_error = ""
                lines = Lines()
                async for chunk in chunks:
                    self._heard_s = self._pace.now_s()
                    for line in lines.feed(chunk):
                        await self._take(decode_event(line))
        except Unreachable:
            # Silence is no error: a server has no bookmarks to send of a kind of which it has seen no event yet.
            if opened_s is None or self._pace.now_s() - self._heard_s < silence_s * 0.9:
                raise
        finally:
            if opened_s is not None and self._pace.now_s() - opened_s >= self._pace.most_backoff_s:
                # What held for so long has worked, although it may have reported nothing.
                self._backoff.reset()

    async def _take(self, event: WatchEvent) -> None:
        if event.type == "ERROR":
            status = status_of(event.object)
            retry_after = None if status.retry_after_s is None else str(status.retry_after_s)
            raise error_of(self._followed.watching, status.code, bytes(event.object), retry_after)
        if event.type in ("ADDED", "MODIFIED"):
            await self._tell(self._mirror.seen(event.object))
        elif event.type == "DELETED":
            await self._tell(self._mirror.gone(event.object))
        self._version = identity_of(event.object).resource_version or self._version
        self._backoff.reset()


@contextmanager
def _collector_off() -> Iterator[None]:
    """No garbage collection meanwhile: what a page makes is kept, and looking for garbage in it triples the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
