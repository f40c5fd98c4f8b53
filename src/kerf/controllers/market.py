"""The market as the controllers see it: what the cloud offers, less what it refused lately.

What is remembered here (sold-out offerings, types that failed) only saves tries: a restart forgets it and finds out
again. What must survive a restart, the memory that cards really registered, is an annotation on the NodePool. When the
clock is set, what is remembered moves with it: everything rests as long as it was to.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

from kerf.cloudprovider import CloudProvider
from kerf.config import Settings
from kerf.controllers.elapsed import ClockSet
from kerf.controllers.moves import Moves
from kerf.controllers.pricechanges import PriceChanges
from kerf.engine.supply.caps import excess
from kerf.engine.supply.pricing import present_price
from kerf.engine.world import World
from kerf.model.causes import Quoted
from kerf.model.instancetypes import InstanceType, OfferingKey
from kerf.model.market import REMEMBERED_S, BackOff, Market, MovePause, SoldOut, Withheld
from kerf.model.nodeclaim import NodeClassRef
from kerf.model.promises import offering_of, planned_price_micro, planned_type
from kerf.model.rejections import Workload
from kerf.model.snapshot import ClusterSnapshot
from kerf.ports import Clock
from kerf.state import observed_memory

_Key = TypeVar("_Key")
_FORGOTTEN_S = 86_400.0
"""A failure counts for so long, unless a node of its type comes up."""
_STAYS_S, _STAYS_MOST_S = 3_600.0, 14_400.0


@dataclass
class _Refusal:
    """How often something failed, and until when it is left alone; `said` is the cloud's word, or the claim's."""

    times: int
    until_s: float
    said: str = ""
    at_s: float = 0


@dataclass
class MarketBook:
    """Builds a Market for every plan. Only on a running loop."""

    cloud: CloudProvider
    clock: Clock
    settings: Settings
    _sold_out: dict[OfferingKey, _Refusal] = field(default_factory=dict)
    _back_offs: dict[tuple[str, str], _Refusal] = field(default_factory=dict)
    _crossings: dict[tuple[str, str], _Refusal] = field(default_factory=dict)
    moves: Moves = field(default_factory=Moves)
    _price_changes: PriceChanges = field(default_factory=PriceChanges)
    _displaced: dict[Workload, _Refusal] = field(default_factory=dict)
    _over_cap: frozenset[tuple[str, str]] = frozenset()
    _last: Market | None = None
    _clock_set: ClockSet = field(init=False)
    _offers: Mapping[NodeClassRef, Sequence[InstanceType]] = field(default_factory=dict)
    _types: tuple[InstanceType, ...] = ()
    _own_types: Mapping[NodeClassRef, tuple[InstanceType, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._clock_set = ClockSet(self.clock)

    def _now_s(self) -> float:
        """The clock's time, once what is remembered follows a clock that was set."""
        by_s = self._clock_set.by_s()
        if by_s:
            kept = self._sold_out, self._back_offs, self._crossings, self._displaced
            for held in (each for refusals in kept for each in refusals.values()):
                held.until_s, held.at_s = held.until_s + by_s, held.at_s + by_s
            self._price_changes.shift(by_s)
        return self.clock.now_s()

    def mark_sold_out(self, reasons: Mapping[OfferingKey, str]) -> None:
        """Leave offerings out for a while, each for its reason: 3 minutes at first, doubling to 30."""
        for key, reason in sorted(reasons.items()):
            self._refuse(self._sold_out, key, reason, (self.settings.sold_out_s, self.settings.sold_out_most_s))

    def back_off(self, node_pool: str, instance_type: str, said: str) -> None:
        """Do not launch a type in a pool for a while: 5 minutes at first, doubling to 2 hours.

        `said` is what the claim's condition says of it. After that one node of it is launched at a time, until one has
        `succeeded` or a day has passed.
        """
        limits = (self.settings.back_off_s, self.settings.back_off_most_s)
        self._refuse(self._back_offs, (node_pool, instance_type), said, limits, _FORGOTTEN_S)

    def succeeded(self, node_pool: str, instance_type: str) -> None:
        """A node of the type has initialised in the pool: what failed before is forgotten."""
        self._back_offs.pop((node_pool, instance_type), None)

    def let_stay(self, workloads: Iterable[Workload]) -> None:
        """Move no pods of these to save money: it saved nothing. For an hour at first, doubling to four."""
        for each in sorted(workloads):
            self._refuse(self._displaced, each, "", (_STAYS_S, _STAYS_MOST_S), _FORGOTTEN_S)

    def _refuse(
        self, held: dict[_Key, _Refusal], key: _Key, said: str, limits: tuple[float, float], forgotten_s: float = 0
    ) -> None:
        now, (first, most) = self._now_s(), limits
        before = held.get(key)
        if before is not None and before.until_s > now:
            return
        # A refusal long after the last one starts over.
        is_again = before is not None and now < before.until_s + max(most, forgotten_s)
        times = before.times + 1 if before is not None and is_again else 0
        held[key] = _Refusal(times, now + min(most, first * 2 ** min(times, 30)), said)

    def withheld(self) -> Withheld:
        """What is left alone just now; of types that are tried again, what the last market knew."""
        now, last = self._now_s(), self._last
        tried = () if last is None else (each for each in last.back_offs if each.is_tried)
        probed = frozenset[tuple[str, str]]() if last is None else last.probed
        return self._withheld(now, tuple(tried), probed).at(now)

    def _withheld(self, now_s: float, tried: tuple[BackOff, ...], probed: frozenset[tuple[str, str]]) -> Withheld:
        sold_out = (SoldOut(key, r.until_s, r.said) for key, r in sorted(self._sold_out.items()) if r.until_s > now_s)
        back_offs = sorted(
            (*_active(self._back_offs, now_s), *tried), key=lambda each: (each.node_pool, each.instance_type)
        )
        stays = (MovePause(key, r.until_s) for key, r in sorted(self._displaced.items()) if r.until_s > now_s)
        histories = self._price_changes.histories(now_s)
        return Withheld(tuple(sold_out), tuple(back_offs), probed, self.pauses(), tuple(stays), histories)

    def _on_trial(self, snapshot: ClusterSnapshot) -> tuple[frozenset[tuple[str, str]], tuple[BackOff, ...]]:
        """Types that may be launched one at a time, and those of which that one is on its way, so no other may."""
        now = self._now_s()
        failed = {
            key: held for key, held in self._back_offs.items() if held.until_s <= now < held.until_s + _FORGOTTEN_S
        }
        if not failed:
            return frozenset(), ()
        latest_s = sum((self.settings.launch_deadline_s, 2 * self.settings.registration_deadline_s))
        tried: dict[tuple[str, str], BackOff] = {}
        for node in snapshot.nodes:
            claim = node.claim
            if claim is None or node.is_initialized:
                continue
            key = (claim.node_pool, planned_type(claim))
            if key in failed:
                until_s = claim.created_s + latest_s
                tried.setdefault(key, BackOff(*key, until_s, Quoted(failed[key].said), is_tried=True))
        return frozenset(failed.keys() - tried.keys()), tuple(tried[key] for key in sorted(tried))

    def pauses(self) -> tuple[BackOff, ...]:
        """Until when no node is replaced for its price, by pool and type."""
        return _active(self._crossings, self._now_s())

    def _note_prices(self, world: World) -> None:
        """Count how often the price of a type has risen above a cap of its pool; from the second time on it pauses.

        The first rise is answered at once. One that comes again within a day is answered when it has lasted 5 minutes,
        then 10, doubling to 2 hours: a price that goes to and fro moves no pods.
        """
        snapshot, over_cap = world.snapshot, set[tuple[str, str]]()
        for node in snapshot.nodes:
            claim = node.claim
            if claim is None or node.is_deleting:
                continue
            if excess(node, snapshot.pool(claim.node_pool), world.supply) is not None:
                over_cap.add((claim.node_pool, planned_type(claim)))
        limits = (self.settings.back_off_s, self.settings.back_off_most_s)
        for key in sorted(over_cap - self._over_cap):
            self._cross(key, limits)
        self._over_cap = frozenset(over_cap)

    def _cross(self, key: tuple[str, str], limits: tuple[float, float]) -> None:
        now, before = self._now_s(), self._crossings.get(key)
        if before is None or now >= before.at_s + _FORGOTTEN_S:
            self._crossings[key] = _Refusal(0, now, at_s=now)
            return
        until_s = now + min(limits[1], limits[0] * 2 ** min(before.times, 30))
        self._crossings[key] = _Refusal(before.times + 1, until_s, at_s=now)

    async def market(self, snapshot: ClusterSnapshot) -> Market:
        """What can be bought now, for all pools. Raises CloudError."""
        probed, tried = self._on_trial(snapshot)
        offers: dict[NodeClassRef, Sequence[InstanceType]] = {}
        for pool in snapshot.node_pools:
            offers.setdefault(pool.node_class, await self.cloud.instance_types(pool))
        self._take(offers)
        withheld = self._withheld(self._now_s(), tried, probed)
        market = Market(
            types=self._types,
            currency=self.cloud.currency,
            provider=self.cloud.name,
            sold_out=withheld.sold_out,
            back_offs=withheld.back_offs,
            probed=withheld.probed,
            price_pauses=withheld.price_pauses,
            move_pauses=withheld.move_pauses,
            price_histories=withheld.price_histories,
            observed_memory_mib=observed_memory(snapshot.node_pools, snapshot.nodes),
            types_by_node_class=self._own_types,
        )
        if self._last is None:
            self._price_changes.bought(_purchases(World(snapshot, market)))
            market = replace(market, price_histories=self._price_changes.histories(self._now_s()))
        market = self._same(market)
        if any(pool.bounds.has_cap for pool in snapshot.node_pools):
            self._note_prices(World(snapshot, market))
            market = self._same(replace(market, price_pauses=self.pauses()))
        return market

    def _same(self, market: Market) -> Market:
        """The market of last time where nothing has changed: what was derived from it can be used again."""
        if self._last is None or not _is_same(market, self._last):
            self._last = market
        return self._last

    def _take(self, offers: Mapping[NodeClassRef, Sequence[InstanceType]]) -> None:
        """Keep what each NodeClass sells; the values of last time when no offer has changed."""
        if offers.keys() == self._offers.keys() and all(offers[key] is self._offers[key] for key in offers):
            return
        self._offers = offers
        # The first to sell a type gives it its place in the whole.
        types = {kind.name: kind for offer in reversed(list(offers.values())) for kind in offer}
        self._types = tuple(types[name] for name in sorted(types))
        self._price_changes.note(self._types, self._now_s())
        is_one_offer = len({id(offer) for offer in offers.values()}) <= 1
        self._own_types = {} if is_one_offer else {key: tuple(offer) for key, offer in offers.items()}


