"""The benchmarks' check of a bound proves what a plan states by its prices alone, or refuses it."""

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import bench_openb
from benchmarks.boundcheck import PodRow, TypeRow, UnprovenError, fullest, places, proved
from kerf.cli.plan.json import plan_object
from kerf.engine.explain.plan import plan
from kerf.engine.world import World
from kerf.model.nodeclaim import LAUNCHED
from kerf.testing.builders import a_claim, a_node, a_snapshot
from tests.examples import examples

Draw = Callable[..., Any]
Case = tuple[dict[str, Any], list[PodRow], list[TypeRow]]
TYPES = [
    ("g4dn.xlarge", "t4", 1, 16384, 3920, 14481, 29, "0.526"),
    ("g4dn.12xlarge", "t4", 4, 16384, 47810, 178933, 234, "3.912"),
    ("g6.4xlarge", "l4", 1, 22888, 15890, 57691, 234, "1.3232"),
    ("g6.48xlarge", "l4", 8, 22888, 191450, 718987, 737, "13.3504"),
]
KEYS = ("name", "gpu_name", "gpus", "gpu_mem_mib", "cpu_milli", "mem_mib", "pods", "price")
CATALOGUE = [dict(zip(KEYS, map(str, each), strict=True)) for each in TYPES]
TRACE = [
    (3000, 8000, 1, 810),
    (3000, 8000, 1, 470),
    (12000, 30000, 1, 190),
    (8000, 9000, 1, 1000),
    (20000, 64000, 2, 1000),
    (8000, 30000, 4, 1000),
    (16000, 64000, 8, 1000),
]


def rows(counts: list[int]) -> list[dict[str, str]]:
    """So many pods of each line of `TRACE`."""
    keys = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
    return [
        {"name": f"p{line}-{number}", **dict(zip(keys, map(str, TRACE[line]), strict=True))}
        for line, count in enumerate(counts)
        for number in range(count)
    ]


def case(counts: list[int]) -> Case:
    """The plan for these pods as its JSON, and what it was made for, as the check reads it."""
    return case_of(rows(counts))


def case_of(found: list[dict[str, str]]) -> Case:
    """The same for lines of a trace."""
    snapshot = bench_openb.snapshot(bench_openb.pending(found))
    market = bench_openb.market(CATALOGUE)
    made = plan_object(plan(snapshot, market), World(snapshot, market))
    return json.loads(json.dumps(made)), list(bench_openb.pod_rows(found)), bench_openb.type_rows(CATALOGUE)


