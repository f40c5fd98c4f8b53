"""How the schedulers are made to follow a plan: a cordon, then pins or a reservation; and how that is undone."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from kerf.controllers.nodeclaim.lifecycle import Lifecycle
from kerf.controllers.pins import Pins
from kerf.controllers.runtime import Controller
from kerf.model.constraints import Taint
from kerf.model.gpu import DeviceState
from kerf.model.nodeclaim import UNREGISTERED_TAINT, NodeClaim
from kerf.model.nodes import RESERVED_FOR
from kerf.model.pods import Pod
from kerf.model.promises import devices_text
from kerf.ports import WriteRefused
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


def on_its_way(
    cluster: Cluster, follow: str, rounds: Json | None = None, also: Sequence[Controller] = (), /, **planned: list[int]
) -> NodeClaim:
    """A claim for two cards whose plan is followed that way, and the lifecycle running, with other controllers."""
    notes = {
        "kerf.dev/follow": follow,
        "kerf.dev/planned-pods": json.dumps({f"default/{name}": where for name, where in planned.items()}),
        "kerf.dev/predicted-devices": devices_text(cards(2)),
        **({"kerf.dev/planned-rounds": json.dumps(rounds)} if rounds else {}),
    }
    cluster.put(pool(labels=HAMI))
    claim = cluster.claimed(reached=("Launched",), labels=HAMI, annotations=notes)
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings), *also)
    return claim


def a_slice(name: str, count: int = 1, cores: int = 0) -> Json:
    """A pod that asks 1,000 MiB of so many cards, and cores of each."""
    limits = {"nvidia.com/gpu": count, "nvidia.com/gpumem": 1000, **({"nvidia.com/gpucores": cores} if cores else {})}
    return pod(name, limits=limits, schedulerName="hami-scheduler")


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


@pytest.mark.parametrize(("follow", "is_cordoned"), [("pin", True), ("reserve", True), ("replay", False)])
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


# Pin.


def test_a_pin_names_the_planned_cards_by_uuid(cluster: Cluster) -> None:
    """The second card is GPU-b here; the mark says that the pin is ours and since when."""
    cluster.put(a_slice("p", 1), a_slice("q", 2))
    claim = on_its_way(cluster, "pin", p=[1], q=[0, 1])
    joins(cluster, claim)
    registers(cluster)

    assert {USE: "GPU-b", PINNED: str(START_S)} == notes(cluster, "p")
    assert "GPU-a,GPU-b" == notes(cluster, "q")[USE]
    assert "Pinned to GPU GPU-b of node node-1, as planned" == cluster.said("Pinned")[0]


def test_pods_whose_order_matters_come_in_turns_to_a_reserved_node(cluster: Cluster) -> None:
    """HAMi refuses the pod without cores once the others hold all of them: these wait until it is bound."""
    shared = [DeviceState(f"GPU-{name}", i, "NVIDIA-A10G", 22888, slots=10) for i, name in enumerate("ab")]
    cluster.put(a_slice("bb"), a_slice("aa", cores=50), a_slice("ab", cores=50))
    claim = on_its_way(cluster, "pin", bb=[0], aa=[0], ab=[0])
    joins(cluster, claim)
    cluster.change("Node", "node-1", metadata={"annotations": {REGISTER: register_annotation(shared)}})

    assert ["GPU-a", *["kerf-card-on-its-way"] * 2] == [notes(cluster, name)[USE] for name in ("bb", "aa", "ab")]
    assert (False, [RESERVED_FOR]) == (cluster.node().is_unschedulable, [taint.key for taint in cluster.node().taints])

    cluster.at(1, lambda: cluster.api.bind("default", "bb", "node-1"))
    assert ["GPU-a"] * 2 == [notes(cluster, name)[USE] for name in ("aa", "ab")]
    assert not cluster.claim().is_true("Initialized")

    for name in ("aa", "ab"):
        cluster.at(2, partial(cluster.api.bind, "default", name, "node-1"))
    assert (True, ()) == (cluster.claim().is_true("Initialized"), cluster.node().taints)


BOOKED = {"hami.io/vgpu-node": "node-1", "hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,1000,0:;"}
"""What HAMi writes before it binds."""


def test_a_later_turn_waits_until_a_booked_pod_is_bound(cluster: Cluster) -> None:
    """HAMi forgets a booking whose binding fails, and by then the others would have taken what the pod needs."""
    shared = [DeviceState(f"GPU-{name}", i, "NVIDIA-A10G", 22888, slots=10) for i, name in enumerate("ab")]
    cluster.put(a_slice("bb"), a_slice("aa", cores=50), a_slice("ab", cores=50))
    joins(cluster, on_its_way(cluster, "pin", bb=[0], aa=[0], ab=[0]))
    cluster.change("Node", "node-1", metadata={"annotations": {REGISTER: register_annotation(shared)}})
    cluster.change("Pod", "bb", metadata={"annotations": BOOKED})
    cluster.at(5)
    assert "kerf-card-on-its-way" == notes(cluster, "aa")[USE]

    cluster.at(6, lambda: cluster.api.bind("default", "bb", "node-1"))
    assert "GPU-a" == notes(cluster, "aa")[USE]


def test_a_node_with_pins_is_reserved_until_its_pods_are_bound(cluster: Cluster) -> None:
    """Pods of a later plan carry no pin, and HAMi would give them the cards."""
    cluster.put(a_slice("p"), a_slice("other"))
    joins(cluster, on_its_way(cluster, "pin", p=[0]))
    registers(cluster)
    assert RESERVED == state(cluster)
    assert [("gpu-1",), ()] == [cluster.pod(name).reserved_for for name in ("p", "other")]

    cluster.at(1, lambda: cluster.api.bind("default", "p", "node-1"))
    assert OPEN == state(cluster)


def test_a_pod_that_was_freed_for_another_place_is_not_held_again(cluster: Cluster) -> None:
    """The plan took its pin away while the node was open already: held, it could go nowhere."""
    cluster.put(a_slice("p"), a_slice("q"))
    joins(cluster, on_its_way(cluster, "pin", p=[0], q=[0]))
    registers(cluster)
    cluster.change("Pod", "p", metadata={"annotations": {USE: None, PINNED: None, "hami.io/vgpu-node": "other"}})
    cluster.at(5)

    assert USE not in notes(cluster)


def test_a_users_own_wish_stands(cluster: Cluster) -> None:
    """A pod that names a card itself is not pinned, and not told that it was."""
    cluster.put(pod(annotations={USE: "GPU-mine"}))
    claim = on_its_way(cluster, "pin", p=[0])
    joins(cluster, claim)
    registers(cluster)

    assert ({USE: "GPU-mine"}, []) == (notes(cluster), cluster.said("Pinned"))
    assert RESERVED == state(cluster)


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


# Reserve.


def reserved(cluster: Cluster, *pods: Json, rounds: Json | None = None, **planned: list[int]) -> NodeClaim:
    """The claim's node, whose cards have just registered."""
    cluster.put(*pods)
    claim = on_its_way(cluster, "reserve", rounds, **planned)
    joins(cluster, claim)
    registers(cluster)
    return claim


