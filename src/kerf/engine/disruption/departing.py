"""The cluster once the pods that end have ended: what saves money is looked for there, and done where it holds now.

A workload that is scaled down leaves pods that end over minutes, by their grace. Their room is about to be free. Judged
without it a fleet looks full: others would be bought for pods that soon have a place where they are, and all of them
be evicted. So a step that needs that room waits for it, as does one that would be none with it. Karpenter counts the
room of an ending pod as taken until the pod is gone, and buys; it calls one stuck a minute after its grace.

Only for what saves money. A node that is broken or has drifted does not wait.
"""

from collections.abc import Sequence
from dataclasses import replace

from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.command import Command
from kerf.engine.disruption.relocation import still_fit
from kerf.engine.disruption.settled import Settled
from kerf.engine.disruption.successors import STUCK_S
from kerf.engine.leaving import moves
from kerf.engine.place.yielding import devices_without
from kerf.engine.world import World
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.sharing.registry import families_of

_DELETED = "deleted"
_SOON_S = 3_600.0
"""Room that is free in so long is waited for: pods of some hours' grace pay for new nodes long before they end."""


def once_ended(world: World) -> World:
    """The world without the pods that are ending and will have ended soon; the very same where there are none.

    Cost: linear in nodes, in the pods of those that have changed, and in the cards of those with such pods.
    """
    snapshot = world.snapshot
    leaving = {node.name: pods for node in snapshot.nodes if (pods := _ending(node, snapshot.taken_at_s))}
    if not leaving:
        return world
    nodes = tuple(
        _without(node, leaving[node.name], snapshot) if node.name in leaving else node for node in snapshot.nodes
    )
    later = world.of(replace(snapshot, nodes=nodes))
    Settled.of(world).given_to(later)
    return later


def candidates_in(later: World, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The same candidates as nodes of that world."""
    found = ((each, later.snapshot.node(each.node.name)) for each in candidates)
    return [replace(each, cluster_node=node) for each, node in found if node is not None]


def holds_now(command: Command, later: World, world: World) -> bool:
    """Whether the pods that move to nodes that are there find their places while the ending ones are still there, too.

    Cost: the pods that move, and the pods on the nodes that they come to and others leave.
    """
    placed = [placement for deletion in command.deletions for placement in deletion.moved]
    keys = {placement.pod.pod for placement in placed}
    if not keys:
        return True
    homes = (world.snapshot.node(deletion.node) for deletion in command.deletions)
    pods = [pod for node in homes if node is not None for pod in node.pods if pod.key in keys]
    present = Settled.of(world).with_places(world.snapshot, lambda node: True)
    return still_fit(placed, pods, later.snapshot, world.of(present))


def _ending(node: ClusterNode, now_s: float) -> tuple[Pod, ...]:
    if _DELETED not in node.findings:
        # Most nodes have none, and each look asks all of them.
        node.findings[_DELETED] = None, tuple(pod for pod in node.pods if pod.deleted_s is not None)
    deleted: tuple[Pod, ...] = node.findings[_DELETED][1]
    return tuple(pod for pod in deleted if _is_ending(pod, now_s)) if deleted and not node.is_deleting else ()


def _is_ending(pod: Pod, now_s: float) -> bool:
    """Whether it has been deleted, will have ended soon, and does not come back to where it is."""
    if pod.deleted_s is None or pod.is_ended or pod.is_daemon or moves(pod):
        return False
    return now_s - STUCK_S <= pod.deleted_s <= now_s + _SOON_S


def _without(node: ClusterNode, pods: Sequence[Pod], snapshot: ClusterSnapshot) -> ClusterNode:
    gone = {pod.key for pod in pods}
    family = next((each for each in families_of(snapshot) if each.name == node.family), None)
    devices = node.devices if family is None else devices_without(family, node.devices, pods)
    return replace(node, pods=tuple(pod for pod in node.pods if pod.key not in gone), devices=devices)
