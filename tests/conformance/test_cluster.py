"""The in-memory cluster obeys the rules of the real one, where `tests/controlplane` tries them."""

from collections.abc import Iterator, Sequence

import pytest

from kerf.ports import KubeReader
from kerf.sim.kubernetes.adapter import SimReader, SimWriter
from kerf.sim.kubernetes.api import InMemoryApi
from kerf.sim.kubernetes.workloads import Workloads
from tests.conformance.cluster import Cluster, Rule
from tests.conformance.cluster_rules import RULES
from tests.conformance.raw_api import Json
from tests.sim.cluster import Cluster as Parts


class MemoryApi:
    """The in-memory API, behind the same verbs."""

    def __init__(self, api: InMemoryApi) -> None:
        self._api = api

    async def create(self, obj: Json) -> Json:
        return self._api.create(obj)

    async def get(self, kind: str, namespace: str, name: str) -> Json | None:
        return self._api.get(kind, namespace, name)

    async def list(self, kind: str, namespace: str) -> Sequence[Json]:
        return [obj for obj in self._api.list(kind) if obj["metadata"].get("namespace", "") == namespace]

    async def update(self, obj: Json, subresource: str) -> Json:
        return self._api.update(obj, subresource=subresource)

    async def patch(self, kind: str, namespace: str, name: str, patch: Json, subresource: str) -> Json:
        return self._api.patch(kind, namespace, name, patch, subresource=subresource)

    async def delete(self, kind: str, namespace: str, name: str, grace_s: int | None) -> None:
        self._api.delete(kind, namespace, name, grace_s=grace_s)

    async def evict(self, namespace: str, name: str) -> None:
        self._api.evict(namespace, name)

    async def bind(self, namespace: str, name: str, node: str) -> None:
        self._api.bind(namespace, name, node)

    async def lose_history(self, reader: KubeReader) -> None:
        assert isinstance(reader, SimReader)
        reader.lose_watch()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A new one with all the stand-ins of a simulation, except Kerf and the machines of a cloud."""
    parts = Parts()
    Workloads(parts.api, parts.clock).start()
    api = parts.api
    made = Cluster(parts.loop, "test", MemoryApi(api), SimWriter(api), lambda: SimReader(api))
    yield made
    made.close()
    parts.loop.close()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_in_memory_cluster_obeys(rule: Rule, cluster: Cluster) -> None:
    """See the rule."""
    rule(cluster)
