"""Each stage of a claim: what it does, what its condition says, and when it is given up."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from kerf.cloudprovider import Instance, LaunchFailed, NodeClassNotReady, Withdrawn
from kerf.clouds.fake import FakeCloud, Latencies
from kerf.clouds.launching import reached
from kerf.controllers.nodeclaim.lifecycle import Lifecycle
from kerf.model.constraints import Requirement, Requirements, Taint
from kerf.model.gpu import DeviceState
from kerf.model.instancetypes import OfferingKey
from kerf.model.nodeclaim import TERMINATION_FINALIZER, UNREGISTERED_TAINT, NodeClaim
from kerf.model.promises import devices_text
from kerf.model.quantities import Resources
from kerf.sharing.hami.records import REGISTER, register_annotation
from kerf.sim.objects import Json
from kerf.testing.builders import a_node, cards
from tests.clouds.market import MARKET
from tests.controllers.cluster import FRESH, Cluster, node_object, pool
from tests.sim.world import START_S

MINUTE = 60
ON_ITS_WAY, JOINED = ("Launched",), ("Launched", "Registered")
ONE_GPU = {"cpu": 4, "memory": "16Gi", "pods": 58, "nvidia.com/gpu": 1}
PREDICTED: Json = {"annotations": {"kerf.dev/predicted-devices": devices_text(cards(1))}}
SPOT = (OfferingKey("g5.xlarge", "us-east-1a", "spot"), OfferingKey("g5.xlarge", "us-east-1b", "spot"))


def start(cluster: Cluster, **pool_given: Any) -> None:
    """Begin with a pool, and with claims that the test has put there."""
    cluster.put(pool(**pool_given))
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))


def wanted(cluster: Cluster, *types: str) -> NodeClaim:
    """A claim that nobody has launched yet; of g5.xlarge where no type is given."""
    asked = Requirements([Requirement.of("node.kubernetes.io/instance-type", "In", types or ("g5.xlarge",))])
    return cluster.claimed(reached=(), requirements=asked)


def registered(*memories_mib: int, healthy: bool = True) -> Json:
    """The annotation by which HAMi's device plugin registers cards."""
    devices = [DeviceState(f"GPU-{i}", i, "NVIDIA-A10G", mib, healthy=healthy) for i, mib in enumerate(memories_mib)]
    return {REGISTER: register_annotation(devices)}


# Launched.


def test_a_launched_claim_knows_its_instance(cluster: Cluster) -> None:
    """Provider id, capacity and the labels of type and offering; an event says what was launched."""
    start(cluster)
    wanted(cluster)
    cluster.at(0)

    claim, (instance,) = cluster.claim(), cluster.cloud.instances
    assert (instance.provider_id, instance.capacity) == (claim.provider_id, claim.capacity)
    assert ("us-east-1a", "spot") == tuple(
        claim.labels[k] for k in ("topology.kubernetes.io/zone", "karpenter.sh/capacity-type")
    )
    assert ("True", "Launched", "") == cluster.condition("Launched")
    assert ["launched g5.xlarge spot in us-east-1a"] == cluster.said("Launched")


def test_a_claim_that_a_user_made_is_held_until_its_node_is_drained(cluster: Cluster) -> None:
    """It has no finalizer when it comes, and another's stays."""
    start(cluster)
    cluster.claimed(reached=(), finalizers=("example.com/own",))
    cluster.at(0)

    assert ("example.com/own", TERMINATION_FINALIZER) == cluster.claim().finalizers


def test_a_claim_says_that_it_awaits_its_launch(cluster: Cluster) -> None:
    """In Karpenter's word and until when, before the cloud has said anything at all."""
    cluster.cloud.throttle(START_S + 60)
    start(cluster)
    wanted(cluster)
    cluster.at(30)

    text = "The cloud has not launched it yet; given up at 2026-01-05T07:05:00Z"
    assert ("Unknown", "AwaitingReconciliation", text) == cluster.condition("Launched")


