"""Instance types with their offerings, and the NodeOverlays that adjust them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from kerf.model.constraints import (
    CAPACITY_TYPE,
    RESERVATION,
    RESERVATION_LABELS,
    ZONE,
    ZONE_ID,
    Requirement,
    Requirements,
)
from kerf.model.gpu import NVIDIA_GPU, DeviceShape
from kerf.model.nodeclaim import Condition
from kerf.model.quantities import MEMORY, NOTHING, Resources, money_text, set_aside

RESERVED, SPOT, ON_DEMAND = "reserved", "spot", "on-demand"
CAPACITY_TYPE_ORDER = {RESERVED: 0, SPOT: 1, ON_DEMAND: 2}
"""Karpenter's precedence at launch: reserved before spot before on-demand, whatever the price.

A plan goes by the price (`launch_order`) and a claim of it asks for one capacity type: this orders what others ask for.
"""

MICRO = 1_000_000
"""Money is an integer number of millionths of the currency's unit."""


@dataclass(frozen=True, slots=True, order=True)
class OfferingKey:
    """What a cloud sells out, one at a time; `reservation` and `placement_group` are ids, empty for none."""

    instance_type: str
    zone: str
    capacity_type: str
    reservation: str = ""
    placement_group: str = ""

    def __str__(self) -> str:
        of = f" by {self.reservation}" if self.reservation else ""
        group = f" of {self.placement_group}" if self.placement_group else ""
        return f"{self.instance_type} {self.capacity_type}{of} in {self.zone}{group}"


def offerings_text(keys: Iterable[OfferingKey]) -> str:
    """Offerings by type and capacity type, with their zones; only the number of zones beyond three."""
    zones: dict[tuple[str, str], list[str]] = {}
    for key in sorted(keys):
        zones.setdefault((key.instance_type, key.capacity_type), []).append(key.zone)
    return ", ".join(
        f"{name} {capacity_type} in {', '.join(where) if len(where) <= 3 else f'{len(where)} zones'}"
        for (name, capacity_type), where in zones.items()
    )


@dataclass(frozen=True, slots=True)
class Offering:
    """One way to buy an instance type. `price_micro` is per hour; `is_estimate` marks a price that was not quoted.

    `is_final` marks one that no NodeOverlay changes: what a scenario says that something costs from now on.
    `reservation` is the id of the one that it is bought by, and `most` how many instances that has, running ones among
    them; None where they are not counted. One id may be that of several offerings, which then share its instances.
    `capacity` is what its machines have in place of what their type says, for the resources that it names.
    `placement_group` is the id of the one that its machines are placed in; empty for none.
    `zone_id` is the zone's name in all accounts, empty where it is not known, and `reservation_labels` are those that
    nodes get by the reservation, beside its id.
    """

    zone: str
    capacity_type: str
    price_micro: int
    is_available: bool = True
    is_estimate: bool = False
    is_final: bool = False
    reservation: str = ""
    most: int | None = None
    capacity: Resources = NOTHING
    placement_group: str = ""
    zone_id: str = ""
    reservation_labels: tuple[tuple[str, str], ...] = ()

    def key_of(self, instance_type: str) -> OfferingKey:
        """The name of the offering, as one of that type."""
        return OfferingKey(instance_type, self.zone, self.capacity_type, self.reservation, self.placement_group)

    def is_in(self, zones: Requirement | None, zone_ids: Requirement | None) -> bool:
        """Whether its zone is allowed by its name and by its id; an id that is not known is no reason against it."""
        return (zones is None or zones.has(self.zone)) and (
            zone_ids is None or not self.zone_id or zone_ids.has(self.zone_id)
        )


def launch_order(offering: Offering) -> tuple[bool, int, int, str, str]:
    """Sort key: what is reserved is paid for and goes first, the others by price; of equal price as Karpenter does."""
    rank = CAPACITY_TYPE_ORDER.get(offering.capacity_type, len(CAPACITY_TYPE_ORDER))
    is_bought = offering.capacity_type != RESERVED
    return is_bought, offering.price_micro, rank, offering.zone, offering.reservation


