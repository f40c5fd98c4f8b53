"""Evidence of device plugins, gathered as objects come and go: no event goes through a hundred thousand pods."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace

from kerf.model.evidence import ClusterPolicy, DevicePlugin, PluginDeployment, PluginEvidence, Role
from kerf.model.nodes import Node
from kerf.model.pluginnamespaces import PLUGIN_NAMESPACES
from kerf.model.pods import Pod
from kerf.model.snapshot import DaemonSet, NodeClass
from kerf.sharing.hami.records import is_registered
from kerf.sharing.installed import is_operators, plugin_of, plugin_of_image, plugin_of_policy

_NOTHING: frozenset[str] = frozenset()
Witness = Pod | Node | DaemonSet | ClusterPolicy | PluginDeployment | NodeClass
WITNESSES = (Pod, Node, DaemonSet, ClusterPolicy, PluginDeployment, NodeClass)


class Gathered:
    """What the objects that were noted say together.

    DaemonSets and Deployments count in the namespaces of plugins alone: any user may call a DaemonSet as a plugin calls
    its own.
    """

    def __init__(self, namespaces: Collection[str] = PLUGIN_NAMESPACES) -> None:
        self._namespaces = frozenset(namespaces)
        self._plugins: dict[tuple[str, str], DevicePlugin] = {}
        self._deployments: dict[tuple[str, str], PluginDeployment] = {}
        self._images: dict[str, DevicePlugin] = {}
        self._registered = 0
        self._asking: Counter[str] = Counter()

    def note(self, before: Witness | None, after: Witness | None) -> bool:
        """Take note of one object, as it was and as it is now; whether the evidence may have changed by it."""
        value = before if after is None else after
        if isinstance(value, Pod):
            return self._note_pod(before, after)
        if isinstance(value, Node):
            held = self._registered
            self._registered += _is_registered(after) - _is_registered(before)
            return bool(held) != bool(self._registered)
        if isinstance(value, DaemonSet):
            is_theirs = after is not None and value.namespace in self._namespaces
            return self._note_plugin((value.namespace, value.name), plugin_of(value) if is_theirs else None)
        if isinstance(value, ClusterPolicy):
            return self._note_plugin(("", value.name), None if after is None else plugin_of_policy(value))
        if isinstance(value, NodeClass):
            return self._note_image(value, None if after is None else plugin_of_image(value))
        if isinstance(value, PluginDeployment):
            return self._note_deployment(value, None if after is None else value)
        return False

    def _note_image(self, value: NodeClass, plugin: DevicePlugin | None) -> bool:
        key = f"{value.reference.label}={value.name}"
        held = self._images.pop(key, None)
        if plugin is not None:
            self._images[key] = plugin
        return held != plugin

    def _note_deployment(self, value: PluginDeployment, after: PluginDeployment | None) -> bool:
        key = value.namespace, value.name
        held = self._deployments.pop(key, None)
        if after is not None and value.namespace in self._namespaces:
            self._deployments[key] = after
        return held != self._deployments.get(key)

    def _note_pod(self, before: Witness | None, after: Witness | None) -> bool:
        if _asks_as(before, after):
            return False
        gone, come = _asked(before), _asked(after)
        if gone == come:
            return False
        known = set(self._asking)
        self._asking.subtract(gone - come)
        self._asking.update(come - gone)
        self._asking = Counter({name: number for name, number in self._asking.items() if number > 0})
        return known != set(self._asking)

    def _note_plugin(self, key: tuple[str, str], plugin: DevicePlugin | None) -> bool:
        held = self._plugins.pop(key, None)
        if plugin is not None:
            self._plugins[key] = plugin
        return held != plugin

    def evidence(self, resources: Iterable[str]) -> PluginEvidence:
        """All of it; of what pods ask for only these resources."""
        deployments = tuple(self._deployments[key] for key in sorted(self._deployments))
        held = sorted(self._plugins.values(), key=lambda each: each.order)
        installed = [each for each in deployments if each.role is Role.OPERATOR]
        operators = {each.namespace for each in installed if each.runs} or {each.namespace for each in installed}
        operators = operators or {each.namespace for each in held if is_operators(each) and not each.of_operator}
        # The operator creates all it has in its own namespace, and looks for ConfigMaps nowhere else.
        home = min(operators) if len(operators) == 1 else ""
        plugins = (replace(each, namespace=home) if each.of_operator and not each.namespace else each for each in held)
        asked = frozenset(name for name in resources if name in self._asking)
        images = tuple(self._images[key] for key in sorted(self._images))
        return PluginEvidence(tuple(plugins), self._registered > 0, asked, deployments, images)


def _asks_as(before: Witness | None, after: Witness | None) -> bool:
    """Whether it is a pod of which nothing has changed but its state."""
    if not isinstance(before, Pod) or not isinstance(after, Pod):
        return False
    return before.spec is after.spec and before.is_ended == after.is_ended


def _asked(value: Witness | None) -> frozenset[str]:
    """Extended resources that a pod which has not ended asks for."""
    if not isinstance(value, Pod) or value.is_ended:
        return _NOTHING
    spec = value.spec
    containers = (*spec.init_containers, *spec.containers)
    return frozenset(name for c in containers for names in (c.limits, c.requests) for name in names if "/" in name)


def _is_registered(value: Witness | None) -> bool:
    return isinstance(value, Node) and is_registered(value.annotations)
