"""One connection to the Kubernetes API: credentials, TLS and transport of the official client, bytes in and out.

The official client decodes every pod into objects of its own, which costs eighty times the time and memory of what
Kerf keeps; so only its way to the server is used: `kubernetes.aio` reads the kubeconfig (exec plug-ins included) or
the service account, and builds the aiohttp session. It is imported when a connection is made, because that takes half
a second.
"""

import asyncio
import errno
import os
import random
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kerf.errors import ApiError
from kerf.kube.credentials import ClusterTarget, Credentials, NoCluster, Unreachable, one_line
from kerf.kube.resources import Access, Resource
from kerf.ports import AlreadyExists, Conflict, EvictionBlocked, NotFound
from kerf.telemetry import API_CALLS, API_SECONDS, logger

if TYPE_CHECKING:
    import aiohttp

__all__ = [
    "APPLY_PATCH",
    "MERGE_PATCH",
    "ClusterTarget",
    "Credentials",
    "Forbidden",
    "Gone",
    "Invalid",
    "KubeClient",
    "NoCluster",
    "Params",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "error_of",
]

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}
_READS = frozenset({"get", "list", "watch"})
_CALL_TIMEOUT_S = 30
_CONNECT_S = 4
"""For a write that needs a permission: within it the permission may run out, and no other may have it yet."""
_WRITERS = 64
"""Such calls at once: half of the connections, so a flood of them holds up no watch and no lease."""
_TRIES = 5
_MOST_RETRY_S = 30.0
_PROMPT_S, _EQUAL_S = 1.0, 2.0
Params = Mapping[str, str | int]


class Unauthorized(ApiError):
    """The server does not know us (401): the token has expired or is wrong."""


class Forbidden(ApiError):
    """The server knows us and refuses (403); the text says which line of a role, `rule`, would allow it."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(f"forbidden: {detail} (hint: grant {{{rule}}})")


class Gone(ApiError):
    """The version that was asked for is compacted away (410): list again."""


class Invalid(ApiError):
    """The object breaks a rule of its kind (422, 400)."""


class TooManyRequests(ApiError):
    """The server asks us to slow down (429)."""

    def __init__(self, detail: str, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(detail)


def _no_guard() -> None:
    """Everybody may write: for a program that no leader election binds."""


class ServerClock:
    """The time by the API server's clock, as the dates of its answers tell it.

    Its timestamps are compared with ours, and ours with those of other replicas; so where clocks differ all go by its.
    Clocks that differ by less than a date in whole seconds can tell count as equal.
    """

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def now_s(self) -> float:
        """Seconds since the epoch."""
        return time.time() + self._ahead_s

    def heard(self, date: str | None, took_s: float) -> None:
        """An answer with this header has come, `took_s` after it was asked for; a slow one says nothing."""
        if date is None or took_s > _PROMPT_S:
            return
        try:
            server_s = parsedate_to_datetime(date).timestamp() + 0.5
        except ValueError:
            return
        ahead_s = server_s - (time.time() - took_s / 2)
        if abs(ahead_s - self._ahead_s) > _EQUAL_S:
            self._ahead_s = ahead_s if abs(ahead_s) > _EQUAL_S else 0.0
            logger("client").warning("clocks differ, the server's counts", ahead_s=round(self._ahead_s, 1))


class Contact:
    """Since when no server has answered. A frozen server keeps its connections; a silent watch may be a quiet one."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lost_at_s: float | None = None

    def heard(self, *, answered: bool) -> None:
        """A call has ended, with an answer or without."""
        if answered:
            self._lost_at_s = None
        elif self._lost_at_s is None:
            self._lost_at_s = self._monotonic()

    @property
    def lost_s(self) -> float:
        """Seconds since the first of the calls that were not answered; 0 while the last one was."""
        return 0.0 if self._lost_at_s is None else self._monotonic() - self._lost_at_s


class _Answer(NamedTuple):
    """What came back, whatever it says."""

    status: int
    body: bytes
    retry_after: str | None
    content_type: str


