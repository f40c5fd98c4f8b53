"""Kerf killed at many events of one scenario; what leads up to an event is played once for all of them.

At each chosen event the test forks. The child kills Kerf there, plays on to the end and sends home what became of it,
while the parent waits and then goes on as if nothing had happened.
"""

import asyncio
import gc
import hashlib
import os
import pickle
import warnings
from collections.abc import Container
from dataclasses import dataclass, field

from kerf.sim.course.report import CheckedExpectation, SimulationReport
from kerf.sim.course.scenario import Scenario
from kerf.sim.simulation import Moment, run


@dataclass(frozen=True)
class Ending:
    """What became of a run in which Kerf was killed; `digest` is the same for reports that are the same."""

    missed: tuple[CheckedExpectation, ...] = ()
    error: str = ""
    digest: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it came to its end, with all expectations met."""
        return not self.missed and not self.error


def states(scenario: Scenario) -> list[list[int]]:
    """The numbers of all events of a calm run, rising, those together at which a new Kerf finds the same state.

    `test_a_crash_at_any_event_changes_no_expectation` holds this to its word: equal states, equal reports.
    """
    _, found = calm(scenario)
    return found


def calm(scenario: Scenario) -> tuple[SimulationReport, list[list[int]]]:
    """What comes of it without a crash, and its states."""
    found: dict[tuple[float, int, int], list[int]] = {}

    def note(moment: Moment) -> bool:
        found.setdefault((moment.at_s, moment.changes, moment.steps), []).append(moment.number)
        return False

    return run(scenario, restart_at=note), list(found.values())


def endings(scenario: Scenario, events: Container[int]) -> dict[int, Ending]:
    """By event, what comes of a crash there."""
    return beside(scenario, events)[1]


def beside(scenario: Scenario, events: Container[int]) -> tuple[Ending, dict[int, Ending]]:
    """What comes of a calm run, which is good, and by event, what comes of a crash there."""
    forks = _Forks(events)
    gc.collect()
    # The collector would write to every page that the children share with us.
    gc.freeze()
    try:
        ending = _ending(scenario, forks)
    finally:
        if forks.home is None:
            gc.unfreeze()
    if forks.home is not None:
        forks.send(ending)
    assert ending.is_good, ending
    return ending, forks.endings


def _ending(scenario: Scenario, forks: "_Forks") -> Ending:
    try:
        report = run(scenario, restart_at=forks)
    except BaseException as error:
        # A child must not go on into the rest of the tests, whatever happens to it.
        if forks.home is None:
            raise
        return Ending(error=repr(error))
    return Ending(missed=missed(report), digest=digest(report))


def digest(report: SimulationReport) -> str:
    """Equal for reports that are equal to the byte."""
    return hashlib.sha256(repr(report).encode()).hexdigest()


def missed(report: SimulationReport) -> tuple[CheckedExpectation, ...]:
    """The expectations that were not met."""
    return tuple(outcome for outcome in report.outcomes if not outcome.is_met)


@dataclass
class _Forks:
    """Forks at each of the events; `home` is a child's way to send, and None in the parent."""

    events: Container[int]
    endings: dict[int, Ending] = field(default_factory=dict)
    home: int | None = None

    def __call__(self, moment: Moment) -> bool:
        if self.home is not None or moment.number not in self.events:
            return False
        loop = asyncio.get_running_loop()
        reading, writing = os.pipe()
        child = _fork()
        if child == 0:
            # asyncio knows a running loop by its process too.
            asyncio._set_running_loop(loop)
            self.home = writing
            return True
        os.close(writing)
        with open(reading, "rb") as pipe:
            sent = pipe.read()
        os.waitpid(child, 0)
        self.endings[moment.number] = pickle.loads(sent) if sent else Ending(error="the child ended without a word")
        return False

    def send(self, ending: Ending) -> None:
        """Send it home, and end this child."""
        assert self.home is not None
        try:
            with open(self.home, "wb") as pipe:
                pickle.dump(ending, pipe)
        finally:
            os._exit(0)


def _fork() -> int:
    with warnings.catch_warnings():
        # From Python 3.12 on it warns of threads; a worker of pytest-xdist has one, and no child needs it.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
