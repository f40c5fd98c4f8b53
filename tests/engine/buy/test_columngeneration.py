"""Purchases by prices: whole nodes that are found, the mix that is bought, and what is left to the other search."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, combinations_with_replacement
from random import Random
from typing import Any

import numpy as np
import pytest

from kerf.engine.buy.bound import lower_bound
from kerf.engine.buy.cardfills import fills_of_a_card
from kerf.engine.buy.columngeneration import MOST_ROUNDS, Column, Search, columns_of, most_kinds, turns_of
from kerf.engine.buy.dominance import undominated
from kerf.engine.buy.filling import Filler, Purchase
from kerf.engine.buy.firstfit import first_fit
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.nodepricing import NodePricing
from kerf.engine.buy.packing import Effort, cheapest_nodes
from kerf.engine.buy.priced import filled, priced
from kerf.engine.buy.pricesplits import split
from kerf.engine.buy.relaxation import Relaxation, relaxed
from kerf.engine.explain.causes import cause_text
from kerf.engine.place.shapes import group
from kerf.engine.supply.holding import Holding
from kerf.engine.supply.offered import OfferedType
from kerf.model.causes import FilledOneByOne, TooManyKinds
from kerf.model.constraints import ZONE
from kerf.model.instancetypes import ON_DEMAND, InstanceType, Offering
from kerf.model.nodepool import NodePool
from kerf.model.pods import Pod
from kerf.testing.builders import a_pool, an_instance_type, cards
from tests.engine.worlds import G5, G5_2X, G5_12X, M5, M5_2X, a_hami_pool, port_spec, some, supply_of

TYPES = (G5, G5_2X, G5_12X)
PAIR = an_instance_type("pair", cpu=20, memory="80Gi", devices=cards(2), price="2.10")
TRIPLE = an_instance_type("triple", cpu=24, memory="96Gi", devices=cards(3), price="3.00")


def offered_by(pool: NodePool, types: Sequence[InstanceType], pods: Sequence[Pod]) -> tuple[Filler, list[OfferedType]]:
    """Shapes of the pods, and the types that are worth a look."""
    available = supply_of(pool, types=types).available
    filler = Filler(group(pods), Holding(available))
    return filler, undominated(filler, available, [len(shape) for shape in filler.shapes])


def slices(chance: Random, kinds: int, most: int) -> list[Pod]:
    """Pods of so many kinds, up to so many each: slices, whole cards, and some without a card."""
    pods: list[Pod] = []
    for kind in range(kinds):
        asked: dict[str, Any] = {
            "cpu": f"{chance.randrange(200, 6000)}m",
            "memory": f"{chance.randrange(256, 16000)}Mi",
        }
        style = chance.random()
        if style < 0.7:
            asked |= {"gpu": 1, "gpumem": chance.randrange(1000, 20000)}
        elif style < 0.9:
            asked |= {"gpu": chance.choice((1, 1, 2, 4))}
        pods += some(chance.randrange(1, most), f"p{kind}", **asked)
    return pods


def total(purchase: Purchase) -> int:
    """What it costs in an hour, in micro-units."""
    return purchase.rank[1]


def priced_for(pods: Sequence[Pod], pool: NodePool, types: Sequence[InstanceType]) -> tuple[Purchase, Filler]:
    """A purchase by prices alone."""
    filler, useful = offered_by(pool, types, pods)
    found = priced(filler, useful, [len(shape) for shape in filler.shapes], Ledger((), {}))
    assert found is not None
    return found.purchase, filler


# Ways to fill one card.


def relaxation_of(pods: Sequence[Pod], *types: InstanceType) -> tuple[Relaxation, Filler]:
    """Of pods that all fit on some of the types."""
    filler, useful = offered_by(a_hami_pool(), types, pods)
    return relaxed(filler, useful), filler


def test_every_way_to_fill_a_card_is_listed_once() -> None:
    """By memory: thirds, halves and quarters of a card."""
    sizes = (12000, 8000, 6000)
    pods = [pod for number, size in enumerate(sizes) for pod in some(9, f"p{number}", gpu=1, gpumem=size)]
    relaxation, filler = relaxation_of(pods, G5)
    memory = [int(shape.pod.spec.containers[0].limits["nvidia.com/gpumem"]) for shape in filler.shapes]
    card = relaxation.types[0].room.devices[0]

    found = fills_of_a_card(relaxation.groups[0], card, np.ones(3), 1_000)

    expected = {
        way
        for count in range(card.memory_mib // min(sizes) + 1)
        for way in combinations_with_replacement(range(3), count)
        if sum(memory[each] for each in way) <= card.memory_mib
    }
    listed = [tuple(each for each in way if each < 3) for way in found.tolist()]
    assert expected == set(listed)
    assert len(expected) == len(listed)


def test_a_slot_counts_as_memory_does() -> None:
    """A card that ten pods may share holds no eleventh, however small."""
    relaxation, _ = relaxation_of(some(40, gpu=1, gpumem=100), G5)
    card = relaxation.types[0].room.devices[0]

    found = fills_of_a_card(relaxation.groups[0], card, np.ones(1), 1_000)

    assert card.slots == max(int((way < 1).sum()) for way in found)


# Whole nodes.


def pricings(pods: Sequence[Pod], *types: InstanceType) -> tuple[list[NodePricing], Relaxation, Filler]:
    """By type."""
    relaxation, filler = relaxation_of(pods, *types)
    found = []
    for number, offered in enumerate(relaxation.types):
        kind = relaxation.groups[int(relaxation.group[number])]
        fills = fills_of_a_card(kind, offered.room.devices[0], np.ones(len(filler.shapes)), 15_000)
        takers = relaxation.takes[:, number]
        found.append(NodePricing(relaxation, number, takers, float(offered.price_micro), fills))
    return found, relaxation, filler


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", [G5_2X, PAIR, TRIPLE, G5_12X], ids=lambda kind: kind.name)
def test_nodes_hold_what_they_are_said_to_hold(kind: InstanceType, seed: int) -> None:
    """Card by card, as the family places them; and none is worth more than is said to be the most."""
    chance = Random(seed)
    (pricing,), relaxation, filler = pricings(slices(chance, 8, 30), kind)
    prices = np.array([chance.uniform(0.0, 2e6) for _ in filler.shapes]) * relaxation.takes[:, 0]

    found = pricing.best(prices, 0.0, 50, each_shape=True)

    assert len(found.counts)
    assert np.allclose(found.worth, found.counts @ prices)
    assert (found.worth <= found.most * (1 + 1e-6)).all()
    for counts in found.counts:
        assert is_possible(relaxation, counts)
    rows = [np.minimum(counts, relaxation.demand) for counts in found.counts]
    exact = 0
    for row in rows:
        load = filled(filler, Column(relaxation.types[0], row, turns_of(relaxation, 0)), row)
        exact += load is not None and load.pods == int(row.sum())
    assert exact >= 0.7 * len(found.counts)


_Cards = tuple[tuple[int, ...], ...]


def is_possible(relaxation: Relaxation, counts: np.ndarray) -> bool:
    """Whether sums allow the node, and some way to deal out the slices lets each card hold its own."""
    group_of = relaxation.groups[0]
    card = relaxation.types[0].room.devices[0]
    sums = group_of.sums
    named = [not relaxation.resources[at].startswith("places of shape ") for at in sums.tolist()]
    if (counts @ group_of.asked[:, sums] > relaxation.amounts[0, sums])[named].any():
        return False
    pods = [
        [
            size
            for size, many in zip(group_of.sizes, row.tolist(), strict=True)
            if isinstance(size, tuple)
            for _ in range(many)
        ]
        for row, count in zip(group_of.slices, counts.tolist(), strict=True)
        for _ in range(count)
    ]
    pods = sorted((pod for pod in pods if pod), reverse=True)
    empty: _Cards = ((0, 0, 0),) * int(relaxation.cards[0])
    states = {empty}
    for pod in pods:
        states = {more for state in states for more in dealt(state, pod, (card.memory_mib, card.cores, card.slots))}
    return bool(states)


def dealt(state: _Cards, pod: list[tuple[int, int]], card: tuple[int, ...]) -> set[_Cards]:
    """The cards with the pod's slices on different ones, in each way that differs."""
    found = set()
    for chosen in combinations(range(len(state)), len(pod)):
        after = list(state)
        for at, size in zip(chosen, pod, strict=True):
            after[at] = tuple(map(sum, zip(state[at], (*size, 1), strict=True)))
        if all(have <= most for each in after for have, most in zip(each, card, strict=True)):
            found.add(tuple(sorted(after)))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_best_node_is_nearly_found(seed: int) -> None:
    """Compared with all loads of a small node, one by one."""
    chance = Random(seed)
    (pricing,), relaxation, filler = pricings(slices(chance, 5, 5), PAIR)
    prices = np.array([chance.uniform(0.0, 2e6) for _ in filler.shapes]) * relaxation.takes[:, 0]

    found = pricing.best(prices, 0.0, 10, each_shape=False)

    best = max((float(np.array(counts) @ prices) for counts in loads(filler, relaxation.types[0])), default=0.0)
    assert 0.97 * best <= float(found.worth.max())
    assert best <= found.most * (1 + 1e-6)


