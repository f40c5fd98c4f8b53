"""How kube-scheduler scores what a pod leaves of a node: its plugin NodeResourcesFit, as its configuration says.

Source: `scoringStrategy` of NodeResourcesFitArgs (kubescheduler.config.k8s.io/v1), least_allocated.go and
most_allocated.go of Kubernetes 1.36.
"""

from dataclasses import dataclass

from kerf.model.pods import Pod
from kerf.model.quantities import CPU, MEMORY
from kerf.sim.kubernetes.rooms import LEAST_COUNTED, NodePods, counted

LEAST_ALLOCATED, MOST_ALLOCATED = "LeastAllocated", "MostAllocated"
STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED)
MOST_SCORE = 100


@dataclass(frozen=True)
class ScoringStrategy:
    """`type` is one of STRATEGIES, `resources` are the resources that count, each with its weight."""

    type: str = LEAST_ALLOCATED
    resources: tuple[tuple[str, int], ...] = ((CPU, 1), (MEMORY, 1))

    def score(self, pod: Pod, room: NodePods) -> int:
        """From 0 to 100, with the pod on the node: the free share of what counts, or the used share.

        A resource that the node has none of does not count, nor one beside cpu and memory that the pod asks nothing of.
        Cost: the resources.
        """
        own, scores, weights = counted(pod), 0, 0
        for name, weight in self.resources:
            total, mine = room.node.allocatable.get(name, 0), own.get(name, 0) or pod.spec.requests.get(name, 0)
            if total <= 0 or not mine:
                continue
            used = mine + (room.counted if name in LEAST_COUNTED else room.used).get(name, 0)
            share = min(used, total) if self.type == MOST_ALLOCATED else max(0, total - used)
            scores += weight * (share * MOST_SCORE // total)
            weights += weight
        return scores // weights if weights else 0
