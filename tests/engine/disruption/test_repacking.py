"""Nodes whose pods cost less elsewhere go together, and only where that saves what the move costs."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerf.engine.disruption.causes import Alternative, Lacks, NoAlternative, RepackedInTurn
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.repacking import nearest, propose, unfilled_of
from kerf.engine.disruption.substitution import Substitutes
from kerf.engine.explain.disruption import alternative_text, explained
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.constraints import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.groups import POD_GROUP, POD_GROUP_MIN
from kerf.model.instancetypes import ON_DEMAND, SPOT, Offering
from kerf.model.market import Market, MovePause
from kerf.model.nodeclaim import REPLACES
from kerf.model.nodepool import BALANCED, WHEN_EMPTY, Budget, Disruption, NodePool
from kerf.model.plan import REPLAY
from kerf.model.pods import Owner, Pod
from kerf.model.policies import IGNORE
from kerf.model.rejections import REJECTED
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.windows import WINDOW_LABEL
from kerf.testing.builders import NOON_S, a_market, a_pool, an_instance_type, resources
from tests.engine.disruption.clusters import a_cluster, free_pool, may_go, on, ours
from tests.engine.worlds import M5, M5_2X

M5_4X = an_instance_type("m5.4xlarge", cpu=16, memory="64Gi", price="0.768")
LARGE = a_market(M5, M5_2X, M5_4X)
SERVES = Owner("ReplicaSet", "web")


def serving(node: str, name: str, cpu: int, **given: Any) -> Pod:
    """A pod of a Deployment that has run for a day."""
    return on(node, name, cpu=cpu, owner=SERVES, created_s=NOON_S - 86400, **given)


def node(name: str, instance_type: str, cpu: int, **given: Any) -> tuple[Any, Any]:
    """A node of so many cores, which may go."""
    size = {"cpu": cpu, "memory": f"{4 * cpu}Gi", "pods": 58}
    return ours(name, instance_type=instance_type, allocatable=size, **given)


def first(snapshot: ClusterSnapshot, market: Market = LARGE, *, replaces_spot: bool = False) -> Command | None:
    """What the method would do."""
    return next(propose(World(snapshot, market, replaces_spot=replaces_spot), may_go(snapshot)), None)


def changes(command: Command | None) -> tuple[list[str], list[str]]:
    """The nodes that go, and the types that are bought."""
    assert command is not None
    return (
        [each.node for each in command.deletions],
        sorted(each.offering.instance_type for each in command.launches),
    )


@pytest.mark.parametrize("pinned", [{"selector": {"foo": "bar"}}, {"cpu": 500}])
def test_a_pod_that_nothing_for_sale_holds_keeps_its_own_node_alone(pinned: dict[str, Any]) -> None:
    """The others are judged without it: no tenant's pod keeps what the rest would save."""
    pods = [serving("big", "a", 3), serving("big", "b", 3), serving("kept", "c", **{"cpu": 1, **pinned})]
    nodes = [node("big", "m5.4xlarge", 16), node("kept", "m5.4xlarge", 16)]

    assert changes(first(a_cluster([free_pool()], nodes, pods)))[0] == ["big"]


def test_one_large_node_becomes_two_small_ones() -> None:
    """Karpenter never splits a node: two pods of three cores keep sixteen."""
    pods = [serving("big", "a", 3), serving("big", "b", 3)]
    command = first(a_cluster([free_pool()], [node("big", "m5.4xlarge", 16)], pods))

    assert (["big"], ["m5.2xlarge"]) == changes(command)
    split = first(a_cluster([free_pool()], [node("big", "m5.4xlarge", 16)], pods), a_market(M5, M5_4X))
    assert (["big"], ["m5.xlarge", "m5.xlarge"]) == changes(split)
    assert split is not None
    assert (768_000, 384_000) == (split.cost.before_micro, split.cost.after_micro)
    plan = explained(split)
    assert "2 pods cost less on 2 new nodes, saves 0.384 USD/h" == plan.deletions[0].why
    assert {("big",)} == {each.replaces for each in plan.launches}
    assert {REPLAY} == {each.follow for each in plan.launches}
    assert tuple(each.name for each in plan.launches) == plan.deletions[0].replaced_by


