"""A node joined with its claim, its pods and its cards; and what is written down of cards that are still to come."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kerf.errors import DecodeError
from kerf.model.causes import Cause, Quoted
from kerf.model.constraints import INSTANCE_TYPE
from kerf.model.gpu import DeviceState
from kerf.model.nodeclaim import OBSERVED_DEVICES, REGISTERED_LESS, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodDemand
from kerf.model.promises import read
from kerf.model.snapshot import ClusterNode
from kerf.sharing.family import Family, Occupant, Unreadable
from kerf.sharing.nvidia.partitions import shown

_MOST_MIB = 2**40


@dataclass(frozen=True)
class Parts:
    """What belongs to one node; `problem` is why it cannot be planned with, where that is known beforehand."""

    node: Node | None
    claim: NodeClaim | None
    pool: NodePool | None
    pods: tuple[Pod, ...]
    booked: tuple[Pod, ...]
    problem: Cause | None = None


def joined(parts: Parts, family: Family) -> ClusterNode:
    """The node as decisions see it; `family` owns its cards. What cannot be read of them is said in `problem`."""
    node, claim = parts.node, parts.claim
    problem, observed = parts.problem, None
    if node is not None and problem is None:
        try:
            observed = family.inventory(node)
        except DecodeError as error:
            problem = Unreadable(Quoted(str(error)))
    # What is kept with less than was predicted has what it registered.
    waiting = claim is not None and not claim.is_true("Initialized") and REGISTERED_LESS not in claim.annotations
    predicted: tuple[DeviceState, ...] = ()
    is_cut = any(device.partitions for device in observed or ())
    if claim is not None and (waiting or is_cut):
        predicted = family.predict(read(claim.annotations).devices, _labels(parts), stated(parts.pool))
    if observed is None or (waiting and (not observed or any(device.partitions for device in predicted))):
        devices = predicted if waiting else ()
    else:
        # Of cards that were cut beforehand kubelet shows sums only; where they agree, the prediction says more.
        devices = (_shown_of(predicted, observed) if is_cut else ()) or observed
    used: tuple[DeviceState, ...] = ()
    if devices:
        used = family.occupied(devices, [_occupant(pod, family) for pod in (*parts.pods, *parts.booked)])
    return ClusterNode(
        node, claim, parts.pods, used, family.name if devices or observed else "", problem, bool(observed)
    )


def _shown_of(predicted: tuple[DeviceState, ...], observed: tuple[DeviceState, ...]) -> tuple[DeviceState, ...]:
    """As many of the predicted cards as show what kubelet shows; none where no number of them does.

    A broken card takes its parts along, and of equal cards nothing says which one it was.
    """
    amounts = shown(observed)
    return next((found for left in range(len(predicted), 0, -1) if shown(found := predicted[:left]) == amounts), ())


def _labels(parts: Parts) -> Mapping[str, str]:
    """Of the node, else those that its claim promises."""
    if parts.node is not None:
        return parts.node.labels
    return parts.claim.labels if parts.claim is not None else {}


def _occupant(pod: Pod, family: Family) -> Occupant:
    return Occupant(pod, None if family.has_record(pod) else demand_on(pod, family))


def demand_on(pod: Pod, family: Family) -> PodDemand | None:
    """What the pod asks of the family; None for nothing that it gives.

    Not remembered on the pod: a node is joined once for each change of it, and a hundred thousand pods must stay small.
    """
    demand = family.demand(pod)
    return demand if isinstance(demand, PodDemand) and not demand.is_empty else None


def stated(pool: NodePool | None) -> Mapping[str, str]:
    """The annotations that a pool states for its nodes; none for no pool."""
    return pool.stated_annotations if pool is not None else {}


def _memory(value: object) -> int:
    """MiB of a card. Raises ValueError for what no card has."""
    if isinstance(value, int) and 0 < value <= _MOST_MIB:
        return value
    raise ValueError(value)


def observed_memory(pools: Iterable[NodePool], nodes: Iterable[ClusterNode]) -> dict[tuple[str, str], int]:
    """What to reckon with for a card of each (pool, instance type), in MiB before any scaling, where it is noted.

    The note on the pool holds until a node of the type has initialised with more: one bad card must not speak for all.
    """
    known = {(pool.name, name): memory for pool in pools for name, memory in noted_observations(pool).items()}
    for node in nodes if known else ():
        claim = node.claim
        if claim is None or not node.is_initialized or node.is_deleting or REGISTERED_LESS in claim.annotations:
            continue
        key = (claim.node_pool, node.labels.get(INSTANCE_TYPE, ""))
        if key in known:
            known[key] = max(known[key], read(claim.annotations).smallest_card_mib)
    return known


def noted_observations(pool: NodePool) -> Mapping[str, int]:
    """What the pool's annotation says was registered, by instance type; empty when it cannot be read."""
    try:
        noted = json.loads(pool.own_annotations.get(OBSERVED_DEVICES, "{}"))
        return {str(name): _memory(memory) for name, memory in noted.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}
