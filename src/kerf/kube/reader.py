"""The reading half of the adapter: every resource that the model knows, each by its own reflector, in one stream.

A resource that is slow, broken or forbidden must not hold up the others, and yet nothing may be decided before all that
existed has been reported. So the resources without which no decision is sound are required, the rest is waited for only
as long as there is hope.
"""

import asyncio
import gc
from collections import deque
from collections.abc import AsyncGenerator, Collection, Sequence

import msgspec

from kerf.kube.client import KubeClient
from kerf.kube.health import ResourceHealth
from kerf.kube.reflector import Decode, FollowedResource, Mirror, Pace, Reflector, Undecodable
from kerf.kube.resources import (
    CAPACITY_BUFFERS,
    CAPACITY_WINDOWS,
    CLUSTER_POLICIES,
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DISRUPTION_BUDGETS,
    DRY_RUN,
    NODE_CLAIMS,
    NODE_CLASSES,
    NODE_OVERLAYS,
    NODE_POOLS,
    NODES,
    POD_GROUPS,
    POD_TEMPLATES,
    PODS,
    PROVISIONING_REQUESTS,
    RESOURCE_QUOTAS,
    RUN,
    SURROUNDINGS,
    VOLCANO_POD_GROUPS,
    WORKLOADS,
    Resource,
    access,
)
from kerf.manifests.live import decode_live, identity_of
from kerf.model.snapshot import Report, Synced, Watched
from kerf.sharing.registry import CONFIG_MAPS as SHARING_CONFIG_MAPS

_AHEAD = 2_000
"""Events that may wait for the reader; beyond that the sockets are left alone until some are taken."""


def follow(resource: Resource, *, is_required: bool = False, name: str = "") -> FollowedResource:
    """Declare that a resource is followed, or the objects of one name in it."""
    listing, watching = (
        access(verb, resource, names=(name,) if name else (), by=(RUN, DRY_RUN)) for verb in ("list", "watch")
    )
    return FollowedResource(listing, watching, is_required)


WATCHED = (
    *(follow(resource, is_required=True) for resource in (PODS, NODES, NODE_POOLS, NODE_CLAIMS)),
    *(follow(each) for each in (NODE_OVERLAYS, CAPACITY_WINDOWS, DAEMON_SETS, DISRUPTION_BUDGETS, RESOURCE_QUOTAS)),
    *(follow(each) for each in (CRON_JOBS, POD_GROUPS, VOLCANO_POD_GROUPS, PROVISIONING_REQUESTS, POD_TEMPLATES)),
    *(follow(each) for each in (WORKLOADS, CLUSTER_POLICIES, CAPACITY_BUFFERS)),
    *(follow(resource) for resource in SURROUNDINGS),
    *(follow(resource) for resource in NODE_CLASSES),
    *(follow(CONFIG_MAPS, name=name) for name in SHARING_CONFIG_MAPS),
)
"""What the model knows. Of ConfigMaps that is how GPUs are shared: a cluster's others are none of our business."""


def of_plugins(namespaces: Collection[str], decode: Decode = decode_live) -> Decode:
    """A decoder that passes over the ConfigMaps of other namespaces: a tenant may give one any name, and fill it."""

    def decode_of_plugins(raw: msgspec.Raw, kind: str, api_version: str) -> Watched | None:
        is_foreign = kind == CONFIG_MAPS.kind and identity_of(raw).namespace not in namespaces
        return None if is_foreign else decode(raw, kind, api_version)

    return decode_of_plugins


def _unreported(_resource: Resource, _namespace: str, _name: str, _uid: str, _error: Exception) -> None:
    """The log says it already."""


class KubeReader:
    """`kerf.ports.KubeReader` over a connection. One `events()` at a time: a new one ends the one before it."""

    def __init__(
        self,
        client: KubeClient,
        watched: Sequence[FollowedResource] = WATCHED,
        *,
        decode: Decode = decode_live,
        on_undecodable: Undecodable = _unreported,
        pace: Pace | None = None,
    ) -> None:
        self._client, self._watched, self._pace = client, tuple(watched), pace or Pace()
        self._mirrors = [Mirror(followed.resource, decode, on_undecodable) for followed in self._watched]
        self._pending: deque[Report] = deque()
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_synced = False
        self._reflectors = self._fresh()

    def health(self) -> tuple[ResourceHealth, ...]:
        """How well each resource is known just now, in the order of what is watched."""
        return tuple(reflector.health() for reflector in self._reflectors)

    async def events(self) -> AsyncGenerator[Report, None]:
        """Everything that exists, one Synced, then every change. Never ends by itself and never raises.

        When it is called again, what an earlier call has reported and what has vanished since is reported as Deleted,
        so a state that outlives the call stays right.
        """
        await _end(self._tasks)
        self._begin()
        tasks = self._tasks
        try:
            while True:
                while self._pending:
                    # Taken before it is given: a reader that fails on an event does not get the same one again.
                    yield self._pending.popleft()
                    if len(self._pending) < _AHEAD:
                        self._room.set()
                self._news.clear()
                await self._news.wait()
        finally:
            await _end(tasks)

    def _begin(self) -> None:
        self._pending = deque(event for event in self._pending if not isinstance(event, Synced))
        self._is_synced = False
        for mirror in self._mirrors:
            mirror.forget_versions()
        self._reflectors = self._fresh()
        self._tasks = [
            asyncio.create_task(reflector.run(), name=f"reflector:{followed.resource}")
            for reflector, followed in zip(self._reflectors, self._watched, strict=True)
        ]

    def _fresh(self) -> list[Reflector]:
        return [
            Reflector(self._client, followed, mirror, self._tell, self._settled, self._pace)
            for followed, mirror in zip(self._watched, self._mirrors, strict=True)
        ]

    async def _tell(self, events: Sequence[Report]) -> None:
        # Kept before any waiting: a mirror counts as reported what it has given, so cancelling must lose nothing.
        self._pending.extend(events)
        self._news.set()
        while len(self._pending) > _AHEAD:
            self._room.clear()
            await self._room.wait()

    async def _settled(self) -> None:
        if self._is_synced or not all(reflector.is_settled for reflector in self._reflectors):
            return
        self._is_synced = True
        # What has been read stays for long: no collection need look at it again.
        gc.freeze()
        await self._tell((Synced(),))


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
