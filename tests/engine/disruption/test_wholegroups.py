"""A group of pods moves whole or not at all, whichever voluntary method asks for its nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from kerf.engine.disruption import consolidation, drift, pricecaps, repacking, repair, staticdrift
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.keeping import Fates
from kerf.engine.disruption.standing import standing
from kerf.engine.disruption.wholegroups import WholeGroups
from kerf.engine.explain.disruption import keeping_text, obstacle_text
from kerf.engine.world import World
from kerf.model.groups import CoschedulingGroup
from kerf.model.nodeclaim import DO_NOT_DISRUPT, REPLACED_BY
from kerf.model.nodepool import Budget, Disruption
from kerf.model.plan import Cost, Plan
from kerf.model.pods import SUCCEEDED, Pod
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import a_pool
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, may_go, on, ours, pool_with
from tests.engine.disruption.test_drift import drifted
from tests.engine.disruption.test_pricecaps import capped
from tests.engine.disruption.test_repair import broken

TRAIN = {"kerf.dev/pod-group": "train", "kerf.dev/pod-group-min": "2"}
NOTHING = Plan("cost", Cost("USD", 0, 0))


def member(node: str, name: str, *, cpu: int = 1, labels: Mapping[str, str] = TRAIN, **given: Any) -> Pod:
    """A pod of the group that runs on a node."""
    return on(node, name, cpu=cpu, labels=labels, uid=name, **given)


def of(least: object) -> Mapping[str, str]:
    """The labels of a group that needs so many."""
    return {"kerf.dev/pod-group": "train", "kerf.dev/pod-group-min": str(least)}


def saved(*pods: Pod, nodes: Sequence[str] = ("a", "b", "c"), **given: Any) -> list[str]:
    """The nodes that consolidation takes one by one, from those that may go; the last has a pod of its own."""
    held = a_cluster([free_pool()], [ours(each) for each in nodes], [*pods, on(nodes[-1], "z", cpu=1)], **given)
    found = [
        each.node for command in consolidation.propose(World(held, MARKET), may_go(held)) for each in command.deletions
    ]
    return sorted(set(found) - {nodes[-1]})


def all_of(method: Any, held: ClusterSnapshot) -> list[Command]:
    """All that a method has, best first."""
    return list(method.propose(World(held, MARKET), may_go(held)))


def going(method: Any, held: ClusterSnapshot) -> list[list[str]]:
    """The nodes of each command."""
    return [[each.node for each in command.deletions] for command in all_of(method, held)]


def test_a_group_on_two_nodes_loses_no_member_for_money() -> None:
    """Though each of its pods would fit beside the other, or on the third node."""
    assert [] == saved(member("a", "x"), member("b", "y"))


def test_a_group_on_one_node_moves_as_a_whole() -> None:
    """All its places are found first."""
    assert ["a"] == saved(member("a", "x"), member("a", "y"), on("b", "w", cpu=3, annotations={DO_NOT_DISRUPT: "true"}))


@pytest.mark.parametrize(
    ("least", "moves"), [(1, ["a", "b", "c"]), (2, ["a", "b", "c"]), (3, []), ("many", []), (4, ["a", "b", "c"])]
)
def test_members_beyond_the_number_are_single_pods(least: object, moves: list[str]) -> None:
    """Three run: with two needed one may go. A number that cannot be read asks for all. A group of which too few run
    has nothing to lose."""
    pods = [member(node, f"x{node}", labels=of(least)) for node in "abc"]

    assert moves == saved(*pods, nodes=("a", "b", "c", "d"))


def test_members_that_have_ended_well_count() -> None:
    """Of three one is done: each of the other two is needed still."""
    done = replace(member("a", "done", labels=of(3)), phase=SUCCEEDED)

    assert [] == saved(member("a", "x", labels=of(3)), member("b", "y", labels=of(3)), grouped=(done,))


def test_a_group_without_its_object_is_none() -> None:
    """Its scheduler takes the pods one by one, too."""
    pods = [member(node, f"x{node}", labels={"scheduling.x-k8s.io/pod-group": "train"}) for node in "ab"]

    assert ["a", "b"] == saved(*pods)
    assert [] == saved(*pods, pod_groups=(CoschedulingGroup("default", "train", 2),))


def test_equal_names_in_other_namespaces_are_other_groups() -> None:
    """Each has one member here and none elsewhere."""
    assert ["a", "b"] == saved(member("a", "x"), member("b", "x", namespace="other"))


def test_a_member_on_a_node_that_is_deleted_holds_no_other() -> None:
    """The group loses it anyway, so the rest goes along; a node that may still stay holds it."""
    node, claim = ours("b")
    marked = node, replace(claim, annotations={REPLACED_BY: "new"})
    pods = [member("a", "x"), member("b", "y"), on("c", "z", cpu=1)]

    deleted = a_cluster([free_pool()], [ours("a"), ours("b", deleted_s=1.0), ours("c")], pods)
    assert ["a"] in going(consolidation, deleted)
    assert ["a"] not in going(consolidation, a_cluster([free_pool()], [ours("a"), marked, ours("c")], pods))


def test_a_node_above_its_cap_stays_for_a_group() -> None:
    """It would be replaced by a cheaper one otherwise."""
    nodes = [ours("a", instance_type="m5.2xlarge"), ours("b")]
    pods = [member("a", "x", cpu=3), member("b", "y", cpu=3)]

    assert [] == going(pricecaps, a_cluster([capped()], nodes, pods))
    assert [["a"]] == going(pricecaps, a_cluster([capped()], nodes, [replace(each, labels={}) for each in pods]))


def test_repacking_leaves_groups_alone() -> None:
    """Also one that is whole on one node."""
    nodes = [ours("a", instance_type="m5.2xlarge"), ours("b", instance_type="m5.2xlarge")]

    assert [] == going(repacking, a_cluster([free_pool()], nodes, [member("a", "x"), member("b", "y")]))


def of_drift(pool: Any, *, pods: Sequence[Pod] = (), nodes: Sequence[Any] | None = None) -> ClusterSnapshot:
    """Two nodes that have drifted with a member each, and two sound ones that are full."""
    members = [member("a", "x", cpu=3), member("b", "y", cpu=3)]
    held = [drifted("a", since_s=1), drifted("b", since_s=3)] if nodes is None else nodes
    full = [on(f"n{at}", f"p{at}", cpu=3) for at in range(2)]
    return a_cluster([pool], [*held, ours("n0"), ours("n1")], [*members, *full, *pods])


def test_the_nodes_of_a_group_drift_in_one_step() -> None:
    """Each of them waits for all that is bought: where one launch fails, none goes. Others go alone, by their age."""
    commands = all_of(
        drift,
        of_drift(
            a_pool(types=("m5.xlarge",), disruption=Disruption(0, budgets=(Budget("100%"),))),
            nodes=[drifted("a"), drifted("b", since_s=3), drifted("d", since_s=2)],
            pods=[on("d", "w", cpu=3)],
        ),
    )
    first = commands[0]

    assert [["a", "b"], ["d"]] == [[each.node for each in command.deletions] for command in commands]
    names = tuple(launch.name for launch in first.launches)
    assert 2 == len(names)
    assert [names, names] == [each.replaced_by for each in first.deletions]
    assert [("a", "b"), ("a", "b")] == [launch.replaces for launch in first.launches]


def test_where_the_budget_allows_fewer_the_group_waits() -> None:
    """And says so; others go meanwhile."""
    held = of_drift(
        pool_with(Budget("1")), nodes=[drifted("a"), drifted("b"), drifted("d", since_s=2)], pods=[on("d", "w", cpu=3)]
    )
    text = "its pods belong to group train, which moves as a whole or not at all: 1 of 2 is here, the others on b; "
    text += "2 nodes of NodePool pool would go together, and its budgets allow only 1 now"

    assert [["d"]] == going(drift, held)
    blocked = drift.waiting(World(held, MARKET), may_go(held))
    assert ["a", "b"] == [each.node for each in blocked]
    assert text == obstacle_text(blocked[0].cause)
    assert f"the template of its NodePool has changed (NodePoolDrifted), and stays: {text}" == kept(held)


def kept(held: ClusterSnapshot, name: str = "a") -> str:
    """What is said of a node that stays."""
    node = held.node(name)
    assert node is not None
    return keeping_text(Fates(World(held, MARKET), NOTHING).keeping(node))


@pytest.mark.parametrize(
    "other", [ours("b"), drifted("b", annotations={DO_NOT_DISRUPT: "true"})], ids=["sound", "kept"]
)
def test_a_group_waits_for_a_node_that_may_not_go(other: Any) -> None:
    """One that is as it should be, or one that a person keeps."""
    held = of_drift(free_pool(), nodes=[drifted("a"), other])

    assert [] == going(drift, held)
    assert kept(held).endswith("1 of 2 is here, the others on b; b may not go now")


def test_what_keeps_a_node_for_its_group_is_said() -> None:
    """Of one that would go to save money."""
    held = a_cluster(
        [free_pool()], [ours("a"), ours("b"), ours("c")], [member(name, f"x{name}", labels=of(3)) for name in "abc"]
    )
    text = "its pods belong to group train, which moves as a whole or not at all: 1 of 3 is here, the others on b, c"

    assert text == kept(held)


def test_nodes_that_share_groups_go_together_in_a_chain() -> None:
    """One group on a and b, another on b and c."""
    other = {"kerf.dev/pod-group": "other", "kerf.dev/pod-group-min": "2"}
    pods = [member("a", "x"), member("b", "y"), member("b", "v", labels=other), member("c", "w", labels=other)]
    shuffled = list(pods)
    Random(7).shuffle(shuffled)
    for each in (pods, shuffled):
        groups = WholeGroups.of(a_cluster([free_pool()], [drifted(name) for name in "abcd"], each))
        assert (("a", "b", "c"), ("d",)) == (groups.company("b"), groups.company("d"))


@pytest.mark.parametrize(("budget", "gone"), [("100%", [["a", "b"]]), ("2", [["a", "b"]]), ("1", [])])
def test_nodes_of_a_static_pool_are_replaced_in_one_step_for_a_group(budget: str, gone: list[list[str]]) -> None:
    """Each waits for both."""
    pool = replace(pool_with(Budget(budget)), replicas=2)
    commands = all_of(
        staticdrift, a_cluster([pool], [drifted("a"), drifted("b")], [member("a", "x"), member("b", "y")])
    )

    assert gone == [[each.node for each in command.deletions] for command in commands]
    for command in commands:
        names = tuple(launch.name for launch in command.launches)
        assert [names, names] == [each.replaced_by for each in command.deletions]


def test_a_broken_node_asks_no_group() -> None:
    """It serves its member no more."""
    held = a_cluster([free_pool()], [broken("a"), ours("b")], [member("a", "x"), member("b", "y")])

    assert [["a"]] == going(repair, held)


def test_a_command_falls_when_a_member_is_elsewhere_meanwhile() -> None:
    """Three members of one group were on the node, and one is made again on another while the command rests."""
    nodes = [ours("a"), ours("b")]
    pods = [*(member("a", f"x{at}") for at in range(2)), on("b", "z", cpu=1)]
    before = World(a_cluster([free_pool()], nodes, pods), MARKET)
    command = next(each for each in all_of(consolidation, before.snapshot) if each.deletions[0].node == "a")

    assert command is standing(command, before, a_cluster([free_pool()], nodes, pods))
    assert standing(command, before, a_cluster([free_pool()], nodes, [*pods, member("b", "x2", labels=of(3))])) is None


def test_half_of_a_step_does_not_stand() -> None:
    """Someone keeps one of the two nodes while the command rests."""
    before = World(of_drift(free_pool()), MARKET)
    command = all_of(drift, before.snapshot)[0]
    now = of_drift(free_pool(), nodes=[drifted("a"), drifted("b", annotations={DO_NOT_DISRUPT: "true"})])

    assert ["a", "b"] == [each.node for each in command.deletions]
    assert standing(command, before, now) is None


def a_fleet(random: Random) -> ClusterSnapshot:
    """Some nodes, of which some have drifted, with members of three groups and single pods, in random places."""
    names = [f"n{at}" for at in range(random.randint(3, 8))]
    nodes = [drifted(name, since_s=at) if random.random() < 0.5 else ours(name) for at, name in enumerate(names)]
    pods = []
    for at in range(random.randint(2, 3 * len(names))):
        group, least = random.choice("xyz"), random.randint(1, 4)
        labels = {"kerf.dev/pod-group": group, "kerf.dev/pod-group-min": str(least)} if random.random() < 0.7 else {}
        pods.append(member(random.choice(names), f"p{at}", labels=labels))
    return a_cluster(
        [replace(capped("0.1"), disruption=pool_with(Budget(f"{random.choice([20, 50, 100])}%")).disruption)],
        nodes,
        pods,
    )


@pytest.mark.parametrize("seed", range(60))
def test_no_command_breaks_a_group_that_works(seed: int) -> None:
    """Whatever the fleet. Of each group that has its number of members as many are left, or none."""
    held = a_fleet(Random(seed))
    members: dict[str, list[Pod]] = {}
    for pod in (pod for node in held.nodes for pod in node.pods if "kerf.dev/pod-group" in pod.labels):
        members.setdefault(pod.labels["kerf.dev/pod-group"], []).append(pod)
    for method in (consolidation, drift, pricecaps, repacking):
        for command in all_of(method, held):
            gone = {each.node for each in command.deletions}
            for pods in members.values():
                least = max(int(pod.labels["kerf.dev/pod-group-min"]) for pod in pods)
                left = sum(pod.node_name not in gone for pod in pods)
                assert len(pods) < least or left == 0 or left >= least, (method.__name__, gone)
