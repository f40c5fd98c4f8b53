"""NodeClasses of a provider: resolved and written, held by a finalizer until their claims are gone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kerf.cloudprovider import NodeClasses, NodeClassState
from kerf.clouds.fake import FakeCloud, Latencies
from kerf.controllers.nodeclasses import NodeClassLoop
from kerf.model.nodepool import NodePool
from kerf.ports import Conflict, NotFound
from tests.clouds.market import MARKET
from tests.controllers.cluster import Cluster, pool

KIND, FINALIZER = "EC2NodeClass", "karpenter.k8s.aws/termination"
READY = [{"type": "Ready", "status": "True"}]


@dataclass
class Kinds:
    """The kind of the test: every NodeClass is ready, with `found` in its status."""

    group: str = "karpenter.k8s.aws"
    kind: str = KIND
    finalizer: str = FINALIZER
    found: str = "subnet-1"
    resolved: list[bool] = field(default_factory=list)
    pools: list[list[tuple[str, dict[str, str]]]] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)

    async def resolve(
        self, node_class: Mapping[str, Any], *, pools: Sequence[NodePool] = (), only_reads: bool = False
    ) -> NodeClassState:
        """See NodeClasses."""
        self.resolved.append(only_reads)
        self.pools.append([(each.name, dict(each.labels)) for each in pools])
        return NodeClassState({"subnets": [{"id": self.found}], "conditions": READY}, {"hash": "1"}, 60)

    async def release(self, node_class: Mapping[str, Any]) -> None:
        """See NodeClasses."""
        self.released.append(node_class["metadata"]["name"])

    def forget(self, name: str) -> None:
        """See NodeClasses."""
        self.forgotten.append(name)


class _Classed(FakeCloud):
    """A cloud with a kind of its own."""

    def __init__(self, cluster: Cluster, kinds: Kinds) -> None:
        super().__init__(MARKET, cluster.clock, latencies=Latencies(0, 5))
        self._kinds = kinds

    @property
    def node_classes(self) -> NodeClasses:
        """Its kind."""
        return self._kinds


class Store:
    """`NodeClassStore` over the cluster of the test; `writes` counts."""

    def __init__(self, cluster: Cluster) -> None:
        self._api, self.writes = cluster.api, 0

    async def read(self, name: str) -> Mapping[str, Any]:
        """See NodeClassStore."""
        found = self._api.get(KIND, "", name)
        if found is None:
            raise NotFound(name)
        return found

    async def mark(
        self,
        node_class: Mapping[str, Any],
        *,
        finalizers: Sequence[str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """See NodeClassStore."""
        change: dict[str, Any] = {} if finalizers is None else {"finalizers": list(finalizers)}
        change |= {} if annotations is None else {"annotations": dict(annotations)}
        return self._patched(node_class, {"metadata": change}, "")

    async def write_status(self, node_class: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        """See NodeClassStore."""
        self._patched(node_class, {"status": dict(status)}, "status")

    def _patched(self, node_class: Mapping[str, Any], change: dict[str, Any], subresource: str) -> Mapping[str, Any]:
        self.writes += 1
        name = node_class["metadata"]["name"]
        held = self._api.get(KIND, "", name)
        assert held is not None
        if held["metadata"]["resourceVersion"] != node_class["metadata"]["resourceVersion"]:
            raise Conflict(name)
        return self._api.patch(KIND, "", name, change, subresource=subresource)


@pytest.fixture
def kinds() -> Kinds:
    """All NodeClasses are ready."""
    return Kinds()


@pytest.fixture
def store(cluster: Cluster, kinds: Kinds) -> Store:
    """The cluster's, which has one NodeClass; its cloud has that kind."""
    cluster.use(_Classed(cluster, kinds))
    made = Store(cluster)
    cluster.ports = replace(cluster.ports, node_classes=made)
    spec: dict[str, Any] = {"role": "nodes"}
    named = {"name": "default"}
    cluster.put({"apiVersion": "karpenter.k8s.aws/v1", "kind": KIND, "metadata": named, "spec": spec})
    return made


