"""The objects of a live cluster as documents, so every command reads a cluster exactly as it reads a dump of it.

Some thirty kinds are read one after the other while the cluster goes on: a claim read after its node would name a node
that is not seen, and a node would be planned twice. So all kinds are asked for as they were at one version, the one
of the first answer, which is one moment because a server has one count of versions for all its objects.

An ordinary reader of a cluster may not see everything. What a plan cannot do without is an error that names the missing
permission; what only refines it is left out with a note.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from kerf.cli.echo import echo
from kerf.cli.exits import ClusterUnreachable
from kerf.engine.study.usage.history import SHARD_NAME
from kerf.errors import ApiError
from kerf.kube.client import ClusterTarget, Forbidden, Gone, Invalid, KubeClient, NoCluster, Unreachable
from kerf.kube.resources import (
    CAPACITY_BUFFERS,
    CAPACITY_WINDOWS,
    CLUSTER_POLICIES,
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    JOBS,
    NODE_CLAIMS,
    NODE_CLASSES,
    NODE_OVERLAYS,
    NODE_POOLS,
    NODES,
    POD_GROUPS,
    POD_TEMPLATES,
    PODS,
    PROVISIONING_REQUESTS,
    READER,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    STATEFUL_SETS,
    SURROUNDINGS,
    VOLCANO_POD_GROUPS,
    WORKLOADS,
    Access,
    Resource,
    access,
)
from kerf.kube.usage import READS as USAGE_READS
from kerf.kube.usage import Metrics, read_checkpoints, read_metrics
from kerf.manifests.clusterdump.trim import trimmed
from kerf.manifests.read import Documents, parse_json
from kerf.model.large import Large
from kerf.ports import NotFound
from kerf.sharing.registry import CONFIG_MAPS as SHARING_CONFIG_MAPS

_PAGE = 500
_REQUIRED = tuple(access("list", resource, by=READER) for resource in (NODES, PODS, NODE_POOLS))
_CLAIMS = tuple(access("list", resource, by=READER) for resource in (NODE_CLAIMS, NODE_OVERLAYS, CAPACITY_WINDOWS))
_REFINING = tuple(
    access("list", resource, by=READER)
    for resource in (
        DAEMON_SETS,
        DEPLOYMENTS,
        REPLICA_SETS,
        STATEFUL_SETS,
        JOBS,
        CRON_JOBS,
        DISRUPTION_BUDGETS,
        RESOURCE_QUOTAS,
        *SURROUNDINGS,
    )
)
_OF_OTHERS = tuple(
    access("list", resource, by=READER)
    for resource in (
        *NODE_CLASSES,
        POD_GROUPS,
        VOLCANO_POD_GROUPS,
        WORKLOADS,
        PROVISIONING_REQUESTS,
        CAPACITY_BUFFERS,
        CLUSTER_POLICIES,
    )
)
_TEMPLATES = access("list", POD_TEMPLATES, by=READER)
_SHARING = tuple(access("list", CONFIG_MAPS, names=(name,), by=READER) for name in SHARING_CONFIG_MAPS)
_OF_PLUGINS = access("list", CONFIG_MAPS, by=READER)
"""Of the namespaces of plugins: a release may call its ConfigMap whatever it likes."""
_OWN = "kerf-system"
"""Where the acted-out cloud keeps thousands of ConfigMaps, and those of plugins have names that are known."""
READS = (*_REQUIRED, *_CLAIMS, *_REFINING, *_OF_OTHERS, _TEMPLATES, *_SHARING, *USAGE_READS)
"""All that is asked of a cluster."""
Found = TypeVar("Found")
Cut = Callable[[Resource, bytes], bytes]
"""A page of a list to what is kept of it."""
Tell = Callable[[float], None]
"""Hears how much is done, 0 to 1."""
_WEIGHTS = MappingProxyType({PODS.plural: 10, "": len(READS) + 9})
"""How much of reading each kind is; of all together under the empty name."""


def _untold(_: float) -> None:
    """For who does not want to know how much is done."""


def _read_fields(resource: Resource, page: bytes) -> bytes:
    """Half of what a cluster sends is never read, and all of it in memory would be gigabytes."""
    return trimmed(resource.kind, page)


def whole_if_written(resource: Resource, page: bytes) -> bytes:
    """For lint, which looks at fields that nothing else reads, where people have written them.

    What workloads make has none that they have not, and nodes register themselves.
    """
    return trimmed(resource.kind, page) if resource in (NODES, PODS, REPLICA_SETS) else page


class _Head(msgspec.Struct):
    """Of a list: its version, and where it goes on."""

    class Metadata(msgspec.Struct):
        """The list's own metadata."""

        continue_: str = msgspec.field(name="continue", default="")
        version: str = msgspec.field(name="resourceVersion", default="")
        left: int | None = msgspec.field(name="remainingItemCount", default=None)

    metadata: Metadata


