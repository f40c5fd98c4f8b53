"""Good decisions, and one planted fault for each rule: what a search that is wrong in one thing would decide."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kerf.catalog import aws
from kerf.engine.decide import decide
from kerf.engine.decision import Decision, Refusal
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.first import first_command
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.causes import Cause
from kerf.model.constraints import HOSTNAME, INSTANCE_TYPE, NO_SCHEDULE, ZONE, Requirement, Requirements, Taint
from kerf.model.gpu import Placement
from kerf.model.groups import POD_GROUP, POD_GROUP_MIN
from kerf.model.lowerbound import LowerBound
from kerf.model.nodeclaim import DO_NOT_DISRUPT
from kerf.model.nodepool import UNDERUTILIZED, UNHEALTHY, Budget
from kerf.model.plan import Deletion, Eviction, GpuUse, NodePlacement, PlacedPod, Repartition, Stage
from kerf.model.pods import RUNNING, Container, HostPort, PodDisruptionBudget
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterNode, ClusterSnapshot, ConfigMap, ResourceQuota
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.model.violations import PlanRule
from kerf.model.volumes import PersistentVolume, PersistentVolumeClaim
from kerf.model.windows import WINDOW_LABEL, CapacityWindow
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type, cards
from tests.engine.disruption.clusters import MARKET, a_cluster, free_pool, may_go, on, ours, pool_with
from tests.engine.worlds import G5, G5_2X, G5_12X, M5, M5_2X, a_hami_node, a_hami_pool, a_slice, seen, some

OTHER = an_instance_type("g4dn.xlarge", cpu=4, devices=cards(1, 15360, "T4"), price="0.526")
A100 = an_instance_type(
    "a100.large",
    devices=[next(shape for kind in aws.load().types if kind.name == "p4d.24xlarge" for shape in kind.devices)],
    memory="96Gi",
    price="4.00",
)
TYPES = (M5, M5_2X, G5, G5_2X, G5_12X, OTHER)
_APP = Requirements.of_labels({"app": "web"})


def decided(snapshot: ClusterSnapshot, *types: Any) -> Decision:
    """What is decided for the pods that wait."""
    return decide(World(snapshot, a_market(*(types or TYPES))), Options())


def slices(**given: Any) -> Decision:
    """Two pods with 10,000 MiB each share the card of one new node."""
    pods = [a_slice(f"p-{n}", gpumem=10_000, **given) for n in range(2)]
    return decided(a_snapshot(pools=[a_hami_pool(limits={"nodes": 5})], pods=pods))


def plain() -> Decision:
    """A pod of one core on a new node."""
    return decided(a_snapshot(pools=[a_pool()], pods=some(2, cpu=1)))


def placed(**given: Any) -> Decision:
    """A pod of one core on a node that is there and is ours."""
    pods = [a_pod("p", cpu=1, **given), on("a", "x", cpu=1)]
    return decided(a_cluster([free_pool()], [ours("a")], pods))


def with_launch(decision: Decision, **changed: Any) -> Decision:
    """The decision with the first launch changed."""
    first, *others = decision.launches
    return replace(decision, launches=(replace(first, **changed), *others))


def with_parts(decision: Decision, **changed: Any) -> Decision:
    """The same with the slices of all pods of the first launch changed."""
    pods = tuple(
        pod._replace(parts=tuple(replace(part, **changed) for part in pod.parts)) for pod in decision.launches[0].pods
    )
    return with_launch(decision, pods=pods)


def in_world(decision: Decision, **changed: Any) -> Decision:
    """The same decision in a cluster that is otherwise: as if the search had not looked at it."""
    world = decision.world
    return replace(decision, world=World(replace(world.snapshot, **changed), world.market))


def with_pods(decision: Decision, **changed: Any) -> Decision:
    """The same for pods with other specs."""
    pods = tuple(replace(pod, spec=replace(pod.spec, **changed)) for pod in decision.world.snapshot.pending)
    return in_world(decision, pending=pods)


def with_labels(decision: Decision, **labels: str) -> Decision:
    """The same for pods with these labels."""
    return in_world(decision, pending=tuple(replace(pod, labels=labels) for pod in decision.world.snapshot.pending))


def placed_twice() -> Decision:
    """One pod on two nodes."""
    decision = plain()
    again = replace(decision.launches[0], name="launch-9")
    return with_cost(replace(decision, launches=(*decision.launches, again)))


def forgotten() -> Decision:
    """A pod that gets no place, and of which nothing is said."""
    decision = decided(a_snapshot(pools=[a_pool()], pods=[*some(2, cpu=1), a_pod("large", cpu=900)]))
    return replace(decision, refusals=())


def named_twice() -> Decision:
    """Two nodes to buy under one name."""
    decision = plain()
    return with_cost(replace(decision, launches=(*decision.launches, replace(decision.launches[0], pods=()))))


def with_cost(decision: Decision) -> Decision:
    """The decision with the cost that its launches come to."""
    after = decision.cost.before_micro + sum(launch.price_micro for launch in decision.launches)
    return replace(decision, cost=replace(decision.cost, after_micro=after, bound=None))


def unknown() -> Decision:
    """A place for a pod that is not there."""
    decision = plain()
    return with_launch(decision, pods=(*decision.launches[0].pods, PlacedPod("default/nobody")))


def held() -> Decision:
    """A pod with another's gate."""
    return with_pods(plain(), scheduling_gates=("example.com/quota",))


