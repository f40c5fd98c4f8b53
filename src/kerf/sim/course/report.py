"""Report: what a simulation gives, as one value that the command line prints, tests read and the chart draws.

Times are seconds from the start of the scenario; shown, they are written as the scenario writes them (`1m40s`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kerf.model.instancetypes import price_number
from kerf.model.large import Large
from kerf.model.times import duration_text, instant_text
from kerf.sim.course.repack import RepackBound

API_VERSION = "kerf.dev/v1alpha1"


@dataclass(frozen=True, slots=True)
class Row:
    """Something that a person would want to know: when, what, to which object, and why."""

    at_s: float
    what: str
    object: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class RowCount:
    """How often something happened: first and last time, and the first object to which it did."""

    what: str
    times: int
    first_s: float
    last_s: float
    object: str


@dataclass(frozen=True, slots=True)
class Sample:
    """The cluster from `at_s` on, until the next sample. `gpus_used` is in 1/10000 of a card."""

    at_s: float
    nodes: int
    gpus_paid: float
    gpus_used: int
    pending: int
    per_hour_micro: int

    @property
    def levels(self) -> tuple[int, float, int, int, int]:
        """Everything but the time."""
        return self.nodes, self.gpus_paid, self.gpus_used, self.pending, self.per_hour_micro


@dataclass(frozen=True, slots=True)
class Waits:
    """How long pods waited from their creation until they were bound, in seconds, by nearest rank; 0 without pods."""

    p50: float = 0
    p95: float = 0
    p99: float = 0
    max: float = 0

    @classmethod
    def of(cls, waits_s: Sequence[float]) -> "Waits":
        """Of all waits, in any order."""
        ordered = sorted(waits_s)
        if not ordered:
            return cls()

        def rank(percent: int) -> float:
            return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]

        return cls(rank(50), rank(95), rank(99), ordered[-1])


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the whole time. Hours are exact to the second; a GPU hour allocated is one card fully used."""

    cost_micro: int = 0
    node_hours: float = 0
    gpu_hours_paid: float = 0
    gpu_hours_allocated: float = 0
    pods_placed: int = 0
    pods_unplaced: int = 0
    waits: Waits = Waits()
    launches: int = 0
    deletions: int = 0
    evictions: int = 0

    @property
    def kerf(self) -> float:
        """The share of paid GPU hours that no pod used; 0 when none were paid."""
        return 0.0 if self.gpu_hours_paid == 0 else 1 - self.gpu_hours_allocated / self.gpu_hours_paid


