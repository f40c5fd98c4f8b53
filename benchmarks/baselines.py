"""What other rules would buy for the pods of openb, by code that knows nothing of the planner.

`karpenter`: pods by cpu and memory, the largest first; each goes to the open node with fewest pods that some type can
still be, and the cheapest type that a node can be is bought at the end. GPUs are summed over a node (`summed`), or fit
card by card. `best-fit` and `fgd` open nodes of one type, the cheapest a pod, and put each pod on the node with least
room left, or where it makes least room useless for pods such as these (fragmentation gradient descent, Weng et al.
2023). Sources: Karpenter's scheduler.go and queue.go; the paper's definition of a fragment.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.boundcheck import PodRow, TypeRow

_WHOLE = 100
_MOST_KINDS = 40
"""Kinds of pods, the most frequent, by which FGD says what is useless."""


@dataclass
class _Open:
    """A node of Karpenter's rule: what its pods take, and the types that it can still be."""

    types: list[TypeRow]
    taken: dict[str, int] = field(default_factory=dict)
    cards: dict[int, list[int]] = field(default_factory=dict)
    pods: list[PodRow] = field(default_factory=list)


def karpenter(pods: Sequence[PodRow], types: Sequence[TypeRow], *, summed: bool) -> tuple[int, int, int]:
    """Price per hour in micro-units, nodes, and how many of these cannot hold their pods card by card."""
    nodes: list[_Open] = []
    ordered = sorted(pods, key=lambda pod: (-pod.amounts.get("cpu", 0), -pod.amounts.get("memory", 0)))
    for pod in ordered:
        for node in sorted(nodes, key=lambda each: len(each.pods)):
            if _joined(node, pod, summed=summed):
                break
        else:
            fresh = _Open([kind for kind in types if not pod.models or kind.model in pod.models])
            if _joined(fresh, pod, summed=summed):
                nodes.append(fresh)
    bought = [min(node.types, key=lambda kind: kind.price_micro) for node in nodes]
    wrong = sum(not _holds(kind, node.pods) for kind, node in zip(bought, nodes, strict=True))
    return sum(kind.price_micro for kind in bought), len(nodes), wrong


def _joined(node: _Open, pod: PodRow, *, summed: bool) -> bool:
    """Put the pod on the node where some type remains that holds all."""
    taken = {name: node.taken.get(name, 0) + amount for name, amount in pod.amounts.items()}
    share = pod.cards * pod.percent
    total = node.taken.get("gpu", 0) + share
    held = [] if summed else [(count, _on_cards(before, pod)) for count, before in _cards(node)]
    cards = {count: after for count, after in held if after is not None}
    left = [
        kind
        for kind in node.types
        if all(amount <= kind.amounts.get(name, 0) for name, amount in taken.items())
        and (not pod.models or kind.model in pod.models)
        and (total <= kind.cards * _WHOLE if summed else kind.cards in cards)
    ]
    if not left:
        return False
    node.types, node.taken, node.cards = left, {**taken, "gpu": total}, cards
    node.pods.append(pod)
    return True


def _cards(node: _Open) -> Iterator[tuple[int, list[int]]]:
    for count in sorted({kind.cards for kind in node.types}):
        held = node.cards.get(count) if node.pods else [0] * count
        if held is not None:
            yield count, held


def _on_cards(held: list[int], pod: PodRow) -> list[int] | None:
    """The cards with the pod, each on the fullest that holds it; None where it fits not."""
    after = sorted(held, reverse=True)
    for _ in range(pod.cards):
        at = next((n for n, taken in enumerate(after) if taken + pod.percent <= _WHOLE), None)
        if at is None or (pod.cards > 1 and after[at]):
            at = next((n for n, taken in enumerate(after) if not taken), None)
        if at is None:
            return None
        after[at] += pod.percent
    return after


def _holds(kind: TypeRow, pods: Sequence[PodRow]) -> bool:
    """Whether the cards of one node hold the pods, the largest first."""
    held: list[int] | None = [0] * kind.cards
    for pod in sorted(pods, key=lambda each: (-each.cards, -each.percent)):
        held = _on_cards(held, pod) if held is not None else None
    return held is not None


