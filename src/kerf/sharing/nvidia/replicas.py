"""Cards that NVIDIA's device plugin shows several times: what time-slicing and MPS have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from kerf.errors import DecodeError
from kerf.model.causes import Cause, Name
from kerf.model.evidence import DevicePlugin, PluginEvidence
from kerf.model.gpu import NVIDIA_GPU, DeviceShape, DeviceState, Partition
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodDemand
from kerf.model.snapshot import ConfigMap
from kerf.sharing.family import SHARING
from kerf.sharing.nvidia.device_plugin import CONFIG_LABEL, PluginConfig, PluginConfigs, find_plugin_configs
from kerf.sharing.nvidia.kubelet import PRODUCT_LABELS, demanded, first_label, stated_memory, stated_number
from kerf.sharing.nvidia.mig_parted import MIG_CONFIG, MigConfigs, find_mig_configs
from kerf.sharing.nvidia.partitions import Partitioned

STRATEGY_LABEL, REPLICAS_LABEL = "nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.replicas"
"""Labels of NVIDIA's feature discovery on nodes that run: how cards are shared, and how often each is shown."""
_SHARED_GPU = f"{NVIDIA_GPU}.shared"


@dataclass(frozen=True, slots=True)
class NoConfig(Cause):
    """No configuration of the device plugin is known that shares cards in this way, as people call it."""

    way: Name


@dataclass(frozen=True)
class Replicated(Partitioned):
    """A family whose cards are shown `replicas` times each, as a named configuration of the plugin says."""

    plugin: PluginConfigs = field(default_factory=PluginConfigs)
    mig: MigConfigs = field(default_factory=MigConfigs)
    name: str = ""
    title: str = ""

    @property
    def plugins(self) -> tuple[DevicePlugin, ...]:
        """NVIDIA's own, and the operator's."""
        return self.plugin.plugins

    def configured(self, config_maps: Sequence[ConfigMap], faults: list[DecodeError] | None = None) -> Self:
        """With the configurations of the cluster's ConfigMaps. Raises DecodeError, or adds it to `faults`."""
        return replace(self, plugin=find_plugin_configs(config_maps, faults), mig=find_mig_configs(config_maps, faults))

    def installed(self, evidence: PluginEvidence) -> Self:
        """With how the device plugin was started."""
        return replace(self, plugin=self.plugin.installed(evidence))

    def selects(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
        """Whether the node's configuration shares cards so; of a node that runs, its labels are believed first."""
        stated = annotations.get(SHARING)
        if stated is not None:
            return stated == self.name
        if self.mig.cuts(labels.get(MIG_CONFIG, "")):
            return False
        seen = labels.get(STRATEGY_LABEL)
        if seen is not None:
            return seen == self.name
        config = self.plugin.of(labels)
        return config is not None and config.sharing == self.name and NVIDIA_GPU in config.replicas

    def demand(self, pod: Pod) -> PodDemand:
        """The `nvidia.com/gpu` and `nvidia.com/gpu.shared` of each container."""
        return demanded(pod, self.name, (NVIDIA_GPU, _SHARED_GPU))

    def configurations(self, pod: Pod) -> tuple[Mapping[str, str], ...]:
        """The plugin's configurations that share cards so, by name."""
        del pod
        known = self.plugin.by_name.items()
        return tuple({CONFIG_LABEL: name} for name, config in sorted(known) if config.sharing == self.name)

    def obstacle(
        self, shapes: Sequence[DeviceShape], labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> Cause | None:
        """That no configuration says how often the cards are shown."""
        del shapes, annotations
        problem = self.plugin.problem(labels)
        if problem is not None or (self._config(labels) or self._stated(labels)) is not None:
            return problem
        return NoConfig(Name(self.title))

    def is_configured(self, labels: Mapping[str, str]) -> bool:
        """Whether it is known which configuration of the plugin such a node has, or that it has none."""
        settings = self.plugin.settings(labels)
        if self.plugin.of(labels) is not None or (settings is not None and not settings.uses_config):
            return True
        return settings is not None and not self.plugin.is_unread(labels)

    def _config(self, labels: Mapping[str, str]) -> PluginConfig | None:
        config = self.plugin.of(labels)
        return config if config is not None and config.sharing == self.name else None

    def _stated(self, labels: Mapping[str, str]) -> PluginConfig | None:
        """What the labels of feature discovery say; None where they do not."""
        replicas = stated_number(labels, REPLICAS_LABEL)
        is_so = labels.get(STRATEGY_LABEL) == self.name and replicas > 1
        return PluginConfig("", self.name, {NVIDIA_GPU: replicas}).run_by(None) if is_so else None

    def predict(
        self, shapes: Sequence[DeviceShape], labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> tuple[DeviceState, ...]:
        """One idle card a shape, in as many parts as the configuration says, else feature discovery; else none."""
        del annotations
        config = self._config(labels) or self._stated(labels)
        if config is None:
            return ()
        return tuple(
            self._card(i, shape.model.registered_as or shape.model.name, shape.memory_mib, config)
            for i, shape in enumerate(shapes)
        )

    def _card(self, index: int, model: str, memory_mib: int, config: PluginConfig) -> DeviceState:
        replicas = config.replicas.get(NVIDIA_GPU, 1)
        memory, cores = self.share(memory_mib, replicas)
        part = Partition(config.shown_as(NVIDIA_GPU), replicas, memory, cores, most=config.most)
        return DeviceState(f"gpu-{index}", index, model, memory_mib, slots=replicas, mode=self.name, partitions=(part,))

    def share(self, memory_mib: int, replicas: int) -> tuple[int, int]:
        """MiB and percent of a card that one replica can rely on."""
        raise NotImplementedError

    def inventory(self, node: Node) -> tuple[DeviceState, ...] | None:
        """Cards and replicas as kubelet shows them; None while it shows none.

        How many replicas belong to one card is the configuration's, else feature discovery's word; without either
        every replica counts as a card of its own.
        """
        config = self._config(node.labels) or self._seen(node)
        settings = self.plugin.settings(node.labels)
        if settings is not None and settings.image is not None and config.shown_as(NVIDIA_GPU) not in node.allocatable:
            # It was launched before its NodeClass was changed, and keeps the settings that it began with.
            config = self._seen(node)
        resource = config.shown_as(NVIDIA_GPU)
        total = node.allocatable.get(resource, 0)
        if total <= 0:
            return None
        replicas = config.replicas.get(NVIDIA_GPU, 1)
        model, memory = first_label(node.labels, PRODUCT_LABELS), stated_memory(node)
        cards = [self._card(i, model, memory, config) for i in range(-(-total // replicas))]
        # A broken card takes its replicas along, so only the last one can be short of some.
        short = len(cards) * replicas - total
        last = replace(cards[-1].partitions[0], count=replicas - short)
        return (*cards[:-1], replace(cards[-1], partitions=(last,)))

    def _seen(self, node: Node) -> PluginConfig:
        replicas = max(1, stated_number(node.labels, REPLICAS_LABEL))
        renames = node.allocatable.get(NVIDIA_GPU, 0) == 0
        return PluginConfig("", self.name, {NVIDIA_GPU: replicas}, renames).run_by(None)
