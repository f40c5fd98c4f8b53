"""What looks like a GPU plugin's and is in a namespace of none: Kerf does not read it, and must say so.

Any user may call a ConfigMap or a DaemonSet as a plugin calls its own. So one that is elsewhere is a tenant's, or the
plugin runs where no setting says that it does, and then every plan rests on another configuration.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kerf.cli.echo import echo
from kerf.manifests.decoded import Decoded
from kerf.model.evidence import PluginDeployment, Project, Role
from kerf.sharing.hami.config import is_config
from kerf.sharing.installed import deployment_of, plugin_of
from kerf.sharing.registry import configures

PLUGIN_NAMESPACES_VARIABLE = "KERF_PLUGIN_NAMESPACES"
CONFIG_MAP, DAEMON_SET, DEPLOYMENT = "ConfigMap", "DaemonSet", "Deployment"
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class PluginObject:
    """An object that looks like one of a project's, wherever it is."""

    kind: str
    namespace: str
    name: str
    project: Project

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def runs(self) -> bool:
        """Whether it is a program, and no configuration alone."""
        return self.kind != CONFIG_MAP


def plugin_deployments(decoded: Decoded) -> list[PluginDeployment]:
    """The Deployments that say where GPU plugins are configured."""
    made = (each for each in decoded.workloads if each.kind == DEPLOYMENT)
    found = (
        deployment_of(each.namespace, each.name, each.template.labels, each.mounts, each.replicas) for each in made
    )
    return [each for each in found if each is not None]


def foreign_objects(decoded: Decoded, namespaces: Collection[str]) -> tuple[PluginObject, ...]:
    """All of an input, by kind, in its order: ConfigMaps of the form or that one of the programs mounts, and these."""
    programs = [held for held in _programs(decoded) if held[0].namespace not in namespaces]
    mounted = {(program.namespace, name): program.project for program, name in programs}
    maps = [
        PluginObject(CONFIG_MAP, m.namespace, m.name, project or (Project.HAMI if is_config(m) else Project.NVIDIA))
        for m in decoded.config_maps
        if m.namespace not in namespaces
        and ((project := mounted.get((m.namespace, m.name))) is not None or configures(m))
    ]
    return (*maps, *(program for program, _ in programs))


def mounted_maps(decoded: Decoded) -> frozenset[tuple[str, str]]:
    """Namespace and name of the ConfigMaps that programs of plugins mount for their configuration."""
    return frozenset((program.namespace, name) for program, name in _programs(decoded) if name)


def _programs(decoded: Decoded) -> Iterator[tuple[PluginObject, str]]:
    """Device plugins, HAMi's scheduler and the operator, each with the name of the map that it mounts, if any."""
    for daemon in decoded.daemon_sets:
        plugin = plugin_of(daemon)
        if plugin is not None:
            place = PluginObject(DAEMON_SET, daemon.namespace, daemon.name, plugin.project)
            yield place, plugin.settings.config_map
    for each in plugin_deployments(decoded):
        project = Project.HAMI if each.role is Role.HAMIS_SCHEDULER else Project.NVIDIA
        yield PluginObject(DEPLOYMENT, each.namespace, each.name, project), each.config_map


def note_foreign(decoded: Decoded, namespaces: Sequence[str]) -> None:
    """Say on stderr which objects look like a plugin's and are none, because they are not in these namespaces."""
    found = foreign_objects(decoded, namespaces)
    for kind in (CONFIG_MAP, DAEMON_SET, DEPLOYMENT):
        foreign = [each.key for each in found if each.kind == kind]
        if foreign:
            more = f" and {len(foreign) - _MOST_NAMED} more" if len(foreign) > _MOST_NAMED else ""
            names = ", ".join(foreign[:_MOST_NAMED]) + more
            where = f"GPU plugins are configured in {', '.join(namespaces)} ({PLUGIN_NAMESPACES_VARIABLE})"
            echo(f"note: not read: {kind} {names}: {where}", err=True)
