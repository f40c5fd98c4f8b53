"""What a command prints, all of it: `click.echo` of text that is safe on a terminal."""

import sys
from pathlib import Path

import click

from kerf.cli.output.screen import Screen, asked_colour, columns, has_colour
from kerf.cli.progress import wipe
from kerf.errors import InputError
from kerf.model.printable import printable


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print to stdout or stderr. What objects say in control characters is escaped as JSON and YAML do.

    What is said on a terminal beside the data fits its width, and its first word has colour.
    """
    safe = printable(str(text))
    if err:
        note_screen = _beside()
        if note_screen.width is not None or note_screen.has_colour:
            from kerf.cli.output.tables import fitted_line

            lines = (each for line in safe.split("\n") for each in fitted_line(line, note_screen))
            click.echo(wipe() + "\n".join(lines), err=True, nl=nl, color=True)
            return
    click.echo(safe, err=err, nl=nl)


def echo_styled(text: str) -> None:
    """Print text whose styles are its own, and which is safe already."""
    click.echo(text, color=True)


def _beside() -> Screen:
    """Standard error."""
    is_terminal = sys.stderr.isatty()
    colour = has_colour(asked_colour(), is_terminal=is_terminal)
    return Screen(columns() if is_terminal else None, colour)


def write_file(flag: str, path: str, text: str) -> None:
    """Write the file that a flag names. Raises InputError where that cannot be done."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{flag} {path}: expected a file that can be written, got: {error.strerror}") from None
