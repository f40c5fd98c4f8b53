"""The ports of the controllers over the in-memory API: what `kube` is for a real one.

Every call gives the loop one turn before it is carried out. So others act between a controller's decision and its
effect, as they do in production, and a controller that is killed while it calls may have acted or not.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from kerf.errors import DecodeError
from kerf.manifests.decode import decode_object
from kerf.manifests.encode import (
    condition_list,
    event_object,
    node_claim_object,
    node_claim_status,
    node_merged,
    node_pool_status,
)
from kerf.model.events import Occurrence
from kerf.model.nodeclaim import TERMINATION_FINALIZER, Condition, NodeClaim
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.quantities import Resources
from kerf.model.snapshot import Deleted, Event, Synced, Upserted
from kerf.ports import AlreadyExists, Clock, Conflict, NotFound
from kerf.sim.api import DELETED, InMemoryApi
from kerf.sim.objects import Json, annotations_of, uid_of
from kerf.telemetry import logger

_FOLLOWED = frozenset(
    {
        "ConfigMap",
        "DaemonSet",
        "Node",
        "NodeClaim",
        "NodeOverlay",
        "NodePool",
        "Pod",
        "PodDisruptionBudget",
        "ResourceQuota",
    }
)


def _is_followed(obj: Json) -> bool:
    kind: str = obj["kind"]
    return kind in _FOLLOWED or kind.endswith("NodeClass")


class SimReader:
    """`kerf.ports.KubeReader`: one watch of everything. A restarted controller takes a new one."""

    def __init__(self, api: InMemoryApi) -> None:
        self._api = api

    async def events(self) -> AsyncIterator[Event]:
        """What exists, by kind and name; Synced; then every change, each decoded when it is taken."""
        changes: asyncio.Queue[tuple[str, Json]] = asyncio.Queue()

        def listen(type_: str, obj: Json) -> None:
            if _is_followed(obj):
                changes.put_nowait((type_, obj))

        self._api.subscribe(listen)
        try:
            for obj in [obj for kind in self._api.kinds() for obj in self._api.list(kind) if _is_followed(obj)]:
                for event in _translated("ADDED", obj):
                    yield event
            yield Synced()
            while True:
                for event in _translated(*await changes.get()):
                    yield event
        finally:
            self._api.unsubscribe(listen)


def _translated(type_: str, obj: Json) -> Sequence[Event]:
    try:
        value = decode_object(obj)
    except DecodeError as error:
        logger("reader").warning("object left as it was", error=str(error))
        return ()
    if value is None:
        return ()
    return (Deleted(value) if type_ == DELETED else Upserted(value),)


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
        return _claim(self._api.update({**raw, "metadata": metadata}))

    async def update_node_claim_status(self, claim: NodeClaim) -> NodeClaim:
        """Write the status as it is in `claim`."""
        await asyncio.sleep(0)
        raw = self._found("NodeClaim", claim.name)
        metadata = {**raw["metadata"], "resourceVersion": claim.resource_version, "uid": claim.uid}
        written = {**raw, "metadata": metadata, "status": node_claim_status(claim)}
        return _claim(self._api.update(written, subresource="status"))

    async def delete_node_claim(self, name: str) -> None:
        """Ask for deletion."""
        await asyncio.sleep(0)
        self._api.delete("NodeClaim", "", name)

    async def update_node(self, node: Node) -> Node:
        """Write labels, annotations, taints, cordon and finalizers."""
        await asyncio.sleep(0)
        written = decode_object(self._api.update(node_merged(self._found("Node", node.name), node)))
        assert isinstance(written, Node)
        return written

    async def delete_node(self, name: str) -> None:
        """Ask for deletion."""
        await asyncio.sleep(0)
        self._api.delete("Node", "", name)

    async def update_node_pool_status(self, name: str, resources: Resources, conditions: Sequence[Condition]) -> None:
        """Write a pool's counted resources and conditions."""
        await asyncio.sleep(0)
        raw = self._found("NodePool", name)
        status = {**raw.get("status", {}), **node_pool_status(resources, conditions)}
        self._api.update({**raw, "status": status}, subresource="status")

    async def update_node_overlay_status(self, name: str, conditions: Sequence[Condition]) -> None:
        """Write an overlay's conditions."""
        await asyncio.sleep(0)
        raw = self._found("NodeOverlay", name)
        self._api.update({**raw, "status": {"conditions": condition_list(conditions)}}, subresource="status")

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

    async def nominate(self, pod: Pod, node_name: str) -> None:
        """Set `status.nominatedNodeName`; an empty name clears it."""
        await asyncio.sleep(0)
        self._pod(pod)
        status = {"nominatedNodeName": node_name or None}
        self._api.patch("Pod", pod.namespace, pod.name, {"status": status}, subresource="status")

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

    def _found(self, kind: str, name: str) -> Json:
        obj = self._api.get(kind, "", name)
        if obj is None:
            raise NotFound(f"{kind} {name} not found")
        return obj

    def _pod(self, pod: Pod) -> Json:
        """The pod that is meant; one that was made again under its name is another."""
        raw = self._api.get("Pod", pod.namespace, pod.name)
        if raw is None:
            raise NotFound(f"pod {pod.key} not found")
        if pod.uid and uid_of(raw) != pod.uid:
            raise Conflict(f"pod {pod.key} is not the one that was meant: its uid is {uid_of(raw)}, not {pod.uid}")
        return raw


def _claim(obj: Json) -> NodeClaim:
    value = decode_object(obj)
    assert isinstance(value, NodeClaim)
    return value


@dataclass(frozen=True, slots=True)
class Posted:
    """An event for people, and when it was posted."""

    at_s: float
    occurrence: Occurrence


class SimRecorder:
    """`kerf.ports.Recorder`: posts Event objects, and keeps `posted` in order for the report.

    What was posted lately is remembered in memory only, as by a real recorder: after a restart things are said again.
    """

    def __init__(self, api: InMemoryApi, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._last_s: dict[tuple[str, ...], float] = {}
        self.posted: list[Posted] = []

    def record(self, occurrence: Occurrence) -> None:
        """Post it, unless an equal one was posted within its own period."""
        now_s = self._clock.now_s()
        last_s = self._last_s.get(occurrence.dedupe)
        if last_s is not None and now_s - last_s < occurrence.period_s:
            return
        self._last_s[occurrence.dedupe] = now_s
        self.posted.append(Posted(now_s, occurrence))
        try:
            self._api.create(event_object(occurrence, now_s))
        except AlreadyExists:
            return  # Said in this very second already, in an earlier life.
