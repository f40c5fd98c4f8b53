"""What of a cluster says which device plugins run there, beside their ConfigMaps.

A node label alone proves nothing: `gpu: "on"` is what HAMi's chart asks for, and plain words. So the state gathers what
is installed, what nodes have registered and what pods ask for, and the sharing families judge it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

from kerf.model.constraints import Toleration

READ_VARIABLES = frozenset({"MIG_STRATEGY", "CONFIG_FILE", "DEFAULT_CONFIG", "FALLBACK_STRATEGIES"})
"""The environment of a device plugin that is read; any other variable may be a secret."""
READ_FLAGS = ("--mig-strategy", "--config-file", "--device-config-file")
COPY = "kerf-gpu-sharing"
"""The name of a ConfigMap that is a copy of what a plugin reads by another name: `kerf run` reads by name."""
HAMIS_FILE, _CONFIGS_AT = "device-config.yaml", "/available-configs"
HAMIS_IMAGE, NVIDIAS_IMAGE = "projecthami/hami", "nvidia/k8s-device-plugin"
"""What the charts' images end with, whatever registry they are pulled from."""
_VERSION = re.compile(r"v?([0-9]{1,6})\.([0-9]{1,6})(?![0-9])", re.ASCII)


def read_arguments(arguments: Iterable[object]) -> tuple[str, ...]:
    """Of a command line the flags that are read, each as `--flag=value`."""
    texts = [each for each in arguments if isinstance(each, str)]
    found = [text for text in texts if text.partition("=")[0] in READ_FLAGS and "=" in text]
    return (*found, *(f"{flag}={value}" for flag, value in pairwise(texts) if flag in READ_FLAGS))


def read_image(image: object) -> str:
    """Which of the charts' images it is, with its tag and without registry and digest; empty for any other."""
    path, slash, last = str(image).partition("@")[0].rpartition("/")
    name, colon, tag = last.partition(":")
    known = (each for each in (HAMIS_IMAGE, NVIDIAS_IMAGE) if f"/{path}{slash}{name}".endswith(f"/{each}"))
    found = next(known, "")
    return f"{found}{colon}{tag}" if found else ""


def read_version(tag: str) -> tuple[int, int] | None:
    """Major and minor version of a tag such as `v0.20.1-ubi9`; None where it has no such form."""
    found = _VERSION.match(tag)
    return (int(found[1]), int(found[2])) if found is not None else None


@dataclass(frozen=True, slots=True)
class ConfigMount:
    """Where a container of a pod has the ConfigMap of its configuration: by the path, and by the volume's name.

    `key` is the map's key that is HAMi's file there; empty for anything but that file.
    """

    path: str
    volume: str
    config_map: str
    key: str = ""


def read_mounts(spec: object, *, by_flags: bool = True) -> tuple[ConfigMount, ...]:
    """The ConfigMaps that a pod spec mounts where device plugins and HAMi's scheduler look for their configuration.

    HAMi's chart mounts one file, `device-config.yaml` (templates/device-plugin/daemonsetnvidia.yaml and
    scheduler/deployment.yaml, v2.10.0). The configuration manager of NVIDIA's plugin looks into `/available-configs`
    (its chart 0.18, and the GPU operator), and without a manager the plugin is given the path of a file, which counts
    with `by_flags`. HAMi's programs take the path of theirs by `--device-config-file`.
    """
    held = spec if isinstance(spec, dict) else {}
    volumes = dict(_config_volumes(held))
    found = []
    for container in _dicts(held.get("containers")):
        variables = {each.get("name"): each.get("value") for each in _dicts(container.get("env"))}
        words = (*_list(container.get("command")), *_list(container.get("args")))
        flags = dict(flag.partition("=")[::2] for flag in read_arguments(words))
        file = str(flags.get("--config-file") or variables.get("CONFIG_FILE") or "")
        hamis = flags.get("--device-config-file") or ""
        for mount in _dicts(container.get("volumeMounts")):
            path, volume = str(mount.get("mountPath") or "").rstrip("/"), str(mount.get("name"))
            if not path or volume not in volumes:
                continue
            is_hamis = path.rpartition("/")[2] == HAMIS_FILE or f"{hamis}/".startswith(f"{path}/")
            if is_hamis:
                inside = hamis.removeprefix(f"{path}/") if hamis.startswith(f"{path}/") else HAMIS_FILE
                source, key = _file_of(volumes[volume], str(mount.get("subPath") or "") or inside)
                found.append(ConfigMount(path, volume, source, key))
            elif path == _CONFIGS_AT or (by_flags and f"{file}/".startswith(f"{path}/")):
                found.append(ConfigMount(path, volume, volumes[volume][0][0]))
    return tuple(dict.fromkeys(found))


_Source = tuple[str, Mapping[str, str] | None]
"""A ConfigMap of a volume, and which of its keys are which files there; None for all, by their own names."""


def _file_of(sources: Sequence[_Source], file: str) -> tuple[str, str]:
    """Name of the map and its key that are the file of a volume; of several maps that may have it, the last."""
    stated = next(((name, items[file]) for name, items in sources if items is not None and file in items), None)
    whole = [name for name, items in sources if items is None]
    return stated or ((whole or [sources[0][0]])[-1], file)


