"""A claim says that its node is broken once its provider tolerates no more."""

import pytest

from kerf.cloudprovider import RepairPolicy
from kerf.clouds.fake import FakeCloud, Latencies
from kerf.controllers.nodeclaim.health import Health
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.nodeclaim import GPUS_HEALTHY, UNHEALTHY
from kerf.model.promises import Promises, written
from kerf.model.times import instant_text
from kerf.sim.objects import Json
from kerf.testing.builders import cards
from tests.clouds.market import MARKET
from tests.controllers.cluster import Cluster, pod, pool

BAD = {"type": "AcceleratedHardwareReady", "status": "False", "reason": "XidError"}


def begin(cluster: Cluster) -> None:
    """The controller, also in a second life."""
    cluster.start(Health(cluster.state, cluster.ports, repairs=True))


def tell(cluster: Cluster, condition: Json) -> None:
    """What an agent on the node reports from now on."""
    (held,) = cluster.api.list("Node")
    others = [each for each in held["status"]["conditions"] if each["type"] != condition["type"]]
    reported = {**condition, "lastTransitionTime": instant_text(cluster.clock.now_s())}
    cluster.change("Node", "node-1", status={"conditions": [*others, reported]})


def start(cluster: Cluster, **given: Json) -> None:
    """A node in use."""
    cluster.put(pool(annotations=given.pop("pool", {})))
    cluster.running(node={"annotations": given.pop("node", {})})
    begin(cluster)


def test_after_its_toleration_and_no_sooner(cluster: Cluster) -> None:
    """Ten minutes for cards; a restart in between counts from the condition's own time."""
    start(cluster)
    cluster.at(60)
    tell(cluster, BAD)
    cluster.at(400)
    cluster.crash()
    begin(cluster)
    cluster.at(659)
    assert cluster.claim().condition(UNHEALTHY) is None

    cluster.at(661)
    assert ("True", "AcceleratedHardwareReady", "") == cluster.condition(UNHEALTHY)
    assert ["Node condition AcceleratedHardwareReady is not tolerated any longer"] == cluster.said("NodeUnhealthy")


def test_a_node_that_recovers_is_sound_again(cluster: Cluster) -> None:
    """Before its toleration has ended, and after."""
    start(cluster)
    tell(cluster, BAD)
    cluster.at(601)
    assert cluster.claim().is_true(UNHEALTHY)

    tell(cluster, {**BAD, "status": "True"})
    cluster.at(603)
    assert cluster.claim().condition(UNHEALTHY) is None


class Picky(FakeCloud):
    """A cloud that tolerates some errors of cards for longer than others."""

    @property
    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """One with a reason, and one for all others."""
        kind = BAD["type"], BAD["status"]
        return (RepairPolicy(*kind, 600, 300, "XID(79|48)"), RepairPolicy(*kind, 1800))


@pytest.mark.parametrize(("reason", "after_s"), [("NvidiaXID79Error", 600), ("DCGMError", 1800)])
def test_the_reason_of_a_condition_may_decide_how_long_it_is_tolerated(
    cluster: Cluster, reason: str, after_s: int
) -> None:
    """The policy with that reason alone, or those without one."""
    cluster.use(Picky(MARKET, cluster.clock, latencies=Latencies(0, 5)))
    start(cluster)
    tell(cluster, {**BAD, "reason": reason})
    cluster.at(after_s - 1)
    assert cluster.claim().condition(UNHEALTHY) is None

    cluster.at(after_s + 1)
    assert cluster.claim().is_true(UNHEALTHY)


def test_a_condition_without_a_policy_counts_for_nothing(cluster: Cluster) -> None:
    """However bad."""
    start(cluster)
    tell(cluster, {**BAD, "type": "Weather"})
    cluster.at(7200)

    assert cluster.claim().condition(UNHEALTHY) is None


