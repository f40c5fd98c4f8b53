"""Where a NodeClaim stands: the stage it is in, since when, what it lacks, and when it is given up.

Launched, Registered and Initialized are Karpenter's stages. A GPU node has one more: it is Ready and yet useless until
its device plugin has registered the cards, and nothing in the Node says that they are still to come. Karpenter asks
whether each requested resource is non-zero in allocatable; HAMi's slices never are, and a node stuck there blocks
scale-down for ever (document 003). So what kubelet shows is compared by amount, and the cards one by one with those
that were promised.

All is read off the claim, its node and their conditions. The controller, the commands and the simulator ask here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kerf.model.constraints import Taint
from kerf.model.gpu import DeviceState
from kerf.model.nodeclaim import (
    DISRUPTION_REASON,
    FALSE,
    INITIALIZED,
    LAUNCHED,
    REGISTERED,
    REGISTERED_LESS,
    RELABELLED,
    TERMINATION_TIMESTAMP,
    UNHEALTHY,
    Condition,
    NodeClaim,
)
from kerf.model.nodes import Node, is_ephemeral
from kerf.model.promises import read
from kerf.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from kerf.model.times import instant_s
from kerf.sharing.family import Family
from kerf.sharing.nvidia.choice import CONFIGURATION_LABELS
from kerf.sharing.nvidia.partitions import short_part

_NO_REPAIR: Mapping[str, float] = {}
_ALWAYS_THERE = (CPU, MEMORY, PODS, EPHEMERAL_STORAGE)


class ClaimStage(StrEnum):
    """What a claim waits for next, in the order of its life. `DEVICES` belongs to the condition `Initialized`."""

    LAUNCHED = LAUNCHED
    REGISTERED = REGISTERED
    INITIALIZED = INITIALIZED
    DEVICES = "Devices"

    @property
    def condition(self) -> str:
        """The condition of the claim that turns True when it is reached."""
        return INITIALIZED if self is ClaimStage.DEVICES else self.value


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long each stage may take, in seconds.

    `launch_s` counts from the claim's creation and `registration_s` from its launch, 5 and 15 minutes by default, as
    in Karpenter. A registered node has `registration_s` once more to become ready and lose its startup taints, and
    from then on `devices_s`, 10 minutes by default, for its cards: Karpenter knows no such time (document 003).
    """

    launch_s: float
    registration_s: float
    devices_s: float


@dataclass(frozen=True, slots=True)
class NotLaunched:
    """The cloud has not launched it."""


@dataclass(frozen=True, slots=True)
class NoNode:
    """No Node of its instance has joined the cluster, or it has gone since."""


@dataclass(frozen=True, slots=True)
class NodeNotReady:
    """Kubelet does not say that the node is ready."""


@dataclass(frozen=True, slots=True)
class StartupTaintLeft:
    """A startup taint of the claim, which another program takes away when it is done."""

    taint: Taint


@dataclass(frozen=True, slots=True)
class EphemeralTaintLeft:
    """A taint of Kubernetes for the time in which a node starts."""

    taint: Taint


@dataclass(frozen=True, slots=True)
class NoRegister:
    """The device plugin has reported none of `promised` cards. `taint` may keep its pod off; None where none can."""

    promised: int
    taint: Taint | None = None


@dataclass(frozen=True, slots=True)
class FewerCards:
    """Fewer cards have registered than were promised."""

    registered: int
    promised: int


@dataclass(frozen=True, slots=True)
class UnhealthyCards:
    """All cards have registered, and fewer of them are healthy than were promised."""

    healthy: int
    promised: int


@dataclass(frozen=True, slots=True)
class SmallerCard:
    """A card registered less memory than was promised, in MiB."""

    registered_mib: int
    promised_mib: int


@dataclass(frozen=True, slots=True)
class FewerParts:
    """Kubelet shows fewer parts of GPUs than were promised; `has_all_cards`: not because a card is not there."""

    resource: str
    shown: int
    promised: int
    has_all_cards: bool


@dataclass(frozen=True, slots=True)
class TooLittle:
    """Kubelet shows less of a resource than the claim requests, in the resource's own unit."""

    resource: str
    shown: int
    requested: int


@dataclass(frozen=True, slots=True)
class TooSmall:
    """The node has less of a resource than the cloud promised, in the resource's own unit."""

    resource: str
    found: int
    expected: int


