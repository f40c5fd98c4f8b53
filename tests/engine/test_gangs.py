"""Groups of pods get nodes together or not at all."""

import json
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.disruption import emptiness
from kerf.engine.disruption.candidates import candidates
from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.constraints import ANYTHING, HOSTNAME
from kerf.model.groups import CoschedulingGroup, NativeWorkload, VolcanoGroup
from kerf.model.instancetypes import OfferingKey
from kerf.model.market import SoldOut
from kerf.model.nodeclaim import CONSOLIDATABLE, PLANNED_PODS, Condition
from kerf.model.nodepool import Budget, Disruption
from kerf.model.plan import Plan, Stage
from kerf.model.pods import Pod
from kerf.model.topology import PodAffinity, PodAffinityTerm
from kerf.testing.builders import NOON_S, a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type

MARKET = a_market(an_instance_type("m5.xlarge", cpu=4))


def members(number: int, group: str = "train", least: object = 8, **given: Any) -> list[Pod]:
    """Pods of which each takes a node of its own."""
    labels = {"kerf.dev/pod-group": group, "kerf.dev/pod-group-min": str(least)}
    return [
        a_pod(f"{group}-{i}", **{"cpu": 3, "labels": labels, "uid": f"{group}-{i}", **given}) for i in range(number)
    ]


def planned(pods: Iterable[Pod], nodes: int | None = None, **given: Any) -> Plan:
    """The plan with one pool, of so many nodes at most."""
    pools = [a_pool(limits=None if nodes is None else {"nodes": nodes})]
    there = given.pop("node_objects", ())
    snapshot = a_snapshot(pods=list(pods), pools=pools, nodes=there, **given)
    return plan(snapshot, MARKET, Options(with_bound=False))


def served(made: Plan) -> list[str]:
    """The pods that get a place, by name."""
    placed = [each.pod.pod for each in made.placements] + [p.pod for launch in made.launches for p in launch.pods]
    return sorted(key.partition("/")[2] for key in placed)


def reasons(made: Plan) -> set[str]:
    """What is said to the pods that get none."""
    return {unplaced.reason for unplaced in made.unplaced}


def test_a_group_that_falls_short_gets_nothing_and_says_by_how_much() -> None:
    """Five of eight fit under the limit: no node is bought, and each pod says why."""
    made = planned(members(8), nodes=5)

    assert () == made.launches
    text = "group train: 5 of 8 have room: limit nodes 5 of NodePool pool: 5 planned, 1 more needed"
    assert {text} == reasons(made)
    assert {Stage.LIMITS} == {unplaced.stage for unplaced in made.unplaced}
    assert 8 == len(made.unplaced)


def test_a_group_that_fits_is_bought_at_once() -> None:
    """As if the pods were single ones."""
    assert 8 == len(planned(members(8), nodes=8).launches)


def test_the_room_of_a_group_is_kept_for_it() -> None:
    """By nomination: a pod that comes later would leave all of the group without use. Single pods need none."""
    assert {"reserve"} == {launch.follow for launch in planned(members(8)).launches}
    assert {"replay"} == {launch.follow for launch in planned([a_pod("single", cpu=3)]).launches}


@pytest.mark.parametrize("label, annotation, needed", [("3", "9", 9), ("9", "3", 9)])
def test_the_larger_of_label_and_annotation_counts(label: str, annotation: str, needed: int) -> None:
    """As of different numbers on different pods."""
    made = planned(members(6, least=label, annotations={"kerf.dev/pod-group-min": annotation}))

    assert {f"group train: 6 pods are there, {needed} are needed"} == reasons(made)


def test_label_and_annotation_both_have_to_make_sense() -> None:
    """One that does not is told, though the other would do."""
    made = planned(members(6, least="3", annotations={"kerf.dev/pod-group-min": "x"}))

    assert {"group train: kerf.dev/pod-group-min: expected a number of pods, 1 or more, got 'x'"} == reasons(made)


def test_a_group_with_too_few_members_is_held() -> None:
    """Also where its minimum exceeds what its workload will ever make."""
    made = planned([*members(6), a_pod("single", cpu=3)])

    assert ["single"] == served(made)
    assert {"group train: 6 pods are there, 8 are needed"} == reasons(made)


