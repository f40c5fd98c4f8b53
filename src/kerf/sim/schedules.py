"""When a cron schedule is due: five fields or a macro, in UTC or in a named time zone.

Daylight saving is what makes it hard: an hour that does not exist and one that exists twice, where a run must be
neither lost nor doubled. That is left to cronsim; here are Kubernetes' macros, and what the API server refuses.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from kerf.errors import ApiError

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def due_times(schedule: str, zone: str | None, after_s: float) -> Iterator[float]:
    """Every time after `after_s` at which the schedule is due, in seconds since the epoch. Raises ApiError."""
    start = datetime.fromtimestamp(after_s, _zone(zone))
    try:
        for due in CronSim(_MACROS.get(schedule.strip(), schedule), start):
            yield due.timestamp()
    except CronSimError as error:
        raise ApiError(f"spec.schedule: expected five cron fields or a macro, got {schedule!r} ({error})") from None


def _zone(name: str | None) -> tzinfo:
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ApiError(f"spec.timeZone: expected a name of the time zone database, got {name!r}") from None


def check_schedule(obj: dict[str, object]) -> None:
    """Admission: refuse a CronJob whose schedule or time zone cannot be read."""
    spec = obj.get("spec")
    if obj["kind"] == "CronJob" and isinstance(spec, dict):
        next(due_times(spec["schedule"], spec.get("timeZone"), 0))
