"""`kerf advise`: what to write instead, computed from what was used. Nothing here is ever applied.

Only its flags are here. What advises is imported where it is needed: help, completion and wrong usage do not wait for
it.
"""

from typing import Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.cli.inputs.knownnames import propose_names, propose_objects
from kerf.cli.inputs.naming import WORKLOADS, wanted_objects
from kerf.cli.inputs.options import input_options, order_option, output_option, pod_options

COMMANDS = {
    "requests": "Say what a workload should request, from what its pods used.",
    "per-node": "Say what each of N jobs may request so that one node holds them all.",
    "pool": "Compare a NodePool's limits with its use.",
    "instance-types": "Say what pods would cost on each family of instance types.",
}
"""Sub-commands with their one-line help, in the order of the help text."""
_KINDS = ("pod", *WORKLOADS)
_MOST_JOBS = 1000


class AdviseGroup(click.Group):
    """Lists its sub-commands in their order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All sub-commands."""
        return list(COMMANDS)


@click.group(cls=AdviseGroup)
def advise() -> None:
    """Say what pods and pools should ask for, from what was used. Applies nothing."""


@advise.command(
    short_help=COMMANDS["requests"],
    cls=ExampleCommand,
    examples=(
        ("What a Job should ask for", "kerf advise requests job/dagster-run -f cluster.yaml -f usage.yaml"),
        ("The patch alone", "kerf advise requests job/dagster-run -f cluster.yaml -f usage.yaml --patch"),
    ),
)
@click.argument(
    "workload", nargs=-1, required=True, metavar="KIND/NAME...", shell_complete=propose_objects(_KINDS, "workload")
)
@click.option(
    "-n",
    "--namespace",
    metavar="NAMESPACE",
    shell_complete=propose_names("namespace"),
    help="The workload's namespace.",
)
@click.option("--patch", "is_patch", is_flag=True, help="Print the patch alone, for kubectl patch --patch-file.")
@click.option("--prometheus", metavar="URL", help="Ask this server for a longer history.")
@click.option("--prometheus-token-file", "token_file", metavar="FILE", help="A bearer token for it.")
@click.option(
    "--days", type=click.IntRange(1, 90), default=30, show_default=True, help="How many days back to ask Prometheus."
)
@input_options
@output_option
def requests(workload: tuple[str, ...], **flags: Any) -> int:
    """Say what a workload should request, from what its pods used. Prints the evidence and a patch; applies nothing.

    KIND is pod, deployment, statefulset, replicaset, job or cronjob. Exit code 3 if nothing is known of its use, 1 if
    there is no such workload.
    """
    wanted = wanted_objects(workload, flags.pop("namespace"))
    if any(one.kind not in _KINDS for one in wanted):
        raise click.UsageError(f"{' '.join(workload)}: expected one of {', '.join(_KINDS)}, then /NAME")
    if len(wanted) > 1 and flags["is_patch"]:
        raise click.UsageError(f"--patch prints the patch of one workload, got {len(wanted)}")
    from kerf.cli.advise.requests import show

    return show(wanted, flags)


@advise.command(
    short_help=COMMANDS["per-node"],
    cls=ExampleCommand,
    examples=(("What each of four Jobs may ask on one m5.xlarge", "kerf advise per-node 4 --instance-type m5.xlarge"),),
)
@click.argument("jobs", metavar="N", type=click.IntRange(1, _MOST_JOBS))
@click.option("--instance-type", metavar="TYPE", help="Type of the node. Default: the types of the NodePools.")
@click.option("--nodepool", metavar="NAME", help="Only this NodePool.")
@input_options
@output_option
def per_node(jobs: int, **flags: Any) -> int:
    """Say what each of N jobs may request so that one node holds them all.

    Kubelet and DaemonSets take a part of each node; Kerf divides the rest by N. Without files and without a cluster it
    looks only into the catalogue. Exit code 3 if no type holds N.
    """
    from kerf.cli.advise.per_node import show

    return show(jobs, flags)


@advise.command(
    short_help=COMMANDS["pool"],
    cls=ExampleCommand,
    examples=(("Limits of a NodePool against use", "kerf advise pool gpu-pool-1 -f pool.yaml -f workload.yaml"),),
)
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=propose_names("nodepool"))
@input_options
@output_option
def pool(names: tuple[str, ...], **flags: Any) -> int:
    """Compare a NodePool's limits with its use. Also: the cost of the full pool, and types that serve no pod."""
    from kerf.cli.advise.pool import show

    return show(names, flags)


@advise.command(
    short_help=COMMANDS["instance-types"],
    cls=ExampleCommand,
    examples=(
        (
            "What the pods of a Deployment cost on each family",
            "kerf advise instance-types deployment/gpu-app -f pool.yaml -f workload.yaml",
        ),
    ),
)
@click.argument("workloads", nargs=-1, metavar="[KIND/NAME]...", shell_complete=propose_objects(WORKLOADS, "workloads"))
@input_options
@pod_options
@output_option
@order_option
def instance_types(workloads: tuple[str, ...], **flags: Any) -> int:
    """Say what pods would cost on each family of instance types, the cheapest first.

    It takes the pods of workloads, pods with labels (-l), or all pods that wait, as if there were no nodes yet. It
    keeps all rules of the NodePools except types and limits. Exit code 3 if no family holds all pods.
    """
    namespace = None if flags["all_namespaces"] else flags["namespace"]
    asked = wanted_objects(workloads, namespace)
    if any(one.kind not in WORKLOADS for one in asked):
        raise click.UsageError("expected workloads, such as job/NAME or deployment/NAME")
    from kerf.cli.advise.instance_types import show

    return show(asked, namespace, flags)
