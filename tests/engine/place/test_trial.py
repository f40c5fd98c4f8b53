"""Nodes that are there or on their way: which may be planned on, with how much room, and undone for free."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.explain.plan import plan
from kerf.engine.place import trial
from kerf.engine.place.fit import fit
from kerf.engine.place.noderooms import is_usable
from kerf.engine.place.shapes import Shape, group
from kerf.engine.place.trial import Trial
from kerf.model.causes import Quoted
from kerf.model.constraints import HOSTNAME, Requirements, Taint
from kerf.model.market import Market
from kerf.model.nodeclaim import (
    DISRUPTED_TAINT,
    INITIALIZED,
    LAUNCHED,
    PLANNED_OFFERING,
    PLANNED_PODS,
    PREDICTED_DEVICES,
    REGISTERED,
    NodeClaim,
)
from kerf.model.nodes import CORDONED_BY_KERF, reservation
from kerf.model.plan import Plan
from kerf.model.pods import RUNNING, Owner, Pod
from kerf.model.promises import devices_text
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterNode, ClusterSnapshot, Upserted, Watched
from kerf.model.topology import PodAffinity, PodAffinityTerm
from kerf.sharing.family import Unreadable
from kerf.sharing.hami.records import ALLOCATED, NODE
from kerf.state import ClusterState
from kerf.testing.builders import NOON_S, a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, cards, resources
from tests.engine.worlds import (
    G5,
    HAMI,
    M5,
    a_daemon_set,
    a_hami_node,
    a_hami_pool,
    bought,
    planned,
    port_spec,
    seen,
    some,
)

MARKET = a_market(M5, G5)


def trial_of(snapshot: ClusterSnapshot, market: Market = MARKET, **given: Any) -> Trial:
    """A trial of all nodes."""
    return Trial(snapshot, market, **given)


def in_flight(name: str = "claim", planned_pods: dict[str, list[int]] | None = None, **given: Any) -> NodeClaim:
    """A claim for a g5.xlarge with one card, whose node has not come."""
    annotations = {
        PLANNED_OFFERING: "g5.xlarge/us-east-1a/on-demand",
        PREDICTED_DEVICES: devices_text(cards(1)),
        PLANNED_PODS: json.dumps(planned_pods or {}),
    }
    fields = {"instance_type": "g5.xlarge", "labels": HAMI, "annotations": annotations, "reached": (LAUNCHED,)}
    return a_claim(name, **{**fields, **given})


def test_pods_go_to_nodes_that_are_there_before_any_is_bought() -> None:
    """Four cores are free, so that of five pods one is bought for."""
    decided = planned(some(5, cpu=1), [a_pool()], [M5], nodes=[a_node()])

    assert 4 == len(decided.placements)
    assert [("m5.xlarge", 1)] == bought(decided)


def test_initialised_nodes_come_first() -> None:
    """A node that is still starting gets what no ready node holds, whatever its name."""
    claims = [in_flight("a-starting", instance_type="m5.xlarge", labels={}, annotations={})]
    trial = trial_of(a_snapshot(nodes=[a_node("b-ready")], claims=claims))

    assert ["b-ready", "a-starting"] == [spot.cluster_node.name for spot in trial.spots]


def test_a_pod_already_on_the_node_takes_its_part() -> None:
    """Bound pods hold what they ask and their ports; ended ones nothing."""
    pods = [
        a_pod("a", cpu=1, node_name="node", phase=RUNNING),
        a_pod("b", spec=port_spec(80), node_name="node"),
        a_pod("c", cpu=2, node_name="node", phase="Succeeded"),
    ]

    room = trial_of(seen(a_node(), *pods)).rooms[0]

    assert (3000, 56) == (room.free["cpu"], room.free["pods"])
    assert [80] == [port.port for port in room.ports]


@pytest.mark.parametrize(
    "node, usable",
    [
        (a_node(), True),
        (a_node(is_unschedulable=True), False),
        (a_node(is_unschedulable=True, annotations={CORDONED_BY_KERF: "true"}), True),
        (a_node(taints=(reservation("claim"),)), True),
        (a_node(taints=(DISRUPTED_TAINT,)), False),
        (a_node(is_ready=False), False),
        (a_node(deleted_s=NOON_S), False),
    ],
    ids=["ready", "cordoned", "cordoned by Kerf", "reserved", "disrupted", "not ready", "deleting"],
)
def test_which_nodes_take_new_pods(node: Any, usable: bool) -> None:
    """Whatever somebody else cordoned or is taking away is left alone; our own cordon will be lifted."""
    assert usable == is_usable(ClusterNode(node, None))


@pytest.mark.parametrize("is_initialized", [True, False])
def test_a_reservation_keeps_no_pod_off_in_a_plan(is_initialized: bool) -> None:
    """It ends within seconds; the room that its pods leave is there for others then."""
    node = a_node(provider_id="i-1", taints=(reservation("claim"), Taint("team")))
    stages = (LAUNCHED, REGISTERED, *((INITIALIZED,) if is_initialized else ()))
    claim = a_claim(provider_id="i-1", reached=stages)

    (spot,) = trial_of(seen(node, claim)).spots
    assert (Taint("team"),) == spot.target.taints


def test_a_starting_node_need_not_be_ready() -> None:
    """Before Initialized NotReady is a matter of time; a claim that is deleted is not."""
    starting = a_claim(node_name="node", reached=(LAUNCHED, REGISTERED))

    assert is_usable(ClusterNode(a_node(is_ready=False), starting))
    assert not is_usable(ClusterNode(a_node(), replace(starting, deleted_s=NOON_S)))


@pytest.mark.parametrize(("reached", "usable"), [((LAUNCHED,), True), ((LAUNCHED, REGISTERED, INITIALIZED), False)])
def test_a_claim_without_a_node_takes_pods_only_while_the_node_is_to_come(reached: Any, usable: bool) -> None:
    """After Initialized its Node has been there, and is gone."""
    assert usable == is_usable(ClusterNode(None, a_claim(reached=reached)))


def test_a_node_with_unreadable_cards_takes_nothing() -> None:
    """Nobody knows what is free there."""
    problem = Unreadable(Quoted("hami.io/node-nvidia-register: expected a JSON list"))
    assert not is_usable(ClusterNode(a_node(), None, problem=problem))


def test_a_claim_in_flight_holds_the_pods_it_was_bought_for() -> None:
    """They are placed on it, on their cards, and nothing is bought a second time; another pod finds no room."""
    claim = in_flight(planned_pods={"default/mine": [0]})
    mine = a_pod("mine", gpu=1, gpumem=20000)
    other = a_pod("a-other", gpu=1, gpumem=20000)

    decided = _decided(seen(a_hami_pool(), claim, mine, other))

    assert [("default/mine", "claim")] == [(p.pod.pod, p.node) for p in decided.placements]
    assert ["default/a-other"] == [p.pod for p in decided.launches[0].pods]


def test_a_planned_pod_keeps_its_card() -> None:
    """The claim's plan says card 1; the family alone would take card 0."""
    pods = {"default/mine": [1]}
    claim = in_flight(planned_pods=pods)
    claim = replace(claim, annotations={**claim.annotations, PREDICTED_DEVICES: devices_text(cards(2))})

    decided = _decided(seen(a_hami_pool(), claim, a_pod("mine", gpu=1, gpumem=1000)))

    assert [1] == [part.device for p in decided.placements for part in p.pod.slices]


