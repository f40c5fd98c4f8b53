"""Claims and instances that have lost each other, and instances that the cloud takes back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kerf.cloudprovider import Instance
from kerf.clouds.fake import FakeCloud, Latencies
from kerf.controllers.nodeclaim.garbagecollection import GarbageCollection
from kerf.controllers.nodeclaim.lifecycle import Lifecycle
from kerf.errors import CloudError
from kerf.model.nodeclaim import TERMINATION_FINALIZER
from kerf.testing.builders import a_node
from tests.clouds.market import MARKET, claim
from tests.controllers.cluster import Cluster, node_object, pod, pool

ORPHAN = claim("left-over", "uid-nobody", types=("g5.xlarge",))


def start(cluster: Cluster) -> None:
    """The collection alone."""
    cluster.put(pool())
    cluster.start(GarbageCollection(cluster.state, cluster.ports, cluster.settings))


def test_an_instance_that_no_claim_asked_for_is_terminated(cluster: Cluster) -> None:
    """Once it is thirty seconds old: a younger one may be a launch that is being written down."""
    cluster.at(5)
    cluster.done(cluster.cloud.create(ORPHAN))
    cluster.at(10)
    start(cluster)
    (instance,) = cluster.cloud.instances
    cluster.at(39.5)
    assert not cluster.cloud.is_terminating(instance.provider_id)

    cluster.at(46)
    assert () == cluster.cloud.instances


class Protected(FakeCloud):
    """A cloud with an instance that nobody may end."""

    protected = ""

    async def delete(self, provider_id: str) -> None:
        """Refuse that one."""
        if provider_id == self.protected:
            raise CloudError(f"TerminateInstances: OperationNotPermitted: {provider_id}")
        await super().delete(provider_id)


@pytest.mark.parametrize("place", range(3))
def test_an_instance_that_may_not_be_ended_holds_up_no_other(cluster: Cluster, place: int) -> None:
    """Its protection may stay for ever; what is left over beside it costs money."""
    cloud = Protected(MARKET, cluster.clock, latencies=Latencies(0, 5))
    cluster.use(cloud)
    orphans = [claim(f"left-{number}", f"uid-nobody-{number}", types=("g5.xlarge",)) for number in range(3)]
    for orphan in orphans:
        cluster.done(cloud.create(orphan))
    cloud.protected = sorted(each.provider_id for each in cloud.instances)[place]
    start(cluster)
    cluster.at(120)

    assert [cloud.protected] == [each.provider_id for each in cloud.instances]


class Doubled(FakeCloud):
    """A cloud in which each launch was carried out twice."""

    ended: tuple[str, ...] = ()

    async def list_instances(self) -> Sequence[Instance]:
        """Each with its twin."""
        found = await super().list_instances()
        return [*found, *(replace(each, provider_id=f"{each.provider_id}-twin") for each in found)]

    async def delete(self, provider_id: str) -> None:
        """Note it."""
        self.ended = (*self.ended, provider_id)


@pytest.mark.parametrize(("reached", "ends"), [((), 0), (("Launched",), 1)])
def test_a_second_instance_for_a_claim_ends_once_the_claim_knows_its_own(
    cluster: Cluster, reached: Sequence[str], ends: int
) -> None:
    """A reply was lost, and the next life did not see the first instance yet."""
    cloud = Doubled(MARKET, cluster.clock, latencies=Latencies(0, 5))
    cluster.use(cloud)
    held = cluster.claimed(reached=reached)
    cluster.done(cloud.create(held))
    start(cluster)
    cluster.at(59)

    assert (f"{held.provider_id}-twin",) * ends == cloud.ended


def test_an_instance_of_a_claim_that_is_being_launched_stays(cluster: Cluster) -> None:
    """However long its launch takes: the claim's uid is on it."""
    held = cluster.claimed(reached=())
    cluster.done(cluster.cloud.create(held))
    start(cluster)
    cluster.at(1000)

    assert [held.uid] == [instance.claim_uid for instance in cluster.cloud.instances]


def test_a_claim_whose_instance_is_gone_is_deleted(cluster: Cluster) -> None:
    """Somebody has terminated it behind our back, and its node is not Ready any more."""
    held = cluster.running(1, node={"is_ready": False})
    start(cluster)
    cluster.done(cluster.cloud.delete(held.provider_id))
    cluster.at(30)

    assert cluster.claim().is_deleting
    assert ["its instance is gone"] == cluster.said("TerminatingOnInterruption")


def test_a_node_that_is_ready_has_an_instance(cluster: Cluster) -> None:
    """Whatever the cloud says: its kubelet speaks."""
    held = cluster.running(1)
    start(cluster)
    cluster.done(cluster.cloud.delete(held.provider_id))
    cluster.at(100)

    assert not cluster.claim().is_deleting


class Forgetful(FakeCloud):
    """A cloud whose listings lack some instances, which it knows by their ids."""

    lost: tuple[str, ...] = ()
    asked = 0

    async def list_instances(self) -> Sequence[Instance]:
        """Without those that are lost."""
        return [each for each in await super().list_instances() if each.claim_name not in self.lost]

    async def get(self, provider_id: str) -> Instance:
        """All of them."""
        self.asked += 1
        return next(each for each in self.instances if each.provider_id == provider_id)


