"""What `kerf simulate` does: it runs scenarios in virtual time, and prints their reports."""

from collections.abc import Iterator, Sequence
from typing import Any

from kerf.cli.echo import echo, write_file
from kerf.cli.exits import DONE, LOOK
from kerf.cli.plan.json import API_VERSION, Json
from kerf.cli.progress import progress
from kerf.cli.render import counted, emit, table
from kerf.model.instancetypes import price_text
from kerf.sim.course.report import CheckedExpectation, Replayed, SimulationReport, StillPending, Totals, offset_text
from kerf.sim.course.scenario import Scenario, read_scenario
from kerf.sim.course.tracescenario import TraceFlags, with_flags
from kerf.sim.simulation import run


def show(scenarios: Sequence[str], flags: dict[str, Any]) -> int:
    """Run the scenarios, or the trace alone, and print what came of them; the exit code."""
    chart = flags["chart"]
    asked = TraceFlags(
        flags["trace"],
        flags["trace_format"],
        flags["copies"],
        flags["skip"],
        flags["span"],
        flags["longest"],
        flags["seed"],
        flags["duration"],
        flags["bound_every"],
    )
    read = [with_flags(scenario, asked) for scenario in (map(read_scenario, scenarios) if scenarios else [None])]
    for scenario in read:
        for warning in scenario.warnings:
            echo(f"warning: {warning}", err=True)
    reports = [_report(scenario) for scenario in read]
    if chart is not None:
        from kerf.sim.course.chart import svg

        write_file("--chart", chart, svg(reports[0]))
    emit(flags["output"], lambda: _data(reports), lambda: _lines(reports, is_summary=flags["summary"]))
    return LOOK if any(_needs_look(report) for report in reports) else DONE


def _data(reports: Sequence[SimulationReport]) -> Json:
    """One report as it is, several as a list."""
    objects = [report.to_object() for report in reports]
    return objects[0] if len(objects) == 1 else {"apiVersion": API_VERSION, "kind": "ReportList", "items": objects}


_MOST_REASONS = 5
"""So many reasons for which pods are not placed are printed."""
_BEGUN = 0.02
"""The share of a run whose time is guessed; later the time left follows from what is done."""
_PER_HOUR_S = 0.5
"""What an hour of a small cluster takes."""


def _report(scenario: Scenario) -> SimulationReport:
    with progress(f"simulating {scenario.name}") as meter:
        # Until the run reports a share, the time left comes from this.
        meter.guess(_BEGUN, _BEGUN * (2 + _PER_HOUR_S * scenario.duration_s / 3600))
        return run(scenario, progress=lambda at_s: meter.tell(at_s / scenario.duration_s if scenario.duration_s else 1))


def _needs_look(report: SimulationReport) -> bool:
    return not report.is_met or (not report.outcomes and report.totals.pods_unplaced > 0)


def _lines(reports: Sequence[SimulationReport], *, is_summary: bool) -> Iterator[str]:
    for number, report in enumerate(reports):
        if number:
            yield ""
        yield from report_lines(report, is_summary=is_summary)


def report_lines(report: SimulationReport, *, is_summary: bool = False) -> Iterator[str]:
    """Timeline or its summary, totals, expectations, notes."""
    yield f"{report.name}: {offset_text(report.duration_s)} simulated"
    yield ""
    if is_summary or report.replayed is not None:
        yield from _summary(report)
    else:
        rows = [(offset_text(row.at_s), row.what, row.object, row.why) for row in report.rows]
        yield from table(("AT", "WHAT", "OBJECT", "WHY"), rows)
    yield ""
    yield from _total_lines(report.totals, report.currency)
    yield from _unplaced_lines(report.unplaced)
    if report.replayed is not None:
        yield from _replay_lines(report, report.replayed)
    if report.outcomes:
        yield ""
        yield from _outcome_lines(report.outcomes)
    if report.notes:
        yield ""
        yield from (f"note: {note}" for note in report.notes)


def _summary(report: SimulationReport) -> Iterator[str]:
    """A row for each kind of thing that happened, in the order in which it first did."""
    rows = ((c.what, str(c.times), offset_text(c.first_s), offset_text(c.last_s), c.object) for c in report.counts)
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


def _unplaced_lines(unplaced: Sequence[StillPending]) -> Iterator[str]:
    """Why pods wait at the end, the commonest reasons first."""
    for each in unplaced[:_MOST_REASONS]:
        why = each.why or "Kerf posted no FailedScheduling"
        yield f"not placed: {counted(each.pods, 'pod')}, first pod/{each.first}: {why}"
    others = unplaced[_MOST_REASONS:]
    if others:
        pods = counted(sum(each.pods for each in others), "pod")
        yield f"not placed: {pods} for {counted(len(others), 'other reason')}; -o json has them"


def _replay_lines(report: SimulationReport, replayed: Replayed) -> Iterator[str]:
    again = f", {replayed.again} of them again" if replayed.again else ""
    p99 = offset_text(report.totals.waits.p99)
    yield f"trace: {replayed.pods} pods came{again}, {replayed.ended} ended; of all waits 99 % are at most {p99}"
    bound = replayed.bound
    if bound is None:
        return
    cost, over = price_text(bound.micro), report.over_bound
    text = "" if over is None else f": {100 * over:.1f} % above it"
    is_seldom = over is None and report.totals.cost_micro > 0 and bound.unproven < bound.samples
    if is_seldom and (bound.micro or not bound.unproven):
        why = "the cost is below it" if bound.micro else "no pod ran when it was taken"
        text = f": {why}; take --bound-every {offset_text(60 if bound.every_s > 60 else max(1, bound.every_s // 10))}"
    yield f"re-pack bound: {cost} {report.currency}, taken every {offset_text(bound.every_s)}{text}"
    if bound.unproven:
        yield f"  of {bound.samples} times {bound.unproven} without a bound: pods ran that no type on sale holds"


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
