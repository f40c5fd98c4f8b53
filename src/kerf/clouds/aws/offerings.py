"""The offerings of an instance type for one EC2NodeClass: where its subnets are, and which reservations it selects."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kerf.clouds.aws.nodeclass.status import EXPIRING, Resolved
from kerf.clouds.aws.prices import PriceList
from kerf.model.instancetypes import ON_DEMAND, RESERVED, SPOT, Offering


def offerings_of(name: str, resolved: Resolved, prices: PriceList, running: Mapping[str, int]) -> tuple[Offering, ...]:
    """Reserved, on-demand and spot, each by zone. `running` counts instances of this cluster by their reservation.

    A type without an on-demand price is not sold: nothing could be compared with it. A zone without a spot price has
    no spot.
    """
    ids = {subnet.zone: subnet.zone_id for subnet in resolved.subnets}
    zones = sorted(ids.keys() & set(prices.zones.get(name, ())))
    group = resolved.placement_group.id if resolved.placement_group is not None else ""
    found = (*_reserved(name, resolved, running, group), *sold_in(name, zones, prices, group))
    return tuple(replace(each, zone_id=ids[each.zone]) for each in found)


def sold_in(name: str, zones: Sequence[str], prices: PriceList, group: str = "") -> tuple[Offering, ...]:
    """On-demand and spot, each by zone; nothing for a type without an on-demand price."""
    price = prices.on_demand.get(name)
    if price is None:
        return ()
    guessed = prices.is_on_demand_estimate
    on_demand = (Offering(zone, ON_DEMAND, price, is_estimate=guessed, placement_group=group) for zone in zones)
    return (*on_demand, *_spot(name, zones, prices, group))


def _spot(name: str, zones: Iterable[str], prices: PriceList, group: str) -> Iterator[Offering]:
    for zone in zones:
        price = prices.spot.get((name, zone))
        if price is not None:
            yield Offering(zone, SPOT, price, is_estimate=prices.is_spot_estimate, placement_group=group)


def _reserved(name: str, resolved: Resolved, running: Mapping[str, int], group: str) -> Iterator[Offering]:
    """What reservations sell: it is paid for already, so it costs nothing more.

    An expiring block is not sold any more. `most` counts this cluster's instances in it; those of others are gone.
    """
    zones = {subnet.zone for subnet in resolved.subnets}
    for each in resolved.reservations:
        if each.instance_type == name and each.zone in zones and each.state != EXPIRING:
            most = each.remaining + running.get(each.id, 0)
            held = tuple(each.labels.items())
            yield Offering(
                each.zone, RESERVED, 0, reservation=each.id, most=most, placement_group=group, reservation_labels=held
            )
