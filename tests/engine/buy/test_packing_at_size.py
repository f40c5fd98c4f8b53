"""The search for nodes at any number of pods: it ends, gives what the plain recursion gives, and fails for nobody."""

import math
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pytest

from kerf.engine.buy.filling import Filler
from kerf.engine.buy.fullnodes import FillRule, cheapest_per_value, full_nodes, values_of
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.packing import _promising, cheapest_nodes
from kerf.engine.explain.causes import cause_text
from kerf.engine.place.shapes import Shape, group
from kerf.engine.supply.offered import OfferedType
from kerf.model.causes import Name, SearchFailed
from kerf.model.instancetypes import InstanceType
from kerf.model.pods import Pod, PodDemand
from kerf.sharing.family import Refused
from kerf.sharing.hami.family import Hami
from kerf.testing.builders import a_pod, a_pool, an_instance_type
from tests.engine.worlds import G5, G5_2X, G5_12X, M5, M5_2X, a_hami_pool, offer, planned, some, supply_of

SIZES = (1, 7, 960, 996, 1000, 1499, 2500, 2999, 3000, 3001)
ODD = an_instance_type("m5.odd", cpu=7, memory="28Gi", price="0.3")


def seeds() -> Iterator[tuple[int, tuple[InstanceType, ...], Mapping[str, Any]]]:
    """Sizes on one, two and three types, with cards and without; the sizes between are drawn, always the same."""
    random = Random(11)
    between = [random.randint(961, 3000) for _ in range(3)]
    for turn, size in enumerate(sorted({*SIZES, *between})):
        yield size, (G5, G5_2X, G5_12X)[: 1 + turn % 3], {"gpu": 1}
        yield size, (M5, M5_2X, ODD)[: 1 + (turn + 1) % 3], {"cpu": 3}


@pytest.mark.parametrize("size, types, asked", list(seeds()))
def test_each_of_many_equal_pods_gets_a_place(
    size: int, types: Sequence[InstanceType], asked: Mapping[str, Any]
) -> None:
    """However many they are, and however many nodes that takes."""
    decided = planned(some(size, **asked), [a_pool()], types)

    assert () == decided.unplaced
    assert size == sum(len(launch.pods) for launch in decided.launches)


@pytest.mark.parametrize("size", [1000, 2000, 2999])
def test_slices_of_cards_are_bought_at_any_number(size: int) -> None:
    """As in the example of document 003: two pods share a card."""
    decided = planned(some(size, gpu=1, gpumem=1000, cores=50), [a_hami_pool()], [G5])

    assert (math.ceil(size / 2), ()) == (len(decided.launches), decided.unplaced)


@pytest.mark.long
@pytest.mark.parametrize("asked, types", [({"cpu": 1}, (M5, M5_2X)), ({"gpu": 1}, (G5, G5_2X, G5_12X))])
def test_a_hundred_thousand_pods_are_placed(asked: Mapping[str, Any], types: Sequence[InstanceType]) -> None:
    """The search costs shapes and types; only what is written down costs pods."""
    decided = planned(some(100_000, **asked), [a_pool()], types)

    assert 100_000 == sum(len(launch.pods) for launch in decided.launches)


@dataclass(frozen=True)
class Faulty(Hami):
    """HAMi with a bug that pods of the name `bad` meet, `often` times in all."""

    often: int = 1_000_000

    def demand(self, pod: Pod) -> PodDemand | Refused:
        """See Family."""
        met: list[Pod] = self.__dict__.setdefault("met", [])
        if pod.name.startswith("bad") and len(met) < self.often:
            met.append(pod)
            raise RecursionError("maximum recursion depth exceeded")
        return super().demand(pod)


def types_with(family: Hami) -> list[OfferedType]:
    """Two types whose cards that family manages."""
    offered = [offer(a_hami_pool(), kind) for kind in (G5, G5_12X)]
    return [replace(c, target=replace(c.target, family=family, families=(family,))) for c in offered]


