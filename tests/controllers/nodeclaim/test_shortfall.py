"""A node that registers less than was predicted: kept where a pod can use it, given back where none can."""

from typing import Any

import pytest

from kerf.controllers.nodeclaim.lifecycle import Lifecycle
from kerf.model.constraints import Taint
from kerf.model.gpu import DeviceState
from kerf.model.nodeclaim import REGISTERED_LESS, NodeClaim
from kerf.model.promises import Promises, read, written
from kerf.model.quantities import Resources
from kerf.sharing.hami.pinning import hold
from kerf.sharing.hami.records import REGISTER, register_annotation
from kerf.sim.objects import Json
from kerf.testing.builders import cards
from tests.controllers.cluster import Cluster, pod, pool

MINUTE = 60
JOINED = ("Launched", "Registered")
THREE = {"cpu": 48, "memory": "192Gi", "pods": 58, "nvidia.com/gpu": 3}
SAID = "4 GPUs were predicted, 3 registered"
TEAM = Taint("team", "ml", "NoSchedule")


def start(cluster: Cluster) -> None:
    """Begin with a pool of the type."""
    if not cluster.names("NodePool"):
        cluster.put(pool(types=("g5.12xlarge",)))
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))


def joined(cluster: Cluster, *promised: str, node: Json | None = None, **given: Any) -> NodeClaim:
    """A claim that promised four cards to these pods, one each, and its node, which has registered three."""
    pods = {f"default/{name}": (card,) for card, name in enumerate(promised)}
    annotations = {**written(Promises(pods, devices=cards(4))), **given.pop("annotations", {})}
    claim = cluster.claimed(
        reached=JOINED, node_name="node-1", instance_type="g5.12xlarge", annotations=annotations, **given
    )
    cluster.joined(claim, **{"allocatable": THREE, **(node or {})})
    return claim


def wide(name: str = "wide", gpus: int = 4) -> Json:
    """A pod that waits for so many cards."""
    return pod(name, limits={"nvidia.com/gpu": str(gpus)})


def back_offs(cluster: Cluster) -> list[str]:
    """The types that rest."""
    market = cluster.done(cluster.book.market(cluster.state.snapshot(cluster.clock.now_s())))
    return [each.instance_type for each in market.back_offs]


def test_a_node_with_fewer_cards_is_initialised_for_the_pod_that_fits(cluster: Cluster) -> None:
    """Condition and event say what was predicted and what registered; its type backs off as if it had failed."""
    cluster.put(pod("slim"), wide())
    joined(cluster, "slim", "wide")
    start(cluster)

    assert ("True", "Initialized", SAID) == cluster.condition("Initialized")
    assert [f"{SAID}; the node is initialised with what it has, because pods can use it"] == cluster.said(
        "RegisteredLess"
    )
    assert ["g5.12xlarge"] == back_offs(cluster)


def test_a_pod_that_fits_no_more_is_promised_nothing(cluster: Cluster) -> None:
    """The next plan finds it another place."""
    cluster.put(pod("slim"), wide())
    joined(cluster, "slim", "wide")
    start(cluster)

    assert ["default/slim"] == list(read(cluster.claim().annotations).pods)


@pytest.mark.parametrize(
    ("waiting", "node"),
    [
        ((wide(),), {}),
        ((), {}),
        ((pod("cpu", limits={"cpu": "1"}),), {}),
        ((pod("slim"),), {"taints": (TEAM,)}),
        ((pod("slim"),), {"is_unschedulable": True}),
    ],
    ids=["too-wide", "none-waits", "asks-no-card", "tainted", "cordoned-by-a-person"],
)
def test_a_node_that_no_pod_can_use_is_given_back(cluster: Cluster, waiting: tuple[Json, ...], node: Json) -> None:
    """Once the time for its cards is over; its type backs off."""
    cluster.put(*waiting)
    joined(cluster, "wide", node=node)
    start(cluster)
    cluster.at(11 * MINUTE)

    assert (["3 of 4 GPUs registered"], []) == (cluster.said("InitializedTimedOut"), cluster.names("NodeClaim"))
    assert ([], ["g5.12xlarge"]) == (cluster.said("RegisteredLess"), back_offs(cluster))


def test_a_pod_that_comes_later_is_seen_when_the_time_is_over(cluster: Cluster) -> None:
    """Each look costs a plan, so there are two: when the shortfall is seen and at the deadline."""
    joined(cluster, "wide")
    start(cluster)
    cluster.at(5 * MINUTE)
    cluster.put(pod("slim"))
    cluster.at(11 * MINUTE)

    assert ([], ("True", "Initialized", SAID)) == (
        cluster.said("InitializedTimedOut"),
        cluster.condition("Initialized"),
    )


def test_a_node_on_which_a_pod_holds_a_card_stays(cluster: Cluster) -> None:
    """Where the plan needs no following its scheduler binds the pod as soon as a card registers."""
    cluster.put(pod("slim", node="node-1"))
    joined(cluster, "slim", "wide")
    start(cluster)

    assert cluster.claim().is_true("Initialized")
    assert ["default/slim"] == list(read(cluster.claim().annotations).pods)


def test_a_restart_after_the_decision_goes_on_with_it(cluster: Cluster) -> None:
    """The annotation alone says it, though no pod waits any more and requests are not there in full."""
    joined(cluster, annotations={REGISTERED_LESS: SAID}, requests=Resources({"nvidia.com/gpu": 4}))
    start(cluster)

    assert ("True", "Initialized", SAID) == cluster.condition("Initialized")


def test_a_kept_node_does_not_end_the_back_off_of_its_type(cluster: Cluster) -> None:
    """It has come up, and not as promised."""
    cluster.at(cluster.now_s, lambda: cluster.book.back_off("gpu", "g5.12xlarge", "3 of 4 GPUs registered"))
    joined(cluster, annotations={REGISTERED_LESS: SAID})
    start(cluster)

    assert cluster.claim().is_true("Initialized")
    assert ["g5.12xlarge"] == back_offs(cluster)


def test_a_pin_does_not_hold_a_pod_that_was_let_go(cluster: Cluster) -> None:
    """HAMi would refuse it every other card until the pin's time is over."""
    register = {REGISTER: register_annotation([DeviceState("GPU-0", 0, "NVIDIA-A10G", 12_000)])}
    held = {key: str(value) for key, value in hold(cluster.clock.now_s()).items()}
    for name, mib in (("small", 8_000), ("large", 20_000)):
        limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(mib)}
        cluster.put(pod(name, limits=limits, annotations=held, schedulerName="hami-scheduler"))
    promised = written(Promises({"default/small": (0,), "default/large": (1,)}, devices=cards(2)))
    labels, annotations = {"gpu": "on"}, {**promised, "kerf.dev/follow": "pin"}
    node = {"labels": labels, "annotations": register}
    joined(cluster, node=node, labels=labels, annotations=annotations)
    start(cluster)

    assert ["default/small"] == list(read(cluster.claim().annotations).pods)
    assert "kerf.dev/pinned" not in cluster.pod("large").annotations
