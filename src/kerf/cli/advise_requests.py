"""`kerf advise requests`: what a workload should ask for, from what it used."""

from typing import Any

import click

from kerf.cli.exits import LOOK
from kerf.cli.inputs import Source, input_options, output_option, read_world


@click.command()
@click.argument("workload", metavar="KIND/NAME")
@click.option("-n", "--namespace", metavar="NAMESPACE", help="The workload's namespace.")
@input_options
@output_option
def requests(workload: str, **flags: Any) -> int:
    """Requests for a workload, from what its pods used."""
    del workload
    read_world(Source.of(flags), with_usage=True)
    return LOOK
