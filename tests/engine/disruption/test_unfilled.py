"""How much less nodes are filled that came in the place of others, in shares of what they cost."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.disruption.unfilled import came_lately, unfilled_share
from kerf.engine.disruption.worths import Worths
from kerf.engine.world import World
from kerf.model.nodeclaim import REPLACES
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import NOON_S, a_market
from tests.engine.disruption.clusters import a_cluster, free_pool, on, ours
from tests.engine.worlds import M5

_SOLD = a_market(M5)


def held(new: list[int], others: list[int], age_s: int = 600) -> ClusterSnapshot:
    """Nodes of four cores with a pod of so many each: new ones of an age, and others."""
    size = {"cpu": 4, "memory": "16Gi", "pods": 58}
    pairs: list[tuple[Any, Any]] = []
    for at in range(len(new)):
        made, claim = ours(f"new-{at}", allocatable=size)
        pairs.append((made, replace(claim, annotations={REPLACES: "old"}, created_s=NOON_S - age_s)))
    pairs += [ours(f"other-{at}", allocatable=size) for at in range(len(others))]
    cores = zip([node.name for node, _ in pairs], [*new, *others], strict=True)
    return a_cluster([free_pool()], pairs, [on(name, f"p-{name}", cpu=cpu) for name, cpu in cores if cpu])


def share(snapshot: ClusterSnapshot) -> float:
    """What stays unfilled of the new nodes."""
    world, new = World(snapshot, _SOLD), came_lately(World(snapshot, _SOLD))
    worths = Worths(world, [pod for each in snapshot.nodes for pod in each.pods])
    return unfilled_share(world, worths, new, [each for each in snapshot.nodes if each not in new])


@pytest.mark.parametrize(
    ("new", "others", "expected"),
    [
        ([4] * 5, [4], 0.0),
        ([2] * 5, [4], 0.5),
        ([2, 2, 2, 4, 4, 4], [4], 0.25),
        ([2] * 5, [2] * 3, 0.0),
        ([1] * 5, [3], 0.5),
        ([2] * 4, [4], 0.0),
        ([2, 2, 2, 2, 2, 0, 0], [4], 0.5),
    ],
    ids=["full", "half", "on average", "as the others", "beyond the others", "few", "empty ones aside"],
)
def test_new_nodes_are_compared_with_those_that_are_there(new: list[int], others: list[int], expected: float) -> None:
    """By the prices that pods of a core are worth."""
    assert expected == pytest.approx(share(held(new, others)), abs=0.01)


@pytest.mark.parametrize(("age_s", "expected"), [(299, 0.0), (300, 0.5), (7_199, 0.5), (7_200, 0.0)])
def test_pods_have_come_and_not_long_ago(age_s: int, expected: float) -> None:
    """From five minutes to two hours after a node was bought."""
    assert expected == pytest.approx(share(held([2] * 5, [4], age_s)), abs=0.01)
