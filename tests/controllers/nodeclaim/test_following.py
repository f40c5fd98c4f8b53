"""How the schedulers are made to follow a plan: cordon, pin or nominate, uncordon; and how that is undone."""

import json
from typing import Any

import pytest

from kerf.controllers.nodeclaim.lifecycle import Lifecycle
from kerf.controllers.pins import Pins
from kerf.model.gpu import DeviceState
from kerf.model.nodeclaim import UNREGISTERED_TAINT, NodeClaim
from kerf.model.promises import devices_text
from kerf.sharing.hami.records import REGISTER, register_annotation
from kerf.sim.objects import Json
from kerf.testing.builders import a_node, cards
from tests.controllers.cluster import FRESH, Cluster, node_object, pod, pool
from tests.sim.world import START_S

HAMI = {"gpu": "on"}
USE, PINNED, CORDONED = "nvidia.com/use-gpuuuid", "kerf.dev/pinned", "kerf.dev/cordoned"
CARDS = {
    REGISTER: register_annotation([DeviceState(f"GPU-{name}", i, "NVIDIA-A10G", 22888) for i, name in enumerate("ab")])
}


def on_its_way(cluster: Cluster, follow: str, **planned: list[int]) -> NodeClaim:
    """A claim for two cards whose plan is followed that way, and the lifecycle running."""
    notes = {
        "kerf.dev/follow": follow,
        "kerf.dev/planned-pods": json.dumps({f"default/{name}": where for name, where in planned.items()}),
        "kerf.dev/predicted-devices": devices_text(cards(2)),
    }
    cluster.put(pool(labels=HAMI))
    claim = cluster.claimed(reached=("Launched",), labels=HAMI, annotations=notes)
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))
    return claim


def joins(cluster: Cluster, claim: NodeClaim, **given: Any) -> None:
    """Its node joins, without its cards."""
    cluster.joined(claim, labels=HAMI, **{**FRESH, **given})


def registers(cluster: Cluster) -> None:
    """HAMi's device plugin tells of the cards."""
    cluster.change("Node", "node-1", metadata={"annotations": CARDS})


def notes(cluster: Cluster, name: str = "p") -> Json:
    """A pod's annotations."""
    return dict(cluster.pod(name).annotations)


# Cordon.


@pytest.mark.parametrize(("follow", "is_cordoned"), [("pin", True), ("nominate", True), ("replay", False)])
def test_a_node_is_cordoned_only_when_its_plan_needs_following(
    cluster: Cluster, follow: str, is_cordoned: bool
) -> None:
    """And marked as ours, so that we know which cordon we may lift."""
    claim = on_its_way(cluster, follow)
    joins(cluster, claim)

    assert (is_cordoned, is_cordoned) == (cluster.node().is_unschedulable, CORDONED in cluster.node().annotations)


def test_the_cordon_comes_with_the_end_of_the_unregistered_taint(cluster: Cluster) -> None:
    """In one write: no scheduler ever sees the node open in between."""
    claim = on_its_way(cluster, "pin")
    joins(cluster, claim)

    specs = [change.obj["spec"] for change in cluster.api.events if change.obj["kind"] == "Node"]
    seen = [(bool(spec.get("taints")), spec.get("unschedulable", False)) for spec in specs]
    assert (True, False) == seen[0]
    assert {(False, True)} == set(seen) - {(True, False)}


def test_a_persons_cordon_is_never_ours(cluster: Cluster) -> None:
    """A node that somebody has cordoned stays so, also when its pods are pinned."""
    cluster.put(pod())
    claim = on_its_way(cluster, "pin", p=[0])
    joins(cluster, claim, is_unschedulable=True)
    registers(cluster)

    assert (True, False) == (cluster.node().is_unschedulable, CORDONED in cluster.node().annotations)
    assert (True, "GPU-a") == (cluster.claim().is_true("Initialized"), notes(cluster)[USE])


def only_card(cluster: Cluster) -> dict[str, str]:
    """What of the pod's annotations binds it to cards."""
    return {key: text for key, text in notes(cluster).items() if key == USE}


def test_our_cordon_ends_when_the_pods_are_led(cluster: Cluster) -> None:
    """Closed until the cards are there, open with the pins."""
    cluster.put(pod())
    claim = on_its_way(cluster, "pin", p=[0])
    joins(cluster, claim)
    assert (True, {USE: "kerf-card-on-its-way"}) == (cluster.node().is_unschedulable, only_card(cluster))

    registers(cluster)
    assert (False, False) == (cluster.node().is_unschedulable, CORDONED in cluster.node().annotations)


# Pin and nominate.


