"""What a live API sends, from bytes to model values: pages of a list, events of a watch, and the objects in them.

The envelope is read without its objects, which stay bytes until they are decoded one by one: one object that cannot be
read must not hide the others, and a page of 500 pods as dictionaries is fifty times what is kept of it. The `Raw` parts
point into the page or line they came from and keep all of it in memory: decode them, then drop them. Who decodes a
whole page does well to switch off the cyclic garbage collector meanwhile; nothing here makes cycles.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from kerf.errors import DecodeError
from kerf.manifests import usage
from kerf.manifests.decode import decode_object
from kerf.manifests.pods.live import Unusual, live_pod
from kerf.manifests.schema import Report, path_text, shown
from kerf.model.nodes import Node
from kerf.model.snapshot import Watched
from kerf.model.usage import NodeUsage, PodUsage

_Bytes = Raw | UnsetType


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list. `continue_token` is empty on the last one; `remaining` None where the server does not say."""

    resource_version: str
    continue_token: str
    remaining: int | None
    items: tuple[Raw, ...]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch: `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`, and the object or Status with it."""

    type: str
    object: Raw


@dataclass(frozen=True, slots=True)
class Identity:
    """Which object it is, and which version of it; empty where the object does not say."""

    namespace: str
    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class ApiStatus:
    """A Status: why the API refused. `code` 0: it did not say; `retry_after_s` None: nor when to try again."""

    code: int
    reason: str
    message: str
    retry_after_s: int | None = None


class _ListMeta(Struct, rename="camel", gc=False):
    resource_version: str | None = None
    continue_: str | None = msgspec.field(name="continue", default=None)
    remaining_item_count: int | None = None


class _List(Struct, gc=False):
    metadata: _ListMeta | None = None
    items: list[Raw] | None = None


class _Event(Struct, gc=False):
    type: str
    object: Raw


class _Names(Struct, rename="camel", gc=False):
    namespace: Any = ""
    name: Any = ""
    uid: Any = ""
    resource_version: Any = ""


class _Named(Struct, gc=False):
    metadata: _Names


class _Details(Struct, rename="camel", gc=False):
    retry_after_seconds: int | None = None


class _Status(Struct, gc=False):
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: _Details | None = None


class _NodeMetadata(Struct, rename="camel", gc=False):
    """All that `kinds.METADATA` looks into; not `managedFields`."""

    name: _Bytes = UNSET
    namespace: _Bytes = UNSET
    labels: _Bytes = UNSET
    annotations: _Bytes = UNSET
    uid: _Bytes = UNSET
    resource_version: _Bytes = UNSET
    generation: _Bytes = UNSET
    creation_timestamp: _Bytes = UNSET
    deletion_timestamp: _Bytes = UNSET
    finalizers: _Bytes = UNSET
    owner_references: _Bytes = UNSET


class _NodeCondition(Struct, rename="camel", gc=False):
    """What is kept of a condition; neither the time of the last heartbeat nor the words, which kubelet repeats."""

    type: _Bytes = UNSET
    status: _Bytes = UNSET
    reason: _Bytes = UNSET
    last_transition_time: _Bytes = UNSET


class _NodeStatus(Struct, gc=False):
    """All that `kinds.NODE` looks into; not the images, which are half of a node's bytes."""

    capacity: _Bytes = UNSET
    allocatable: _Bytes = UNSET
    conditions: list[_NodeCondition] | UnsetType | None = UNSET


class _Node(Struct, rename="camel", gc=False):
    metadata: _NodeMetadata
    spec: _Bytes = UNSET
    status: _NodeStatus | UnsetType = UNSET
    api_version: _Bytes = UNSET
    kind: _Bytes = UNSET


_LISTS = msgspec.json.Decoder(_List)
_EVENTS = msgspec.json.Decoder(_Event)
_NAMED = msgspec.json.Decoder(_Named)
_STATUSES = msgspec.json.Decoder(_Status)
_NODES = msgspec.json.Decoder(_Node)
_HANDSHAKE = re.compile(rb'"[^"\\/]*/node-(?:vgpu-)?handshake(?:-[^"\\]*)?":"(?!Deleted)[^"\\]*"')
"""Those of `kerf.manifests.cluster` that are not kept."""
_MOST_NODES = 10_000
_NODES_READ: dict[bytes, tuple[bytes, Node]] = {}
"""By uid, the newest form of each node and a digest of all that is read of it but its version."""


def decode_list(page: bytes) -> Page:
    """One page of a list. Raises DecodeError for what is no list, such as an answer that was cut off."""
    try:
        found = _LISTS.decode(page)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DecodeError("", "a Kubernetes list", f"<{error}>") from error
    meta = found.metadata or _ListMeta()
    return Page(meta.resource_version or "", meta.continue_ or "", meta.remaining_item_count, tuple(found.items or ()))