def test_many_nodes_become_fewer() -> None:
    """Three nodes of four cores with one core each: one holds all, and it is one of them."""
    nodes = [node(name, "m5.xlarge", 4) for name in "abc"]
    command = first(a_cluster([free_pool()], nodes, [serving(name, f"p-{name}", 1) for name in "abc"]))

    gone, bought = changes(command)
    assert (2, []) == (len(gone), bought)


def test_a_node_is_not_given_up_for_its_mirror_image() -> None:
    """Full nodes, and nodes that would be bought again as they are."""
    nodes = [node(name, "m5.xlarge", 4) for name in "ab"]

    assert first(a_cluster([free_pool()], nodes, [serving(name, f"p-{name}", 3) for name in "ab"])) is None


@pytest.mark.parametrize("age_s", [86_400, 1_800, 10])
def test_no_node_is_bought_where_one_like_it_has_the_room(age_s: int) -> None:
    """However young the pod that moves is: that pods which stay have run longer saves nothing more."""
    nodes = [node(name, "m5.2xlarge", 8) for name in "ab"]
    young = on("a", "young", cpu=1, owner=SERVES, created_s=NOON_S - age_s)

    command = first(a_cluster([free_pool()], nodes, [young, serving("b", "old", 6)]), a_market(M5_2X))
    assert (["a"], []) == changes(command)


@pytest.mark.parametrize(
    "pool",
    [
        free_pool(policy=WHEN_EMPTY),
        replace(free_pool(), disruption=Disruption(None, budgets=(Budget("100%"),))),
        replace(free_pool(), disruption=Disruption(0, budgets=(Budget("0"),))),
        replace(free_pool(), limits=resources(nodes=1)),
    ],
    ids=["WhenEmpty", "Never", "budget", "limit"],
)
def test_settings_of_the_pool_hold(pool: NodePool) -> None:
    """Old and new nodes count against a limit together."""
    pods = [serving("big", "a", 3)]
    assert first(a_cluster([pool], [node("big", "m5.4xlarge", 16)], pods)) is None


def test_work_that_would_be_lost_counts() -> None:
    """A job of twenty hours is not moved for half the price of its node; one of five minutes is."""
    job = Owner("Job", "train")
    old = on("big", "train", cpu=7, owner=job, created_s=NOON_S - 20 * 3600)
    young = replace(old, created_s=NOON_S - 300)
    held = [node("big", "m5.4xlarge", 16)]

    assert first(a_cluster([free_pool()], held, [old])) is None
    assert (["big"], ["m5.2xlarge"]) == changes(first(a_cluster([free_pool()], held, [young])))


def test_a_balanced_pool_weighs_the_saving_against_the_disturbance() -> None:
    """Of ten nodes one is half empty: a tenth of the price of one node is saved for a tenth of the disturbance, no."""
    full = [node(f"n{number}", "m5.xlarge", 4) for number in range(9)]
    pods = [serving(f"n{number}", f"p{number}", 4, selector={HOSTNAME: f"n{number}"}) for number in range(9)]
    crowd = [serving("big", f"s{number}", 1) for number in range(8)]
    pool = free_pool(policy=BALANCED)

    assert first(a_cluster([free_pool()], [*full, node("big", "m5.4xlarge", 16)], [*pods, *crowd])) is not None
    assert first(a_cluster([pool], [*full, node("big", "m5.4xlarge", 16)], [*pods, *crowd])) is None
    alone = serving("big", "s", 3)
    assert first(a_cluster([pool], [*full, node("big", "m5.4xlarge", 16)], [*pods, alone])) is not None


def test_a_node_that_came_in_the_place_of_others_is_left_alone_for_a_while() -> None:
    """For twenty minutes."""
    made, claim = node("big", "m5.4xlarge", 16)
    for age_s, is_left in ((0, True), (1_199, True), (1_200, False)):
        new = replace(claim, annotations={REPLACES: "old"}, created_s=NOON_S - age_s)
        held = a_cluster([free_pool()], [(made, new)], [serving("big", "a", 3)])
        assert is_left == (first(held) is None)


