"""A part of a command stands only while the rules that made it still let it be done."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kerf.engine.disruption.causes import PodsFit
from kerf.engine.disruption.command import Command, deleting
from kerf.engine.disruption.first import first_command
from kerf.engine.disruption.standing import standing
from kerf.engine.world import World
from kerf.model.bounds import MAX_PRICE, MIN_NODES
from kerf.model.constraints import Taint
from kerf.model.nodeclaim import DO_NOT_DISRUPT, LAUNCHED, OBSERVED_DEVICES
from kerf.model.nodepool import UNDERUTILIZED, WHEN_EMPTY, Budget, Disruption
from kerf.model.opportunistic import OPPORTUNISTIC
from kerf.model.plan import Deletion, NodePlacement, PlacedPod
from kerf.model.pods import Owner, PodDisruptionBudget
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import a_pod, resources
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, may_go, on, ours, pool_with
from tests.engine.disruption.test_pricecaps import DEAR, capped

FREE = free_pool()
X, Y = on("a", "x", cpu=1, uid="x"), on("b", "y", cpu=2, uid="y")
KEPT = {DO_NOT_DISRUPT: "true"}


@dataclass
class Parts:
    """What a cluster is made of; a test changes some of it."""

    pools: Sequence[Any] = (FREE,)
    nodes: Sequence[Any] = (ours("a"), ours("b"))
    pods: Sequence[Any] = ()
    budgets: Sequence[PodDisruptionBudget] = ()

    def snapshot(self) -> ClusterSnapshot:
        """The cluster of these."""
        return a_cluster(self.pools, self.nodes, self.pods, disruption_budgets=self.budgets)


EMPTY, FULLER, DEARER = Parts(), Parts(pods=(X, Y)), Parts((capped(),), (DEAR,), (on("dear", "web", cpu=3, uid="w"),))


def decided(parts: Parts) -> tuple[Command, World]:
    """The first command, and what it was made from."""
    world = World(parts.snapshot(), MARKET)
    command, _ = first_command(world, may_go(world.snapshot), tuple)
    assert command is not None
    return command, world


def left(parts: Parts, **changed: Any) -> Command | None:
    """What is left of the command once some parts are others; the rest comes as equal, not as the same objects."""
    command, world = decided(parts)
    return standing(command, world, replace(parts, **changed).snapshot())


def gone(command: Command | None) -> list[str]:
    """The nodes that a command takes away."""
    return [] if command is None else [deletion.node for deletion in command.deletions]


@pytest.mark.parametrize("parts", [EMPTY, FULLER, DEARER], ids=["empty", "consolidated", "replaced"])
def test_what_has_not_changed_stands(parts: Parts) -> None:
    """The very same command comes back, also where every object was read anew."""
    command, world = decided(parts)

    assert command is standing(command, world, parts.snapshot())


@pytest.mark.parametrize(
    "changed, stays",
    [
        pytest.param({"nodes": (ours("a", annotations=KEPT), ours("b"))}, ["a"], id="do-not-disrupt"),
        pytest.param(
            {"nodes": (ours("a", deleted_s=1.0), ours("b")), "pools": (pool_with(Budget("2")),)}, ["a"], id="goes"
        ),
        pytest.param({"nodes": (ours("a", reached=(LAUNCHED,)), ours("b"))}, ["a"], id="starts"),
        pytest.param({"nodes": (ours("b"),)}, ["a"], id="gone"),
        pytest.param({"pods": (X,)}, ["a"], id="filled"),
        pytest.param({"pods": (a_pod("n", nominated_node="a"),)}, ["a"], id="nominated"),
        pytest.param({"pools": (pool_with(Budget("1")),)}, ["b"], id="budget 1"),
        pytest.param({"pools": (pool_with(Budget("0")),)}, ["a", "b"], id="budget 0"),
        pytest.param({"pools": (replace(FREE, own_annotations={MIN_NODES: "1"}),)}, ["b"], id="floor"),
        pytest.param(
            {"pools": (replace(FREE, disruption=Disruption(None, budgets=(Budget("100%"),))),)}, ["a", "b"], id="Never"
        ),
        pytest.param({"pools": ()}, ["a", "b"], id="no pool"),
    ],
)
def test_an_empty_node_that_may_not_go_any_more_stays(changed: dict[str, Any], stays: list[str]) -> None:
    """The others go; a budget counts those that go."""
    assert ["a", "b"] == gone(decided(EMPTY)[0])
    assert [name for name in ("a", "b") if name not in stays] == gone(left(EMPTY, **changed))


def test_pods_that_hold_no_node_change_nothing() -> None:
    """A DaemonSet's pod and an opportunistic one may come to an empty node: it still counts as empty."""
    agent = on("a", "agent", cpu=1, owner=Owner("DaemonSet", "agent"))
    idle = on("b", "idle", cpu=1, labels={OPPORTUNISTIC: "true"})
    assert idle.is_opportunistic

    assert ["a", "b"] == gone(left(EMPTY, pods=(agent, idle)))


