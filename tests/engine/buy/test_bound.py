"""The lower bound: never above what a plan costs, and tight where cards decide."""

from dataclasses import replace

import pytest

from kerf.catalog import aws
from kerf.engine.bounding import bounded
from kerf.engine.buy.bound import lower_bound
from kerf.engine.decide import decide
from kerf.engine.explain.causes import cause_text
from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.engine.place.shapes import group
from kerf.engine.world import World
from kerf.model.causes import BoundAbovePlan
from kerf.model.constraints import CAPACITY_TYPE
from kerf.model.instancetypes import ON_DEMAND, SPOT, InstanceType, Offering
from kerf.model.nodeclaim import LAUNCHED, PREDICTED_DEVICES
from kerf.model.nodepool import NodePool
from kerf.model.pods import Container, Pod, PodSpec
from kerf.model.promises import devices_text
from kerf.model.quantities import Resources
from kerf.testing.builders import (
    a_claim,
    a_market,
    a_node,
    a_pod,
    a_pool,
    a_snapshot,
    an_instance_type,
    cards,
    resources,
)
from tests.engine.worlds import (
    G5,
    G5_12X,
    HAMI,
    M5,
    M5_2X,
    a_hami_node,
    a_hami_pool,
    per_hour,
    planned,
    seen,
    some,
    supply_of,
    two_containers,
)
from tests.sharing.nvidia.builders import A100, LAYOUT, STRATEGY


def bound_of(pods: list[Pod], pool: NodePool, *types: InstanceType) -> int | None:
    """The bound for these pods on new nodes."""
    return lower_bound(group(pods), supply_of(pool, types=types).available)


def test_no_pods_cost_nothing() -> None:
    """And a pod that fits nowhere has no bound."""
    assert 0 == bound_of([], a_pool(), M5)
    assert bound_of([a_pod(cpu=99)], a_pool(), M5) is None


@pytest.mark.parametrize(
    "pods, pool, types, expected",
    [
        (some(2, gpu=1), a_pool(), (G5, G5_12X), 2_012_000),
        (some(5, gpu=1, gpumem=12000), a_hami_pool(), (G5_12X,), 11_344_000),
        (some(5, gpu=1, gpumem=12000), a_hami_pool(), (G5, G5_12X), 5_030_000),
        (some(3, gpu=1, gpumem=1000, cores=50), a_hami_pool(), (G5,), 2_012_000),
        (some(9, cpu=3), a_pool(), (M5,), 1_728_000),
    ],
    ids=["whole", "one a card", "one-card machines", "two a card", "cpu"],
)
def test_the_bound_is_the_cost_where_nodes_come_full(
    pods: list[Pod], pool: NodePool, types: tuple[InstanceType, ...], expected: int
) -> None:
    """Half cards and single prices are rounded up, so that nothing is left between bound and plan."""
    assert expected == bound_of(pods, pool, *types)
    assert expected == per_hour(planned(pods, [pool], types))


@pytest.mark.parametrize("ask", [{}, {"gpumem": 10000}, {"gpumem": 6000}], ids=["no sharing", "all", "most"])
def test_the_cpu_of_a_node_without_a_free_card_is_of_no_use_to_others(ask: dict[str, int]) -> None:
    """Two pods take all cards of a node and hardly any cpu, two others one card and nearly all cpu: four nodes."""
    pool = a_hami_pool() if ask else a_pool()
    pair = an_instance_type("pair", cpu=10, memory="64Gi", devices=cards(2, 10000), price="2.00")
    pods = [*some(2, "wide", cpu=1, gpu=2, **ask), *some(2, "narrow", cpu=6, gpu=1, **ask)]

    assert 8_000_000 == per_hour(planned(pods, [pool], [pair])) == bound_of(pods, pool, pair)


def test_slices_on_two_cards_leave_room_for_others() -> None:
    """Two slices of 60 % on a card each are not whole cards where others ask for 30 %: one node holds all."""
    pair = an_instance_type("pair", cpu=10, memory="64Gi", devices=cards(2, 10000), price="2.00")
    pods = [a_pod("wide", gpu=2, gpumem=6000), *some(2, "narrow", gpu=1, gpumem=3000)]

    assert 2_000_000 == per_hour(planned(pods, [a_hami_pool()], [pair])) == bound_of(pods, a_hami_pool(), pair)


