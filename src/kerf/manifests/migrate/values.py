"""Values of Karpenter's old Helm charts to those of today's.

Three generations: `controller.clusterName` (0.5), `clusterName` and `aws.*` (0.7 to 0.19), `settings.aws.*` (0.20 to
0.31). Sources: the README files of charts 0.5.0, 0.16.3 and 0.31, the tables "Helm Values" of the upgrade notes for
0.32 and 1.0, and the values of chart 1.14.0. Kerf's own chart has the same names.
"""

from collections.abc import Iterator
from typing import Any

from kerf.manifests.migrate.metadata import RENAMED
from kerf.manifests.migrate.objects import New, Old
from kerf.manifests.schema import Path

_SETTINGS = {
    "clusterName": "clusterName",
    "clusterEndpoint": "clusterEndpoint",
    "clusterCABundle": "clusterCABundle",
    "isolatedVPC": "isolatedVPC",
    "vmMemoryOverheadPercent": "vmMemoryOverheadPercent",
    "interruptionQueueName": "interruptionQueue",
    "reservedENIs": "reservedENIs",
}
"""Of `settings.aws`, and what they are under `settings`."""
_MOVED = {
    **{f"settings.aws.{old}": f"settings.{today}" for old, today in _SETTINGS.items()},
    **{f"aws.{old}": f"settings.{today}" for old, today in _SETTINGS.items()},
    **{
        f"{prefix}{name}": f"settings.{name}"
        for prefix in ("", "controller.")
        for name in ("clusterName", "clusterEndpoint")
    },
    "aws.vmMemoryOverhead": "settings.vmMemoryOverheadPercent",
    "controller.batchMaxDuration": "settings.batchMaxDuration",
    "controller.batchIdleDuration": "settings.batchIdleDuration",
    "controller.replicas": "replicas",
    "controller.nodeSelector": "nodeSelector",
    "controller.tolerations": "tolerations",
    "controller.affinity": "affinity",
    "controller.logLevel": "logLevel",
    "controller.outputPaths": "logOutputPaths",
    "controller.errorOutputPaths": "logErrorOutputPaths",
    "logConfig.logLevel.global": "logLevel",
    "logConfig.logLevel.controller": "logLevel",
    "logConfig.outputPaths": "logOutputPaths",
    "logConfig.errorOutputPaths": "logErrorOutputPaths",
}
_IDENTITY = "gone since 0.32", "put it into every EC2NodeClass as spec.instanceProfile, or its role as spec.role"
_GONE: dict[str, tuple[str, str]] = {
    "aws.defaultInstanceProfile": _IDENTITY,
    "settings.aws.defaultInstanceProfile": _IDENTITY,
    "settings.aws.tags": ("gone since 0.32", "put them into every EC2NodeClass as spec.tags"),
    "settings.aws.enableENILimitedPodDensity": (
        "gone since 0.32",
        "where it was false, set spec.kubelet.maxPods of the EC2NodeClass (110 was taken)",
    ),
    "settings.aws.enablePodENI": ("gone since 0.32: pod ENIs are always taken to be there", ""),
    "settings.aws.nodeNameConvention": ("gone: the node's own name is always found out", ""),
    "settings.aws.assumeRoleARN": ("gone since 1.0", "give the role to the service account"),
    "settings.aws.assumeRoleDuration": ("gone since 1.0", "give the role to the service account"),
    "settings.assumeRoleARN": ("gone since 1.0", "give the role to the service account"),
    "settings.assumeRoleDuration": ("gone since 1.0", "give the role to the service account"),
    "settings.featureGates.driftEnabled": ("drift is always on since 1.0", "a budget of 0 nodes for Drifted stops it"),
    "settings.featureGates.drift": ("drift is always on since 1.0", "a budget of 0 nodes for Drifted stops it"),
    "webhook": ("Karpenter has no webhooks since 1.1", ""),
    "logEncoding": ("logs are JSON since 1.0", ""),
    "controller.logEncoding": ("logs are JSON since 1.0", ""),
    "logConfig": ("gone since 1.0", "logLevel, logOutputPaths and logErrorOutputPaths are what is left of it"),
    "extraObjects": ("the chart makes no objects of others", "apply them by themselves"),
}
_NAMES = """
nameOverride fullnameOverride additionalLabels additionalAnnotations imagePullPolicy imagePullSecrets service
serviceAccount additionalClusterRoleRules serviceMonitor replicas revisionHistoryLimit strategy podLabels
podAnnotations podDisruptionBudget podSecurityContext priorityClassName terminationGracePeriodSeconds hostNetwork
schedulerName dnsPolicy dnsConfig initContainers nodeSelector affinity topologySpreadConstraints tolerations
extraVolumes logLevel logOutputPaths logErrorOutputPaths controller.containerName controller.env controller.envFrom
controller.securityContext controller.resources controller.extraVolumeMounts controller.sidecarContainer
controller.sidecarVolumeMounts controller.metrics controller.healthProbe controller.image settings.batchMaxDuration
settings.batchIdleDuration settings.preferencePolicy settings.minValuesPolicy settings.clusterCABundle
settings.clusterName settings.clusterEndpoint settings.isolatedVPC settings.eksControlPlane
settings.vmMemoryOverheadPercent settings.interruptionQueue settings.enableZonalShift settings.reservedENIs
settings.ignoreDRARequests settings.disableClusterStateObservability settings.disableDryRun
settings.amiRefreshInterval settings.subnetRefreshInterval settings.featureGates.nodeRepair
settings.featureGates.nodeOverlay settings.featureGates.reservedCapacity settings.featureGates.spotToSpotConsolidation
settings.featureGates.staticCapacity settings.featureGates.capacityBuffer
"""
_TODAY = frozenset(_NAMES.split())
"""Values of chart 1.14.0; what is below them is theirs."""
_OLD_ROOTS = frozenset({*(name.partition(".")[0] for name in (*_MOVED, *_GONE)), "controller", "settings", "aws"})
GLOBAL_SETTINGS = {
    "batchMaxDuration": "settings.batchMaxDuration",
    "batchIdleDuration": "settings.batchIdleDuration",
    **{f"aws.{old}": f"settings.{today}" for old, today in _SETTINGS.items()},
}
"""Keys of the ConfigMap karpenter-global-settings, and the values of the chart that they are today."""


