"""What plugins are set to read, and what is there for them: where the two do not meet, a node shows no card.

A pod that mounts a ConfigMap which is not in its namespace never starts, and nothing says so but an event on that pod.
So each ConfigMap that a device plugin mounts, or that a ClusterPolicy names, is looked for where the plugin would look.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kerf.model.causes import Cause, Name, Quoted
from kerf.model.evidence import COPY, DevicePlugin, PluginEvidence, Project
from kerf.model.snapshot import ConfigMap
from kerf.sharing.hami.config import chosen, find_configs, is_config, is_guess, schedulers, with_mounted
from kerf.sharing.hami.config import mounted as mounted_by_hami
from kerf.sharing.installed import looks_in, what_is
from kerf.sharing.nvidia.device_plugin import find_plugin_configs, plugin_keys, unread_keys
from kerf.sharing.unheeded import NODES_KEY, UnheededSetting, unheeded


@dataclass(frozen=True, slots=True)
class ConfigMapAbsent(Cause):
    """The ConfigMap that `reader` reads is not where it looks: in `namespace`, empty where that is not known.

    `elsewhere` are the namespaces in which one of that name is; `instead` are others there that have the right form.
    """

    reader: Name
    config_map: Name
    namespace: Name
    elsewhere: tuple[Name, ...] = ()
    instead: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class DefaultAbsent(Cause):
    """The configuration that nodes get without a label is none of the ConfigMap's; `known` are those."""

    reader: Name
    config_map: Name
    default: Name
    known: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class ConfigurationUnread(Cause):
    """A key of the ConfigMap that a plugin reads is no configuration: a node that names it shows no GPU."""

    config_map: Name
    key: Name
    error: Quoted


@dataclass(frozen=True, slots=True)
class PassedOver(Cause):
    """ConfigMaps with the form of a plugin's configuration that the plugin does not read; `read` are those it does.

    With `is_guess` no program is seen, `read` has the name that the chart gives, and the others say something else.
    """

    whose: Name
    config_maps: tuple[Name, ...]
    read: tuple[Name, ...]
    is_guess: bool = False


@dataclass(frozen=True, slots=True)
class VersionAssumed(Cause):
    """A configuration of MPS lets a container have several replicas, which only plugins from `since` on heed.

    No image says which version runs.
    """

    config: Name
    since: Name


@dataclass(frozen=True, slots=True)
class ImageCuts(Cause):
    """The images of a NodeClass cut cards into MIG instances, and nothing says how many of which model."""

    node_class: Name


@dataclass(frozen=True, slots=True)
class ImageSettingIdle(Cause):
    """The user data of a NodeClass has sections of settings that no strategy of it uses, of these names."""

    node_class: Name
    sections: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class WiringFinding:
    """What is amiss, and the plugin that it keeps from its cards; None for what is only to be said."""

    cause: Cause
    plugin: DevicePlugin | None = None


def findings(config_maps: Sequence[ConfigMap], evidence: PluginEvidence) -> tuple[WiringFinding, ...]:
    """All of a cluster, each once. Cost: the texts of the maps that plugins read."""
    found = (
        *_of_hami(config_maps, evidence),
        *_of_nvidia(config_maps, evidence),
        *(WiringFinding(each.cause) for each in _unheeded(config_maps, evidence)),
        *(WiringFinding(cause) for plugin in evidence.images for cause in of_image(plugin)),
    )
    return tuple({each.cause: each for each in found}.values())


def read_by_plugins(config_maps: Sequence[ConfigMap], evidence: PluginEvidence) -> frozenset[str]:
    """Namespace and name of the maps that plugins go by: those that they mount, or that have the form alone."""
    held = with_mounted(find_configs(config_maps, []), config_maps, evidence)
    hamis = {each.config_map.key for each in chosen(held, evidence)}
    plugins = evidence.of(Project.NVIDIA)
    names = [plugin for plugin in plugins if plugin.settings.config_map]
    named = {
        m.key
        for m in config_maps
        if any(m.name == plugin.settings.config_map and looks_in(plugin, m.namespace) for plugin in names)
    }
    formed = set() if names else {m.key for m in config_maps if plugin_keys(m)}
    return frozenset(hamis | named | formed)


def _unheeded(config_maps: Sequence[ConfigMap], evidence: PluginEvidence) -> Iterator[UnheededSetting]:
    """What stands in the maps that plugins go by and does nothing."""
    read = read_by_plugins(config_maps, evidence)
    for config_map in sorted(config_maps, key=lambda m: m.key):
        if config_map.key in read or NODES_KEY in config_map.data:
            yield from unheeded(config_map)


