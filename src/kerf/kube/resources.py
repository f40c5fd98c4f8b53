"""The kinds that Kerf reads and writes, as the API serves them, and every access to them that the code declares.

A role is only minimal if it follows from the code. So no call can be made without an `Access`, an access can only be
made by `access()`, and that keeps it: `declared()` is then what `kerf manifests` grants and the audit log must show.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """One kind, e.g. `Resource("apps", "v1", "daemonsets", "DaemonSet")`; the core group is empty."""

    group: str
    version: str
    plural: str
    kind: str
    is_namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`apps/v1`, as an object states it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """`/apis/apps/v1`: where discovery of this group and version is."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of a collection, of an object, or of a sub-resource of it."""
        parts = [self.root]
        if self.is_namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, name, subresource]
        return "/".join(part for part in parts if part)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", is_namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", is_namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
EVENTS = Resource("", "v1", "events", "Event")
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")
VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", is_namespaced=False)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", is_namespaced=False)
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", is_namespaced=False)
VOLUME_ATTACHMENTS = Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", is_namespaced=False)
RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", is_namespaced=False)
SERVICES = Resource("", "v1", "services", "Service")
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", is_namespaced=False)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
JOBS = Resource("batch", "v1", "jobs", "Job")
CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob")
DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", is_namespaced=False)
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", is_namespaced=False
)
POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")
NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", is_namespaced=False)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", is_namespaced=False
)
NODE_POOLS = Resource("karpenter.sh", "v1", "nodepools", "NodePool", is_namespaced=False)
NODE_CLAIMS = Resource("karpenter.sh", "v1", "nodeclaims", "NodeClaim", is_namespaced=False)
NODE_OVERLAYS = Resource("karpenter.sh", "v1alpha1", "nodeoverlays", "NodeOverlay", is_namespaced=False)
CAPACITY_WINDOWS = Resource("kerf.dev", "v1alpha1", "capacitywindows", "CapacityWindow", is_namespaced=False)
POD_GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
VOLCANO_POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
WORKLOADS = Resource("scheduling.k8s.io", "v1alpha1", "workloads", "Workload")
POD_TEMPLATES = Resource("", "v1", "podtemplates", "PodTemplate")
PROVISIONING_REQUESTS = Resource("autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest")
CAPACITY_BUFFERS = Resource("autoscaling.x-k8s.io", "v1beta1", "capacitybuffers", "CapacityBuffer")
CLUSTER_POLICIES = Resource("nvidia.com", "v1", "clusterpolicies", "ClusterPolicy", is_namespaced=False)
KWOK_NODE_CLASSES = Resource("karpenter.kwok.sh", "v1alpha1", "kwoknodeclasses", "KWOKNodeClass", is_namespaced=False)
EC2_NODE_CLASSES = Resource("karpenter.k8s.aws", "v1", "ec2nodeclasses", "EC2NodeClass", is_namespaced=False)
ECS_NODE_CLASSES = Resource(
    "karpenter.k8s.alibabacloud", "v1alpha1", "ecsnodeclasses", "ECSNodeClass", is_namespaced=False
)
ACK_NODE_CLASSES = Resource(
    "karpenter.alibabacloud.com", "v1alpha1", "ecsnodeclasses", "ECSNodeClass", is_namespaced=False
)
SURROUNDINGS = (
    NAMESPACES,
    SERVICES,
    VOLUME_CLAIMS,
    VOLUMES,
    STORAGE_CLASSES,
    CSI_NODES,
    VOLUME_ATTACHMENTS,
    RUNTIME_CLASSES,
)
"""What the scheduler looks up of pods beside the pods and nodes themselves."""
NODE_CLASSES = (KWOK_NODE_CLASSES, EC2_NODE_CLASSES, ECS_NODE_CLASSES, ACK_NODE_CLASSES)
"""Of the providers that are known; a cluster has those of its own cloud."""

RUN, KWOK, ELECTION, READER, MIGRATE, HAMI = "run", "kwok", "election", "reader", "migrate", "hami"
"""Who needs an access: the controllers, the acted-out cloud, the leader election, a person with `kerf plan`, and our
stand-in for HAMi."""
AWS = "aws"
"""What the controllers need where the cloud is AWS."""
DRY_RUN, DRY_RUN_ELECTION = "dry-run", "dry-run-election"
"""The same of `kerf run --dry-run`, which never acts and has a Lease of its own."""
DECISIONS = "decisions"
"""A person who asks the leader what it remembers, through the API server."""

EVERYWHERE, OWN, NODE_LEASES = "", "<own>", "kube-node-lease"
"""Where an access is needed: in all namespaces, in that in which Kerf runs, in that of the nodes' Leases."""


@dataclass(frozen=True, slots=True, order=True)
class Access:
    """One verb on one resource, as a role grants it.

    `names` limits it to objects of those names, `namespace` to those of that namespace (EVERYWHERE, OWN, or a name).
    """

    verb: str
    resource: Resource
    subresource: str = ""
    names: tuple[str, ...] = ()
    namespace: str = EVERYWHERE

    @property
    def rule(self) -> str:
        """The line of a role that grants it."""
        return self.rule_for([self.verb])

    def rule_for(self, verbs: Iterable[str]) -> str:
        """The line of a role that grants these verbs on the same."""
        target = "/".join(part for part in (self.resource.plural, self.subresource) if part)
        names = f", resourceNames: [{', '.join(self.names)}]" if self.names else ""
        group, listed = self.resource.group, ", ".join(f'"{verb}"' for verb in verbs)
        return f'apiGroups: ["{group}"], resources: ["{target}"], verbs: [{listed}]{names}'


_declared: dict[str, set[Access]] = {}


def access(
    verb: str,
    resource: Resource,
    subresource: str = "",
    *,
    names: Iterable[str] = (),
    namespace: str = EVERYWHERE,
    by: str | tuple[str, ...] = RUN,
) -> Access:
    """Declare an access; `by` says which parts of Kerf make it."""
    made = Access(verb, resource, subresource, tuple(sorted(names)), namespace)
    for part in (by,) if isinstance(by, str) else by:
        _declared.setdefault(part, set()).add(made)
    return made


def declared(by: str) -> tuple[Access, ...]:
    """What a part has declared, in order. Complete once the modules that make the calls are imported."""
    return tuple(sorted(_declared.get(by, ())))
