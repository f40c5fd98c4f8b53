"""MPS: NVIDIA's device plugin shows each card several times, and a control daemon holds each pod to its share.

Every client gets an equal part of the memory and of the threads, and no container gets two (k8s-device-plugin, README,
"With CUDA MPS": requests for more than one are rejected).
"""

from dataclasses import dataclass

from kerf.sharing.nvidia.device_plugin import MPS
from kerf.sharing.nvidia.replicas import Replicated


@dataclass(frozen=True)
class Mps(Replicated):
    """The family, as the cluster's configurations of the device plugin say."""

    name: str = MPS
    title: str = "MPS"

    def share(self, memory_mib: int, replicas: int) -> tuple[int, int]:
        """An equal part of both, rounded down."""
        return memory_mib // replicas, 100 // replicas
