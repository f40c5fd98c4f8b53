"""A command of the program: its flags, `--color`, and examples at the end of its help, as kubectl has them.

An example is what is asked, and the line to type.
"""

import os
import shlex
from collections.abc import Sequence
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
        words = [word for word in args if not word.startswith("-")]
        with_files = any(word.startswith(("-f", "--filename")) for word in args)
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if text := OPTIONS.get(error.option_name):
                raise click.UsageError(f"No such option {error.option_name!r}: {text}", ctx) from None
            raise
        except click.UsageError as error:
            if "unexpected extra argument" in error.message:
                self._refuse_files(ctx, words)
            elif not with_files:
                self._refuse_files(ctx, [word for word in words if word.endswith(_MANIFEST)])
            raise
        arguments = (ctx.params.get(name) or () for name in _OF_OBJECTS)
        self._refuse_files(ctx, [name for names in arguments for name in names if name.endswith(_MANIFEST)])
        return rest

    def _refuse_files(self, ctx: click.Context, words: Sequence[str]) -> None:
        """Raises UsageError for the first file among words that are no values of flags, where -f would read it."""
        takes_files = any("-f" in parameter.opts for parameter in self.params)
        named = next((word for word in words if word.endswith(_MANIFEST) or os.path.isfile(word)), None)
        if takes_files and named is not None:
            raise click.UsageError(f"{named}: a file is read with -f: {ctx.command_path} -f {shlex.quote(named)}", ctx)

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
