"""Market: what can be bought at one moment, as frozen as the snapshot."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kerf.model.causes import Cause, Name
from kerf.model.instancetypes import InstanceType, OfferingKey
from kerf.model.large import Large


@dataclass(frozen=True, slots=True)
class SoldOut:
    """An offering that the cloud refused lately; it is not tried again before `until_s`."""

    offering: OfferingKey
    until_s: float
    reason: str = "insufficient capacity"


@dataclass(frozen=True, slots=True)
class BackOff:
    """An instance type that failed in a pool (it never registered, say); not launched there before `until_s`."""

    node_pool: str
    instance_type: str
    until_s: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TriedAlone(Cause):
    """The last nodes of a type failed in a pool; one is launched, and the others wait for what comes of it."""

    pool: Name
    instance_type: Name


@dataclass(frozen=True, repr=False)
class Market(Large):
    """Instance types with offerings and prices, in name order, and what is known to be out of reach.

    One currency: prices of two currencies are never compared. `provider` and `region` say where from.
    `observed_memory_mib` is the least memory in MiB that a card of a type has registered, by (pool, type).
    `not_sold` has instance types that are known and cannot be bought here, with why. Of each (pool, type) in `probed`
    one node is launched at a time, since the last one failed. `price_pauses` say until when no node of a type is
    replaced for its price, which goes to and fro.
    """

    types: tuple[InstanceType, ...]
    currency: str = "USD"
    provider: str = ""
    region: str = ""
    sold_out: tuple[SoldOut, ...] = ()
    back_offs: tuple[BackOff, ...] = ()
    probed: frozenset[tuple[str, str]] = frozenset()
    price_pauses: tuple[BackOff, ...] = ()
    observed_memory_mib: Mapping[tuple[str, str], int] = field(default_factory=dict, hash=False)
    not_sold: Mapping[str, str] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()

    @cached_property
    def _by_name(self) -> dict[str, InstanceType]:
        return {instance_type.name: instance_type for instance_type in self.types}

    @cached_property
    def sold_out_keys(self) -> frozenset[OfferingKey]:
        """The offerings that are sold out: every type is compared with them."""
        return frozenset(sold.offering for sold in self.sold_out)

    @cached_property
    def supplies(self) -> dict[Hashable, object]:
        """What the engine found for sale here, by everything else that it depends on; `engine.supply` fills it.

        It lies here, because an answer holds for many snapshots and ends with its market.
        """
        return {}

    def find(self, name: str) -> InstanceType | None:
        """The type of that name; None when it is not sold here."""
        return self._by_name.get(name)
