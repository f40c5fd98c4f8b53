"""When a cron schedule is due on the clock of a time zone, for windows that people keep by that clock.

Daylight saving is what makes it hard. A time that does not exist on a day is due at the next minute that does, and one
that exists twice is due once: an opening must not be lost or doubled. CronJobs follow their controller instead, which
does both.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from heapq import heappop, heappush
from itertools import pairwise
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
_DAY, _YEAR = timedelta(days=1), timedelta(days=366)
_WEEKDAYS_REPEAT, _CALENDAR_REPEATS = timedelta(days=29 * 366), timedelta(days=146_097)
"""28 years and one more; 400 years, to the day."""
_FIRST_DAYS = 2


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
    # From midnight, so all who ask on one day share what was worked out.
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

    As robfig/cron does for it: a run falls on every instant at which the clock shows a time of the schedule, so
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
    """The first opening, and the next, that comes before `duration_s` have passed; None where none ever does.

    Two openings that overlap are times of one due day, or the last of one and the first of the next. So due days are
    gone through until the calendar repeats itself, and instants are worked out only where two times may be too near.
    """
    text, where = MACROS.get(schedule.strip(), schedule), ZoneInfo(zone)
    start = datetime.fromtimestamp(_FIRST_LOOKED_AT_S, where).replace(hour=0, minute=0, tzinfo=None)
    fields = CronSim(text, start)
    times = [timedelta(hours=hour, minutes=each) for hour in sorted(fields.hours) for each in sorted(fields.minutes)]
    for number, (day, following) in enumerate(pairwise(_due_days(fields, start))):
        around = (day, following + _DAY) if following - day == _DAY else (day, day + _DAY, following, following + _DAY)
        is_set = len({_offset(each, where) for each in around}) > 1
        gap_s = (following + times[0] - day - times[-1]).total_seconds()
        is_near = gap_s < duration_s + (_LONGEST_GAP.total_seconds() if is_set else 0)
        # On days on which no clock is set, times are as far apart as on the first; that may have begun before the year.
        own = times if is_set or number < _FIRST_DAYS else times[-1:]
        shown = [*(day + time for time in own), *([following + times[0]] if is_near else ())]
        found = _overlapping(shown, where, duration_s) if len(shown) > 1 else None
        if found is not None:
            return found
    return None


@lru_cache(maxsize=1024)
def longest_gap_s(schedule: str) -> float:
    """The longest time from one due instant of a good schedule to the next, in UTC."""
    start = datetime.fromtimestamp(_FIRST_LOOKED_AT_S, UTC).replace(tzinfo=None)
    fields = CronSim(MACROS.get(schedule.strip(), schedule), start)
    times = [timedelta(hours=hour, minutes=each) for hour in sorted(fields.hours) for each in sorted(fields.minutes)]
    on_one_day = (second - first for first, second in pairwise(times))
    over_days = (following + times[0] - day - times[-1] for day, following in pairwise(_due_days(fields, start)))
    return max((*on_one_day, *over_days)).total_seconds()


def _overlapping(shown: Iterable[datetime], where: ZoneInfo, duration_s: int) -> tuple[float, float] | None:
    """The first two of rising times that are nearer than that; those that a clock leaves out are one with the next."""
    rising = sorted({instant for each in shown if (instant := _instant_s(each, where)) > _FIRST_LOOKED_AT_S})
    return next(((first, second) for first, second in pairwise(rising) if second < first + duration_s), None)


def _offset(shown: datetime, where: ZoneInfo) -> timedelta | None:
    return shown.replace(tzinfo=where).utcoffset()


def _due_days(fields: CronSim, start: datetime) -> Iterator[datetime]:
    """The days of a schedule, each by its midnight, until every gap between two of them has come.

    Any two years that follow each other come within 28, whatever their weekdays. A schedule that leaves out whole years
    needs the 400 in which the calendar repeats itself.
    """
    shortest, before, day = _CALENDAR_REPEATS, start - _CALENDAR_REPEATS, start
    while day <= start + (_WEEKDAYS_REPEAT if shortest < _YEAR else 2 * _CALENDAR_REPEATS):
        if day.month not in fields.months:
            day = (day.replace(day=28) + 4 * _DAY).replace(day=1)
            continue
        if fields.match_day(day):
            yield day
            if before >= start + _CALENDAR_REPEATS:
                return
            shortest, before = min(shortest, day - before), day
        day += _DAY


def local_text(instant_s: float, zone: str) -> str:
    """An instant as the clock of the zone shows it: `2026-03-29 03:00 Europe/Berlin`.

    With the offset where the clock shows the same time twice: `2026-10-25 02:30+01:00 Europe/Berlin`.
    """
    local = datetime.fromtimestamp(instant_s, ZoneInfo(zone))
    is_twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
    shown = local.isoformat(sep=" ", timespec="minutes")
    return f"{shown if is_twice else shown[:16]} {zone}"
