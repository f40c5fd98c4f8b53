"""Device plugins recognised by the DaemonSets that their charts make, and on which nodes they run.

HAMi's chart 2.10 (templates/device-plugin/daemonsetnvidia.yaml) labels its DaemonSet with a component, and names it
`hami-device-plugin` after the release; the image is `projecthami/hami`. NVIDIA's plugin and operator call theirs
`nvidia-device-plugin...`, from an image of that name (`k8s-device-plugin`). HAMi's DaemonSets for other vendors and its
mock plugin have other components and images, and say nothing of NVIDIA's cards.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from kerf.model.causes import Name
from kerf.model.constraints import WELL_KNOWN, Taint, Toleration, untolerated
from kerf.model.evidence import (
    HAMIS_IMAGE,
    NVIDIAS_IMAGE,
    ClusterPolicy,
    ConfigMount,
    DevicePlugin,
    PluginDeployment,
    PluginSettings,
    Project,
    Role,
    read_version,
)
from kerf.model.snapshot import DaemonSet, NodeClass
from kerf.sharing.family import PluginKeptOff

_COMPONENT, _HAMIS_COMPONENT = "app.kubernetes.io/component", "hami-device-plugin"
_HAMIS_NAME, _NVIDIAS_NAME = "hami-device-plugin", "nvidia-device-plugin"
_HAMIS_SCHEDULER, _OPERATOR = "hami-scheduler", "gpu-operator"
_OPERATORS_LABEL = ("nvidia.com/gpu.deploy.device-plugin", "true")
_OPERATORS_TOLERATIONS = (Toleration("nvidia.com/gpu", "Exists", effect="NoSchedule"),)
"""Of the operator's DaemonSets where a policy states none (its assets/state-device-plugin, 2026)."""
_OF_OTHERS = ("hami-system", "kerf-system", "kube-system", "nvidia-device-plugin")
"""Namespaces of plugins in which the documentation of the GPU operator installs none (2026-11)."""
_STRATEGIES, _CHARTS_FALLBACKS = ("none", "single", "mixed"), "named,single"
_NO_MOUNT = ConfigMount("", "", "")
_DISCOVERED = ("nvidia.com/", "feature.node.kubernetes.io/")
"""Beginnings of labels that discovery writes on nodes with cards, so no pool states them."""


def plugin_of(daemon_set: DaemonSet) -> DevicePlugin | None:
    """The device plugin that a DaemonSet is; None for any other, and for one whose program says it is another's."""
    project = _project(daemon_set)
    if project is None:
        return None
    asked = daemon_set.pod.spec.node_selector
    selector = tuple((key, min(asked[key].values)) for key in sorted(asked) if asked[key].values)
    return DevicePlugin(
        project,
        selector,
        _settings(daemon_set) if project is Project.NVIDIA else _hamis_settings(daemon_set),
        namespace=daemon_set.namespace,
        name=daemon_set.name,
        tolerations=daemon_set.pod.spec.tolerations,
    )


def plugin_of_policy(policy: ClusterPolicy) -> DevicePlugin | None:
    """The device plugin that the GPU operator installs; None where the policy switches it off.

    Without a ConfigMap the operator starts it without configurations; with one and without a default, nodes without a
    label have none (controllers/object_controls.go of the operator, `handleDevicePluginConfig`).
    """
    if not policy.has_plugin:
        return None
    uses_config = bool(policy.config_map)
    fallbacks = ("empty",) if uses_config and not policy.default else ()
    settings = PluginSettings(
        uses_config, policy.config_map, policy.default, fallbacks, policy.mig_strategy, policy.version
    )
    tolerations = _OPERATORS_TOLERATIONS if policy.tolerations is None else policy.tolerations
    return DevicePlugin(
        Project.NVIDIA,
        (_OPERATORS_LABEL,),
        settings,
        of_operator=True,
        namespace=policy.namespace,
        name=policy.name,
        tolerations=tolerations,
    )


def plugin_of_image(node_class: NodeClass) -> DevicePlugin | None:
    """The device plugin that the images of a NodeClass bring along; None where they do not say how it is set.

    It is part of the system, so no taint keeps it off. It shows the instances of cards that are cut as GPUs.
    """
    sharing = node_class.sharing
    if sharing is None:
        return None
    return DevicePlugin(
        Project.NVIDIA,
        ((node_class.reference.label, node_class.name),),
        PluginSettings(mig_strategy="single" if sharing.cuts else "none", image=sharing),
        name=f"{node_class.kind} {node_class.name}",
        tolerations=(Toleration(operator="Exists"),),
    )


def is_operators(plugin: DevicePlugin) -> bool:
    """Whether it is what a policy says of the operator's device plugin, or the DaemonSet that the operator made."""
    return plugin.of_operator or (plugin.project is Project.NVIDIA and _OPERATORS_LABEL in plugin.selector)


def deployment_of(
    namespace: str, name: str, labels: Mapping[str, str], mounts: Sequence[ConfigMount], replicas: int = 1
) -> PluginDeployment | None:
    """The Deployment of a plugin's project that this is, by the labels of its pods; None for any other.

    HAMi's chart labels its scheduler with a component (templates/scheduler/deployment.yaml, v2.10.0), and so does the
    chart of the GPU operator (`app.kubernetes.io/component: gpu-operator`, `app: gpu-operator`).
    """
    component = labels.get(_COMPONENT)
    if component == _HAMIS_SCHEDULER:
        held = next((each for each in mounts if each.key), _NO_MOUNT)
        role, runs = Role.HAMIS_SCHEDULER, replicas > 0
        return PluginDeployment(namespace, name, role, held.config_map, held.key, runs)
    is_operator = _OPERATOR in (component, labels.get("app"))
    return PluginDeployment(namespace, name, Role.OPERATOR, runs=replicas > 0) if is_operator else None