def test_a_pin_names_the_planned_cards_by_uuid(cluster: Cluster) -> None:
    """The second card is GPU-b here; the mark says that the pin is ours and since when."""
    cluster.put(pod("p"), pod("q"))
    claim = on_its_way(cluster, "pin", p=[1], q=[0, 1])
    joins(cluster, claim)
    registers(cluster)

    assert {USE: "GPU-b", PINNED: str(START_S)} == notes(cluster, "p")
    assert "GPU-a,GPU-b" == notes(cluster, "q")[USE]
    assert "Pinned to GPU GPU-b of node node-1, as planned" == cluster.said("Pinned")[0]


def test_a_users_own_wish_stands(cluster: Cluster) -> None:
    """A pod that names a card itself is not pinned, and not told that it was."""
    cluster.put(pod(annotations={USE: "GPU-mine"}))
    claim = on_its_way(cluster, "pin", p=[0])
    joins(cluster, claim)
    registers(cluster)

    assert ({USE: "GPU-mine"}, []) == (notes(cluster), cluster.said("Pinned"))
    assert cluster.claim().is_true("Initialized")


@pytest.mark.parametrize("changed", [pod(node="other"), pod("another")], ids=["has a place", "is gone"])
def test_a_pod_that_no_longer_waits_is_not_led(cluster: Cluster, changed: Json) -> None:
    """It found a place or went while the node was starting: the others are led, the node opens."""
    cluster.put(changed, pod("q"))
    claim = on_its_way(cluster, "pin", p=[0], q=[1])
    joins(cluster, claim)
    registers(cluster)

    assert (["GPU-b"], False) == (
        [held.get(USE) for held in (notes(cluster, "q"), notes(cluster, changed["metadata"]["name"])) if held],
        cluster.node().is_unschedulable,
    )


def test_a_nomination_sets_the_field_that_schedulers_read(cluster: Cluster) -> None:
    """An earlier nomination, by a scheduler's own preemption, stays."""
    cluster.put(pod("p"), pod("q", nominated="other"))
    claim = on_its_way(cluster, "nominate", p=[0], q=[1])
    joins(cluster, claim)
    registers(cluster)

    assert ["node-1", "other"] == [cluster.pod(name).nominated_node for name in ("p", "q")]
    assert not cluster.node().is_unschedulable


# Undone.


def watch_pins(cluster: Cluster, obj: Json) -> None:
    """A pod, a node, and the controller that takes pins away."""
    cluster.put(node_object(a_node("node-1"), START_S), obj)
    cluster.start(Pins(cluster.state, cluster.ports, cluster.settings))


def test_a_pin_that_does_not_help_is_taken_away_after_two_minutes(cluster: Cluster) -> None:
    """The pod still waits: every other card is better than none."""
    watch_pins(cluster, pod(annotations={USE: "GPU-a", PINNED: str(START_S), "nvidia.com/own": "1"}))
    cluster.at(119)
    assert "GPU-a" == notes(cluster)[USE]

    cluster.at(120)
    assert {"nvidia.com/own": "1"} == notes(cluster)


@pytest.mark.parametrize(
    "kept",
    [
        pod(node="node-1", annotations={USE: "GPU-a", PINNED: str(START_S)}),
        pod(annotations={USE: "GPU-mine"}),
    ],
    ids=["it helped", "the user's own"],
)
def test_other_pins_stay(cluster: Cluster, kept: Json) -> None:
    """A pod that runs keeps its card's name, and what a user wrote is not ours."""
    watch_pins(cluster, kept)
    cluster.at(1000)

    assert kept["metadata"]["annotations"] == notes(cluster)


def test_a_pin_from_an_earlier_life_ends_too(cluster: Cluster) -> None:
    """Its time counts from the mark, not from our start; a broken mark is long past."""
    cluster.put(pod("p", annotations={USE: "GPU-a", PINNED: str(START_S - 90)}))
    watch_pins(cluster, pod("q", annotations={USE: "GPU-a", PINNED: "x"}))
    assert {} == notes(cluster, "q")

    cluster.at(30)
    assert {} == notes(cluster, "p")


def test_a_nomination_ends_with_its_node(cluster: Cluster) -> None:
    """At once; the pod of a node that stays keeps its own."""
    cluster.put(pod("q", nominated="node-2"), node_object(a_node("node-2"), START_S))
    watch_pins(cluster, pod(nominated="node-1"))
    assert "node-1" == cluster.pod().nominated_node

    cluster.remove("Node", "node-1")
    assert ["", "node-2"] == [cluster.pod(name).nominated_node for name in ("p", "q")]


def test_a_nomination_to_a_node_that_went_while_kerf_was_down_ends(cluster: Cluster) -> None:
    """Found at the start."""
    watch_pins(cluster, pod(nominated="gone"))

    assert "" == cluster.pod().nominated_node


def test_an_unregistered_node_of_ours_is_not_open_to_pods(cluster: Cluster) -> None:
    """Until Kerf has seen it the taint keeps every pod off."""
    claim = on_its_way(cluster, "pin")
    cluster.crash()
    joins(cluster, claim)

    assert ((UNREGISTERED_TAINT,), False) == (cluster.node().taints, cluster.node().is_unschedulable)
