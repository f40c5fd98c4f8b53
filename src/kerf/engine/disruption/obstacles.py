"""What forbids to disrupt a node, whatever would be saved: Karpenter's rules for its graceful methods.

Every node is asked, so nothing here looks at all budgets or all waiting pods for one node.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

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
from kerf.model.constraints import Requirement
from kerf.model.nodeclaim import DISRUPTED_TAINT, DO_NOT_DISRUPT
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodDisruptionBudget
from kerf.model.snapshot import ClusterSnapshot
from kerf.model.times import duration_s

_Label = tuple[str, str]


class Obstacles:
    """The budgets and nominations of one snapshot, indexed once. Cost of a question: the pods on its node."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._now_s = snapshot.taken_at_s
        self._nominated: dict[str, str] = {}
        for pod in snapshot.pending:
            if pod.nominated_node:
                self._nominated.setdefault(pod.nominated_node, pod.key)
        by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        for budget in snapshot.disruption_budgets:
            by_namespace.setdefault(budget.namespace, []).append(budget)
        self._budgets = {namespace: _Budgets(held) for namespace, held in by_namespace.items()}

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
        # The kubelet makes a mirror pod again from its file: no budget can hold it.
        if pod.namespace not in self._budgets or (pod.owner is not None and pod.owner.kind == "Node"):
            return None
        covering = list(self._budgets[pod.namespace].covering(pod))
        if len(covering) > 1:
            return SeveralBudgets(Name(pod.key))
        if covering and covering[0].disruptions_allowed <= 0:
            return BudgetPrevents(Name(covering[0].namespace), Name(covering[0].name))
        return None


class _Budgets:
    """The budgets of one namespace, by a label that their pods must have."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        held = tuple(budgets)
        # A label that many budgets ask for (part-of, say) would tell few of them apart.
        common = Counter(label for budget in held for asked in budget.selector.values() for label in _labels(asked))
        self._by_label: dict[_Label, list[PodDisruptionBudget]] = {}
        self._others: list[PodDisruptionBudget] = []
        for budget in held:
            finite = [labels for asked in budget.selector.values() if (labels := _labels(asked))]
            if not finite:
                self._others.append(budget)
                continue
            rarest = min(finite, key=lambda labels: (sum(common[label] for label in labels), labels))
            for label in rarest:
                self._by_label.setdefault(label, []).append(budget)

    def covering(self, pod: Pod) -> Iterator[PodDisruptionBudget]:
        """Those that protect the pod, each once."""
        for label in pod.labels.items():
            yield from (budget for budget in self._by_label.get(label, ()) if budget.covers(pod))
        yield from (budget for budget in self._others if budget.covers(pod))


def _labels(asked: Requirement) -> list[_Label]:
    """The labels of which a pod must have one; empty where absence or any value may do."""
    return [] if asked.complement else sorted((asked.key, value) for value in asked.values)


def is_protected(pod: Pod, now_s: float) -> bool:
    """Whether do-not-disrupt holds: `true`, or a duration that counts from the pod's start; else it is ignored."""
    value = pod.annotations.get(DO_NOT_DISRUPT)
    if not value:
        return False
    if value == "true":
        return True
    try:
        seconds = duration_s(value)
    except ValueError:
        return False
    return seconds is not None and now_s < (pod.started_s or pod.created_s) + seconds
