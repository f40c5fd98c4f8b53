"""Nodes that were bought for pods of a node that goes, in the moment when these end and their successors have not come.

Until such a pod is evicted the plan puts it on the node (`engine.leaving`), and once its successor waits the plan puts
that there. In between nothing does, and the node looks empty.
"""

from functools import cached_property

from kerf.engine.disruption.candidates import Candidate
from kerf.model.promises import read
from kerf.model.snapshot import ClusterSnapshot

STUCK_S = 60.0
"""A pod that is still there so long after its grace has ended will not end by itself; a drain does not wait either."""


class Successors:
    """Of one snapshot. Cost: nodes, and the pods of those that go, once; then the promises of an empty candidate."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._snapshot = snapshot

    def awaited_by(self, candidate: Candidate) -> str:
        """The ending pod, `namespace/name`, whose successor has its place on the empty node; empty for any other."""
        if candidate.pods or not self._ending:
            return ""
        return next((key for key in read(candidate.claim.annotations).pods if key in self._ending), "")

    @cached_property
    def _ending(self) -> frozenset[str]:
        now_s, going = self._snapshot.taken_at_s, (node for node in self._snapshot.nodes if node.is_deleting)
        pods = (pod for node in going for pod in node.pods if not pod.is_daemon)
        return frozenset(pod.key for pod in pods if pod.deleted_s is not None and now_s <= pod.deleted_s + STUCK_S)


def replaced(candidate: Candidate, snapshot: ClusterSnapshot) -> str:
    """The node in whose place an empty one was bought, and whose pods are still to come; empty for any other."""
    if candidate.pods:
        return ""
    olds = (snapshot.node_of_claim(name) for name in candidate.claim.replaces)
    return next((old.name for old in olds if old is not None and old.is_deleting), "")
