"""How far a command is, on standard error: a percentage and the time left, from the first second.

What counts its work reports how much is done. A decision cannot, as it is asked once: its part is guessed from its
size, and never shown as done before it is. Where it takes far longer than was guessed nothing is known of what is left,
and the line says so in place of a figure. A thread draws, as the work itself has no time for that.
"""

import contextlib
import io
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TextIO

from kerf.cli.output.screen import columns

_DRAW_S, _FIRST_LINE_S, _LINE_S = 0.2, 5.0, 5.0
_QUIET = "KERF_PROGRESS"
_ENOUGH = 0.02
"""The part that has to be done before it says how long the rest takes."""
_OVERDUE = 2.0
"""How many times as long as was guessed a part may take before the guess is given up."""
_WIPE = "\r\x1b[K"
_IS_DRAWN: ContextVar[bool] = ContextVar("kerf_progress_is_drawn", default=False)
_IS_QUIET: ContextVar[bool] = ContextVar("kerf_progress_is_quiet", default=False)


class Meter:
    """How much is done of what takes so long. The work reports it; `line` shows it."""

    def __init__(self, doing: str, now_s: Callable[[], float] = time.monotonic) -> None:
        self.doing = doing
        self._now_s = now_s
        self._began_s = now_s()
        self._reported = 0.0
        self._guess: tuple[float, float, float, float] | None = None

    def tell(self, done: float) -> None:
        """So much is done, 0 to 1, and no less than was reported before."""
        self._reported = max(self._reported, min(1.0, done))

    def part(self, begin: float, end: float) -> Callable[[float], None]:
        """What reports of a part of the work, which is 0 to 1 for itself."""
        return lambda done: self.tell(begin + (end - begin) * done)

    def guess(self, end: float, about_s: float) -> None:
        """From here until `end` is done takes about so long; reported figures count where they are higher."""
        begin = self.done()
        self.tell(begin)
        self._guess = (begin, max(begin, end), self._now_s(), max(about_s, 0.001))

    def done(self) -> float:
        """What was reported, or guessed where that is more. A guess comes near its end, and never there.

        Once it has taken far longer than was guessed, what the work itself reports counts alone.
        """
        if self._guess is None or (self._reported > self._guess[0] and self._is_late):
            return self._reported
        begin, end, since_s, about_s = self._guess
        return max(self._reported, begin + (end - begin) * -math.expm1(-(self._now_s() - since_s) / about_s))

    @property
    def is_overdue(self) -> bool:
        """Whether what was guessed takes far longer, and nothing that was reported says more."""
        return self._guess is not None and self._reported <= self._guess[0] and self._is_late

    @property
    def _is_late(self) -> bool:
        if self._guess is None:
            return False
        _, _, since_s, about_s = self._guess
        return self._now_s() - since_s > _OVERDUE * about_s + _DRAW_S

    def line(self) -> str:
        """`planning 5 pods 34 %, about 12s left`; `planning 5 pods, 40s so far, longer than expected`."""
        done, spent_s = self.done(), self._now_s() - self._began_s
        if self.is_overdue:
            return f"{self.doing}, {_rounded(spent_s)} so far, longer than expected"
        if done >= _ENOUGH:
            left_s = spent_s * (1 - done) / done
        elif self._guess is not None and self._guess[1] > self._guess[0]:
            left_s = self._guess[3] / (self._guess[1] - self._guess[0])
        else:
            return f"{self.doing} {int(100 * done)} %"
        return f"{self.doing} {int(100 * done)} %, about {_rounded(left_s)} left"


def _rounded(seconds: float) -> str:
    """A time as people wait for it: `4s`, `2m10s`, `3h5m`."""
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole}s"
    tens = -(-whole // 10) * 10
    return f"{tens // 60}m{tens % 60}s" if tens < 3600 else f"{tens // 3600}h{tens % 3600 // 60}m"


@contextlib.contextmanager
def progress(doing: str, about_s: float = 0.0) -> Iterator[Meter]:
    """Says on stderr how far it is, until it is done; `about_s` is what it takes, as far as is known before.

    On a terminal it is one line, which is wiped at the end. Elsewhere it is a line every few seconds, and none where
    the work is done soon. KERF_PROGRESS=off: neither.
    """
    meter, stream = Meter(doing), sys.stderr
    if about_s:
        meter.guess(1.0, about_s)
    if _IS_QUIET.get() or os.environ.get(_QUIET) == "off" or isinstance(stream, io.StringIO):
        yield meter
        return
    is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    ended = threading.Event()
    drawing = threading.Thread(target=_draw if is_terminal else _log, args=(meter, stream, ended), daemon=True)
    if is_terminal:
        _line(meter, stream)
    token = _IS_DRAWN.set(is_terminal)
    drawing.start()
    try:
        yield meter
    finally:
        ended.set()
        drawing.join()
        _IS_DRAWN.reset(token)
        if is_terminal:
            print(_WIPE, end="", file=stream, flush=True)


def wipe() -> str:
    """What a line on stderr begins with: it must not stand behind a line of progress."""
    return _WIPE if _IS_DRAWN.get() else ""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No progress of what is done meanwhile."""
    token = _IS_QUIET.set(True)
    try:
        yield
    finally:
        _IS_QUIET.reset(token)


def _line(meter: Meter, stream: TextIO) -> None:
    print(f"{_WIPE}{meter.line()[: columns() - 1]}", end="", file=stream, flush=True)


def _draw(meter: Meter, stream: TextIO, ended: threading.Event) -> None:
    while not ended.wait(_DRAW_S):
        _line(meter, stream)


def _log(meter: Meter, stream: TextIO, ended: threading.Event) -> None:
    wait_s = _FIRST_LINE_S
    while not ended.wait(wait_s):
        print(f"progress: {meter.line()}", file=stream, flush=True)
        wait_s = _LINE_S
