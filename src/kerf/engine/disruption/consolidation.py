"""Under-used nodes go when all their pods fit on other nodes that are there: one node at a time, by deletion.

Price over disruption decides the order, as in Karpenter since 1.14. A pod is never moved to a node that is not yet
initialised, nor to one that is itself about to go.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kerf.engine.disruption.candidates import Allowance, Candidate
from kerf.engine.disruption.emptiness import deleting
from kerf.engine.gangs import gangs
from kerf.engine.pricing import present_price
from kerf.engine.shapes import group
from kerf.engine.supply import supply
from kerf.engine.trial import Trial
from kerf.engine.waiting import waiting_pods
from kerf.model.instancetypes import price_text
from kerf.model.market import Market
from kerf.model.nodeclaim import CONSOLIDATABLE
from kerf.model.nodepool import UNDERUTILIZED, WHEN_EMPTY
from kerf.model.plan import Deletion, NodePlacement, Plan
from kerf.model.pods import PENDING, Pod
from kerf.model.snapshot import ClusterNode, ClusterSnapshot

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def propose(snapshot: ClusterSnapshot, market: Market, candidates: Sequence[Candidate]) -> Iterator[Plan]:
    """Plans that each delete one node, the best first. Cost: for each candidate a look at the nodes that have room."""
    eligible = [
        c
        for c in candidates
        if c.pods and c.pool.disruption.policy != WHEN_EMPTY and c.pool.disruption.consolidate_after_s is not None
    ]
    others = Relocation(snapshot, market) if eligible else None
    for candidate in sorted(eligible, key=lambda c: (-_gain(c, snapshot, market), c.node.name)):
        saved = present_price(candidate.cluster_node, snapshot, market)
        moved = others.of(candidate) if others is not None else None
        if saved <= 0 or moved is None or not Allowance(snapshot, UNDERUTILIZED).take(candidate.pool.name):
            continue
        pods = "pod fits" if len(candidate.pods) == 1 else "pods fit"
        why = f"{len(candidate.pods)} {pods} on other nodes, saves {price_text(saved)} {market.currency}/h"
        deletion = Deletion(
            candidate.node.name, candidate.claim.name, candidate.pool.name, saved, UNDERUTILIZED, why, moved
        )
        yield deleting(snapshot, market, (deletion,))


def _gain(candidate: Candidate, snapshot: ClusterSnapshot, market: Market) -> int:
    """Price over what the move disturbs, in millionths, as Karpenter's RescheduleDisruptionCost."""
    disturbance = 1_000_000 + sum(_eviction_cost(pod) for pod in candidate.pods)
    return present_price(candidate.cluster_node, snapshot, market) * 1_000_000 // disturbance


def _eviction_cost(pod: Pod) -> int:
    try:
        deletion_cost = int(pod.annotations.get(_DELETION_COST, "0"))
    except ValueError:
        deletion_cost = 0
    cost = 1_000_000 + deletion_cost * 1_000_000 // 2**27 + pod.spec.priority * 1_000_000 // 2**25
    return max(0, min(10_000_000, cost))


class Relocation:
    """Where the pods of a node would go; one trial of all nodes that may receive some, used for each candidate anew."""

    def __init__(self, snapshot: ClusterSnapshot, market: Market) -> None:
        staying = tuple(node for node in snapshot.nodes if _may_receive(node, snapshot))
        self._trial = Trial(replace(snapshot, nodes=staying), market)
        # A group that is not there, or makes no sense, needs no room.
        out = frozenset(pod.key for gang in gangs(snapshot) if gang.problem for pod in gang.pods)
        waiting = waiting_pods(replace(snapshot, nodes=staying), supply(snapshot, market), self._trial, out)
        self._waiting = group(waiting.pods)

    def of(self, candidate: Candidate) -> tuple[NodePlacement, ...] | None:
        """The places of its pods, beside the pods that wait already; None when some would find no place."""
        trial, closed = self._trial, candidate.node.name
        if not all(trial.roomy(pod.spec.requests) for pod in candidate.pods):
            return None
        mark = trial.mark()
        try:
            for shape in self._waiting:
                trial.place(shape, closed)
            moved: dict[str, NodePlacement] = {}
            for shape in group(unbound(pod) for pod in candidate.pods):
                placed, left = trial.place(shape, closed)
                if left:
                    return None
                moved.update(placed)
            return tuple(moved[key] for key in sorted(moved))
        finally:
            trial.undo_to(mark)


def relocation(snapshot: ClusterSnapshot, market: Market, candidate: Candidate) -> tuple[NodePlacement, ...] | None:
    """Where one node's pods would go, beside the pods that wait already; None when some would find no place."""
    return Relocation(snapshot, market).of(candidate)


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


def unbound(pod: Pod) -> Pod:
    """The pod as its controller will make it again: without node, and without what a scheduler wrote on it."""
    annotations = {k: v for k, v in pod.annotations.items() if not k.startswith("hami.io/vgpu-")}
    return replace(pod, node_name="", phase=PENDING, annotations=annotations, nominated_node="")
