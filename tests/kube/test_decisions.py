"""Who may ask the leader what it remembers: a token for one audience, and the right to get one path."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from kerf.errors import ApiError
from kerf.kube.decisions import TOKEN_HEADER, AccessRefusal, Doorkeeper, read_decisions
from tests.kube.fake_server import connected, status_of

USER = {"username": "ada", "uid": "1", "groups": ["ops"], "extra": {"scopes": ["a"]}}


@dataclass
class Reviewing:
    """An API server that knows one token, and lets its user get one path; or answers with `status`."""

    audiences: tuple[str, ...] = ("kerf.dev",)
    allows: bool = True
    status: int = 201
    asked: list[Any] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        """Both reviews."""
        body = await request.json()
        self.asked.append(body["spec"])
        if self.status != 201:
            return web.json_response(status_of(self.status, "broken"), status=self.status)
        if body["kind"] == "TokenReview":
            is_known = body["spec"]["token"] == "good"
            user = {"user": USER, "audiences": list(self.audiences)} if is_known else {}
            return web.json_response({"status": {"authenticated": is_known, **user}}, status=201)
        return web.json_response({"status": {"allowed": self.allows}}, status=201)

    def refusal(self, authorization: str) -> AccessRefusal | None:
        """What a caller with this header is told."""

        async def asking() -> AccessRefusal | None:
            async with connected(self.answer) as client:
                return await Doorkeeper(client).refusal(authorization)

        return asyncio.run(asking())


def test_a_caller_who_is_known_and_allowed_is_answered() -> None:
    """The token is reviewed for Kerf's audience, and the access for all that the review says of the user."""
    server = Reviewing()

    assert server.refusal("Bearer good") is None
    token, access = server.asked
    assert {"token": "good", "audiences": ["kerf.dev"]} == token
    assert {"path": "/debug/decisions", "verb": "get"} == access["nonResourceAttributes"]
    assert ("ada", "1", ["ops"], {"scopes": ["a"]}) == tuple(access[key] for key in ("user", "uid", "groups", "extra"))


@pytest.mark.parametrize("header", ["", "good", "Basic good", "Bearer ", f"Bearer {'x' * 20_000}"])
def test_without_a_bearer_token_nothing_is_asked(header: str) -> None:
    """The API server hears of no such caller."""
    server = Reviewing()
    found = server.refusal(header)

    assert found is not None
    assert (401, []) == (found.status, server.asked)


@pytest.mark.parametrize("audiences", [(), ("https://kubernetes.default.svc",)])
def test_a_token_for_the_api_server_is_refused(audiences: tuple[str, ...]) -> None:
    """A server that knows no audiences names none: its tokens are worth everything, and so nothing here."""
    found = Reviewing(audiences).refusal("Bearer good")

    assert found is not None
    assert 401 == found.status


@pytest.mark.parametrize(
    "server, token, expected",
    [
        (Reviewing(), "bad", (401, "the API server does not know this token for the audience kerf.dev")),
        (Reviewing(allows=False), "good", (403, "ada may not get /debug/decisions")),
        (Reviewing(status=500), "good", (503, "the API server did not review the token: HTTP 500: broken")),
    ],
)
def test_who_is_not_known_or_not_allowed_learns_why(server: Reviewing, token: str, expected: tuple[int, str]) -> None:
    """An answer that does not come is a refusal too."""
    assert AccessRefusal(*expected) == server.refusal(f"Bearer {token}")


def test_many_callers_at_once_are_turned_away() -> None:
    """Each costs the API server two calls, and whoever has no token can come as often as he likes."""
    server = Reviewing()

    async def asking() -> list[AccessRefusal | None]:
        async with connected(server.answer) as client:
            door = Doorkeeper(client)
            return list(await asyncio.gather(*(door.refusal("Bearer bad") for _ in range(50))))

    found = [each.status for each in asyncio.run(asking()) if each is not None]
    assert 50 == len(found)
    assert {401, 429} == set(found)
    assert len(server.asked) < 10


@dataclass
class Leading:
    """A cluster with a leader, as its API server shows it."""

    holder: str = "kerf-0_uuid"
    leases: tuple[str, ...] = ("kerf-leader-election",)
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        """Lease, token, and the leader's pod behind the proxy."""
        self.asked.append((request.path, request.headers.get(TOKEN_HEADER)))
        last = request.path.rpartition("/")[2]
        if "/leases/" in request.path and last not in self.leases:
            return web.json_response(status_of(404, "no lease"), status=404)
        if "/leases/" in request.path:
            return web.json_response({"spec": {"holderIdentity": self.holder}})
        if last == "token":
            assert {"audiences": ["kerf.dev"], "expirationSeconds": 600} == (await request.json())["spec"]
            return web.json_response({"status": {"token": "minted"}}, status=201)
        return web.json_response({"kind": "Decisions"})

    def read(self) -> Any:
        """What a person is told."""

        async def reading() -> bytes:
            async with connected(self.answer) as client:
                return await read_decisions(client, "kerf-system", 8080)

        return json.loads(asyncio.run(reading()))


@pytest.mark.parametrize("lease", ["kerf-leader-election", "kerf-dry-run-leader-election"])
def test_a_person_asks_the_pod_that_holds_the_lease(lease: str) -> None:
    """With a token that was made for this, in a header of its own: the proxy takes Authorization away."""
    server = Leading(leases=(lease,))

    assert {"kind": "Decisions"} == server.read()
    path = "/api/v1/namespaces/kerf-system/pods/kerf-0:8080/proxy/debug/decisions"
    assert (path, "Bearer minted") == server.asked[-1]


@pytest.mark.parametrize("server", [Leading(leases=()), Leading(holder="")])
def test_without_a_leader_there_is_nothing_to_ask(server: Leading) -> None:
    """No token is made then."""
    with pytest.raises(ApiError, match="no replica holds the Lease kerf-leader-election in namespace kerf-system"):
        server.read()
    assert not [path for path, _ in server.asked if path.endswith("token")]
