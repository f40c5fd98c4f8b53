"""ReplicaSets: as many pods as wanted, and which of them go first.

The choice of victims decides which node becomes empty, so it follows the ReplicaSet controller rank by rank
(`ActivePodsWithRanks`); in particular a Deployment's pods that share a node go before those that stand alone. Where
the real one falls back on random uids within a logarithmic bucket of age, the younger goes here.
"""

from collections import Counter
from collections.abc import Iterable

from kerf.sim.kubernetes.reconcilers import Reconciler, created_s
from kerf.sim.objects import (
    Json,
    JsonList,
    annotations_of,
    controller_of,
    is_active,
    is_deleting,
    is_ready,
    name_of,
    node_of,
    phase_of,
    ready_since_s,
    uid_of,
)

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
HASH_LABEL = "pod-template-hash"

_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSets(Reconciler):
    """ReplicaSets, alone or of a Deployment, whose name their pods then carry."""

    kind = "ReplicaSet"

    def reconcile(self, obj: Json) -> None:
        """Make or delete pods until `spec.replicas` are active."""
        active = [pod for pod in self.controlled(obj) if is_active(pod)]
        ready = sum(1 for pod in active if is_ready(pod))
        if not is_deleting(obj):
            self._adjust(obj, active)
        self.set_status(obj, replicas=len(active), readyReplicas=ready, availableReplicas=ready)

    def _adjust(self, obj: Json, active: JsonList) -> None:
        wanted = obj["spec"].get("replicas", 1)
        if len(active) > wanted:
            for pod in deletion_order(active, self._siblings(obj))[: len(active) - wanted]:
                self.delete(pod)
        above = controller_of(obj)
        workload = above["name"] if above is not None else name_of(obj)
        for _ in range(wanted - len(active)):
            self.pods.create_numbered(workload, self.pods.make(obj, obj["spec"]["template"]))

    def _siblings(self, obj: Json) -> JsonList:
        """The active pods of all ReplicaSets of the same Deployment; none for one without a controller, as the real."""
        above = controller_of(obj)
        owner = above and self.api.get(above["kind"], obj["metadata"]["namespace"], above["name"])
        sets = [] if owner is None else self.controlled(owner, "ReplicaSet")
        return [pod for held in sets for pod in self.controlled(held) if is_active(pod)]


def deletion_order(pods: Iterable[Json], siblings: Iterable[Json] = (), *, counts_cost: bool = True) -> JsonList:
    """`pods`, the first to go first; `siblings` are those that count as doubled up on a node.

    With `counts_cost` an annotation of a pod says how much its deletion costs.
    """
    on_node = Counter(node_of(pod) for pod in siblings)

    def order(pod: Json) -> tuple[float | str, ...]:
        node = node_of(pod)
        ready_s = ready_since_s(pod)
        return (
            bool(node),
            _PHASE_ORDER.get(phase_of(pod), 2),
            is_ready(pod),
            int(annotations_of(pod).get(DELETION_COST) or 0) if counts_cost else 0,
            -on_node[node] if node else 0,
            -ready_s,
            -created_s(pod),
        )

    youngest_first = sorted(pods, key=uid_of, reverse=True)
    return sorted(youngest_first, key=order)
