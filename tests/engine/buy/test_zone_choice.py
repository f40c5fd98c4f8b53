"""Pods that may run in several zones leave a younger one the zone that only it can have."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from kerf.model.constraints import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.instancetypes import ON_DEMAND
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.model.topology import PodAffinity, PodAffinityTerm, TooNear, TopologySpreadConstraint, Unwelcome
from kerf.testing.builders import a_pod, a_pool, an_instance_type
from tests.engine.buy.test_bought_in_order import Spot, checked, unbound
from tests.engine.worlds import only_unplaced, planned, refused

ZONES = ("za", "zb", "zc")
TYPES = [an_instance_type(f"cpu-{cpu}", cpu=cpu, price=f"0.{cpu}", zones=ZONES) for cpu in (2, 4, 8)]


def asking(
    name: str, labels: str = "", away: str = "", near: str = "", even: str = "", zones: str = "abc", at: float = 0
) -> Pod:
    """A pod with one-letter labels that came at a time and may run in some zones.

    Each letter of `away`, `near` and `even` is a label whose pods it wants in other zones, in its own, or in all alike.
    """

    def terms(found: str) -> PodAffinity:
        return PodAffinity(tuple(PodAffinityTerm(ZONE, Requirements.of_labels({label: "1"})) for label in found))

    spread = tuple(TopologySpreadConstraint(ZONE, 1, Requirements.of_labels({label: "1"})) for label in even)
    asked = {"pod_anti_affinity": terms(away), "pod_affinity": terms(near), "spread": spread}
    pod = a_pod(name, labels=dict.fromkeys(labels, "1"), cpu=1, created_s=at, **asked)  # type: ignore[arg-type]
    if zones == "abc":
        return pod
    selector = Requirements([Requirement.of(ZONE, "In", [f"z{each}" for each in zones])])
    return replace(pod, spec=replace(pod.spec, node_selector=selector))


def made(pods: Sequence[Pod]) -> Plan:
    """The plan with three types in three zones."""
    return planned(pods, [a_pool()], TYPES)


def zones(plan: Plan) -> dict[str, str]:
    """The last letter of the zone of each pod, by name."""
    found = {placed.pod: each.offering.zone[-1] for each in plan.launches for placed in each.pods}
    return {key.removeprefix("default/"): found[key] for key in sorted(found)}


def test_a_pod_with_a_choice_leaves_the_zone_of_one_that_must_be_away_from_it() -> None:
    """`old` would take the first zone, which is the only one of `young`."""
    plan = made([asking("old", "x"), asking("young", away="x", zones="a", at=1)])

    assert [] == refused(plan)
    assert {"old": "b", "young": "a"} == zones(plan)


def test_a_pod_with_a_choice_leaves_the_zone_of_one_that_it_must_be_away_from() -> None:
    """The same where the older one asks for it."""
    plan = made([asking("old", away="x"), asking("young", "x", zones="a", at=1)])

    assert [] == refused(plan)
    assert {"old": "b", "young": "a"} == zones(plan)


def test_pods_are_let_through_one_after_the_other() -> None:
    """`old` leaves zone a to `second` and zone b to `third`, which asks for it next."""
    plan = made([asking("old", "x"), asking("second", away="x", zones="a", at=1), asking("third", away="x", zones="b")])

    assert {"old": "c", "second": "a", "third": "b"} == zones(plan)


def test_a_pod_with_a_choice_goes_where_a_younger_one_wants_its_company() -> None:
    """`young` can only be in zone c, and must be with an `x`."""
    plan = made([asking("old", "x"), asking("young", near="x", zones="c", at=1)])

    assert {"old": "c", "young": "c"} == zones(plan)


def test_company_is_sought_where_nothing_else_stands_against_it() -> None:
    """`young` must be with an `o` and away from the `x`; so the `o` goes where that is not."""
    plan = made([asking("x", "x"), asking("o", "o", at=1), asking("young", near="o", away="x", at=2)])

    found = zones(plan)
    assert found["young"] == found["o"] != found["x"]


def test_a_pod_with_a_choice_goes_where_a_spread_lacks_one() -> None:
    """An `x` in zone a may only come once zone b, where a node is, has one too."""
    pods = [asking("old", "x"), asking("b", zones="b"), asking("young", "x", even="x", zones="ab", at=1)]
    third = asking("third", "x", even="x", zones="a", at=2)

    plan = made([*pods, third])

    assert [] == refused(plan)
    assert [] == checked(plan, [*pods, third], (), ())


def test_a_pod_that_no_order_helps_is_refused_for_what_stands_against_it() -> None:
    """Both are of one zone: the younger is refused, and the older has its place."""
    plan = made([asking("old", "x", zones="a"), asking("young", away="x", zones="a", at=1)])

    assert {"old": "a"} == zones(plan)
    assert isinstance(only_unplaced(plan).cause, TooNear)


def test_of_equal_pods_the_youngest_is_refused() -> None:
    """Four that keep off each other in three zones."""
    plan = made([asking(f"p{at}", "x", away="x", at=at) for at in (2, 0, 3, 1)])

    assert ["default/p3"] == refused(plan)
    assert isinstance(only_unplaced(plan).cause, TooNear | Unwelcome)


def test_no_pod_loses_its_place_to_ones_of_lower_priority() -> None:
    """Without `high` three pods had a place in its stead."""
    high = asking("high", "x", zones="a", at=9)
    high = replace(high, spec=replace(high.spec, priority=1))
    low = [asking(f"low{number}", away="x", zones="a") for number in range(3)]

    plan = made([high, *low])

    assert {"high": "a"} == zones(plan)
    assert 3 == len(refused(plan))


def test_no_pod_loses_its_place_to_younger_ones_however_many() -> None:
    """Else two pods of one tenant would keep another's from ever getting a node."""
    old = asking("old", "x", zones="a")
    young = [asking(f"young{number}", away="x", zones="a", at=9) for number in range(3)]

    plan = made([old, *young])

    assert ({"old": "a"}, 3) == (zones(plan), len(refused(plan)))


