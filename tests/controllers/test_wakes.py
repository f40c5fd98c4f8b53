"""Which events wake a controller: at 5,000 nodes one that wakes all of them is dear."""

from dataclasses import replace

import pytest

from kerf.controllers.conditions import Consolidatable
from kerf.model.nodepool import NodePool
from kerf.model.quantities import Resources
from kerf.model.snapshot import Upserted
from kerf.testing.builders import a_claim, a_pool
from tests.controllers.cluster import Cluster

POOL = a_pool()


@pytest.mark.parametrize(
    "pool, previous, woken",
    [
        (replace(POOL, resources=Resources({"cpu": 1})), POOL, ()),
        (replace(POOL, disruption=replace(POOL.disruption, consolidate_after_s=7)), POOL, ("a", "b")),
        (POOL, None, ("a", "b")),
    ],
    ids=["its status is written", "consolidateAfter changes", "it is new"],
)
def test_a_pool_wakes_its_claims_when_their_quiet_time_changes(
    cluster: Cluster, pool: NodePool, previous: NodePool | None, woken: tuple[str, ...]
) -> None:
    """Its status is written with each claim that changes, which must not wake the others."""
    for claim in (a_claim("a"), a_claim("b"), a_claim("c", pool="other")):
        cluster.state.apply(Upserted(claim))

    assert woken == tuple(Consolidatable(cluster.state, cluster.ports).keys(Upserted(pool), previous))
