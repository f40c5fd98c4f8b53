"""Plain objects of the API, for the acted-out cloud: its machines are Nodes, and its memory is ConfigMaps.

The controllers see model values; what plays kubelet, device plugin and cloud must write parts of objects that Kerf has
no model of, so it gets the JSON itself. Its accesses are declared apart from those of the controllers, because a
cluster with a real cloud grants none of them.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from kerf.errors import DecodeError
from kerf.kube.client import KubeClient, Params
from kerf.kube.resources import (
    CONFIG_MAPS,
    DAEMON_SETS,
    EVERYWHERE,
    KWOK,
    LEASES,
    NODE_LEASES,
    NODES,
    OWN,
    PODS,
    Access,
    access,
)
from kerf.manifests.live import decode_event, decode_list
from kerf.sharing.registry import CONFIG_MAPS as SHARING_CONFIG_MAPS

Json = dict[str, Any]

_RESOURCES = {resource.kind: resource for resource in (CONFIG_MAPS, NODES, PODS, DAEMON_SETS, LEASES)}
_NAMESPACES = {"ConfigMap": OWN, "Lease": NODE_LEASES}
"""Where the cloud's memory and the heartbeats of its nodes are; all else it meets anywhere."""
_ACCESSES: dict[tuple[str, str, str], Access] = {
    (verb, kind, subresource): access(
        verb, _RESOURCES[kind], subresource, namespace=_NAMESPACES.get(kind, EVERYWHERE), by=KWOK
    )
    for verb, kind, subresource in (
        *((verb, "ConfigMap", "") for verb in ("get", "list", "watch", "create", "patch", "delete")),
        *((verb, "Node", "") for verb in ("get", "list", "watch", "create", "patch", "delete")),
        ("patch", "Node", "status"),
        *((verb, "Pod", "") for verb in ("get", "list", "watch", "patch", "delete")),
        ("list", "DaemonSet", ""),
        ("patch", "Lease", ""),
    )
}
_FIND_SHARING = access("list", CONFIG_MAPS, names=SHARING_CONFIG_MAPS, by=KWOK)
"""Of ConfigMaps elsewhere, those alone that say how GPUs are shared."""
_PAGE = 500
_WATCH_S = 1800
_SILENCE_S = 180.0
"""A watch with bookmarks says something every minute."""


class KubeObjects:
    """`kerf.clouds.kwok.cloud.ObjectStore` over a connection."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def get(self, kind: str, namespace: str, name: str) -> Json:
        """The object as it is now. Raises NotFound."""
        return _object(await self._client.call(_access("get", kind), namespace=namespace, name=name))

    async def list(self, kind: str, *, namespace: str = "", labels: str = "", fields: str = "") -> Sequence[Json]:
        """All that the selectors take, of all namespaces when none is given."""
        pages = self._pages(kind, namespace, _selectors(labels, fields))
        return [obj async for objects, _ in pages for obj in objects]

    async def pages(self, kind: str) -> AsyncIterator[Sequence[Json]]:
        """All of the kind, of all namespaces, a page at a time: who stops reading asks for no further page."""
        async for objects, _ in self._pages(kind, "", {}):
            yield objects

    async def create(self, obj: Json) -> Json:
        """Create it. Raises AlreadyExists."""
        namespace = obj["metadata"].get("namespace", "")
        return _object(await self._client.call(_access("create", obj["kind"]), namespace=namespace, body=obj))

    async def patch(self, kind: str, namespace: str, name: str, patch: Json, *, subresource: str = "") -> Json:
        """Apply a merge patch. Raises NotFound, Conflict for an old resourceVersion, Invalid for another's uid."""
        way = _access("patch", kind, subresource)
        return _object(await self._client.call(way, namespace=namespace, name=name, body=patch))

    async def delete(self, kind: str, namespace: str, name: str, *, uid: str = "", grace_s: int | None = None) -> None:
        """Ask for deletion, of the object with that uid. Raises NotFound, and Conflict for another of its name."""
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        await self._client.call(_access("delete", kind), namespace=namespace, name=name, body=options)

    async def watch(self, kind: str, *, namespace: str = "", labels: str) -> AsyncIterator[tuple[str, Sequence[Json]]]:
        """(LISTED, a page of what exists), then (ADDED, another page) and (ADDED | MODIFIED | DELETED, one).

        Ends when the server ends it or no longer knows the version; raises ApiError when the connection breaks. In
        either case changes may have been missed: call it again.
        """
        what, version = "LISTED", ""
        async for objects, listed_at in self._pages(kind, namespace, _selectors(labels, "")):
            yield what, objects
            what, version = "ADDED", listed_at
        wanted = {"resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": str(_WATCH_S)}
        params = {**_selectors(labels, ""), **wanted}
        way = _access("watch", kind)
        async with self._client.watch(way, namespace=namespace, params=params, silence_s=_SILENCE_S) as chunks:
            async for line in _lines(chunks):
                event = decode_event(line)
                if event.type == "ERROR":
                    return
                if event.type != "BOOKMARK":
                    yield event.type, [_object(event.object)]

    async def _pages(self, kind: str, namespace: str, selectors: Params) -> AsyncIterator[tuple[Sequence[Json], str]]:
        """(objects, version of the list), page by page; there is always one."""
        is_sharing = kind == CONFIG_MAPS.kind and not namespace
        way, token = _FIND_SHARING if is_sharing else _access("list", kind), ""
        # The items of a list do not say what they are.
        named = {"apiVersion": way.resource.api_version, "kind": kind}
        while True:
            params = {**selectors, "limit": _PAGE, **({"continue": token} if token else {})}
            page = decode_list(await self._client.call(way, namespace=namespace, params=params))
            yield [{**named, **_object(item)} for item in page.items], page.resource_version
            token = page.continue_token
            if not token:
                return


def _access(verb: str, kind: str, subresource: str = "") -> Access:
    return _ACCESSES[verb, kind, subresource]


def _selectors(labels: str, fields: str) -> dict[str, str]:
    return {name: text for name, text in (("labelSelector", labels), ("fieldSelector", fields)) if text}


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    """All of ObjectMeta but `managedFields`, which are half of an object and which is not asked for here."""

    name: Any = UNSET
    generate_name: Any = UNSET
    namespace: Any = UNSET
    uid: Any = UNSET
    resource_version: Any = UNSET
    generation: Any = UNSET
    creation_timestamp: Any = UNSET
    deletion_timestamp: Any = UNSET
    deletion_grace_period_seconds: Any = UNSET
    labels: Any = UNSET
    annotations: Any = UNSET
    owner_references: Any = UNSET
    finalizers: Any = UNSET


class _Plain(msgspec.Struct, rename="camel", gc=False):
    """What objects of the kinds above have."""

    metadata: _Metadata
    api_version: Any = UNSET
    kind: Any = UNSET
    spec: Any = UNSET
    status: Any = UNSET
    data: Any = UNSET


_PLAIN = msgspec.json.Decoder(_Plain)


def _object(data: bytes | msgspec.Raw) -> Json:
    try:
        found = _PLAIN.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DecodeError("", "an object of the Kubernetes API", f"<{error}>") from error
    plain: Json = msgspec.to_builtins(found)
    return plain


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines; what is cut off at the end is no line."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield line
