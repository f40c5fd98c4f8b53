"""A search that breaks a rule buys nothing by it and takes nothing away: it is counted, said, and left out.

Each fault is planted in the search: it decides for a cluster in which the rule's object is missing, or changes what it
has found. So the decision is wrong in one thing, and everything else is as in a cluster that runs.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kerf.controllers import lastline
from kerf.controllers.disruption import DisruptionController
from kerf.controllers.provisioning import Provisioning
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.disruption.candidates import candidates
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.first import first_command
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.constraints import ANYTHING, NO_SCHEDULE, Taint
from kerf.model.nodepool import Budget
from kerf.model.plan import PlacedPod
from kerf.model.pods import Pod, PodSpec
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.violations import PlanRule
from kerf.sim.objects import Json
from kerf.telemetry import DECISIONS_REFUSED
from tests.controllers.cluster import STAGES, Cluster, pod, pool
from tests.verify.faults import with_launch, with_parts

Search = Callable[[World, Options], Decision]
Changed = Callable[[ClusterSnapshot], ClusterSnapshot]


def refused(rule: PlanRule) -> float:
    """How many decisions broke a rule so far."""
    counted: float = DECISIONS_REFUSED.labels(rule.value)._value.get()
    return counted


def blind(change: Changed) -> Search:
    """A search that sees the cluster otherwise than it is."""

    def search(world: World, options: Options) -> Decision:
        seen = world.with_leaving()
        return replace(decide(World(change(seen.snapshot), world.market), options), world=seen)

    return search


def wrong(change: Callable[[Decision], Decision]) -> Search:
    """A search that changes what it has found, where it buys anything."""

    def search(world: World, options: Options) -> Decision:
        found = decide(world, options)
        return change(found) if found.launches else found

    return search


def of_pods(change: Callable[[PodSpec], PodSpec], labels: dict[str, str] | None = None) -> Changed:
    """The cluster with other pods that wait."""

    def changed(each: Pod) -> Pod:
        held = each if labels is None else replace(each, labels=labels)
        return replace(held, spec=change(each.spec))

    return lambda snapshot: replace(snapshot, pending=tuple(map(changed, snapshot.pending)))


def of_pools(**fields: Any) -> Changed:
    """The cluster with other pools."""
    return lambda snapshot: replace(snapshot, node_pools=tuple(replace(each, **fields) for each in snapshot.node_pools))


def unasked(spec: PodSpec) -> PodSpec:
    """A pod whose containers ask for a card and nothing else."""
    cards = [Resources({name: n for name, n in each.requests.items() if "/" in name}) for each in spec.containers]
    containers = zip(spec.containers, cards, strict=True)
    return replace(spec, containers=tuple(replace(each, requests=held, limits=held) for each, held in containers))


def unselecting(spec: PodSpec) -> PodSpec:
    """A pod that may run on any node."""
    return replace(spec, node_selector=ANYTHING)


def elsewhere(found: Decision) -> Decision:
    """The first node in a zone that nobody sells."""
    return with_launch(found, offering=replace(found.launches[0].offering, zone="z"))


def for_nobody(found: Decision) -> Decision:
    """The first node for a pod that is not there, too."""
    return with_launch(found, pods=(*found.launches[0].pods, PlacedPod("a/b")))


SELECTOR: Json = {"nodeSelector": {"team": "ml"}}
HUGE: Json = {"limits": {"nvidia.com/gpu": "1", "cpu": "900"}}
GATED: Json = {"schedulingGates": [{"name": "example.com/quota"}]}
GROUPED: Json = {"labels": {"kerf.dev/pod-group": "train", "kerf.dev/pod-group-min": "2"}}
WINDOWED: Json = {"labels": {"kerf.dev/window": "night"}, "schedulingGates": [{"name": "kerf.dev/window"}]}
FAULTS: tuple[tuple[PlanRule, Search, Json, Json], ...] = (
    (PlanRule.NODE_RESOURCES, blind(of_pods(unasked)), HUGE, {}),
    (
        PlanRule.NODE_LABELS,
        blind(of_pods(lambda spec: replace(spec, node_selector=PodSpec(()).node_selector))),
        SELECTOR,
        {},
    ),
    (
        PlanRule.NODE_TAINTS,
        blind(of_pools(taints=())),
        {},
        {"template": {"taints": [{"key": "team", "value": "ml", "effect": "NoSchedule"}]}},
    ),
    (PlanRule.POD_HELD, blind(of_pods(lambda spec: replace(spec, scheduling_gates=()))), GATED, {}),
    (PlanRule.WINDOW, blind(of_pods(lambda spec: replace(spec, scheduling_gates=()), {})), WINDOWED, {}),
    (PlanRule.GROUP, blind(of_pods(lambda spec: spec, {})), GROUPED, {"limits": {"nodes": "1"}}),
    (PlanRule.POOL_LIMITS, blind(of_pools(limits=None)), {}, {"limits": {"nodes": "0"}}),
    (
        PlanRule.OFFERING,
        wrong(lambda found: with_launch(found, offering=replace(found.launches[0].offering, zone="z"))),
        {},
        {},
    ),
    (PlanRule.PRICE, wrong(lambda found: with_launch(found, price_micro=1)), {}, {}),
    (PlanRule.ALTERNATIVES, wrong(lambda found: with_launch(found, alternatives=("m5.large",))), {}, {}),
    (PlanRule.CARD_UNUSABLE, wrong(lambda found: with_parts(found, device=7)), {}, {}),
    (PlanRule.CARD_MEMORY, wrong(lambda found: with_parts(found, memory_mib=10**6)), {}, {}),
    (PlanRule.CARD_CORES, wrong(lambda found: with_parts(found, cores=101)), {}, {}),
    (PlanRule.CARD_REQUEST, wrong(lambda found: with_launch(found, pods=(PlacedPod("default/p"),))), {}, {}),
    (
        PlanRule.POD_UNKNOWN,
        wrong(lambda found: with_launch(found, pods=(*found.launches[0].pods, PlacedPod("a/b")))),
        {},
        {},
    ),
    (PlanRule.NODE_TAINTS, wrong(lambda found: with_launch(found, taints=(Taint("a", "b", NO_SCHEDULE),))), {}, {}),
    (PlanRule.ALLOCATED, wrong(lambda found: with_launch(found, allocated=10**9)), {}, {}),
)


@pytest.mark.parametrize("rule, search, of_pod, of_pool", FAULTS)
def test_what_a_wrong_search_buys_is_not_bought(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, rule: PlanRule, search: Search, of_pod: Json, of_pool: Json
) -> None:
    """No claim comes of it, the counter grows, and the pod is told."""
    monkeypatch.setattr(lastline, "decide", search)
    before = refused(rule)
    cluster.put(pool(**json.loads(json.dumps(of_pool))))
    parts = (cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings)
    cluster.start(Provisioning(*parts))
    for name in ("p", "q") if rule == PlanRule.GROUP else ("p",):
        cluster.put(pod(name, **json.loads(json.dumps(of_pod))))
    cluster.at(5)

    assert [] == cluster.api.list("NodeClaim")
    assert before < refused(rule)
    assert rule in {each.rule for found in cluster.feed.refused for each in found}
    reasons = [unplaced.reason for _, plan in cluster.feed.plans for unplaced in plan.unplaced]
    assert any("broke a rule" in reason for reason in reasons)


def test_a_wrong_figure_stops_no_node(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cost that was added up wrong is left out; the nodes are bought all the same."""
    search = wrong(lambda found: replace(found, cost=replace(found.cost, after_micro=1)))
    monkeypatch.setattr(lastline, "decide", search)
    before = refused(PlanRule.COST)
    cluster.put(pool())
    cluster.start(Provisioning(cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings))
    cluster.put(pod("p"))
    cluster.at(5)

    assert 1 == len(cluster.api.list("NodeClaim"))
    assert before < refused(PlanRule.COST)