def _config_volumes(spec: Mapping[str, Any]) -> Iterator[tuple[str, list[_Source]]]:
    """The volumes that have ConfigMaps, by name."""
    for volume in _dicts(spec.get("volumes")):
        projected = volume.get("projected")
        parts = [volume, *_dicts(projected.get("sources") if isinstance(projected, dict) else None)]
        maps = [each["configMap"] for each in parts if isinstance(each.get("configMap"), dict)]
        sources = [(each["name"], _items(each)) for each in maps if isinstance(each.get("name"), str)]
        if sources:
            yield str(volume.get("name")), sources


def _items(source: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Keys by the files that they are; None where the volume has all under their own names."""
    stated = _dicts(source.get("items"))
    return {str(each.get("path")): str(each.get("key")) for each in stated} or None


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in _list(value) if isinstance(each, dict)]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


class Project(StrEnum):
    """Whose device plugin it is."""

    HAMI = "HAMi"
    NVIDIA = "NVIDIA"


@dataclass(frozen=True, slots=True)
class ImageSharing:
    """What a machine's image says of the device plugin that it brings along, as Bottlerocket's settings do.

    `strategy` is `time-slicing`, `mps` or empty for whole cards, each shown `replicas` times; `fails_above_one` and
    `renames` as in the plugin's own configuration. `cuts`: cards are cut into MIG instances. `idle` are sections that
    are stated and that the strategy does not use. With a `problem` the image refuses the settings.
    """

    strategy: str = ""
    replicas: int = 0
    renames: bool = False
    fails_above_one: bool | None = None
    cuts: bool = False
    idle: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """How a device plugin was started.

    `uses_config`: it reads configurations at all, of the ConfigMap of the name `config_map` (empty: not stated). A node
    without a label has the one called `default`, else what the first of the `fallbacks` finds: `named` (one called
    `default`), `single` (the only one), `empty` (none). `mig_strategy` beats every configuration; empty: not stated.
    `version` is None where no image says it. Of HAMi's plugin only the ConfigMap, with the key of it that is its file,
    and the version are read. A plugin that comes with the machine's `image` is configured by that alone.
    """

    uses_config: bool = False
    config_map: str = ""
    default: str = ""
    fallbacks: tuple[str, ...] = ()
    mig_strategy: str = ""
    version: tuple[int, int] | None = None
    config_key: str = ""
    image: ImageSharing | None = None


@dataclass(frozen=True, slots=True)
class ClusterPolicy:
    """`nvidia.com/v1` ClusterPolicy of NVIDIA's GPU operator, as far as it decides what a node shows.

    `namespace` is the operator's, from the status; empty where that does not say it. `tolerations` are those of all its
    DaemonSets, None where it states none; `version` is the device plugin's.
    """

    name: str
    has_plugin: bool = True
    config_map: str = ""
    default: str = ""
    mig_strategy: str = ""
    namespace: str = ""
    tolerations: tuple[Toleration, ...] | None = None
    version: tuple[int, int] | None = None


class Role(StrEnum):
    """What a Deployment of a plugin's project does."""

    HAMIS_SCHEDULER = "HAMi's scheduler"
    OPERATOR = "NVIDIA's GPU operator"


@dataclass(frozen=True, slots=True)
class PluginDeployment:
    """A Deployment that says where plugins are configured: HAMi's scheduler by its mount, the operator by its place.

    `config_key` is the key of the ConfigMap that is the scheduler's file. It `runs` unless it has no replicas.
    """

    namespace: str
    name: str
    role: Role
    config_map: str = ""
    config_key: str = ""
    runs: bool = True


@dataclass(frozen=True, slots=True)
class DevicePlugin:
    """A device plugin's DaemonSet, or what a ClusterPolicy says of the operator's.

    `selector` are the node labels it asks for, sorted; none for every node. `namespace` is where its ConfigMap must be,
    empty where that is not known; `name` is the DaemonSet's, or the policy's. It starts on no node with a taint that
    `tolerations` do not have.
    """

    project: Project
    selector: tuple[tuple[str, str], ...] = ()
    settings: PluginSettings = field(default=PluginSettings())
    of_operator: bool = False
    namespace: str = ""
    name: str = ""
    tolerations: tuple[Toleration, ...] = ()

    @property
    def order(self) -> tuple[bool, str, str]:
        """What a policy says comes first."""
        return not self.of_operator, self.namespace, self.name


@dataclass(frozen=True, slots=True)
class PluginEvidence:
    """All of a cluster. `plugins` are those of the namespaces of plugins, each once, what a policy says first.

    `has_register`: some node bears HAMi's register. `asked` are resources that only one family counts and that pods
    which have not ended ask for. `deployments` are those that say where plugins are configured. `images` are the
    plugins that come with the images of NodeClasses, on whose nodes they run.
    """

    plugins: tuple[DevicePlugin, ...] = ()
    has_register: bool = False
    asked: frozenset[str] = frozenset()
    deployments: tuple[PluginDeployment, ...] = ()
    images: tuple[DevicePlugin, ...] = ()

    def of(self, project: Project) -> tuple[DevicePlugin, ...]:
        """The plugins of one project."""
        return tuple(each for each in self.plugins if each.project is project)


NO_EVIDENCE = PluginEvidence()
