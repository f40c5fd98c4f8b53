"""What the leader remembers and no object says: who may ask for it, and how a person asks.

The API server's proxy leads to the leader's pod, and takes the caller's credentials away on the way. So another header
carries a token, and that token must be worth nothing anywhere else: a person's own would give a pod, on a connection
that is not encrypted, all that the person may do. It is made for one service account and one audience and lives ten
minutes; the API server itself refuses it.
"""

import asyncio
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from kerf.errors import ApiError, brief
from kerf.kube.accounts import ACCOUNT
from kerf.kube.client import KubeClient
from kerf.kube.election import DRY_RUN_LEASE, LEASE
from kerf.kube.resources import (
    ACCESS_REVIEWS,
    DECISIONS,
    DRY_RUN,
    LEASES,
    OWN,
    PODS,
    RUN,
    SERVICE_ACCOUNTS,
    TOKEN_REVIEWS,
    access,
)
from kerf.ports import NotFound

PATH = "/debug/decisions"
AUDIENCE = "kerf.dev"
TOKEN_HEADER = "X-Kerf-Authorization"
_TOKEN_S = 600
_MOST_TOKEN = 16_384
_AT_ONCE = 2
_Form = TypeVar("_Form", bound=msgspec.Struct)
_REVIEW = access("create", TOKEN_REVIEWS, by=(RUN, DRY_RUN))
_ASK = access("create", ACCESS_REVIEWS, by=(RUN, DRY_RUN))
_FIND = access("get", LEASES, names=(LEASE, DRY_RUN_LEASE), namespace=OWN, by=DECISIONS)
_PROXY = access("get", PODS, "proxy", namespace=OWN, by=DECISIONS)
_TOKEN = access("create", SERVICE_ACCOUNTS, "token", names=(ACCOUNT,), namespace=OWN, by=DECISIONS)


@dataclass(frozen=True, slots=True)
class AccessRefusal:
    """Why a caller gets no answer; `status` is that of HTTP."""

    status: int
    why: str


class Doorkeeper:
    """Asks the API server who a caller is and whether the caller may get `path`; keeps nothing."""

    def __init__(self, client: KubeClient, path: str = PATH) -> None:
        self._client, self._path = client, path
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def refusal(self, authorization: str) -> AccessRefusal | None:
        """None for the header of a caller who may get the path. Two reviews a caller; never raises ApiError."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip() or len(token) > _MOST_TOKEN:
            return AccessRefusal(401, f"expected a bearer token for the audience {AUDIENCE}")
        if self._room.locked():
            # A client without a token can send many: the API server must not be asked as often.
            return AccessRefusal(429, "too many callers at once")
        async with self._room:
            try:
                user = await self._user(token.strip())
                if user is None:
                    return AccessRefusal(401, f"the API server does not know this token for the audience {AUDIENCE}")
                return (
                    None if await self._may(user) else AccessRefusal(403, f"{user.username} may not get {self._path}")
                )
            except ApiError as error:
                return AccessRefusal(503, f"the API server did not review the token: {error}")

    async def _user(self, token: str) -> "_User | None":
        spec = {"token": token, "audiences": [AUDIENCE]}
        body = {"apiVersion": TOKEN_REVIEWS.api_version, "kind": TOKEN_REVIEWS.kind, "spec": spec}
        status = _read(await self._client.call(_REVIEW, body=body), _Reviewed).status
        # A server that knows no audiences names none: it speaks of a token of its own.
        return status.user if status.authenticated and AUDIENCE in status.audiences else None

    async def _may(self, user: "_User") -> bool:
        who = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
        spec = {**who, "nonResourceAttributes": {"path": self._path, "verb": "get"}}
        body = {"apiVersion": ACCESS_REVIEWS.api_version, "kind": ACCESS_REVIEWS.kind, "spec": spec}
        return _read(await self._client.call(_ASK, body=body), _Asked).status.allowed


async def read_decisions(client: KubeClient, namespace: str, port: int, account: str = ACCOUNT) -> bytes:
    """What the leader in `namespace` answers, through the API server's proxy, to `account`. Raises ApiError."""
    pod = await _leader(client, namespace)
    spec = {"audiences": [AUDIENCE], "expirationSeconds": _TOKEN_S}
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    made = await client.call(_TOKEN, namespace=namespace, name=account, body=asked)
    token = _read(made, _Requested).status.token
    path = PODS.path(namespace, f"{pod}:{port}", "proxy") + PATH
    return await client.fetch(path, access=_PROXY, headers={TOKEN_HEADER: f"Bearer {token}"})


async def _leader(client: KubeClient, namespace: str) -> str:
    """The name of the pod that holds the Lease; that of a dry run where no other holds one."""
    for name in (LEASE, DRY_RUN_LEASE):
        try:
            lease = _read(await client.call(_FIND, namespace=namespace, name=name), _Lease)
        except NotFound:
            continue
        if lease.spec.holder:
            # The holder calls itself POD_UUID.
            return lease.spec.holder.rpartition("_")[0] or lease.spec.holder
    raise NotFound(f"no replica holds the Lease {LEASE} in namespace {namespace}")


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _ReviewedStatus(msgspec.Struct):
    authenticated: bool = False
    user: _User = msgspec.field(default_factory=_User)
    audiences: list[str] = []


class _Reviewed(msgspec.Struct):
    """A TokenReview that was answered."""

    status: _ReviewedStatus = msgspec.field(default_factory=_ReviewedStatus)


class _Allowed(msgspec.Struct):
    allowed: bool = False


class _Asked(msgspec.Struct):
    """A SubjectAccessReview that was answered."""

    status: _Allowed = msgspec.field(default_factory=_Allowed)


class _Token(msgspec.Struct):
    token: str


class _Requested(msgspec.Struct):
    """A TokenRequest that was answered."""

    status: _Token


class _Holding(msgspec.Struct):
    holder: str | None = msgspec.field(name="holderIdentity", default=None)


class _Lease(msgspec.Struct):
    spec: _Holding = msgspec.field(default_factory=_Holding)


def _read(answer: bytes, form: type[_Form]) -> _Form:
    try:
        return msgspec.json.decode(answer, type=form)
    except msgspec.MsgspecError as error:
        got = brief(answer[:60].decode(errors="replace"))
        raise ApiError(f"expected {form.__name__.strip('_')}, got {got}") from error
