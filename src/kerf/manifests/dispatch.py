"""Which kind of object is read by whom.

A kind is known by its name and group: `apps/v1 StatefulSet` is ours, `apps.kruise.io/v1 StatefulSet` is not
ours. A known name in a wrong group of Kubernetes itself is an error, because it would be missed silently.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kerf.errors import DecodeError
from kerf.manifests import cluster, kinds, rules, usage
from kerf.manifests.admission import AdmissionDefaults
from kerf.manifests.cluster import BudgetReading
from kerf.manifests.clusterdump.decode import CLUSTER_DUMP, cluster_dump_of
from kerf.manifests.decoded import Workload
from kerf.manifests.groups.decode import (
    capacity_buffer_of,
    coscheduling_group_of,
    native_workload_of,
    pod_template_of,
    provisioning_request_of,
    volcano_group_of,
)
from kerf.manifests.groups.form import (
    CAPACITY_BUFFER,
    POD_GROUP,
    POD_TEMPLATE,
    PROVISIONING_REQUEST,
    WORKLOAD,
    check_capacity_buffer,
)
from kerf.manifests.karpenter.decode import node_claim_of, node_overlay_of, node_pool_of
from kerf.manifests.karpenter.form import NODE_CLAIM, NODE_OVERLAY, NODE_POOL
from kerf.manifests.ownkeys import note_unknown_keys
from kerf.manifests.pods.decode import pod_of
from kerf.manifests.schema import Path, Record, Report, shown
from kerf.manifests.volumes.decode import (
    csi_node_of,
    storage_class_of,
    volume_attachment_of,
    volume_claim_of,
    volume_of,
)
from kerf.manifests.volumes.form import CSI_NODE, STORAGE_CLASS, VOLUME, VOLUME_ATTACHMENT, VOLUME_CLAIM
from kerf.manifests.windows.decode import window_of
from kerf.manifests.windows.form import CAPACITY_WINDOW, check_window
from kerf.manifests.workloads.decode import daemon_set_of, workload_of
from kerf.manifests.workloads.jobsets import JobSet, job_set_of
from kerf.model.dump import DUMP, ClusterDump
from kerf.model.groups import NATIVE
from kerf.model.snapshot import Watched
from kerf.model.usage import NodeUsage, PodUsage

Object = dict[str, Any]
Value = Watched | Workload | JobSet | BudgetReading | PodUsage | NodeUsage | ClusterDump
_KARPENTER = "karpenter.sh"
_OWN = "kerf.dev"
_METRICS = "metrics.k8s.io"
_STORAGE = "storage.k8s.io"
_BUILT_IN_GROUPS = ("", "apps", "batch", "extensions", "node.k8s.io", "policy", "scheduling.k8s.io", _STORAGE)
_VERSION = re.compile(r"(?:[a-z0-9.-]+/)?[a-z0-9]+", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)
_RETIRED = {"Provisioner": "NodePool", "Machine": "NodeClaim", "AWSNodeTemplate": "EC2NodeClass"}


@dataclass(frozen=True)
class Kind:
    """How one kind is read. `decode` takes (object, report, admission, source); None is what has to be left out."""

    group: str
    schema: Record
    decode: Callable[[Object, Report, AdmissionDefaults, str], Value | None]
    rules: Callable[[Object, Report], None] | None = None
    version: str = ""


def _plain(decode: Callable[[Object], Value]) -> Callable[[Object, Report, AdmissionDefaults, str], Value]:
    return lambda raw, _report, _admission, _source: decode(raw)


def _doubted(
    decode: Callable[[Object, Report], Value | None],
) -> Callable[[Object, Report, AdmissionDefaults, str], Value | None]:
    return lambda raw, report, _admission, _source: decode(raw, report)


_ANY_FORM = Record({}, is_open=True)
_KINDS = {
    "Pod": Kind("", kinds.POD, pod_of),
    "Node": Kind("", kinds.NODE, _plain(cluster.node_of)),
    "ConfigMap": Kind("", kinds.CONFIG_MAP, _plain(cluster.config_map_of)),
    "ClusterPolicy": Kind("nvidia.com", kinds.CLUSTER_POLICY, _plain(cluster.cluster_policy_of), version="v1"),
    "ResourceQuota": Kind("", kinds.RESOURCE_QUOTA, _plain(cluster.quota_of)),
    "PodDisruptionBudget": Kind("policy", kinds.DISRUPTION_BUDGET, _plain(cluster.budget_of)),
    "JobSet": Kind("jobset.x-k8s.io", kinds.JOB_SET, job_set_of, version="v1alpha2"),
    "DaemonSet": Kind("apps", kinds.DAEMON_SET, daemon_set_of),
    "NodePool": Kind(
        _KARPENTER,
        NODE_POOL,
        _plain(node_pool_of),
        rules.check_node_pool,
        "v1",
    ),
    "NodeClaim": Kind(
        _KARPENTER,
        NODE_CLAIM,
        _plain(node_claim_of),
        rules.check_node_claim,
        "v1",
    ),
    "NodeOverlay": Kind(
        _KARPENTER,
        NODE_OVERLAY,
        _plain(node_overlay_of),
        rules.check_node_overlay,
        "v1alpha1",
    ),
    "CapacityWindow": Kind(_OWN, CAPACITY_WINDOW, window_of, check_window, "v1alpha1"),
    DUMP: Kind(_OWN, CLUSTER_DUMP, _plain(cluster_dump_of), version="v1alpha1"),
    # Metrics can be wrong in any field, and only the wrong sample is left out: so the form asks for nothing.
    "PodMetrics": Kind(_METRICS, _ANY_FORM, _doubted(usage.pod_usage_of), version="v1beta1"),
    "NodeMetrics": Kind(_METRICS, _ANY_FORM, _doubted(usage.node_usage_of), version="v1beta1"),
    "Namespace": Kind("", kinds.NAMESPACE, _plain(cluster.namespace_of)),
    "Service": Kind("", kinds.SERVICE, _plain(cluster.service_of)),
    "RuntimeClass": Kind("node.k8s.io", kinds.RUNTIME_CLASS, _plain(cluster.runtime_class_of)),
    "PersistentVolumeClaim": Kind("", VOLUME_CLAIM, _plain(volume_claim_of)),
    "PersistentVolume": Kind("", VOLUME, _plain(volume_of)),
    "StorageClass": Kind(_STORAGE, STORAGE_CLASS, _plain(storage_class_of)),
    "CSINode": Kind(_STORAGE, CSI_NODE, _plain(csi_node_of)),
    "VolumeAttachment": Kind(_STORAGE, VOLUME_ATTACHMENT, _plain(volume_attachment_of)),
    "PodTemplate": Kind("", POD_TEMPLATE, pod_template_of),
    "ProvisioningRequest": Kind("autoscaling.x-k8s.io", PROVISIONING_REQUEST, _plain(provisioning_request_of)),
    "CapacityBuffer": Kind(
        "autoscaling.x-k8s.io", CAPACITY_BUFFER, _plain(capacity_buffer_of), check_capacity_buffer, "v1beta1"
    ),
    **{
        kind: Kind("batch" if "Job" in kind else "apps", schema, workload_of)
        for kind, schema in kinds.WORKLOADS.items()
    },
}
_WORKLOAD = Kind(NATIVE, WORKLOAD, _plain(native_workload_of), version="v1alpha1")
_POD_GROUPS = {
    "scheduling.x-k8s.io": Kind("scheduling.x-k8s.io", POD_GROUP, _plain(coscheduling_group_of)),
    "scheduling.volcano.sh": Kind("scheduling.volcano.sh", POD_GROUP, _plain(volcano_group_of)),
}
"""One kind of two projects; that of any other group is another project's."""
_NODE_CLASS = Kind("", kinds.NODE_CLASS, _plain(cluster.node_class_of))
FIRST = {"PriorityClass": kinds.PRIORITY_CLASS, "LimitRange": kinds.LIMIT_RANGE}
"""Kinds that change how others are read."""


