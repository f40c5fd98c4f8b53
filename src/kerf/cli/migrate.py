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
    help="Files to read instead of the cluster, or values of Karpenter's Helm chart.",
)
@click.option("-R", "--recursive", is_flag=True, help="Read subdirectories too.")
@click.option("--region", metavar="REGION", help="Region whose catalogue knows the instance types.")
@click.option(
    "-o", "--output", type=click.Choice(("yaml", "json")), default="yaml", show_default=True, help="Output format."
)
@click.option("--report", metavar="FILE", shell_complete=a_file, help="Also write the report to this file, as JSON.")
@cluster_options
def migrate(files: tuple[str, ...], **flags: Any) -> int:
    """Convert retired kinds (Provisioner, AWSNodeTemplate, v1beta1) to today's, with a report.

    In files, other kinds stay as they are, except for names that Karpenter has changed. Without -f it reads the retired
    objects of the cluster, and the workloads that use such a name. Exit code 3 if you must look at something: it was
    not kept, is doubtful, or has to be filled in.
    """
    from kerf.cli.migrating import show

    return show(files, flags)
