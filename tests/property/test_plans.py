"""Laws of every plan, tried on small random clusters and judged by a checker that knows nothing of the engine."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.model.constraints import ZONE, Taint, Toleration
from kerf.model.instancetypes import InstanceType
from kerf.model.market import Market
from kerf.model.nodepool import NodePool
from kerf.model.plan import Launch, Plan
from kerf.model.pods import Pod
from kerf.model.policies import COST, FIRST_FIT
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type, cards
from tests.examples import examples

ZONES = ("us-east-1a", "us-east-1b")
TAINT = Taint("dedicated")
HAMI_SLOTS = 10
BOUNDED = examples(60, derandomize=True)
Draw = Callable[..., Any]


@dataclass(frozen=True)
class World:
    """A cluster with pending pods, and what can be bought."""

    snapshot: ClusterSnapshot
    market: Market

    def planned(self, strategy: str = COST) -> Plan:
        """The plan by one strategy."""
        return plan(self.snapshot, self.market, Options(strategy))


@st.composite
def instance_types(draw: Draw) -> list[InstanceType]:
    """One to four machines with 0, 1, 2 or 4 cards, at any price."""
    found = []
    for number in range(draw(st.integers(1, 4))):
        count = draw(st.sampled_from([0, 0, 1, 2, 4]))
        cpu = draw(st.sampled_from([2, 4, 8, 16]))
        zones = draw(st.sampled_from([ZONES, ZONES[:1]]))
        devices = cards(count, draw(st.sampled_from([8000, 22888])))
        price = f"{draw(st.integers(1, 60))}.{draw(st.integers(0, 9))}"
        found.append(
            an_instance_type(f"t{number}", cpu=cpu, memory=f"{cpu * 4}Gi", devices=devices, price=price, zones=zones)
        )
    return found


@st.composite
def pools(draw: Draw) -> list[NodePool]:
    """One to three pools: with HAMi or without, weighted, limited, tainted."""
    found = []
    for number in range(draw(st.integers(1, 3))):
        labels = {"gpu": "on"} if draw(st.booleans()) else {}
        gpus = 30 if labels else 3
        limits = draw(st.sampled_from([None, None, {"cpu": 12}, {"nodes": 2}, {"nvidia.com/gpu": gpus, "cpu": 40}]))
        taints = (TAINT,) if draw(st.integers(0, 4)) == 0 else ()
        weight = draw(st.sampled_from([0, 0, 5]))
        found.append(a_pool(f"pool-{number}", labels=labels, limits=limits, taints=taints, weight=weight))
    return found


@st.composite
def amounts(draw: Draw) -> dict[str, Any]:
    """What a pod asks: cpu alone, whole cards, or slices."""
    asked: dict[str, Any] = {"cpu": f"{draw(st.integers(0, 40)) * 100}m"}
    kind = draw(st.sampled_from(["cpu", "whole", "slice", "slice"]))
    if kind != "cpu":
        asked["gpu"] = draw(st.sampled_from([1, 1, 1, 2]))
    if kind == "slice":
        asked["gpumem"] = draw(st.integers(1, 24)) * 1000
        asked["cores"] = draw(st.sampled_from([0, 10, 30, 50, 60, 100]))
    return asked


@st.composite
def pending(draw: Draw) -> list[Pod]:
    """One to four groups of equal pods."""
    found: list[Pod] = []
    for number in range(draw(st.integers(1, 4))):
        selector = {ZONE: draw(st.sampled_from(ZONES))} if draw(st.integers(0, 3)) == 0 else {}
        tolerations = (Toleration(operator="Exists"),) if draw(st.booleans()) else ()
        first = a_pod(f"p{number}-0", selector=selector, tolerations=tolerations, **draw(amounts()))
        found.extend(replace(first, name=f"p{number}-{n}") for n in range(draw(st.integers(1, 6))))
    return found


@st.composite
def worlds(draw: Draw) -> World:
    """All of it, sometimes with a node that is there."""
    nodes = [a_node()] if draw(st.booleans()) else []
    snapshot = a_snapshot(pools=draw(pools()), pods=draw(pending()), nodes=nodes)
    return World(snapshot, a_market(*draw(instance_types())))


def overfull_cards(launch: Launch, kind: InstanceType, is_hami: bool) -> list[str]:
    """What is wrong with the slices of a launch, card by card."""
    memory, cores, slots = Counter[int](), Counter[int](), Counter[int]()
    for pod in launch.pods:
        for part in pod.slices:
            memory[part.device] += part.memory_mib
            cores[part.device] += part.cores
            slots[part.device] += 1
    most = HAMI_SLOTS if is_hami else 1
    return [
        f"{launch.name} card {index}"
        for index in slots
        if index >= len(kind.devices)
        or memory[index] > kind.devices[index].memory_mib
        or cores[index] > 100
        or slots[index] > most
    ]


def overfull_node(pods: Iterable[Pod], kind: InstanceType) -> list[str]:
    """Resources of which the pods ask more than the machine has."""
    asked = Counter[str]()
    for pod in pods:
        for container in pod.spec.containers:
            asked.update({name: container.requests.get(name, 0) for name in ("cpu", "memory")})
        asked["pods"] += 1
    return [name for name, amount in asked.items() if amount > kind.capacity.get(name, 0)]


def unmet(pod: Pod, launch: Launch, pool: NodePool) -> list[str]:
    """What one pod asked and did not get on its launch."""
    found, asked = [], pod.spec.containers[0].requests
    parts = [part for placed in launch.pods if placed.pod == pod.key for part in placed.slices]
    if len({part.device for part in parts}) != asked.get("nvidia.com/gpu", 0):
        found.append("cards")
    if any(part.memory_mib < asked.get("nvidia.com/gpumem", 0) for part in parts):
        found.append("memory")
    if any(part.cores < asked.get("nvidia.com/gpucores", 0) for part in parts):
        found.append("cores")
    if "nvidia.com/gpumem" in asked and "gpu" not in pool.labels:
        found.append("family")
    if ZONE in pod.spec.node_selector and not pod.spec.node_selector[ZONE].has(launch.offering.zone):
        found.append("zone")
    if pool.taints and not pod.spec.tolerations:
        found.append("taint")
    return found


def limits_broken(decided: Plan, world: World) -> list[str]:
    """Limits exceeded when the cloud gives the largest alternative of each launch; HAMi shows ten slots of a card."""
    used: dict[str, Counter[str]] = {pool.name: Counter() for pool in world.snapshot.node_pools}
    hamis = {pool.name for pool in world.snapshot.node_pools if "gpu" in pool.labels}
    for launch in decided.launches:
        kinds = [world.market.find(name) for name in (launch.offering.instance_type, *launch.alternatives)]
        for name in ("cpu", "memory", "nvidia.com/gpu"):
            times = 10 if name == "nvidia.com/gpu" and launch.node_pool in hamis else 1
            used[launch.node_pool][name] += times * max(k.capacity.get(name, 0) for k in kinds if k is not None)
        used[launch.node_pool]["nodes"] += 1
    return [
        f"{pool.name} {name}"
        for pool in world.snapshot.node_pools
        for name, limit in (pool.limits or {}).items()
        if used[pool.name][name] > limit
    ]


@given(worlds())
@BOUNDED
def test_every_pending_pod_is_in_exactly_one_place(world: World) -> None:
    """Launches, placements, unplaced: once each, by either strategy (contracts: plan)."""
    for strategy in (COST, FIRST_FIT):
        decided = world.planned(strategy)
        launched = [pod.pod for launch in decided.launches for pod in launch.pods]
        others = [p.pod.pod for p in decided.placements] + [u.pod for u in decided.unplaced]

        assert sorted(pod.key for pod in world.snapshot.pending) == sorted(launched + others)


@given(worlds())
@BOUNDED
def test_every_launch_holds_its_pods_card_by_card(world: World) -> None:
    """No card's memory, cores or slots and no node's resource is exceeded, and each pod gets what it asked."""
    pods = {pod.key: pod for pod in world.snapshot.pending}
    for launch in world.planned().launches + world.planned(FIRST_FIT).launches:
        kind, pool = world.market.find(launch.offering.instance_type), world.snapshot.pool(launch.node_pool)
        assert kind is not None
        assert pool is not None
        held = [pods[placed.pod] for placed in launch.pods]

        assert [] == overfull_cards(launch, kind, "gpu" in pool.labels)
        assert [] == overfull_node(held, kind)
        assert [] == [missing for pod in held for missing in unmet(pod, launch, pool)]
        assert launch.price_micro in {o.price_micro for o in kind.offerings if o.zone == launch.offering.zone}


@given(worlds())
@BOUNDED
def test_no_limit_is_broken_whatever_the_cloud_gives(world: World) -> None:
    """Every launch is charged with its largest alternative; nodes count inside the batch."""
    assert [] == limits_broken(world.planned(), world)


@given(worlds())
@BOUNDED
def test_no_plan_costs_less_than_the_bound(world: World) -> None:
    """By either strategy; null where it cannot be proven."""
    for strategy in (COST, FIRST_FIT):
        cost = world.planned(strategy).cost

        assert cost.bound_micro is None or cost.bound_micro <= cost.after_micro


@given(worlds(), st.integers(0, 9))
@BOUNDED
def test_the_order_of_the_input_does_not_matter(world: World, seed: int) -> None:
    """The same plan for shuffled pods, pools and types."""
    shuffle = Random(seed)
    tuples: list[Any] = [world.snapshot.pending, world.snapshot.node_pools, world.market.types]
    some_pods, some_pools, some_types = (tuple(shuffle.sample(held, len(held))) for held in tuples)
    snapshot = replace(world.snapshot, pending=some_pods, node_pools=some_pools)

    for strategy in (COST, FIRST_FIT):
        assert world.planned(strategy) == World(snapshot, replace(world.market, types=some_types)).planned(strategy)


@given(worlds())
@BOUNDED
def test_cost_is_never_worse_than_first_fit(world: World) -> None:
    """No more pods are left; and where all are placed from pools of one weight, it costs no more.

    Where a pool limits its nodes there is nothing to compare: Karpenter does not count them inside a batch.
    """
    if any("nodes" in (pool.limits or {}) for pool in world.snapshot.node_pools):
        return
    ours, theirs = world.planned(), world.planned(FIRST_FIT)

    assert len(ours.unplaced) <= len(theirs.unplaced)
    if not theirs.unplaced and 1 == len({pool.weight for pool in world.snapshot.node_pools}):
        assert ours.cost.after_micro <= theirs.cost.after_micro


@st.composite
def diverse(draw: Draw) -> World:
    """Twenty to fifty pods, of which hardly two are alike, and a pool of HAMi's cards without limits."""
    rng = Random(draw(st.integers(0, 9999)))
    pods = []
    for number in range(draw(st.integers(20, 50))):
        asked: dict[str, Any] = {"cpu": f"{rng.randint(1, 40) * 100}m", "memory": f"{rng.randint(1, 16)}Gi"}
        if rng.random() < draw(st.sampled_from([0.5, 0.9])):
            asked |= {"gpu": rng.choice([1, 1, 2]), "gpumem": rng.randint(1, 8) * 1000, "cores": rng.choice([0, 25])}
        pods.append(a_pod(f"p{number}", **asked))
    types = [
        an_instance_type("none", cpu=16, memory="64Gi", price="1.00"),
        an_instance_type("one", cpu=8, memory="32Gi", devices=cards(1, 22888), price="1.40"),
        an_instance_type(
            "four", cpu=48, memory="192Gi", devices=cards(4, 22888), price=draw(st.sampled_from(["4.5", "6"]))
        ),
    ]
    return World(a_snapshot(pools=[a_pool(labels={"gpu": "on"})], pods=pods), a_market(*types))


@given(diverse())
@BOUNDED
def test_diverse_pods_cost_no_more_than_first_fit(world: World) -> None:
    """Prices are meant for many pods of each kind: where hardly two are alike they may be far off, and others count."""
    ours, theirs = world.planned(), world.planned(FIRST_FIT)

    assert (0, 0) == (len(ours.unplaced), len(theirs.unplaced))
    assert ours.cost.after_micro <= theirs.cost.after_micro


@given(worlds())
@BOUNDED
def test_what_is_left_has_its_reason(world: World) -> None:
    """A reason for every pod, a row for every pool, and never that something would have taken it."""
    for unplaced in world.planned().unplaced:
        assert unplaced.reason
        assert len(world.snapshot.node_pools) <= len(unplaced.misfits) <= len(world.snapshot.node_pools) + 1
        assert "no NodePool offers any instance type" != unplaced.reason
