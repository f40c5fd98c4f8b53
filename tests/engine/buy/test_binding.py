"""Limits that are not reached change nothing, whatever search pods ask for; where they are reached, they are kept."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from benchmarks import diverse
from kerf.engine.buy.binding import can_serve, limits_of, under, within_limits
from kerf.engine.buy.filling import Purchase
from kerf.engine.buy.limits import Ledger, Limit
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.options import Options
from kerf.engine.supply.offered import OfferedType
from kerf.engine.supply.warmstart import WarmStart
from kerf.engine.world import World
from kerf.model.constraints import HOSTNAME, ZONE, Requirements
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.instancetypes import MICRO, ON_DEMAND, RESERVED, SPOT, InstanceType, Offering
from kerf.model.market import Market
from kerf.model.nodepool import NodePool
from kerf.model.pods import Pod
from kerf.model.quantities import COST_PER_HOUR, CPU, MEMORY, NODES, PODS, Resources
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type, cards
from tests.engine.worlds import M5, M5_2X, some, supply_of

LIMITED = (CPU, MEMORY, NODES, NVIDIA_GPU)
HUGE: Mapping[str, int | str] = diverse.LIMITS
Bought = list[tuple[str, str, str, int, int]]


def bought(made: Decision) -> Bought:
    """Pool, type, capacity type, number of pods and price of each node for pods, sorted."""
    return sorted(
        (
            node.load.offered.pool.name,
            node.load.offered.kind.name,
            node.load.offering.capacity_type,
            len(node.pods),
            node.load.offering.price_micro,
        )
        for node in made.bought
    )


def counted(made: Decision) -> dict[str, Resources]:
    """By pool what the nodes for pods count."""
    found: dict[str, Resources] = {}
    for node in made.bought:
        pool = node.load.offered.pool.name
        found[pool] = found.get(pool, Resources()) + node.load.charge
    return found


def decided(snapshot: ClusterSnapshot, market: Market) -> Decision:
    return decide(World(snapshot, market), Options(with_bound=False))


def limited(snapshot: ClusterSnapshot, limits: Mapping[str, Resources]) -> ClusterSnapshot:
    """The same where the pools have these limits, by name, and no others."""
    return replace(snapshot, node_pools=tuple(replace(p, limits=limits.get(p.name)) for p in snapshot.node_pools))


def different(count: int, seed: int = 7) -> list[Pod]:
    """Pods of cpu and memory, hardly two of which are equal."""
    chance = Random(seed)
    sizes = [(chance.randrange(1, 80) * 50, chance.randrange(1, 60) * 128) for _ in range(count)]
    return [a_pod(f"p-{n}", cpu=f"{cpu}m", memory=f"{memory}Mi") for n, (cpu, memory) in enumerate(sizes)]


TYPES = [
    an_instance_type(f"{name}-{cpu}", cpu=cpu, memory=f"{cpu * ratio}Gi", pods=110, price=f"{price * cpu / 48:.4f}")
    for name, ratio, price in (("c", 2, 2.1), ("m", 4, 2.4), ("r", 8, 3.1))
    for cpu in (2, 4, 8, 16, 32)
]


@pytest.mark.parametrize(
    "limits",
    [{CPU: 1_000_000}, {MEMORY: "1000000Gi"}, {NODES: 100_000}, {PODS: 10**9}, {COST_PER_HOUR: 10**6}, HUGE],
    ids=["cpu", "memory", "nodes", "pods", "cost", "as in Karpenter's benchmark"],
)
def test_a_limit_far_away_changes_no_plan_of_pods_that_differ(limits: Mapping[str, int | str]) -> None:
    """The search that fills nodes pod by pod asks for pods without limits: it is taken all the same."""
    snapshot, market = a_snapshot(pools=[a_pool()], pods=different(450)), a_market(*TYPES)
    free = decided(snapshot, market)

    made = decided(limited(snapshot, {"pool": Resources.parse(limits)}), market)

    assert bought(free) == bought(made)
    assert [each.alternatives for each in free.launches] == [each.alternatives for each in made.launches]
    assert free.notes == made.notes
    assert [] == list(made.refusals)


def test_a_limit_far_away_changes_no_plan_of_a_diverse_workload() -> None:
    """Spread, together, and apart from each other, as in Karpenter's benchmark with its own limits."""
    snapshot, market = diverse.diverse(400), diverse.types(60)
    free = decided(limited(snapshot, {}), market)

    made = decided(snapshot, market)

    assert bought(free) == bought(made)
    assert [each.alternatives for each in free.launches] == [each.alternatives for each in made.launches]


def test_a_limit_far_away_changes_no_bound() -> None:
    """What is proven of a pool is the same with limits: they are left out of it."""
    snapshot, market = a_snapshot(pools=[a_pool()], pods=different(60)), a_market(*TYPES)

    free, made = (
        decide(World(held, market), Options())
        for held in (snapshot, limited(snapshot, {"pool": Resources.parse(HUGE)}))
    )

    assert free.cost.bound is not None
    assert made.cost.bound is not None
    assert free.cost.bound.micro == made.cost.bound.micro