@pytest.mark.parametrize("ahead_s", [600, 86_400, -3_600])
def test_a_launch_has_its_time_by_our_own_clock(cluster: Cluster, ahead_s: int) -> None:
    """The server's clock, which is that of a claim's creation, may show another time, and nothing was tried yet."""
    wanted(cluster, "p5.48xlarge")
    cluster.at(0, lambda: cluster.clock.set_by(ahead_s))
    start(cluster)

    cluster.at(4 * MINUTE + ahead_s)
    assert (["gpu-1"], []) == (cluster.names("NodeClaim"), cluster.said("LaunchedTimedOut"))
    cluster.at(6 * MINUTE + ahead_s)
    assert ([], ["the cloud has not launched it"]) == (cluster.names("NodeClaim"), cluster.said("LaunchedTimedOut"))


def test_a_sold_out_claim_goes_and_its_offerings_rest(cluster: Cluster) -> None:
    """InsufficientCapacity: the claim is deleted at once, people are told, the offerings are left out of plans."""
    cluster.cloud.sell_out("g5.xlarge")
    start(cluster)
    wanted(cluster)
    cluster.at(1)

    assert [] == cluster.names("NodeClaim")
    (said,) = cluster.said("InsufficientCapacityError")
    assert said.startswith(
        "NodeClaim gpu-1 event: insufficient capacity: g5.xlarge on-demand in us-east-1a, us-east-1b"
    )
    assert 4 == len(cluster.done(cluster.book.market(cluster.state.snapshot(0))).sold_out)


def test_an_offering_that_was_passed_over_is_named(cluster: Cluster) -> None:
    """A launch that fell through to a dearer one says so, and what was sold out rests."""
    cluster.cloud.sell_out("g5.xlarge", capacity_type="spot")
    start(cluster)
    wanted(cluster)
    cluster.at(0)

    detail = "g5.xlarge spot in us-east-1a, us-east-1b; launched g5.xlarge on-demand in us-east-1a instead"
    assert [f"NodeClaim gpu-1 event: insufficient capacity: {detail}"] == cluster.said("InsufficientCapacityError")
    held = cluster.done(cluster.book.market(cluster.state.snapshot(0))).sold_out
    assert SPOT == tuple(sold.offering for sold in held)


def test_a_lost_reply_costs_no_second_instance(cluster: Cluster) -> None:
    """The launch succeeded and nobody heard of it: asking again gives that instance."""
    cluster.cloud.lose_replies(2)
    start(cluster)
    wanted(cluster)
    cluster.at(10)

    assert 1 == len(cluster.cloud.bills)
    assert [cluster.claim().provider_id] == [instance.provider_id for instance in cluster.cloud.instances]


def test_a_failed_launch_says_why_and_is_given_up_after_five_minutes(cluster: Cluster) -> None:
    """Launched is Unknown with the cloud's words; then the claim goes and its type backs off."""
    start(cluster)
    wanted(cluster, "p5.48xlarge")
    cluster.at(4 * MINUTE)
    said = "nothing is sold here that gpu-1 allows"
    assert ("Unknown", "LaunchFailed", said) == cluster.condition("Launched")

    cluster.at(6 * MINUTE)
    assert ([], ["the cloud has not launched it"]) == (cluster.names("NodeClaim"), cluster.said("LaunchedTimedOut"))
    assert 1 == len(cluster.done(cluster.book.market(cluster.state.snapshot(cluster.clock.now_s()))).back_offs)


def test_a_launch_gets_its_time_once(cluster: Cluster) -> None:
    """Somebody takes the conditions off the claim again and again: it is given up when its first time is over."""
    start(cluster)
    wanted(cluster, "p5.48xlarge")
    for second in range(20, 5 * MINUTE, 20):
        cluster.at(second)
        cluster.api.patch("NodeClaim", "", "gpu-1", {"status": {"conditions": []}}, subresource="status")
    cluster.at(6 * MINUTE)

    assert ([], ["the cloud has not launched it"]) == (cluster.names("NodeClaim"), cluster.said("LaunchedTimedOut"))


class Wordy(FakeCloud):
    """A cloud that refuses every launch, and words each refusal anew."""

    tries = 0

    async def create(self, claim: NodeClaim) -> Instance:
        """Fail, with the number of the request."""
        self.tries += 1
        raise LaunchFailed(f"UnauthorizedOperation, request {self.tries}")


