"""CronJob: when its next run comes, and the pods it will make, so room can be ready before them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kerf.errors import brief
from kerf.model.pods import Pod
from kerf.model.schedules import has_zone, run_times, schedule_problem
from kerf.model.times import duration_s

PREWARM = "kerf.dev/prewarm"
"""Annotation of a CronJob: `auto`, how long before each run its node is bought, or `off`."""
PREWARM_CRON_JOBS = "kerf.dev/prewarm-cronjobs"
"""Annotation of a NodePool: the same for every CronJob that states nothing itself, on nodes of that pool."""
LEAD_TIMES = "kerf.dev/lead-times"
"""Annotation of a NodePool: how many seconds its latest nodes took until their devices were ready, by claim; JSON."""
AUTO, OFF = "auto", "off"
STAYS_S = 120
"""For so long after its start a run's pods still count: its controller and a scheduler take their time."""
_LONGEST_LEAD_S = 86_400


@dataclass(frozen=True)
class CronJob:
    """A CronJob as far as its next run can be known from it.

    `time_zone` empty means that of the controller manager, which cannot be asked for. `pods` is how many run at once;
    `pod` is one of them, without uid, since no API has seen it. `has_deadline` says whether a run ends by itself.
    """

    namespace: str
    name: str
    schedule: str
    pod: Pod = field(hash=False)
    time_zone: str = ""
    pods: int = 1
    is_suspended: bool = False
    has_deadline: bool = False
    starting_deadline_s: int | None = None
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    uid: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def problem(self) -> str:
        """Why its runs cannot be reckoned; empty when they can."""
        wrong = schedule_problem(self.schedule)
        if wrong:
            return f"spec.schedule: expected five cron fields or a macro, got {brief(self.schedule)} ({wrong})"
        if self.time_zone and not has_zone(self.time_zone):
            return f"spec.timeZone: expected a name of the time zone database, got {brief(self.time_zone)}"
        return ""

    def run_after(self, instant_s: float) -> float | None:
        """The first run after an instant; None where none comes. Taken as UTC without a time zone."""
        return None if self.problem else next(run_times(self.schedule, self.time_zone, instant_s), None)

    def job_name(self, due_s: float) -> str:
        """The Job that the controller makes for a run (kubernetes pkg/controller/cronjob, getJobName)."""
        return f"{self.name}-{int(due_s) // 60}"


def lead_of(annotations: Mapping[str, str], key: str) -> tuple[bool, int | None]:
    """(whether runs are to be met with a node, how long before in seconds); None for a lead that is learned.

    Raises ValueError with what was expected for a value that is none of them.
    """
    text = annotations.get(key)
    if text is None or text == OFF:
        return False, None
    if text == AUTO:
        return True, None
    try:
        seconds = duration_s(text)
    except ValueError:
        seconds = None
    if seconds is None or not 0 < seconds <= _LONGEST_LEAD_S:
        raise ValueError(f"annotation {key}: expected auto, off or a duration up to 24h such as 10m, got {brief(text)}")
    return True, seconds