def loads(filler: Filler, offered: OfferedType) -> set[tuple[int, ...]]:
    """What one node can hold, of all pods there are."""
    none = (0,) * len(filler.shapes)
    seen, waiting = {none}, [none]
    while waiting:
        counts = waiting.pop()
        for number, shape in enumerate(filler.shapes):
            more = tuple(count + (at == number) for at, count in enumerate(counts))
            if more not in seen and more[number] <= len(shape):
                load = filler.fill(offered, more)
                if load is not None and load.counts == more:
                    seen.add(more)
                    waiting.append(more)
    return seen


def test_each_shape_has_a_node_with_it() -> None:
    """Also one that is not worth its price."""
    pods = [
        *some(9, "large", gpu=1, gpumem=9000),
        *some(9, "cheap", gpu=1, gpumem=20000, cpu=1),
        *some(9, "two", gpu=2),
    ]
    (pricing,), _, _ = pricings(pods, G5_12X)

    found = pricing.best(np.array([1e6, 1e3, 1e3]), 1e6, 1, each_shape=True)

    assert found.counts.any(axis=0).all()


# The mix.


@pytest.mark.parametrize("seed", range(10))
def test_columns_cover_most_pods_at_their_price(seed: int) -> None:
    """Of every type that takes them, with pods without cards among them; the rest has no good columns."""
    filler, useful = offered_by(a_hami_pool(), (*TYPES, PAIR, M5, M5_2X), slices(Random(seed), 12, 40))
    relaxation = relaxed(filler, useful)
    plain, whole = split(filler, relaxation)
    everything = list(range(len(useful)))

    found = columns_of(filler, relaxation, everything, (whole or plain).worth, Ledger((), {}), Search(80))

    covered = sum(column.counts * times for column, times in found.bought)
    price = sum(column.offered.price_micro * times for column, times in found.bought)
    served = np.minimum(covered, relaxation.demand)
    assert 0.75 * relaxation.demand.sum() <= served.sum()
    assert price <= 1.01 * found.parts_micro


