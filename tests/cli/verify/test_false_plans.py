"""Plans that were right when they were printed, and false once something is changed: each is named by its rule."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from kerf.cli.inputs.input import ReadInput
from kerf.cli.plan.json import plan_object
from kerf.cli.plan.planning import decided
from kerf.cli.verify.planfile import decoded
from kerf.cli.verify.verifying import checked
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.manifests.decoded import Decoded
from kerf.model.constraints import HOSTNAME, Requirement, Requirements
from kerf.model.instancetypes import NodeOverlay
from kerf.model.nodepool import Budget
from kerf.model.pods import Container, Owner, PodSpec
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap
from kerf.model.violations import PlanRule
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, on, ours, pool_with
from tests.engine.worlds import some
from tests.verify import faults

Json = dict[str, Any]
_OWNER = Owner("ReplicaSet", "web")


def bought() -> World:
    """Two nodes for three pods that wait; the pool may have no more."""
    pool = a_pool(limits={"nodes": 2})
    return World(a_snapshot(pools=[pool], pods=some(3, cpu=3)), MARKET)


def merged() -> World:
    """Node `b` goes, since its pod fits on `a`; a pod that waits goes there, too."""
    pods = [on("a", "x", cpu=1, owner=_OWNER), on("b", "y", cpu=1, owner=_OWNER), a_pod("p", cpu="500m")]
    return World(a_cluster([free_pool()], [ours("a"), ours("b")], pods), MARKET)


def replaced() -> World:
    """A smaller node is bought in the place of `a`; a pod that waits goes to `b`."""
    nodes = [ours("a", instance_type="m5.2xlarge"), ours("b")]
    pods = [on("a", "x", cpu=3, owner=_OWNER), on("b", "y", cpu=3, owner=_OWNER)]
    pods.append(a_pod("p", cpu="500m", selector={HOSTNAME: "b"}))
    return World(a_cluster([free_pool()], nodes, pods), MARKET)


@cache
def _printed(world: Callable[[], World]) -> str:
    made = world()
    decision, plan = decided(ReadInput(Decoded(), made.snapshot.pending, made.snapshot, made.market), Options())
    return json.dumps(plan_object(plan, World(decision.world.snapshot, made.market)))


def broken(world: Callable[[], World], change: Callable[[Json], object] = lambda held: None) -> set[PlanRule]:
    """The rules that the plan of the world breaks once it is changed."""
    held = json.loads(_printed(world))
    change(held)
    return {each.rule for each in checked(decoded(json.dumps(held).encode(), "plan.json"), world(), world())}


@pytest.mark.parametrize(
    "world, launches, placements, deletions", [(bought, 2, 0, 0), (merged, 0, 1, 1), (replaced, 1, 1, 1)]
)
def test_what_was_printed_holds(world: Callable[[], World], launches: int, placements: int, deletions: int) -> None:
    """Before it is changed; and it is what the changes below are made for."""
    held = json.loads(_printed(world))
    gone = [*held["deletions"], *held["replacements"]]

    assert set() == broken(world)
    assert (launches, placements, deletions) == (len(held["launches"]), len(held["placements"]), len(gone))


def one_more(held: Json, **changed: Any) -> None:
    """A node more than the plan has, like its first."""
    held["launches"].append({**held["launches"][0], "name": "launch-9", "pods": [], **changed})
    held["cost"]["perHourAfter"] += held["launches"][0]["perHour"]


REPLACING: dict[str, tuple[Callable[[Json], object], PlanRule]] = {
    "no-such-claim": (lambda held: held["launches"][0].update(replaces=["gone"]), PlanRule.NODE_UNUSABLE),
    "no-such-type": (lambda held: one_more(held, replaces=["gone"], instanceType="huge"), PlanRule.OFFERING),
    "no-such-pod": (lambda held: one_more(held, replaces=["gone"], pods=["default/nobody"]), PlanRule.POD_UNKNOWN),
    "beyond-limits": (lambda held: one_more(held, replaces=["gone"]), PlanRule.POOL_LIMITS),
    "pod-of-another": (
        lambda held: one_more(held, replaces=["gone"], pods=held["launches"][0]["pods"]),
        PlanRule.PLACED_TWICE,
    ),
}


@pytest.mark.parametrize("change, rule", REPLACING.values(), ids=list(REPLACING))
def test_a_launch_in_the_place_of_nodes_is_checked_without_any_that_goes(
    change: Callable[[Json], object], rule: PlanRule
) -> None:
    """What is bought for pods that wait counts beside it."""
    assert rule in broken(bought, change)


def test_a_pod_that_waits_has_no_second_place_in_the_stead_of_a_node() -> None:
    """Neither on what is bought there, nor among the pods that move."""
    assert PlanRule.PLACED_TWICE in broken(replaced, lambda held: held["launches"][0]["pods"].append("default/p"))

    def moves(held: Json) -> None:
        held["deletions"][0]["moves"].append({"pod": "default/p", "node": "a", "devices": []})

    assert PlanRule.PLACED_TWICE in broken(merged, moves)


def sliced() -> World:
    """Two pods with 10,000 MiB each share the card of one new node, by HAMi."""
    return faults.slices().world


def instances() -> World:
    """Two MIG instances on one card, which HAMi cuts as the pods come."""
    return faults.instances().world


def replicas() -> World:
    """Two pods on a card that four share in time."""
    return faults.time_sliced().world


def parts(**labels: str) -> World:
    """A container that asks for MIG instances of two profiles, of a card that was cut into both."""
    asked = Resources({"cpu": 1000, "nvidia.com/mig-1g.5gb": 1, "nvidia.com/mig-2g.10gb": 1})
    text = "version: v1\nmig-configs:\n  both:\n  - devices: all\n    mig-enabled: true\n    mig-devices:\n"
    text += "      1g.5gb: 1\n      2g.10gb: 1\n"
    stated = {"nvidia.com/mig.strategy": "mixed"} if not labels else {}
    pool = a_pool(labels={"nvidia.com/mig.config": "both", **stated, **labels})
    pod = a_pod("p", spec=PodSpec((Container("main", asked, asked),)))
    layout = ConfigMap("gpu-operator", "custom-mig-config", {"config.yaml": text})
    return World(a_snapshot(pools=[pool], pods=[pod], config_maps=(layout,)), a_market(faults.A100))


@pytest.mark.parametrize("world", [sliced, instances, replicas, parts])
def test_what_was_printed_of_cards_holds(world: Callable[[], World]) -> None:
    """Every pod has its part of a card."""
    held = json.loads(_printed(world))
    slices = [each["pod"] for card in held["launches"][0]["devices"] for each in card["slices"]]

    assert (set(), []) == (broken(world), held["unplaced"])
    assert set(held["launches"][0]["pods"]) == {*slices}


def parts_with(**changed: Any) -> Callable[[Json], None]:
    """Every slice of the first launch with this in it."""

    def change(held: Json) -> None:
        for card in held["launches"][0]["devices"]:
            for each in card["slices"]:
                each.update(changed)

    return change


CARDS: dict[str, tuple[Callable[[], World], Callable[[Json], object], PlanRule]] = {
    "small-by-a-resource": (sliced, parts_with(memoryMiB=1, cores=0, resource="x"), PlanRule.CARD_REQUEST),
    "counted-by-a-resource": (sliced, parts_with(resource="nvidia.com/gpu"), PlanRule.CARD_PARTS),
    "instance-of-an-uncut-card": (sliced, parts_with(profile="1g.5gb", start=0), PlanRule.CARD_GEOMETRY),
    "instance-with-few-cores": (instances, parts_with(cores=1), PlanRule.CARD_GEOMETRY),
    "instance-with-little-memory": (instances, parts_with(memoryMiB=18_000), PlanRule.CARD_GEOMETRY),
    "replica-without-a-name": (replicas, parts_with(resource=""), PlanRule.CARD_PARTS),
    "replica-of-another-name": (replicas, parts_with(resource="nvidia.com/gpu.shared"), PlanRule.CARD_REQUEST),
    "slice-of-another-pod": (sliced, parts_with(pod="default/nobody"), PlanRule.CARD_REQUEST),
    "part-of-another-size": (parts, parts_with(memoryMiB=1), PlanRule.CARD_REQUEST),
    "parts-of-one-name": (parts, parts_with(resource="nvidia.com/mig-1g.5gb"), PlanRule.CARD_REQUEST),
}


@pytest.mark.parametrize("world, change, rule", CARDS.values(), ids=list(CARDS))
def test_a_slice_is_as_its_card_is_cut(
    world: Callable[[], World], change: Callable[[Json], object], rule: PlanRule
) -> None:
    """A name under which kubelet counts parts, or a MIG profile, hides no size of a card that has neither."""
    assert rule in broken(world, change)


def guarded() -> World:
    """Nodes of a pool that keeps two, of which none may go to save money and any for another reason."""
    world = merged()
    pool = pool_with(Budget("0", reasons=("Underutilized",)))
    pool = replace(pool, own_annotations={"kerf.dev/min-nodes": "2"})
    return World(replace(world.snapshot, node_pools=(pool,)), world.market)


def idle() -> World:
    """Two nodes without pods go."""
    return World(a_cluster([free_pool()], [ours("a"), ours("b")], []), MARKET)


def gone_with(**changed: Any) -> Callable[[Json], None]:
    """The first node that goes, with this in its row."""
    return lambda held: held["deletions"][0].update(changed)


def as_merged(change: Callable[[Json], object] = lambda held: None) -> Callable[[Json], None]:
    """The plan of the same nodes without a budget and a floor, changed."""

    def become(held: Json) -> None:
        held.clear()
        held.update(json.loads(_printed(merged)))
        change(held)

    return become


GOING: dict[str, tuple[Callable[[], World], Callable[[Json], object], set[PlanRule]]] = {
    "unhealthy": (merged, gone_with(reason="Unhealthy", moves=[]), {PlanRule.REASON}),
    "drifted": (merged, gone_with(reason="Drifted"), {PlanRule.REASON}),
    "empty": (merged, gone_with(reason="Empty"), {PlanRule.REASON}),
    "of-no-such-reason": (merged, gone_with(reason="Old"), {PlanRule.REASON}),
    "of-another-pool": (merged, gone_with(nodePool="other"), {PlanRule.NODE_UNUSABLE}),
    "budget": (guarded, as_merged(), {PlanRule.DISRUPTION_BUDGET, PlanRule.POOL_FLOOR}),
    "budget-of-another-pool": (
        guarded,
        as_merged(gone_with(nodePool="other")),
        {PlanRule.NODE_UNUSABLE, PlanRule.DISRUPTION_BUDGET, PlanRule.POOL_FLOOR},
    ),
    "budget-for-another-reason": (guarded, as_merged(gone_with(reason="Unhealthy")), {PlanRule.REASON}),
    "twice": (
        idle,
        lambda held: held["deletions"].append(held["deletions"][0]),
        {PlanRule.NAMED_TWICE, PlanRule.COST, PlanRule.DISRUPTION_BUDGET},
    ),
}


@pytest.mark.parametrize("world, change, rules", GOING.values(), ids=list(GOING))
def test_a_node_goes_for_a_reason_that_it_has(
    world: Callable[[], World], change: Callable[[Json], object], rules: set[PlanRule]
) -> None:
    """And its own pool's budgets and floor count it, whatever pool is named."""
    assert rules == broken(world, change)


