"""The writes of the controllers against a real API server.

A controller decides on what it has read; between that and the write others write too, Kerf may be frozen or replaced,
and an answer may be lost although the write was made. So every write states which object, and where it replaces
something which version of it, it is for. Most are therefore a read, the difference to what is wanted, and a merge patch
of that difference; where there is none, nothing is written. The uid in a patch would not do: the server checks it for
its own kinds only and takes any uid for the status of a custom resource (tried with 1.36), so a patch carries the
resourceVersion as well.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kerf.errors import ApiError, DecodeError
from kerf.kube.client import JSON_PATCH, Forbidden, Invalid, KubeClient
from kerf.kube.resources import (
    CAPACITY_BUFFERS,
    CAPACITY_WINDOWS,
    NODE_CLAIMS,
    NODE_OVERLAYS,
    NODE_POOLS,
    NODES,
    PODS,
    PROVISIONING_REQUESTS,
    Access,
    access,
)
from kerf.manifests.decode import decode_object
from kerf.manifests.encode import (
    buffer_status,
    condition_list,
    node_claim_object,
    node_claim_status,
    node_merged,
    node_pool_status_merged,
    toleration_object,
)
from kerf.manifests.windows.encode import window_status
from kerf.model.capacitybuffers import CapacityBuffer
from kerf.model.constraints import Taint
from kerf.model.nodeclaim import TERMINATION_FINALIZER, Condition, NodeClaim
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.provisioningrequests import ProvisioningRequest
from kerf.model.quantities import Resources
from kerf.model.snapshot import Watched
from kerf.model.windows import CapacityWindow
from kerf.ports import Conflict, NotFound, WriteRefused

GET_CLAIM = access("get", NODE_CLAIMS)
CREATE_CLAIM = access("create", NODE_CLAIMS)
PATCH_CLAIM = access("patch", NODE_CLAIMS)
PATCH_CLAIM_STATUS = access("patch", NODE_CLAIMS, "status")
DELETE_CLAIM = access("delete", NODE_CLAIMS)
GET_NODE = access("get", NODES)
PATCH_NODE = access("patch", NODES)
DELETE_NODE = access("delete", NODES)
GET_POOL = access("get", NODE_POOLS)
PATCH_POOL = access("patch", NODE_POOLS)
PATCH_POOL_STATUS = access("patch", NODE_POOLS, "status")
GET_OVERLAY = access("get", NODE_OVERLAYS)
PATCH_OVERLAY_STATUS = access("patch", NODE_OVERLAYS, "status")
GET_WINDOW = access("get", CAPACITY_WINDOWS)
PATCH_WINDOW = access("patch", CAPACITY_WINDOWS)
PATCH_WINDOW_STATUS = access("patch", CAPACITY_WINDOWS, "status")
GET_REQUEST = access("get", PROVISIONING_REQUESTS)
PATCH_REQUEST_STATUS = access("patch", PROVISIONING_REQUESTS, "status")
GET_BUFFER = access("get", CAPACITY_BUFFERS)
PATCH_BUFFER_STATUS = access("patch", CAPACITY_BUFFERS, "status")
GET_POD = access("get", PODS)
PATCH_POD = access("patch", PODS)
EVICT_POD = access("create", PODS, "eviction")
DELETE_POD = access("delete", PODS)

Object = dict[str, Any]
_TRIES = 10
"""Schedulers and kubelets write a pod in quick succession; none is written ten times in a row for long."""
_CLAIM_METADATA = ("labels", "annotations", "finalizers")
_CLAIM_STATUS = ("conditions", "providerID", "nodeName", "capacity", "allocatable", "lastPodEventTime")
_GIVEN_BY_SERVER = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")


class Overtaken(Conflict):
    """Another client wrote between our read and our write."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Which object is meant; an empty uid or version means whatever is there."""

    name: str
    namespace: str = ""
    uid: str = ""
    version: str = ""


