"""Nodes for pods that go by other pods: one rule of domains and of company a test."""

from collections import Counter
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from kerf.model.causes import LimitReached
from kerf.model.constraints import CAPACITY_TYPE, HOSTNAME, ZONE, Requirements
from kerf.model.instancetypes import ON_DEMAND, SPOT, Offering
from kerf.model.plan import RESERVE, Plan, Stage
from kerf.model.pods import RUNNING, Pod
from kerf.model.policies import COST, FIRST_FIT
from kerf.model.quantities import COST_PER_HOUR
from kerf.model.topology import AffinityCircle, NoRoomBeside, NotNear, SkewExceeded, TooNear
from kerf.testing.builders import a_node, a_pod, a_pool, an_instance_type
from tests.engine.place.test_topology import away, near, spread
from tests.engine.worlds import bought, only_unplaced, planned, refused, some

ZONES = ("za", "zb", "zc")
SMALL = an_instance_type("small", cpu=4, price="0.2", zones=ZONES)
LARGE = an_instance_type("large", cpu=16, price="0.8", zones=ZONES)
DB = Requirements.of_labels({"app": "db"})
both_strategies = pytest.mark.parametrize("strategy", [COST, FIRST_FIT])


def webs(count: int, name: str = "web", **given: Any) -> list[Pod]:
    """So many pods of one core with the label app=web."""
    return some(count, name, **{"labels": {"app": "web"}, "cpu": 1, **given})


def made(pods: list[Pod], strategy: str = COST, **given: Any) -> Plan:
    """The plan with a small and a large type in three zones."""
    pools = [a_pool(**given.pop("pool", {}))]
    return planned(pods, pools, given.pop("types", [SMALL, LARGE]), strategy, **given)


def by_zone(plan: Plan) -> dict[str, int]:
    """New pods of each zone."""
    found = Counter[str]()
    for launch in plan.launches:
        found[launch.offering.zone] += len(launch.pods)
    return dict(found)


def running(name: str, zone: str) -> dict[str, Any]:
    """A full node of a zone and a web pod there."""
    node = a_node(name, labels={ZONE: zone}, allocatable={"cpu": "100m"})
    return {"nodes": [node], "pods": [a_pod("old", labels={"app": "web"}, node_name=name, phase=RUNNING)]}


@both_strategies
def test_pods_are_spread_over_all_zones_for_sale(strategy: str) -> None:
    """Seven with maxSkew 1: three, two and two; each node names its zone, and is kept for its pods."""
    plan = made(webs(7, **spread()), strategy)

    assert [2, 2, 3] == sorted(by_zone(plan).values())
    for launch in plan.launches:
        assert {launch.offering.zone} == launch.requirements[ZONE].values
        assert RESERVE == launch.follow


def test_pods_that_run_count() -> None:
    """One is in zone a: the next two go to the others."""
    there = running("n", "za")

    assert {"zb": 1, "zc": 1} == by_zone(made([*webs(2, **spread()), *there["pods"]], nodes=there["nodes"]))


def test_a_domain_for_which_nothing_can_be_bought_bounds_the_others() -> None:
    """Zone d has a full node and no type: with none there, each other zone takes one."""
    nodes = [a_node("n", labels={ZONE: "zd"}, allocatable={"cpu": "100m"})]

    plan = made(webs(5, **spread()), nodes=nodes)

    assert {"za": 1, "zb": 1, "zc": 1} == by_zone(plan)
    assert {SkewExceeded} == {type(each.cause) for each in plan.unplaced}


def test_a_zone_that_is_sold_and_not_bought_bounds_no_other() -> None:
    """Two nodes are all that the limit allows: there are two zones then."""
    plan = made(webs(7, **spread()), types=[SMALL], pool={"limits": {"nodes": 2}})

    assert [3, 4] == sorted(by_zone(plan).values())
    assert [] == refused(plan)


def test_fewer_domains_than_asked_hold_maxskew_each() -> None:
    """MinDomains 4 of three zones: the fewest counts as 0."""
    plan = made(webs(5, **spread(min_domains=4)))

    assert {"za": 1, "zb": 1, "zc": 1} == by_zone(plan)


def test_pods_are_spread_over_capacity_types() -> None:
    """Any key that pools offer is a domain."""
    kind = an_instance_type("small", cpu=4, capacity_types=(SPOT, ON_DEMAND))

    plan = made(webs(4, **spread(CAPACITY_TYPE)), types=[kind], pool={"capacity_types": ()})

    assert [(ON_DEMAND, 2), (SPOT, 2)] == sorted((x.offering.capacity_type, len(x.pods)) for x in plan.launches)


