"""`kerf migrate`: retired kinds of Karpenter to today's, and what became of every field.

Only its flags are here. What migrates is imported where it is needed: help, completion and wrong usage do not wait for
it.
"""

from typing import Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.cli.inputs.options import cluster_options
from kerf.cli.proposals import a_file


@click.command(
    cls=ExampleCommand,
    examples=(
        (
            "Manifests of today to a file, the report to the terminal",
            "kerf migrate -f provisioner.yaml > migrated.yaml",
        ),
        ("Also the report as JSON", "kerf migrate -f provisioner.yaml --report report.json > migrated.yaml"),
    ),
)
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    metavar="FILE|DIR|-",
    shell_complete=a_file,
    help="Manifests to read instead of a cluster, or values of Karpenter's Helm chart.",
)
@click.option("-R", "--recursive", is_flag=True, help="Read the subdirectories of directories too.")
@click.option("--region", metavar="REGION", help="Region by whose catalogue instance types are judged.")
@click.option(
    "-o", "--output", type=click.Choice(("yaml", "json")), default="yaml", show_default=True, help="Form of the output."
)
@click.option("--report", metavar="FILE", shell_complete=a_file, help="Write the report there too, as JSON.")
@cluster_options
def migrate(files: tuple[str, ...], **flags: Any) -> int:
    """Retired kinds (Provisioner, AWSNodeTemplate, v1beta1) to those of today, with a report.

    Of files other kinds pass as they are, except for names of Karpenter's that have changed. Without -f the cluster is
    read: its retired objects, and the workloads in which such a name stands. Exit code 0 when nothing needs a look, 3
    when something was not kept, is doubtful, or has to be filled in.
    """
    from kerf.cli.migrating import show

    return show(files, flags)
