"""What forbids to disrupt a node, whatever would be saved: Karpenter's rules for its graceful methods.

Every node is asked, so nothing here looks at all budgets or all waiting pods for one node; and which pods could forbid
anything is worked out again only for nodes that have changed.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

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
from kerf.model.eviction import Budgets, protected_until_s, protection_problem
from kerf.model.nodeclaim import DISRUPTED_TAINT, DO_NOT_DISRUPT
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterNode, ClusterSnapshot

_GUARDED = "guarded"
_STATED = frozenset({"true", "false"})
"""Values of do-not-disrupt on a node that mean what they say; Karpenter knows `true` alone."""


class Obstacles:
    """The budgets of one snapshot, indexed once.

    Cost of a question: the pods on its node where node or selectors of budgets are new, else those that are guarded.
    """

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._now_s = snapshot.taken_at_s
        budgets = snapshot.disruption_budgets
        self._budgets = Budgets(budgets)
        self._held = {(each.namespace, each.name): each for each in budgets}
        self._selectors = tuple((each.namespace, each.name, each.selector) for each in budgets)

    def of(self, held: ClusterNode) -> Obstacle | None:
        """The first thing that forbids to disrupt the node with the pods on it; None when nothing does."""
        if held.node is None:
            return None
        found = self.of_empty(held)
        if found is not None:
            return found
        guarded = self._guarded(held)
        causes = (cause for each in guarded if (cause := self._of_pod(each)) is not None)
        return next(causes, None) if guarded else None

    def of_empty(self, held: ClusterNode) -> Obstacle | None:
        """The same of the node and its claim alone, as if no pod were on it."""
        node, claim = held.node, held.claim
        if node is None:
            return None
        if node.taints and any(taint.key == DISRUPTED_TAINT.key for taint in node.taints):
            return MarkedForDeletion()
        if node.annotations.get(DO_NOT_DISRUPT) == "true":
            return DoNotDisrupt()
        if claim is not None and claim.annotations.get(DO_NOT_DISRUPT) == "true":
            return DoNotDisrupt(is_of_claim=True)
        return Nominated(Name(held.nominees[0].key)) if held.nominees else None

    def unprotected(self, held: ClusterNode) -> Iterator[tuple[Pod, str]]:
        """The pods on the node whose do-not-disrupt is ignored, and why. Cost: the guarded pods, as of a question."""
        for pod, _ in self._guarded(held):
            if problem := protection_problem(pod):
                yield pod, problem

    def protected(self, held: ClusterNode) -> Iterator[tuple[Pod, float]]:
        """The pods on the node whose do-not-disrupt is a time, and when that ends or ended. Cost: the same."""
        for pod, _ in self._guarded(held):
            until_s = protected_until_s(pod)
            if 0 < until_s < math.inf:
                yield pod, until_s

    def _guarded(self, held: ClusterNode) -> Sequence["_Guarded"]:
        basis, found = held.findings.get(_GUARDED, (None, ()))
        if basis is not self._selectors:
            if basis is not None and basis == self._selectors:
                self._selectors = basis
            else:
                found = tuple(self._all_guarded(held.pods))
                held.findings[_GUARDED] = self._selectors, found
        guarded: Sequence[_Guarded] = found
        return guarded

    def _all_guarded(self, pods: Iterable[Pod]) -> Iterator["_Guarded"]:
        for pod in pods:
            if not (pod.is_ended or pod.deleted_s is not None or pod.is_opportunistic):
                covering = tuple(budget.name for budget in self._budgets.covering(pod))
                if covering or DO_NOT_DISRUPT in pod.annotations:
                    yield _Guarded(pod, covering)

    def _of_pod(self, guarded: "_Guarded") -> Obstacle | None:
        pod, covering = guarded
        until_s = protected_until_s(pod)
        if until_s > self._now_s:
            return ProtectedPod(Name(pod.key), until_s if until_s < math.inf else None)
        if len(covering) > 1:
            return SeveralBudgets(Name(pod.key))
        if covering and self._held[pod.namespace, covering[0]].holds(pod):
            return BudgetPrevents(Name(pod.namespace), Name(covering[0]))
        return None


def unprotected(snapshot: ClusterSnapshot) -> Iterator[tuple[Pod, str]]:
    """The pods on our nodes whose do-not-disrupt is ignored, and why, by node name.

    Cost: a look at each node, and at its guarded pods.
    """
    obstacles = Obstacles(snapshot)
    for held in snapshot.nodes:
        if held.claim is not None:
            yield from obstacles.unprotected(held)


def unprotected_nodes(snapshot: ClusterSnapshot) -> Iterator[tuple[str, str, str]]:
    """Kind, name and value of each do-not-disrupt of a node or its claim that is ignored: on nodes `true` alone counts.

    By node name. Cost: a look at each node.
    """
    for held in snapshot.nodes:
        if held.claim is None:
            continue
        for kind, each in (("Node", held.node), ("NodeClaim", held.claim)):
            if each is not None and each.annotations.get(DO_NOT_DISRUPT, "true") not in _STATED:
                yield kind, each.name, each.annotations[DO_NOT_DISRUPT]


def protected(snapshot: ClusterSnapshot) -> Iterator[tuple[Pod, float]]:
    """The pods on our nodes whose do-not-disrupt is a time, and when that is over, by node name. Cost: the same."""
    obstacles = Obstacles(snapshot)
    for held in snapshot.nodes:
        if held.claim is not None:
            yield from obstacles.protected(held)


class _Guarded(NamedTuple):
    """A pod that may not be evicted at any time, as it seems, and the names of the budgets that cover it."""

    pod: Pod
    covering: tuple[str, ...]
