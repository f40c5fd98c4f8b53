"""The proxy: an HTTP server of its own thread between boto3 and moto.

A call goes through the same stations: permissions, buckets, errors that a test has ordered, the work, the lost reply.
The clock is given: states, lag and buckets are tested without waiting.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

from aiohttp import web

from kerf.testing.faultproxy.buckets import ApiBuckets
from kerf.testing.faultproxy.calls import LOST, OK, ApiCall, Recorded, read_call
from kerf.testing.faultproxy.control import Control
from kerf.testing.faultproxy.ec2 import Ec2
from kerf.testing.faultproxy.events import EventSwitches
from kerf.testing.faultproxy.faults import AFTER, BEFORE, Faults
from kerf.testing.faultproxy.images import ImageTable
from kerf.testing.faultproxy.instances import InstanceTable
from kerf.testing.faultproxy.lookups import Lookups
from kerf.testing.faultproxy.needs import Needs
from kerf.testing.faultproxy.permissions import Permissions
from kerf.testing.faultproxy.services import Services
from kerf.testing.faultproxy.stock import Stock
from kerf.testing.faultproxy.upstream import Upstream
from kerf.testing.faultproxy.wire import EC2, CallRefused, WireReply, error_reply, listed, of_xml

T = TypeVar("T")
_HTML = WireReply(500, b"<!doctype html>\n<html lang=en><p>Internal Server Error</html>", "text/html")
_MAX_BODY = 64 * 1024 * 1024


class SteppedClock:
    """Seconds that pass only by `advance`."""

    def __init__(self, now_s: float = 1_767_596_400) -> None:
        self._now_s = now_s

    def __call__(self) -> float:
        """The time now."""
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now_s += seconds


class FaultProxy:
    """A cloud on loopback: `with FaultProxy(moto_url) as cloud`, then boto3 with `endpoint_url=cloud.url`.

    The switches are the methods of `stock`, `images`, `instances`, `services`, `faults`, `permissions`, `buckets` and
    `events`; they may be called from any thread. `calls` has every call in the order of the answers. One region, one
    account.
    """

    def __init__(
        self, moto: str, *, now_s: Callable[[], float] = time.time, region: str = "us-east-1", port: int = 0
    ) -> None:
        self._now_s, self._region, self._port = now_s, region, port
        self._upstream = Upstream(moto, region)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner | None = None
        self.url = ""
        self.queue = ""
        self.reset()

    def reset(self) -> None:
        """Forget everything: switches, instances, calls. moto is reset by itself."""
        self.stock, self.images = Stock(), ImageTable(self._now_s)
        self.instances, self.faults = InstanceTable(self._now_s), Faults()
        self.buckets = ApiBuckets(self._now_s)
        self.services = Services(self._upstream, self.stock, self.images)
        self.events = EventSwitches(self.instances, self._now_s, self._send)
        lookups = Lookups(self._upstream)
        self._needs = Needs(lookups, self.stock, self.instances, self._region)
        self.permissions = Permissions(self.faults, self._needs)
        self._ec2 = Ec2(self._upstream, lookups, self.stock, self.images, self.instances)
        self.calls: list[Recorded] = []

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._thread.start()
        self.url = self._run(self._open())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End; calls that are held are let go."""
        self.faults.release_all()
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def count(self, action: str) -> int:
        """How many calls of an action came."""
        return Counter(call.name.partition(":")[2] for call in self.calls)[action]

    def used(self) -> tuple[str, ...]:
        """All actions that the calls so far needed, by IAM's names, in order."""
        return tuple(sorted({name for call in self.calls for name in call.uses}))

    def _send(self, body: str) -> None:
        self._run(self._upstream.queue(self.queue, body))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _open(self) -> str:
        await self._upstream.open()
        app = web.Application(client_max_size=_MAX_BODY)
        control = Control(self)
        app.router.add_route("*", "/_faultproxy/{path:.*}", control.handle)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def _close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        await self._upstream.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        call = read_call(request.method, request.raw_path, request.headers, await request.read())
        reply = await self._answer(call)
        if reply is None:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        headers = {**reply.headers, "Content-Type": reply.content_type}
        return web.Response(status=reply.status, body=reply.body, headers=headers)

    async def _answer(self, call: ApiCall) -> WireReply | None:
        """The reply; None where it is lost."""
        action, faults = call.action, self.faults
        try:
            call = replace(call, needs=await self._needs.of(call))
            call = replace(call, refusals=self.permissions.check(call))
            refused = call.refusal(call.needs.own or call.refusals)
            if refused is not None:
                raise refused
            if call.protocol == EC2:
                self.buckets.take(call, _instances(call))
            faults.check_errors(action)
            if faults.takes_html(action):
                return self._record(call, "html", _HTML)
            if faults.loses(action, BEFORE):
                return self._record(call, LOST, None)
            if await faults.pause(call.held_as, BEFORE, call.access_key):
                return self._record(call, LOST, None)
            reply = await (self._ec2.answer(call) if call.protocol == EC2 else self.services.answer(call))
        except CallRefused as error:
            return self._record(call, error.code, error_reply(call.protocol, error))
        is_dropped = await faults.pause(call.held_as, AFTER, call.access_key)
        await asyncio.sleep(faults.next_delay_s(action))
        if is_dropped or faults.loses(action, AFTER):
            return self._record(call, LOST, None)
        return self._record(call, OK if reply.is_good else _code(reply), reply)

    def _record(self, call: ApiCall, outcome: str, reply: WireReply | None) -> WireReply | None:
        needs = call.needs.all
        uses = tuple(dict.fromkeys((call.name, *(need.action for need in needs))))
        refused, key = tuple(call.refusals), call.access_key
        self.calls.append(Recorded(call.name, self._now_s(), outcome, call.parameters, uses, needs, refused, key))
        return reply


def _instances(call: ApiCall) -> int:
    """How many instances the call is about, for the resource buckets."""
    if call.action == "RunInstances":
        return int(call.parameters.get("MaxCount", "1"))
    if call.action == "CreateFleet":
        return int(call.parameters.get("TargetCapacitySpecification", {}).get("TotalTargetCapacity", "1"))
    return len(listed(call.parameters, "InstanceId")) if call.action == "TerminateInstances" else 0


def _code(reply: WireReply) -> str:
    """The error code of moto's reply; the status where it has none, as for moto's own bugs."""
    if "xml" not in reply.content_type:
        return str(reply.status)
    errors = of_xml(reply.body).get("Errors")
    error = errors.get("Error") if isinstance(errors, dict) else None
    return str(error["Code"]) if isinstance(error, dict) and "Code" in error else str(reply.status)
