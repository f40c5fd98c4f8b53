"""The lower bound beside the exact optimum of small cases, found by trying everything."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.catalog import aws
from kerf.engine.buy.bound import proven
from kerf.engine.place.fit import Placed, fit
from kerf.engine.place.shapes import Shape, group
from kerf.engine.supply.offered import OfferedType
from kerf.model.gpu import NVIDIA_GPU, DeviceShape
from kerf.model.instancetypes import InstanceType
from kerf.model.lowerbound import Ignored, LowerBound
from kerf.model.nodepool import NodePool
from kerf.model.pods import Container, Pod
from kerf.model.quantities import Resources
from kerf.sharing.nvidia.choice import MIG_CONFIGS
from kerf.sharing.nvidia.replicas import REPLICAS_LABEL, STRATEGY_LABEL
from kerf.testing.builders import (
    GPUCORES,
    GPUMEM,
    a_container,
    a_node,
    a_pod,
    a_pool,
    an_instance_type,
    cards,
    resources,
)
from tests.engine.worlds import a_hami_pool, per_hour, planned, supply_of
from tests.examples import examples
from tests.sharing.nvidia.builders import LAYOUT, STRATEGY

Draw = Callable[..., Any]
A100 = next(shape for kind in aws.load().types if kind.name == "p4d.24xlarge" for shape in kind.devices)
MIG = {"kerf.dev/hami-mode": "mig"}
POOLS: dict[str, NodePool] = {
    "cpu": a_pool(),
    "whole": a_pool(),
    "hami": a_hami_pool(),
    "mig": a_hami_pool(annotations=MIG),
    "time-slicing": a_pool(labels={STRATEGY_LABEL: "time-slicing", REPLICAS_LABEL: "3"}),
    "mps": a_pool(labels={STRATEGY_LABEL: "mps", REPLICAS_LABEL: "3"}),
    "percentages": a_hami_pool(),
    "unlike cards": a_hami_pool(),
    "instances": a_pool(labels={LAYOUT: "all-2g.10gb", STRATEGY: "mixed"}),
    "several instances": a_pool(labels={LAYOUT: "all-balanced", STRATEGY: "mixed"}),
    "chosen instances": a_pool(annotations={MIG_CONFIGS: "all-2g.10gb, all-balanced"}, labels={STRATEGY: "mixed"}),
}
MODELS: Mapping[str, tuple[DeviceShape, ...]] = {
    "mig": (A100,),
    **dict.fromkeys(("instances", "several instances", "chosen instances"), (A100,)),
}
"""Cards of the kinds whose cards are no plain ones."""
OF_SEVERAL = ("mps", "percentages", "unlike cards", "instances", "several instances", "chosen instances")
"""Kinds whose pods have several containers."""


def cheapest(pods: Sequence[Pod], offered_types: Sequence[OfferedType]) -> int | None:
    """Micro-units per hour of the cheapest nodes for all pods, by dynamic programming over sets; None where none is.

    A node holds a set when its pods can come to it in some order.
    """
    shapes = [Shape((pod,)) for pod in pods]

    def holds(offered: OfferedType, numbers: Sequence[int]) -> bool:
        return any(_comes(offered, [shapes[n] for n in order]) for order in permutations(numbers))

    price: dict[frozenset[int], int] = {}
    for offered in offered_types:
        least = min(offering.price_micro for offering in offered.offerings)
        for size in range(1, len(pods) + 1):
            for numbers in combinations(range(len(pods)), size):
                if price.get(frozenset(numbers), least + 1) > least and holds(offered, numbers):
                    price[frozenset(numbers)] = least

    @cache
    def of(left: frozenset[int]) -> int | None:
        if not left:
            return 0
        first = min(left)
        found = [
            cost + rest
            for held, cost in price.items()
            if first in held <= left and (rest := of(left - held)) is not None
        ]
        return min(found, default=None)

    return of(frozenset(range(len(pods))))


def _comes(offered: OfferedType, order: Sequence[Shape]) -> bool:
    room = offered.room
    for shape in order:
        placed = fit(offered.target, room, shape)
        if not isinstance(placed, Placed):
            return False
        room = placed.room
    return True


@st.composite
def cases(draw: Draw, kind: str) -> tuple[list[Pod], list[InstanceType]]:
    """Up to five pods of up to three shapes, and up to three types."""
    types = [
        an_instance_type(
            f"type-{number}",
            cpu=draw(st.integers(2, 12)),
            memory=f"{draw(st.integers(4, 40))}Gi",
            devices=_devices(draw, kind),
            price=f"{draw(st.integers(0, 40)) / 8}",
        )
        for number in range(draw(st.integers(1, 3)))
    ]
    specs = [_spec(draw, kind) for _ in range(draw(st.integers(1, 3)))]
    count = draw(st.integers(1, 5))
    return [replace(draw(st.sampled_from(specs)), name=f"p-{number}") for number in range(count)], types


def _devices(draw: Draw, kind: str) -> tuple[DeviceShape, ...]:
    if kind == "cpu":
        return ()
    count: int = draw(st.integers(1, 1 if kind == "mig" else 3))
    if kind == "unlike cards":
        return tuple(card for _ in range(count) for card in cards(1, draw(st.sampled_from((10_000, 15_001, 20_000)))))
    return MODELS.get(kind, cards(1, 10_000)) * count


def _asked(draw: Draw, kind: str) -> Mapping[str, int]:
    """What one container asks of cards."""
    count = draw(st.integers(1, 3))
    if kind in ("whole", "time-slicing", "mps"):
        return {NVIDIA_GPU: 1 if kind == "mps" else count}
    if kind in ("instances", "several instances", "chosen instances"):
        if kind == "instances":
            return {"nvidia.com/mig-2g.10gb": count}
        return {f"nvidia.com/mig-{draw(st.sampled_from(('1g.5gb', '1g.5gb', '2g.10gb', '3g.20gb')))}": min(count, 2)}
    percent, cores = draw(st.sampled_from((0, 19, 34, 50, 51, 67, 100))), draw(st.sampled_from((0, 19, 50, 60)))
    memory = draw(st.sampled_from((0, 1900, 4700, 5100, 8100, 10_000))) if kind == "unlike cards" else 0
    asked = {GPUMEM: memory} if memory else {"nvidia.com/gpumem-percentage": percent} if percent else {}
    return {NVIDIA_GPU: min(count, 2), **asked, **({GPUCORES: cores} if cores else {})}


def _of_several(draw: Draw, kind: str) -> Pod:
    """A pod of one to three containers, and sometimes one that comes before them or stays beside them."""

    def container(name: str, *, is_sidecar: bool = False) -> Container:
        held = Resources(_asked(draw, kind)) if name == "main" or draw(st.integers(0, 2)) else Resources()
        amounts = resources(cpu=draw(st.integers(1, 3)), memory=f"{draw(st.integers(1, 4))}Gi") + held
        return Container(name, amounts, amounts, is_sidecar=is_sidecar)

    names = ("main", "second", "third")[: draw(st.sampled_from((1, 1, 1, 2, 3)))]
    before = () if draw(st.integers(0, 3)) else (container("init", is_sidecar=draw(st.booleans())),)
    return a_pod(containers=tuple(map(container, names)), init_containers=before)


def _spec(draw: Draw, kind: str) -> Pod:
    sizes = {"cpu": draw(st.integers(1, 6)), "memory": f"{draw(st.integers(1, 12))}Gi"}
    if kind == "cpu" or not draw(st.integers(0, 3)):
        return a_pod(**sizes)
    if kind in OF_SEVERAL or (kind in ("whole", "time-slicing") and draw(st.booleans())):
        return _of_several(draw, kind)
    if kind in ("whole", "time-slicing"):
        return a_pod(**sizes, gpu=draw(st.integers(1, 3)))
    if kind == "mig":
        return a_pod(**sizes, gpu=1, gpumem=draw(st.sampled_from((3000, 9000, 15000, 19000, 39000))))
    memory, cores = (
        st.sampled_from((0, 500, 1900, 3400, 4700, 5100, 8100, 10_000)),
        st.sampled_from((0, 19, 50, 60, 100)),
    )
    slices = [{"gpu": draw(st.integers(1, 2)), "gpumem": draw(memory), "cores": draw(cores)} for _ in range(2)]
    containers = [a_container("main", **sizes, **slices[0])]
    if not draw(st.integers(0, 3)):
        containers.append(a_container("side", **slices[1]))
    initial = () if draw(st.integers(0, 4)) else (a_container("init", **slices[1]),)
    return a_pod(containers=tuple(containers), init_containers=initial)


@pytest.mark.parametrize("kind", POOLS)
def test_no_nodes_cost_less_than_the_bound(kind: str) -> None:
    """Neither the cheapest that there are nor those of the plan; and a bound is None where some pod fits nowhere."""
    pool = POOLS[kind]

    @given(cases(kind))
    @examples(40, derandomize=True)
    def law(case: tuple[list[Pod], list[InstanceType]]) -> None:
        pods, types = case
        offered_types = supply_of(pool, types=types).available
        bound, best = proven(group(pods), offered_types), cheapest(pods, offered_types)
        assert (bound is None) == (best is None)
        if bound is not None and best is not None:
            assert bound.micro <= best
            plan = planned(pods, [pool], types)
            assert plan.unplaced or bound.micro <= per_hour(plan)

    law()


@given(cases("cpu"))
@examples(60, derandomize=True)
def test_the_bound_beside_a_node_heeds_that_pods_could_go_there(case: tuple[list[Pod], list[InstanceType]]) -> None:
    """Whichever pods the node of four cores and 16 GiB takes, the others cost no less."""
    pods, types = case
    bound = planned(pods, [POOLS["cpu"]], types, nodes=[a_node()]).cost.bound
    offered_types = supply_of(POOLS["cpu"], types=types).available

    def fits(held: Sequence[Pod]) -> bool:
        return sum(pod.spec.requests["cpu"] for pod in held) <= 4000 and (
            sum(pod.spec.requests["memory"] for pod in held) <= 16 * 2**30
        )

    rests = [
        [pod for pod in pods if pod not in held]
        for size in range(len(pods) + 1)
        for held in combinations(pods, size)
        if fits(held)
    ]
    costs = [cost for rest in rests if (cost := cheapest(rest, offered_types)) is not None]

    assert bound is None or not costs or bound.micro <= min(costs)


def test_the_bound_is_the_same_in_any_order() -> None:
    """Of pods and of types; equal values have one proof."""
    sizes = [(1, 3400), (2, 1900), (3, 4700), (1, 8100)]
    pods = [a_pod(f"p-{n}", cpu=cpu, gpu=1, gpumem=memory) for n, (cpu, memory) in enumerate(sizes * 5)]
    types = [
        an_instance_type(f"type-{n}", cpu=4 * n, memory=f"{16 * n}Gi", devices=cards(n, 10_000), price=f"{n}.1")
        for n in (1, 2, 3)
    ]

    def proof(order: int) -> LowerBound | None:
        return proven(group(pods[::order]), supply_of(a_hami_pool(), types=types[::order]).available)

    assert proof(1) is not None
    assert said_by(proof(1)) == said_by(proof(-1))


def said_by(bound: LowerBound | None) -> tuple[object, ...]:
    """All that it says: its own repr says how much it holds."""
    assert bound is not None
    return bound.micro, bound.splits, bound.whole, bound.worths, bound.ignored


def test_a_price_beyond_all_measure_is_no_error() -> None:
    """Only the most demanding pod counts then."""
    kinds = [an_instance_type("one", price="9999999999"), an_instance_type("two", cpu=8, price="9999999999999")]
    bound = proven(group([a_pod("a", cpu=3), a_pod("b", cpu=6)]), supply_of(a_pool(), types=kinds).available)

    assert bound is not None
    assert 9_999_999_999_999_000_000 == bound.micro


@pytest.mark.parametrize("most_rounds", [0, 1, 2, 3])
def test_a_search_that_is_cut_short_still_proves_something(most_rounds: int) -> None:
    """It proves no more than the whole search, and says that it was ended."""
    pods = [a_pod(f"p-{n}", cpu=1 + n % 5, gpu=1, gpumem=1_000 + 700 * (n % 11)) for n in range(40)]
    kinds = [an_instance_type(f"t-{n}", cpu=6 * n, devices=cards(n, 10_000), price=f"{n}.3") for n in (1, 2, 4)]
    shapes, offered_types = group(pods), supply_of(a_hami_pool(), types=kinds).available

    short, full = proven(shapes, offered_types, most_rounds=most_rounds), proven(shapes, offered_types)

    assert short is not None
    assert full is not None
    assert 0 < short.micro <= full.micro
    assert Ignored.BUDGET in short.ignored
    assert Ignored.BUDGET not in full.ignored