def state(cluster: Cluster) -> tuple[list[str], bool, bool]:
    """The values of the node's taints of ours, whether it is cordoned, and whether its claim is initialised."""
    node = cluster.node()
    values = [taint.value for taint in node.taints if taint.key == RESERVED_FOR]
    return values, node.is_unschedulable, cluster.claim().is_true("Initialized")


RESERVED: tuple[list[str], bool, bool] = (["gpu-1"], False, False)
OPEN: tuple[list[str], bool, bool] = ([], False, True)


def test_a_node_is_reserved_for_the_pods_of_its_plan(cluster: Cluster) -> None:
    """Those that wait get the toleration; others do not, nor does one that has a place."""
    reserved(cluster, pod("p"), pod("q", node="other"), pod("r"), p=[0], q=[1])

    reserved_text = ("Unknown", "Reserved", "Reserved for the pods it was bought for until they are bound")
    assert reserved_text == cluster.condition("Initialized")
    assert [("gpu-1",), (), ()] == [cluster.pod(name).reserved_for for name in ("p", "q", "r")]
    assert RESERVED == state(cluster)


def test_the_reservation_begins_in_the_write_that_ends_the_cordon(cluster: Cluster) -> None:
    """And after the tolerations: no pod is let in that is not of the plan, and none is tried in vain."""
    reserved(cluster, pod("p"), p=[0])

    seen = [change.obj for change in cluster.api.events if change.obj["kind"] in ("Node", "Pod")]
    shown = [(obj["kind"], RESERVED_FOR in str(obj["spec"]), obj["spec"].get("unschedulable", False)) for obj in seen]
    assert ("Node", False, False) not in shown[shown.index(("Node", False, True)) :]
    assert shown.index(("Pod", True, False)) < shown.index(("Node", True, False))


