"""What pods of DaemonSets, which are on a new node before all others, mean for pods that go by other pods."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.model.causes import Name
from kerf.model.constraints import HOSTNAME, INSTANCE_TYPE, ZONE, Requirements
from kerf.model.plan import Plan
from kerf.model.pods import PodSpec
from kerf.model.policies import COST, FIRST_FIT
from kerf.model.snapshot import DaemonSet
from kerf.model.topology import ANTI_AFFINITY, SPREAD, KeptOffByDaemonSet
from kerf.testing.builders import a_pod, a_pool, an_instance_type
from tests.engine.buy.test_spreading import webs
from tests.engine.place.test_topology import away, spread
from tests.engine.worlds import a_daemon_set, bought, only_unplaced, planned, refused, some

AGENT = Requirements.of_labels({"app": "agent"})
SMALL, LARGE = an_instance_type("small", cpu=4, price="0.2"), an_instance_type("large", cpu=16, price="0.8")
both_strategies = pytest.mark.parametrize("strategy", [COST, FIRST_FIT])


def an_agent(*, on: str = "", **given: Any) -> DaemonSet:
    """A DaemonSet with the label app=agent, on every node or on those of one type."""
    selector = {INSTANCE_TYPE: on} if on else {}
    return a_daemon_set("agent", **{"labels": {"app": "agent"}, "cpu": "100m", "selector": selector, **given})


def made(pods: list[Any], agent: DaemonSet, strategy: str = COST, **given: Any) -> Plan:
    """The plan with two types."""
    return planned(pods, [a_pool()], [SMALL, LARGE], strategy, daemon_sets=(agent,), **given)


def test_a_pod_that_a_daemon_set_keeps_off_every_node_is_refused() -> None:
    """The DaemonSet's pods run on each node and keep web pods off: nothing is bought, and the reason names it."""
    plan = made(webs(1), an_agent(**away(HOSTNAME)))

    assert () == plan.launches
    assert KeptOffByDaemonSet(Name("default/agent"), Name(""), Name(HOSTNAME)) == only_unplaced(plan).cause


@pytest.mark.parametrize("key", [HOSTNAME, ZONE])
def test_a_pod_that_keeps_off_a_daemon_set_on_every_node_is_refused(key: str) -> None:
    """The pod's own term means the DaemonSet's pods; a node's zone has the pod that is on the node."""
    plan = made(webs(1, **away(key, AGENT)), an_agent())

    assert () == plan.launches
    assert KeptOffByDaemonSet(Name("default/agent"), Name(ANTI_AFFINITY), Name(key)) == only_unplaced(plan).cause


@both_strategies
@pytest.mark.parametrize("is_daemons_term", [True, False])
def test_types_without_the_daemon_set_are_bought(strategy: str, is_daemons_term: bool) -> None:
    """The DaemonSet runs on the small type alone: the pods go to the large one, at four times the price."""
    agent = an_agent(on="small", **(away(HOSTNAME) if is_daemons_term else {}))

    plan = made(webs(2, **({} if is_daemons_term else away(HOSTNAME, AGENT))), agent, strategy)

    assert [("large", 2)] == bought(plan)


@both_strategies
def test_pods_whom_it_does_not_mean_are_bought_for_beside_it(strategy: str) -> None:
    """Only web pods are kept off; others get the node of the DaemonSet, and no web pod rides along."""
    plan = made([*webs(1), *some(3, "other", cpu=1)], an_agent(**away(HOSTNAME)), strategy)

    assert [("small", 3)] == bought(plan)
    assert ["default/web-0"] == refused(plan)


@both_strategies
def test_a_spread_over_nodes_counts_pods_that_every_node_has(strategy: str) -> None:
    """One pod of the DaemonSet is on each node, so the fewest is one: maxSkew 1 lets one pod of the two onto each."""
    agent = an_agent(labels={"app": "web"})

    plan = made(webs(3, **spread(HOSTNAME)), agent, strategy)

    assert [1, 1, 1] == [pods for _, pods in bought(plan)]


@both_strategies
def test_a_spread_over_nodes_counts_pods_that_some_nodes_have(strategy: str) -> None:
    """Large nodes have none, so a small one with the DaemonSet's pod and another would be two too many."""
    agent = an_agent(on="small", labels={"app": "web"})

    plan = made(webs(2, **spread(HOSTNAME)), agent, strategy)

    assert [("large", 1), ("large", 1)] == bought(plan)


def test_nodes_that_a_spread_does_not_count_set_no_fewest() -> None:
    """Pods that ask for the small type: the large ones, which have no pod of the DaemonSet, do not count."""
    agent = an_agent(on="small", labels={"app": "web"})

    plan = made(webs(2, selector={INSTANCE_TYPE: "small"}, **spread(HOSTNAME)), agent)

    assert [("small", 1), ("small", 1)] == bought(plan)


def test_a_spread_that_a_daemon_set_breaks_everywhere_names_it() -> None:
    """The same, where all nodes count: one of the large type would have none."""
    agent = an_agent(on="small", labels={"app": "web"})

    plan = made(webs(1, selector={INSTANCE_TYPE: "small"}, **spread(HOSTNAME, honors_affinity=False)), agent)

    assert KeptOffByDaemonSet(Name("default/agent"), Name(SPREAD), Name(HOSTNAME)) == only_unplaced(plan).cause


def test_a_spread_over_zones_counts_daemon_sets_pods_of_each_node() -> None:
    """Seven that each fill a node: two nodes in each zone are four pods counted; a third would make it six."""
    kinds = [an_instance_type("small", cpu=4, zones=("za", "zb", "zc"))]

    plan = planned(webs(7, cpu=3, **spread()), [a_pool()], kinds, daemon_sets=(an_agent(labels={"app": "web"}),))

    assert 6 == len(plan.launches)
    assert 1 == len(plan.unplaced)


def test_an_aversion_that_no_pod_has_yet_counts() -> None:
    """No pod of the DaemonSet runs and none of the waiting pods has a constraint: its template is enough."""
    spec = a_pod("x", cpu="100m", **away(HOSTNAME)).spec
    agent = an_agent()

    plan = made(webs(1), replace(agent, pod=replace(agent.pod, spec=spec)))

    assert isinstance(spec, PodSpec)
    assert () == plan.launches
