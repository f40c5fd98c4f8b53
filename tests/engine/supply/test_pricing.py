"""What is paid of cards, and allocated: a type that is sold with a part of a card counts as that part."""

import pytest

from kerf.catalog.gpus import shape_of
from kerf.engine.disruption.causes import EmptyFor
from kerf.engine.disruption.command import deleting
from kerf.engine.world import World
from kerf.model.constraints import INSTANCE_TYPE, Requirement, Requirements
from kerf.model.plan import Deletion, GpuUse
from kerf.model.snapshot import ClusterNode
from kerf.sharing.registry import FAMILIES, family_named
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type
from tests.engine.worlds import G5, planned

QUARTER = an_instance_type("g6f.2xlarge", devices=(shape_of("L4", 5722, "stated", eighths=2),), price="0.24")
POOL = a_pool(requirements=Requirements([Requirement.of(INSTANCE_TYPE, "In", (QUARTER.name, G5.name))]))


def a_part(name: str) -> ClusterNode:
    """A node that has a quarter of a card."""
    free: dict[str, str | int] = {"cpu": 4, "memory": "16Gi", "pods": 20, "nvidia.com/gpu": 1}
    node = a_node(name, instance_type=QUARTER.name, allocatable=free)
    claim = a_claim(f"claim-{name}", instance_type=QUARTER.name, node_name=name)
    return ClusterNode(node, claim, (), family_named("whole", FAMILIES).predict(QUARTER.devices, {}, {}), "whole")


@pytest.mark.parametrize(("nodes", "paid"), [((), 2500), ((a_part("a"),), 2500), ((a_part("a"), a_part("b")), 5000)])
def test_a_part_of_a_card_is_paid_as_that_part(nodes: tuple[ClusterNode, ...], paid: int) -> None:
    """Bought or there already; a pod that has all of it has a quarter."""
    made = planned([a_pod(gpu=1)], [POOL], [QUARTER, G5], nodes=nodes)

    assert GpuUse(paid, 2500) == made.gpus


def test_a_part_of_a_card_has_a_caveat() -> None:
    """Once for each type that is bought, and only there: what a device plugin shows on it was not seen."""
    said = "g6f.2xlarge is sold with 2/8 of a card; what the device plugin shows there was not verified"

    made = planned([a_pod("a", gpu=1), a_pod("b", gpu=1)], [POOL], [QUARTER, G5])
    assert (2, 1) == (len(made.launches), made.notes.count(said))
    assert said not in planned([a_pod(gpu=1)], [POOL], [G5]).notes


def test_nodes_that_go_take_their_parts_along() -> None:
    """Two quarters without one."""
    snapshot = a_snapshot(pools=(POOL,), nodes=(a_part("a"), a_part("b")))
    gone = Deletion("a", "claim-a", "pool", 0, "Empty", EmptyFor(60))

    assert GpuUse(2500, 0) == deleting(World(snapshot, a_market(QUARTER)), (gone,)).gpus


def test_a_type_that_is_not_sold_any_more_counts_as_whole_cards() -> None:
    """Nothing says that it was a part."""
    made = planned([], [POOL], [G5], nodes=(a_part("a"),))

    assert GpuUse(10_000, 0) == made.gpus
