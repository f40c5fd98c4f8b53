"""Nodes that were found no other place for are asked again when they change, and in turn; none is forgotten."""

from dataclasses import replace

import pytest

from kerf.engine.disruption.asked import Asked, Repacks
from kerf.engine.disruption.candidates import Candidate, candidates
from kerf.engine.disruption.consolidation import propose
from kerf.engine.world import World
from kerf.model.market import Market
from kerf.model.nodepool import Budget, NodePool
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, on, ours, pool_with

AT_ONCE, COUNT = 20, 510


def some(count: int) -> list[Candidate]:
    """So many candidates by name."""
    names = [f"node-{number:03}" for number in range(count)]
    held = a_cluster([free_pool()], [ours(name) for name in names], [on(name, f"pod-{name}") for name in names])
    found = list(candidates(held)[0])
    assert count == len(found)
    return found


FOUND = some(COUNT)
NAMES = [each.node.name for each in FOUND]


def look(asked: Asked, version: int, found: list[Candidate] = FOUND, now_s: float = 0) -> list[str]:
    """The names of those that are due; all of them are refused."""
    due = asked.due(found, version, now_s)
    for each in due:
        asked.refused(each)
    return [each.node.name for each in due]


def test_the_first_look_asks_all_and_the_next_some() -> None:
    """A change far away changes few answers."""
    asked = Asked()
    assert NAMES == look(asked, 1)
    assert asked.is_through
    assert [] == look(asked, 1)
    assert asked.is_through
    assert NAMES[:AT_ONCE] == look(asked, 2)
    assert not asked.is_through


