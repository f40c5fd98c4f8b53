"""HAMi's extender beside an in-memory API whose watch tells only when it is asked to."""

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from kerf.errors import ApiError
from kerf.manifests.decode import decode_object
from kerf.model.snapshot import Deleted, Event, Upserted
from kerf.ports import NotFound
from kerf.sharing.hami.records import LOCK, REGISTER
from kerf.sim.hami.extender import Extender, ExtenderCache
from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.objects import Json, annotations_of, merged
from tests.sim.cluster import gpu_pod, ready_node

NOON_S = 1_767_614_400.0


@dataclass
class Time:
    """A clock that stands until it is set; nothing that waits for it is in these tests."""

    at_s: float = NOON_S

    def now_s(self) -> float:
        """What it shows."""
        return self.at_s

    def call_at(self, when_s: float, callback: Callable[[], None]) -> None:
        """For garbage collection and listeners."""


@dataclass
class Api:
    """`HamiApi` over the in-memory API. Each call takes a turn, so that others come between."""

    objects: InMemoryApi
    broken: str = ""

    async def get_pod(self, namespace: str, name: str) -> Json:
        """As it is now."""
        return await self._found("Pod", namespace, name)

    async def get_node(self, name: str) -> Json:
        """As it is now."""
        return await self._found("Node", "", name)

    async def patch_pod(self, namespace: str, name: str, patch: Json) -> None:
        """A merge patch."""
        await self._turn("patch")
        self.objects.patch("Pod", namespace, name, patch)

    async def patch_node(self, name: str, patch: Json) -> None:
        """A merge patch."""
        await self._turn("lock")
        self.objects.patch("Node", "", name, patch)

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """A Binding."""
        await self._turn("bind")
        self.objects.bind(namespace, name, node)

    async def _found(self, kind: str, namespace: str, name: str) -> Json:
        await self._turn("get")
        obj = self.objects.get(kind, namespace, name)
        if obj is None:
            raise NotFound(f'{kind} "{name}" is not there')
        return obj

    async def _turn(self, verb: str) -> None:
        await asyncio.sleep(0)
        if verb == self.broken:
            raise ApiError("the server is away")


@dataclass
class Desk:
    """Nodes, pods, and the extender that is asked about them."""

    lots: random.Random | None = None
    time: Time = field(default_factory=Time)

    def __post_init__(self) -> None:
        self.objects = InMemoryApi(self.time)
        self.api = Api(self.objects)
        self.cache = ExtenderCache(self.time.now_s)
        self.extender = Extender(self.cache, self.api, self.time.now_s, self.lots)
        self._told: dict[str, Json] = {}

    def watch(self) -> None:
        """Tell all there is, and what has gone since the last time."""
        kinds = self.objects.kinds()
        held = {f"{kind}/{o['metadata']['name']}": o for kind in kinds for o in self.objects.list(kind)}
        for key in sorted(self._told.keys() - held.keys()):
            self.cache.apply(event_of(Deleted, self._told[key]))
        for obj in held.values():
            self.cache.apply(event_of(Upserted, obj))
        self._told = held

    def node(self, name: str, *memories: int) -> Json:
        """A node with cards of these MiB, which the watch tells at once."""
        common = {"count": 10, "devcore": 100, "type": "NVIDIA A10", "health": True}
        cards = [{"id": f"GPU-{name}-{i}", "index": i, "devmem": memory} | common for i, memory in enumerate(memories)]
        annotated = {"metadata": {"annotations": {REGISTER: json.dumps(cards)}}}
        node = self.objects.create(merged(ready_node(name), annotated))
        self.watch()
        return node

    def pod(self, name: str, *, gpumem: int) -> Json:
        """A new pod with a share of one GPU, of which no watch has told."""
        return self.objects.create(gpu_pod(name, gpu=1, gpumem=gpumem))

    def filter(self, pod: Json, *names: str) -> Json:
        """The extender's answer about these nodes, by default `a` and `b`."""
        asked = {"Pod": pod, "Nodes": None, "NodeNames": list(names or ("a", "b"))}
        return asyncio.run(self.extender.filter(asked))

    def bind(self, *names: str, node: str = "a") -> list[str]:
        """The errors of binds that are under way together."""
        uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.objects.list("Pod")}

        async def one(name: str) -> str:
            asked = {"PodName": name, "PodNamespace": "default", "PodUID": uids.get(name, ""), "Node": node}
            error: str = (await self.extender.bind(asked))["Error"]
            return error

        async def together() -> list[str]:
            return await asyncio.gather(*map(one, names))

        return asyncio.run(together())

    def lock(self, text: str | None) -> None:
        """Put somebody's lock on node a, or take it away."""
        self.objects.patch("Node", "", "a", {"metadata": {"annotations": {LOCK: text}}})

    def annotations(self, kind: str, name: str) -> dict[str, str]:
        """Of an object that is there."""
        obj = self.objects.get(kind, "" if kind == "Node" else "default", name)
        assert obj is not None
        return annotations_of(obj)

    def place(self, name: str) -> str:
        """The node a pod is bound to; empty while it waits."""
        pod = self.objects.get("Pod", "default", name)
        assert pod is not None
        node: str = pod["spec"].get("nodeName", "")
        return node


def event_of(kind: type[Upserted] | type[Deleted], obj: Json) -> Event:
    """As a reader tells it."""
    value = decode_object(obj)
    assert value is not None
    return kind(value)
