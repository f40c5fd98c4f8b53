"""How a scheduler's `defaultConstraints` are written in a setting; `defaultspread` reads them."""

NONE, SYSTEM = "none", "System"
FORM = "none, System, or KEY=MAXSKEW[:DoNotSchedule|ScheduleAnyway], separated by commas"
PATTERN = (
    r"(?:[A-Za-z0-9./_-]{1,316}=[1-9][0-9]{0,3}(?::(?:DoNotSchedule|ScheduleAnyway))?,)*"
    r"[A-Za-z0-9./_-]{1,316}=[1-9][0-9]{0,3}(?::(?:DoNotSchedule|ScheduleAnyway))?"
)