def test_what_is_right_beside_it_is_bought(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two nodes the one that breaks a rule is left out, and its pod alone waits."""
    monkeypatch.setattr(lastline, "decide", wrong(lambda found: with_parts(found, device=7)))
    cluster.put(pool())
    cluster.start(Provisioning(cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings))
    cluster.put(pod("p"), pod("q"))
    cluster.at(5)

    claims = cluster.api.list("NodeClaim")
    assert [["default/q"]] == [[*json.loads(c["metadata"]["annotations"]["kerf.dev/planned-pods"])] for c in claims]


First = Callable[..., tuple[Command | None, Any]]


def blind_first(change: Changed) -> First:
    """The same of a search for nodes that may go."""

    def search(world: World, found: Any, placements: Any, **given: Any) -> tuple[Command | None, Any]:
        seen = world.of(change(world.snapshot))
        may_go = candidates(seen.snapshot)[0]
        return first_command(seen, may_go, placements, **given)

    return search


def unbudgeted(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """The cluster whose pools let all go."""
    pools = (replace(p, disruption=replace(p.disruption, budgets=(Budget("100%"),))) for p in snapshot.node_pools)
    return replace(snapshot, node_pools=tuple(pools))


def unfloored(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """The cluster whose pools keep no node."""
    return replace(snapshot, node_pools=tuple(replace(p, own_annotations={}) for p in snapshot.node_pools))


@pytest.mark.parametrize(
    "rule, change, budget, notes",
    [
        (PlanRule.DISRUPTION_BUDGET, unbudgeted, "0", {}),
        (PlanRule.POOL_FLOOR, unfloored, "100%", {"kerf.dev/min-nodes": "1"}),
    ],
)
def test_no_node_goes_by_a_wrong_search(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, rule: PlanRule, change: Changed, budget: str, notes: Json
) -> None:
    """The node stays, the counter grows, and an event on the node says why."""
    monkeypatch.setattr(lastline, "first_command", blind_first(change))
    before = refused(rule)
    cluster.put(pool(annotations=notes, disruption={"consolidateAfter": "0s", "budgets": [{"nodes": budget}]}))
    cluster.running(1, reached=(*STAGES, "Consolidatable"))
    cluster.start(DisruptionController(cluster.state, cluster.ports, cluster.book, cluster.actuator, cluster.settings))
    cluster.at(60)

    assert [] == [o for o in cluster.api.list("NodeClaim") if "deletionTimestamp" in o["metadata"]]
    assert before < refused(rule)
    said = [event.get("message", "") for event in cluster.api.list("Event")]
    assert any("broke a rule" in message for message in said)
