"""What a command prints on: a terminal with a width, with or without colour, or a pipe.

A pipe gets the same bytes everywhere. What is only for people (colour, bars, lines cut to the width) is for terminals,
and for those who ask for it (`--color always`, FORCE_COLOR).
"""

import os
import sys
from dataclasses import dataclass, replace

import click

_SCREEN, _HEADERS, _COLOUR = "kerf.screen", "kerf.headers", "kerf.colour"
AUTO, ALWAYS, NEVER = "auto", "always", "never"
WHEN = (AUTO, ALWAYS, NEVER)
_WIDE_ENOUGH = 20
_USUAL = 80


@dataclass(frozen=True, slots=True)
class Screen:
    """Where text goes. `width` is in columns; None: lines are as long as their text, as in a pipe.

    `is_drawn`: bars and the like may be drawn, which a dumb terminal and a pipe do not get.
    """

    width: int | None = None
    has_colour: bool = False
    is_drawn: bool = False
    has_headers: bool = True


PIPE = Screen()


def current() -> Screen:
    """That of the command that runs; outside of one a pipe."""
    context = click.get_current_context(silent=True)
    if context is None:
        return PIPE
    found = context.meta.get(_SCREEN, PIPE)
    assert isinstance(found, Screen)
    return found


def look(context: click.Context) -> None:
    """Find out once for the command, before anything catches what it prints."""
    is_terminal, dumb = sys.stdout.isatty(), os.environ.get("TERM") == "dumb"
    asked = context.meta.get(_COLOUR, AUTO)
    colour = has_colour(asked, is_terminal=is_terminal)
    screen = Screen(columns() if is_terminal else None, colour, (is_terminal and not dumb) or colour)
    context.meta[_SCREEN] = replace(screen, has_headers=context.meta.get(_HEADERS, True))


def has_colour(asked: str, *, is_terminal: bool) -> bool:
    """What `--color` says; then NO_COLOR, FORCE_COLOR and TERM=dumb, in this order; then whether it is a terminal."""
    if asked != AUTO:
        return asked == ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb"


def asked_colour() -> str:
    """What `--color` of the running command says."""
    context = click.get_current_context(silent=True)
    return AUTO if context is None else str(context.meta.get(_COLOUR, AUTO))


def columns() -> int:
    """COLUMNS, else the width of the terminal, else 80; never less than what a word needs."""
    try:
        given = int(os.environ.get("COLUMNS", "0"))
    except ValueError:
        given = 0
    if given <= 0:
        try:
            given = os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ is not None else 1).columns
        except (OSError, ValueError):
            given = 0
    return max(_WIDE_ENOUGH, given or _USUAL)


def colour_option() -> click.Option:
    """`--color`, which every command has."""
    return click.Option(
        ["--color"],
        type=click.Choice(WHEN),
        default=AUTO,
        show_default=True,
        expose_value=False,
        callback=_keep_colour,
        help="Use colour and draw bars.",
    )


def _keep_colour(context: click.Context, _: click.Parameter, value: str) -> None:
    if value != AUTO:
        context.meta[_COLOUR] = value


def keep_headers(context: click.Context, _: click.Parameter, is_without: bool) -> None:
    """The callback of `--no-headers`."""
    context.meta[_HEADERS] = not is_without
