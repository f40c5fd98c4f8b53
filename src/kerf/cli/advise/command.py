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
    "requests": "Requests for a workload, from what its pods used: a table with the evidence, and a patch.",
    "per-node": "What each of N jobs may ask so that one node holds them all.",
    "pool": "A NodePool's limits against use, what they cost when filled, and types that serve no pod.",
    "instance-types": "What pods would cost on each family of instance types, the cheapest first.",
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
    """Advice from what was used; it is printed, and never applied."""


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
    "--days", type=click.IntRange(1, 90), default=30, show_default=True, help="How far back Prometheus is asked."
)
@input_options
@output_option
def requests(workload: tuple[str, ...], **flags: Any) -> int:
    """Requests for a workload, from what its pods used: the evidence, and a patch that nothing applies.

    KIND is pod, deployment, statefulset, replicaset, job or cronjob. Exit code 0; 3 when nothing is known of its use; 1
    when there is no such workload.
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
@click.option("--instance-type", metavar="TYPE", help="The type of the node; without it those of the NodePools.")
@click.option("--nodepool", metavar="NAME", help="Only this NodePool.")
@input_options
@output_option
def per_node(jobs: int, **flags: Any) -> int:
    """What each of N jobs may ask so that one node holds them all.

    That is what kubelet and DaemonSets leave of a node, divided by N, and not the size of the machine divided by N.
    Without files and without a cluster a type is looked up in the catalogue alone. Exit code 3 when no type holds N.
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
    """A NodePool's limits against use, what they would cost when filled, and types that serve no pod."""
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
    """What pods would cost on each family of instance types, the cheapest first.

    The pods of workloads, those with labels (-l), or all that wait for a node; as if they were new and no node were
    there. NodePools count with all that they ask but types and limits. Exit code 3 when no family holds all of them.
    """
    namespace = None if flags["all_namespaces"] else flags["namespace"]
    asked = wanted_objects(workloads, namespace)
    if any(one.kind not in WORKLOADS for one in asked):
        raise click.UsageError("expected workloads, such as job/NAME or deployment/NAME")
    from kerf.cli.advise.instance_types import show

    return show(asked, namespace, flags)
