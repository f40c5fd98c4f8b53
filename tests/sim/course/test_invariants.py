"""What must never happen in a simulation is noticed when it does."""

from collections.abc import Iterator

import pytest

from kerf.sim.course.books import Books
from kerf.sim.course.invariants import InvariantBroken, Invariants
from kerf.sim.objects import Json
from tests.clouds.market import claim
from tests.sim.cluster import Cluster, cpu_pod, gpu_pod, ready_node


class Watched(Cluster):
    """A cluster whose invariants are looked at; `broken` is the first that was not kept."""

    def __init__(self) -> None:
        super().__init__()
        self.books = Books()
        self.invariants = Invariants(self.api, self.clock, self.cloud, self.books)
        self.broken = ""
        self.api.subscribe(self._look)
        self.cloud.subscribe(self.invariants.on_cloud)

    def _look(self, type_: str, obj: Json) -> None:
        self.books.note(type_, obj)
        try:
            self.invariants.on_event(type_, obj)
        except InvariantBroken as error:
            self.broken = self.broken or str(error)


@pytest.fixture
def cluster() -> Iterator[Watched]:
    """An empty one; its loop is closed after the test."""
    built = Watched()
    yield built
    built.loop.close()


def node_claim(name: str, pods: str) -> Json:
    """A claim that was bought for some pods."""
    metadata = {"name": name, "annotations": {"kerf.dev/planned-pods": pods}}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"nodeClassRef": reference, "requirements": []}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata, "spec": spec}


def test_an_undisturbed_cluster_breaks_nothing(cluster: Watched) -> None:
    """A node that comes, pods that run and go."""
    cluster.create(ready_node("n"), cpu_pod("web"))
    cluster.at(100, lambda: cluster.api.delete("Pod", "default", "web"))

    cluster.at(200)
    assert "" == cluster.broken


def test_a_leaked_instance_is_noticed(cluster: Watched) -> None:
    """An instance whose claim is gone may wait for its collection, but not for ever."""
    cluster.launch(claim())
    cluster.at(200)
    cluster.create(cpu_pod("a"))
    assert "" == cluster.broken

    cluster.at(400)
    cluster.create(cpu_pod("b"))
    assert "no NodeClaim knows it since 2026-01-05T07:00:00Z" in cluster.broken


def test_pods_are_bought_for_once(cluster: Watched) -> None:
    """A second claim for a pod whose node is on its way."""
    cluster.create(
        node_claim("first", '{"default/a": [0]}'), node_claim("second", '{"default/a": [0], "default/b": []}')
    )

    assert "NodeClaim second: bought for pods for which first is on its way: default/a" in cluster.broken


def test_an_over_booked_node_is_noticed(cluster: Watched) -> None:
    """Somebody binds more than the node has."""
    cluster.create(ready_node("n"), cpu_pod("a", "3"))
    cluster.create(cpu_pod("b", "3"))
    cluster.at(1, lambda: cluster.api.bind("default", "b", "n"))

    assert "Pod default/b: n is over-booked: cpu by 2000" in cluster.broken


def test_a_slice_larger_than_its_card_is_noticed(cluster: Watched) -> None:
    """HAMi's record gives a card away twice."""
    register = '[{"id":"GPU-0","count":10,"devmem":1000,"devcore":100,"type":"NVIDIA A10G","health":true}]'
    node = ready_node("n", labels={"gpu": "on"})
    node["metadata"]["annotations"] = {"hami.io/node-nvidia-register": register}
    record = {"hami.io/vgpu-devices-allocated": "GPU-0,NVIDIA,600,0:;"}
    cluster.create(node, *(gpu_pod(name, annotations=record) for name in ("a", "b")))

    assert "Pod default/b: GPU GPU-0 of n gives 1200 MiB of 1000" in cluster.broken


def test_a_running_pod_does_not_just_vanish(cluster: Watched) -> None:
    """Its node works, and nobody gave it time to end."""
    cluster.create(ready_node("n"), cpu_pod("web"))
    cluster.at(10, lambda: cluster.api.delete("Pod", "default", "web", grace_s=0))

    assert "it was running on n and vanished without time to end" in cluster.broken


def test_a_pod_without_a_node_is_noticed(cluster: Watched) -> None:
    """Bound to a node that is gone, longer than the pod collector takes."""
    cluster.create(ready_node("n"), cpu_pod("web"))
    cluster.at(10, lambda: cluster.api.delete("Node", "", "n"))
    cluster.at(90)
    cluster.create(cpu_pod("other"))

    assert "Pod default/web: it is bound to a node that is gone" in cluster.broken


def test_a_workload_has_its_pods_at_the_end(cluster: Watched) -> None:
    """A ReplicaSet of two with none: nobody plays its controller here."""
    spec = {"replicas": 2, "selector": {}, "template": {}}
    metadata = {"name": "web", "namespace": "default"}
    cluster.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec})

    with pytest.raises(InvariantBroken, match="2 of its 2 pods are lost"):
        cluster.invariants.at_end(lambda _: False)
    cluster.invariants.at_end(lambda _: True)


def test_kept_room_is_bought_again_only_where_a_pod_has_taken_it(cluster: Watched) -> None:
    """One pod that waits, and for which no claim was bought, may have taken one place and no second."""
    kept = '{"cronjob:default.c/7-0": [0]%s}'
    both = kept % ', "cronjob:default.c/7-1": [0]'
    cluster.create(gpu_pod("guest"), node_claim("first", both), node_claim("second", kept % ""))
    assert "" == cluster.broken

    cluster.create(node_claim("third", both))
    assert "NodeClaim third: bought for pods for which first is on its way" in cluster.broken


def test_kept_room_that_no_pod_took_is_bought_once(cluster: Watched) -> None:
    """A run of a CronJob is no reason to buy two nodes for each of its pods."""
    cluster.create(*(node_claim(name, '{"cronjob:default.c/7-0": [0]}') for name in ("first", "second")))

    assert "NodeClaim second: bought for pods for which first is on its way: cronjob:default.c/7-0" in cluster.broken