def test_room_that_is_left_of_a_claim_is_used() -> None:
    """A second small slice goes to the node that is coming."""
    claim = in_flight(planned_pods={"default/mine": [0]})
    pods = [a_pod(name, gpu=1, gpumem=8000) for name in ("mine", "other")]

    decided = _decided(seen(a_hami_pool(), claim, *pods))

    assert () == decided.launches
    assert 2 == len(decided.placements)


def test_a_broken_plan_annotation_is_no_plan() -> None:
    """A person's edit must not stop planning: the pod is placed as any other."""
    claim = in_flight()
    claim = replace(claim, annotations={**claim.annotations, PLANNED_PODS: "[oops"})

    assert 1 == len(_decided(seen(a_hami_pool(), claim, a_pod("mine", gpu=1, gpumem=1000))).placements)


def _decided(snapshot: ClusterSnapshot) -> Plan:
    return planned(
        snapshot.pending,
        snapshot.node_pools,
        market=MARKET,
        nodes=snapshot.nodes,
    )


def test_a_node_that_shows_nothing_yet_counts_what_its_claim_promises() -> None:
    """Until Initialized a resource that kubelet does not show is taken from the claim, else from the type."""
    node = a_node(allocatable={"cpu": "3900m"}, provider_id="i-1")
    by_claim = a_claim(provider_id="i-1", reached=(LAUNCHED,), allocatable=resources(cpu=4, memory="15Gi", pods=9))
    by_type = replace(by_claim, allocatable=Resources())

    assert resources(cpu="3900m", memory="15Gi", pods=9) == trial_of(seen(node, by_claim)).rooms[0].free
    assert resources(cpu="3900m", memory="16Gi", pods=58) == trial_of(seen(node, by_type)).rooms[0].free