@pytest.mark.parametrize("least", ["x", "0", "-1", "1.5", "", "9999999", "²"])
def test_a_minimum_that_is_no_number_holds_its_group_alone(least: str) -> None:
    """With the label and what came; others are planned."""
    made = planned([*members(2, least=least), a_pod("single", cpu=3)])

    assert ["single"] == served(made)
    assert {f"group train: kerf.dev/pod-group-min: expected a number of pods, 1 or more, got {least!r}"} == reasons(
        made
    )
    assert {Stage.INVALID} == {unplaced.stage for unplaced in made.unplaced}


def test_a_group_without_a_minimum_is_held() -> None:
    """Nobody can tell when it is whole."""
    made = planned([a_pod("a", cpu=3, labels={"kerf.dev/pod-group": "g"})])

    assert {
        "group g: kerf.dev/pod-group-min: expected a number of pods beside kerf.dev/pod-group, got none"
    } == reasons(made)


def test_the_largest_minimum_that_pods_of_a_group_state_counts() -> None:
    """Where they differ, and as an annotation too."""
    labels, annotations = {"kerf.dev/pod-group": "g"}, {"kerf.dev/pod-group-min": "3"}
    pods = [*members(1, "g", 2), a_pod("other", cpu=3, labels=labels, annotations=annotations)]

    assert {"group g: 2 pods are there, 3 are needed"} == reasons(planned(pods))


def test_what_a_group_leaves_serves_others() -> None:
    """The room is not kept for a group that cannot use it."""
    made = planned([*members(8), *(a_pod(f"single-{i}", cpu=3) for i in range(3))], nodes=5)

    assert ["single-0", "single-1", "single-2"] == served(made)


def test_of_two_groups_that_wait_for_each_other_the_first_gets_in() -> None:
    """Each has room for a part beside the other; nothing stands still."""
    pods = [*members(3, "a", 3, created_s=20), *members(3, "b", 3, created_s=10)]
    Random(1).shuffle(pods)
    made = planned(pods, nodes=4)

    assert ["b-0", "b-1", "b-2"] == served(made)
    assert {"group a: 1 of 3 have room: limit nodes 4 of NodePool pool: 4 planned, 1 more needed"} == reasons(made)


def test_interleaved_groups_do_not_block_each_other() -> None:
    """Pods that came in turns would get half of each group in."""
    first = [p for i in range(4) for p in (*members(4, "a", 4, created_s=i)[i : i + 1],)]
    second = [p for i in range(4) for p in (*members(4, "b", 4, created_s=i + 0.5)[i : i + 1],)]

    assert ["a-0", "a-1", "a-2", "a-3"] == served(planned([*second, *first], nodes=5))


def test_priority_goes_before_age() -> None:
    """As in the queue of the scheduler."""
    pods = [*members(3, "old", 3, created_s=1), *members(3, "high", 3, created_s=2, priority=5)]

    assert ["high-0", "high-1", "high-2"] == served(planned(pods, nodes=4))


def test_a_later_group_that_fits_what_is_left_gets_in() -> None:
    """A large one that waits does not hold up a small one."""
    pods = [*members(6, "large", 6, created_s=1), *members(2, "small", 2, created_s=2)]

    assert ["small-0", "small-1"] == served(planned(pods, nodes=4))


def test_members_beyond_the_minimum_are_single_pods() -> None:
    """Once the group is whole they get what is there, and say what they lack."""
    made = planned(members(10), nodes=9)

    assert 9 == len(made.launches)
    assert {"limit nodes 9 of NodePool pool: 9 planned, 1 more needed"} == reasons(made)


def test_members_that_have_a_place_count() -> None:
    """Bound, nominated or ended well: three more make eight; one that has failed is none."""
    others = [
        *members(3, phase="Running", node_name="node"),
        *members(5, phase="Succeeded", node_name="gone")[3:],
    ]
    waiting = members(8)[5:]

    assert ["train-5", "train-6", "train-7"] == served(planned(waiting, nodes=3, grouped=tuple(others)))
    assert {"group train: 3 pods are there, 8 are needed"} == reasons(planned(waiting, nodes=3))


def test_members_that_no_scheduler_has_refused_are_awaited() -> None:
    """They may fit on nodes that are there, so that nothing is bought for the others yet."""
    made = planned(members(8)[:5], grouped=tuple(members(8)[5:]))

    assert () == made.launches
    assert {"group train: 5 of 8 have room: no scheduler has refused 3 others yet"} == reasons(made)


