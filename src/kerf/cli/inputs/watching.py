"""`-w`: look again and again, and print what has changed. `kerf top` draws each look in the place of the last."""

import contextlib
import io
import re
import sys
import time
from collections.abc import Callable

import click

from kerf.cli.echo import echo
from kerf.cli.progress import quiet
from kerf.errors import KerfError
from kerf.model.printable import printable

_WATCH_S = 2.0
_ALTERNATE, _USUAL = "\x1b[?1049h", "\x1b[?1049l"
"""The other page of a terminal, and the one where the shell is."""
_NO_CURSOR, _CURSOR = "\x1b[?25l", "\x1b[?25h"
_LASTED = re.compile(r"\b(?:[0-9]+(?:ms|[dhms]))+\b|(?<=\"ageSeconds\": )[0-9]+|(?<=ageSeconds: )[0-9]+")
_PART = re.compile(r"([0-9]+)(ms|[dhms]?)")
_UNITS_S = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def watch(look: Callable[[], object]) -> None:
    """Look until Ctrl-C. What fails at first ends it; later on it is reported, and tried again."""
    shown = noted = ""
    has_printed, looked_s = False, time.monotonic()
    while True:
        began_s = time.monotonic()
        between_s, looked_s = began_s - looked_s, began_s
        printed, said, failure = _looked(look)
        if failure is not None and not has_printed:
            raise failure
        if not is_only_older(noted, said, between_s):
            echo(said, nl=False, err=True)
        if failure is not None:
            # Afterwards it is printed again, for a sign that it goes on.
            printed = shown = ""
        if not is_only_older(shown, printed, between_s):
            # It was made safe when it was printed, and has the colours of the terminal.
            click.echo(("\n" if has_printed else "") + printed, nl=False, color=True)
            sys.stdout.flush()
            has_printed = True
        shown, noted = printed, said
        time.sleep(max(_WATCH_S, time.monotonic() - began_s))


def redraw(look: Callable[[], object], every_s: float) -> None:
    """Look until Ctrl-C, each look in the place of the last one. What fails at first ends it; later it is shown."""
    printed, said, failure = _looked(look)
    if failure is not None:
        raise failure
    try:
        _draw(f"{_ALTERNATE}{_NO_CURSOR}")
        while True:
            # Home, each line cleared to its end, then all below: nothing flickers as it does when all is cleared first.
            frame = "".join(f"{line}\x1b[K\n" for line in (printed + printable(said)).splitlines())
            _draw(f"\x1b[H{frame}\x1b[J")
            began_s = time.monotonic()
            time.sleep(every_s)
            printed, said, _ = _looked(look)
            # A cluster that takes long to read is not asked all the time.
            time.sleep(max(0.0, time.monotonic() - began_s - 2 * every_s))
    finally:
        _draw(f"{_CURSOR}{_USUAL}")


def _draw(text: str) -> None:
    click.echo(text, nl=False, color=True)
    sys.stdout.flush()


def _looked(look: Callable[[], object]) -> tuple[str, str, KerfError | None]:
    """What a look prints, what it says on stderr, and the error that ended it."""
    out, err, failure = io.StringIO(), io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), quiet():
        try:
            look()
        except KerfError as error:
            failure = error
    said = err.getvalue() if failure is None else "".join(f"error: {line}\n" for line in str(failure).splitlines())
    return out.getvalue(), said, failure


def is_only_older(before: str, now: str, seconds: float) -> bool:
    """Whether the texts differ at most in how long things have lasted, and by no more than the time in between.

    `100m` may be minutes, or a part of a cpu that a user has changed: so each figure may differ by the time between
    the looks and one of its smallest unit, and no more. Linear in the text.
    """
    if _LASTED.sub("\0", before).split() != _LASTED.sub("\0", now).split():
        return False
    pairs = zip(_LASTED.findall(before), _LASTED.findall(now), strict=True)
    return all(abs(_seconds(old) - _seconds(new)) <= seconds + _smallest_s(new) for old, new in pairs)


def _seconds(text: str) -> float:
    return sum(int(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))


def _smallest_s(text: str) -> float:
    return min(_UNITS_S[unit] for _, unit in _PART.findall(text))
