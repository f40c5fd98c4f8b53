"""Pods of a live API, decoded from their bytes: a hundred thousand at a start, each of 8 KB.

Most of a pod's bytes are nothing to us, and most of the rest is the same for all pods of a workload. So only declared
fields are taken from the text, and labels, owner and spec, taken as bytes, are read once for all pods that have the
same. This is the quick way only: whatever is unusual raises `Unusual`, and the caller decodes that object as a
dictionary, which is the rule that this module must equal.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from kerf.manifests.documents import Document, JsonDocument
from kerf.manifests.kinds import CONTAINER_STATUSES, OWNERS
from kerf.manifests.metadata import NO_TEXTS, owner_of, shared_text, shared_texts
from kerf.manifests.ownkeys import is_unknown
from kerf.manifests.pods.decode import (
    INFEASIBLE,
    RESIZE_PENDING,
    SpecReading,
    is_initialised,
    is_ready,
    kept_annotations,
    of_daemon,
    reading_of,
    resized,
)
from kerf.manifests.schema import LABELS, NAME, Report, Schema
from kerf.manifests.yaml_nodes import MOST_LEVELS
from kerf.model.nodeclaim import READY
from kerf.model.pods import PENDING, Owner, Pod, PodSpec, is_daemon
from kerf.model.times import instant_s

_SHAPES = 16_384
"""How many different specs, labels and owners are remembered; beyond that they are read more than once."""
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT)([01]\d|2[0-3]):([0-5]\d):([0-5]\d)Z", re.ASCII)

_Bytes = Raw | UnsetType
_Text = str | None


class Unusual(Exception):
    """Something that the quick way does not read; it says nothing of whether the object is well formed."""


class ListedPod(NamedTuple):
    """A pod of a list, the latest instant in it save the end of its deletion (0 for none), its text, and the grace of
    its deletion where that is stated."""

    pod: Pod
    newest_s: float
    text: bytes
    deletion_grace_s: int | None = None

    def metadata(self) -> dict[str, Any]:
        """All its metadata as plain values."""
        return _METADATA.decode(self.text).metadata


class _PlainMetadata(Struct, gc=False):
    metadata: dict[str, Any]


_METADATA = msgspec.json.Decoder(_PlainMetadata)


class _Container(Struct, rename="camel", gc=False):
    name: _Bytes = UNSET
    resources: _Bytes = UNSET
    ports: _Bytes = UNSET
    restart_policy: _Bytes = UNSET
    security_context: _Bytes = UNSET


class _Volume(Struct, rename="camel", gc=False):
    name: _Bytes = UNSET
    persistent_volume_claim: _Bytes = UNSET
    ephemeral: _Bytes = UNSET


class _Spec(Struct, rename="camel", gc=False):
    """The parts of `decode._relevant`, as they stand in the text."""

    overhead: _Bytes = UNSET
    node_selector: _Bytes = UNSET
    affinity: _Bytes = UNSET
    tolerations: _Bytes = UNSET
    scheduler_name: _Bytes = UNSET
    priority: _Bytes = UNSET
    priority_class_name: _Bytes = UNSET
    scheduling_gates: _Bytes = UNSET
    topology_spread_constraints: _Bytes = UNSET
    resource_claims: _Bytes = UNSET
    resources: _Bytes = UNSET
    host_network: _Bytes = UNSET
    termination_grace_period_seconds: _Bytes = UNSET
    active_deadline_seconds: _Bytes = UNSET
    workload_ref: _Bytes = UNSET
    runtime_class_name: _Bytes = UNSET
    containers: list[_Container] | UnsetType = UNSET
    init_containers: list[_Container] | UnsetType = UNSET
    volumes: list[_Volume] | UnsetType = UNSET
    node_name: _Text | UnsetType = UNSET


class _Metadata(Struct, rename="camel", gc=False):
    name: str
    namespace: str
    uid: str
    labels: _Bytes = UNSET
    annotations: dict[str, str] | None = None
    resource_version: _Text = None
    generation: Annotated[int, Meta(ge=0, lt=2**53)] | None = None
    creation_timestamp: _Text = None
    deletion_timestamp: _Text = None
    deletion_grace_period_seconds: Annotated[int, Meta(ge=0, lt=2**53)] | None = None
    finalizers: list[str] | None = None
    owner_references: _Bytes = UNSET


class _Condition(Struct, rename="camel", gc=False):
    type: Annotated[str, Meta(min_length=1)]
    status: Literal["True", "False", "Unknown"]
    reason: _Text = None
    message: _Text = None
    last_transition_time: _Text = None


class _Sizes(Struct, rename="camel", gc=False):
    """What a container was given, of which most pods have the same as their spec."""

    name: _Text = None
    resources: _Bytes = UNSET
    allocated_resources: _Bytes = UNSET


class _ContainerStatus(_Sizes, gc=False):
    state: dict[str, dict[str, Any]] | None = None


class _Status(Struct, rename="camel", gc=False):
    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"] | None = None
    conditions: list[_Condition] | None = None
    start_time: _Text = None
    nominated_node_name: _Text = None
    init_container_statuses: list[_ContainerStatus] | None = None
    container_statuses: list[_Sizes] | None = None


class _LivePod(Struct, rename="camel", gc=False):
    metadata: _Metadata
    spec: _Spec
    status: _Status | None = None
    api_version: Literal["v1"] = "v1"
    kind: Literal["Pod"] = "Pod"


_DECODER = msgspec.json.Decoder(_LivePod)
_ENCODER = msgspec.json.Encoder()


def listed_pod(document: Document) -> ListedPod | None:
    """The pod of a document that a server has answered, as the long way reads it, which is four times slower.

    None for every other document, and where only the long way can tell what it is or what is to be said of it.
    """
    raw = document.answered("Pod", "v1") if isinstance(document, JsonDocument) else None
    # The long way counts the levels of parts that are not looked into here.
    if raw is None or raw.count(b"{") + raw.count(b"[") > MOST_LEVELS:
        return None
    try:
        found = _DECODER.decode(raw)
        pod = _pod(found, document.source)
    except (Unusual, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if any(map(is_unknown, pod.labels)) or any(map(is_unknown, found.metadata.annotations or ())):
        return None
    conditions = (found.status or _NO_STATUS).conditions or ()
    instants = (_instant(condition.last_transition_time) or 0 for condition in conditions)
    newest_s = max(0, pod.created_s, pod.started_s or 0, *instants)
    return ListedPod(pod, newest_s, raw, found.metadata.deletion_grace_period_seconds)


def live_pod(raw: bytes | Raw) -> Pod:
    """A Pod from the JSON that an API server sends. Raises Unusual where only the long way can tell."""
    try:
        return _pod(_DECODER.decode(raw), "")
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Unusual from error


def _pod(found: _LivePod, source: str) -> Pod:
    """Raises Unusual, and what the decoders of its parts raise."""
    meta, status = found.metadata, found.status or _NO_STATUS
    owner = _owner(_bytes(meta.owner_references))
    encoded, node_name = _spec(found.spec, owner)
    reading = _spec_of(encoded)
    if reading.spec is None or not meta.uid:
        raise Unusual
    spec = _resized_of(encoded, *_sizes(status)) if node_name else reading.spec
    _check_name(meta.name)
    ready = _ready(status.conditions or ())
    return Pod(
        namespace=_namespace(meta.namespace),
        name=meta.name,
        spec=spec,
        labels=_labels(_bytes(meta.labels)),
        annotations=kept_annotations(meta.annotations or NO_TEXTS),
        uid=meta.uid,
        resource_version=meta.resource_version or "",
        created_s=_instant(meta.creation_timestamp) or 0,
        deleted_s=_instant(meta.deletion_timestamp),
        started_s=_instant(status.start_time),
        node_name=node_name,
        nominated_node=shared_text(status.nominated_node_name or ""),
        phase=status.phase or PENDING,
        owner=owner,
        unschedulable=_unschedulable(status.conditions or ()),
        initialised=_is_initialised(reading.spec, status),
        source=source,
        reserved_for=reading.reserved_for,
        is_ready=is_ready(status.phase, ready.status if ready is not None else None),
        starting_s=None if ready is None else _starting_s(status.start_time, ready),
    )


_NO_STATUS = _Status()


def _bytes(raw: _Bytes) -> bytes:
    return b"" if raw is UNSET else bytes(raw)


def _spec(found: _Spec, owner: Owner | None) -> tuple[bytes, str]:
    """(what is read of the spec, and the node), which is no part of the shape."""
    node_name, found.node_name = found.node_name, UNSET
    if found.affinity is not UNSET and node_name and is_daemon(owner):
        found.affinity = Raw(_ENCODER.encode(of_daemon(msgspec.json.decode(found.affinity))))
    if found.volumes is not UNSET:
        found.volumes = [v for v in found.volumes if v.persistent_volume_claim is not UNSET or v.ephemeral is not UNSET]
    return _ENCODER.encode(found), shared_text(node_name) if node_name else ""


@lru_cache(maxsize=_SHAPES)
def _spec_of(encoded: bytes) -> SpecReading:
    return reading_of(json.loads(encoded), None)


def _sizes(status: _Status) -> tuple[bytes, bool]:
    """(what the containers were given, and whether kubelet refuses to give them what they ask now)."""
    given = [*(status.container_statuses or ()), *(status.init_container_statuses or ())]
    sizes = [
        _Sizes(each.name, each.resources, each.allocated_resources)
        for each in given
        if each.resources is not UNSET or each.allocated_resources is not UNSET
    ]
    conditions = status.conditions or ()
    is_infeasible = any(c.type == RESIZE_PENDING and c.reason == INFEASIBLE for c in conditions)
    return _ENCODER.encode(sizes), is_infeasible


@lru_cache(maxsize=_SHAPES)
def _resized_of(encoded: bytes, sizes: bytes, is_infeasible: bool) -> PodSpec:
    """The spec with what its containers hold, shared by all pods of equal bytes."""
    spec, report = _spec_of(encoded).spec, Report()
    statuses = json.loads(sizes)
    CONTAINER_STATUSES.check(statuses, (), report)
    if spec is None or report.problems:
        raise Unusual
    return resized(spec, statuses, is_infeasible=is_infeasible)


@lru_cache(maxsize=_SHAPES)
def _labels(encoded: bytes) -> Mapping[str, str]:
    found = _checked(encoded, LABELS)
    return shared_texts(found) if found else NO_TEXTS


@lru_cache(maxsize=_SHAPES)
def _owner(encoded: bytes) -> Owner | None:
    return owner_of(_checked(encoded, OWNERS) or ())


def _checked(encoded: bytes, schema: Schema) -> Any:
    """The value; None for one that is absent or null. Raises Unusual for one that has not the form."""
    value = json.loads(encoded) if encoded else None
    report = Report()
    if value is not None:
        schema.check(value, (), report)
    if report.problems:
        raise Unusual
    return value


def _check_name(name: str) -> None:
    if not NAME.accepts(name):
        raise Unusual


@lru_cache(maxsize=_SHAPES)
def _namespace(name: str) -> str:
    _check_name(name)
    return name


@lru_cache(maxsize=_SHAPES)
def _instant(text: _Text) -> float | None:
    """Seconds; None for none. The API server's own form is read without `datetime`, since each pod has several.

    Most conditions of a pod have the same instant.
    """
    if text is None:
        return None
    match = _INSTANT.fullmatch(text)
    if match is None:
        return instant_s(text)
    day, hour, minute, second = match.groups()
    return _day_s(day) + (int(hour) * 60 + int(minute)) * 60 + int(second)


@lru_cache(maxsize=4096)
def _day_s(day: str) -> float:
    return instant_s(f"{day}00:00:00Z")


def _unschedulable(conditions: Sequence[_Condition]) -> str:
    """Why the scheduler has refused the pod; the last condition of a type counts. Checks the times of all."""
    message = ""
    for condition in conditions:
        _instant(condition.last_transition_time)
        if condition.type == "PodScheduled":
            message = (condition.message or "") if condition.status == "False" else ""
    return shared_text(message) if message else ""


def _ready(conditions: Sequence[_Condition]) -> _Condition | None:
    """The condition Ready, of several the last; None for none."""
    return next((condition for condition in reversed(conditions) if condition.type == READY), None)


def _starting_s(started: _Text, ready: _Condition) -> int | None:
    first, then = _instant(started), _instant(ready.last_transition_time)
    return max(0, int(then - first)) if ready.status == "True" and first is not None and then is not None else None


def _is_initialised(spec: PodSpec, status: _Status) -> bool:
    statuses = status.init_container_statuses
    return bool(statuses) and is_initialised(spec, [{"name": s.name, "state": s.state} for s in statuses or ()])
