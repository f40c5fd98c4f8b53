"""What a command prints, all of it: `click.echo` of text that is safe on a terminal."""

import click

from kerf.model.printable import printable


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print to stdout or stderr. What objects say in control characters is escaped as JSON and YAML do."""
    click.echo(printable(str(text)), err=err, nl=nl)
