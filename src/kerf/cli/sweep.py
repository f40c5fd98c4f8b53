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
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Run in so many processes; by default one a core.")
@click.option("--scheduler", metavar="tcp://HOST:PORT", help="Run on this Dask cluster instead.")
@click.option(
    "--results",
    metavar="DIR",
    shell_complete=a_file,
    help="Keep results there (AXES.results); a later sweep goes on.",
)
@click.option("--plot", metavar="FILE.svg", help="Draw means and intervals.")
@click.option("-o", "--output", type=click.Choice(FORMATS), default="table", help="What is printed; csv has every run.")
def sweep(axes: str, **flags: Any) -> int:
    """Run one scenario with many policies, traces, seeds and prices: cost, waits and moves with confidence intervals.

    Exit code 1 when a run fails; the others are run all the same.
    """
    if flags["scheduler"] is not None and flags["workers"] is not None:
        raise click.UsageError("--workers is of this machine, and --scheduler of another: expected one of them")
    from kerf.cli.sweeping import show

    return show(axes, flags)
