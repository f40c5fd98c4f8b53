"""What keeps a CronJob's run from its warm node, in words."""

from kerf.engine.headroom.prewarm import NoDeadline, NoTimeZone, NotPrewarmed, RunWarning, StartsLate, Suspended
from kerf.model.times import duration_text


def warning_text(warning: RunWarning) -> str:
    """For a person, without the name of the CronJob."""
    match warning:
        case NotPrewarmed(problem):
            return f"{problem}; it is not prewarmed"
        case Suspended():
            return "it is suspended: no node is kept ready for it"
        case NoTimeZone():
            return (
                "it has no timeZone: runs are reckoned in UTC, and the clock of its controller may be another; "
                "state one"
            )
        case NoDeadline():
            return "its Job has no activeDeadlineSeconds: a run that hangs holds its node for ever"
        case StartsLate(starting_deadline_s, lead_s):
            return (
                f"startingDeadlineSeconds {starting_deadline_s} is shorter than the lead of {duration_text(lead_s)}: "
                "a node that is late by more than that meets no run"
            )
