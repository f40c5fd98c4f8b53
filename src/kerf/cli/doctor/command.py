"""`kerf doctor`: whether everything is there that Kerf needs, and what to do where it is not.

Only its flags are here. What asks and reads is imported where it is needed: help, completion and wrong usage do not
wait for it.
"""

from typing import Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.cli.inputs.options import output_option, source_options
from kerf.cli.proposals import a_file


@click.command(
    cls=ExampleCommand,
    examples=(
        ("Is the cluster ready for Kerf?", "kerf doctor"),
        ("The same of a dump", "kerf doctor -f dump.yaml"),
        ("With the settings of a file for kerf run", "kerf doctor -f dump.yaml --config kerf.yaml"),
    ),
)
@source_options
@click.option("--config", metavar="FILE", shell_complete=a_file, help="Check this file of settings for kerf run too.")
@output_option
def doctor(**flags: Any) -> int:
    """Check what Kerf needs: cluster, versions, kinds, roles, GPU plugins, catalogue, settings. Only reads.

    Each line says ok, or what to do. With files or a dump it checks what is in them. Exit code 0 if all is ok, 3 if you
    must look at something, 4 without a cluster.
    """
    from kerf.cli.doctor.checking import show

    return show(flags)
