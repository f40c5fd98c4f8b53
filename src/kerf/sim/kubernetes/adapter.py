"""The ports of the controllers over the in-memory API: what `kube` is for a real one.

Every call gives the loop one turn before it is carried out. So others act between a controller's decision and its
effect, as they do in production, and a controller that is killed while it calls may have acted or not.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kerf.errors import DecodeError
from kerf.manifests.decode import decode_scalable
from kerf.manifests.encode import (
    buffer_status,
    condition_list,
    event_object,
    node_claim_object,
    node_claim_status,
    node_merged,
    node_pool_status_merged,
    toleration_object,
)
from kerf.manifests.windows.encode import window_status
from kerf.model.capacitybuffers import CapacityBuffer, Scalable
from kerf.model.constraints import Taint
from kerf.model.events import Occurrence
from kerf.model.nodeclaim import TERMINATION_FINALIZER, Condition, NodeClaim
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.provisioningrequests import ProvisioningRequest
from kerf.model.quantities import Resources
from kerf.model.snapshot import Deleted, Event, Relisted, Report, Synced, Upserted, Watched
from kerf.model.windows import CapacityWindow
from kerf.ports import AlreadyExists, Clock, Conflict, NotFound
from kerf.sim.kubernetes.api import DELETED, InMemoryApi
from kerf.sim.kubernetes.decoding import decoded
from kerf.sim.objects import Json, ObjectKey, annotations_of, key_of, uid_of
from kerf.telemetry import logger

_FOLLOWED = frozenset(
    {
        "CSINode",
        "CapacityBuffer",
        "CapacityWindow",
        "ClusterPolicy",
        "ConfigMap",
        "CronJob",
        "DaemonSet",
        "Namespace",
        "Node",
        "NodeClaim",
        "NodeOverlay",
        "NodePool",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "PodGroup",
        "PodTemplate",
        "ProvisioningRequest",
        "ResourceQuota",
        "RuntimeClass",
        "Service",
        "StorageClass",
        "VolumeAttachment",
        "Workload",
    }
)
_CLAIM_STATUS = ("conditions", "providerID", "nodeName", "capacity", "allocatable", "lastPodEventTime")


def _is_followed(obj: Json) -> bool:
    kind: str = obj["kind"]
    return kind in _FOLLOWED or kind.endswith("NodeClass")


class SimReader:
    """`kerf.ports.KubeReader`: one watch of everything. A restarted controller takes a new one."""

    def __init__(self, api: InMemoryApi) -> None:
        self._api = api
        self._given: dict[ObjectKey, tuple[str, Watched]] = {}
        self._changes: asyncio.Queue[tuple[str, Json] | None] = asyncio.Queue()

    async def events(self) -> AsyncIterator[Report]:
        """What exists, by kind and name; Synced; then every change, each decoded when it is taken.

        What was reported by an earlier call, or before the watch was lost, and has vanished since is reported as
        Deleted.
        """
        is_synced = False
        while True:
            self._changes = asyncio.Queue()
            self._api.subscribe(self._listen)
            version = self._api.version
            try:
                for event in self._listed():
                    yield event
                if is_synced:
                    for kind in sorted(_FOLLOWED):
                        yield Relisted(kind, version)
                else:
                    yield Synced()
                is_synced = True
                while (change := await self._changes.get()) is not None:
                    for event in self._translated(*change):
                        yield event
            finally:
                self._api.unsubscribe(self._listen)

    def lose_watch(self) -> None:
        """What happens when a real API server has forgotten the version of a watch (410): all is listed again."""
        self._api.unsubscribe(self._listen)
        while not self._changes.empty():
            self._changes.get_nowait()
        self._changes.put_nowait(None)

    def _listen(self, type_: str, obj: Json) -> None:
        if _is_followed(obj):
            self._changes.put_nowait((type_, obj))

    def _listed(self) -> Iterator[Event]:
        objects = [obj for kind in self._api.kinds() for obj in self._api.list(kind) if _is_followed(obj)]
        there = {key_of(obj) for obj in objects}
        for key in [key for key in self._given if key not in there]:
            yield Deleted(self._given.pop(key)[1])
        for obj in objects:
            yield from self._translated("ADDED", obj)

    def _translated(self, type_: str, obj: Json) -> Sequence[Event]:
        key, last = key_of(obj), self._given.get(key_of(obj))
        if type_ == DELETED:
            # As a real reader: with the form last reported, since the very last may be unreadable.
            return () if last is None else (Deleted(self._given.pop(key)[1]),)
        gone = () if last is None or last[0] == uid_of(obj) else (Deleted(self._given.pop(key)[1]),)
        try:
            value = decoded(obj)
        except DecodeError as error:
            logger("reader").warning("object left as it was", error=str(error))
            return gone
        if value is None:
            return gone
        self._given[key] = (uid_of(obj), value)
        return (*gone, Upserted(value))


class SimScalables:
    """`kerf.ports.Scalables`."""

    def __init__(self, api: InMemoryApi) -> None:
        self._api = api

    async def scalable(self, namespace: str, kind: str, name: str) -> Scalable | None:
        """As the port says."""
        await asyncio.sleep(0)
        raw = self._api.get(kind, namespace, name)
        return None if raw is None else decode_scalable(raw)


class SimWriter:
    """`kerf.ports.KubeWriter` over the in-memory API."""

    def __init__(self, api: InMemoryApi) -> None:
        self._api = api

    async def create_node_claim(self, claim: NodeClaim) -> NodeClaim:
        """Create it, owned by its NodePool and held by our finalizer."""
        await asyncio.sleep(0)
        pool = self._api.get("NodePool", "", claim.node_pool)
        obj = node_claim_object(claim, uid_of(pool) if pool is not None else "")
        held = obj["metadata"].get("finalizers", [])
        obj["metadata"]["finalizers"] = [*held, *({TERMINATION_FINALIZER} - set(held))]
        return _claim(self._api.create(obj))

    async def update_node_claim(self, claim: NodeClaim) -> NodeClaim:
        """Write labels, annotations and finalizers, and nothing else."""
        await asyncio.sleep(0)
        raw = self._found("NodeClaim", claim.name)
        metadata = {**raw["metadata"], "resourceVersion": claim.resource_version, "uid": claim.uid}
        written = node_claim_object(claim)["metadata"]
        for field in ("labels", "annotations", "finalizers"):
            metadata.pop(field, None)
            if field in written:
                metadata[field] = written[field]
        return _claim(self._update({**raw, "metadata": metadata}))

    async def update_node_claim_status(self, claim: NodeClaim) -> NodeClaim:
        """Write the parts of the status that Kerf knows, as they are in `claim`."""
        await asyncio.sleep(0)
        raw = self._found("NodeClaim", claim.name)
        metadata = {**raw["metadata"], "resourceVersion": claim.resource_version, "uid": claim.uid}
        others = {f: value for f, value in raw.get("status", {}).items() if f not in _CLAIM_STATUS}
        written = {**raw, "metadata": metadata, "status": {**others, **node_claim_status(claim)}}
        return _claim(self._update(written, subresource="status"))

    async def delete_node_claim(self, claim: NodeClaim) -> None:
        """Ask for deletion."""
        await asyncio.sleep(0)
        self._refuse_another("NodeClaim", claim.name, claim.uid)
        self._api.delete("NodeClaim", "", claim.name)

    async def update_node(self, node: Node) -> Node:
        """Write labels, annotations, taints, cordon and finalizers."""
        await asyncio.sleep(0)
        written = decoded(self._update(node_merged(self._found("Node", node.name), node)))
        assert isinstance(written, Node)
        return written

    async def delete_node(self, node: Node) -> None:
        """Ask for deletion."""
        await asyncio.sleep(0)
        self._refuse_another("Node", node.name, node.uid)
        self._api.delete("Node", "", node.name)

    async def update_node_pool_status(
        self, name: str, resources: Resources | None, conditions: Sequence[Condition]
    ) -> None:
        """Write a pool's counted resources, unless they are None, and these conditions; others stay as they are."""
        await asyncio.sleep(0)
        raw = self._found("NodePool", name)
        status = node_pool_status_merged(raw.get("status") or {}, resources, conditions)
        self._api.update({**raw, "status": status}, subresource="status")

    async def update_node_overlay_status(self, name: str, conditions: Sequence[Condition]) -> None:
        """Write an overlay's conditions."""
        await asyncio.sleep(0)
        status = {"conditions": condition_list(conditions)}
        self._api.patch("NodeOverlay", "", name, {"status": status}, subresource="status")

    async def update_window_status(self, window: CapacityWindow) -> CapacityWindow:
        """Write the status as it is in `window`."""
        await asyncio.sleep(0)
        raw = self._found("CapacityWindow", window.name)
        metadata = {**raw["metadata"], "resourceVersion": window.resource_version, "uid": window.uid}
        written = {**raw, "metadata": metadata, "status": window_status(window)}
        value = decoded(self._update(written, subresource="status"))
        assert isinstance(value, CapacityWindow)
        return value

    async def update_window_finalizers(self, window: CapacityWindow) -> CapacityWindow:
        """Write the finalizers as they are in `window`."""
        await asyncio.sleep(0)
        raw = self._found("CapacityWindow", window.name)
        known = {"resourceVersion": window.resource_version, "uid": window.uid, "finalizers": list(window.finalizers)}
        value = decoded(self._update({**raw, "metadata": {**raw["metadata"], **known}}))
        assert isinstance(value, CapacityWindow)
        return value

    async def update_provisioning_request_status(self, request: ProvisioningRequest) -> ProvisioningRequest:
        """Write the conditions as they are in `request`."""
        await asyncio.sleep(0)
        raw = self._api.get("ProvisioningRequest", request.namespace, request.name)
        if raw is None:
            raise NotFound(f"ProvisioningRequest {request.key} not found")
        metadata = {**raw["metadata"], "resourceVersion": request.resource_version, "uid": request.uid}
        status = {**raw.get("status", {}), "conditions": condition_list(request.conditions)}
        value = decoded(self._update({**raw, "metadata": metadata, "status": status}, subresource="status"))
        assert isinstance(value, ProvisioningRequest)
        return value

    async def update_capacity_buffer_status(self, buffer: CapacityBuffer) -> CapacityBuffer:
        """Write the status as it is in `buffer`."""
        await asyncio.sleep(0)
        raw = self._api.get("CapacityBuffer", buffer.namespace, buffer.name)
        if raw is None:
            raise NotFound(f"CapacityBuffer {buffer.key} not found")
        metadata = {**raw["metadata"], "resourceVersion": buffer.resource_version, "uid": buffer.uid}
        written = {**raw, "metadata": metadata, "status": buffer_status(buffer.status)}
        value = decoded(self._update(written, subresource="status"))
        assert isinstance(value, CapacityBuffer)
        return value

    async def open_gates(self, pod: Pod, gates: Sequence[str], annotations: Mapping[str, str]) -> None:
        """Take these gates off a pod and annotate it, in one write."""
        await asyncio.sleep(0)
        raw = self._pod(pod)
        held = raw["spec"].get("schedulingGates") or []
        left = [gate for gate in held if gate["name"] not in gates]
        if len(left) == len(held):
            raise Conflict(f"pod {pod.key} has none of the gates {', '.join(gates)}")
        patch = {"metadata": {"annotations": dict(annotations)}, "spec": {"schedulingGates": left or None}}
        self._api.patch("Pod", pod.namespace, pod.name, patch)

    async def annotate_node_pool(self, name: str, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of a pool; None removes one."""
        await asyncio.sleep(0)
        self._api.patch("NodePool", "", name, {"metadata": {"annotations": dict(annotations)}})

    async def annotate_pod(
        self, pod: Pod, annotations: Mapping[str, str | None], *, unless_present: Sequence[str] = ()
    ) -> None:
        """Set annotations of a pod; None removes one. Raises Conflict when one of `unless_present` exists already."""
        await asyncio.sleep(0)
        raw = self._pod(pod)
        present = sorted(set(unless_present) & annotations_of(raw).keys())
        if present:
            raise Conflict(f"pod {pod.key} has the annotation {present[0]} already")
        self._api.patch("Pod", pod.namespace, pod.name, {"metadata": {"annotations": dict(annotations)}})

    async def tolerate(self, pod: Pod, taint: Taint) -> None:
        """Add a toleration of exactly this taint, unless the pod has it."""
        await asyncio.sleep(0)
        held, new = self._pod(pod)["spec"].get("tolerations") or [], toleration_object(taint)
        if new not in held:
            self._api.patch("Pod", pod.namespace, pod.name, {"spec": {"tolerations": [*held, new]}})

    async def evict(self, pod: Pod) -> None:
        """Evict. Raises EvictionBlocked while a budget forbids it."""
        await asyncio.sleep(0)
        self._pod(pod)
        self._api.evict(pod.namespace, pod.name)

    async def delete_pod(self, pod: Pod, grace_s: int) -> None:
        """Delete, giving it `grace_s` to end."""
        await asyncio.sleep(0)
        self._pod(pod)
        self._api.delete("Pod", pod.namespace, pod.name, grace_s=grace_s)

    def _update(self, obj: Json, *, subresource: str = "") -> Json:
        """As a real writer, which reads before it writes: a Conflict comes with what is there."""
        try:
            return self._api.update(obj, subresource=subresource)
        except Conflict as error:
            current = self._api.get(*key_of(obj))
            raise Conflict(str(error), None if current is None else decoded(current)) from error

    def _found(self, kind: str, name: str) -> Json:
        obj = self._api.get(kind, "", name)
        if obj is None:
            raise NotFound(f"{kind} {name} not found")
        return obj

    def _refuse_another(self, kind: str, name: str, uid: str) -> None:
        """An object that was made again under its name is another."""
        found = uid_of(self._found(kind, name))
        if uid and found != uid:
            raise Conflict(f"{kind} {name} is not the one that was meant: its uid is {found}, not {uid}")

    def _pod(self, pod: Pod) -> Json:
        """The pod that is meant; one that was made again under its name is another."""
        raw = self._api.get("Pod", pod.namespace, pod.name)
        if raw is None:
            raise NotFound(f"pod {pod.key} not found")
        if pod.uid and uid_of(raw) != pod.uid:
            raise Conflict(f"pod {pod.key} is not the one that was meant: its uid is {uid_of(raw)}, not {pod.uid}")
        return raw


def _claim(obj: Json) -> NodeClaim:
    value = decoded(obj)
    assert isinstance(value, NodeClaim)
    return value


@dataclass(frozen=True, slots=True)
class Posted:
    """An event for people, and when it was posted."""

    at_s: float
    occurrence: Occurrence


_REMEMBERED = 65_536
"""When each of so many things was posted last is remembered, as by the recorder of `kerf run`."""


class SimRecorder:
    """`kerf.ports.Recorder`: posts Event objects, and keeps `posted` in order if it `keeps_posted`.

    What was posted lately is remembered in memory only, as by a real recorder: after a restart things are said again.
    """

    def __init__(self, api: InMemoryApi, clock: Clock, *, keeps_posted: bool = True) -> None:
        self._api, self._clock, self._keeps_posted = api, clock, keeps_posted
        self._last_s: dict[tuple[str, ...], float] = {}
        self.posted: list[Posted] = []

    def record(self, occurrence: Occurrence) -> None:
        """Post it, unless an equal one was posted within its own period."""
        now_s = self._clock.now_s()
        last_s = self._last_s.get(occurrence.dedupe)
        if last_s is not None and 0 <= now_s - last_s < occurrence.period_s:
            return
        self._last_s.pop(occurrence.dedupe, None)
        self._last_s[occurrence.dedupe] = now_s
        if len(self._last_s) > _REMEMBERED:
            del self._last_s[next(iter(self._last_s))]
        if self._keeps_posted:
            self.posted.append(Posted(now_s, occurrence))
        try:
            self._api.create(event_object(occurrence, now_s))
        except AlreadyExists:
            return  # Said in this very second already, in an earlier life.
