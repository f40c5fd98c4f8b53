"""Stands between Kerf and the API server, and lets go wrong on the way what goes wrong in real clusters.

A test that kills Kerf at a time hits some write or none. Here a request is held in the hand while its sender dies,
before the server has heard of it or before the sender has heard the answer; so every kind of write can be tried, and
neither speed nor luck decides. The same place can turn everybody away, cut watches inside an object, or be deaf.
"""

import asyncio
import json
import os
import signal
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp
from aiohttp import web

from tools.controlplane.server import ControlPlane

BEFORE, AFTER = "before", "after"
_VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}
_READS = ("get", "list", "watch")
_TRANSPORTS_CLOSE_S = 0.3
_NOT_PASSED_ON = frozenset({"host", "content-length", "transfer-encoding", "connection"})


@dataclass(frozen=True)
class Asked:
    """One request, as a role would grant it: `create`, `pods/eviction`.

    `fields` are what a patch writes: paths such as `status.nodeName`, the keys below such paths, those of taints, and
    conditions as `Ready=True`. What it takes away ends with `=null`.
    """

    verb: str
    resource: str
    name: str = ""
    fields: frozenset[str] = frozenset()

    @property
    def is_write(self) -> bool:
        """Whether it may change something."""
        return self.verb not in _READS

    def is_a(self, kind: str) -> bool:
        """Whether it is of a kind such as `patch nodes: spec.taints=null`, which names some of its fields."""
        verb, resource, *fields = kind.replace(":", "").split()
        return (verb, resource) == (self.verb, self.resource) and self.fields.issuperset(fields)

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}: {' '.join(sorted(self.fields))}"


