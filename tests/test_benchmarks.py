"""The rows of `make bench`: chosen by name, and each of those that measure decisions runs."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks import (
    bench_changes,
    bench_limits,
    bench_openb,
    bench_plans,
    bench_random,
    bench_repacking,
    bench_replay,
    bench_warm,
    run,
)
from benchmarks.baselines import by_score, karpenter
from benchmarks.bench_decisions import SETS
from benchmarks.bench_hostile import LOADS
from benchmarks.boundcheck import PodRow, TypeRow
from kerf.sim.traces.replay import TraceSource
from kerf.sim.traces.timedpods import PodForm, TimedPod

KNOWN = ("plan-10000", "plan-100000", "planner", "day")


def test_no_name_runs_every_row() -> None:
    """As `make bench` alone does."""
    assert list(KNOWN) == run.chosen((), KNOWN)


@pytest.mark.parametrize("made", [bench_warm.fleet, bench_warm.waiting], ids=["fleet", "waiting"])
def test_the_row_of_warm_plans_runs_and_has_ranges(
    made: Callable[[int], Iterator[tuple[str, float]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a trace of a few lines."""
    (tmp_path / "catalogue_aws_16.csv").write_text(
        "name,gpu_name,gpus,gpu_mem_mib,cpu_milli,mem_mib,pods,price\ng6.xlarge,l4,1,22888,3920,14162,58,0.8048\n"
    )
    lines = (f"p{number},{1000 + number},1024,1,470\n" for number in range(30))
    head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
    (tmp_path / "openb_pod_list_default.csv").write_text(head + "".join(lines))
    monkeypatch.setenv(bench_openb.FOLDER, str(tmp_path))
    ranges = tomllib.loads(Path(run.__file__).with_name("ranges.toml").read_text(encoding="utf-8"))

    figures = dict(made(1))

    assert figures.keys() <= ranges.keys()


@pytest.mark.parametrize(
    "names, rows",
    [(["day", "planner"], ["planner", "day"]), (["plan"], ["plan-10000", "plan-100000"]), (["day", "day"], ["day"])],
)
def test_a_name_runs_its_row_or_those_that_begin_with_it(names: list[str], rows: list[str]) -> None:
    """In the order of all rows, each once."""
    assert rows == run.chosen(names, KNOWN)


def test_an_unknown_row_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """It runs nothing and prints the rows there are."""
    assert 2 == run.main(["day", "nights"])
    assert re.fullmatch(r"expected rows of help, plan-10000, .*, got nights\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    "value, most, said",
    [(2.0, 2.0, "ok"), (2.1, 2.0, "OUT OF RANGE"), (9.0, None, ""), (float("inf"), None, "OUT OF TIME")],
)
def test_a_figure_is_held_to_its_range(value: float, most: float | None, said: str) -> None:
    """One without a range is only shown; one that did not come in time fails in any case."""
    assert said == run.verdict(value, most)


def test_a_bound_may_not_fall_below_its_range() -> None:
    """Of what is proven more is better."""
    assert ["ok", "OUT OF RANGE"] == [run.verdict(value, None, 2.0) for value in (2.0, 1.9)]


def test_the_openb_row_runs_and_has_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a trace of three lines; without the folder it says so and fails nothing."""
    (tmp_path / "catalogue_aws_16.csv").write_text(
        "name,gpu_name,gpus,gpu_mem_mib,cpu_milli,mem_mib,pods,price\ng6.xlarge,l4,1,22888,3920,14162,58,0.8048\n"
    )
    (tmp_path / "openb_pod_list_default.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,1024,1,470\nb,1000,1024,1,470\nc,1000,1024,0,0\n"
    )
    monkeypatch.setenv(bench_openb.FOLDER, str(tmp_path))
    ranges = tomllib.loads(Path(run.__file__).with_name("ranges.toml").read_text(encoding="utf-8"))

    figures = dict(bench_openb.bound())

    assert figures.keys() <= ranges.keys()
    assert dict(bench_openb.baselines()).keys() <= ranges.keys()
    shown = {f"repacking_{name}_{each}" for name in ("all", "tenth") for each in ("first_s", "above_fresh_percent")}
    assert dict(bench_repacking.openb()).keys() <= ranges.keys() | shown
    few = {f"few_N_{each}" for each in ("excess_percent", "s", "loops")}
    limited = {f"limited_{each}" for each in ("N_loops", "N_above_free_percent", "N_more_left")}
    assert limited == {re.sub(r"\d+", "N", name) for name, _ in bench_plans.limited(50)}
    assert few == {re.sub(r"\d+", "N", name) for name, _ in bench_plans.few(1, 2)}
    assert 0.8048 == figures["openb_default_bound_usd_h"] == figures["openb_default_bound_proved_usd_h"]


def test_the_openb_row_without_its_trace_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the variable; a folder without the files ends the row."""
    monkeypatch.delenv(bench_openb.FOLDER, raising=False)

    assert {} == run.openb()
    assert "openb IS LEFT OUT: KERF_OPENB names no folder" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"expected catalogue_aws_16\.csv in the folder that KERF_OPENB names"):
        next(bench_openb.bound())


