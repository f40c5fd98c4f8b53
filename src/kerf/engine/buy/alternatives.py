"""Other types on which the pods of a planned node run as well, so a sold-out type stops no pod."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kerf.engine.buy.filling import Filler, Load, charge
from kerf.engine.buy.limits import Ledger
from kerf.engine.supply.caps import leaks, within_cap
from kerf.engine.supply.holding import Amounts, measured
from kerf.engine.supply.offered import OfferedType, Supply
from kerf.model.quantities import COST_PER_HOUR, Resources

MOST_ALTERNATIVES = 59
"""With the planned type 60: as many as Karpenter's AWS provider sends with one launch."""

_Found = tuple[tuple[str, ...], Resources]
_UNLIMITED = Ledger((), {})


class Others:
    """The alternatives of loads. What does not depend on how full a node is, is asked once for all that are alike."""

    def __init__(self, filler: Filler, supply: Supply, ledger: Ledger) -> None:
        self._filler, self._supply, self._ledger = filler, supply, ledger
        self._has: dict[tuple[str, str], Amounts] = {}
        self._is_alike: dict[str, bool] = {}
        self._rows: dict[str, Amounts] = {}
        self._places: dict[str, dict[str, int]] = {}
        self._stand_in: dict[tuple[object, ...], tuple[Load, npt.NDArray[np.bool_]]] = {}
        self._sold: dict[tuple[int, int, int], tuple[Load, npt.NDArray[np.bool_]]] = {}
        self._chosen: dict[tuple[int, int, int, bytes], tuple[Load, _Found]] = {}

    def of(self, load: Load, times: int) -> _Found:
        """Other types of the pool that hold the same pods on as many cards, cheapest first, as far as limits allow.

        Also what the largest of them adds to a node's charge. The limits are charged with it, because the cloud may
        take any of them, and none must break a limit. Cost: types, and where amounts alone decide only on arrays.
        """
        pool = load.offered.pool.name
        found = self._without_limits(load)
        if not _still_within(self._ledger, load.offered, found[1] * times):
            found = self._one_by_one(load, times, self._ledger)
        if self._ledger.limit(pool) is not None:
            self._ledger.keep_free(pool, found[1], times)
        return found

    def _without_limits(self, load: Load) -> _Found:
        """The same if there were no limits: then they follow from the node and from what the pool is offered."""
        if load.findings is None or load.needed:
            return self._found(load)
        question = "alternatives", self._rows_of(load.offered.pool.name).tobytes()
        if question not in load.findings:
            load.findings[question] = self._found(load)
        found: _Found = load.findings[question]
        return found

    def _found(self, load: Load) -> _Found:
        return self._by_amounts(load) if self._is_simple(load) else self._one_by_one(load, 1, _UNLIMITED)

    def _is_simple(self, load: Load) -> bool:
        """Whether amounts and labels decide alone."""
        chosen, filler = load.offered, self._filler
        if not self._are_alike(chosen.pool.name) or load.needed:
            return False
        filler.held(number for number, _ in load.held)
        return not any(
            filler.recipe(number, chosen).asks_devices
            or filler.shapes[number].spec.host_ports
            or filler.shapes[number].crowding.daemons
            for number, _ in load.held
        )

    def _are_alike(self, pool: str) -> bool:
        """Whether sums over a node decide of the same resources for all types of the pool."""
        if pool not in self._is_alike:
            self._is_alike[pool] = len({each.target.counting for each in self._supply.by_pool[pool]}) == 1
        return self._is_alike[pool]

    def _by_amounts(self, load: Load) -> _Found:
        chosen = load.offered
        others = self._supply.by_pool[chosen.pool.name]
        able = self._standing_in(load, others)
        for name, amount in (chosen.room.free - load.room.free).items():
            if amount > 0:
                able = able & (self._amounts(chosen.pool.name, name) >= measured({name: amount}, name))
        # What is counted of a limited cost depends on the zones.
        terms = id(load.room.requirements) if COST_PER_HOUR in chosen.capacity else 0
        key = id(chosen), id(load.offering), terms, able.tobytes()
        if key not in self._chosen:
            # The load is kept, so no other can get the id of what it has.
            self._chosen[key] = load, self._named(load, [others[at] for at in np.flatnonzero(able).tolist()])
        return self._chosen[key][1]

    def _amounts(self, pool: str, name: str) -> Amounts:
        """By type of the pool, what an empty node has of a resource."""
        if (pool, name) not in self._has:
            self._has[pool, name] = self._filler.holding.amounts(name)[self._rows_of(pool)]
        return self._has[pool, name]

    def _rows_of(self, pool: str) -> Amounts:
        """The rows of all types of the pool."""
        if pool not in self._rows:
            self._rows[pool] = self._filler.holding.rows(self._supply.by_pool[pool])
        return self._rows[pool]

    def _named(self, load: Load, able: Sequence[OfferedType]) -> _Found:
        names, extra = set[str](), Resources()
        for other in able:
            if len(names) == MOST_ALTERNATIVES:
                break
            if other.kind.name not in names:
                names.add(other.kind.name)
                extra = positive(charge(other, load.offering, load.room.requirements) - load.charge).largest(extra)
        return self._in_order(load.offered.pool.name, names), extra

    def _standing_in(self, load: Load, others: Sequence[OfferedType]) -> npt.NDArray[np.bool_]:
        """By type of the pool, whether it may stand in for the load's if it is large enough for it."""
        chosen, filler = load.offered, self._filler
        recipes = [(number, filler.recipe(number, chosen)) for number, _ in load.held]
        wants = {recipe.want: number for number, recipe in recipes}
        kinds = {recipe.kind: number for number, recipe in recipes}
        same = id(chosen), load.offering.capacity_type, id(load.room.requirements)
        key = *same, tuple(sorted(wants)), tuple(sorted(kinds))
        if key not in self._stand_in:
            sold = zip(self._sold_alike(load, others).tolist(), others, strict=True)
            found = [is_sold and filler.agrees(other, wants.values()) for is_sold, other in sold]
            able, rows = np.array(found, dtype=np.bool_), filler.holding.rows(others)
            for kind, number in kinds.items():
                able &= filler.holding.admits(filler.shapes[number], kind, rows)[rows]
            self._stand_in[key] = load, able
        return self._stand_in[key][1]

    def _sold_alike(self, load: Load, others: Sequence[OfferedType]) -> npt.NDArray[np.bool_]:
        """By type of the pool `_may_stand_in`, asked once for all nodes that are sold in the same way."""
        # The load is kept, so no other can get the id of what it has.
        key = id(load.offered), id(load.offering), id(load.room.requirements)
        if key not in self._sold:
            found = np.array([self._may_stand_in(load, other) for other in others], dtype=np.bool_)
            self._sold[key] = load, found
        return self._sold[key][1]

    def _may_stand_in(self, load: Load, other: OfferedType) -> bool:
        """Whether another type is sold in the same way and has as many cards."""
        chosen = load.offered
        if other.pool.chosen_labels != chosen.pool.chosen_labels or other.reservation != chosen.reservation:
            return False
        if other.kind.name == chosen.kind.name or len(other.room.devices) != len(chosen.room.devices):
            return False
        offering = other.offering_for(load.room.requirements)
        if offering is None or offering.capacity_type != load.offering.capacity_type or other.has_own_capacity:
            return False
        return not leaks(other, load.offering.capacity_type, within_cap(chosen, load.offering))

    def _one_by_one(self, load: Load, times: int, ledger: Ledger) -> _Found:
        """Those of which so many nodes keep to the ledger's limits, which stay as they are."""
        chosen, extra = load.offered, Resources()
        others = self._supply.by_pool[chosen.pool.name]
        used = chosen.room.free - load.room.free
        # The load's charge has those that it needs in it.
        names = {other.kind.name for other in load.needed}
        able = self._sold_alike(load, others) & self._may_do(load, times, used, ledger)
        for at in np.flatnonzero(able).tolist():
            other = others[at]
            if len(names) == MOST_ALTERNATIVES:
                break
            if other.kind.name in names:
                continue
            offering = other.offering_for(load.room.requirements) or load.offering
            more = positive(charge(other, offering, load.room.requirements) - load.charge)
            if not _still_within(ledger, chosen, more.largest(extra) * times):
                continue
            if other.target.counting == chosen.target.counting and used.shortfall(other.room.free):
                continue
            if self._holds(load, other):
                names.add(other.kind.name)
                extra = more.largest(extra)
        return self._in_order(load.offered.pool.name, names), extra

    def _in_order(self, pool: str, names: set[str]) -> tuple[str, ...]:
        """The types of the pool by price, the cheapest first."""
        if pool not in self._places:
            ordered = dict.fromkeys(other.kind.name for other in self._supply.by_pool[pool])
            self._places[pool] = {name: place for place, name in enumerate(ordered)}
        return tuple(sorted(names & self._places[pool].keys(), key=self._places[pool].__getitem__))

    def _holds(self, load: Load, other: OfferedType) -> bool:
        """Whether a node of the other type takes the same pods in their order."""
        takes = self._filler.takes_alike(other, load)
        if takes is not None:
            return takes
        held = self._filler.fill_alike(other, load)
        return held is not None and held.held == load.held

    def _may_do(self, load: Load, times: int, used: Resources, ledger: Ledger) -> npt.NDArray[np.bool_]:
        """By type of the pool, whether it has enough for the load, and no more than limits allow."""
        pool, holding = load.offered.pool.name, self._filler.holding
        rows = self._rows_of(pool)
        able = np.ones(len(rows), dtype=np.bool_)
        for name, amount in used.items() if self._are_alike(pool) else ():
            if amount > 0:
                able &= self._amounts(pool, name) >= measured({name: amount}, name)
        counted = ledger.used(pool)
        for name, limit in (ledger.limit(pool) or Resources()).items():
            # The price that is charged depends on the offering.
            if name != COST_PER_HOUR:
                more = np.maximum(0, holding.capacities(name)[rows] - measured(load.charge, name))
                room = max(0, limit - counted.get(name, 0)) // max(1, times)
                able &= more <= measured({name: room}, name)
        return able


def _still_within(ledger: Ledger, offered: OfferedType, wanted: Resources) -> bool:
    limits, used = ledger.limit(offered.pool.name), ledger.used(offered.pool.name)
    return limits is None or all(
        used.get(n, 0) + wanted.get(n, 0) <= limit for n, limit in limits.items() if wanted.get(n, 0) > 0
    )


def positive(amounts: Resources) -> Resources:
    """Those that are more than nothing."""
    return Resources({name: amount for name, amount in amounts.items() if amount > 0})
