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
@click.option("--trace", metavar="FILE.csv", shell_complete=a_file, help="Replay a trace: its pods come and end.")
@click.option("--trace-format", type=click.Choice(FORMATS), help="The trace's format. By default its header says.")
@click.option("--copies", type=click.IntRange(1, 10_000), metavar="K", help="Replay so many copies, moved by chance.")
@click.option("--skip", type=DURATION, metavar="DURATION", help="Begin so long after the trace's time 0.")
@click.option("--span", type=DURATION, metavar="DURATION", help="Replay so much of the trace. By default all the rest.")
@click.option("--longest", type=DURATION, metavar="DURATION", help="Let no pod of the trace run longer.")
@click.option(
    "--bound-every", type=DURATION, metavar="DURATION", help="Take the re-pack bound so often (1h); 0s: not at all."
)
@click.option(
    "--seed", type=click.IntRange(0), metavar="N", help="Of all chance: offsets of copies, jitter of launches."
)
@click.option("--duration", type=DURATION, metavar="DURATION", help="Run so long, whatever the scenario says.")
@output_option
@click.option("--chart", metavar="FILE.svg", help="Draw nodes, GPUs paid and used, pending pods over time.")
@click.option("--summary", is_flag=True, help="In text, how often each thing happened in place of every row.")
def simulate(scenarios: tuple[str, ...], **flags: Any) -> int:
    """Run the real controllers in virtual time: timeline, cost, waiting, waste.

    Exit code 3 when an expectation is missed or, in a scenario that states none, a pod has no place at the end.
    """
    if not scenarios and flags["trace"] is None:
        raise click.UsageError("expected a SCENARIO, or --trace FILE.csv")
    if flags["chart"] is not None and len(scenarios) > 1:
        raise click.UsageError(f"--chart draws one scenario, got {len(scenarios)}")
    from kerf.cli.simulating import show

    return show(scenarios, flags)
