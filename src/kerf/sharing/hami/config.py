"""What HAMi's ConfigMap says about NVIDIA cards: resource names, split count, scalings, defaults.

One map is read by HAMi's webhook, its scheduler and its device plugin, so Kerf reads it too and no user states the
same numbers twice. Keys and defaults as HAMi v2.10.0 (commit 4707fb02), chart key `device-config.yaml`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, cast

from kerf.errors import DecodeError
from kerf.model.causes import Cause, Name, Quoted
from kerf.model.evidence import COPY, HAMIS_FILE, PluginDeployment, PluginEvidence, Project, Role
from kerf.model.gpu import NVIDIA_GPU
from kerf.model.snapshot import ConfigMap
from kerf.sharing.config_yaml import Field, document
from kerf.sharing.family import Unreadable

CONFIG_MAP, CONFIG_KEY = "hami-scheduler-device", HAMIS_FILE
_RESOURCE_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_VOLCANOS = "volcano.sh/"


@dataclass(frozen=True)
class HamiConfig:
    """HAMi's settings for NVIDIA cards, with the chart's defaults.

    Scalings are exact fractions, since `int(total * scaling)` decides what a card registers. `node_policy` and
    `gpu_policy` are flags of HAMi's scheduler, which no ConfigMap shows. `mig_allowlist` has the profiles that a model
    may be cut into, by a part of the model's name; None means HAMi's own list.
    """

    count: str = NVIDIA_GPU
    memory: str = "nvidia.com/gpumem"
    memory_percent: str = "nvidia.com/gpumem-percentage"
    cores: str = "nvidia.com/gpucores"
    priority: str = "nvidia.com/priority"
    split_count: int = 10
    memory_scaling: Fraction = Fraction(1)
    core_scaling: Fraction = Fraction(1)
    memory_factor: int = 1
    default_memory_mib: int = 0
    default_cores: int = 0
    default_gpus: int = 1
    preconfigured_memory_mib: int = 0
    core_policy: str = "default"
    overwrites_environment: bool = False
    mig_allowlist: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    node_policy: str = "binpack"
    gpu_policy: str = "spread"

    @property
    def slice_resources(self) -> frozenset[str]:
        """What only HAMi counts: everything but the number of GPUs, which kubelet shows."""
        return frozenset({self.memory, self.memory_percent, self.cores, self.priority})


CHART_DEFAULTS = HamiConfig()

_Setting = str | int | bool | Fraction


def _text(value: object) -> _Setting | None:
    return value if isinstance(value, str) else None


def _resource(value: object) -> _Setting | None:
    """Neither kubelet nor the API server takes another name (IsExtendedResourceName); an empty one is the default's."""
    return value if isinstance(value, str) and (not value or _RESOURCE_NAME.fullmatch(value)) else None


def _whole_number(value: object) -> _Setting | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def _count(value: object) -> _Setting | None:
    return _whole_number(value) or None


def _scaling(value: object) -> _Setting | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1_000_000:
        return None
    # By its decimal text: 1.2 is meant as six fifths, not as the nearest binary fraction.
    return Fraction(str(value))


def _truth(value: object) -> _Setting | None:
    return value if isinstance(value, bool) else None


class _Form(NamedTuple):
    """How a value is read; `read` gives None for what is not of that form."""

    expected: str
    read: Callable[[object], _Setting | None]


_NAME, _NUMBER, _COUNT = _Form("text", _text), _Form("a whole number", _whole_number), _Form("1 or more", _count)
_RESOURCE = _Form("a resource's name with its domain, such as nvidia.com/gpu", _resource)
_SCALING, _TRUTH = _Form("a number above 0", _scaling), _Form("true or false", _truth)

