"""What goes wrong in a search takes no pod's node: a solver without an answer, a type that costs nothing."""

from random import Random

import highspy
import pytest

from kerf.engine.explain.causes import cause_text
from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.model.causes import FarFromBound
from kerf.model.plan import Plan
from kerf.model.pods import Pod
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type

BIG = an_instance_type("big", cpu=16, memory="64Gi", price="0.70")
SMALL = an_instance_type("small", cpu=4, memory="16Gi", price="0.20")
FREE = an_instance_type("free", cpu=4, memory="16Gi", price="0")


class Raising(highspy.Highs):
    """Stops at an error of its own."""

    def run(self) -> highspy.HighsStatus:
        """See highspy."""
        raise RuntimeError("no answer")


class Failing(highspy.Highs):
    """Ends without an answer."""

    def getModelStatus(self) -> highspy.HighsModelStatus:  # noqa: N802
        """See highspy."""
        return highspy.HighsModelStatus.kSolveError


def _mixed(count: int, seed: int = 1) -> list[Pod]:
    chance = Random(seed)
    sizes = [(chance.randint(1, 20), chance.randint(1, 40)) for _ in range(count)]
    return [a_pod(f"p{at}", cpu=f"{cpu * 100}m", memory=f"{memory * 100}Mi") for at, (cpu, memory) in enumerate(sizes)]


def _all_placed(made: Plan, pods: list[Pod]) -> bool:
    placed = [each.pod for launch in made.launches for each in launch.pods]
    return sorted(placed) == sorted(pod.key for pod in pods) and not made.unplaced


@pytest.mark.parametrize("solver", [Raising, Failing])
@pytest.mark.parametrize("count", [1, 7, 19, 20, 60])
def test_a_solver_without_an_answer_takes_no_node_away(
    monkeypatch: pytest.MonkeyPatch, solver: type[highspy.Highs], count: int
) -> None:
    """All pods have nodes, the bound is none that costs more than the plan, and where prices choose a note says it."""
    pods = _mixed(count)
    monkeypatch.setattr(highspy, "Highs", solver)
    made = plan(a_snapshot(pools=[a_pool()], pods=pods), a_market(SMALL, BIG))

    assert _all_placed(made, pods)
    assert made.cost.bound is not None
    assert made.cost.bound.micro <= made.cost.after_micro
    assert any("solver" in note for note in made.notes) == (count >= 20)


@pytest.mark.parametrize("count", [1, 19, 20, 40, 60])
def test_a_type_that_costs_nothing_is_no_fault(count: int) -> None:
    """Its nodes are bought, and the note is that of its price: no search has failed."""
    pods = _mixed(count)
    made = plan(a_snapshot(pools=[a_pool()], pods=pods), a_market(FREE, BIG))

    assert _all_placed(made, pods)
    assert made.cost.after_micro == 0
    assert not any("failed" in note for note in made.notes)
    assert any("costs nothing" in note for note in made.notes)


@pytest.mark.parametrize(
    "parts_micro, end",
    [
        (None, "ended before its prices had settled (--budget 30s looks longer)"),
        (900_000, "they are few of each kind, and nodes cannot be bought in parts"),
        (1_170_000, "the rest of the gap is mixes that were not found, or a bound that is weak for such pods"),
    ],
)
def test_a_plan_far_from_its_bound_says_why(parts_micro: int | None, end: str) -> None:
    """By what nodes in parts cost, where prices have settled."""
    text = cause_text(FarFromBound(1_000, 1_180_000, 1_000_000, parts_micro))

    assert text.startswith("the nodes for 1,000 pods cost 18.0 % more than is proven that they must")
    assert text.endswith(end)


@pytest.mark.parametrize("budget, is_advised", [("1s", True), ("30s", False)])
def test_a_longer_search_is_advised_where_there_is_one(budget: str, is_advised: bool) -> None:
    """The longest search ends somewhere, too, and its plan may be one that a shorter search has found."""
    made = plan(a_snapshot(pods=_mixed(60, 4), pools=[a_pool()]), a_market(BIG, SMALL), Options(budget=budget))

    assert any("more than is proven" in note for note in made.notes)
    assert any("--budget 30s" in note for note in made.notes) is is_advised


def test_the_longest_search_is_never_advised_to_be_longer() -> None:
    """Where even its prices have not settled."""
    far = FarFromBound(1_000, 1_180_000, 1_000_000, None, is_longest=True)

    assert cause_text(far).endswith("ended before its prices had settled")
