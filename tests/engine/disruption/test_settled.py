"""What is taken away is decided beside the present plan: each of both can be carried out."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.disruption import drift, pricecaps, repair, staticdrift
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.first import first_command
from kerf.engine.disruption.settled import Settled
from kerf.engine.world import World
from kerf.model.nodeclaim import DRIFTED, TRUE, UNHEALTHY, Condition, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterSnapshot, Upserted
from kerf.sharing.hami.records import ALLOCATED, NODE
from kerf.state import ClusterState
from kerf.testing.builders import NOON_S, a_pod
from tests.engine.disruption.clusters import MARKET, free_pool, may_go, on, ours
from tests.engine.disruption.test_pricecaps import capped
from tests.engine.worlds import a_hami_node

CARD_MIB = 22_888
HAMI: dict[str, Any] = {"gpu": 1, "scheduler_name": "hami-scheduler"}


def cluster(pools: list[NodePool], nodes: list[tuple[Node, NodeClaim]], pods: list[Pod]) -> ClusterSnapshot:
    """As the state of a cluster joins them, cards and all."""
    state = ClusterState(assume_node_classes=True)
    for value in (*pools, *(each for pair in nodes for each in pair), *pods):
        state.apply(Upserted(value))
    return state.snapshot(NOON_S)


def gpu_node(name: str, **given: Any) -> tuple[Node, NodeClaim]:
    """A node of ours with one card of HAMi's."""
    amounts = {"cpu": 4, "pods": 58, "nvidia.com/gpu": 10}
    node, claim = ours(name, instance_type="g5.xlarge", allocatable=amounts, **given)
    return a_hami_node(node, 1), claim


def running(node: str, name: str, mib: int) -> Pod:
    """A slice that HAMi has placed."""
    record = {NODE: node, ALLOCATED: f"gpu-0,NVIDIA,{mib},20:;"}
    return on(node, name, cpu="500m", gpumem=mib, cores=20, annotations=record, uid=name, **HAMI)


def waiting(name: str, mib: int, cores: int = 40) -> Pod:
    """A slice that waits."""
    return a_pod(name, cpu="500m", gpumem=mib, cores=cores, uid=name, **HAMI)


def both(snapshot: ClusterSnapshot) -> tuple[Decision, Command | None]:
    """The plan for the pods that wait, and what is taken away beside it."""
    world = World(snapshot, MARKET)
    made = decide(world)
    command, _ = first_command(world, may_go(snapshot), lambda: made.placements, plan=lambda: made)
    return made, command


def gone(command: Command | None) -> list[str]:
    """The nodes that go."""
    return [] if command is None else [each.node for each in command.deletions]


def used_mib(snapshot: ClusterSnapshot, made: Decision, command: Command | None) -> Counter[str]:
    """What the cards of each node that stays hold once all is done, by what the pods ask."""
    asked = {pod.key: pod.spec.containers[0].limits.get("nvidia.com/gpumem", 0) for pod in snapshot.pending}
    used = Counter[str]()
    for node in snapshot.nodes:
        asked.update({pod.key: pod.spec.containers[0].limits.get("nvidia.com/gpumem", 0) for pod in node.pods})
        if node.name not in gone(command):
            used[node.name] += sum(asked[pod.key] for pod in node.pods)
    moved = [place for each in (command.deletions if command else ()) for place in each.moved]
    for place in (*made.placements, *moved):
        used[place.node] += asked[place.pod.pod]
    return used


@pytest.mark.parametrize(
    ("runs", "waits"), [(9_000, 12_000), (9_000, 13_888), (11_000, 11_000), (12_000, 9_000), (9_000, 13_000)]
)
def test_room_of_a_pod_that_waits_is_given_to_no_other(runs: int, waits: int) -> None:
    """Either node holds what the other runs, or what waits, and not both."""
    pods = [running("a", "x", runs), running("b", "y", runs), waiting("new", waits)]
    made, command = both(cluster([free_pool()], [gpu_node("a"), gpu_node("b")], pods))

    assert (1, 0) == (len(made.placements), len(made.launches))
    assert command is None


def test_a_node_goes_where_its_pods_fit_beside_what_waits() -> None:
    """Three slices fill one card to 22,000 of 22,888 MiB."""
    pods = [running("a", "x", 9_000), running("b", "y", 9_000), waiting("new", 4_000)]
    snapshot = cluster([free_pool()], [gpu_node("a"), gpu_node("b")], pods)
    made, command = both(snapshot)

    assert 1 == len(gone(command))
    assert [22_000] == [mib for mib in used_mib(snapshot, made, command).values() if mib]


