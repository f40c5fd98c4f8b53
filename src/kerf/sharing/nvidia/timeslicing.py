"""Time-slicing: NVIDIA's device plugin shows each card several times, and its pods take turns on it.

Nothing divides the card's memory: one pod can take all of it, and a fault of one ends all of them
(k8s-device-plugin, README, "With CUDA Time-Slicing").
"""

from dataclasses import dataclass

from kerf.sharing.nvidia.device_plugin import TIME_SLICING
from kerf.sharing.nvidia.replicas import Replicated


@dataclass(frozen=True)
class TimeSlicing(Replicated):
    """The family, as the cluster's configurations of the device plugin say."""

    name: str = TIME_SLICING
    title: str = "time-slicing"

    def share(self, memory_mib: int, replicas: int) -> tuple[int, int]:
        """Nothing is promised."""
        del memory_mib, replicas
        return 0, 0
