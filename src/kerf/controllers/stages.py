"""What a registered node still lacks before pods can use all of it.

Karpenter asks whether each requested resource is non-zero in allocatable; HAMi's slices never are, and a node stuck
there blocks scale-down for ever (document 003). Here kubelet-visible resources are compared by amount, and slices count
as present when the device register holds at least the cards that were predicted, one by one.
"""

from dataclasses import dataclass

from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodes import Node, is_ephemeral
from kerf.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from kerf.state import ClusterState, lacks, predicted_shapes

_ALWAYS_THERE = (CPU, MEMORY, PODS, EPHEMERAL_STORAGE)


@dataclass(frozen=True, slots=True)
class Gap:
    """What is missing; `reason` empty means nothing. `is_learnt`: planning again will reckon with what was seen."""

    reason: str = ""
    message: str = ""
    concerns_devices: bool = False
    is_learnt: bool = False


def initialization_gap(claim: NodeClaim, node: Node | None, state: ClusterState) -> Gap:
    """The first thing that is missing, in Karpenter's order; devices last."""
    if node is None:
        return Gap("NodeNotFound", "Node not registered with cluster")
    if not node.is_ready:
        return Gap("NodeNotReady", "Node status is NotReady")
    for taint in node.taints:
        if taint in claim.startup_taints:
            return Gap("StartupTaintsExist", f'StartupTaint "{taint}" still exists')
        if is_ephemeral(taint):
            return Gap("KnownEphemeralTaintsExist", f'KnownEphemeralTaint "{taint}" still exists')
    devices = _devices_gap(claim, node, state)
    if devices.reason:
        return devices
    for name, amount in sorted(claim.requests.items()):
        if name not in _ALWAYS_THERE and node.allocatable.get(name, 0) < amount:
            shown = node.allocatable.get(name, 0)
            message = f'Resource "{name}" was requested but not registered: {shown} of {amount}'
            return Gap("ResourceNotRegistered", message, concerns_devices=True)
    return Gap()


def _devices_gap(claim: NodeClaim, node: Node, state: ClusterState) -> Gap:
    shapes = predicted_shapes(claim)
    if not shapes:
        return Gap()
    family = state.family_of(node, claim)
    predicted = family.predict(shapes, claim.annotations)
    observed = family.inventory(node)
    if observed is None:
        message = f"0 of {len(predicted)} GPUs registered: the device plugin has not reported yet"
        return Gap("DevicesNotRegistered", message, concerns_devices=True)
    missing = lacks(predicted, observed)
    if not missing:
        return Gap()
    # Enough healthy cards, but smaller ones: the pool notes their size, and the next plan reckons with it.
    is_learnt = sum(device.healthy for device in observed) >= len(predicted)
    return Gap("DevicesNotRegistered", missing, concerns_devices=True, is_learnt=is_learnt)