def test_what_a_listing_lacks_is_asked_for_by_id(cluster: Cluster) -> None:
    """EC2 hides a new instance for seconds; its claim stays."""
    cloud = Forgetful(MARKET, cluster.clock, latencies=Latencies(0, 5))
    cluster.use(cloud)
    cluster.running(1, node={"is_ready": False})
    cloud.lost = ("gpu-1",)
    start(cluster)
    cluster.at(100)

    assert not cluster.claim().is_deleting
    assert 4 == cloud.asked


@pytest.mark.parametrize(("lost", "gone"), [(2, 2), (3, 0)])
def test_a_listing_that_lacks_more_than_a_fifth_of_the_claims_ends_none(cluster: Cluster, lost: int, gone: int) -> None:
    """Two of ten may really be gone; with three the listing is doubted."""
    claims = [cluster.running(number, node={"is_ready": False}) for number in range(10)]
    for claim_ in claims[:lost]:
        cluster.done(cluster.cloud.delete(claim_.provider_id))
    start(cluster)
    cluster.at(100)

    assert gone == sum(cluster.claim(each.name).is_deleting for each in claims)


@pytest.mark.parametrize("is_asked_to_go", [False, True])
def test_the_node_of_a_claim_that_was_removed_by_force_goes_with_its_instance(
    cluster: Cluster, is_asked_to_go: bool
) -> None:
    """Our finalizer holds it, and `kubectl delete node` would wait for ever (G4)."""
    cluster.running(1)
    start(cluster)
    cluster.at(100)
    cluster.api.patch("NodeClaim", "", "gpu-1", {"metadata": {"finalizers": None}})
    cluster.api.delete("NodeClaim", "", "gpu-1")
    if is_asked_to_go:
        cluster.api.delete("Node", "", "node-1")
    cluster.at(250)

    assert ((), []) == (cluster.cloud.instances, cluster.names("Node"))
    assert ["its NodeClaim and its instance are gone"] == cluster.said("Terminated")


@pytest.mark.parametrize("own", [{"pool": "theirs", "finalizers": (TERMINATION_FINALIZER,)}, {"pool": "gpu"}])
def test_a_node_that_is_not_ours_stays(cluster: Cluster, own: dict[str, Any]) -> None:
    """Of another's pool, or without our finalizer: it does not wait for us."""
    cluster.put(node_object(a_node("node-1", provider_id="gone", **own), cluster.now_s))
    start(cluster)
    cluster.at(250)

    assert ["node-1"] == cluster.names("Node")


def test_a_claim_that_was_not_launched_has_no_instance_to_lose(cluster: Cluster) -> None:
    """Its launch is the lifecycle's business."""
    cluster.claimed(reached=())
    start(cluster)
    cluster.at(100)

    assert not cluster.claim().is_deleting


def test_an_interrupted_instance_is_drained_while_there_is_time(cluster: Cluster) -> None:
    """Two minutes' notice: the claim is deleted at the next look, and its pods are evicted."""
    cluster.put(pod(node="node-1"))
    held = cluster.running(1)
    collection = GarbageCollection(cluster.state, cluster.ports, cluster.settings)
    cluster.start(collection, Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))
    cluster.at(10, lambda: cluster.cloud.interrupt(held.provider_id))
    cluster.at(30)

    assert (True, "Evicted pod: SpotInterrupted") == (cluster.claim().is_deleting, *cluster.said("Evicted"))
    assert ["the cloud interrupts its instance"] == cluster.said("TerminatingOnInterruption")
    assert cluster.pod().deleted_s is not None


def test_a_notice_counts_for_a_claim_that_goes_already(cluster: Cluster) -> None:
    """Pods that hold its drain have less time than was said."""
    held = cluster.running(1)
    cluster.api.delete("NodeClaim", "", held.name)
    start(cluster)
    cluster.cloud.interrupt(held.provider_id)
    cluster.at(60)

    assert "SpotInterrupted" == cluster.condition("DisruptionReason")[1]
    assert 1 == len(cluster.said("TerminatingOnInterruption"))


def test_it_looks_every_thirty_seconds_and_says_it_once(cluster: Cluster) -> None:
    """A claim that goes already is left to its lifecycle."""
    held = cluster.running(1)
    start(cluster)
    cluster.cloud.interrupt(held.provider_id)
    cluster.at(300)

    assert 1 == len(cluster.said("TerminatingOnInterruption"))


def test_a_throttled_cloud_is_asked_again(cluster: Cluster) -> None:
    """Nothing is taken for gone that was only not told."""
    cluster.running(1)
    cluster.cloud.throttle(cluster.clock.now_s() + 100)
    start(cluster)
    cluster.at(200)

    assert not cluster.claim().is_deleting


def test_an_instance_without_a_token_is_never_garbage(cluster: Cluster) -> None:
    """Another autoscaler launched it: without the uid of a claim it may be another's."""

    class Inherited(FakeCloud):
        async def list_instances(self) -> Sequence[Instance]:
            return [replace(instance, claim_uid="") for instance in await super().list_instances()]

    cluster.use(Inherited(MARKET, cluster.clock, latencies=Latencies(0, 5)))
    cluster.done(cluster.cloud.create(ORPHAN))
    start(cluster)
    cluster.at(300)

    assert 1 == len(cluster.cloud.instances)
