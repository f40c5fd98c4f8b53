"""The room of CapacityBuffers as pods on their nodes: what nodes go is decided as if the buffers' pods ran there.

So a node that holds a buffer's room is not empty, and where it goes all the same its room is found elsewhere or bought
with what takes its place, and counted in what that costs. Counted as free it would be given up and bought again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kerf.engine.disruption.candidates import Candidate, moving
from kerf.engine.headroom.buffers import buffered, is_of_buffer
from kerf.engine.place.fit import Placed
from kerf.engine.place.shapes import Shape
from kerf.engine.place.trial import Trial
from kerf.engine.world import World
from kerf.model.nodeclaim import REPLACES, NodeClaim
from kerf.model.placeholders import VIRTUAL, Keeper
from kerf.model.plan import NodePlacement
from kerf.model.pods import Pod
from kerf.model.promises import pods_under
from kerf.model.snapshot import ClusterNode

_OF_BUFFERS = f"{Keeper.BUFFER}{VIRTUAL}"


def keeps_buffers(world: World) -> bool:
    """Whether there is any buffer that room may be kept for."""
    return any(each.is_kept for each in world.snapshot.capacity_buffers)


def with_buffers(world: World, placements: Iterable[NodePlacement]) -> World:
    """The world with the buffers' pods on the nodes where a plan puts them, and without the buffers.

    What has its place on a node that starts, or none, is left out: such a node does not go to save money, and what is
    bought for a buffer is bought whatever goes. Cost: the buffers' pods.
    """
    snapshot = world.snapshot
    homes = {each.pod.pod: each.node for each in placements if is_of_buffer(each.pod.pod)}
    pods = (pod for each in (buffered(snapshot) if homes else ()) for pod in each.pods)
    coming: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.key in homes:
            coming.setdefault(homes[pod.key], []).append(pod)
    others = frozenset(node.name for node in snapshot.nodes) - coming.keys()
    trial = Trial(snapshot, world.market, others, world.volumes) if coming else None
    numbers = {spot.cluster_node.name: index for index, spot in enumerate(trial.spots)} if trial is not None else {}
    nodes = tuple(
        node if trial is None or node.name not in numbers else _holding(trial, numbers[node.name], coming[node.name])
        for node in snapshot.nodes
    )
    held = replace(snapshot, nodes=nodes, capacity_buffers=(), scalables=())
    return world.of(held)


def _holding(trial: Trial, index: int, pods: Sequence[Pod]) -> ClusterNode:
    """The node with those of the pods that fit there, and its cards with their slices."""
    node, here = trial.spots[index].cluster_node, []
    for pod in pods:
        found = trial.fit(index, Shape((pod,)))
        if isinstance(found, Placed):
            trial.occupy(index, found.room, pod)
            here.append(replace(pod, node_name=node.name))
    if not here or not node.is_initialized:
        return node
    return replace(node, pods=(*node.pods, *here), devices=trial.rooms[index].devices)


def held_candidates(candidates: Sequence[Candidate], held: World) -> list[Candidate]:
    """The candidates with the buffers' pods among theirs; without those for whose room a node is on its way already.

    That was bought when others had taken it, and they have gone again: another is not bought beside it.
    """
    coming = _coming(held)
    found = []
    for each in candidates:
        node = held.snapshot.node(each.node.name)
        if node is None or node is each.cluster_node:
            found.append(each)
        elif coming.isdisjoint(pod.key for pod in node.pods):
            found.append(replace(each, cluster_node=node, pods=moving(node)))
    return found


def without_held(candidates: Sequence[Candidate], held: World) -> Sequence[Candidate]:
    """The candidates without those that hold a buffer's room, while room that others had comes in their place.

    One whose own room is nowhere to be had goes all the same, but not while the next one is on its way.
    """
    if not any(REPLACES in claim.annotations and _rooms(claim) for claim in _starting(held)):
        return candidates
    return [each for each in candidates if held.snapshot.node(each.node.name) is each.cluster_node]


def _coming(world: World) -> frozenset[str]:
    """The buffers' pods for which nodes that start were bought, in the place of none that goes.

    A buffer's pods are alike, so what comes in the place of one is no room for another, whatever their names.
    """
    return frozenset(key for claim in _starting(world) if REPLACES not in claim.annotations for key in _rooms(claim))


def _starting(world: World) -> Iterator[NodeClaim]:
    nodes = (node for node in world.snapshot.nodes if not node.is_initialized and not node.is_deleting)
    return (node.claim for node in nodes if node.claim is not None)


def _rooms(claim: NodeClaim) -> Sequence[str]:
    return tuple(pods_under(claim.annotations, _OF_BUFFERS))
