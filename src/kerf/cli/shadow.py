"""`kerf shadow`: the nodes that are there beside those that Kerf would buy for the same pods.

Only its flags are here. What compares is imported where it is needed: help, completion and wrong usage do not wait for
it.
"""

from typing import Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.cli.inputs.leaderflags import leader_options
from kerf.cli.inputs.options import input_options, output_option
from kerf.model.policies import COST, STRATEGIES


@click.command(
    cls=ExampleCommand,
    examples=(
        ("The nodes of the cluster beside those that Kerf would buy", "kerf shadow"),
        ("The same from files, as JSON", "kerf shadow -f cluster.yaml -o json"),
        (
            "Nodes of node groups beside what Kerf would buy by a NodePool",
            "kerf shadow -f cluster.yaml -f pool.yaml --all-nodes",
        ),
    ),
)
@input_options
@leader_options
@output_option
@click.option("--all-nodes", is_flag=True, help="Compare nodes of no NodePool too, such as those of node groups.")
@click.option("--any-gpu", is_flag=True, help="Let pods go to cards of other models than those that they run on.")
@click.option("--strategy", type=click.Choice(STRATEGIES), default=COST, show_default=True, help="How to choose nodes.")
def shadow(**flags: Any) -> int:
    """Compare the nodes of today with those that Kerf would buy for the same pods. Changes nothing.

    It compares all nodes of NodePools with one plan for their pods. If Kerf runs in the cluster as a dry run, it also
    shows what Kerf compared each time the other autoscaler launched nodes.
    """
    from kerf.cli.shadowing import show

    return show(flags)
