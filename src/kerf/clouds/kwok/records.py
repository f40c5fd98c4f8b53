"""The instances of the acted-out cloud as ConfigMaps, and what it needs of an API to keep them.

The cloud must survive any crash of Kerf, and a process that acts one out has no other memory than the API. So a
ConfigMap *is* the instance: its name is made of the claim's uid, which makes a launch idempotent, and each date in it
is a step that was taken. What is still to come follows from the dates, never from a timer that a restart would forget.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol
from zlib import crc32

import msgspec

from kerf.catalog.gpus import shape_of
from kerf.cloudprovider import INSUFFICIENT_CAPACITY, Instance, InstanceState
from kerf.clouds.launching import INTERRUPTION_NOTICE_S, interruption_of
from kerf.errors import DecodeError
from kerf.manifests.metadata import shared_texts
from kerf.model.constraints import Taint
from kerf.model.gpu import DeviceShape, GPUModel
from kerf.model.instancetypes import OfferingKey
from kerf.model.nodeclaim import NodeClaim
from kerf.model.quantities import Resources
from kerf.model.times import instant_s

Json = dict[str, Any]

INSTANCE_LABEL = "kerf.dev/kwok-instance"
"""Of the ConfigMap of each instance, `true`; of its Node, the namespace that the ConfigMap is in."""
LISTED, ADDED, MODIFIED, DELETED = "LISTED", "ADDED", "MODIFIED", "DELETED"
TERMINATING, INTERRUPTED, NODE, PLUGIN_STARTED, REGISTERED = (
    "terminating",
    "interrupted",
    "node",
    "pluginStarted",
    "registered",
)
"""Keys of the ConfigMap beside `instance`: dates, and the name of the Node once there is one."""
_PREFIX = "kerf-instance-"
_OF_TEST_CLUSTERS = ("kwok://", "kind://", "k3s://")


class ObjectStore(Protocol):
    """Objects of the Kubernetes API as JSON: of ConfigMap, Node, Pod, DaemonSet and Lease.

    Every call may raise ApiError; NotFound, AlreadyExists and Conflict as `kerf.ports` has them. `namespace` is empty
    for what is cluster-wide, and in `list` and `watch` for all namespaces. Selectors are texts as the API takes them.
    ConfigMaps of other namespaces than Kerf's own are out of reach, except those of HAMi's name.
    """

    async def get(self, kind: str, namespace: str, name: str) -> Json:
        """The object as it is now."""
        ...

    async def list(self, kind: str, *, namespace: str = "", labels: str = "", fields: str = "") -> Sequence[Json]:
        """All that the selectors take."""
        ...

    async def create(self, obj: Json) -> Json:
        """Create it. Raises AlreadyExists."""
        ...

    async def patch(self, kind: str, namespace: str, name: str, patch: Json, *, subresource: str = "") -> Json:
        """Apply a merge patch; ApiError when a resourceVersion (Conflict) or uid in it is not the object's."""
        ...

    async def delete(self, kind: str, namespace: str, name: str, *, uid: str = "", grace_s: int | None = None) -> None:
        """Ask for deletion; with `uid` of this very object."""
        ...

    def watch(self, kind: str, *, namespace: str = "", labels: str) -> AsyncIterator[tuple[str, Sequence[Json]]]:
        """(LISTED, what exists) once, (ADDED, more of it) where that is much, then each change.

        A change is (ADDED | MODIFIED | DELETED, one).

        Ends, or raises ApiError, when changes may have been missed: call it again.
        """
        ...


@dataclass(frozen=True, slots=True)
class KwokLatencies:
    """Seconds that things take, unless the ConfigMap `kerf-kwok` says otherwise.

    From the launch to the reply, from there to the Node, from the start of a device plugin to registered cards, from
    the request to terminate to the end, from an interruption's notice to the end, from a startup taint to its removal.
    `jitter_s` is the most that is added to a launch; how much follows from the claim's uid, also after a restart.
    `poll_s` is how often anything is looked at again that the API does not announce.
    """

    launch_s: float = 40
    register_s: float = 35
    devices_ready_s: float = 50
    terminate_s: float = 5
    notice_s: float = INTERRUPTION_NOTICE_S
    startup_s: float = 5
    jitter_s: float = 0
    poll_s: float = 1


