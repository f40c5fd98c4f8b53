"""Only the leader acts: leader election by Lease, and a guard that every write asks first.

The loop is the official client's. What it cannot give is certainty at the moment of a write: a process that was frozen
goes on where it stood, believing that it leads. So `Leadership` keeps until when the last renewal holds, on the
monotonic clock and counted from before the renewal was sent, and refuses each write after that. It ends earlier than
the Lease that others see, by the difference between lease duration and renew deadline.

Two more things are fixed at the lock. The loop goes on for a while trying to renew what it has lost; here the lead
ends with the first sign. And it counts the end of another's Lease by the wall clock, which may be set; here that has
to have passed on the monotonic clock as well.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.baselock import BaseLock

from kerf.errors import ApiError
from kerf.kube.client import KubeClient
from kerf.kube.resources import DRY_RUN, DRY_RUN_ELECTION, ELECTION, LEASES, OWN, RUN, Access, access
from kerf.ports import AlreadyExists, Conflict, NotFound
from kerf.telemetry import logger

LEASE, DRY_RUN_LEASE = "kerf-leader-election", "kerf-dry-run-leader-election"
KARPENTER_LEASE = "karpenter-leader-election"
FIND = access("list", LEASES, names=(KARPENTER_LEASE,), by=(RUN, DRY_RUN))
_LATE_S = 30
"""Clocks may differ, and a renewal may be late: so long after its end a foreign Lease still counts."""


class _Ways(NamedTuple):
    """The accesses to one Lease; no role can limit a creation to a name."""

    get: Access
    create: Access
    update: Access


def _ways(name: str, part: str) -> _Ways:
    return _Ways(
        access("get", LEASES, names=(name,), namespace=OWN, by=part),
        access("create", LEASES, namespace=OWN, by=part),
        access("update", LEASES, names=(name,), namespace=OWN, by=part),
    )


_WAYS = {LEASE: _ways(LEASE, ELECTION), DRY_RUN_LEASE: _ways(DRY_RUN_LEASE, DRY_RUN_ELECTION)}


class NotLeading(ApiError):
    """Another replica may lead by now: the write was not made."""


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """Which Lease (LEASE or DRY_RUN_LEASE) is whose, and how long it holds; the times are client-go's defaults."""

    namespace: str
    name: str
    identity: str
    lease_s: float = 15
    renew_s: float = 10
    retry_s: float = 2


class Leadership:
    """Whether this process leads now. `monotonic` gives seconds that no clock change moves."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._until_s = float("-inf")

    def extend(self, from_s: float, duration_s: float) -> None:
        """A renewal that was sent at `from_s` has succeeded."""
        self._until_s = from_s + duration_s

    def end(self) -> None:
        """We lead no more."""
        self._until_s = float("-inf")

    def now_s(self) -> float:
        """The monotonic clock."""
        return self._monotonic()

    @property
    def is_held(self) -> bool:
        """Whether the last renewal still holds."""
        return self._monotonic() < self._until_s

    def check(self) -> None:
        """The guard of a KubeClient: raises NotLeading unless the last renewal still holds."""
        if not self.is_held:
            raise NotLeading("this replica does not lead, or could not renew its lease in time")


class _Deposed(Exception):
    """We have led and lead no more."""


class Election:
    """Takes part in the election until it is stopped."""

    def __init__(self, client: KubeClient, settings: ElectionSettings, leadership: Leadership) -> None:
        self._settings, self._leadership = settings, leadership
        self._lock = _Lock(client, settings, leadership)

    async def run(self, started: Callable[[], None], stopped: Callable[[], None]) -> None:
        """Compete for ever: `started` when we lead, `stopped` when we do no more. Cancel it to leave the race."""
        while True:
            config = Config(
                self._lock,
                lease_duration=self._settings.lease_s,
                renew_deadline=self._settings.renew_s,
                retry_period=self._settings.retry_s,
                onstarted_leading=_called(started),
                onstopped_leading=_called(stopped),
            )
            try:
                await LeaderElection(config).run()
            except _Deposed:
                stopped()
            finally:
                self._leadership.end()

    async def release(self) -> None:
        """Give the Lease up, so another need not wait for its end; does nothing when it is not ours."""
        await self._lock.release()


def _called(callback: Callable[[], None]) -> Callable[[], Coroutine[Any, Any, None]]:
    async def call() -> None:
        callback()

    return call


async def karpenter_leader(client: KubeClient) -> str:
    """Who holds Karpenter's own Lease, in whichever namespace it runs; empty when none does. Raises ApiError."""
    # From the server's memory: asked often, and every node of a cluster has a Lease.
    params = {"fieldSelector": f"metadata.name={KARPENTER_LEASE}", "resourceVersion": "0"}
    answer = await client.call(FIND, params=params)
    leases = msgspec.json.decode(answer).get("items") or ()
    now_s = client.clock.now_s()
    return next((holder for lease in leases if (holder := _holder(lease, now_s))), "")


def _holder(lease: dict[str, Any], now_s: float) -> str:
    """Who holds a Lease at that time; empty when its time is over."""
    spec = lease.get("spec") or {}
    renewed, duration = spec.get("renewTime"), spec.get("leaseDurationSeconds") or 0
    if not spec.get("holderIdentity") or not renewed:
        return ""
    age_s = now_s - datetime.fromisoformat(renewed).timestamp()
    return str(spec["holderIdentity"]) if age_s < duration + _LATE_S else ""


