"""What types hold of pods, kept for every purchase of one decision."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from kerf.engine.buy.filling import Filler
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.holding import Holding, admits_shape
from kerf.engine.supply.warmstart import WarmStart
from kerf.engine.world import World
from kerf.model.constraints import Taint, Toleration
from kerf.model.nodepool import NodePool
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type, cards

MARKET = a_market(an_instance_type("m5.large", cpu=2), an_instance_type("m5.xlarge", cpu=4))
POOLS = (
    a_pool("plain"),
    a_pool("labelled", labels={"disk": "fast"}),
    a_pool("tainted", taints=(Taint("only", "x", "NoSchedule"),)),
)
SHAPES = tuple(
    Shape((a_pod(f"pod-{number}", cpu=cpu, selector=selector),))
    for number, (cpu, selector) in enumerate(
        [
            (1, {}),
            (3, {"disk": "fast"}),
            (1, {"disk": "slow"}),
            (1, {"topology.kubernetes.io/zone": "us-east-1a"}),
            (1, {"topology.kubernetes.io/zone": "elsewhere"}),
            (1, {"node.kubernetes.io/instance-type": "m5.large"}),
        ]
    )
)


def a_world(*pools: NodePool) -> World:
    """With nothing but pools."""
    return World(a_snapshot(pools=pools), MARKET)


def held(holding: Holding, world: World, shapes: Sequence[Shape] = SHAPES) -> list[list[int]]:
    """By shape and type of the supply, how many pods an empty node holds."""
    rows = holding.rows(world.supply.available)
    return [holding.alone(shape, holding.kind(shape))[rows].tolist() for shape in shapes]


def test_types_that_answer_for_others_answer_as_each_would() -> None:
    """Taints, labels and offerings are asked of one type of each class alone."""
    world = a_world(*POOLS)
    holding, rows = world.holding, world.holding.rows(world.supply.available)

    for shape in SHAPES:
        expected = [admits_shape(shape, offered) for offered in world.supply.available]
        assert expected == holding.admits(shape, holding.kind(shape), rows)[rows].tolist()
        assert len(set(expected)) <= 2


@pytest.mark.parametrize("asked_before", [True, False])
def test_a_world_with_another_pool_answers_as_a_new_one(*, asked_before: bool) -> None:
    """What is known of other pools' types is kept; what the pool sells is asked anew."""
    changed = replace(POOLS[0], labels={**POOLS[0].labels, "disk": "slow"})
    before = a_world(*POOLS)
    if asked_before:
        held(before.holding, before)
    after, fresh = before.with_pools((changed,)), a_world(changed, *POOLS[1:])

    assert held(fresh.holding, fresh) == held(after.holding, after)
    assert np.array_equal(fresh.holding.amounts("cpu"), after.holding.amounts("cpu"))
    assert held(before.holding, before) == held(a_world(*POOLS).holding, a_world(*POOLS))


@pytest.mark.parametrize("asked_before", SHAPES)
def test_the_next_decision_answers_as_the_first(asked_before: Shape) -> None:
    """What was found of cards is kept from decision to decision; in which order it was found changes no answer."""
    types = an_instance_type("g5.xlarge", cpu=4, devices=cards(1)), an_instance_type("g5.12xlarge", devices=cards(4))
    market, pools = a_market(*MARKET.types, *types), (*POOLS, a_pool("hami", labels={"gpu": "on"}))
    slices = tuple(Shape((a_pod("slice", gpu=1, gpumem=mib),)) for mib in (2_000, 9_000, 21_000))
    first = World(a_snapshot(pools=pools), market, kept=WarmStart())
    for shape in (*slices[::-1], asked_before):
        first.holding.alone(shape, first.holding.kind(shape))
    after, fresh = World(a_snapshot(pools=pools), market, kept=first.left()), World(a_snapshot(pools=pools), market)

    assert after.holding.cards is first.holding.cards
    assert held(fresh.holding, fresh, (*SHAPES, *slices)) == held(after.holding, after, (*SHAPES, *slices))


@pytest.mark.parametrize("others", range(3))
def test_nodes_filled_for_a_window_are_no_answer_for_another(others: int) -> None:
    """Types with a window's taint follow those of the supply, and may be others in the next decision."""
    windows = [Taint(f"window-{name}", "", "NoSchedule") for name in "abc"]
    first = World(a_snapshot(pools=POOLS), MARKET, kept=WarmStart())
    shape = Shape((a_pod("plain", cpu=1),))

    def filled(world: World, taint: Taint) -> list[tuple[Taint, ...]]:
        kept = [replace(each, target=replace(each.target, taints=(taint,))) for each in world.supply.available]
        tolerant = Shape((a_pod("p", cpu=1, tolerations=(Toleration(operator="Exists"),)),))
        loads = [Filler([tolerant], world.holding).fill(each, [1]) for each in kept]
        return [load.offered.target.taints for load in loads if load is not None]

    assert Filler([shape], first.holding).fill(first.supply.available[0], [1]) is not None
    for taint in windows[:others]:
        assert {(taint,)} == set(filled(first, taint))
    left = first.left()

    for taint in windows[::-1]:
        after = World(a_snapshot(pools=POOLS), MARKET, kept=left)
        assert {(taint,)} == set(filled(after, taint))