def test_prices_choose_for_so_many_kinds_as_there_is_time_for() -> None:
    """Beyond that full nodes are bought, and a note says so."""
    most = most_kinds(1)
    pods = [pod for number in range(most + 1) for pod in some(2, f"p{number}", cpu=f"{1000 + number}m")]
    available = supply_of(a_pool(), types=[M5, M5_2X]).available

    few = cheapest_nodes(group(pods[2:]), available, Ledger((), {}), effort=Effort(1))
    many = cheapest_nodes(group(pods), available, Ledger((), {}), effort=Effort(1))

    assert not any(isinstance(note, TooManyKinds) for note in few.notes)
    assert (TooManyKinds(most + 1, most),) == many.notes
    assert not any(many.left)


def test_pods_that_prices_cannot_choose_for_are_counted_in_a_note() -> None:
    """Those that go by who shares their node, and those that need host ports; nothing where there are none."""
    pods = [*some(30, "a", cpu=1), *some(30, "b", cpu=2)]
    with_ports = [replace(pod, name=f"{pod.name}-port", spec=port_spec(80)) for pod in some(3, "c", cpu=1)]
    available = supply_of(a_pool(), types=[M5, M5_2X]).available

    plain = cheapest_nodes(group(pods), available, Ledger((), {}))
    found = cheapest_nodes(group([*pods, *with_ports]), available, Ledger((), {}))

    assert () == plain.notes
    assert (FilledOneByOne(0, 3),) == found.notes
    assert "3 pods with host ports" in cause_text(found.notes[0])
    assert not any(found.left)


