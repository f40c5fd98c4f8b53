"""Trim collected cloud data to the columns that `kerf.catalog` reads.

The collected files hold everything that was found, the wheel only what a plan needs: this keeps `src/kerf/catalog/data`
at a few hundred KB, one instance type a line, so that a refresh shows up as a readable diff. Money becomes an integer
number of millionths here, from the digits in the file, so that no float ever holds a price.

    python tools/trim_catalogue.py aws TYPES.json --describe DESCRIBE.json > src/kerf/catalog/data/aws.json
    python tools/trim_catalogue.py alibaba TYPES.json > src/kerf/catalog/data/alibaba.json

TYPES.json is the collected file; DESCRIBE.json is moto's bundled reply of EC2 DescribeInstanceTypes, unpacked, for the
one column that the collected file lacks (encryption in transit).
"""

import argparse
import json
import sys
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

Row = dict[str, Any]

AWS_REGIONS = ("us-east-1", "us-west-2")
AWS_META = {
    "provider": "aws",
    "currency": "USD",
    "units": "memory MiB; clock MHz; bandwidth Mbit/s; storage GB; price in millionths of a USD an hour; spot in %",
    "columns": "name category generation arch vcpu memory_mib cpu_manufacturer clock_mhz hypervisor "
    "is_encrypted_in_transit local_nvme_gb network_mbps ebs_mbps enis ipv4_per_eni efa branch_enis gpus accelerators "
    "sold",
    "gpus": "model manufacturer count logical_count eighths memory_mib_each",
    "accelerators": "model manufacturer count cores_per_device",
    "sold": "one entry a region: price, index in zone_sets, spot saving; null: neither price nor zones",
    "sources": {
        "specification, zones": "EC2 DescribeInstanceTypes and DescribeInstanceTypeOfferings as bundled in moto 5.2.5, "
        "2026-10-27 (types no longer returned: moto 5.1.0, 2025-02, and 5.0.10, 2024-06)",
        "network_mbps, branch_enis": "karpenter-provider-aws 1d92708, generated tables, 2026-08",
        "price us-east-1": "karpenter-provider-aws 1d92708, generated price table, 2026-07-20",
        "price us-west-2": "SkyPilot catalogue v7, undated; only types whose us-east-1 price equals the 2026 table",
        "spot": "AWS Spot Advisor, average saving against on demand, as embedded in alexei-led/spotinfo, 2025-06-28",
    },
}
ALIBABA_META = {
    "provider": "alibaba",
    "currency": "CNY",
    "units": "memory MiB; gpu_memory MiB a card; gpu_gb as the vendor states it; price in millionths of a CNY per hour",
    "columns": "name family arch vcpu memory_mib gpu_count gpu_model gpu_gb gpu_memory_mib gpu_memory_source max_pods "
    "prices",
    "prices": "one entry a region, in the order of `regions`; null where the type is not sold",
    "sources": {
        "specification, zones, price": "cloudpilot-ai/priceserver table, 2024-10-16, completed by "
        "cloudpilot-ai/karpenter-provider-alibabacloud's initial price table, 2024-12; 37 rows from the vendor's page "
        "'GPU-accelerated compute-optimized instance families', read 2026-11",
        "gpu_memory_mib": "AliyunContainerService/karpenter-provider-alibabacloud e6ed7cd, 2026-07-23",
    },
}


def micro(price: Decimal | int | None) -> int | None:
    """Millionths of the currency's unit, half up."""
    return None if price is None else int((Decimal(price) * 1_000_000).quantize(Decimal(1), ROUND_HALF_UP))


def read(path: Path) -> Row:
    """A JSON file with its decimals kept exact."""
    document: Row = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    return document


def aws_gpus(row: Row) -> list[list[Any]]:
    """EC2's GPUs; a count that was not reported as logical is the physical one."""
    return [
        [
            gpu["model"],
            gpu["manufacturer"],
            gpu["count"],
            gpu["count"] if gpu["logical_count"] is None else gpu["logical_count"],
            8 if gpu["partition_size"] is None else int(gpu["partition_size"] * 8),
            gpu["memory_mib_each"],
        ]
        for gpu in row["gpus"]
    ]


def aws_accelerators(row: Row) -> list[list[Any]]:
    """Inferentia, Trainium and other inference chips, each once."""
    if row["neuron"]:
        return [[chip["model"], "AWS", chip["count"], chip["cores_per_device"]] for chip in row["neuron"]]
    return [[chip["model"], chip["manufacturer"], chip["count"], 0] for chip in row["inference"]]


