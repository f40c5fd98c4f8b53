"""What of a cluster says which device plugins run there, beside their ConfigMaps.

A node label alone proves nothing: `gpu: "on"` is what HAMi's chart asks for, and plain words. So the state gathers what
is installed, what nodes have registered and what pods ask for, and the sharing families judge it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

READ_VARIABLES = frozenset({"MIG_STRATEGY", "DEFAULT_CONFIG", "FALLBACK_STRATEGIES"})
"""The environment of a device plugin that is read; any other variable may be a secret."""
_READ_FLAG = "--mig-strategy"


def read_arguments(arguments: Iterable[object]) -> tuple[str, ...]:
    """Of a command line the flags that are read, each as `--flag=value`."""
    texts = [each for each in arguments if isinstance(each, str)]
    found = [text for text in texts if text.startswith(f"{_READ_FLAG}=")]
    return (*found, *(f"{flag}={value}" for flag, value in pairwise(texts) if flag == _READ_FLAG))


class Project(StrEnum):
    """Whose device plugin it is."""

    HAMI = "HAMi"
    NVIDIA = "NVIDIA"


@dataclass(frozen=True, slots=True, order=True)
class DevicePlugin:
    """A device plugin's DaemonSet. `selector` are the node labels it asks for, sorted; none for every node."""

    project: Project
    selector: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """All of a cluster. `plugins` are those of the namespaces of plugins, each once, sorted.

    `has_register`: some node bears HAMi's register. `asked` are resources that only one family counts and that pods
    which have not ended ask for.
    """

    plugins: tuple[DevicePlugin, ...] = ()
    has_register: bool = False
    asked: frozenset[str] = frozenset()

    def of(self, project: Project) -> tuple[DevicePlugin, ...]:
        """The plugins of one project."""
        return tuple(each for each in self.plugins if each.project is project)


NO_EVIDENCE = Evidence()