def _start(cluster: Cluster, *, is_dry_run: bool = False) -> None:
    cluster.start(NodeClassLoop(cluster.state, cluster.ports, is_dry_run=is_dry_run))


def _held(cluster: Cluster) -> dict[str, Any]:
    found = cluster.api.get(KIND, "", "default")
    assert found is not None
    return found


def test_what_was_found_is_written_with_finalizer_and_annotations(cluster: Cluster, store: Store) -> None:
    """Three writes at first; then none as long as nothing changes, although it is resolved each minute."""
    _start(cluster)
    cluster.at(300)
    held = _held(cluster)

    assert ([FINALIZER], {"hash": "1"}) == (held["metadata"]["finalizers"], held["metadata"]["annotations"])
    assert ({"subnets": [{"id": "subnet-1"}], "conditions": READY}, 3) == (held["status"], store.writes)


def test_what_changes_in_the_cloud_is_found_within_a_minute(cluster: Cluster, kinds: Kinds, store: Store) -> None:
    """Nothing in the cluster says so."""
    _start(cluster)
    cluster.at(10, lambda: setattr(kinds, "found", "subnet-2"))
    cluster.at(61)

    assert (["subnet-2"], 4) == ([each["id"] for each in _held(cluster)["status"]["subnets"]], store.writes)


def test_a_pool_is_checked_with_its_node_class_as_soon_as_it_changes(
    cluster: Cluster, kinds: Kinds, store: Store
) -> None:
    """Its labels and taints are in what a launch sends; a status of it, which changes all the time, wakes nobody."""
    cluster.put(pool(labels={"team": "ml"}))
    _start(cluster)
    cluster.at(1)
    first = len(kinds.pools)
    spec = pool(labels={"team": "web"})["spec"]
    cluster.at(5, lambda: cluster.api.patch("NodePool", "", "gpu", {"spec": spec}))
    cluster.at(6)
    changed = len(kinds.pools)
    status = {"status": {"resources": {"cpu": "4"}}}
    cluster.at(7, lambda: cluster.api.patch("NodePool", "", "gpu", status, subresource="status"))
    cluster.at(8)

    assert [[("gpu", {"team": "ml"})], [("gpu", {"team": "web"})]] == [kinds.pools[0], kinds.pools[-1]]
    assert (first + 1, changed) == (changed, len(kinds.pools))


def test_a_dry_run_resolves_and_writes_nothing(cluster: Cluster, kinds: Kinds, store: Store) -> None:
    """Another owns the objects."""
    _start(cluster, is_dry_run=True)
    cluster.at(70)

    assert ([True, True], 0) == (kinds.resolved, store.writes)


def test_a_node_class_waits_for_its_claims(cluster: Cluster, kinds: Kinds, store: Store) -> None:
    """It is released when the last is gone, and goes then; meanwhile it says what it waits for."""
    cluster.claimed("gpu-1", finalizers=())
    _start(cluster)
    cluster.at(5, lambda: cluster.api.delete(KIND, "", "default"))
    cluster.at(10)
    assert ([], ["waits for the end of NodeClaims gpu-1"]) == (
        kinds.released,
        cluster.said("WaitingOnNodeClaimTermination"),
    )

    cluster.at(20, lambda: cluster.api.delete("NodeClaim", "", "gpu-1"))
    assert (["default"], [], ["default"]) == (kinds.released, cluster.names(KIND), kinds.forgotten)


def test_a_cloud_without_a_kind_has_nothing_to_do(cluster: Cluster) -> None:
    """As the acted-out ones."""
    loop = NodeClassLoop(cluster.state, cluster.ports)

    assert () == tuple(loop.keys(None, None))  # type: ignore[arg-type]
