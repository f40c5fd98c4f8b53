"""Pods that join nodes which are there beside bought ones: by the rules read plainly, each can be bound in its turn."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.decide import place_and_buy
from kerf.engine.options import DEFAULT
from kerf.engine.outcome import Outcome
from kerf.engine.place.shapes import queue_order
from kerf.engine.world import World
from kerf.model.constraints import HOSTNAME, ZONE, Requirements
from kerf.model.nodes import Node
from kerf.model.pods import RUNNING, Pod
from kerf.model.quantities import CPU, MEMORY, PODS, Resources
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type
from tests.examples import examples
from tests.property.test_topology import Places, allowed, there

ZONES = ("1", "2", "3", "4")
MARKET = a_market(an_instance_type("small", cpu=4, price="0.2", zones=ZONES))
BOUNDED = examples(80, derandomize=True)


def labelled(name: str) -> Requirements:
    """A selector of the label."""
    return Requirements.of_labels({"app": name})


@st.composite
def wishes(draw: st.DrawFn) -> dict[str, Any]:
    """What the pods of a workload ask: mostly to be even over zones, or near others."""
    asked: dict[str, Any] = {
        "cpu": draw(st.sampled_from(["500m", 1, 3])),
        "labels": {"app": draw(st.sampled_from("ab"))},
    }
    if draw(st.integers(0, 2)):
        means, least = labelled(draw(st.sampled_from("ab"))), draw(st.sampled_from([1, 1, 2, 3]))
        asked["spread"] = (TopologySpreadConstraint(ZONE, draw(st.sampled_from([1, 1, 2])), means, min_domains=least),)
    if draw(st.integers(0, 2)) == 0:
        asked["pod_affinity"] = PodAffinity((PodAffinityTerm(ZONE, labelled(draw(st.sampled_from("ab")))),))
    if draw(st.integers(0, 4)) == 0:
        key = draw(st.sampled_from([ZONE, HOSTNAME]))
        asked["pod_anti_affinity"] = PodAffinity((PodAffinityTerm(key, labelled(draw(st.sampled_from("ab")))),))
    asked["priority"] = draw(st.sampled_from([0, 0, 1]))
    return asked


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """One to four nodes in some of the zones for sale, with more or less room, and pods that run and wait."""
    nodes = []
    for number in range(draw(st.integers(1, 4))):
        size: dict[str, str | int] = {CPU: draw(st.sampled_from(["100m", "2", "4", "8"])), MEMORY: "16Gi", PODS: 20}
        nodes.append(a_node(f"n{number}", labels={ZONE: draw(st.sampled_from("112"))}, allocatable=size))
    kinds = draw(st.lists(wishes(), min_size=1, max_size=3))
    there_already = enumerate(draw(st.lists(st.sampled_from(kinds), max_size=3)))
    placed = (
        a_pod(f"r{number}", node_name=draw(st.sampled_from(nodes)).name, phase=RUNNING, **kind)
        for number, kind in there_already
    )
    pods = [replace(pod, spec=a_pod().spec) for pod in placed]
    pods += [a_pod(f"w{number}", **draw(st.sampled_from(kinds))) for number in range(draw(st.integers(1, 14)))]
    return World(a_snapshot(pools=[a_pool()], nodes=nodes, pods=pods), MARKET)


def bought_nodes(made: Outcome) -> dict[str, Node]:
    """The nodes of the launches, by their names, with the labels that they are planned with."""
    return {
        launch.name: a_node(
            launch.name, instance_type=launch.offering.instance_type, labels={ZONE: launch.offering.zone}
        )
        for launch in made.launches
    }


@given(worlds())
@BOUNDED
def test_what_is_planned_can_be_bound_round_after_round(world: World) -> None:
    """In queue order, pods that were refused again once others have come; those with a place at once are there."""
    made = place_and_buy(world, DEFAULT)
    waiting = {pod.key: pod for pod in world.snapshot.pending}
    joined = {pod.key for _, _, pod in made.places.joined}
    nodes = {each.name: each.node for each in world.snapshot.nodes if each.node is not None} | bought_nodes(made)
    planned = {key: placement.node for key, placement in made.places.found.items()}
    planned |= {placed.pod: launch.name for launch in made.launches for placed in launch.pods}
    at_once = made.places.found.keys() - joined
    places: Places = [*there(world.snapshot), *((waiting[key], planned[key]) for key in sorted(at_once))]
    left = sorted((waiting[key] for key in planned.keys() - at_once), key=queue_order)

    assert [] == bind(left, planned, places, nodes)
    assert [] == overfull(places, nodes)


def bind(left: list[Pod], planned: dict[str, str], places: Places, nodes: dict[str, Node]) -> list[str]:
    """Those that can be bound nowhere they are planned; `places` get the others."""
    while True:
        bound = set[str]()
        for pod in left:
            if planned[pod.key] in allowed(pod, places, nodes):
                places.append((pod, planned[pod.key]))
                bound.add(pod.key)
        left = [pod for pod in left if pod.key not in bound]
        if not bound:
            return [pod.key for pod in left]


def overfull(places: Places, nodes: dict[str, Node]) -> list[str]:
    """Nodes whose pods that have come ask for more than there is."""
    asked = {name: Resources.total((pod.spec.requests, 1) for pod, at in places if at == name) for name in nodes}
    return [name for name, at in nodes.items() if asked[name].shortfall(at.allocatable)]


@given(worlds())
@BOUNDED
def test_each_pod_has_one_place_or_one_refusal(world: World) -> None:
    """No node is bought for a pod that joins another."""
    made = place_and_buy(world, DEFAULT)
    refused = [pod.key for each in made.refusals for pod in each.pods]
    bought = [placed.pod for launch in made.launches for placed in launch.pods]

    assert sorted(pod.key for pod in world.snapshot.pending) == sorted([*refused, *made.places.found, *bought])
