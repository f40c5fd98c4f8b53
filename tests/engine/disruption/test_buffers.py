"""Nodes with room that CapacityBuffers keep: protected from emptiness alone, and never given up to be bought again."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.decide import decide
from kerf.engine.disruption.buffers import with_buffers
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.first import first_command
from kerf.engine.disruption.keeping import Fates
from kerf.engine.disruption.standing import standing
from kerf.engine.explain.disruption import explained, keeping_text
from kerf.engine.explain.plan import explain
from kerf.engine.options import Options
from kerf.engine.study.steps import steps
from kerf.engine.world import World
from kerf.model.capacitybuffers import CapacityBuffer
from kerf.model.nodeclaim import DRIFTED, REPLACED_BY, REPLACES, TRUE, Condition
from kerf.model.nodepool import WHEN_EMPTY
from kerf.model.pods import Pod
from kerf.model.provisioningrequests import PodTemplate
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.model.uses import Use
from kerf.testing.builders import NOON_S, a_pod
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, may_go, on, ours
from tests.engine.worlds import HAMI, a_hami_node, a_slice, seen

PLAN = Options(with_bound=False)
LARGE: dict[str, Any] = {"instance_type": "m5.2xlarge", "allocatable": {"cpu": 8, "memory": "32Gi", "pods": 58}}


def a_buffer(replicas: int = 1) -> CapacityBuffer:
    """Of the template that `world` has."""
    return CapacityBuffer("team", "spare", "t", replicas=replicas, created_s=NOON_S - 86_400)


def world(nodes: list[Any], pods: Iterable[Pod] = (), *, keeps: int = 1, cpu: float = 1, **given: Any) -> World:
    """Nodes that may go, and a buffer for so many pods of so much cpu; none for 0."""
    limits = Resources(given.pop("limits")) if "limits" in given else None
    pool = replace(free_pool(**given), own_annotations={Use.BUFFER: "team"}, limits=limits)
    template = PodTemplate("team", "t", a_pod("t", namespace="team", cpu=cpu))
    buffers = (a_buffer(keeps),) if keeps else ()
    more = {"pod_templates": (template,), "capacity_buffers": buffers}
    return World(a_cluster([pool], nodes, pods, **more), MARKET)


def first(given: World) -> Command | None:
    """The command that the controller would rest."""
    return first_command(given, may_go(given.snapshot), lambda: decide(given, PLAN).placements)[0]


def gone(given: World) -> list[str]:
    """The nodes that go."""
    command = first(given)
    return [] if command is None else [each.node for each in command.deletions]


def after(given: World, command: Command) -> ClusterSnapshot:
    """The snapshot without the nodes that go."""
    names = {each.node for each in command.deletions}
    return replace(given.snapshot, nodes=tuple(node for node in given.snapshot.nodes if node.name not in names))


@pytest.mark.parametrize("policy", [{}, {"policy": WHEN_EMPTY}])
def test_a_node_with_room_of_a_buffer_is_not_empty(policy: dict[str, Any]) -> None:
    """It goes once the buffer is gone."""
    assert [] == gone(world([ours("a")], **policy))
    assert ["a"] == gone(world([ours("a")], keeps=0, **policy))


def test_only_as_many_nodes_stay_as_hold_the_room() -> None:
    """The others are as empty as ever."""
    assert ["b"] == gone(world([ours("a"), ours("b")]))
    assert ["c"] == gone(world([ours("a"), ours("b"), ours("c")], keeps=2, cpu=3))


def test_it_says_why_it_stays() -> None:
    """Karpenter's words, and whose room it is; a node with pods of its own stays for other reasons."""
    given = world([ours("a")])
    made = explain(decide(given, PLAN))
    cause = Fates(given, made).keeping(given.snapshot.nodes[0])

    assert "it has buffer pods: CapacityBuffer team/spare has room there" == keeping_text(cause)


def test_its_room_goes_along_to_a_node_that_has_some() -> None:
    """A node goes with a pod and a buffer's place where both are found on another one."""
    given = world([ours("a"), ours("b")], [on("a", "x", cpu=1, uid="x"), on("b", "y", cpu=1, uid="y")])
    command = first(given)

    assert command is not None
    assert 1 == len(command.deletions)
    assert () == decide(World(after(given, command), MARKET), PLAN).launches


def test_no_room_is_given_up_that_would_be_bought_again() -> None:
    """The pod alone fits beside the other one. With what the buffer keeps it does not, and a node would come again."""
    nodes = [ours("a"), ours("b")]
    pods = [on("a", "x", cpu=1, uid="x"), on("b", "y", cpu=2, uid="y")]

    assert 1 == len(gone(world(nodes, pods, keeps=0)))
    assert [] == gone(world(nodes, pods, cpu=2))