@given(st.lists(st.integers(0, 9), min_size=len(TRACE), max_size=len(TRACE)).filter(any))
@examples(60, derandomize=True)
def test_the_prices_of_a_plan_prove_its_bound(counts: list[int]) -> None:
    """And the plan costs no less."""
    made, pods, types = case(counts)

    assert (
        round(made["lowerBound"]["perHour"] * 10**6)
        <= proved(made, pods, types)
        <= made["cost"]["perHourAfter"] * 10**6
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_proven_beside_nodes_and_claims_in_flight(seed: int) -> None:
    """Of the pods that none of these could hold; no plan costs less."""
    chance = Random(seed)
    found = rows([chance.randint(0, 9) for _ in TRACE])
    market = bench_openb.market(CATALOGUE)
    empty = bench_openb.snapshot(bench_openb.pending(found))
    room: list[dict[str, str | int]] = [
        {"cpu": chance.choice([4, 16, 64]), "memory": "128Gi", "pods": 110} for _ in range(chance.randint(0, 3))
    ]
    kinds = [chance.choice(market.types).name for _ in range(chance.randint(0, 2))]
    snapshot = a_snapshot(
        pools=empty.node_pools,
        pods=empty.pending,
        nodes=[a_node(f"n{at}", allocatable=each) for at, each in enumerate(room)],
        claims=[
            a_claim(f"c{at}", instance_type=kind, reached=(LAUNCHED,), labels={"gpu": "on"})
            for at, kind in enumerate(kinds)
        ],
    )
    made = json.loads(json.dumps(plan_object(plan(snapshot, market), World(snapshot, market))))

    bound = made["cost"]["perHourLowerBound"]
    assert bound is None or bound <= made["cost"]["perHourAfter"]
    if "lowerBound" in made:
        proven = proved(made, list(bench_openb.pod_rows(found)), bench_openb.type_rows(CATALOGUE))
        assert round(made["lowerBound"]["perHour"] * 10**6) <= proven


def changes() -> Iterator[tuple[str, Callable[[dict[str, Any]], None]]]:
    """What makes a proof wrong: each raises one of its figures by a part."""

    def raised(path: str, *keys: Any) -> tuple[str, Callable[[dict[str, Any]], None]]:
        def change(stated: dict[str, Any]) -> None:
            held: Any = stated
            for key in keys[:-1]:
                held = held[key]
            held[keys[-1]] *= 1.01

        return path, change

    yield raised("the bound", "perHour")
    yield raised("a card", "prices", 0, "card")
    yield raised("a slice", "prices", 0, "slices", 0, "perHour")
    yield raised("a resource", "prices", 0, "parts", "cpu")
    yield raised("a price", "prices", 0, "perHour")
    yield "whole cards", _raise_whole_cards
    yield "a type without prices", lambda stated: stated["prices"].clear()


def _raise_whole_cards(stated: dict[str, Any]) -> None:
    parts = [entry["parts"] for entry in stated["prices"] if "whole cards" in entry["parts"]]
    parts[0]["whole cards"] *= 1.01


@pytest.mark.parametrize("change", [change for _, change in changes()], ids=[name for name, _ in changes()])
def test_a_proof_that_is_wrong_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    """A bound that is too high, and prices that would make it so."""
    made, pods, types = case([40, 30, 20, 10, 5, 4, 3])
    proved(made, pods, types)
    wrong = copy.deepcopy(made)
    # Those of a type whose slices cost something come first.
    wrong["lowerBound"]["prices"].sort(key=lambda entry: -len(entry.get("slices", ())))
    change(wrong["lowerBound"])

    with pytest.raises(UnprovenError):
        proved(wrong, pods, types)


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_of_more_shapes_than_cards_are_filled_by_is_proven(seed: int) -> None:
    """Of so many sizes of slices only sums over cards are priced: their memory and cores, and what takes over half."""
    draw = Random(seed)
    found = [
        {
            "name": f"p{number}",
            "cpu_milli": str(draw.randrange(100, 9_000, 10)),
            "memory_mib": str(draw.randrange(100, 40_000)),
            "num_gpu": "1",
            "gpu_milli": str(draw.randrange(10, 1_001, 10)),
        }
        for number in range(200)
    ]

    made, pods, types = case_of(found)

    priced = {name for each in made["lowerBound"]["prices"] for name in each["parts"]}
    assert priced & {"card memory", "cards over half in memory"}
    assert round(made["lowerBound"]["perHour"] * 10**6) <= proved(made, pods, types)


def test_pods_that_are_not_in_the_input_are_refused() -> None:
    """The check counts the pods of the input, not those of the plan."""
    made, pods, types = case([3])

    with pytest.raises(UnprovenError, match="not in the input"):
        proved(made, pods[1:], types)


@pytest.mark.parametrize(
    "slices, worth",
    [
        ([(6000, 0, 5)], 5),
        ([(6000, 0, 5), (4000, 0, 4)], 9),
        ([(5000, 60, 5), (5000, 40, 4)], 9),
        ([(5000, 60, 5), (5000, 50, 3)], 6),
        ([(1, 0, 1)], 10),
    ],
)
def test_the_fullest_card_is_the_one_that_is_worth_most(slices: list[tuple[int, int, int]], worth: int) -> None:
    """Of 10,000 MiB, 100 cores and 10 slots."""
    assert worth == fullest(slices, 10_000, 10)


@pytest.mark.parametrize("cards, slots, pods", [(2, 10, 0), (1, 10, 3), (1, 2, 2)])
@pytest.mark.parametrize("percent, mib", [(30, 0), (100, 3_000)])
def test_slices_of_one_pod_lie_on_different_cards(cards: int, slots: int, pods: int, percent: int, mib: int) -> None:
    """So one card holds no pod that asks for slices of two, whatever room it has."""
    pod = PodRow("p", {"pods": 1}, cards, percent, mib=mib)

    assert pods == places(TypeRow("t", {"pods": 9}, 1, 1, 10_000, slots=slots), pod)


def test_pods_with_slices_of_all_cards_are_as_many_as_one_card_holds() -> None:
    """Two cards with three slices each hold three pods that ask for a slice of both, and one of three cards four."""
    pod = PodRow("p", {}, 2, percent=30)

    assert [3, 4] == [places(TypeRow("t", {}, 1, cards, 10_000), pod) for cards in (2, 3)]
