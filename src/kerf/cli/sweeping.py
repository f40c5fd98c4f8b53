"""What `kerf sweep` does: it runs what has no result yet, and prints what all runs come to together."""

import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kerf.cli.echo import echo, write_file
from kerf.cli.exits import DONE, FAILED
from kerf.cli.plan.json import API_VERSION, Json
from kerf.cli.progress import progress
from kerf.cli.render import counted, show_lines, table
from kerf.errors import KerfError
from kerf.sim.sweep.axes import Sweep, read_sweep
from kerf.sim.sweep.cells import SweepCell
from kerf.sim.sweep.plot import svg
from kerf.sim.sweep.results import Results
from kerf.sim.sweep.running import Outcome, here, on_dask
from kerf.sim.sweep.summary import MEASURES, Mean, Run, SeedGroup, grouped


def show(axes: str, flags: dict[str, Any]) -> int:
    """Run the sweep and print its results; the exit code."""
    results, plot, output = flags["results"], flags["plot"], flags["output"]
    made = read_sweep(axes)
    kept = Results(results if results is not None else str(Path(axes).with_suffix(".results")))
    failed = _run(made, kept, flags["workers"], flags["scheduler"])
    runs = [(cell, result) for cell in made.cells if (result := kept.of(cell)) is not None]
    groups = grouped(runs)
    if plot is not None:
        write_file("--plot", plot, svg(made.name, groups))
    if output == "json":
        echo(msgspec.json.format(msgspec.json.encode(_data(made.name, groups, runs)), indent=2).decode())
    elif output == "csv":
        echo(_csv(runs), nl=False)
    else:
        show_lines(_lines(made.name, groups))
    for cell, error in failed:
        echo(f"error: {_shown(cell)}: {error}", err=True)
    return FAILED if failed else DONE


def _run(made: Sweep, kept: Results, workers: int | None, scheduler: str | None) -> list[tuple[SweepCell, KerfError]]:
    """Run what has no result yet; those that failed, in their order."""
    # Cells that differ in names alone are one run.
    left = list({cell.digest: cell for cell in made.cells if kept.of(cell) is None}.values())
    failed: dict[str, KerfError] = {}
    if left:
        with progress(f"{made.name}: {counted(len(left), 'run')}") as meter:
            for number, (cell, outcome) in enumerate(_outcomes(left, workers, scheduler), 1):
                if isinstance(outcome, KerfError):
                    failed[cell.digest] = outcome
                else:
                    kept.keep(cell, outcome)
                meter.tell(number / len(left))
    return [(cell, failed[cell.digest]) for cell in made.cells if cell.digest in failed]


def _outcomes(
    left: Sequence[SweepCell], workers: int | None, scheduler: str | None
) -> Iterator[tuple[SweepCell, Outcome]]:
    if scheduler is not None:
        return on_dask(left, scheduler)
    return here(left, workers or len(os.sched_getaffinity(0)))


def _shown(cell: SweepCell) -> str:
    policy, trace, price = cell.names
    return f"policy {policy}, " + (f"trace {trace}, " if trace else "") + f"prices {price}, seed {cell.seed}"


def _data(name: str, groups: Sequence[SeedGroup], runs: Sequence[Run]) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": "SweepReport",
        "metadata": {"name": name},
        "interval": "95 %, Student's t over the seeds",
        "groups": [group.to_object() for group in groups],
        "runs": [_row(*run) for run in runs],
    }


def _row(cell: SweepCell, result: Json) -> Json:
    policy, trace, price = cell.names
    measured = {name: measure(result) for name, measure in MEASURES.items()}
    return {"policy": policy, "trace": trace, "prices": price, "seed": cell.seed, **measured}


def _csv(runs: Sequence[Run]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, ("policy", "trace", "prices", "seed", *MEASURES), lineterminator="\n")
    writer.writeheader()
    writer.writerows(_row(*run) for run in runs)
    return text.getvalue()


def _lines(name: str, groups: Sequence[SeedGroup]) -> Iterator[str]:
    yield f"{name}: {counted(sum(len(group.seeds) for group in groups), 'run')}"
    yield ""
    headers = ("POLICY", "TRACE", "PRICES", "SEEDS", "COST", "TO FIRST", "OVER BOUND", "WAIT P95", "MOVES", "UNPLACED")
    yield from table(headers, map(_cells, groups))
    if any(mean.half is not None for group in groups for mean in group.means.values()):
        yield ""
        yield "means with 95 % intervals (Student's t over the seeds); TO FIRST: against the first policy, seed by seed"


def _cells(group: SeedGroup) -> tuple[str, ...]:
    means = group.means
    return (
        group.policy,
        group.trace or "-",
        group.price,
        str(len(group.seeds)),
        f"{_mean(means['cost'], 2)} {group.currency}",
        "-" if group.against_first is None else f"{_mean(group.against_first, 1, '+')} %",
        f"{_mean(means['overBoundPercent'], 1)} %" if "overBoundPercent" in means else "-",
        f"{_mean(means['waitP95Seconds'], 0)} s",
        _mean(means["moves"], 1),
        _mean(means["podsUnplaced"], 1),
    )


def _mean(mean: Mean, decimals: int, sign: str = "") -> str:
    # Adding 0.0 makes a negative zero a zero.
    text = f"{round(mean.mean, decimals) + 0.0:{sign}.{decimals}f}"
    return text if mean.half is None else f"{text} ± {mean.half:.{decimals}f}"
