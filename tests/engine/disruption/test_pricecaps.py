"""001-22: a node above a price cap is replaced by cheaper nodes that hold its pods."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.disruption.pricecaps import propose
from kerf.engine.explain.disruption import explained
from kerf.engine.world import World
from kerf.model.bounds import MAX_PRICE
from kerf.model.nodepool import WHEN_EMPTY, Budget, Disruption, NodePool
from kerf.model.plan import Plan
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import NOON_S, resources
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, may_go, on, ours

DEAR = ours("dear", instance_type="m5.2xlarge")
"""At 0.384; an m5.xlarge costs 0.192."""


def capped(price: str = "0.25", **given: Any) -> NodePool:
    """A pool with a cap, whose budget allows everything unless told otherwise."""
    return replace(free_pool(), own_annotations={MAX_PRICE: price}, **given)


def proposed(snapshot: ClusterSnapshot) -> list[Plan]:
    """All plans of the method."""
    return [explained(command) for command in propose(World(snapshot, MARKET), may_go(snapshot))]


def with_pods(pool: NodePool, *nodes: Any, cpu: int = 3, **given: Any) -> ClusterSnapshot:
    """The dear node with a pod, and other nodes."""
    return a_cluster([pool], [DEAR, *nodes], [on("dear", "web", cpu=cpu)], **given)


def test_the_new_node_comes_first() -> None:
    """The old one goes once the other is up, which holds its pod."""
    plan = proposed(with_pods(capped()))[0]
    launch, deletion = plan.launches[0], plan.deletions[0]

    assert (("dear",), "m5.xlarge") == (launch.replaces, launch.offering.instance_type)
    assert ("dear", (launch.name,), 384_000) == (deletion.node, deletion.replaced_by, deletion.saved_micro)
    assert "price 0.384 > cap 0.25; what is bought for its pods saves 0.192 USD/h" in deletion.why
    assert (384_000, 192_000) == (plan.cost.before_micro, plan.cost.after_micro)


@pytest.mark.parametrize(
    "pool",
    [
        free_pool(),
        capped("0.384"),
        capped("0.10"),
        capped(deleted_s=NOON_S),
        capped(disruption=Disruption(0, WHEN_EMPTY, (Budget("100%"),))),
        capped(disruption=Disruption(0, budgets=(Budget("0"),))),
    ],
    ids=["no cap", "within", "nothing within", "pool goes", "WhenEmpty", "budget"],
)
def test_nothing_is_bought_where_it_need_not_or_may_not_be(pool: NodePool) -> None:
    """Without a cap that is broken, an offering within it, a policy and a budget that let the old one go."""
    assert [] == proposed(with_pods(pool))


def test_pods_that_no_cheaper_node_holds_stay() -> None:
    """Six cores need an m5.2xlarge again."""
    assert [] == proposed(with_pods(capped(), cpu=6))


def test_both_nodes_count_against_the_limits() -> None:
    """Until the old one has gone."""
    one, two = (capped(limits=resources(nodes=number)) for number in (1, 2))

    assert ([], 1) == (proposed(with_pods(one)), len(proposed(with_pods(two))))