def test_the_cost_is_that_of_what_is_left() -> None:
    """One of two nodes at 0.192 stays."""
    command = left(EMPTY, pools=(pool_with(Budget("1")),))

    assert command is not None
    assert (384_000, 192_000) == (command.cost.before_micro, command.cost.after_micro)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"pods": (replace(X, annotations=KEPT), Y)}, id="do-not-disrupt"),
        pytest.param({"pods": (replace(X, uid="again"), Y)}, id="made again"),
        pytest.param({"pods": (replace(X, spec=a_pod(cpu=2).spec), Y)}, id="resized"),
        pytest.param({"pods": (X, Y, on("a", "late", cpu=1, uid="late"))}, id="another came"),
        pytest.param({"pods": (X, Y, on("b", "late", cpu=2, uid="late"))}, id="filled"),
        pytest.param({"pods": (X, replace(Y, spec=a_pod(cpu=4).spec))}, id="neighbour resized"),
        pytest.param({"pods": (Y,)}, id="empty now"),
        pytest.param({"pools": (free_pool(policy=WHEN_EMPTY),)}, id="WhenEmpty"),
        pytest.param({"nodes": (ours("a"), ours("b", taints=(Taint("maintenance", "", "NoSchedule"),)))}, id="tainted"),
        pytest.param({"nodes": (ours("a"), ours("b", is_unschedulable=True))}, id="cordoned"),
        pytest.param({"nodes": (ours("a"), ours("b", is_ready=False))}, id="not ready"),
        pytest.param({"nodes": (ours("a"), ours("b", deleted_s=1.0))}, id="going"),
        pytest.param({"nodes": (ours("a"),), "pods": (X,)}, id="gone"),
        pytest.param({"budgets": (PodDisruptionBudget("default", "x", a_pod().spec.node_selector, 0),)}, id="PDB"),
    ],
)
def test_a_node_whose_pods_may_not_move_any_more_stays(changed: dict[str, Any]) -> None:
    """Its pods are those that it had, nothing protects them, and each still fits where its place was found."""
    assert ["a"] == gone(decided(FULLER)[0])
    assert left(FULLER, **changed) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"pods": (X, Y, on("b", "late", cpu=1, uid="late"))},
        {"pods": (X, Y, a_pod("waits", cpu=2, uid="waits"))},
        {"nodes": (ours("a"), ours("b", annotations={"a": "b"}))},
        {"nodes": (ours("a"), ours("b"), ours("c")), "pods": (X, Y)},
    ],
    ids=["filled in part", "a pod waits", "an annotation", "another node"],
)
def test_a_destination_that_has_changed_and_still_has_room_will_do(changed: dict[str, Any]) -> None:
    """Else a busy cluster would never be consolidated."""
    assert ["a"] == gone(left(FULLER, **changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"pools": (replace(capped(), generation=2),)},
        {"pools": (capped("0.5"),)},
        {"pools": (replace(capped(), limits=resources(cpu=9)),)},
        {"pools": (replace(capped(), deleted_s=1.0),)},
        {"pools": (replace(capped(), disruption=Disruption(0, budgets=(Budget("0"),))),)},
        {"pods": ()},
        {"pods": (*DEARER.pods, on("dear", "late", cpu=1, uid="late"))},
        {"nodes": (ours("dear", instance_type="m5.2xlarge", annotations=KEPT),)},
        {"nodes": (), "pods": ()},
    ],
    ids=["generation", "cap", "limit", "pool goes", "budget", "empty now", "another came", "do-not-disrupt", "gone"],
)
def test_no_node_is_bought_in_the_place_of_one_that_has_changed(changed: dict[str, Any]) -> None:
    """The pools, the limits, and the old node with its pods are what they were."""
    assert 1 == len(decided(DEARER)[0].launches)
    assert left(DEARER, **changed) is None


@pytest.mark.parametrize("key", ["someone.dev/note", OBSERVED_DEVICES], ids=["someone else's", "a note of Kerf's"])
def test_an_annotation_that_no_plan_reads_changes_nothing(key: str) -> None:
    """Others may write theirs all the time."""
    noted = replace(capped(), own_annotations={MAX_PRICE: "0.25", key: "{}"})

    assert left(DEARER, pools=(noted,)) is not None


@pytest.mark.parametrize("cpu, stands", [("500m", True), (1, False)])
def test_pods_of_two_nodes_find_their_places_beside_each_other(cpu: Any, stands: bool) -> None:
    """Two cpus were free on `c` for one pod of each; now each would fit there alone, and both or one of them do."""
    pods = [on(name, f"p-{name}", cpu="750m", uid=name, owner=Owner("ReplicaSet", "web")) for name in "ab"]
    pods.append(on("c", "p-c", cpu=2, uid="c"))
    parts = Parts(nodes=(ours("a"), ours("b"), ours("c")), pods=tuple(pods))
    world = World(parts.snapshot(), MARKET)
    places = {name: (NodePlacement(PlacedPod(f"default/p-{name}"), "c"),) for name in "ab"}
    command = deleting(
        world,
        tuple(Deletion(n, n, "pool", 192_000, UNDERUTILIZED, PodsFit(1), place) for n, place in places.items()),
    )
    assert command is standing(command, world, parts.snapshot())

    fuller = replace(parts, pods=(*pods, on("c", "new", cpu=cpu, uid="new")))

    assert stands == (standing(command, world, fuller.snapshot()) is not None)
