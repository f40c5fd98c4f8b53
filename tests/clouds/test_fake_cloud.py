"""The fake cloud: what it sells, how long it takes, and each way in which it misbehaves."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from kerf.cloudprovider import (
    Instance,
    InstanceNotFound,
    InsufficientCapacity,
    Interruption,
    InterruptionKind,
    LaunchFailed,
    Throttled,
)
from kerf.clouds.fake import CloudEvent, FakeCloud, Latencies
from kerf.errors import CloudError
from kerf.model.instancetypes import RESERVED, Offering, OfferingKey
from kerf.model.nodeclaim import NodeClaim
from kerf.testing.builders import a_pool, an_instance_type
from kerf.testing.conformance import CHECKS, Bench
from tests.clouds.market import G5_XLARGE, MARKET, claim
from tests.sim.world import START_S, World

SPOT_A = OfferingKey("g5.xlarge", "us-east-1a", "spot")
SPOT_B = OfferingKey("g5.xlarge", "us-east-1b", "spot")
G5 = claim(types=("g5.xlarge",))


class Sky(World):
    """A cloud in virtual time: launches take 40 s, terminations 5 s."""

    def __init__(self, jitter_s: float = 0, seed: int = 0) -> None:
        super().__init__()
        self.cloud = FakeCloud(MARKET, self.clock, latencies=Latencies(40, 5, jitter_s), seed=seed)

    def done(self, call: Coroutine[Any, Any, Any]) -> Any:
        """What a call gives when it returns."""
        return self.loop.run_until_complete(call)

    def cut_off(self, call: Coroutine[Any, Any, Any], after_s: float) -> None:
        """Begin a call and kill the caller."""

        async def run() -> None:
            task = asyncio.ensure_future(call)
            await asyncio.sleep(after_s)
            task.cancel()

        self.loop.run_until_complete(run())

    @property
    def now_s(self) -> float:
        """Seconds since the start."""
        return self.clock.now_s() - START_S


@pytest.fixture
def sky() -> Iterator[Sky]:
    """A fresh cloud; its loop is closed after the test."""
    built = Sky()
    yield built
    built.loop.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_promises_of_every_provider(sky: Sky, check: Any) -> None:
    """The fake passes the checks that are there for authors of providers."""
    cloud = sky.cloud
    faults = cloud.sell_out, cloud.leave, cloud.interrupt, sky.clock.now_s
    sky.done(check(Bench(cloud, a_pool(), G5, asyncio.sleep, *faults)))


@pytest.mark.parametrize(
    ("allowed", "chosen"),
    [
        (claim(), OfferingKey("m5.large", "us-east-1a", "spot")),
        (claim(types=("g5.xlarge", "g5.12xlarge")), SPOT_A),
        (claim(types=("g5.xlarge",), zones=("us-east-1b",)), SPOT_B),
        (
            claim(types=("g5.xlarge",), capacity_types=("on-demand",)),
            OfferingKey("g5.xlarge", "us-east-1a", "on-demand"),
        ),
    ],
)
def test_the_cheapest_that_is_allowed_is_launched(sky: Sky, allowed: NodeClaim, chosen: OfferingKey) -> None:
    """Capacity type first, then price, then type and zone by name; m5.large costs the same in both capacity types."""
    assert chosen == sky.done(sky.cloud.create(allowed)).offering


def test_a_launch_takes_its_time_and_the_instance_is_there_at_once(sky: Sky) -> None:
    """An instance exists and is paid for from the call on, not from the reply on."""
    sky.cut_off(sky.cloud.create(G5), after_s=1)

    (instance,) = sky.cloud.instances
    assert (START_S, 2_000_000) == (instance.launched_s, sky.cloud.price_per_hour_micro)


def test_a_call_that_was_cut_off_is_taken_up_again(sky: Sky) -> None:
    """After a crash in the middle of a launch the same claim gets the same instance, when its launch is over."""
    sky.cut_off(sky.cloud.create(G5), after_s=10)

    again: Instance = sky.done(sky.cloud.create(G5))
    assert (1, 40) == (len(sky.cloud.instances), sky.now_s)
    assert sky.cloud.instances == (again,)


def test_what_is_sold_out_is_passed_over_and_named(sky: Sky) -> None:
    """A launch falls through to the next offering and says which it could not have."""
    sky.cloud.sell_out("g5.xlarge", capacity_type="spot")

    instance = sky.done(sky.cloud.create(G5))
    assert ("on-demand", [SPOT_A, SPOT_B]) == (instance.offering.capacity_type, list(instance.sold_out))


def test_a_stock_out_ends(sky: Sky) -> None:
    """Sold out until a time; then the same call succeeds."""
    sky.cloud.sell_out("g5.xlarge", until_s=START_S + 600)
    with pytest.raises(InsufficientCapacity, match="xlarge spot in us-east-1a"):
        sky.done(sky.cloud.create(G5))

    sky.at(600)
    assert SPOT_A == sky.done(sky.cloud.create(G5)).offering


def test_a_stock_out_is_not_announced(sky: Sky) -> None:
    """What is sold out is still on offer, as with real clouds; only a launch finds out."""
    sky.cloud.sell_out()

    types = sky.done(sky.cloud.instance_types(a_pool()))
    assert all(offering.is_available for instance_type in types for offering in instance_type.offerings)


def test_a_reservation_is_sold_out_once_all_its_instances_are_taken(sky: Sky) -> None:
    """One instance: the second launch is refused."""
    offering = Offering("us-east-1a", RESERVED, 0, reservation="cr-1", most=1)
    sky.cloud = FakeCloud([an_instance_type("g5.xlarge", capacity_types=(RESERVED,), offerings=(offering,))], sky.clock)
    sky.done(sky.cloud.create(claim("a", "uid-a", types=("g5.xlarge",), capacity_types=(RESERVED,))))

    with pytest.raises(InsufficientCapacity, match="xlarge reserved in us-east-1a"):
        sky.done(sky.cloud.create(claim("b", "uid-b", types=("g5.xlarge",), capacity_types=(RESERVED,))))


def test_a_lost_reply_leaves_the_instance(sky: Sky) -> None:
    """The launch succeeds, the caller gets an error, and asking again gives that instance."""
    sky.cloud.lose_replies(1)
    with pytest.raises(CloudError, match="lost before the reply"):
        sky.done(sky.cloud.create(G5))

    (instance,) = sky.cloud.instances
    assert instance == sky.done(sky.cloud.create(G5))


def test_a_throttled_cloud_refuses_every_call(sky: Sky) -> None:
    """Throttled says when to try again; nothing is launched meanwhile."""
    sky.cloud.throttle(START_S + 60, retry_after_s=7)
    calls = (
        sky.cloud.create(G5),
        sky.cloud.delete("x"),
        sky.cloud.list_instances(),
        sky.cloud.instance_types(a_pool()),
    )

    for call in calls:
        with pytest.raises(Throttled, match="again in 7 s"):
            sky.done(call)
    assert () == sky.cloud.instances


def test_an_interrupted_instance_is_announced_and_goes(sky: Sky) -> None:
    """Two minutes from the notice to the end, as with AWS."""
    instance = sky.done(sky.cloud.create(G5))
    sky.cloud.interrupt(instance.provider_id)

    announced = Interruption(InterruptionKind.SPOT, START_S + 40 + 120)
    assert [announced] == [i.interruption for i in sky.done(sky.cloud.list_instances())]
    sky.at(40 + 121)
    assert () == sky.cloud.instances
    with pytest.raises(InstanceNotFound):
        sky.done(sky.cloud.delete(instance.provider_id))


def test_an_instance_on_demand_is_not_said_to_be_spot(sky: Sky) -> None:
    """The cloud has a change of it scheduled."""
    instance = sky.done(sky.cloud.create(claim(types=("g5.xlarge",), capacity_types=("on-demand",))))
    sky.cloud.interrupt(instance.provider_id)

    assert [InterruptionKind.SCHEDULED] == [i.interruption.kind for i in sky.cloud.instances if i.interruption]


def test_an_ended_claim_gets_no_second_instance(sky: Sky) -> None:
    """The token of an instance that has ended is used up, as with AWS."""
    instance = sky.done(sky.cloud.create(G5))
    sky.done(sky.cloud.delete(instance.provider_id))

    sky.at(50)
    with pytest.raises(LaunchFailed, match="has ended"):
        sky.done(sky.cloud.create(G5))


def test_nothing_that_is_allowed_is_sold(sky: Sky) -> None:
    """A claim that no offering satisfies is no stock-out."""
    with pytest.raises(LaunchFailed, match="nothing is sold here that gpu-1 allows"):
        sky.done(sky.cloud.create(claim(types=("p5.48xlarge",))))


def test_a_bill_runs_from_launch_to_end_at_the_prices_of_the_time(sky: Sky) -> None:
    """2 $/h for half an hour, then 6 $/h for half an hour."""
    instance = sky.done(sky.cloud.create(G5))
    sky.at(1800, lambda: sky.cloud.set_price(6_000_000, "g5.xlarge", capacity_type="spot"))
    sky.at(3595)
    sky.done(sky.cloud.delete(instance.provider_id))
    sky.at(9000)

    (bill,) = sky.cloud.bills
    assert (4_000_000, 1.0, 0) == (bill.amount_micro(START_S + 9000), bill.hours(START_S + 9000), bill.price_micro)


def test_a_new_price_changes_what_is_cheapest(sky: Sky) -> None:
    """Prices are asked before every plan, and the launch follows the new one."""
    sky.cloud.set_price(9_000_000, "g5.xlarge", "us-east-1a", "spot")

    assert SPOT_B == sky.done(sky.cloud.create(G5)).offering
    assert G5_XLARGE != sky.cloud.find("g5.xlarge")


def test_a_node_has_the_labels_of_its_type_and_offering(sky: Sky) -> None:
    """Labels that are fixed for the type, and where and how it was bought."""
    labels = sky.done(sky.cloud.create(G5)).labels

    assert ("g5.xlarge", "amd64") == (labels["node.kubernetes.io/instance-type"], labels["kubernetes.io/arch"])
    assert ("us-east-1a", "spot") == (labels["topology.kubernetes.io/zone"], labels["karpenter.sh/capacity-type"])


def test_what_happens_is_reported_in_order(sky: Sky) -> None:
    """Whoever watches hears of every stage of an instance, at its time."""
    heard: list[CloudEvent] = []
    sky.cloud.subscribe(heard.append)
    instance = sky.done(sky.cloud.create(G5))
    sky.done(sky.cloud.delete(instance.provider_id))
    sky.at(60)

    stages = [("launched", 0), ("running", 40), ("terminating", 40), ("ended", 45)]
    assert stages == [(event.what, event.at_s - START_S) for event in heard]


def test_chance_is_repeatable() -> None:
    """Launches of uneven length are the same for the same seed, and others for another."""

    def launch_s(seed: int) -> float:
        sky = Sky(30, seed)
        sky.done(sky.cloud.create(G5))
        sky.loop.close()
        return sky.now_s

    assert launch_s(1) == launch_s(1)
    assert launch_s(1) != launch_s(2)
