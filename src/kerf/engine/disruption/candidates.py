"""Nodes that may be disrupted at all, and those that something forbids to; the rules are Karpenter's."""

from dataclasses import dataclass

from kerf.engine.disruption.causes import Blocked
from kerf.engine.disruption.obstacles import Obstacles
from kerf.engine.leaving import moves
from kerf.model.causes import Name
from kerf.model.nodeclaim import CONSOLIDATABLE, INITIALIZED, NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterNode, ClusterSnapshot


@dataclass(frozen=True, eq=False)
class Candidate:
    """A node that may go, with its claim and pool, and the pods that would have to move."""

    cluster_node: ClusterNode
    node: Node
    claim: NodeClaim
    pool: NodePool
    pods: tuple[Pod, ...]


def candidates(snapshot: ClusterSnapshot) -> tuple[tuple[Candidate, ...], tuple[Blocked, ...]]:
    """Candidates by node name, and our nodes that are blocked. Cost: linear in nodes and pods."""
    obstacles = Obstacles(snapshot)
    found, blocked = [], []
    for held in snapshot.nodes:
        candidate = candidate_of(held, snapshot)
        if candidate is None:
            continue
        cause = obstacles.of(candidate.node, held.pods)
        if cause is None:
            found.append(candidate)
        else:
            blocked.append(Blocked(Name(candidate.node.name), cause))
    return tuple(found), tuple(blocked)


def candidate_of(held: ClusterNode, snapshot: ClusterSnapshot) -> Candidate | None:
    """The node as a candidate, obstacles aside; None for one that is not ours, starts, goes, or is not quiet yet."""
    node, claim = held.node, held.claim
    if node is None or claim is None or held.is_deleting:
        return None
    pool = snapshot.pool(claim.node_pool)
    if pool is None or not claim.is_true(CONSOLIDATABLE) or not claim.is_true(INITIALIZED):
        return None
    return Candidate(held, node, claim, pool, moving(held))


def moving(held: ClusterNode) -> tuple[Pod, ...]:
    """The pods that would have to move: a node without any counts as empty."""
    return tuple(pod for pod in held.pods if moves(pod))