@both_strategies
def test_spread_over_nodes_puts_maxskew_on_each(strategy: str) -> None:
    """Five with maxSkew 2 are three nodes."""
    assert [1, 2, 2] == sorted(pods for _, pods in bought(made(webs(5, **spread(HOSTNAME, 2)), strategy)))


@both_strategies
def test_pods_that_keep_each_other_off_have_a_node_each(strategy: str) -> None:
    """And the pods of others ride along."""
    plan = made([*webs(3, **away()), *some(3, "other", cpu=1)], strategy)

    assert 3 == len(plan.launches)
    assert all(1 == sum("web" in placed.pod for placed in launch.pods) for launch in plan.launches)


@both_strategies
def test_anti_affinity_holds_in_both_directions(strategy: str) -> None:
    """A web pod does not come where a pod is that keeps it off, nor the other way round."""
    plan = made([*webs(2), *some(2, "alone", cpu=1, **away())], strategy)

    for launch in plan.launches:
        assert 1 == len({placed.pod.split("-")[0] for placed in launch.pods})


def test_anti_affinity_over_zones_takes_one_zone_each() -> None:
    """The fourth of three zones has no place."""
    plan = made(webs(4, **away(ZONE)))

    assert {"za": 1, "zb": 1, "zc": 1} == by_zone(plan)
    assert isinstance(only_unplaced(plan).cause, TooNear)


@both_strategies
def test_pods_that_must_share_a_zone_do(strategy: str) -> None:
    """As many nodes as they need, of one zone."""
    plan = made(webs(30, **near()), strategy)

    assert [30] == list(by_zone(plan).values())


@both_strategies
def test_pods_that_must_share_a_node_get_the_one_that_holds_them(strategy: str) -> None:
    """Ten of one core: sixteen cores, though four are cheaper a core."""
    assert [("large", 10)] == bought(made(webs(10, **near(HOSTNAME)), strategy))


def test_more_than_one_node_holds_are_refused() -> None:
    """The scheduler puts no second one of them anywhere else."""
    plan = made(webs(17, **near(HOSTNAME)))

    assert [("large", 16)] == bought(plan)
    assert isinstance(only_unplaced(plan).cause, NoRoomBeside)


def test_pods_follow_others_that_are_bought_for() -> None:
    """The zone of the database is one where its clients can be, too."""
    gpu = an_instance_type("other", cpu=4, price="0.1", zones=("zd",))
    pods = [*webs(1), *some(3, "client", cpu=9, **near())]

    plan = made(pods, types=[LARGE, gpu])

    assert [4] == list(by_zone(plan).values())


def test_pods_that_wait_for_each_other_are_refused_for_it() -> None:
    """Neither can be first."""
    other = Requirements.of_labels({"app": "other"})
    pods = [*webs(1, **near(selector=other)), a_pod("p", labels={"app": "other"}, cpu=1, **near())]

    plan = made(pods)

    assert () == plan.launches
    assert {AffinityCircle} == {type(each.cause) for each in plan.unplaced}


def test_a_pod_that_others_count_names_its_zone_too() -> None:
    """It has no constraint of its own, but where it is decides for those that have."""
    plan = made([*webs(1, "plain"), *webs(3, **spread())], types=[SMALL])

    assert all(1 == len(launch.requirements[ZONE].values) for launch in plan.launches)
    assert [1, 1, 2] == sorted(by_zone(plan).values())


def a_chain(count: int, **given: Any) -> list[Pod]:
    """x-0, and each next one must share a node with the one before it."""
    seeks = (near(HOSTNAME, Requirements.of_labels({"app": f"x-{number - 1}"})) for number in range(1, count))
    fields = {"cpu": "500m", **given}
    return [
        a_pod(f"x-{number}", labels={"app": f"x-{number}"}, created_s=float(number), **asked, **fields)
        for number, asked in enumerate([{}, *seeks])
    ]


@both_strategies
@pytest.mark.parametrize("count", [3, 6, 30])
def test_a_chain_of_any_length_shares_a_node(count: int, strategy: str) -> None:
    """c must be with b and b with a: one node for all, with other pods beside them."""
    plan = made([*a_chain(count), a_pod("other", cpu=1)], strategy)

    assert ([], 1) == (refused(plan), len(plan.launches))


def test_a_chain_may_end_in_several_pods_and_begin_with_several() -> None:
    """Two databases, four caches beside them, eight clients beside these: on no more nodes than databases."""
    db, cache = (Requirements.of_labels({"app": app}) for app in ("db", "cache"))
    pods = [
        *some(2, "db", labels={"app": "db"}, cpu=1),
        *some(4, "cache", labels={"app": "cache"}, cpu=1, **near(HOSTNAME, db)),
        *some(26, "client", cpu=1, **near(HOSTNAME, cache)),
    ]

    plan = made(pods)

    assert [("large", 16), ("large", 16)] == bought(plan)
    assert [] == refused(plan)