def test_large_memory_and_many_cores_share_a_card() -> None:
    """One slice over half of the memory and one over half of the cores fit together: the bound must not say two."""
    pods = [a_pod("a", gpu=1, gpumem=14000, cores=10), a_pod("b", gpu=1, gpumem=1000, cores=60)]

    assert 1_006_000 == per_hour(planned(pods, [a_hami_pool()], [G5])) == bound_of(pods, a_hami_pool(), G5)


def test_containers_of_a_pod_count_one_by_one() -> None:
    """Six containers of 30 % fit on two cards, whichever pods they are of."""
    pair = an_instance_type("pair", cpu=16, memory="64Gi", devices=cards(2, 10000), price="2.00")
    pods = some(3, containers=two_containers(gpu=1, gpumem=3000))

    bound = bound_of(pods, a_hami_pool(), pair)

    assert bound is not None
    assert bound <= per_hour(planned(pods, [a_hami_pool()], [pair]))


def test_an_expensive_spot_price_is_no_bound_for_on_demand() -> None:
    """Spot comes first at any price; a pod that asks on-demand may pay less."""
    kind = an_instance_type(capacity_types=(SPOT, ON_DEMAND))
    offerings = (Offering("us-east-1a", SPOT, 5_000_000), Offering("us-east-1a", ON_DEMAND, 1_000_000))
    kind = type(kind)(kind.name, kind.requirements, kind.capacity, offerings=offerings)
    pods = [a_pod(cpu=1, selector={CAPACITY_TYPE: ON_DEMAND})]

    assert 1_000_000 == bound_of(pods, a_pool(capacity_types=()), kind)


def test_the_most_demanding_pod_needs_some_node() -> None:
    """Fractions of a node are rounded up where one pod needs a dear one anyway."""
    assert 5_672_000 == bound_of([a_pod("a", gpu=2), a_pod("b", cpu=1)], a_pool(), G5, G5_12X)


def test_free_machines_cost_nothing() -> None:
    """A NodeOverlay may set a price to zero."""
    assert 0 == bound_of(some(3, cpu=3), a_pool(), an_instance_type(price="0"))


def test_what_is_paid_already_is_in_the_bound() -> None:
    """The plan's bound is of the whole cluster, and none is stated where all pods could go to existing nodes."""
    pods = some(2, cpu=4)
    bought = planned(pods, [a_pool()], [M5])
    placed = planned(pods, [a_pool()], [M5], nodes=[a_node("a"), a_node("b")])

    assert 384_000 == bought.cost.bound_micro == bought.cost.after_micro
    assert placed.cost.bound_micro is None


@pytest.mark.parametrize("nodes", [1, 7, 9])
def test_equal_pods_beyond_what_nodes_take_have_an_exact_bound(nodes: int) -> None:
    """A card of 22,888 MiB holds two slices of 8,000: of twenty, the others are sure to need new nodes."""
    pods = some(20, gpu=1, gpumem=8_000)
    free: dict[str, str | int] = {"cpu": 4, "memory": "16Gi", "pods": 58, "nvidia.com/gpu": 10}
    there = [a_hami_node(a_node(f"n-{number}", allocatable=free)) for number in range(nodes)]

    placed = plan(seen(*pods, *there, a_hami_pool()), a_market(G5))

    assert 2 * nodes == len(placed.placements)
    assert (10 - nodes) * 1_006_000 == placed.cost.bound_micro == placed.cost.after_micro


def test_pods_of_which_nodes_could_take_others_have_a_bound_by_shape() -> None:
    """The node takes one pod of four cores, whichever, and none of eight: one of each is to be bought for."""
    pods = [*some(2, cpu=4), a_pod("large", cpu=8)]

    placed = planned(pods, [a_pool()], [M5, M5_2X], nodes=[a_node()])

    assert 1 == len(placed.placements)
    assert (576_000, 576_000) == (placed.cost.bound_micro, per_hour(placed))


