"""A command of the program: its flags, `--color`, and examples at the end of its help, as kubectl has them.

An example is what is asked, and the line to type.
"""

from collections.abc import Sequence
from typing import Any

import click

from kerf.cli.habits import OPTIONS
from kerf.cli.output.screen import colour_option, look

Examples = Sequence[tuple[str, str]]
"""What is asked, and the line of a shell that asks it of `kerf`."""
HELP = ("-h", "--help")


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
        """A flag that only kubectl has is refused with what to type instead."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if text := OPTIONS.get(error.option_name):
                raise click.UsageError(f"No such option {error.option_name!r}: {text}", ctx) from None
            raise

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