def elsewhere() -> Decision:
    """A pod on a node that the cluster does not have."""
    decision = placed()
    return replace(decision, placements=(NodePlacement(decision.placements[0].pod, "gone"),))


def too_many_pods() -> Decision:
    """More pods than the node takes."""
    decision = placed()
    node = decision.world.snapshot.nodes[0]
    assert node.node is not None
    shown = node.node.allocatable.replaced({"pods": 1})
    return in_world(decision, nodes=(replace(node, node=replace(node.node, allocatable=shown)),))


def ports_twice() -> Decision:
    """Two pods with one port of the node."""
    port = (Container("main", Resources({"cpu": 1000}), host_ports=(HostPort(80),)),)
    return with_pods(plain(), containers=port)


def beyond_reach() -> Decision:
    """A pod on a node that does not reach its volume."""
    claim = PersistentVolumeClaim("default", "data", volume="disk", is_bound=True)
    volume = PersistentVolume("disk", (Requirements([Requirement.of(ZONE, "In", ("us-east-1f",))]),))
    decision = with_pods(placed(), claims=("data",))
    return in_world(decision, volume_claims={"default/data": claim}, volumes={"disk": volume})


def another_model() -> Decision:
    """A card that the pod's annotations exclude."""
    decision = slices()
    notes = {"nvidia.com/use-gputype": "A100"}
    pods = tuple(replace(pod, annotations=notes) for pod in decision.world.snapshot.pending)
    return in_world(decision, pending=pods)


def another_family() -> Decision:
    """Slices of HAMi on nodes where no HAMi runs."""
    decision = slices()
    pools = tuple(replace(pool, labels={}) for pool in decision.world.snapshot.node_pools)
    return in_world(decision, node_pools=pools)


def instances() -> Decision:
    """Two MIG instances on a card that HAMi cuts."""
    pool = a_hami_pool(annotations={"kerf.dev/hami-mode": "mig"})
    return decided(a_snapshot(pools=[pool], pods=some(2, gpu=1, gpumem=18_000)), A100)


def overlapping() -> Decision:
    """Both instances at the same place."""
    place = Placement("3g.20gb", 0, 4)
    return with_parts(instances(), placement=place)


def time_sliced() -> Decision:
    """Six parts of a card that four share in time."""
    text = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 4\n"
    config = ConfigMap("gpu-operator", "time-slicing-config", {"shared": text})
    pool = a_pool(labels={"nvidia.com/device-plugin.config": "shared"})
    decision = decided(a_snapshot(pools=[pool], pods=some(2, gpu=1), config_maps=(config,)), G5)
    pods = decision.launches[0].pods
    return with_launch(decision, pods=tuple(pod._replace(parts=pod.parts * 3) for pod in pods))


