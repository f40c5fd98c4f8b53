"""Where the pods of a node would go, beside pods that wait."""

from dataclasses import replace
from typing import Any

from kerf.engine.disruption.relocation import Relocation, relocation
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.constraints import HOSTNAME, ZONE, Requirements
from kerf.model.defaultspread import default_spread_of
from kerf.model.nodeclaim import CONSOLIDATABLE, LAUNCHED, NodeClaim
from kerf.model.nodes import Node
from kerf.model.pods import Owner, Pod
from kerf.model.policies import IGNORE, RESPECT
from kerf.model.promises import Promises, written
from kerf.model.snapshot import Upserted
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.sharing.hami.records import ALLOCATED, NODE
from kerf.state import ClusterState
from kerf.testing.builders import NOON_S, a_claim, a_pod, cards
from tests.engine.disruption.clusters import MARKET, REACHED, a_cluster, free_pool, may_go, on, ours
from tests.engine.worlds import a_hami_node

HAMI: dict[str, Any] = {"gpu": 1, "scheduler_name": "hami-scheduler"}


def hami(name: str, cpu: str, group: str) -> tuple[Node, NodeClaim]:
    """A node of one card."""
    amounts = {"cpu": cpu, "pods": 58, "nvidia.com/gpu": 10}
    node, claim = ours(name, instance_type="g5.xlarge", allocatable=amounts, labels={"group": group})
    return a_hami_node(node, 1), claim


def moves(
    nodes: list[tuple[Node, NodeClaim]],
    pods: list[Pod],
    name: str,
    *,
    ignores: bool = False,
    spread: str = "none",
    coming: NodeClaim | None = None,
) -> list[tuple[str, str]] | None:
    """Pod and destination for each pod of the node; `ignores` is of preferences, `spread` what the scheduler gives,
    `coming` a claim that starts."""
    state = ClusterState(assume_node_classes=True)
    for value in (free_pool(), *(each for pair in nodes for each in pair), *pods, *([coming] if coming else ())):
        state.apply(Upserted(value))
    snapshot = state.snapshot(NOON_S)
    candidate = next(each for each in may_go(snapshot) if each.node.name == name)
    preferences = IGNORE if ignores else RESPECT
    options = Options(preferences=preferences, default_spread=default_spread_of(spread) or ())
    found = relocation(World(snapshot, MARKET, options), candidate)
    return None if found is None else [(each.pod.pod, each.node) for each in found]


def test_pods_move_by_the_constraints_that_their_scheduler_gives_them() -> None:
    """A third replica on one node would be one too many; the pod itself asks for nothing of the kind."""
    nodes = [ours("a"), ours("b")]
    pods = [
        on(home, name, cpu="500m", labels={"app": "web"}, owner=Owner("ReplicaSet", "web"))
        for home, name in ("ax", "by", "bz")
    ]
    alone = f"{HOSTNAME}=1:DoNotSchedule"
    assert [("default/x", "b")] == moves(nodes, pods, "a")
    assert None is moves([*nodes, ours("c")], [*pods, on("c", "v", cpu="3800m")], "a", spread=alone)
    assert [("default/x", "c")] == moves([*nodes, ours("c")], pods, "a", spread=alone)


def starting(*pods: str, instance_type: str = "m5.2xlarge", has_card: bool = False) -> NodeClaim:
    """A claim without a node, which was bought for these pods."""
    promised = {f"default/{pod}": (0,) if has_card else () for pod in pods}
    planned = Promises(promised, devices=cards(1) if has_card else ())
    claim = a_claim(
        "starting", pool="pool", instance_type=instance_type, reached=(LAUNCHED,), labels={"group": "a", "gpu": "on"}
    )
    return replace(claim, annotations=written(planned))


def test_a_pod_that_waits_keeps_its_place() -> None:
    """`new` goes to `b`, and takes the room there that the pod of `a` would need."""
    nodes, pods = [ours("a"), ours("b")], [on("a", "x", cpu=2), on("b", "y", cpu=2)]
    new = a_pod("new", cpu=1, selector={HOSTNAME: "b"})

    assert [("default/x", "b")] == moves(nodes, pods, "a")
    assert moves(nodes, [*pods, new], "a") is None


