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
@click.option("-R", "--recursive", is_flag=True, help="Read the subdirectories of directories too.")
@click.option("-o", "--output", "form", type=click.Choice(FORMS), default=TABLE, show_default=True, help="Form.")
@click.option("--select", multiple=True, metavar="CODES", help="Only rules whose codes begin so; separated by commas.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Not the rules whose codes begin so.")
@click.option(
    "--severity",
    type=click.Choice([severity.value for severity in Severity]),
    default=Severity.INFO.value,
    show_default=True,
    help="Only findings that are at least so bad.",
)
@click.option("--fix", is_flag=True, help="Write what can be fixed safely into the files.")
@click.option("--diff", is_flag=True, help="Show what --fix would write, and write nothing.")
@click.option("--explain", metavar="CODE", help="What a rule says, and why.")
@click.option("--catalog", metavar="CATALOG", shell_complete=a_file, help="As of kerf plan.")
@click.option("--region", metavar="REGION", help="Region of the catalogue.")
@click.option("--kubeconfig", metavar="FILE", shell_complete=a_file, help="As kubectl's; KUBECONFIG without it.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
def lint(**flags: Any) -> int:
    """Findings in manifests, or in the objects of the cluster; changes nothing without --fix.

    Exit code 0 when nothing is found, 3 when something is, 2 when a file cannot be read (the others are looked at
    nevertheless).
    """
    files = (*flags["files"], *flags["paths"])
    if flags["explain"] is None and (flags["fix"] or flags["diff"]) and (not files or "-" in files):
        raise click.UsageError("--fix and --diff change files: give some with -f")
    from kerf.cli.lint.linting import show

    return show(flags)