def test_the_replay_rows_run_and_have_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On hours of a trace of two lines; without the folder they say so and fail nothing."""
    (tmp_path / "catalogue_aws_16.csv").write_text(
        "name,gpu_name,gpus,gpu_mem_mib,cpu_milli,mem_mib,pods,price\ng6.xlarge,l4,1,22888,3920,14162,58,0.8048\n"
    )
    (tmp_path / "openb_pod_list_default.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
        "a,1000,1024,1,470,9700000,9703600,9700000\nb,1000,1024,1,470,9700060,9709000,9700061\n"
    )
    monkeypatch.setenv(bench_openb.FOLDER, str(tmp_path))
    ranges = tomllib.loads(Path(run.__file__).with_name("ranges.toml").read_text(encoding="utf-8"))
    figures = {**dict(bench_replay.day(1800)), **dict(bench_replay.weeks(8, 10800))}
    figures |= dict(bench_replay.moved(32, 10800))

    assert figures.keys() <= ranges.keys()
    assert 1 == figures["replay_day_reports"]
    assert figures["replay_8_bound_usd_h"] > 0
    monkeypatch.delenv(bench_openb.FOLDER)
    assert {} == run.replay("day", 1)
    assert "replay-day IS LEFT OUT: KERF_OPENB names no folder" in capsys.readouterr().out


def test_a_later_replay_begins_with_what_runs_then() -> None:
    """A pod that has ended is left out, one that runs comes at once for the rest of its time, and the others later."""
    form = PodForm({}, {})
    times = {"ended": (0, 50), "runs": (10, 100), "for-ever": (20, None), "later": (70, 10)}
    pods = tuple(TimedPod(name, came_s, runs_s, form) for name, (came_s, runs_s) in times.items())
    later = bench_replay.LaterReplay(TraceSource("x.csv"), pods, 1_000, begin_s=60)

    comes = [(each.name, each.at_s, each.runs_s) for each in later.arrivals(7)]
    assert [("runs", 0, 50), ("for-ever", 0, None), ("later", 10, 10)] == comes


def test_two_rules_are_compared_by_the_days_that_both_have(tmp_path: Path) -> None:
    """Each day counts alike; evictions and CPU are summed."""
    before, after = tmp_path / "before", tmp_path / "after"
    for path, days in ((before, {2: (100, 10), 6: (400, 30), 10: (1, 1)}), (after, {2: (99, 30), 6: (404, 50)})):
        lines = [
            json.dumps({f"replay_from_day_{day}_{name}": value})
            for day, (usd, number) in days.items()
            for name, value in (("usd", usd), ("over_bound_percent", 5), ("evictions", number), ("cpu_s", number))
        ]
        path.write_text("\n".join(lines))

    found = {name: round(value, 6) for name, value in bench_replay.compare(str(before), str(after))}
    assert (2, 0, 1) == (found["days"], found["usd_percent"], found["usd_percent_error"])
    assert (2, 2) == (found["evictions_times"], found["cpu_s_times"])


@pytest.mark.parametrize(
    "name, sizes",
    [
        ("budget", (4, 2, 8)),
        ("waiting", (4, 4)),
        ("groups", (2, 4)),
        ("refused", (2, 4)),
        ("refused-gpu", (2, 4)),
        ("spread", (60, 30, 5)),
        ("zonal", (60, 5, 4)),
        ("different", (20, 20)),
        pytest.param("alone", (20, 10, 20), marks=pytest.mark.long),
        ("labels", (20, 4)),
        pytest.param("strangers", (20, 20, 4), marks=pytest.mark.long),
        ("preferences", (20, 20, 8)),
        ("diverse", (20, 20)),
        ("bounds", (4, 2)),
    ],
)
def test_each_decision_runs_and_has_a_range(name: str, sizes: tuple[int, ...]) -> None:
    """On clusters of a few nodes; a figure without a range would hold nothing."""
    ranges = tomllib.loads(Path(run.__file__).with_name("ranges.toml").read_text(encoding="utf-8"))
    known = {re.sub(r"\d+", "N", figure) for figure in ranges}

    figures = dict(SETS[name](*sizes))

    assert all(value >= 0 for value in figures.values())
    assert {re.sub(r"\d+", "N", figure) for figure in figures} <= known


@pytest.mark.parametrize("name, sizes", [("equal", (8,)), ("kinds", (3, 4, 5, 2)), ("beside", (9, 3, 2))])
def test_each_plan_runs_and_has_a_range(name: str, sizes: tuple[int, ...]) -> None:
    """The same of the plans."""
    ranges = tomllib.loads(Path(run.__file__).with_name("ranges.toml").read_text(encoding="utf-8"))
    known = {re.sub(r"\d+", "N", figure) for figure in ranges}

    figures = dict(bench_plans.SETS[name](*sizes))

    assert {re.sub(r"\d+", "N", figure) for figure in figures if not figure.endswith("_loops")} <= known


def test_changes_run_and_have_ranges() -> None:
    """On a fleet of a few nodes."""
    ranges = tomllib.loads(Path(run.__file__).with_name("ranges.toml").read_text(encoding="utf-8"))
    known = {re.sub(r"\d+", "N", figure) for figure in ranges}

    figures = dict(bench_changes.changes(20, 8))

    assert {re.sub(r"\d+", "N", figure) for figure in figures} <= known


def test_random_weeks_run_and_have_ranges(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Three hours of a few cards, in a process of their own; what takes days is left out."""
    ranges = tomllib.loads(Path(run.__file__).with_name("ranges.toml").read_text(encoding="utf-8"))
    monkeypatch.delenv(run.ALL_DAYS, raising=False)

    figures = dict(bench_random.few(1 / 8, 6, seeds=1, workers=1))

    names = {name.removeprefix("random_few_") for name in figures}
    assert {f"random_{each}_{name}" for each in ("few", "large", "days") for name in names} == {
        name for name in ranges if name.startswith("random_")
    }
    assert 0 == figures["random_few_broken"]
    assert {} == run.random_days()
    assert "random-days IS LEFT OUT" in capsys.readouterr().out


