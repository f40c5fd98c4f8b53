"""What the ConfigMaps of NVIDIA's device plugin say: which sharing a node has, by the name of a configuration.

A node names one by its label. Without the label it has the one that the plugin was started with, else what the start's
fallbacks find: the plugin's chart takes the configuration `default`, else the only one (chart of k8s-device-plugin
0.17, `config.fallbackStrategies: [named, single]`), and the GPU operator none. Keys, defaults and what is
refused as that plugin has them (api/config/v1, README "Shared access to GPUs").

In the ConfigMap that a plugin mounts, or that a ClusterPolicy names, every key is a configuration: `version: v1` alone
switches sharing off, and so does an empty text. Where no plugin says which map it reads, a map is known by its form.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kerf.errors import DecodeError
from kerf.model.causes import Cause, Quoted
from kerf.model.evidence import COPY, DevicePlugin, ImageSharing, PluginEvidence, PluginSettings, Project
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.snapshot import ConfigMap
from kerf.sharing.config_yaml import Field, document
from kerf.sharing.family import Unreadable
from kerf.sharing.installed import looks_in, runs_on
from kerf.sharing.nvidia.config_names import name_problem

CONFIG_LABEL = "nvidia.com/device-plugin.config"
TIME_SLICING, MPS = "time-slicing", "mps"
NO_STRATEGY, SINGLE, MIXED = "none", "single", "mixed"
_MARKS = re.compile(r"""(?ms)\A(?=.*^version\s*:\s*["']?v1\b)(?=.*^(?:sharing|flags)\s*:)""")
_HINTS = re.compile(r"""\b(?:sharing|flags)["']?\s*:""")
_CARD = re.compile(r"[0-9]+(:[0-9]+)?|(GPU|MIG|MIG-GPU)-[0-9a-fA-F-]{32,36}(/[0-9]+/[0-9]+)?", re.ASCII)
"""How the plugin names one card or instance: by index or UUID (api/config/v1/replicas.go)."""
_VENDOR, _DEFAULT, _SHARED, _VERSION = "nvidia.com/", "default", ".shared", "v1"
USUAL_MAPS = ("time-slicing-config", "mps-config", "device-plugin-config", "nvidia-device-plugin-configs", COPY)
"""Names of the plugin's ConfigMaps in its chart and in NVIDIA's documentation (2026-11)."""
TOP_KEYS = frozenset({"version", "health", "flags", "resources", "sharing", "imex"})
_CHARTS_OWN, _EMPTY = PluginSettings(uses_config=True, fallbacks=("named", "single")), ("empty",)
RELAXED_SINCE = (0, 20)
"""The first version whose MPS heeds `failRequestsGreaterThanOne: false` (api/config/v1/config.go, v0.20.0)."""


@dataclass(frozen=True)
class PluginConfig:
    """One named configuration.

    `sharing` is `time-slicing`, `mps` or empty; `replicas` by the resource that is shared, before it is renamed.
    `mig_strategy` is empty where the configuration does not say. `fails_above_one` is what the configuration states,
    None where it does not. `most` are the replicas that a container may ask for, 0 for any number. With a `fault` the
    plugin does not start.
    """

    name: str
    sharing: str = ""
    replicas: Mapping[str, int] = field(default_factory=dict, hash=False)
    renames: bool = False
    fails_above_one: bool | None = None
    mig_strategy: str = ""
    most: int = 0
    fault: Unreadable | None = None

    def shown_as(self, resource: str) -> str:
        """The name under which kubelet shows a resource."""
        return shared_name(resource) if self.renames and resource in self.replicas else resource

    @property
    def is_relaxed(self) -> bool:
        """Whether it lets a container have several replicas of MPS, which plugins before 0.20 do not heed."""
        return self.sharing == MPS and self.fails_above_one is False

    def run_by(self, version: tuple[int, int] | None) -> "PluginConfig":
        """The same as a plugin of that version reads it; of an unknown version, as the newest does."""
        heeds = version is None or version >= RELAXED_SINCE
        fails = self.fails_above_one is True if self.sharing != MPS else not (self.is_relaxed and heeds)
        return replace(self, most=1 if fails else 0)


@dataclass(frozen=True)
class ConfigSet:
    """Configurations by name. `torn` are names that two ConfigMaps give different contents."""

    by_name: Mapping[str, PluginConfig] = field(default_factory=dict, hash=False)
    torn: tuple[str, ...] = ()


@dataclass(frozen=True)
class PluginConfigs:
    """All of a cluster.

    `by_name` and `torn` are those of the first plugin that says which ConfigMap it reads, else of every map that has
    their form. `plugins` say how NVIDIA's device plugin was started, the operator's first, each with its `sets`; they
    are empty where that is unknown. `held` are the configurations by form with the map of each.
    """

    by_name: Mapping[str, PluginConfig] = field(default_factory=dict, hash=False)
    torn: tuple[str, ...] = ()
    plugins: tuple[DevicePlugin, ...] = ()
    sets: tuple[ConfigSet, ...] = ()
    held: tuple[tuple[ConfigMap, PluginConfig], ...] = field(default=(), compare=False, repr=False)
    maps: tuple[ConfigMap, ...] = field(default=(), compare=False, repr=False)

    def installed(self, evidence: PluginEvidence) -> "PluginConfigs":
        """Those of the ConfigMaps that plugins mount or a policy names, where they do, and how each was started."""
        # Where an image brings the plugin along, that one runs.
        plugins = (*evidence.images, *evidence.of(Project.NVIDIA))
        sets = tuple(self._read_by(plugin) for plugin in plugins)
        named = (held for plugin, held in zip(plugins, sets, strict=True) if plugin.settings.config_map)
        first = next(named, None) or _joined(config for _, config in self.held)
        return replace(self, by_name=first.by_name, torn=first.torn, plugins=plugins, sets=sets)

    def _read_by(self, plugin: DevicePlugin) -> ConfigSet:
        """The configurations that a plugin can have: every key of its ConfigMap, or of the copy that stands for it."""
        if plugin.settings.image is not None:
            return ConfigSet({"": _of_image(plugin, plugin.settings.image)})
        name, version = plugin.settings.config_map, plugin.settings.version
        if not name:
            return _joined(config.run_by(version) for _, config in self.held)
        named = (m for m in self.maps if m.name == COPY or (m.name == name and looks_in(plugin, m.namespace)))
        configs = (_parsed(m, key, []) for m in named for key in sorted(m.data))
        return _joined(config.run_by(version) for config in configs)

    def _place(self, labels: Mapping[str, str]) -> tuple[PluginSettings | None, ConfigSet]:
        for plugin, held in zip(self.plugins, self.sets, strict=True):
            if runs_on(plugin, labels):
                return plugin.settings, held
        return None, ConfigSet(self.by_name, self.torn)

    def settings(self, labels: Mapping[str, str]) -> PluginSettings | None:
        """How the plugin was started that runs on nodes with these labels; None where nothing says so."""
        return self._place(labels)[0]

    def known(self, labels: Mapping[str, str]) -> Mapping[str, PluginConfig]:
        """The configurations that nodes with these labels can have, by name."""
        return self._place(labels)[1].by_name

    def default(self, labels: Mapping[str, str]) -> str:
        """The name of the configuration that a node has without a label; empty for none.

        Where it is unknown how the plugin was started, as its chart does.
        """
        stated, held = self._place(labels)
        settings = stated or _CHARTS_OWN
        if settings.default or not settings.uses_config:
            return settings.default
        for fallback in settings.fallbacks:
            if fallback == "empty":
                return ""
            if fallback == "named" and _DEFAULT in held.by_name:
                return _DEFAULT
            if fallback == "single" and len(held.by_name) == 1:
                return next(iter(held.by_name))
        return ""

    def of(self, labels: Mapping[str, str]) -> PluginConfig | None:
        """What a node with these labels has; None where it has none, or one that is not known."""
        settings, held = self._place(labels)
        if settings is not None and not settings.uses_config:
            return held.by_name[""] if settings.image is not None else None
        named = labels.get(CONFIG_LABEL, self.default(labels))
        return None if named in held.torn and CONFIG_LABEL in labels else held.by_name.get(named)

    def is_unread(self, labels: Mapping[str, str]) -> bool:
        """Whether nodes with these labels have a configuration by default that no known ConfigMap holds."""
        name = self.default(labels)
        return CONFIG_LABEL not in labels and bool(name) and name not in self.known(labels)

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
        """Why the configuration cannot be used that nodes with these labels have; None when it can, or for none."""
        settings, held = self._place(labels)
        if settings is not None and not settings.uses_config:
            return held.by_name[""].fault if settings.image is not None else None
        config, named = self.of(labels), labels.get(CONFIG_LABEL)
        if config is not None and config.fault is not None:
            return config.fault
        return None if named is None else name_problem(CONFIG_LABEL, named, held.by_name, held.torn)


def find_plugin_configs(config_maps: Sequence[ConfigMap], faults: list[DecodeError] | None = None) -> PluginConfigs:
    """The configurations of the device plugin, in whatever map they are.

    A map is the plugin's where a text of it has the form of a configuration, or by its usual name; then its other texts
    count that could be one, as `version: v1` alone. Raises DecodeError with map, key and field for what the plugin
    would not start with; given `faults`, these get it, and such a configuration bears its fault.
    """
    ordered = sorted(config_maps, key=lambda m: (m.namespace, m.name))
    held = tuple((m, _parsed(m, key, faults)) for m in ordered for key in sorted(plugin_keys(m)))
    found = _joined(config for _, config in held)
    return PluginConfigs(found.by_name, found.torn, held=held, maps=tuple(ordered))


def plugin_keys(config_map: ConfigMap) -> list[str]:
    """The keys of a map under which the device plugin would find configurations, by their form."""
    definite = {key for key, text in config_map.data.items() if is_configuration(text)}
    if not definite and config_map.name not in USUAL_MAPS:
        return []
    more = (key for key, text in config_map.data.items() if key not in definite and _may_be(config_map, key, text))
    return [*sorted(definite), *more]


def unread_keys(config_map: ConfigMap) -> list[tuple[str, DecodeError]]:
    """The keys of a map that a plugin mounts under which no configuration can be read, each with why; sorted."""
    found = []
    for key in sorted(config_map.data):
        try:
            _parsed(config_map, key, None)
        except DecodeError as error:
            found.append((key, error))
    return found


def _of_image(plugin: DevicePlugin, image: ImageSharing) -> PluginConfig:
    """The configuration that an image makes of its settings; of cards that are cut nothing else is read."""
    if image.problem:
        error = DecodeError(
            "spec.userData", "settings that Bottlerocket takes", f"<{image.problem}>", place=plugin.name
        )
        return PluginConfig("", fault=Unreadable(Quoted(str(error))))
    strategy = plugin.settings.mig_strategy
    if not image.strategy or image.cuts:
        return PluginConfig("", mig_strategy=strategy)
    replicas = {NVIDIA_GPU: image.replicas}
    found = PluginConfig("", image.strategy, replicas, image.renames, image.fails_above_one, strategy)
    return found.run_by(None)


def _joined(configs: Iterable[PluginConfig]) -> ConfigSet:
    found: dict[str, PluginConfig] = {}
    torn = set()
    for config in configs:
        if found.setdefault(config.name, config) != config:
            torn.add(config.name)
    return ConfigSet(found, tuple(sorted(torn)))


def states_configuration(config_maps: Sequence[ConfigMap]) -> bool:
    """Whether a map holds a configuration of the device plugin, be it one that cannot be read."""
    return any(plugin_keys(config_map) for config_map in config_maps)


def is_configuration(text: str) -> bool:
    """Whether a text of a ConfigMap is a configuration of the device plugin, be it one that cannot be read.

    In whatever style: the plugin reads JSON, too, and without a version it takes the first.
    """
    if _MARKS.search(text) is not None:
        return True
    if _HINTS.search(text) is None:
        return False
    try:
        whole = document(ConfigMap("", "", {}), "", text).mapping()
    except DecodeError:
        return False
    if "version" in whole:
        return whole["version"] == _VERSION and bool(whole.keys() & {"sharing", "flags"}) and whole.keys() <= TOP_KEYS
    sharing = whole.get("sharing")
    return isinstance(sharing, dict) and bool(sharing.keys() & {"timeSlicing", "mps"})


def _may_be(config_map: ConfigMap, key: str, text: str) -> bool:
    """Whether it could be a configuration that says nothing of sharing."""
    try:
        whole = document(config_map, key, text).mapping()
    except DecodeError:
        return False
    return whole.keys() <= TOP_KEYS and whole.get("version", _VERSION) == _VERSION


def _parsed(config_map: ConfigMap, key: str, faults: list[DecodeError] | None) -> PluginConfig:
    try:
        return _config(key, document(config_map, key, config_map.data[key])).run_by(None)
    except DecodeError as error:
        if faults is None:
            raise
        faults.append(error)
        return PluginConfig(key, fault=Unreadable(Quoted(str(error))))


def _config(name: str, document: Field) -> PluginConfig:
    if document.child("version").value not in (None, "", _VERSION):
        raise document.child("version").wrong(_VERSION)
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
    fails = section.child("failRequestsGreaterThanOne")
    replicas: dict[str, int] = {}
    for resource, count in map(_replicas, section.child("resources").items()):
        # Each entry adds replicas 0 to count - 1 of every card, so the highest count is what nodes show.
        replicas[resource] = max(count, replicas.get(resource, 0))
    return PluginConfig(
        name,
        kind,
        replicas,
        section.child("renameByDefault").truth(),
        None if fails.value is None else fails.truth(),
        str(strategy.value or ""),
    )


def full_name(resource: str) -> str:
    """A resource as the plugin completes it: `gpu` is `nvidia.com/gpu`."""
    return resource if "/" in resource else _VENDOR + resource


def shared_name(resource: str) -> str:
    """What `renameByDefault` calls a resource that is shared."""
    return resource + _SHARED


def _replicas(entry: Field) -> tuple[str, int]:
    resource = full_name(entry.child("name").text())
    if resource != NVIDIA_GPU and not resource.startswith("nvidia.com/mig-"):
        raise entry.child("name").wrong(f"{NVIDIA_GPU} or nvidia.com/mig-PROFILE")
    if "devices" in entry.mapping() and not _is_choice(entry.child("devices").value):
        raise entry.child("devices").wrong("all, a number of cards, or a list of their indices or UUIDs")
    hint = "leave the resource out where it is not to be shared"
    return resource, entry.child("replicas").whole(2, hint)


def _is_choice(devices: object) -> bool:
    """Whether the plugin can read which cards are to be shared, though it then shares all of them."""
    if isinstance(devices, list):
        return all(_CARD.fullmatch(str(each)) for each in devices)
    return devices == "all" or (isinstance(devices, int) and not isinstance(devices, bool) and devices > 0)
