"""The market as the controllers see it: what the cloud offers, less what it refused lately.

What is remembered here (sold-out offerings, types that failed) only saves tries: a restart forgets it and finds out
again. What must survive a restart, the memory that cards really registered, is an annotation on the NodePool.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kerf.cloudprovider import CloudProvider
from kerf.config import Settings
from kerf.model.instancetypes import InstanceType, OfferingKey
from kerf.model.market import BackOff, Market, SoldOut
from kerf.model.snapshot import ClusterSnapshot
from kerf.ports import Clock
from kerf.state import observed_memory

_Key = TypeVar("_Key")


@dataclass
class _Refusal:
    """How often something failed, and until when it is left alone."""

    times: int
    until_s: float
    reason: str


@dataclass
class MarketBook:
    """Builds a Market for every plan."""

    cloud: CloudProvider
    clock: Clock
    settings: Settings
    _sold_out: dict[OfferingKey, _Refusal] = field(default_factory=dict)
    _back_offs: dict[tuple[str, str], _Refusal] = field(default_factory=dict)
    _last: Market | None = None
    _offers: Sequence[Sequence[InstanceType]] = ()
    _types: tuple[InstanceType, ...] = ()

    def mark_sold_out(self, offerings: Iterable[OfferingKey], reason: str = "insufficient capacity") -> None:
        """Leave offerings out for a while: 3 minutes at first, doubling to 30."""
        for key in offerings:
            self._refuse(self._sold_out, key, reason, (self.settings.sold_out_s, self.settings.sold_out_most_s))

    def back_off(self, node_pool: str, instance_type: str, reason: str) -> None:
        """Do not launch a type in a pool for a while: 5 minutes at first, doubling to 30."""
        limits = (self.settings.back_off_s, self.settings.back_off_most_s)
        self._refuse(self._back_offs, (node_pool, instance_type), reason, limits)

    def _refuse(self, held: dict[_Key, _Refusal], key: _Key, reason: str, limits: tuple[float, float]) -> None:
        now, (first, most) = self.clock.now_s(), limits
        before = held.get(key)
        if before is not None and before.until_s > now:
            return
        # A refusal long after the last one starts over.
        times = before.times + 1 if before is not None and now < before.until_s + most else 0
        held[key] = _Refusal(times, now + min(most, first * 2**times), reason)

    def refused(self) -> tuple[tuple[SoldOut, ...], tuple[BackOff, ...]]:
        """What is left alone just now, by offering and by pool and type."""
        now = self.clock.now_s()
        sold_out = (SoldOut(key, r.until_s, r.reason) for key, r in sorted(self._sold_out.items()) if r.until_s > now)
        back_offs = (
            BackOff(pool, name, r.until_s, r.reason)
            for (pool, name), r in sorted(self._back_offs.items())
            if r.until_s > now
        )
        return tuple(sold_out), tuple(back_offs)

    async def market(self, snapshot: ClusterSnapshot) -> Market:
        """What can be bought now, for all pools. Raises CloudError."""
        sold_out, back_offs = self.refused()
        offers = [await self.cloud.instance_types(pool) for pool in snapshot.node_pools]
        market = Market(
            types=self._merged(offers),
            currency=self.cloud.currency,
            provider=self.cloud.name,
            sold_out=sold_out,
            back_offs=back_offs,
            observed_memory_mib=observed_memory(snapshot.node_pools, snapshot.nodes),
        )
        # The same market as before is the same object: what was derived from it can be used again.
        if self._last is None or not _is_same(market, self._last):
            self._last = market
        return self._last

    def _merged(self, offers: Sequence[Sequence[InstanceType]]) -> tuple[InstanceType, ...]:
        """All types by name; the tuple of last time when no pool's offer has changed."""
        if len(offers) == len(self._offers) and all(a is b for a, b in zip(offers, self._offers, strict=True)):
            return self._types
        types = {kind.name: kind for offer in offers for kind in offer}
        self._offers, self._types = offers, tuple(types[name] for name in sorted(types))
        return self._types


def _is_same(market: Market, last: Market) -> bool:
    known = (market.sold_out, market.back_offs, market.observed_memory_mib)
    return market.types is last.types and known == (last.sold_out, last.back_offs, last.observed_memory_mib)
