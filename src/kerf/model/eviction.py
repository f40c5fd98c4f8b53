"""What keeps a pod from being evicted: its own annotation, and PodDisruptionBudgets, indexed once.

Every pod of a node that may go is asked, so nothing here looks at all budgets for one pod.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import inf

from kerf.model.constraints import Requirement, Requirements
from kerf.model.nodeclaim import DO_NOT_DISRUPT
from kerf.model.pods import Pod, PodDisruptionBudget
from kerf.model.times import go_duration_s

_Label = tuple[str, str]
_MOST_SHOWN = 60


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
        self._budgets = tuple(budgets)
        # What budgets allow changes with every pod; which pods they mean hardly ever does.
        self._by_label, self._others = _places(tuple(budget.selector for budget in self._budgets))

    def covering(self, pod: Pod) -> Iterator[PodDisruptionBudget]:
        for label in pod.labels.items():
            yield from self._of(self._by_label.get(label, ()), pod)
        yield from self._of(self._others, pod)

    def _of(self, places: Iterable[int], pod: Pod) -> Iterator[PodDisruptionBudget]:
        return (budget for at in places if (budget := self._budgets[at]).covers(pod))


@lru_cache(maxsize=64)
def _places(selectors: tuple[Requirements, ...]) -> tuple[Mapping[_Label, Sequence[int]], Sequence[int]]:
    """The places of selectors by a label that each asks for, and of those that ask for none."""
    # A label that many budgets ask for (part-of, say) would tell few of them apart.
    common = Counter(label for selector in selectors for asked in selector.values() for label in _labels(asked))
    by_label: dict[_Label, list[int]] = {}
    others: list[int] = []
    for at, selector in enumerate(selectors):
        finite = [labels for asked in selector.values() if (labels := _labels(asked))]
        if not finite:
            others.append(at)
            continue
        rarest = min(finite, key=lambda labels: (sum(common[label] for label in labels), labels))
        for label in rarest:
            by_label.setdefault(label, []).append(at)
    return by_label, others


def _labels(asked: Requirement) -> list[_Label]:
    """The labels of which a pod must have one; empty where absence or any value may do."""
    return [] if asked.complement else sorted((asked.key, value) for value in asked.values)


def is_protected(pod: Pod, now_s: float) -> bool:
    """Whether do-not-disrupt holds: `true`, or a duration that counts from the pod's start; else it is ignored."""
    return now_s < protected_until_s(pod)


def protected_until_s(pod: Pod) -> float:
    """Until when do-not-disrupt holds: infinity for `true`, 0 where there is none or it is ignored."""
    value = pod.annotations.get(DO_NOT_DISRUPT)
    if value is None:
        return 0
    seconds, problem = _protection(value)
    return 0 if problem else (pod.started_s or pod.created_s) + seconds


def protection_problem(pod: Pod) -> str:
    """Why do-not-disrupt of the pod is ignored, in Karpenter's words; empty where it holds, has held, or is absent."""
    value = pod.annotations.get(DO_NOT_DISRUPT)
    return "" if value is None else value_problem(value)


def value_problem(value: str) -> str:
    """The same of a value of the annotation on a pod."""
    return _protection(value)[1]


@lru_cache(maxsize=1024)
def _protection(value: str) -> tuple[float, str]:
    """For how many seconds the value protects, and what is wrong with it. Values are those of Go, as for Karpenter."""
    if value == "true":
        return inf, ""
    shown = value if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN]}..."
    try:
        seconds = go_duration_s(value)
    except ValueError as error:
        reason = str(error).replace(value, shown) if value else str(error)
        return 0, f'failed to parse "{shown}" as a duration: {reason}'
    return (seconds, "") if seconds > 0 else (0, f'duration "{shown}" must be positive')
