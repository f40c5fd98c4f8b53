"""Which pods get the nodes that limits allow: as many as can, those of higher priority first.

A search for the cheapest nodes takes a pod for as much as its nodes cost, so where a limit leaves pods over it serves
the most expensive. Here each pod counts as one. Nodes are bought that serve most for what they take of the limits,
filled in several orders, and once more by prices where a pod without a node costs more than any node.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np

from kerf.engine.buy.columngeneration import MOST_ROUNDS
from kerf.engine.buy.dominance import undominated
from kerf.engine.buy.dot import dot
from kerf.engine.buy.filling import Filler, Load, Purchase
from kerf.engine.buy.fullnodes import MARGIN, Fill, FillRule, cheapest_per_value, full_nodes, fullest
from kerf.engine.buy.limits import Ledger
from kerf.engine.buy.priced import most_served
from kerf.engine.buy.relaxation import Floats
from kerf.engine.place.shapes import Shape
from kerf.engine.supply.holding import Amounts
from kerf.engine.supply.offered import OfferedType
from kerf.model.quantities import CPU, MEMORY

_Level = tuple[int, int, int]
Unserved = list[tuple[_Level, int]]
_Sizes = Callable[[int], tuple[Amounts | Floats, ...]]
"""By row of a type how large a pod of each shape is, then how large of those that are equal so."""
_STEP = 1 << 10
"""What a pod counts beside one that comes after it."""
_MOST_STEPS = 4
"""How often it is asked for the pods of which priority the limits bind."""
_FEWEST_TRIES, _MOST_WORK, _A_FILL, _ENTRIES = 2, 300_000, 200, 100
"""So many ways to fill nodes are tried in any case, and others up to so much work, a unit about a microsecond: so much
for each node that is filled, bought or not, and for each that is another than the last one for so many entries of a
table of types and shapes."""
_SHARES = 1 << 30
_NEVER = 20.0
"""What a pod without a node costs, in the highest price of a node; those before others so many times as much."""


def unserved(shapes: Sequence[Shape], left: Sequence[int], later: Sequence[int] = ()) -> Unserved:
    """Sort key of a purchase by the pods that it leaves, the best first: of each level how many, the highest first.

    A level is a priority, that of an open window before that of the pod; shapes that come `later` are below all others.
    The same order as `precedence.importance`. Cost: shapes, and the pods that are left of those that a window splits.
    """
    found: Counter[_Level] = Counter()
    for number, (shape, count) in enumerate(zip(shapes, left, strict=True)):
        if not count:
            continue
        turn, pods = -later[number] if later else 0, shape.pods[len(shape) - count :]
        if pods[0].queue_priority == pods[-1].queue_priority:
            found[turn, pods[0].queue_priority, pods[0].spec.priority] += count
        else:
            found.update((turn, pod.queue_priority, pod.spec.priority) for pod in pods)
    return sorted(found.items(), reverse=True)


def is_limited(filler: Filler, offered_types: Sequence[OfferedType], left: Sequence[int], ledger: Ledger) -> bool:
    """Whether limits are why pods are left: some type holds one of them, and not any number of nodes may be bought."""
    numbers = np.flatnonzero(left)
    if not len(numbers) or all(ledger.room_for(each) is None for each in offered_types):
        return False
    return bool(filler.held_by(offered_types, numbers).any())


def served(
    filler: Filler,
    tier: Sequence[OfferedType],
    left: Sequence[int],
    ledger: Ledger,
    later: Sequence[int],
    rounds: int,
) -> Purchase:
    """Nodes among types of one weight for as many of the pods as limits allow; the ledger stays as it is.

    `later` is by shape 1 where pods of others come first whatever their priority, else 0. Cost: some ways to fill nodes
    (`_MOST_WORK`, less where prices have few `rounds`), and once that of prices.
    """
    useful = undominated(filler, tier, left, ledger)
    if not useful:
        return Purchase(left=list(left))
    return _Serving(filler, useful, left, ledger, later, rounds).best()


class _Serving:
    """Nodes for pods of which limits leave some over."""

    def __init__(
        self,
        filler: Filler,
        useful: Sequence[OfferedType],
        left: Sequence[int],
        ledger: Ledger,
        later: Sequence[int],
        rounds: int,
    ) -> None:
        self._rounds, self._most_work = rounds, _MOST_WORK * min(rounds, MOST_ROUNDS) // MOST_ROUNDS
        self._filler, self._useful, self._left, self._ledger, self._later = filler, useful, left, ledger, later
        firsts = [(-later[number], *_level(shape)) for number, shape in enumerate(filler.shapes)]
        order = {level: at for at, level in enumerate(sorted(set(firsts), reverse=True))}
        self._turn: Amounts = np.array([order[level] for level in firsts], dtype=np.int64)
        """By shape the turn of its level, the highest first."""
        self._held = filler.held(range(len(filler.shapes)))
        self._can = filler.held_by(useful, np.arange(len(filler.shapes))).any(axis=0)
        self._shares = [self._share(offered) for offered in useful]
        self._work = 0
        self._turns: dict[tuple[int, int], Amounts] = {}
        """By order and row."""

    def best(self) -> Purchase:
        """The purchase that serves most, and of those the cheapest."""
        best, binding = None, int(self._turn[np.flatnonzero(self._left)].min())
        for _ in range(_MOST_STEPS):
            tries = self._full(binding)
            best = min([*([best] if best else []), *tries], key=self._rank)
            more = self._binding(best)
            if more is None or more <= binding:
                break
            binding = more
        assert best is not None
        if self._binding(best) is None:
            return best
        return min([best, self._by_prices(binding)], key=self._rank)

    def _rank(self, purchase: Purchase) -> tuple[Unserved, tuple[int, int, int]]:
        return unserved(self._filler.shapes, purchase.left, self._later), purchase.rank

    def _binding(self, purchase: Purchase) -> int | None:
        """The turn of the first level of which pods are left that some type holds; None where there are none."""
        short = np.flatnonzero((np.array(purchase.left) > 0) & self._can)
        return int(self._turn[short].min()) if len(short) else None

    def _weights(self, binding: int) -> Amounts:
        """By shape what a pod counts: those before the level that limits bind for more, those after it less."""
        found: Amounts = np.array([_STEP * _STEP, _STEP, 1])[1 + np.sign(self._turn - binding)]
        return found

    def _full(self, binding: int) -> list[Purchase]:
        """Full nodes, in each order that serves the levels in turn; the largest first; of one type alone.

        The first orders are those that mostly serve most; after them as many more as the work allows.
        """
        values = np.where(self._can, self._weights(binding), 0)
        asked, found = values.tolist(), list[Purchase]()

        def tried(types: Sequence[OfferedType], rule: FillRule) -> None:
            if self._work >= self._most_work and len(found) >= _FEWEST_TRIES:
                return
            made = full_nodes(self._filler, types, asked, self._left, self._ledger, rule)
            self._work += (len(made.loads) + 1) * (len(types) * len(asked) // _ENTRIES)
            found.append(made)

        ways: list[Fill] = [self._filler.fill, *(partial(self._in_turns, sizes) for sizes in self._orders)]
        fills = [partial(self._filled, way) for way in ways]
        for prefer, costs in ((cheapest_per_value, self._shares), (fullest, ())):
            for fill in fills:
                tried(self._useful, FillRule(prefer, fill, costs))
        least = max(int(dot(values, np.array(self._left) - purchase.left)) for purchase in found)
        used = {id(load.offered): load.offered for purchase in found for load, _ in purchase.loads}
        for only in used.values():
            if self._work < self._most_work and self._most_value(only, values) >= least:
                for fill in fills:
                    tried([only], FillRule(cheapest_per_value, fill))
        return found

    def _filled(self, fill: Fill, offered: OfferedType, asked: Amounts) -> Load | None:
        self._work += _A_FILL
        return fill(offered, asked)

    def _most_value(self, offered: OfferedType, values: Amounts) -> float:
        """What pods count at most that nodes of the type alone serve: cut to all its cpu, to all its memory."""
        row, nodes = self._filler.holding.row(offered), self._ledger.room_for(offered)
        pods = np.where(self._held[row] > 0, np.array(self._left), 0)
        most = float(dot(values, pods))
        for name in (CPU, MEMORY) if nodes is not None else ():
            size = self._filler.asked(name).astype(np.float64)
            order = np.lexsort((-values, size / np.maximum(values, 1)))
            has = float(self._filler.holding.amounts(name)[row]) * (nodes or 0)
            before = np.cumsum((size * pods)[order]) - (size * pods)[order]
            each = np.minimum(pods[order], np.maximum(0.0, has - before) / np.maximum(size[order], 1))
            most = min(most, MARGIN * float(dot(np.where(size[order] > 0, each, pods[order]), values[order])))
        return most

    def _in_turns(self, sizes: _Sizes, offered: OfferedType, asked: Amounts) -> Load | None:
        """A node with pods of the highest level, the smallest first, then with those of the next."""
        row = self._filler.holding.row(offered)
        key = id(sizes), row
        if key not in self._turns:
            turns = np.empty(len(asked), dtype=np.int64)
            turns[np.lexsort((*sizes(row)[::-1], self._turn))] = np.arange(len(asked))
            self._turns[key] = turns
        return self._filler.fill_in_turns(offered, asked, self._turns[key])

    @cached_property
    def _orders(self) -> tuple[_Sizes, ...]:
        """How large pods are: by how many a node holds, by the parts of it that they take, by cpu, memory, cards.

        Then as if the largest were the smallest, and as if all were equal: then they come in queue order.
        """
        cpu, memory = self._filler.asked(CPU), self._filler.asked(MEMORY)
        return (
            lambda row: (-self._held[row], self._parts(row)),
            lambda row: (self._parts(row),),
            lambda _: (cpu, memory),
            lambda _: (memory, cpu),
            lambda row: (self._of_cards(row), self._parts(row)),
            lambda row: (-self._of_cards(row), self._parts(row)),
            lambda row: (-self._parts(row),),
            lambda _: (),
        )

    def _parts(self, row: int) -> Floats:
        """By shape what parts a pod takes of cpu, of memory, and of the cards of a node of the type, in sum."""
        amounts, found = self._filler.holding.amounts, self._of_cards(row)
        for name in (CPU, MEMORY):
            found = found + self._filler.asked(name) / max(1, int(amounts(name)[row]))
        return found

    def _of_cards(self, row: int) -> Floats:
        """By shape what part a pod takes of the memory of the cards of an empty node of the type."""
        filler, offered = self._filler, self._filler.holding.types[row]
        start, found = filler.holding.start(row), np.zeros(len(filler.shapes))
        whole = max(1, sum(device.memory_mib for device in offered.room.devices))
        for number in np.flatnonzero(self._held[row]).tolist() if offered.room.devices else ():
            recipe = filler.recipe(number, offered)
            if recipe.asks_devices:
                after = filler.holding.cards.after(start, recipe.kind, filler.shapes[number], offered)
                found[number] = sum(each.memory_mib for each in after[1]) / whole if after is not None else 0.0
        return found

    def _by_prices(self, binding: int) -> Purchase:
        """Nodes that prices choose, and full nodes in what limits leave."""
        highest = max(max(each.price_micro for each in offered.offerings) for offered in self._useful)
        weights = self._weights(binding)
        cost = float(highest) * _NEVER ** np.sign(weights // _STEP).astype(np.float64)
        cost[weights > _STEP] *= _NEVER
        purchase = most_served(self._filler, self._useful, self._left, self._ledger, cost, most_rounds=self._rounds)
        spent = self._ledger.copy()
        for load, times in purchase.loads:
            spent.charge(load.offered.pool.name, load.charge, times)
        values = np.where(self._can, weights, 0).tolist()
        fill = partial(self._in_turns, self._orders[0])
        rest = full_nodes(
            self._filler, self._useful, values, purchase.left, spent, FillRule(cheapest_per_value, fill, self._shares)
        )
        return Purchase([*purchase.loads, *rest.loads], rest.left)

    def _share(self, offered: OfferedType) -> int:
        """The largest part that a node takes of what a limit has left."""
        taken = [amount * _SHARES // max(1, left) for amount, left in self._ledger.left_for(offered).values()]
        return max(taken, default=0)


def _level(shape: Shape) -> tuple[int, int]:
    return shape.pod.queue_priority, shape.spec.priority