def _asking(count: int, percent: int) -> list[PodRow]:
    return [PodRow(f"p{number}", {"cpu": 1_000, "memory": 1 << 30, "pods": 1}, 1, percent) for number in range(count)]


_TWO_CARDS = TypeRow("two", {"cpu": 64_000, "memory": 1 << 40, "pods": 110}, 2_000_000, 2)
_ONE_CARD = TypeRow("one", {"cpu": 32_000, "memory": 1 << 39, "pods": 110}, 1_100_000, 1)


def test_a_rule_that_sums_buys_a_node_that_cannot_hold_its_pods() -> None:
    """Three pods of 60 % are 180 % of two cards, and a third card."""
    assert (2_000_000, 1, 1) == karpenter(_asking(3, 60), [_TWO_CARDS], summed=True)
    assert (4_000_000, 2, 0) == karpenter(_asking(3, 60), [_TWO_CARDS], summed=False)


def test_a_node_becomes_the_cheapest_type_that_holds_its_pods() -> None:
    """As Karpenter decides at the end, and not when the node is opened."""
    assert (1_100_000, 1, 0) == karpenter(_asking(2, 50), [_TWO_CARDS, _ONE_CARD], summed=False)


@pytest.mark.parametrize("fragmentation", [False, True])
def test_a_scored_rule_fills_what_is_there_before_it_buys(fragmentation: bool) -> None:
    """Four halves are two cards; a pod that no type holds is left."""
    assert (2_000_000, 0) == by_score(_asking(4, 50), [_TWO_CARDS], fragmentation=fragmentation)
    assert (0, 1) == by_score([PodRow("p", {"cpu": 1 << 60}, 0)], [_ONE_CARD], fragmentation=fragmentation)


def test_limits_are_measured_for_every_search_and_have_ranges() -> None:
    """Those that no plan comes near, those that it just keeps to, and those that bind."""
    ranges = tomllib.loads(Path(run.__file__).with_name("ranges.toml").read_text(encoding="utf-8"))
    far = {f"limits_far_{name}_{what}" for name in bench_limits.cases() for what in ("cpu_part", "memory_part")}
    tight = {f"limits_tight_{name}_loops" for name in bench_limits.cases() if name != "diverse_5000"}

    assert far | tight <= ranges.keys()


@pytest.mark.parametrize("load", LOADS)
def test_each_hostile_load_has_ranges_and_serves_the_other(load: str) -> None:
    """Fewer pods here; that the other tenant's pod is decided for is checked where it is measured."""
    ranges = tomllib.loads(Path(run.__file__).with_name("ranges.toml").read_text(encoding="utf-8"))

    assert {f"hostile_{load}_s", f"hostile_{load}_words_s"} <= ranges.keys()
    assert f"hostile-{load}" in run.rows(Path())