def test_pods_whose_last_move_saved_nothing_stay() -> None:
    """All nodes with one of their workload, until the pause is over; others go."""
    pods = [serving("big", "a", 3), on("other", "b", cpu=3, owner=Owner("ReplicaSet", "api"), created_s=0)]
    held = a_cluster([free_pool()], [node("big", "m5.4xlarge", 16), node("other", "m5.4xlarge", 16)], pods)
    paused = replace(LARGE, move_pauses=(MovePause(("default", "ReplicaSet", "web"), NOON_S + 60),))
    alone = a_cluster([free_pool()], [node("big", "m5.4xlarge", 16)], pods[:1])

    assert ["big", "other"] == sorted(changes(first(held))[0])
    assert ["other"] == changes(first(held, paused))[0]
    found = other(alone, paused)
    assert isinstance(found, Alternative)
    assert Lacks.DISPLACED == found.lacks


@pytest.mark.parametrize(
    "given", [{"annotations": {REJECTED: "anything"}}, {"labels": {WINDOW_LABEL: "night"}}], ids=["refused", "window"]
)
def test_a_pod_of_which_no_plan_is_made_keeps_its_own_node_alone(given: dict[str, Any]) -> None:
    """Whoever wrote its annotation or label: the others go together as if it was not there."""
    nodes = [node(f"n{number}", "m5.4xlarge", 16) for number in range(3)]
    pods = [serving(f"n{number}", f"p{number}", 3) for number in range(3)]
    marked = [replace(pods[0], **given), *pods[1:]]

    assert ["n0", "n1", "n2"] == changes(first(a_cluster([free_pool()], nodes, pods)))[0]
    assert ["n1", "n2"] == changes(first(a_cluster([free_pool()], nodes, marked)))[0]
    found = other(a_cluster([free_pool()], nodes[:1], marked[:1]))
    assert isinstance(found, Alternative)
    assert Lacks.PLAN == found.lacks


def test_all_nodes_that_are_wasted_go_at_once_although_half_of_them_would_fit_on_the_others() -> None:
    """Else pods of the first half would move once more, with those they have come to."""
    nodes = [node(f"n{number}", "m5.4xlarge", 16) for number in range(4)]
    pods = [serving(f"n{number}", f"p{number}", 1) for number in range(4)]

    found = changes(first(a_cluster([free_pool()], nodes, pods)))
    assert (["n0", "n1", "n2", "n3"], ["m5.xlarge"]) == found