def test_pods_that_may_come_to_the_node_take_room_elsewhere() -> None:
    """`new` waits for a node that starts and would fit on `a`; where `a` goes it may take the room on `b`."""
    nodes, pods = [ours("a"), ours("b")], [on("a", "x", cpu=2), on("b", "y", cpu=2)]

    assert moves(nodes, [*pods, a_pod("new", cpu=1)], "a", coming=starting("new")) is None


def test_pods_that_are_pushed_on_push_others_on() -> None:
    """`big` leaves `a` and fills `b`, so `small` goes to `c`, where the pod of `a` then lacks room. Both wait for a
    node that starts."""
    nodes, coming = [ours("a"), ours("b"), ours("c")], starting("big", "small")
    pods = [on("a", "own", cpu=1), on("b", "y", cpu=1), on("c", "z", cpu="2500m"), a_pod("big", cpu=3, priority=1)]

    assert [("default/own", "c")] == moves(nodes, pods, "a", coming=coming)
    assert moves(nodes, [*pods, a_pod("small", cpu=1)], "a", coming=coming) is None


def test_pods_move_beside_others_though_one_has_just_come_there() -> None:
    """The scheduler puts them there whether or not the node's own consolidateAfter runs; an empty one may go itself."""
    reached = tuple(each for each in REACHED if each != CONSOLIDATABLE)
    state = [ours("a"), ours("b", reached=reached)]
    x, y = on("a", "x", cpu=1), on("b", "y", cpu=1)

    assert [("default/x", "b")] == moves(state, [x, y], "a")
    assert None is moves(state, [x], "a")


def test_a_slice_moves_to_the_fullest_card() -> None:
    """As HAMi would place it: the order of the nodes decides only among equal ones."""
    nodes = [hami("c", "4", "a"), hami("d", "4", "a"), hami("x", "4", "b")]
    records = {name: {NODE: name, ALLOCATED: "gpu-0,NVIDIA,2000,0:;"} for name in ("c", "x")}
    pods = [on(name, name, cpu=1, gpumem=2000, annotations=records[name], uid=name, **HAMI) for name in ("c", "x")]

    assert [("default/c", "x")] == moves(nodes, pods, "c")


def test_a_pod_with_resource_claims_stays() -> None:
    """Which node has its devices is not known here."""
    assert moves([ours("a"), ours("b")], [on("a", "x", cpu=1, not_planned=("resourceClaims",))], "a") is None


def test_a_move_that_breaks_anti_affinity_is_none() -> None:
    """Of two replicas that stay apart the one on `a` may go to `c`, and not to `b`, where the other is."""
    term = PodAffinityTerm(HOSTNAME, Requirements.of_labels({"app": "web"}))
    apart: dict[str, Any] = {"labels": {"app": "web"}, "pod_anti_affinity": PodAffinity((term,))}
    pods = [on("a", "one", cpu=1, **apart), on("b", "two", cpu=1, **apart)]

    assert moves([ours("a"), ours("b")], pods, "a") is None
    assert [("default/one", "c")] == moves([ours("a"), ours("b"), ours("c")], pods, "a")


def test_a_move_that_breaks_a_spread_is_none() -> None:
    """With `a` gone zone 1 is no domain any more, so both may be in zone 2; while `c` is there it has the place."""
    spread = TopologySpreadConstraint(ZONE, 1, Requirements.of_labels({"app": "web"}))
    even: dict[str, Any] = {"labels": {"app": "web"}, "spread": (spread,)}
    zones = {name: ours(name, labels={ZONE: zone}) for name, zone in (("a", "1"), ("b", "2"), ("c", "1"))}
    pods = [on("a", "one", cpu=1, **even), on("b", "two", cpu=1, **even)]

    assert [("default/one", "b")] == moves([zones["a"], zones["b"]], pods, "a")
    assert [("default/one", "c")] == moves(list(zones.values()), pods, "a")
    assert moves(list(zones.values()), [*pods, on("c", "full", cpu=4)], "a") is None