@dataclass(frozen=True, slots=True)
class StillPending:
    """So many pods that wait at the end, the first of them by name, and the last FailedScheduling that Kerf posted for
    each; `why` is empty where it posted none.
    """

    pods: int
    first: str
    why: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a trace. `pods` have come, `again` of them another time after an eviction or the end of a node.

    `ended` have run to their end. `bound` is None where none was taken.
    """

    pods: int
    again: int
    ended: int
    bound: RepackBound | None = None


@dataclass(frozen=True)
class CheckedExpectation:
    """An expectation and what came of it; `expected` as the scenario writes it, `got` in the same form."""

    at_s: float
    expected: dict[str, Any]
    got: dict[str, Any]
    is_met: bool
    place: str = ""


@dataclass(frozen=True, repr=False)
class SimulationReport(Large):
    """Everything. `rows`, `samples` and `outcomes` are in time order; `events` is how often the API changed.

    Of a trace, whose pods are many, `rows` are left out. `counts` are how often each thing happened, in the order in
    which it first did. `unplaced` are the pods that wait at the end, by why, most pods first.
    """

    name: str
    start_s: float
    duration_s: float
    currency: str
    totals: Totals = Totals()
    rows: tuple[Row, ...] = ()
    counts: tuple[RowCount, ...] = ()
    samples: tuple[Sample, ...] = ()
    outcomes: tuple[CheckedExpectation, ...] = ()
    notes: tuple[str, ...] = ()
    events: int = 0
    replayed: Replayed | None = None
    unplaced: tuple[StillPending, ...] = ()

    @property
    def over_bound(self) -> float | None:
        """By which part the cost is above the re-pack bound of its time; None without one.

        None too where the bound was taken too seldom to be one: of no moment with pods, or more than all nodes cost.
        """
        bound = self.replayed.bound if self.replayed is not None else None
        if bound is None or not bound.micro or bound.micro > self.totals.cost_micro:
            return None
        return self.totals.cost_micro / bound.micro - 1

    @property
    def is_met(self) -> bool:
        """Whether every expectation was met."""
        return all(outcome.is_met for outcome in self.outcomes)

    def to_object(self) -> dict[str, Any]:
        """The Report of docs/reference/scenario.md, ready for JSON or YAML."""
        return {
            "apiVersion": API_VERSION,
            "kind": "Report",
            "metadata": {"name": self.name},
            "start": instant_text(self.start_s),
            "duration": offset_text(self.duration_s),
            "timeline": [
                {"at": offset_text(row.at_s), "what": row.what, "object": row.object, "why": row.why}
                for row in self.rows
            ],
            "totals": _totals(self.totals, self.currency),
            **({"unplaced": [_unplaced(each) for each in self.unplaced]} if self.unplaced else {}),
            "expectations": [
                {"at": offset_text(o.at_s), "expected": o.expected, "got": o.got, "ok": o.is_met} for o in self.outcomes
            ],
            "notes": list(self.notes),
            **({} if self.replayed is None else {"replay": self._replay(self.replayed)}),
        }

    def _replay(self, replayed: Replayed) -> dict[str, Any]:
        written: dict[str, Any] = {"pods": replayed.pods, "again": replayed.again, "ended": replayed.ended}
        written["happened"] = [
            {"what": c.what, "times": c.times, "first": offset_text(c.first_s), "last": offset_text(c.last_s)}
            for c in self.counts
        ]
        bound, over = replayed.bound, self.over_bound
        if bound is not None:
            written["repackBound"] = {
                "cost": price_number(bound.micro),
                "every": offset_text(bound.every_s),
                "samples": bound.samples,
                "unproven": bound.unproven,
            }
            written["overBoundPercent"] = None if over is None else _rounded(100 * over)
        return written


def _totals(totals: Totals, currency: str) -> dict[str, Any]:
    return {
        "cost": price_number(totals.cost_micro),
        "currency": currency,
        "nodeHours": _rounded(totals.node_hours),
        "gpuHoursPaid": _rounded(totals.gpu_hours_paid),
        "gpuHoursAllocated": _rounded(totals.gpu_hours_allocated),
        "kerf": _rounded(totals.kerf),
        "podsPlaced": totals.pods_placed,
        "podsUnplaced": totals.pods_unplaced,
        "waitSeconds": {
            "p50": _rounded(totals.waits.p50),
            "p95": _rounded(totals.waits.p95),
            "p99": _rounded(totals.waits.p99),
            "max": _rounded(totals.waits.max),
        },
        "launches": totals.launches,
        "deletions": totals.deletions,
        "evictions": totals.evictions,
    }


def _unplaced(unplaced: StillPending) -> dict[str, Any]:
    return {"pods": unplaced.pods, "first": unplaced.first, "why": unplaced.why}


def _rounded(number: float) -> float | int:
    """To four decimals, and as a whole number where it is one, so the same value is always the same text."""
    rounded = round(number, 4)
    return int(rounded) if rounded == int(rounded) else rounded


def offset_text(seconds: float) -> str:
    """A time since the start: `0s`, `1m40s`, `1h`, `2m0.125s`; exact to the millisecond."""
    thousandths = round(seconds * 1000)
    if thousandths % 1000 == 0:
        return duration_text(thousandths // 1000)
    whole, rest = divmod(thousandths, 60_000)
    minutes = duration_text(whole * 60) if whole else ""
    return f"{minutes}{rest // 1000}.{rest % 1000:03d}".rstrip("0") + "s"