@pytest.mark.parametrize("number", [2, 24])
def test_nodes_that_would_be_bought_again_stay_and_the_others_fill_them(number: int) -> None:
    """However many there are: half of the pods move, and nothing is bought."""
    nodes = [node(f"n{at:02}", "m5.4xlarge", 16) for at in range(number)]
    pods = [serving(f"n{at:02}", f"p{at:02}", 7) for at in range(number)]

    gone, bought = changes(first(a_cluster([free_pool()], nodes, pods)))
    assert (number // 2, []) == (len(gone), bought)


def test_a_group_is_not_torn_apart() -> None:
    """Its pods stay together where they are."""
    pods = [serving("big", "a", 3, labels={POD_GROUP: "g", POD_GROUP_MIN: "2"})]

    assert first(a_cluster([free_pool()], [node("big", "m5.4xlarge", 16)], pods)) is None


def test_what_pods_prefer_is_bought_for_unless_it_is_ignored() -> None:
    """With the policy Ignore a pod that would rather run on the larger type gets the cheaper one."""
    wish = 1, Requirements([Requirement.of(INSTANCE_TYPE, "In", ["m5.2xlarge"])])
    held = a_cluster([free_pool()], [node("big", "m5.4xlarge", 16)], [serving("big", "a", 3, preferred=(wish,))])
    ignoring = next(propose(World(held, LARGE, Options(preferences=IGNORE)), may_go(held)), None)

    assert (["big"], ["m5.2xlarge"]) == changes(first(held))
    assert (["big"], ["m5.xlarge"]) == changes(ignoring)


def spot(name: str) -> tuple[Any, Any]:
    """A large node of spot."""
    made, claim = node(name, "m5.4xlarge", 16)
    labels = {CAPACITY_TYPE: "spot"}
    return replace(made, labels={**made.labels, **labels}), replace(claim, labels={**claim.labels, **labels})


def test_spot_replaces_spot_where_fifteen_types_are_left() -> None:
    """Karpenter's rule, where it is allowed: else the cloud takes the cheapest back soon, and the next costs more."""

    def market(number: int) -> Market:
        sold: dict[str, Any] = {"capacity_types": ("spot",)}
        small = (an_instance_type(f"x{at:02}.large", cpu=4, price=f"0.2{at:02}", **sold) for at in range(number))
        return a_market(*small, an_instance_type("m5.4xlarge", cpu=16, price="0.768", **sold))

    pool = a_pool(capacity_types=("spot",), disruption=free_pool().disruption)
    held = a_cluster([pool], [spot("big")], [serving("big", "a", 3)])

    assert first(held, market(20)) is None
    assert first(held, market(14), replaces_spot=True) is None
    command = first(held, market(20), replaces_spot=True)
    assert command is not None
    assert (1, 14) == (len(command.launches), len(command.launches[0].alternatives))


def test_a_launch_names_no_type_that_would_cost_more_than_is_saved() -> None:
    """The cloud may take any of them."""
    mid = an_instance_type("m6.4xlarge", cpu=16, memory="64Gi", price="0.800")
    command = first(
        a_cluster([free_pool()], [node("big", "m5.4xlarge", 16)], [serving("big", "a", 3)]), a_market(M5, M5_4X, mid)
    )

    assert command is not None
    launch = command.launches[0]
    assert ((), {"m5.xlarge"}) == (launch.alternatives, set(launch.requirements[INSTANCE_TYPE].values))


_SIZES = {"m5.xlarge": 4, "m5.2xlarge": 8, "m5.4xlarge": 16}


@st.composite
def fleets(draw: st.DrawFn) -> ClusterSnapshot:
    """Nodes of three sizes with pods of one to three cores that fit there."""
    nodes, pods = [], []
    for number in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(sorted(_SIZES)))
        name, left = f"n{number}", _SIZES[kind]
        nodes.append(node(name, kind, _SIZES[kind]))
        for at in range(draw(st.integers(0, 5))):
            cpu = draw(st.integers(1, 3))
            if cpu <= left:
                left -= cpu
                pods.append(serving(name, f"{name}-{at}", cpu))
    budget = draw(st.sampled_from(["100%", "1", "50%"]))
    pool = replace(free_pool(), disruption=Disruption(0, budgets=(Budget(budget),)))
    return a_cluster([pool], nodes, pods)


@given(fleets())
@settings(max_examples=60, deadline=None)
def test_every_pod_of_a_node_that_goes_has_one_place_that_holds_it(held: ClusterSnapshot) -> None:
    """Conservation, room, budgets and price, whatever the fleet; judged by sums of cores alone. A part of a step saves
    in the end."""
    command = first(held)
    if command is None:
        return
    gone = {each.node for each in command.deletions}
    moving = [pod.key for each in held.nodes if each.name in gone for pod in each.pods]
    placed = [place for each in command.deletions for place in each.moved]
    bought = [placed.pod for launch in command.launches for placed in launch.pods]
    assert sorted(moving) == sorted([*(place.pod.pod for place in placed), *bought])
    cpu = {pod.key: pod.spec.requests["cpu"] for each in held.nodes for pod in each.pods}
    used = Counter({each.name: sum(cpu[pod.key] for pod in each.pods) for each in held.nodes})
    for place in placed:
        used[place.node] += cpu[place.pod.pod]
    rooms = {each.name: each.node.allocatable["cpu"] for each in held.nodes if each.node is not None}
    assert all(used[name] <= rooms[name] for name in rooms if name not in gone)
    assert not gone & {place.node for place in placed}
    for launch in command.launches:
        assert sum(cpu[each.pod] for each in launch.pods) <= 1000 * _SIZES[launch.offering.instance_type]
    cause = command.deletions[0].cause
    saved_micro = command.cost.before_micro - command.cost.after_micro
    assert (cause.saved_micro if isinstance(cause, RepackedInTurn) else saved_micro) > 0
    names = {launch.name for launch in command.launches}
    assert names == {name for each in command.deletions for name in each.replaced_by}


@given(fleets())
@settings(max_examples=30, deadline=None)
def test_what_was_tried_before_changes_no_answer(held: ClusterSnapshot) -> None:
    """One value answers for many sets of nodes, in any order, as if each were the first."""
    found = may_go(held)
    sets = [*([each] for each in found), found, found[::2]]
    asked = Substitutes(World(held, LARGE))
    together = [asked.of(each, must_save=True) for each in sets]

    assert together[::-1] == [asked.of(each, must_save=True) for each in reversed(sets)]
    assert together == [Substitutes(World(held, LARGE)).of(each, must_save=True) for each in sets]


