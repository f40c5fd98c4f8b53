"""`kerf simulate`: scenarios run in virtual time, and their reports."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from kerf.cli.echo import echo
from kerf.cli.exits import DONE, LOOK
from kerf.cli.inputs.input import output_option, progress
from kerf.cli.plan.json import API_VERSION, Json
from kerf.cli.render import counted, emit, table
from kerf.errors import InputError
from kerf.model.instancetypes import price_text
from kerf.sim.course.report import CheckedExpectation, SimulationReport, Totals, offset_text
from kerf.sim.course.scenario import Scenario, read_scenario
from kerf.sim.simulation import run


@click.command()
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@output_option
@click.option("--chart", metavar="FILE.svg", help="Draw nodes, GPUs paid and used, pending pods over time.")
@click.option("--summary", is_flag=True, help="In text, how often each thing happened in place of every row.")
def simulate(scenarios: tuple[str, ...], output: str, chart: str | None, *, summary: bool) -> int:
    """Run the real controllers in virtual time: timeline, cost, waiting, waste.

    Exit code 3 when an expectation is missed or, in a scenario that states none, a pod has no place at the end.
    """
    if chart is not None and len(scenarios) > 1:
        raise click.UsageError(f"--chart draws one scenario, got {len(scenarios)}")
    read = [read_scenario(path) for path in scenarios]
    for scenario in read:
        for warning in scenario.warnings:
            echo(f"warning: {warning}", err=True)
    reports = [_report(scenario) for scenario in read]
    if chart is not None:
        _draw(reports[0], chart)
    emit(output, lambda: _data(reports), lambda: _lines(reports, is_summary=summary))
    return LOOK if any(_needs_look(report) for report in reports) else DONE


def _data(reports: Sequence[SimulationReport]) -> Json:
    """One report as it is, several as a list."""
    objects = [report.to_object() for report in reports]
    return objects[0] if len(objects) == 1 else {"apiVersion": API_VERSION, "kind": "ReportList", "items": objects}


def _report(scenario: Scenario) -> SimulationReport:
    with progress(f"simulating {scenario.name}") as say:
        return run(scenario, progress=_percentages(scenario.duration_s, say))


def _percentages(duration_s: int, say: Callable[[str], None]) -> Callable[[float], None]:
    """Tells each whole percent once, however many events there are."""
    shown = -1

    def tell(at_s: float) -> None:
        nonlocal shown
        percent = int(100 * at_s / duration_s) if duration_s else 100
        if percent != shown:
            shown = percent
            say(f"{percent} %")

    return tell


def _needs_look(report: SimulationReport) -> bool:
    return not report.is_met or (not report.outcomes and report.totals.pods_unplaced > 0)


def _draw(report: SimulationReport, path: str) -> None:
    from kerf.sim.course.chart import svg

    try:
        Path(path).write_text(svg(report), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--chart {path}: expected a file that can be written, got: {error.strerror}") from None


def _lines(reports: Sequence[SimulationReport], *, is_summary: bool) -> Iterator[str]:
    for number, report in enumerate(reports):
        if number:
            yield ""
        yield from report_lines(report, is_summary=is_summary)


def report_lines(report: SimulationReport, *, is_summary: bool = False) -> Iterator[str]:
    """Timeline or its summary, totals, expectations, notes."""
    yield f"{report.name}: {offset_text(report.duration_s)} simulated"
    yield ""
    if is_summary:
        yield from _summary(report)
    else:
        rows = [(offset_text(row.at_s), row.what, row.object, row.why) for row in report.rows]
        yield from table(("AT", "WHAT", "OBJECT", "WHY"), rows)
    yield ""
    yield from _total_lines(report.totals, report.currency)
    if report.outcomes:
        yield ""
        yield from _outcome_lines(report.outcomes)
    if report.notes:
        yield ""
        yield from (f"note: {note}" for note in report.notes)


def _summary(report: SimulationReport) -> Iterator[str]:
    """A row for each kind of thing that happened, in the order in which it first did."""
    counts = Counter(row.what for row in report.rows)
    first = {row.what: row for row in reversed(report.rows)}
    last = {row.what: row for row in report.rows}
    rows = (
        (what, str(number), offset_text(first[what].at_s), offset_text(last[what].at_s), first[what].object)
        for what, number in counts.items()
    )
    yield from table(("WHAT", "TIMES", "FIRST", "LAST", "FIRST OBJECT"), rows)


def _total_lines(totals: Totals, currency: str) -> Iterator[str]:
    yield f"cost: {price_text(totals.cost_micro)} {currency} for {totals.node_hours:.4g} node hours"
    if totals.gpu_hours_paid:
        used = f"{totals.gpu_hours_paid:.4g} GPU hours paid, {totals.gpu_hours_allocated:.4g} allocated"
        yield f"GPUs: {used}, kerf {totals.kerf * 100:.3g} %"
    waits = ", ".join(
        f"{name} {offset_text(seconds)}"
        for name, seconds in (("p50", totals.waits.p50), ("p95", totals.waits.p95), ("max", totals.waits.max))
    )
    yield f"pods: {totals.pods_placed} placed, {totals.pods_unplaced} not; waited {waits}"
    counts = ((totals.launches, "launch"), (totals.deletions, "deletion"), (totals.evictions, "eviction"))
    yield ", ".join(f"{number} {noun}{_plural(noun, number)}" for number, noun in counts)


def _plural(noun: str, number: int) -> str:
    return "" if number == 1 else "es" if noun.endswith("ch") else "s"


def _outcome_lines(outcomes: Sequence[CheckedExpectation]) -> Iterator[str]:
    missed = sum(1 for outcome in outcomes if not outcome.is_met)
    rows = [
        (
            offset_text(outcome.at_s),
            "ok" if outcome.is_met else "MISSED",
            _flow(outcome.expected),
            "-" if outcome.is_met else _flow(outcome.got),
        )
        for outcome in outcomes
    ]
    yield from table(("AT", "EXPECTATION", "EXPECTED", "GOT"), rows)
    yield ""
    yield f"{counted(len(outcomes), 'expectation')}, {missed} missed"


def _flow(value: object) -> str:
    """A value as the scenario writes it on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(held)}" for key, held in value.items()) + "}"
    return str(value)