class KubeClient:
    """Calls and watches. `guard` is asked before every attempt of a write and raises when it must not be made.

    `clock` is the server's; `contact` says since when it has not answered.
    """

    def __init__(
        self, session: "aiohttp.ClientSession", credentials: Credentials, guard: Callable[[], None] = _no_guard
    ) -> None:
        self._session, self._credentials, self._guard = session, credentials, guard
        self._room: AbstractAsyncContextManager[object] = nullcontext()
        self.clock, self.contact = ServerClock(), Contact()
        self.server, self.namespace = credentials.server, credentials.namespace

    @classmethod
    async def connect(cls, target: ClusterTarget) -> "KubeClient":
        """Read the credentials and open a session; nothing is asked of the server yet. Raises Unreachable."""
        credentials = await Credentials.load(target)
        return cls(credentials.session(), credentials)

    def guarded(self, guard: Callable[[], None]) -> "KubeClient":
        """The same connection for a caller whose writes need a permission each, and who waits for those before."""
        client = KubeClient(self._session, self._credentials, guard)
        client._room, client.clock, client.contact = asyncio.Semaphore(_WRITERS), self.clock, self.contact
        return client

    async def close(self) -> None:
        """End the session and with it every watch."""
        await self._session.close()

    async def call(
        self,
        access: Access,
        *,
        namespace: str = "",
        name: str = "",
        params: Params | None = None,
        body: Any = None,
        content_type: str = "",
    ) -> bytes:
        """One call; the body of the answer. A patch is a merge patch unless `content_type` says otherwise.

        A server that asks for patience (429) is obeyed up to five times. Raises the errors above and those of
        `kerf.ports`; a write of which no answer came raises Unreachable and may have happened.
        """
        path = access.resource.path(namespace, name, access.subresource)
        headers = {"Content-Type": content_type or (MERGE_PATCH if access.verb == "patch" else "application/json")}
        data = None if body is None else msgspec.json.encode(body)
        for tries_left in reversed(range(_TRIES)):
            try:
                async with self._room:
                    return await self._once(access, path, params, headers, data)
            except TooManyRequests as error:
                if not tries_left:
                    raise
                # Spread, so all who were turned away do not come back at once.
                await asyncio.sleep(min(_MOST_RETRY_S, error.retry_after_s) * (1 + random.random() / 4))
        raise AssertionError("unreachable")

    async def fetch(
        self, path: str, *, access: Access | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """The body at a path that is no resource: discovery, `/version`, what a pod serves behind the server's proxy.

        `access` is what the role must grant for it, discovery unless it is given. Raises as `call` does.
        """
        return await self._once(access or _DISCOVERY, path, None, headers or {}, None)

    async def _once(
        self, access: Access, path: str, params: Params | None, headers: Mapping[str, str], data: bytes | None
    ) -> bytes:
        answer = await self._exchange(access, path, params, headers, data)
        if answer.status == 401 and await self._credentials.reload():
            answer = await self._exchange(access, path, params, headers, data)
        if answer.status >= 400:
            raise error_of(access, answer.status, answer.body, answer.retry_after, path)
        if answer.content_type != "application/json":
            # A proxy that asks for a password answers everything with a page, and with 200.
            raise Unreachable(f"{self.server}{path}: expected JSON, got {answer.content_type}: no Kubernetes API")
        return answer.body

    async def _exchange(
        self, access: Access, path: str, params: Params | None, headers: Mapping[str, str], data: bytes | None
    ) -> _Answer:
        import aiohttp

        began_s, outcome, is_write = time.monotonic(), "none", access.verb not in _READS
        is_asked = False
        sent = {**headers, **await self._credentials.headers()}
        limit = aiohttp.ClientTimeout(total=_CALL_TIMEOUT_S, connect=_CONNECT_S if is_write else None)
        try:
            if is_write:
                # Last of all: whatever is awaited before may take longer than the permission lasts.
                self._guard()
            is_asked = True
            async with self._session.request(
                _METHODS[access.verb],
                self.server + path,
                params=params,
                headers=sent,
                data=data,
                timeout=limit,
                **self._credentials.route,
            ) as response:
                outcome = str(response.status)
                self.clock.heard(response.headers.get("Date"), time.monotonic() - began_s)
                body = await response.read()
                return _Answer(response.status, body, response.headers.get("Retry-After"), response.content_type)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            outcome = "none"
            raise Unreachable(f"{self.server}: {_reason(error)}") from error
        finally:
            if is_asked:
                self.contact.heard(answered=outcome != "none")
            _count(access, outcome)
            API_SECONDS.labels(access.verb).observe(time.monotonic() - began_s)

    @asynccontextmanager
    async def watch(
        self, access: Access, *, namespace: str = "", params: Params, silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """A watch as chunks of bytes, cut anywhere; ends when the server ends it.

        Raises Unreachable also when nothing at all arrives for `silence_s`: a connection that a router has forgotten
        looks exactly like a cluster in which nothing happens.
        """
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CALL_TIMEOUT_S, sock_read=silence_s)
        path = access.resource.path(namespace, subresource=access.subresource)
        try:
            headers = await self._credentials.headers()
            async with self._session.get(
                self.server + path,
                params={**params, "watch": "true"},
                headers=headers,
                timeout=timeout,
                **self._credentials.route,
            ) as response:
                _count(access, str(response.status))
                if response.status >= 400:
                    answer = await response.read()
                    if response.status == 401:
                        await self._credentials.reload()
                    raise error_of(access, response.status, answer, response.headers.get("Retry-After"))
                yield response.content.iter_any()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"{self.server}: {_reason(error)}") from error


