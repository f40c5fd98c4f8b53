"""Why a node stays, by the rules of the methods."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.disruption.candidates import candidates
from kerf.engine.disruption.causes import (
    HasExpired,
    HeldBudget,
    InvalidSchedule,
    Keeping,
    LocalVolume,
    MinNodes,
    NodePoolBudget,
    NothingElseHasRoom,
    NotQuietYet,
    OnlyWhenEmpty,
    OthersFirst,
    PodComes,
    Replaced,
    ReplacementOf,
    SuccessorComes,
    UnreadableFloor,
)
from kerf.engine.disruption.keeping import Fates
from kerf.engine.explain.disruption import going_text, keeping_text
from kerf.engine.world import World
from kerf.model.bounds import MIN_NODES
from kerf.model.causes import Cause, Name, Quoted
from kerf.model.nodeclaim import DO_NOT_DISRUPT, GPUS_HEALTHY, REPLACED_BY, REPLACES
from kerf.model.nodepool import EMPTY, UNDERUTILIZED, WHEN_EMPTY, Budget, Disruption
from kerf.model.opportunistic import OPPORTUNISTIC
from kerf.model.plan import Cost, Deletion, NodePlacement, PlacedPod, Plan
from kerf.model.pods import Pod
from kerf.model.promises import Promises, written
from kerf.model.snapshot import ClusterSnapshot, NodeClass
from kerf.model.volumes import PersistentVolume, PersistentVolumeClaim
from kerf.testing.builders import NOON_S, a_pool, resources
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, on, ours, pool_with
from tests.engine.disruption.test_drift import drifted
from tests.engine.disruption.test_pricecaps import DEAR
from tests.engine.disruption.test_repair import broken

NOTHING = Plan("cost", Cost("USD", 0, 0))

POOL = Name("pool")


def why(snapshot: ClusterSnapshot, name: str = "a", plan: Plan = NOTHING) -> Keeping:
    """What keeps the node."""
    node = snapshot.node(name)
    assert node is not None
    return Fates(World(snapshot, MARKET), plan).keeping(node)


def alone(pool: Any, *pods: Pod) -> Keeping:
    """What keeps a node that has no other beside it."""
    return why(a_cluster([pool], [ours("a")], pods))


def test_the_first_rule_that_keeps_a_node_is_reported() -> None:
    """Settings of the pool first, then room, then that others go first."""
    pod = on("a", "web", cpu=1)

    assert OnlyWhenEmpty(1, POOL) == alone(free_pool(policy=WHEN_EMPTY), pod)
    none = (HeldBudget(None, Quoted("0"), (), Quoted(""), 0),)
    assert NodePoolBudget(POOL, Name(UNDERUTILIZED), budgets=none) == alone(pool_with(Budget("0")), pod)
    assert NodePoolBudget(POOL, Name(EMPTY), budgets=none) == alone(pool_with(Budget("0")))
    assert NothingElseHasRoom(1) == alone(free_pool(), pod)
    assert OthersFirst(is_empty=True) == alone(free_pool())


def test_a_pod_with_a_local_volume_is_not_moved_to_save_money() -> None:
    """What it has stored would stay behind; a volume that is attached goes along. Drift takes the node all the same."""
    pod = replace(on("a", "db", cpu=1), spec=replace(on("a", "db", cpu=1).spec, claims=("data",)))
    claim = PersistentVolumeClaim("default", "data", volume="pv", is_bound=True)

    def held(first: Any, *, is_local: bool) -> ClusterSnapshot:
        volumes = {"pv": PersistentVolume("pv", is_local=is_local)}
        nodes = [first, ours("b")]
        return a_cluster([free_pool()], nodes, [pod], volumes=volumes, volume_claims={claim.key: claim})

    local, attached = (held(ours("a"), is_local=each) for each in (True, False))
    assert LocalVolume(Name("default/db"), Name("pv")) == why(local)
    assert [(False, True), (True, True)] == [
        tuple(c.is_quiet for c in candidates(each)[0]) for each in (local, attached)
    ]
    assert "pod default/db has the volume pv, which is a part of this node and would stay behind" == keeping_text(
        why(local)
    )
    assert ["a"] == [each.node.name for each in candidates(held(drifted("a"), is_local=True))[0] if each.drift]


def test_a_closed_budget_says_until_when() -> None:
    """By its schedule, or by nodes that go already."""
    hours = pool_with(Budget("0", schedule="0 9 * * *", duration_s=8 * 3600))
    nodes = [ours("a"), ours("b", deleted_s=NOON_S)]
    pods = [on("a", "web", cpu=1)]
    found = [alone(hours), why(a_cluster([pool_with(Budget("1"))], nodes, pods)), alone(pool_with(Budget("0")))]
    text = "the disruption budgets of NodePool pool let no further node go for the reason"

    assert [
        f'{text} Empty before 2026-01-05T17:00:00Z: {{nodes: "0", schedule: "0 9 * * *", duration: 8h}}',
        f'{text} Underutilized while 1 node of it goes or is not ready: {{nodes: "1"}}',
        f'{text} Empty at any time: {{nodes: "0"}}',
    ] == [keeping_text(each) for each in found]


NIGHT = Budget("0", schedule="0 9 * * 1,2,3,4,5", duration_s=8 * 3600, stated_schedule="0 9 * * mon-fri")
NIGHT_TEXT = '{nodes: "0", schedule: "0 9 * * mon-fri", duration: 8h}'
EVENING = Budget("0%", (EMPTY,), "0 16 * * *", 4 * 3600)


@pytest.mark.parametrize(
    ("budgets", "said"),
    [
        ([Budget("50%"), NIGHT], f"before 2026-01-05T17:00:00Z: budgets[1] {NIGHT_TEXT}"),
        (
            [EVENING, NIGHT],
            f"before 2026-01-05T20:00:00Z: budgets[1] {NIGHT_TEXT}, "
            'budgets[0] {nodes: "0%", reasons: [Empty], schedule: "0 16 * * *", duration: 4h}',
        ),
        ([NIGHT, Budget("0", (EMPTY,))], 'at any time: budgets[1] {nodes: "0", reasons: [Empty]}'),
        ([NIGHT, Budget("0", (UNDERUTILIZED,))], f"before 2026-01-05T17:00:00Z: budgets[0] {NIGHT_TEXT}"),
        ([Budget("50%"), Budget("1")], 'while 1 node of it goes or is not ready: budgets[0] {nodes: "50%"}'),
        ([Budget("2"), Budget("1")], 'while 1 node of it goes or is not ready: budgets[1] {nodes: "1"}'),
    ],
    ids=["of two", "one after the other", "one for ever", "of another reason", "used up", "used up by the least"],
)
def test_of_several_budgets_that_which_holds_is_named(budgets: list[Budget], said: str) -> None:
    """By its place in the pool and as a person wrote it; of those that hold in turn, each."""
    nodes = [ours("a"), ours("b", deleted_s=NOON_S)]
    found = why(a_cluster([pool_with(*budgets)], nodes))

    assert f"the disruption budgets of NodePool pool let no further node go for the reason Empty {said}" == (
        keeping_text(found)
    )


def test_a_schedule_that_is_never_due_is_named() -> None:
    """The pool then lets no node go, whatever its other budgets say."""
    pool = replace(pool_with(Budget("0")), invalid_schedule="budgets[1].schedule: expected cron, got '0 0 31 2 *'")

    assert InvalidSchedule(POOL, Quoted(pool.invalid_schedule)) == alone(pool)
    assert f"NodePool pool lets no node go: {pool.invalid_schedule}" == keeping_text(alone(pool))


def test_a_node_that_a_pod_comes_to_stays() -> None:
    """The first of several is named."""
    placements = tuple(NodePlacement(PlacedPod(f"default/{name}"), "a") for name in ("one", "two"))

    assert PodComes(Name("default/one")) == why(
        a_cluster([free_pool()], [ours("a")]), plan=replace(NOTHING, placements=placements)
    )


def test_pods_that_need_not_move_do_not_count() -> None:
    """An opportunistic pod and one that ends leave the node empty, as for the controller."""
    pods = on("a", "idle", labels={OPPORTUNISTIC: "true"}), on("a", "ends", deleted_s=NOON_S)

    assert OthersFirst(is_empty=True) == alone(free_pool(policy=WHEN_EMPTY), *pods)


def test_a_pool_keeps_its_floor() -> None:
    """One that is no number keeps all; the words are those of its annotation."""
    floor, broken = (replace(free_pool(), own_annotations={MIN_NODES: text}) for text in ("1", "few"))

    assert MinNodes(POOL, 1) == alone(floor)
    assert UnreadableFloor(POOL, Quoted("few")) == alone(broken)
    assert f"NodePool pool lets no node go: {broken.bounds.invalid_floor}" == keeping_text(alone(broken))


def test_time_that_runs_is_reported() -> None:
    """With how much of it is left."""
    pool = a_pool(disruption=Disruption(60))

    assert NotQuietYet(60, 40) == why(a_cluster([pool], [ours("a", last_pod_event_s=NOON_S - 20)]))


def test_a_node_waits_for_the_successor_of_a_pod_that_ends() -> None:
    """It was bought for a pod of a node that goes, and looks empty until the pod in its place waits."""
    node, claim = ours("new")
    promised = replace(claim, annotations=written(Promises({"default/web": ()})))
    nodes = [(node, promised), ours("old", deleted_s=NOON_S)]
    kept = why(a_cluster([pool_with(Budget("2"))], nodes, [on("old", "web", deleted_s=NOON_S)]), "new")

    assert SuccessorComes(Name("default/web")) == kept
    assert "pod default/web is being made again, and its place is here" == keeping_text(kept)


def test_a_replacement_waits_for_the_pods_of_the_old_node() -> None:
    """It looks empty and is not free to go; the old one goes once the other is up."""
    (node, claim), (old, marked) = ours("new"), DEAR
    nodes = [
        (old, replace(marked, annotations={REPLACED_BY: "new"})),
        (node, replace(claim, annotations={REPLACES: "dear"})),
    ]
    held = a_cluster([pool_with(Budget("2"))], nodes, [on("dear", "web", cpu=3)])

    assert ReplacementOf(Name("dear")) == why(replace(held, taken_at_s=3600), "new")
    going = Fates(World(held, MARKET), Plan("cost", Cost("USD", 0, 0))).going(held.nodes[0])
    assert Replaced((Name("new"),)) == going
    assert "it goes once new is up, bought for its pods" == going_text(going)


HELD = on("a", "x", cpu=1, annotations={DO_NOT_DISRUPT: "true"})


BAD = "its condition Ready has been bad for longer than its provider tolerates, and stays:"
OLD = "the template of its NodePool has changed (NodePoolDrifted), and"
PROTECTED = 'stays: pod default/x has "karpenter.sh/do-not-disrupt" annotation'


@pytest.mark.parametrize(
    ("pool", "nodes", "pods", "said"),
    [
        (
            free_pool(),
            [broken("a", reason=GPUS_HEALTHY)],
            [HELD],
            f"a GPU of it is broken (GPUsHealthy), and {PROTECTED}",
        ),
        (
            pool_with(Budget("0")),
            [broken("a")],
            [HELD],
            f"{BAD} the disruption budgets of NodePool pool let no further node go for the reason Unhealthy "
            'at any time: {nodes: "0"}',
        ),
        (
            free_pool(),
            [broken("a"), broken("b")],
            [],
            f"{BAD} more than a fifth of NodePool pool is broken, 2 of 2 nodes",
        ),
        (
            free_pool(),
            [drifted("a")],
            [HELD],
            f"{OLD} {PROTECTED}",
        ),
        (
            free_pool(),
            [drifted("a")],
            [],
            f"{OLD} goes in its turn, once its pods have a place",
        ),
    ],
    ids=["pod", "budget", "too many", "drift", "turn"],
)
def test_what_a_node_waits_for_that_is_to_go_anyway(pool: Any, nodes: Any, pods: Any, said: str) -> None:
    """Before all that would keep a node which goes to save money, such as a pool that never consolidates."""
    never = replace(pool, disruption=replace(pool.disruption, consolidate_after_s=None))
    for each in (pool, never):
        assert said == keeping_text(why(a_cluster([each], nodes, pods)))


def test_a_drifted_node_whose_pool_buys_none_says_why() -> None:
    """Its pods have no place until the pool takes nodes again."""
    pool = free_pool()
    reference = pool.node_class
    unready = NodeClass(reference.group, reference.kind, reference.name, is_ready=False, reason="no subnets")
    snapshot = a_cluster([pool], [drifted("a")], [on("a", "web", cpu=1)], node_classes=(unready,))

    assert keeping_text(why(snapshot)).endswith(
        "in its turn, once its pods have a place; "
        "NodePool pool takes no nodes: EC2NodeClass default is not ready: no subnets"
    )


def test_a_node_that_is_too_old_goes_for_that_whatever_a_plan_says() -> None:
    """No plan need be carried out for it."""
    node, claim = ours("a")
    claim = replace(claim, created_s=NOON_S - 7200, expire_after_s=3600)
    snapshot = a_cluster([free_pool()], [(node, claim)])
    emptied = Deletion("a", claim.name, "pool", 1, "Empty", Cause(), why="empty")

    fates = Fates(World(snapshot, MARKET), replace(NOTHING, deletions=(emptied,)))
    assert HasExpired(3600) == fates.going(snapshot.nodes[0])


def test_a_drifted_node_of_a_static_pool_at_its_limit_waits_for_room() -> None:
    """The one in its place comes first, and would be one too many; with room for one more it goes in its turn."""
    full, wide = (replace(free_pool(), replicas=2, limits=resources(nodes=nodes)) for nodes in (2, 3))
    nodes = [drifted("a"), ours("b")]

    assert keeping_text(why(a_cluster([full], nodes))).endswith(
        "and stays: NodePool pool is static and can have no other node in its place before it goes: "
        "its limit nodes leaves no room for a m5.xlarge"
    )
    assert keeping_text(why(a_cluster([wide], nodes))).endswith("goes in its turn, once its pods have a place")