def other(snapshot: ClusterSnapshot, market: Market = LARGE) -> Alternative | NoAlternative:
    """What would take the pods of the first node."""
    return nearest(World(snapshot, market), may_go(snapshot)[0])


def test_the_nearest_alternative_says_what_it_lacks() -> None:
    """One type for the other, with what both cost; or nothing, where no type that is sold takes the pods."""
    small = a_cluster([free_pool()], [node("a", "m5.xlarge", 4)], [serving("a", "p", 3)])
    assert Alternative(1, ((Name("m5.xlarge"), 1),), 192_000, 192_000, Lacks.SAVING) == other(small)
    gone = a_cluster([free_pool()], [node("a", "m5.xlarge", 4)], [serving("a", "p", 3, selector={"disk": "gone"})])
    assert NoAlternative(1) == other(gone)


def test_the_nearest_alternative_names_nodes_that_have_room() -> None:
    """A pod has what it prefers, and would not have it on the empty node, where else there is room for it."""
    nodes = [node(name, "m5.2xlarge", 8, labels={ZONE: zone}) for name, zone in (("full", "1"), ("empty", "2"))]
    pods = [serving("full", "p", 7, preferred=((1, Requirements.of_labels({ZONE: "1"})),))]
    held = a_cluster([free_pool()], nodes, pods)
    found = nearest(World(held, LARGE), next(each for each in may_go(held) if each.node.name == "full"))

    assert Alternative(1, (), 0, 384_000, Lacks.ROOM, (Name("empty"),)) == found
    assert alternative_text(found, "USD") == (
        "room on node empty for 0.00 instead of 0.384 USD/h; pods that wait come first there, or a preference of its "
        "pods does not hold there"
    )


def test_an_alternative_may_be_a_node_to_buy_beside_room_that_is_there() -> None:
    """Both are named."""
    nodes = [node("big", "m5.4xlarge", 16), node("small", "m5.2xlarge", 8)]
    pods = [*(serving("big", f"p-{number}", 3) for number in range(4)), serving("small", "q", 4)]
    found = other(a_cluster([free_pool()], nodes, pods))

    assert isinstance(found, Alternative)
    assert (((Name("m5.2xlarge"), 1), (Name("m5.xlarge"), 1)), (Name("small"),)) == (found.types, found.nodes)


JUST_CAME = [on("big", f"new-{number}", cpu="100m", created_s=NOON_S) for number in range(2)]


@pytest.mark.parametrize(
    ("policy", "pods", "lacks"),
    [
        ("WhenEmptyOrUnderutilized", [serving("big", "a", 3)], Lacks.NOTHING),
        ("WhenEmptyOrUnderutilized", [*JUST_CAME, on("big", "job", cpu=5, created_s=NOON_S - 72_000)], Lacks.WORTH),
        (
            "WhenEmptyOrUnderutilized",
            [serving("big", "a", 3, labels={POD_GROUP: "g", POD_GROUP_MIN: "1"})],
            Lacks.GROUP,
        ),
        (BALANCED, [serving("big", f"p-{number}", 1) for number in range(12)], Lacks.BALANCE),
    ],
    ids=["the next look takes it", "a job of long", "a group", "too little for so many pods"],
)
def test_what_stands_against_a_cheaper_node(policy: str, pods: list[Pod], lacks: Lacks) -> None:
    """The first of the rules that applies."""
    found = other(a_cluster([free_pool(policy=policy)], [node("big", "m5.4xlarge", 16)], pods))
    assert isinstance(found, Alternative)
    assert lacks == found.lacks


def came(name: str, pods_cpu: int) -> tuple[tuple[Any, Any], Pod]:
    """A node of four cores that came in the place of others ten minutes ago, and the pod on it."""
    made, claim = node(name, "m5.xlarge", 4)
    lately = replace(claim, annotations={REPLACES: "old"}, created_s=NOON_S - 600)
    return (made, lately), serving(name, f"p-{name}", pods_cpu)