def _hamis_settings(daemon_set: DaemonSet) -> PluginSettings:
    held = next((each for each in daemon_set.mounts if each.key), _NO_MOUNT)
    version = _version(daemon_set, HAMIS_IMAGE)
    return PluginSettings(bool(held.config_map), held.config_map, version=version, config_key=held.key)


def _version(daemon_set: DaemonSet, image: str) -> tuple[int, int] | None:
    """What the tag of the first container with that image says."""
    tags = (each.image.partition(":") for each in daemon_set.programs)
    return next((read_version(tag) for name, _, tag in tags if name == image), None)


def _settings(daemon_set: DaemonSet) -> PluginSettings:
    """From the arguments and variables of all its containers: the plugin's, and those of its configuration manager.

    A flag counts before a variable, and both before a configuration (README of k8s-device-plugin 0.17).
    """
    variables = dict(pair for each in daemon_set.programs for pair in each.environment)
    flags = dict(flag.partition("=")[::2] for each in daemon_set.programs for flag in each.arguments)
    manages = "DEFAULT_CONFIG" in variables or "FALLBACK_STRATEGIES" in variables
    fallbacks = variables.get("FALLBACK_STRATEGIES", _CHARTS_FALLBACKS).split(",")
    strategy = flags.get("--mig-strategy") or variables.get("MIG_STRATEGY", "")
    return PluginSettings(
        manages or bool(variables.get("CONFIG_FILE") or flags.get("--config-file")),
        next((each.config_map for each in daemon_set.mounts), ""),
        default=variables.get("DEFAULT_CONFIG", ""),
        fallbacks=tuple(each.strip() for each in fallbacks if each.strip()),
        mig_strategy=strategy if strategy in _STRATEGIES else "",
        version=_version(daemon_set, NVIDIAS_IMAGE),
    )


def _project(daemon_set: DaemonSet) -> Project | None:
    images = {each.image.partition(":")[0] for each in daemon_set.programs}
    if HAMIS_IMAGE in images:
        return Project.HAMI if "device-plugin" in daemon_set.name or _is_labelled(daemon_set) else None
    if NVIDIAS_IMAGE in images:
        # Feature discovery, MPS and the configuration's watcher come in the same image.
        return Project.NVIDIA if "device-plugin" in daemon_set.name else None
    if _is_labelled(daemon_set) or daemon_set.name.endswith(_HAMIS_NAME):
        return Project.HAMI
    return Project.NVIDIA if _NVIDIAS_NAME in daemon_set.name else None


def _is_labelled(daemon_set: DaemonSet) -> bool:
    return daemon_set.pod.labels.get(_COMPONENT) == _HAMIS_COMPONENT


def runs_on(plugin: DevicePlugin, labels: Mapping[str, str]) -> bool:
    """Whether the DaemonSet's node selector lets it on a node with cards of these labels, as a pool states them.

    A label that the pool does not state and that discovery or the cloud writes counts as there.
    """
    return all(labels.get(key, value if _is_given(key) else None) == value for key, value in plugin.selector)


def on_nodes(plugins: Iterable[DevicePlugin], labels: Mapping[str, str]) -> tuple[DevicePlugin, ...]:
    """Those of the plugins whose node selector lets them on such nodes."""
    return tuple(plugin for plugin in plugins if runs_on(plugin, labels))


def kept_off(
    plugins: Iterable[DevicePlugin], labels: Mapping[str, str], taints: Collection[Taint]
) -> PluginKeptOff | None:
    """Why none of the plugins that select nodes with these labels starts there; None where one does, or for none."""
    selecting = on_nodes(plugins, labels)
    lacking = [(plugin, untolerated(taints, plugin.tolerations)) for plugin in selecting]
    found = [(plugin, taint) for plugin, taint in lacking if taint is not None]
    if not found or len(found) < len(lacking):
        return None
    plugin, taint = found[0]
    title = "HAMi's device plugin" if plugin.project is Project.HAMI else "NVIDIA's device plugin"
    return PluginKeptOff(Name(title), Name(what_is(plugin)), Name(str(taint)))


def what_is(plugin: DevicePlugin) -> str:
    """`DaemonSet kube-system/hami-device-plugin`, `ClusterPolicy cluster-policy`, `EC2NodeClass gpu`."""
    if plugin.settings.image is not None:
        return plugin.name
    return f"ClusterPolicy {plugin.name}" if plugin.of_operator else f"DaemonSet {plugin.namespace}/{plugin.name}"


def looks_in(plugin: DevicePlugin, namespace: str) -> bool:
    """Whether the plugin would find its ConfigMap in a namespace: pods mount those of their own.

    Where the operator runs is not always known; then its own namespaces count, and those of no other project.
    """
    return namespace == plugin.namespace if plugin.namespace else namespace not in _OF_OTHERS


def _is_given(key: str) -> bool:
    return key in WELL_KNOWN or key.startswith(_DISCOVERED)
