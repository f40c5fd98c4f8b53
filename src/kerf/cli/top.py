"""`kerf top`: how full the cluster is, again and again.

Only its flags are here. What reads and draws is imported where it is needed: help, completion and wrong usage do not
wait for it.
"""

import functools
import sys
from typing import Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.cli.inputs.options import input_options, node_option, order_option, output_option

_WHAT = {"node": "nodes", "nodes": "nodes", "no": "nodes", "gpu": "gpus", "gpus": "gpus"}
_PODS = ("pod", "pods", "po")
_FASTEST_S = 0.5


def _wanted(_: click.Context, parameter: click.Parameter, text: str) -> str:
    if text.lower() in _PODS:
        raise click.UsageError(
            "kubectl top pods says what pods use; kerf advise requests KIND/NAME says what they should ask for"
        )
    if text.lower() not in _WHAT:
        raise click.BadParameter(f"expected nodes or gpus, got {text!r}", param=parameter)
    return _WHAT[text.lower()]


@click.command(
    cls=ExampleCommand,
    examples=(
        ("How full the cluster is, until Ctrl-C", "kerf top"),
        (
            "The nodes of a file, the most expensive last, once",
            "kerf top nodes -f cluster.yaml --sort-by .perHour --once",
        ),
    ),
)
@click.argument(
    "what",
    default="nodes",
    metavar="[nodes|gpus]",
    callback=_wanted,
    shell_complete=lambda *asked: [each for each in ("nodes", "gpus") if each.startswith(asked[2])],
)
@input_options
@node_option
@output_option
@order_option
@click.option("--once", is_flag=True, help="Look once. In a pipe this is the default, unless -w is given.")
@click.option(
    "--interval",
    "every_s",
    type=click.FloatRange(_FASTEST_S),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look.",
)
def top(what: str, once: bool, every_s: float, **flags: Any) -> Any:
    """Show how full nodes and cards are, what that costs, and how many pods wait.

    On a terminal it refreshes until Ctrl-C, for a cluster or a file. USED is what was measured, if the cluster has a
    metrics server.
    """
    from kerf.cli.inputs.watching import redraw
    from kerf.cli.redrawing import show

    if once or not sys.stdout.isatty() or flags["output"] not in ("table", "wide") or "-" in flags["files"]:
        return show(what, flags)
    return redraw(functools.partial(show, what, flags, is_screen=True), every_s)