# Key in the ConfigMap's `nvidia` section. Other keys (log level) do not change what fits.
_FIELDS = {
    "resourceCountName": ("count", _RESOURCE),
    "resourceMemoryName": ("memory", _RESOURCE),
    "resourceMemoryPercentageName": ("memory_percent", _RESOURCE),
    "resourceCoreName": ("cores", _RESOURCE),
    "resourcePriorityName": ("priority", _RESOURCE),
    "deviceSplitCount": ("split_count", _COUNT),
    "deviceMemoryScaling": ("memory_scaling", _SCALING),
    "deviceCoreScaling": ("core_scaling", _SCALING),
    "memoryFactor": ("memory_factor", _COUNT),
    "defaultMemory": ("default_memory_mib", _NUMBER),
    "defaultCores": ("default_cores", _NUMBER),
    "defaultGPUNum": ("default_gpus", _NUMBER),
    "preConfiguredDeviceMemory": ("preconfigured_memory_mib", _NUMBER),
    "gpuCorePolicy": ("core_policy", _NAME),
    "overwriteEnv": ("overwrites_environment", _TRUTH),
}
NVIDIA_KEYS = tuple(_FIELDS)
"""Keys of the section `nvidia` that Kerf reads."""


@dataclass(frozen=True)
class HeldConfig:
    """HAMi's settings as one ConfigMap states them, or why they cannot be read; chart's defaults then."""

    config_map: ConfigMap
    config: HamiConfig = CHART_DEFAULTS
    fault: Unreadable | None = None


@dataclass(frozen=True, slots=True)
class ConfigsDiffer(Cause):
    """Several ConfigMaps could be HAMi's, with different contents, and nothing says which one it reads."""

    config_maps: tuple[Name, ...]


def is_config(config_map: ConfigMap) -> bool:
    """Whether a map has the form of HAMi's device configuration, whatever the release is called.

    Volcano's device plugin has the same key in a map of its own, for resources of its own (`volcano.sh/vgpu-number`).
    """
    text = config_map.data.get(CONFIG_KEY)
    return config_map.name == CONFIG_MAP or (text is not None and _VOLCANOS not in text)


def find_configs(config_maps: Sequence[ConfigMap], faults: list[DecodeError] | None = None) -> tuple[HeldConfig, ...]:
    """The maps that could be HAMi's, in the order of their names.

    Raises DecodeError for one that cannot be read; given `faults`, these get it.
    """
    ordered = sorted(filter(is_config, config_maps), key=lambda m: (m.namespace, m.name))
    return tuple(_held(config_map, faults) for config_map in ordered)


def _held(config_map: ConfigMap, faults: list[DecodeError] | None, key: str = CONFIG_KEY) -> HeldConfig:
    try:
        return HeldConfig(config_map, _parse(config_map, key))
    except DecodeError as error:
        if faults is None:
            raise
        faults.append(error)
        return HeldConfig(config_map, fault=Unreadable(Quoted(str(error))))


def with_mounted(
    held: Sequence[HeldConfig], config_maps: Sequence[ConfigMap], evidence: PluginEvidence
) -> tuple[HeldConfig, ...]:
    """The maps that could be HAMi's, with those that a program mounts and that have another form or key, and copies.

    One that cannot be read has its fault: HAMi does not start with it.
    """
    formed = {each.config_map.key for each in held}
    keys = {f"{namespace}/{name}": key or CONFIG_KEY for (namespace, name), key in mounted(evidence).items()}
    others = {key for key in keys.values() if key != CONFIG_KEY}
    read = {}
    for config_map in config_maps:
        key = keys.get(config_map.key, "")
        if not key and config_map.name == COPY:
            key = min(others & config_map.data.keys(), default="")
        if key and (key != CONFIG_KEY or config_map.key not in formed):
            read[config_map.key] = _held(config_map, [], key)
    kept = [each for each in held if each.config_map.key not in read]
    return tuple(sorted((*kept, *read.values()), key=lambda each: each.config_map.key))


