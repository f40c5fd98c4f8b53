"""Under-used nodes go when all their pods fit on other nodes that are there: one node at a time, by deletion.

Price over disruption decides the order, as in Karpenter since 1.14. A pod is never moved to a node that is not yet
initialised, nor to one that is itself about to go.
"""

from collections.abc import Iterator, Sequence

from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.candidates import Candidate
from kerf.engine.disruption.causes import PodsFit
from kerf.engine.disruption.command import Command, deleting
from kerf.engine.disruption.relocation import Relocation
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.nodepool import UNDERUTILIZED, WHEN_EMPTY
from kerf.model.plan import Deletion
from kerf.model.pods import Pod

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def propose(world: World, candidates: Sequence[Candidate]) -> Iterator[Command]:
    """Commands that each delete one node, the best first. Cost: `Relocation`, and nothing where no budget is open."""
    allowance = Allowance(world.snapshot, UNDERUTILIZED)
    eligible = [
        (candidate, saved)
        for candidate in candidates
        if may_go(candidate, allowance) and (saved := present_price(candidate.cluster_node, world.supply)) > 0
    ]
    if not eligible:
        return
    others = Relocation(world)
    for candidate, saved in sorted(eligible, key=lambda each: (-_gain(*each), each[0].node.name)):
        moved = others.of(candidate)
        if moved is None:
            continue
        cause = PodsFit(len(candidate.pods))
        deletion = Deletion(
            candidate.node.name, candidate.claim.name, candidate.pool.name, saved, UNDERUTILIZED, cause, moved
        )
        yield deleting(world, (deletion,))


def may_go(candidate: Candidate, allowance: Allowance) -> bool:
    """Whether the node has pods, and its pool lets one more such node go; not whether they fit elsewhere."""
    pool = candidate.pool
    if not candidate.pods or pool.disruption.policy == WHEN_EMPTY or pool.disruption.consolidate_after_s is None:
        return False
    return allowance.is_open(pool.name)


def _gain(candidate: Candidate, saved_micro: int) -> int:
    """Price over what the move disturbs, in millionths, as Karpenter's RescheduleDisruptionCost."""
    disturbance = 1_000_000 + sum(_eviction_cost(pod) for pod in candidate.pods)
    return saved_micro * 1_000_000 // disturbance


def _eviction_cost(pod: Pod) -> int:
    try:
        deletion_cost = int(pod.annotations.get(_DELETION_COST, "0"))
    except ValueError:
        deletion_cost = 0
    cost = 1_000_000 + deletion_cost * 1_000_000 // 2**27 + pod.spec.priority * 1_000_000 // 2**25
    return max(0, min(10_000_000, cost))
