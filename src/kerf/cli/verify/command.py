"""`kerf verify`: whether a printed plan keeps the rules, in the cluster or with the manifests that it was made from.

Only its flags are here. What reads and checks is imported where it is needed: help, completion and wrong usage do not
wait for it.
"""

from typing import Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.cli.inputs.options import output_option, plan_source_options, pod_options
from kerf.cli.proposals import a_file


@click.command(
    cls=ExampleCommand,
    examples=(
        (
            "A plan of files, checked by itself",
            "kerf plan -f pool.yaml -f workload.yaml -o json > plan.json; "
            "kerf verify plan.json -f pool.yaml -f workload.yaml",
        ),
        ("A plan of the cluster, from standard input", "kerf plan -o json | kerf verify -"),
    ),
)
@click.argument("plan", metavar="PLAN.json|-", shell_complete=a_file)
@plan_source_options
@pod_options
@output_option
def verify(plan: str, output: str, **flags: Any) -> int:
    """Put a plan that kerf plan -o json has printed to plain rules: each card, node, limit, quota, budget and group.

    Give the input that the plan was made from, with the flags that changed or chose its pods. Exit code 0 when the
    plan holds, 1 when it breaks a rule, 2 when it cannot be read.
    """
    from kerf.cli.verify.verifying import show

    return show(plan, output, flags)