# Limits.

WIDE = an_instance_type("wide", cpu=16, memory="32Gi", price="0.50")
NARROW = an_instance_type("narrow", cpu=8, memory="32Gi", price="0.60")


@pytest.mark.parametrize("limit", [1000, 400, 336, 304, 272, 240, 208])
def test_a_limit_that_binds_leads_to_the_cheapest_nodes_under_it(limit: int) -> None:
    """Nodes that take less of it cost more: as few of these as the limit asks for, and all pods have a place."""
    pods = [*some(40, "a", cpu=1, memory="7Gi"), *some(60, "b", cpu=1, memory="7500Mi")]
    available = supply_of(a_pool(limits={"cpu": limit}), types=[WIDE, NARROW]).available
    ledger = Ledger([each.pool for each in available], {})
    shapes = group(pods)
    each = Filler(shapes, Holding(available)).held_by(available, np.arange(2)).max()
    nodes = -(-len(pods) // int(each))

    purchase = cheapest_nodes(shapes, available, ledger)

    pairs = [(wide, nodes - wide) for wide in range(nodes + 1)]
    least = min(500_000 * wide + 600_000 * narrow for wide, narrow in pairs if 16 * wide + 8 * narrow <= limit)
    assert not any(purchase.left)
    assert least == total(purchase)
    assert ledger.used("pool")["cpu"] <= limit * 1000


@pytest.mark.parametrize("seed", range(8))
def test_under_a_limit_as_many_pods_have_a_node_as_where_nodes_are_filled_first_fit(seed: int) -> None:
    """Or more; and the limit holds."""
    chance = Random(seed)
    pods = slices(chance, 8, 40)
    types = (*TYPES, PAIR, M5, M5_2X)
    free = supply_of(a_hami_pool(), types=types).available
    needed = Ledger((), {})
    cheapest_nodes(group(pods), free, needed)
    (name,) = {each.pool.name for each in free}
    limits = {"cpu": needed.used(name)["cpu"] * chance.randrange(50, 100) // 100_000}
    available = supply_of(a_hami_pool(limits=limits), types=types).available
    ledger = Ledger([each.pool for each in available], {})
    shapes = group(pods)

    found = cheapest_nodes(shapes, available, ledger)

    other = first_fit(shapes, available, Ledger([each.pool for each in available], {}))
    assert sum(found.left) <= sum(other.left)
    assert ledger.used(name)["cpu"] <= limits["cpu"] * 1000


@pytest.mark.parametrize("seed", range(10))
def test_a_purchase_by_prices_is_exact_and_close(seed: int) -> None:
    """Every pod once, every node as it was filled, and near what the pods cost at least."""
    pods = slices(Random(seed), 14, 200)
    types = (*TYPES, PAIR, M5, M5_2X)
    bound = lower_bound(group(pods), supply_of(a_hami_pool(), types=types).available)
    purchase, filler = priced_for(pods, a_hami_pool(), types)

    held = np.zeros(len(filler.shapes), dtype=np.int64)
    for load, times in purchase.loads:
        held += np.array(load.counts) * times
    assert (held + np.array(purchase.left) == [len(shape) for shape in filler.shapes]).all()
    assert bound is not None
    assert bound <= total(purchase) or any(purchase.left)
    whole = cheapest_nodes(filler.shapes, supply_of(a_hami_pool(), types=types).available, Ledger((), {}))
    assert not any(whole.left)
    assert total(whole) <= 1.06 * bound


def test_of_several_dives_each_is_made_to_its_end() -> None:
    """With many rounds several are made. The later ones ended at once, and left to full nodes what they had not come
    to."""
    pods = slices(Random(1), 15, 60)
    filler, types = offered_by(a_hami_pool(), (*TYPES, PAIR), pods)

    left = [len(shape) for shape in filler.shapes]

    once, often = (priced(filler, types, left, Ledger((), {}), most_rounds=rounds) for rounds in (MOST_ROUNDS, 160))

    assert once is not None
    assert often is not None
    assert sum(often.purchase.left) <= sum(once.purchase.left) <= 1


def test_pods_of_two_zones_are_not_put_together() -> None:
    """Each node is in one; pods that ask for none may be in both."""
    near, far = ({"selector": {ZONE: f"us-east-1{letter}"}} for letter in "ab")
    types = [an_instance_type("z", cpu=8, memory="32Gi", price="0.4", zones=("us-east-1a", "us-east-1b"))]
    pods = [*some(25, "a", cpu=3, **near), *some(25, "b", cpu=3, **far), *some(40, "c", cpu=1)]

    purchase, filler = priced_for(pods, a_pool(), types)

    assert 0.9 * len(pods) <= len(pods) - sum(purchase.left)
    for load, _ in purchase.loads:
        assert len({filler.shapes[n].pod.name[0] for n, _ in load.held} & {"a", "b"}) <= 1


def test_what_prices_cannot_choose_for_is_left() -> None:
    """Pods that need a port are bought for by full nodes."""
    pods = [*some(40, "p", cpu=1), *some(40, "q", cpu=2), *some(3, "port", spec=port_spec(80))]

    purchase, filler = priced_for(pods, a_pool(), [M5, M5_2X])

    left = {filler.shapes[number].pod.name: count for number, count in enumerate(purchase.left)}
    assert 3 == left["port-0"]
    assert 8 >= left["p-0"] + left["q-0"]
    whole = cheapest_nodes(group(pods), supply_of(a_pool(), types=[M5, M5_2X]).available, Ledger((), {}))
    assert not any(whole.left)


def test_a_limit_cuts_off_what_is_bought() -> None:
    """And no node is bought beyond it."""
    pool = a_pool(limits={"cpu": "40"})
    pods = [*some(40, "p", cpu=1), *some(40, "q", cpu=2)]
    filler, useful = offered_by(pool, [M5, M5_2X], pods)
    found = priced(filler, useful, [len(shape) for shape in filler.shapes], Ledger([pool], {}))

    assert found is not None
    assert any(found.purchase.left)
    assert 40_000 >= sum(load.offered.kind.capacity["cpu"] * times for load, times in found.purchase.loads)


def test_few_pods_or_one_kind_need_no_prices() -> None:
    """Full nodes are as good there."""
    for pods in (some(5000, cpu=1), [*some(9, "p", cpu=1), *some(9, "q", cpu=2)]):
        filler, useful = offered_by(a_pool(), [M5, M5_2X], pods)
        assert priced(filler, useful, [len(shape) for shape in filler.shapes], Ledger((), {})) is None


def test_the_pods_of_a_shape_that_are_left_over_are_not_bought_for_twice() -> None:
    """`left` counts, and not the shapes."""
    pods = [*some(100, "p", cpu=1), *some(100, "q", cpu=2)]
    filler, useful = offered_by(a_pool(), [M5, M5_2X], pods)
    found = priced(filler, useful, [30, 20], Ledger((), {}))

    assert found is not None
    held = sum(np.array(load.counts) * times for load, times in found.purchase.loads)
    assert [30, 20] == (held + np.array(found.purchase.left)).tolist()


def test_who_asks_for_no_zone_pays_for_none() -> None:
    """A type that is dear in the zone of others is still the cheapest for pods that may be in its cheap one."""
    cheap, dear = (
        Offering(f"us-east-1{letter}", ON_DEMAND, price) for letter, price in (("a", 400_000), ("b", 4_000_000))
    )
    both = an_instance_type("both", cpu=8, memory="32Gi", zones=("us-east-1a", "us-east-1b"), offerings=(cheap, dear))
    other = an_instance_type("other", cpu=8, memory="32Gi", price="0.60")
    far = some(8, "far", cpu=3, selector={ZONE: "us-east-1b"})

    purchase, _ = priced_for([*far, *some(70, "free", cpu=1), *some(70, "small", cpu="500m")], a_pool(), [both, other])

    assert 4 >= sum(purchase.left)
    assert {"both"} == {load.offered.kind.name for load, _ in purchase.loads}
