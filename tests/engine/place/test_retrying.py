"""A pod that another one lets in waits for it, whichever is older: kube-scheduler tries again what it has refused."""

from typing import Any

import pytest

from kerf.engine.place.retrying import Retries
from kerf.engine.place.shapes import Shape
from kerf.engine.place.trial import Trial
from kerf.model.constraints import HOSTNAME, ZONE, Requirements
from kerf.model.pods import Pod
from kerf.model.topology import NotNear, TopologySpreadConstraint
from kerf.testing.builders import a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type
from tests.engine.place.test_topology import near
from tests.engine.worlds import planned

SMALL = an_instance_type("small", cpu=4, price="0.2", zones=("za", "zb"))
by_node_and_zone = pytest.mark.parametrize("key", [HOSTNAME, ZONE])


def links(count: int, key: str = HOSTNAME, *, is_first_oldest: bool = False) -> list[Pod]:
    """x-0, and each next one must be with the one before it; the last is the oldest unless the first is to be."""
    found = []
    for number in range(count):
        seeks = near(key, Requirements.of_labels({"app": f"x-{number - 1}"})) if number else {}
        age = float(number if is_first_oldest else -number)
        found.append(a_pod(f"x-{number}", labels={"app": f"x-{number}"}, cpu="100m", created_s=age, **seeks))
    return found


@by_node_and_zone
def test_a_pod_waits_for_a_younger_one_that_a_node_takes(key: str) -> None:
    """Both have their places on the node that is there, and none is bought for the older one."""
    plan = planned(links(2, key), [a_pool()], [SMALL], nodes=[a_node("n", labels={ZONE: "za"})])

    assert ((), {"default/x-0": "n", "default/x-1": "n"}) == (
        plan.unplaced,
        {placement.pod.pod: placement.node for placement in plan.placements},
    )
    assert () == plan.launches


def test_so_does_a_pod_that_waits_for_one_that_waits() -> None:
    """Of ten in a row the youngest is the only one that needs no other."""
    plan = planned(links(10), [a_pool()], [SMALL], nodes=[a_node("n")])

    assert (10, ()) == (len(plan.placements), plan.launches)


@by_node_and_zone
def test_nothing_is_bought_for_a_pod_whose_company_has_no_place(key: str) -> None:
    """x-0 asks for more than any node has: x-1 waits with it, and its reason says for whom."""
    first, second = links(2, key)
    huge = a_pod("x-0", labels=dict(first.labels), cpu=100)

    plan = planned([huge, second], [a_pool()], [SMALL], nodes=[a_node("n", labels={ZONE: "za"})])

    assert ((), ()) == (plan.launches, plan.placements)
    assert {"default/x-1"} == {each.pod for each in plan.unplaced if isinstance(each.cause, NotNear)}


def test_spread_lets_the_older_one_in_once_the_other_zone_has_one() -> None:
    """The older cannot go to zone b; once the younger is there, it may go to a, and nothing is bought."""
    web = Requirements.of_labels({"app": "web"})
    nodes = [a_node(name, labels={ZONE: zone}) for name, zone in (("a", "za"), ("b", "zb"))]
    there = a_pod("there", labels={"app": "web"}, node_name="a", phase="Running")
    asked: dict[str, Any] = {
        "labels": {"app": "web"},
        "cpu": "100m",
        "spread": (TopologySpreadConstraint(ZONE, 1, web),),
    }
    older = a_pod("older", selector={ZONE: "za"}, created_s=1.0, **asked)
    younger = a_pod("younger", created_s=2.0, **asked)

    plan = planned([there, older, younger], [a_pool()], [SMALL], nodes=nodes)

    assert {"default/older": "a", "default/younger": "b"} == {each.pod.pod: each.node for each in plan.placements}
    assert () == plan.launches


def test_only_shapes_that_a_placement_may_let_in_are_tried_again() -> None:
    """Of three that wait only the one that must be with the pod that came has another turn."""
    pods = links(3)
    trial = Trial(a_snapshot(nodes=[a_node("n")], pods=pods), a_market())
    shapes = [Shape((pod,)) for pod in reversed(pods)]
    retries, seen = Retries(trial.ledger, shapes), list[str]()
    for number, shape in retries.turns():
        seen.append(shape.pod.name)
        if shape.pod.name == "x-0":
            trial.place(shape)
            retries.come(shape)
        else:
            retries.wait(number, shape)

    assert ["x-2", "x-1", "x-0", "x-1"] == seen