@pytest.mark.parametrize(
    "end",
    [
        lambda cluster: cluster.at(1, lambda: cluster.api.bind("default", "p", "node-1")),
        lambda cluster: cluster.at(1, lambda: cluster.api.bind("default", "p", "other")),
        lambda cluster: cluster.remove("Pod", "p"),
        lambda cluster: cluster.change("Pod", "p", status={"phase": "Failed"}),
    ],
    ids=["bound there", "bound elsewhere", "gone", "ended"],
)
def test_the_reservation_ends_with_the_last_pod_that_waits(cluster: Cluster, end: Callable[[Cluster], object]) -> None:
    """At once, by the watch."""
    reserved(cluster, pod("p"), p=[0])
    end(cluster)

    assert OPEN == state(cluster)


def test_a_reservation_ends_two_minutes_after_the_last_pod_came_to_its_place(cluster: Cluster) -> None:
    """What stops the scheduler then must not keep the others off for ever."""
    reserved(cluster, pod("p"), pod("q"), p=[0], q=[1])
    cluster.at(50, lambda: cluster.api.bind("default", "p", "node-1"))
    cluster.at(169)
    assert RESERVED == state(cluster)

    cluster.at(170)
    assert OPEN == state(cluster)


def test_a_reservation_ends_after_ten_minutes_however_busy_the_scheduler_is(cluster: Cluster) -> None:
    """Each minute another of its pods comes, and one never does."""
    names = [f"p{number:02d}" for number in range(15)]
    reserved(cluster, *map(pod, names), rounds=None, **{key: [0] for key in names})
    for number, name in enumerate(names[:12]):
        cluster.at(50 * (number + 1) - 1, partial(cluster.api.bind, "default", name, "node-1"))
    assert RESERVED == state(cluster)

    cluster.at(600)
    assert OPEN == state(cluster)


def test_a_node_without_a_pod_that_waits_is_opened_at_once(cluster: Cluster) -> None:
    """They found places or went while it was starting."""
    reserved(cluster, pod("p", node="other"), p=[0], q=[1])

    assert OPEN == state(cluster)


def test_a_restart_goes_on_with_a_reservation(cluster: Cluster) -> None:
    """By the taint alone: its pods, one made again under its name, get what they lack, and the time begins anew."""
    reserved(cluster, pod("p"), pod("q"), p=[0], q=[1])
    cluster.at(10)
    cluster.crash()
    cluster.remove("Pod", "q")
    cluster.put(pod("q"))
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))
    assert ("gpu-1",) == cluster.pod("q").reserved_for
    cluster.at(129)
    assert RESERVED == state(cluster)

    cluster.at(130)
    assert OPEN == state(cluster)


def test_a_pod_that_is_made_again_under_its_name_is_let_in(cluster: Cluster) -> None:
    """As a StatefulSet makes one; the plan names pods by name."""
    reserved(cluster, pod("p"), pod("q"), p=[0], q=[1])
    cluster.remove("Pod", "q")
    cluster.put(pod("q"))

    assert (("gpu-1",), RESERVED) == (cluster.pod("q").reserved_for, state(cluster))


def test_a_person_s_cordon_of_a_reserved_node_stays(cluster: Cluster) -> None:
    """Only what is ours ends."""
    reserved(cluster, pod("p"), p=[0])
    cluster.change("Node", "node-1", spec={"unschedulable": True})
    cluster.remove("Pod", "p")

    assert ([], True, True) == state(cluster)