def test_all_have_been_asked_after_some_looks() -> None:
    """Also when something changes all the time."""
    asked = Asked()
    look(asked, 0)
    seen = [name for version in range(1, 1 + -(-COUNT // AT_ONCE)) for name in look(asked, version)]
    assert set(NAMES) == set(seen)


def test_without_further_changes_the_looks_end() -> None:
    """Every node is asked once more after the last change, not more often; and after five minutes, for time passes."""
    asked = Asked()
    look(asked, 0)
    counts = [len(look(asked, 1)) for _ in range(COUNT // AT_ONCE + 2)]
    assert [*[AT_ONCE] * (COUNT // AT_ONCE), COUNT % AT_ONCE, 0] == counts
    assert asked.is_through
    assert [0, AT_ONCE] == [len(look(asked, 1, now_s=now_s)) for now_s in (299, 300)]


def test_a_node_that_has_changed_is_asked_at_once() -> None:
    """It is another object then; so is one that is new."""
    asked = Asked()
    look(asked, 0, FOUND[:-1])
    look(asked, 1, FOUND[:-1])
    other = replace(FOUND[110], cluster_node=replace(FOUND[110].cluster_node))
    due = look(asked, 1, [*FOUND[:110], other, *FOUND[111:]])
    assert {NAMES[110], NAMES[-1]} < set(due)
    assert AT_ONCE + 2 == len(due)


def test_of_a_fleet_that_is_not_large_all_are_asked() -> None:
    """As without a memory."""
    asked = Asked()
    for _ in range(3):
        assert NAMES[:100] == look(asked, 1, FOUND[:100])
        assert asked.is_through


def test_consolidation_asks_those_that_are_due() -> None:
    """Nodes that have changed go first; of the others, whose pods fit nowhere else, few are asked."""
    pods = [on(name, f"pod-{name}", cpu="100m", selector={"disk": "gone"}) for name in NAMES]
    world = World(a_cluster([free_pool()], [ours(name) for name in NAMES], pods), MARKET)
    asked = Asked()
    assert [] == list(propose(world, candidates(world.snapshot)[0], asked))
    held = world.snapshot
    free = replace(held.nodes[57], pods=(on(NAMES[57], "free", cpu="100m"),))
    nodes = tuple(free if each.name == free.name else each for each in held.nodes)
    later = World(replace(held, nodes=nodes, version=held.version + 1), MARKET)
    commands = propose(later, candidates(later.snapshot)[0], asked)
    assert [NAMES[57]] == [each.deletions[0].node for each in commands]
    assert not asked.is_through


def test_a_look_without_candidates_leaves_none_to_be_asked() -> None:
    """Budgets have closed, say; else a settled cluster would be looked at again and again."""
    asked = Asked()
    look(asked, 0)
    look(asked, 1)
    assert not asked.is_through
    assert [] == list(propose(World(a_cluster([free_pool()], [], []), MARKET), [], asked))
    assert asked.is_through


POOL, CLOSED = free_pool(), pool_with(Budget("0"))


def fleet(count: int, at_s: float, changed: int = 0, pool: NodePool = POOL) -> ClusterSnapshot:
    """So many nodes, of which so many have another pod than in a fleet without changes."""
    others = (replace(each, pods=tuple(replace(pod, uid="other") for pod in each.pods)) for each in NODES[:changed])
    return replace(a_cluster([pool], [], []), nodes=(*others, *NODES[changed:count]), taken_at_s=at_s)


NODES = tuple(each.cluster_node for each in some(1_000))


def of_pool(held: ClusterNode, pool: str) -> ClusterNode:
    """The node as one of that pool."""
    assert held.claim is not None
    return replace(held, claim=replace(held.claim, node_pool=pool))


def due_s(looks: Repacks, later: ClusterSnapshot, market: Market = MARKET) -> float:
    """How long after a search, in whole seconds, the next is due where the cluster is as it will be later."""
    found = candidates(later)[0]
    times = (at_s for at_s in range(1_801) if looks.are_due(replace(later, taken_at_s=at_s), market, found))
    return next(times)


def searched(held: ClusterSnapshot) -> Repacks:
    """After a search in this cluster that found nothing, with five minutes until the next."""
    looks = Repacks(300)
    assert looks.are_due(held, MARKET, candidates(held)[0])
    looks.found_none(held, MARKET, candidates(held)[0])
    return looks


@pytest.mark.parametrize(
    ("nodes", "changed", "expected_s"),
    [(4, 0, 300), (4, 1, 60), (100, 1, 288), (100, 10, 180), (100, 20, 60), (100, 100, 60), (500, 0, 300)],
)
def test_the_fleet_is_judged_again_sooner_the_more_has_changed(nodes: int, changed: int, expected_s: float) -> None:
    """By the part of the nodes with other pods; a fifth of the time always passes."""
    assert expected_s == due_s(searched(fleet(nodes, 0)), fleet(nodes, 0, changed))


@pytest.mark.parametrize(("changed", "expected_s"), [(0, 1_800), (49, 1_800), (50, 240), (500, 60)])
def test_a_large_fleet_is_judged_again_once_a_part_has_changed(changed: int, expected_s: float) -> None:
    """Or after half an hour."""
    assert expected_s == due_s(searched(fleet(1_000, 0)), fleet(1_000, 0, changed))


def test_a_node_that_comes_is_a_change_and_one_that_goes_is_none() -> None:
    """A node that is gone leaves nothing to be saved."""
    assert 180 == due_s(searched(fleet(90, 0)), fleet(100, 0))
    assert 300 == due_s(searched(fleet(100, 0)), fleet(90, 0))


def test_other_prices_and_pools_are_looked_at_soon() -> None:
    """However large the fleet: they may make all nodes dear."""
    for count in (100, 1_000):
        assert 60 == due_s(searched(fleet(count, 0)), fleet(count, 0), replace(MARKET))
        edited = fleet(count, 0, pool=replace(POOL, generation=POOL.generation + 1))
        assert 60 == due_s(searched(fleet(count, 0)), edited)


@pytest.mark.parametrize("is_first", [True, False])
def test_closed_budgets_are_no_search(is_first: bool) -> None:
    """What is to be saved is looked for soon after they open, as in a pool that may change for minutes each day."""
    closed = fleet(100, 0, pool=CLOSED)
    looks = Repacks(300) if is_first else searched(fleet(100, -300))
    looks.found_none(closed, MARKET, candidates(closed)[0])
    assert 60 == due_s(looks, fleet(100, 0))


def test_a_look_without_nodes_that_may_go_delays_nothing() -> None:
    """Those that may go later were not looked at."""
    looks = Repacks(300)
    looks.found_none(fleet(100, 0), MARKET, ())
    assert 0 == due_s(looks, fleet(100, 0))


def test_budgets_that_open_for_more_pools_are_looked_at_soon() -> None:
    """The nodes of the other pools were not searched."""
    other = replace(POOL, name="other")
    held = fleet(100, 0)
    held = replace(held, nodes=(*held.nodes[:99], of_pool(held.nodes[99], "other")), node_pools=(POOL, other))
    closed = replace(held, node_pools=(POOL, replace(other, disruption=CLOSED.disruption)))
    assert 60 == due_s(searched(closed), held)
    assert 300 == due_s(searched(held), closed)
