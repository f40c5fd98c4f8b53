"""Reservations: used before all else, counted by their id, never over-committed."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.engine.buy.limits import Ledger, reserved
from kerf.engine.world import World
from kerf.model.causes import ReservationUsedUp
from kerf.model.constraints import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    RESERVATION,
    RESERVATION_TYPE,
    Requirement,
    Requirements,
)
from kerf.model.instancetypes import ON_DEMAND, RESERVED, SPOT, InstanceType, Offering
from kerf.model.nodeclaim import PLANNED_OFFERING
from kerf.model.plan import Plan
from kerf.model.policies import COST, FIRST_FIT
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type
from tests.engine.worlds import only_unplaced, planned, some

FULL: dict[str, Any] = {"cpu": 4}
"""A pod that fills the smaller type."""
ANY: dict[str, Any] = {"capacity_types": (RESERVED, SPOT, ON_DEMAND)}


def a_reservation(name: str, most: int | None, zone: str = "us-east-1a") -> Offering:
    """What it sells, at the price of on-demand."""
    return Offering(zone, RESERVED, 1_000_000, reservation=name, most=most)


def sold(*reservations: Offering, name: str = "m5.xlarge", cpu: int = 4, price: int = 300_000) -> InstanceType:
    """A type with these reservations, cheap spot and expensive on-demand."""
    others = Offering("us-east-1a", SPOT, price), Offering("us-east-1a", ON_DEMAND, 2 * price)
    capacity_types = (RESERVED, SPOT, ON_DEMAND)
    return an_instance_type(name, cpu=cpu, capacity_types=capacity_types, offerings=(*reservations, *others))


def bought_by(decided: Plan) -> list[tuple[str, str]]:
    """Capacity type and reservation of each launch, sorted."""
    return sorted((each.offering.capacity_type, each.offering.reservation) for each in decided.launches)


@pytest.mark.parametrize("strategy", [COST, FIRST_FIT])
def test_a_reservation_goes_before_cheaper_spot_as_long_as_it_has_instances(strategy: str) -> None:
    """Two of three nodes are reserved: it has no third."""
    decided = planned(some(3, **FULL), [a_pool(**ANY)], [sold(a_reservation("r", 2))], strategy)

    assert [(RESERVED, "r"), (RESERVED, "r"), (SPOT, "")] == bought_by(decided)


@pytest.mark.parametrize("strategy", [COST, FIRST_FIT])
def test_two_reservations_of_one_type_count_apart(strategy: str) -> None:
    """One instance each."""
    kind = sold(a_reservation("r", 1), a_reservation("s", 1))

    assert [(RESERVED, "r"), (RESERVED, "s"), (SPOT, "")] == bought_by(
        planned(some(3, **FULL), [a_pool(**ANY)], [kind], strategy)
    )


def test_a_pod_gets_the_sort_of_reservation_that_it_asks_for() -> None:
    """Its pool does not mention the label; a pool may require it too, and gets nothing else then."""
    sorts = ("default", "capacity-block")
    kind = sold(
        *(replace(a_reservation(f"r-{each}", 1), reservation_labels=((RESERVATION_TYPE, each),)) for each in sorts)
    )
    for each in sorts:
        wanted = {RESERVATION_TYPE: each}
        assert [(RESERVED, f"r-{each}")] == bought_by(planned([a_pod(selector=wanted)], [a_pool(**ANY)], [kind]))
        pool = a_pool(requirements=Requirements.of_labels(wanted), **ANY)
        assert [(RESERVED, f"r-{each}")] == bought_by(planned(some(2, **FULL), [pool], [kind]))


def test_pools_and_types_share_what_one_id_has() -> None:
    """Two pools of a type each, and a reservation of one instance that both could take."""
    small, large = sold(a_reservation("r", 1)), sold(a_reservation("r", 1), name="m5.2xlarge", cpu=8)
    pools = [a_pool("small", types=("m5.xlarge",), **ANY), a_pool("large", types=("m5.2xlarge",), **ANY)]
    pods = [a_pod(kind, selector={INSTANCE_TYPE: kind}, cpu=4) for kind in ("m5.xlarge", "m5.2xlarge")]

    assert [RESERVED, SPOT] == [name for name, _ in bought_by(planned(pods, pools, [small, large]))]


def test_the_least_number_that_is_stated_counts() -> None:
    """Two offerings of one id disagree."""
    types = [sold(a_reservation("r", 3)), sold(a_reservation("r", 1), name="m5.2xlarge", cpu=8)]

    assert {"r": 1} == reserved(World(a_snapshot(pools=[a_pool(**ANY)]), a_market(*types)))


def test_weight_goes_before_a_reservation() -> None:
    """The heavy pool has none, and buys all the same."""
    pools = [a_pool("heavy", weight=10, capacity_types=(SPOT,)), a_pool("light", **ANY)]

    decided = planned([a_pod(**FULL)], pools, [sold(a_reservation("r", 1))])

    assert [("heavy", SPOT)] == [(each.node_pool, each.offering.capacity_type) for each in decided.launches]


def test_a_claim_names_its_reservation_and_nothing_beside_it() -> None:
    """No other type of the pool is an alternative, unless the reservation sells it."""
    types = [sold(a_reservation("r", 1)), sold(name="m5.2xlarge", cpu=8)]

    launch = planned([a_pod(**FULL)], [a_pool(**ANY)], types).launches[0]

    assert {"r"} == launch.requirements[RESERVATION].values
    assert {RESERVED} == launch.requirements[CAPACITY_TYPE].values
    assert () == launch.alternatives


def test_what_is_bought_otherwise_asks_for_no_reservation() -> None:
    """It would get the label of none."""
    launch = planned([a_pod(**FULL)], [a_pool(**ANY)], [sold(a_reservation("r", 0))]).launches[0]

    assert SPOT == launch.offering.capacity_type
    assert RESERVATION not in launch.requirements


def test_a_pod_asks_for_a_reservation_by_its_label() -> None:
    """It gets that one, or nothing."""
    kind = sold(a_reservation("r", 1), a_reservation("s", 5))
    pods = [a_pod(f"p-{n}", selector={RESERVATION: "r"}, **FULL) for n in range(2)]

    decided = planned(pods, [a_pool(**ANY)], [kind])

    assert [(RESERVED, "r")] == bought_by(decided)
    assert isinstance(only_unplaced(decided).misfits[0].cause, ReservationUsedUp)


def test_a_pool_asks_for_a_reservation_by_its_label() -> None:
    """The other is not used, nor any other capacity type."""
    kind = sold(a_reservation("r", 1), a_reservation("s", 5))
    pool = a_pool(requirements=Requirements([Requirement.of(RESERVATION, "In", ("s",))]), **ANY)

    assert [(RESERVED, "s")] * 2 == bought_by(planned(some(2, **FULL), [pool], [kind]))


def test_nodes_and_claims_of_a_reservation_count() -> None:
    """One by the label of its node, one that is on its way by what it is planned as."""
    node = a_node("n", labels={RESERVATION: "r", CAPACITY_TYPE: RESERVED})
    coming = a_claim(
        "c", instance_type="", reached=(), annotations={PLANNED_OFFERING: "m5.xlarge/us-east-1a/reserved/r"}
    )
    snapshot = a_snapshot(pools=[a_pool(**ANY)], nodes=[node], claims=[coming])

    assert {"r": 1} == reserved(World(snapshot, a_market(sold(a_reservation("r", 3)))))


def test_an_unstated_number_is_no_bound() -> None:
    """As for what no catalogue counts."""
    decided = planned(some(3, **FULL), [a_pool(**ANY)], [sold(a_reservation("r", None))])

    assert [(RESERVED, "r")] * 3 == bought_by(decided)


def test_more_taken_than_there_is_leaves_nothing() -> None:
    """A reservation was made smaller while its nodes run."""
    offered = World(a_snapshot(pools=[a_pool(**ANY)]), a_market(sold(a_reservation("r", 1)))).supply.available

    ledger = Ledger((), {}, {"r": -1})

    assert [0, None] == [ledger.room_for(each) for each in offered if each.reservation] + [
        ledger.room_for(each) for each in offered if not each.reservation
    ]