def is_values(value: object) -> bool:
    """Whether it is a file of values for Karpenter's chart: no Kubernetes object, and a key that such a file has."""
    return isinstance(value, dict) and not {"apiVersion", "kind"} & value.keys() and bool(_OLD_ROOTS & value.keys())


def setting_of(name: str) -> str:
    """Why a setting is gone."""
    return _GONE.get(name, ("today's chart has no such value", ""))[0]


def from_values(old: Old) -> New:
    """The values for today's chart, in the order of the old ones."""
    new = New()
    for path in _leaves(old.value):
        _value(old, new, path)
    return new


def _leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """The outermost paths that a table knows, and the scalars and lists beside them."""
    name = ".".join(map(str, path))
    if path and (name in _TODAY or name in _MOVED or (name in _GONE and name != "logConfig")):
        yield path
    elif isinstance(value, dict) and value:
        for key, below in value.items():
            yield from _leaves(below, (*path, key))
    else:
        yield path


def _value(old: Old, new: New, path: Path) -> None:
    name = ".".join(map(str, path))
    today: Path = tuple(_MOVED.get(name, name).split("."))
    value = old.at(*path)
    if value is None or value == {}:
        old.done(path)
    elif name in _GONE or (path[0] in ("webhook", "logConfig") and name not in _MOVED):
        why, hint = _GONE.get(name) or _GONE[str(path[0])]
        old.drop(path, why, hint, look=bool(hint) and value not in ("", {}, []))
    elif name == "controller.image" and isinstance(value, str):
        hint = "an old image does not run with today's chart: leave it out, or set controller.image.repository and tag"
        old.drop(path, "repository, tag and digest are values of their own today", hint)
    elif name not in _TODAY and name not in _MOVED:
        old.drop(path, "today's chart has no such value")
    elif _has(new, today):
        old.drop(path, f"{'.'.join(map(str, today))} has been set by another value of this file")
    elif name == "controller.image" and {"tag", "digest"} & value.keys():
        old.keep(path, new, today, "an old image does not run with today's chart", "leave it out", look=True)
    elif _renamed(value) != value:
        old.change(path, new, today, _renamed(value), "labels of Karpenter in it have been renamed")
    elif today == path:
        old.keep(path, new, today)
    else:
        hint = "may be left out: Karpenter finds it out on EKS" if today[-1] == "clusterEndpoint" else ""
        old.keep(path, new, today, "it has another name today", hint)


def _has(new: New, path: Path) -> bool:
    found: Any = new.value
    for step in path:
        if not isinstance(found, dict) or step not in found:
            return False
        found = found[step]
    return True


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {RENAMED.get(key, key): _renamed(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    return RENAMED.get(value, value) if isinstance(value, str) else value
