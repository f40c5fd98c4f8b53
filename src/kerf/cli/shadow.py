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
    ),
)
@input_options
@leader_options
@output_option
@click.option("--strategy", type=click.Choice(STRATEGIES), default=COST, show_default=True, help="How to choose nodes.")
def shadow(**flags: Any) -> int:
    """What another autoscaler bought, beside what Kerf would buy for the same pods; changes nothing.

    Compares all nodes of NodePools with one plan for their pods. On a cluster where Kerf runs as a dry run, its leader
    also shows what it compared while the other autoscaler launched nodes.
    """
    from kerf.cli.shadowing import show

    return show(flags)
