"""The flags that many commands share.

It imports nothing that reads or decides: help and completion wait for no more.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import click

from kerf.cli.inputs.knownnames import propose_names
from kerf.cli.inputs.watching import watch
from kerf.cli.output.forms import OutputForm
from kerf.cli.output.screen import keep_headers
from kerf.cli.proposals import a_file
from kerf.model.policies import MIN_VALUES, PREFERENCES, RESPECT, STRICT

_Command = Callable[..., Any]


_FILES = (
    click.option(
        "-f",
        "--filename",
        "files",
        multiple=True,
        metavar="FILE|DIR|-",
        shell_complete=a_file,
        help="Files to read instead of the cluster.",
    ),
    click.option("-R", "--recursive", is_flag=True, help="Read subdirectories too."),
    click.option(
        "--catalog",
        metavar="CATALOG",
        shell_complete=a_file,
        help="Source of prices: aws[:REGION], aws:live[:REGION], alibaba[:REGION], kwok, or a file.",
    ),
    click.option("--region", metavar="REGION", help="Region whose prices count."),
    click.option(
        "--now",
        metavar="TIME",
        help="Plan for this time (RFC 3339). Default: now; with -f, the newest time in the files.",
    ),
)
_CLUSTER = (
    click.option(
        "--kubeconfig",
        metavar="FILE",
        shell_complete=a_file,
        help="The kubeconfig. Default: KUBECONFIG, then ~/.kube/config.",
    ),
    click.option(
        "--context", metavar="NAME", shell_complete=propose_names("context"), help="Context of the kubeconfig."
    ),
)
_REPLICAS = click.option(
    "--replicas", multiple=True, metavar="KIND/NS/NAME=N", help="Plan as if a workload had N replicas."
)
_REPLAY = click.option(
    "--replay", metavar="FILE|-", help="Repeat the plan of a dump, with the settings and prices of that time."
)


def input_options(command: _Command) -> _Command:
    """The flags that say what every command looks at; they arrive as one `Source`."""
    again = click.option("-w", "--watch", is_flag=True, help="Watch, and print again when something changes.")
    return _decorated(_repeated(command), (*_FILES, _REPLICAS, *_CLUSTER, again))


def cluster_options(command: _Command) -> _Command:
    """Which cluster, for a command that needs no more."""
    return _decorated(command, _CLUSTER)


def replay_option(command: _Command) -> _Command:
    """`--replay`: a dump in the place of files and of a cluster."""
    return _REPLAY(command)


def plan_source_options(command: _Command) -> _Command:
    """All that a plan can be made from, for a command that is given one: as `kerf plan`, without `--watch`."""
    return _decorated(command, (*_FILES, _REPLICAS, _REPLAY, *_CLUSTER))


def source_options(command: _Command) -> _Command:
    """The same without those that ask what would be: `--replicas` and `--watch`."""
    return _decorated(command, (*_FILES, *_CLUSTER))


def _repeated(command: _Command) -> _Command:
    @functools.wraps(command)
    def run(**flags: Any) -> Any:
        if not flags.pop("watch"):
            return command(**flags)
        if "-" in flags["files"]:
            raise click.UsageError("-w reads again and again, and standard input can be read once: give a file")
        return watch(functools.partial(command, **flags))

    return run


def output_option(command: _Command) -> _Command:
    """`-o` and `--no-headers`, as kubectl's."""
    flags = (
        click.option("-o", "--output", type=OutputForm(), default="table", show_default=True, help="Output format."),
        click.option(
            "--no-headers",
            is_flag=True,
            expose_value=False,
            callback=keep_headers,
            help="Print tables without headers and sums.",
        ),
    )
    return _decorated(command, flags)


def order_option(command: _Command) -> _Command:
    """`--sort-by`, as kubectl's."""
    flag = click.option("--sort-by", metavar="FIELD", help="Sort rows by a field of -o json, such as .node.")
    return flag(command)


def pod_options(command: _Command) -> _Command:
    """Which pods are meant."""
    flags = (
        click.option(
            "-n",
            "--namespace",
            metavar="NAMESPACE",
            shell_complete=propose_names("namespace"),
            help="Only pods of this namespace.",
        ),
        click.option("-A", "--all-namespaces", is_flag=True, help="Pods of all namespaces."),
        click.option("-l", "--selector", metavar="SELECTOR", help="Only pods with these labels."),
    )
    return _decorated(command, flags)


def node_option(command: _Command) -> _Command:
    """Which nodes are meant."""
    flag = click.option("-l", "--selector", default="", metavar="SELECTOR", help="Only nodes with these labels.")
    return flag(command)


def node_names(command: _Command) -> _Command:
    """Nodes by their names, all without one."""
    return click.argument("names", nargs=-1, metavar="[NODE]...", shell_complete=propose_names("node"))(command)


def policy_options(command: _Command) -> _Command:
    """The flags by which Karpenter's policies are chosen, as `kerf run` has them."""
    preferences = click.option(
        "--preference-policy",
        type=click.Choice(PREFERENCES),
        default=RESPECT,
        show_default=True,
        help="Respect: buy nodes that pods prefer, where possible. Ignore: do not look at preferences.",
    )
    min_values = click.option(
        "--min-values-policy",
        type=click.Choice(MIN_VALUES),
        default=STRICT,
        show_default=True,
        help="Strict: never go below a NodePool's minValues. BestEffort: go below them if needed.",
    )
    return preferences(min_values(command))


def _decorated(command: _Command, flags: Iterable[Callable[[_Command], _Command]]) -> _Command:
    for flag in reversed(tuple(flags)):
        command = flag(command)
    return command
