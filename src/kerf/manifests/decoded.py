"""What decoding gives: frozen model values by kind, and workloads that are still to be expanded."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kerf.errors import InputError
from kerf.model.capacitybuffers import SCALABLE_KINDS, CapacityBuffer, Scalable
from kerf.model.cronjobs import CronJob
from kerf.model.dump import ClusterDump
from kerf.model.evidence import ClusterPolicy, ConfigMount
from kerf.model.groups import PodGroup
from kerf.model.instancetypes import NodeOverlay
from kerf.model.large import Large
from kerf.model.namespaces import Namespace, Service
from kerf.model.nodeclaim import NodeClaim
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Owner, Pod, PodDisruptionBudget
from kerf.model.provisioningrequests import PodTemplate, ProvisioningRequest
from kerf.model.runtimeclasses import RuntimeClass
from kerf.model.snapshot import ConfigMap, DaemonSet, NodeClass, ResourceQuota
from kerf.model.usage import NO_USAGE, PodUsage, Usage
from kerf.model.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from kerf.model.windows import CapacityWindow


@dataclass(frozen=True)
class Workload:
    """A controller that keeps `replicas` pods, each like `template` save its name.

    For a Job that is how many still run at once; a CronJob has none until it is asked to. Ordinals count from
    `first_ordinal`. `cron_job` is what a CronJob says of its runs. `suspended` says by whom a Job is; empty where it is
    not. `deadline_s` is how long after `started_s` a Job ends; None for never, and for one that has not started.
    `mounts` are the ConfigMaps in which a Deployment looks for the configuration of device plugins. `beside` are keys
    of annotations that stand on the object itself and not on its template, of projects that read those of pods alone.
    """

    kind: str
    namespace: str
    name: str
    replicas: int
    template: Pod
    uid: str = ""
    first_ordinal: int = 0
    owner: Owner | None = None
    cron_job: CronJob | None = None
    suspended: str = ""
    deadline_s: int | None = None
    started_s: float | None = None
    mounts: tuple[ConfigMount, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """`deployment/default/web`, as the command line names it."""
        return f"{self.kind.lower()}/{self.namespace}/{self.name}"


@dataclass(frozen=True, repr=False)
class Decoded(Large):
    """Everything that was read, each tuple in name order whatever the order of the documents.

    `pods` are those that the input holds itself. `skipped_kinds` counts objects of kinds Kerf does not read.
    `warnings` are for the operator, in the order of the input. `newest_s` is the latest instant that any object
    states, or that at which a dump says it was taken; None when none states one. `dump` is its header. `usage` has the
    last sample of each pod and node; `pod_samples` has every one of a pod, from the oldest on. `absent_classes` are
    PriorityClasses that new pods name and the input lacks, where it has none at all. `left_out` are the errors of new
    objects that no server would take and that have no pods to be refused; warnings say them too.
    """

    node_pools: tuple[NodePool, ...] = ()
    node_claims: tuple[NodeClaim, ...] = ()
    overlays: tuple[NodeOverlay, ...] = ()
    node_classes: tuple[NodeClass, ...] = ()
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    workloads: tuple[Workload, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    config_maps: tuple[ConfigMap, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    cluster_policies: tuple[ClusterPolicy, ...] = ()
    windows: tuple[CapacityWindow, ...] = ()
    usage: Usage = NO_USAGE
    pod_samples: tuple[PodUsage, ...] = ()
    pod_groups: tuple[PodGroup, ...] = ()
    pod_templates: tuple[PodTemplate, ...] = ()
    provisioning_requests: tuple[ProvisioningRequest, ...] = ()
    capacity_buffers: tuple[CapacityBuffer, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    services: tuple[Service, ...] = ()
    volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()
    volume_attachments: tuple[VolumeAttachment, ...] = ()
    runtime_classes: tuple[RuntimeClass, ...] = ()
    skipped_kinds: Mapping[str, int] = field(default_factory=dict, hash=False)
    warnings: tuple[str, ...] = ()
    newest_s: float | None = None
    dump: ClusterDump | None = None
    absent_classes: tuple[str, ...] = ()
    left_out: tuple[InputError, ...] = ()

    @property
    def cron_jobs(self) -> tuple[CronJob, ...]:
        """What the CronJobs say of their runs."""
        return tuple(workload.cron_job for workload in self.workloads if workload.cron_job is not None)

    @property
    def scalables(self) -> tuple[Scalable, ...]:
        """The workloads that CapacityBuffers name, by key."""
        named = {buffer.scalable_key for buffer in self.capacity_buffers}
        found = (each for each in map(scalable_of, self.workloads) if each is not None and each.key in named)
        return tuple(sorted(found, key=lambda each: each.key)) if named else ()


def scalable_of(workload: Workload) -> Scalable | None:
    """The workload as what a buffer may name; None for a Job or a CronJob."""
    if workload.kind not in SCALABLE_KINDS:
        return None
    return Scalable(workload.namespace, workload.kind, workload.name, workload.replicas, workload.template)
