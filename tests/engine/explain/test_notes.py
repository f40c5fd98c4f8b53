"""What a plan tells beside itself."""

import pytest

from kerf.model.instancetypes import ON_DEMAND, RESERVED, Offering
from kerf.model.plan import Plan
from kerf.testing.builders import a_pod, a_pool, an_instance_type
from tests.engine.worlds import planned

FREE = "costs nothing by the catalogue"


def free_of(plan: Plan) -> list[str]:
    """The notes on nodes that cost nothing."""
    return [note for note in plan.notes if FREE in note]


@pytest.mark.parametrize("price, notes", [("0", 1), ("0.000000001", 1), ("0.000001", 0), ("1", 0)])
def test_a_price_of_nothing_is_planned_and_said(price: str, notes: int) -> None:
    """A price below a millionth counts as nothing."""
    made = planned([a_pod(cpu=1)], [a_pool()], [an_instance_type("t", price=price)])

    assert 1 == len(made.launches)
    expected = f"t, on-demand in us-east-1a, {FREE}: nothing is cheaper, so check that this is its price"
    assert [expected] * notes == free_of(made)


def test_of_nodes_that_cost_nothing_each_type_is_named_once() -> None:
    """In the order of their names, whatever was bought of them."""
    types = [an_instance_type(name, cpu=cpu, price="0") for name, cpu in (("u", 4), ("t", 8))]
    pods = [
        a_pod(f"p-{number}", cpu=cpu, selector={"node.kubernetes.io/instance-type": name})
        for number, (name, cpu) in enumerate([("u", 3), ("t", 7), ("u", 3)])
    ]

    assert ["t, on-demand", "u, on-demand"] == [
        each.split(" in ")[0] for each in free_of(planned(pods, [a_pool()], types))
    ]


def test_a_reserved_node_costs_nothing_and_nothing_is_said() -> None:
    """It is paid for, used or not."""
    offerings = (Offering("us-east-1a", RESERVED, 0, reservation="cr-1", most=1), Offering("us-east-1a", ON_DEMAND, 1))
    kind = an_instance_type("t", offerings=offerings, capacity_types=(RESERVED, ON_DEMAND))

    made = planned([a_pod(cpu=1)], [a_pool(capacity_types=(RESERVED, ON_DEMAND))], [kind])

    assert [RESERVED] == [launch.offering.capacity_type for launch in made.launches]
    assert [] == free_of(made)
