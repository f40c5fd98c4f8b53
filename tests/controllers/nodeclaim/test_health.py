"""A claim says that its node is broken once its provider tolerates no more."""

import pytest

from kerf.controllers.nodeclaim.health import Health
from kerf.model.nodeclaim import UNHEALTHY
from kerf.model.times import instant_text
from kerf.sim.objects import Json
from tests.controllers.cluster import Cluster, pool

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