def held_back() -> World:
    """A pod that gets a node, and one that no node serves."""
    return World(a_snapshot(pools=[a_pool()], pods=[a_pod("p", cpu=1), a_pod("large", cpu=900)]), MARKET)


def said(*names: str) -> Callable[[Json], None]:
    """The plan with these pods without a place."""
    return lambda held: held.update(unplaced=[{"pod": f"default/{name}"} for name in names])


@pytest.mark.parametrize(
    "change, rules",
    [
        (said("large"), set()),
        (said(), {PlanRule.POD_OUTCOME}),
        (said("large", "p"), {PlanRule.POD_OUTCOME}),
        (said("large", "nobody"), {PlanRule.POD_UNKNOWN}),
        (lambda held: held["launches"][0].update(pods=[]), {PlanRule.POD_OUTCOME, PlanRule.BOUND}),
    ],
    ids=["as-it-was", "forgotten", "both", "of-no-such-pod", "dropped"],
)
def test_a_pod_that_waits_has_one_outcome(change: Callable[[Json], object], rules: set[PlanRule]) -> None:
    """A place, or a reason why it has none."""
    assert rules == broken(held_back, change)


def test_two_nodes_to_buy_have_two_names() -> None:
    """Whatever is said of one of them would be said of the other."""
    assert PlanRule.NAMED_TWICE in broken(bought, lambda held: held["launches"][1].update(name="launch-0"))


