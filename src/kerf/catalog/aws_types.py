"""One EC2 instance type as Karpenter's AWS provider publishes it: labels, capacity, overhead, cards.

The arithmetic is Karpenter's own, defaults of EC2NodeClass (AL2023, no kubelet settings, no block devices), because a
plan must not count on memory that the node it leads to will not have. Units here are MiB; results are base units.
"""

from functools import cache

import msgspec

from kerf.catalog.gpus import device_shape
from kerf.catalog.packaged import label, one_of
from kerf.catalog.reserved import reserved_cpu_milli, reserved_memory_mib
from kerf.model.constraints import ARCH, INSTANCE_TYPE, OS, WINDOWS_BUILD, Requirement
from kerf.model.gpu import NVIDIA_GPU, DeviceShape
from kerf.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, MIB, PODS, Resources

PREFIX = "karpenter.k8s.aws/instance-"
GIB = 1024 * MIB
VM_OVERHEAD_PER_MILLE = 75
"""Karpenter's VM_MEMORY_OVERHEAD_PERCENT, 7.5 %: what the hypervisor keeps."""
ARM_RESERVED_MIB = 64
ROOT_VOLUME_GIB = 20
EVICTION_MIB = 100


class Gpu(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """GPUs of one kind. EC2 counts a card that it sells in part as 0 and as `logical_count` 1."""

    model: str
    manufacturer: str
    count: int
    logical_count: int
    eighths: int
    memory_mib_each: int


class Accelerator(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Chips that are no GPU: Inferentia, Trainium, Qualcomm."""

    model: str
    manufacturer: str
    count: int
    cores_per_device: int


class Sold(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How a type is sold in one region; `zone_set` is an index into the file's zone sets, `spot_saving` in percent."""

    price_micro: int | None
    zone_set: int
    spot_saving: int | None


class AwsRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row of `aws.json`; the columns are explained in its `meta`."""

    name: str
    category: str | None
    generation: int | None
    arch: str
    vcpu: int
    memory_mib: int
    cpu_manufacturer: str | None
    clock_mhz: int
    hypervisor: str | None
    is_encrypted_in_transit: bool | None
    local_nvme_gb: int | None
    network_mbps: int | None
    ebs_mbps: int | None
    enis: int
    ipv4_per_eni: int
    efa: int
    branch_enis: int
    gpus: tuple[Gpu, ...]
    accelerators: tuple[Accelerator, ...]
    sold: tuple[Sold | None, ...]

    @property
    def family(self) -> str:
        """`g5` of `g5.xlarge`."""
        return self.name.partition(".")[0]


def labels(spec: AwsRow) -> list[Requirement]:
    """Every label of a node of the type, a missing one as `DoesNotExist`, as the provider publishes them."""
    encrypted = spec.is_encrypted_in_transit
    values: dict[str, object] = {
        "category": spec.category,
        "family": spec.family,
        "generation": spec.generation,
        "size": spec.name.partition(".")[2],
        "cpu": spec.vcpu,
        "cpu-manufacturer": _kebab(spec.cpu_manufacturer or ""),
        "cpu-sustained-clock-speed-mhz": spec.clock_mhz,
        "memory": spec.memory_mib,
        "hypervisor": spec.hypervisor or "",
        "capability-flex": "true" if "flex" in spec.family else "false",
        "local-nvme": spec.local_nvme_gb or None,
        "network-bandwidth": spec.network_mbps,
        "ebs-bandwidth": spec.ebs_mbps,
        "encryption-in-transit-supported": None if encrypted is None else str(encrypted).lower(),
        "tenancy": "default",
        **_gpu_labels(spec),
        **_accelerator_labels(spec),
    }
    fixed = [one_of(INSTANCE_TYPE, spec.name), one_of(ARCH, spec.arch), one_of(OS, "linux")]
    fixed.append(Requirement.of(WINDOWS_BUILD, "DoesNotExist"))
    return fixed + [label(PREFIX + key, value) for key, value in values.items()]


def _gpu_labels(spec: AwsRow) -> dict[str, object]:
    """Labels of the GPUs, present only where the type has exactly one kind; memory is that of one card."""
    gpu = spec.gpus[0] if len(spec.gpus) == 1 else None
    return {
        "gpu-name": gpu and _kebab(gpu.model),
        "gpu-manufacturer": gpu and _kebab(gpu.manufacturer),
        "gpu-count": None if gpu is None else gpu.count,
        "gpu-memory": gpu and gpu.memory_mib_each,
    }


def _accelerator_labels(spec: AwsRow) -> dict[str, object]:
    chip = spec.accelerators[0] if len(spec.accelerators) == 1 else None
    return {
        "accelerator-name": chip and _kebab(chip.model),
        "accelerator-manufacturer": chip and _kebab(chip.manufacturer),
        "accelerator-count": None if chip is None else chip.count,
    }


def _kebab(text: str) -> str:
    return text.lower().replace(" ", "-")


def max_pods(spec: AwsRow) -> int:
    """Pods of the VPC CNI: each interface's addresses but its own, and two pods on the host network."""
    return spec.enis * (spec.ipv4_per_eni - 1) + 2


def capacity(spec: AwsRow) -> Resources:
    """What a node of the type will report. A card that is sold in part counts as one, where Karpenter says none."""
    usable = spec.memory_mib - (ARM_RESERVED_MIB if spec.arch == "arm64" else 0)
    amounts = {
        CPU: spec.vcpu * 1000,
        MEMORY: (usable - -(-usable * VM_OVERHEAD_PER_MILLE // 1000)) * MIB,
        PODS: max_pods(spec),
        EPHEMERAL_STORAGE: ROOT_VOLUME_GIB * GIB,
    }
    extended = {
        NVIDIA_GPU: sum(gpu.logical_count for gpu in spec.gpus if gpu.manufacturer == "NVIDIA"),
        "amd.com/gpu": sum(gpu.count for gpu in spec.gpus if gpu.manufacturer == "AMD"),
        "habana.ai/gaudi": sum(gpu.count for gpu in spec.gpus if gpu.manufacturer == "Habana"),
        "aws.amazon.com/neuron": sum(chip.count for chip in spec.accelerators if chip.manufacturer == "AWS"),
        "aws.amazon.com/neuroncore": sum(chip.count * chip.cores_per_device for chip in spec.accelerators),
        "vpc.amazonaws.com/efa": spec.efa,
        "vpc.amazonaws.com/pod-eni": spec.branch_enis,
    }
    return Resources({**amounts, **{name: amount for name, amount in extended.items() if amount}})


@cache
def overhead(vcpu: int, pods: int) -> Resources:
    """kube-reserved and the eviction threshold of a node with so many CPUs and pods.

    CPU and memory by the rules in `reserved`, with 100 MiB kept from eviction; disk: 1 GiB and 10 %.
    """
    return Resources(
        {
            CPU: reserved_cpu_milli(vcpu),
            MEMORY: (reserved_memory_mib(pods) + EVICTION_MIB) * MIB,
            EPHEMERAL_STORAGE: GIB + ROOT_VOLUME_GIB * GIB // 10,
        }
    )


@cache
def devices(gpus: tuple[Gpu, ...]) -> tuple[DeviceShape, ...]:
    """One shape an NVIDIA card; cards of other vendors cannot be planned by slice and have none."""
    return tuple(
        device_shape(gpu.model, api_mib=gpu.memory_mib_each, origin="EC2 API", eighths=gpu.eighths)
        for gpu in gpus
        if gpu.manufacturer == "NVIDIA"
        for _ in range(gpu.logical_count)
    )
