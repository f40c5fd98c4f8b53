"""What a region sells: live answers over the packaged catalogue, each by itself."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from kerf.clouds.aws.api import ApiFailed, Reply
from kerf.clouds.aws.livetypes import row_of
from kerf.clouds.aws.prices import Prices, packaged
from tests.clouds.aws.account import ManualClock

G6F_RECORD = {
    "InstanceType": "g6f.large",
    "ProcessorInfo": {"SupportedArchitectures": ["x86_64"], "SustainedClockSpeedInGhz": 3.4, "Manufacturer": "AMD"},
    "VCpuInfo": {"DefaultVCpus": 2},
    "MemoryInfo": {"SizeInMiB": 8192},
    "Hypervisor": "nitro",
    "InstanceStorageInfo": {"TotalSizeInGB": 50, "NvmeSupport": "required"},
    "EbsInfo": {"EbsOptimizedInfo": {"MaximumBandwidthInMbps": 5000}},
    "NetworkInfo": {
        "NetworkCards": [{"MaximumNetworkInterfaces": 2, "BaselineBandwidthInGbps": 1.25}],
        "Ipv4AddressesPerInterface": 10,
        "EncryptionInTransitSupported": True,
    },
    "GpuInfo": {
        "Gpus": [
            {
                "Name": "L4",
                "Manufacturer": "NVIDIA",
                "Count": 0,
                "LogicalGpuCount": 1.0,
                "GpuPartitionSize": 0.125,
                "MemoryInfo": {"SizeInMiB": 2861},
            }
        ]
    },
}
"""As EC2 describes it (DescribeInstanceTypes by moto 5.2.5's copy, 2026-11)."""


class Region:
    """The answers of a region; an operation in `refused` is refused by policy."""

    def __init__(self, name: str = "us-east-1") -> None:
        self.clock = ManualClock()
        self.refused: set[str] = set()
        self.types: list[Any] = [{**G6F_RECORD, "InstanceType": "g9f.large"}]
        self.zones = [("g5.xlarge", f"{name}{zone}") for zone in "ba"]
        self.on_demand = {"g5.xlarge": "1.5000000000"}
        self.spot = [("g5.xlarge", f"{name}a", "0.50", 2), ("g5.xlarge", f"{name}a", "0.40", 1)]
        self.asked: list[str] = []
        self.prices = Prices(self, self.clock, name)

    async def call(self, service: str, operation: str, **parameters: object) -> Reply:
        """See Api."""
        raise AssertionError(operation)

    async def pages(self, service: str, operation: str, key: str, **parameters: object) -> Sequence[Any]:
        """See Api."""
        self.asked.append(operation)
        if operation in self.refused:
            raise ApiFailed(operation, "UnauthorizedOperation", "no")
        return {
            "InstanceTypes": self.types,
            "InstanceTypeOfferings": [{"InstanceType": name, "Location": zone} for name, zone in self.zones],
            "PriceList": [_entry(name, price) for name, price in self.on_demand.items()],
            "SpotPriceHistory": [
                {
                    "InstanceType": name,
                    "AvailabilityZone": zone,
                    "SpotPrice": price,
                    "Timestamp": datetime.fromtimestamp(hours * 3600, UTC),
                }
                for name, zone, price, hours in self.spot
            ],
        }[key]

    def refresh(self) -> None:
        """One turn of the loop."""
        asyncio.run(self.prices.refresh())


def _entry(name: str, price: str) -> str:
    terms = {"OnDemand": {"t": {"priceDimensions": {"d": {"pricePerUnit": {"USD": price}}}}}}
    return json.dumps({"product": {"attributes": {"instanceType": name}}, "terms": terms})


def test_live_answers_go_over_the_packaged_ones() -> None:
    """Zones and prices; of two spot prices the newest; types that the package lacks are added."""
    region = Region()
    region.refresh()
    found = region.prices.current

    assert ("us-east-1a", "us-east-1b") == found.zones["g5.xlarge"]
    assert (1_500_000, {("g5.xlarge", "us-east-1a"): 500_000}) == (found.on_demand["g5.xlarge"], found.spot)
    assert (False, ()) == (found.is_spot_estimate, found.notes)
    assert {"g9f.large"} == found.rows.keys() - packaged("us-east-1").rows.keys()


@pytest.mark.parametrize(
    ("operation", "note"),
    [
        ("DescribeInstanceTypes", "instance types are not live (DescribeInstanceTypes: UnauthorizedOperation)"),
        ("DescribeInstanceTypeOfferings", "zones are not live (DescribeInstanceTypeOfferings: UnauthorizedOperation)"),
        ("GetProducts", "on-demand prices are not live (GetProducts: UnauthorizedOperation)"),
        ("DescribeSpotPriceHistory", "spot prices are not live (DescribeSpotPriceHistory: UnauthorizedOperation)"),
    ],
)
def test_what_is_refused_stays_as_packaged_and_is_said(operation: str, note: str) -> None:
    """The other three answers count all the same."""
    region, before = Region(), packaged("us-east-1")
    region.refused = {operation}
    region.refresh()
    found = region.prices.current

    assert (note,) == found.notes
    kept = {
        "DescribeInstanceTypes": (before.rows, found.rows),
        "DescribeInstanceTypeOfferings": (before.zones, found.zones),
        "GetProducts": (before.on_demand, found.on_demand),
        "DescribeSpotPriceHistory": (before.spot, found.spot),
    }[operation]
    assert kept[0] == kept[1]


def test_a_region_that_the_package_lacks_sells_nothing_before_aws_says() -> None:
    """Its types are known, their zones and prices are not."""
    region = Region("eu-west-1")
    before = region.prices.current
    region.refresh()

    assert ({}, {}, True) == (dict(before.zones), dict(before.on_demand), "g5.xlarge" in before.rows)
    assert ("eu-west-1a", "eu-west-1b") == region.prices.current.zones["g5.xlarge"]


def test_only_spot_prices_are_asked_for_at_each_turn() -> None:
    """The others twice a day, and what has not changed is the same object."""
    region = Region()
    region.refresh()
    first, region.asked = region.prices.current, []
    region.refresh()

    assert (["DescribeSpotPriceHistory"], True) == (region.asked, first is region.prices.current)
    region.clock.seconds += 12 * 3600
    region.refresh()
    assert 6 == len(region.asked)


def test_a_described_type_is_the_row_of_the_catalogue() -> None:
    """A fractional card: logical count, share and memory as the packaged row has them."""
    row, packed = row_of(G6F_RECORD), packaged("us-east-1").rows["g6f.large"]
    assert row is not None

    assert packed.gpus == row.gpus
    assert (packed.vcpu, packed.memory_mib, packed.enis, packed.ipv4_per_eni, packed.arch, packed.category) == (
        row.vcpu, row.memory_mib, row.enis, row.ipv4_per_eni, row.arch, row.category
    )  # fmt: skip