def short_alternative() -> Decision:
    """A type that holds none of the pods among those that may stand in."""
    decision = decided(a_snapshot(pools=[free_pool()], pods=some(1, cpu=6)))
    return with_launch(decision, alternatives=("m5.xlarge",))


def beyond_limits() -> Decision:
    """A node more than the pool may have."""
    decision = plain()
    pools = tuple(replace(pool, limits=Resources({"cpu": 3000})) for pool in decision.world.snapshot.node_pools)
    return in_world(decision, node_pools=pools)


def over_quota() -> Decision:
    """More GPU memory than the namespace may have."""
    quota = ResourceQuota("default", "gpus", {"limits.nvidia.com/gpumem": 15_000})
    return in_world(slices(), quotas=(quota,))


def half_a_group() -> Decision:
    """One of two pods of a group."""
    decision = with_labels(plain(), **{POD_GROUP: "train", POD_GROUP_MIN: "2"})
    left_out = Refusal((decision.world.snapshot.pending[1],), Stage.RESOURCES, Cause())
    return replace(with_launch(decision, pods=decision.launches[0].pods[:1]), refusals=(left_out,))


def closed_window() -> Decision:
    """A pod whose window is closed."""
    window = CapacityWindow("night", "0 1 * * *", "UTC", 60, Requirements.of_labels({WINDOW_LABEL: "night"}))
    return in_world(with_labels(plain(), **{WINDOW_LABEL: "night"}), windows=(window,))


def uneven() -> Decision:
    """Two pods in one zone, and none in the other."""
    spread = (TopologySpreadConstraint(ZONE, 1, _APP),)
    decision = _crowded(spread=spread)
    there = decision.world.snapshot.nodes
    node, claim = ours("b", labels={ZONE: "us-east-1b"})
    return in_world(decision, nodes=(*there, ClusterNode(node, claim)))


def _crowded(**spec: Any) -> Decision:
    pods = [a_pod(f"p-{n}", cpu=1, labels={"app": "web"}) for n in range(2)]
    decision = decided(a_cluster([free_pool()], [ours("a")], pods))
    return with_pods(decision, **spec)


def alone() -> Decision:
    """A pod without the company that it asks for."""
    term = PodAffinityTerm(HOSTNAME, Requirements.of_labels({"app": "db"}))
    return _crowded(pod_affinity=PodAffinity((term,)))


def together() -> Decision:
    """Two pods on one node that keep each other away."""
    return _crowded(pod_anti_affinity=PodAffinity((PodAffinityTerm(HOSTNAME, _APP),)))


def relabelled_in_use() -> Decision:
    """A node that pods use is given another configuration."""
    decision = placed()
    relabel = Repartition("a", "a", "pool", {"nvidia.com/mig.config": "halves"}, (), ())
    return replace(decision, relabels=(relabel,))


def evicted() -> Decision:
    """A pod that does more than fill what is idle makes room for another."""
    decision = placed()
    return replace(decision, evictions=(Eviction("default/x", "a", "default/p"),))


def dearer() -> Decision:
    """A launch at another price than it is sold for."""
    return with_cost(with_launch(plain(), price_micro=1))


def sold_out() -> Decision:
    """An offering that nobody has."""
    decision = plain()
    return with_launch(decision, offering=replace(decision.launches[0].offering, zone="us-east-1z"))


def another_zone_than_labelled() -> Decision:
    """A node in a zone that is not the one of which the template of its pool has the label."""
    kind = an_instance_type("m5.xlarge", zones=("us-east-1a", "us-east-1b"))
    decision = decided(a_snapshot(pools=[a_pool(labels={ZONE: "us-east-1a"})], pods=some(1, cpu=1)), kind)
    return with_launch(decision, offering=replace(decision.launches[0].offering, zone="us-east-1b"))


def another_type_than_labelled() -> Decision:
    """A node of a type that is not the one of which the template of its pool has the label."""
    decision = decided(a_snapshot(pools=[a_pool(labels={INSTANCE_TYPE: "m5.2xlarge"})], pods=some(1, cpu=1)))
    return with_launch(decision, offering=replace(decision.launches[0].offering, instance_type="m5.xlarge"))