_DISCOVERY = Access("get", Resource("", "v1", "discovery", "Discovery", is_namespaced=False))


def _count(access: Access, answer: str) -> None:
    resource = "/".join(part for part in (str(access.resource), access.subresource) if part)
    API_CALLS.labels(access.verb, resource, answer).inc()


def error_of(access: Access, status: int, answer: bytes, retry_after: str | None = None, path: str = "") -> ApiError:
    """The error that an answer of 400 or more stands for; `path` is that of a discovery."""
    said = _Status()
    try:
        said = msgspec.json.decode(answer, type=_Status)
    except msgspec.MsgspecError:
        # A proxy in front of the server answers in its own words.
        said.message = answer[:200].decode(errors="replace").strip()
    detail = said.message or f"HTTP {status}"
    causes = said.details.causes
    if status == 429:
        # Both come as "too many requests": a budget that forbids an eviction, and a server that is busy.
        blocking = [cause.message for cause in causes if cause.reason == "DisruptionBudget"]
        return EvictionBlocked(blocking[0] or detail) if blocking else TooManyRequests(detail, _seconds(retry_after))
    if status == 403:
        is_discovery = access is _DISCOVERY
        return Forbidden(f'nonResourceURLs: ["{path}"], verbs: ["get"]' if is_discovery else access.rule, detail)
    if status == 401:
        return Unauthorized(f"{detail} (401): the server does not know these credentials, or they have expired")
    if status == 409:
        return AlreadyExists(detail) if said.reason == "AlreadyExists" else Conflict(detail)
    if any(cause.field == "metadata.uid" for cause in causes):
        # A patch that names another object's uid is answered as an attempt to change the uid (422).
        return Conflict(detail)
    kinds: dict[int, type[ApiError]] = {404: NotFound, 410: Gone, 400: Invalid, 422: Invalid}
    if status in kinds:
        return kinds[status](detail)
    return Unreachable(f"HTTP {status}: {detail}") if status >= 500 else ApiError(f"HTTP {status}: {detail}")


class _Cause(msgspec.Struct):
    message: str = ""
    reason: str = ""
    field: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []


class _Status(msgspec.Struct):
    """The parts of a Status object that an error is made of."""

    message: str = ""
    reason: str = ""
    details: _Details = msgspec.field(default_factory=_Details)


def _seconds(retry_after: str | None) -> float:
    try:
        return max(0.0, float(retry_after or 1))
    except ValueError:
        # The other form is a date, which Kubernetes never sends.
        return 1.0


def _reason(error: BaseException) -> str:
    """Why there was no answer, in words of the system rather than of the library."""
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = error.certificate_error
        why = reason.verify_message if isinstance(reason, ssl.SSLCertVerificationError) else one_line(reason)
        return f"its certificate is not trusted: {why} (hint: see certificate-authority in the kubeconfig)"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0
        return os.strerror(number) if number in errno.errorcode else one_line(error.os_error)
    return one_line(error)
