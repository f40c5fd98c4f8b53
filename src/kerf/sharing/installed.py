"""Device plugins recognised by the DaemonSets that their charts make, and on which nodes they run.

HAMi's chart 2.10 (templates/device-plugin/daemonsetnvidia.yaml) labels its DaemonSet with a component, and names it
`hami-device-plugin` after the release; the image is `projecthami/hami`. NVIDIA's plugin and operator call theirs
`nvidia-device-plugin...`, from an image of that name (`k8s-device-plugin`). HAMi's DaemonSets for other vendors and its
mock plugin have other components and images, and say nothing of NVIDIA's cards.
"""

from collections.abc import Mapping

from kerf.model.constraints import WELL_KNOWN
from kerf.model.evidence import HAMIS_IMAGE, NVIDIAS_IMAGE, ClusterPolicy, DevicePlugin, PluginSettings, Project
from kerf.model.snapshot import DaemonSet

_COMPONENT, _HAMIS_COMPONENT = "app.kubernetes.io/component", "hami-device-plugin"
_HAMIS_NAME, _NVIDIAS_NAME = "hami-device-plugin", "nvidia-device-plugin"
_OPERATORS_LABEL = ("nvidia.com/gpu.deploy.device-plugin", "true")
_STRATEGIES, _CHARTS_FALLBACKS = ("none", "single", "mixed"), "named,single"
_DISCOVERED = ("nvidia.com/", "feature.node.kubernetes.io/")
"""Beginnings of labels that discovery writes on nodes with cards, so no pool states them."""


def plugin_of(daemon_set: DaemonSet) -> DevicePlugin | None:
    """The device plugin that a DaemonSet is; None for any other, and for one whose program says it is another's."""
    project = _project(daemon_set)
    if project is None:
        return None
    asked = daemon_set.pod.spec.node_selector
    selector = tuple((key, min(asked[key].values)) for key in sorted(asked) if asked[key].values)
    return DevicePlugin(project, selector, _settings(daemon_set) if project is Project.NVIDIA else PluginSettings())


def plugin_of_policy(policy: ClusterPolicy) -> DevicePlugin | None:
    """The device plugin that the GPU operator installs; None where the policy switches it off.

    Without a ConfigMap the operator starts it without configurations; with one and without a default, nodes without a
    label have none (controllers/object_controls.go of the operator, `handleDevicePluginConfig`).
    """
    if not policy.has_plugin:
        return None
    uses_config = bool(policy.config_map)
    fallbacks = ("empty",) if uses_config and not policy.default else ()
    settings = PluginSettings(uses_config, policy.config_map, policy.default, fallbacks, policy.mig_strategy)
    return DevicePlugin(Project.NVIDIA, (_OPERATORS_LABEL,), settings, of_operator=True)


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
        default=variables.get("DEFAULT_CONFIG", ""),
        fallbacks=tuple(each.strip() for each in fallbacks if each.strip()),
        mig_strategy=strategy if strategy in _STRATEGIES else "",
    )


def _project(daemon_set: DaemonSet) -> Project | None:
    images = {each.image for each in daemon_set.programs}
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


def _is_given(key: str) -> bool:
    return key in WELL_KNOWN or key.startswith(_DISCOVERED)
