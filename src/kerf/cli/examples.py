"""A command of the program: its flags, `--color`, and examples at the end of its help, as kubectl has them.

An example is what is asked, and the line to type.
"""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click

from kerf.cli.habits import OPTIONS
from kerf.cli.output.screen import colour_option, look

Examples = Sequence[tuple[str, str]]
"""What is asked, and the line of a shell that asks it of `kerf`."""
HELP = ("-h", "--help")
_MANIFEST = (".yaml", ".yml", ".json")
_OF_OBJECTS = ("names", "objects", "workloads")
"""Arguments that name objects; those of other commands may be files."""


_OF_FILES = re.compile(r"FILE|SCENARIO|\.yaml|\.json")
"""In the name of an argument that is a file."""


def _all(held: Mapping[str, Any], argument: click.Argument) -> Sequence[str]:
    """The words that were given for an argument."""
    value = held.get(argument.name or "")
    return [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []


class ExampleCommand(click.Command):
    """A command whose help ends with examples, and which knows what it prints on."""

    def __init__(self, *arguments: Any, examples: Examples = (), **given: Any) -> None:
        super().__init__(*arguments, **given)
        self.examples = tuple(examples)
        self.params.append(colour_option())

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The program's, also in a context without the program: click keeps the first that is asked for."""
        ctx.help_option_names = list(HELP)
        return super().get_help_option(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """A flag that only kubectl has, and a file without -f, are refused with what to type instead."""
        given = list(args)
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if text := OPTIONS.get(error.option_name) or self._file_without_flag(ctx, error.option_name, given):
                raise click.UsageError(f"No such option {error.option_name!r}: {text}", ctx) from None
            raise
        except click.UsageError as error:
            read, words = self._parted(ctx, given)
            if "unexpected extra argument" in error.message:
                self._refuse_files(ctx, words, read)
            elif not read:
                self._refuse_files(ctx, [word for word in words if word.endswith(_MANIFEST)])
            raise
        arguments = (ctx.params.get(name) or () for name in _OF_OBJECTS)
        named = [name for names in arguments for name in names if name.endswith(_MANIFEST)]
        self._refuse_files(ctx, named, self._parted(ctx, given)[0] if named else ())
        return rest

    def _parted(self, ctx: click.Context, args: Sequence[str]) -> tuple[list[str], list[str]]:
        """The files of -f, and the words that are neither flags nor values of flags; nothing of what cannot be read."""
        name = next((parameter.name for parameter in self.params if "-f" in parameter.opts), None)
        try:
            held, words, _ = self.make_parser(ctx).parse_args(list(args))
        except click.UsageError:
            # A flag lacks its value, which stands last; what is meant by other words is not known beside -f.
            has_files = any(word.startswith(("-f", "--filename")) for word in args)
            return [], [] if has_files else [word for word in args if not word.startswith("-")]
        own = [value for each in self.get_params(ctx) if isinstance(each, click.Argument) for value in _all(held, each)]
        return list(held.get(name) or ()) if name is not None else [], [*own, *words]

    def _refuse_files(self, ctx: click.Context, words: Sequence[str], read: Sequence[str] = ()) -> None:
        """Raises UsageError for the first file among words that are no values of flags, where -f would read it, too."""
        takes_files = any("-f" in parameter.opts for parameter in self.params)
        named = next((word for word in words if word.endswith(_MANIFEST) or os.path.isfile(word)), None)
        if takes_files and named is not None:
            line = " ".join([ctx.command_path, *(f"-f {shlex.quote(each)}" for each in (*read, named))])
            raise click.UsageError(f"{named}: a file is read with -f: {line}", ctx)

    def _file_without_flag(self, ctx: click.Context, option: str, args: Sequence[str]) -> str:
        """What to type in place of -f where the file is an argument; empty for any other flag and command."""
        takes_file = any(
            isinstance(each, click.Argument) and _OF_FILES.search(each.metavar or "") for each in self.params
        )
        if option not in ("-f", "--filename") or not takes_file:
            return ""
        files = [word.removeprefix(f"{option}=") for word in args if word.endswith(_MANIFEST)]
        return f"the file is an argument: {' '.join([ctx.command_path, *(map(shlex.quote, files[:1] or ['FILE']))])}"

    def invoke(self, ctx: click.Context) -> Any:
        """Finds out what it prints on, then runs."""
        look(ctx)
        return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, each line as it is, by the name under which the program was called."""
        super().format_epilog(ctx, formatter)
        if not self.examples:
            return
        called = ctx.find_root().info_name
        with formatter.section("Examples"):
            indent = " " * formatter.current_indent
            for asked, line in self.examples:
                formatter.write(f"{indent}# {asked}\n{indent}{line.replace('kerf ', f'{called} ', 1)}\n")