def shapes_of(*names: str) -> tuple[Shape, ...]:
    """Two pods of each name, each name of other slices."""
    return tuple(shape for n, name in enumerate(names) for shape in group(some(2, name, gpu=1, gpumem=20_000 + n)))


def test_a_shape_that_cannot_be_planned_is_left_alone() -> None:
    """The others get their nodes, and the note names it."""
    bought = cheapest_nodes(shapes_of("a", "bad", "c"), types_with(Faulty()), Ledger((), {}))

    assert [0, 2, 0] == bought.left
    assert 4 == sum(load.pods * times for load, times in bought.loads)
    assert "no node is planned for pod default/bad-0 and 1 like it: RecursionError" == cause_text(bought.notes[1])


def test_a_search_that_fails_still_buys_for_every_pod() -> None:
    """Filled first-fit, with a note; what the failed search has charged is charged once."""
    ledger = Ledger((), {})

    bought = cheapest_nodes(shapes_of("a", "bad"), types_with(Faulty(often=1)), ledger)

    assert [0, 0] == bought.left
    assert (SearchFailed(Name("RecursionError")),) == bought.notes
    assert sum(times for _, times in bought.loads) == ledger.used("pool")["nodes"]


def test_a_search_that_holds_has_no_note() -> None:
    """A note means that something went wrong."""
    assert () == cheapest_nodes(shapes_of("a", "b"), types_with(Hami()), Ledger((), {})).notes


def test_two_hundred_groups_need_no_deep_stack() -> None:
    """A thousand pods that take a node each, in groups of five."""
    pods = [
        a_pod(f"g{n:03}-{i}", cpu=3, labels={"kerf.dev/pod-group": f"g{n:03}", "kerf.dev/pod-group-min": "5"})
        for n in range(200)
        for i in range(5)
    ]

    assert 1000 == len(planned(pods, [a_pool(limits={"nodes": 1000})], [M5]).launches)


def test_what_is_remembered_of_a_node_grows_with_its_shapes_and_not_with_all() -> None:
    """Thousands of pairs that must share nodes are filled one by one, and each of them is remembered."""
    shapes = group([a_pod(f"p-{number}", cpu=f"{number + 1}m") for number in range(3000)])
    filler, offered = Filler(shapes), offer(a_pool(), M5)

    def filled(number: int) -> None:
        asked = np.zeros(len(shapes), dtype=np.int64)
        asked[number : number + 2] = 1
        assert filler.fill(offered, asked) is not None

    filled(0)
    tracemalloc.start()
    for number in range(1, 201):
        filled(number)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert held < 200 * 8 * len(shapes) / 4


@pytest.mark.parametrize("seed", range(30))
def test_a_type_that_is_not_tried_alone_is_no_better(seed: int) -> None:
    """What is known of cpu, memory and equal pods leaves out no type that holds as many of the pods for as little."""
    chance, types = Random(seed), (G5, G5_2X, G5_12X, M5, M5_2X, ODD)
    pods = []
    for number in range(chance.randint(1, 6)):
        asked: dict[str, Any] = {"cpu": f"{chance.randint(200, 9000)}m", "memory": f"{chance.randint(1, 40)}Gi"}
        asked |= {"gpu": 1, "gpumem": chance.randint(1000, 22000)} if chance.random() < 0.5 else {}
        pods += some(chance.randint(1, 8), f"p{number}", **asked)
    offered_types = supply_of(a_hami_pool(), types=types).available
    filler, ledger = Filler(group(pods)), Ledger((), {})
    left = [len(shape) for shape in filler.shapes]
    values = values_of(filler, offered_types, left)
    best = full_nodes(filler, offered_types, values, left, ledger, FillRule(cheapest_per_value))

    tried = set(map(id, _promising(filler, offered_types, left, best)))

    for only in offered_types:
        if id(only) not in tried:
            assert full_nodes(filler, [only], values, left, ledger, FillRule(cheapest_per_value)).rank > best.rank
