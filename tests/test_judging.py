"""The benchmarks' judge of plans: it finds what is wrong with one, by every rule that it knows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from benchmarks import diverse, judging
from kerf.model.constraints import HOSTNAME, ZONE, Requirements
from kerf.model.instancetypes import ON_DEMAND, OfferingKey
from kerf.model.plan import Launch, PlacedPod
from kerf.model.pods import Pod
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_pod

WEB = Requirements.of_labels({"app": "web"})
APART = {"pod_anti_affinity": PodAffinity((PodAffinityTerm(HOSTNAME, WEB),))}
TOGETHER = {"pod_affinity": PodAffinity((PodAffinityTerm(ZONE, WEB),))}
EVEN = {"spread": (TopologySpreadConstraint(ZONE, 1, WEB),)}
MARKET = diverse.types(4)


def launched(name: str, zone: str, *pods: Pod, cores: int = 4) -> Launch:
    """A node with these pods."""
    offering = OfferingKey(f"fake-it-{cores - 1}", zone, ON_DEMAND)
    return Launch(name, "pool", offering, 0, tuple(PlacedPod(pod.key, ()) for pod in pods), Requirements())


def webs(count: int, **given: Any) -> list[Pod]:
    """So many equal pods of one core."""
    return [a_pod(f"web-{n}", cpu=1, memory="1Gi", labels={"app": "web"}, **given) for n in range(count)]


def judged(pods: list[Pod], *places: list[Pod], zones: str = "123") -> list[str]:
    """Who is wrong where each node, in a zone of its own or that of `zones`, has these pods."""
    launches = [launched(f"n{n}", f"test-zone-{zones[n]}", *held) for n, held in enumerate(places)]
    return judging.wrong(launches, pods, MARKET)


@pytest.mark.parametrize("relations", [APART, TOGETHER, EVEN])
def test_a_plan_that_holds_has_nothing_wrong(relations: dict[str, Any]) -> None:
    """Two pods apart or evenly spread on two nodes, or together in one zone."""
    first, second = pods = webs(2, **relations)

    assert [] == judged(pods, [first], [second], zones="11" if relations is TOGETHER else "12")


@pytest.mark.parametrize(
    "relations, place",
    [
        (APART, lambda pods: ([pods[0], pods[1]], [pods[2]])),
        (TOGETHER, lambda pods: ([pods[0], pods[2]], [pods[1]])),
        (EVEN, lambda pods: ([pods[0], pods[1]], [pods[2]])),
    ],
)
def test_a_pod_against_which_another_stands_is_wrong(
    relations: dict[str, Any], place: Callable[[list[Pod]], tuple[list[Pod], ...]]
) -> None:
    """The second in queue order, where the three have two nodes in two zones."""
    pods = webs(3, **relations)
    third_first = [pods[0], pods[2], pods[1]] if relations is EVEN else pods

    wrong = judged(pods, *place(third_first), [], zones="123")

    assert ["default/web-1" if relations is not EVEN else "default/web-2"] == wrong


def test_a_pod_that_keeps_others_off_is_asked_too() -> None:
    """The second asks for nothing, and the first is there."""
    pods = [*webs(1, **APART), replace(webs(2)[1])]

    assert ["default/web-1"] == judged(pods, pods)


def test_a_node_that_is_too_small_is_wrong() -> None:
    """Four pods of a core on four cores, of which kubelet keeps a tenth for itself."""
    pods = webs(4)

    assert ["default/web-3"] == judged(pods, pods)


def test_a_pod_that_is_planned_twice_is_no_plan() -> None:
    """Nor is an offering that nobody sells."""
    pods = webs(1)

    with pytest.raises(ValueError, match="1 pods on launches of 2"):
        judged(pods, pods, pods)
    with pytest.raises(ValueError, match="not for sale"):
        judging.wrong([launched("n0", "test-zone-9", *pods)], pods, MARKET)
