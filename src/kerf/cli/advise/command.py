"""`kerf advise`: what to write instead, computed from what was used. Nothing here is ever applied.

Sub-commands are loaded when they are called, as those of the program are.
"""

import importlib

import click

COMMANDS = {
    "requests": "Requests for a workload, from what its pods used: a table with the evidence, and a patch.",
    "per-node": "What each of N jobs may ask so that one node holds them all.",
    "pool": "A NodePool's limits against use, what they cost when filled, and types that serve no pod.",
    "instance-types": "What pods would cost on each family of instance types, the cheapest first.",
}
"""Sub-commands with their one-line help; each is in the module `kerf.cli.advise.NAME`, under its name."""


class AdviseGroup(click.Group):
    """Loads a sub-command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All sub-commands, in their order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The sub-command of that name; None when there is none."""
        summary = COMMANDS.get(cmd_name)
        if summary is None:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"kerf.cli.advise.{name}"), name)
        command.short_help = summary
        return command


@click.group(cls=AdviseGroup)
def advise() -> None:
    """Advice from what was used; it is printed, and never applied."""