def test_an_initialised_node_counts_only_what_it_shows() -> None:
    """What its claim once promised is no longer believed."""
    node = a_node(allocatable={"cpu": 3, "pods": 5}, provider_id="i-1")
    claim = a_claim(provider_id="i-1", allocatable=resources(cpu=4, memory="15Gi"))

    assert resources(cpu=3, pods=5) == trial_of(seen(node, claim)).rooms[0].free


def test_a_resource_that_only_the_claim_knows_is_not_bought_twice() -> None:
    """A NodeOverlay's resource is in no catalogue; the node on its way has as much as its pods asked."""
    claim = a_claim(reached=(), requests=Resources({"smarter-devices/fuse": 1}))

    assert 1 == trial_of(seen(claim)).rooms[0].free["smarter-devices/fuse"]


def test_startup_taints_of_a_starting_node_are_looked_through() -> None:
    """They go by themselves until Initialized; then they count."""
    startup = Taint("cni", "", "NoExecute")
    not_ready = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")
    node = a_node(provider_id="i-1", taints=(startup, not_ready))
    claim = a_claim(provider_id="i-1", reached=(LAUNCHED, REGISTERED), startup_taints=(startup,))

    assert () == trial_of(seen(node, claim)).spots[0].target.taints
    assert (startup, not_ready) == trial_of(seen(node, replace(claim, conditions=a_claim().conditions))).spots[
        0
    ].target.taints


def test_daemons_that_are_still_to_come_are_taken_off() -> None:
    """A starting node will hold its DaemonSets' pods; one that runs there already is not counted twice."""
    daemon = a_daemon_set(cpu=1)
    running = a_pod("agent-x", cpu=1, node_name="node", owner=Owner("DaemonSet", "agent"))
    node, claim = a_node(provider_id="i-1"), a_claim(provider_id="i-1", reached=(LAUNCHED,))

    assert 3000 == trial_of(seen(node, claim, daemon)).rooms[0].free["cpu"]
    assert 3000 == trial_of(seen(node, claim, daemon, running)).rooms[0].free["cpu"]


@pytest.mark.parametrize("node", [None, a_node(provider_id="i-1")], ids=["in flight", "registered"])
def test_a_daemon_that_will_not_run_there_is_not_taken_off(node: Any) -> None:
    """Else the pods that a node was bought for would no longer fit on it, and another would be bought."""
    claim = a_claim(provider_id="i-1", reached=(LAUNCHED,))
    daemon = a_daemon_set(cpu=1, selector={"team": "a"})
    objects = [o for o in (node, claim, daemon) if o is not None]

    assert 4000 == trial_of(seen(*objects)).rooms[0].free["cpu"]


