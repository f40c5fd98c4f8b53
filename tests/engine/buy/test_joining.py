"""Pods that go to nodes which are there once what is bought lets them in: no second node for these."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.explain.launches import why_launched
from kerf.model.constraints import HOSTNAME, NODE_POOL, ZONE, Requirements
from kerf.model.nodeclaim import LAUNCHED
from kerf.model.nodes import Node
from kerf.model.plan import Plan
from kerf.model.pods import RUNNING, Pod
from kerf.model.policies import COST, FIRST_FIT
from kerf.model.promises import Promises, written
from kerf.testing.builders import a_claim, a_node, a_pod, a_pool, an_instance_type
from tests.engine.place.test_topology import away, near, spread
from tests.engine.worlds import planned, some

ZONES = ("za", "zb", "zc", "zd", "ze")
SMALL = an_instance_type("small", cpu=4, price="0.2", zones=ZONES)
LARGE = an_instance_type("large", cpu=8, price="0.4", zones=ZONES)
DB = Requirements.of_labels({"app": "db"})
both_strategies = pytest.mark.parametrize("strategy", [COST, FIRST_FIT])


def at(zone: str, cpu: int | str = 8, **given: Any) -> Node:
    """A node of a zone, named by it, of no pool."""
    made = a_node(zone, labels={ZONE: zone, HOSTNAME: zone}, allocatable={"cpu": cpu, "pods": 58}, **given)
    return replace(made, labels={key: value for key, value in made.labels.items() if key != NODE_POOL})


def webs(count: int, name: str = "web", **given: Any) -> list[Pod]:
    """So many pods of half a core with the label app=web."""
    return some(count, name, **{"labels": {"app": "web"}, "cpu": "500m", **given})


def made(pods: list[Pod], nodes: list[Node], strategy: str = COST, **given: Any) -> Plan:
    """The plan with two types that are sold in five zones."""
    types = given.pop("types", [SMALL])
    return planned(pods, [a_pool(**given.pop("pool", {}))], types, strategy, nodes=nodes, **given)


def where(plan: Plan) -> dict[str, int]:
    """How many pods each node takes, the bought ones by their zones."""
    found = Counter(placement.node for placement in plan.placements)
    for launch in plan.launches:
        found[f"new in {launch.offering.zone}"] += len(launch.pods)
    return dict(found)


@both_strategies
def test_a_zone_is_opened_and_the_rest_goes_where_there_is_room(strategy: str) -> None:
    """Three zones are asked for and two have nodes: one node is bought, and every zone takes three."""
    plan = made(webs(9, **spread(min_domains=3)), [at("za"), at("zb")], strategy)

    assert [] == list(plan.unplaced)
    assert [3, 3, 3] == sorted(where(plan).values())
    assert 1 == len(plan.launches)


@both_strategies
def test_the_zone_that_lags_behind_gets_the_node(strategy: str) -> None:
    """Zone b has a full node: with one more there both zones take five, and no other zone is opened."""
    plan = made(webs(10, **spread()), [at("za"), at("zb", cpu="100m")], strategy)

    assert {"za": 5, "new in zb": 5} == where(plan)


def test_as_many_zones_are_opened_as_are_asked_for() -> None:
    """Two of four have nodes."""
    plan = made(webs(9, **spread(min_domains=4)), [at("za"), at("zb")])

    assert [2, 2, 2, 3] == sorted(where(plan).values())
    assert 2 == len(plan.launches)


@both_strategies
def test_company_that_is_bought_opens_nodes_that_are_there(strategy: str) -> None:
    """The database needs a larger node; what must be in its zone goes beside it or to the node there."""
    db = a_pod("z-db", labels={"app": "db"}, cpu=5, selector={ZONE: "za"})
    seekers = webs(3, cpu=1, **near(selector=DB))

    plan = made([db, *seekers], [at("za", 4)], strategy, types=[SMALL, LARGE])

    assert [] == list(plan.unplaced)
    assert ["large"] == [launch.offering.instance_type for launch in plan.launches]
    assert {"za": 3, "new in za": 1} == where(plan)


def test_what_finds_no_room_there_is_bought_for_in_the_zones_that_there_are() -> None:
    """The node of zone a has room for four of twelve; b takes as many as a may have."""
    plan = made(webs(12, **spread()), [at("za", 2), at("zb", cpu="100m")])

    assert [] == list(plan.unplaced)
    assert {"za": 4, "new in za": 2, "new in zb": 6} == where(plan)


def test_the_first_in_the_queue_have_the_room() -> None:
    """Once the database is there, those of the higher priority go to the node, and the others to a new one."""
    db = a_pod("z-db", labels={"app": "db"}, cpu=8, selector={ZONE: "za"})
    late, first = (webs(4, name, cpu=1, priority=n, **near(selector=DB)) for n, name in enumerate(("late", "first")))

    plan = made([db, *late, *first], [at("za", 4)], types=[SMALL, LARGE])

    there = {placement.pod.pod for placement in plan.placements}
    assert {pod.key for pod in first} == there
    assert 2 == len(plan.launches)


def test_a_node_on_its_way_is_joined_too() -> None:
    """The claim in zone a was bought for another pod, and has room."""
    other = a_pod("other", cpu=1)
    promised = {**written(Promises({other.key: ()}))}
    claim = a_claim("coming", instance_type="large", reached=(LAUNCHED,), annotations=promised)
    claim = replace(claim, labels={**claim.labels, ZONE: "za"})

    plan = planned([other, *webs(6, **spread(min_domains=2))], [a_pool()], [SMALL, LARGE], nodes=[], claims=[claim])

    assert [] == list(plan.unplaced)
    assert [3, 4] == sorted(where(plan).values())
    assert 1 == len(plan.launches)


def test_a_launch_says_what_rules_out_the_nodes_with_room() -> None:
    """It is not said that no node has room where one has."""
    spreading = made(webs(9, **spread(min_domains=3)), [at("za"), at("zb")])
    keeping = made([*webs(2, **away())], [at("za"), at("zb", cpu="100m")])
    full = made(webs(2), [at("zb", cpu="100m")])

    said = [why_launched(plan.launches[0]).partition("; ")[2] for plan in (spreading, keeping, full)]
    assert [
        "every node with room is ruled out by topologySpreadConstraints",
        "every node with room is ruled out by podAntiAffinity",
        "no node in the cluster has room",
    ] == said


def test_no_more_join_than_a_limit_lets_in() -> None:
    """The pool allows no node: those that nothing opens a place for are refused, and the others have theirs."""
    plan = made(webs(9, **spread(min_domains=3)), [at("za"), at("zb")], pool={"limits": {"nodes": 0}})

    assert {"za": 1, "zb": 1} == where(plan)
    assert 7 == len(plan.unplaced)


def test_pods_that_run_count_for_those_that_join() -> None:
    """Zone a has two already: the new node takes the first two, and then each zone one."""
    there = [a_pod(f"old-{n}", labels={"app": "web"}, cpu="100m", node_name="za", phase=RUNNING) for n in range(2)]

    plan = made([*webs(6, **spread()), *there], [at("za"), at("zb", cpu="100m")])

    assert {"za": 2, "new in zb": 4} == where(plan)
