"""What a region sells and for how much: the packaged catalogue, and over it what the APIs say.

A role that may not ask, or a region without a price list, must not stop a purchase, so each of the four answers stands
by itself: where it is refused, what was known before counts on, and every type says so in a note.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from kerf.catalog import aws
from kerf.catalog.aws_types import AwsRow
from kerf.cloudprovider import News
from kerf.clouds.aws.api import EC2, PRICING, Api, ApiFailed
from kerf.clouds.aws.livetypes import row_of
from kerf.clouds.aws.partitions import partition_of, price_region_of
from kerf.clouds.aws.replies import NotWhole, reading
from kerf.errors import CloudError
from kerf.model.instancetypes import MICRO, ON_DEMAND, SPOT
from kerf.ports import Clock
from kerf.telemetry import logger

Pool = tuple[str, str]
"""Type and zone."""
_TYPES, _ZONES, _ON_DEMAND, _SPOT = "instance types", "zones", "on-demand prices", "spot prices"
_LINUX = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"]
_REFERENCE = "us-east-1"
"""A region of the package. Elsewhere most types cost more, some by two thirds; their order is mostly the same."""
_MOST_PRICE = 1_000_000
_SLOW_S = 12 * 3600
"""Karpenter asks for types and on-demand prices twice a day; spot prices change more often than that."""


@dataclass(frozen=True)
class PriceList:
    """Rows by type, zones by type, prices in millionths. `is_spot_estimate`: no market has quoted the spot prices;
    `is_on_demand_estimate`: the on-demand prices are those of another region.

    `notes` say what is not live, and why.
    """

    rows: Mapping[str, AwsRow] = field(default_factory=dict)
    zones: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    on_demand: Mapping[str, int] = field(default_factory=dict)
    spot: Mapping[Pool, int] = field(default_factory=dict)
    is_spot_estimate: bool = True
    is_on_demand_estimate: bool = False
    notes: tuple[str, ...] = ()


def packaged(region: str) -> PriceList:
    """What the catalogue in the package knows; of a region that it lacks, the types alone."""
    rows = {row.name: row for row in aws.specs()}
    if region not in aws.regions():
        return PriceList(rows)
    types = aws.load(region).types
    sold = [(kind.name, each) for kind in types for each in kind.offerings]
    zones: dict[str, list[str]] = {}
    for name, each in sold:
        if each.zone not in zones.setdefault(name, []):
            zones[name].append(each.zone)
    return PriceList(
        rows,
        {name: tuple(found) for name, found in zones.items()},
        {name: each.price_micro for name, each in sold if each.capacity_type == ON_DEMAND},
        {(name, each.zone): each.price_micro for name, each in sold if each.capacity_type == SPOT},
    )


def _logged(what: str, why: str, instead: str) -> None:
    logger("aws").warning(f"{what} are not live", why=why, instead=instead)


class Prices:
    """The price list of a region, as of now; `current` is one object until something has changed.

    `tell` is called with what is not live, why, and what counts instead; once until the reason changes.
    """

    def __init__(self, api: Api, clock: Clock, region: str, tell: Callable[[str, str, str], None] = _logged) -> None:
        self._api, self._clock, self._region, self._tell = api, clock, region, tell
        self._is_packaged = region in aws.regions()
        self._problems = dict.fromkeys((_TYPES, _ZONES, _ON_DEMAND, _SPOT), "not asked for yet")
        self._slow_due_s = 0.0
        self.current = self._noted(packaged(region))

    @property
    def is_unanswered(self) -> bool:
        """Whether AWS has answered nothing so far."""
        return all(self._problems.values())

    async def refresh(self) -> News:
        """Ask AWS; spot prices each time, the others twice a day, and each time until all of them were answered.

        What is not answered, for want of a permission or of tokens, stays as it was, and is said.
        """
        now_s, found = self._clock.now_s(), self.current
        if now_s >= self._slow_due_s:
            found = await self._asked(_TYPES, self._types, found)
            found = await self._asked(_ZONES, self._zones, found)
            found = self._estimated(await self._asked(_ON_DEMAND, self._on_demand, found))
            is_whole = not any(self._problems[what] for what in (_TYPES, _ZONES, _ON_DEMAND))
            self._slow_due_s = now_s + _SLOW_S if is_whole else now_s
        found = self._noted(await self._asked(_SPOT, self._spot, found))
        if found != self.current:
            self.current = found
        return News()

    async def _asked(self, what: str, ask: Callable[[PriceList], Awaitable[PriceList]], before: PriceList) -> PriceList:
        try:
            found = await ask(before)
        except CloudError as error:
            reason = f"{error.operation}: {error.code}" if isinstance(error, ApiFailed) else str(error)
            if self._problems[what] != reason:
                self._tell(what, reason, self._instead(what))
            self._problems[what] = reason
            return before
        self._problems[what] = ""
        return found

    def _estimated(self, found: PriceList) -> PriceList:
        """Where nothing says a price, those of a region that the package has: types compare with each other alike."""
        if found.on_demand or not self._has_estimates:
            return found
        return replace(found, on_demand=packaged(_REFERENCE).on_demand, is_on_demand_estimate=True)

    @property
    def _has_estimates(self) -> bool:
        """Other currencies would be compared with live spot prices."""
        return not self._is_packaged and partition_of(self._region) != "aws-cn"

    def _instead(self, what: str) -> str:
        """Where they come from while AWS does not say."""
        if what == _TYPES or self._is_packaged:
            return "those of the packaged catalogue, or what AWS said last"
        if what == _ON_DEMAND and self._has_estimates:
            return f"those of {_REFERENCE} in the packaged catalogue, as estimates, or what AWS said last"
        return f"nothing: the packaged catalogue has no region {self._region}"

    def _noted(self, found: PriceList) -> PriceList:
        said = []
        for what, why in self._problems.items():
            instead = f"; those of {_REFERENCE} count" if what == _ON_DEMAND and found.is_on_demand_estimate else ""
            said += [f"{what} are not live ({why}){instead}"] if why else []
        return replace(found, notes=tuple(said))

    async def _types(self, before: PriceList) -> PriceList:
        """Types that the package does not know yet; of the others it knows more than the API says."""
        records = await self._api.pages(EC2, "DescribeInstanceTypes", "InstanceTypes", Filters=_SUPPORTED)
        known = packaged(self._region).rows
        rows = {row.name: row for record in records if (row := _row_of(record)) is not None}
        return replace(before, rows={**rows, **known})

    async def _zones(self, before: PriceList) -> PriceList:
        records = await self._api.pages(
            EC2,
            "DescribeInstanceTypeOfferings",
            "InstanceTypeOfferings",
            LocationType="availability-zone",
        )
        zones: dict[str, list[str]] = {}
        with reading("DescribeInstanceTypeOfferings"):
            for record in records:
                zones.setdefault(record["InstanceType"], []).append(record["Location"])
        return replace(before, zones={name: tuple(sorted(zones[name])) for name in sorted(zones)})

    async def _on_demand(self, before: PriceList) -> PriceList:
        if not price_region_of(self._region):
            raise CloudError(f"AWS answers credentials of {partition_of(self._region)} nothing about prices")
        found: dict[str, int] = {}
        for family, tenancy in (("Compute Instance", "Shared"), ("Compute Instance (bare metal)", "Dedicated")):
            wanted = {**_LISTED, "regionCode": self._region, "productFamily": family, "tenancy": tenancy}
            terms = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()]
            texts = await self._api.pages(PRICING, "GetProducts", "PriceList", ServiceCode="AmazonEC2", Filters=terms)
            found |= _prices(texts)
        if not found:
            raise CloudError(f"the price list has nothing for {self._region}")
        known = {} if before.is_on_demand_estimate else before.on_demand
        return replace(before, on_demand={**known, **found}, is_on_demand_estimate=False)

    async def _spot(self, before: PriceList) -> PriceList:
        now = datetime.fromtimestamp(self._clock.now_s(), UTC)
        records = await self._api.pages(
            EC2,
            "DescribeSpotPriceHistory",
            "SpotPriceHistory",
            StartTime=now,
            ProductDescriptions=_LINUX,
        )
        if not records:
            raise CloudError("the history of spot prices is empty")
        with reading("DescribeSpotPriceHistory"):
            newest = sorted(records, key=lambda record: record["Timestamp"])
            found = {(each["InstanceType"], each["AvailabilityZone"]): _micro(each["SpotPrice"]) for each in newest}
        return replace(before, spot={key: found[key] for key in sorted(found)}, is_spot_estimate=False)


_SUPPORTED = [
    {"Name": "supported-virtualization-type", "Values": ["hvm"]},
    {"Name": "processor-info.supported-architecture", "Values": ["x86_64", "arm64"]},
]
_LISTED = {"operatingSystem": "Linux", "preInstalledSw": "NA", "capacitystatus": "Used", "marketoption": "OnDemand"}


def _prices(texts: Iterable[str]) -> dict[str, int]:
    """Prices an hour by type, of entries of the price list, each of which is a text of JSON; without what is torn."""
    found: dict[str, int] = {}
    for text in texts:
        try:
            with reading("GetProducts"):
                found |= _price(json.loads(text))
        except NotWhole:
            continue
    return found


def _price(entry: Mapping[str, Any]) -> dict[str, int]:
    name = entry["product"]["attributes"]["instanceType"]
    terms = entry.get("terms", {}).get("OnDemand", {}).values()
    dimensions = [each for term in terms for each in term["priceDimensions"].values()]
    prices = [_micro(next(iter(each["pricePerUnit"].values()), "0")) for each in dimensions]
    paid = [price for price in prices if price]
    return {name: paid[-1]} if paid else {}


def _row_of(record: Mapping[str, Any]) -> AwsRow | None:
    """The row of a type; None too for one that EC2 does not describe wholly: it holds up no other."""
    try:
        with reading("DescribeInstanceTypes"):
            return row_of(record)
    except NotWhole:
        return None


def _micro(text: str) -> int:
    """Millionths. Raises ValueError for what is no price, also one that no machine has."""
    price = float(text)
    if not 0 <= price < _MOST_PRICE:
        raise ValueError("no price")
    return round(price * MICRO)
