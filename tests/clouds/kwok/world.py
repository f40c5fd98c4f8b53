"""A cluster in memory for the acted-out cloud: the embedded API as an ObjectStore, and KWOK in a few lines."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

from kerf.cloudprovider import News
from kerf.clouds.kwok.cloud import KwokCloud, KwokLatencies
from kerf.clouds.kwok.records import record_name
from kerf.errors import ApiError
from kerf.model.market import Market
from kerf.model.nodeclaim import NodeClaim
from kerf.ports import Conflict, NotFound
from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.objects import Json, annotations_of, is_ready, labels_of, with_condition
from tests.clouds.market import MARKET
from tests.sim.world import START_S, World

NAMESPACE = "kerf-system"
LATENCIES = KwokLatencies(launch_s=40, register_s=35, devices_ready_s=50, terminate_s=5, poll_s=1)
JOINED_S = 75


class FakeStore:
    """The embedded API as `ObjectStore`; while `is_down` every call fails, and watches break."""

    def __init__(self, api: InMemoryApi) -> None:
        self.api, self.is_down = api, False
        self.reads: list[tuple[str, str, str]] = []
        self._watches: set[asyncio.Queue[tuple[str, Json] | None]] = set()

    async def get(self, kind: str, namespace: str, name: str) -> Json:
        """As the port has it."""
        await self._answer()
        found = self.api.get(kind, namespace, name)
        if found is None:
            raise NotFound(f"{kind} {name} not found")
        return found

    async def list(self, kind: str, *, namespace: str = "", labels: str = "", fields: str = "") -> Sequence[Json]:
        """Selectors of one term: `key`, `key=value`, `metadata.name=` and `spec.nodeName=`."""
        await self._answer()
        self.reads.append((kind, labels, fields))
        place, _, value = fields.partition("=")
        return [
            obj
            for obj in self.api.list(kind)
            if namespace in ("", obj["metadata"].get("namespace"))
            and _is_labelled(obj, labels)
            and value == (_at(obj, place) if place else "")
        ]

    async def create(self, obj: Json) -> Json:
        """As the port has it."""
        await self._answer()
        return self.api.create(obj)

    async def patch(self, kind: str, namespace: str, name: str, patch: Json, *, subresource: str = "") -> Json:
        """As the port has it."""
        await self._answer()
        return self.api.patch(kind, namespace, name, patch, subresource=subresource)

    async def delete(self, kind: str, namespace: str, name: str, *, uid: str = "", grace_s: int | None = None) -> None:
        """As the port has it."""
        found = await self.get(kind, namespace, name)
        if uid and uid != found["metadata"]["uid"]:
            raise Conflict(f"{kind} {name} is another")
        self.api.delete(kind, namespace, name, grace_s=grace_s)

    async def watch(self, kind: str, *, namespace: str = "", labels: str) -> AsyncIterator[tuple[str, Sequence[Json]]]:
        """As the port has it; breaks when the API goes down."""
        queue: asyncio.Queue[tuple[str, Json] | None] = asyncio.Queue()

        def tell(what: str, obj: Json) -> None:
            is_there = namespace in ("", obj["metadata"].get("namespace"))
            if obj["kind"] == kind and is_there and _is_labelled(obj, labels):
                queue.put_nowait((what, obj))

        listed = await self.list(kind, namespace=namespace, labels=labels)
        self.api.subscribe(tell)
        self._watches.add(queue)
        try:
            yield "LISTED", listed
            while (change := await queue.get()) is not None:
                yield change[0], [change[1]]
            raise ApiError("the connection was lost")
        finally:
            self.api.unsubscribe(tell)
            self._watches.discard(queue)

    def go_down(self) -> None:
        """Answer nobody from now on."""
        self.is_down = True
        for queue in self._watches:
            queue.put_nowait(None)

    async def _answer(self) -> None:
        await asyncio.sleep(0)
        if self.is_down:
            raise ApiError("no answer")


class KwokWorld(World):
    """Machines take 40 s to run, 35 s to join; cards 50 s from the start of their plugin."""

    def __init__(self, market: Market | None = None) -> None:
        super().__init__()
        self.store = FakeStore(self.api)
        self._market = market or Market(MARKET)
        self.api.subscribe(self._kwok)
        self._machines: asyncio.Task[News] | None = None
        self.start()

    def start(self) -> None:
        """Let a fresh process act the cloud out."""
        self.cloud = KwokCloud(self.store, self.clock, self._market, namespace=NAMESPACE, latencies=LATENCIES)
        self._machines = self.loop.create_task(self.cloud.run_machines())

    def stop(self) -> None:
        """Kill the process that acts the cloud out, wherever it is."""
        if self._machines is not None:
            self._machines.cancel()
            self.loop.run_until_complete(asyncio.gather(self._machines, return_exceptions=True))

    def close(self) -> None:
        """End everything."""
        self.stop()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def done(self, call: Coroutine[Any, Any, Any]) -> Any:
        """What a call gives when it returns."""
        return self.loop.run_until_complete(call)

    def ask(self, claim: NodeClaim) -> None:
        """Begin to launch for a claim and do not wait."""

        async def begin() -> None:
            task = asyncio.ensure_future(self.cloud.create(claim))
            await asyncio.sleep(0.5)
            task.cancel()

        self.done(begin())

    def joined(self, claim: NodeClaim, **labels: str) -> str:
        """The name of the claim's node, registered by Kerf (labels on it, its taint gone) at 80 s."""
        self.ask(claim)
        self.at(JOINED_S + 5)
        return self.register(claim, **labels)

    def register(self, claim: NodeClaim, **labels: str) -> str:
        """What Kerf does when a node has joined."""
        name: str = self.data(claim)["node"]
        taints = [taint for taint in self.node(name)["spec"]["taints"] if taint["key"] != "karpenter.sh/unregistered"]
        self.change("Node", name, {"metadata": {"labels": labels}, "spec": {"taints": taints}})
        return name

    def control(self, **data: str) -> None:
        """Write the ConfigMap by which a person steers the cloud."""
        metadata = {"name": "kerf-kwok", "namespace": NAMESPACE}
        if self.api.get("ConfigMap", NAMESPACE, "kerf-kwok") is None:
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            self.done(self.store.create(obj))
        else:
            self.done(self.store.patch("ConfigMap", NAMESPACE, "kerf-kwok", {"data": data}))

    def change(self, kind: str, name: str, patch: Json, namespace: str = "") -> None:
        """Patch an object, and give everybody a turn."""
        self.done(self.store.patch(kind, namespace, name, patch))
        self.done(asyncio.sleep(0.01))

    def data(self, claim: NodeClaim) -> dict[str, str]:
        """What the ConfigMap of the claim's instance says; empty when there is none."""
        found = self.api.get("ConfigMap", NAMESPACE, record_name(claim.uid))
        return {} if found is None else found["data"]

    def node(self, name: str) -> Json:
        """A Node that is there."""
        found = self.api.get("Node", "", name)
        assert found is not None
        return found

    def nodes(self) -> list[str]:
        """The names of all Nodes."""
        return [node["metadata"]["name"] for node in self.api.list("Node")]

    @property
    def now_s(self) -> float:
        """Seconds since the start."""
        return self.clock.now_s() - START_S

    def _kwok(self, what: str, node: Json) -> None:
        """KWOK makes its nodes Ready, unless another holds their Lease."""
        if node["kind"] != "Node" or what == "DELETED" or "kwok.x-k8s.io/node" not in annotations_of(node):
            return
        name = node["metadata"]["name"]
        lease = self.api.get("Lease", "kube-node-lease", name)
        if lease is None:
            metadata = {"name": name, "namespace": "kube-node-lease"}
            spec = {"holderIdentity": "kwok"}
            lease = self.api.create({"apiVersion": "v1", "kind": "Lease", "metadata": metadata, "spec": spec})
        held = self.api.get("Node", "", name)
        if held is not None and lease["spec"]["holderIdentity"] == "kwok" and not is_ready(held):
            conditions = with_condition(held, {"type": "Ready", "status": "True"}, "2026-01-05T07:00:00Z")
            self.api.patch("Node", "", name, {"status": {"conditions": conditions}}, subresource="status")


def daemon_set(name: str, **labels: str) -> Json:
    """A DaemonSet for nodes with these labels, without tolerations of its own."""
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main"}], "nodeSelector": labels},
    }
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}


def daemon_pod(owner: Json, node: str) -> Json:
    """A pod of a DaemonSet on a node."""
    reference = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": owner["metadata"]["name"]}
    reference |= {"uid": owner["metadata"]["uid"], "controller": True}
    metadata = {"name": f"{reference['name']}-x", "namespace": "kube-system", "ownerReferences": [reference]}
    spec = {"containers": [{"name": "main"}], "nodeName": node}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _is_labelled(obj: Json, selector: str) -> bool:
    key, equals, value = selector.partition("=")
    held = labels_of(obj)
    return not selector or (held.get(key) == value if equals else key in held)


def _at(obj: Json, place: str) -> str:
    part, _, field = place.partition(".")
    found: str = obj[part].get(field, "")
    return found