def of_image(plugin: DevicePlugin) -> Iterator[Cause]:
    """What is not read of the settings of an image, or not used by it."""
    image, name = plugin.settings.image, Name(plugin.name)
    if image is not None and image.cuts:
        yield ImageCuts(name)
    if image is not None and image.idle:
        yield ImageSettingIdle(name, tuple(map(Name, image.idle)))


def _of_hami(config_maps: Sequence[ConfigMap], evidence: PluginEvidence) -> Iterator[WiringFinding]:
    there = {(m.namespace, m.name) for m in config_maps}
    has_copy = any(m.name == COPY and is_config(m) for m in config_maps)
    readers: list[tuple[str, str, str, DevicePlugin | None]] = [
        (each.namespace, each.settings.config_map, what_is(each), each) for each in evidence.of(Project.HAMI)
    ]
    readers += [
        (each.namespace, each.config_map, f"Deployment {each.namespace}/{each.name}", None)
        for each in schedulers(evidence)
    ]
    for namespace, name, reader, plugin in readers:
        if name and (namespace, name) not in there and not has_copy:
            elsewhere = sorted(m.namespace for m in config_maps if m.name == name)
            instead = sorted(m.name for m in config_maps if m.namespace == namespace and is_config(m))
            cause = ConfigMapAbsent(
                Name(reader), Name(name), Name(namespace), tuple(map(Name, elsewhere)), tuple(map(Name, instead))
            )
            yield WiringFinding(cause, plugin)
    held = with_mounted(find_configs(config_maps, []), config_maps, evidence)
    read = {each.config_map.key: each.config for each in chosen(held, evidence)}
    others = [each for each in held if each.config_map.key not in read]
    if others:
        named = [f"{namespace}/{name}" for namespace, name in mounted_by_hami(evidence)]
        differ = any(each.fault is not None or each.config not in read.values() for each in others)
        passed = tuple(Name(each.config_map.key) for each in others)
        is_guessed = differ and is_guess(evidence)
        yield WiringFinding(PassedOver(Name("HAMi"), passed, tuple(map(Name, sorted(read or named))), is_guessed))


def _of_nvidia(config_maps: Sequence[ConfigMap], evidence: PluginEvidence) -> Iterator[WiringFinding]:
    plugins = evidence.of(Project.NVIDIA)
    configs, read = find_plugin_configs(config_maps, []).installed(evidence), set[str]()
    is_each_named = bool(plugins)
    for plugin, held in zip(configs.plugins, configs.sets, strict=True):
        if plugin.settings.image is not None:
            continue
        name, settings = plugin.settings.config_map, plugin.settings
        if not name:
            is_each_named = is_each_named and not settings.uses_config
            continue
        found = [m for m in config_maps if m.name == COPY or (m.name == name and looks_in(plugin, m.namespace))]
        read.update(m.key for m in found)
        for config_map in sorted(found, key=lambda m: m.key):
            for key, error in unread_keys(config_map):
                cause = ConfigurationUnread(Name(config_map.key), Name(key), Quoted(str(error)))
                yield WiringFinding(cause, plugin)
        if not found:
            yield WiringFinding(_absent(plugin, config_maps), plugin)
        elif settings.default and settings.default not in held.by_name:
            known = tuple(map(Name, sorted(held.by_name)))
            yield WiringFinding(DefaultAbsent(Name(what_is(plugin)), Name(name), Name(settings.default), known), plugin)
    others = sorted(m.key for m in config_maps if plugin_keys(m) and m.key not in read)
    if others and is_each_named and read:
        yield WiringFinding(
            PassedOver(Name("NVIDIA's device plugin"), tuple(map(Name, others)), tuple(map(Name, sorted(read))))
        )
    versions = {each.settings.version for each in plugins} or {None}
    relaxed = [config.name for _, config in sorted(configs.by_name.items()) if config.is_relaxed]
    if relaxed and None in versions:
        yield WiringFinding(VersionAssumed(Name(relaxed[0]), Name("0.20")))


def _absent(plugin: DevicePlugin, config_maps: Sequence[ConfigMap]) -> ConfigMapAbsent:
    name = plugin.settings.config_map
    elsewhere = sorted(m.namespace for m in config_maps if m.name == name)
    instead = sorted(m.name for m in config_maps if looks_in(plugin, m.namespace) and plugin_keys(m))
    return ConfigMapAbsent(
        Name(what_is(plugin)),
        Name(name),
        Name(plugin.namespace),
        tuple(map(Name, elsewhere)),
        tuple(map(Name, instead)),
    )
