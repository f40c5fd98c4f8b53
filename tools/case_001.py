"""Run the company of document 001 before and after its windows, and set the figures beside the document's.

The control runs the jobs of afterwards, at the same hours, without windows: what is left between it and them is what
windows do, and the rest is what comes of starting jobs at other hours on nodes that come and go.

    python -m tools.case_001 [DAYS]     30 days take some minutes
    python -m tools.case_001 --charts   draws the first two days of both into docs/guides

Prints the table of docs/guides/one-day-for-many.md. The assumptions are in examples/001-case/README.md. Waiting is
from the minute in which a CronJob was due, which is in the name of its pods, to the binding of the pod.
"""

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from kerf.sim.course.chart import svg
from kerf.sim.course.report import SimulationReport
from kerf.sim.course.scenario import read_scenario
from kerf.sim.simulation import run

ROOT = Path(__file__).parents[1]
CASE, GUIDES = ROOT / "examples" / "001-case", ROOT / "docs" / "guides"
_DAY_S = 86_400
_POD = re.compile(r"pod/default/(?P<job>[a-z]+)-(?P<due_minute>\d+)-")
_SPARE = "spare"
_HEAD = (
    "document before",
    "document after",
    "simulated before",
    "simulated after",
    "reaches the document's gain",
    "control: the jobs of after, no windows",
)


@dataclass(frozen=True)
class Figures:
    """What one world came to; the bill for 30 days, waiting in seconds."""

    utilisation_percent: float
    bill: float
    team_waits_s: tuple[float, ...]
    spare_waits_s: tuple[float, ...]
    launches: int


def wait_text(share: float, waits: Sequence[float]) -> str:
    """The wait that this share of the jobs does not exceed."""
    return span(sorted(waits)[math.ceil(share * len(waits)) - 1]) if waits else "-"


def figures(name: str, days: int) -> Figures:
    """Run `before`, `after` or `control` for so many days."""
    report = simulated(name, days)
    totals = report.totals
    waits = _waits(report)
    return Figures(
        100 * (1 - totals.kerf),
        totals.cost_micro / 1_000_000 * 30 / days,
        tuple(s for job, s in waits if job != _SPARE),
        tuple(s for job, s in waits if job == _SPARE),
        totals.launches,
    )


@cache
def simulated(name: str, days: int) -> SimulationReport:
    """What became of the first days of `before`, `after` or `control`."""
    return run(replace(read_scenario(str(CASE / f"{name}.yaml")), duration_s=days * _DAY_S))


def draw() -> None:
    """Nodes, GPUs paid and used, and pending pods of two days, one picture for each world."""
    for name in ("before", "after"):
        (GUIDES / f"one-day-{name}.svg").write_text(svg(simulated(name, 2)), encoding="utf-8")


def _waits(report: SimulationReport) -> list[tuple[str, float]]:
    """The team and the wait of each pod that was bound; an evicted pod's successor waits from the same minute."""
    found = []
    for row in report.rows:
        named = _POD.match(row.object) if row.what == "bound" else None
        if named is not None:
            found.append((named["job"], report.start_s + row.at_s - 60 * int(named["due_minute"])))
    return found


def span(seconds: float) -> str:
    """`4 s`, `12 min`, `3 h 30 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def table(before: Figures, after: Figures, control: Figures) -> str:
    """Markdown: the document's figures, ours, whether ours reach them, and the control's."""
    rows = [
        ("", *_HEAD),
        ("---",) * 7,
        (
            "utilisation of the GPUs",
            "35 %",
            "78 %",
            f"{before.utilisation_percent:.1f} %",
            f"{after.utilisation_percent:.1f} %",
            _reached(after.utilisation_percent / before.utilisation_percent >= 78 / 35),
            f"{control.utilisation_percent:.1f} %",
        ),
        (
            "bill of 30 days",
            "$12,000",
            "$8,500",
            f"${before.bill:,.0f}",
            f"${after.bill:,.0f}",
            _reached(after.bill / before.bill <= 8_500 / 12_000),
            f"${control.bill:,.0f}",
        ),
        *_wait_rows("teams", before.team_waits_s, after.team_waits_s, control.team_waits_s),
        *_wait_rows("best effort", before.spare_waits_s, after.spare_waits_s, control.spare_waits_s),
        ("nodes launched", "-", "-", str(before.launches), str(after.launches), "-", str(control.launches)),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _wait_rows(
    who: str, waits: Sequence[float], later: Sequence[float], plain: Sequence[float]
) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        ordered, ended = sorted(waits), sorted(later)
        worst, best = (held[math.ceil(share * len(held)) - 1] for held in (ordered, ended))
        reached = _reached(best <= worst * 15 / 120)
        texts = [wait_text(share, held) for held in (waits, later, plain)]
        found.append((f"waiting of {who}, {name}", "2 h", "15 min", *texts[:2], reached, texts[2]))
    return found


def _reached(is_reached: bool) -> str:
    return "yes" if is_reached else "**no**"


if __name__ == "__main__":
    if "--charts" in sys.argv:
        draw()
        sys.exit()
    days = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    sys.stdout.write(table(*(figures(name, days) for name in ("before", "after", "control"))))
