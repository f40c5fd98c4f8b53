"""When a cron schedule is due on the clock of a time zone, for windows that people keep by that clock.

Daylight saving is what makes it hard. A time that does not exist on a day is due at the next minute that does, and one
that exists twice is due once: nobody wants an opening lost or doubled. CronJobs follow their controller instead, which
does both.
"""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from heapq import heappop, heappush
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from kerf.errors import MOST_SHOWN, cut

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MINUTE = timedelta(minutes=1)
_LONGEST_GAP = timedelta(days=2)
"""More than any clock was ever set forward: Samoa left out a day."""
_LONGEST_REPEAT = timedelta(hours=3)
"""More than any clock that is used today is set back."""
_STRETCH, _MOST_OF_STRETCH = timedelta(days=7), 256
"""Due times are worked out, and kept, by so many days and at most so many at once."""
_FIRST_LOOKED_AT_S = 1_767_225_600.0
"""2026-01-01T00:00:00Z: whether openings overlap must not depend on when it is asked."""
_LOOKED_AT_S, _MOST_LOOKED_AT = 400 * 86_400, 10_000
"""A year and a month, both changes of the clock in it, and so many openings at most."""


def schedule_problem(schedule: str) -> str:
    """Why a schedule cannot be followed; empty when it can. Five fields of cron, or a macro."""
    text = MACROS.get(schedule.strip(), schedule)
    if len(text.split()) != 5:
        return "it has not five fields"
    try:
        CronSim(text, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        return cut(str(error).lower(), MOST_SHOWN)
    return ""


def has_zone(name: str) -> bool:
    """Whether the time zone database knows the name. The machine's own zone is none of them."""
    try:
        return name != "" and name != "localtime" and ZoneInfo(name) is not None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False


def due_times(schedule: str, zone: str, after_s: float) -> Iterator[float]:
    """Every instant after `after_s` at which a good schedule is due, rising; none is given twice."""
    began = datetime.fromtimestamp(after_s, ZoneInfo(zone)).replace(tzinfo=None) - _LONGEST_GAP
    # From midnight, so that all who ask on one day share what was worked out.
    start: datetime | None = began.replace(hour=0, minute=0, second=0, microsecond=0)
    last_s = after_s
    while start is not None:
        stretch = _stretch(schedule, zone, start)
        for due_s in stretch.due_s[bisect_right(stretch.due_s, last_s) :]:
            last_s = due_s
            yield due_s
        start = stretch.last


class _Stretch(NamedTuple):
    """Some due times, rising, and the last of them as the clock shows it; None where no more come."""

    due_s: tuple[float, ...]
    last: datetime | None


# A controller asks for the next opening with each pass, and cron's fields are slow to follow minute by minute.
@lru_cache(maxsize=1024)
def _stretch(schedule: str, zone: str, start: datetime) -> _Stretch:
    """What is due after the clock shows `start`, for some days or, where all are empty, up to the first that is not."""
    where = ZoneInfo(zone)
    due_s: list[float] = []
    # Without a zone cronsim counts on a clock that is never set.
    for shown in CronSim(MACROS.get(schedule.strip(), schedule), start):
        instant_s = _instant_s(shown, where)
        if not due_s or instant_s > due_s[-1]:
            due_s.append(instant_s)
        if shown >= start + _STRETCH or len(due_s) == _MOST_OF_STRETCH:
            return _Stretch(tuple(due_s), shown)
    return _Stretch(tuple(due_s), None)


def run_times(schedule: str, zone: str, after_s: float) -> Iterator[float]:
    """Every instant after `after_s` at which a CronJob's controller is due to start a run, rising.

    As robfig/cron does for it: a run falls on every instant at which the clock shows a time of the schedule, so that
    one in an hour that is left out is lost, and one in an hour that comes twice comes twice. No zone is UTC.
    """
    where = ZoneInfo(zone or "UTC")
    start = datetime.fromtimestamp(after_s, where).replace(tzinfo=None) - _LONGEST_REPEAT
    waiting: list[float] = []
    for shown in CronSim(MACROS.get(schedule.strip(), schedule), start):
        first = shown.replace(tzinfo=where)
        # Times that the clock shows later on may come earlier than the second time it shows this one.
        while waiting and waiting[0] < first.timestamp():
            yield heappop(waiting)
        for instant in {first.astimezone(UTC), first.replace(fold=1).astimezone(UTC)}:
            if instant.astimezone(where).replace(tzinfo=None) == shown and instant.timestamp() > after_s:
                heappush(waiting, instant.timestamp())
    yield from sorted(waiting)


def _instant_s(shown: datetime, where: ZoneInfo) -> float:
    """When a clock shows this first; where it never does, the next minute that it shows."""
    while True:
        instant = shown.replace(tzinfo=where).astimezone(UTC)
        if instant.astimezone(where).replace(tzinfo=None) == shown:
            return instant.timestamp()
        shown += _MINUTE


@lru_cache(maxsize=1024)
def first_overlap(schedule: str, zone: str, duration_s: int) -> tuple[float, float] | None:
    """The first opening, and the next, that comes before `duration_s` have passed; None where none does."""
    before_s: float | None = None
    for number, due_s in enumerate(due_times(schedule, zone, _FIRST_LOOKED_AT_S)):
        if before_s is not None and due_s < before_s + duration_s:
            return before_s, due_s
        if due_s > _FIRST_LOOKED_AT_S + _LOOKED_AT_S or number > _MOST_LOOKED_AT:
            return None
        before_s = due_s
    return None


def local_text(instant_s: float, zone: str) -> str:
    """An instant as the clock of the zone shows it: `2026-03-29 03:00 Europe/Berlin`.

    With the offset where the clock shows the same time twice: `2026-10-25 02:30+01:00 Europe/Berlin`.
    """
    local = datetime.fromtimestamp(instant_s, ZoneInfo(zone))
    is_twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
    shown = local.isoformat(sep=" ", timespec="minutes")
    return f"{shown if is_twice else shown[:16]} {zone}"