@pytest.mark.parametrize("on", ["node", "pool"])
def test_a_person_may_forbid_it(cluster: Cluster, on: str) -> None:
    """On the node or on its pool."""
    start(cluster, **{on: {"karpenter.sh/do-not-repair": "true"}})
    tell(cluster, BAD)
    cluster.at(7200)

    assert cluster.claim().condition(UNHEALTHY) is None


def with_cards(cluster: Cluster) -> None:
    """A node with two whole cards, as its claim promises, and a pod that has one of them."""
    promised = written(Promises(devices=tuple(cards(2))))
    cluster.put(pool())
    cluster.running(node={"allocatable": {"cpu": 4, NVIDIA_GPU: 2}}, annotations=promised)
    cluster.put(pod("p", node="node-1"))
    begin(cluster)


def shows(cluster: Cluster, number: int) -> None:
    """So many cards are in the node's allocatable from now on."""
    cluster.change("Node", "node-1", status={"allocatable": {NVIDIA_GPU: str(number)}})


def test_the_loss_of_all_cards_is_that_of_each(cluster: Cluster) -> None:
    """It is said at once with the pod there; ten minutes later the node is broken, whatever restarts in between."""
    with_cards(cluster)
    cluster.at(60)
    assert cluster.claim().condition(GPUS_HEALTHY) is None
    shows(cluster, 0)
    text = "2 of 2 GPUs are not registered, with pod default/p there"
    assert ("False", "GPUBroken", text) == cluster.condition(GPUS_HEALTHY)
    assert [f"{text}; no new slice comes to it"] == cluster.said("GPUBroken")

    cluster.at(300)
    cluster.crash()
    begin(cluster)
    cluster.at(659)
    assert cluster.claim().condition(UNHEALTHY) is None
    cluster.at(661)
    assert ("True", GPUS_HEALTHY, "") == cluster.condition(UNHEALTHY)
    assert 1 == len(cluster.said("GPUBroken"))


def test_cards_that_break_in_turn_count_from_the_first(cluster: Cluster) -> None:
    """Each is said. What is left of them has no say, and only when all are back the node is sound."""
    with_cards(cluster)
    shows(cluster, 1)
    cluster.at(540)
    shows(cluster, 0)
    assert ["1 of 2 GPUs is not registered; no new slice comes to it", *cluster.said("GPUBroken")[1:]] == cluster.said(
        "GPUBroken"
    )
    assert 2 == len(cluster.said("GPUBroken"))
    cluster.at(601)
    assert cluster.claim().is_true(UNHEALTHY)

    shows(cluster, 1)
    assert cluster.claim().is_true(UNHEALTHY)
    shows(cluster, 2)
    assert ("True", GPUS_HEALTHY, "") == cluster.condition(GPUS_HEALTHY)
    assert cluster.claim().condition(UNHEALTHY) is None


def test_a_card_that_comes_back_in_time_counts_from_when_it_goes_again(cluster: Cluster) -> None:
    """The nine minutes before do not count."""
    with_cards(cluster)
    shows(cluster, 0)
    cluster.at(540)
    shows(cluster, 2)
    cluster.at(560)
    shows(cluster, 0)
    cluster.at(1159)
    assert cluster.claim().condition(UNHEALTHY) is None

    cluster.at(1161)
    assert cluster.claim().is_true(UNHEALTHY)


def test_what_a_node_shows_that_is_not_ready_is_no_news(cluster: Cluster) -> None:
    """Neither that its cards are gone, nor that one is back. Its own condition decides before that of the card."""
    with_cards(cluster)
    tell(cluster, {"type": "Ready", "status": "False"})
    shows(cluster, 0)
    assert cluster.claim().condition(GPUS_HEALTHY) is None
    tell(cluster, {"type": "Ready", "status": "True"})
    assert not cluster.claim().is_true(GPUS_HEALTHY)

    cluster.at(10)
    tell(cluster, {"type": "Ready", "status": "False"})
    shows(cluster, 2)
    cluster.at(611)
    assert ("True", "Ready", "") == cluster.condition(UNHEALTHY)
    assert not cluster.claim().is_true(GPUS_HEALTHY)
