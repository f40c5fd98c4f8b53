"""No pod that waits is forgotten: each has a place, or a reason why it has none."""

from collections.abc import Iterator

from kerf.model.placeholders import is_virtual
from kerf.model.violations import PartKind, PlanPart, PlanRule, Violation, violation
from kerf.verify.after import After


def violations(after: After) -> Iterator[Violation]:
    """Pods without an outcome, or with two. Cost: linear in the pods that wait; nothing where no refusals are said."""
    proposal, refused = after.proposal, after.proposal.refused
    if refused is None:
        return
    placed = {placed.pod for launch in proposal.launches for placed in launch.pods}
    placed |= {placement.pod.pod for placement in proposal.placements}
    waiting = {pod.key for pod in after.snapshot.pending}
    for key in sorted(waiting - placed - refused):
        yield violation(PlanRule.POD_OUTCOME, key, "a place, or a reason why it has none", "neither", _part(key))
    for key in sorted(placed & refused):
        yield violation(PlanRule.POD_OUTCOME, key, "a place, or a reason why it has none", "both", _part(key))
    for key in sorted(key for key in refused - waiting - placed if not is_virtual(key)):
        yield violation(
            PlanRule.POD_UNKNOWN, key, "a pod that waits, or one of a node that goes", "neither", _part(key)
        )


def _part(key: str) -> PlanPart:
    return PlanPart(PartKind.REFUSAL, key)
