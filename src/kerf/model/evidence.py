"""What of a cluster says which device plugins run there, beside their ConfigMaps.

A node label alone proves nothing: `gpu: "on"` is what HAMi's chart asks for, and plain words. So the state gathers what
is installed, what nodes have registered and what pods ask for, and the sharing families judge it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

READ_VARIABLES = frozenset({"MIG_STRATEGY", "CONFIG_FILE", "DEFAULT_CONFIG", "FALLBACK_STRATEGIES"})
"""The environment of a device plugin that is read; any other variable may be a secret."""
READ_FLAGS = ("--mig-strategy", "--config-file")
HAMIS_IMAGE, NVIDIAS_IMAGE = "projecthami/hami", "nvidia/k8s-device-plugin"
"""What the charts' images end with, whatever registry they are pulled from."""


def read_arguments(arguments: Iterable[object]) -> tuple[str, ...]:
    """Of a command line the flags that are read, each as `--flag=value`."""
    texts = [each for each in arguments if isinstance(each, str)]
    found = [text for text in texts if text.partition("=")[0] in READ_FLAGS and "=" in text]
    return (*found, *(f"{flag}={value}" for flag, value in pairwise(texts) if flag in READ_FLAGS))


def read_image(image: object) -> str:
    """Which of the charts' images it is, without registry, tag and digest; empty for any other."""
    path, slash, last = str(image).partition("@")[0].rpartition("/")
    repository = path + slash + last.partition(":")[0]
    known = (each for each in (HAMIS_IMAGE, NVIDIAS_IMAGE) if f"/{repository}".endswith(f"/{each}"))
    return next(known, "")


class Project(StrEnum):
    """Whose device plugin it is."""

    HAMI = "HAMi"
    NVIDIA = "NVIDIA"


@dataclass(frozen=True, slots=True, order=True)
class PluginSettings:
    """How NVIDIA's device plugin was started.

    `uses_config`: it reads configurations at all, of the ConfigMap of the name `config_map` (empty: not stated). A node
    without a label has the one called `default`, else what the first of the `fallbacks` finds: `named` (one called
    `default`), `single` (the only one), `empty` (none). `mig_strategy` beats every configuration; empty: not stated.
    """

    uses_config: bool = False
    config_map: str = ""
    default: str = ""
    fallbacks: tuple[str, ...] = ()
    mig_strategy: str = ""


@dataclass(frozen=True, slots=True)
class ClusterPolicy:
    """`nvidia.com/v1` ClusterPolicy of NVIDIA's GPU operator, as far as it decides what a node shows."""

    name: str
    has_plugin: bool = True
    config_map: str = ""
    default: str = ""
    mig_strategy: str = ""


@dataclass(frozen=True, slots=True, order=True)
class DevicePlugin:
    """A device plugin's DaemonSet, or what a ClusterPolicy says of the operator's.

    `selector` are the node labels it asks for, sorted; none for every node. `settings` are of NVIDIA's alone.
    """

    project: Project
    selector: tuple[tuple[str, str], ...] = ()
    settings: PluginSettings = field(default=PluginSettings())
    of_operator: bool = False


@dataclass(frozen=True, slots=True)
class PluginEvidence:
    """All of a cluster. `plugins` are those of the namespaces of plugins, each once, what a policy says first.

    `has_register`: some node bears HAMi's register. `asked` are resources that only one family counts and that pods
    which have not ended ask for.
    """

    plugins: tuple[DevicePlugin, ...] = ()
    has_register: bool = False
    asked: frozenset[str] = frozenset()

    def of(self, project: Project) -> tuple[DevicePlugin, ...]:
        """The plugins of one project."""
        return tuple(each for each in self.plugins if each.project is project)


NO_EVIDENCE = PluginEvidence()
