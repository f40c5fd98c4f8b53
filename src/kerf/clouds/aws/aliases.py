"""Aliases of images, such as `al2023@latest`: the SSM parameters that hold their ids, and what each image is for.

Paths of EKS and Bottlerocket (EKS user guide, "Retrieve recommended AMI IDs", and bottlerocket-os, 2026-11). One image
can be for two sorts of types, as AL2's GPU image is for NVIDIA and Neuron.
"""

from dataclasses import dataclass

from kerf.clouds.aws.nodeclass.model import (
    AL2,
    AL2023,
    BOTTLEROCKET,
    LATEST,
    WINDOWS_2019,
    WINDOWS_2022,
    WINDOWS_2025,
)
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.model.constraints import OS, WINDOWS_BUILD, Requirement, Requirements

GPU_COUNT = "karpenter.k8s.aws/instance-gpu-count"
ACCELERATOR_COUNT = "karpenter.k8s.aws/instance-accelerator-count"
STANDARD = Requirements(Requirement.of(key, "DoesNotExist") for key in (ACCELERATOR_COUNT, GPU_COUNT))
NVIDIA = Requirements([Requirement.of(GPU_COUNT, "Exists")])
NEURON = Requirements([Requirement.of(ACCELERATOR_COUNT, "Exists")])
_EKS = "/aws/service/eks/optimized-ami"
BUILDS = {WINDOWS_2019: "10.0.17763", WINDOWS_2022: "10.0.20348", WINDOWS_2025: "10.0.26100"}
"""Windows Server builds (Microsoft, "Windows Server release information", 2026-11)."""
_AL2_ENDS, _WINDOWS_2025_BEGINS = 33, 35
"""Minor versions of Kubernetes on EKS."""


@dataclass(frozen=True, slots=True)
class Published:
    """An SSM parameter with an image's id, and the sorts of types that the image is for."""

    path: str
    sorts: tuple[Requirements, ...]


def published(family: str, version: str, kubernetes: str) -> tuple[Published, ...]:
    """Where the images of an alias are published for a Kubernetes such as `1.34`; not all of them need exist.

    Raises Unusable where EKS publishes none for that Kubernetes.
    """
    minor = int(kubernetes.partition(".")[2] or 0)
    if family == AL2 and minor >= _AL2_ENDS:
        raise Unusable("UnsupportedAlias", f"EKS publishes no AL2 for Kubernetes {kubernetes}: take al2023@latest")
    if family == WINDOWS_2025 and minor < _WINDOWS_2025_BEGINS:
        raise Unusable("UnsupportedAlias", f"Windows Server 2025 needs Kubernetes 1.35, the cluster has {kubernetes}")
    if family == AL2023:
        return _al2023(version, kubernetes)
    if family == AL2:
        return _al2(version, kubernetes)
    return _bottlerocket(version, kubernetes) if family == BOTTLEROCKET else _windows(family, kubernetes)


def _al2023(version: str, kubernetes: str) -> tuple[Published, ...]:
    found = []
    for architecture, sorts in (("x86_64", ("standard", "nvidia", "neuron")), ("arm64", ("standard", "nvidia"))):
        for sort in sorts:
            pinned = f"amazon-eks-node-al2023-{architecture}-{sort}-{kubernetes}-{version}"
            name = "recommended" if version == LATEST else pinned
            path = f"{_EKS}/{kubernetes}/amazon-linux-2023/{architecture}/{sort}/{name}/image_id"
            found.append(Published(path, ({"standard": STANDARD, "nvidia": NVIDIA, "neuron": NEURON}[sort],)))
    return tuple(found)


def _al2(version: str, kubernetes: str) -> tuple[Published, ...]:
    found = []
    for folder, word, sorts in (
        ("", "", (STANDARD,)),
        ("-arm64", "-arm64", (STANDARD,)),
        ("-gpu", "-gpu", (NEURON, NVIDIA)),
    ):
        name = "recommended" if version == LATEST else f"amazon-eks{word}-node-{kubernetes}-{version}"
        found.append(Published(f"{_EKS}/{kubernetes}/amazon-linux-2{folder}/{name}/image_id", sorts))
    return tuple(found)


def _bottlerocket(version: str, kubernetes: str) -> tuple[Published, ...]:
    # Releases are called v1.46.0, their parameters 1.46.0.
    number = version.removeprefix("v")
    rows = (
        ("", "x86_64", (STANDARD, NEURON)),
        ("", "arm64", (STANDARD,)),
        ("-nvidia", "x86_64", (NVIDIA,)),
        ("-nvidia", "arm64", (NVIDIA,)),
    )
    return tuple(
        Published(f"/aws/service/bottlerocket/aws-k8s-{kubernetes}{variant}/{architecture}/{number}/image_id", sorts)
        for variant, architecture, sorts in rows
    )


def _windows(family: str, kubernetes: str) -> tuple[Published, ...]:
    year = family.removeprefix("Windows")
    name = f"Windows_Server-{year}-English-Core-EKS_Optimized-{kubernetes}"
    sort = Requirements([Requirement.of(OS, "In", ["windows"]), Requirement.of(WINDOWS_BUILD, "In", [BUILDS[family]])])
    return (Published(f"/aws/service/ami-windows-latest/{name}/image_id", (sort,)),)
