"""`kerf nodes`: the nodes there are.

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
        ("Each node of the cluster and what it costs", "kerf nodes"),
        ("The most expensive node last", "kerf nodes -f cluster.yaml --sort-by .perHour"),
        ("Names and prices for a script", "kerf nodes -f cluster.yaml -o custom-columns=NODE:.node,PRICE:.perHour"),
        ("The nodes of one NodePool, from files", "kerf nodes -f cluster.yaml -l karpenter.sh/nodepool=batch"),
    ),
)
@node_names
@input_options
@node_option
@output_option
@order_option
def nodes(**flags: Any) -> int:
    """List each node, its price and its stage."""
    from kerf.cli.inventory import show_nodes

    return show_nodes(flags)