def test_a_pod_that_may_have_no_toleration_is_asked_once(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said on the pod. The node is reserved as long as others wait, and then open to all."""
    asked: list[str] = []
    tolerate = cluster.ports.writer.tolerate

    async def refuse(held: Pod, taint: Taint) -> None:
        asked.append(held.name)
        if held.name == "p":
            raise WriteRefused("pod tolerations conflict with its namespace whitelist tolerations")
        await tolerate(held, taint)

    monkeypatch.setattr(cluster.ports.writer, "tolerate", refuse)
    reserved(cluster, pod("p"), pod("q"), p=[0], q=[1])
    cluster.at(14)
    assert (["p", "q"], 1, RESERVED) == (asked, len(cluster.said("NotReserved")), state(cluster))

    cluster.at(15, lambda: cluster.api.bind("default", "q", "node-1"))
    assert OPEN == state(cluster)


# The oldest first.


def older(cluster: Cluster, *names: str) -> None:
    """Refused pods that come now; the next thing happens forty seconds later."""
    cluster.put(*map(pod, names))
    cluster.at(cluster.now_s + 40)


def another_on_its_way(cluster: Cluster, follow: str, **planned: list[int]) -> None:
    """A second claim, `gpu-2`, whose node is still to come."""
    pods = json.dumps({f"default/{name}": where for name, where in planned.items()})
    notes = {"kerf.dev/follow": follow, "kerf.dev/planned-pods": pods}
    cluster.claimed("gpu-2", reached=("Launched",), labels=HAMI, annotations=notes)


def promised(cluster: Cluster) -> list[dict[str, list[int]]]:
    """The pods of each claim with their cards, by the claim's name."""
    return [json.loads(cluster.claim(name).annotations["kerf.dev/planned-pods"]) for name in ("gpu-1", "gpu-2")]


@pytest.mark.parametrize("follow", ["reserve", "pin"])
def test_a_node_that_opens_is_for_the_oldest_of_equal_pods(cluster: Cluster, follow: str) -> None:
    """Its own pod, which came later, gets the place of the other on the node that is still to come."""
    older(cluster, "p")
    cluster.put(pod("q"))
    another_on_its_way(cluster, follow, p=[1])
    joins(cluster, on_its_way(cluster, follow, q=[0]))
    registers(cluster)

    assert [{"default/p": [0]}, {"default/q": [1]}] == promised(cluster)
    led = [name for name in ("p", "q") if cluster.pod(name).reserved_for or notes(cluster, name).get(USE) == "GPU-a"]
    assert ["p"] == led


def test_an_older_pod_that_nothing_was_bought_for_goes_first(cluster: Cluster) -> None:
    """It lost its place to another; the pod that gives way is placed by the next plan."""
    older(cluster, "p")
    reserved(cluster, pod("q"), q=[0])

    assert {"default/p": [0]} == json.loads(cluster.claim().annotations["kerf.dev/planned-pods"])
    assert [("gpu-1",), ()] == [cluster.pod(name).reserved_for for name in ("p", "q")]


def test_who_was_let_in_to_a_node_gives_way_no_more(cluster: Cluster) -> None:
    """A restart in the middle of a reservation changes nothing, nor does an older pod that is refused again then."""
    older(cluster, "p")
    cluster.change("Pod", "p", status={"nominatedNodeName": "other"})
    reserved(cluster, pod("q"), q=[0])
    cluster.crash()
    cluster.change("Pod", "p", status={"nominatedNodeName": None})
    cluster.start(Lifecycle(cluster.state, cluster.ports, cluster.book, cluster.settings))

    assert [(), ("gpu-1",)] == [cluster.pod(name).reserved_for for name in ("p", "q")]


def test_a_node_that_registered_before_it_was_to_be_reserved_is_closed(cluster: Cluster) -> None:
    """A later plan chose so while its cards were still to come; it opens for its own pods alone."""
    cluster.put(pod("p"))
    claim = on_its_way(cluster, "replay", p=[0])
    joins(cluster, claim)
    assert not cluster.node().is_unschedulable

    cluster.change("NodeClaim", "gpu-1", metadata={"annotations": {"kerf.dev/follow": "reserve"}})
    assert (True, True) == (cluster.node().is_unschedulable, CORDONED in cluster.node().annotations)
    registers(cluster)
    assert RESERVED == state(cluster)


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


def test_a_pin_stays_as_long_as_its_node_is_reserved(cluster: Cluster) -> None:
    """HAMi binds a few pods a second: of a thousand some wait for minutes, and must not go to any node meanwhile."""
    cluster.put(a_slice("p"), a_slice("q"))
    pins = Pins(cluster.state, cluster.ports, cluster.settings)
    claim = on_its_way(cluster, "pin", None, (pins,), p=[0], q=[1])
    joins(cluster, claim)
    registers(cluster)
    cluster.at(100)
    cluster.change("Pod", "q", spec={"nodeName": "node-1"})
    before = len(cluster.api.events)
    cluster.at(200)
    assert ("GPU-a", True) == (notes(cluster)[USE], RESERVED == state(cluster))
    assert not [each for each in cluster.api.events[before:] if each.obj["kind"] == "Pod"], "never without, in between"

    cluster.at(500)
    assert ({}, False) == (only_card(cluster), RESERVED == state(cluster))


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


def test_our_unregistered_node_is_not_open_to_pods(cluster: Cluster) -> None:
    """Until Kerf has seen it the taint keeps every pod off."""
    claim = on_its_way(cluster, "pin")
    cluster.crash()
    joins(cluster, claim)

    assert ((UNREGISTERED_TAINT,), False) == (cluster.node().taints, cluster.node().is_unschedulable)
