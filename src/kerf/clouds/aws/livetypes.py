"""An instance type as DescribeInstanceTypes describes it, as a row of the catalogue: for types newer than the package.

The API lacks some of what Karpenter publishes: interfaces that pods can have for themselves, and network bandwidth of
older types. They are left empty.
"""

import re
from collections.abc import Mapping
from typing import Any

from kerf.catalog.aws_types import Accelerator, AwsRow, Gpu

Record = Mapping[str, Any]
_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
_FAMILY = re.compile(r"^([a-z]+?)([0-9]+)")
_EIGHTHS = 8


def row_of(record: Record) -> AwsRow | None:
    """The row; None for an architecture on which no node runs."""
    name = record["InstanceType"]
    processor, network = record.get("ProcessorInfo", {}), record.get("NetworkInfo", {})
    known = [_ARCHITECTURES[each] for each in processor.get("SupportedArchitectures", ()) if each in _ARCHITECTURES]
    if not known:
        return None
    cards = network.get("NetworkCards") or [{}]
    first = cards[network.get("DefaultNetworkCardIndex") or 0]
    family = _FAMILY.match(name)
    encrypted = network.get("EncryptionInTransitSupported")
    return AwsRow(
        name=name,
        category=family[1] if family else None,
        generation=int(family[2]) if family else None,
        arch=known[0],
        vcpu=record["VCpuInfo"]["DefaultVCpus"],
        memory_mib=record["MemoryInfo"]["SizeInMiB"],
        cpu_manufacturer=processor.get("Manufacturer"),
        clock_mhz=round((processor.get("SustainedClockSpeedInGhz") or 0) * 1000),
        hypervisor=record.get("Hypervisor"),
        is_encrypted_in_transit=encrypted,
        local_nvme_gb=_local_gb(record.get("InstanceStorageInfo") or {}),
        network_mbps=round(sum(card.get("BaselineBandwidthInGbps") or 0 for card in cards) * 1000) or None,
        ebs_mbps=((record.get("EbsInfo") or {}).get("EbsOptimizedInfo") or {}).get("MaximumBandwidthInMbps"),
        enis=first.get("MaximumNetworkInterfaces") or network.get("MaximumNetworkInterfaces") or 0,
        ipv4_per_eni=network.get("Ipv4AddressesPerInterface") or 1,
        efa=(network.get("EfaInfo") or {}).get("MaximumEfaInterfaces") or 0,
        branch_enis=0,
        gpus=tuple(_gpu(each) for each in (record.get("GpuInfo") or {}).get("Gpus") or ()),
        accelerators=_accelerators(record),
        sold=(),
    )


def _local_gb(storage: Record) -> int | None:
    return storage.get("TotalSizeInGB") if storage.get("NvmeSupport") in ("required", "supported") else None


def _gpu(gpu: Record) -> Gpu:
    """A card that is sold in part has the count 0, a logical count, and its share."""
    count = gpu.get("Count") or 0
    eighths = round((gpu.get("GpuPartitionSize") or 1) * _EIGHTHS)
    logical = gpu.get("LogicalGpuCount") or count
    memory = (gpu.get("MemoryInfo") or {}).get("SizeInMiB") or 0
    return Gpu(gpu.get("Name") or "", gpu.get("Manufacturer") or "", count, int(logical), eighths, memory)


def _accelerators(record: Record) -> tuple[Accelerator, ...]:
    neuron = (record.get("NeuronInfo") or {}).get("NeuronDevices") or ()
    if neuron:
        return tuple(
            Accelerator(
                each.get("Name") or "", "AWS", each.get("Count") or 0, (each.get("CoreInfo") or {}).get("Count") or 0
            )
            for each in neuron
        )
    others = (record.get("InferenceAcceleratorInfo") or {}).get("Accelerators") or ()
    return tuple(
        Accelerator(each.get("Name") or "", each.get("Manufacturer") or "", each.get("Count") or 0, 0)
        for each in others
    )
