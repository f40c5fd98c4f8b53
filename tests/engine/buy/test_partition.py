"""The cheapest nodes for few pods are found exactly."""

from collections.abc import Sequence
from functools import cache
from itertools import product
from operator import sub

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.buy.filling import Filler
from kerf.engine.buy.partition import cheapest_partition
from kerf.engine.place.shapes import group
from kerf.model.instancetypes import InstanceType
from kerf.testing.builders import a_pod, a_pool, an_instance_type, cards
from tests.engine.worlds import M5, M5_2X, a_hami_pool, per_hour, planned, some, supply_of
from tests.examples import examples

ONE = an_instance_type("one", cpu=8, memory="128Gi", devices=cards(1, 40000), price="2.50")
TWO = an_instance_type("two", cpu=32, memory="32Gi", devices=cards(2, 24000), price="3.80")
LARGE = an_instance_type("large", cpu=48, memory="192Gi", devices=cards(4, 24000), price="9.50")


def test_the_first_node_leaves_out_a_pod_that_would_fit() -> None:
    """A card of 40000 MiB holds three of 12000; where each has one with half of the cores, two nodes are enough."""
    pods = [
        *some(2, "a", gpu=1, gpumem=12000, cores=50, cpu=1, memory="4Gi"),
        *some(2, "b", gpu=1, gpumem=12000, cores=30, cpu=1, memory="1Gi"),
        a_pod("c", gpu=1, gpumem=8000, cores=0, cpu=2, memory="4Gi"),
        a_pod("d", gpu=1, gpumem=12000, cores=0, cpu=1, memory="7Gi"),
    ]

    assert 5_000_000 == per_hour(planned(pods, [a_hami_pool()], [ONE, LARGE]))


def test_a_card_is_shared_by_those_that_leave_the_other_whole() -> None:
    """Seven pods of four kinds need two nodes of two cards, and not three."""
    pods = [
        a_pod("a", gpu=1, gpumem=16800, cores=10, cpu=3, memory="4Gi"),
        *some(2, "b", gpu=1, gpumem=12000, cores=50, cpu=5, memory="12Gi"),
        *some(3, "c", gpu=1, gpumem=12000, cores=50, cpu=1, memory="7Gi"),
        a_pod("d", gpu=1, gpumem=7000, cores=10, cpu=5, memory="7Gi"),
    ]

    assert 7_600_000 == per_hour(planned(pods, [a_hami_pool()], [TWO]))


def test_a_pod_that_no_type_holds_is_left() -> None:
    """The others have their nodes."""
    filler = Filler(group([*some(2, "small", cpu=1), a_pod("huge", cpu=99)]))
    counts = tuple(len(shape) for shape in filler.shapes)
    huge = next(number for number, shape in enumerate(filler.shapes) if shape.pod.name == "huge")

    found = cheapest_partition(filler, supply_of(a_pool(), types=[M5]).available, counts)

    assert [int(number == huge) for number in range(2)] == found.left
    assert 1 == len(found.loads)


AMOUNTS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 20)), min_size=1, max_size=3)


@examples(60)
@given(AMOUNTS, st.lists(st.sampled_from([M5, M5_2X]), min_size=1, max_size=2, unique=True))
def test_it_is_the_cheapest_of_all_ways(amounts: Sequence[tuple[int, int, int]], types: Sequence[InstanceType]) -> None:
    """By the definition: any set that a node holds first, then the rest."""
    pods = [
        pod
        for n, (count, cpu, memory) in enumerate(amounts)
        for pod in some(count, f"s{n}", cpu=cpu, memory=f"{memory}Gi")
    ]
    offered_types = supply_of(a_pool(), types=types).available
    filler = Filler(group(pods))
    left = tuple(len(shape) for shape in filler.shapes)

    @cache
    def least(asked: tuple[int, ...]) -> tuple[int, int]:
        found = (sum(asked), 0)
        for node in product(*(range(count + 1) for count in asked)):
            for offered in offered_types if any(node) else ():
                load = filler.fill(offered, node)
                if load is not None and load.counts == node:
                    unserved, price = least(tuple(map(sub, asked, node)))
                    found = min(found, (unserved, price + load.offering.price_micro))
        return found

    found = cheapest_partition(filler, offered_types, left)

    assert least(left) == found.rank[:2]
