"""How far a node has come, what it lacks, and why it stays or goes: read off its claim's conditions, its pool's
settings and the same rules by which the controllers take nodes away."""

from dataclasses import dataclass

from kerf.config import Settings
from kerf.controllers.nodeclaim.stages import deadlines_of, waiting_condition
from kerf.engine import lifecycle
from kerf.engine.disruption.causes import (
    Keeping,
    NeverConsolidated,
    NoNodeClaim,
    NoNodePool,
    NotQuietYet,
    OfStaticPool,
    Starting,
)
from kerf.engine.disruption.keeping import Fates
from kerf.engine.explain.disruption import going_text, keeping_text
from kerf.engine.lifecycle import ClaimStage
from kerf.model.nodeclaim import REGISTERED, Condition
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.model.times import duration_text
from kerf.sharing.registry import families_of, owner_of

_EXACT_S = 600
_DOING = {
    ClaimStage.LAUNCHED: "launching",
    ClaimStage.REGISTERED: "registering",
    ClaimStage.INITIALIZED: "initialising",
}


def stage_of(node: ClusterNode) -> str:
    """`launching`, `registering`, `initialising`, `ready`, `not-ready`, `deleting`, `given-up` after a deadline, or
    `no-node`: the Node is gone."""
    if node.claim is not None and lifecycle.missed_deadline(node.claim) is not None:
        return "given-up"
    if node.is_deleting:
        return "deleting"
    waiting = lifecycle.stage_of(node.claim) if node.claim is not None else None
    if waiting is not None:
        return _DOING[waiting]
    if node.node is None:
        return "no-node"
    return "ready" if node.node.is_ready else "not-ready"


def missing(node: ClusterNode, snapshot: ClusterSnapshot) -> Condition | None:
    """The condition that says what the next step waits for, worked out where the claim has none; None for nothing."""
    claim = node.claim
    stage = lifecycle.stage_of(claim) if claim is not None else None
    if claim is None or stage is None:
        return None
    held = claim.condition(stage.condition)
    if held is not None or stage is not ClaimStage.INITIALIZED:
        return held
    pool = snapshot.pool(claim.node_pool)
    annotations = pool.stated_annotations if pool is not None else {}
    own = node.node.annotations if node.node is not None else {}
    family = owner_of(node.labels, {**annotations, **own}, families_of(snapshot))
    standing = lifecycle.progress(claim, node.node, family, deadlines_of(Settings()))
    if standing is None or standing.missing is None:
        return None
    registered = claim.condition(REGISTERED)
    return waiting_condition(standing, registered.since_s if registered is not None else 0)


def age_text(seconds: float) -> str:
    """An age, without seconds from ten minutes on, as kubectl shows it; what is yet to come is of age 0."""
    whole = max(0, int(seconds))
    days = whole // 86400
    return f"{days}d" if days > 1 else duration_text(whole if whole < _EXACT_S else whole - whole % 60)


@dataclass(frozen=True, slots=True)
class Prospect:
    """What becomes of a node: `verdict` is `stays` or `goes`.

    `quiet_s` is how long it must still see no pod come or go before it may be consolidated; None: no such time runs.
    """

    verdict: str
    why: str
    quiet_s: float | None = None


def prospect(node: ClusterNode, fates: Fates) -> Prospect:
    """Whether the node stays, and what keeps it or takes it away; the first of the rules that applies."""
    going = fates.going(node)
    if going is not None:
        return Prospect("goes", going_text(going))
    cause = fates.keeping(node)
    return Prospect("stays", keeping_text(cause), _quiet_s(cause))


def _quiet_s(cause: Keeping) -> float | None:
    match cause:
        case NotQuietYet(_, left_s):
            return left_s
        case NoNodeClaim() | NoNodePool() | Starting() | NeverConsolidated() | OfStaticPool():
            return None
        case _:
            return 0
