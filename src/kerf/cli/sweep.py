"""`kerf sweep`: one scenario with many policies, traces, seeds and prices.

Only its flags are here. What sweeps is imported where it is needed: help, completion and wrong usage do not wait for
it.
"""

from typing import Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.cli.proposals import a_file

FORMATS = ("table", "json", "csv")


@click.command(
    cls=ExampleCommand,
    examples=(
        ("Run every combination, and draw what each costs", "kerf sweep sweep.yaml --plot costs.svg"),
        ("Every run as a row", "kerf sweep sweep.yaml -o csv > runs.csv"),
    ),
)
@click.argument("axes", metavar="AXES.yaml", shell_complete=a_file)
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Number of processes. Default: one for each core.")
@click.option("--scheduler", metavar="tcp://HOST:PORT", help="Run on this Dask cluster instead.")
@click.option(
    "--results",
    metavar="DIR",
    shell_complete=a_file,
    help="Keep results there, so a later sweep goes on. Default: AXES.results.",
)
@click.option("--plot", metavar="FILE.svg", help="Draw means and intervals.")
@click.option("-o", "--output", type=click.Choice(FORMATS), default="table", help="Output format; csv has every run.")
def sweep(axes: str, **flags: Any) -> int:
    """Run one scenario with many policies, traces, seeds and prices: cost, waits and moves with confidence intervals.

    Exit code 1 if a run fails; the other runs go on.
    """
    if flags["scheduler"] is not None and flags["workers"] is not None:
        raise click.UsageError("--workers is of this machine, and --scheduler of another: expected one of them")
    from kerf.cli.sweeping import show

    return show(axes, flags)
