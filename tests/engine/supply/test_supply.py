"""What pools offer: allowed types, what can be had now, and how much of a node is left for pods."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.explain.causes import cause_text
from kerf.model.causes import Quoted
from kerf.model.constraints import INSTANCE_TYPE, ZONE, Requirement, Requirements, Taint
from kerf.model.gpu import DeviceShape, GPUModel
from kerf.model.instancetypes import ON_DEMAND, RESERVED, SPOT, InstanceType, Offering, OfferingKey
from kerf.model.market import BackOff, SoldOut
from kerf.model.nodeclaim import NodeClassRef
from kerf.model.nodepool import NodePool
from kerf.model.pods import FAILED, RUNNING, Owner
from kerf.model.snapshot import ClusterNode, NodeClass
from kerf.testing.builders import (
    AWS_CLASS,
    NOON_S,
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
    G5_2X,
    M5,
    M5_2X,
    a_daemon_set,
    a_hami_pool,
    offer,
    planned,
    port_spec,
    refused,
    supply_of,
)

GPU_COUNT = "karpenter.k8s.aws/instance-gpu-count"
FAMILY = "karpenter.k8s.aws/instance-family"
TWO_ZONES = ("us-east-1a", "us-east-1b")
FRACTION = an_instance_type(
    "g6f.large",
    devices=(DeviceShape(GPUModel("L4"), 2861, eighths=1),),
    family="g6f",
    labels={FAMILY: "g6f"},
)


def asking(key: str, operator: str, *values: str) -> Requirements:
    """One requirement."""
    return Requirements([Requirement.of(key, operator, values)])


def names(*types: InstanceType, **given: Any) -> list[str]:
    """The types that a pool with these requirements offers."""
    return [c.kind.name for c in supply_of(a_pool(**given), types=types).available]


@pytest.mark.parametrize(
    "requirements, expected",
    [
        (asking(INSTANCE_TYPE, "In", "m5.xlarge"), ["m5.xlarge"]),
        (asking(INSTANCE_TYPE, "NotIn", "m5.xlarge"), ["m5.2xlarge"]),
        (asking("kubernetes.io/arch", "In", "arm64"), []),
        (asking(ZONE, "In", "us-east-1b"), []),
    ],
)
def test_a_pool_offers_the_types_that_its_requirements_allow(requirements: Requirements, expected: list[str]) -> None:
    """Types, architectures and zones that the pool excludes are not offered."""
    assert expected == names(M5, M5_2X, requirements=requirements)


@pytest.mark.parametrize(
    "operator, bound, expected", [("Gt", "0", ["one", "four"]), ("Gt", "1", ["four"]), ("Lt", "4", ["one"])]
)
def test_a_bound_on_a_label_of_the_cloud_leaves_out_types_without_it(
    operator: str, bound: str, expected: list[str]
) -> None:
    """gpu-count Gt 0, and also Lt 4, mean types that have GPUs at all."""
    types = [
        an_instance_type("none", price="1"),
        an_instance_type("one", price="2", labels={GPU_COUNT: "1"}),
        an_instance_type("four", price="3", labels={GPU_COUNT: "4"}),
    ]

    assert expected == names(*types, requirements=asking(GPU_COUNT, operator, bound))


def test_a_fraction_of_a_card_is_offered_only_by_name() -> None:
    """A type sold with an eighth of a card is used where the pool names the type or its family."""
    assert [] == names(FRACTION)
    assert ["g6f.large"] == names(FRACTION, types=["g6f.large"])
    assert ["g6f.large"] == names(FRACTION, requirements=asking(FAMILY, "In", "g6f"))
    assert [] == names(FRACTION, requirements=asking(FAMILY, "NotIn", "g5"))


def test_offerings_stand_in_launch_order() -> None:
    """Reserved whatever the price, then by price; of equal price spot before on-demand, then by zone."""
    offerings = [("c", ON_DEMAND, 1), ("a", SPOT, 9), ("b", SPOT, 1), ("a", ON_DEMAND, 1), ("a", RESERVED, 99)]
    kind = replace(
        an_instance_type(zones=("a", "b", "c"), capacity_types=(ON_DEMAND, SPOT, RESERVED)),
        offerings=tuple(Offering(zone, capacity_type, price) for zone, capacity_type, price in offerings),
    )

    offered = offer(a_pool(capacity_types=()), kind)

    assert [("a", RESERVED), ("b", SPOT), ("a", ON_DEMAND), ("c", ON_DEMAND), ("a", SPOT)] == [
        (o.zone, o.capacity_type) for o in offered.offerings
    ]
    assert 99 == offered.price_micro


def test_a_sold_out_offering_is_passed_over() -> None:
    """What the cloud refused lately is not offered; its capacity type is remembered where nothing of it is left."""
    kind = an_instance_type(zones=TWO_ZONES, capacity_types=(SPOT, ON_DEMAND))
    gone = tuple(SoldOut(OfferingKey(kind.name, zone, SPOT), NOON_S + 180) for zone in TWO_ZONES)

    offered = offer(a_pool(capacity_types=()), kind, market=a_market(kind, sold_out=gone))

    assert {ON_DEMAND} == {o.capacity_type for o in offered.offerings}
    assert (SPOT,) == offered.sold_out


def test_a_type_that_is_sold_out_everywhere_is_kept_with_its_reason() -> None:
    """It is not to be had, and says when it is tried again."""
    gone = (SoldOut(OfferingKey("m5.xlarge", "us-east-1a", ON_DEMAND), NOON_S + 180),)

    offered = supply_of(a_pool(), types=[], market=a_market(M5, sold_out=gone))

    assert () == offered.available
    assert [("m5.xlarge is sold out (on-demand), tried again at 2026-01-05T12:03:00Z", NOON_S + 180)] == [
        (c.refused and cause_text(c.refused), c.retry_at_s) for c in offered.unavailable
    ]


def test_an_unavailable_offering_counts_as_sold_out() -> None:
    """The catalogue itself may say that an offering cannot be had."""
    kind = replace(M5, offerings=(replace(M5.offerings[0], is_available=False),))

    assert ["m5.xlarge is sold out (on-demand)"] == [
        c.refused and cause_text(c.refused) for c in supply_of(a_pool(), types=[kind]).unavailable
    ]


def test_a_back_off_holds_for_its_pool_alone() -> None:
    """A type that failed in one pool is still bought in another."""
    back_off = BackOff("a", "m5.xlarge", NOON_S + 300, Quoted("never registered"))

    offered = supply_of(a_pool("a"), a_pool("b"), types=[], market=a_market(M5, back_offs=(back_off,)))

    assert ["b"] == [c.pool.name for c in offered.available]
    assert ["m5.xlarge backs off in NodePool a until 2026-01-05T12:05:00Z: never registered"] == [
        c.refused and cause_text(c.refused) for c in offered.unavailable
    ]


def test_candidates_stand_by_price_then_pool_then_type() -> None:
    """The order does not depend on the order of the input."""
    offered = supply_of(a_pool("b"), a_pool("a"), types=[M5_2X, M5])

    assert [("a", "m5.xlarge"), ("b", "m5.xlarge"), ("a", "m5.2xlarge"), ("b", "m5.2xlarge")] == [
        (c.pool.name, c.kind.name) for c in offered.available
    ]
    assert {"a", "b"} == set(offered.by_pool)


def test_the_first_offering_that_requirements_allow_is_taken() -> None:
    """Zone and capacity type of the pods decide; None when none is left."""
    offered = offer(a_pool(), an_instance_type(zones=TWO_ZONES))

    second = offered.offering_for(asking(ZONE, "In", "us-east-1b"))

    assert second is not None
    assert "us-east-1b" == second.zone
    assert offered.offering_for(asking(ZONE, "In", "us-east-1c")) is None
    assert second == offered.offering_for(asking(ZONE, "In", second.zone))


@pytest.mark.parametrize(
    "classes, assumed, problem",
    [
        ((), True, ""),
        ((), False, "NodeClassNotFound: EC2NodeClass default"),
        ((NodeClass(AWS_CLASS.group, AWS_CLASS.kind, "default"),), False, ""),
        (
            (NodeClass(AWS_CLASS.group, AWS_CLASS.kind, "default", False, "no subnets"),),
            True,
            "EC2NodeClass default is not ready: no subnets",
        ),
    ],
)
def test_a_pool_needs_its_node_class(classes: tuple[NodeClass, ...], assumed: bool, problem: str) -> None:
    """A missing or unready NodeClass stops a pool, unless missing ones are taken to be ready."""
    offered = supply_of(a_pool(), types=[M5], node_classes=classes, assume_node_classes=assumed)

    assert [problem] * bool(problem) == [cause_text(why) for _, why in offered.pool_problems]
    assert (not problem) == bool(offered.available)


@pytest.mark.parametrize("pool", [a_pool(replicas=3), a_pool(deleted_s=NOON_S)], ids=["static", "deleted"])
def test_a_static_or_deleted_pool_offers_nothing(pool: NodePool) -> None:
    """Neither takes nodes for pods; another pool is not hindered."""
    offered = supply_of(pool, a_pool("other"), types=[M5])

    assert ["other"] == [c.pool.name for c in offered.available]
    assert ["pool"] == [name for name, _ in offered.pool_problems]


def test_observed_memory_lowers_what_is_predicted() -> None:
    """A card that registered less on a node of this pool is planned with that; more changes nothing."""
    less = a_market(G5, observed_memory_mib={("pool", "g5.xlarge"): 22000, ("other", "g5.xlarge"): 1})
    more = a_market(G5, observed_memory_mib={("pool", "g5.xlarge"): 99999})

    assert 22000 == offer(a_hami_pool(), G5, market=less).room.devices[0].memory_mib
    assert 22888 == offer(a_hami_pool(), G5, market=more).room.devices[0].memory_mib


def test_daemons_are_taken_off_an_empty_node() -> None:
    """Requests and host ports of every DaemonSet that runs there."""
    daemon = a_daemon_set(cpu="500m", memory="1Gi")

    offered = offer(a_pool(), M5, daemon_sets=(daemon, a_daemon_set("ports", spec=port_spec(9100))))

    assert resources(cpu="3500m", memory="15Gi", pods=56) == offered.room.free
    assert [9100] == [port.port for port in offered.room.ports]


def test_a_daemon_set_counts_as_its_newest_pod_that_runs() -> None:
    """What a LimitRange or a webhook has added counts; a pod that has ended, or is older, says nothing."""
    owner = Owner("DaemonSet", "agent")
    older, newest, ended = (
        a_pod(name, cpu=cpu, owner=owner, node_name="node", created_s=created_s, phase=phase)
        for name, cpu, created_s, phase in (("x", 3, 1, RUNNING), ("b", 2, 2, RUNNING), ("c", 1, 3, FAILED))
    )
    held = ClusterNode(a_node(), None, (ended, newest, older))

    offered = offer(a_pool(), M5, daemon_sets=(a_daemon_set(cpu="500m"),), nodes=(held,))

    assert 2000 == offered.room.free["cpu"]


def test_more_pods_of_a_daemon_set_make_no_other_supply() -> None:
    """What is for sale is kept by its value, and each node brings a newer pod."""
    agents = [a_pod(name, cpu=1, owner=Owner("DaemonSet", "agent"), node_name=name, created_s=1) for name in "ab"]
    nodes = [ClusterNode(a_node(pod.name), None, (pod,)) for pod in agents]

    one, two = (a_snapshot(nodes=some, daemon_sets=(a_daemon_set(cpu=2),)) for some in (nodes[:1], nodes))

    assert one.daemon_sets_as_running == two.daemon_sets_as_running


@pytest.mark.parametrize(
    "pool, given",
    [
        (a_pool(taints=(Taint("dedicated"),)), {}),
        (a_pool(), {"selector": {"kubernetes.io/arch": "arm64"}}),
        (a_pool(), {"selector": {"team": "a"}}),
    ],
    ids=["taint", "conflict", "undefined label"],
)
def test_a_daemon_that_does_not_run_there_costs_nothing(pool: NodePool, given: dict[str, Any]) -> None:
    """Taints and selectors hold for DaemonSets as well."""
    offered = offer(pool, M5, daemon_sets=(a_daemon_set(cpu=1, **given),))

    assert 4000 == offered.room.free["cpu"]


def test_overhead_and_cards_of_an_empty_node() -> None:
    """Pods get capacity less overhead; limits are charged with capacity and one node."""
    kind = an_instance_type(cpu=4, devices=cards(2), overhead=resources(cpu="80m"))

    offered = offer(a_hami_pool(), kind)

    assert 3920 == offered.room.free["cpu"]
    assert (4000, 1) == (offered.capacity["cpu"], offered.capacity["nodes"])
    assert 2 == len(offered.room.devices)


def test_types_with_equal_cards_have_equal_layouts() -> None:
    """What is found for the cards of one holds for the other, in one family."""
    hami, whole = a_hami_pool(), a_pool()

    assert offer(hami, G5).layout == offer(hami, G5_2X).layout
    assert offer(hami, G5).layout != offer(whole, G5).layout


def test_an_invalid_pool_takes_no_nodes() -> None:
    """What the API took and nobody can carry out; the plan says what it is."""
    offered = supply_of(a_pool(invalid="spec.limits.cpu: expected a quantity, got '1e1.5'"), types=(M5,))

    assert ((), (("pool", "it is invalid: spec.limits.cpu: expected a quantity, got '1e1.5'"),)) == (
        offered.available,
        tuple((name, cause_text(problem)) for name, problem in offered.pool_problems),
    )


def test_a_pod_goes_to_the_pool_whose_node_class_leaves_room_for_it() -> None:
    """One type, sold by two NodeClasses with another overhead: each pool offers its own."""
    small = NodeClassRef(AWS_CLASS.group, AWS_CLASS.kind, "small")
    tight = replace(M5, overhead=resources(memory="8Gi"))
    sold = a_market(M5, types_by_node_class={AWS_CLASS: (M5,), small: (tight,)})
    pools = [a_pool("a", node_class=small), a_pool("b")]

    asked = a_pod("p", cpu="1", memory="12Gi")
    assert ["b"] == [launch.node_pool for launch in planned([asked], pools, market=sold).launches]
    assert ["default/p"] == refused(planned([asked], pools[:1], market=sold))
    assert [] == refused(planned([a_pod("p", cpu="1", memory="7Gi")], pools[:1], market=sold))
