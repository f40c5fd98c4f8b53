"""The AWS market: EC2 types with zones, on-demand prices and spot estimates of two regions, from `aws.json`.

A price is not an offering: a type may have a price and be sold in no zone any more (p3.2xlarge). Spot prices are not
in the file; the average saving of a dated public feed stands in for them and every such offering is marked.
"""

from functools import cache

import msgspec

from kerf.catalog.aws_types import AwsRow, Sold, capacity, devices, labels, max_pods, overhead
from kerf.catalog.packaged import data, one_of
from kerf.errors import InputError
from kerf.model.constraints import CAPACITY_TYPE, REGION, ZONE, ZONE_ID, Requirement, Requirements
from kerf.model.instancetypes import ON_DEMAND, SPOT, InstanceType, Offering
from kerf.model.market import Market

DEFAULT_REGION = "us-east-1"
NOTES = {
    "us-east-1": "on-demand prices of AWS us-east-1 are of 2026-07-20, zones of 2026-10-27",
    "us-west-2": "on-demand prices of AWS us-west-2 are undated and known for 20 types only; zones are of 2026-10-27",
}


class UnknownRegion(InputError):
    """A region that the catalogue lacks."""

    def __init__(self, region: str) -> None:
        super().__init__(f"AWS region {region!r}: expected one of {', '.join(regions())}")
        self.region = region


class _File(msgspec.Struct, frozen=True):
    regions: tuple[str, ...]
    zone_sets: tuple[tuple[str, ...], ...]
    types: tuple[AwsRow, ...]


@cache
def _file() -> _File:
    return msgspec.json.decode(data("aws.json"), type=_File)


def specs() -> tuple[AwsRow, ...]:
    """Every known type, sold or not, in the order of the file."""
    return _file().types


def regions() -> tuple[str, ...]:
    """The regions with offerings."""
    return _file().regions


@cache
def load(region: str = DEFAULT_REGION) -> Market:
    """What AWS sells in a region. Raises UnknownRegion."""
    file = _file()
    if region not in file.regions:
        raise UnknownRegion(region)
    index = file.regions.index(region)
    types = (instance_type(spec, spec.sold[index], region) for spec in file.types)
    sold = sorted((kind for kind in types if kind.offerings), key=lambda kind: kind.name)
    return Market(tuple(sold), "USD", "aws", region, notes=(NOTES[region],))


def instance_type(spec: AwsRow, sold: Sold | None = None, region: str = DEFAULT_REGION) -> InstanceType:
    """The type as Karpenter's provider would publish it; without `sold` it has no offerings, zones or region."""
    offered: tuple[Offering, ...] = ()
    if sold is not None and sold.price_micro is not None:
        offered = _offerings(_file().zone_sets[sold.zone_set], sold.price_micro, sold.spot_saving)
    return offered_type(spec, offered, region, _notes(spec, sold))


def offered_type(spec: AwsRow, offered: tuple[Offering, ...], region: str, notes: tuple[str, ...]) -> InstanceType:
    """The type with such offerings, for the defaults of an EC2NodeClass; without any it has no zones and no region."""
    requirements = labels(spec)
    if offered:
        zones, kinds = (dict.fromkeys(each) for each in zip(*((o.zone, o.capacity_type) for o in offered), strict=True))
        requirements += [one_of(ZONE, *zones), one_of(REGION, region), one_of(CAPACITY_TYPE, *kinds)]
        # Each node gets one, but which zone has which id is another matter in each account.
        requirements.append(Requirement.of(ZONE_ID, "Exists"))
    return InstanceType(
        spec.name,
        Requirements(requirements),
        capacity(spec),
        overhead(spec.vcpu, max_pods(spec)),
        offered,
        devices(spec.gpus),
        spec.family,
        notes,
    )


def _offerings(zones: tuple[str, ...], price_micro: int, spot_saving: int | None) -> tuple[Offering, ...]:
    """On demand in every zone, then spot in every zone where a saving is known."""
    offered = tuple(Offering(zone, ON_DEMAND, price_micro) for zone in zones)
    if spot_saving is None:
        return offered
    estimate = (price_micro * (100 - spot_saving) + 50) // 100
    return offered + tuple(Offering(zone, SPOT, estimate, is_estimate=True) for zone in zones)


def _notes(spec: AwsRow, sold: Sold | None) -> tuple[str, ...]:
    notes = []
    if sold is not None and sold.spot_saving is not None:
        notes.append(f"spot is an estimate: on-demand less {sold.spot_saving} % (AWS Spot Advisor, 2025-06-28)")
    elif sold is not None:
        notes.append("no spot: no saving is known for it")
    return (*notes, *notes_on(spec))


def notes_on(spec: AwsRow) -> tuple[str, ...]:
    """What there is to know of a type wherever it is sold."""
    if any(gpu.eighths < 8 for gpu in spec.gpus):
        return (f"sold with {spec.gpus[0].eighths}/8 of a card, which Karpenter counts as no GPU",)
    return ()


def why_not_sold(region: str, name: str) -> str | None:
    """Why a type of that name is not in the market of the region; None when it is there or no such type is known."""
    file = _file()
    if region not in file.regions:
        return None
    spec = next((spec for spec in file.types if spec.name == name), None)
    if spec is None:
        return None
    sold = spec.sold[file.regions.index(region)]
    if sold is None:
        return f"AWS does not sell {name} in {region}"
    zones = file.zone_sets[sold.zone_set]
    if not zones:
        return f"{name} has a price in {region} but is sold in no zone there any more"
    return f"no price of {name} in {region} is known" if sold.price_micro is None else None
