"""`kerf explain`: why pending, why kept, why removed, and the smallest change that would help.

Only its flags are here. What answers is imported where it is needed: help, completion and wrong usage do not wait for
it.
"""

from typing import Any

import click

from kerf.cli.examples import ExampleCommand
from kerf.cli.inputs.knownnames import propose_objects
from kerf.cli.inputs.naming import KINDS, kind_of, wanted_objects
from kerf.cli.inputs.options import input_options, order_option, output_option, pod_options, policy_options


@click.command(
    cls=ExampleCommand,
    examples=(
        ("What waits, and why", "kerf explain -f pool.yaml -f workload.yaml"),
        ("Why the pods of a Deployment wait", "kerf explain deployment gpu-app -f pool.yaml -f workload.yaml"),
        ("What a NodePool may still buy", "kerf explain nodepool/gpu-pool-1 -f pool.yaml -f workload.yaml"),
        ("All pods with a label, in the cluster of the kubeconfig", "kerf explain -l app=web -A"),
    ),
)
@click.argument("objects", nargs=-1, metavar="[KIND/NAME]...", shell_complete=propose_objects(tuple(KINDS), "objects"))
@input_options
@pod_options
@output_option
@order_option
@policy_options
def explain(objects: tuple[str, ...], **flags: Any) -> int:
    """Say why a pod waits, why a node stays or goes, and the smallest change that helps.

    Without an object, it lists all pods that wait, and why. KIND is pod, deployment, statefulset, replicaset, job,
    cronjob, node, nodeclaim, nodepool, nodeclass, cwin (a CapacityWindow), provisioningrequest or capacitybuffer. Use
    -l instead for all pods with these labels. Exit code 3 if a pod has no place, 1 if there is no such object.
    """
    namespace = None if flags["all_namespaces"] else flags["namespace"]
    # `explain pods` is all of them that wait, and `explain pods -l app=web` those with the label.
    are_all = len(objects) == 1 and kind_of(objects[0]) == "pod"
    wanted = wanted_objects(() if are_all else objects, namespace)
    from kerf.cli.explain.answering import show

    return show(wanted, namespace, flags)
