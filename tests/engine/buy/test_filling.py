"""Nodes that are filled, and whether another type takes the same pods."""

from random import Random
from typing import Any

import pytest

from kerf.engine.buy.filling import Filler
from kerf.engine.place.shapes import group
from kerf.engine.supply.holding import Holding
from kerf.model.nodepool import NodePool
from kerf.testing.builders import a_pod, a_pool, an_instance_type, cards
from tests.engine.worlds import a_hami_pool, supply_of

TYPES = [
    an_instance_type(f"t{count}-{memory_mib}-{cpu}", cpu=cpu, memory=f"{cpu}Gi", devices=cards(count, memory_mib))
    for count in (1, 2, 4)
    for memory_mib in (8_000, 16_000, 24_000)
    for cpu in (16, 48)
]


@pytest.mark.parametrize("pool", [a_hami_pool(), a_pool()], ids=["slices", "whole"])
@pytest.mark.parametrize("seed", range(6))
def test_another_type_takes_the_pods_of_a_node_where_filling_it_puts_all_there(seed: int, pool: NodePool) -> None:
    """By sums, labels and cards apart, and by filling it: the answer is the same, where there is one."""
    chance = Random(seed)
    sizes = (3_000, 5_000, 8_000, 12_000)
    asked: list[dict[str, Any]] = [
        {
            "cpu": chance.choice((1, 2, 5)),
            "memory": f"{chance.choice((1, 2, 6))}Gi",
            "gpu": chance.choice((0, 1, 1, 2)),
            **({"gpumem": chance.choice(sizes), "cores": chance.choice((0, 30, 100))} if pool.labels else {}),
        }
        for _ in range(8)
    ]
    pods = [a_pod(f"p{number}", **chance.choice(asked)) for number in range(60)]
    offered_types = supply_of(pool, types=TYPES).available
    shapes = group(pods)
    filler = Filler(shapes, Holding(offered_types))

    answers = set()
    for _ in range(30):
        some = [chance.randint(0, min(4, len(shape))) for shape in shapes]
        load = filler.fill(chance.choice(offered_types), some)
        for other in offered_types if load is not None else ():
            assert load is not None
            held = filler.fill_alike(other, load)
            takes = filler.takes_alike(other, load)
            assert (held is not None and held.held == load.held) == takes
            answers.add(takes)
    assert {False, True} == answers
