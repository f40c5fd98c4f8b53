"""Volumes as far as a decision reads them: claims, volumes, classes, and how many of them a node can attach.

A cluster has as many claims as pods, so each value keeps what says where a pod may run and nothing else.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kerf.model.constraints import ANYTHING, ZONE, Requirements
from kerf.model.topology import PodAffinityTerm

NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""Of a StorageClass whose volumes are made by hand, such as local disks."""
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
OLD_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
"""Annotations of claims and classes that a decision reads."""

ZONES_OF_DRIVERS = frozenset(
    {
        "topology.disk.csi.azure.com/zone",
        "topology.diskplugin.csi.alibabacloud.com/zone",
        "topology.ebs.csi.aws.com/zone",
        "topology.gke.io/zone",
    }
)
"""Labels by which CSI drivers of clouds name the zone of a node; a node gets them once its driver runs there."""
MIGRATED = {
    "awsElasticBlockStore": "ebs.csi.aws.com",
    "azureDisk": "disk.csi.azure.com",
    "azureFile": "file.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "gcePersistentDisk": "pd.csi.storage.gke.io",
    "vsphereVolume": "csi.vsphere.vmware.com",
}
"""The CSI driver that serves a volume of a retired built-in kind (kubernetes staging csi-translation-lib)."""
MIGRATED_PROVISIONERS = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""The same by the provisioner of a StorageClass."""


DRIVERS_OF_SHARES = frozenset({"efs.csi.aws.com", "file.csi.azure.com", "nfs.csi.k8s.io", "smb.csi.k8s.io"})
"""CSI drivers whose volumes are shares on a network, which nodes of all zones reach; they state no topology."""


DRIVERS_OF_NODES = frozenset(
    {
        "carina.storage.io",
        "directpv-min-io",
        "hostpath.csi.k8s.io",
        "local.csi.openebs.io",
        "localdisk.csi.acstor.io",
        "lvm.csi.metal-stack.io",
        "lvm.hwameistor.io",
        "openebs.io/local",
        "rancher.io/local-path",
        "topolvm.cybozu.com",
        "topolvm.io",
        "zfs.csi.openebs.io",
    }
)
"""Provisioners that make a volume on a disk of the node where its pod first runs. A CSINode says it of others.

Names as in the StorageClasses of each project's own examples, November 2026.
"""
_NAMES_OF_NODES = frozenset({"hostname", "node", "nodeid", "nodename"})
"""Last parts of label keys such as `topology.topolvm.io/node`, whose value is another one on each node."""


def names_node(key: str) -> bool:
    """Whether a topology key of a CSI driver names single nodes: nodes have no value in common.

    Not that of LINSTOR, whose volumes other nodes reach over the network.
    """
    prefix, _, name = key.rpartition("/")
    return name in _NAMES_OF_NODES and prefix != "linbit.com"


def zone_key(key: str) -> str:
    """The label key under which Kerf knows what a CSI driver calls its zone; any other key as it is."""
    return ZONE if key in ZONES_OF_DRIVERS else key


@dataclass(frozen=True, slots=True)
class ClaimTemplate:
    """A claim that is made for each pod: of a StatefulSet's `volumeClaimTemplates`, or of an ephemeral volume.

    `storage_class` None: the default one. It counts where the claim itself is not there yet, and so do
    `requested_bytes` and `attributes_class`, for a ResourceQuota.
    """

    name: str
    storage_class: str | None = None
    is_ephemeral: bool = False
    requested_bytes: int = 0
    attributes_class: str = ""

    def claim_of(self, pod_name: str) -> str:
        """The name of the claim of one pod."""
        return f"{pod_name}-{self.name}" if self.is_ephemeral else f"{self.name}-{pod_name}"

    def claim(self, namespace: str, name: str) -> "PersistentVolumeClaim":
        """The claim as a ResourceQuota counts it."""
        classes = (self.attributes_class,) if self.attributes_class else ()
        asked, bytes_asked = self.storage_class, self.requested_bytes
        return PersistentVolumeClaim(
            namespace, name, asked, requested_bytes=bytes_asked, attributes_classes=classes, is_new=True
        )


@dataclass(frozen=True, slots=True)
class VolumeForm:
    """What a claim asks of a free volume beside its size; the access modes of the volume may be more."""

    access_modes: frozenset[str] = frozenset()
    is_block: bool = False
    attributes_class: str = ""

    def suits(self, asked: "VolumeForm") -> bool:
        """Whether a volume of this form is of the kind that is asked for, whatever the access modes."""
        return (self.is_block, self.attributes_class) == (asked.is_block, asked.attributes_class)


NO_FORM = VolumeForm()


@dataclass(frozen=True, slots=True)
class PersistentVolumeClaim:
    """A claim. `volume` is the volume it names, `is_bound` that both know of each other.

    `storage_class` is empty for none, None for the default one. `selected_node` is where the scheduler has decided that
    its volume is made. `owner_uid` is the pod whose ephemeral volume it is; empty for every other claim.
    `is_of_one_pod` is the access mode ReadWriteOncePod. `requested_bytes` are what a volume must have at least; while a
    volume grows, what it is given. `form` and `selector`, of its labels, say which volume it may take; once it has one
    they are empty. `attributes_classes` are the VolumeAttributesClasses that it names, has or is to get. `is_new`: a
    manifest describes it, without a volume, and no API has seen it.
    """

    namespace: str
    name: str
    storage_class: str | None = None
    volume: str = ""
    is_bound: bool = False
    is_lost: bool = False
    is_deleting: bool = False
    is_of_one_pod: bool = False
    selected_node: str = ""
    owner_uid: str = ""
    requested_bytes: int = 0
    form: VolumeForm = NO_FORM
    selector: Requirements = ANYTHING
    attributes_classes: tuple[str, ...] = ()
    is_new: bool = False

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A volume. A node must satisfy one of `terms` (none: any may), and `zones` if it has a label of zone or region.

    `driver` is the CSI driver that attaches it, empty for none. `is_local`: it is a part of one node. `is_free`: no
    claim has it or is promised it. `kept_for` is the key of the claim that it is promised. Of every other volume `form`
    and `labels` are empty.
    """

    name: str
    terms: tuple[Requirements, ...] = ()
    zones: Requirements = ANYTHING
    driver: str = ""
    storage_class: str = ""
    is_local: bool = False
    is_free: bool = False
    capacity_bytes: int = 0
    kept_for: str = ""
    form: VolumeForm = NO_FORM
    labels: tuple[tuple[str, str], ...] = ()

    def serves(self, claim: PersistentVolumeClaim) -> bool:
        """Whether a claim of its class may take it; only one that it is kept for may have other modes and labels."""
        if self.capacity_bytes < claim.requested_bytes or not self.form.suits(claim.form):
            return False
        if self.kept_for:
            return self.kept_for == claim.key
        return claim.form.access_modes <= self.form.access_modes and (
            claim.selector.unsatisfied_by(dict(self.labels)) is None
        )


