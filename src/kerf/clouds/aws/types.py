"""Instance types as nodes of one EC2NodeClass: its kubelet, disks and family decide what pods can use of a machine.

The arithmetic is Karpenter's (pkg/providers/instancetype, v1.14.1), because a plan must not count on what a node will
not have. What the packaged catalogue says of a type is for the defaults of an EC2NodeClass.
"""

import math
from functools import lru_cache

from kerf.catalog.aws_types import EVICTION_MIB, GIB, ROOT_VOLUME_GIB, AwsRow, capacity, devices, labels, max_pods
from kerf.catalog.packaged import one_of
from kerf.catalog.reserved import reserved_cpu_milli, reserved_memory_mib
from kerf.clouds.aws.aliases import BUILDS
from kerf.clouds.aws.images import image_for
from kerf.clouds.aws.nodeclass.model import (
    BOTTLEROCKET,
    CUSTOM,
    WINDOWS,
    EC2NodeClass,
    KubeletConfiguration,
    Pairs,
)
from kerf.clouds.aws.nodeclass.status import Image, Resolved
from kerf.clouds.aws.templatedata import DEFAULT_DEVICES
from kerf.model.constraints import CAPACITY_TYPE, OS, REGION, WINDOWS_BUILD, ZONE, ZONE_ID, Requirement, Requirements
from kerf.model.instancetypes import InstanceType, Offering
from kerf.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, MIB, PODS, Resources, quantity, quantity_of

_PODS_WITHOUT_ENI_LIMIT = 110
"""Of a family whose images do not count pods by network interfaces: kubelet's own default."""
_NODE_DEVICES = {**dict.fromkeys(WINDOWS, "/dev/sda1"), BOTTLEROCKET: "/dev/xvdb"}
"""The disk with kubelet's directory, where it is not /dev/xvda."""
_MEMORY_SIGNAL, _DISK_SIGNAL = "memory.available", "nodefs.available"
EFA = "vpc.amazonaws.com/efa"
_WINDOWS_ADDRESS = "vpc.amazonaws.com/PrivateIPv4Address"
_GB = 10**9
_WINDOWS_GIB = 50


def instance_type(
    row: AwsRow,
    node_class: EC2NodeClass,
    resolved: Resolved,
    offerings: tuple[Offering, ...],
    region: str,
    notes: tuple[str, ...] = (),
) -> InstanceType | None:
    """The type with these offerings; None where there are none, or where no image of the EC2NodeClass runs on it."""
    if not offerings:
        return None
    machine = requirements_of(row)
    image = _image_for(resolved.images, machine)
    if image is None:
        return None
    found = [*machine.values(), one_of(ZONE, *(each.zone for each in offerings)), one_of(REGION, region)]
    found += [
        one_of(CAPACITY_TYPE, *(each.capacity_type for each in offerings)),
        *_system(node_class),
    ]
    ids = {each.zone_id for each in offerings}
    # Where EC2 did not say the id of a zone, a node has one all the same.
    found.append(one_of(ZONE_ID, *sorted(ids)) if "" not in ids else Requirement.of(ZONE_ID, "Exists"))
    pods = pods_of(row, node_class)
    disk = _disk(row, node_class)
    amounts = capacity(row).replaced({PODS: pods, EPHEMERAL_STORAGE: disk, **_addresses(row, node_class.family)})
    amounts = _as_interfaces_are_named(amounts, node_class)
    return InstanceType(
        row.name,
        Requirements(found),
        amounts,
        overhead_of(row.vcpu, counted_pods(row, node_class.family, pods), amounts, node_class.spec.kubelet),
        offerings,
        devices(row.gpus),
        row.family,
        (*_notes(row), *notes),
    )


@lru_cache(maxsize=4096)
def requirements_of(row: AwsRow) -> Requirements:
    """What the machine says of itself; its operating system comes with the image."""
    return Requirements(each for each in labels(row) if each.key not in (OS, WINDOWS_BUILD))


@lru_cache(maxsize=8192)
def _image_for(images: tuple[Image, ...], machine: Requirements) -> Image | None:
    """Asked of a thousand types whenever a price changes, and images change once a week."""
    return image_for(images, machine)


def _system(node_class: EC2NodeClass) -> list[Requirement]:
    """The labels of a node that come with its image."""
    build = BUILDS.get(node_class.family)
    if build is None:
        return [one_of(OS, "linux"), Requirement.of(WINDOWS_BUILD, "DoesNotExist")]
    return [one_of(OS, "windows"), one_of(WINDOWS_BUILD, build)]


