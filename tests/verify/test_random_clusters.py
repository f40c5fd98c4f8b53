"""The raw decision of the search keeps every rule on random clusters, and whatever is left out of it keeps them too."""

from dataclasses import replace

import pytest
from hypothesis import given

from kerf.engine.decide import decide
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.policies import COST, FIRST_FIT
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.violations import PartKind, PlanPart, PlanRule, violation
from kerf.testing.builders import a_market, a_pool, an_instance_type
from kerf.verify.check import of_plan
from kerf.verify.passing import without
from tests.examples import examples
from tests.property import test_plans, test_topology

ZONED = an_instance_type("zoned", cpu=8, memory="32Gi", price="0.4", zones=("za", "zb", "zc"))


@pytest.mark.parametrize("strategy", [COST, FIRST_FIT])
@examples(120, derandomize=True)
@given(test_plans.worlds())
def test_what_is_decided_keeps_the_rules(strategy: str, held: test_plans.World) -> None:
    """With slices, whole cards, limits, taints and zones: nothing is refused."""
    assert () == of_plan(decide(World(held.snapshot, held.market), Options(strategy)))


@examples(120, derandomize=True)
@given(test_topology.clusters())
def test_pods_that_go_by_others_keep_the_rules(snapshot: ClusterSnapshot) -> None:
    """With spread, affinity and anti-affinity, on nodes that are there and on such as are bought in three zones."""
    waiting = tuple(replace(pod, name=f"{pod.name}-more") for pod in snapshot.pending)
    several = replace(snapshot, pending=(*snapshot.pending, *waiting), node_pools=(a_pool(),))

    assert () == of_plan(decide(World(several, a_market(ZONED)), Options()))


@examples(60, derandomize=True)
@given(test_plans.worlds())
def test_what_is_left_keeps_the_rules(held: test_plans.World) -> None:
    """Without any of its launches a decision is still one: each pod has a place or a refusal, figures are counted."""
    decision = decide(World(held.snapshot, held.market), Options())
    for launch in decision.launches[:2]:
        part = PlanPart(PartKind.LAUNCH, launch.name)
        left = without(decision, [violation(PlanRule.NODE_RESOURCES, launch.name, "a", "b", part)])
        refused = {pod.key for refusal in left.refusals for pod in refusal.pods}

        assert {placed.pod for placed in launch.pods} <= refused
        assert () == of_plan(left)
        assert left.cost.after_micro == decision.cost.after_micro - launch.price_micro
