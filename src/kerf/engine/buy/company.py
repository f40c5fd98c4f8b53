"""Nodes for pods that must share one: affinity that goes by `kubernetes.io/hostname`.

Such pods are bought for before all others, one node after the other. Each begins with a pod that seeks no other, then
come those that may be with it, those that may be with these, and so on, as many as it holds. Pods that may only be with
each other get one node, because the scheduler puts no second one of them anywhere else. What room is left on a node
goes to other pods.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from kerf.engine.buy.colocated import Colocated, Colocation
from kerf.engine.buy.filling import Filler, Load, Purchase
from kerf.engine.buy.flexibility import asks
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.spreading import Unassigned
from kerf.engine.place.checks import Sharing, Together
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.holding import Amounts, Holding
from kerf.engine.supply.offered import OfferedType
from kerf.model.causes import Cause, Name
from kerf.model.constraints import HOSTNAME, Requirements
from kerf.model.plan import Stage
from kerf.model.topology import NoRoomBeside, NotNear


@dataclass
class Shared:
    """The nodes, what is left of the shapes for others to buy for, and the pods that found no room beside others.

    These are by the number of their shape.
    """

    purchase: Purchase
    kept: dict[int, Unassigned] = field(default_factory=dict)


def shared_nodes(
    groups: Sequence[Colocated],
    shapes: Sequence[Shape],
    offered_types: Sequence[OfferedType],
    ledger: Ledger,
    holding: Holding,
    urgent: frozenset[int] | None = None,
) -> Shared:
    """Nodes for pods that must share them; charges `ledger`. Cost: nodes times types.

    Which pod comes first to a node, and so who can follow it there, is chosen so that few nodes are bought. That can
    leave some without room. With `urgent`, which are numbers of such, a pod that may come without company begins a node
    of its own in its turn, and the urgent ones follow before others.
    """
    found = Shared(Purchase(left=[len(shape) for shape in shapes]))
    filler = Filler(shapes, holding, keeps_choice=any(map(asks, offered_types)))
    others = np.array(found.purchase.left, dtype=np.int64)
    apart = list({number for group in groups for number in group.members})
    others[apart] = 0
    for group in groups:
        sharing = _Sharing(group, filler, offered_types, found.purchase.left, ledger, urgent)
        for load in sharing.loads():
            load = _filled_up(filler, load, others)
            found.purchase.loads.append((load, 1))
            ledger.charge(load.offered.pool.name, load.charge)
            for number, count in load.held:
                found.purchase.left[number] -= count
                others[number] = max(0, others[number] - count)
        for number, kept in sharing.kept():
            found.kept[number] = kept
            found.purchase.left[number] = 0
    return found


def _filled_up(filler: Filler, load: Load, others: Amounts) -> Load:
    """The same with as many others as have room beside the pods that it has."""
    counts = load.amounts
    fuller = filler.fill_in_turns(load.offered, counts + others, np.where(counts > 0, 0, 1))
    if fuller is None:
        return load
    held = dict(fuller.held)
    if any(held.get(number, 0) < count for number, count in load.held):
        return load
    return fuller


class _Sharing:
    """One group, node by node; `left` are the pods of each shape that have none, which the caller counts down."""

    def __init__(
        self,
        group: Colocated,
        filler: Filler,
        offered_types: Sequence[OfferedType],
        left: Sequence[int],
        ledger: Ledger,
        urgent: frozenset[int] | None,
    ) -> None:
        self._urgent, self._begins_apart = urgent or frozenset[int](), urgent is not None
        self._group, self._filler, self._offered_types = group, filler, offered_types
        self._left, self._ledger = left, ledger
        self._bought: dict[int, int] = {}
        """Pods by number of the shape that have a node."""
        self._there: set[int] = set()
        """The companies, by their numbers in the group, of which a pod has a node."""

    def loads(self) -> Iterator[Load]:
        """The nodes. Each has been counted before the next one is asked for."""
        for number in self._group.members:
            if not self._group.seeking.get(number):
                yield from self._around(number)
            elif self._begins_apart and self._comes_first(number):
                yield from self._noted(self._best([number], self._left))
        alike: dict[tuple[int, ...], list[int]] = {}
        for number, sought in self._group.seeking.items():
            alike.setdefault(sought, []).append(number)
        for numbers in alike.values():
            first = [number for number in numbers if self._left[number] and self._may_begin(number)]
            if first:
                yield from self._noted(self._best(first, self._left))

    def _around(self, number: int) -> Iterator[Load]:
        """Nodes that begin with one pod of the shape, as long as some have room beside it for one that seeks it."""
        while self._left[number]:
            left = list(self._left)
            left[number] = 1
            load = self._best([number], left)
            if load is None:
                break
            shared = self._shares(left)
            if shared != left and self._seekers(load) < sum(left[number] for number in self._group.seeking):
                # Those in the middle of a chain must not all go to the first node: others seek them on each.
                other = self._best([number], shared)
                if other is not None and self._seekers(other) >= self._seekers(load):
                    load = other
            yield from self._noted(load)

    def _shares(self, left: Sequence[int]) -> list[int]:
        """The same with no more of those that are sought and seek others than come to each of the nodes to be."""
        seeking, found = self._group.seeking, list(left)
        nodes = max(1, sum(self._left[number] for number in self._group.members if number not in seeking))
        for number in seeking:
            if number in self._group.counted:
                found[number] = -(-left[number] // nodes)
        return found

    def _seekers(self, load: Load) -> int:
        return sum(count for number, count in load.held if number in self._group.seeking)

    def _noted(self, load: Load | None) -> Iterator[Load]:
        if load is not None:
            for number, count in load.held:
                self._bought[number] = self._bought.get(number, 0) + count
                self._there.update(self._group.counted.get(number, ()))
            yield load

    def _may_begin(self, number: int) -> bool:
        """Whether a pod of the shape may come without company: it is its own, and no other is there or comes before."""
        counted, sought = self._group.counted.get(number, ()), self._group.seeking[number]
        companies = self._group.companies
        is_own = all(
            companies[each].is_open and each in counted and companies[each].is_for(number, number) for each in sought
        )
        return is_own and (self._comes_first(number) or not any(map(self._will_be, sought)))

    def _will_be(self, company: int) -> bool:
        """Whether a pod of the company has a node, or gets one without those that seek it."""
        if company in self._there:
            return True
        alone = (each for each in self._group.companies[company].sought if each not in self._group.seeking)
        return any(self._left[each] and self._has_type(each) for each in alone)

    def _comes_first(self, number: int) -> bool:
        """Whether a pod of the shape that has no node comes before all others of the companies that it seeks."""
        if self._bought.get(number):
            return False
        return all(self._group.opening.get(each) == number for each in self._group.seeking[number])

    def _best(self, first: Sequence[int], left: Sequence[int]) -> Load | None:
        """The node that holds most of the pods, then that of the heaviest pool, then a reserved one, then the cheapest.

        None where no node holds one of those that seek others.
        """
        turns = self._group.following(first, left)
        asked, order = np.zeros(len(left), dtype=np.int64), np.zeros(len(left), dtype=np.int64)
        for number, turn in turns.items():
            asked[number], order[number] = left[number], 2 * turn + (number not in self._urgent)
        if all(number not in self._group.seeking for number in turns):
            return None
        best: tuple[tuple[int, int, int, bool, int, str, str], Load] | None = None
        for offered in self._offered_types:
            load = self._together(offered, asked, order, first) if self._ledger.room_for(offered) != 0 else None
            if load is None or self._ledger.room_for(offered, load.charge) == 0:
                continue
            held = self._seekers(load)
            names = offered.pool.name, offered.kind.name
            urgent = sum(count for number, count in load.held if number in self._urgent)
            key = (-urgent, -held, -offered.pool.weight, not offered.reservation, load.offering.price_micro, *names)
            if held and (best is None or key < best[0]):
                best = key, load
        return None if best is None else best[1]

    def _together(self, offered: OfferedType, asked: Amounts, turns: Amounts, first: Sequence[int]) -> Load | None:
        """As many of the pods as one node holds without one that lacks company there."""
        while (load := self._filler.fill_in_turns(offered, asked, turns)) is not None:
            counts = load.counts
            reached = self._group.following([number for number in first if counts[number]], counts)
            lonely = [number for number, _ in load.held if number not in reached]
            if not lonely:
                break
            asked = asked.copy()
            asked[lonely] = 0
        return load

    def kept(self) -> Iterator[tuple[int, Unassigned]]:
        """The pods that no other node may have, by the number of their shape, each with why.

        What no node could be bought for even alone is left out: the search says why.
        """
        companies = self._group.companies
        absent = [company if self._is_absent(at, company) else None for at, company in enumerate(companies)]
        for number, sought in self._group.seeking.items():
            shape, left = self._filler.shapes[number], self._left[number]
            if not left or not (self._bought or self._has_type(number)) or self._may_begin(number):
                continue
            lacking = next((company for each in sought if (company := absent[each]) is not None), None)
            if lacking is None or isinstance(lacking.check, Sharing):
                cause = self._no_room(lacking or companies[sought[0]], number)
            else:
                cause = _not_near(lacking.check_of(number))
            yield number, Unassigned(shape.pods[len(shape) - left :], Stage.AFFINITY, cause)

    def _is_absent(self, at: int, company: Colocation) -> bool:
        """Whether none of those that are sought has a node, and each seeks others to get one."""
        seeking = self._group.seeking
        return at not in self._there and not any(self._left[each] and each not in seeking for each in company.sought)

    def _has_type(self, number: int) -> bool:
        """Whether a node could be bought for a pod of the shape if it sought no other."""
        types = (each for each in self._offered_types if self._filler.alone(number, each))
        return any(self._ledger.room_for(each) != 0 for each in types)

    def _no_room(self, company: Colocation, number: int) -> Cause:
        mine = sum(self._bought.get(number, 0) for number in company.seekers)
        claim = company.check.claim if isinstance(company.check, Sharing) else Name("")
        return NoRoomBeside(*_meant(company.check_of(number)), mine or sum(self._bought.values()), claim)


def _not_near(check: Together) -> Cause:
    return NotNear(Name(HOSTNAME), Name(""), *_meant(check))


def _meant(check: Together) -> tuple[Requirements, tuple[Name, ...]]:
    """The pods that are sought: their labels, and their namespaces where those are listed."""
    reach = next(reach for key, reach in zip(check.keys, check.reaches, strict=True) if key == HOSTNAME)
    return reach.selector, () if reach.namespace_selector is not None else tuple(map(Name, sorted(reach.namespaces)))


def rest(shapes: Sequence[Shape], bought: Purchase) -> tuple[tuple[int, ...], Amounts]:
    """Numbers of the shapes of which some pods are left to buy for, and how many the purchase took of each shape."""
    taken = np.zeros(len(shapes), dtype=np.int64)
    for load, times in bought.loads:
        for number, count in load.held:
            taken[number] += count * times
    return tuple(n for n, left in enumerate(bought.left) if left), taken
