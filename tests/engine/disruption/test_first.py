"""The first plan that takes nodes away, and the nodes that pods of the present plan hold back."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kerf.engine.disruption.causes import Blocked, Nominated
from kerf.engine.disruption.first import first_command
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.nodepool import Budget
from kerf.model.plan import NodePlacement, PlacedPod
from kerf.model.pods import Owner
from kerf.model.promises import Promises, written
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import NOON_S
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, may_go, on, ours, pool_with
from tests.engine.disruption.test_pricecaps import DEAR, capped, with_pods

NEW = Name("default/new")


def to(node: str, pod: str = "default/new") -> NodePlacement:
    """A pod that the present plan puts on a node."""
    return NodePlacement(PlacedPod(pod), node)


def first(snapshot: ClusterSnapshot, *placements: NodePlacement) -> tuple[list[str], Sequence[Blocked]]:
    """The nodes that go, and those that are held back."""
    command, held = first_command(World(snapshot, MARKET), may_go(snapshot), lambda: placements)
    return [] if command is None else [deletion.node for deletion in command.deletions], held


def test_a_node_that_a_pod_is_to_go_on_is_no_candidate() -> None:
    """The budget of one node goes to the other, and what is held back is told with its pod."""
    snapshot = a_cluster([pool_with(Budget("1"))], [ours("a"), ours("b")])

    assert (["a"], ()) == first(snapshot)
    assert (["b"], (Blocked(Name("a"), Nominated(NEW)),)) == first(snapshot, to("a"))


def test_another_node_is_consolidated_in_its_place() -> None:
    """A node whose pod would fit elsewhere waits for no other."""
    pods = [on("a", "x", cpu=1), on("b", "y", cpu=1)]

    assert (["b"], (Blocked(Name("a"), Nominated(NEW)),)) == first(
        a_cluster([free_pool()], [ours("a"), ours("b")], pods), to("a")
    )


def test_a_node_that_would_not_go_is_no_news() -> None:
    """A placement on it changes nothing; nor does one of room that is kept, save that the node stays."""
    snapshot = a_cluster([pool_with(Budget("1"))], [ours("a"), ours("b")])

    assert (["a"], ()) == first(snapshot, to("b"))
    assert (["b"], ()) == first(snapshot, to("a", "capacitywindow:w/warm-0-0"))


def test_a_node_that_pods_come_to_is_not_replaced() -> None:
    """The new node would be bought for the pods of today."""
    snapshot = with_pods(capped())

    assert first_command(World(snapshot, MARKET), may_go(snapshot), tuple)[0] is not None
    assert ([], (Blocked(Name(DEAR[0].name), Nominated(NEW)),)) == first(snapshot, to("dear"))


def test_the_present_plan_is_asked_for_only_when_a_node_would_go() -> None:
    """It costs a plan."""
    asked: list[str] = []
    snapshot = a_cluster([pool_with(Budget("0"))], [ours("a")])

    def placements() -> tuple[NodePlacement, ...]:
        asked.append("asked")
        return ()

    assert (None, ()) == first_command(World(snapshot, MARKET), may_go(snapshot), placements)
    assert [] == asked


@pytest.mark.parametrize(
    ("ended_s", "goes"),
    [pytest.param(NOON_S, [], id="it has its grace"), pytest.param(NOON_S - 61, ["new"], id="it is stuck")],
)
def test_a_node_is_kept_for_the_successor_of_a_pod_that_ends(ended_s: float, goes: list[str]) -> None:
    """It was bought for a pod of a node that goes: that pod ends, and the one in its place does not wait yet."""
    node, claim = ours("new")
    promised = replace(claim, annotations=written(Promises({"default/web": ()})))
    ending = on("old", "web", deleted_s=ended_s, owner=Owner("ReplicaSet", "web"))
    pool = pool_with(Budget("2"))
    snapshot = a_cluster([pool], [(node, promised), ours("old", deleted_s=NOON_S)], [ending])

    assert (goes, ()) == first(snapshot)