def _purchases(world: World) -> Iterator[tuple[float, OfferingKey, int]]:
    """When, as what and for how much nodes were bought within a day, where NodeOverlays change nothing of it now."""
    for node in world.snapshot.nodes:
        claim = node.claim
        if claim is None or world.snapshot.taken_at_s - claim.created_s >= REMEMBERED_S:
            continue
        offering, price_micro = offering_of(claim.annotations), planned_price_micro(claim)
        kind = world.market.find(offering.instance_type, claim.node_class) if offering is not None else None
        if offering is None or kind is None or price_micro is None:
            continue
        sold = next((each.price_micro for each in kind.offerings if each.key_of(kind.name) == offering), None)
        if sold == present_price(node, world.supply):
            yield claim.created_s, offering, price_micro


_REMEMBERED = tuple(each.name for each in fields(Withheld))


def _is_same(market: Market, last: Market) -> bool:
    known, before = (
        (*(getattr(each, name) for name in _REMEMBERED), each.observed_memory_mib) for each in (market, last)
    )
    is_sold_alike = market.types is last.types and market.types_by_node_class is last.types_by_node_class
    return is_sold_alike and known == before


def _active(held: Mapping[tuple[str, str], _Refusal], now_s: float) -> tuple[BackOff, ...]:
    """What is left alone just now."""
    return tuple(
        BackOff(*key, each.until_s, Quoted(each.said)) for key, each in sorted(held.items()) if each.until_s > now_s
    )