def aws_sold(row: Row, region: str, zone_sets: list[list[str]]) -> list[Any] | None:
    """Price, zones and spot saving in a region; `zone_sets` grows as needed."""
    zones, price = row["zones"].get(region) or [], row["price"][region]
    if not zones and price is None:
        return None
    if zones not in zone_sets:
        zone_sets.append(zones)
    saving = ((row["spot_advisor"] or {}).get(region) or {}).get("savings_pct") or 0
    return [micro(price), zone_sets.index(zones), saving if "spot" in row["usage_classes"] and saving > 0 else None]


def aws_row(row: Row, encryption: dict[str, bool], zone_sets: list[list[str]]) -> list[Any]:
    """One type in the order of AWS_META."""
    has_nvme = row["local_nvme"] in ("required", "supported")
    return [
        row["name"],
        row["category"],
        row["generation"],
        row["arch"],
        row["vcpu"],
        row["memory_mib"],
        row["cpu_manufacturer"],
        int((row["cpu_clock_ghz"] or 0) * 1000),
        row["hypervisor"],
        encryption.get(row["name"]),
        row["local_storage_gb"] if has_nvme else None,
        row["network_baseline_mbps"],
        row["ebs_max_mbps"],
        row["enis_default_card"],
        row["ipv4_per_eni"],
        row["efa_max"] or 0,
        row["branch_enis"] or 0,
        aws_gpus(row),
        aws_accelerators(row),
        [aws_sold(row, region, zone_sets) for region in AWS_REGIONS],
    ]


def trim_aws(types: Path, describe: Path) -> Row:
    """The AWS catalogue: every known type, sold or not, so that a message can tell the two apart."""
    replies = json.loads(describe.read_text(encoding="utf-8"))
    encryption = {name: reply["NetworkInfo"].get("EncryptionInTransitSupported") for name, reply in replies.items()}
    zone_sets: list[list[str]] = []
    rows = [aws_row(row, encryption, zone_sets) for row in read(types)["instance_types"]]
    return {"meta": AWS_META, "regions": list(AWS_REGIONS), "zone_sets": zone_sets, "types": rows}


def alibaba_row(row: Row, regions: Iterable[str]) -> list[Any]:
    """One type in the order of ALIBABA_META."""
    memory = row["memory_gib"]
    return [
        row["name"],
        row["family"],
        row["arch"],
        row["vcpu"],
        None if memory is None else int(memory * 1024),
        row["gpu_count"] or 0,
        row["gpu_model"] or row["gpu_model_inferred"],
        None if row["gpu_memory_gb_nominal_each"] is None else int(row["gpu_memory_gb_nominal_each"]),
        row["gpu_memory_mib_each"],
        row["gpu_memory_source"],
        row["max_pods_terway"],
        [micro(row["price_cny_per_hour"].get(region)) for region in regions],
    ]


def trim_alibaba(types: Path) -> Row:
    """The Alibaba catalogue: every known type with its prices."""
    document = read(types)
    zones = document["meta"]["zones_by_region"]
    priced = {region for row in document["instance_types"] for region in row["price_cny_per_hour"]}
    regions = sorted(priced & zones.keys())
    rows = [alibaba_row(row, regions) for row in document["instance_types"]]
    return {"meta": ALIBABA_META, "regions": {region: sorted(zones[region]) for region in regions}, "types": rows}


def text_of(document: Row) -> str:
    """JSON with one instance type, and one list of zones, a line."""
    lines = (f'"{key}": {_text_of_part(key, part)}' for key, part in document.items())
    return "{" + ",\n".join(lines) + "}\n"


def _text_of_part(key: str, part: Any) -> str:
    if key == "meta":
        return json.dumps(part, ensure_ascii=False, indent=1)
    if isinstance(part, dict):
        return "{\n" + ",\n".join(f'"{name}": {_compact(value)}' for name, value in part.items()) + "\n}"
    return "[\n" + ",\n".join(_compact(value) for value in part) + "\n]"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main() -> None:
    """Read the arguments, write to stdout."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("provider", choices=("aws", "alibaba"))
    parser.add_argument("types", type=Path)
    parser.add_argument("--describe", type=Path, help="moto's DescribeInstanceTypes file (aws only)")
    given = parser.parse_args()
    if given.provider == "aws" and given.describe is None:
        parser.error("aws needs --describe")
    document = trim_aws(given.types, given.describe) if given.provider == "aws" else trim_alibaba(given.types)
    sys.stdout.write(text_of(document))


if __name__ == "__main__":
    main()
