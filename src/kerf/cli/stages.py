"""How far a node has come, what it lacks, and why it stays or goes: read off its claim's conditions, its pool's
settings and the same rules by which the controllers take nodes away."""

from dataclasses import dataclass

from kerf.cli.inputs import World
from kerf.config import Settings
from kerf.controllers.conditions import remaining_s
from kerf.controllers.stages import deadlines_of, waiting_condition
from kerf.engine import lifecycle
from kerf.engine.disruption.candidates import allowed, blocked_by, candidates, spare
from kerf.engine.disruption.consolidation import relocation
from kerf.engine.lifecycle import ClaimStage
from kerf.engine.prewarm import cron_job_of
from kerf.engine.pricing import present_price
from kerf.model.nodeclaim import INITIALIZED, REGISTERED, Condition
from kerf.model.nodepool import EMPTY, UNDERUTILIZED, WHEN_EMPTY, NodePool
from kerf.model.plan import Plan
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.model.times import duration_text
from kerf.sharing.registry import configured, owner_of

_DOING = {
    ClaimStage.LAUNCHED: "launching",
    ClaimStage.REGISTERED: "registering",
    ClaimStage.INITIALIZED: "initialising",
}


def stage_of(node: ClusterNode) -> str:
    """`launching`, `registering`, `initialising`, `ready`, `not-ready` or `deleting`."""
    if node.is_deleting:
        return "deleting"
    waiting = lifecycle.stage_of(node.claim) if node.claim is not None else None
    if waiting is not None:
        return _DOING[waiting]
    return "ready" if node.node is not None and node.node.is_ready else "not-ready"


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
    family = owner_of(node.labels, annotations, configured(snapshot.config_maps))
    standing = lifecycle.progress(claim, node.node, family, deadlines_of(Settings()))
    if standing is None or standing.missing is None:
        return None
    registered = claim.condition(REGISTERED)
    return waiting_condition(standing, registered.since_s if registered is not None else 0)


def age_text(seconds: float) -> str:
    """An age as kubectl shows it."""
    days = int(seconds) // 86400
    return f"{days}d" if days > 1 else duration_text(int(seconds))


@dataclass(frozen=True, slots=True)
class Prospect:
    """What becomes of a node: `verdict` is `stays` or `goes`.

    `quiet_s` is how long it must still see no pod come or go before it may be consolidated; None: no such time runs.
    """

    verdict: str
    why: str
    quiet_s: float | None = None


def prospect(node: ClusterNode, world: World, plan: Plan) -> Prospect:
    """Whether the node stays, and what keeps it or takes it away; the first of the rules that applies."""
    planned = next((d for d in plan.deletions if d.node == node.name), None)
    if planned is not None:
        return Prospect("goes", planned.why)
    if node.is_deleting:
        return Prospect("goes", "it is being deleted")
    claim = node.claim
    successor = next((each for each in plan.launches if claim is not None and each.replaces == claim.name), None)
    if successor is not None:
        kind = successor.offering.instance_type
        return Prospect("goes", f"{successor.name}, a {kind}, is bought for its pods; it goes when they have moved")
    if claim is None:
        return Prospect("stays", "it has no NodeClaim, so that it is not Kerf's to remove")
    pool = world.snapshot.pool(claim.node_pool)
    if pool is None:
        return Prospect("stays", f"its NodePool {claim.node_pool} does not exist")
    if not claim.is_true(INITIALIZED) or node.node is None:
        return Prospect("stays", "it is still starting; a node may go once it is initialised")
    quiet_s = remaining_s(claim, pool, world.snapshot.taken_at_s)
    if quiet_s is None:
        return Prospect("stays", f"consolidateAfter of NodePool {pool.name} is Never")
    if quiet_s > 0:
        after = duration_text(pool.disruption.consolidate_after_s or 0)
        why = (
            f"consolidateAfter is {after}: it may go in {duration_text(int(quiet_s))}, unless a pod comes or goes on it"
        )
        return Prospect("stays", why, quiet_s)
    return Prospect("stays", _why_kept(node, pool, world, plan), 0)


def _why_kept(node: ClusterNode, pool: NodePool, world: World, plan: Plan) -> str:
    snapshot = world.snapshot
    assert node.node is not None
    blocked = blocked_by(node.node, node.pods, snapshot)
    if blocked:
        return blocked
    coming = [placement.pod.pod for placement in plan.placements if placement.node == node.name]
    if coming:
        run = cron_job_of(coming[0])
        return f"it is kept ready for the next run of CronJob {run}" if run else f"pod {coming[0]} is to go on it"
    moving = [pod for pod in node.pods if not pod.is_daemon]
    reason = UNDERUTILIZED if moving else EMPTY
    if moving and pool.disruption.policy == WHEN_EMPTY:
        return f"{_pods(len(moving))} on it and consolidationPolicy of NodePool {pool.name} is WhenEmpty"
    if pool.bounds.invalid_floor:
        return f"NodePool {pool.name} lets no node go: {pool.bounds.invalid_floor}"
    if spare(snapshot, pool) == (0,):
        return f"NodePool {pool.name} keeps {pool.bounds.min_nodes} nodes, empty or not (kerf.dev/min-nodes)"
    if allowed(snapshot, pool, reason) == 0:
        return f"the disruption budgets of NodePool {pool.name} allow no further node to go for the reason {reason}"
    if not moving:
        return "it is empty and may go; the plan takes others first"
    candidate = next((c for c in candidates(snapshot)[0] if c.node.name == node.name), None)
    if candidate is not None and relocation(snapshot, world.market, candidate) is None:
        return f"{_pods(len(moving))} on it and would find no place on other nodes"
    if present_price(node, snapshot, world.market) <= 0:
        return "nothing is known of its price, so that nothing would be saved"
    return "its pods fit on other nodes, and it may go; the plan takes another first"


def _pods(number: int) -> str:
    return "1 pod is" if number == 1 else f"{number} pods are"