class KubeWriter:
    """`kerf.ports.KubeWriter` over the Kubernetes API.

    Each verb may be repeated after Unreachable, when it is not known whether it was done; what a repetition of a done
    one does is said with each.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def create_node_claim(self, claim: NodeClaim) -> NodeClaim:
        """Create it, owned by its NodePool and held by our finalizer. Repeated: AlreadyExists."""
        obj = node_claim_object(claim, await self._pool_uid(claim.node_pool))
        # A new object has no status; the server would drop it.
        del obj["status"]
        metadata = obj["metadata"]
        for field in _GIVEN_BY_SERVER:
            metadata.pop(field, None)
        held = metadata.get("finalizers", [])
        metadata["finalizers"] = [*held, *({TERMINATION_FINALIZER} - set(held))]
        return _claim(_object(await self._client.call(CREATE_CLAIM, body=obj)))

    async def update_node_claim(self, claim: NodeClaim) -> NodeClaim:
        """Write labels, annotations and finalizers, and nothing else. Repeated: Conflict, as the version is old."""
        written = node_claim_object(claim)["metadata"]

        def edited(raw: Object) -> Object:
            metadata = {field: value for field, value in raw["metadata"].items() if field not in _CLAIM_METADATA}
            metadata.update({field: written[field] for field in _CLAIM_METADATA if field in written})
            return {**raw, "metadata": metadata}

        return _claim(await self._edit(GET_CLAIM, PATCH_CLAIM, _place_of(claim), edited))

    async def update_node_claim_status(self, claim: NodeClaim) -> NodeClaim:
        """Write the parts of the status that Kerf knows, as they are in `claim`. Repeated: Conflict, as above."""
        written = node_claim_status(claim)

        def edited(raw: Object) -> Object:
            others = {f: value for f, value in raw.get("status", {}).items() if f not in _CLAIM_STATUS}
            return {**raw, "status": {**others, **written}}

        return _claim(await self._edit(GET_CLAIM, PATCH_CLAIM_STATUS, _place_of(claim), edited))

    async def delete_node_claim(self, claim: NodeClaim) -> None:
        """Ask for deletion. Repeated: nothing while a finalizer holds it, then NotFound."""
        await self._client.call(DELETE_CLAIM, name=claim.name, body=_delete_options(claim.uid))

    async def update_node(self, node: Node) -> Node:
        """Write labels, annotations, taints, cordon and finalizers. Repeated: Conflict, as the version is old."""
        return _node(await self._edit(GET_NODE, PATCH_NODE, _place_of(node), lambda raw: node_merged(raw, node)))

    async def delete_node(self, node: Node) -> None:
        """Ask for deletion. Repeated: nothing while a finalizer holds it, then NotFound."""
        await self._client.call(DELETE_NODE, name=node.name, body=_delete_options(node.uid))

    async def update_node_pool_status(
        self, name: str, resources: Resources | None, conditions: Sequence[Condition]
    ) -> None:
        """Write a pool's counted resources, unless they are None, and these conditions. Repeated: nothing."""

        def edited(raw: Object) -> Object:
            return {**raw, "status": node_pool_status_merged(raw.get("status") or {}, resources, conditions)}

        await self._edit_any(GET_POOL, PATCH_POOL_STATUS, _Place(name), edited)

    async def update_node_overlay_status(self, name: str, conditions: Sequence[Condition]) -> None:
        """Write an overlay's conditions. Repeated: nothing."""
        written = {"conditions": condition_list(conditions)}
        await self._edit_any(GET_OVERLAY, PATCH_OVERLAY_STATUS, _Place(name), lambda raw: _with_status(raw, written))

    async def update_window_status(self, window: CapacityWindow) -> CapacityWindow:
        """Write the status as it is in `window`. Repeated: Conflict, as the version is old."""
        written = window_status(window)
        return await self._edit_window(PATCH_WINDOW_STATUS, window, lambda raw: {**raw, "status": written})

    async def update_window_finalizers(self, window: CapacityWindow) -> CapacityWindow:
        """Write the finalizers as they are in `window`. Repeated: Conflict, as the version is old."""
        written = {"finalizers": list(window.finalizers)}
        return await self._edit_window(
            PATCH_WINDOW, window, lambda raw: {**raw, "metadata": {**raw["metadata"], **written}}
        )

    async def _edit_window(
        self, patch: Access, window: CapacityWindow, edited: Callable[[Object], Object]
    ) -> CapacityWindow:
        place = _Place(window.name, uid=window.uid, version=window.resource_version)
        written = await self._edit(GET_WINDOW, patch, place, edited)
        value = decode_object(written)
        if not isinstance(value, CapacityWindow):
            raise ApiError(f"the server's answer: expected a CapacityWindow, got {written['kind']}")
        return value

    async def update_provisioning_request_status(self, request: ProvisioningRequest) -> ProvisioningRequest:
        """Write the conditions as they are in `request`. Repeated: Conflict, as the version is old."""
        conditions = condition_list(request.conditions)
        place = _Place(request.name, request.namespace, request.uid, request.resource_version)

        def edited(raw: Object) -> Object:
            return {**raw, "status": {**(raw.get("status") or {}), "conditions": conditions}}

        written = await self._edit(GET_REQUEST, PATCH_REQUEST_STATUS, place, edited)
        value = decode_object(written)
        if not isinstance(value, ProvisioningRequest):
            raise ApiError(f"the server's answer: expected a ProvisioningRequest, got {written['kind']}")
        return value

    async def update_capacity_buffer_status(self, buffer: CapacityBuffer) -> CapacityBuffer:
        """Write the status as it is in `buffer`. Repeated: Conflict, as the version is old."""
        written = buffer_status(buffer.status)
        place = _Place(buffer.name, buffer.namespace, buffer.uid, buffer.resource_version)

        def edited(raw: Object) -> Object:
            return {**raw, "status": written}

        value = decode_object(await self._edit(GET_BUFFER, PATCH_BUFFER_STATUS, place, edited))
        if not isinstance(value, CapacityBuffer):
            raise ApiError(f"the server's answer: expected a CapacityBuffer, got {type(value).__name__}")
        return value

    async def open_gates(self, pod: Pod, gates: Sequence[str], annotations: Mapping[str, str]) -> None:
        """Take these scheduling gates off a pod, and no other, and annotate it. Repeated: Conflict.

        A patch of a list by positions, each of which is tested: a merge patch would write back what another owner of a
        gate has just taken away.
        """
        raw = await self._read(GET_POD, _place_of_pod(pod))
        held = [gate["name"] for gate in raw["spec"].get("schedulingGates") or ()]
        patch: list[Object] = [{"op": "test", "path": "/metadata/uid", "value": raw["metadata"]["uid"]}]
        for index in (index for index in reversed(range(len(held))) if held[index] in gates):
            path = f"/spec/schedulingGates/{index}"
            patch += [{"op": "test", "path": f"{path}/name", "value": held[index]}, {"op": "remove", "path": path}]
        if len(patch) == 1:
            raise Conflict(f"pod {pod.key} has none of the gates {', '.join(gates)}")
        if annotations and "annotations" not in raw["metadata"]:
            patch.append({"op": "add", "path": "/metadata/annotations", "value": {}})
        for key, text in sorted(annotations.items()):
            escaped = key.replace("~", "~0").replace("/", "~1")
            patch.append({"op": "add", "path": f"/metadata/annotations/{escaped}", "value": text})
        try:
            await self._client.call(
                PATCH_POD, namespace=pod.namespace, name=pod.name, body=patch, content_type=JSON_PATCH
            )
        except Invalid as error:
            # A test has failed: the gates are others by now.
            raise Conflict(str(error)) from error

    async def annotate_node_pool(self, name: str, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of a pool; None removes one. Repeated: nothing."""
        await self._edit_any(GET_POOL, PATCH_POOL, _Place(name), lambda raw: _annotated(raw, annotations))

    async def annotate_pod(
        self, pod: Pod, annotations: Mapping[str, str | None], *, unless_present: Sequence[str] = ()
    ) -> None:
        """Set annotations of a pod; None removes one. Raises Conflict when one of `unless_present` exists already.

        The writes of others do not matter else. Repeated: nothing, or Conflict when it was `unless_present`.
        """

        def edited(raw: Object) -> Object:
            present = sorted(set(unless_present) & raw["metadata"].get("annotations", {}).keys())
            if present:
                raise Conflict(f"pod {pod.key} has the annotation {present[0]} already")
            return _annotated(raw, annotations)

        await self._edit_any(GET_POD, PATCH_POD, _place_of_pod(pod), edited)

    async def tolerate(self, pod: Pod, taint: Taint) -> None:
        """Add a toleration of exactly this taint. Repeated: nothing. Raises WriteRefused where admission forbids it.

        By position, not as a merge patch of the list: a scheduler writes the pod's status all the time, and each of
        its writes would make a patch with a resourceVersion fail.
        """
        raw = await self._read(GET_POD, _place_of_pod(pod))
        held, new = raw["spec"].get("tolerations"), toleration_object(taint)
        if new in (held or ()):
            return
        add = {"path": "/spec/tolerations/-", "value": new} if held else {"path": "/spec/tolerations", "value": [new]}
        patch = [{"op": "test", "path": "/metadata/uid", "value": raw["metadata"]["uid"]}, {"op": "add", **add}]
        try:
            await self._client.call(
                PATCH_POD, namespace=pod.namespace, name=pod.name, body=patch, content_type=JSON_PATCH
            )
        except (Forbidden, Invalid) as error:
            raise WriteRefused(str(error)) from error

    async def evict(self, pod: Pod) -> None:
        """Evict by the eviction API; EvictionBlocked while a budget forbids it. Repeated: nothing, then NotFound.

        A pod that several budgets cover can never be evicted: the server refuses it with an ApiError. What a webhook
        forbids is WriteRefused. The pod is read first: meeting another under its name, the server would take ten
        seconds to say so and charge the budget.
        """
        if pod.uid:
            await self._read(GET_POD, _place_of_pod(pod))
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": _delete_options(pod.uid),
        }
        try:
            await self._client.call(EVICT_POD, namespace=pod.namespace, name=pod.name, body=body)
        except (Forbidden, Invalid) as error:
            raise WriteRefused(str(error)) from error

    async def delete_pod(self, pod: Pod, grace_s: int) -> None:
        """Delete, giving it `grace_s` to end. Repeated: a shorter grace shortens it, a longer one does nothing."""
        body = {**_delete_options(pod.uid), "gracePeriodSeconds": grace_s}
        await self._client.call(DELETE_POD, namespace=pod.namespace, name=pod.name, body=body)

    async def _pool_uid(self, name: str) -> str:
        """Empty without a pool: its claim then has no pool. Asked again each time, as a pool may be made again."""
        try:
            pool = _object(await self._client.call(GET_POOL, name=name)) if name else {"metadata": {"uid": ""}}
        except NotFound:
            return ""
        uid: str = pool["metadata"]["uid"]
        return uid

    async def _read(self, get: Access, place: _Place) -> Object:
        """The object; Conflict when it is another than the one that is meant."""
        raw = _object(await self._client.call(get, namespace=place.namespace, name=place.name))
        for field, wanted in (("uid", place.uid), ("resourceVersion", place.version)):
            held = raw["metadata"][field]
            if wanted and wanted != held:
                what = f"{raw['kind']} {place.name}"
                text = f"{what} is not the one that was meant: its {field} is {held}, not {wanted}"
                raise Conflict(text, _current(raw))
        return raw

    async def _edit(self, get: Access, patch: Access, place: _Place, edited: Callable[[Object], Object]) -> Object:
        """Read the object, and write what `edited` changes in it; the object as it is then."""
        raw = await self._read(get, place)
        change = _difference(raw, edited(raw))
        if not change:
            return raw
        this = {field: raw["metadata"][field] for field in ("uid", "resourceVersion")}
        change["metadata"] = {**change.get("metadata", {}), **this}
        try:
            written = await self._client.call(patch, namespace=place.namespace, name=place.name, body=change)
        except Conflict as error:
            raise Overtaken(str(error)) from error
        return _object(written)

    async def _edit_any(self, get: Access, patch: Access, place: _Place, edited: Callable[[Object], Object]) -> None:
        """As `_edit`, for what is wanted whichever version the object has."""
        for tries_left in reversed(range(_TRIES)):
            try:
                await self._edit(get, patch, place, edited)
                return
            except Overtaken:
                if not tries_left:
                    raise


_KEPT = (NodeClaim, Node, CapacityWindow, ProvisioningRequest, CapacityBuffer)
"""What is written by its version, so by a form that the state holds."""


def _current(raw: Object) -> Watched | None:
    """The object that was read instead of the one that was meant; None where that is of no use."""
    try:
        value = decode_object(raw)
    except DecodeError:
        return None
    return value if isinstance(value, _KEPT) else None


def _place_of(value: NodeClaim | Node) -> _Place:
    return _Place(value.name, uid=value.uid, version=value.resource_version)


def _place_of_pod(pod: Pod) -> _Place:
    return _Place(pod.name, pod.namespace, pod.uid)


def _delete_options(uid: str) -> Object:
    # No resourceVersion: the wish to delete holds for every version of this one object.
    options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    return {**options, "preconditions": {"uid": uid}} if uid else options


def _with_status(raw: Object, written: Object) -> Object:
    return {**raw, "status": {**raw.get("status", {}), **written}}


def _annotated(raw: Object, annotations: Mapping[str, str | None]) -> Object:
    merged = {**raw["metadata"].get("annotations", {}), **annotations}
    kept = {key: value for key, value in merged.items() if value is not None}
    # An empty mapping and none at all are the same to the server, but not to a difference.
    others = {field: value for field, value in raw["metadata"].items() if field != "annotations"}
    return {**raw, "metadata": {**others, "annotations": kept} if kept else others}


def _difference(old: Object, new: Object) -> Object:
    """The merge patch (RFC 7386) that makes `new` of `old`; empty when they are equal."""
    change: Object = {field: None for field in old if field not in new}
    for field, value in new.items():
        held = old.get(field)
        if isinstance(held, dict) and isinstance(value, dict):
            below = _difference(held, value)
            if below:
                change[field] = below
        elif field not in old or held != value:
            change[field] = value
    return change


def _object(answer: bytes) -> Object:
    try:
        return msgspec.json.decode(answer, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise ApiError(f"the server's answer is no object: {error}") from error


def _claim(obj: Object) -> NodeClaim:
    value = decode_object(obj)
    if not isinstance(value, NodeClaim):
        raise ApiError(f"the server's answer: expected a NodeClaim, got {obj['kind']}")
    return value


def _node(obj: Object) -> Node:
    value = decode_object(obj)
    if not isinstance(value, Node):
        raise ApiError(f"the server's answer: expected a Node, got {obj['kind']}")
    return value
