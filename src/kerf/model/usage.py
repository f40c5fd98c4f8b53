"""What pods and nodes were seen to use: for advice only, never for a placement.

kube-scheduler and every decision here go by requests; usage is what metrics.k8s.io reports, a mean over a short window.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kerf.model.large import Large

SHARD_LABEL = "kerf.dev/usage-history"
"""On each ConfigMap with checkpoints of usage; its value is the version of their form."""
SHARD_FORM = "v1"


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    """One container over one window: mean cpu in milli, memory at its end in bytes."""

    name: str
    cpu_millis: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class PodUsage:
    """A PodMetrics: `at_s` ends the window of `window_s` seconds; containers in name order."""

    namespace: str
    name: str
    at_s: float
    window_s: float
    containers: tuple[ContainerUsage, ...]

    @property
    def cpu_millis(self) -> int:
        """Of all containers together."""
        return sum(container.cpu_millis for container in self.containers)

    @property
    def memory_bytes(self) -> int:
        """Of all containers together."""
        return sum(container.memory_bytes for container in self.containers)


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """A NodeMetrics: what runs on the node beside pods counts too."""

    name: str
    at_s: float
    window_s: float
    cpu_millis: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class Usage(Large):
    """One look at metrics.k8s.io: pods by `namespace/name`, nodes by name."""

    pods: Mapping[str, PodUsage] = field(default_factory=dict, hash=False)
    nodes: Mapping[str, NodeUsage] = field(default_factory=dict, hash=False)


NO_USAGE = Usage()
"""Where there is no metrics server, or it has reported nothing yet."""