class _Called(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    """An object by its name."""

    metadata: _Called


_BY_NAME = frozenset(SHARING_CONFIG_MAPS)


class ServedGroups(msgspec.Struct):
    """The API groups that a server has."""

    class Group(msgspec.Struct):
        """One of them, with its versions."""

        class Version(msgspec.Struct):
            """`karpenter.sh/v1`."""

            text: str = msgspec.field(name="groupVersion", default="")

        name: str
        versions: list[Version] = []

    groups: list[Group]

    def has(self, resource: Resource) -> bool:
        """Whether there may be such objects: the group is there, and in this version where it says which."""
        found = next((group for group in self.groups if group.name == resource.group), None)
        if found is None or not found.versions:
            return found is not None
        return resource.api_version in {version.text for version in found.versions}


@dataclass(frozen=True, repr=False)
class Cluster(Large):
    """What was read of a cluster, and the namespace in which a name without one is looked for first.

    `usage_problem` says why there is no usage in it; empty where there is, or where it was not asked for.
    """

    documents: Documents
    namespace: str
    usage_problem: str = ""


def read_cluster(
    kubeconfig: str | None,
    context: str | None,
    *,
    with_usage: bool = False,
    with_history: bool = False,
    cut: Cut = _read_fields,
    tell: Tell = _untold,
    plugin_namespaces: Collection[str] = (),
) -> Cluster:
    """Everything that a plan needs of a cluster; also what its pods and nodes use, and the checkpoints of that.

    `cut` is given each page of objects before it is kept. Says on stderr what is left out. Raises ClusterUnreachable.
    """
    namespaces = tuple(sorted(plugin_namespaces))
    read = partial(_read, cut=cut, tell=tell, namespaces=namespaces, with_usage=with_usage, with_history=with_history)
    return connected(ClusterTarget(kubeconfig, context), read)


def connected(target: ClusterTarget, read: Callable[[KubeClient], Coroutine[Any, Any, Found]]) -> Found:
    """What `read` finds of the cluster. Raises ClusterUnreachable."""
    try:
        return _run(_asked(target, read))
    except NoCluster as error:
        raise ClusterUnreachable(str(NoCluster(error.path, "--kubeconfig FILE, or -f for manifests"))) from error
    except (ApiError, msgspec.MsgspecError) as error:
        raise ClusterUnreachable(str(error)) from error


def _run(reading: Coroutine[Any, Any, Found]) -> Found:
    found: list[Found] = []

    async def main() -> None:
        # Not the result of the main task: at its end asyncio.run makes a repr of that, of the whole cluster.
        found.append(await reading)

    asyncio.run(main())
    return found[0]


async def _asked(target: ClusterTarget, read: Callable[[KubeClient], Coroutine[Any, Any, Found]]) -> Found:
    client = await KubeClient.connect(target)
    try:
        return await read(client)
    finally:
        await client.close()


async def _read(
    client: KubeClient, cut: Cut, tell: Tell, namespaces: Sequence[str], *, with_usage: bool, with_history: bool
) -> Cluster:
    documents = await read_objects(client, cut, tell, namespaces)
    metrics = await read_metrics(client) if with_usage else Metrics()
    usage = [parse_json(page, f"{name}.json") for name, page in metrics.pages]
    if with_history:
        usage += await _history(client)
    return Cluster(Documents.joined((documents, *usage)), client.namespace, metrics.problem)


async def _history(client: KubeClient) -> list[Documents]:
    try:
        pages = await read_checkpoints(client)
    except (Forbidden, NotFound) as error:
        echo(f"note: without the history of usage: {error}", err=True)
        return []
    return [parse_json(page, "kerf-usage.json") for page in pages]


async def read_objects(
    client: KubeClient, cut: Cut = _read_fields, tell: Tell = _untold, plugin_namespaces: Sequence[str] = ()
) -> Documents:
    """All kinds, as they are at one moment. Raises ApiError, and ClusterUnreachable for a kind that is not there.

    `tell` hears how much is done, 0 to 1: pods are counted as ten kinds, as they take most of the time. Of the
    namespaces of plugins all ConfigMaps are read, of others those with the names of plugins' charts.
    """
    reading = Reading(client, cut, tell=tell, weights=_WEIGHTS)
    found = [await reading.required(needed) for needed in _REQUIRED]
    found += [await reading.optional(each) for each in (*_CLAIMS, *_REFINING, *_SHARING)]
    found += [await reading.optional(_OF_PLUGINS, each) for each in plugin_namespaces if each != _OWN]
    served = await reading.served()
    # A server looks at the role first, so a vendor whose kinds are not even there would seem to be forbidden.
    found += [await reading.optional(each) for each in _OF_OTHERS if served.has(each.resource)]
    if served.has(PROVISIONING_REQUESTS) or served.has(CAPACITY_BUFFERS):
        # Nothing else of what Kerf reads names one, and `view` does not show them.
        found.append(await reading.optional(_TEMPLATES))
    return Documents.joined(found)


class Reading:
    """Lists at one version: that of the first answer."""

    def __init__(
        self,
        client: KubeClient,
        cut: Cut,
        without: str = "planned without",
        tell: Tell = _untold,
        weights: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """`weights`: how much of the work a kind is, by its plural; others are 1, and `""` is the sum of all."""
        self._client, self._cut, self._without = client, cut, without
        self._version = ""
        self._tell, self._weights, self._done = tell, weights, 0.0

    async def served(self) -> ServedGroups:
        """What the server has. Raises ApiError."""
        return msgspec.json.decode(await self._client.fetch("/apis"), type=ServedGroups)

    async def required(self, needed: Access) -> Documents:
        """All objects of a kind. Raises ClusterUnreachable where the cluster does not have it."""
        try:
            return await self._listed(needed)
        except NotFound as error:
            resource = needed.resource
            raise ClusterUnreachable(
                f"the cluster has no {resource.kind} of {resource.api_version} "
                "(hint: kerf manifests --crds | kubectl apply --server-side -f -)"
            ) from error

    async def optional(self, wanted: Access, namespace: str = "") -> Documents:
        """All objects of a kind; none where the cluster does not have it, or may not show it."""
        try:
            return await self._listed(wanted, namespace)
        except NotFound:
            return Documents()
        except Forbidden as error:
            echo(f"note: {self._without} {wanted.resource}: {error}", err=True)
            return Documents()

    async def _listed(self, wanted: Access, namespace: str = "") -> Documents:
        try:
            return await self._listed_at_once(wanted, namespace)
        finally:
            self._done += self._weights.get(wanted.resource.plural, 1)
            self._say(0.0)

    def _say(self, more: float) -> None:
        if whole := self._weights.get("", 0):
            self._tell(min(1.0, (self._done + more) / whole))

    async def _listed_at_once(self, wanted: Access, namespace: str) -> Documents:
        exact = {"resourceVersion": self._version, "resourceVersionMatch": "Exact"} if self._version else {}
        try:
            return await self._pages(wanted, namespace, {"limit": _PAGE, **exact})
        except (Gone, Invalid, Unreachable):
            # The version is kept no longer, or this kind is counted apart, in a store of its own: as it is now, then.
            return await self._pages(wanted, namespace, {})

    async def _pages(self, wanted: Access, namespace: str, params: dict[str, str | int]) -> Documents:
        """Page by page; the server makes the next one while this one is read, which takes about as long."""
        if wanted.names:
            params["fieldSelector"] = f"metadata.name={wanted.names[0]}"
        pages: list[Documents] = []
        seen = 0
        page = await self._client.call(wanted, namespace=namespace, params=params)
        while True:
            head = msgspec.json.decode(page, type=_Head).metadata
            self._version = self._version or head.version
            seen += _PAGE
            if head.left:
                self._say(self._weights.get(wanted.resource.plural, 1) * seen / (seen + head.left))
            reading = asyncio.to_thread(self._parsed, wanted, page)
            if not head.continue_:
                return Documents.joined((*pages, await reading))
            # Where it goes on says of which version as well, and may not be given twice.
            params = {name: value for name, value in params.items() if not name.startswith("resourceVersion")}
            params["continue"] = head.continue_
            more = self._client.call(wanted, namespace=namespace, params=params)
            page, read = await asyncio.gather(more, reading)
            pages.append(read)

    def _parsed(self, wanted: Access, page: bytes) -> Documents:
        if wanted == _OF_PLUGINS:
            page = _otherwise_named(page)
        return parse_json(self._cut(wanted.resource, page), f"{wanted.resource.plural}.json")


def _otherwise_named(page: bytes) -> bytes:
    """A page of ConfigMaps without those that are read by name, of all namespaces, or as the history of usage."""
    whole = msgspec.json.decode(page, type=dict[str, msgspec.Raw])
    items = msgspec.json.decode(whole["items"], type=list[msgspec.Raw] | None) if "items" in whole else None
    named = ((msgspec.json.decode(each, type=_Named).metadata.name, each) for each in items or ())
    kept = [each for name, each in named if name not in _BY_NAME and not name.startswith(SHARD_NAME)]
    return msgspec.json.encode({**whole, "items": kept})