def beside_new(number: int, pods_cpu: int) -> ClusterSnapshot:
    """A node that would be replaced for three quarters of its price, beside nodes that came lately."""
    new = [came(f"new-{at}", pods_cpu) for at in range(number)]
    nodes = [node("big", "m5.4xlarge", 16), *(pair for pair, _ in new)]
    pods = [serving("big", "a", 7), serving("big", "b", 4), *(pod for _, pod in new)]
    return a_cluster([free_pool()], nodes, pods)


@pytest.mark.parametrize(
    ("number", "pods_cpu", "goes"), [(5, 1, False), (5, 4, True), (4, 1, True), (0, 0, True)], ids=str
)
def test_a_step_saves_more_than_new_nodes_were_seen_to_stay_unfilled(number: int, pods_cpu: int, goes: bool) -> None:
    """Of five new nodes three quarters are idle, so a quarter that is to be saved would not be; of four nothing is
    concluded."""
    held = beside_new(number, pods_cpu)
    found = nearest(World(held, LARGE), may_go(held)[0], unfilled_of(World(held, LARGE)))

    assert goes == (first(held) is not None)
    assert isinstance(found, Alternative)
    assert (Lacks.NOTHING if goes else Lacks.MARGIN) == found.lacks


def test_room_that_is_there_needs_no_filling() -> None:
    """However empty new nodes stay, a node whose pods fit there goes: nothing is bought for them."""
    held = beside_new(5, 1)
    small = [serving("big", name, 3) for name in "ab"]
    pods = [*small, *(pod for each in held.nodes for pod in each.pods if each.name != "big")]
    nodes = [node("big", "m5.4xlarge", 16), *(came(f"new-{at}", 1)[0] for at in range(5))]

    assert (["big"], []) == changes(first(a_cluster([free_pool()], nodes, pods)))


def spot_market(*prices: int) -> Market:
    """Types of four cores and more, sold as spot at these prices, the last one the largest."""
    types = (an_instance_type(f"t{n}", cpu=4 + n, capacity_types=(SPOT, ON_DEMAND)) for n in range(len(prices)))
    sold = zip(types, prices, strict=True)
    return a_market(*(replace(kind, offerings=(Offering("us-east-1a", SPOT, price),)) for kind, price in sold))


@pytest.mark.parametrize(
    "prices, is_on, lacks",
    [
        ((100, 900), False, Lacks.SPOT),
        ((100, 900), True, Lacks.SPOT_TYPES),
        ((*range(100, 115), 900), False, Lacks.SPOT),
        ((*range(100, 115), 900), True, Lacks.NOTHING),
    ],
)
def test_a_spot_node_names_the_gate_that_keeps_it(prices: tuple[int, ...], is_on: bool, lacks: Lacks) -> None:
    """The setting where it is off; where it is on, how many types one spot node asks for."""
    labels = {CAPACITY_TYPE: SPOT}
    held = node("big", f"t{len(prices) - 1}", 16, labels=labels)
    pool = replace(free_pool(), requirements=Requirements([Requirement.of(CAPACITY_TYPE, "In", (SPOT,))]))
    snapshot = a_cluster([pool], [held], [serving("big", "a", 3)])
    world = World(snapshot, spot_market(*prices), replaces_spot=is_on)
    found = nearest(world, may_go(snapshot)[0])

    assert isinstance(found, Alternative)
    assert lacks == found.lacks
    assert ("--spot-to-spot-consolidation" in alternative_text(found, "USD")) == (lacks is Lacks.SPOT)
    assert ("15 types" in alternative_text(found, "USD")) == (lacks is Lacks.SPOT_TYPES)


def test_an_on_demand_node_never_names_the_gate_of_spot() -> None:
    """The same type costs less in another zone: its pods are not moved for that, whatever gates there are."""
    kind = an_instance_type("t0", cpu=4, zones=("us-east-1a", "us-east-1b"))
    sold = replace(kind, offerings=(Offering("us-east-1a", ON_DEMAND, 900), Offering("us-east-1b", ON_DEMAND, 100)))
    snapshot = a_cluster([free_pool()], [node("big", "t0", 4)], [serving("big", "a", 3)])
    found = nearest(World(snapshot, a_market(sold)), may_go(snapshot)[0])

    assert isinstance(found, Alternative)
    assert Lacks.AGAIN == found.lacks
