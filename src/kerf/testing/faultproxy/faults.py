"""Switches for calls that go wrong, and actions that a caller may not use.

A fault is asked for by the name of the action and strikes the next calls of it. Where a fault lies matters: before the
call nothing has happened, after it the instance runs and the caller does not know.
"""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from kerf.testing.faultproxy.wire import CallRefused

BEFORE, AFTER = "before", "after"


@dataclass
class Hold:
    """A call that waits: `reached` is set when it has come to the hold; `release` lets it go on, `drop` loses it."""

    action: str
    when: str
    access_key: str = ""
    reached: threading.Event = field(default_factory=threading.Event)
    _released: threading.Event = field(default_factory=threading.Event)
    _is_dropped: bool = False

    def release(self) -> None:
        """Let the call go on."""
        self._released.set()

    def drop(self) -> None:
        """Break the connection: `before`, nothing was done; `after`, the reply is lost."""
        self._is_dropped = True
        self._released.set()

    async def wait(self) -> bool:
        """Come to the hold, and go on once it is released; whether it was dropped."""
        self.reached.set()
        # A loop that polls is not bound to the thread from which `release` comes.
        while not self._released.is_set():
            await asyncio.sleep(0.01)
        return self._is_dropped


class Faults:
    """The switches. Each strikes the next `times` calls of an action, in the order in which they were set."""

    def __init__(self) -> None:
        self._errors: defaultdict[str, list[CallRefused]] = defaultdict(list)
        self._lost: defaultdict[str, int] = defaultdict(int)
        self._html: defaultdict[str, int] = defaultdict(int)
        self._delays: defaultdict[str, list[float]] = defaultdict(list)
        self._holds: list[Hold] = []
        self._denied: set[str] = set()
        self._allowed: tuple[str, ...] | None = None

    def fail(self, action: str, code: str, message: str = "", *, status: int = 400, times: int = 1) -> None:
        """Refuse with this error code, before anything is done."""
        self._errors[action].extend([CallRefused(code, message or code, status)] * times)

    def throttle(self, action: str, times: int = 1) -> None:
        """Refuse with RequestLimitExceeded."""
        self.fail(action, "RequestLimitExceeded", "Request limit exceeded.", status=503, times=times)

    def lose_reply(self, action: str, times: int = 1) -> None:
        """Carry the call out and break the connection instead of an answer."""
        self._lost[f"{AFTER} {action}"] += times

    def lose_request(self, action: str, times: int = 1) -> None:
        """Break the connection before anything is done."""
        self._lost[f"{BEFORE} {action}"] += times

    def answer_html(self, action: str, times: int = 1) -> None:
        """Answer with a page of HTML and HTTP 500, as a proxy in between does."""
        self._html[action] += times

    def delay(self, action: str, seconds: float, times: int = 1) -> None:
        """Answer so many real seconds late, after the call was carried out."""
        self._delays[action].extend([seconds] * times)

    def hold(self, action: str, when: str = BEFORE, access_key: str = "") -> Hold:
        """Stop the next call `before` it is carried out, or `after` it, until the hold is released.

        A dry run is an action of its own here: `CreateFleet (dry run)`. With an access key only its calls are stopped.
        """
        held = Hold(action, when, access_key)
        self._holds.append(held)
        return held

    def deny(self, *names: str) -> None:
        """The caller may not use these actions, e.g. `ec2:RunInstances`; a fleet needs that as well."""
        self._denied.update(names)

    def permit(self, *names: str) -> None:
        """Take back what `deny` has set; without a name all of it, and `allow_only` as well."""
        self._denied.difference_update(names or tuple(self._denied))
        if not names:
            self._allowed = None

    def allow_only(self, names: Iterable[str]) -> None:
        """The caller may use these actions alone. A name may be a pattern of IAM, such as `ec2:Describe*`."""
        self._allowed = tuple(names)

    def forbids(self, name: str) -> bool:
        """Whether the caller may not use the action, whatever policies say."""
        is_denied = any(fnmatchcase(name, pattern) for pattern in self._denied)
        return is_denied or not (self._allowed is None or any(fnmatchcase(name, each) for each in self._allowed))

    def check_errors(self, action: str) -> None:
        """Raises CallRefused with the next error of the action."""
        if self._errors[action]:
            raise self._errors[action].pop(0)

    def takes_html(self, action: str) -> bool:
        """Whether this call is answered with HTML."""
        return _counted(self._html, action)

    def loses(self, action: str, when: str) -> bool:
        """Whether the connection of this call breaks there."""
        return _counted(self._lost, f"{when} {action}")

    def next_delay_s(self, action: str) -> float:
        """How late this call is answered."""
        return self._delays[action].pop(0) if self._delays[action] else 0

    async def pause(self, action: str, when: str, access_key: str) -> bool:
        """Wait where a hold of the action says so, and whether the call is lost there; a hold stops one call."""
        for held in self._holds:
            is_whose = held.access_key in ("", access_key)
            if (held.action, held.when) == (action, when) and is_whose and not held.reached.is_set():
                return await held.wait()
        return False

    def release_all(self) -> None:
        """Let every call go on that is held."""
        for held in self._holds:
            held.release()


def _counted(counts: dict[str, int], key: str) -> bool:
    if counts[key] < 1:
        return False
    counts[key] -= 1
    return True
