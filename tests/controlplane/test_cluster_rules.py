"""The rules that the in-memory cluster obeys, tried on the real one: there they were learned."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from kerf.kube import resources
from kerf.kube.client import ClusterTarget, Forbidden, KubeClient
from kerf.kube.crds import crds
from kerf.kube.reader import KubeReader as Reader
from kerf.kube.resources import Access, Resource
from kerf.kube.writer import KubeWriter
from kerf.ports import KubeReader, NotFound
from tests.conformance.cluster import Cluster, Rule
from tests.conformance.cluster_rules import RULES
from tests.conformance.eviction_rules import the_pods_of_a_lost_node_are_removed
from tests.conformance.raw_api import Json
from tools.controlplane.installation import install_policies
from tools.controlplane.server import ControlPlane

_RESOURCES = {value.kind: value for value in vars(resources).values() if isinstance(value, Resource)}
_ADMISSION_S = 10.0


class ServerApi:
    """A real API server, behind the same verbs, with all rights."""

    def __init__(self, plane: ControlPlane, client: KubeClient) -> None:
        self._plane, self._client = plane, client
        self._priority_classes: set[str] = set()

    async def _call(self, verb: str, kind: str, namespace: str, name: str = "", sub: str = "", body: Any = None) -> Any:
        found = Access(verb, _RESOURCES[kind], sub)
        return msgspec.json.decode(await self._client.call(found, namespace=namespace, name=name, body=body))

    async def create(self, obj: Json) -> Json:
        if obj["kind"] == "PriorityClass":
            self._priority_classes.add(obj["metadata"]["name"])
        is_known = obj.get("spec", {}).get("priorityClassName") in self._priority_classes
        async with asyncio.timeout(_ADMISSION_S):
            while True:
                try:
                    created: Json = await self._call(
                        "create", obj["kind"], obj["metadata"].get("namespace", ""), body=obj
                    )
                except Forbidden as error:
                    # Admission learns of a PriorityClass by a watch of its own, a moment after it is there.
                    if not is_known or "no PriorityClass" not in str(error):
                        raise
                    await asyncio.sleep(0.05)
                else:
                    return created

    async def get(self, kind: str, namespace: str, name: str) -> Json | None:
        try:
            found: Json = await self._call("get", kind, namespace, name)
        except NotFound:
            return None
        return found

    async def list(self, kind: str, namespace: str) -> Sequence[Json]:
        found: list[Json] = (await self._call("list", kind, namespace))["items"]
        return found

    async def update(self, obj: Json, subresource: str) -> Json:
        metadata = obj["metadata"]
        place = (obj["kind"], metadata.get("namespace", ""), metadata["name"])
        stored: Json = await self._call("update", *place, subresource, obj)
        return stored

    async def patch(self, kind: str, namespace: str, name: str, patch: Json, subresource: str) -> Json:
        stored: Json = await self._call("patch", kind, namespace, name, subresource, patch)
        return stored

    async def delete(self, kind: str, namespace: str, name: str, grace_s: int | None) -> None:
        grace = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", **grace}
        await self._call("delete", kind, namespace, name, body=options)

    async def evict(self, namespace: str, name: str) -> None:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        await self._call("create", "Pod", namespace, name, "eviction", body)

    async def bind(self, namespace: str, name: str, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self._call("create", "Pod", namespace, name, "binding", body)

    async def lose_history(self, reader: KubeReader) -> None:
        await asyncio.to_thread(self._plane.compact)


@pytest.fixture(scope="module")
def served(control_plane: ControlPlane) -> ControlPlane:
    """A control plane that knows Karpenter's kinds and Kerf's, and gives pods their gates."""
    control_plane.install_crds(crds())
    install_policies(control_plane)
    return control_plane


@pytest.fixture
def cluster(served: ControlPlane, namespace: str) -> Iterator[Cluster]:
    """The part of a real one that is named as the namespace, with all rights."""
    with asyncio.Runner() as runner:
        client = runner.run(KubeClient.connect(ClusterTarget(str(served.kubeconfig()))))
        api = ServerApi(served, client)
        made = Cluster(runner.get_loop(), namespace, api, KubeWriter(client), lambda: Reader(client))
        yield made
        made.close()
        runner.run(client.close())


LONG = (the_pods_of_a_lost_node_are_removed,)
"""The garbage collector of pods looks every 20 s, and waits 40 s before it takes a node to be lost."""


@pytest.mark.parametrize(
    "rule",
    [pytest.param(rule, marks=pytest.mark.long) if rule in LONG else rule for rule in RULES],
    ids=lambda rule: rule.__name__,
)
def test_the_real_cluster_obeys(rule: Rule, cluster: Cluster) -> None:
    """See the rule."""
    rule(cluster)