def allowed_offerings(offerings: Iterable[Offering], requirements: Requirements) -> list[Offering]:
    """Those whose zone, capacity type and reservation the requirements allow, in their order."""
    zones, zone_ids, kinds = map(requirements.get, (ZONE, ZONE_ID, CAPACITY_TYPE))
    reserved = {key: requirements[key] for key in RESERVATION_LABELS if key in requirements}
    return [
        each
        for each in offerings
        if each.is_in(zones, zone_ids)
        and (kinds is None or kinds.has(each.capacity_type))
        and (not reserved or _is_reserved_as(each, reserved))
    ]


def _is_reserved_as(offering: Offering, asked: Mapping[str, Requirement]) -> bool:
    """Whether its labels of reservations are those asked for; what is bought otherwise has none."""
    held = {RESERVATION: offering.reservation, **dict(offering.reservation_labels)} if offering.reservation else {}
    return all(each.has(held[key]) if key in held else each.allows_absence for key, each in asked.items())


@dataclass(frozen=True)
class InstanceType:
    """A machine one can buy.

    `requirements` hold the labels every node of the type gets. `capacity` is what the machine has and `overhead` what
    kubelet keeps for itself, summed; pods get the difference. `devices` has one entry a physical card, in index order.
    `notes` are for the operator (a price that is an estimate, a memory size that was derived).
    """

    name: str
    requirements: Requirements
    capacity: Resources
    overhead: Resources = NOTHING
    offerings: tuple[Offering, ...] = ()
    devices: tuple[DeviceShape, ...] = ()
    family: str = ""
    notes: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def allocatable(self) -> Resources:
        """What pods can use: capacity less overhead and, of memory, huge pages; never below zero.

        As kubelet and Karpenter count it (pkg/cloudprovider/types.go, precompute).
        """
        left = self.capacity - self.overhead
        pages = set_aside(self.capacity)
        left = left - {MEMORY: pages} if pages else left
        return Resources({name: max(0, amount) for name, amount in left.items()})

    @cached_property
    def has_capacities(self) -> bool:
        """Whether machines of some of its offerings have another capacity than the others."""
        return any(offering.capacity for offering in self.offerings)

    def sold_as(self, key: OfferingKey | None) -> "InstanceType":
        """The type with the capacity that its machines have when they are bought so; as it is where that is unknown."""
        if key is None or not self.has_capacities:
            return self
        wanted = (key.zone, key.capacity_type, key.reservation)
        same = (o for o in self.offerings if (o.zone, o.capacity_type, o.reservation) == wanted)
        return next((replace(self, capacity=self.capacity.replaced(o.capacity)) for o in same), self)

    @property
    def is_fractional(self) -> bool:
        """Whether its card is only a part of a physical one (g6f): used only where a pool names it or its family."""
        return any(shape.is_fraction for shape in self.devices)

    @property
    def gpu_count(self) -> int:
        """Physical (or logical, for fractions) cards."""
        return len(self.devices) or self.capacity.get(NVIDIA_GPU, 0)

    @property
    def gpu_eighths(self) -> int:
        """Cards in eighths of a physical one: a fraction of a card counts as what it is."""
        return sum(shape.eighths for shape in self.devices) or 8 * self.gpu_count

    def eighths_of(self, index: int) -> int:
        """The share of a physical card that the card of that index is, in eighths; 8 for one that is not known."""
        return self.devices[index].eighths if index < len(self.devices) else 8


@dataclass(frozen=True, slots=True)
class NodeOverlay:
    """A user's correction of prices and capacities (`karpenter.sh/v1alpha1`).

    `price` and `price_adjustment` keep the text of the manifest (`"1.20"`, `"-10%"`, `"+0.5"`); at most one is set.
    `invalid` says what of the spec cannot be carried out although the API took it: it is applied nowhere then.
    """

    name: str
    requirements: Requirements
    price: str | None = None
    price_adjustment: str | None = None
    capacity: Resources = NOTHING
    weight: int = 0
    generation: int = 0
    conditions: tuple[Condition, ...] = ()
    invalid: str = ""

    @property
    def order(self) -> tuple[int, tuple[int, ...]]:
        """Sort key: higher weight first, then the name that is later in the alphabet, as Karpenter's code does."""
        return (-self.weight, (*(-ord(letter) for letter in self.name), 1))


def price_text(micro: int) -> str:
    """A price as people write it: at least two, at most six decimals."""
    return money_text(micro)


def price_number(micro: int) -> float | int:
    """The same as a JSON number; exact to six decimals."""
    return micro // MICRO if micro % MICRO == 0 else float(money_text(micro))
