"""Types once for each number of cards that pods with several whole ones take."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from kerf.catalog import aws
from kerf.engine.buy.filling import Filler
from kerf.engine.buy.relaxation import Relaxation, relaxed
from kerf.engine.buy.wholecards import WHOLE_CARDS, by_whole_cards, whole_cards_of
from kerf.engine.decide import decide
from kerf.engine.options import Options
from kerf.engine.place.shapes import group
from kerf.engine.supply.holding import Holding
from kerf.engine.supply.offered import OfferedType
from kerf.engine.world import World
from kerf.model.nodepool import NodePool
from kerf.model.pods import Pod
from kerf.testing.builders import a_pod, a_pool, a_snapshot, an_instance_type, cards
from tests.engine.worlds import a_hami_pool, supply_of

OCTET = an_instance_type("octet", cpu=80, memory="640Gi", devices=cards(8, 10_000), price="8.00")


def relaxation_of(pods: Sequence[Pod], offered_types: Sequence[OfferedType]) -> Relaxation:
    """Of new nodes for these pods, before they are looked at by whole cards."""
    return relaxed(Filler(group(pods), Holding(offered_types)), offered_types)


@pytest.mark.parametrize("pool, ask", [(a_pool(), {}), (a_hami_pool(), {"gpumem": 9_000})], ids=["whole", "slices"])
@pytest.mark.parametrize("asked, taken", [((2,), [0, 2, 4, 6, 8]), ((3, 8), [0, 3, 6, 8]), ((5,), [0, 5])])
def test_each_number_that_pods_can_take_is_a_case(
    asked: tuple[int, ...], taken: list[int], pool: NodePool, ask: dict[str, Any]
) -> None:
    """And the cards that are left are for all others."""
    pods = [a_pod(f"p-{count}", gpu=count, **ask) for count in (1, *asked)]
    plain = relaxation_of(pods, supply_of(pool, types=[OCTET]).available)

    found = by_whole_cards(plain)

    assert taken == [whole_cards_of(found, number) for number in range(len(found.types))]
    assert [8 - number for number in taken] == found.cards.tolist()
    alone = found.takes[0]
    assert [number < 8 for number in taken] == alone.tolist()
    assert found.resources[-1] == WHOLE_CARDS


@pytest.mark.parametrize("ask", [{"gpumem": 4_000}, {"gpumem": 9_000, "cores": 0}], ids=["half a card", "alone"])
def test_without_pods_that_take_several_cards_whole_nothing_changes(ask: dict[str, Any]) -> None:
    """Neither for slices with room beside them on two cards, nor for pods with one card."""
    cards_asked = 2 if ask["gpumem"] < 5_000 else 1
    plain = relaxation_of([a_pod(gpu=cards_asked, **ask)], supply_of(a_hami_pool(), types=[OCTET]).available)

    assert by_whole_cards(plain) is plain
    assert whole_cards_of(plain, 0) is None


def test_a_bound_is_near_where_a_case_is_held_to_the_prices_of_another() -> None:
    """Also where all that has a price there is whole cards, of which this case has none."""
    chance = Random(0)
    shapes: list[dict[str, Any]] = [
        {
            "cpu": chance.choice((2, 4, 8, 12, 16, 24, 32)),
            "memory": f"{chance.choice((8, 16, 32, 64, 128))}Gi",
            "gpu": chance.choice((1, 1, 1, 2, 4, 8)),
        }
        for _ in range(40)
    ]
    pods = [a_pod(f"p{number}", **chance.choice(shapes)) for number in range(2_000)]

    cost = decide(World(a_snapshot(pools=[a_pool()], pods=pods), aws.load()), Options()).cost

    assert cost.bound is not None
    assert cost.after_micro <= cost.bound.micro * 1.01