class _Fleet:
    """Nodes of fixed types, by node: what it has, what is free, and of each card in percent; -1 where none is."""

    def __init__(self, types: Sequence[TypeRow]) -> None:
        self._types = types
        self._widest = max((kind.cards for kind in types), default=0)
        self._names = sorted({name for kind in types for name in kind.amounts})
        self._has = self._free = np.zeros((0, len(self._names)))
        self._cards = np.zeros((0, self._widest))
        self._kinds: list[TypeRow] = []

    @property
    def price_micro(self) -> int:
        """Of all nodes, per hour."""
        return sum(kind.price_micro for kind in self._kinds)

    def take(self, pod: PodRow, useless: "_Useless | None") -> bool:
        """Put the pod on a node, a new one where none has room; False where no type holds it."""
        asked = np.array([pod.amounts.get(name, 0) for name in self._names])
        able = (self._free >= asked).all(axis=1)
        if pod.cards:
            able &= (self._cards >= pod.percent).sum(axis=1) >= pod.cards
        if pod.models:
            able &= np.array([kind.model in pod.models for kind in self._kinds], dtype=np.bool_)
        rows = np.flatnonzero(able)
        if not len(rows):
            if not self._opened(pod, asked):
                return False
            rows = np.array([len(self._kinds) - 1])
        free, cards = self._free[rows] - asked, self._with(self._cards[rows], pod)
        if useless is None:
            score = (free / self._has[rows]).sum(axis=1) + np.maximum(cards, 0).sum(axis=1) / _WHOLE
        else:
            score = useless.of(free, cards, self._names) - useless.of(self._free[rows], self._cards[rows], self._names)
        at = int(score.argmin())
        self._free[rows[at]], self._cards[rows[at]] = free[at], cards[at]
        return True

    def _with(self, cards: Any, pod: PodRow) -> Any:
        """The cards with the pod, on each node on the fullest that hold it."""
        after = cards.copy()
        for _ in range(pod.cards):
            fitting = np.where((after >= pod.percent) & (after == cards), after, np.inf)
            at = fitting.argmin(axis=1)
            after[np.arange(len(after)), at] -= pod.percent
        return after

    def _opened(self, pod: PodRow, asked: Any) -> bool:
        """A node of the type on which the largest share that the pod takes costs least."""
        best: tuple[float, int, TypeRow] | None = None
        for kind in self._types:
            has = np.array([kind.amounts.get(name, 0) for name in self._names])
            if (asked > has).any() or pod.cards > kind.cards or (pod.models and kind.model not in pod.models):
                continue
            share = max((asked / np.maximum(has, 1)).max(), pod.cards * pod.percent / (kind.cards * _WHOLE or 1))
            found = (share * kind.price_micro, kind.price_micro, kind)
            best = found if best is None or found[:2] < best[:2] else best
        if best is None:
            return False
        kind = best[2]
        self._kinds.append(kind)
        amounts = np.array([kind.amounts.get(name, 0) for name in self._names])
        self._free, self._has = np.vstack([self._free, amounts]), np.vstack([self._has, np.maximum(amounts, 1)])
        self._cards = np.vstack([self._cards, [_WHOLE] * kind.cards + [-1] * (self._widest - kind.cards)])
        return True


class _Useless:
    """How much of the cards of nodes pods such as these cannot use, in the mean."""

    def __init__(self, pods: Sequence[PodRow]) -> None:
        kinds = Counter((tuple(sorted(pod.amounts.items())), pod.cards, pod.percent) for pod in pods if pod.cards)
        self._kinds = kinds.most_common(_MOST_KINDS)

    def of(self, free: Any, cards: Any, names: Sequence[str]) -> Any:
        """By node, in percent of a card."""
        there = np.maximum(cards, 0)
        total = np.zeros(len(free))
        for (amounts, count, percent), times in self._kinds:
            asked = np.array([dict(amounts).get(name, 0) for name in names])
            able = (free >= asked).all(axis=1) & ((cards >= percent).sum(axis=1) >= count)
            useless = np.where(able, np.where(cards >= percent, 0, there).sum(axis=1), there.sum(axis=1))
            total += times * useless
        return total / max(1, sum(times for _, times in self._kinds))


def by_score(pods: Sequence[PodRow], types: Sequence[TypeRow], *, fragmentation: bool) -> tuple[int, int]:
    """Price per hour in micro-units, and pods without a node: best fit, or where least becomes useless."""
    fleet, useless = _Fleet(types), _Useless(pods) if fragmentation else None
    ordered = sorted(
        pods, key=lambda pod: (-pod.cards * pod.percent, -pod.amounts.get("cpu", 0), -pod.amounts.get("memory", 0))
    )
    left = sum(not fleet.take(pod, useless) for pod in ordered)
    return fleet.price_micro, left
