"""Who may write: the guard of every write, and the election that gives and takes the right to.

The clock of the guard is the test's own and is set like that of a process that was frozen; the loop's waits are real.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from kerf.kube.client import KubeClient
from kerf.kube.election import LEASE, Election, ElectionSettings, Leadership, NotLeading, karpenter_leader
from kerf.kube.resources import NODE_CLAIMS, NODES, PODS, Access
from tests.kube.fake_server import connected, on_loop, until

Object = dict[str, Any]
SETTINGS = ElectionSettings("kerf-system", LEASE, "us", lease_s=3, renew_s=2, retry_s=1)
WRITES = [
    Access("create", NODE_CLAIMS),
    Access("update", NODE_CLAIMS),
    Access("patch", NODE_CLAIMS),
    Access("patch", NODE_CLAIMS, "status"),
    Access("delete", NODE_CLAIMS),
    Access("create", PODS, "eviction"),
]


@dataclass
class Server:
    """One Lease, as the API keeps it; `before` is run ahead of each answer and may give one of its own."""

    lease: Object | None = None
    version: int = 1
    writes: list[str] = field(default_factory=list)
    is_away: bool = False
    before: Callable[[web.Request], Awaitable[web.Response | None]] | None = None

    def held_by(self, holder: str, **spec: Any) -> None:
        """Somebody writes the Lease."""
        self.version += 1
        self.lease = {
            "metadata": {"name": LEASE, "resourceVersion": str(self.version)},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3, "acquireTime": NOW, "renewTime": NOW, **spec},
        }

    @property
    def holder(self) -> str:
        """Who holds it."""
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Whatever was asked."""
        body = await request.text()
        if self.before is not None and (given := await self.before(request)) is not None:
            return given
        if self.is_away:
            assert request.transport is not None
            request.transport.abort()
        if "/leases" not in request.path:
            self.writes.append(f"{request.method} {request.path}")
            return web.json_response({})
        if request.method == "GET":
            return web.json_response(self.lease or _status(404), status=200 if self.lease else 404)
        return self._written(json.loads(body))

    def _written(self, lease: Object) -> web.Response:
        held = self.lease["metadata"]["resourceVersion"] if self.lease else None
        if lease["metadata"].get("resourceVersion") != held:
            return web.json_response(_status(409), status=409)
        self.version += 1
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self.version)}}
        return web.json_response(self.lease)


NOW = "2026-01-05T07:00:00.000000Z"


def _status(code: int) -> Object:
    return {"kind": "Status", "status": "Failure", "code": code, "message": "no"}


class Clock:
    """Monotonic seconds that stand still until a test moves them."""

    def __init__(self) -> None:
        self.at_s = 1000.0

    def __call__(self) -> float:
        """Seconds."""
        return self.at_s


@dataclass
class Race:
    """A candidate and what became of it."""

    clock: Clock
    leadership: Leadership
    election: Election
    told: list[str] = field(default_factory=list)


@asynccontextmanager
async def racing(client: KubeClient) -> AsyncIterator[Race]:
    """A candidate that competes until the test ends."""
    clock = Clock()
    leadership = Leadership(clock)
    race = Race(clock, leadership, Election(client, SETTINGS, leadership))
    work = asyncio.create_task(
        race.election.run(lambda: race.told.append("leads"), lambda: race.told.append("follows"))
    )
    try:
        yield race
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work


@pytest.mark.parametrize("access", WRITES, ids=lambda access: f"{access.verb} {access.resource}/{access.subresource}")
@on_loop
async def test_no_write_is_sent_after_the_deadline(access: Access) -> None:
    """Ten seconds count from before the renewal was sent; to the very deadline writes are made."""
    server, clock = Server(), Clock()
    leadership = Leadership(clock)
    async with connected(server.answer) as client:
        acting = client.guarded(leadership.check)
        leadership.extend(from_s=1000, duration_s=10)
        clock.at_s = 1009.9
        await acting.call(access, namespace="default", name="x", body={})
        assert 1 == len(server.writes)

        clock.at_s = 1010
        with pytest.raises(NotLeading):
            await acting.call(access, namespace="default", name="x", body={})
        assert 1 == len(server.writes)


