"""What the ConfigMaps of NVIDIA's device plugin say: which sharing a node has, by the name of a configuration.

A node names one by its label; the plugin's chart lets a node without the label have the configuration `default`, else
the only one (chart of k8s-device-plugin 0.17, `config.fallbackStrategies: [named, single]`). Keys, defaults and what is
refused as that plugin has them (api/config/v1, README "Shared access to GPUs").
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kerf.model.causes import Cause
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.snapshot import ConfigMap
from kerf.sharing.config_yaml import Field, documents
from kerf.sharing.nvidia.config_names import name_problem

CONFIG_LABEL = "nvidia.com/device-plugin.config"
TIME_SLICING, MPS = "time-slicing", "mps"
NO_STRATEGY, SINGLE, MIXED = "none", "single", "mixed"
_MARKS = re.compile(r"""(?ms)\A(?=.*^version\s*:\s*["']?v1\b)(?=.*^(?:sharing|flags)\s*:)""")
_VENDOR, _DEFAULT, _SHARED = "nvidia.com/", "default", ".shared"


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
    """All of a cluster, by name. `torn` are names that two ConfigMaps give different contents."""

    by_name: Mapping[str, PluginConfig] = field(default_factory=dict, hash=False)
    torn: tuple[str, ...] = ()

    def of(self, labels: Mapping[str, str]) -> PluginConfig | None:
        """What a node with these labels has; None where it has none, or one that nobody knows."""
        named = labels.get(CONFIG_LABEL)
        if named is not None:
            return None if named in self.torn else self.by_name.get(named)
        if _DEFAULT in self.by_name:
            return self.by_name[_DEFAULT]
        return next(iter(self.by_name.values())) if len(self.by_name) == 1 else None

    def problem(self, labels: Mapping[str, str]) -> Cause | None:
        """Why the configuration that the labels name cannot be used; None when it can, or when none is named."""
        named = labels.get(CONFIG_LABEL)
        return None if named is None else name_problem(CONFIG_LABEL, named, self.by_name, self.torn)


def find_plugin_configs(config_maps: Sequence[ConfigMap]) -> PluginConfigs:
    """The configurations of the device plugin, in whatever map they are.

    Raises DecodeError with map, key and field for what the plugin would not start with.
    """
    found: dict[str, PluginConfig] = {}
    torn = set()
    for key, _, document in documents(config_maps, _MARKS):
        config = _config(key, document)
        if found.setdefault(key, config) != config:
            torn.add(key)
    return PluginConfigs(found, tuple(sorted(torn)))


def states_configuration(config_maps: Sequence[ConfigMap]) -> bool:
    """Whether a map holds a configuration of the device plugin, be it one that cannot be read."""
    return any(_MARKS.search(text) for config_map in config_maps for text in config_map.data.values())


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
