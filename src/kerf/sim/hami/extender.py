"""HAMi's scheduler between two processes: what it has booked, and its answers to kube-scheduler's filter and bind.

The choice of node and card is `verdicts`; here is what happens to it in time, which is the hard part. kube-scheduler
asks for the next pod before any watch has shown the last booking, so a booking counts from the moment it is decided.
And of two binds on a node the second must fail and come again, because HAMi's device plugin finds out whom a container
belongs to by the one pod that holds the node's lock.

Forms: `k8s.io/kube-scheduler/extender/v1`. Words and order of writes: HAMi v2.10.0 as recorded (tests/data/hami). Left
out: its events, and its registration loop (a node counts as soon as its register is seen).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from kerf.errors import ApiError, DecodeError
from kerf.manifests.decode import decode_object
from kerf.model.nodes import Node
from kerf.model.pluginnamespaces import PLUGIN_NAMESPACES
from kerf.model.pods import Pod
from kerf.model.snapshot import ConfigMap, Deleted, Event, Relisted, ResourceQuota, Synced, key_of
from kerf.model.times import instant_s, instant_text
from kerf.ports import Conflict, KubeReader, NotFound
from kerf.sharing.family import Occupant
from kerf.sharing.hami.admission import requests_of
from kerf.sharing.hami.config import CONFIG_MAP
from kerf.sharing.hami.family import Hami
from kerf.sharing.hami.records import ALLOCATED, BIND_PHASE, LOCK, NODE, TIME
from kerf.sim.hami.verdicts import Verdict, bind_patch, filter_nodes, record_patch
from kerf.sim.objects import Json, annotations_of, name_of, uid_of
from kerf.telemetry import logger

LOCK_EXPIRES_S = 300
BOOKING_EXPIRES_S = 300
"""How long a booking counts that no watch has confirmed: its write may have been lost."""

_TRIES = 5
_RECORD = (NODE, TIME, ALLOCATED)


class HamiApi(Protocol):
    """The calls that HAMi makes. Patches are merge patches; a resourceVersion or uid in one is a condition (Conflict).

    Each raises NotFound, Conflict or ApiError.
    """

    async def get_pod(self, namespace: str, name: str) -> Json:
        """The pod as it is now."""
        ...

    async def get_node(self, name: str) -> Json:
        """The node as it is now."""
        ...

    async def patch_pod(self, namespace: str, name: str, patch: Json) -> None:
        """Change a pod's metadata."""
        ...

    async def patch_node(self, name: str, patch: Json) -> None:
        """Change a node's metadata."""
        ...

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Create the Binding of the pod with that uid."""
        ...


@dataclass(frozen=True, slots=True)
class _Booking:
    """A pod with the record that we have written on it, and when."""

    pod: Pod
    at_s: float

    def is_reported_by(self, pod: Pod) -> bool:
        """Whether a watch that shows `pod` has caught up with it."""
        if pod.uid != self.pod.uid:
            return False
        return pod.is_ended or all(pod.annotations.get(key) == self.pod.annotations.get(key) for key in _RECORD)


class ExtenderCache:
    """What HAMi keeps in memory: nodes, quotas, settings, and whose cards are booked.

    Everything comes from the events of a reader, save that our own booking hides what the events say of its pod
    until they tell of it too, the pod is gone, or five minutes have passed.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.synced = asyncio.Event()
        self.family = Hami()
        self._now_s = now_s
        self._nodes: dict[str, Node] = {}
        self._maps: dict[str, ConfigMap] = {}
        self._quotas: dict[str, ResourceQuota] = {}
        self._reported: dict[str, Pod] = {}
        self._bookings: dict[str, _Booking] = {}

    @property
    def is_synced(self) -> bool:
        """Whether everything that existed at the beginning has been reported."""
        return self.synced.is_set()

    def apply(self, event: Event) -> None:
        """Take note of one event; kinds that HAMi does not follow are passed over."""
        if isinstance(event, Synced):
            self.synced.set()
            return
        value, is_gone = event.value, isinstance(event, Deleted)
        _, key = key_of(value)
        if isinstance(value, Pod):
            self._on_pod(value, is_gone)
        elif isinstance(value, Node):
            _keep(self._nodes, key, value, is_gone)
        elif isinstance(value, ResourceQuota):
            _keep(self._quotas, key, value, is_gone)
        elif isinstance(value, ConfigMap) and value.name == CONFIG_MAP and value.namespace in PLUGIN_NAMESPACES:
            _keep(self._maps, key, value, is_gone)
            self._configure()

    def _on_pod(self, pod: Pod, is_gone: bool) -> None:
        holds_cards = bool(pod.annotations.get(NODE)) and not pod.is_ended
        _keep(self._reported, pod.key, pod, is_gone or not holds_cards)
        booking = self._bookings.get(pod.key)
        if booking is not None and (booking.is_reported_by(pod) or (is_gone and pod.uid == booking.pod.uid)):
            del self._bookings[pod.key]

    def _configure(self) -> None:
        try:
            self.family = Hami().configured(tuple(self._maps.values()))
        except DecodeError as error:
            logger("hami").warning("settings stay as they were", error=str(error))

    def book(self, pod: Pod) -> None:
        """The pod with HAMi's record on it holds its cards from now on."""
        self._bookings[pod.key] = _Booking(pod, self._now_s())

    def forget(self, pod: Pod) -> None:
        """Its record could not be written: it holds what the events say."""
        self._bookings.pop(pod.key, None)

    def nodes(self, names: Iterable[str]) -> list[Node]:
        """Those nodes, in that order; one that is not known has registered nothing."""
        return [self._nodes.get(name) or Node(name) for name in names]

    def holders(self) -> dict[str, list[Pod]]:
        """The pods that hold cards of each node."""
        found: dict[str, list[Pod]] = {}
        for pod in self._holding():
            found.setdefault(pod.annotations[NODE], []).append(pod)
        return found

    def _holding(self) -> Iterator[Pod]:
        since_s = self._now_s() - BOOKING_EXPIRES_S
        self._bookings = {key: booking for key, booking in self._bookings.items() if booking.at_s > since_s}
        yield from (pod for key, pod in self._reported.items() if key not in self._bookings)
        yield from (booking.pod for booking in self._bookings.values())

    def quotas(self, namespace: str, pod_key: str = "") -> tuple[ResourceQuota, ...]:
        """The quotas of a namespace with what its pods hold of them; the pod of that key does not count."""
        own = [quota for quota in self._quotas.values() if quota.namespace == namespace]
        if not own:
            return ()
        holding = [pod for pod in self._holding() if pod.namespace == namespace and pod.key != pod_key]
        used = self.family.quota_used([Occupant(pod, None) for pod in holding])
        return tuple(replace(quota, used=used) for quota in own)