def test_what_is_too_much_of_a_chain_is_refused_from_its_end() -> None:
    """Sixteen cores hold four of four cores: the fifth has no room beside them, and the sixth no company."""
    plan = made(a_chain(6, cpu=4))

    assert [("large", 4)] == bought(plan)
    causes = {each.pod: type(each.cause) for each in plan.unplaced}
    assert {"default/x-4": NoRoomBeside, "default/x-5": NotNear} == causes


def test_one_that_no_node_holds_beside_the_other_is_refused_for_it() -> None:
    """Nine cores and nine: each would get a node, and both of them none."""
    plan = made(a_chain(2, cpu=9))

    assert [("large", 1)] == bought(plan)
    assert isinstance(only_unplaced(plan).cause, NoRoomBeside)


def test_pods_that_seek_two_others_come_when_both_are_there() -> None:
    """One that must be with any of a team of which one must be with the first of all."""
    a, team = Requirements.of_labels({"app": "a"}), Requirements.of_labels({"team": "t"})
    pods = [
        a_pod("a", labels={"app": "a"}, cpu=1),
        a_pod("b", labels={"app": "b", "team": "t"}, cpu=1, **near(HOSTNAME, a)),
        a_pod("c", labels={"app": "c", "team": "t"}, cpu=1, **near(HOSTNAME, team)),
    ]

    plan = made(pods)

    assert ([], [("small", 3)]) == (refused(plan), bought(plan))


def test_a_pod_counts_where_its_node_is_likely_bought() -> None:
    """A pod without a choice of its own is bought for on spot, where those that may only be there count it."""
    both = [Offering(zone, kind, price) for zone in ("za", "zb") for kind, price in ((ON_DEMAND, 200), (SPOT, 80))]
    plan = made(
        [
            *webs(1, "free", created_s=0),
            *some(1, "other", cpu=1, labels={"app": "db"}, **spread(CAPACITY_TYPE, selector=DB), created_s=1),
            *webs(1, "even", selector={CAPACITY_TYPE: SPOT}, **spread(min_domains=3), created_s=2),
        ],
        types=[an_instance_type("small", cpu=4, offerings=tuple(both), zones=ZONES, capacity_types=(ON_DEMAND, SPOT))],
        pool={"capacity_types": (ON_DEMAND, SPOT)},
    )

    assert [] == refused(plan)
    assert {"za", "zb"} == by_zone(plan).keys()


UNEQUAL = an_instance_type(
    "unequal",
    cpu=1,
    zones=("za", "zb", "zc"),
    offerings=tuple(
        Offering(zone, ON_DEMAND, price) for zone, price in (("za", 5_000_000), ("zb", 5_200_000), ("zc", 2_000_000))
    ),
)
"""A node for one pod, and cheapest in the last zone."""


@pytest.mark.parametrize(
    "limits, expected",
    [
        ({COST_PER_HOUR: "8"}, {"za": 1, "zc": 1}),
        ({COST_PER_HOUR: "13"}, {"za": 1, "zb": 1, "zc": 1}),
        ({COST_PER_HOUR: "17"}, {"za": 1, "zb": 1, "zc": 2}),
        ({COST_PER_HOUR: "20"}, {"za": 2, "zb": 1, "zc": 2}),
        ({"nodes": 1}, {"zc": 1}),
        ({"nodes": 2}, {"za": 1, "zc": 1}),
        ({"cpu": 4}, {"za": 1, "zb": 1, "zc": 2}),
        ({"cpu": 6}, {"za": 2, "zb": 2, "zc": 2}),
    ],
)
def test_what_a_limit_has_room_for_is_spread_and_the_cheapest_zones_come_first(
    limits: dict[str, Any], expected: dict[str, int]
) -> None:
    """Seven pods and room for fewer: the first of the queue get nodes, in the zones that they have without a limit.

    The others are told which limit keeps them off.
    """
    for count in (7, 8, 40):
        plan = made(webs(count, cpu="900m", **spread()), pool={"limits": limits}, types=[UNEQUAL])
        served = sum(expected.values())

        assert expected == by_zone(plan)
        assert {f"default/web-{n}" for n in range(served)} == {pod.pod for each in plan.launches for pod in each.pods}
        assert {Stage.LIMITS} == {each.stage for each in plan.unplaced}
        assert {(LimitReached, next(iter(limits)))} == {
            (type(misfit.cause), getattr(misfit.cause, "resource", None))
            for each in plan.unplaced
            for misfit in each.misfits
        }
        assert all("limit" in each.reason for each in plan.unplaced)