def test_what_was_bought_before_a_crash_counts() -> None:
    """Three of eight nodes are on their way: five more are bought, not eight, and not none."""
    kind = MARKET.types[0]
    on_its_way: dict[str, Any] = {"reached": (), "capacity": kind.capacity, "allocatable": kind.allocatable}
    notes = [{PLANNED_PODS: f'{{"default/train-{i}": []}}'} for i in range(3)]
    claims = [a_claim(f"c{i}", annotations=note, **on_its_way) for i, note in enumerate(notes)]
    made = planned(members(8), nodes=8, claims=claims)

    assert 5 == len(made.launches)
    assert 8 == len(served(made))


def test_a_group_that_lost_its_room_gives_back_what_was_bought() -> None:
    """Nothing keeps the three nodes from being empty: no pod has its place there."""
    nodes, claims = [a_node(f"n{i}") for i in range(3)], [a_claim(f"c{i}", node_name=f"n{i}") for i in range(3)]
    made = planned(members(8), nodes=5, node_objects=nodes, claims=claims)

    assert () == made.placements
    text = "group train: 5 of 8 have room: limit nodes 5 of NodePool pool: 3 in use, 2 planned, 1 more needed"
    assert {text} == reasons(made)


def test_what_a_stock_out_left_of_a_group_goes_as_empty_nodes() -> None:
    """Three of eight came up and the type is sold out for the others: no pod has its place on the three any more."""
    sold_out = SoldOut(OfferingKey("m5.xlarge", "us-east-1a", "on-demand"), NOON_S + 180)
    reached = tuple(Condition(each, "True", each) for each in (CONSOLIDATABLE, "Initialized", "Launched", "Registered"))
    claims = [a_claim(f"c{i}", node_name=f"n{i}", conditions=reached) for i in range(3)]
    pools = [a_pool(disruption=Disruption(0, budgets=(Budget("100%"),)))]
    snapshot = a_snapshot(pods=members(8), pools=pools, nodes=[a_node(f"n{i}") for i in range(3)], claims=claims)
    market = replace(MARKET, sold_out=(sold_out,))
    made = plan(snapshot, market)
    (emptied,) = emptiness.propose(World(snapshot, market), candidates(snapshot)[0])

    text = "group train: 3 of 8 have room: m5.xlarge is sold out (on-demand), tried again at 2026-01-05T12:03:00Z"
    assert {f"{text} (NodePool pool/m5.xlarge)"} == reasons(made)
    assert () == made.placements
    assert ["n0", "n1", "n2"] == [deletion.node for deletion in emptied.deletions]


@pytest.mark.parametrize(
    "marks, groups",
    [
        ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, (CoschedulingGroup("default", "g", 3),)),
        ({"annotations": {"scheduling.k8s.io/group-name": "g"}}, (VolcanoGroup("default", "g", 3),)),
        (
            {
                "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
                "annotations": {"kueue.x-k8s.io/pod-group-total-count": "3"},
            },
            (),
        ),
        ({"workload_ref": "w/g"}, (NativeWorkload("default", "w", 0, gangs=(("g", 3),)),)),
    ],
)
def test_other_projects_groups_are_groups(marks: dict[str, Any], groups: tuple[Any, ...]) -> None:
    """The coscheduling plugin's, Volcano's, Kueue's, and those of Kubernetes itself."""
    pods = [a_pod(f"p{i}", cpu=3, uid=f"p{i}", **marks) for i in range(3)]
    name = "w/g" if "workload_ref" in marks else "g"

    assert {f"group {name}: 2 of 3 have room: limit nodes 2 of NodePool pool: 2 planned, 1 more needed"} == reasons(
        planned(pods, nodes=2, pod_groups=groups)
    )
    assert 3 == len(planned(pods, nodes=3, pod_groups=groups).launches)


