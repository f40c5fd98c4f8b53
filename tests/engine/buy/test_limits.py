"""NodePool limits: what counts, what a launch is charged, and what no limit excludes."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.buy.limits import Ledger, usage
from kerf.engine.explain.plan import plan
from kerf.engine.world import World
from kerf.model.bounds import MIN_NODES
from kerf.model.constraints import Taint
from kerf.model.nodeclaim import LAUNCHED, PLANNED_OFFERING, NodeClaim
from kerf.model.plan import Stage
from kerf.model.snapshot import ClusterNode, ConfigMap
from kerf.sharing.registry import configured, owner_of
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type, resources
from tests.engine.worlds import G5, G5_12X, HAMI, M5, M5_2X, bought, offer, only_unplaced, planned, refused, some
from tests.sharing.nvidia.builders import plugin_map, sharing

FULL: dict[str, Any] = {"cpu": 4}
"""A pod that fills an m5.xlarge."""
CLOSED = Taint("closed", "", "NoSchedule")
DEAR = an_instance_type("m5d.2xlarge", cpu=8, memory="32Gi", price="0.9")


def hami_map(setting: str) -> ConfigMap:
    """HAMi's ConfigMap with one setting."""
    return ConfigMap("kube-system", "hami-scheduler-device", {"device-config.yaml": f"nvidia: {{{setting}}}"})


def test_nodes_count_inside_a_batch() -> None:
    """Ten pods, a node each, limit nodes 3: three launches at once and seven pods left."""
    decided = planned(some(10, **FULL), [a_pool(limits={"nodes": 3})], [M5])

    assert 3 == len(decided.launches)
    assert {Stage.LIMITS} == {unplaced.stage for unplaced in decided.unplaced}
    assert 7 == len(decided.unplaced)


def test_a_resource_that_a_type_does_not_offer_never_excludes_it() -> None:
    """A pool with `nvidia.com/gpu: 0` still buys machines without GPUs, and none with."""
    pool = a_pool(limits={"nvidia.com/gpu": 0})

    assert [("m5.xlarge", 1)] == bought(planned([a_pod(cpu=1)], [pool], [M5, G5]))
    assert Stage.LIMITS == only_unplaced(planned([a_pod(gpu=1)], [pool], [M5, G5])).stage


def test_an_overfull_resource_blocks_only_who_adds_to_it() -> None:
    """More GPUs in use than the limit allows: machines without GPUs are still bought."""
    claims = [a_claim(f"c-{n}", instance_type="g5.xlarge", node_name=f"n-{n}") for n in range(2)]
    nodes = [a_node(f"n-{n}", instance_type="g5.xlarge", taints=()) for n in range(2)]
    pool = a_pool(limits={"nvidia.com/gpu": 1})

    decided = planned(
        [a_pod("web", cpu=4, memory="16Gi", selector={"node.kubernetes.io/instance-type": "m5.xlarge"})],
        [pool],
        [M5, G5],
        nodes=nodes,
        claims=claims,
    )

    assert [("m5.xlarge", 1)] == bought(decided)


def test_claims_in_flight_count_as_the_type_they_are_planned_as() -> None:
    """Before launch only the annotation tells the type; a status capacity is believed first."""
    planned_as = a_claim(
        "a", instance_type="", annotations={PLANNED_OFFERING: "m5.2xlarge/us-east-1a/on-demand"}, reached=()
    )
    stated = a_claim("b", reached=(LAUNCHED,), capacity=resources(cpu=6))

    used = usage(World(a_snapshot(claims=[planned_as, stated]), a_market(M5_2X)))

    assert (14000, 2) == (used["pool"]["cpu"], used["pool"]["nodes"])


def test_our_node_counts_what_it_shows_where_the_type_is_unknown() -> None:
    """A type that the market lost still counts; a node without claim never does."""
    snapshot = a_snapshot(nodes=[a_node("mine"), a_node("foreign")], claims=[a_claim(node_name="mine")])

    assert {"pool": resources(cpu=4, memory="16Gi", pods=58, nodes=1)} == usage(World(snapshot, a_market()))


def test_the_limit_is_charged_for_what_is_bought() -> None:
    """cpu 10 holds two nodes of 4 and not a third; the reason has limit, planned and needed."""
    decided = planned(some(3, **FULL), [a_pool("blue", limits={"cpu": 10})], [M5])

    assert 2 == len(decided.launches)
    assert only_unplaced(decided).reason.startswith("limit cpu 10 of NodePool blue: 8 planned, 4 more needed")