def test_a_cheaper_node_takes_its_place_first() -> None:
    """A buffer that has become small needs no large node; the new one is promised to it, so that nothing is bought
    beside it."""
    command = first(world([ours("big", **LARGE)]))

    assert command is not None
    assert ["big"] == [each.node for each in command.deletions]
    assert ["m5.xlarge"] == [each.offering.instance_type for each in command.launches]
    assert ["capacitybuffer:team.spare/0-0"] == [each.pod for launch in command.launches for each in launch.pods]
    assert [command.launches[0].name] == [*command.deletions[0].replaced_by]


def test_what_it_needs_is_no_reason_to_move() -> None:
    """A node of the right size stays, for ever."""
    assert [] == gone(world([ours("big", **LARGE)], cpu=6))


def drifted(name: str, **given: Any) -> Any:
    """A node that is not what its pool says."""
    node, claim = ours(name, **given)
    return node, claim.with_condition(Condition(DRIFTED, TRUE, "NodePoolDrifted", "", NOON_S - 60))


def test_drift_brings_another_first_and_waits_for_no_room() -> None:
    """Karpenter's replacements hold the buffer, too. Where none can be bought the node goes all the same."""
    replaced = first(world([drifted("a")]))
    assert replaced is not None
    assert 1 == len(replaced.launches)

    bare = first(world([drifted("a")], limits={"nodes": 1}))
    assert bare is not None
    assert (["a"], ()) == ([each.node for each in bare.deletions], bare.launches)


def test_drift_takes_the_room_of_one_node_after_the_other() -> None:
    """While the first is replaced the second stays: what comes is no room for both, whatever its pods are called."""
    (node, going), (_, new) = drifted("a"), ours("new", reached=())
    first_goes = node, replace(going, annotations={REPLACED_BY: "new"})
    promise = {"kerf.dev/planned-pods": '{"capacitybuffer:team.spare/0-0": []}', REPLACES: "a"}
    coming = ClusterNode(None, replace(new, annotations=promise, node_name="", provider_id=""))
    given = world([first_goes, drifted("b")], keeps=2, cpu=3)
    both = replace(given.snapshot, nodes=(*given.snapshot.nodes, coming))

    assert [] == gone(World(both, MARKET))

    up = first(world([drifted("b"), ours("new")], keeps=2, cpu=3))
    assert up is not None
    assert (["b"], 1) == ([each.node for each in up.deletions], len(up.launches))


def test_what_rests_stands_and_a_pod_that_comes_ends_it() -> None:
    """A node without pods may be underutilised by what a buffer keeps there."""
    given = world([ours("big", **LARGE)])
    command = first(given)
    assert command is not None
    assert command is standing(command, given, given.snapshot)

    late = world([ours("big", **LARGE)], [on("big", "late", cpu=1, uid="late")])
    assert standing(command, given, late.snapshot) is None


def test_no_node_comes_beside_one_that_was_bought_for_the_room() -> None:
    """Others had taken it and have gone: until the new node is up the old one stays as it is."""
    promise = {"kerf.dev/planned-pods": '{"capacitybuffer:team.spare/0-0": []}'}
    (node, of_big), (_, claim) = ours("big", **LARGE), ours("new", reached=())
    old = node, replace(of_big, annotations=promise)
    coming = ClusterNode(None, replace(claim, annotations=promise, node_name="", provider_id=""))
    given = world([old])
    both = replace(given.snapshot, nodes=(*given.snapshot.nodes, coming))

    assert ["big"] == gone(given)
    assert [] == gone(World(both, MARKET))


def test_its_pods_are_on_their_nodes_with_their_slices() -> None:
    """So that cards hold what a buffer keeps for those who decide what goes."""
    slices = PodTemplate("team", "t", a_slice("t", namespace="team", gpumem=8192, cpu=1))
    pool = replace(free_pool(), own_annotations={Use.BUFFER: "team"}, labels=HAMI)
    node, claim = ours("a", instance_type="g5.xlarge")
    given = World(seen(pool, a_hami_node(node), claim, slices, a_buffer(2)), MARKET)
    held = with_buffers(given, decide(given, PLAN).placements).snapshot

    assert [0] == [each.used_memory_mib for each in given.snapshot.nodes[0].devices]
    assert [2 * 8192] == [each.used_memory_mib for each in held.nodes[0].devices]
    assert ["a", "a"] == [pod.node_name for pod in held.nodes[0].pods]
    assert () == held.capacity_buffers


def test_what_would_be_done_step_by_step_keeps_the_room() -> None:
    """`kerf plan --consolidate`: a cheaper node for the buffer, counted as no pod that moves, and then nothing more."""
    given = world([ours("big", **LARGE), ours("b")], [on("b", "y", cpu=3, uid="y")], cpu=2)
    (found,) = steps(given)

    assert (["big"], 0) == ([each.node for each in found.command.deletions], found.moved)
    assert ["m5.xlarge"] == [each.offering.instance_type for each in found.command.launches]
    assert [] == list(steps(world([ours("a")])))
    said = explained(found.command)
    assert "comes in the place of node big, which then goes" == said.launches[0].why
    assert "the room that is kept costs less on 1 new node, saves 0.192 USD/h" == said.deletions[0].why
