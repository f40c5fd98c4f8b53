"""NodeClasses of a provider as documents: read whole, and written in metadata and status alone.

Everything else of Kerf sees of a NodeClass whether it is ready. Only its provider knows its spec, so the provider gets
the object itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kerf.errors import ApiError
from kerf.kube.client import KubeClient
from kerf.kube.resources import AWS, DRY_RUN, EC2_NODE_CLASSES, RUN, access
from kerf.manifests.live import decode_list
from kerf.ports import NotFound

# The reader lists these too: a `get` would be one verb more.
_LIST = access("list", EC2_NODE_CLASSES, by=(RUN, DRY_RUN))
_MARK = access("patch", EC2_NODE_CLASSES, by=AWS)
_STATUS = access("patch", EC2_NODE_CLASSES, "status", by=AWS)

Object = dict[str, Any]


class KubeEC2NodeClasses:
    """`kerf.ports.NodeClassStore` over a connection, for EC2NodeClass."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def read(self, name: str) -> Object:
        """The object as it is now. Raises NotFound."""
        page = decode_list(await self._client.call(_LIST, params={"fieldSelector": f"metadata.name={name}"}))
        if not page.items:
            raise NotFound(f"{EC2_NODE_CLASSES.kind} {name} does not exist")
        named = {"apiVersion": EC2_NODE_CLASSES.api_version, "kind": EC2_NODE_CLASSES.kind}
        return {**named, **_object(page.items[0])}

    async def mark(
        self,
        node_class: Mapping[str, Any],
        *,
        finalizers: Sequence[str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> Object:
        """Set finalizers, and annotations beside those it has. Raises NotFound, Conflict."""
        change: Object = {"resourceVersion": node_class["metadata"]["resourceVersion"]}
        if finalizers is not None:
            change["finalizers"] = list(finalizers)
        if annotations is not None:
            change["annotations"] = dict(annotations)
        name = node_class["metadata"]["name"]
        return _object(await self._client.call(_MARK, name=name, body={"metadata": change}))

    async def write_status(self, node_class: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        """Put this status in the place of the one it has. Raises NotFound, Conflict."""
        before = node_class.get("status") or {}
        fields = sorted({*before, *status})
        change = {field: status.get(field) for field in fields if before.get(field) != status.get(field)}
        metadata = node_class["metadata"]
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": change}
        await self._client.call(_STATUS, name=metadata["name"], body=body)


def _object(raw: bytes | msgspec.Raw) -> Object:
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise ApiError(f"the server's answer is no object: {error}") from error