class _Lock(BaseLock):
    """The Lease as the official loop wants it: get, create, update, each telling success instead of raising.

    An error of the transport is a failed try like any other: the loop tries again until its deadline. Only the end of
    our own lead is raised, as _Deposed, because the loop has no word for it.
    """

    def __init__(self, client: KubeClient, settings: ElectionSettings, leadership: Leadership) -> None:
        super().__init__(settings.name, settings.namespace, settings.identity)
        self._client, self._settings, self._leadership = client, settings, leadership
        self._ways = _WAYS[settings.name]
        self._lease: dict[str, Any] = {}
        self._leads = self._is_away = False
        # What the Lease said last, and since when on the monotonic clock.
        self._seen: tuple[Any, ...] = ()
        self._seen_s = leadership.now_s()

    async def get(self, name: str, namespace: str) -> tuple[bool, Any]:
        """(True, record), or (False, error); an absent Lease is an error whose body says 404, as the loop wants it."""
        try:
            self._lease = await self._call(self._ways.get, name=name)
        except NotFound as error:
            self._lease = {}
            return False, _answer(404, str(error))
        except (ApiError, TimeoutError) as error:
            self._failed(error)
            return False, _answer(500, str(error) or type(error).__name__)
        spec = self._lease.get("spec") or {}
        said = tuple(spec.get(key) for key in ("holderIdentity", "renewTime", "leaseTransitions"))
        if said != self._seen:
            self._seen, self._seen_s = said, self._leadership.now_s()
        if self._leads and spec.get("holderIdentity") != self.identity:
            self._end(f"{spec.get('holderIdentity') or 'no replica'} holds the lease")
        return True, _record(spec)

    async def create(self, name: str, namespace: str, election_record: Any) -> bool:
        """Make the Lease ours."""
        lease = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": self._spec({}),
        }
        return await self._write(self._ways.create, lease)

    async def update(self, name: str, namespace: str, updated_record: Any) -> bool:
        """Make the Lease that `get` has read ours, or renew it; fails when it has changed since, or still holds."""
        spec = self._lease.get("spec") or {}
        lasts_s = max(self._settings.lease_s, spec.get("leaseDurationSeconds") or 0)
        is_anothers = spec.get("holderIdentity") not in (None, "", self.identity)
        if is_anothers and self._leadership.now_s() < self._seen_s + lasts_s:
            return False
        return await self._write(self._ways.update, {**self._lease, "spec": self._spec(spec)})

    async def release(self) -> None:
        """An empty holder is none."""
        self._leadership.end()
        self._leads = False
        try:
            # As it is now: a renewal that was cut off by our own end may have been written.
            lease = await self._call(self._ways.get, name=self.name)
            spec = lease.get("spec") or {}
            if spec.get("holderIdentity") == self.identity:
                freed = {**lease, "spec": {**spec, "holderIdentity": ""}}
                await self._call(self._ways.update, name=self.name, body=freed)
        except NotFound:
            return
        except (ApiError, TimeoutError) as error:
            logger("election").info("lease not released", error=str(error) or type(error).__name__)

    async def _write(self, declared: Access, lease: dict[str, Any]) -> bool:
        sent_s = self._leadership.now_s()
        try:
            name = "" if declared is self._ways.create else self.name
            self._lease = await self._call(declared, name=name, body=lease)
        except (Conflict, AlreadyExists):
            return False
        except (ApiError, TimeoutError) as error:
            self._failed(error)
            return False
        self._leadership.extend(sent_s, self._settings.renew_s)
        self._leads, self._is_away = True, False
        return True

    def _failed(self, error: Exception) -> None:
        if not self._is_away:
            self._is_away = True
            logger("election").warning("lease not reached", error=str(error) or type(error).__name__)
        if self._leads and not self._leadership.is_held:
            self._end("the lease could not be renewed in time")

    def _end(self, why: str) -> None:
        self._leads = False
        self._leadership.end()
        logger("election").warning("deposed", why=why)
        raise _Deposed

    async def _call(self, declared: Access, *, name: str, body: Any = None) -> dict[str, Any]:
        # Shorter than the deadline, so one lost packet does not cost the lead.
        async with asyncio.timeout(self._settings.renew_s / 2):
            answer = await self._client.call(declared, namespace=self.namespace, name=name, body=body)
        lease: dict[str, Any] = msgspec.json.decode(answer)
        return lease

    def _spec(self, held: dict[str, Any]) -> dict[str, Any]:
        now = datetime.fromtimestamp(self._client.clock.now_s(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        is_ours = held.get("holderIdentity") == self.identity
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._settings.lease_s),
            "acquireTime": held.get("acquireTime", now) if is_ours else now,
            "renewTime": now,
            "leaseTransitions": int(held.get("leaseTransitions", 0)) + (not is_ours and bool(held)),
        }


def _record(spec: dict[str, Any]) -> Any:
    return LeaderElectionRecord(
        spec.get("holderIdentity") or None,
        str(spec["leaseDurationSeconds"]) if "leaseDurationSeconds" in spec else None,
        spec.get("acquireTime"),
        spec.get("renewTime"),
    )


def _answer(code: int, reason: str) -> Any:
    error = ApiException(status=code, reason=reason)
    error.body = f'{{"code": {code}}}'
    return error