@dataclass(frozen=True)
class InstanceRecord:
    """An instance, and how far it has come. A date that is None has not come yet.

    `devices` are its physical cards. `node_name` is empty until it has joined.
    """

    instance: Instance
    node_pool: str = ""
    devices: tuple[DeviceShape, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    terminating_s: float | None = None
    interrupted_s: float | None = None
    node_name: str = ""
    plugin_started_s: float | None = None
    registered_s: float | None = None

    @property
    def name(self) -> str:
        """The name of its ConfigMap."""
        return record_name(self.instance.claim_uid)

    def up_s(self, latencies: KwokLatencies) -> float:
        """When the machine runs."""
        share = crc32(self.instance.claim_uid.encode()) / 2**32
        return self.instance.launched_s + latencies.launch_s + share * latencies.jitter_s

    def shown(self, latencies: KwokLatencies) -> Instance:
        """The instance as it stands by its dates: the same object while it runs and nothing takes it back."""
        if self.terminating_s is None and self.interrupted_s is None and self.instance.state is InstanceState.RUNNING:
            return self.instance
        taken_s, offering = self.interrupted_s, self.instance.offering
        return replace(
            self.instance,
            state=InstanceState.RUNNING if self.terminating_s is None else InstanceState.TERMINATING,
            interruption=None if taken_s is None else interruption_of(offering, taken_s + latencies.notice_s),
        )

    def end_s(self, latencies: KwokLatencies) -> float | None:
        """When the machine ends, or ended; None while it is to run."""
        asked = None if self.terminating_s is None else self.terminating_s + latencies.terminate_s
        taken = None if self.interrupted_s is None else self.interrupted_s + latencies.notice_s
        return min((end for end in (asked, taken) if end is not None), default=None)


def record_name(claim_uid: str) -> str:
    """The name of the ConfigMap of a claim's instance."""
    return _PREFIX + claim_uid


def provider_id(zone: str, claim_uid: str) -> str:
    """`kwok:///<zone>/<uid of the claim>`."""
    return f"kwok:///{zone}/{claim_uid}"


def record_of(provider_id: str) -> str:
    """The name of the ConfigMap behind a provider id; empty for one that is not ours."""
    return record_name(provider_id.rpartition("/")[2]) if provider_id.startswith("kwok:///") else ""


def is_of_real_cloud(provider_id: str) -> bool:
    """Whether a node with that `spec.providerID` is a machine of a cloud or a data centre.

    Acted-out nodes have `kwok://`, those of kind `kind://`, of k3s and k3d `k3s://`; minikube and kubeadm give none.
    Every other id is of a cloud or of hardware (`aws://`, `gce://`, `azure://`, of ACK `REGION.INSTANCE`), also one
    that is not known here.
    """
    return bool(provider_id) and not provider_id.startswith(_OF_TEST_CLUSTERS)


def date_text(seconds: float) -> str:
    """An instant as the ConfigMap keeps it: RFC 3339 with milliseconds, for latencies of less than a second."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Offering(msgspec.Struct, rename="camel", omit_defaults=True):
    instance_type: str
    zone: str
    capacity_type: str
    reservation: str = ""
    placement_group: str = ""


class _Device(msgspec.Struct, rename="camel", omit_defaults=True):
    model: str
    memory_mib: int = msgspec.field(name="memoryMiB")
    registered_as: str = ""
    vendor: str = "nvidia"
    eighths: int = 8


class _Taint(msgspec.Struct, omit_defaults=True):
    key: str
    effect: str
    value: str = ""


class _Stored(msgspec.Struct, rename="camel"):
    """The key `instance` of the ConfigMap: what never changes. Amounts are in base units (milli-CPU, bytes)."""

    provider_id: str
    claim_uid: str
    claim_name: str
    node_pool: str
    offering: _Offering
    launched: str
    labels: dict[str, str]
    capacity: dict[str, int]
    allocatable: dict[str, int]
    devices: list[_Device] = msgspec.field(default_factory=list)
    startup_taints: list[_Taint] = msgspec.field(default_factory=list)
    sold_out: list[_Offering] = msgspec.field(default_factory=list)


def config_map(instance: Instance, claim: NodeClaim, devices: Sequence[DeviceShape], namespace: str) -> Json:
    """The ConfigMap of an instance that is launched now for `claim`."""
    stored = _Stored(
        provider_id=instance.provider_id,
        claim_uid=claim.uid,
        claim_name=claim.name,
        node_pool=claim.node_pool,
        offering=_stored_offering(instance.offering),
        launched=date_text(instance.launched_s),
        labels=dict(sorted(instance.labels.items())),
        capacity=dict(sorted(instance.capacity.items())),
        allocatable=dict(sorted(instance.allocatable.items())),
        devices=[_stored_device(shape) for shape in devices],
        startup_taints=[_Taint(taint.key, taint.effect, taint.value) for taint in claim.startup_taints],
        sold_out=[_stored_offering(key) for key in instance.sold_out],
    )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": record_name(claim.uid), "namespace": namespace, "labels": {INSTANCE_LABEL: "true"}},
        "data": {"instance": msgspec.json.encode(stored).decode()},
    }


def read_record(obj: Json) -> InstanceRecord:
    """An instance from its ConfigMap. Raises DecodeError for one that is damaged."""
    place = f"ConfigMap {obj['metadata']['name']}"
    data: Mapping[str, str] = obj.get("data") or {}
    try:
        stored = msgspec.json.decode(data.get("instance", ""), type=_Stored)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DecodeError("data.instance", "an instance as Kerf wrote it", f"<{error}>", place=place) from error
    if obj["metadata"]["name"] != record_name(stored.claim_uid):
        raise DecodeError(
            "data.instance.claimUid", "the uid in the name of the ConfigMap", stored.claim_uid, place=place
        )
    launched_s = _date(stored.launched, "data.instance.launched", place)
    dates = {key: _date(data.get(key), f"data.{key}", place) for key in (TERMINATING, INTERRUPTED, PLUGIN_STARTED)}
    return InstanceRecord(
        instance=_instance(stored, launched_s or 0),
        node_pool=stored.node_pool,
        devices=tuple(
            replace(
                shape_of(d.model, d.memory_mib, "", eighths=d.eighths),
                model=GPUModel(d.model, d.vendor, d.registered_as),
            )
            for d in stored.devices
        ),
        startup_taints=tuple(Taint(taint.key, taint.value, taint.effect) for taint in stored.startup_taints),
        terminating_s=dates[TERMINATING],
        interrupted_s=dates[INTERRUPTED],
        node_name=data.get(NODE, ""),
        plugin_started_s=dates[PLUGIN_STARTED],
        registered_s=_date(data.get(REGISTERED), f"data.{REGISTERED}", place),
    )


def _instance(stored: _Stored, launched_s: float) -> Instance:
    return Instance(
        provider_id=stored.provider_id,
        claim_uid=stored.claim_uid,
        claim_name=stored.claim_name,
        offering=_offering(stored.offering),
        labels=shared_texts(stored.labels),
        capacity=Resources(stored.capacity),
        allocatable=Resources(stored.allocatable),
        launched_s=launched_s,
        sold_out=dict.fromkeys(map(_offering, stored.sold_out), INSUFFICIENT_CAPACITY),
    )


def _stored_offering(key: OfferingKey) -> _Offering:
    return _Offering(key.instance_type, key.zone, key.capacity_type, key.reservation, key.placement_group)


def _stored_device(shape: DeviceShape) -> _Device:
    model = shape.model
    return _Device(model.name, shape.memory_mib, model.registered_as, model.vendor, shape.eighths)


def _offering(stored: _Offering) -> OfferingKey:
    where = stored.instance_type, stored.zone, stored.capacity_type
    return OfferingKey(*where, stored.reservation, stored.placement_group)


def _date(text: str | None, path: str, place: str) -> float | None:
    if text is None:
        return None
    try:
        return instant_s(text)
    except ValueError as error:
        raise DecodeError(path, "an instant such as 2026-01-05T12:00:00Z", text, place=place) from error
