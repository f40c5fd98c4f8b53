"""What keeps a pod from being evicted: its own annotation, and PodDisruptionBudgets, indexed once.

Every pod of a node that may go is asked, so nothing here looks at all budgets for one pod.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from math import inf

from kerf.model.constraints import Requirement
from kerf.model.nodeclaim import DO_NOT_DISRUPT
from kerf.model.pods import Pod, PodDisruptionBudget
from kerf.model.times import duration_s

_Label = tuple[str, str]


class Budgets:
    """PodDisruptionBudgets by namespace. Cost of a question: the pod's labels, and the budgets that share one."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        for budget in budgets:
            by_namespace.setdefault(budget.namespace, []).append(budget)
        self._held = {namespace: _OfNamespace(held) for namespace, held in by_namespace.items()}

    def covering(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Those that protect the pod, each once. The kubelet makes a mirror pod again from its file: none holds it."""
        held = self._held.get(pod.namespace)
        if held is None or (pod.owner is not None and pod.owner.kind == "Node"):
            return ()
        return tuple(held.covering(pod))


class _OfNamespace:
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
        for label in pod.labels.items():
            yield from (budget for budget in self._by_label.get(label, ()) if budget.covers(pod))
        yield from (budget for budget in self._others if budget.covers(pod))


def _labels(asked: Requirement) -> list[_Label]:
    """The labels of which a pod must have one; empty where absence or any value may do."""
    return [] if asked.complement else sorted((asked.key, value) for value in asked.values)


def is_protected(pod: Pod, now_s: float) -> bool:
    """Whether do-not-disrupt holds: `true`, or a duration that counts from the pod's start; else it is ignored."""
    return now_s < protected_until_s(pod)


def protected_until_s(pod: Pod) -> float:
    """Until when do-not-disrupt holds: infinity for `true`, 0 where there is none or it is ignored."""
    value = pod.annotations.get(DO_NOT_DISRUPT)
    if not value:
        return 0
    if value == "true":
        return inf
    try:
        seconds = duration_s(value)
    except ValueError:
        return 0
    return 0 if seconds is None else (pod.started_s or pod.created_s) + seconds
