"""Which claims of an input the controllers would have given up by then: their deadlines hold in a plan, too.

A node that never got its GPU is no place for a pod, however much its claim once promised.
"""

from collections.abc import Sequence
from dataclasses import replace

from kerf.cli.inputs.gaps import is_assumed
from kerf.cli.render import some
from kerf.config import Settings
from kerf.controllers.nodeclaim.stages import deadlines_of, message_of
from kerf.engine.lifecycle import Shortfall, missed_deadline, progress, timed_out
from kerf.errors import DecodeError
from kerf.model.nodeclaim import FALSE, Condition, NodeClaim
from kerf.state import ClusterState

__all__ = ["given_up", "missed_deadline", "overdue_text"]


def given_up(claim: NodeClaim, state: ClusterState, now_s: float) -> NodeClaim | None:
    """The claim as the controllers would have it where a stage has missed its deadline: it goes, and says why.

    None for any other. Not where cards have registered and are fewer or smaller than promised: such a node may be kept.
    The launch of a claim on which nothing is said yet begins only when a controller looks at it.
    """
    if claim.is_deleting or is_assumed(claim) or not claim.conditions:
        return None
    node = state.node_of(claim)
    try:
        standing = progress(claim, node, state.family_of(node, claim), deadlines_of(Settings()))
    except DecodeError:
        # The snapshot says it of the node.
        return None
    if standing is None or standing.missing is None or not standing.is_overdue(now_s):
        return None
    if isinstance(standing.missing, Shortfall):
        return None
    stage, text = standing.stage.condition, message_of(standing.missing)
    over = Condition(stage, FALSE, timed_out(stage), text, standing.deadline_s)
    return replace(claim.with_condition(over), deleted_s=now_s)


def overdue_text(claims: Sequence[NodeClaim]) -> str:
    """Which claims count as given up."""
    names = some([claim.name for claim in claims])
    if len(claims) == 1:
        return f"1 NodeClaim ({names}) has missed a deadline and is given up: no pod goes on its node"
    return (
        f"{len(claims)} NodeClaims ({names}) have missed a deadline and count as given up: no pod goes on their nodes"
    )
