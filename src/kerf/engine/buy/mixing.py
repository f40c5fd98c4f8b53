"""Nodes for pods that are nearly all different, filled pod by pod on arrays.

The search for the best full node of all types pays where it can be bought many times. Where each is bought once, that
search costs nodes x types x shapes. So here a node gets its type first: the one that would serve most of what is left
for its price, if pods mixed perfectly. Then it is filled, each time with the pod that is largest in what the node has
most of left. What it holds then decides the type that is bought.

Pods that keep each other off make a certain number of nodes necessary. Then each node begins with one of them, and is
as large as it takes to share the rest evenly among these nodes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kerf.engine.buy.filling import Filler, Load, Purchase
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.wants import MOST_KEPT, Wants
from kerf.engine.place.shapes import UNCROWDED, Crowding
from kerf.engine.place.target import Room
from kerf.engine.supply.holding import Amounts, Bools
from kerf.engine.supply.offered import OfferedType
from kerf.model.quantities import CPU, MEMORY, Resources
from kerf.sharing.shown import NEURON_DEVICES

_MANY = 400
_SOME, _MANY_PAIRS = 50, 20_000
"""From so many shapes on nodes are filled so: from the first on in any case, from the second where with the types they
make so many pairs."""
_PART = 8
"""So great a part of what still fits of one shape is put onto a node at once."""
_FEW = 8
"""Up to so many sizes that are equally good are looked through one by one."""
_ROUNDING = 1e-6
_EQUAL = 1 + 1e-9
_NO_LIMIT = 1 << 40


def suits(filler: Filler, offered_types: Sequence[OfferedType], left: Sequence[int], ledger: Ledger) -> bool:
    """Whether pods are so different, and amounts, labels and each other all that decides where they fit."""
    numbers = np.flatnonzero(left).tolist()
    are_many = len(numbers) >= _MANY or (len(numbers) >= _SOME and len(numbers) * len(offered_types) >= _MANY_PAIRS)
    if not are_many or filler.keeps_choice or any(ledger.room_for(each) is not None for each in offered_types):
        return False
    shapes = [filler.shapes[number] for number in numbers]
    if any(shape.spec.host_ports or shape.crowding.daemons for shape in shapes):
        return False
    if any(name in shape.requests for shape in shapes for name in NEURON_DEVICES):
        # Types differ in what such a pod takes of them.
        return False
    filler.held(numbers)
    families = {(each.target.family.name, id(each.target.families)): each for each in offered_types}
    return not any(filler.recipe(number, each).asks_devices for each in families.values() for number in numbers)


def mixed(filler: Filler, offered_types: Sequence[OfferedType], left: Sequence[int]) -> Purchase:
    """Nodes for as many of the pods as some type holds. Cost: pods x shapes on arrays, and nodes x types."""
    return _Mixing(filler, offered_types, left).bought()


class _Company:
    """Who may be with whom on a node, by number of the kind of pods: see `Crowding`.

    Of each group only the kinds are kept that are in it or limit it: there may be as many groups as kinds.
    """

    def __init__(self, crowdings: Sequence[Crowding]) -> None:
        known = sorted({group for each in crowdings for group in _groups_of(each)})
        at = {group: number for number, group in enumerate(known)}
        self.groups = [[at[group] for group in each.groups] for each in crowdings]
        self.limits = [[(at[group], most) for group, most in each.most] for each in crowdings]
        members: list[list[int]] = [[] for _ in known]
        bounds: list[dict[int, int]] = [{} for _ in known]
        for number in range(len(crowdings)):
            for group in self.groups[number]:
                members[group].append(number)
            for group, limit in self.limits[number]:
                bounds[group][number] = limit
        self.apart, self.even = _Apart(crowdings, at), _Even(crowdings, at)
        self.members = [np.array(each, dtype=np.int64) for each in members]
        """By group the kinds that are in it."""
        self.bounding: list[Amounts] = [np.array(list(each), dtype=np.int64) for each in bounds]
        """By group the kinds that limit it."""
        # One more of a group must stay within its limit; who is in none only asks that the others do.
        self.below: list[Amounts] = [
            np.array([limit + (number not in held) for number, limit in each.items()], dtype=np.int64)
            for each, held in zip(bounds, map(frozenset, members), strict=True)
        ]
        """By group, for each of `bounding`, the count from which on none of the kind may come."""
        needing = [
            (group, number, 1.0 / max(1, each[number]))
            for group, (each, held) in enumerate(zip(bounds, members, strict=True))
            for number in held
            if number in each
        ]
        self._needing = tuple(map(np.array, zip(*needing, strict=True))) if needing else None

    def needed(self, pods: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """By group how many nodes so many pods of each kind need that are in it and limit it."""
        if self._needing is None:
            return np.zeros(len(self.members))
        groups, kinds, part = self._needing
        return np.bincount(groups, weights=part * pods[kinds], minlength=len(self.members)).astype(np.float64)

    def needing(self, group: int, kinds: int) -> Bools:
        """By kind whether such pods are in the group and limit it."""
        found = np.zeros(kinds, dtype=np.bool_)
        if self._needing is not None:
            found[self._needing[1][self._needing[0] == group]] = True
        return found


def _groups_of(crowding: Crowding) -> Iterator[int]:
    yield from crowding.groups
    yield from (group for group, _ in crowding.most)
    for group, less in crowding.apart:
        yield group
        yield from less
    for limit in crowding.even:
        yield from (limit.group, *limit.less, *limit.more)


class _Apart:
    """What kinds of pods keep off with exceptions, see `Crowding.apart`: a row for each kind and each such group."""

    def __init__(self, crowdings: Sequence[Crowding], at: Mapping[int, int]) -> None:
        rows = [(kind, *asked) for kind, each in enumerate(crowdings) for asked in each.apart]
        self.kinds: Amounts = np.array([kind for kind, _, _ in rows], dtype=np.int64)
        changes: dict[int, list[tuple[int, int]]] = {}
        for row, (_, group, less) in enumerate(rows):
            changes.setdefault(at[group], []).append((row, 1))
            for each in less:
                changes.setdefault(at[each], []).append((row, -1))
        self.changes = {group: np.array(found, dtype=np.int64).T for group, found in changes.items()}
        """By group the rows in which one pod more of it counts, and how."""


class _Even:
    """How many of some pods kinds let on a node with them, see `Crowding.even`: a row for each kind and each limit."""

    def __init__(self, crowdings: Sequence[Crowding], at: Mapping[int, int]) -> None:
        rows = [(kind, limit, each.own) for kind, each in enumerate(crowdings) for limit in each.even]
        self.kinds: Amounts = np.array([kind for kind, _, _ in rows], dtype=np.int64)
        self.most: Amounts = np.array([limit.most for _, limit, _ in rows], dtype=np.int64)
        # One that counts itself needs room for itself.
        self.below: Amounts = np.array([limit.most - limit.means(own) for _, limit, own in rows], dtype=np.int64)
        self.groups = [
            (at[limit.group], [at[each] for each in limit.less], [at[each] for each in limit.more])
            for _, limit, _ in rows
        ]
        self.of_kind: dict[int, list[int]] = {}
        changes: dict[int, list[tuple[int, int]]] = {}
        for row, (kind, (group, less, more)) in enumerate(zip(self.kinds.tolist(), self.groups, strict=True)):
            self.of_kind.setdefault(kind, []).append(row)
            for each in (group, *more):
                changes.setdefault(each, []).append((row, 1))
            for each in less:
                changes.setdefault(each, []).append((row, -1))
        self.changes = {group: np.array(found, dtype=np.int64).T for group, found in changes.items()}
        """By group the rows in which one pod more of it counts, and how."""


class _Guests:
    """The pods of one node by group, and by kind whether one more such pod may come."""

    def __init__(self, company: _Company, kinds: int) -> None:
        self._company, self.may_come = company, np.ones(kinds, dtype=np.bool_)
        self._counts, self._allowed = dict[int, int](), dict[int, int]()
        self._others: Amounts = np.zeros(len(company.apart.kinds), dtype=np.int64)
        """By row of `_Apart` the pods that keep its kind off."""
        self._counted: Amounts = np.zeros(len(company.even.kinds), dtype=np.int64)
        """By row of `_Even` the pods that it limits."""
        self._limiting: list[int] = []
        """The rows of pods that have come, whose limit is not reached."""

    def come(self, kind: int) -> None:
        """A pod has come. Cost: the kinds that are in its groups, or limit them."""
        company, counts, allowed, is_changed = self._company, self._counts, self._allowed, False
        even, is_counted = company.even, False
        for group in company.groups[kind]:
            count = counts[group] = counts.get(group, 0) + 1
            self.may_come[company.bounding[group][company.below[group] <= count]] = False
            if count >= allowed.get(group, _NO_LIMIT):
                self.may_come[company.members[group]] = False
            if group in company.apart.changes:
                rows, pods = company.apart.changes[group]
                np.add.at(self._others, rows, pods)
                is_changed = True
            if group in even.changes:
                rows, pods = even.changes[group]
                np.add.at(self._counted, rows, pods)
                is_counted = True
        if is_counted:
            self.may_come[even.kinds[self._counted > even.below]] = False
        self._limiting += even.of_kind.get(kind, ())
        for row in self._limiting if is_counted else ():
            if self._counted[row] >= even.most[row]:
                self.may_come[self._meant(row)] = False
        if self._limiting:
            self._limiting = [row for row in self._limiting if self._counted[row] < even.most[row]]
        if is_changed:
            self.may_come[company.apart.kinds[self._others > 0]] = False
        for group, most in company.limits[kind]:
            if most < allowed.get(group, _NO_LIMIT):
                allowed[group] = most
                if counts.get(group, 0) >= most:
                    self.may_come[company.members[group]] = False

    def _meant(self, row: int) -> Bools:
        """By kind whether such pods are among those that the row limits."""
        group, less, more = self._company.even.groups[row]
        found = np.zeros(len(self.may_come), dtype=np.bool_)
        found[self._company.members[group]] = True
        for each in less:
            found[self._company.members[each]] = False
        for each in more:
            found[self._company.members[each]] = True
        return found


@dataclass
class _Node:
    """A node that is being filled; `order` are positions of shapes with how many came."""

    row: int
    free: Amounts
    terms: int
    order: list[tuple[int, int]]


class _Sizes:
    """Positions of shapes by what one pod asks for: pods of one size fit alike, and differ in with whom and where."""

    def __init__(self, asked: Amounts, left: Amounts, kinds: Amounts) -> None:
        numbers: dict[bytes, int] = {}
        columns = np.ascontiguousarray(asked.T)
        self.of = np.array([numbers.setdefault(column.tobytes(), len(numbers)) for column in columns], dtype=np.int64)
        order, counts = np.argsort(self.of, kind="stable"), np.bincount(self.of, minlength=len(numbers))
        self._positions = np.split(order, np.cumsum(counts)[:-1])
        self._kinds = [kinds[each] for each in self._positions]
        self.asked = asked[:, [each[0] for each in self._positions]] if len(numbers) else asked
        self.cpu, self.memory = self.asked[:2].astype(np.float64)
        self.left = np.bincount(self.of, weights=left, minlength=len(numbers)).astype(np.int64)
        """By size the pods that are left."""

    def take(self, position: int, many: int, *, is_last: bool) -> None:
        """So many pods of a shape have a node; `is_last` says that none of the shape is left."""
        size = int(self.of[position])
        self.left[size] -= many
        if is_last:
            kept = self._positions[size] != position
            self._positions[size], self._kinds[size] = self._positions[size][kept], self._kinds[size][kept]

    def first(self, size: int, may_come: Bools, held: Bools) -> int | None:
        """The first position of a size with pods left whose kind may come and that is held; None for none."""
        positions = self._positions[size]
        if not len(positions):
            return None
        is_open = may_come[self._kinds[size]] & held[positions]
        at = is_open.argmax()
        return int(positions[at]) if is_open[at] else None


class _Mixing:
    def __init__(self, filler: Filler, offered_types: Sequence[OfferedType], left: Sequence[int]) -> None:
        self._filler = filler
        self._types = sorted(offered_types, key=lambda each: each.order)
        self._rows = filler.holding.rows(self._types)
        numbers = np.flatnonzero(left)
        held = filler.held(numbers.tolist())[np.ix_(self._rows, numbers)] > 0
        taken = held.any(axis=0)
        self._numbers, self._held = numbers[taken], held[:, taken]
        self._rest = np.array(left, dtype=np.int64)
        self._left = self._rest[self._numbers]
        shapes = [filler.shapes[number] for number in self._numbers.tolist()]
        names = {name for shape in shapes for name in shape.requests}
        self._names = [CPU, MEMORY, *sorted(names - {CPU, MEMORY})]
        self._asked = np.array(
            [[min(shape.requests.get(name, 0), _NO_LIMIT << 20) for shape in shapes] for name in self._names],
            dtype=np.int64,
        ).reshape(len(self._names), len(shapes))
        self._wanted: Amounts = (self._asked * self._left).sum(axis=1)
        self._caps = np.array([filler.holding.amounts(name)[self._rows] for name in self._names], dtype=np.int64)
        self._prices = np.array([each.price_micro for each in self._types], dtype=np.float64)
        self._amounts = self._caps.astype(np.float64)
        wants: dict[object, int] = {}
        kinds: dict[tuple[Crowding, int], int] = {}
        asking = [(shape.crowding, wants.setdefault(shape.spec.alternatives_new, len(wants))) for shape in shapes]
        self._kinds = np.array([kinds.setdefault(each, len(kinds)) for each in asking], dtype=np.int64)
        self._crowdings, self._wants = (
            [each for each, _ in kinds],
            np.array([want for _, want in kinds], dtype=np.int64),
        )
        firsts = {want: at for at, (_, want) in reversed(list(enumerate(asking)))}
        self._asking = Wants([shapes[firsts[want]] for want in range(len(wants))])
        self._company = _Company(self._crowdings)
        counts = np.bincount(self._kinds, weights=self._left, minlength=len(kinds))
        self._left_of_kind = counts.astype(np.float64)
        self._sizes = _Sizes(self._asked, self._left, self._kinds)
        self._may_come: dict[tuple[int, int], Bools] = {}

    def bought(self) -> Purchase:
        """The nodes; what is left are pods that no type takes."""
        purchase = Purchase()
        while self._left.any():
            purchase.loads.append((self._load(self._filled()), 1))
        self._rest[self._numbers] = 0
        purchase.left = self._rest.tolist()
        return purchase

    def _filled(self) -> _Node:
        """The next node, full."""
        seed, nodes = self._seed()
        at = self._type_for(seed, nodes)
        node = _Node(at, self._caps[:, at].copy(), self._filler.first_terms(int(self._rows[at])), [])
        guests, held, sizes = _Guests(self._company, len(self._crowdings)), self._held[at], self._sizes
        weights = 1.0 / np.maximum(1, self._caps[:2, at]).astype(np.float64) ** 2
        able, pick = np.flatnonzero(sizes.left), seed
        while True:
            terms = node.terms
            self._take(node, pick)
            guests.come(int(self._kinds[pick]))
            if node.terms != terms or len(node.order) == 1:
                guests.may_come &= self._agreeing(node)
            able = able[self._fits(node, able)]
            scale = node.free[:2] * weights
            scores = sizes.cpu[able] * scale[0] + sizes.memory[able] * scale[1]
            found, able = self._largest(able, scores, guests.may_come, held)
            if found is None:
                return node
            pick = found

    def _largest(
        self, able: Amounts, scores: npt.NDArray[np.float64], may_come: Bools, held: Bools
    ) -> tuple[int | None, Amounts]:
        """The position with the highest score of its size, of equals the first, and the sizes that are able.

        None where no shape of these sizes may come. Cost: sizes and the positions of a few; all positions where these
        have none that may, or many are equally good.
        """
        for _ in range(_FEW):
            if not len(able):
                return None, able
            is_best = scores == scores[scores.argmax()]
            best = able[is_best]
            if len(best) > _FEW:
                break
            firsts = [self._sizes.first(size, may_come, held) for size in best.tolist()]
            found = min((position for position in firsts if position is not None), default=None)
            if found is not None:
                return found, able
            able, scores = able[~is_best], scores[~is_best]
        return self._largest_of_all(able, scores, (self._left > 0) & may_come[self._kinds] & held)

    def _largest_of_all(
        self, able: Amounts, scores: npt.NDArray[np.float64], is_open: Bools
    ) -> tuple[int | None, Amounts]:
        """The same by position, of those that are open."""
        chosen = np.zeros(len(self._sizes.left), dtype=np.bool_)
        chosen[self._sizes.of[is_open]] = True
        able, scores = able[chosen[able]], scores[chosen[able]]
        if not len(able):
            return None, able
        chosen[:] = False
        chosen[able[scores == scores.max()]] = True
        return int((is_open & chosen[self._sizes.of]).argmax()), able

    def _fits(self, node: _Node, able: Amounts) -> Bools:
        found: Bools = self._sizes.left[able] > 0
        for amounts, free in zip(self._sizes.asked, node.free.tolist(), strict=True):
            found &= amounts[able] <= free
        return found

    def _take(self, node: _Node, pick: int) -> None:
        kind, asked, left, many = int(self._kinds[pick]), self._asked[:, pick], int(self._left[pick]), 1
        if self._crowdings[kind] is UNCROWDED:
            needed = asked > 0
            fitting = int((node.free[needed] // asked[needed]).min(initial=left))
            many = max(1, min(fitting, left) // _PART)
        terms = self._terms_of(node, pick)
        assert terms is not None
        node.terms = terms
        taken = asked * many
        node.free -= taken
        self._wanted -= taken
        self._left[pick] = left - many
        self._left_of_kind[kind] -= many
        self._sizes.take(pick, many, is_last=left == many)
        node.order.append((pick, many))

    def _agreeing(self, node: _Node) -> Bools:
        """By kind whether the labels of such pods agree with those of the node so far."""
        key = node.row, node.terms
        if key not in self._may_come:
            if len(self._may_come) >= MOST_KEPT:
                self._may_come.clear()
            terms = self._filler.terms(node.terms)
            self._may_come[key] = self._asking.agreeing(node.row, self._types[node.row], terms)[self._wants]
        return self._may_come[key]

    def _terms_of(self, node: _Node, position: int) -> int | None:
        """What the node asks for with one pod of the shape more; None where they do not agree."""
        number, offered = int(self._numbers[position]), self._types[node.row]
        return self._filler.agreed(int(self._rows[node.row]), node.terms, number, self._filler.recipe(number, offered))

    def _seed(self) -> tuple[int, int]:
        """The pod to begin with, and among how many nodes the rest must be shared; 0 for any number."""
        may_come, nodes = np.ones(len(self._crowdings), dtype=np.bool_), 0
        if len(self._company.members):
            needed = self._company.needed(self._left_of_kind)
            group = int(needed.argmax())
            nodes = int(np.ceil(needed[group] - _ROUNDING))
            may_come = self._company.needing(group, len(may_come)) if nodes else may_come
        cpu, memory = np.maximum(1, self._wanted[:2]).astype(np.float64)
        able = np.flatnonzero(self._sizes.left)
        scores = self._sizes.cpu[able] / cpu + self._sizes.memory[able] / memory
        seed, _ = self._largest(able, scores, may_come, np.ones(len(self._left), dtype=np.bool_))
        assert seed is not None
        return seed, nodes

    def _type_for(self, seed: int, nodes: int) -> int:
        """The type for a node with the pod, by position."""
        able = np.flatnonzero(self._held[:, seed])
        part = np.ones(len(able), dtype=np.float64)
        for amounts, wanted in zip(self._amounts, self._wanted.tolist(), strict=True):
            if wanted > 0:
                np.minimum(part, amounts[able] / wanted, out=part)
        rates = self._prices[able] / np.maximum(part, 1e-12)
        # Of equals the largest: fewer nodes.
        best = int(able[rates <= rates.min() * _EQUAL][-1])
        if not nodes:
            return best
        share = np.maximum(-(-self._wanted // nodes), self._asked[:, seed])
        large = able[(self._caps[:, able] >= share[:, None]).all(axis=0)]
        # No larger than it must be, and no larger than is worth its price.
        return int(large[0]) if len(large) and (self._caps[:, large[0]] <= self._caps[:, best]).all() else best

    def _load(self, node: _Node) -> Load:
        """The node as the cheapest type of its pool that holds what is there."""
        used = self._caps[:, node.row] - node.free
        chosen, offered = node, self._types[node.row]
        for at in np.flatnonzero((self._caps[:, : node.row] >= used[:, None]).all(axis=0)).tolist():
            other = self._types[at]
            if other.pool.name != offered.pool.name or other.reservation != offered.reservation:
                continue
            terms = self._terms_with(at, node)
            if terms is not None:
                chosen, offered = _Node(at, self._caps[:, at] - used, terms, node.order), other
                break
        requirements = self._filler.terms(chosen.terms)
        offering = offered.offering_for(requirements)
        assert offering is not None
        counts: dict[int, int] = {}
        for position, many in node.order:
            number = int(self._numbers[position])
            counts[number] = counts.get(number, 0) + many
        held = tuple(sorted(counts.items()))
        shapes, counting = self._filler.shapes, offered.target.counting
        asked = Resources.total((shapes[number].counted(counting), count) for number, count in held)
        devices = self._filler.holding.cards.devices(self._filler.holding.start(int(self._rows[chosen.row])))
        room = Room(offered.room.free - asked, devices, offered.room.ports, requirements)
        slices = {number: ((),) * count for number, count in held}
        return Load(offered, len(shapes), held, slices, room, offering, tuple(counts.items()))

    def _terms_with(self, at: int, node: _Node) -> int | None:
        """What a node of another type would ask for with the same pods; None where it cannot have them."""
        other = _Node(at, node.free, self._filler.first_terms(int(self._rows[at])), [])
        for position in dict.fromkeys(position for position, _ in node.order):
            terms = self._terms_of(other, position)
            if terms is None or not self._held[at, position]:
                return None
            other.terms = terms
        return other.terms
