"""`kerf simulate`: scenarios run in virtual time, and their reports.

Only its flags are here. What simulates is imported where it is needed: help, completion and wrong usage do not wait for
it.
"""

from typing import Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.cli.inputs.options import output_option
from kerf.cli.proposals import a_file
from kerf.errors import brief
from kerf.model.times import duration_s
from kerf.sim.traces.names import FORMATS


class _Duration(click.ParamType[int]):
    """A time such as `1h30m`, as seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Fails with the usual words for what is none."""
        if isinstance(value, int):
            return value
        try:
            found = duration_s(str(value))
        except ValueError:
            found = None
        if found is None:
            self.fail(f"expected a duration such as 30s, 10m or 1h30m, got {brief(value)}", param, ctx)
        return found


DURATION = _Duration()


@click.command(
    cls=ExampleCommand,
    examples=(
        ("Run a scenario, and count what happened", "kerf simulate scenario.yaml --summary"),
        (
            "Replay an hour of a trace, and draw its nodes",
            "kerf simulate --trace pods.csv --span 1h --chart nodes.svg",
        ),
    ),
)
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO...]", shell_complete=a_file)
@click.option("--trace", metavar="FILE.csv", shell_complete=a_file, help="Replay the pods of a trace.")
@click.option("--trace-format", type=click.Choice(FORMATS), help="Format of the trace. Default: as its header says.")
@click.option(
    "--copies",
    type=click.IntRange(1, 10_000),
    metavar="K",
    help="Replay K copies of the trace, each but the first shifted by chance.",
)
@click.option("--skip", type=DURATION, metavar="DURATION", help="Skip this much of the trace.")
@click.option("--span", type=DURATION, metavar="DURATION", help="Replay this much of the trace. Default: all the rest.")
@click.option("--longest", type=DURATION, metavar="DURATION", help="End each pod of the trace after this time.")
@click.option(
    "--bound-every",
    type=DURATION,
    metavar="DURATION",
    help="How often to compute the re-pack bound (200 times); 0s: never.",
)
@click.option(
    "--seed", type=click.IntRange(0), metavar="N", help="Seed of all randomness: offsets of copies, jitter of launches."
)
@click.option(
    "--duration", type=DURATION, metavar="DURATION", help="How long to run, instead of what the scenario says."
)
@output_option
@click.option("--chart", metavar="FILE.svg", help="Draw nodes, GPUs paid and used, pending pods over time.")
@click.option("--summary", is_flag=True, help="Count what happened instead of printing each row.")
def simulate(scenarios: tuple[str, ...], **flags: Any) -> int:
    """Run the controllers in virtual time: timeline, cost, waiting, waste.

    Exit code 3 if an expectation is missed. In a scenario without expectations: if a pod has no place at the end.
    """
    if not scenarios and flags["trace"] is None:
        raise click.UsageError("expected a SCENARIO, or --trace FILE.csv")
    if flags["chart"] is not None and len(scenarios) > 1:
        raise click.UsageError(f"--chart draws one scenario, got {len(scenarios)}")
    from kerf.cli.simulating import show

    return show(scenarios, flags)
