"""The Alibaba Cloud market: ECS types with zones and pay-as-you-go prices in CNY, from `alibaba.json`.

Two Karpenter providers exist for ECS, and neither publishes a table to check against. Allocatable follows the one that
cites ACK's resource reservation policy and states every figure (cloudpilot-ai); labels are its labels too, the other
provider has none of its own. The data has zones by region, not by type, and no spot prices.
"""

import re
from functools import cache

import msgspec

from kerf.catalog.gpus import device_shape, model_of
from kerf.catalog.packaged import data, label, one_of
from kerf.catalog.reserved import reserved_cpu_milli, reserved_memory_mib
from kerf.errors import InputError
from kerf.model.constraints import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, REGION, ZONE, Requirement, Requirements
from kerf.model.gpu import NVIDIA_GPU, DeviceShape
from kerf.model.instancetypes import ON_DEMAND, InstanceType, Offering
from kerf.model.market import Market
from kerf.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, MIB, PODS, Resources

DEFAULT_REGION = "cn-shanghai"
PREFIX = "karpenter.k8s.alibabacloud/instance-"
GIB = 1024 * MIB
VM_OVERHEAD_PER_MILLE = 65
DEFAULT_PODS = 110
"""Where the data has no network interfaces of a type: kubelet's own limit."""
SYSTEM_DISK_GIB = 40
NOTES = (
    "prices of Alibaba Cloud are of 2024-10 to 2024-12, pay-as-you-go, CNY; no spot prices are known",
    "zones of Alibaba Cloud are those of the region: which of them sell a type is not in the data",
)
_SCHEME = re.compile(r"ecs\.([a-z]+)(?:-\d+tb)?(\d+)")
_SLICE = re.compile(r"ecs\.([sv]gn\d+i)\b.*-m(\d+)s?[.-]")
_CARD_OF_SLICE = {
    "vgn5i": ("P4", 8, 7611),
    "vgn6i": ("T4", 16, 15109),
    "sgn6i": ("T4", 16, 15109),
    "vgn7i": ("A10", 24, 22731),
    "sgn7i": ("A10", 24, 22731),
}
"""Card, its GB and the MiB it registers on ECS, behind the families that sell a share of one (`m4`: 4 GB).

By the family of the same generation that sells it whole (gn5i, gn6i, gn7i).
"""


class AlibabaRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row of `alibaba.json`; the columns are explained in its `meta`."""

    name: str
    family: str
    arch: str | None
    vcpu: int | None
    memory_mib: int | None
    gpu_count: int
    gpu_model: str | None
    gpu_gb: int | None
    gpu_memory_mib: int | None
    gpu_memory_source: str | None
    max_pods: int | None
    prices: tuple[int | None, ...]


class _File(msgspec.Struct, frozen=True):
    regions: dict[str, tuple[str, ...]]
    types: tuple[AlibabaRow, ...]


@cache
def _file() -> _File:
    return msgspec.json.decode(data("alibaba.json"), type=_File)


def specs() -> tuple[AlibabaRow, ...]:
    """Every known type, sold or not, in the order of the file."""
    return _file().types


def regions() -> tuple[str, ...]:
    """The regions with prices, by name."""
    return tuple(_file().regions)


@cache
def load(region: str = DEFAULT_REGION) -> Market:
    """What Alibaba Cloud sells in a region. Raises InputError for a region that the catalogue lacks."""
    known = regions()
    if region not in known:
        raise InputError(f"Alibaba Cloud region {region!r}: expected one of {', '.join(known)}")
    index = known.index(region)
    sold = [
        instance_type(spec, region, price)
        for spec in sorted(specs(), key=lambda spec: spec.name)
        if (price := spec.prices[index]) is not None and spec.vcpu and spec.memory_mib
    ]
    return Market(tuple(sold), "CNY", "alibaba", region, notes=NOTES)


def instance_type(spec: AlibabaRow, region: str, price_micro: int) -> InstanceType:
    """The type with one offering a zone of the region."""
    zones = _file().regions[region]
    pods = spec.max_pods or DEFAULT_PODS
    cards = devices(spec)
    places = [one_of(ZONE, *zones), one_of(REGION, region), one_of(CAPACITY_TYPE, ON_DEMAND)]
    return InstanceType(
        spec.name,
        Requirements(_labels(spec) + places),
        _capacity(spec, pods),
        overhead(spec.vcpu or 0, spec.memory_mib or 0, pods),
        tuple(Offering(zone, ON_DEMAND, price_micro) for zone in zones),
        cards,
        spec.name.rpartition(".")[0],
        _notes(spec, cards),
    )


def _labels(spec: AlibabaRow) -> list[Requirement]:
    scheme = _SCHEME.match(spec.name)
    family, _, size = spec.name.rpartition(".")
    model = _card_name(spec)
    values: dict[str, object] = {
        "category": scheme and scheme[1],
        "generation": scheme and scheme[2],
        "family": family,
        "size": size,
        "cpu": spec.vcpu,
        "memory": spec.memory_mib,
        "gpu-count": spec.gpu_count or None,
        "gpu-name": model and f"nvidia-{model}".lower().replace(" ", "-") if spec.gpu_count else None,
        "gpu-manufacturer": "NVIDIA" if spec.gpu_count else None,
        "gpu-memory": spec.gpu_gb if spec.gpu_count else None,
    }
    fixed = [one_of(INSTANCE_TYPE, spec.name), one_of(ARCH, spec.arch or "amd64"), one_of(OS, "linux")]
    return fixed + [label(PREFIX + key, value) for key, value in values.items()]


def _card_name(spec: AlibabaRow) -> str | None:
    if spec.gpu_model is not None:
        return spec.gpu_model.removeprefix("NVIDIA ")
    return _CARD_OF_SLICE[spec.family][0] if spec.family in _CARD_OF_SLICE else None


def _capacity(spec: AlibabaRow, pods: int) -> Resources:
    memory = spec.memory_mib or 0
    amounts = {
        CPU: (spec.vcpu or 0) * 1000,
        MEMORY: (memory - -(-memory * VM_OVERHEAD_PER_MILLE // 1000)) * MIB,
        PODS: pods,
        EPHEMERAL_STORAGE: SYSTEM_DISK_GIB * GIB,
    }
    return Resources({**amounts, NVIDIA_GPU: spec.gpu_count} if spec.gpu_count else amounts)


@cache
def overhead(vcpu: int, memory_mib: int, pods: int) -> Resources:
    """What ACK reserves on a node of so many CPUs, MiB and pods.

    CPU and memory by the rules in `reserved`, memory at most a quarter of the machine, and 200 MiB more; disk: 1 GiB
    for kubelet, 1 GiB for the system, 10 %.
    """
    return Resources(
        {
            CPU: reserved_cpu_milli(vcpu),
            MEMORY: (min(reserved_memory_mib(pods), memory_mib // 4) + 200) * MIB,
            EPHEMERAL_STORAGE: 2 * GIB + SYSTEM_DISK_GIB * GIB // 10,
        }
    )


def devices(spec: AlibabaRow) -> tuple[DeviceShape, ...]:
    """One shape a card; none where neither its memory nor its model is known, so no slice is planned there."""
    sliced = _SLICE.match(spec.name)
    if sliced is not None and spec.family in _CARD_OF_SLICE:
        return (_slice_of(spec.family, int(sliced[2])),) * spec.gpu_count
    if spec.gpu_memory_mib is None or spec.gpu_model is None:
        return ()
    origin = f"ECS, {spec.gpu_memory_source}"
    if (spec.gpu_memory_source or "").startswith("vendor page"):
        return (device_shape(spec.gpu_model, api_mib=spec.gpu_memory_mib, origin=origin),) * spec.gpu_count
    return (device_shape(spec.gpu_model, observed_mib=spec.gpu_memory_mib, origin=origin),) * spec.gpu_count


@cache
def _slice_of(family: str, share_gb: int) -> DeviceShape:
    """A card of which `share_gb` are sold: in proportion to what a whole one registers."""
    name, whole_gb, whole_mib = _CARD_OF_SLICE[family]
    source = f"{share_gb} of {whole_gb} GB by its name, of the {whole_mib} MiB that a whole card registers on ECS"
    eighths = min(8, max(1, share_gb * 8 // whole_gb))
    return DeviceShape(model_of(name), whole_mib * share_gb // whole_gb, source, eighths)


def _notes(spec: AlibabaRow, cards: tuple[DeviceShape, ...]) -> tuple[str, ...]:
    notes = []
    if spec.gpu_count and not cards:
        notes.append("neither model nor memory of its cards is known: no slice is planned on it")
    if any(card.is_fraction for card in cards):
        notes.append("sold with a share of a card; model and memory are read from the name of the type")
    if spec.max_pods is None:
        notes.append(f"its network interfaces are not in the data: {DEFAULT_PODS} pods assumed")
    return tuple(notes)


def why_not_sold(region: str, name: str) -> str | None:
    """Why a type of that name is not in the market of the region; None when it is there or no such type is known."""
    known = regions()
    spec = next((spec for spec in specs() if spec.name == name), None)
    if spec is None or region not in known:
        return None
    if spec.prices[known.index(region)] is None:
        return f"no price of {name} in {region} is known"
    return None if spec.vcpu and spec.memory_mib else f"vCPU and memory of {name} are not known"