def test_a_cloud_that_words_each_refusal_differently_is_not_pestered(cluster: Cluster) -> None:
    """Our own note of a failure must not wake us before the back-off is over: the first words stay."""
    cluster.use(cloud := Wordy((), cluster.clock))
    start(cluster)
    wanted(cluster)
    cluster.at(60)

    assert ("Unknown", "LaunchFailed", "UnauthorizedOperation, request 1") == cluster.condition("Launched")
    assert 8 >= cloud.tries


class Unready(FakeCloud):
    """A cloud that finds something wrong with the NodeClass at each launch."""

    tries = 0

    async def create(self, claim: NodeClaim) -> Instance:
        """Fail."""
        self.tries += 1
        raise NodeClassNotReady("UserDataSizeLimitExceeded: 68 bytes too many")


def test_a_node_class_that_says_it_is_ready_and_is_not_makes_no_loop_of_claims(cluster: Cluster) -> None:
    """A plan would buy the same again each second: the claim stays, says why, and is given up with its type."""
    cluster.use(cloud := Unready((), cluster.clock))
    start(cluster)
    wanted(cluster)
    cluster.at(60)

    assert ("Unknown", "NodeClassNotReady", "UserDataSizeLimitExceeded: 68 bytes too many") == cluster.condition(
        "Launched"
    )
    assert 8 >= cloud.tries

    cluster.at(6 * MINUTE)
    assert ([], ["the cloud has not launched it"]) == (cluster.names("NodeClaim"), cluster.said("LaunchedTimedOut"))
    assert 1 == len(cluster.done(cluster.book.market(cluster.state.snapshot(cluster.clock.now_s()))).back_offs)


def test_a_claim_goes_at_once_where_its_node_class_says_that_it_cannot_be_used(cluster: Cluster) -> None:
    """The next plan buys from another pool."""
    cluster.use(Unready((), cluster.clock))
    conditions = [{"type": "Ready", "status": "False", "reason": "UserDataSizeLimitExceeded"}]
    spec: Json = {"role": "nodes"}
    api = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"}}
    cluster.put({**api, "spec": spec, "status": {"conditions": conditions}})
    start(cluster)
    wanted(cluster)
    cluster.at(1)

    assert [] == cluster.names("NodeClaim")
    assert ["NodeClaim gpu-1 event: UserDataSizeLimitExceeded: 68 bytes too many"] == cluster.said("NodeClassNotReady")


class Changing(FakeCloud):
    """A cloud that refuses every launch, first for one reason, then for another of the same name."""

    tries = 0
    takes_turns = False

    async def create(self, claim: NodeClaim) -> Instance:
        """Refuse it."""
        self.tries += 1
        is_first = self.tries % 2 if self.takes_turns else self.tries <= 3
        raise LaunchFailed("RequestExpired: the request has expired" if is_first else "InvalidParameterValue: 1 volume")


def test_a_claim_says_its_last_failure(cluster: Cluster) -> None:
    """Not that of its first try, which somebody has put right since."""
    cluster.use(Changing((), cluster.clock))
    start(cluster)
    wanted(cluster)
    cluster.at(2)
    assert ("Unknown", "LaunchFailed", "RequestExpired: the request has expired") == cluster.condition("Launched")

    cluster.at(120)
    assert ("Unknown", "LaunchFailed", "InvalidParameterValue: 1 volume") == cluster.condition("Launched")


def test_failures_that_take_turns_do_not_end_the_back_off(cluster: Cluster) -> None:
    """Each write wakes the claim, so new words are written twice a minute at most."""
    cluster.use(cloud := Changing((), cluster.clock))
    cloud.takes_turns = True
    start(cluster)
    wanted(cluster)
    cluster.at(240)

    assert 24 >= cloud.tries


def test_a_throttled_launch_is_tried_again(cluster: Cluster) -> None:
    """When the cloud said."""
    cluster.cloud.throttle(cluster.clock.now_s() + 12, retry_after_s=5)
    start(cluster)
    wanted(cluster)
    cluster.at(100)

    assert [15] == [bill.from_s - START_S for bill in cluster.cloud.bills]