def test_what_runs_already_stands_in_the_reason() -> None:
    """In use, planned and needed are three numbers."""
    decided = planned(
        some(2, **FULL),
        [a_pool("blue", limits={"cpu": 10})],
        [M5],
        nodes=[a_node("n", pool="blue", allocatable={"cpu": "100m", "pods": 5, "memory": "1Gi"})],
        claims=[a_claim(pool="blue", node_name="n")],
    )

    assert only_unplaced(decided).reason.startswith("limit cpu 10 of NodePool blue: 4 in use, 4 planned, 4 more needed")


def test_what_larger_alternatives_would_use_is_not_called_planned() -> None:
    """The first pod's node may become the larger type too; planned is what was chosen, and the figures add up."""
    small = an_instance_type("m5.large", cpu=2, memory="8Gi", price="0.096")
    pods = [a_pod("small", cpu="1500m"), a_pod("large", cpu=3)]
    decided = planned(pods, [a_pool("blue", limits={"cpu": 4})], [small, M5])

    assert [("m5.large", ("m5.xlarge",))] == [
        (each.offering.instance_type, each.alternatives) for each in decided.launches
    ]
    assert only_unplaced(decided).reason.startswith("limit cpu 4 of NodePool blue: 2 planned, 4 more needed")


def test_alternatives_are_dropped_before_pods() -> None:
    """A larger alternative would break the limit, so that it is not named; both pods are placed all the same."""
    types = [M5, DEAR]
    pods = some(2, cpu=3)

    free = planned(pods, [a_pool()], types)
    tight = planned(pods, [a_pool(limits={"cpu": 8})], types)

    assert [(DEAR.name,), (DEAR.name,)] == [launch.alternatives for launch in free.launches]
    assert [(), ()] == [launch.alternatives for launch in tight.launches]
    assert [] == refused(tight)


def test_alternatives_are_charged_as_the_largest() -> None:
    """Two launches with an alternative of 8 cores need a limit of 16; with 15 neither names it."""
    for limit, alternatives in ((16, (DEAR.name,)), (15, ())):
        decided = planned(some(2, cpu=3), [a_pool(limits={"cpu": limit})], [M5, DEAR])

        assert [alternatives, alternatives] == [launch.alternatives for launch in decided.launches]


def test_a_launch_says_what_it_was_charged() -> None:
    """The largest of its types, and one node; so whoever shows the limits adds up what the ledger did."""
    for limit, cores in ((16, 8000), (15, 4000)):
        decided = planned(some(2, cpu=3), [a_pool(limits={"cpu": limit})], [M5, DEAR])

        assert [(cores, 1)] * 2 == [(each.charge["cpu"], each.charge["nodes"]) for each in decided.launches]


def test_a_node_for_a_floor_is_charged_too() -> None:
    """It is bought for no pod, and counts like any other."""
    decided = planned([], [a_pool(own_annotations={MIN_NODES: "1"}, limits={"cpu": 8})], [M5])

    assert [4000] == [each.charge["cpu"] for each in decided.launches]


def test_a_search_spends_its_own_copy() -> None:
    """Charging a copy leaves the ledger; room is counted in whole nodes."""
    ledger = Ledger([a_pool(limits={"cpu": 10})], {})
    offered = offer(a_pool(), M5)
    other = ledger.copy()

    other.charge("pool", offered.capacity, 2)

    assert (2, 0) == (ledger.room_for(offered), other.room_for(offered))
    assert () == ledger.exceeded_by(offered)
    assert ("cpu",) == other.exceeded_by(offered)


def test_no_limits_mean_any_number() -> None:
    """None stands for no limit, of a pool or of a resource."""
    offered = offer(a_pool(), M5)

    assert Ledger([a_pool()], {}).room_for(offered) is None
    assert Ledger([a_pool(limits={"nvidia.com/gpu": 4})], {}).room_for(offered) is None


# GPUs that a node shows otherwise than by their number.

FOUR = {"nvidia.com/device-plugin.config": "shared"}
SLICED = plugin_map(sharing("timeSlicing"))


