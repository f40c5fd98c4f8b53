"""Market: what can be bought at one moment, as frozen as the snapshot."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kerf.model.causes import Cause, Name, Quoted
from kerf.model.instancetypes import InstanceType, OfferingKey
from kerf.model.large import Large
from kerf.model.nodeclaim import NodeClassRef
from kerf.model.rejections import Workload

NOTHING_SAID = Quoted("")
REMEMBERED_S = 86_400.0
"""So long a change of a price is remembered."""


@dataclass(frozen=True, slots=True)
class SoldOut:
    """An offering that the cloud refused lately; it is not tried again before `until_s`."""

    offering: OfferingKey
    until_s: float
    reason: str = "insufficient capacity"


@dataclass(frozen=True, slots=True)
class BackOff:
    """An instance type that failed in a pool (it never registered, say); not launched there before `until_s`.

    `said` is what the condition of the claim said that failed. With `is_tried` the time is over, and one node of the
    type is on its way to try it again; no other is launched meanwhile.
    """

    node_pool: str
    instance_type: str
    until_s: float
    said: Quoted = NOTHING_SAID
    is_tried: bool = False


@dataclass(frozen=True, slots=True)
class MovePause:
    """A workload whose pods were moved to save money, and nothing was saved; before `until_s` none is moved for it."""

    workload: Workload
    until_s: float


@dataclass(frozen=True, slots=True)
class PriceHistory:
    """An offering whose price has changed within a day: so many `changes`, the last at `changed_s`, from `before_micro`
    to `price_micro` an hour. Until then it cost `mean_micro` on average, over `for_s` seconds, a day at the most; and
    from `lowest_micro` to `highest_micro` with the price of now."""

    offering: OfferingKey
    price_micro: int
    before_micro: int
    mean_micro: int
    for_s: int
    changes: int
    changed_s: float
    lowest_micro: int
    highest_micro: int


@dataclass(frozen=True, slots=True)
class Withheld:
    """What the controllers leave alone for a while, and prices that changed; each as the field of that name of a
    Market."""

    sold_out: tuple[SoldOut, ...] = ()
    back_offs: tuple[BackOff, ...] = ()
    probed: frozenset[tuple[str, str]] = frozenset()
    price_pauses: tuple[BackOff, ...] = ()
    move_pauses: tuple[MovePause, ...] = ()
    price_histories: tuple[PriceHistory, ...] = ()

    def at(self, now_s: float) -> "Withheld":
        """The same less what is over by then."""
        sold_out = tuple(each for each in self.sold_out if each.until_s > now_s)
        back_offs, price_pauses = (
            tuple(each for each in held if each.until_s > now_s) for held in (self.back_offs, self.price_pauses)
        )
        move_pauses = tuple(each for each in self.move_pauses if each.until_s > now_s)
        histories = tuple(each for each in self.price_histories if now_s < each.changed_s + REMEMBERED_S)
        return Withheld(sold_out, back_offs, self.probed, price_pauses, move_pauses, histories)


NOTHING_WITHHELD = Withheld()


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
    `types_by_node_class` is for NodeClasses that sell different things; `types` then has each name once, as the first
    NodeClass sells it. `not_sold` has instance types that are known and cannot be bought here, with why. Of each
    (pool, type) in `probed` one node is launched at a time, since the last one failed. `price_pauses` say until when no
    node of a type is replaced for its price, which goes to and fro; `move_pauses` until when pods of a workload make
    way for no cheaper nodes. `price_histories` are of the offerings whose prices changed within a day, by offering.
    """

    types: tuple[InstanceType, ...]
    currency: str = "USD"
    provider: str = ""
    region: str = ""
    sold_out: tuple[SoldOut, ...] = ()
    back_offs: tuple[BackOff, ...] = ()
    probed: frozenset[tuple[str, str]] = frozenset()
    price_pauses: tuple[BackOff, ...] = ()
    move_pauses: tuple[MovePause, ...] = ()
    price_histories: tuple[PriceHistory, ...] = ()
    observed_memory_mib: Mapping[tuple[str, str], int] = field(default_factory=dict, hash=False)
    not_sold: Mapping[str, str] = field(default_factory=dict, hash=False)
    types_by_node_class: Mapping[NodeClassRef, tuple[InstanceType, ...]] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()

    @cached_property
    def _by_name(self) -> dict[str, InstanceType]:
        return {instance_type.name: instance_type for instance_type in self.types}

    @cached_property
    def sold_out_keys(self) -> frozenset[OfferingKey]:
        """The offerings that are sold out: every type is compared with them."""
        return frozenset(sold.offering for sold in self.sold_out)

    @cached_property
    def staying_workloads(self) -> frozenset[Workload]:
        """Those of the pauses: every pod that could move is compared with them."""
        return frozenset(each.workload for each in self.move_pauses)

    @cached_property
    def price_history_of(self) -> Mapping[OfferingKey, PriceHistory]:
        """The price histories by offering."""
        return {each.offering: each for each in self.price_histories}

    @cached_property
    def supplies(self) -> dict[Hashable, object]:
        """What the engine found for sale here, by everything else that it depends on; `engine.supply` fills it.

        It lies here, because an answer holds for many snapshots and ends with its market.
        """
        return {}

    @cached_property
    def _by_node_class(self) -> dict[NodeClassRef, dict[str, InstanceType]]:
        return {ref: {kind.name: kind for kind in types} for ref, types in self.types_by_node_class.items()}

    def types_of(self, node_class: NodeClassRef) -> tuple[InstanceType, ...]:
        """The types that pools of a NodeClass can buy, in name order."""
        return self.types_by_node_class.get(node_class, self.types)

    def find(self, name: str, node_class: NodeClassRef | None = None) -> InstanceType | None:
        """The type of that name, as a NodeClass sells it where one is given; None when it is not sold here."""
        if node_class is None:
            return self._by_name.get(name)
        return self._by_node_class.get(node_class, self._by_name).get(name)