def pods_of(row: AwsRow, node_class: EC2NodeClass) -> int:
    """How many pods kubelet takes: `maxPods`, else by the addresses of the interfaces; `podsPerCore` bounds it."""
    kubelet, family = node_class.spec.kubelet, node_class.family
    if kubelet.max_pods is not None:
        pods = kubelet.max_pods
    elif family in WINDOWS:
        pods = _PODS_WITHOUT_ENI_LIMIT
    else:
        # An interface for EFA alone has no addresses; pods get those of the first card.
        given = node_class.spec.network_interfaces
        taken = sum(each.interface_type == "efa-only" and each.network_card_index == 0 for each in given)
        pods = max(row.enis - taken, 1) * (row.ipv4_per_eni - 1) + 2
    if kubelet.pods_per_core and family != BOTTLEROCKET:
        pods = min(pods, kubelet.pods_per_core * row.vcpu)
    return pods


def _addresses(row: AwsRow, family: str) -> dict[str, int]:
    """Addresses for Windows pods, which EKS's webhook makes them ask for: those of one interface but its own.

    Source: Karpenter's privateIPv4Address, which is that of EKS's VPC resource controller.
    """
    own = row.ipv4_per_eni - 1
    return {_WINDOWS_ADDRESS: own} if family in WINDOWS and own > 0 else {}


def _as_interfaces_are_named(amounts: Resources, node_class: EC2NodeClass) -> Resources:
    """With as many EFA devices as the EC2NodeClass names interfaces for it, if it names any: no launch has more."""
    given = node_class.spec.network_interfaces
    if not given or EFA not in amounts:
        return amounts
    named = sum(each.interface_type == "efa-only" for each in given)
    return amounts.replaced({EFA: min(amounts[EFA], named)}) if named else amounts.without((EFA,))


def counted_pods(row: AwsRow, family: str, pods: int) -> int:
    """The pods that kubelet's own reserve of memory is for.

    nodeadm and bootstrap.sh count what the interfaces could address, whatever `maxPods` says; Bottlerocket and Windows
    count the pods that kubelet takes (Karpenter: UsesENILimitedMemoryOverhead).
    """
    return pods if family == BOTTLEROCKET or family in WINDOWS else max_pods(row)


def _disk(row: AwsRow, node_class: EC2NodeClass) -> int:
    """Bytes of the file system on which kubelet and containers are."""
    if node_class.is_raid0 and row.local_nvme_gb:
        return row.local_nvme_gb * _GB
    mappings = node_class.spec.block_device_mappings or DEFAULT_DEVICES.get(node_class.family, ())
    named = _NODE_DEVICES.get(node_class.family, "/dev/xvda")
    chosen = [each for each in mappings if each.is_root_volume] or [
        each for each in mappings if each.device_name == named or node_class.family == CUSTOM
    ]
    size = chosen[-1].ebs.volume_size_gib if chosen and chosen[-1].ebs is not None else None
    return (size or _default_gib(node_class.family)) * GIB


def _default_gib(family: str) -> int:
    return _WINDOWS_GIB if family in WINDOWS else ROOT_VOLUME_GIB


def overhead_of(vcpu: int, pods: int, amounts: Resources, kubelet: KubeletConfiguration) -> Resources:
    """What kubelet keeps: for itself, for the system, and what it evicts pods to keep free (`evictionHard` alone).

    `pods` are those that its reserve of memory is for.
    """
    kube = {CPU: reserved_cpu_milli(vcpu), MEMORY: reserved_memory_mib(pods) * MIB, EPHEMERAL_STORAGE: GIB}
    kube |= _amounts(kubelet.kube_reserved)
    hard = dict(kubelet.eviction_hard)
    evicted = {
        MEMORY: _threshold(hard.get(_MEMORY_SIGNAL), amounts[MEMORY], EVICTION_MIB * MIB),
        EPHEMERAL_STORAGE: _threshold(
            hard.get(_DISK_SIGNAL), amounts[EPHEMERAL_STORAGE], amounts[EPHEMERAL_STORAGE] // 10
        ),
    }
    return Resources(kube) + _amounts(kubelet.system_reserved) + evicted


def _amounts(pairs: Pairs) -> dict[str, int]:
    return {name: quantity_of(name, text) for name, text in pairs if name in (CPU, MEMORY, EPHEMERAL_STORAGE)}


def _threshold(text: str | None, whole: int, default: int) -> int:
    """Bytes of an eviction threshold; one of 100 % switches it off."""
    if text is None:
        return default
    if not text.endswith("%"):
        return quantity(text)
    percent = float(text.removesuffix("%"))
    return 0 if percent >= 100 else math.ceil(whole * percent / 100)


def _notes(row: AwsRow) -> tuple[str, ...]:
    if all(gpu.eighths == 8 for gpu in row.gpus):
        return ()
    part = f"sold with {row.gpus[0].eighths}/8 of a card, which Karpenter counts as no GPU"
    return (part, "what the device plugin shows on it was not verified")