@pytest.mark.parametrize(
    "marks",
    [{"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, {"annotations": {"scheduling.k8s.io/group-name": "g"}}],
)
def test_a_group_whose_object_is_missing_is_none(marks: dict[str, Any]) -> None:
    """Of another kind, namespace or name is missing, too: its pods are single ones."""
    wrong = (CoschedulingGroup("other", "g", 3), VolcanoGroup("default", "h", 3))

    assert 1 == len(planned([a_pod(cpu=3, **marks)], pod_groups=wrong).launches)


def test_nothing_is_bought_for_pods_that_kueue_holds() -> None:
    """Until it admits them, and it is said who holds them."""
    made = planned([a_pod(cpu=3, scheduling_gates=("kueue.x-k8s.io/admission",))])

    assert () == made.launches
    assert {"held by Kueue, which has not admitted it: kueue.x-k8s.io/admission"} == reasons(made)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 3)), max_size=5),
    singles=st.integers(0, 3),
    nodes=st.integers(0, 12),
    seed=st.integers(0, 100),
)
def test_every_group_is_placed_whole_or_not_at_all(
    sizes: list[tuple[int, int, int]], singles: int, nodes: int, seed: int
) -> None:
    """Whatever the order of the input, with the same plan, and no pod is lost."""
    pods = [a_pod(f"single-{i}", cpu=3) for i in range(singles)]
    for number, (size, least, created) in enumerate(sizes):
        pods += members(size, f"g{number}", least, created_s=created)
    made = planned(pods, nodes)
    Random(seed).shuffle(pods)

    for number, (_, least, _) in enumerate(sizes):
        ready = sum(name.startswith(f"g{number}-") for name in served(made))
        assert ready == 0 or ready >= least
    assert len(pods) == len(served(made)) + len(made.unplaced)
    assert made == planned(pods, nodes)
    # Whoever would fit on what is left is not left out.
    spare = nodes - len(made.launches)
    assert not any(
        size >= least and least <= spare and not any(n.startswith(f"g{number}-") for n in served(made))
        for number, (size, least, _) in enumerate(sizes)
    )


def hints(made: Plan) -> set[tuple[str, str]]:
    """The hints of the pods that get no place, each with the text of its patch."""
    return {(each.hint, json.dumps(each.patch.change) if each.patch is not None else "") for each in made.unplaced}


def test_a_hint_on_limits_counts_the_groups_that_come_back() -> None:
    """Under a limit that does for the single pods the other group would take what they are promised."""
    pods = [*members(4, "a", 4), *members(4, "b", 4), *(a_pod(f"z{i}", cpu=3) for i in range(4))]
    text = "12 is the smallest nodes limit of NodePool pool that places all 12 pods"

    assert {(text, '{"spec": {"limits": {"nodes": "12"}}}')} == hints(planned(pods, nodes=5))
    assert () == planned(pods, nodes=12).unplaced


def test_no_figure_is_said_that_would_not_place_the_group() -> None:
    """One of its pods fits nowhere, whatever the limit."""
    odd = a_pod("train-9", cpu=99, labels=members(1, least=2)[0].labels)

    assert {("raise limit nodes of NodePool pool", "")} == hints(planned([*members(1, least=2), odd], nodes=0))


def test_a_number_of_no_group_is_noted() -> None:
    """It does nothing, which whoever wrote it did not mean."""
    made = planned([a_pod("p", labels={"kerf.dev/pod-group-min": "8"})])

    assert "1 pod with kerf.dev/pod-group-min and no label kerf.dev/pod-group: of no group, planned alone" in made.notes


def test_groups_whose_pods_go_by_others_get_in_as_far_as_they_fit() -> None:
    """Twelve pairs that keep each other's pods off, ten nodes: five pairs whole, each pod on a node of its own.

    Summed up all of them would fit: a node has room for three.
    """
    apart = PodAffinity((PodAffinityTerm(HOSTNAME, ANYTHING),))
    pairs = [members(2, f"pair-{n:02}", 2, cpu=1, pod_anti_affinity=apart, created_s=n) for n in range(12)]

    made = planned([pod for pair in pairs for pod in pair], nodes=10)

    assert [f"pair-{n:02}-{i}" for n in range(5) for i in range(2)] == served(made)
    assert [1] * 10 == [len(launch.pods) for launch in made.launches]


def test_a_patch_for_a_group_of_different_pods_places_them_all() -> None:
    """What helps its first pod alone is not enough where the others then meet a limit."""
    market = a_market(an_instance_type("m5.xlarge", cpu=4), an_instance_type("m5.2xlarge", cpu=8))
    pool = a_pool(types=("m5.xlarge",), limits={"nodes": 1})
    pods = [pod for cpu in (7, 6) for pod in members(1, f"train-{cpu}", 2, cpu=cpu)]
    pods = [replace(pod, labels={**pod.labels, "kerf.dev/pod-group": "train"}) for pod in pods]

    (first, _) = plan(a_snapshot(pods=pods, pools=[pool]), market, Options(with_bound=False)).unplaced

    assert first.patch is not None
    assert {"limits", "template"} == set(first.patch.change["spec"])  # type: ignore[call-overload]
    assert {"nodes": "2"} == first.patch.change["spec"]["limits"]  # type: ignore[index]