def schedulers(evidence: PluginEvidence) -> tuple[PluginDeployment, ...]:
    """HAMi's schedulers: those that run, where any does. An old one is left behind with no replicas."""
    found = tuple(each for each in evidence.deployments if each.role is Role.HAMIS_SCHEDULER)
    return tuple(each for each in found if each.runs) or found


def mounted(evidence: PluginEvidence) -> dict[tuple[str, str], str]:
    """The ConfigMaps that HAMi's device plugin and scheduler mount, where the input says so.

    By namespace and name, each with the key of it that is their file.
    """
    found: dict[tuple[str, str], str] = {}
    for plugin in evidence.of(Project.HAMI):
        found.setdefault((plugin.namespace, plugin.settings.config_map), plugin.settings.config_key)
    for each in schedulers(evidence):
        found.setdefault((each.namespace, each.config_map), each.config_key)
    return {(namespace, name): key for (namespace, name), key in found.items() if name}


def is_guess(evidence: PluginEvidence) -> bool:
    """Whether only names say which of several maps HAMi reads: no program of it is seen."""
    return not mounted(evidence) and not evidence.of(Project.HAMI)


def chosen(held: Sequence[HeldConfig], evidence: PluginEvidence) -> tuple[HeldConfig, ...]:
    """The maps that HAMi goes by; one, unless nothing says which of several.

    What its programs mount, or a copy of that, where it is known. Else the map of the release that runs: the chart
    calls the device plugin `<release>-device-plugin` and the map `<release>-scheduler-device` (templates/_helpers.tpl,
    v2.10.0). Else one in the plugin's namespace, else one with the name that the chart gives by default, or a copy.
    """
    named = mounted(evidence)
    if named:
        read = tuple(each for each in held if (each.config_map.namespace, each.config_map.name) in named)
        return read or tuple(each for each in held if each.config_map.name == COPY)
    own = evidence.of(Project.HAMI)
    releases = {(each.namespace, each.name.removesuffix("-device-plugin") + "-scheduler-device") for each in own}
    rules: tuple[Callable[[ConfigMap], bool], ...] = (
        lambda m: (m.namespace, m.name) in releases,
        lambda m: any(m.namespace == each.namespace for each in own),
        lambda m: m.name == CONFIG_MAP,
        lambda m: m.name == COPY,
    )
    for rule in rules:
        held = [each for each in held if rule(each.config_map)] or held
    return tuple(held)


def _parse(config_map: ConfigMap, key: str) -> HamiConfig:
    place, path = f"ConfigMap {config_map.namespace}/{config_map.name}", f'data["{key}"]'
    text = config_map.data.get(key)
    if text is None:
        raise DecodeError(path, "HAMi's device configuration", "<nothing>", place=place)
    whole = document(config_map, key, text, joins=True).value
    section: object = whole.get("nvidia", {}) if isinstance(whole, dict) else whole
    if section is None:
        return CHART_DEFAULTS
    if not isinstance(section, dict):
        raise DecodeError(f"{path}.nvidia", "a mapping", section, place=place)
    held = cast("Mapping[str, object]", section)
    allowed = Field(held.get("migProfileAllowlist"), place, f"{path}.nvidia.migProfileAllowlist")
    return HamiConfig(**_settings(held, place, f"{path}.nvidia"), mig_allowlist=_allowlist(allowed))


def _allowlist(allowed: Field) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    if not allowed.value:
        return None
    return tuple(
        (model.text(), tuple(profile.text() for profile in entry.child("profiles").items()))
        for entry in allowed.items()
        for model in entry.child("models").items()
    )


def _settings(section: Mapping[str, object], place: str, path: str) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for key, (name, form) in _FIELDS.items():
        if section.get(key) is None:
            continue
        value = form.read(section[key])
        if value is None:
            raise DecodeError(f"{path}.{key}", form.expected, section[key], place=place)
        # An empty name or policy is Go's zero value: HAMi then behaves as without the key.
        if value != "":
            settings[name] = value
    return settings
