"""Whole cards: `nvidia.com/gpu` counted by NVIDIA's device plugin without sharing.

Kerf counts from the lowest index; since whole cards of a node are alike, any other choice fits as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kerf.errors import DecodeError
from kerf.model.causes import Cause, Lack, Name
from kerf.model.evidence import DevicePlugin, PluginEvidence
from kerf.model.gpu import NVIDIA_GPU, DeviceShape, DeviceState, Slice
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodDemand
from kerf.model.quantities import Resources
from kerf.model.snapshot import ConfigMap, ResourceQuota
from kerf.sharing.family import Fit, NoFit, Occupant
from kerf.sharing.nvidia.device_plugin import PluginConfigs, find_plugin_configs
from kerf.sharing.nvidia.kubelet import (
    PRODUCT_LABELS,
    KubeletCounted,
    dealt,
    demanded,
    first_label,
    peak,
    shared_out,
    stated_memory,
)


@dataclass(frozen=True, slots=True)
class TooFewGpus(Cause):
    """More whole GPUs are wanted than are idle, of those that are there."""

    wanted: int
    idle: int
    there: int


@dataclass(frozen=True)
class Whole(KubeletCounted):
    """The family of last resort: it owns every card that no other family claims."""

    plugin: PluginConfigs = field(default_factory=PluginConfigs)
    name: str = "whole"
    title: str = "NVIDIA's device plugin"

    @property
    def plugins(self) -> tuple[DevicePlugin, ...]:
        """NVIDIA's own, and the operator's."""
        return self.plugin.plugins

    def configured(self, config_maps: Sequence[ConfigMap], faults: list[DecodeError] | None = None) -> "Whole":
        """With the configurations of the plugin. Raises DecodeError, or adds it to `faults`."""
        return replace(self, plugin=find_plugin_configs(config_maps, faults))

    def installed(self, evidence: PluginEvidence) -> "Whole":
        """With how the device plugin was started."""
        return replace(self, plugin=self.plugin.installed(evidence))

    def selects(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
        """Always: it is asked last."""
        del labels, annotations
        return True

    def demand(self, pod: Pod) -> PodDemand:
        """The `nvidia.com/gpu` of each container; every other GPU resource is some other family's."""
        return demanded(pod, self.name, (NVIDIA_GPU,), 100)

    def obstacle(
        self, shapes: Sequence[DeviceShape], labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> Cause | None:
        """That the label names a configuration of the plugin that is not known: how cards are shared then is open."""
        del shapes, annotations
        return self.plugin.problem(labels)

    def predict(
        self, shapes: Sequence[DeviceShape], labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> tuple[DeviceState, ...]:
        """One idle card a shape; none where it is open how they are shared."""
        if self.obstacle(shapes, labels, annotations) is not None:
            return ()
        return tuple(
            DeviceState(f"gpu-{i}", i, shape.model.registered_as or shape.model.name, shape.memory_mib)
            for i, shape in enumerate(shapes)
        )

    def kubelet_capacity(self, devices: Sequence[DeviceState]) -> Resources:
        """One `nvidia.com/gpu` for each healthy card."""
        return Resources({NVIDIA_GPU: sum(d.healthy for d in devices)})

    def divided(self, devices: Sequence[DeviceState], jobs: int) -> Resources:
        """Whole cards only."""
        return shared_out(self.kubelet_capacity(devices), jobs)

    def inventory(self, node: Node) -> tuple[DeviceState, ...] | None:
        """As many cards as kubelet shows; None while it shows none.

        Kubelet shows neither memory nor model: both are from labels, 0 and empty where the node has none.
        """
        count = node.allocatable.get(NVIDIA_GPU, 0)
        if count <= 0:
            return None
        model, memory = first_label(node.labels, PRODUCT_LABELS), stated_memory(node)
        return tuple(DeviceState(f"gpu-{i}", i, model, memory) for i in range(count))

    def has_record(self, pod: Pod) -> bool:
        """Never: the plugin writes nothing on pods."""
        del pod
        return False

    def occupied(self, devices: Sequence[DeviceState], occupants: Sequence[Occupant]) -> tuple[DeviceState, ...]:
        """`devices` with as many taken, from the lowest index, as the pods hold."""
        count = sum(
            peak(o.demand, NVIDIA_GPU, init_done=o.pod.initialised)
            for o in occupants
            if o.demand is not None and not o.pod.is_ended
        )
        free = sorted(d.index for d in devices if d.is_idle and d.healthy)[:count]
        return tuple(_taken(d) if d.index in free else d for d in devices)

    def fit(
        self,
        devices: Sequence[DeviceState],
        demand: PodDemand,
        pod: Pod,
        node: Node | None,
        quotas: Sequence[ResourceQuota],
    ) -> Fit | NoFit:
        """The idle cards with the lowest indices. Init containers reuse the cards of the app containers."""
        del node, quotas
        idle = sorted((d for d in devices if d.is_idle and d.healthy and not d.cordoned), key=lambda d: d.index)
        wanted = peak(demand, NVIDIA_GPU, init_done=False)
        if wanted > len(idle):
            more = wanted - len(idle)
            return NoFit(TooFewGpus(wanted, len(idle), len(devices)), (Lack(more, Name("GPU")),), more)
        slices = [
            Slice(pod.key, container, idle[at].index, idle[at].id, idle[at].memory_mib, 100)
            for container, held in dealt(demand, NVIDIA_GPU)
            for at in held
        ]
        taken = {d.index for d in idle[:wanted]}
        return Fit(tuple(slices), tuple(_taken(d) if d.index in taken else d for d in devices))


def _taken(device: DeviceState) -> DeviceState:
    return device.taking(device.memory_mib, device.cores)
