"""Flags of `kerf plan` beside which another would change nothing."""

from pathlib import Path

import pytest

from tests.cli.plan.test_strategies import GPUS
from tests.cli.program import kerf

INSTEAD = {
    "--calendar": ("--calendar", "7d"),
    "--compare": ("--compare", "cpu=1"),
    "--strategies": ("--strategies",),
    "--consolidate": ("--consolidate",),
}


@pytest.mark.parametrize("instead", INSTEAD)
def test_only_a_plan_is_drawn(instead: str, tmp_path: Path) -> None:
    """Beside what stands in place of a plan a chart is wrong usage, and no file is written."""
    chart = tmp_path / "plan.svg"

    done = kerf("plan", *GPUS, *INSTEAD[instead], "--chart", str(chart))

    assert (2, "") == (done.returncode, done.stdout)
    assert f"{instead}: expected no --chart, which says nothing about" in done.stderr
    assert not chart.exists()


@pytest.mark.parametrize(
    ("instead", "given"),
    [
        *((instead, ("--timings",)) for instead in INSTEAD),
        ("--strategies", ("--strategy", "first-fit")),
        ("--strategies", ("--strategy", "cost")),
        ("--strategies", ("--budget", "30s")),
        ("--calendar", ("--strategy", "first-fit")),
        ("--calendar", ("--budget", "30s")),
        ("--calendar", ("--follow", "pin")),
        ("--calendar", ("--preference-policy", "Ignore")),
        ("--calendar", ("--min-values-policy", "BestEffort")),
        ("--consolidate", ("--namespace", "web")),
        ("--consolidate", ("--selector", "app=web")),
    ],
)
def test_a_flag_that_would_change_nothing_is_wrong_usage(instead: str, given: tuple[str, ...]) -> None:
    """Also where it is given as it is by default: who gives it expects an answer to it."""
    done = kerf("plan", *GPUS, *INSTEAD[instead], *given)

    assert 2 == done.returncode
    assert f"{instead}: expected no {given[0]}, which says nothing about" in done.stderr


def test_two_of_them_are_named_together() -> None:
    """So a second try is the last."""
    done = kerf("plan", *GPUS, "--strategies", "--strategy", "cost", "--timings")

    assert 2 == done.returncode
    assert "--strategies: expected no --timings and no --strategy, which say nothing about" in done.stderr


def test_first_fit_has_no_budget() -> None:
    """It looks for no cheaper nodes, however long it may."""
    done = kerf("plan", *GPUS, "--strategy", "first-fit", "--budget", "30s")

    assert 2 == done.returncode
    assert "--budget: expected no --strategy first-fit, which looks for no cheaper nodes" in done.stderr


@pytest.mark.parametrize("given", [("--follow", "pin"), ("--min-values-policy", "BestEffort")])
def test_flags_that_count_for_strategies_stay(given: tuple[str, ...]) -> None:
    """All strategies are compared under them."""
    assert 2 != kerf("plan", *GPUS, "--strategies", *given).returncode