@pytest.mark.parametrize(
    "pool, maps, resource, one",
    [
        ({}, (), "nvidia.com/gpu", 4),
        (FOUR, (SLICED,), "nvidia.com/gpu", 16),
        (FOUR, (plugin_map(sharing("mps")),), "nvidia.com/gpu", 16),
        (FOUR, (plugin_map(sharing("timeSlicing", renameByDefault=True)),), "nvidia.com/gpu.shared", 16),
        (FOUR, (plugin_map(sharing("timeSlicing", renameByDefault=True)),), "nvidia.com/gpu", 4),
        (HAMI, (), "nvidia.com/gpu", 40),
        (HAMI, (hami_map("deviceSplitCount: 4"),), "nvidia.com/gpu", 16),
        (HAMI, (hami_map("resourceCountName: nvidia.com/vgpu"),), "nvidia.com/vgpu", 40),
        (HAMI, (hami_map("resourceCountName: nvidia.com/vgpu"),), "nvidia.com/gpu", 4),
    ],
)
def test_a_node_counts_what_it_shows(
    pool: dict[str, str], maps: tuple[ConfigMap, ...], resource: str, one: int
) -> None:
    """Replicas and slots, as Karpenter counts of nodes; by a name that it does not show, its cards.

    It is so for what is to be bought, for what is on its way and for what runs.
    """

    def bought_within(limit: int, *claims: NodeClaim) -> int:
        pools = [a_pool(labels=pool, limits={resource: limit})]
        snapshot = a_snapshot(pools=pools, pods=[a_pod(cpu=1)], claims=claims, config_maps=maps, nodes=nodes)
        return len(plan(snapshot, a_market(G5_12X)).launches)

    nodes: list[ClusterNode] = []
    assert [0, 1] == [bought_within(one - 1), bought_within(one)]
    on_its_way = a_claim("full", instance_type="g5.12xlarge", reached=(LAUNCHED,), labels=pool, taints=(CLOSED,))
    assert [0, 1] == [bought_within(2 * one - 1, on_its_way), bought_within(2 * one, on_its_way)]
    family = owner_of(pool, {}, configured(maps))
    up = a_claim("up", instance_type="g5.12xlarge", labels=pool, capacity=G5_12X.capacity, node_name="node")
    node = a_node(labels=pool, taints=(CLOSED,), instance_type="g5.12xlarge")
    nodes = [ClusterNode(node, up, (), family.predict(G5_12X.devices, pool, {}), family.name)]
    assert [0, 1] == [bought_within(2 * one - 1), bought_within(2 * one)]


def test_a_broken_card_counts_as_before() -> None:
    """The node is paid for with all its cards, so nothing is bought in the place of one that broke."""
    family = owner_of({}, {}, configured(()))
    devices = tuple(replace(d, healthy=d.index > 0) for d in family.predict(G5_12X.devices, {}, {}))
    claim = a_claim("up", instance_type="g5.12xlarge", node_name="node")
    up = ClusterNode(a_node(taints=(CLOSED,)), claim, (), devices, family.name)
    pools = [a_pool(limits={"nvidia.com/gpu": 4})]

    assert 4 == usage(World(a_snapshot(pools=pools, nodes=[up]), a_market(G5_12X)))["pool"]["nvidia.com/gpu"]


def test_a_limit_in_slots_is_said_in_gpus_too_and_raised_to_hold_the_next_card() -> None:
    """Eight GPUs show eighty slots: 81 held no further card. Which pods it serves is said where it serves some."""
    slices = some(2, gpu=1, gpumem=20_000)
    other = a_pod("z", gpu=1, gpumem=20_000, selector={"team": "a"})
    pool = a_pool(labels=HAMI, limits={"nvidia.com/gpu": 9}, types=["g5.xlarge"])
    used = [
        a_claim(f"c-{n}", instance_type="g5.12xlarge", labels=HAMI, taints=(CLOSED,), reached=(LAUNCHED,))
        for n in range(2)
    ]
    decided = planned([*slices, other], [pool], [G5], market=a_market(G5, G5_12X), claims=used)
    left = {unplaced.pod: unplaced for unplaced in decided.unplaced}["default/p-0"]

    figures = "80 in use, 0 planned, 10 more needed (1 GPU shown as 10)"
    assert f"limit nvidia.com/gpu 9 of NodePool pool: {figures}" == left.reason
    assert left.hint.startswith("100 (10 GPUs) is the smallest nvidia.com/gpu limit of NodePool pool that places ")
    assert left.hint.endswith("2 of 3 pods (default/p-0, default/p-1)")