def _keep(held: dict[str, Any], key: str, value: object, is_gone: bool) -> None:
    if is_gone:
        held.pop(key, None)
    else:
        held[key] = value


async def follow(reader: KubeReader, cache: ExtenderCache) -> None:
    """Keep the cache by what a reader says, for ever."""
    async for event in reader.events():
        if not isinstance(event, Relisted):
            cache.apply(event)


class Extender:
    """What HAMi's scheduler answers. With `lots` None the first node by name wins among equal ones."""

    def __init__(
        self, cache: ExtenderCache, api: HamiApi, now_s: Callable[[], float], lots: random.Random | None = None
    ) -> None:
        self.cache, self._api, self._now_s, self._lots = cache, api, now_s, lots

    async def filter(self, arguments: Json) -> Json:
        """ExtenderArgs to ExtenderFilterResult: one node, whose cards the pod then holds; or why there is none."""
        asked = {key.lower(): value for key, value in arguments.items()}
        if not asked.get("pod"):
            return _filter_result(Error="extender args missing pod")
        try:
            pod = pod_of(asked["pod"])
            if asked.get("nodenames") is None and asked.get("nodes") is not None:
                return self._simulated(pod, asked["nodes"])
        except DecodeError as error:
            return _filter_result(Error=str(error))
        names = asked.get("nodenames") or ()
        verdict = self._verdict(pod, self.cache.nodes(names), self.cache.holders())
        if verdict.passes:
            return _filter_result(NodeNames=list(names))
        if not verdict.node:
            return _refusal(verdict)
        return await self._recorded(pod, verdict)

    def _verdict(self, pod: Pod, nodes: Sequence[Node], holders: Mapping[str, Sequence[Pod]]) -> Verdict:
        candidates = sorted(nodes, key=lambda node: node.name)
        if self._lots is not None:
            # HAMi takes whichever of the best nodes its goroutines deliver first.
            self._lots.shuffle(candidates)
        quotas = self.cache.quotas(pod.namespace, pod.key)
        return filter_nodes(self.cache.family, pod, candidates, holders, quotas, self._now_s())

    def _simulated(self, pod: Pod, node_list: Json) -> Json:
        """HAMi's answer to whole Node objects: as if nothing were used of them, and nothing is written."""
        raws = {raw["metadata"]["name"]: raw for raw in node_list.get("items") or ()}
        nodes = [decode_object({"apiVersion": "v1", "kind": "Node", **raw}) for raw in raws.values()]
        verdict = self._verdict(pod, [node for node in nodes if isinstance(node, Node)], {})
        if not verdict.node and not verdict.passes:
            return _refusal(verdict)
        chosen = [raw for name, raw in raws.items() if verdict.passes or name == verdict.node]
        return _filter_result(Nodes={**node_list, "items": chosen})

    async def _recorded(self, pod: Pod, verdict: Verdict) -> Json:
        self.cache.book(replace(pod, annotations={**pod.annotations, **verdict.annotations}))
        patch = record_patch(verdict)
        patch["metadata"]["uid"] = pod.uid
        try:
            await self._api.patch_pod(pod.namespace, pod.name, patch)
        except ApiError as error:
            self.cache.forget(pod)
            return _filter_result(Error=str(error))
        return _filter_result(NodeNames=[verdict.node])

    async def bind(self, arguments: Json) -> Json:
        """ExtenderBindingArgs to ExtenderBindingResult; an error makes kube-scheduler try the pod again."""
        asked = {key.lower(): value for key, value in arguments.items()}
        namespace, name, node = (str(asked.get(key) or "") for key in ("podnamespace", "podname", "node"))
        try:
            await self._bind(namespace, name, str(asked.get("poduid") or ""), node)
        except (ApiError, DecodeError) as error:
            return {"Error": str(error)}
        return {"Error": ""}

    async def _bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        pod = pod_of(await _found("pod", name, self._api.get_pod(namespace, name)))
        target = await _found("node", node, self._api.get_node(node))
        needs_lock = any(c.request is not None for c in requests_of((), pod.spec.containers, self.cache.family.config))
        if needs_lock:
            await self._lock(target, namespace, name)
        try:
            await self._api.patch_pod(namespace, name, _on(uid, bind_patch(self._now_s())))
            await self._create_binding(namespace, name, uid, node)
        except ApiError:
            if needs_lock:
                await self._release(node, namespace, name)
            raise

    async def _create_binding(self, namespace: str, name: str, uid: str, node: str) -> None:
        try:
            await self._api.bind(namespace, name, uid, node)
        except Conflict:
            # It is bound already, by a call of which no answer came: its phase is the device plugin's.
            raise
        except ApiError as error:
            failed: Json = {"metadata": {"annotations": {BIND_PHASE: "failed"}}}
            try:
                await self._api.patch_pod(namespace, name, _on(uid, failed))
            except ApiError as second:
                raise error from second
            raise

    async def _lock(self, node: Json, namespace: str, name: str) -> None:
        """Write our lock on the node. Raises ApiError while another pod's holds it."""
        node_name, text = name_of(node), f"{instant_text(self._now_s())},{namespace},{name}"
        for tries_left in reversed(range(_TRIES)):
            held = annotations_of(node).get(LOCK, "")
            if held and not await self._is_void(held, namespace, name):
                raise ApiError(f"node {node_name} has been locked within 5m0s: node lock contention")
            try:
                await self._api.patch_node(node_name, _lock_patch(node, text))
                return
            except Conflict:
                if not tries_left:
                    raise
            node = await self._api.get_node(node_name)

    async def _is_void(self, lock: str, namespace: str, name: str) -> bool:
        """Whether a lock is our own, too old, or of a pod that is gone."""
        at, _, holder = lock.partition(",")
        holder_namespace, _, holder_name = holder.partition(",")
        if (holder_namespace, holder_name) == (namespace, name):
            return True
        try:
            if self._now_s() - instant_s(at) > LOCK_EXPIRES_S:
                return True
            await self._api.get_pod(holder_namespace, holder_name)
        except (ValueError, NotFound):
            return True
        return False

    async def _release(self, node_name: str, namespace: str, name: str) -> None:
        """Take our lock from the node. What cannot be taken away expires."""
        for _ in range(_TRIES):
            try:
                node = await self._api.get_node(node_name)
                if annotations_of(node).get(LOCK, "").endswith(f",{namespace},{name}"):
                    await self._api.patch_node(node_name, _lock_patch(node, None))
            except Conflict:
                continue
            except ApiError as error:
                logger("hami").warning("lock stays until it expires", node=node_name, error=str(error))
            return


