"""The acted-out cloud as a provider: what it sells, how long it takes, and what it keeps in the API."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from kerf.cloudprovider import Instance, InstanceNotFound, InsufficientCapacity, LaunchFailed, NodeClassNotReady
from kerf.clouds.kwok.cloud import Catalogue, KwokCloud
from kerf.errors import CloudError, InputError
from kerf.model.instancetypes import OfferingKey
from kerf.model.nodeclaim import NodeClassRef
from kerf.testing.builders import a_pool
from kerf.testing.conformance import CHECKS, Bench
from tests.clouds.kwok.world import NAMESPACE, KwokWorld
from tests.clouds.market import claim

SPOT_A = OfferingKey("g5.xlarge", "us-east-1a", "spot")
SPOT_B = OfferingKey("g5.xlarge", "us-east-1b", "spot")
G5 = claim(types=("g5.xlarge",))
ECS = NodeClassRef("karpenter.k8s.alibabacloud", "ECSNodeClass", "default")
KWOK = NodeClassRef("karpenter.kwok.sh", "KWOKNodeClass", "default")


@pytest.fixture
def world() -> Iterator[KwokWorld]:
    """A fresh cluster; everything in it ends with the test."""
    built = KwokWorld()
    yield built
    built.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_promises_of_every_provider(world: KwokWorld, check: Any) -> None:
    """The checks that are there for authors of providers, stock-outs by ConfigMap included."""

    def sell_out() -> None:
        metadata = {"name": "kerf-kwok", "namespace": NAMESPACE}
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"stockouts": "[{}]"}}
        world.api.create(obj)

    world.done(check(Bench(world.cloud, a_pool(), G5, asyncio.sleep, sell_out)))


def test_a_launch_takes_its_time_and_the_instance_is_there_at_once(world: KwokWorld) -> None:
    """The ConfigMap exists from the call on; the reply comes after the launch latency."""
    world.ask(G5)

    assert "g5.xlarge" == json.loads(world.data(G5)["instance"])["offering"]["instanceType"]
    instance = world.done(world.cloud.create(G5))
    assert ("kwok:///us-east-1a/uid-1", 40) == (instance.provider_id, world.now_s)


def test_launches_with_jitter_take_unlike_times_and_the_same_again(world: KwokWorld) -> None:
    """Between the latency and that and the jitter, by the claim's uid: a restart in the middle changes nothing."""
    world.control(settings="{launch: 40s, jitter: 30s}")
    world.ask(G5)
    world.stop()
    world.start()

    world.done(world.cloud.create(G5))
    assert 40 < world.now_s < 70
    first_s = world.now_s
    world.done(world.cloud.create(claim("gpu-2", "uid-2", types=("g5.xlarge",))))
    assert 40 < world.now_s - first_s < 70
    assert first_s != world.now_s - first_s


def test_a_launch_is_taken_up_by_the_next_process(world: KwokWorld) -> None:
    """Killed in the middle of a launch and started again: the same instance, and no second wait."""
    world.ask(G5)
    world.stop()
    world.start()

    again: Instance = world.done(world.cloud.create(G5))
    assert (40, [again]) == (world.now_s, list(world.done(world.cloud.list_instances())))


def test_a_restart_shows_the_same_instance(world: KwokWorld) -> None:
    """Nothing of an instance is lost on its way through the ConfigMap."""
    world.control(stockouts="[{instanceType: g5.xlarge, zone: us-east-1a}]")
    before: Instance = world.done(world.cloud.create(G5))
    world.stop()
    world.start()

    after: Instance = world.done(world.cloud.create(G5))
    assert before == after
    assert (before.labels, [SPOT_A]) == (after.labels, list(after.sold_out))


def test_what_is_sold_out_is_passed_over_and_named(world: KwokWorld) -> None:
    """A launch falls through to the next offering and says which it could not have."""
    world.control(stockouts="[{instanceType: g5.xlarge, capacityType: spot}]")

    instance = world.done(world.cloud.create(G5))
    assert ("on-demand", [SPOT_A, SPOT_B]) == (instance.offering.capacity_type, list(instance.sold_out))


def test_a_stock_out_ends(world: KwokWorld) -> None:
    """Sold out until an instant; then the same call succeeds."""
    world.control(stockouts="[{until: 2026-01-05T07:10:00Z}]")
    with pytest.raises(InsufficientCapacity):
        world.done(world.cloud.create(G5))

    world.at(600)
    assert SPOT_A == world.done(world.cloud.create(G5)).offering