@pytest.mark.parametrize(
    "key", ["a:b/p", "capacitywindow:night/warm-0-0", "cronjob:default.report/1", "capacitybuffer:/"]
)
def test_room_is_kept_for_objects_of_the_cluster_alone(key: str) -> None:
    """A namespace with a colon, which no real one has, is that of a window, a CronJob, a request or a buffer."""
    assert PlanRule.POD_UNKNOWN in broken(bought, lambda held: held["launches"][0]["pods"].append(key))


def teams() -> World:
    """A node for a pod of either team; the pool leaves open which of two, and states its size."""
    asked = Requirements([Requirement.of("team", "In", ("a", "b"))])
    pool = a_pool(requirements=asked, labels={"size": "small"})
    return World(a_snapshot(pools=[pool], pods=[a_pod("p", cpu=1, selector={"team": "b"})]), MARKET)


@pytest.mark.parametrize(
    "labels, rules",
    [
        ({"team": "b"}, set()),
        ({"team": "c"}, {PlanRule.OFFERING, PlanRule.NODE_LABELS}),
        ({"team": "b", "rack": "r1"}, {PlanRule.OFFERING}),
        ({"team": "b", "size": "large"}, {PlanRule.OFFERING}),
    ],
)
def test_a_node_has_the_labels_that_its_pool_leaves_open(labels: dict[str, str], rules: set[PlanRule]) -> None:
    """None that is made up so that a pod's selector holds, and none that the template states otherwise."""
    assert {"team": "b"} == json.loads(_printed(teams))["launches"][0]["labels"]
    assert rules == broken(teams, lambda held: held["launches"][0].update(labels=labels))


