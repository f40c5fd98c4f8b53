"""An API server in little: lists in pages, watches from a log, and all that goes wrong with real ones, on demand.

It keeps what an honest one must keep (one version for all objects, a log that is compacted from its beginning), so
that whoever follows it can be held to what it knows at the end.
"""

import asyncio
import functools
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ParamSpec

import aiohttp
from aiohttp import web

from kerf.kube.client import ClusterTarget, Credentials, KubeClient
from kerf.kube.reflector import Pace
from kerf.kube.resources import Resource

Object = dict[str, Any]
P = ParamSpec("P")
PACE = Pace(page=3, silence_s=0.4, watch_s=(1, 1), first_backoff_s=0.01, most_backoff_s=0.04, missing_s=0.05)
"""As in production, a hundred times faster."""
SOON_S = 20.0


def on_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on an event loop of its own."""

    @functools.wraps(test)
    def run(*arguments: P.args, **named: P.kwargs) -> None:
        asyncio.run(test(*arguments, **named))

    return run


async def until(holds: Callable[[], object]) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(SOON_S):
        while not holds():
            await asyncio.sleep(0.002)


@dataclass(frozen=True)
class Refusal:
    """An answer that is none."""

    status: int
    message: str = "refused"
    retry_after: str = ""
    in_stream: bool = False

    def response(self) -> web.Response:
        """As the API server words it; without a message as a proxy does."""
        if self.in_stream:
            return web.Response(body=Change(0, "ERROR", "", status_of(self.status, self.message)).line)
        headers = {"Retry-After": self.retry_after} if self.retry_after else {}
        if not self.message:
            return web.Response(status=self.status, text="<html>\nBad gateway\n</html>\n", headers=headers)
        return web.json_response(status_of(self.status, self.message), status=self.status, headers=headers)


def status_of(code: int, message: str) -> Object:
    """A Status, as refusals and ERROR events carry it."""
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}


@dataclass(frozen=True)
class Change:
    """One entry of the log."""

    version: int
    type: str
    path: str
    object: Object

    @property
    def line(self) -> bytes:
        """As a watch shows it."""
        return json.dumps({"type": self.type, "object": self.object}).encode() + b"\n"


@dataclass
class FakeServer:
    """Objects by collection path; faults are plain fields that a test sets.

    `scripts` answer the next requests of (verb, path), None as usual; `standing` those of a path until taken back.
    `chunk` cuts what a watch sends into so many bytes; `bookmark_s` is how often an idle one says that it lives.
    `impatient` counts requests that came before the time for which a Retry-After had asked.
    """

    version: int = 100
    compacted: int = 0
    log: list[Change] = field(default_factory=list)
    objects: dict[str, dict[str, Object]] = field(default_factory=dict)
    scripts: dict[tuple[str, str], deque[Refusal | None]] = field(default_factory=dict)
    standing: dict[str, Refusal] = field(default_factory=dict)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    impatient: int = 0
    is_silent: bool = False
    tells_gone_in_stream: bool = True
    chunk: int = 1 << 16
    bookmark_s: float = 0.05
    uids_deleted: set[str] = field(default_factory=set)
    _cuts: int = 0
    _closed_until_s: dict[tuple[str, str], float] = field(default_factory=dict)
    _pages: dict[str, tuple[int, list[Object]]] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _open: set[web.StreamResponse] = field(default_factory=set)

    # What tests do to it.

    def put(self, resource: Resource, name: str, **parts: Any) -> Object:
        """Create an object, or update it: `parts` are its fields beside the metadata; `labels` are its labels."""
        path = resource.path()
        held = self.objects.setdefault(path, {}).get(name)
        self.version += 1
        meta = {
            "name": name,
            "uid": held["metadata"]["uid"] if held else f"{name}-{self.version}",
            "resourceVersion": str(self.version),
            "labels": parts.pop("labels", {}),
        }
        if resource.is_namespaced:
            meta["namespace"] = "default"
        made = {"metadata": meta, **parts}
        self.objects[path][name] = made
        # The items of a list have no kind of their own; the object of an event has.
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **made}
        self._note("MODIFIED" if held else "ADDED", path, full)
        return made

    def remove(self, resource: Resource, name: str) -> None:
        """Delete an object at once."""
        path = resource.path()
        gone = self.objects[path].pop(name)
        self.version += 1
        self.uids_deleted.add(gone["metadata"]["uid"])
        meta = {**gone["metadata"], "resourceVersion": str(self.version)}
        self._note(
            "DELETED", path, {"apiVersion": resource.api_version, "kind": resource.kind, **gone, "metadata": meta}
        )

    def compact(self) -> None:
        """Forget the log, and every page that somebody may still want."""
        self.compacted = self.version
        self.log.clear()
        self._pages.clear()

    def cut(self) -> None:
        """End every watch in the middle of an object, as a server that is killed does."""
        self._cuts += 1
        self._wake()

    def script(self, verb: str, resource: Resource, *answers: Refusal | None) -> None:
        """Answer the next requests like this; None: as usual."""
        self.scripts.setdefault((verb, resource.path()), deque()).extend(answers)

    def asked(self, verb: str, resource: Resource) -> list[dict[str, str]]:
        """The parameters of all requests of that kind, in order."""
        return [query for what, path, query in self.requests if (what, path) == (verb, resource.path())]

    @property
    def watches(self) -> int:
        """How many are open."""
        return len(self._open)

    # How it answers.

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Whatever was asked."""
        query, path = dict(request.query), request.path
        verb = "watch" if query.get("watch") == "true" else "list"
        self.requests.append((verb, path, query))
        self.impatient += time.monotonic() < self._closed_until_s.get((verb, path), 0)
        scripted = self.scripts.get((verb, path))
        if scripted and (refusal := scripted.popleft()) is not None:
            self._closed_until_s[verb, path] = time.monotonic() + float(refusal.retry_after or 0)
            return refusal.response()
        if path in self.standing:
            return self.standing[path].response()
        return await self._watch(request, query) if verb == "watch" else self._list(path, query)

    def _list(self, path: str, query: dict[str, str]) -> web.Response:
        version, items = self.version, sorted(self.objects.get(path, {}).values(), key=_name)
        wanted = query.get("fieldSelector", "").removeprefix("metadata.name=")
        if token := query.get("continue"):
            if token not in self._pages:
                return Refusal(410, "The provided continue parameter is too old").response()
            version, items = self._pages[token]
        elif wanted:
            items = [item for item in items if _name(item) == wanted]
        limit = int(query.get("limit", 0)) or len(items)
        meta = {"resourceVersion": str(version)}
        if items[limit:]:
            meta["continue"] = f"page-{len(self.requests)}"
            self._pages[meta["continue"]] = (version, items[limit:])
        return web.json_response({"kind": "SomeList", "metadata": meta, "items": items[:limit]})

    async def _watch(self, request: web.Request, query: dict[str, str]) -> web.StreamResponse:
        seen, cuts = int(query["resourceVersion"]), self._cuts
        if seen < self.compacted and not self.tells_gone_in_stream:
            return Refusal(410, "too old resource version").response()
        response = web.StreamResponse()
        await response.prepare(request)
        self._open.add(response)
        try:
            ends_s = time.monotonic() + int(query["timeoutSeconds"])
            while time.monotonic() < ends_s:
                if cuts != self._cuts:
                    await response.write(b'{"type":"ADDED","object":{"metadata":{"name":"half')
                    if request.transport is not None:
                        request.transport.abort()
                    break
                if seen < self.compacted:
                    await self._send(response, Change(0, "ERROR", "", status_of(410, "too old resource version")).line)
                    break
                seen = await self._told(response, request.path, seen)
        except ConnectionError:
            pass
        finally:
            self._open.discard(response)
        return response

    async def _told(self, response: web.StreamResponse, path: str, seen: int) -> int:
        """Send what is new, else wait for it and send a bookmark; the version up to which all is sent."""
        news = [] if self.is_silent else [c for c in self.log if c.path == path and c.version > seen]
        if news:
            await self._send(response, b"".join(change.line for change in news))
            return news[-1].version
        version, is_silent = self.version, self.is_silent
        try:
            await asyncio.wait_for(self._changed.wait(), self.bookmark_s)
        except TimeoutError:
            if not is_silent and version == self.version:
                mark = {"kind": "Any", "metadata": {"resourceVersion": str(version)}}
                await self._send(response, Change(0, "BOOKMARK", "", mark).line)
                return version
        return seen

    async def _send(self, response: web.StreamResponse, text: bytes) -> None:
        size = self.chunk
        for begin in range(0, len(text), size):
            await response.write(text[begin : begin + size])
            await asyncio.sleep(0)

    def _note(self, type_: str, path: str, obj: Object) -> None:
        self.log.append(Change(self.version, type_, path, obj))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _name(obj: Object) -> str:
    name: str = obj["metadata"]["name"]
    return name


@dataclass
class _Anonymous:
    """The configuration of a client that need not say who it is."""

    host: str
    proxy: str = ""
    proxy_headers: str = ""
    tls_server_name: str = ""
    username: str = ""

    async def auth_settings(self) -> dict[str, Any]:
        return {}


Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def connected(answer: Answer) -> AsyncIterator[KubeClient]:
    """A server that answers so, on a port of its own, and a connection to it; all gone afterwards."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        async with aiohttp.ClientSession() as session:
            yield KubeClient(session, Credentials(_Anonymous(f"http://{host}:{port}"), ClusterTarget()))
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serving(server: FakeServer) -> AsyncIterator[KubeClient]:
    """That server, and a connection to it."""
    async with connected(server.answer) as client:
        try:
            yield client
        finally:
            server.cut()
