"""A node on its way that was bought for a pod is its place, as long as other pods let it in there."""

from dataclasses import replace
from typing import Any

from kerf.engine.place.shapes import Readings, group
from kerf.engine.place.trial import Trial
from kerf.engine.placing import find_places
from kerf.model.constraints import HOSTNAME, ZONE
from kerf.model.nodeclaim import LAUNCHED, REGISTERED, TRUE, Condition, NodeClaim
from kerf.model.pods import Pod
from kerf.model.promises import Promises, written
from kerf.testing.builders import a_claim, a_market, a_snapshot, an_instance_type
from tests.engine.place.test_topology import away, near, node, spread, web

KIND = an_instance_type("small", cpu=4, zones=("za", "zb"))
FULL = {"allocatable": {"cpu": "0", "pods": 10}}


def coming(name: str, zone: str, *pods: str) -> NodeClaim:
    """A claim of a zone that was bought for pods."""
    promised = written(Promises({f"default/{pod}": () for pod in pods}))
    return a_claim(name, instance_type="small", reached=(LAUNCHED,), labels={ZONE: zone}, annotations=promised)


def places(pods: list[Pod], *claims: NodeClaim, nodes: tuple[Any, ...] = ()) -> dict[str, str]:
    """Pods with a place and the names of their nodes."""
    snapshot = a_snapshot(nodes=nodes, pods=pods, claims=claims)
    found = find_places(Trial(snapshot, a_market(KIND)), group(snapshot.pending, Readings.of(snapshot)), {}).found
    return {key.split("/")[1]: placed.node for key, placed in found.items()}


def test_promises_hold_in_whichever_order_they_can() -> None:
    """Two of each zone: taken claim by claim the second of zone a would be refused."""
    waiting = [web(name, **spread()) for name in ("a", "b", "c", "d")]

    found = places(waiting, coming("first", "za", "a", "b"), coming("second", "zb", "c", "d"))

    assert {"a": "first", "b": "first", "c": "second", "d": "second"} == found


def test_a_promise_that_pods_bound_meanwhile_break_is_none() -> None:
    """Two more run in zone a, and zone b has none: the pod would be the third."""
    nodes = (node("n", "za", **FULL), node("m", "zb", **FULL))
    running = [web("x", at="n"), web("y", at="n")]

    assert {} == places([web("p", **spread()), *running], coming("claim", "za", "p"), nodes=nodes)


def test_a_broken_promise_leaves_its_room_to_others() -> None:
    """A web pod that runs in the zone keeps the promised one off; another takes the room, which is all there is."""
    nodes = (node("n", "za", **FULL),)
    waiting = [web("p", cpu=3, **away(ZONE)), web("q", labels={}, cpu=3), web("x", at="n")]

    assert {"q": "claim"} == places(waiting, coming("claim", "za", "p"), nodes=nodes)


def test_of_several_promises_one_is_enough() -> None:
    """The first is broken; the pod was bought for again, and is not a third time."""
    nodes = (node("n", "za", **FULL),)
    waiting = [web("p", **away(ZONE)), web("x", at="n")]

    assert {"p": "second"} == places(waiting, coming("first", "za", "p"), coming("second", "zb", "p"), nodes=nodes)


def test_a_promise_beside_a_pod_that_still_has_to_come_holds() -> None:
    """The pod must be near one that goes to a node that is there, and that comes after it in the queue."""
    nodes = (node("n", "za"),)
    waiting = [web("p", labels={}, priority=1, cpu=3, **near()), web("q")]

    found = places(waiting, coming("claim", "za", "p"), nodes=nodes)

    assert {"p": "claim", "q": "n"} == found


def test_promised_pods_that_share_a_node_let_each_other_in() -> None:
    """Both must be beside a web pod on one node: the one that is such a pod comes first."""
    waiting = [web("p", labels={}, **near(HOSTNAME)), web("q", **near(HOSTNAME))]

    assert {"p": "claim", "q": "claim"} == places(waiting, coming("claim", "za", "p", "q"))


def test_a_plan_that_is_half_carried_out_is_judged_in_its_order() -> None:
    """p, q are to be bound before x, which only counts: x has come first, for its own node was there first.

    The claim of p is not broken as long as x's node is not open to all.
    """
    own = coming("first", "za", "x")
    joined = replace(own, node_name="n", conditions=tuple(Condition(s, TRUE, s) for s in (LAUNCHED, REGISTERED)))
    waiting = [web("p", **spread()), web("q", **spread())]
    there = (node("n", "za"), node("m", "zb", **FULL))

    found = places([*waiting, web("x", at="n", created_s=1)], joined, coming("claim", "za", "p"), nodes=there)

    assert "claim" == found["p"]
