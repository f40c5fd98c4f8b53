"""What a command prints, all of it: `click.echo` of text that is safe on a terminal."""

from pathlib import Path

import click

from kerf.errors import InputError
from kerf.model.printable import printable


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print to stdout or stderr. What objects say in control characters is escaped as JSON and YAML do."""
    click.echo(printable(str(text)), err=err, nl=nl)


def write_file(flag: str, path: str, text: str) -> None:
    """Write the file that a flag names. Raises InputError where that cannot be done."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{flag} {path}: expected a file that can be written, got: {error.strerror}") from None
