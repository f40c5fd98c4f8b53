"""When a CronJob's schedule is due, and what the API server refuses of one: five fields or a macro, a named zone."""

from collections.abc import Iterator

from kerf.errors import ApiError
from kerf.model.schedules import has_zone, run_times, schedule_problem


def due_times(schedule: str, zone: str | None, after_s: float) -> Iterator[float]:
    """Every time after `after_s` at which the schedule is due, in seconds since the epoch. Raises ApiError."""
    wrong = schedule_problem(schedule)
    if wrong:
        raise ApiError(f"spec.schedule: expected five cron fields or a macro, got {schedule!r} ({wrong})")
    if zone and not has_zone(zone):
        raise ApiError(f"spec.timeZone: expected a name of the time zone database, got {zone!r}")
    yield from run_times(schedule, zone or "", after_s)


def check_schedule(obj: dict[str, object]) -> None:
    """Admission: refuse a CronJob whose schedule or time zone cannot be read."""
    spec = obj.get("spec")
    if obj["kind"] == "CronJob" and isinstance(spec, dict):
        next(due_times(spec["schedule"], spec.get("timeZone"), 0))
