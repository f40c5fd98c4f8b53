"""NodePool limits: what counts, what a launch is charged, and what no limit excludes."""

from typing import Any

from kerf.engine.buy.limits import Ledger, usage
from kerf.engine.world import World
from kerf.model.bounds import MIN_NODES
from kerf.model.nodeclaim import LAUNCHED, PLANNED_OFFERING
from kerf.model.plan import Stage
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type, resources
from tests.engine.worlds import G5, M5, M5_2X, bought, offer, only_unplaced, planned, refused, some

FULL: dict[str, Any] = {"cpu": 4}
"""A pod that fills an m5.xlarge."""
DEAR = an_instance_type("m5d.2xlarge", cpu=8, memory="32Gi", price="0.9")


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
