"""What the status of a CapacityBuffer says of a decision: how much of its room is there, in Karpenter's words."""

from dataclasses import dataclass, replace

from kerf.engine.decision import Decision
from kerf.engine.explain.causes import cause_text, room_text
from kerf.engine.explain.refusals import Telling
from kerf.engine.headroom.buffers import Buffered
from kerf.model.buffercauses import ScalableMissing
from kerf.model.capacitybuffers import (
    LIMITED,
    LIMITED_BY_QUOTAS,
    PROVISIONING,
    READY_FOR_PROVISIONING,
    RESOLUTION_FAILED,
    SCALABLE_NOT_FOUND,
    TEMPLATE_NOT_FOUND,
    BufferStatus,
)
from kerf.model.causes import TemplateMissing
from kerf.model.nodeclaim import FALSE, TRUE, Condition


@dataclass(frozen=True, slots=True)
class BufferVerdict:
    """Of the pods that are wanted: so many have a place on nodes that are up, so many need nodes that are on their way
    or bought now, and so many have none, with the reason of the first."""

    there: int
    coming: int
    failed: int
    refusal: str = ""


def buffer_verdict(found: Buffered, decision: Decision) -> BufferVerdict:
    """How far its room is. What its namespace may not have counts as without a place."""
    keys = {pod.key for pod in found.pods}
    nodes = decision.world.snapshot.nodes
    up = {node.name for node in nodes if node.is_initialized and node.node is not None}
    placed = [placement.node in up for placement in decision.placements if placement.pod.pod in keys]
    refused = [each for each in decision.refusals if any(pod.key in keys for pod in each.pods)]
    failed = sum(pod.key in keys for each in refused for pod in each.pods) + found.wanted - len(keys)
    refusal = Telling().without_group(refused[0]) if refused else ""
    if found.limited is not None:
        refusal = "; ".join(filter(None, (room_text(found.limited), refusal)))
    return BufferVerdict(sum(placed), found.wanted - failed - sum(placed), failed, refusal)


def buffer_status(found: Buffered, seen: BufferVerdict, now_s: float) -> BufferStatus:
    """The status that holds now. Where what it names is not there, the numbers of before stay."""
    buffer = found.buffer
    status = replace(buffer.status, strategy=buffer.strategy)

    def stated(held: BufferStatus, kind: str, status: str, reason: str, message: str) -> BufferStatus:
        return held.with_condition(Condition(kind, status, reason, message, now_s))

    if found.problem is not None:
        status = stated(status, READY_FOR_PROVISIONING, FALSE, _reason(found), cause_text(found.problem))
        message = "Buffer is not ReadyForProvisioning"
        return stated(status, PROVISIONING, FALSE, "NotReadyForProvisioning", message)
    template = found.template
    status = replace(
        status,
        replicas=found.wanted,
        pod_template=template.name if template is not None else "",
        pod_template_generation=template.generation if template is not None else None,
    )
    status = stated(status, READY_FOR_PROVISIONING, TRUE, "Resolved", "Pod template resolved successfully")
    if found.limited is not None:
        status = stated(status, LIMITED, TRUE, LIMITED_BY_QUOTAS, room_text(found.limited))
    elif status.condition(LIMITED) is not None:
        status = stated(status, LIMITED, FALSE, "WithinQuotas", "all of its room is granted")
    if not found.wanted:
        return stated(status, PROVISIONING, FALSE, "BufferEmpty", "Buffer has zero desired replicas")
    if seen.there == found.wanted:
        message = f"All {found.wanted} virtual pods fit on existing capacity"
        return stated(status, PROVISIONING, TRUE, "FitsExistingCapacity", message)
    message = f"{seen.coming}/{found.wanted} virtual pods required new capacity, {seen.failed} failed"
    why = f": {seen.refusal}" if seen.refusal else ""
    return stated(status, PROVISIONING, FALSE, "RequiresNewCapacity", message + why)


def _reason(found: Buffered) -> str:
    """Karpenter's, for what is not there; all else could not be resolved."""
    match found.problem:
        case TemplateMissing():
            return TEMPLATE_NOT_FOUND
        case ScalableMissing():
            return SCALABLE_NOT_FOUND
    return RESOLUTION_FAILED
