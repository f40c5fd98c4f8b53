"""Proves the lower bound of a plan from the prices in its JSON, or says why it does not hold.

It knows nothing of the planner: what a pod asks and what a type has are rows of numbers, the plan is the object that
`kerf plan -o json` prints, and which slices one card holds is counted here. At any prices that leave no node dearer
than what it is sold for, pods are worth no more than nodes for them cost; so all that must hold is checked here.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

_Json = Mapping[str, Any]
_MICRO, _NANO = 10**6, 10**9
_CORES, _WHOLE = 100, 100
_PLACES, _SLOTS, _WHOLE_CARDS = "places of shape ", "card slots", "whole cards"
_MEMORY, _CARD_CORES = "card memory", "card cores"
_OVER_HALF = "cards over half in memory", "cards over half in cores"


@dataclass(frozen=True)
class PodRow:
    """One pod: what it asks of a node in all, and of how many cards what part of each (memory and cores in percent).

    With `mib` it asks for so much memory of each card instead. `models` are those of the cards that it may have, any
    where there are none.
    """

    key: str
    amounts: Mapping[str, int]
    cards: int = 0
    percent: int = _WHOLE
    cores: int = 0
    models: frozenset[str] = frozenset()
    mib: int = 0

    def memory_mib(self, card_mib: int) -> int:
        """What it takes of a card that has so much memory."""
        return self.mib or card_mib * self.percent // _WHOLE


@dataclass(frozen=True)
class TypeRow:
    """One type: what a node of it has for pods, its cards, and in how many slices each can be cut."""

    name: str
    amounts: Mapping[str, int]
    price_micro: int
    cards: int = 0
    card_mib: int = 0
    model: str = ""
    slots: int = 10

    @property
    def card(self) -> tuple[str, int, int]:
        """Types with an equal one have such cards."""
        return self.model, self.card_mib, self.slots


class UnprovenError(Exception):
    """A bound that its prices do not prove."""


@dataclass(frozen=True)
class _Prices:
    """Prices of an entry in nano-units: of one unit of each resource, of a card, and of its slices."""

    unit: Mapping[str, Fraction]
    card: int
    slices: tuple[tuple[int, int, int], ...]
    whole_cards: int | None

    def of_slice(self, memory_mib: int, cores: int) -> int:
        """The dearest of those that are no larger."""
        return max((price for m, c, price in self.slices if m <= memory_mib and c <= cores), default=0)


def proved(plan: _Json, pods: Iterable[PodRow], types: Sequence[TypeRow]) -> int:
    """Micro-units per hour that nodes for the pods of the plan's launches cost at least, by its own prices.

    Raises UnprovenError where the plan states more, or prices that do not hold. Cost: shapes x types.
    """
    stated = plan["lowerBound"]
    micro = _Check(plan, pods, types).micro()
    if round(stated["perHour"] * _MICRO) > micro:
        raise UnprovenError(f"the plan states {stated['perHour']}, its prices prove {micro / _MICRO}")
    return micro


class _Check:
    """One plan. Equal pods are a group; `places of shape 0` is about the group of the first pod in `worth`.

    Where the plan looks at nodes by how many cards pods with several whole cards take, each such number is a case here.
    """

    def __init__(self, plan: _Json, pods: Iterable[PodRow], types: Sequence[TypeRow]) -> None:
        stated, self._types = plan["lowerBound"], types
        planned = {key for launch in plan["launches"] for key in launch["pods"]}
        alike: dict[tuple[object, ...], list[PodRow]] = defaultdict(list)
        for pod in pods:
            if pod.key in planned:
                alike[*sorted(pod.amounts.items()), pod.cards, pod.percent, pod.mib, pod.cores, pod.models].append(pod)
        if sum(map(len, alike.values())) != len(planned):
            raise UnprovenError("the plan has pods that are not in the input")
        # Pods that nodes there are could hold, too, are worth nothing to the bound, and have no entry.
        priced = {worth["pod"] for worth in stated["worth"]}
        self._groups = [group for group in alike.values() if any(pod.key in priced for pod in group)]
        place = {pod.key: number for number, group in enumerate(self._groups) for pod in group}
        self._order = [place[worth["pod"]] for worth in stated["worth"]]
        self._worth = dict(zip(self._order, (_nano(worth["perHour"]) for worth in stated["worth"]), strict=True))
        by_name = {each.name: each for each in types}
        whole = stated.get("wholeNodes", ())
        self._is_by_case = any("wholeCards" in entry for entry in (*whole, *stated["prices"]))
        self._whole = {(entry["instanceType"], entry.get("wholeCards", 0)) for entry in whole}
        held = list(enumerate(group[0] for group in self._groups))
        self._takers = {kind.name: [number for number, pod in held if places(kind, pod)] for kind in types}
        self._entries = [self._entry(entry, by_name.get(entry["instanceType"])) for entry in stated["prices"]]

    def micro(self) -> int:
        """What the pods cost at least."""
        # Where nodes are looked at whole, the plan says what pods are worth, and both kinds of types are held to it.
        least = {number: Fraction(nano) for number, nano in self._worth.items()} if self._whole else {}
        if len(set().union(*self._takers.values())) < len(self._groups):
            raise UnprovenError("a pod fits on no type")
        cases = [(kind, taken) for kind in self._types if self._takers[kind.name] for taken in self._cases(kind)]
        for kind, taken in cases:
            if (kind.name, taken) not in self._whole:
                for number, value in self._values(kind, taken).items():
                    least[number] = min(least.get(number, value), value)
        for kind, taken in cases:
            if (kind.name, taken) in self._whole and self._fullest(kind, least) > kind.price_micro * (_NANO // _MICRO):
                raise UnprovenError(f"a node of {kind.name} holds pods that are worth more than it")
        total = sum((least[number] * len(group) for number, group in enumerate(self._groups)), Fraction(0))
        step = math.gcd(*(kind.price_micro for kind in self._types if self._is_of_use(kind)))
        node = max(min(k.price_micro for k in self._types if places(k, group[0])) for group in self._groups)
        return max(node, math.ceil(total * _MICRO / (_NANO * step)) * step if step else 0)

    def _is_of_use(self, kind: TypeRow) -> bool:
        """Whether it takes some of the pods, and no other type has all that it has for a lower price."""
        return bool(self._takers[kind.name]) and not any(
            other.price_micro < kind.price_micro
            and all(other.amounts.get(name, 0) >= amount for name, amount in kind.amounts.items())
            and (not kind.cards or (other.card == kind.card and other.cards >= kind.cards))
            for other in self._types
        )

    def _several(self, kind: TypeRow, number: int) -> int:
        """How many cards of the type such pods take, where no slice of any pod has room beside theirs; else 0."""
        pod = self._groups[number][0]
        if not self._is_by_case or pod.cards < 2:
            return 0
        alike = {n for other in self._types if other.card == kind.card for n in self._takers[other.name]}
        others = [self._groups[n][0] for n in alike]
        memory = pod.memory_mib(kind.card_mib)
        is_alone = kind.slots == 1 or all(
            memory + other.memory_mib(kind.card_mib) > kind.card_mib or pod.cores + other.cores > _CORES
            for other in others
            if other.cards
        )
        return pod.cards if is_alone else 0

    def _cases(self, kind: TypeRow) -> list[int]:
        """How many cards of a node pods with several whole ones may take together."""
        each = {self._several(kind, number) for number in self._takers[kind.name]} - {0}
        found = {0}
        for total in range(1, kind.cards + 1):
            if any(total - count in found for count in each):
                found.add(total)
        return sorted(found)

    def _taken(self, kind: TypeRow, taken: int) -> list[int]:
        """The groups of which pods may be on such a node."""
        found = []
        for number in self._takers[kind.name]:
            several = self._several(kind, number)
            if several <= taken and (several or not self._groups[number][0].cards or kind.cards > taken):
                found.append(number)
        return found

    def _fullest(self, kind: TypeRow, worth: Mapping[int, Fraction]) -> Fraction:
        """The most that pods on one node of the type, which has one card or none, are worth: shape by shape.

        Of two sets of pods that leave as much, the one that is worth more is gone on with.
        """
        if kind.cards > 1:
            raise UnprovenError(f"{kind.name} has several cards: its nodes cannot be looked at whole here")
        names = sorted({name for group in self._groups for name in group[0].amounts})
        start = (*(kind.amounts.get(name, 0) for name in names), kind.card_mib, _CORES, kind.slots)
        held = {start: Fraction(0)}
        for number in self._takers[kind.name]:
            pod, most = self._groups[number][0], len(self._groups[number])
            card = (pod.memory_mib(kind.card_mib), pod.cores, 1) if pod.cards else (0, 0, 0)
            need = (*(pod.amounts.get(name, 0) for name in names), *card)
            for left, value in list(held.items()):
                for _ in range(most):
                    left = tuple(a - b for a, b in zip(left, need, strict=True))
                    if min(left) < 0:
                        break
                    value += worth[number]
                    held[left] = max(value, held.get(left, value))
        return max(held.values())

    def _values(self, kind: TypeRow, taken: int) -> Mapping[int, Fraction]:
        """What pods are worth on such nodes: by their own entry, else by that of a type with such cards.

        Whichever it is proves something; it is the one that lowers least what the plan says pods are worth.
        """
        own = [entry for entry in self._entries if entry[0].name == kind.name and entry[1].whole_cards in (None, taken)]
        like = own or [entry for entry in self._entries if entry[0].card == kind.card]
        if not like:
            raise UnprovenError(f"no prices for {kind.name}")
        numbers = self._taken(kind, taken)
        found = [{number: self._value(kind, taken, prices, number) for number in numbers} for _, prices in like]

        def least(values: Mapping[int, Fraction]) -> Fraction:
            parts = (value / max(1, self._worth.get(n, 0)) for n, value in values.items())
            return min(parts, default=Fraction(0))

        return max(found, key=least)

    def _value(self, kind: TypeRow, taken: int, prices: _Prices, number: int) -> Fraction:
        """What one pod asks at the entry's prices, scaled to what the type is sold for."""
        need = sum((u * self._has(kind, name, taken) for name, u in prices.unit.items()), Fraction(0))
        need += prices.card * (kind.cards - taken)
        pod = self._groups[number][0]
        value = sum((u * self._asked(kind, number, name) for name, u in prices.unit.items()), Fraction(0))
        if not self._several(kind, number):
            value += pod.cards * prices.of_slice(pod.memory_mib(kind.card_mib), pod.cores)
        return value * kind.price_micro * (_NANO // _MICRO) / need if need else Fraction(0)

    def _entry(self, entry: _Json, kind: TypeRow | None) -> tuple[TypeRow, _Prices]:
        """The prices of an entry. Raises UnprovenError where they make a node dearer than it is sold for."""
        if kind is None or kind.price_micro != round(entry["perHour"] * _MICRO):
            raise UnprovenError(f"{entry['instanceType']} is not sold for {entry['perHour']}")
        parts = {name: _nano(part) for name, part in entry["parts"].items()}
        card, cards = _nano(entry.get("card", 0)), entry.get("cards", 0)
        slices = tuple((s["memoryMiB"], s["cores"], _nano(s["perHour"])) for s in entry.get("slices", ()))
        if min((*parts.values(), card, *(price for _, _, price in slices)), default=0) < 0:
            raise UnprovenError(f"{kind.name} has a price below 0")
        taken = entry.get("wholeCards", 0)
        if cards and cards != kind.cards - taken:
            raise UnprovenError(f"{kind.name} has {kind.cards - taken} cards left, not {cards}")
        if sum(parts.values()) + card * cards > kind.price_micro * (_NANO // _MICRO):
            raise UnprovenError(f"the parts of {kind.name} are more than its price")
        if slices and fullest(slices, kind.card_mib, kind.slots) > card:
            raise UnprovenError(f"a card of {kind.name} holds slices that are worth more than it")
        # What cannot be counted here proves nothing.
        unit = {name: Fraction(part, has) for name, part in parts.items() if (has := self._has(kind, name, taken))}
        return kind, _Prices(unit, card, slices, entry.get("wholeCards"))

    def _has(self, kind: TypeRow, name: str, taken: int) -> int:
        """How much of a resource such a node has; 0 for one that is not counted here."""
        if name.startswith(_PLACES):
            group = self._groups[self._order[int(name.removeprefix(_PLACES))]]
            return min(len(group), places(kind, group[0]))
        if name == _WHOLE_CARDS:
            return taken
        of_a_card = {_SLOTS: kind.slots, _MEMORY: kind.card_mib, _CARD_CORES: _CORES, **dict.fromkeys(_OVER_HALF, 1)}
        return (kind.cards - taken) * of_a_card[name] if name in of_a_card else kind.amounts.get(name, 0)

    def _asked(self, kind: TypeRow, number: int, name: str) -> int:
        if name.startswith(_PLACES):
            return int(self._order[int(name.removeprefix(_PLACES))] == number)
        pod, several = self._groups[number][0], self._several(kind, number)
        if name == _WHOLE_CARDS:
            return several
        memory_mib = pod.memory_mib(kind.card_mib)
        of_a_card = {_SLOTS: 1, _MEMORY: memory_mib, _CARD_CORES: pod.cores}
        # Of pods that take more than half of a card each card holds one.
        of_a_card |= zip(_OVER_HALF, (int(2 * memory_mib > kind.card_mib), int(2 * pod.cores > _CORES)), strict=True)
        if name in of_a_card:
            return 0 if several else pod.cards * of_a_card[name]
        return pod.amounts.get(name, 0)


def _nano(value: float) -> int:
    """A number of the JSON, which has at most nine decimals."""
    return round(value * _NANO)


def places(kind: TypeRow, pod: PodRow) -> int:
    """How many such pods a node holds at most; slices of one pod lie on different cards."""
    if pod.cards > kind.cards or (pod.models and kind.model not in pod.models):
        return 0
    found = [kind.amounts.get(name, 0) // amount for name, amount in pod.amounts.items() if amount]
    if pod.cards:
        memory = pod.memory_mib(kind.card_mib)
        fit = [kind.slots, *(kind.card_mib // m for m in (memory,) if m), *(_CORES // c for c in (pod.cores,) if c)]
        found.append(min(fit) * kind.cards // pod.cards)
    return min(found)


def fullest(slices: Sequence[tuple[int, int, int]], card_mib: int, slots: int) -> int:
    """The most that slices on one card are worth: (MiB, cores, worth), as often as they fit.

    Slice by slice; of sets that take no less of anything, only one that is worth more is gone on with.
    """
    held, best = [(0, 0, 0)], 0
    for _ in range(slots):
        longer: dict[tuple[int, int], int] = {}
        for memory, cores, value in held:
            for m, c, price in slices:
                at = memory + m, cores + c
                if at[0] <= card_mib and at[1] <= _CORES:
                    longer[at] = max(longer.get(at, 0), value + price)
        held = []
        for (memory, cores), value in sorted(longer.items()):
            if not any(c <= cores and v >= value for _, c, v in held):
                held.append((memory, cores, value))
        best = max((best, *(value for _, _, value in held)))
    return best