@dataclass(frozen=True, slots=True)
class StorageClass:
    """How volumes of a class are made: where a pod of theirs first runs (`waits`), or at once.

    One of `topologies` must hold of the node; none: any node may. Of several default classes the newest counts.
    """

    name: str
    provisioner: str = ""
    waits: bool = False
    topologies: tuple[Requirements, ...] = ()
    is_default: bool = False
    created_s: float = 0

    @property
    def driver(self) -> str:
        """The CSI driver of its volumes; empty where they are made by hand."""
        if self.provisioner == NO_PROVISIONER:
            return ""
        return MIGRATED_PROVISIONERS.get(self.provisioner, self.provisioner)


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The class of claims that name none, as the plug-in DefaultStorageClass: the newest of several, then by name."""
    return min(
        (each for each in classes if each.is_default), key=lambda each: (-each.created_s, each.name), default=None
    )


@dataclass(frozen=True, slots=True)
class CSINode:
    """What CSI drivers say of a node: how many volumes each can attach there; drivers without a limit are left out.

    `everywhere` are the drivers without topology keys: any node reaches their volumes. `of_node` are those of which one
    key names the node, so no other node reaches a volume that is made here.
    """

    name: str
    limits: tuple[tuple[str, int], ...] = ()
    everywhere: tuple[str, ...] = ()
    of_node: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SharedClaim:
    """A claim of several pods whose volume is still to be made: where the first of them runs, and the others must be.

    `pods` means all of them, and those that share another claim with one of them and must be as near; a decision gives
    them a label for it.
    """

    claim: str
    pods: PodAffinityTerm


@dataclass(frozen=True, slots=True)
class VolumeAttachment:
    """That a volume is attached to a node, or is to be (not `is_attached`): it goes once the volume has been detached.

    `volume` is the name of the PersistentVolume; empty for one that a pod states itself.
    """

    name: str
    node_name: str
    volume: str = ""
    is_attached: bool = False


@dataclass(frozen=True, slots=True)
class Mounts:
    """What the volumes of a pod ask of its node, once they are looked up; a decision sets it, no API does.

    One of `there` must hold of a node that is there, one of `new` of a node to be bought: on that a local volume asks
    no host name. `own` are (driver, number) of volumes that no other pod has, `shared` (driver, volume) of the others.
    `beside` are claims for which the pod must be with others: one on their node, one in their zone, or both.
    """

    there: tuple[Requirements, ...] = (ANYTHING,)
    new: tuple[Requirements, ...] = (ANYTHING,)
    own: tuple[tuple[str, int], ...] = ()
    shared: tuple[tuple[str, str], ...] = ()
    beside: tuple[SharedClaim, ...] = ()

    @property
    def is_attaching(self) -> bool:
        """Whether a driver attaches any of them."""
        return bool(self.own or self.shared)


NO_MOUNTS = Mounts()


@dataclass(frozen=True, slots=True)
class Attached:
    """What CSI drivers have attached to a node: (driver, number) of volumes of one pod, and the shared ones."""

    own: tuple[tuple[str, int], ...] = ()
    shared: frozenset[tuple[str, str]] = frozenset()

    def count(self, driver: str) -> int:
        """How many volumes the driver has attached."""
        return dict(self.own).get(driver, 0) + sum(1 for each, _ in self.shared if each == driver)

    def plus(self, mounts: Mounts) -> "Attached":
        """With those of one pod more; a volume that is there already counts once."""
        counts = dict(self.own)
        for driver, number in mounts.own:
            counts[driver] = counts.get(driver, 0) + number
        return Attached(tuple(sorted(counts.items())), self.shared.union(mounts.shared))


NOTHING_ATTACHED = Attached()
