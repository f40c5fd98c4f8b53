"""`kerf nodes`: the nodes there are.

Only its flags are here. What reads and prints is imported where it is needed: help, completion and wrong usage do not
wait for it.
"""

from typing import Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.cli.inputs.options import input_options, node_option, output_option


@click.command(
    cls=ExampleCommand,
    examples=(
        ("Each node of the cluster and what it costs", "kerf nodes"),
        ("The nodes of one NodePool, from files", "kerf nodes -f cluster.yaml -l karpenter.sh/nodepool=batch"),
    ),
)
@input_options
@node_option
@output_option
def nodes(**flags: Any) -> int:
    """Each node, what it costs, and how far it has come."""
    from kerf.cli.inventory import show_nodes

    return show_nodes(flags)
