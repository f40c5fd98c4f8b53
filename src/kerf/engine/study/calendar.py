"""Which window opens when, and what the capacity that it keeps costs: a plan for each, on a cluster without nodes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kerf.engine.decide import decide
from kerf.engine.decision import Decision
from kerf.engine.headroom.windows.phases import turn_of
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.schedules import due_times
from kerf.model.windows import OPEN, CapacityWindow, WindowStatus

_MOST = 10_000
"""Openings that a calendar shows at most."""


@dataclass(frozen=True)
class CalendarEntry:
    """One opening. `kept` is the plan for what is ready from `lead_s` before it to its end; `cost_micro` what that is.

    A lead ends where the opening before it does: what is kept between both is counted once.
    It is reckoned as if there were no nodes: capacity that windows share, or that is there already, costs less.
    """

    window: CapacityWindow
    opens_s: float
    closes_s: float
    lead_s: int
    kept: Decision

    @property
    def nodes(self) -> int:
        """How many nodes that takes."""
        return len(self.kept.launches)

    @property
    def cost_micro(self) -> int:
        """In micro-units of the currency, for the whole opening, at the prices of now."""
        per_hour = sum(launch.price_micro for launch in self.kept.launches)
        return per_hour * int(self.closes_s - self.opens_s + self.lead_s) // 3600


def calendar(world: World, until_s: float) -> tuple[CalendarEntry, ...]:
    """Openings that are, or begin before `until_s`, by time, then by window. A window that is invalid has none."""
    found = []
    for window in world.snapshot.windows:
        kept: Decision | None = None
        closed_s: float | None = None
        for opens_s, closes_s in _openings(window, world.snapshot.taken_at_s, until_s):
            kept = kept or _kept(window, world, opens_s)
            lead_s = window.lead_s if closed_s is None else min(window.lead_s, int(opens_s - closed_s))
            found.append(CalendarEntry(window, opens_s, closes_s, lead_s, kept))
            closed_s = closes_s
    return tuple(sorted(found, key=lambda entry: (entry.opens_s, entry.window.name)))


def _openings(window: CapacityWindow, now_s: float, until_s: float) -> Iterator[tuple[float, float]]:
    turn = turn_of(window, now_s)
    if turn.opens_s is None or turn.closes_s is None or turn.opens_s > until_s:
        return
    yield turn.opens_s, turn.closes_s
    for _, opens_s in zip(range(_MOST), due_times(window.schedule, window.time_zone, turn.opens_s), strict=False):
        if opens_s > until_s:
            return
        yield opens_s, opens_s + window.duration_s


def _kept(window: CapacityWindow, world: World, opens_s: float) -> Decision:
    """What is bought for a window at an opening, were there nothing else."""
    alone = replace(
        world.snapshot,
        taken_at_s=opens_s,
        nodes=(),
        pending=(),
        windowed=(),
        windows=(replace(window, status=WindowStatus()),),
    )
    assert turn_of(alone.windows[0], opens_s).phase == OPEN
    return decide(World(alone, world.market), Options(with_bound=False))


def total_micro(entries: Iterable[CalendarEntry]) -> int:
    """What all of it costs, each for itself."""
    return sum(entry.cost_micro for entry in entries)
