"""What forbids to disrupt a node, whatever would be saved: Karpenter's rules for its graceful methods.

Every node is asked, so nothing here looks at all budgets or all waiting pods for one node.
"""

from collections.abc import Iterable

from kerf.engine.disruption.causes import (
    BudgetPrevents,
    DoNotDisrupt,
    MarkedForDeletion,
    Nominated,
    Obstacle,
    ProtectedPod,
    SeveralBudgets,
)
from kerf.model.causes import Name
from kerf.model.eviction import Budgets, is_protected
from kerf.model.nodeclaim import DISRUPTED_TAINT, DO_NOT_DISRUPT
from kerf.model.nodes import Node
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterSnapshot


class Obstacles:
    """The budgets and nominations of one snapshot, indexed once. Cost of a question: the pods on its node."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._now_s = snapshot.taken_at_s
        self._nominated: dict[str, str] = {}
        for pod in snapshot.pending:
            if pod.nominated_node:
                self._nominated.setdefault(pod.nominated_node, pod.key)
        self._budgets = Budgets(snapshot.disruption_budgets)

    def of(self, node: Node, pods: Iterable[Pod]) -> Obstacle | None:
        """The first thing that forbids to disrupt the node with these pods on it; None when nothing does."""
        if any(taint.key == DISRUPTED_TAINT.key for taint in node.taints):
            return MarkedForDeletion()
        if node.annotations.get(DO_NOT_DISRUPT) == "true":
            return DoNotDisrupt()
        if node.name in self._nominated:
            return Nominated(Name(self._nominated[node.name]))
        held = (pod for pod in pods if not (pod.is_ended or pod.deleted_s is not None or pod.is_opportunistic))
        return next((found for pod in held if (found := self._of_pod(pod)) is not None), None)

    def _of_pod(self, pod: Pod) -> Obstacle | None:
        if is_protected(pod, self._now_s):
            return ProtectedPod(Name(pod.key))
        covering = self._budgets.covering(pod)
        if len(covering) > 1:
            return SeveralBudgets(Name(pod.key))
        if covering and covering[0].disruptions_allowed <= 0:
            return BudgetPrevents(Name(covering[0].namespace), Name(covering[0].name))
        return None