@on_loop
async def test_reading_needs_no_lead() -> None:
    """A follower reads as much as a leader."""
    server = Server()
    async with connected(server.answer) as client:
        await client.guarded(Leadership(Clock()).check).call(Access("list", NODES))

    assert ["GET /api/v1/nodes"] == server.writes


@on_loop
async def test_a_write_that_was_put_off_asks_again() -> None:
    """429, and when the time to try again has come the lead is over."""
    server, clock = Server(), Clock()
    leadership = Leadership(clock)
    leadership.extend(from_s=1000, duration_s=10)

    async def busy(request: web.Request) -> web.Response:
        clock.at_s = 1060
        return web.json_response(_status(429), status=429, headers={"Retry-After": "0"})

    server.before = busy
    async with connected(server.answer) as client:
        with pytest.raises(NotLeading):
            await client.guarded(leadership.check).call(WRITES[0], body={})


@on_loop
async def test_a_renewal_that_was_sent_before_a_freeze_gives_no_lead_after_it() -> None:
    """Its answer comes when the process thaws, and says that all is well: it was, a minute ago."""
    server = Server()
    async with connected(server.answer) as client, racing(client) as race:
        await until(lambda: race.leadership.is_held)

        async def frozen(request: web.Request) -> None:
            if request.method == "PUT":
                race.clock.at_s += 60

        server.before = frozen
        version = server.version
        await until(lambda: server.version > version)
        assert not race.leadership.is_held


@on_loop
async def test_who_finds_another_in_the_lease_follows_at_once() -> None:
    """Not only after the ten seconds for which a leader tries to renew."""
    server = Server()
    async with connected(server.answer) as client, racing(client) as race:
        await until(lambda: ["leads"] == race.told)
        server.held_by("them")
        await until(lambda: ["leads", "follows"] == race.told)

        assert not race.leadership.is_held
        assert "them" == server.holder


@on_loop
async def test_a_server_that_is_away_costs_the_lead_and_not_the_process() -> None:
    """It is lost when it could not be renewed in time, and taken up again when the server is back."""
    server = Server()
    async with connected(server.answer) as client, racing(client) as race:
        await until(lambda: ["leads"] == race.told)
        server.is_away, race.clock.at_s = True, race.clock.at_s + 2
        await until(lambda: ["leads", "follows"] == race.told)

        server.is_away = False
        await until(lambda: ["leads", "follows", "leads"] == race.told)
        assert race.leadership.is_held


@on_loop
async def test_a_clock_that_is_set_ends_nobodys_lease() -> None:
    """The wall clock says that the other's time is over, the monotonic one that it is not: theirs it stays."""
    server = Server()
    server.held_by("them")
    async with connected(server.answer) as client, racing(client) as race:
        await asyncio.sleep(SETTINGS.lease_s + 2 * SETTINGS.retry_s)
        assert ([], "them") == (race.told, server.holder)

        race.clock.at_s += SETTINGS.lease_s
        await until(lambda: ["leads"] == race.told)
        assert "us" == server.holder


@on_loop
async def test_a_lease_is_released_as_it_is_now() -> None:
    """A renewal that was cut off may have been written: what is released is read first. Another's is left alone."""
    server = Server()
    async with connected(server.answer) as client:
        async with racing(client) as race:
            await until(lambda: ["leads"] == race.told)
        server.held_by("us")
        await race.election.release()
        assert ("", False) == (server.holder, race.leadership.is_held)

        server.held_by("them")
        await race.election.release()
        assert "them" == server.holder


@pytest.mark.parametrize(
    "spec, told",
    [
        ({}, ""),
        ({"renewTime": "2100-01-05T07:00:00.000000Z"}, "karpenter-0"),
        ({"renewTime": "2100-01-05T07:00:00.000000Z", "holderIdentity": ""}, ""),
        ({"renewTime": None}, ""),
    ],
    ids=["long over", "live", "released", "never held"],
)
@on_loop
async def test_karpenter_leads_while_its_lease_lives(spec: Object, told: str) -> None:
    """One that has ended, or was given up, is nobody's."""
    server = Server()
    server.held_by("karpenter-0", **spec)

    async def listed(request: web.Request) -> web.Response:
        return web.json_response({"items": [server.lease]})

    server.before = listed
    async with connected(server.answer) as client:
        assert told == await karpenter_leader(client)