def cost(**changed: float) -> Callable[[Json], None]:
    """The plan with this much more of the cluster's cost, by field."""

    def change(held: Json) -> None:
        for name, more in changed.items():
            held["cost"][name] += more

    return change


def saved(held: Json) -> None:
    """A node that goes costs more than it does."""
    held["deletions"][0]["perHourSaved"] += 50
    held["cost"]["perHourAfter"] -= 50


def assumed() -> World:
    """The same where nothing states the strategy of the plugin, so that it is assumed."""
    return parts(size="small")


def announced() -> World:
    """A pod with one of four parts of a card, of which a NodeOverlay alone speaks."""
    overlay = NodeOverlay("shared", Requirements(), capacity=Resources({"nvidia.com/gpu": 4}))
    snapshot = a_snapshot(pools=[a_pool()], pods=some(2, gpu=1), overlays=(overlay,))
    return World(snapshot, MARKET)


@pytest.mark.parametrize("world", [assumed, announced])
def test_a_label_that_is_assumed_or_announced_is_none_that_is_made_up(world: Callable[[], World]) -> None:
    """The node gets it from its plugins."""
    held = json.loads(_printed(world))

    assert [] == held["unplaced"]
    assert {} != held["launches"][0]["labels"]
    assert set() == broken(world)


FIGURES: dict[str, tuple[Callable[[], World], Callable[[Json], object], PlanRule]] = {
    "before": (merged, cost(perHourBefore=50, perHourAfter=50), PlanRule.COST),
    "saved": (merged, saved, PlanRule.COST),
    "currency": (merged, lambda held: held["cost"].update(currency="EUR"), PlanRule.COST),
    "cards": (sliced, lambda held: held["gpus"].update(paid=500), PlanRule.ALLOCATED),
    "none-allocated": (sliced, lambda held: held["gpus"].update(allocated=0), PlanRule.ALLOCATED),
    "no-cards": (sliced, lambda held: held["gpus"].update(paid=0, allocated=0), PlanRule.ALLOCATED),
}


@pytest.mark.parametrize("world, change, rule", FIGURES.values(), ids=list(FIGURES))
def test_figures_are_those_of_the_market_and_the_cluster(
    world: Callable[[], World], change: Callable[[Json], object], rule: PlanRule
) -> None:
    """What nodes cost now, what is saved by each, and how many cards are paid for."""
    assert rule in broken(world, change)


def proof_with(**changed: Any) -> Callable[[Json], None]:
    """The proof of the bound with this in it."""
    return lambda held: held["lowerBound"].update(changed)


def parts_of_nothing(held: Json) -> None:
    """Each price in parts, all of which are nothing."""
    for price in held["lowerBound"]["prices"]:
        price["parts"] = dict.fromkeys(price["parts"], 0)


def worth_more(held: Json) -> None:
    """A pod that is worth more than the node that holds it."""
    held["lowerBound"]["worth"][0]["perHour"] += 1


BOUNDS: dict[str, Callable[[Json], object]] = {
    "another-bound": proof_with(perHour=99),
    "of-no-pods": proof_with(worth=[]),
    "of-another-pod": proof_with(worth=[{"pod": "default/nobody", "pods": 3, "perHour": 0.191999999}]),
    "of-more-pods": proof_with(worth=[{"pod": "default/p-0", "pods": 9, "perHour": 0.1}]),
    "of-no-prices": proof_with(prices=[]),
    "of-no-parts": parts_of_nothing,
    "worth-more": worth_more,
    "none": lambda held: held.pop("lowerBound"),
    "for-no-bound": lambda held: held["cost"].update(perHourLowerBound=None),
}


@pytest.mark.parametrize("change", BOUNDS.values(), ids=list(BOUNDS))
def test_a_bound_is_what_its_proof_says(change: Callable[[Json], object]) -> None:
    """And no pod is worth more than the node that the plan has it on."""
    assert {PlanRule.BOUND} == broken(bought, change)
