"""The cluster at one moment, and the events that change it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from kerf.model.capacitybuffers import CapacityBuffer, Scalable
from kerf.model.causes import Cause
from kerf.model.cronjobs import CronJob
from kerf.model.evidence import NO_EVIDENCE, ClusterPolicy, ConfigMount, ImageSharing, PluginDeployment, PluginEvidence
from kerf.model.gpu import DeviceState
from kerf.model.groups import PodGroup
from kerf.model.instancetypes import NodeOverlay
from kerf.model.large import Large
from kerf.model.namespaces import Namespace, Service
from kerf.model.nodeclaim import REGISTERED, REPLACED_BY, Condition, NodeClaim, NodeClassRef
from kerf.model.nodepool import NodePool
from kerf.model.nodes import Node
from kerf.model.pods import Pod, PodDisruptionBudget, PodSpec, samples, specs_of
from kerf.model.preferences import Wish
from kerf.model.provisioningrequests import PodTemplate, ProvisioningRequest
from kerf.model.quantities import Resources
from kerf.model.resourcequotas import QuotaScope, counted, counted_claim
from kerf.model.runtimeclasses import RuntimeClass
from kerf.model.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from kerf.model.windows import CapacityWindow


@dataclass(frozen=True, slots=True)
class ConfigMap:
    """A ConfigMap that a sharing family reads."""

    namespace: str
    name: str
    data: Mapping[str, str] = field(hash=False, repr=False)
    labels: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    @property
    def key(self) -> str:
        """Its namespace and name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class NodeClass:
    """A provider's NodeClass object: whether it says it is ready, its conditions, and what its selectors found.

    `selected` has the lists of its status in name order, each element in a few words: `subnet-1 (us-east-1a)`.
    `sharing` is what its images say of their own device plugin; None for nothing.
    """

    group: str
    kind: str
    name: str
    is_ready: bool = True
    reason: str = ""
    conditions: tuple[Condition, ...] = ()
    selected: tuple[tuple[str, tuple[str, ...]], ...] = ()
    generation: int = 1
    sharing: ImageSharing | None = None

    @property
    def reference(self) -> NodeClassRef:
        """What pools and claims name it by."""
        return NodeClassRef(self.group, self.kind, self.name)


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """`hard` of a ResourceQuota: what the API server counts, and keys that a sharing family enforces.

    `used` is what the pods of the namespace hold of the family's keys, as it counts them, and under `count/pods` how
    many of them have ended; the state fills it in. With `scopes` it counts only pods that all of them select.
    """

    namespace: str
    name: str
    hard: Mapping[str, int] = field(hash=False)
    used: Mapping[str, int] = field(default_factory=dict, hash=False)
    scopes: tuple[QuotaScope, ...] = ()

    def counted(self, spec: PodSpec) -> Resources | None:
        """What a pod counts, by the names that the quota limits; None where its scopes select none such."""
        return self._limited(counted(spec)) if all(scope.selects(spec) for scope in self.scopes) else None

    def counted_claim(self, claim: PersistentVolumeClaim, storage_class: str) -> Resources | None:
        """The same of a claim; `storage_class` is the one that it gets, empty for none."""
        if not all(scope.selects_claim(claim.attributes_classes) for scope in self.scopes):
            return None
        return self._limited(counted_claim(storage_class, claim.requested_bytes))

    def _limited(self, amounts: Resources) -> Resources:
        return Resources({name: amount for name, amount in amounts.items() if name in self.hard})


@dataclass(frozen=True, slots=True)
class PluginContainer:
    """A container of a DaemonSet: what `evidence` says is read of its image, arguments and environment."""

    image: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DaemonSet:
    """A DaemonSet, as the one pod it would put on a fitting node.

    `programs` are its containers, without init ones; `mounts` the ConfigMaps in which they look for a configuration.
    """

    namespace: str
    name: str
    pod: Pod
    programs: tuple[PluginContainer, ...] = field(default=(), repr=False)
    mounts: tuple[ConfigMount, ...] = field(default=(), repr=False)

    @property
    def key(self) -> str:
        """Its namespace and name."""
        return f"{self.namespace}/{self.name}"

    def as_running(self, live: Pod) -> "DaemonSet":
        """The same with what one of its pods really asks for; itself where that is what the template says.

        Where the pod may run is still the template's: the controller pins each pod to its node.
        """
        template, spec = self.pod.spec, live.spec
        if template.requests == spec.requests and template.host_ports == spec.host_ports:
            return self
        asking = replace(
            template,
            containers=spec.containers,
            init_containers=spec.init_containers,
            overhead=spec.overhead,
            pod_requests=spec.pod_requests,
        )
        return replace(self, pod=replace(self.pod, spec=asking))


