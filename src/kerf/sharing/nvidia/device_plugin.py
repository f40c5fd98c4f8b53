"""What the ConfigMaps of NVIDIA's device plugin say: which sharing a node has, by the name of a configuration.

A node names one by its label. Without the label it has the one that the plugin was started with, else what the start's
fallbacks find: the plugin's chart takes the configuration `default`, else the only one (chart of k8s-device-plugin
0.17, `config.fallbackStrategies: [named, single]`), and the GPU operator none. Keys, defaults and what is
refused as that plugin has them (api/config/v1, README "Shared access to GPUs").
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kerf.model.causes import Cause
from kerf.model.evidence import DevicePlugin, PluginEvidence, PluginSettings, Project
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.snapshot import ConfigMap
from kerf.sharing.config_yaml import Field, documents
from kerf.sharing.installed import runs_on
from kerf.sharing.nvidia.config_names import name_problem

CONFIG_LABEL = "nvidia.com/device-plugin.config"
TIME_SLICING, MPS = "time-slicing", "mps"
NO_STRATEGY, SINGLE, MIXED = "none", "single", "mixed"
_MARKS = re.compile(r"""(?ms)\A(?=.*^version\s*:\s*["']?v1\b)(?=.*^(?:sharing|flags)\s*:)""")
_VENDOR, _DEFAULT, _SHARED = "nvidia.com/", "default", ".shared"
COPY = "kerf-gpu-sharing"
"""The name of a ConfigMap that is a copy of what a plugin reads by another name."""
_CHARTS_OWN, _EMPTY = PluginSettings(uses_config=True, fallbacks=("named", "single")), ("empty",)


@dataclass(frozen=True)
class PluginConfig:
    """One named configuration.

    `sharing` is `time-slicing`, `mps` or empty; `replicas` by the resource that is shared, before it is renamed.
    `mig_strategy` is empty where the configuration does not say.
    """

    name: str
    sharing: str = ""
    replicas: Mapping[str, int] = field(default_factory=dict, hash=False)
    renames: bool = False
    refuses_more_than_one: bool = False
    mig_strategy: str = ""

    def shown_as(self, resource: str) -> str:
        """The name under which kubelet shows a resource."""
        return resource + _SHARED if self.renames and resource in self.replicas else resource

    @property
    def most(self) -> int:
        """The most replicas that a container may ask for; 0 for any number. MPS never gives more than one."""
        return 1 if self.sharing == MPS or self.refuses_more_than_one else 0


@dataclass(frozen=True)
class PluginConfigs:
    """All of a cluster, by name. `torn` are names that two ConfigMaps give different contents.

    `held` are the same with the names of the maps that hold them; `plugins` say how NVIDIA's device plugin was started,
    the operator's first, and are empty where that is unknown.
    """

    by_name: Mapping[str, PluginConfig] = field(default_factory=dict, hash=False)
    torn: tuple[str, ...] = ()
    held: tuple[tuple[str, PluginConfig], ...] = ()
    plugins: tuple[DevicePlugin, ...] = ()

    def installed(self, evidence: PluginEvidence) -> "PluginConfigs":
        """Those of the ConfigMap that the operator names, where it names one, and how the plugin was started."""
        plugins = evidence.of(Project.NVIDIA)
        map_name = next((each.settings.config_map for each in plugins if each.settings.config_map), "")
        kept = [pair for pair in self.held if not map_name or pair[0] in (map_name, COPY)]
        return replace(_joined(kept), held=self.held, plugins=plugins)

    def settings(self, labels: Mapping[str, str]) -> PluginSettings | None:
        """How the plugin was started that runs on nodes with these labels; None where nothing says so."""
        return next((plugin.settings for plugin in self.plugins if runs_on(plugin, labels)), None)

    def default(self, labels: Mapping[str, str]) -> str:
        """The name of the configuration that a node has without a label; empty for none.

        Where it is unknown how the plugin was started, as its chart does.
        """
        settings = self.settings(labels) or _CHARTS_OWN
        if settings.default or not settings.uses_config:
            return settings.default
        for fallback in settings.fallbacks:
            if fallback == "empty":
                return ""
            if fallback == "named" and _DEFAULT in self.by_name:
                return _DEFAULT
            if fallback == "single" and len(self.by_name) == 1:
                return next(iter(self.by_name))
        return ""

    def of(self, labels: Mapping[str, str]) -> PluginConfig | None:
        """What a node with these labels has; None where it has none, or one that is not known."""
        settings = self.settings(labels)
        if settings is not None and not settings.uses_config:
            return None
        named = labels.get(CONFIG_LABEL, self.default(labels))
        return None if named in self.torn and CONFIG_LABEL in labels else self.by_name.get(named)

    def is_unread(self, labels: Mapping[str, str]) -> bool:
        """Whether nodes with these labels have a configuration by default that no known ConfigMap holds."""
        name = self.default(labels)
        return CONFIG_LABEL not in labels and bool(name) and name not in self.by_name

    def mig_strategy(self, labels: Mapping[str, str]) -> str:
        """What the plugin was started with, else what the configuration says, else the plugin's own default.

        Empty where that is unknown: how it was started, or the ConfigMap that it reads.
        """
        settings, config = self.settings(labels), self.of(labels)
        stated = (settings.mig_strategy if settings is not None else "") or (config.mig_strategy if config else "")
        if stated or settings is None:
            return stated
        is_open = settings.uses_config and config is None and (CONFIG_LABEL in labels or settings.fallbacks != _EMPTY)
        return "" if is_open else NO_STRATEGY

    def problem(self, labels: Mapping[str, str]) -> Cause | None:
        """Why the configuration that the labels name cannot be used; None when it can, or when none is named."""
        named, settings = labels.get(CONFIG_LABEL), self.settings(labels)
        if named is None or (settings is not None and not settings.uses_config):
            return None
        return name_problem(CONFIG_LABEL, named, self.by_name, self.torn)


def find_plugin_configs(config_maps: Sequence[ConfigMap]) -> PluginConfigs:
    """The configurations of the device plugin, in whatever map they are.

    Raises DecodeError with map, key and field for what the plugin would not start with.
    """
    held = tuple((m.name, _config(key, document)) for key, m, document in documents(config_maps, _MARKS))
    return replace(_joined(held), held=held)


def _joined(held: Sequence[tuple[str, PluginConfig]]) -> PluginConfigs:
    found: dict[str, PluginConfig] = {}
    torn = set()
    for _, config in held:
        if found.setdefault(config.name, config) != config:
            torn.add(config.name)
    return PluginConfigs(found, tuple(sorted(torn)))


def states_configuration(config_maps: Sequence[ConfigMap]) -> bool:
    """Whether a map holds a configuration of the device plugin, be it one that cannot be read."""
    return any(is_configuration(text) for config_map in config_maps for text in config_map.data.values())


def is_configuration(text: str) -> bool:
    """Whether a text of a ConfigMap is a configuration of the device plugin, be it one that cannot be read."""
    return _MARKS.search(text) is not None


def _config(name: str, document: Field) -> PluginConfig:
    strategy = document.child("flags").child("migStrategy")
    if strategy.value not in (None, NO_STRATEGY, SINGLE, MIXED):
        raise strategy.wrong(f"{NO_STRATEGY}, {SINGLE} or {MIXED}")
    sharing, kind = document.child("sharing"), ""
    # With both, the plugin takes MPS.
    for key, meant in (("timeSlicing", TIME_SLICING), ("mps", MPS)):
        kind = meant if sharing.child(key).child("resources").value else kind
    if not kind:
        return PluginConfig(name, mig_strategy=str(strategy.value or ""))
    section = sharing.child("mps" if kind == MPS else "timeSlicing")
    return PluginConfig(
        name,
        kind,
        dict(_replicas(entry) for entry in section.child("resources").items()),
        section.child("renameByDefault").truth(),
        section.child("failRequestsGreaterThanOne").truth(),
        str(strategy.value or ""),
    )


def _replicas(entry: Field) -> tuple[str, int]:
    name = entry.child("name").text()
    resource = name if "/" in name else _VENDOR + name
    if resource != NVIDIA_GPU and not resource.startswith("nvidia.com/mig-"):
        raise entry.child("name").wrong(f"{NVIDIA_GPU} or nvidia.com/mig-PROFILE")
    hint = "leave the resource out where it is not to be shared"
    return resource, entry.child("replicas").whole(2, hint)
