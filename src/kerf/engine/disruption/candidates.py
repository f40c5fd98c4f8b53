"""Nodes that may be disrupted at all, what forbids it for others, and how many a pool's budgets allow.

The rules and sentences are Karpenter's for its graceful methods: do-not-disrupt and disruption budgets always hold.
"""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cronsim import CronSim

from kerf.model.nodeclaim import CONSOLIDATABLE, DISRUPTED_TAINT, DO_NOT_DISRUPT, INITIALIZED, NodeClaim
from kerf.model.nodepool import Budget, NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterNode, ClusterSnapshot
from kerf.model.times import duration_s

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


@dataclass(frozen=True, eq=False)
class Candidate:
    """A node that may go, with its claim and pool, and the pods that would have to move."""

    cluster_node: ClusterNode
    node: Node
    claim: NodeClaim
    pool: NodePool
    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class Blocked:
    """A node that would be looked at, and what forbids it."""

    node: str
    why: str


def candidates(snapshot: ClusterSnapshot) -> tuple[tuple[Candidate, ...], tuple[Blocked, ...]]:
    """Candidates by node name, and the nodes of ours that are blocked."""
    pools = {pool.name: pool for pool in snapshot.node_pools}
    found, blocked = [], []
    for held in snapshot.nodes:
        node, claim = held.node, held.claim
        if node is None or claim is None or claim.is_deleting or node.deleted_s is not None:
            continue
        pool = pools.get(claim.node_pool)
        if pool is None or not claim.is_true(CONSOLIDATABLE) or not claim.is_true(INITIALIZED):
            continue
        moving = tuple(pod for pod in held.pods if _moves(pod))
        why = blocked_by(node, held.pods, snapshot)
        if why:
            blocked.append(Blocked(node.name, why))
        else:
            found.append(Candidate(held, node, claim, pool, moving))
    return tuple(found), tuple(blocked)


def _moves(pod: Pod) -> bool:
    """Whether the pod would need another place: of those that are ending only a StatefulSet's comes back by itself.

    An opportunistic pod has no right to any: a node with nothing else on it counts as empty.
    """
    comes_back = pod.owner is not None and pod.owner.kind == "StatefulSet"
    return not pod.is_daemon and not pod.is_opportunistic and not pod.is_ended and (pod.deleted_s is None or comes_back)


def blocked_by(node: Node, pods: Iterable[Pod], snapshot: ClusterSnapshot) -> str:
    """What forbids to disrupt the node, in Karpenter's words; empty when nothing does."""
    if any(taint.key == DISRUPTED_TAINT.key for taint in node.taints):
        return "node is deleting or marked for deletion"
    if node.annotations.get(DO_NOT_DISRUPT) == "true":
        return f'disruption is blocked through the "{DO_NOT_DISRUPT}" annotation'
    if any(pod.nominated_node == node.name for pod in snapshot.pending):
        return "node is nominated for a pending pod"
    for pod in pods:
        if pod.is_ended or pod.deleted_s is not None or pod.is_opportunistic:
            continue
        if is_protected(pod, snapshot.taken_at_s):
            return f'pod {pod.key} has "{DO_NOT_DISRUPT}" annotation'
        # The kubelet makes a mirror pod anew from its file: no budget can hold it.
        is_mirror = pod.owner is not None and pod.owner.kind == "Node"
        covering = [budget for budget in snapshot.disruption_budgets if budget.covers(pod) and not is_mirror]
        if len(covering) > 1:
            return f"eviction does not support multiple PDBs (pod {pod.key})"
        if covering and covering[0].disruptions_allowed <= 0:
            return f"pdb {covering[0].namespace}/{covering[0].name} prevents pod evictions"
    return ""


def is_protected(pod: Pod, now_s: float) -> bool:
    """Whether do-not-disrupt holds: `true`, or a duration that counts from the pod's start; else it is ignored."""
    value = pod.annotations.get(DO_NOT_DISRUPT, "")
    if value == "true":
        return True
    try:
        seconds = duration_s(value)
    except ValueError:
        return False
    return seconds is not None and now_s < (pod.started_s or pod.created_s) + seconds


def allowed(snapshot: ClusterSnapshot, pool: NodePool, reason: str) -> int | None:
    """How many more nodes of the pool may be disrupted now for a reason; None means any number.

    The least of the active budgets, percentages of initialised nodes rounded up, less nodes that go or are not ready;
    and no more than the pool's floor (`kerf.dev/min-nodes`) leaves.
    """
    mine = [n for n in snapshot.nodes if n.claim is not None and n.claim.node_pool == pool.name and n.node is not None]
    total = sum(1 for n in mine if n.is_initialized and not n.is_deleting)
    going = sum(1 for n in mine if n.is_deleting or (n.node is not None and n.is_initialized and not n.node.is_ready))
    counts = [
        _of(budget, total)
        for budget in pool.disruption.budgets
        if (not budget.reasons or reason in budget.reasons) and _is_active(budget, snapshot.taken_at_s)
    ]
    by_budgets = [max(0, min(counts) - going)] if counts else []
    return min([*by_budgets, *spare(snapshot, pool)], default=None)


def spare(snapshot: ClusterSnapshot, pool: NodePool) -> tuple[int, ...]:
    """How many nodes the pool has beyond its floor; nothing where it states none. Nodes on their way do not count yet.

    A floor that cannot be read keeps every node.
    """
    bounds = pool.bounds
    if bounds.invalid_floor:
        return (0,)
    if not bounds.min_nodes:
        return ()
    up = sum(
        1
        for n in snapshot.nodes
        if n.claim is not None and n.claim.node_pool == pool.name and n.is_initialized and not n.is_deleting
    )
    return (max(0, up - bounds.min_nodes),)


def _of(budget: Budget, total: int) -> int:
    if budget.nodes.endswith("%"):
        return -(-total * int(budget.nodes[:-1]) // 100)
    return int(budget.nodes)


def _is_active(budget: Budget, now_s: float) -> bool:
    """Whether the budget's schedule has begun within its duration; always for one without a schedule. In UTC."""
    if budget.schedule is None or budget.duration_s is None:
        return True
    began = datetime.datetime.fromtimestamp(now_s - budget.duration_s, datetime.UTC)
    following: datetime.datetime = next(CronSim(_MACROS.get(budget.schedule, budget.schedule), began))
    return following.timestamp() <= now_s


class Allowance:
    """What the budgets still allow while a plan is made."""

    def __init__(self, snapshot: ClusterSnapshot, reason: str) -> None:
        self._left: Mapping[str, int | None] = {p.name: allowed(snapshot, p, reason) for p in snapshot.node_pools}
        self._taken: dict[str, int] = {}

    def take(self, pool: str) -> bool:
        """Count one node of the pool; False when no budget allows it."""
        left, taken = self._left.get(pool, 0), self._taken.get(pool, 0)
        if left is not None and taken >= left:
            return False
        self._taken[pool] = taken + 1
        return True