def test_a_pod_of_higher_priority_leaves_a_zone_that_it_does_not_need() -> None:
    """Both have a place, and the one of higher priority is bound first."""
    high = asking("high", "x")
    high = replace(high, spec=replace(high.spec, priority=1))

    plan = made([high, asking("low", away="x", zones="a")])

    assert {"high": "b", "low": "a"} == zones(plan)


def test_a_preference_that_another_place_leaves_is_kept() -> None:
    """The older pod goes elsewhere before the younger one gives up the larger type that it prefers."""
    young = asking("young", away="x", zones="a", at=1)
    larger = ((10, Requirements.of_labels({INSTANCE_TYPE: "cpu-8"})),)
    plan = made([asking("old", "x"), replace(young, spec=replace(young.spec, preferred=larger))])

    assert [] == refused(plan)
    assert ["cpu-8"] == [each.offering.instance_type for each in plan.launches if each.pods[0].pod.endswith("young")]
    assert not any("preference" in note for note in plan.notes)


# Against a search of every plan.


def random_pods(seed: int, near: float = 0.0, even: float = 0.0) -> list[Pod]:
    """Five pods, half of which keep off others; so many in one want company or are spread. Drawn from the seed."""
    draw = Random(seed)
    pods = []
    for number in range(5):
        labels = "".join(label for label in "oxy" if draw.random() < 0.4)
        away, company, spread = (draw.choice("oxy") if draw.random() < each else "" for each in (0.45, near, even))
        may = "".join(sorted(draw.sample("abc", draw.choice((1, 1, 2))))) if draw.random() < 0.4 else "abc"
        pods.append(asking(f"p{number}", labels, away, company, spread, may, float(draw.randrange(3))))
    return pods


def can_bind(pods: Sequence[Pod]) -> bool:
    """Whether the scheduler can bind all of them in some zones; each has a node of its own."""
    may = [[zone for zone in ZONES if pod.spec.node_selector.unsatisfied_by({ZONE: zone}) is None] for pod in pods]
    for chosen in product(*may):
        labels = [{HOSTNAME: f"n{n}", ZONE: zone, CAPACITY_TYPE: ON_DEMAND} for n, zone in enumerate(chosen)]
        spots = [Spot(each) for each in labels]
        if not unbound(pods, {pod.key: spot for pod, spot in zip(pods, spots, strict=True)}, spots):
            return True
    return False


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(50, 1000, 50))])
def test_no_plan_has_a_place_for_one_more(first: int) -> None:
    """Of 50 clusters whose pods keep off others by zone: no choice of zones holds all that are placed and one more."""
    for seed in range(first, first + 50):
        pods = random_pods(seed)
        plan = made(pods)
        left = refused(plan)
        placed = [pod for pod in pods if pod.key not in left]

        assert not any(can_bind([*placed, pod]) for pod in pods if pod.key in left), seed
        assert [] == checked(plan, pods, (), ()), seed


LEFT = (98, 140, 244, 285)
"""Clusters of which one pod is left all the same: others keep off those that it seeks, or are spread with them."""


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(50, 400, 50))])
def test_hardly_any_is_left_where_some_plan_has_a_place_for_all(first: int) -> None:
    """Of 50 clusters whose pods also want company and are spread; in queue order alone 15 of the first 100 are left."""
    seeds = range(first, first + 50)
    clusters = {seed: random_pods(seed, near=0.2, even=0.25) for seed in seeds}
    plans = {seed: made(pods) for seed, pods in clusters.items()}

    assert [] == [key for seed, plan in plans.items() for key in checked(plan, clusters[seed], (), ())]
    short = [seed for seed, plan in plans.items() if refused(plan) and can_bind(clusters[seed])]
    assert [seed for seed in LEFT if seed in seeds] == short
