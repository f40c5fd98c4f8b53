"""Room of pods that end is about to be free: what saves money waits for it, and buys nothing meanwhile."""

from dataclasses import replace

import pytest

from kerf.engine.disruption.command import Command
from kerf.engine.disruption.departing import once_ended
from kerf.engine.disruption.first import first_command
from kerf.engine.world import World
from kerf.model.nodeclaim import DRIFTED, TRUE, Condition
from kerf.model.pods import Owner, Pod
from kerf.model.snapshot import ClusterSnapshot, Upserted
from kerf.sharing.hami.records import ALLOCATED, NODE
from kerf.state import ClusterState
from kerf.testing.builders import NOON_S, a_pool
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, may_go, on, ours
from tests.engine.worlds import a_hami_node

DAY_S = 86_400.0


STAY = (5, 4, 5, 5, 5)
"""Of the eight pods of each node."""


def fleet(ends_s: float | None) -> ClusterSnapshot:
    """Five full nodes of equal pods, old ones, of which some stay and the others end then, or have ended."""
    web = Owner("ReplicaSet", "web")
    held: list[Pod] = []
    for node, stay in enumerate(STAY):
        for number in range(8):
            pod = on(f"n{node}", f"p{node}-{number}", cpu="450m", owner=web, created_s=NOON_S - DAY_S)
            if number < stay:
                held.append(pod)
            elif ends_s is not None:
                held.append(replace(pod, deleted_s=ends_s))
    pool = replace(free_pool(), requirements=a_pool(types=["m5.xlarge"]).requirements)
    return a_cluster([pool], [ours(f"n{node}") for node in range(len(STAY))], held)


def first(snapshot: ClusterSnapshot) -> Command | None:
    """What is done."""
    return first_command(World(snapshot, MARKET), may_go(snapshot), tuple)[0]


def test_nothing_is_bought_for_pods_whose_room_is_about_to_be_free() -> None:
    """40 pods become 24: all wait for the 16 that end, and then two nodes go and the pods of these two alone move."""
    assert None is first(fleet(NOON_S + 600))

    command = first(fleet(None))
    assert command is not None
    moved = [place.pod.pod for each in command.deletions for place in each.moved]
    assert ((), 2, True) == (command.launches, len(command.deletions), len(moved) <= 10)


@pytest.mark.parametrize(
    ("ends_s", "waits"),
    [
        pytest.param(NOON_S - 30, True, id="it is over its grace"),
        pytest.param(NOON_S - 61, False, id="it is stuck"),
        pytest.param(NOON_S + 3_600, True, id="within the hour"),
        pytest.param(NOON_S + 3_601, False, id="not for long"),
    ],
)
def test_room_counts_as_about_to_be_free_for_a_while(ends_s: float, waits: bool) -> None:
    """What does not end by itself, or not for hours, is there."""
    world = World(fleet(ends_s), MARKET)

    assert waits == (once_ended(world) is not world)


def test_a_pod_that_comes_back_does_not_leave() -> None:
    """One of a StatefulSet is made again under its name, and takes its room again."""
    pods = [on("a", "db-0", cpu=1, owner=Owner("StatefulSet", "db"), deleted_s=NOON_S + 30)]
    world = World(a_cluster([free_pool()], [ours("a")], pods), MARKET)

    assert once_ended(world) is world


def test_a_step_that_needs_no_such_room_does_not_wait() -> None:
    """The pod of `a` fits on `b` now, whatever ends on `c`."""
    pods = [on("a", "x", cpu=1), on("b", "y", cpu=1), on("c", "z", cpu=3), on("c", "ends", cpu="500m")]
    pods[3] = replace(pods[3], deleted_s=NOON_S + 600)
    command = first(a_cluster([free_pool()], [ours("a"), ours("b"), ours("c")], pods))

    assert command is not None
    assert {"b"} == {place.node for each in command.deletions for place in each.moved} or {"a"} == {
        place.node for each in command.deletions for place in each.moved
    }


def test_a_node_that_has_drifted_does_not_wait() -> None:
    """It is not what its pool says; another is bought in its place."""
    snapshot = fleet(NOON_S + 600)
    node, claim = ours("n0")
    drifted = claim.with_condition(Condition(DRIFTED, TRUE, "NodePoolDrifted", since_s=NOON_S - 600))
    nodes = tuple(replace(each, claim=drifted) if each.name == node.name else each for each in snapshot.nodes)
    command = first(replace(snapshot, nodes=nodes))

    assert command is not None
    assert (["n0"], 1) == ([each.node for each in command.deletions], len(command.launches))


def test_the_cards_of_pods_that_end_are_about_to_be_free() -> None:
    """HAMi's slice of 9000 MiB is given back, and that beside it stays."""
    state = ClusterState(assume_node_classes=True)
    amounts = {"cpu": 4, "pods": 58, "nvidia.com/gpu": 10}
    node, claim = ours("a", instance_type="g5.xlarge", allocatable=amounts)
    record = {NODE: "a", ALLOCATED: "gpu-0,NVIDIA,9000,20:;"}
    stays, ends = (
        on(
            "a",
            name,
            cpu=1,
            gpu=1,
            gpumem=9_000,
            cores=20,
            annotations=record,
            uid=name,
            scheduler_name="hami-scheduler",
        )
        for name in ("stays", "ends")
    )
    for value in (free_pool(), a_hami_node(node, 1), claim, stays, replace(ends, deleted_s=NOON_S + 60)):
        state.apply(Upserted(value))
    world = World(state.snapshot(NOON_S), MARKET)
    (before,), (after,) = world.snapshot.nodes, once_ended(world).snapshot.nodes
    cards = [each.devices[0] for each in (before, after)]

    assert [(18_000, 40, 2), (9_000, 20, 1)] == [(c.used_memory_mib, c.used_cores, c.used_slots) for c in cards]
    assert ["default/stays"] == [pod.key for pod in after.pods]