def wrong_bound() -> Decision:
    """A bound above what the plan costs."""
    decision = plain()
    return replace(decision, cost=replace(decision.cost, bound=LowerBound(decision.cost.after_micro + 1, 0)))


DECISIONS: tuple[tuple[PlanRule, Callable[[], Decision]], ...] = (
    (PlanRule.PLACED_TWICE, placed_twice),
    (PlanRule.POD_UNKNOWN, unknown),
    (PlanRule.POD_OUTCOME, forgotten),
    (PlanRule.POD_HELD, held),
    (PlanRule.NODE_UNUSABLE, elsewhere),
    (PlanRule.NODE_RESOURCES, lambda: with_pods(plain(), containers=(Container("main", Resources({"cpu": 9000})),))),
    (PlanRule.NODE_PODS, too_many_pods),
    (PlanRule.NODE_PORTS, ports_twice),
    (PlanRule.NODE_TAINTS, lambda: with_launch(plain(), taints=(Taint("team", "ml", NO_SCHEDULE),))),
    (PlanRule.NODE_LABELS, lambda: with_pods(plain(), node_selector=Requirements.of_labels({"disk": "fast"}))),
    (PlanRule.NODE_VOLUMES, beyond_reach),
    (PlanRule.CARD_UNUSABLE, lambda: with_parts(slices(), device=7)),
    (PlanRule.CARD_REQUEST, lambda: with_parts(slices(), memory_mib=9_999)),
    (PlanRule.CARD_FAMILY, another_family),
    (PlanRule.CARD_MODEL, another_model),
    (PlanRule.CARD_MEMORY, lambda: with_parts(slices(), memory_mib=12_000)),
    (PlanRule.CARD_CORES, lambda: with_parts(slices(), cores=60)),
    (PlanRule.CARD_SLOTS, lambda: _many_slices()),
    (PlanRule.CARD_GEOMETRY, overlapping),
    (PlanRule.CARD_PARTS, time_sliced),
    (PlanRule.OFFERING, sold_out),
    (PlanRule.OFFERING, another_zone_than_labelled),
    (PlanRule.OFFERING, another_type_than_labelled),
    (PlanRule.PRICE, dearer),
    (PlanRule.ALTERNATIVES, short_alternative),
    (PlanRule.POOL_LIMITS, beyond_limits),
    (PlanRule.QUOTA, over_quota),
    (PlanRule.GROUP, half_a_group),
    (PlanRule.WINDOW, closed_window),
    (PlanRule.SPREAD, uneven),
    (PlanRule.AFFINITY, alone),
    (PlanRule.ANTI_AFFINITY, together),
    (PlanRule.RELABEL, relabelled_in_use),
    (PlanRule.EVICTION, evicted),
    (PlanRule.NAMED_TWICE, named_twice),
    (PlanRule.ALLOCATED, lambda: replace(slices(), gpus=GpuUse(10_000, 10_001))),
    (PlanRule.COST, lambda: replace(plain(), cost=replace(plain().cost, after_micro=1))),
    (PlanRule.BOUND, wrong_bound),
)
"""A decision for waiting pods for each rule that such a one can break."""


def _many_slices() -> Decision:
    """Eleven slices of one card that ten can share."""
    pods = [a_slice(f"p-{n}", gpumem=100) for n in range(11)]
    decision = decided(a_snapshot(pools=[a_hami_pool()], pods=pods))
    first = decision.launches[0]
    parts = first.pods[0].parts
    return with_launch(decision, pods=tuple(PlacedPod(pod.key, parts) for pod in decision.world.snapshot.pending))


def fleet(*budgets: Budget, **given: Any) -> tuple[World, Command]:
    """Two nodes, one of which goes because its pod fits on the other."""
    changed = {key: given.pop(key) for key in list(given) if key in ("disruption_budgets",)}
    pool = pool_with(*(budgets or (Budget("100%"),)), **given)
    pods = [on("a", "x", cpu=1, labels={"app": "web"}), on("b", "y", cpu=3)]
    snapshot = a_cluster([pool], [ours("a"), ours("b")], pods)
    world = World(snapshot, MARKET)
    command, _ = first_command(world, may_go(snapshot), lambda: ())
    assert command is not None
    return World(replace(snapshot, **changed), MARKET), command


