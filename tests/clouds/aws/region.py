"""What a region of AWS says of its types, zones and prices, behind `Api`."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from kerf.clouds.aws.api import Api, ApiFailed, Reply
from kerf.clouds.aws.prices import Prices
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


class Region(Api):
    """The answers of a region; an operation in `refused` is refused by policy, `torn` begins the price list."""

    def __init__(self, name: str = "us-east-1") -> None:
        self.clock = ManualClock()
        self.refused: set[str] = set()
        self.types: list[Any] = [{**G6F_RECORD, "InstanceType": "g9f.large"}]
        self.zones = [("g5.xlarge", f"{name}{zone}") for zone in "ba"]
        self.torn: list[str] = []
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
            "PriceList": [*self.torn, *(_entry(name, price) for name, price in self.on_demand.items())],
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
