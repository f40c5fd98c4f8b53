"""`kerf manpage`: the manual page, made of the commands, their flags and examples.

The wheel has it as `share/man/man1/kerf.1`, which `tools/document_manpage.py` writes.
"""

from collections.abc import Iterator

import click

from kerf import __version__
from kerf.cli.examples import HELP, ExampleCommand
from kerf.cli.exits import DONE
from kerf.cli.main import COMMANDS, program

_EXITS = (
    ("0", "done"),
    ("1", "failed; there is no such object"),
    ("2", "wrong usage, or input that cannot be read"),
    ("3", "done, and something needs a look: pods left unplaced, a missed expectation, findings"),
    ("4", "no cluster: none is configured, it does not answer, it refuses us, or it lacks Kerf's kinds"),
    ("130", "interrupted"),
)
_ENVIRONMENT = (
    ("KUBECONFIG", "the files of the kubeconfig, as for kubectl"),
    ("NO_COLOR, FORCE_COLOR, TERM", "whether there is colour, where --color does not say; TERM=dumb has none"),
    ("COLUMNS", "the width of the terminal"),
    ("KERF_PROGRESS", "off: nothing is said of how far a command is"),
    ("KERF_PLUGIN_NAMESPACES", "where GPU plugins are configured"),
)


@click.command(
    cls=ExampleCommand,
    examples=(
        ("Read it", "kerf manpage > kerf.1"),
        ("Keep it where man looks", "kerf manpage > ~/.local/share/man/man1/kerf.1"),
    ),
)
def manpage() -> int:
    """Print the manual page, for man: `kerf manpage > kerf.1; man ./kerf.1`."""
    # Escaped already, and with the backslashes of roff.
    click.echo(page(), nl=False)
    return DONE


def page() -> str:
    """The whole page in roff; the same for the same version."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f'.TH KERF 1 "" "kerf {_text(__version__)}" "User Commands"'
    yield from (".SH NAME", "kerf \\- " + _text("a node autoscaler for Kubernetes that understands GPU slices"))
    yield from (".SH SYNOPSIS", ".B kerf", "COMMAND [OPTIONS] [ARGUMENTS]")
    yield ".SH DESCRIPTION"
    yield from _paragraphs(program.help or "")
    yield ".SH COMMANDS"
    for command, context, summary in _commands():
        yield from _command(command, context, summary)
    yield from (".SH EXIT STATUS", *_definitions(_EXITS))
    yield from (".SH ENVIRONMENT", *_definitions(_ENVIRONMENT))
    yield from (".SH SEE ALSO", ".BR kubectl (1)")


def _command(command: click.Command, context: click.Context, summary: str) -> Iterator[str]:
    """The section of a command."""
    yield f".SS {_text(context.command_path)}"
    yield from _paragraphs(command.help or summary)
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (".PP", f"\\fB{_text(context.command_path)}\\fR {_text(usage)}")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            yield from (".TP", f"\\fB{_text(record[0])}\\fR", _text(record[1]))
    if isinstance(command, ExampleCommand) and command.examples:
        yield from (".PP", "Examples:")
        for asked, line in command.examples:
            yield from (".PP", _text(asked) + ":", ".PP", ".RS", ".nf", _text(line), ".fi", ".RE")


def _commands() -> Iterator[tuple[click.Command, click.Context, str]]:
    """Each command with its line of help, those of a group behind it."""
    root = click.Context(program, info_name="kerf", help_option_names=list(HELP))
    for name, summary in COMMANDS.items():
        command = program.get_command(root, name)
        assert command is not None
        context = click.Context(command, parent=root, info_name=name)
        yield command, context, summary
        if isinstance(command, click.Group):
            for each in command.list_commands(context):
                below = command.commands[each]
                yield below, click.Context(below, parent=context, info_name=each), below.short_help or ""


def _definitions(rows: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for name, meaning in rows:
        yield from (".TP", f"\\fB{_text(name)}\\fR", _text(meaning))


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.replace("\b", "").strip().split("\n\n")):
        if number:
            yield ".PP"
        yield _text(" ".join(paragraph.split()).replace("`", ""))


def _text(text: str) -> str:
    """Plain text in roff: no letter of it is a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
