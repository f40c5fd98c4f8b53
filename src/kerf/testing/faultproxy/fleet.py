"""Which offerings a fleet gets, by its allocation strategy: the part of CreateFleet that moto leaves out.

moto launches the first override of a request. EC2 ranks all of them, goes on where a pool is sold out, and reports
each pool that it could not use. Which pools it tries is not documented; this fleet reports every pool of the request
that cannot be had, so a test does not depend on the rank.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kerf.testing.faultproxy.stock import ON_DEMAND, RESERVED, SPOT, CloudReservation, Stock
from kerf.testing.faultproxy.wire import Tree

_LAST = float("inf")


@dataclass(frozen=True)
class FleetPool:
    """One override of a fleet with the template that it goes with, and the type, subnet and zone that follow.

    `priority` is infinite where none is given. `refusal` is why it cannot be launched whatever the stock. `data` is
    what the template says.
    """

    number: int
    template: Tree
    override: Tree
    instance_type: str
    subnet: str
    zone: str
    priority: float = _LAST
    reservation: str = ""
    refusal: tuple[str, str] | None = None
    data: Tree = field(default_factory=dict)


@dataclass
class Allocation:
    """`chosen` with how many of each; `errors` by candidate: code and message."""

    chosen: list[tuple[FleetPool, int]] = field(default_factory=list)
    errors: list[tuple[FleetPool, str, str]] = field(default_factory=list)


def ranked(candidates: Sequence[FleetPool], strategy: str, capacity_type: str, stock: Stock) -> list[FleetPool]:
    """In the order in which the strategy wants them.

    Strategies of capacity know no price: where the stock is without limit, all pools are equally deep. Equal ones keep
    the order of the request.
    """

    def usd(candidate: FleetPool) -> float:
        return stock.usd(candidate.instance_type, candidate.zone, capacity_type)

    def depth(candidate: FleetPool) -> float:
        left = stock.left(candidate.instance_type, candidate.zone, capacity_type)
        return _LAST if left is None else left

    orders: dict[str, Callable[[FleetPool], tuple[float, ...]]] = {
        "lowest-price": lambda candidate: (usd(candidate),),
        "prioritized": lambda candidate: (candidate.priority,),
        "capacity-optimized-prioritized": lambda candidate: (candidate.priority, -depth(candidate)),
        "capacity-optimized": lambda candidate: (-depth(candidate),),
        "price-capacity-optimized": lambda candidate: (usd(candidate), -depth(candidate)),
        "diversified": lambda candidate: (candidate.number,),
    }
    return sorted(candidates, key=lambda candidate: (*orders[strategy](candidate), candidate.number))


def allocate(candidates: Sequence[FleetPool], count: int, capacity_type: str, stock: Stock) -> Allocation:
    """Take `count` instances from the candidates, in their order, and from the stock as well."""
    made, wanted = Allocation(), stock.next_cap(count)
    is_capped = wanted < count
    for candidate in candidates:
        reservation = stock.reservations.get(candidate.reservation)
        refusal = candidate.refusal or _short(candidate, capacity_type, stock, reservation)
        if refusal is not None:
            made.errors.append((candidate, *refusal))
            continue
        taken = int(min(wanted, _available(candidate, capacity_type, stock, reservation)))
        if taken:
            _take(candidate, taken, capacity_type, stock, reservation)
            made.chosen.append((candidate, taken))
            wanted -= taken
    if is_capped or wanted:
        reported = {candidate.number for candidate, _, _ in made.errors}
        made.errors.extend(
            (candidate, *sold_out(candidate, capacity_type))
            for candidate in candidates
            if candidate.number not in reported
        )
    return made


def sold_out(candidate: FleetPool, capacity_type: str) -> tuple[str, str]:
    """The error of a pool without capacity."""
    if capacity_type == SPOT:
        return "InsufficientInstanceCapacity", "There is no Spot capacity available that matches your request."
    return (
        "InsufficientInstanceCapacity",
        f"We currently do not have sufficient {candidate.instance_type} capacity in the Availability Zone you "
        f"requested ({candidate.zone}).",
    )


def _short(
    candidate: FleetPool, capacity_type: str, stock: Stock, reservation: CloudReservation | None
) -> tuple[str, str] | None:
    if candidate.reservation:
        if reservation is None:
            return "InvalidCapacityReservationId.NotFound", f"{candidate.reservation} does not exist"
        place = (reservation.instance_type, reservation.zone)
        if reservation.left < 1 or place != (candidate.instance_type, candidate.zone):
            return (
                "ReservationCapacityExceeded",
                "The requested reservation does not have sufficient compatible and available capacity for this request",
            )
        return None
    left = stock.left(candidate.instance_type, candidate.zone, capacity_type)
    return sold_out(candidate, capacity_type) if left is not None and left < 1 else None


def _available(
    candidate: FleetPool, capacity_type: str, stock: Stock, reservation: CloudReservation | None
) -> int | float:
    if reservation is not None:
        return reservation.left
    left = stock.left(candidate.instance_type, candidate.zone, capacity_type)
    return _LAST if left is None else left


def _take(
    candidate: FleetPool, count: int, capacity_type: str, stock: Stock, reservation: CloudReservation | None
) -> None:
    if reservation is not None:
        reservation.left -= count
    else:
        stock.take(candidate.instance_type, candidate.zone, capacity_type, count)


def capacity_type_of(kind: str, candidate: FleetPool) -> str:
    """What an instance of a fleet of that kind is, as Karpenter names it."""
    return RESERVED if candidate.reservation else SPOT if kind == SPOT else ON_DEMAND
