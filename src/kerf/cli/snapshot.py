"""`kerf snapshot`: all that a decision rests on, as one file that people can read, edit and send.

Only its flags are here. What reads and writes is imported where it is needed: help, completion and wrong usage do not
wait for it.
"""

from typing import Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.cli.inputs.leaderflags import leader_options
from kerf.cli.inputs.options import source_options


@click.command(
    cls=ExampleCommand,
    examples=(
        ("Write what Kerf reads of the cluster", "kerf snapshot > dump.json"),
        (
            "Write files as one dump that people can edit",
            "kerf snapshot -f pool.yaml -f workload.yaml -o yaml > dump.yaml",
        ),
    ),
)
@source_options
@leader_options
@click.option("-o", "--output", type=click.Choice(("json", "yaml")), default="json", show_default=True)
@click.option("--full", "is_full", is_flag=True, help="Write whole objects, except for secrets and the like.")
def snapshot(output: str, is_full: bool, **flags: Any) -> int:
    """Write all objects that a plan depends on to one file: to plan elsewhere, to edit, to send.

    It reads the cluster, or the files of -f. `kerf plan -f FILE` plans with the dump, `kerf plan --replay FILE`
    repeats the plan of that moment.
    """
    from kerf.cli.dumping import show

    return show(output, is_full, flags)