Shortfall = FewerCards | UnhealthyCards | SmallerCard | FewerParts
"""Cards have registered, and less of them than was promised: who needs less can use the node."""
DevicesMissing = NoRegister | Shortfall | TooLittle
Missing = NotLaunched | NoNode | NodeNotReady | StartupTaintLeft | EphemeralTaintLeft | DevicesMissing


@dataclass(frozen=True, slots=True)
class Progress:
    """A claim on its way. `missing` is None where nothing keeps it from its next stage.

    `since_s` is when the time of the stage began to count, `deadline_s` when it is over.
    """

    stage: ClaimStage
    since_s: float
    deadline_s: float
    missing: Missing | None = None

    def is_overdue(self, now_s: float) -> bool:
        """Whether the claim is to be given up now."""
        return now_s >= self.deadline_s


def stage_of(claim: NodeClaim) -> ClaimStage | None:
    """The first stage that the claim's conditions do not show as reached; None once it has reached all.

    Whether an unreached `Initialized` is for want of devices only the node says: see `progress`.
    """
    for stage in (ClaimStage.LAUNCHED, ClaimStage.REGISTERED, ClaimStage.INITIALIZED):
        if not claim.is_true(stage.condition):
            return stage
    return None


def timed_out(stage: str) -> str:
    """The reason of the condition of a stage that was not reached in time."""
    return f"{stage}TimedOut"


def missed_deadline(claim: NodeClaim) -> Condition | None:
    """The condition of a claim that is given up because a stage was not reached in time; None for any other."""
    if not claim.is_deleting:
        return None
    return next(
        (each for each in claim.conditions if each.status == FALSE and each.reason == timed_out(each.type)), None
    )


def is_on_its_way(claim: NodeClaim) -> bool:
    """Whether its node is still to join the cluster: pods that it was bought for wait for it."""
    return not claim.is_deleting and not claim.is_true(REGISTERED)


def progress(claim: NodeClaim, node: Node | None, family: Family, deadlines: Deadlines) -> Progress | None:
    """Where a claim that is not initialised stands, `family` owning its node's cards; None for one that is."""
    stage = stage_of(claim)
    if stage is None:
        return None
    if stage is ClaimStage.LAUNCHED:
        # Its condition has Kerf's own time; the claim's creation has that of the server, whose clock may show another.
        begun_s = _reached_s(claim, LAUNCHED)
        return Progress(stage, begun_s, begun_s + deadlines.launch_s, NotLaunched())
    if stage is ClaimStage.REGISTERED:
        launched_s = _reached_s(claim, LAUNCHED)
        missing = NoNode() if node is None else None
        return Progress(stage, launched_s, launched_s + deadlines.registration_s, missing)
    return _initialising(claim, deadlines, node, initialization_gap(claim, node, family))


def _initialising(claim: NodeClaim, deadlines: Deadlines, node: Node | None, missing: Missing | None) -> Progress:
    """Devices get their time from when the node was ready, all else from when it registered."""
    registered_s = _reached_s(claim, REGISTERED)
    if not isinstance(missing, DevicesMissing):
        deadline_s = registered_s + deadlines.registration_s
        return Progress(ClaimStage.INITIALIZED, registered_s, deadline_s, missing)
    ready_s = node.ready_since_s if node is not None and node.is_ready else None
    since_s = max(ready_s or 0, registered_s, _relabelled_s(claim))
    return Progress(ClaimStage.DEVICES, since_s, since_s + deadlines.devices_s, missing)


def initialization_gap(claim: NodeClaim, node: Node | None, family: Family) -> Missing | None:
    """The first thing that a registered node lacks, in Karpenter's order, devices last; None for nothing."""
    if node is None:
        return NoNode()
    if not node.is_ready:
        return NodeNotReady()
    for taint in node.taints:
        if taint in claim.startup_taints:
            return StartupTaintLeft(taint)
        if is_ephemeral(taint):
            return EphemeralTaintLeft(taint)
    missing = _devices_gap(claim, node, family)
    if missing is not None or RELABELLED in claim.annotations or REGISTERED_LESS in claim.annotations:
        # The requests of a relabelled node are those of its first pods, under another configuration; those of a node
        # that is kept with less are of pods that may not fit any more.
        return missing
    for name, amount in sorted(claim.requests.items()):
        shown = node.allocatable.get(name, 0)
        if name not in _ALWAYS_THERE and shown < amount:
            return TooLittle(name, shown, amount)
    return None