def decode_event(line: bytes) -> WatchEvent:
    """One line of a watch. Raises DecodeError for what is none, such as a line that was cut off."""
    try:
        found = _EVENTS.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DecodeError("", "a watch event", f"<{error}>") from error
    return WatchEvent(found.type, found.object)


def samples_of(items: Sequence[Raw], kind: str) -> tuple[list[PodUsage | NodeUsage], list[str]]:
    """Items of a live list of that kind, and a line for each value that was left out."""
    samples: list[PodUsage | NodeUsage] = []
    doubts: list[str] = []
    for item in items:
        report = Report()
        raw = msgspec.json.decode(item)
        if not isinstance(raw, dict):
            doubts.append(f"{kind}: expected an object, got {shown(raw)}")
            continue
        sample = (usage.pod_usage_of if kind == "PodMetrics" else usage.node_usage_of)(raw, report)
        samples += [] if sample is None else [sample]
        place = f"{kind} {_place(raw)}"
        doubts += (str(DecodeError(path_text(p.path), p.expected, p.got, place=place)) for p in report.doubts)
    return samples, doubts


def _place(raw: dict[str, Any]) -> str:
    metadata = raw.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    return "/".join(str(named[key]) for key in ("namespace", "name") if named.get(key)) or "?"


def identity_of(raw: bytes | Raw) -> Identity:
    """Which object it is, also of one that cannot be decoded otherwise. Raises DecodeError without any metadata."""
    try:
        names = _NAMED.decode(raw).metadata
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DecodeError("metadata", "a mapping", f"<{error}>") from error
    return Identity(*(_text(v) for v in (names.namespace, names.name, names.uid, names.resource_version)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def status_of(raw: bytes | Raw) -> ApiStatus:
    """The Status of an ERROR event or of a refusal. What is none, a proxy's page say, has code 0 and its own text."""
    try:
        found = _STATUSES.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ApiStatus(0, "", bytes(raw)[:200].decode(errors="replace"))
    retry = found.details.retry_after_seconds if found.details is not None else None
    return ApiStatus(found.code or 0, found.reason or "", found.message or "", retry)


def decode_live(raw: bytes | Raw, kind: str, api_version: str) -> Watched | None:
    """One object of a live API; None for a kind that Kerf does not follow. Raises DecodeError.

    The items of a list have no kind of their own: `kind` and `api_version` are the list's. Equal in result to
    `decode_object` of the same object, save that bytes of parts that are not read are not looked into.
    """
    try:
        if (kind, api_version) == ("Pod", "v1"):
            return live_pod(raw)
        if (kind, api_version) == ("Node", "v1"):
            return _live_node(_NODES.decode(raw))
    except (Unusual, DecodeError, msgspec.MsgspecError, ValueError, RecursionError):
        # Something is amiss, or looks it: the whole object, in its own order, is what an error must speak of.
        pass
    return _decode(bytes(raw), kind, api_version)


def _live_node(found: _Node) -> Watched | None:
    """As it was read before where only its heartbeat or HAMi's handshake is new, which is what nodes send most."""
    version, found.metadata.resource_version = found.metadata.resource_version, UNSET
    if _is(found.kind, b'"Node"') and _is(found.api_version, b'"v1"'):
        # A watch says so and a list does not.
        found.kind = found.api_version = UNSET
    text = msgspec.json.encode(found)
    digest = hashlib.blake2b(_HANDSHAKE.sub(b"", text), digest_size=16).digest()
    uid = found.metadata.uid
    key = bytes(uid) if isinstance(uid, Raw) else b""
    known, node = _NODES_READ.get(key, (b"", None))
    if node is None or known != digest:
        read = _decode(text, "Node", "v1")
        if not isinstance(read, Node):
            raise Unusual
        if len(_NODES_READ) >= _MOST_NODES:
            # Nodes that are gone are in it too; those that are there come back with their next heartbeat.
            _NODES_READ.clear()
        _NODES_READ[key], node = (digest, read), read
    stated = msgspec.json.decode(version) if isinstance(version, Raw) else ""
    if not isinstance(stated, str):
        raise Unusual
    return replace(node, resource_version=stated)


def _is(held: _Bytes, text: bytes) -> bool:
    return isinstance(held, Raw) and bytes(held) == text


def _decode(text: bytes, kind: str, api_version: str) -> Watched | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecodeError("", "a JSON object", f"<text that is no JSON: {error}>", place=kind) from error
    return decode_object({"apiVersion": api_version, "kind": kind, **value} if isinstance(value, dict) else value)