def test_a_claim_deleted_during_its_launch_leaves_no_instance(slow_cluster: Cluster) -> None:
    """The reply comes to a claim that goes: what was launched is terminated."""
    start(slow_cluster)
    claim = wanted(slow_cluster)
    slow_cluster.at(20)
    slow_cluster.remove("NodeClaim", claim.name)
    slow_cluster.at(100)

    assert ([], ()) == (slow_cluster.names("NodeClaim"), slow_cluster.cloud.instances)
    assert [45] == [bill.hours(float("inf")) * 3600 for bill in slow_cluster.cloud.bills]


class InLine(FakeCloud):
    """A cloud in which a launch waits for its turn before anything is asked for."""

    is_wanted: Callable[[NodeClaim], bool]

    def launches_while(self, is_wanted: Callable[[NodeClaim], bool]) -> None:
        """See CloudProvider."""
        self.is_wanted = is_wanted

    async def create(self, claim: NodeClaim) -> Instance:
        """See CloudProvider."""
        await reached(self._clock, self._clock.now_s() + 30)
        if not self.is_wanted(claim):
            raise Withdrawn(claim.name)
        return await super().create(claim)


def test_a_claim_deleted_before_its_launch_is_not_launched(cluster: Cluster) -> None:
    """Of two that wait for their turn the one that stays is launched, and the other goes."""
    cluster.use(InLine(MARKET, cluster.clock, latencies=Latencies(0, 5)))
    start(cluster)
    stays, goes = wanted(cluster), cluster.claimed("gpu-2", reached=())
    cluster.at(20)
    cluster.remove("NodeClaim", goes.name)
    cluster.at(100)

    assert [stays.name] == cluster.names("NodeClaim")
    assert [stays.uid] == [instance.claim_uid for instance in cluster.cloud.instances]
    assert 1 == len(cluster.cloud.bills)


# Registered.


class Writing(FakeCloud):
    """A cloud that keeps what a machine wrote while it started."""

    def boot_log(self, claim: NodeClaim) -> str:
        """See CloudProvider."""
        return f"read {claim.provider_id}"


def test_where_no_node_comes_the_claim_says_where_to_look(cluster: Cluster) -> None:
    """While it waits and when it is given up; the type's back-off keeps the reason alone."""
    cluster.use(Writing(MARKET, cluster.clock, latencies=Latencies(5, 5)))
    claim = cluster.claimed(reached=ON_ITS_WAY)
    start(cluster)
    look = f"; what the machine wrote: read {claim.provider_id}"
    assert cluster.condition("Registered")[2].endswith(look)

    cluster.at(16 * MINUTE)
    assert [f"its node never registered with the cluster{look}"] == cluster.said("RegisteredTimedOut")
    (held,) = cluster.at(cluster.now_s, cluster.book.withheld).back_offs
    assert "its node never registered with the cluster" == held.said


def test_a_node_on_its_way_is_awaited_for_fifteen_minutes(cluster: Cluster) -> None:
    """The condition says until when; then the claim goes, its type backs off, and the instance is terminated."""
    cluster.claimed(reached=ON_ITS_WAY)
    start(cluster)
    until = "2026-01-05T07:15:00Z"
    said = f"Node not registered with cluster; given up at {until}"
    assert ("Unknown", "NodeNotFound", said) == cluster.condition("Registered")

    cluster.at(15 * MINUTE - 1)
    assert [] == cluster.said("RegisteredTimedOut")
    cluster.at(16 * MINUTE)
    assert ["its node never registered with the cluster"] == cluster.said("RegisteredTimedOut")
    assert ([], ()) == (cluster.names("NodeClaim"), cluster.cloud.instances)


