"""`kerf lint`: findings in manifests, or in the objects of a cluster, before they cost anything.

Only its flags are here. What looks is imported where it is needed: help, completion and wrong usage do not wait for it.
"""

from typing import Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.cli.lint.forms import FORMS, TABLE
from kerf.cli.proposals import a_file
from kerf.lint.findings import Severity


@click.command(
    cls=ExampleCommand,
    examples=(
        ("Look at files", "kerf lint -f slices.yaml"),
        ("See what would be corrected", "kerf lint slices.yaml --diff"),
        ("Look at the objects of the cluster", "kerf lint --severity error"),
    ),
)
@click.argument("paths", nargs=-1, metavar="[FILE]...", shell_complete=a_file)
@click.option(
    "-f", "--filename", "files", multiple=True, metavar="FILE|DIR|-", shell_complete=a_file, help="Manifests."
)
@click.option("-R", "--recursive", is_flag=True, help="Read subdirectories too.")
@click.option("-o", "--output", "form", type=click.Choice(FORMS), default=TABLE, show_default=True, help="Form.")
@click.option(
    "--select", multiple=True, metavar="CODES", help="Only rules whose code has this prefix. Separate by commas."
)
@click.option("--ignore", multiple=True, metavar="CODES", help="No rules whose code has this prefix.")
@click.option(
    "--severity",
    type=click.Choice([severity.value for severity in Severity]),
    default=Severity.INFO.value,
    show_default=True,
    help="Only findings of this severity or worse.",
)
@click.option("--fix", is_flag=True, help="Write what can be fixed safely into the files.")
@click.option("--diff", is_flag=True, help="Show what --fix would write, and write nothing.")
@click.option("--explain", metavar="CODE", help="Print what a rule checks, and why.")
@click.option("--catalog", metavar="CATALOG", shell_complete=a_file, help="Source of prices, as in kerf plan.")
@click.option("--region", metavar="REGION", help="Region whose prices count.")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    shell_complete=a_file,
    help="The kubeconfig. Default: KUBECONFIG, then ~/.kube/config.",
)
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
def lint(**flags: Any) -> int:
    """Find mistakes in manifests or in the cluster. Changes nothing without --fix.

    Exit code 0 if there is no finding, 3 if there is one, 2 if a file cannot be read (the others are still checked).
    """
    files = (*flags["files"], *flags["paths"])
    if flags["explain"] is None and (flags["fix"] or flags["diff"]) and (not files or "-" in files):
        raise click.UsageError("--fix and --diff change files: give some with -f")
    from kerf.cli.lint.linting import show

    return show(flags)