class Drawn:
    """A random cluster: pools, types and pods of several kinds, some of which go by others."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self.market = a_market(*self._types())
        self.snapshot = a_snapshot(pools=list(self._pools()), pods=self._pods())

    def _types(self) -> Iterator[InstanceType]:
        chance = self._chance
        for number in range(chance.randint(2, 10)):
            cpu, count = chance.choice((2, 4, 8, 16, 32)), chance.choice((0, 0, 0, 1, 2, 4))
            memory = cpu * chance.choice((2, 4, 8))
            price = (cpu * 0.04 + memory * 0.005 + count * chance.choice((0.8, 1.2))) * chance.uniform(0.9, 1.1)
            zones = [f"zone-{each}" for each in range(chance.choice((1, 3)))]
            offerings = [
                Offering(zone, capacity_type, int(MICRO * price * part))
                for zone in zones
                for capacity_type, part in ((ON_DEMAND, 1.0), (SPOT, 0.6))
            ]
            if chance.random() < 0.2:
                most = chance.choice((1, 3, 1000))
                offerings.append(Offering(zones[0], RESERVED, int(MICRO * price), reservation=f"r-{number}", most=most))
            yield an_instance_type(
                f"type-{number}",
                cpu=cpu,
                memory=f"{memory}Gi",
                pods=chance.choice((8, 58)),
                devices=cards(count, chance.choice((16_000, 24_000))) if count else (),
                zones=zones,
                capacity_types=(ON_DEMAND, SPOT, RESERVED),
                offerings=tuple(offerings),
            )

    def _pools(self) -> Iterator[NodePool]:
        chance = self._chance
        for number in range(chance.choice((1, 1, 2, 3))):
            sold = chance.choice(((ON_DEMAND,), (ON_DEMAND, SPOT), (ON_DEMAND, SPOT, RESERVED)))
            labels = {"gpu": "on"} if chance.random() < 0.7 else {}
            yield a_pool(f"pool-{number}", capacity_types=sold, labels=labels, weight=chance.choice((0, 0, 10)))

    def _pods(self) -> list[Pod]:
        chance = self._chance
        kinds, count = [self._kind(n) for n in range(chance.choice((1, 2, 5, 12, 60)))], chance.choice((3, 10, 30, 60))
        return [replace(chance.choice(kinds), name=f"p-{number}") for number in range(count)]

    def _kind(self, number: int) -> Pod:
        chance = self._chance
        cpu, memory = f"{chance.randrange(1, 40) * 100}m", f"{chance.randrange(1, 60) * 128}Mi"
        asked: dict[str, Any] = {"gpu": 1, "gpumem": chance.randrange(1, 30) * 500} if chance.random() < 0.3 else {}
        labels = {"app": f"a{number % 3}"}
        pod = a_pod(cpu=cpu, memory=memory, labels=labels, **asked)
        selector = Requirements.of_labels(labels)
        near, in_zone = (PodAffinity((PodAffinityTerm(key, selector),)) for key in (HOSTNAME, ZONE))
        what = chance.random()
        if what < 0.1:
            spread = TopologySpreadConstraint(chance.choice((ZONE, HOSTNAME)), 1, selector)
            return replace(pod, spec=replace(pod.spec, spread=(spread,)))
        if what < 0.2:
            return replace(pod, spec=replace(pod.spec, pod_affinity=near if what < 0.15 else in_zone))
        return replace(pod, spec=replace(pod.spec, pod_anti_affinity=near)) if what < 0.25 else pod

    def limits(self, made: Decision) -> Iterator[dict[str, Resources]]:
        """By pool limits that the plan reaches and does not exceed: of all pools, and of one alone."""
        names, used = [n for n in LIMITED if self._chance.random() < 0.6] or [CPU], counted(made)
        exact = {
            pool.name: Resources({name: used.get(pool.name, Resources()).get(name, 0) for name in names})
            for pool in self.snapshot.node_pools
        }
        yield exact
        one = self._chance.choice(sorted(exact))
        yield {one: exact[one]}


# Those that a limit changed before are among them.
@pytest.mark.parametrize("seed", [4, 5, 17, 22, 24, 36, 56, *range(100, 107)])
def test_a_limit_that_the_plan_reaches_and_keeps_to_changes_nothing(seed: int) -> None:
    """However little is left: what the search takes on its way, and what other types would take, stops no pod."""
    drawn = Drawn(seed)
    free = decided(drawn.snapshot, drawn.market)

    for limits in drawn.limits(free):
        made = decided(limited(drawn.snapshot, limits), drawn.market)

        assert bought(free) == bought(made)
        assert Counter(len(each.pods) for each in free.refusals) == Counter(len(each.pods) for each in made.refusals)
        taken: dict[str, Resources] = {}
        for launch in made.launches:
            taken[launch.node_pool] = taken.get(launch.node_pool, Resources()) + launch.charge
        for pool, held in limits.items():
            assert {} == dict(taken.get(pool, Resources()).shortfall(held)) or all(
                taken.get(pool, Resources()).get(name, 0) <= most for name, most in held.items()
            )


def test_a_pool_that_is_used_up_is_as_if_it_were_not_there() -> None:
    """Pods that differ go to the other pool by the same search as if it were the only one."""
    market = a_market(*TYPES)
    pools = [a_pool("full", limits={CPU: 1}), a_pool("open")]

    made = decided(a_snapshot(pools=pools, pods=different(450)), market)

    assert bought(decided(a_snapshot(pools=pools[1:], pods=different(450)), market)) == bought(made)


@pytest.mark.parametrize("limits", [HUGE, {NODES: 100_000}], ids=["cpu and memory", "nodes"])
def test_beside_a_limit_that_binds_another_that_is_far_changes_nothing(limits: Mapping[str, int | str]) -> None:
    """Of another pool, and of the same one."""
    pods, market = [*different(60), *some(40, "equal", cpu=2, memory="4Gi")], a_market(*TYPES)
    tight: Mapping[str, int | str] = {CPU: 64}

    def of(*pools: NodePool) -> Bought:
        return bought(decided(a_snapshot(pools=pools, pods=pods), market))

    free = of(a_pool("tight", limits=tight, weight=1), a_pool("other"))
    alone = of(a_pool("tight", limits=tight))

    assert free == of(a_pool("tight", limits=tight, weight=1), a_pool("other", limits=limits))
    assert free == of(a_pool("tight", limits={**limits, **tight}, weight=1), a_pool("other"))
    assert alone == of(a_pool("tight", limits={**limits, **tight}))


def test_what_is_kept_between_decisions_is_the_same_under_limits() -> None:
    """The next plan begins where the last one ended, and a limit that is far away changes neither."""
    market, pods = a_market(*TYPES), [*different(40), *some(100, "equal", cpu=1, memory="3Gi")]

    def twice(limits: Mapping[str, int | str] | None) -> list[Bought]:
        found, kept = list[Bought](), WarmStart()
        for some_pods in (pods, pods[20:]):
            held = a_snapshot(pools=[a_pool(limits=limits)], pods=some_pods)
            made = decide(World(held, market, kept=kept), Options())
            assert made.kept is not None
            found, kept = [*found, bought(made)], made.kept
        return found

    assert twice(None) == twice(HUGE)


class Searches:
    """A search that answers with nothing, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, frozenset[Limit]]] = []

    def __call__(self, offered_types: Sequence[OfferedType], ledger: Ledger) -> Purchase:
        self.asked.append((len(offered_types), limits_of(offered_types, ledger)))
        return Purchase()


