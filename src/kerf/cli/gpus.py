"""`kerf gpus`: the physical GPUs there are.

Only its flags are here. What reads and prints is imported where it is needed: help, completion and wrong usage do not
wait for it.
"""

from typing import Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.cli.inputs.options import input_options, node_names, node_option, order_option, output_option


@click.command(
    cls=ExampleCommand,
    examples=(
        ("Each card of the cluster and who holds it", "kerf gpus"),
        ("The cards of a dump, with their ids", "kerf gpus -f dump.yaml -o wide"),
    ),
)
@node_names
@input_options
@node_option
@output_option
@order_option
def gpus(**flags: Any) -> int:
    """List each physical GPU, how much of it is used, and by which pods."""
    from kerf.cli.inventory import show_gpus

    return show_gpus(flags)
