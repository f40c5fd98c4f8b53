"""As how many kinds of pods a pod counts, for what its spec says."""

from typing import Any

import pytest

from kerf.engine.decide import decide
from kerf.engine.explain.plan import explain
from kerf.engine.place.weights import MOST, MOST_ENTRIES, weight_of
from kerf.engine.world import World
from kerf.model.causes import AsksTooMuch
from kerf.model.constraints import HOSTNAME, Requirement, Requirements, Toleration
from kerf.model.pods import PodSpec
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type, resources

WEB = Requirements.of_labels({"app": "web"})


def label(number: int) -> Requirements:
    """A term of node affinity like no other."""
    return Requirements.of_labels({"team": f"t{number}"})


def away(number: int) -> PodAffinityTerm:
    """A term of anti-affinity like no other."""
    return PodAffinityTerm(HOSTNAME, Requirements.of_labels({"app": f"a{number}"}))


LISTS: dict[str, Any] = {
    "terms": lambda n: {"affinity": tuple(map(label, range(n)))},
    "preferred terms": lambda n: {"preferred": tuple((1, label(each)) for each in range(n))},
    "expressions": lambda n: {"affinity": (Requirements(Requirement.of(f"k{k}", "Exists") for k in range(n)),)},
    "a selector": lambda n: {"node_selector": Requirements.of_labels({f"k{each}": "v" for each in range(n)})},
    "values": lambda n: {"affinity": (Requirements([Requirement.of("k", "In", map(str, range(n)))]),)},
    "tolerations": lambda n: {"tolerations": tuple(Toleration(f"k{each}") for each in range(n))},
    "gates": lambda n: {"scheduling_gates": tuple(map(str, range(n)))},
    "volumes": lambda n: {"claims": tuple(map(str, range(n)))},
    "anti-affinity": lambda n: {"pod_anti_affinity": PodAffinity(tuple(map(away, range(n))))},
    "affinity": lambda n: {"pod_affinity": PodAffinity(tuple(map(away, range(n))))},
    "preferred anti-affinity": lambda n: {
        "pod_anti_affinity": PodAffinity(preferred=tuple((1, away(each)) for each in range(n)))
    },
    "spread": lambda n: {"spread": tuple(TopologySpreadConstraint(f"k{k}", 1, WEB) for k in range(n))},
}


@pytest.mark.parametrize("what", LISTS)
def test_each_list_of_a_spec_counts_from_some_length_on(what: str) -> None:
    """No list that a manifest may make long is free, and what any workload has counts as one."""
    usual, long = (a_pod(**LISTS[what](n)).spec for n in (3, 5000))

    assert 1 == weight_of(usual)
    assert 5 < weight_of(long)


def test_containers_and_resources_count() -> None:
    """Of each container what it asks."""
    asked = resources(**{f"r{n}": 1 for n in range(1000)})
    spec = a_pod().spec

    assert 20 < weight_of(PodSpec((*spec.containers, *(spec.containers[0],) * 999)))
    assert 20 < weight_of(a_pod(pod_requests=asked, **LISTS["terms"](1000)).spec)


def test_constraints_on_other_pods_weigh_most() -> None:
    """Each is counted over all nodes: a thousand are worth a whole pass."""
    assert 400 < weight_of(a_pod(**LISTS["anti-affinity"](1000)).spec) < MOST
    assert weight_of(a_pod(**LISTS["terms"](1000)).spec) < 100


def test_a_pod_that_asks_too_much_is_refused_with_its_cause_and_others_are_served() -> None:
    """It says how long it is, how long it may be and what to do; nothing is bought for it."""
    long = a_pod("long", cpu=1, **LISTS["spread"](8000))
    plan = explain(decide(World(a_snapshot(pools=[a_pool()], pods=[long, a_pod("p", cpu=1)]), MARKET)))
    (refused,) = plan.unplaced

    assert ["default/p"] == [pod.pod for launch in plan.launches for pod in launch.pods]
    assert AsksTooMuch(128_004, 8000, MOST_ENTRIES) == refused.cause
    assert (
        f"the pod's spec counts as 128004 entries, 8000 constraints on other pods among them; "
        f"Kerf plans for at most {MOST_ENTRIES}"
    ) == refused.reason
    assert "fewer terms" in refused.hint


MARKET = a_market(an_instance_type())


def test_a_pod_just_below_the_bound_is_planned_for() -> None:
    """Alone it is served."""
    long = a_pod("long", cpu=1, **LISTS["tolerations"](20_000))
    plan = decide(World(a_snapshot(pools=[a_pool()], pods=[long]), MARKET))

    assert weight_of(long.spec) < MOST
    assert 1 == len(plan.launches)