def asked(method: str, path: str, is_watch: bool, body: bytes) -> Asked:
    """What a request asks for, by its path and its body."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    plural, name, below = (*parts, "", "", "")[:3]
    verb = _VERBS.get(method) or ("watch" if is_watch else "get" if name else "list")
    resource = f"{plural}/{below}" if below else plural
    return Asked(verb, resource, name, frozenset(_written(json.loads(body))) if verb == "patch" else frozenset())


def _written(patch: dict[str, Any] | list[dict[str, Any]]) -> Iterator[str]:
    if isinstance(patch, list):
        # A JSON patch says what it does where: `remove=/spec/schedulingGates/0`.
        yield from (f"{each['op']}={each['path']}" for each in patch)
        return
    for part, below in patch.items():
        for name, value in below.items() if isinstance(below, dict) else ():
            yield f"{part}.{name}" if value is not None else f"{part}.{name}=null"
            if name == "conditions":
                yield from (f"{each['type']}={each['status']}" for each in value)
            elif isinstance(value, dict):
                yield from (key if held is not None else f"{key}=null" for key, held in value.items())
            elif isinstance(value, list):
                yield from (each["key"] for each in value if isinstance(each, dict) and "key" in each)


@dataclass
class Kill:
    """Kill Kerf at the next write of a kind, `before` or `after` it has reached the server; `struck` is that write.

    `skips` of them go well before.
    """

    kind: str
    when: str
    struck: Asked | None = None
    skips: int = 0


@dataclass
class Faults:
    """What is wrong just now. Written by the test's thread, read for each request by the interposer's."""

    kills: list[Kill] = field(default_factory=list)
    refused_until_s: float = 0
    """On the monotonic clock: until then everything is answered with 429."""
    is_deaf: bool = False
    """Connections are closed without an answer, watches as well."""
    cut_after: int = 0
    """Each watch is cut inside the piece that comes after so many; 0 for none."""
    delay_s: float = 0
    answer_s: Callable[[Asked], float] = lambda asked: 0.0
    """How much later than the server gives it the answer to a request comes. Watches are as fast as ever."""


class Interposer:
    """An API server for Kerf alone: plain HTTP on loopback, in a thread of its own, in front of a control plane's.

    `seen` has all requests in their order; `pid` is whom to kill; `refused` and `cuts` count what was done.
    """

    def __init__(self, plane: ControlPlane, user: str = "kerf") -> None:
        self._plane, self._user = plane, user
        self.pid: int | None = None
        self.faults = Faults()
        self.seen: list[Asked] = []
        self.refused = self.cuts = 0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="interposer", daemon=True)

    def __enter__(self) -> "Interposer":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(30)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    def kubeconfig(self) -> Path:
        """The user's own, with our address instead of the server's."""
        content = json.loads(self._plane.kubeconfig(self._user).read_text(encoding="utf-8"))
        content["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self.port}"}
        path = self._plane.folder / "interposed.kubeconfig"
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    async def _start(self) -> None:
        trust = ssl.create_default_context(cafile=str(self._plane.ca_file))
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trust, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        await self._runner.cleanup()
        # Answers that were to come late have no hearer any more.
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await self._session.close()
        # aiohttp does not wait until the transports of TLS connections have closed.
        await asyncio.sleep(_TRANSPORTS_CLOSE_S)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        wanted = asked(request.method, request.path, "watch" in request.query, body)
        self.seen.append(wanted)
        if self.faults.delay_s:
            await asyncio.sleep(self.faults.delay_s)
        if time.monotonic() < self.faults.refused_until_s:
            self.refused += 1
            status = {"kind": "Status", "apiVersion": "v1", "code": 429, "reason": "TooManyRequests"}
            return web.json_response(status, status=429, headers={"Retry-After": "1"})
        try:
            if wanted.verb == "watch":
                return await self._stream(request)
            # Whoever hangs up has sent his request all the same.
            return await asyncio.shield(self._pass(request, wanted, body))
        except (aiohttp.ClientError, OSError):
            return self._hang_up(request)

    async def _pass(self, request: web.Request, wanted: Asked, body: bytes) -> web.StreamResponse:
        kill = self._meant(wanted)
        if self.faults.is_deaf or (kill is not None and kill.when == BEFORE):
            self._strike(kill, wanted)
            return self._hang_up(request)
        async with self._request(request, body) as answer:
            content = await answer.read()
            if kill is not None or self.faults.is_deaf:
                self._strike(kill, wanted)
                return self._hang_up(request)
            await asyncio.sleep(self.faults.answer_s(wanted))
            return web.Response(status=answer.status, body=content, headers=_passed_on(answer.headers))

    def _meant(self, wanted: Asked) -> Kill | None:
        kill = next((each for each in self.faults.kills if each.struck is None and wanted.is_a(each.kind)), None)
        if kill is not None and kill.skips > 0:
            kill.skips -= 1
            return None
        return kill

    def _strike(self, kill: Kill | None, wanted: Asked) -> None:
        if kill is not None and self.pid is not None:
            kill.struck = wanted
            os.kill(self.pid, signal.SIGKILL)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        if self.faults.is_deaf:
            return self._hang_up(request)
        async with self._request(request, b"") as answer:
            response = web.StreamResponse(status=answer.status, headers=_passed_on(answer.headers))
            await response.prepare(request)
            pieces = 0
            async for chunk in answer.content.iter_any():
                if self.faults.is_deaf:
                    return self._hang_up(request)
                pieces += 1
                if 0 < self.faults.cut_after < pieces:
                    self.cuts += 1
                    await response.write(chunk[: len(chunk) // 2])
                    # Every second time with an end as it should be, as a proxy would make it.
                    return response if self.cuts % 2 else self._hang_up(request)
                await response.write(chunk)
            return response

    def _request(self, request: web.Request, body: bytes) -> Any:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_PASSED_ON}
        url = self._plane.url + request.path_qs
        return self._session.request(request.method, url, headers=headers, data=body or None)

    def _hang_up(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.close()
        return web.Response(status=500)


def _passed_on(headers: Any) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _NOT_PASSED_ON}