def kind_of(raw: Any, place: Callable[[Path], str] = lambda _path: "") -> Kind | None:
    """How an object is read; None for a kind that is not ours. Raises DecodeError for a retired or misspelt one.

    `place` says where a field of the object stands.
    """
    if not isinstance(raw, dict):
        raise DecodeError("", "a Kubernetes object with apiVersion and kind", shown(raw), place=place(()))
    for field, form in (("apiVersion", _VERSION), ("kind", _NAME)):
        text = raw.get(field)
        if not isinstance(text, str) or form.fullmatch(text) is None:
            raise DecodeError(field, "text such as v1 or Pod", shown(text), place=place((field,)))
    name, (group, _, version) = raw["kind"], _split(raw["apiVersion"])
    if name in _RETIRED and "karpenter" in group:
        raise _retired(name, raw["apiVersion"], place(("kind",)))
    if name.endswith("NodeClass") and ("karpenter" in group or group == "eks.amazonaws.com"):
        return _NODE_CLASS
    if name == "PodGroup":
        return _POD_GROUPS.get(group)
    if name == "Workload":
        # Kueue has a kind of this name, and the next version of Kubernetes' own has another form.
        return _WORKLOAD if (group, version) == (NATIVE, "v1alpha1") else None
    kind = _KINDS.get(name)
    if kind is None and group == _KARPENTER:
        kinds_here = ", ".join(sorted(known for known, held in _KINDS.items() if held.group == _KARPENTER))
        raise DecodeError("kind", f"one of {kinds_here}", name, place=place(("kind",)))
    if kind is None or (group != kind.group and group not in _BUILT_IN_GROUPS):
        return None
    if group != kind.group or (kind.version and version != kind.version):
        hint = "`kerf migrate` rewrites retired versions" if kind.group == _KARPENTER else ""
        expected = f"{kind.group}/{kind.version or 'v1'}".removeprefix("/")
        raise DecodeError("apiVersion", expected, raw["apiVersion"], place=place(("apiVersion",)), hint=hint)
    return kind


def _split(version: str) -> tuple[str, str, str]:
    return ("", "", version) if "/" not in version else version.partition("/")


def _retired(name: str, version: str, place: str) -> DecodeError:
    today = _RETIRED[name]
    expected, got = f"a kind of today such as {today}", f"<retired {version} {name}>"
    return DecodeError("kind", expected, got, place=place, hint=f"`kerf migrate` rewrites it to {today}")


def is_live(raw: Object) -> bool:
    """Whether a server has taken the object: it has a uid then."""
    metadata = raw.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("uid"))


def read(
    kind: Kind, raw: Object, report: Report, admission: AdmissionDefaults, source: str, *, notes_keys: bool = True
) -> Value | None:
    """Check and decode; None, with problems in `report`, when the object has not the form of its kind.

    Without `notes_keys` keys of Kerf's domain that mean nothing to it are not looked for.
    """
    report.is_live = is_live(raw)
    kind.schema.check(raw, (), report)
    if notes_keys:
        note_unknown_keys(raw, report)
    if not report.problems and kind.rules is not None:
        kind.rules(raw, report)
    return None if report.problems else kind.decode(raw, report, admission, source)
