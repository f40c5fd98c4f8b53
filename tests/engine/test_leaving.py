"""Karpenter's behaviour 51: pods of a node that goes are planned for before they are evicted."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from kerf.cloudprovider import InterruptionKind
from kerf.engine.decide import decide
from kerf.engine.disruption.causes import Blocked, Nominated
from kerf.engine.disruption.consolidation import propose
from kerf.engine.disruption.first import first_command
from kerf.engine.explain.plan import plan
from kerf.engine.leaving import leaving_pods, next_leaving_s, with_leaving
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.causes import Name
from kerf.model.constraints import ZONE, Requirements
from kerf.model.nodeclaim import DISRUPTION_REASON, DO_NOT_DISRUPT, LAUNCHED, REPLACED_BY, TRUE, Condition
from kerf.model.opportunistic import OPPORTUNISTIC
from kerf.model.plan import Plan
from kerf.model.pods import Owner, Pod, PodDisruptionBudget
from kerf.model.promises import Promises, written
from kerf.model.provisioningrequests import CONSUMES
from kerf.model.rejections import REJECTED
from kerf.model.snapshot import ClusterSnapshot, ResourceQuota
from kerf.model.topology import TopologySpreadConstraint
from kerf.model.windows import CLOSED, CLOSING, OPEN, WINDOW_LABEL, CapacityWindow, WindowStatus
from kerf.sharing.hami.records import ALLOCATED, NODE
from kerf.testing.builders import NOON_S, a_claim, a_market, a_pod, a_snapshot, an_instance_type, cards
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, may_go, on, ours
from tests.engine.worlds import bought, refused

REPLICAS, STATEFUL = Owner("ReplicaSet", "web"), Owner("StatefulSet", "db")
WEB = Requirements.of_labels({"app": "web"})


def going(name: str = "a", **given: Any) -> Any:
    """A node whose claim is being deleted."""
    return ours(name, deleted_s=NOON_S, **given)


def budget(*, allowed: int = 0, name: str = "web", is_blocking: bool = False) -> PodDisruptionBudget:
    """A PodDisruptionBudget of the pods of `web`."""
    return PodDisruptionBudget("default", name, WEB, allowed, is_blocking)


def made(snapshot: ClusterSnapshot) -> Plan:
    """The plan, without its bound."""
    return plan(snapshot, MARKET, Options(with_bound=False))


def leaving(*pods: Pod, **given: Any) -> list[str]:
    """The keys of the pods that leave a node which goes."""
    return [pod.key for pod, _ in leaving_pods(a_cluster([free_pool()], [going()], pods, **given))]


def a_web(name: str = "web-1", node: str = "a", **given: Any) -> Pod:
    """A replica that runs on the node."""
    return on(node, name, **{"cpu": 1, "labels": {"app": "web"}, "owner": REPLICAS, **given})


@pytest.mark.parametrize(
    ("given", "leaves"),
    [
        pytest.param({}, True, id="a replica"),
        pytest.param({"owner": None}, True, id="a bare pod"),
        pytest.param({"owner": Owner("DaemonSet", "agent")}, False, id="of a DaemonSet"),
        pytest.param({"owner": Owner("Node", "a")}, False, id="a mirror pod"),
        pytest.param({"deleted_s": NOON_S}, False, id="a replica that ends: its successor waits"),
        pytest.param({"deleted_s": NOON_S, "owner": STATEFUL}, True, id="of a StatefulSet, which ends"),
        pytest.param({"phase": "Succeeded"}, False, id="one that has ended"),
        pytest.param({"annotations": {DO_NOT_DISRUPT: "true"}}, False, id="do-not-disrupt"),
        pytest.param({"labels": {OPPORTUNISTIC: "true"}}, False, id="opportunistic"),
        pytest.param({"labels": {WINDOW_LABEL: "night"}}, False, id="a window judges it when it comes"),
        pytest.param({"annotations": {CONSUMES[0]: "train"}}, False, id="of a ProvisioningRequest"),
        pytest.param({"annotations": {REJECTED: "{}"}}, False, id="refused by its scheduler before"),
    ],
)
def test_which_pods_are_planned_for_beforehand(given: dict[str, Any], leaves: bool) -> None:
    """Those that are active and are made again; of those that end a StatefulSet's alone."""
    assert (["default/web-1"] if leaves else []) == leaving(replace(a_web(), **given))


@pytest.mark.parametrize(("phase", "leaves"), [(OPEN, True), (CLOSED, False), (CLOSING, False)])
@pytest.mark.parametrize("refused_before", [False, True])
def test_a_pod_that_an_open_window_lets_in_again_is_planned_for(phase: str, leaves: bool, refused_before: bool) -> None:
    """As any other, so not where its scheduler has refused it before; a closed window would hold it."""
    labels, annotations = {WINDOW_LABEL: "night"}, {REJECTED: "{}"} if refused_before else {}
    night = CapacityWindow(
        "night", "0 * * * *", "UTC", 3600, Requirements.of_labels(labels), status=WindowStatus(phase=phase)
    )
    pod = replace(a_web(), labels=labels, annotations=annotations)

    assert (["default/web-1"] if leaves and not refused_before else []) == leaving(pod, windows=(night,))


