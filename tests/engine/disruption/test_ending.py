"""Nodes that go at once: old ones, and those that a static pool has too many."""

from dataclasses import replace
from typing import Any

from kerf.engine.disruption.causes import Ending, HasExpired, OfStaticPool, Surplus
from kerf.engine.disruption.ending import ended, endings
from kerf.engine.disruption.keeping import Fates
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.nodeclaim import DO_NOT_DISRUPT, NodeClaim
from kerf.model.nodepool import REPLACE_EXPIRED, NodePool
from kerf.model.nodes import Node
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import NOON_S
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, on, ours
from tests.engine.disruption.test_keeping import NOTHING, why

HOUR_S = 3600


def aged(name: str, hours: float, **given: Any) -> tuple[Node, NodeClaim]:
    """A node whose claim was made so long before noon, and states that it ends after two hours."""
    node, claim = ours(name)
    return node, replace(claim, created_s=NOON_S - hours * HOUR_S, expire_after_s=2 * HOUR_S, **given)


def static(replicas: int) -> NodePool:
    """A pool that states how many nodes it has."""
    return replace(free_pool(), replicas=replicas)


def gone(held: ClusterSnapshot) -> list[str]:
    """The nodes that go at once, by name."""
    return [each.node for each in ended(World(held, MARKET))]


def test_a_node_goes_once_it_is_as_old_as_its_claim_states() -> None:
    """Not a second earlier, and not where its pool wants others in its place first."""
    nodes = [aged("old", 2), aged("young", 1.999)]
    kind = replace(free_pool(), own_annotations={REPLACE_EXPIRED: "true"})

    assert {"old": HasExpired(2 * HOUR_S)} == endings(a_cluster([free_pool()], nodes))
    assert {} == endings(a_cluster([kind], nodes))


def test_a_claim_of_unknown_age_does_not_expire() -> None:
    """A file may lack when an object was made."""
    node, claim = aged("a", 2)

    assert {} == endings(a_cluster([free_pool()], [(node, replace(claim, created_s=0))]))


def test_a_static_pool_gives_up_what_it_has_too_many_empty_nodes_first() -> None:
    """And keeps the others, quiet or not."""
    nodes, pods = [ours("a"), ours("b"), ours("c")], [on("a", "x"), on("c", "y")]
    surplus: Ending = Surplus(Name("pool"), 2)

    assert {"b": surplus} == endings(a_cluster([static(2)], nodes, pods))
    assert {} == endings(a_cluster([static(3)], nodes, pods))
    assert {"b": HasExpired(2 * HOUR_S)} == endings(a_cluster([static(2)], [ours("a"), aged("b", 3), ours("c")], pods))
    assert OfStaticPool(Name("pool"), 3) == why(a_cluster([static(3)], nodes), "b")


def test_a_pod_that_may_not_be_evicted_holds_the_end_of_its_node_unless_it_is_forced() -> None:
    """The node goes all the same, and so it is said of it."""
    pods = [on("old", "x", annotations={DO_NOT_DISRUPT: "true"})]
    held = a_cluster([free_pool()], [aged("old", 3)], pods)
    node = held.node("old")

    assert node is not None
    assert [] == gone(held)
    assert HasExpired(2 * HOUR_S) == Fates(World(held, MARKET), NOTHING).going(node)
    assert ["old"] == gone(a_cluster([free_pool()], [aged("old", 3, termination_grace_period_s=60)], pods))
