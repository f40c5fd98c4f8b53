"""What it costs to move pods, by two measures.

`of_eviction` is Karpenter's, and orders nodes: one for a pod, more or less by its deletion cost and priority.
`Restarts` say what a move throws away: a pod that starts again does nothing for a while, and one that ends some day has
worked for nothing so far.
"""

from collections.abc import Iterable

from kerf.model.nodeclaim import INITIALIZED, NodeClaim
from kerf.model.placeholders import is_virtual
from kerf.model.pods import Pod
from kerf.model.rejections import Workload, workload_of
from kerf.model.times import duration_s

MILLION = 1_000_000
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
RESTART_COST = "kerf.dev/restart-cost"
"""Annotation of a pod: how much of its work a move throws away, such as `5m`; by a user who knows its checkpoints."""
_RESTART_S = 60.0
"""So long a pod that is moved does nothing until its successor works, where nothing was measured."""
_SHORTEST_LIFE_S = 900.0
_START_S = 120.0
_MAKES_AGAIN = frozenset({"ReplicaSet", "StatefulSet", "Deployment", "ReplicationController", "DaemonSet"})
"""Kinds of owners whose pods serve: one that is made again takes up where the other left off."""


def of_node(pods: Iterable[Pod]) -> int:
    """What the move of a node's pods disturbs, in millionths; of an empty node one million.

    As Karpenter's RescheduleDisruptionCost.
    """
    return MILLION + sum(map(of_eviction, pods))


def of_eviction(pod: Pod) -> int:
    """What the eviction of one pod disturbs, in millionths, as Karpenter's EvictionCost; from 0 to ten million."""
    try:
        deletion_cost = int(pod.annotations.get(_DELETION_COST, "0"))
    except ValueError:
        deletion_cost = 0
    cost = MILLION + deletion_cost * MILLION // 2**27 + pod.spec.priority * MILLION // 2**25
    return max(0, min(10 * MILLION, cost))


def restart_cost_s(pod: Pod) -> float | None:
    """What the pod states that its move throws away, in seconds; None where it states nothing that can be read."""
    text = pod.annotations.get(RESTART_COST)
    if text is None:
        return None
    try:
        return duration_s(text)
    except ValueError:
        return None


class Restarts:
    """How long pods of each workload took to be ready, of those that are there: half of them took no longer.

    That is how long a pod does nothing when it is moved. Where nothing was measured it is a minute. Linear in the pods.
    """

    def __init__(self, pods: Iterable[Pod]) -> None:
        measured: dict[Workload, list[int]] = {}
        for pod in pods:
            if pod.starting_s is not None:
                measured.setdefault(workload_of(pod), []).append(pod.starting_s)
        self._seconds = {name: float(sorted(each)[(len(each) - 1) // 2]) for name, each in measured.items()}

    def lost_s(self, pod: Pod, now_s: float) -> float:
        """Seconds of the pod's work that its move throws away: what the pod states, where that can be read; none where
        room is kept elsewhere."""
        if is_virtual(pod.key):
            return 0.0
        stated_s = restart_cost_s(pod)
        if stated_s is not None:
            return stated_s
        restart_s = self._seconds.get(workload_of(pod), _RESTART_S)
        serves = pod.owner is not None and pod.owner.kind in _MAKES_AGAIN
        return restart_s if serves else restart_s + max(0.0, now_s - pod.created_s)


def start_s(claims: Iterable[NodeClaim]) -> float:
    """How long a node takes from its launch until pods may run there: half of those that are up took no longer.

    So long the new node and the old one are both paid for. Two minutes where none is up. Linear in the claims.
    """
    took = sorted(
        condition.since_s - claim.created_s
        for claim in claims
        if claim.is_true(INITIALIZED) and (condition := claim.condition(INITIALIZED)) is not None
    )
    return max(0.0, took[(len(took) - 1) // 2]) if took else _START_S


def life_s(pods: Iterable[Pod] | Iterable[NodeClaim], now_s: float) -> float:
    """How long pods may be expected to run on: as long as half of them have run already, and a quarter of an hour at
    least.

    Nothing says when they end. What has run for long runs on for long, as a rule (the Lindy effect).
    """
    ages = sorted(max(0.0, now_s - pod.created_s) for pod in pods)
    return max(_SHORTEST_LIFE_S, ages[len(ages) // 2] if ages else 0.0)