@pytest.mark.parametrize("waits", [2_000, 5_000, 8_000, 11_000, 14_000, 20_000])
@pytest.mark.parametrize("runs", [3_000, 7_000, 10_000, 15_000])
def test_no_card_is_promised_twice(runs: int, waits: int) -> None:
    """Four nodes, three pods that wait: whatever goes, each card holds what comes to it."""
    names = "abcd"
    pods = [running(name, f"x-{name}", runs - 500 * at) for at, name in enumerate(names)]
    pods += [waiting(f"new-{at}", waits - 700 * at, cores=10) for at in range(3)]
    snapshot = cluster([free_pool()], [gpu_node(name) for name in names], pods)
    made, command = both(snapshot)

    assert all(mib <= CARD_MIB for mib in used_mib(snapshot, made, command).values())


def drifted(node: tuple[Node, NodeClaim]) -> tuple[Node, NodeClaim]:
    """A node that is not what its pool says."""
    return node[0], node[1].with_condition(Condition(DRIFTED, TRUE, "NodePoolDrifted", since_s=NOON_S - 600))


def broken(node: tuple[Node, NodeClaim]) -> tuple[Node, NodeClaim]:
    """A node that is to be repaired."""
    return node[0], node[1].with_condition(Condition(UNHEALTHY, TRUE, "Ready", since_s=NOON_S - 600))


@pytest.mark.parametrize("method, due", [(drift, drifted), (repair, broken)])
def test_a_node_that_must_go_gets_another_beside_what_waits(method: Any, due: Any) -> None:
    """Its pod finds the room of the other node promised: a node is bought for it."""
    nodes = [due(gpu_node("a")), gpu_node("b")]
    pods = [running("a", "x", 9_000), running("b", "y", 9_000), waiting("new", 12_000)]
    # It waits for the node that stays.
    pods[2] = replace(pods[2], spec=replace(pods[2].spec, node_selector=on_node("b")))
    snapshot = cluster([replace(free_pool(), labels={"gpu": "on"})], nodes, pods)
    command = next(method.propose(World(snapshot, MARKET), may_go(snapshot)))

    assert (["a"], 1, ()) == (gone(command), len(command.launches), command.deletions[0].moved)


def on_node(name: str) -> Any:
    """The labels of one node."""
    return a_pod(selector={"kubernetes.io/hostname": name}).spec.node_selector


@pytest.mark.parametrize("most, goes", [(2, []), (3, ["dear"])])
def test_what_is_bought_for_pods_that_wait_counts_against_limits(most: int, goes: list[str]) -> None:
    """The pool may have one node more, and the pod that waits gets it: none comes in the place of another."""
    pool = replace(capped(), limits=Resources.parse({"nodes": str(most)}))
    dear = ours("dear", instance_type="m5.2xlarge", allocatable={"cpu": 5, "memory": "16Gi", "pods": 58})
    snapshot = cluster([pool], [dear], [on("dear", "x", cpu=3), a_pod("new", cpu=3)])
    world = World(snapshot, MARKET)

    assert 1 == len(decide(world).launches)
    assert goes == [node for each in pricecaps.propose(world, may_go(snapshot)) for node in gone(each)]


@pytest.mark.parametrize("most, goes", [(2, []), (3, ["a"])])
def test_a_static_pool_replaces_none_where_its_missing_node_is_the_last_of_its_limit(
    most: int, goes: list[str]
) -> None:
    """One of its nodes is missing, and is bought: its limit then allows one for the node that drifted, or none."""
    pool = replace(free_pool(), replicas=2, limits=Resources.parse({"nodes": str(most)}))
    snapshot = cluster([pool], [drifted(ours("a"))], [on("a", "x", cpu=1)])
    commands = staticdrift.propose(World(snapshot, MARKET), may_go(snapshot))

    assert goes == [node for each in commands for node in gone(each)]


def test_nothing_that_waits_asks_for_no_plan() -> None:
    """A plan costs time, and of a cluster where all pods run there is none."""
    pods = [running("a", "x", 9_000), running("b", "y", 9_000)]
    snapshot = cluster([free_pool()], [gpu_node("a"), gpu_node("b")], pods)

    assert ({}, (), frozenset()) == (
        (settled := Settled.of(World(snapshot, MARKET))).homes,
        settled.coming,
        settled.bought_for,
    )