def test_pods_with_several_cards_are_not_counted_where_a_node_takes_one() -> None:
    """How many a node takes depends on which cards are taken first: the bound could be too high."""
    free: dict[str, str | int] = {"cpu": 48, "memory": "192Gi", "pods": 58, "nvidia.com/gpu": 40}
    there = a_hami_node(a_node("n", allocatable=free), 4)

    placed = plan(seen(*some(9, gpu=2, gpumem=8_000), there, a_hami_pool()), a_market(G5_12X))

    assert 4 == len(placed.placements)
    assert placed.cost.bound_micro is None


def test_pods_beside_a_card_that_mig_will_cut_are_not_counted_where_it_takes_one() -> None:
    """Nor where the node with the card is still on its way: how many instances it holds depends on their starts."""
    a100 = next(shape for kind in aws.load().types if kind.name == "p4d.24xlarge" for shape in kind.devices)
    kind = an_instance_type("a100.large", devices=[a100], memory="96Gi", price="4.00")
    predicted = {PREDICTED_DEVICES: devices_text([a100])}
    claim = a_claim("c", instance_type="a100.large", labels=HAMI, annotations=predicted, reached=(LAUNCHED,))
    pool = a_hami_pool(annotations={"kerf.dev/hami-mode": "mig"})

    placed = plan(seen(*some(3, gpu=1, gpumem=18_000), claim, pool), a_market(kind))

    assert (2, 1) == (len(placed.placements), len(placed.launches))
    assert placed.cost.bound_micro is None


def test_the_bound_can_be_left_out() -> None:
    """It costs time that a controller need not spend."""
    decided = plan(a_snapshot(pools=[a_pool()], pods=[a_pod()]), a_market(M5), Options(with_bound=False))

    assert decided.cost.bound_micro is None


def test_two_instances_of_one_container_are_no_card_over_half() -> None:
    """Three pods with two of three instances of a card each: two cards hold them, as the plugin gives the parts."""
    pair, single = (
        an_instance_type(f"a100-{n}", cpu=8, memory="64Gi", devices=(A100,) * n, price=f"{4.32 * n / 2}")
        for n in (2, 1)
    )
    asked = Resources({"nvidia.com/mig-2g.10gb": 2}) + resources(cpu=1)
    pods = some(3, spec=PodSpec((Container("main", asked, asked),)))
    pool = a_pool(labels={LAYOUT: "all-2g.10gb", STRATEGY: "mixed"})

    assert 4_320_000 == per_hour(planned(pods, [pool], [pair])) == bound_of(pods, pool, pair)
    assert 4_320_000 == bound_of(pods, pool, pair, single)


def test_a_percentage_of_a_small_card_is_less_than_of_a_large_one() -> None:
    """Half of each of two cards that are not alike: four pods share one node, whichever card is filled first."""
    pair = an_instance_type("pair", cpu=8, memory="64Gi", devices=(*cards(1, 10_000), *cards(1, 20_000)), price="2.00")
    asked = Resources({"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 50}) + resources(cpu=1)
    pods = some(4, spec=PodSpec((Container("main", asked, asked),)))

    assert 2_000_000 == per_hour(planned(pods, [a_hami_pool()], [pair])) == bound_of(pods, a_hami_pool(), pair)


def test_a_bound_above_the_plan_is_withdrawn() -> None:
    """Nodes that cost less than was proven show that the bound is false: none is stated, and a note says so."""
    snapshot = a_snapshot(pools=[a_pool()], pods=some(3, cpu=3))
    made = decide(World(snapshot, a_market(M5)), Options())
    cheaper = [replace(node.load, offering=replace(node.load.offering, price_micro=100_000)) for node in made.bought]
    bought = tuple(replace(node, load=load) for node, load in zip(made.bought, cheaper, strict=True))

    found = bounded(replace(made, bought=bought))

    assert made.cost.bound is not None
    assert [BoundAbovePlan(576_000, 300_000)] == [*found.notes]
    assert found.cost.bound is None
    assert cause_text(found.notes[0]) == (
        "no lower bound is stated: 0.576 per hour was proven for nodes that cost 0.30, which is a bug of Kerf"
    )
