"""What a rule as Karpenter's pays for a replay, by code that knows nothing of the planner.

It looks at every card, and it moves no pod. A pod that comes goes to the ready node where it leaves least room, as
kube-scheduler packs them. Those that find none wait for the end of a batch. Then they go, the largest first, to the
starting node with fewest pods that can hold them, else to a new one, which becomes the cheapest type that holds what
was put on it. An empty node is given back after a while. Sources: Karpenter's scheduler.go and batcher.go.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

from benchmarks.boundcheck import TypeRow
from kerf.model.quantities import MEMORY, quantity
from kerf.sim.traces.replay import Arrival
from kerf.sim.traces.timedpods import GPU, PERCENT, PodForm

BOOT_S, BATCH_S, EMPTY_S = 90, 10, 75
"""Seconds until a node is ready, that a batch waits, and after which an empty node is given back."""
_WHOLE, _HOUR_S = 100, 3600
_Cards = dict[int, tuple[int, ...]]
"""By the number of cards that a machine may have, the cards that a pod would hold there."""


@dataclass(frozen=True)
class _Asked:
    """What a pod asks: thousandths of a core, bytes, cards, and percent of each."""

    cpu: int
    memory: int
    cards: int
    percent: int

    @classmethod
    def of(cls, form: PodForm) -> "_Asked":
        limits = form.limits
        cpu, memory = quantity(limits.get("cpu", "0"), milli=True), quantity(limits.get("memory", "0"))
        return cls(cpu, memory, int(limits.get(GPU, 0)), int(limits.get(PERCENT, _WHOLE)))


@dataclass
class _Node:
    """A machine: the types that it can still be (one, once it is launched), and what its pods take."""

    kinds: list[TypeRow]
    cpu: int = 0
    memory: int = 0
    cards: dict[int, list[int]] = field(default_factory=dict)
    pods: dict[int, tuple[_Asked, _Cards]] = field(default_factory=dict)
    price_micro: int = 0
    bought_s: float = 0.0
    empty_s: float = 0.0

    def room(self, asked: _Asked) -> tuple[list[TypeRow], _Cards]:
        """The types that hold the pod, too, and its cards there; no type where none does."""
        cpu, memory = self.cpu + asked.cpu, self.memory + asked.memory
        kinds = [
            each
            for each in self.kinds
            if each.amounts["cpu"] >= cpu and each.amounts[MEMORY] >= memory and each.amounts["pods"] > len(self.pods)
        ]
        cards: _Cards = {}
        for number in {each.cards for each in kinds}:
            found = self._on_cards(number, asked)
            if found is not None:
                cards[number] = found
        return [each for each in kinds if each.cards in cards], cards

    def _on_cards(self, number: int, asked: _Asked) -> tuple[int, ...] | None:
        """Of so many cards the fullest that hold a part each; a pod of several takes idle ones."""
        held = self.cards.get(number) or [0] * number
        most = _WHOLE - asked.percent if asked.cards == 1 else 0
        found = sorted((at for at in range(number) if held[at] <= most), key=lambda at: (-held[at], at))[: asked.cards]
        return tuple(found) if len(found) == asked.cards else None

    def take(self, pod: int, asked: _Asked, kinds: list[TypeRow], cards: _Cards) -> None:
        """Put the pod there."""
        self.kinds, self.cpu, self.memory = kinds, self.cpu + asked.cpu, self.memory + asked.memory
        self.pods[pod] = asked, cards
        for number, taken in cards.items():
            held = self.cards.setdefault(number, [0] * number)
            for at in taken:
                held[at] += asked.percent

    def free(self, pod: int) -> None:
        """It has ended."""
        asked, cards = self.pods.pop(pod)
        self.cpu, self.memory = self.cpu - asked.cpu, self.memory - asked.memory
        for at in cards[self.kinds[0].cards]:
            self.cards[self.kinds[0].cards][at] -= asked.percent

    @property
    def left(self) -> tuple[int, int]:
        """Of a ready node: percent of cards, and thousandths of a core."""
        kind = self.kinds[0]
        return kind.cards * _WHOLE - sum(self.cards.get(kind.cards, ())), kind.amounts["cpu"] - self.cpu


class PeerReplay:
    """One run; `cost_micro` is what was paid, `pod_hours` for how long pods ran, `unplaced` how many fit on no type."""

    def __init__(self, types: Sequence[TypeRow]) -> None:
        self._types = list(types)
        self._ready: dict[int, _Node] = {}
        self._starting: dict[int, _Node] = {}
        self._events: list[tuple[float, int, str, int]] = []
        self._order, self._numbers = count(), count()
        self._asked: dict[int, _Asked] = {}
        self._arrived: dict[int, Arrival] = {}
        self._waiting: list[int] = []
        self._home: dict[int, tuple[int, float]] = {}
        self.cost_micro, self.pod_hours, self.unplaced = 0.0, 0.0, 0

    def run(self, arrivals: Iterable[Arrival], duration_s: int) -> None:
        """All that comes within the time. Cost: a look at each node for each pod."""
        forms: dict[int, _Asked] = {}
        for number, arrival in enumerate(arrivals):
            if arrival.at_s >= duration_s:
                break
            self._asked[number] = forms.setdefault(id(arrival.form), _Asked.of(arrival.form))
            self._arrived[number] = arrival
            self._at(arrival.at_s, "comes", number)
        acts = {"comes": self._comes, "batch": self._batch, "ready": self._up, "ends": self._ends, "empty": self._given}
        while self._events and self._events[0][0] < duration_s:
            at_s, _, what, number = heapq.heappop(self._events)
            acts[what](at_s, number)
        for node in (*self._ready.values(), *self._starting.values()):
            self._pay(node, duration_s)
        self.pod_hours += sum(duration_s - since_s for _, since_s in self._home.values()) / _HOUR_S

    def _at(self, at_s: float, what: str, number: int) -> None:
        heapq.heappush(self._events, (at_s, next(self._order), what, number))

    def _pay(self, node: _Node, until_s: float) -> None:
        self.cost_micro += node.price_micro * (until_s - node.bought_s) / _HOUR_S

    def _comes(self, at_s: float, pod: int) -> None:
        if self._bound(at_s, pod):
            return
        if not self._waiting:
            self._at(at_s + BATCH_S, "batch", 0)
        self._waiting.append(pod)

    def _bound(self, at_s: float, pod: int) -> bool:
        asked = self._asked[pod]
        found = ((node.left, number, *node.room(asked)) for number, node in self._ready.items())
        best = min((each for each in found if each[2]), key=lambda each: each[:2], default=None)
        if best is None:
            return False
        _, number, kinds, cards = best
        self._ready[number].take(pod, asked, kinds, cards)
        self._starts(at_s, pod, number)
        return True

    def _starts(self, at_s: float, pod: int, node: int) -> None:
        self._home[pod] = node, at_s
        runs_s = self._arrived[pod].runs_s
        if runs_s is not None:
            self._at(at_s + runs_s, "ends", pod)

    def _batch(self, at_s: float, _: int) -> None:
        waiting, self._waiting = self._waiting, []
        fresh: dict[int, _Node] = {}
        for pod in sorted(waiting, key=lambda each: (-self._asked[each].cpu, -self._asked[each].memory, each)):
            if self._bound(at_s, pod):
                continue
            asked = self._asked[pod]
            started = sorted({**self._starting, **fresh}.items(), key=lambda each: (len(each[1].pods), each[0]))
            for _, node in started:
                kinds, cards = node.room(asked)
                if kinds:
                    break
            else:
                node = _Node(self._types)
                kinds, cards = node.room(asked)
                if not kinds:
                    self.unplaced += 1
                    continue
                fresh[next(self._numbers)] = node
            node.take(pod, asked, kinds, cards)
        for number, node in fresh.items():
            node.kinds = [min(node.kinds, key=lambda kind: (kind.price_micro, kind.name))]
            node.price_micro, node.bought_s = node.kinds[0].price_micro, at_s
            self._starting[number] = node
            self._at(at_s + BOOT_S, "ready", number)

    def _up(self, at_s: float, number: int) -> None:
        node = self._ready[number] = self._starting.pop(number)
        for pod in node.pods:
            self._starts(at_s, pod, number)

    def _ends(self, at_s: float, pod: int) -> None:
        number, since_s = self._home.pop(pod)
        self.pod_hours += (at_s - since_s) / _HOUR_S
        node = self._ready[number]
        node.free(pod)
        if not node.pods:
            node.empty_s = at_s
            self._at(at_s + EMPTY_S, "empty", number)

    def _given(self, at_s: float, number: int) -> None:
        node = self._ready.get(number)
        if node is not None and not node.pods and at_s >= node.empty_s + EMPTY_S:
            self._pay(node, at_s)
            del self._ready[number]
