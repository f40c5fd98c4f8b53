"""Weeks of a fleet to which everything happens (`randomfleet`): invariants, dollars over the re-pack bound, memory.

The simulator ends a run at the event that breaks an invariant; then the figure `broken` counts it, and what
broke is printed. Each seed runs in a process of its own, so that its memory is its own.
"""

import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.randomfleet import random_fleet
from kerf.cli.collector import collect_seldom
from kerf.sim.course.invariants import InvariantBroken
from kerf.sim.course.report import SimulationReport
from kerf.sim.course.scenario import read_scenario
from kerf.sim.objects import Json, phase_of, uid_of
from kerf.sim.simulation import run

SEEDS = 10
_HOUR_S, _PAGE_KIB = 3_600, 4
HAPPENS = frozenset(
    {
        "apply",
        "device fault",
        "interruption",
        "lost replies",
        "price",
        "restart",
        "scale",
        "stock-out",
        "throttling",
    }
)
"""Rows of a report that must be there in each run that is long enough: what happens to a fleet."""
REPACK_S = 900.0
"""After a search that found no cheaper nodes the next comes a quarter of an hour later, or three minutes where much has
changed; one a minute would take most of the time."""

_CALM, _CALM_REPACK_S = 0.1, 1_800.0
"""Pods of a month at pace 1 come and go as in a fleet of batch alone, and take twice the time to simulate; a fleet that
mostly serves needs its cheaper nodes less often."""


class Watch:
    """What a report does not have: hours that pods ran, and the memory of the process each virtual hour, in MiB."""

    def __init__(self) -> None:
        self.pod_hours = 0.0
        self.memory_mib: list[float] = []
        self._running: set[str] = set()
        self._count, self._at_s = 0, 0.0

    def event(self, type_: str, obj: Json) -> None:
        """An event of the API, before `progress` gets its time."""
        if obj["kind"] == "Pod":
            is_running = type_ != "DELETED" and phase_of(obj) == "Running"
            (self._running.add if is_running else self._running.discard)(uid_of(obj))

    def progress(self, at_s: float) -> None:
        """Time has passed up to an event."""
        self.pod_hours += self._count * (at_s - self._at_s) / _HOUR_S
        self._count, self._at_s = len(self._running), at_s
        if at_s >= len(self.memory_mib) * _HOUR_S:
            self.memory_mib.append(_resident_mib())

    @property
    def growth_percent(self) -> float:
        """By how much the last tenth of the time takes more memory than a third of the way through, by medians."""
        number = len(self.memory_mib)
        part = max(1, number // 10)
        first = sorted(self.memory_mib[number // 3 :][:part])[part // 2]
        last = sorted(self.memory_mib[-part:])[part // 2]
        return 100 * (last / first - 1)


@dataclass(frozen=True)
class Outcome:
    """One seed: the report (None where an invariant broke, which is `broken`), and what was watched."""

    seed: int
    watch: Watch
    cpu_s: float
    report: SimulationReport | None = None
    broken: str = ""


def outcome(
    seed: int, days: float, gpus: int, faults: float = 1, pace: float = 1, repack_s: float = REPACK_S
) -> Outcome:
    """Run the fleet of a seed; of few cards more faults are needed to see them all."""
    collect_seldom()
    watch, start = Watch(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        scenario = read_scenario(str(random_fleet(seed, days, gpus, faults=faults, pace=pace).write(Path(folder))))
    settings = replace(scenario.settings, repack_s=repack_s)
    try:
        report = run(scenario, settings=settings, progress=watch.progress, watch=watch.event)
    except InvariantBroken as error:
        return Outcome(seed, watch, time.process_time() - start, None, str(error))
    # Times of everything that happened would travel between the processes.
    return Outcome(seed, watch, time.process_time() - start, replace(report, rows=(), samples=()))


def days(
    number: float = 30, gpus: int = 500, seeds: int = SEEDS, pace: float = _CALM, workers: int = 2
) -> Iterator[tuple[str, float]]:
    """So many days of so many seeds, of a fleet of the size that the aim is for, at the pace of one that mostly serves.

    Takes more than a day of CPU: some three hours a month."""
    of_seed = partial(outcome, days=number, gpus=gpus, pace=pace, repack_s=_CALM_REPACK_S)
    yield from _of_seeds("days", of_seed, number, seeds, workers)


def large(number: float = 0.25, gpus: int = 420, seeds: int = 2, workers: int = 2) -> Iterator[tuple[str, float]]:
    """The first hours of such fleets, in which they come up, with so many faults that each kind happens."""
    yield from _of_seeds("large", partial(outcome, days=number, gpus=gpus, faults=20), number, seeds, workers)


def few(number: float = 30, gpus: int = 24, seeds: int = SEEDS, workers: int = 2) -> Iterator[tuple[str, float]]:
    """The same of few cards, with ten times as many faults."""
    yield from _of_seeds("few", partial(outcome, days=number, gpus=gpus, faults=10), number, seeds, workers)


def _of_seeds(
    name: str, of_seed: Callable[[int], Outcome], number: float, seeds: int, workers: int
) -> Iterator[tuple[str, float]]:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn, max_tasks_per_child=1) as pool:
        found = list(pool.map(of_seed, range(1, seeds + 1)))
    for each in found:
        print(f"seed {each.seed}: {_summary(each)}", file=sys.stderr, flush=True)
    for figure, value in figures(found, number):
        yield f"random_{name}_{figure}", value


def _summary(each: Outcome) -> str:
    """A seed in one line."""
    report = each.report
    if report is None:
        return each.broken
    happened = ", ".join(f"{row.times} {row.what}" for row in report.counts if row.what in HAPPENS)
    return f"{100 * (report.over_bound or 0.0):.1f} % over the bound; {report.totals.evictions} evictions; {happened}"


def figures(found: list[Outcome], number: float) -> Iterator[tuple[str, float]]:
    """What so many days of some seeds come to: the worst of each figure; CPU and cards on average."""
    yield "broken", sum(each.report is None for each in found)
    yield "memory_mib", max(max(each.watch.memory_mib) for each in found)
    yield "memory_growth_percent", max(each.watch.growth_percent for each in found)
    yield "cpu_s_a_day", sum(each.cpu_s for each in found) / len(found) / number
    whole = [(each, each.report) for each in found if each.report is not None]
    if whole:
        yield "never_happened", max(len(HAPPENS - {row.what for row in report.counts}) for _, report in whole)
        yield "over_bound_percent", max(100 * (report.over_bound or 0.0) for _, report in whole)
        yield "gpus_paid", sum(report.totals.gpu_hours_paid for _, report in whole) / len(whole) / number / 24
        yield "unplaced", max(report.totals.pods_unplaced for _, report in whole)
        yield "moves_per_pod_hour", max(report.totals.evictions / each.watch.pod_hours for each, report in whole)
        yield "wait_p99_s", max(report.totals.waits.p99 for _, report in whole)


def _resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_KIB / 1024


SETS: dict[str, Callable[..., Iterator[tuple[str, float]]]] = {"days": days, "large": large, "few": few}


def main(what: str, *sizes: str) -> None:
    """Print the figures of a set, one object a line; it may be given days, GPUs, seeds, and `days` also a pace."""
    if what not in SETS:
        raise SystemExit(f"expected one of {', '.join(SETS)}, got {what}")
    kinds = {"number": float, "gpus": int, "seeds": int, "pace": float}
    given = {name: kind(size) for (name, kind), size in zip(kinds.items(), sizes, strict=False)}
    for figure, value in SETS[what](**given):
        print(json.dumps({figure: value}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:] or ("",))