def test_a_node_that_joins_gets_what_its_claim_promises(cluster: Cluster) -> None:
    """Labels, taints, startup taints, annotations and our finalizer; the unregistered taint goes."""
    team, cni, held = Taint("team"), Taint("cni"), Taint("cloud")
    notes: Json = {"labels": {"team": "ml"}, "annotations": {"note": "1"}, "taints": (team,), "startup_taints": (cni,)}
    claim = cluster.claimed(reached=ON_ITS_WAY, **notes)
    start(cluster)
    cluster.joined(claim, taints=(UNREGISTERED_TAINT, held), is_ready=False)

    node = cluster.node()
    assert (held, team, cni) == node.taints
    assert ("ml", "true", "1") == (
        node.labels["team"],
        node.labels["karpenter.sh/registered"],
        node.annotations["note"],
    )
    assert (("karpenter.sh/termination",), False) == (node.finalizers, node.is_unschedulable)
    assert ("node-1", True) == (cluster.claim().node_name, cluster.claim().is_true("Registered"))


# Initialized.


@pytest.mark.parametrize(
    ("node", "reason", "message"),
    [
        ({"is_ready": False}, "NodeNotReady", "Node status is NotReady"),
        ({"taints": (Taint("cni"),)}, "StartupTaintsExist", 'StartupTaint "cni:NoSchedule" still exists'),
        (
            {"taints": (Taint("node.cloudprovider.kubernetes.io/uninitialized"),)},
            "KnownEphemeralTaintsExist",
            'KnownEphemeralTaint "node.cloudprovider.kubernetes.io/uninitialized:NoSchedule" still exists',
        ),
    ],
)
def test_what_a_node_lacks_is_said_with_the_deadline(cluster: Cluster, node: Json, reason: str, message: str) -> None:
    """Until 15 minutes after its registration; then it is given up."""
    claim = cluster.claimed(reached=JOINED, node_name="node-1", startup_taints=(Taint("cni"),))
    cluster.joined(claim, **node)
    start(cluster)

    said = f"{message}; given up at 2026-01-05T07:15:00Z"
    assert ("Unknown", reason, said) == cluster.condition("Initialized")
    cluster.at(16 * MINUTE)
    assert ([message], [], ()) == (
        cluster.said("InitializedTimedOut"),
        cluster.names("NodeClaim"),
        cluster.cloud.instances,
    )


def test_a_node_without_startup_taints_is_initialised(cluster: Cluster) -> None:
    """Its controller takes the taint away: the node is labelled, the claim is Ready."""
    claim = cluster.claimed(reached=JOINED, node_name="node-1", startup_taints=(Taint("cni"),))
    cluster.joined(claim, taints=(Taint("cni"),))
    start(cluster)
    cluster.change("Node", "node-1", spec={"taints": []})

    assert "true" == cluster.node().labels["karpenter.sh/initialized"]
    assert ("True", "Initialized", "") == cluster.condition("Initialized")
    assert ("True", "Ready", "") == cluster.condition("Ready")
    assert ["node node-1 can take pods"] == cluster.said("Initialized")


def test_devices_are_awaited_for_ten_minutes_from_ready_on(cluster: Cluster) -> None:
    """A driver takes its time after the kubelet is there: the clock starts when the node is ready."""
    claim = cluster.claimed(reached=JOINED, node_name="node-1", **PREDICTED)
    start(cluster)
    cluster.at(4 * MINUTE)
    cluster.joined(claim)

    said = "0 of 1 GPUs registered: the device plugin has not reported yet"
    assert ("Unknown", "DevicesNotRegistered", f"{said}; given up at 2026-01-05T07:14:00Z") == cluster.condition(
        "Initialized"
    )
    cluster.at(15 * MINUTE)
    assert ([said], []) == (cluster.said("InitializedTimedOut"), cluster.names("NodeClaim"))