def _lost() -> tuple[World, Command]:
    world, command = fleet()
    return world, replace(command, deletions=tuple(replace(each, moved=()) for each in command.deletions))


def _both_go() -> tuple[World, Command]:
    world, command = fleet()
    first = command.deletions[0]
    other = Deletion(
        "b", "b", "pool", first.saved_micro, UNDERUTILIZED, Cause(), (NodePlacement(PlacedPod("default/y"), "a"),)
    )
    cost = replace(command.cost, after_micro=command.cost.after_micro - other.saved_micro)
    return world, replace(command, deletions=(first, other), cost=cost)


def _budget() -> tuple[World, Command]:
    world, command = fleet()
    pool = pool_with(Budget("0"))
    return World(replace(world.snapshot, node_pools=(pool,)), MARKET), command


def _floor() -> tuple[World, Command]:
    world, command = fleet()
    pools = tuple(replace(p, own_annotations={"kerf.dev/min-nodes": "2"}) for p in world.snapshot.node_pools)
    return World(replace(world.snapshot, node_pools=pools), MARKET), command


def _protected() -> tuple[World, Command]:
    world, command = fleet()
    nodes = tuple(
        replace(node, pods=tuple(replace(pod, annotations={DO_NOT_DISRUPT: "true"}) for pod in node.pods))
        for node in world.snapshot.nodes
    )
    return World(replace(world.snapshot, nodes=nodes), MARKET), command


def _sound() -> tuple[World, Command]:
    world, command = fleet()
    return world, replace(command, deletions=tuple(replace(each, reason=UNHEALTHY) for each in command.deletions))


COMMANDS: tuple[tuple[PlanRule, Callable[[], tuple[World, Command]]], ...] = (
    (PlanRule.POD_LOST, _lost),
    (PlanRule.NODE_GOES, _both_go),
    (PlanRule.DISRUPTION_BUDGET, _budget),
    (PlanRule.POOL_FLOOR, _floor),
    (PlanRule.POD_DISRUPTION_BUDGET, lambda: fleet(disruption_budgets=(PodDisruptionBudget("default", "web", _APP),))),
    (PlanRule.DO_NOT_DISRUPT, _protected),
    (PlanRule.REASON, _sound),
)
"""A command that takes nodes away for each rule that only such a one can break."""


def promised_card(running_mib: int, waiting_mib: int) -> tuple[World, Command, tuple[NodePlacement, ...]]:
    """Two nodes of one card with one pod each, and a pod that waits with a place beside the second; the first goes all
    the same, and its pod has the very same place."""
    nodes = [ours(name, instance_type="g5.xlarge") for name in ("a", "b")]
    values = [value for node, claim in nodes for value in (a_hami_node(node), claim)]
    pods = [a_slice(name, gpumem=running_mib) for name in ("x", "y")]
    waiting = a_slice("w", gpumem=waiting_mib)
    snapshot = seen(a_hami_pool(disruption=free_pool().disruption), *values, waiting)
    nodes_there = tuple(
        replace(node, pods=(replace(pod, node_name=node.name, phase=RUNNING),))
        for node, pod in zip(snapshot.nodes, pods, strict=True)
    )
    held = tuple(_booked(node, running_mib) for node in nodes_there)
    world = World(replace(snapshot, nodes=held, pending=(waiting,)), MARKET)
    there = decide(world, Options()).placements
    part = there[0].pod.parts[0]
    moved = NodePlacement(PlacedPod("default/x", (replace(part, pod="default/x", memory_mib=running_mib),)), "b")
    deletion = Deletion("a", "a", "pool", 1_006_000, UNDERUTILIZED, Cause(), (moved,))
    cost = replace(decide(world, Options()).cost, after_micro=decide(world, Options()).cost.before_micro - 1_006_000)
    on_b = tuple(NodePlacement(each.pod, "b") for each in there)
    return world, Command(replace(cost, bound=None), GpuUse(), (deletion,)), on_b


def _booked(node: Any, memory_mib: int) -> Any:
    return replace(node, devices=tuple(device.taking(memory_mib, 0) for device in node.devices))
