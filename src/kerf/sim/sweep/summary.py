"""Runs that differ in their seeds alone, taken together: means with confidence intervals.

An interval is Student's t for 95 %: seeds are few and independent, and a mean of runs is near enough to normal. Against
the first policy the runs of one seed are compared pair by pair: what makes a seed expensive for both cancels out.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kerf.sim.objects import Json
from kerf.sim.sweep.cells import SweepCell

QUANTILES = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
"""Of Student's t at 97.5 %, for 1 to 30 degrees of freedom (NIST/SEMATECH e-Handbook of Statistics, 1.3.6.7.2).
With more the last one is taken, so an interval is never too narrow."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean and the half of its 95 % interval; None for a single run, which says nothing of others."""

    mean: float
    half: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Mean":
        """Of at least one value, in any order."""
        mean = math.fsum(values) / len(values)
        if len(values) == 1:
            return cls(mean, None)
        variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
        free = len(values) - 1
        quantile = QUANTILES[min(free, len(QUANTILES)) - 1]
        return cls(mean, quantile * math.sqrt(variance / len(values)))

    def to_object(self) -> Json:
        """For JSON, to four decimals."""
        low_high = None if self.half is None else [round(self.mean - self.half, 4), round(self.mean + self.half, 4)]
        return {"mean": round(self.mean, 4), "interval95": low_high}


MEASURES: Mapping[str, Callable[[Json], float | None]] = {
    "cost": lambda result: result["cost"],
    "overBoundPercent": lambda result: result["overBoundPercent"],
    "waitP50Seconds": lambda result: result["waitSeconds"]["p50"],
    "waitP95Seconds": lambda result: result["waitSeconds"]["p95"],
    "waitP99Seconds": lambda result: result["waitSeconds"]["p99"],
    "moves": lambda result: result["moves"],
    "podsUnplaced": lambda result: result["podsUnplaced"],
}
"""What is taken together, by its name in JSON and CSV."""


@dataclass(frozen=True)
class SeedGroup:
    """The runs of one policy, trace and price. `against_first` is what they cost beyond the first policy, in percent.

    None where this is the first policy, or where no seed was run with both.
    """

    policy: str
    trace: str
    price: str
    currency: str
    seeds: tuple[int, ...]
    means: Mapping[str, Mean]
    against_first: Mean | None = None

    def to_object(self) -> Json:
        """For JSON."""
        written: Json = {"policy": self.policy, "trace": self.trace, "prices": self.price, "seeds": list(self.seeds)}
        written |= {name: mean.to_object() for name, mean in self.means.items()}
        against = self.against_first
        written["costAgainstFirstPolicyPercent"] = None if against is None else against.to_object()
        return written


Run = tuple[SweepCell, Json]
_Costs = Mapping[tuple[tuple[str, str, str], int], float]
"""By names and seed."""


def grouped(runs: Sequence[Run]) -> tuple[SeedGroup, ...]:
    """The groups in the order of the runs."""
    held: dict[tuple[str, str, str], list[Run]] = {}
    for cell, result in runs:
        held.setdefault(cell.names, []).append((cell, result))
    first = next(iter(held), ("", "", ""))[0]
    costs = {(cell.names, cell.seed): result["cost"] for cell, result in runs}
    return tuple(_group(names, own, first, costs) for names, own in held.items())


def _group(
    names: tuple[str, str, str],
    runs: Sequence[Run],
    first: str,
    costs: _Costs,
) -> SeedGroup:
    policy, trace, price = names
    means = {}
    for name, measure in MEASURES.items():
        values = [value for _, result in runs if (value := measure(result)) is not None]
        if values:
            means[name] = Mean.of(values)
    more = [] if policy == first else list(_more(runs, (first, trace, price), costs))
    seeds = tuple(cell.seed for cell, _ in runs)
    return SeedGroup(policy, trace, price, runs[0][1]["currency"], seeds, means, Mean.of(more) if more else None)


def _more(runs: Sequence[Run], other: tuple[str, str, str], costs: _Costs) -> Iterator[float]:
    for cell, result in runs:
        base = costs.get((other, cell.seed))
        if base:
            yield 100 * (result["cost"] / base - 1)