@pytest.mark.parametrize(
    ("budgets", "leaves"),
    [
        pytest.param([budget(allowed=1)], True, id="it allows an eviction"),
        pytest.param([budget()], True, id="it allows none just now"),
        pytest.param([budget(is_blocking=True)], False, id="it never allows one"),
        pytest.param([replace(budget(is_blocking=True), lets_unready_go=True)], True, id="but if unready"),
        pytest.param(
            [budget(allowed=1), budget(allowed=1, name="more")], False, id="two: the API refuses each eviction"
        ),
    ],
)
def test_a_pod_that_can_never_be_evicted_is_not_planned_for(budgets: list[PodDisruptionBudget], leaves: bool) -> None:
    """It stays where it is, and a node bought for it would stay empty."""
    assert (["default/web-1"] if leaves else []) == leaving(a_web(), disruption_budgets=tuple(budgets))


@pytest.mark.parametrize(
    ("claim", "pod", "from_s"),
    [
        pytest.param({}, {"annotations": {DO_NOT_DISRUPT: "true"}}, None, id="it stays for ever"),
        pytest.param({"grace": 3600}, {"annotations": {DO_NOT_DISRUPT: "true"}}, 3270, id="the drain ends"),
        pytest.param({"grace": 3600}, {"annotations": {DO_NOT_DISRUPT: "50m"}}, 2700, id="its time ends before"),
        pytest.param({"grace": 3600}, {"annotations": {DO_NOT_DISRUPT: "2h"}}, 3270, id="its time ends later"),
        pytest.param({}, {"annotations": {DO_NOT_DISRUPT: "50m"}}, 2700, id="its time ends, and nothing else"),
        pytest.param({"grace": 100}, {"annotations": {DO_NOT_DISRUPT: "true"}}, -230, id="the drain is short"),
    ],
)
def test_a_pod_that_is_held_is_planned_for_before_it_has_to_go(
    claim: dict[str, Any], pod: dict[str, Any], from_s: float | None
) -> None:
    """Five minutes before nothing holds it any more; a pod has its own grace of half a minute in a drain that ends."""
    node, its = going()
    its = replace(its, termination_grace_period_s=claim.get("grace"))
    held = a_cluster([free_pool()], [(node, its)], [replace(a_web(), created_s=NOON_S, **pod)])

    def at(seconds: float) -> ClusterSnapshot:
        return replace(held, taken_at_s=NOON_S + seconds)

    assert [] == list(leaving_pods(at((from_s or 7200) - 1)))
    assert (inf if from_s is None or from_s < 0 else NOON_S + from_s) == next_leaving_s(at(0))
    if from_s is not None:
        assert ["default/web-1"] == [each.key for each, _ in leaving_pods(at(from_s))]
        assert inf == next_leaving_s(at(from_s))


@pytest.mark.parametrize(
    ("kind", "leaves"),
    [
        (InterruptionKind.SPOT, True),
        (InterruptionKind.RESERVATION, True),
        (InterruptionKind.STOPPING, True),
        (InterruptionKind.TERMINATING, True),
        (InterruptionKind.SCHEDULED, False),
        (InterruptionKind.UNHEALTHY, False),
    ],
)
def test_a_held_pod_is_planned_for_at_once_where_the_cloud_ends_its_instance(
    kind: InterruptionKind, leaves: bool
) -> None:
    """Nothing keeps it there for longer than the notice; a change that is scheduled may be days ahead."""
    node, claim = going()
    claim = claim.with_condition(Condition(DISRUPTION_REASON, TRUE, kind, since_s=NOON_S))
    protected = replace(a_web(), annotations={DO_NOT_DISRUPT: "true"})

    assert leaves == bool(leaving_pods(a_cluster([free_pool()], [(node, claim)], [protected])))


def test_a_node_that_waits_for_others_is_judged_as_if_its_drain_began_now() -> None:
    """A replacement comes first where the drain will not last as long as its start."""
    node, claim = ours("a")
    protected = replace(a_web(), annotations={DO_NOT_DISRUPT: "true"})

    def going_on(grace_s: int) -> int:
        marked = replace(claim, annotations={REPLACED_BY: "b"}, termination_grace_period_s=grace_s)
        return len(leaving_pods(a_cluster([free_pool()], [(node, marked), ours("b")], [protected])))

    assert (1, 0) == (going_on(120), going_on(3600))


def test_no_plan_is_made_for_pods_of_a_node_whose_replacements_are_not_there() -> None:
    """They are being created, and are for these pods; or they have failed, and the node stays."""
    node, claim = ours("a")
    marked = replace(claim, annotations={REPLACED_BY: "b,c"})
    there = [(node, marked), ours("b")]

    assert () == leaving_pods(a_cluster([free_pool()], there, [a_web()]))
    assert 1 == len(leaving_pods(a_cluster([free_pool()], [*there, ours("c")], [a_web()])))


