"""Subnets: which an EC2NodeClass selects, and which of a zone has room.

What makes it hard is that a launch takes addresses which EC2 counts only a while later: two launches in one second see
the same free ones. So what was launched since the last listing is taken off.
"""

from collections.abc import Iterable
from dataclasses import replace

from kerf.clouds.aws.api import EC2, Api
from kerf.clouds.aws.cache import TimedCache
from kerf.clouds.aws.nodeclass.model import SubnetSelectorTerm
from kerf.clouds.aws.nodeclass.status import Subnet
from kerf.clouds.aws.replies import reading
from kerf.clouds.aws.selecting import Filter, either, filter_of, tag_filters, words_of
from kerf.ports import Clock

_KEPT_S = 60
_EXHAUSTED_S = 180
"""As long as an offering is left out that is sold out."""

Terms = tuple[SubnetSelectorTerm, ...]


class Subnets:
    """The subnets of a region, as terms select them: each minute a call for all ids, and one for each term of tags."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._found: TimedCache[Terms, tuple[Subnet, ...]] = TimedCache(clock, _KEPT_S)
        self._exhausted: TimedCache[str, bool] = TimedCache(clock, _EXHAUSTED_S)
        self._free: dict[str, int] = {}
        self._launched: dict[str, int] = {}

    async def find(self, terms: Terms) -> tuple[Subnet, ...]:
        """Each subnet that a term selects, once; most free addresses first, then by id. Raises ApiFailed, Throttled."""
        found = self._found.get(terms)
        if found is None:
            found = await self._listed(terms)
            self._found.put(terms, found)
        return tuple(sorted(map(self._counted, found), key=lambda subnet: (-subnet.free_addresses, subnet.id)))

    async def _listed(self, terms: Terms) -> tuple[Subnet, ...]:
        by_id: dict[str, Subnet] = {}
        for filters in _filters(terms):
            for raw in await self._api.pages(EC2, "DescribeSubnets", "Subnets", Filters=filters):
                with reading("DescribeSubnets"):
                    subnet = Subnet(
                        raw["SubnetId"],
                        raw["AvailabilityZone"],
                        raw.get("AvailabilityZoneId") or "",
                        raw.get("AvailableIpAddressCount") or 0,
                    )
                by_id[subnet.id] = subnet
        for name, subnet in by_id.items():
            self._free[name] = subnet.free_addresses
            self._launched.pop(name, None)
        return tuple(by_id.values())

    def _counted(self, subnet: Subnet) -> Subnet:
        """The subnet with its free addresses now, whenever it was found."""
        if self._exhausted.get(subnet.id):
            return replace(subnet, free_addresses=0)
        listed = self._free.get(subnet.id, subnet.free_addresses)
        return replace(subnet, free_addresses=max(listed - self._launched.get(subnet.id, 0), 0))

    def by_zone(self, subnets: Iterable[Subnet], addresses: int = 1) -> dict[str, Subnet]:
        """The subnet of each zone that has most free addresses at present, of those that have enough, by zone.

        A zone is left out only where all its subnets are too full.
        """
        best: dict[str, Subnet] = {}
        for subnet in sorted(map(self._counted, subnets), key=lambda each: (-each.free_addresses, each.id)):
            if subnet.free_addresses >= addresses:
                best.setdefault(subnet.zone, subnet)
        return {zone: best[zone] for zone in sorted(best)}

    def launched(self, subnet_id: str, addresses: int) -> None:
        """An instance was launched there: so many addresses are gone, which the next listing counts itself."""
        self._launched[subnet_id] = self._launched.get(subnet_id, 0) + addresses

    def exhausted(self, subnet_id: str) -> None:
        """EC2 refused a launch for want of addresses there: it has none for a while, whatever a listing says."""
        self._exhausted.put(subnet_id, True)


def wanted(terms: Terms) -> str:
    """The terms in words."""
    return either([words_of(id=term.id, tag=term.tags) for term in terms])


def _filters(terms: Terms) -> list[list[Filter]]:
    ids = [term.id for term in terms if term.id]
    by_tags = [tag_filters(term.tags) for term in terms if not term.id]
    return [*([[filter_of("subnet-id", ids)]] if ids else []), *by_tags]