Watched = (
    NodePool
    | NodeClaim
    | NodeOverlay
    | NodeClass
    | Node
    | Pod
    | PodDisruptionBudget
    | ConfigMap
    | ResourceQuota
    | DaemonSet
    | CronJob
    | CapacityWindow
    | PodGroup
    | PodTemplate
    | ProvisioningRequest
    | CapacityBuffer
    | Scalable
    | ClusterPolicy
    | PluginDeployment
    | Namespace
    | Service
    | PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | CSINode
    | VolumeAttachment
    | RuntimeClass
)
"""Every kind of object that the state follows."""


@dataclass(frozen=True, slots=True)
class Upserted:
    """An object is new or has changed."""

    value: Watched


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object is gone. `value` is its last known form."""

    value: Watched


@dataclass(frozen=True, slots=True)
class Synced:
    """The reader has delivered everything that existed when it began."""


@dataclass(frozen=True, slots=True)
class Relisted:
    """All objects of a kind as they were at `version` have been reported: one that was not is gone.

    `version` is the resource version of the list, which is greater than those of all changes before it.
    """

    kind: str
    version: str


Event = Upserted | Deleted | Synced
Report = Event | Relisted
"""What a reader reports. A Relisted is for the state alone, which makes deletions of it."""


def key_of(value: Watched) -> tuple[str, str]:
    """(kind, `namespace/name` or name): what identifies an object. That of a pod is the text that it remembers."""
    if isinstance(value, Pod):
        return "Pod", value.key
    namespace = getattr(value, "namespace", "")
    return type(value).__name__, f"{namespace}/{value.name}" if namespace else value.name


def _related(pods: Iterable[Pod]) -> dict[int, PodSpec]:
    # By identity: decode interns specs, and hashing one is slow.
    return {id(pod.spec): pod.spec for pod in pods if pod.spec.is_related and not pod.is_ended}


def _those_related(specs: Mapping[int, PodSpec]) -> dict[int, PodSpec]:
    return {key: spec for key, spec in specs.items() if spec.is_related}


@dataclass(frozen=True, repr=False)
class ClusterNode(Large):
    """A node with its claim, either of which may be missing, its pods, and its cards with what is used of them.

    `pods` are the occupants of its room, as schedulers count them: those bound to it that have not ended, and those
    that are nominated to it. What else takes room there is to come from here as well.

    A claim without a node is capacity on its way: `node` is None, and the devices are those predicted at its launch.
    `family` is the sharing family that owns the cards; empty when there are none. `problem` is why its cards cannot
    be planned with (two families on one node, a register that cannot be read); None when they can.
    What is worked out of it is kept with it: a node stays the same in many snapshots, and each of them asks.
    `reserved` maps pods that hold devices here without being bound (HAMi writes before it binds).
    """

    node: Node | None
    claim: NodeClaim | None
    pods: tuple[Pod, ...] = ()
    devices: tuple[DeviceState, ...] = ()
    family: str = ""
    problem: Cause | None = None
    devices_observed: bool = False

    @cached_property
    def name(self) -> str:
        """The node's name, or the claim's while there is no node."""
        return self.node.name if self.node is not None else self.claim.name if self.claim is not None else ""

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """Labels of the node, with those that its claim will give it as long as it has not."""
        held = self.node.labels if self.node is not None else {}
        return held if self.is_registered or self.claim is None else {**held, **self.claim.labels}

    @cached_property
    def related(self) -> Mapping[int, PodSpec]:
        """The specs of pods here whose place depends on other pods, each once, by `id`."""
        return _related(self.pods)

    @cached_property
    def opportunistic(self) -> tuple[Pod, ...]:
        """The opportunistic pods here that have not ended."""
        return tuple(pod for pod in self.pods if pod.is_opportunistic and not pod.is_ended)

    @cached_property
    def findings(self) -> dict[str, tuple[Any, Any]]:
        """What was worked out of this node alone: by its name what it rests on beside the node, and what was found.

        For those who would work it out again for each snapshot: see `engine.place.noderooms`.
        """
        return {}

    @cached_property
    def nominees(self) -> tuple[Pod, ...]:
        """The pods among those here that a scheduler has nominated to the node and not bound yet."""
        return tuple(pod for pod in self.pods if not pod.node_name and pod.nominated_to)

    @cached_property
    def daemons(self) -> tuple[Pod, ...]:
        """The pods of DaemonSets here."""
        owned = (pod for pod in self.pods if pod.owner is not None and pod.owner.kind == "DaemonSet")
        return tuple(pod for pod in owned if not pod.is_ended)

    @cached_property
    def is_registered(self) -> bool:
        """Whether the node bears labels and taints as its claim promises: it does once it is adopted."""
        return self.node is not None and (self.claim is None or self.claim.is_true(REGISTERED))

    @cached_property
    def is_initialized(self) -> bool:
        """Whether pods can use all of it: its claim says so, or it has none."""
        return self.claim is None or self.claim.is_true("Initialized")

    @cached_property
    def is_going(self) -> bool:
        """Whether the node or its claim is being deleted; not one that may still stay where those in its place fail."""
        claim, node = self.claim, self.node
        return (claim is not None and claim.is_deleting) or (node is not None and node.deleted_s is not None)

    @cached_property
    def is_deleting(self) -> bool:
        """Whether the node or its claim is on the way out; or is to go once the nodes in its place are up, as one that
        Karpenter has marked for deletion."""
        return self.is_going or (self.claim is not None and REPLACED_BY in self.claim.annotations)


@dataclass(frozen=True, repr=False)
class ClusterSnapshot(Large):
    """All that a decision may depend on. Every tuple is in name order, so equal input gives equal bytes.

    `windowed` are the pods with the label of CapacityWindows that are bound and have not ended; `grouped` the pods of
    groups, or that take the room of a request, for which no plan is made: they have a place, have ended well, or no
    scheduler has refused them yet. `version` is that of the state it was taken of, 0 without one; no decision reads it.
    `evidence` is what says which device plugins run, beside `config_maps`. `namespaces` has the labels of each; one
    that is not there has the label of its name alone. `volumes` and all that is named like them are what the claims of
    pods lead to; claims are by `namespace/name`, all else by name. `scalables` are those that buffers
    name. `leaving` are the pending pods that still run, each
    with its node, which goes: a decision fills it in (`engine.leaving`), no state does. `assume_node_classes`: the
    input may lack whole kinds, and of NodeClasses, volumes, StorageClasses and RuntimeClasses one that is missing is
    taken for there, asking nothing, where it has none of that kind. `may_lack_kinds`: it was read from files, so a kind
    of which there is none at all may be one that was not written; a cluster that was asked has said what there is.
    """

    taken_at_s: float
    node_pools: tuple[NodePool, ...] = ()
    nodes: tuple[ClusterNode, ...] = ()
    pending: tuple[Pod, ...] = ()
    overlays: tuple[NodeOverlay, ...] = ()
    node_classes: tuple[NodeClass, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    config_maps: tuple[ConfigMap, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    windows: tuple[CapacityWindow, ...] = ()
    windowed: tuple[Pod, ...] = ()
    cron_jobs: tuple[CronJob, ...] = ()
    pod_groups: tuple[PodGroup, ...] = ()
    grouped: tuple[Pod, ...] = ()
    pod_templates: tuple[PodTemplate, ...] = ()
    provisioning_requests: tuple[ProvisioningRequest, ...] = ()
    capacity_buffers: tuple[CapacityBuffer, ...] = ()
    scalables: tuple[Scalable, ...] = ()
    assume_node_classes: bool = True
    may_lack_kinds: bool = False
    evidence: PluginEvidence = NO_EVIDENCE
    version: int = field(default=0, compare=False)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    services: tuple[Service, ...] = ()
    volume_claims: Mapping[str, PersistentVolumeClaim] = field(default_factory=dict, hash=False)
    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict, hash=False)
    storage_classes: Mapping[str, StorageClass] = field(default_factory=dict, hash=False)
    csi_nodes: Mapping[str, CSINode] = field(default_factory=dict, hash=False)
    volume_attachments: Mapping[str, VolumeAttachment] = field(default_factory=dict, hash=False)
    runtime_classes: Mapping[str, RuntimeClass] = field(default_factory=dict, hash=False)
    leaving: Mapping[str, str] = field(default_factory=dict, hash=False)

    @cached_property
    def findings(self) -> dict[str, Any]:
        """What several parts of a decision would each work out of the whole snapshot, by its name."""
        return {}

    @cached_property
    def pending_samples(self) -> list[Pod]:
        """Of the pods that wait one of each mark (`Pod.mark`). Linear in these."""
        return samples(self.pending)

    @cached_property
    def pending_specs(self) -> Mapping[int, PodSpec]:
        """The specs of pods that wait, each object once, by its identity."""
        return specs_of(self.pending_samples)

    @cached_property
    def related(self) -> tuple[PodSpec, ...]:
        """The specs of waiting and running pods whose place depends on other pods, each once. Linear in pods.

        Those of DaemonSets are among them: a node that is bought gets their pods before any other.
        """
        found: dict[int, PodSpec] = {}
        for node in self.nodes:
            found.update(node.related)
        found.update(_those_related(self.pending_specs))
        found.update(_related(each.pod for each in self.daemon_sets))
        return tuple(found.values())

    @cached_property
    def daemon_sets_as_running(self) -> tuple[DaemonSet, ...]:
        """The DaemonSets as their newest pods: a LimitRange or a webhook may have given these more than the template.

        As Karpenter (`getDaemonSetPods`). Equal pods give equal values, however many come. Linear in nodes.
        """
        newest: dict[tuple[str, str], Pod] = {}
        for pod in (pod for node in self.nodes for pod in node.daemons):
            key = pod.namespace, pod.owner.name if pod.owner is not None else ""
            newest[key] = max(newest.get(key, pod), pod, key=lambda each: (each.created_s, each.name))
        found = ((each, newest.get((each.namespace, each.name))) for each in self.daemon_sets)
        return tuple(each if pod is None else each.as_running(pod) for each, pod in found)

    @cached_property
    def related_preferences(self) -> tuple[Wish, ...]:
        """What waiting pods prefer of where others are, once a spec. Linear in the pods that wait."""
        wished = (spec.related_preferences for spec in self.pending_specs.values() if spec.has_relations)
        return tuple(wish for wish in wished if wish.is_related)

    def pool(self, name: str) -> NodePool | None:
        """The pool of that name; None when there is none."""
        return self._pools_by_name.get(name)

    def node(self, name: str) -> ClusterNode | None:
        """The node (or claim without a node) of that name; None when there is none."""
        return self._nodes_by_name.get(name)

    def node_of_claim(self, name: str) -> ClusterNode | None:
        """The node, on its way or there, of the claim of that name; None when there is none."""
        return self._nodes_by_claim.get(name)

    @cached_property
    def cron_job_keys(self) -> frozenset[str]:
        """The CronJobs as `namespace/name`."""
        return frozenset(cron_job.key for cron_job in self.cron_jobs)

    # Every node asks for its pool: a search each time would cost nodes x pools.
    @cached_property
    def _pools_by_name(self) -> dict[str, NodePool]:
        return {pool.name: pool for pool in reversed(self.node_pools)}

    @cached_property
    def _nodes_by_name(self) -> dict[str, ClusterNode]:
        # Of a node and a claim of one name the first counts, as in the order of `nodes`.
        return {node.name: node for node in reversed(self.nodes)}

    @cached_property
    def _nodes_by_claim(self) -> dict[str, ClusterNode]:
        return {node.claim.name: node for node in reversed(self.nodes) if node.claim is not None}