def test_what_limits_cannot_serve_is_not_looked_for_without_them() -> None:
    """Ten cores are left where the pods ask for twelve, so the search under limits is the first."""
    pools = [a_pool("one", limits={CPU: 4}), a_pool("two", limits={CPU: 6, MEMORY: "1000Gi"})]
    offered, search = supply_of(*pools, types=[M5, M5_2X]).available, Searches()
    ledger = Ledger(pools, {})

    made = within_limits(offered, ledger, {CPU: 12_000, MEMORY: 2**30}, search)

    assert [(4, frozenset({("one", CPU), ("two", CPU)}))] == search.asked
    assert frozenset({("one", CPU), ("two", CPU)}) == made.binding
    assert can_serve(offered, ledger, {CPU: 10_000})
    assert not can_serve(offered, ledger, {CPU: 10_001})
    assert can_serve([*offered, *supply_of(a_pool("free"), types=[M5]).available], ledger, {CPU: 12_000})


def test_what_nodes_of_a_limited_number_have_is_what_they_can_serve() -> None:
    """Two nodes of at most eight cores."""
    pool = a_pool(limits={NODES: 2})

    assert can_serve(supply_of(pool, types=[M5, M5_2X]).available, Ledger([pool], {}), {CPU: 16_000})
    assert not can_serve(supply_of(pool, types=[M5, M5_2X]).available, Ledger([pool], {}), {CPU: 16_001})


def test_what_an_answer_breaks_is_searched_for_under_all_limits() -> None:
    """Where it was found under some of them."""
    pools = [a_pool("one", limits={CPU: 4}), a_pool("two", limits={CPU: 4})]
    offered = supply_of(*pools, types=[M5]).available
    made = decided(a_snapshot(pools=[a_pool("one")], pods=some(2, cpu=4)), a_market(M5))
    two = Purchase([(made.bought[0].load, 2)])

    found = under(frozenset({("two", CPU)}), offered, Ledger(pools, {}), lambda _: [two])

    assert frozenset({("one", CPU), ("two", CPU)}) == found[0].binding
