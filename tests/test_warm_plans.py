"""Plans that begin with what the last one has left: as good as others, as well proven, and nothing outdated in them."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import bench_openb
from benchmarks.boundcheck import proved
from benchmarks.plancheck import checked
from kerf.cli.plan.json import plan_object
from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.explain.plan import explain
from kerf.engine.supply.warmstart import WarmStart
from kerf.engine.world import World
from kerf.model.market import Market
from kerf.testing.builders import a_pod
from tests.engine.worlds import shape_of
from tests.examples import examples
from tests.test_boundcheck import CATALOGUE as KNOWN

Row = dict[str, str]
# No two prices are multiples of much: bounds are rounded up to such.
CATALOGUE = [
    {**row, "price": price} for row, price in zip(KNOWN, ("0.526001", "3.912003", "1.323201", "13.350407"), strict=True)
]
KEYS = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


def kinds(chance: Random, count: int) -> list[Row]:
    """So many kinds of pods: slices, and whole cards."""
    found = []
    for _ in range(count):
        cards = (1, chance.randrange(50, 1000)) if chance.random() < 0.7 else chance.choice(((1, 1000), (2, 1000)))
        asked = (chance.randrange(200, 30_000), chance.randrange(256, 60_000), *cards)
        found.append(dict(zip(KEYS, map(str, asked), strict=True)))
    return found


def drawn(chance: Random, of: list[Row], count: int) -> list[Row]:
    """So many pods of these kinds."""
    return [{**chance.choice(of), "name": f"p{chance.random()}"} for _ in range(count)]


def changed(chance: Random, rows: list[Row], of: list[Row], percent: int) -> list[Row]:
    """So many of the pods replaced by others, and some gone."""
    kept = [row for row in rows if chance.random() * 100 >= percent]
    return kept + drawn(chance, of, chance.randrange(len(rows) - len(kept) + 1))


def decided(rows: list[Row], market: Market, kept: WarmStart | None = None) -> Decision:
    """The decision for these pods, in this order."""
    return decide(World(bench_openb.snapshot(bench_openb.pending(rows)), market, kept=kept))


def placed(decision: Decision) -> set[str]:
    """The pods that get a node."""
    return {pod.pod for launch in decision.launches for pod in launch.pods}


def launches(decision: Decision) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """What is launched, with the pods and what else would do."""
    return [
        (launch.name, launch.offering.instance_type, tuple(pod.pod for pod in launch.pods), launch.alternatives)
        for launch in decision.launches
    ]


@given(st.integers(0, 10**6), st.sampled_from([8, 36, 48]), st.lists(st.sampled_from([2, 30, 90]), max_size=4))
@examples(15, least=5, derandomize=True)
def test_a_plan_that_begins_with_what_was_kept_is_right(seed: int, count: int, percents: list[int]) -> None:
    """Whatever has changed since, it places the pods that a plan from nothing places, and each card holds its slices.

    Its bound is proven by its own prices, and holds for the plan from nothing, too.
    """
    chance, market, kept = Random(seed), bench_openb.market(CATALOGUE), WarmStart()
    of = kinds(chance, count)
    rows = drawn(chance, of, 150)
    for percent in (0, *percents):
        rows = changed(chance, rows, of, percent)
        warm, cold = decided(rows, market, kept), decided(rows, market)
        printed = json.loads(json.dumps(plan_object(explain(warm), warm.world)))
        pods, types = list(bench_openb.pod_rows(rows)), bench_openb.type_rows(CATALOGUE)

        assert placed(cold) == placed(warm)
        price, _ = checked(printed, pods, types)
        assert price == warm.cost.after_micro
        if warm.cost.bound is not None and warm.launches:
            assert warm.cost.bound.micro <= proved(printed, pods, types)
            assert warm.cost.bound.micro <= min(warm.cost.after_micro, cold.cost.after_micro)
        assert warm.kept is not None
        kept = warm.kept


def test_the_same_snapshot_and_the_same_kept_value_give_the_same_plan() -> None:
    """However often, and whatever was planned in between with it."""
    chance, market = Random(3), bench_openb.market(CATALOGUE)
    of = kinds(chance, 40)
    rows = drawn(chance, of, 200)
    kept = decided(rows, market, WarmStart()).kept
    others = changed(chance, rows, of, 20)

    first, between, again = (decided(each, market, kept) for each in (others, rows, others))

    assert launches(first) == launches(again)
    assert first.cost == again.cost
    assert launches(between) != launches(first)


def test_the_first_plan_that_keeps_is_the_plan_of_one_that_keeps_nothing() -> None:
    """As `kerf plan`, and as after a restart."""
    chance, market = Random(4), bench_openb.market(CATALOGUE)
    rows = drawn(chance, kinds(chance, 40), 200)

    assert launches(decided(rows, market)) == launches(decided(rows, market, WarmStart()))
    assert decided(rows, market).cost == decided(rows, market, WarmStart()).cost


@pytest.mark.parametrize("field", ["price", "cpu_milli"])
def test_what_was_kept_of_other_prices_or_other_types_is_not_used(field: str) -> None:
    """Where each type is sold for another price, or has another room, the plan is one from nothing."""
    chance, market = Random(5), bench_openb.market(CATALOGUE)
    rows = drawn(chance, kinds(chance, 40), 200)
    raised = [{**row, field: str(round(float(row[field]) * 1.1, 4)).removesuffix(".0")} for row in CATALOGUE]
    if field == "cpu_milli":
        raised = [{**row, field: str(int(float(row[field])))} for row in raised]
    other = bench_openb.market(raised)
    kept = decided(rows, market, WarmStart()).kept

    warm, cold = decided(rows, other, kept), decided(rows, other)

    assert launches(cold) == launches(warm)
    assert cold.cost == warm.cost


def test_columns_of_a_type_are_kept_as_long_as_it_is_sold_as_it_was() -> None:
    """Another price of one type drops its columns alone."""
    chance, market = Random(6), bench_openb.market(CATALOGUE)
    rows = drawn(chance, kinds(chance, 40), 200)
    kept = decided(rows, market, WarmStart()).kept
    assert kept is not None
    dearer = [{**row, "price": "19.9"} if row["name"] == "g6.48xlarge" else row for row in CATALOGUE]
    world = World(bench_openb.snapshot([]), bench_openb.market(dearer), kept=kept)
    there = {column.offered.kind.name for column in kept.columns}

    warmth = world.holding.warmth

    assert warmth is not None
    left = {column.offered.kind.name for column in warmth.columns(world.supply.available)}
    assert there - {"g6.48xlarge"} == left
    assert "g6.48xlarge" in there
    assert warmth.proof(world.supply.available) is None


def test_a_column_that_is_of_no_use_for_long_is_dropped() -> None:
    """What plans that choose by prices have not used twenty times in a row; smaller plans do not count."""
    chance, market = Random(7), bench_openb.market(CATALOGUE)
    first, second = kinds(chance, 36), kinds(chance, 36)
    kept = decided(drawn(chance, first, 150), market, WarmStart()).kept
    assert kept is not None
    before = {column.key for column in kept.columns}
    rows = drawn(chance, second, 150)

    for _ in range(21):
        assert kept is not None
        assert before & {column.key for column in kept.columns}
        kept = decided(drawn(chance, first, 5), market, kept).kept
        kept = decided(rows, market, kept).kept

    assert kept is not None
    assert not before & {column.key for column in kept.columns}


def test_no_more_is_known_of_filled_nodes_than_is_useful() -> None:
    """Beyond some thousand they are filled again, and the columns stay."""
    chance, market = Random(8), bench_openb.market(CATALOGUE)
    rows = drawn(chance, kinds(chance, 40), 100)
    kept = decided(rows, market, WarmStart()).kept
    assert kept is not None
    assert kept.known is not None
    again = decided(rows, market, kept)
    kept.known.fills.update(((0, (number,), ()), None) for number in range(20_000))

    warm = decided(rows, market, kept)

    assert launches(again) == launches(warm)
    assert warm.kept is not None
    assert warm.kept.known is not None
    assert len(warm.kept.known.fills) < 1_000


@given(st.integers(0, 10**6), st.sampled_from([2, 30, 90]))
@examples(15, least=5, derandomize=True)
def test_what_other_decisions_have_asked_changes_no_plan(seed: int, percent: int) -> None:
    """Two decisions may begin with one kept value: the second finds answers of the first, and plans as without."""
    chance, market = Random(seed), bench_openb.market(CATALOGUE)
    of = kinds(chance, 30)
    rows = drawn(chance, of, 120)
    first, second = (changed(chance, rows, of, each) for each in (percent, 60))

    plans = []
    for others in ([], [second], [first, second]):
        kept = decided(rows, market, WarmStart()).kept
        for each in others:
            decided(each[::-1], market, kept)
        plans.append(launches(decided(first, market, kept)))

    assert plans[0] == plans[1] == plans[2]


def test_of_very_many_kinds_of_pods_nothing_is_kept() -> None:
    """Then the next plan is one from nothing, as after a restart."""
    chance, market = Random(9), bench_openb.market(CATALOGUE)
    rows = drawn(chance, kinds(chance, 40), 100)
    kept = decided(rows, market, WarmStart()).kept
    assert kept is not None
    assert kept.known is not None
    for number in range(6_000):
        kept.known.shape_number(shape_of(a_pod(cpu=f"{number + 1}m")))

    warm = decided(rows, market, kept)

    assert launches(decided(rows, market)) == launches(warm)
    assert warm.kept is not None
    assert warm.kept.columns