def _devices_gap(claim: NodeClaim, node: Node, family: Family) -> DevicesMissing | None:
    shapes = read(claim.annotations).devices
    if not shapes:
        return None
    promised = family.predict(shapes, node.labels, claim.annotations)
    observed = family.inventory(node)
    if observed is None:
        # A family with a selector has its own DaemonSet, which may lack a toleration; NVIDIA's plugin tolerates all.
        is_kept_off = family.selector is not None and claim.taints
        return NoRegister(len(promised), min(claim.taints) if is_kept_off else None)
    missing = cards_missing(promised, observed)
    return None if REGISTERED_LESS in claim.annotations else missing


def cards_missing(promised: Sequence[DeviceState], observed: Sequence[DeviceState]) -> DevicesMissing | None:
    """What the register lacks of what was promised, largest cards first; None when it holds at least that.

    A card without memory in its register is not compared by it.
    """
    healthy = sorted((device.memory_mib for device in observed if device.healthy), reverse=True)
    if any(device.partitions for device in promised):
        part = short_part(promised, observed)
        return None if part is None else FewerParts(*part, has_all_cards=len(healthy) >= len(promised))
    if len(observed) < len(promised):
        return FewerCards(len(observed), len(promised))
    if len(healthy) < len(promised):
        return UnhealthyCards(len(healthy), len(promised))
    expected = sorted((device.memory_mib for device in promised), reverse=True)
    for got, wanted in zip(healthy, expected, strict=False):
        if 0 < got < wanted:
            return SmallerCard(got, wanted)
    return None


def shape_gaps(claim: NodeClaim, node: Node) -> tuple[TooSmall, ...]:
    """The resources of which the node has less than nine tenths of what the cloud promised, by name.

    Of a claim that promises cards those of other domains are left out: its device register says more of them.
    """
    has_cards = bool(read(claim.annotations).devices)
    expected = {name: amount for name, amount in sorted(claim.capacity.items()) if not (has_cards and "/" in name)}
    found = ((name, node.capacity.get(name, 0), amount) for name, amount in expected.items())
    return tuple(TooSmall(name, shown, amount) for name, shown, amount in found if 10 * shown < 9 * amount)


def is_settled(claim: NodeClaim, missing: Missing) -> bool:
    """Whether what is missing is not awaited: a plugin registers all cards of a node at once.

    The MIG manager shows and hides parts while it is at work, so a node that is being cut has its time.
    """
    return isinstance(missing, FewerCards | UnhealthyCards | SmallerCard) and RELABELLED not in claim.annotations


def is_learnt(missing: Missing) -> bool:
    """Whether the next plan knows better: the cards are there and smaller, which the NodePool notes."""
    return isinstance(missing, SmallerCard) or (isinstance(missing, FewerParts) and missing.has_all_cards)


def due_labels(claim: NodeClaim, node: Node) -> Mapping[str, str]:
    """The configuration of GPU sharing that the claim of a relabelled node has and the node has not; else nothing."""
    if RELABELLED not in claim.annotations:
        return {}
    wanted = {key: claim.labels[key] for key in CONFIGURATION_LABELS if key in claim.labels}
    return {key: value for key, value in wanted.items() if node.labels.get(key) != value}


def drain_deadline_s(claim: NodeClaim, repair_s: Mapping[str, float] = _NO_REPAIR) -> float | None:
    """When the last pod of a claim that is being deleted must have gone; None where nothing sets an end.

    Its annotation says it; without one that can be read it follows from the claim's grace period, and for a node that
    is broken also from `repair_s`: how long the drain may take, by the condition that is bad. The shorter counts.
    """
    try:
        return instant_s(claim.annotations[TERMINATION_TIMESTAMP])
    except (KeyError, ValueError):
        pass
    if claim.deleted_s is None:
        return None
    reason, broken = claim.condition(DISRUPTION_REASON), claim.condition(UNHEALTHY)
    is_repair = reason is not None and reason.reason == UNHEALTHY and broken is not None
    bounds = [claim.termination_grace_period_s, repair_s.get(broken.reason) if is_repair and broken else None]
    return min((claim.deleted_s + bound for bound in bounds if bound is not None), default=None)


def _reached_s(claim: NodeClaim, stage: str) -> float:
    condition = claim.condition(stage)
    return condition.since_s if condition is not None else claim.created_s


def _relabelled_s(claim: NodeClaim) -> float:
    """When the node got its present configuration of GPU sharing; 0 where that was at its launch."""
    try:
        return instant_s(claim.annotations.get(RELABELLED, ""))
    except ValueError:
        return 0