def test_settings_change_latencies_at_once(world: KwokWorld) -> None:
    """Durations of the ConfigMap win over those the process was started with."""
    world.control(settings="{launch: 500ms, terminate: 1m}")
    world.done(world.cloud.create(G5))

    assert 0.5 == pytest.approx(world.now_s)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"stockouts": "[{zone: [a]}, {zone: us-east-1a}]"}, "data.stockouts[0].zone: expected text, got <a list>"),
        ({"stockouts": "[{region: x}, {zone: us-east-1a}]"}, "data.stockouts[0].region: expected one of instanceType"),
        ({"stockouts": "[{until: soon}, {zone: us-east-1a}]"}, "data.stockouts[0].until: expected an instant"),
        ({"settings": "{launch: -3}", "stockouts": "[{zone: us-east-1a}]"}, "data.settings.launch: expected a dur"),
        ({"settings": "{", "stockouts": "[{zone: us-east-1a}]"}, "data.settings: expected YAML"),
        ({"deviceFaults": "{}x", "stockouts": "[{zone: us-east-1a}]"}, "data.deviceFaults: expected"),
        ({"deviceFaults": "[{kind: bad}]", "stockouts": "[{zone: us-east-1a}]"}, "deviceFaults[0].kind: expected one"),
        ({"settings": "x" * 40_000, "stockouts": "[{zone: us-east-1a}]"}, "expected at most 32768 characters"),
    ],
)
def test_a_bad_entry_is_reported_once_and_the_others_hold(world: KwokWorld, data: dict[str, str], said: str) -> None:
    """The log has place, path, expected and got, once; the stock-out beside it works."""
    world.control(**data)

    with capture_logs() as logs:
        for number in (1, 2):
            created = world.done(world.cloud.create(claim(uid=f"uid-{number}", types=("g5.xlarge",))))
            assert "us-east-1b" == created.offering.zone
    assert [said in entry["error"] for entry in logs if entry["event"] == "ignored"] == [True]


def test_a_damaged_instance_does_not_hide_the_others(world: KwokWorld) -> None:
    """The list leaves it out, and deleting it takes what is left of it away."""
    good, bad = world.done(world.cloud.create(G5)), claim(uid="uid-2")
    world.done(world.cloud.create(bad))
    world.change("ConfigMap", "kerf-instance-uid-2", {"data": {"instance": '{"claimUid": 3}'}}, NAMESPACE)

    assert (good,) == world.done(world.cloud.list_instances())
    with pytest.raises(LaunchFailed, match=r"ConfigMap kerf-instance-uid-2: data\.instance: expected an instance"):
        world.done(world.cloud.create(bad))
    with pytest.raises(InstanceNotFound):
        world.done(world.cloud.delete("kwok:///us-east-1a/uid-2"))
    assert {} == world.data(bad)


def test_an_api_that_does_not_answer_is_a_cloud_that_does_not(world: KwokWorld) -> None:
    """Every call says what it was about."""
    world.store.is_down = True

    calls = (world.cloud.create(G5), world.cloud.delete("kwok:///a/uid-1"), world.cloud.list_instances())
    for call, doing in zip(calls, ("launching for gpu-1", "terminating kwok:///a", "listing instances"), strict=True):
        with pytest.raises(CloudError, match=f"{doing}.*: no answer"):
            world.done(call)


def test_an_ended_claim_gets_no_instance(world: KwokWorld) -> None:
    """A launch that was taken back meanwhile fails."""
    world.ask(G5)
    world.done(world.cloud.delete("kwok:///us-east-1a/uid-1"))

    with pytest.raises(LaunchFailed, match="the instance of gpu-1 has ended"):
        world.done(world.cloud.create(G5))


def cloud_of(world: KwokWorld, spec: str | None = None, region: str | None = None) -> KwokCloud:
    """A cloud that buys where the NodeClass says."""
    return KwokCloud(world.store, world.clock, Catalogue(spec, region), namespace=NAMESPACE)


@pytest.mark.parametrize(
    ("node_class", "sold", "currency"),
    [
        (a_pool().node_class, "g5.xlarge", "USD"),
        (ECS, "ecs.gn7i-c8g1.2xlarge", "CNY"),
        (KWOK, "c-1x-amd64-linux", "USD"),
    ],
)
def test_a_pool_buys_what_the_vendor_of_its_class_sells(
    world: KwokWorld, node_class: NodeClassRef, sold: str, currency: str
) -> None:
    """EC2NodeClass, ECSNodeClass and KWOKNodeClass, each with its catalogue."""
    cloud = cloud_of(world)
    types = world.done(cloud.instance_types(a_pool(node_class=node_class)))

    assert (True, currency) == (sold in {kind.name for kind in types}, cloud.currency)


def test_one_catalogue_serves_every_class_when_it_is_named(world: KwokWorld) -> None:
    """`--catalog kwok` sells generic types to an EC2NodeClass too."""
    types = world.done(cloud_of(world, "kwok").instance_types(a_pool()))

    assert 144 == len(types)


def test_a_second_currency_is_not_sold(world: KwokWorld) -> None:
    """The first pool of a round decides; the other is told why, once, and is served when it is alone."""
    cloud, ecs = cloud_of(world), a_pool("z", node_class=ECS)

    with capture_logs() as logs:
        offers = [len(world.done(cloud.instance_types(pool))) for pool in (a_pool("a"), ecs, a_pool("a"), ecs)]
    assert [True, False, True, False] == [bool(offer) for offer in offers]
    assert ["its prices are in CNY, those of pool a in USD"] == [entry["why"] for entry in logs]
    assert world.done(cloud.instance_types(ecs))
    assert "CNY" == cloud.currency


def test_an_unknown_region_is_reported_at_once_or_at_the_pool(world: KwokWorld) -> None:
    """With a catalogue named it is the operator's mistake; without, it is the pool that cannot buy."""
    with pytest.raises(InputError, match="mars"):
        Catalogue("aws", "mars")
    cloud = cloud_of(world, None, "mars")

    assert () == world.done(cloud.instance_types(a_pool()))
    with pytest.raises(NodeClassNotReady, match="mars"):
        world.done(cloud.create(G5))