def test_what_was_requested_must_be_there_in_full(cluster: Cluster) -> None:
    """Two of three is not there; kubelet's own resources are not compared."""
    asked = Resources({"cpu": 99_000, "nvidia.com/gpu": 3})
    claim = cluster.claimed(reached=JOINED, node_name="node-1", requests=asked)
    start(cluster)
    cluster.joined(claim, allocatable={**ONE_GPU, "nvidia.com/gpu": 2})

    said = 'Resource "nvidia.com/gpu" was requested but not registered: 2 of 3'
    assert ("Unknown", "ResourceNotRegistered", f"{said}; given up at 2026-01-05T07:10:00Z") == cluster.condition(
        "Initialized"
    )


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        (registered(22888), "1 of 2 GPUs registered"),
        (registered(22888, 22888, healthy=False), "0 of 2 GPUs are healthy"),
        (registered(22888, 22000), "a GPU registered 22000 MiB, 22888 were predicted"),
    ],
)
def test_cards_are_compared_one_by_one(cluster: Cluster, annotations: Json, message: str) -> None:
    """HAMi's register must hold at least what was predicted; what lacks is named."""
    predicted = {"kerf.dev/predicted-devices": devices_text(cards(2))}
    claim = cluster.claimed(reached=JOINED, node_name="node-1", annotations=predicted, labels={"gpu": "on"})
    start(cluster)
    cluster.joined(claim, annotations=annotations, labels={"gpu": "on"})

    said = f"{message}; given up at 2026-01-05T07:10:00Z"
    assert ("Unknown", "DevicesNotRegistered", said) == cluster.condition("Initialized")


@pytest.mark.parametrize("noted", [None, '{"g5.xlarge": 22500, "p4d.24xlarge": 40000}'])
def test_less_memory_than_predicted_is_noted_on_the_pool(cluster: Cluster, noted: str | None) -> None:
    """So that the next plan reckons with it after any restart; other types keep their notes, and no type backs off."""
    claim = cluster.claimed(reached=JOINED, node_name="node-1", labels={"gpu": "on"}, **PREDICTED)
    start(cluster, annotations={} if noted is None else {"kerf.dev/observed-devices": noted})
    cluster.joined(claim, annotations=registered(22000), labels={"gpu": "on"})
    cluster.at(11 * MINUTE)

    (held,) = cluster.api.list("NodePool")
    expected = {**json.loads(noted or "{}"), "g5.xlarge": 22000}
    assert expected == json.loads(held["metadata"]["annotations"]["kerf.dev/observed-devices"])
    market = cluster.done(cluster.book.market(cluster.state.snapshot(cluster.clock.now_s())))
    assert ((), 22000) == (market.back_offs, market.observed_memory_mib["gpu", "g5.xlarge"])


def test_a_node_is_ready_once_all_its_cards_are_there(cluster: Cluster) -> None:
    """More memory than predicted is no gap, and nothing is noted."""
    claim = cluster.claimed(reached=ON_ITS_WAY, labels={"gpu": "on"}, **PREDICTED)
    start(cluster)
    cluster.joined(claim, **FRESH, labels={"gpu": "on"})
    cluster.change("Node", "node-1", metadata={"annotations": registered(23028)})

    assert cluster.claim().is_true("Ready")
    assert {} == cluster.api.list("NodePool")[0]["metadata"]["annotations"]


def test_a_restart_goes_on_where_it_stood(cluster: Cluster) -> None:
    """Deadlines count from the conditions' own times: a second life gives up at the same second."""
    cluster.claimed(reached=ON_ITS_WAY)
    start(cluster)
    cluster.at(10 * MINUTE)
    cluster.crash()
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))
    cluster.at(15 * MINUTE)

    assert ["its node never registered with the cluster"] == cluster.said("RegisteredTimedOut")


def test_a_foreign_node_is_left_alone(cluster: Cluster) -> None:
    """A node whose provider id no claim has is not ours."""
    cluster.claimed(reached=ON_ITS_WAY)
    start(cluster)
    cluster.put(node_object(a_node("other", provider_id="fake:///else", **FRESH), cluster.clock.now_s()))

    assert ((UNREGISTERED_TAINT,), ()) == (cluster.node("other").taints, cluster.node("other").finalizers)


def test_an_annotation_that_cannot_be_read_is_said_once(cluster: Cluster) -> None:
    """Which one, the form that Kerf writes, and what is there; the claim goes on without it."""
    start(cluster)
    cluster.claimed(reached=(), annotations={"kerf.dev/planned-offering": "g5.xlarge"})
    cluster.at(MINUTE)

    why = "kerf.dev/planned-offering: expected type/zone/capacity-type, got 'g5.xlarge'"
    assert [f"Kerf cannot read an annotation of this claim, so it promises nothing: {why}"] == cluster.said(
        "NotUnderstood"
    )
    assert "True" == cluster.condition("Launched")[0]