def test_placements_are_undone_to_a_mark() -> None:
    """What was placed since is forgotten, what was before stays."""
    trial = trial_of(seen(a_node()))
    first, second = group([a_pod("a", cpu=1)])[0], group([a_pod("b", cpu=2)])[0]
    trial.place(first)
    mark = trial.mark()
    trial.place(second)

    trial.undo_to(mark)

    assert 3000 == trial.rooms[0].free["cpu"]
    assert ({}, first.pods) != trial.place(first)


def test_pods_that_do_not_fit_are_given_back() -> None:
    """Placed by key, and the rest in queue order."""
    placed, left = trial_of(seen(a_node())).place(group(some(6, cpu=1))[0])

    assert ["default/p-0", "default/p-1", "default/p-2", "default/p-3"] == sorted(placed)
    assert ["default/p-4", "default/p-5"] == [pod.key for pod in left]


def test_hami_fills_the_fuller_node_first() -> None:
    """Among nodes that fit, HAMi's binpack decides, and the trial foresees it."""
    claims = [in_flight(name, planned_pods={f"default/{name}": [0]}) for name in ("a", "b")]
    pods = [a_pod("b", gpu=1, gpumem=8000), a_pod("new", gpu=1, gpumem=1000)]

    decided = _decided(seen(a_hami_pool(), *claims, *pods))

    assert {"default/b": "b", "default/new": "b"} == {p.pod.pod: p.node for p in decided.placements}


def test_nodes_can_be_left_out() -> None:
    """Consolidation asks what would be without one of them."""
    snapshot = seen(a_node("a"), a_node("b"))

    assert ["b"] == [spot.cluster_node.name for spot in trial_of(snapshot, without=frozenset({"a"})).spots]


# Cards that HAMi gives out.


def hami_card(*pods: Pod) -> ClusterSnapshot:
    """A node with one card of 22888 MiB and pods that wait, in their order."""
    waiting = [replace(pod, created_s=float(number), unschedulable="0/1 nodes") for number, pod in enumerate(pods)]
    state = ClusterState(assume_node_classes=True)
    values: list[Watched] = [a_hami_node(a_node(instance_type="g5.xlarge")), a_hami_pool(), *waiting]
    for value in values:
        state.apply(Upserted(value))
    return state.snapshot(NOON_S, state.pending())


def booking(mib: int, node: str = "node") -> dict[str, str]:
    """What HAMi's filter writes on a pod before it binds it."""
    return {NODE: node, ALLOCATED: f"gpu-0,NVIDIA,{mib},0:;"}


def where(snapshot: ClusterSnapshot) -> dict[str, str]:
    """By pod the node it goes to, or `bought`."""
    decided = plan(snapshot, MARKET)
    found = {placement.pod.pod: placement.node for placement in decided.placements}
    found.update({placed.pod: "bought" for launch in decided.launches for placed in launch.pods})
    return {key.partition("/")[2]: node for key, node in sorted(found.items())}


def test_pods_that_hami_places_come_in_queue_order() -> None:
    """Shape by shape the second would find all cores taken, and a node would be bought for it."""
    pods = [a_pod("p0", gpu=1, gpumem=1000, cores=50), a_pod("p1", gpu=1, gpumem=1000)]
    pods.append(replace(pods[0], name="p2"))

    assert {"p0": "node", "p1": "node", "p2": "node"} == where(hami_card(*pods))


def test_a_pod_that_comes_too_late_for_its_card_is_bought_for() -> None:
    """In this order HAMi refuses the last."""
    first = a_pod("p0", gpu=1, gpumem=1000, cores=50)
    pods = [first, replace(first, name="p1"), a_pod("p2", gpu=1, gpumem=1000)]

    assert {"p0": "node", "p1": "node", "p2": "bought"} == where(hami_card(*pods))


