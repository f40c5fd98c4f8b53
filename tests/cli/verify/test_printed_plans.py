"""Every plan that is printed holds: what is decided of random clusters and of the published behaviours, read again."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from kerf.cli.inputs.input import ReadInput
from kerf.cli.plan.json import plan_object
from kerf.cli.plan.planning import decided
from kerf.cli.plan.text import plan_lines
from kerf.cli.verify.planfile import PlanFile, decoded
from kerf.cli.verify.verifying import checked
from kerf.engine.explain.violations import violation_text
from kerf.engine.options import Options
from kerf.engine.study.steps import steps
from kerf.engine.world import World
from kerf.manifests.decoded import Decoded
from kerf.model.nodeclaim import LAUNCHED, REGISTERED
from kerf.model.snapshot import ClusterSnapshot
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_pool, a_snapshot
from kerf.verify.check import of_going
from tests.behaviours.test_behaviours import BEHAVIOURS, read_of
from tests.engine.worlds import G5, a_hami_pool, a_slice
from tests.examples import IS_ALL, examples
from tests.property import test_plans
from tests.wholeclusters import case

SEEDS = 600 if IS_ALL else 60


def printed(read: ReadInput) -> PlanFile:
    """The plan as it is printed, read again."""
    decision, plan = decided(read, Options())
    text = json.dumps(plan_object(plan, World(decision.world.snapshot, read.market)))
    return decoded(text.encode(), "plan.json")


def breaches(read: ReadInput) -> list[str]:
    """What is said against the printed plan."""
    return [violation_text(each) for each in checked(printed(read), read.world, read.world)]


def read_as(snapshot: ClusterSnapshot, *types: Any) -> ReadInput:
    """The input that this cluster would be read from."""
    return ReadInput(Decoded(), snapshot.pending, snapshot, a_market(*(types or (G5,))))


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda path: path.stem)
def test_a_plan_of_a_behaviour_holds(behaviour: Path) -> None:
    """With volumes, windows, groups, reservations, quotas, spread and all that Karpenter publishes."""
    assert [] == breaches(read_of(behaviour))


def test_a_plan_of_a_random_cluster_holds() -> None:
    """With pods that wait and nodes that go beside them, limits and budgets, by each way of sharing cards."""
    wrong = dict[int, list[str]]()
    for seed in range(SEEDS):
        held = case(seed, is_limited=seed % 2 == 0)
        found = breaches(ReadInput(Decoded(), (), held.snapshot, held.world.market))
        if found:
            wrong[seed] = found

    assert {} == wrong


def test_a_step_of_consolidation_holds() -> None:
    """Each command breaks no rule in the cluster that the steps before it leave."""
    wrong = dict[int, list[str]]()
    for seed in range(SEEDS):
        found = [each for step in steps(case(seed).world) for each in of_going(step.before, step.decided)]
        if found:
            wrong[seed] = [violation_text(each) for each in found]

    assert {} == wrong


@examples(60, derandomize=True)
@given(test_plans.worlds())
def test_a_plan_of_random_pods_and_pools_holds(held: test_plans.World) -> None:
    """With slices, whole cards, limits, taints and zones, and a bound with its proof."""
    assert [] == breaches(ReadInput(Decoded(), held.snapshot.pending, held.snapshot, held.market))


def on_its_way(pod: Any, pool: Any, *reached: str, has_node: bool = False) -> ClusterSnapshot:
    """A pod that waits, and a node with room for it that has come so far; its cards have not registered."""
    labels = dict(pool.labels)
    claim = a_claim(
        "c-0", instance_type="g5.xlarge", reached=reached, labels=labels, node_name="n-0" if has_node else ""
    )
    nodes = (
        [a_node("n-0", instance_type="g5.xlarge", allocatable={"cpu": 4, "memory": "16Gi", "pods": 110}, labels=labels)]
        if has_node
        else []
    )
    return a_snapshot(pools=[pool], pods=[pod], nodes=nodes, claims=[claim])


@pytest.mark.parametrize(
    "snapshot",
    [
        on_its_way(a_slice("p", gpumem=12_000), a_hami_pool(), LAUNCHED),
        on_its_way(a_pod("p", gpu=1), a_pool(), LAUNCHED),
        on_its_way(a_pod("p", gpu=1), a_pool(), LAUNCHED, REGISTERED, has_node=True),
    ],
    ids=["slice-of-a-launch", "card-of-a-launch", "card-of-a-registered-node"],
)
def test_a_pod_of_a_node_on_its_way_has_the_cards_that_it_is_promised(snapshot: ClusterSnapshot) -> None:
    """They are printed before the node shows them, in JSON and in a wide table."""
    read = read_as(snapshot)
    plan = printed(read)
    slices = [(d.index, s.pod) for place in plan.placements for d in place.devices for s in d.slices]

    assert ([], [(0, "default/p")], []) == (plan.launches, slices, breaches(read))
    wide = list(plan_lines(decided(read, Options())[1], read.world, is_wide=True))
    assert any("A10G" in line and "default/p" in line for line in wide)
