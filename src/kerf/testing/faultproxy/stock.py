"""What is to be had in the proxy's cloud, and at which price: offerings, subnets, reservations, placement groups.

moto sells everything, everywhere and without end. Here an offering (type, zone, capacity type) can be sold out, can
have a few instances left, or not be sold in a zone at all; each of these is another error to the caller.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

ANY = "*"
SPOT, ON_DEMAND, RESERVED = "spot", "on-demand", "reserved"


@dataclass
class CloudReservation:
    """A Capacity Reservation, or a Capacity Block where `kind` is `capacity-block`. `left` falls with each launch."""

    id: str
    instance_type: str
    zone: str
    left: int
    total: int = 0
    kind: str = "default"
    match: str = "targeted"
    state: str = "active"
    owner: str = "123456789012"
    start_s: float = 0
    end_s: float | None = None
    is_interruptible: bool = False
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CloudPlacementGroup:
    """A placement group."""

    id: str
    name: str
    strategy: str = "cluster"
    state: str = "available"
    partitions: int = 0


class Stock:
    """The switches of what is for sale. Patterns take `*`, and a later switch of the same patterns takes its place."""

    def __init__(self) -> None:
        self._left: dict[tuple[str, str, str], int] = {}
        self._withdrawn: set[tuple[str, str]] = set()
        self._exhausted: set[str] = set()
        self._caps: list[int] = []
        self.on_demand_usd: dict[str, float] = {}
        self.spot_usd: dict[tuple[str, str], float] = {}
        self.reservations: dict[str, CloudReservation] = {}
        self.placement_groups: dict[str, CloudPlacementGroup] = {}

    def sell_out(self, instance_type: str = ANY, zone: str = ANY, capacity_type: str = ANY) -> None:
        """From now on these offerings answer InsufficientInstanceCapacity."""
        self.limit(instance_type, zone, capacity_type, 0)

    def limit(self, instance_type: str, zone: str, capacity_type: str, count: int) -> None:
        """Only so many instances are left; each launch takes one."""
        self._left[instance_type, zone, capacity_type] = count

    def restock(self, instance_type: str = ANY, zone: str = ANY, capacity_type: str = ANY) -> None:
        """These patterns are without limit again."""
        self._left.pop((instance_type, zone, capacity_type), None)

    def withdraw(self, instance_type: str, zone: str) -> None:
        """The type is not sold in the zone: offerings do not list it and a launch is refused."""
        self._withdrawn.add((instance_type, zone))

    def exhaust(self, subnet: str) -> None:
        """The subnet has no free address."""
        self._exhausted.add(subnet)

    def free(self, subnet: str) -> None:
        """The subnet has addresses again."""
        self._exhausted.discard(subnet)

    def cap(self, count: int, fleets: int = 1) -> None:
        """The next `fleets` fleets get `count` instances at most."""
        self._caps.extend([count] * fleets)

    def price(self, instance_type: str, usd: float) -> None:
        """The on-demand price an hour, as Pricing says it."""
        self.on_demand_usd[instance_type] = usd

    def spot_price(self, instance_type: str, zone: str, usd: float) -> None:
        """The spot price an hour, as its history says it."""
        self.spot_usd[instance_type, zone] = usd

    def reserve(self, reservation: CloudReservation) -> None:
        """Add a reservation, or put this one in the place of that with its id."""
        reservation.total = reservation.total or reservation.left
        self.reservations[reservation.id] = reservation

    def group(self, group: CloudPlacementGroup) -> None:
        """Add a placement group."""
        self.placement_groups[group.id] = group

    def placed(self, placement: Mapping[str, str]) -> str:
        """The name of the placement group that a launch template says; empty for none."""
        group = self.placement_groups.get(placement.get("groupId", ""))
        return placement.get("groupName") or (group.name if group is not None else placement.get("groupId", ""))

    def left(self, instance_type: str, zone: str, capacity_type: str) -> int | None:
        """How many are left of an offering; None is without limit."""
        counts = [self._left[key] for key in self._limits(instance_type, zone, capacity_type)]
        return min(counts, default=None)

    def take(self, instance_type: str, zone: str, capacity_type: str, count: int) -> None:
        """Launch so many of an offering."""
        for key in self._limits(instance_type, zone, capacity_type):
            self._left[key] -= count

    def next_cap(self, count: int) -> int:
        """How many of `count` instances the next fleet gets."""
        return min(count, self._caps.pop(0)) if self._caps else count

    def is_withdrawn(self, instance_type: str, zone: str) -> bool:
        """Whether `withdraw` took it."""
        return any(fnmatchcase(instance_type, of_type) and fnmatchcase(zone, at) for of_type, at in self._withdrawn)

    def is_exhausted(self, subnet: str) -> bool:
        """Whether `exhaust` took it."""
        return subnet in self._exhausted

    def usd(self, instance_type: str, zone: str, capacity_type: str) -> float:
        """The price of an offering; 0 where none is set, so the order of the request decides among these."""
        if capacity_type == SPOT:
            return self.spot_usd.get((instance_type, zone), 0)
        return self.on_demand_usd.get(instance_type, 0)

    def _limits(self, *offering: str) -> list[tuple[str, str, str]]:
        return [key for key in self._left if all(map(fnmatchcase, offering, key))]
