"""What a registered node still lacks before pods can use all of it.

Karpenter asks whether each requested resource is non-zero in allocatable; HAMi's slices never are, and a node stuck
there blocks scale-down for ever (document 003). Here kubelet-visible resources are compared by amount, and slices count
as present when the device register holds at least the cards that were predicted, one by one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kerf.config import Settings
from kerf.model.nodeclaim import INITIALIZED, REGISTERED, RELABELLED, UNKNOWN, Condition, NodeClaim
from kerf.model.nodes import Node, is_ephemeral
from kerf.model.promises import read
from kerf.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from kerf.model.times import instant_s, instant_text
from kerf.sharing.choice import CONFIGURATION_LABELS
from kerf.sharing.family import Family
from kerf.state import lacks

_ALWAYS_THERE = (CPU, MEMORY, PODS, EPHEMERAL_STORAGE)


@dataclass(frozen=True, slots=True)
class Gap:
    """What is missing; `reason` empty means nothing. `is_learnt`: planning again will reckon with what was seen."""

    reason: str = ""
    message: str = ""
    concerns_devices: bool = False
    is_learnt: bool = False


def initialization_gap(claim: NodeClaim, node: Node | None, family: Family) -> Gap:
    """The first thing that is missing, in Karpenter's order; devices last. `family` owns the node's cards."""
    if node is None:
        return Gap("NodeNotFound", "Node not registered with cluster")
    if not node.is_ready:
        return Gap("NodeNotReady", "Node status is NotReady")
    for taint in node.taints:
        if taint in claim.startup_taints:
            return Gap("StartupTaintsExist", f'StartupTaint "{taint}" still exists')
        if is_ephemeral(taint):
            return Gap("KnownEphemeralTaintsExist", f'KnownEphemeralTaint "{taint}" still exists')
    devices = _devices_gap(claim, node, family)
    if devices.reason:
        return devices
    if RELABELLED in claim.annotations:
        # Its requests are those of the pods it was bought for, under another configuration.
        return Gap()
    for name, amount in sorted(claim.requests.items()):
        if name not in _ALWAYS_THERE and node.allocatable.get(name, 0) < amount:
            shown = node.allocatable.get(name, 0)
            message = f'Resource "{name}" was requested but not registered: {shown} of {amount}'
            return Gap("ResourceNotRegistered", message, concerns_devices=True)
    return Gap()


def _devices_gap(claim: NodeClaim, node: Node, family: Family) -> Gap:
    shapes = read(claim.annotations).devices
    if not shapes:
        return Gap()
    predicted = family.predict(shapes, node.labels, claim.annotations)
    observed = family.inventory(node)
    if observed is None:
        message = f"0 of {len(predicted)} GPUs registered: the device plugin has not reported yet"
        if family.selector is not None and claim.taints:
            message += f" (does it tolerate the taint {min(claim.taints)}?)"
        return Gap("DevicesNotRegistered", message, concerns_devices=True)
    missing = lacks(predicted, observed)
    if not missing:
        return Gap()
    # Enough healthy cards, but smaller ones: the pool notes their size, and the next plan reckons with it.
    is_learnt = sum(device.healthy for device in observed) >= len(predicted)
    return Gap("DevicesNotRegistered", missing, concerns_devices=True, is_learnt=is_learnt)


def initialization_deadline_s(claim: NodeClaim, node: Node | None, gap: Gap, settings: Settings) -> float:
    """When a registered claim is given up: devices get their time from Ready on, all else from Registered on."""
    condition = claim.condition(REGISTERED)
    registered_s = condition.since_s if condition is not None else claim.created_s
    if not gap.concerns_devices:
        return registered_s + settings.registration_deadline_s
    ready_s = node.ready_since_s if node is not None and node.is_ready else None
    return max(ready_s or 0, registered_s, _relabelled_s(claim)) + settings.devices_deadline_s


def due_labels(claim: NodeClaim, node: Node) -> Mapping[str, str]:
    """The configuration of GPU sharing that the claim of a relabelled node has and the node has not; else nothing."""
    if RELABELLED not in claim.annotations:
        return {}
    wanted = {key: claim.labels[key] for key in CONFIGURATION_LABELS if key in claim.labels}
    return {key: value for key, value in wanted.items() if node.labels.get(key) != value}


def _relabelled_s(claim: NodeClaim) -> float:
    """When the node got its present configuration of GPU sharing; 0 where that was at its launch."""
    try:
        return instant_s(claim.annotations.get(RELABELLED, ""))
    except ValueError:
        return 0


def waiting_condition(gap: Gap, deadline_s: float, now_s: float) -> Condition:
    """How the claim says it: what is missing, and when it is given up."""
    return Condition(INITIALIZED, UNKNOWN, gap.reason, f"{gap.message}; given up at {instant_text(deadline_s)}", now_s)
