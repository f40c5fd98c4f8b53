"""A pin of ours that keeps its pod from the place that it could have is taken away at once, and no other."""

import json

import pytest

from kerf.controllers.pins import Pins
from kerf.engine.decision import Decision
from kerf.engine.options import DEFAULT
from kerf.engine.world import World
from kerf.model.gpu import Slice
from kerf.model.plan import Cost, NodePlacement, PlacedPod
from kerf.testing.builders import a_market
from tests.controllers.cluster import Cluster, pod, pool
from tests.sim.world import START_S

USE, PINNED = "nvidia.com/use-gpuuuid", "kerf.dev/pinned"


def placed(cluster: Cluster, card: str) -> None:
    """A plan finds a place for the pod on a card, and is acted on."""
    snapshot = cluster.read()
    part = Slice(pod="default/p", container="main", device=0, device_id=card, memory_mib=1000, cores=0)
    placements = (NodePlacement(PlacedPod("default/p", (part,)), "node-1"),)
    decision = Decision(World(snapshot, a_market()), DEFAULT, Cost("USD", 0, 0), placements=placements)
    cluster.done(cluster.actuator.launch(decision))


@pytest.mark.parametrize("card, is_kept", [("GPU-a", True), ("GPU-b", False)], ids=["its own", "another"])
def test_a_pin_ends_when_the_plan_finds_another_card(cluster: Cluster, card: str, is_kept: bool) -> None:
    """Somebody was quicker on its own; HAMi would refuse every other one as long as the pin is there."""
    cluster.put(pod(annotations={USE: "GPU-a", PINNED: str(START_S)}))
    placed(cluster, card)

    assert is_kept == (USE in cluster.pod().annotations)


@pytest.mark.parametrize(("node", "kept"), [("node-1", {"default/p": [0]}), ("node-2", {})], ids=["same", "another"])
def test_a_claim_promises_what_the_plan_has_now(cluster: Cluster, node: str, kept: dict[str, list[int]]) -> None:
    """Or it would pin the pod to the card again that another has taken."""
    promise = {"kerf.dev/planned-pods": json.dumps({"default/p": [1]}), "kerf.dev/follow": "pin"}
    cluster.put(pool(), pod(annotations={USE: "GPU-a", PINNED: str(START_S)}))
    cluster.joined(cluster.claimed(reached=("Launched", "Registered"), node_name=node, annotations=promise), name=node)
    placed(cluster, "GPU-b")

    assert kept == json.loads(cluster.claim().annotations["kerf.dev/planned-pods"])


@pytest.mark.parametrize(
    "annotations", [{USE: "GPU-mine"}, {USE: "kerf-card-on-its-way", PINNED: str(START_S)}], ids=["a user's", "held"]
)
def test_what_is_not_our_pin_stays(cluster: Cluster, annotations: dict[str, str]) -> None:
    """The one is a wish, the other waits for a card that has not registered."""
    cluster.put(pod(annotations=annotations))
    placed(cluster, "GPU-b")

    assert annotations == dict(cluster.pod().annotations)


def test_a_pod_that_is_held_for_no_node_is_let_go_at_once(cluster: Cluster) -> None:
    """Its claim went while Kerf was down, and two minutes are long."""
    cluster.put(pod(annotations={USE: "kerf-card-on-its-way", PINNED: str(START_S)}))
    cluster.start(Pins(cluster.state, cluster.ports, cluster.settings))

    assert {} == dict(cluster.pod().annotations)


@pytest.mark.parametrize("phase, is_kept", [("allocating", True), ("success", False)])
def test_a_pin_goes_once_its_pod_has_its_cards(cluster: Cluster, phase: str, is_kept: bool) -> None:
    """G8: HAMi reads it while it chooses, and never again."""
    cluster.put(pod(node="node-1", annotations={USE: "GPU-a", PINNED: str(START_S), "hami.io/bind-phase": phase}))
    cluster.start(Pins(cluster.state, cluster.ports, cluster.settings))

    assert is_kept == (USE in cluster.pod().annotations) == (PINNED in cluster.pod().annotations)


def test_a_users_own_card_stays_on_a_bound_pod(cluster: Cluster) -> None:
    """Kerf did not set it."""
    cluster.put(pod(node="node-1", annotations={USE: "GPU-a", "hami.io/bind-phase": "success"}))
    cluster.start(Pins(cluster.state, cluster.ports, cluster.settings))

    assert USE in cluster.pod().annotations