def test_a_node_is_bought_for_pods_that_fit_nowhere_else() -> None:
    """All of them at once; where a node that stays has room none is bought."""
    pods = [a_web(f"web-{n}") for n in range(3)]

    assert [("m5.xlarge", 3)] == bought(made(a_cluster([free_pool()], [going()], pods)))

    beside = made(a_cluster([free_pool()], [going(), ours("b")], pods))
    assert [] == bought(beside)
    assert {"b"} == {placement.node for placement in beside.placements}


def test_a_plan_says_which_of_its_pods_still_run() -> None:
    """It would look as if more waited than do."""
    pods = [a_web(), a_pod("waits")]

    assert (
        "1 pod still runs on nodes that are being deleted (a), and is planned for already"
        in made(a_cluster([free_pool()], [going()], pods)).notes
    )
    assert () == tuple(note for note in made(a_cluster([free_pool()], [ours("a")], pods)).notes if "deleted" in note)


def test_a_node_that_stays_loses_no_pod() -> None:
    """Its pods wait for nothing; the snapshot stays the very same."""
    snapshot = a_cluster([free_pool()], [ours("a")], [a_web()])

    assert snapshot is with_leaving(snapshot)


def test_pods_leave_once() -> None:
    """A decision that is made again from its own snapshot, as a hint is, counts each pod once."""
    once = with_leaving(a_cluster([free_pool()], [going()], [a_web()]))

    assert once is with_leaving(once)
    assert {"default/web-1": "a"} == once.leaving
    assert ["default/web-1"] == [pod.key for pod in once.pending]


def test_nothing_is_bought_twice_for_them() -> None:
    """The claim promises its room to the pod that still runs."""
    coming = a_claim("new", reached=[LAUNCHED], annotations=written(Promises({"default/web-1": ()})))
    node, claim = going()
    decided = made(a_snapshot(pools=[free_pool()], nodes=[node], claims=[claim, coming], pods=[a_web()]))

    assert [] == bought(decided)
    assert [("default/web-1", "new")] == [(each.pod.pod, each.node) for each in decided.placements]


def test_they_do_not_count_where_they_still_run() -> None:
    """Of two replicas in two zones the one that leaves goes back to its own: counted twice it would have no place."""
    spread = TopologySpreadConstraint(ZONE, 1, WEB)
    there = ours("b", labels={ZONE: "us-east-1b"}, allocatable={"cpu": 1, "memory": "4Gi", "pods": 58})
    pods = [a_web("web-1", spread=(spread,)), a_web("web-2", "b", spread=(spread,))]
    decided = made(a_cluster([free_pool()], [going(), there], pods))

    assert [] == refused(decided)
    assert ["us-east-1a"] == [launch.offering.zone for launch in decided.launches]


def test_what_they_hold_of_a_quota_is_their_own() -> None:
    """The quota is full of the pod itself."""
    market = a_market(an_instance_type("g5.xlarge", devices=cards(1), price="1.006"))
    full = ResourceQuota("default", "gpu", {"limits.nvidia.com/gpumem": 8000}, {"limits.nvidia.com/gpumem": 8000})
    pools = [replace(free_pool(), labels={"gpu": "on"})]
    record = {NODE: "a", ALLOCATED: "gpu-0,NVIDIA,8000,0:;"}
    snapshot = a_cluster(pools, [going()], [a_web(gpu=1, gpumem=8000, annotations=record)], quotas=(full,))

    assert [("g5.xlarge", 1)] == bought(plan(snapshot, market))
    waits = a_cluster(pools, [], [a_pod(gpu=1, gpumem=8000)], quotas=(full,))
    assert ["default/p"] == refused(plan(waits, market))


def test_consolidation_leaves_them_their_room() -> None:
    """A node whose pods fit elsewhere stays where that room is for pods of a node that goes already."""
    pods = [on("b", "x", cpu=2), on("c", "y", cpu=2)]
    quiet = a_cluster([free_pool()], [ours("b"), ours("c")], pods)
    assert next(propose(World(quiet, MARKET), may_go(quiet)), None) is not None

    busy = World(a_cluster([free_pool()], [going(), ours("b"), ours("c")], [*pods, a_web(cpu=2)]), MARKET)
    made = decide(busy)
    command, (held,) = first_command(busy, may_go(busy.snapshot), lambda: made.placements, plan=lambda: made)
    assert (None, Blocked(Name("b"), Nominated(Name("default/web-1")))) == (command, held)


def test_pods_of_a_consolidated_node_go_where_its_command_said() -> None:
    """Once the node goes its pods find the places that were found for them, and nothing is bought."""
    pods = [on("a", "x", cpu=1, owner=REPLICAS), on("b", "y", cpu=2)]
    before = a_cluster([free_pool()], [ours("a"), ours("b")], pods)
    command = next(propose(World(before, MARKET), may_go(before)))
    (deletion,) = command.deletions

    nodes = [going(name) if name == deletion.node else ours(name) for name in ("a", "b")]
    after = decide(World(a_cluster([free_pool()], nodes, pods), MARKET))

    assert () == after.launches
    assert [(each.pod.pod, each.node) for each in deletion.moved] == [(e.pod.pod, e.node) for e in after.placements]
