"""Under-used nodes go when all their pods fit on other nodes that are there: one node at a time, by deletion.

Price over disruption decides the order, as in Karpenter since 1.14. A pod is never moved to a node that is not yet
initialised, nor to one that is itself about to go.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kerf.engine.disruption.candidates import Allowance, Candidate
from kerf.engine.disruption.emptiness import deleting
from kerf.engine.pricing import node_price
from kerf.engine.shapes import group
from kerf.engine.trial import Trial
from kerf.model.instancetypes import price_text
from kerf.model.market import Market
from kerf.model.nodeclaim import CONSOLIDATABLE
from kerf.model.nodepool import UNDERUTILIZED, WHEN_EMPTY
from kerf.model.plan import Deletion, NodePlacement, Plan
from kerf.model.pods import PENDING, Pod
from kerf.model.snapshot import ClusterNode, ClusterSnapshot

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def propose(snapshot: ClusterSnapshot, market: Market, candidates: Sequence[Candidate]) -> Iterator[Plan]:
    """Plans that each delete one node, the best first. Cost: a trial of all nodes for each candidate."""
    eligible = [
        c
        for c in candidates
        if c.pods and c.pool.disruption.policy != WHEN_EMPTY and c.pool.disruption.consolidate_after_s is not None
    ]
    for candidate in sorted(eligible, key=lambda c: (-_gain(c, market), c.node.name)):
        saved = node_price(candidate.cluster_node, market)
        moved = relocation(snapshot, market, candidate)
        if saved <= 0 or moved is None or not Allowance(snapshot, UNDERUTILIZED).take(candidate.pool.name):
            continue
        pods = "pod fits" if len(candidate.pods) == 1 else "pods fit"
        why = f"{len(candidate.pods)} {pods} on other nodes, saves {price_text(saved)} {market.currency}/h"
        deletion = Deletion(
            candidate.node.name, candidate.claim.name, candidate.pool.name, saved, UNDERUTILIZED, why, moved
        )
        yield deleting(snapshot, market, (deletion,))


def _gain(candidate: Candidate, market: Market) -> int:
    """Price over what the move disturbs, in millionths, as Karpenter's RescheduleDisruptionCost."""
    disturbance = 1_000_000 + sum(_eviction_cost(pod) for pod in candidate.pods)
    return node_price(candidate.cluster_node, market) * 1_000_000 // disturbance


def _eviction_cost(pod: Pod) -> int:
    try:
        deletion_cost = int(pod.annotations.get(_DELETION_COST, "0"))
    except ValueError:
        deletion_cost = 0
    cost = 1_000_000 + deletion_cost * 1_000_000 // 2**27 + pod.spec.priority * 1_000_000 // 2**25
    return max(0, min(10_000_000, cost))


def relocation(snapshot: ClusterSnapshot, market: Market, candidate: Candidate) -> tuple[NodePlacement, ...] | None:
    """Where the node's pods would go, beside the pods that wait already; None when some would find no place."""
    staying = tuple(
        node for node in snapshot.nodes if node.name != candidate.node.name and _may_receive(node, snapshot)
    )
    trial = Trial(replace(snapshot, nodes=staying), market)
    for shape in group(snapshot.pending):
        trial.place(shape)
    moved: dict[str, NodePlacement] = {}
    for shape in group(_unbound(pod) for pod in candidate.pods):
        placed, left = trial.place(shape)
        if left:
            return None
        moved.update(placed)
    return tuple(moved[key] for key in sorted(moved))


def _may_receive(node: ClusterNode, snapshot: ClusterSnapshot) -> bool:
    """Whether pods may be moved to the node: it must stay.

    A node whose own consolidateAfter still runs (an empty one, say) may be the next to go: then no pod need move.
    """
    if node.node is None or not node.is_initialized or node.is_deleting:
        return False
    pool = snapshot.pool(node.claim.node_pool) if node.claim is not None else None
    if node.claim is None or pool is None or pool.disruption.consolidate_after_s is None:
        return True
    return node.claim.is_true(CONSOLIDATABLE)


def _unbound(pod: Pod) -> Pod:
    """The pod as its controller will make it again: without node, and without what a scheduler wrote on it."""
    annotations = {k: v for k, v in pod.annotations.items() if not k.startswith("hami.io/vgpu-")}
    return replace(pod, node_name="", phase=PENDING, annotations=annotations, nominated_node="")
