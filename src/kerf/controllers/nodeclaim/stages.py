"""How a claim says where it stands: the reason and message of the condition that it waits for.

The words are Karpenter's where it has the case. Nothing reads them back: who decides asks `engine.lifecycle`.
"""

from collections.abc import Sequence

from kerf.config import Settings
from kerf.engine.lifecycle import (
    Deadlines,
    EphemeralTaintLeft,
    FewerCards,
    FewerParts,
    Missing,
    NodeNotReady,
    NoNode,
    NoRegister,
    NotLaunched,
    Progress,
    Shortfall,
    SmallerCard,
    StartupTaintLeft,
    TooLittle,
    TooSmall,
    UnhealthyCards,
)
from kerf.model.nodeclaim import CONSISTENT_STATE_FOUND, FALSE, TRUE, UNKNOWN, Condition
from kerf.model.quantities import quantity_text
from kerf.model.times import instant_text


def deadlines_of(settings: Settings) -> Deadlines:
    """How long each stage may take by the settings."""
    return Deadlines(settings.launch_deadline_s, settings.registration_deadline_s, settings.devices_deadline_s)


def waiting_condition(progress: Progress, since_s: float, boot_log: str = "") -> Condition:
    """What is missing, and when the claim is given up; `since_s` is the time of the condition.

    `boot_log` is the command that shows what the machine wrote, see `CloudProvider.boot_log`.
    """
    assert progress.missing is not None
    text = f"{message_of(progress.missing)}; given up at {instant_text(progress.deadline_s)}"
    text += boot_log_text(progress.missing, boot_log)
    return Condition(progress.stage.condition, UNKNOWN, reason_of(progress.missing), text, since_s)


def consistent_condition(gaps: Sequence[TooSmall], now_s: float) -> Condition:
    """Whether a node has the shape that the cloud promised; Karpenter's words where it has not."""
    if not gaps:
        return Condition(CONSISTENT_STATE_FOUND, TRUE, CONSISTENT_STATE_FOUND, "", now_s)
    text = "; ".join(map(_too_small_text, gaps))
    return Condition(CONSISTENT_STATE_FOUND, FALSE, "ConsistencyCheckFailed", text, now_s)


def _too_small_text(gap: TooSmall) -> str:
    expected, found = (quantity_text(gap.resource, amount) for amount in (gap.expected, gap.found))
    share = 1000 * gap.found // gap.expected
    return f"expected {expected} of resource {gap.resource}, but found {found} ({share / 10}% of expected)"


def boot_log_text(missing: Missing, boot_log: str) -> str:
    """Where to look for why no node or no card comes; empty where that is not what is missing."""
    return f"; what the machine wrote: {boot_log}" if boot_log and isinstance(missing, NoNode | NoRegister) else ""


def reason_of(missing: Missing) -> str:
    """The reason of a condition, one CamelCase word."""
    match missing:
        case NotLaunched():
            return "AwaitingReconciliation"
        case NoNode():
            return "NodeNotFound"
        case NodeNotReady():
            return "NodeNotReady"
        case StartupTaintLeft():
            return "StartupTaintsExist"
        case EphemeralTaintLeft():
            return "KnownEphemeralTaintsExist"
        case TooLittle():
            return "ResourceNotRegistered"
        case NoRegister() | FewerCards() | UnhealthyCards() | SmallerCard() | FewerParts():
            return "DevicesNotRegistered"


def message_of(missing: Missing) -> str:
    """The sentence for a person, without its full stop."""
    match missing:
        case NotLaunched():
            return "The cloud has not launched it yet"
        case NoNode():
            return "Node not registered with cluster"
        case NodeNotReady():
            return "Node status is NotReady"
        case StartupTaintLeft(taint):
            return f'StartupTaint "{taint}" still exists'
        case EphemeralTaintLeft(taint):
            return f'KnownEphemeralTaint "{taint}" still exists'
        case TooLittle(name, shown, requested):
            return f'Resource "{name}" was requested but not registered: {shown} of {requested}'
        case NoRegister(promised, taint):
            hint = f" (does it tolerate the taint {taint}?)" if taint is not None else ""
            return f"0 of {promised} GPUs registered: the device plugin has not reported yet{hint}"
        case FewerCards(registered, promised):
            return f"{registered} of {promised} GPUs registered"
        case UnhealthyCards(healthy, promised):
            return f"{healthy} of {promised} GPUs are healthy"
        case SmallerCard(registered_mib, promised_mib):
            return f"a GPU registered {registered_mib} MiB, {promised_mib} were predicted"
        case FewerParts(name, shown, promised):
            return f"{shown} of {promised} {name} registered"


def shortfall_text(missing: Shortfall) -> str:
    """What was predicted and what has registered instead, for a claim that is kept with it."""
    match missing:
        case FewerCards(registered, promised):
            return f"{promised} GPUs were predicted, {registered} registered"
        case UnhealthyCards(healthy, promised):
            return f"{promised} GPUs were predicted, {healthy} are healthy"
        case SmallerCard(registered_mib, promised_mib):
            return f"{promised_mib} MiB were predicted of each GPU, {registered_mib} registered"
        case FewerParts(name, shown, promised):
            return f"{promised} {name} were predicted, {shown} registered"