def test_a_zone_where_nodes_are_for_sale_stays_a_domain_without_its_last_node() -> None:
    """With its replica moved the next one would be given a node there again; no node is for sale in zone 1."""
    spread = TopologySpreadConstraint(ZONE, 1, Requirements.of_labels({"app": "web"}))
    even: dict[str, Any] = {"labels": {"app": "web"}, "spread": (spread,)}
    pods = [on("a", "one", cpu=1, **even), on("b", "two", cpu=1, **even)]

    def last_of(zone: str) -> list[tuple[Node, NodeClaim]]:
        return [ours("a", labels={ZONE: zone}), ours("b", labels={ZONE: "2"})]

    assert moves(last_of("us-east-1a"), pods, "a") is None
    assert [("default/one", "b")] == moves(last_of("1"), pods, "a")


def test_a_move_keeps_a_preference_that_holds() -> None:
    """Else a node that was bought for it would go again; ignored, it holds no node."""
    term = PodAffinityTerm(HOSTNAME, Requirements.of_labels({"app": "web"}))
    apart: dict[str, Any] = {"labels": {"app": "web"}, "pod_anti_affinity": PodAffinity(preferred=((1, term),))}
    nodes, pods = [ours("a"), ours("b")], [on("a", "one", cpu=1, **apart), on("b", "two", cpu=1, **apart)]

    assert moves(nodes, pods, "a") is None
    assert [("default/one", "b")] == moves(nodes, pods, "a", ignores=True)
    assert [("default/one", "c")] == moves([*nodes, ours("c")], pods, "a")


def test_a_preference_that_does_not_hold_stops_no_move() -> None:
    """The pod runs outside its zone, so it may go to another node outside it; one inside stays there."""
    rather: dict[str, Any] = {"preferred": ((1, Requirements.of_labels({ZONE: "zb"})),)}
    nodes = [ours("a"), ours("b"), ours("in", labels={ZONE: "zb"})]
    pods = [on("a", "one", cpu=1, **rather), on("in", "two", cpu=1, **rather)]

    assert [("default/one", "b")] == moves(nodes, pods, "a")
    assert moves(nodes, pods, "in") is None


def test_room_that_a_pod_leaves_is_found() -> None:
    """HAMi fills the fullest card first. With `c` closed `one` makes `d` fuller than `x`, so `two` leaves `x`. Both
    wait for a node that starts."""
    nodes = [hami("c", "6500m", "a"), hami("d", "3", "a"), hami("x", "5", "b")]
    record = {NODE: "x", ALLOCATED: "gpu-0,NVIDIA,2000,0:;"}
    pods = [
        on("c", "own", cpu=4),
        on("x", "busy", cpu="250m", gpumem=2000, annotations=record, uid="busy", **HAMI),
        a_pod("one", cpu=2, gpumem=8000, selector={"group": "a"}, uid="one", **HAMI),
        a_pod("two", cpu=1, gpumem=2000, created_s=1, uid="two", **HAMI),
    ]

    coming = starting("one", "two", instance_type="g5.xlarge", has_card=True)
    assert [("default/own", "x")] == moves(nodes, pods, "c", coming=coming)
    assert moves([nodes[0], nodes[2]], pods, "c", coming=coming) is None


def test_a_relocation_leaves_no_trace() -> None:
    """Each node is asked as if it were the only one."""
    nodes, pods = [ours("a"), ours("b")], [on("a", "x", cpu=1), on("b", "y", cpu=1)]
    snapshot = a_cluster([free_pool()], nodes, pods)
    shared = Relocation(World(snapshot, MARKET))

    first = [shared.of(each) for each in may_go(snapshot)]

    assert first == [shared.of(each) for each in may_go(snapshot)]
    assert None not in first


def test_a_node_of_a_static_pool_takes_pods_that_move() -> None:
    """It is never quiet, because nothing takes it away."""
    state = ClusterState(assume_node_classes=True)
    fixed = replace(free_pool("fixed"), replicas=1)
    node, claim = ours("b", pool="fixed")
    pairs = [ours("a"), (node, claim.without_condition(CONSOLIDATABLE))]
    for value in (free_pool(), fixed, *(each for pair in pairs for each in pair), on("a", "x", cpu=1)):
        state.apply(Upserted(value))
    snapshot = state.snapshot(NOON_S)
    (candidate,) = may_go(snapshot)

    assert ["b"] == [each.node for each in Relocation(World(snapshot, MARKET)).of(candidate) or ()]
