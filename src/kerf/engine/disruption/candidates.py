"""Nodes that may be disrupted at all, and those that something forbids to; the rules are Karpenter's."""

from collections.abc import Container
from dataclasses import dataclass, replace

from kerf.engine.disruption.budgets import Allowance
from kerf.engine.disruption.causes import Blocked, LocalVolume
from kerf.engine.disruption.obstacles import Obstacles
from kerf.engine.leaving import moves
from kerf.model.causes import Name
from kerf.model.nodeclaim import CONSOLIDATABLE, DRIFTED, INITIALIZED, TRUE, UNHEALTHY, NodeClaim
from kerf.model.nodepool import WHEN_EMPTY, NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.promises import read
from kerf.model.rejections import REJECTED
from kerf.model.snapshot import ClusterNode, ClusterSnapshot

_MOVING = "moving"
_CANDIDATE = "candidate"
_MOUNTING = "mounting"
_PROMISED = "promised"

_FILLS_S = 1_200.0
"""So long a node that came up is kept for the pods that it was bought for, while they wait."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A node that may go, with its claim and pool, and the pods that would have to move.

    `is_quiet`: it may go to save money. `drift` is why it is not what its pool says, empty where it is. `unhealthy` is
    the condition by which it is broken, empty where it is not.
    """

    cluster_node: ClusterNode
    node: Node
    claim: NodeClaim
    pool: NodePool
    pods: tuple[Pod, ...]
    is_quiet: bool = True
    drift: str = ""
    unhealthy: str = ""

    @property
    def is_forced(self) -> bool:
        """Whether its drain ends by itself, whatever its pods say: one that must go some time need not wait for them.

        Karpenter's eventual disruption; a node that goes to save money is never forced, and a broken one always. One of
        which a card alone is broken serves the pods on the others.
        """
        if self.claim.has_broken_node:
            return True
        return bool(self.unhealthy or self.drift) and self.claim.termination_grace_period_s is not None


def candidates(snapshot: ClusterSnapshot) -> tuple[tuple[Candidate, ...], tuple[Blocked, ...]]:
    """Candidates by node name, and our nodes that are blocked. Cost: linear in nodes and pods."""
    obstacles = Obstacles(snapshot)
    waiting = {pod.key for pod in snapshot.pending if REJECTED not in pod.annotations}
    found, blocked = [], []
    for held in snapshot.nodes:
        candidate = candidate_of(held, snapshot)
        if candidate is None:
            continue
        cause = obstacles.of(held)
        if cause is None:
            is_used = candidate.is_quiet and bool(local_volume(held, snapshot) or awaited(held, waiting, snapshot))
            found.append(replace(candidate, is_quiet=False) if is_used else candidate)
        elif candidate.is_forced and obstacles.of_empty(held) is None:
            found.append(replace(candidate, is_quiet=False))
        else:
            blocked.append(Blocked(Name(candidate.node.name), cause))
    return tuple(found), tuple(blocked)


def candidate_of(held: ClusterNode, snapshot: ClusterSnapshot) -> Candidate | None:
    """The node as a candidate, obstacles aside; None for one that is not ours, starts, goes, or has no reason to."""
    pool = snapshot.pool(held.claim.node_pool) if held.claim is not None else None
    if pool is None:
        return None
    known, found = held.findings.get(_CANDIDATE, (None, None))
    if known is not pool:
        found = _candidate(held, pool)
        held.findings[_CANDIDATE] = pool, found
    candidate: Candidate | None = found
    return candidate


def _candidate(held: ClusterNode, pool: NodePool) -> Candidate | None:
    node, claim = held.node, held.claim
    if node is None or claim is None or held.is_deleting or not claim.is_true(INITIALIZED):
        return None
    drift, unhealthy = _reason(claim, DRIFTED), _reason(claim, UNHEALTHY)
    # A static pool keeps its nodes, in use or not; a claim of the time before it was static may say otherwise.
    is_quiet = claim.is_true(CONSOLIDATABLE) and pool.replicas is None
    if not drift and not unhealthy and not is_quiet:
        return None
    return Candidate(held, node, claim, pool, moving(held), is_quiet, drift, unhealthy)


def local_volume(held: ClusterNode, snapshot: ClusterSnapshot) -> LocalVolume | None:
    """The first of the pods that would have to move with a volume that is a part of the node; None where none has one.

    What is stored there stays behind when the pod moves, and nothing that is saved is worth that. Cost: the claims of
    its pods; of a node that has changed a look at all of these.
    """
    if _MOUNTING not in held.findings:
        held.findings[_MOUNTING] = (
            None,
            tuple(pod for pod in moving(held) if pod.spec.claims or pod.spec.claim_templates),
        )
    mounting: tuple[Pod, ...] = held.findings[_MOUNTING][1]
    for pod in mounting:
        for name in pod.claim_names:
            claim = snapshot.volume_claims.get(f"{pod.namespace}/{name}")
            volume = snapshot.volumes.get(claim.volume) if claim is not None else None
            if volume is not None and volume.is_local:
                return LocalVolume(Name(pod.key), Name(volume.name))
    return None


def awaited(held: ClusterNode, waiting: Container[str], snapshot: ClusterSnapshot) -> str:
    """The first of the pods for which the node was bought, by key, that is among the `waiting` ones; empty for none.

    Schedulers bind the pods of a burst one after the other, and some seconds or minutes may pass before the last. Until
    then a node looks emptier than it will be. A scheduler that never binds them does not keep a node for ever: so long
    after it came up the node is judged by what is on it. Cost: the promises of a claim, once for each change of it.
    """
    claim = held.claim
    up = claim.condition(INITIALIZED) if claim is not None and waiting else None
    if claim is None or up is None or snapshot.taken_at_s - up.since_s >= _FILLS_S:
        return ""
    if _PROMISED not in held.findings:
        held.findings[_PROMISED] = None, tuple(read(claim.annotations).pods)
    promised: tuple[str, ...] = held.findings[_PROMISED][1]
    return next((key for key in promised if key in waiting), "")


def _reason(claim: NodeClaim, kind: str) -> str:
    condition = claim.condition(kind)
    return condition.reason if condition is not None and condition.status == TRUE else ""


def moving(held: ClusterNode) -> tuple[Pod, ...]:
    """The pods that would have to move: a node without any counts as empty."""
    if _MOVING not in held.findings:
        held.findings[_MOVING] = None, tuple(pod for pod in held.pods if moves(pod))
    found: tuple[Pod, ...] = held.findings[_MOVING][1]
    return found


def may_save(candidate: Candidate, allowance: Allowance) -> bool:
    """Whether the node has pods and may go to save money, and its pool lets one more such node go."""
    return bool(candidate.pods) and may_save_with_room(candidate, allowance)


def may_save_with_room(candidate: Candidate, allowance: Allowance) -> bool:
    """The same of a node that may have no pods, but room that a buffer keeps there."""
    pool = candidate.pool
    if not candidate.is_quiet:
        return False
    if pool.disruption.policy == WHEN_EMPTY or pool.disruption.consolidate_after_s is None:
        return False
    return allowance.is_open(pool.name)