def pod_of(raw: Json) -> Pod:
    """A pod as Go sends it, without its kind. Raises DecodeError."""
    pod = decode_object({**raw, "apiVersion": "v1", "kind": "Pod"})
    assert isinstance(pod, Pod)
    return pod


async def _found(kind: str, name: str, call: Awaitable[Json]) -> Json:
    try:
        return await call
    except NotFound:
        raise NotFound(f'{kind} "{name}" not found') from None


def _on(uid: str, patch: Json) -> Json:
    """The patch for the pod of that uid alone."""
    return {**patch, "metadata": {**patch["metadata"], "uid": uid}} if uid else patch


def _lock_patch(node: Json, lock: str | None) -> Json:
    version = node["metadata"].get("resourceVersion")
    return {"metadata": {"uid": uid_of(node), "resourceVersion": version, "annotations": {LOCK: lock}}}


def _filter_result(**given: object) -> Json:
    """With every field, as Go writes it."""
    fields = {"Nodes": None, "NodeNames": None, "FailedNodes": None, "FailedAndUnresolvableNodes": None, "Error": ""}
    return {**fields, **given}


def _refusal(verdict: Verdict) -> Json:
    return _filter_result(Error=verdict.error) if verdict.error else _filter_result(FailedNodes=dict(verdict.reasons))