def test_a_limit_for_the_cheapest_zone_alone_is_used_there() -> None:
    """Two nodes for 4.00: kube-scheduler spreads over zones with nodes, and there is no other then."""
    plan = made(webs(7, cpu="900m", **spread()), pool={"limits": {COST_PER_HOUR: "4"}}, types=[UNEQUAL])

    assert {"zc": 2} == by_zone(plan)
    assert {Stage.LIMITS} == {each.stage for each in plan.unplaced}


@pytest.mark.parametrize("given", [spread(), {}])
def test_a_limit_is_named_by_what_a_node_may_cost_in_the_zones_of_a_pod(given: dict[str, Any]) -> None:
    """A node in the cheapest zone would keep the limit; there the pod breaks its spread, or the cloud may take others.

    So the limit is what keeps it off, and not that nothing is for sale.
    """
    plan = made(webs(7, cpu="900m", **given), pool={"limits": {COST_PER_HOUR: "18"}}, types=[UNEQUAL])

    causes = {misfit.cause for each in plan.unplaced for misfit in each.misfits}
    assert {5_200_000} == {cause.more for cause in causes if isinstance(cause, LimitReached)}
    assert all(isinstance(cause, LimitReached) for cause in causes)


def test_the_order_of_zones_does_not_matter_to_what_a_limit_has_room_for() -> None:
    """The same prices by other names: as many pods for as much."""
    found = set()
    for prices in permutations((5_000_000, 5_200_000, 2_000_000)):
        offerings = tuple(Offering(zone, ON_DEMAND, price) for zone, price in zip(ZONES, prices, strict=True))
        kind = an_instance_type("unequal", cpu=1, zones=ZONES, offerings=offerings)
        plan = made(webs(7, cpu="900m", **spread()), pool={"limits": {"nodes": 4}}, types=[kind])
        found.add((len(plan.unplaced), sum(each.price_micro for each in plan.launches)))

    assert {(3, 14_200_000)} == found


def test_pods_of_higher_priority_get_what_a_limit_has_room_for() -> None:
    """Two workloads spread over zones, three nodes: those of the more important one, though its name is last."""
    low = webs(3, "a", cpu="900m", **spread())
    high = webs(3, "b", cpu="900m", priority=10, **spread())

    plan = made([*low, *high], pool={"limits": {"nodes": 3}}, types=[UNEQUAL])

    assert {"default/b-0", "default/b-1", "default/b-2"} == {pod.pod for e in plan.launches for pod in e.pods}
    assert {"za": 1, "zb": 1, "zc": 1} == by_zone(plan)


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_a_limit_of_one_pool_is_none_of_pods_of_another(names: tuple[str, str]) -> None:
    """Both are spread; one may have two nodes, the other any number, whichever comes first in the queue."""
    limited, free = names
    pools = [a_pool("limited", limits={"nodes": 2}, labels={"for": "limited"}), a_pool("free", labels={"for": "free"})]
    pods = [
        *webs(4, limited, cpu="900m", selector={"for": "limited"}, **spread()),
        *some(4, free, cpu="900m", labels={"app": "db"}, selector={"for": "free"}, **spread(selector=DB)),
    ]

    plan = planned(pods, pools, [UNEQUAL])

    zones = {
        name: sorted(e.offering.zone for e in plan.launches if e.node_pool == name) for name in ("limited", "free")
    }
    assert {"limited": ["za", "zc"], "free": ["za", "zb", "zc", "zc"]} == zones
    assert 2 == len(plan.unplaced)


@both_strategies
@pytest.mark.parametrize("large_zone", ZONES)
def test_nodes_for_other_pods_open_no_domain_that_stays_empty(strategy: str, large_zone: str) -> None:
    """Only one zone sells the type of the spread pods; the small nodes cost the same there as elsewhere."""
    large = an_instance_type("large", cpu=16, price="0.8", zones=(large_zone,))
    spread_pods = webs(3, cpu=12, **spread())

    plan = made([*spread_pods, *some(3, "other", cpu=3)], strategy, types=[SMALL, large])

    assert [] == refused(plan)
    assert {large_zone: 6} == by_zone(plan)
    assert all({large_zone} == launch.requirements[ZONE].values for launch in plan.launches)


def test_pods_that_can_only_run_elsewhere_open_their_domain_all_the_same() -> None:
    """A node selector holds: then one spread pod gets its node, and the others are refused for the empty domain."""
    large = an_instance_type("large", cpu=16, price="0.8", zones=("za",))
    elsewhere = Requirements.of_labels({ZONE: "zb"})
    others = [replace(pod, spec=replace(pod.spec, node_selector=elsewhere)) for pod in some(2, "other", cpu=3)]

    plan = made([*webs(3, cpu=12, **spread()), *others], types=[SMALL, large])

    assert {"za": 1, "zb": 2} == by_zone(plan)
    assert 2 == len(refused(plan))
