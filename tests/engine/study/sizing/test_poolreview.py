"""A pool by what it is used for: limits, their price, and types that serve no pod."""

from kerf.engine.explain.plan import plan
from kerf.engine.study.sizing.pools import Filled, PoolReview, reviewed
from kerf.engine.world import World
from kerf.model.market import Market
from kerf.model.usage import NO_USAGE, NodeUsage, Usage
from kerf.testing.builders import a_claim, a_market, a_node, a_pool, a_snapshot, an_instance_type, cards
from tests.engine.worlds import some

M5 = an_instance_type("m5.xlarge", cpu=4, price="0.192")
DEAR = an_instance_type("m5.dear", cpu=4, price="0.5")
G5 = an_instance_type("g5.xlarge", cpu=4, devices=cards(1), price="1.006")
TINY = an_instance_type("t3.tiny", cpu=1, memory="1Gi", price="0.02")
MARKET = a_market(M5, DEAR, G5, TINY)


def review(limits: dict[str, str | int] | None, market: Market = MARKET, usage: Usage = NO_USAGE) -> PoolReview:
    """A node with two pods of 1 cpu, and three pods of 2 cpu that wait."""
    pool = a_pool(limits=limits)
    running = some(2, "r", cpu=1, node_name="n1")
    snapshot = a_snapshot(
        pools=[pool], nodes=[a_node("n1")], claims=[a_claim("c1", node_name="n1")], pods=[*running, *some(3, cpu=2)]
    )
    return reviewed(pool, plan(snapshot, market), World(snapshot, market), usage)


def test_a_limit_is_compared_with_nodes_plan_requests_and_measure() -> None:
    """Four cpus of one node, four of the plan, two asked by its pods and six by those that wait, three measured."""
    [limit] = review({"cpu": 100}, usage=Usage(nodes={"n1": NodeUsage("n1", 0, 60, 3000, 2**30)})).limits

    assert (100_000, 4000, 4000, 8000, 3000) == (
        (limit.limit, limit.used, limit.planned, limit.requested, limit.measured)
    )


def test_a_limit_is_worth_what_it_costs_when_filled() -> None:
    """With the cheapest and the dearest of the types, by whole nodes."""
    [limit] = review({"cpu": 10}).limits

    assert Filled("t3.tiny", 10, 200_000) == limit.cheapest
    assert Filled("g5.xlarge", 2, 2_012_000) == limit.most_expensive


def test_a_limit_is_reached_when_not_even_the_smallest_node_is_allowed() -> None:
    """8 of 10 cpus are reached where a node has four."""
    assert [True] == [limit.is_reached for limit in review({"cpu": 10}, a_market(M5)).limits]
    assert [False] == [limit.is_reached for limit in review({"cpu": 12}, a_market(M5)).limits]


def test_a_limit_below_one_node_allows_none() -> None:
    """No node, or less cpu than the smallest type has; room for one is enough."""
    assert [True, True] == [limit.is_shut for limit in review({"nodes": 0, "cpu": "500m"}).limits]
    assert [False] == [limit.is_shut for limit in review({"cpu": 1}).limits]


def test_nodes_and_money_are_limits_too() -> None:
    """No pod asks for either."""
    money, nodes = review({"nodes": 3, "kerf.dev/cost-per-hour": "1"}).limits

    assert (3, 1, None) == (nodes.limit, nodes.used, nodes.requested)
    assert (1_000_000, 192_000, None) == (money.limit, money.used, money.requested)


def test_types_that_no_pod_needs() -> None:
    """One that holds none of the pods, and one that another beats."""
    found = {each.instance_type: each for each in review(None).types}

    assert (1, 1, 5, False) == (
        found["m5.xlarge"].nodes,
        found["m5.xlarge"].planned,
        found["m5.xlarge"].holds,
        found["m5.xlarge"].is_beaten,
    )
    assert (0, 5, True) == (found["m5.dear"].nodes, found["m5.dear"].holds, found["m5.dear"].is_beaten)
    assert (2, False) == (found["t3.tiny"].holds, found["t3.tiny"].is_beaten)