def test_what_hami_has_booked_for_a_pod_is_that_pods() -> None:
    """It is bound within seconds. Another that is older, and would fit there instead, gets another node."""
    booked = a_pod("booked", gpu=1, gpumem=20000, annotations=booking(20000))

    assert {"booked": "node", "other": "bought"} == where(hami_card(a_pod("other", gpu=1, gpumem=20000), booked))


def test_a_booking_on_a_node_that_is_gone_counts_for_nothing() -> None:
    """HAMi chooses again."""
    booked = a_pod("booked", gpu=1, gpumem=20000, annotations=booking(20000, "gone"))

    assert {"booked": "node"} == where(hami_card(booked))


BESIDE_GONE = PodAffinity((PodAffinityTerm(HOSTNAME, Requirements.of_labels({"app": "gone"})),))


def _of_two_sizes(pod: Pod) -> tuple[Trial, Shape]:
    sizes: list[dict[str, Any]] = [{"cpu": 2 + number % 2, "memory": "8Gi", "pods": 9} for number in range(20)]
    nodes = [ClusterNode(a_node(f"n{number}", allocatable=size), None) for number, size in enumerate(sizes)]
    return Trial(a_snapshot(nodes=nodes, pods=[pod]), MARKET), Shape((pod,))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes that are asked, in order."""
    names: list[str] = []

    def counted(target: Any, *given: Any) -> Any:
        names.append(target.name.name)
        return fit(target, *given)

    monkeypatch.setattr(trial, "fit", counted)
    return names


def test_no_node_is_asked_for_pods_that_must_be_with_one_that_is_nowhere(asked: list[str]) -> None:
    """Where no such pod is, no node can let them in."""
    nodes, shape = _of_two_sizes(a_pod("p", cpu=1, pod_affinity=BESIDE_GONE))

    assert ({}, shape.pods) == nodes.place(shape)
    assert not asked


def test_only_nodes_with_room_for_one_pod_more_are_asked() -> None:
    """Whether it lacks cpu, memory or places; one that has all three is asked, and takes as many pods as places."""
    full: dict[str, Any] = {"cpu": 8, "memory": "8Gi", "pods": 9}
    sizes = [full | lack for lack in ({"cpu": 0}, {"memory": "0"}, {"pods": 0}, {"pods": 1})]
    nodes = [ClusterNode(a_node(f"n{number}", allocatable=size), None) for number, size in enumerate(sizes)]
    pods = some(2, cpu=1, memory="1Gi")
    held, shape = Trial(a_snapshot(nodes=nodes, pods=pods), MARKET), Shape(tuple(pods))
    roomy = [held.spots[index].cluster_node.name for index in held.roomy(shape.requests)]
    found, left = held.place(shape)

    assert ["n3"] == roomy
    assert {pods[0].key: "n3"} == {key: placement.node for key, placement in found.items()}
    assert (pods[1],) == left


def test_of_equal_nodes_without_room_one_is_asked_for_pods_that_go_by_others(asked: list[str]) -> None:
    """It is the first by name, and the nearest of all."""
    nodes, shape = _of_two_sizes(a_pod("p", cpu=9, pod_affinity=BESIDE_GONE))
    found = nodes.nearest(shape)

    assert 2 >= len(asked)
    assert min(nodes.misfits(shape), key=lambda misfit: misfit.order) == found


def test_a_node_as_it_is_gives_its_answer_once() -> None:
    """Pods of one kind get the same object; one of another kind, or with less room left, is asked for anew."""
    spot = trial_of(seen(a_hami_pool(), a_hami_node(a_node(instance_type="g5.xlarge")))).spots[0]
    pods = some(2, gpu=1, gpumem=8_000)
    first, second = (Shape((pod,)) for pod in pods)
    other = Shape((replace(pods[0], spec=port_spec(80)),))

    assert spot.fit(spot.room, first) is spot.fit(spot.room, second)
    assert fit(spot.target, spot.room, other) == spot.fit(spot.room, other)
    assert spot.fit(spot.room, first) == spot.fit(replace(spot.room), first)
    assert spot.fit(spot.room, first) is not spot.fit(replace(spot.room), first)
