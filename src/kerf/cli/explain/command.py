"""`kerf explain`: why pending, why kept, why removed, and the smallest change that would help.

Only its flags are here. What answers is imported where it is needed: help, completion and wrong usage do not wait for
it.
"""

from typing import Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.cli.inputs.naming import KINDS, wanted_objects
from kerf.cli.inputs.options import input_options, order_option, output_option, pod_options, policy_options


def _kinds_like(typed: str) -> list[str]:
    return [kind for kind in KINDS if kind.startswith(typed)]


@click.command(
    cls=ExampleCommand,
    examples=(
        ("Why the pods of a Deployment wait", "kerf explain deployment gpu-app -f pool.yaml -f workload.yaml"),
        ("What a NodePool may still buy", "kerf explain nodepool/gpu-pool-1 -f pool.yaml -f workload.yaml"),
        ("All pods with a label, in the cluster of the kubeconfig", "kerf explain -l app=web -A"),
    ),
)
@click.argument("objects", nargs=-1, metavar="[KIND/NAME]...", shell_complete=lambda *asked: _kinds_like(asked[2]))
@input_options
@pod_options
@output_option
@order_option
@policy_options
def explain(objects: tuple[str, ...], **flags: Any) -> int:
    """Why a pod waits, why a node stays or goes, and the smallest change that would help.

    KIND is pod, deployment, statefulset, replicaset, job, cronjob, node, nodeclaim, nodepool, nodeclass, cwin (a
    CapacityWindow), provisioningrequest or capacitybuffer; with -l instead, all pods with those labels. Exit code 0; 3
    when one of the pods has no place; 1 when there is no such object.
    """
    namespace = None if flags["all_namespaces"] else flags["namespace"]
    wanted = wanted_objects(objects, namespace)
    if not wanted and flags["selector"] is None:
        raise click.UsageError("give KIND/NAME, or -l SELECTOR")
    from kerf.cli.explain.answering import show

    return show(wanted, namespace, flags)
