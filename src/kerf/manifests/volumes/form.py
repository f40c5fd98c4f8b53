"""The form of claims, volumes, StorageClasses, CSINodes and VolumeAttachments, as far as Kerf reads them.

The API is that of Kubernetes 1.36.
"""

from kerf.manifests.kinds import METADATA, NODE_SELECTOR, SELECTOR, object_of
from kerf.manifests.schema import (
    BOOLEAN,
    COUNT,
    FILLED,
    LABEL_KEY,
    QUANTITIES,
    TEXT,
    ListOf,
    Record,
    Schema,
    known,
    one_of,
)

_MODES = ListOf(one_of("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"))
_STORAGE = Record({"requests": QUANTITIES, "limits": QUANTITIES})
CLAIM_SPEC = Record(
    {
        "accessModes": _MODES,
        "resources": _STORAGE,
        "storageClassName": TEXT,
        "volumeName": TEXT,
        "selector": SELECTOR,
        "volumeAttributesClassName": TEXT,
        "volumeMode": one_of("Filesystem", "Block"),
        **known("dataSource dataSourceRef"),
    }
)
_CLAIM_STATUS = Record(
    {
        "phase": one_of("Pending", "Bound", "Lost"),
        "allocatedResources": QUANTITIES,
        "currentVolumeAttributesClassName": TEXT,
        "modifyVolumeStatus": Record({"targetVolumeAttributesClassName": TEXT}, is_open=True),
    },
    is_open=True,
)
VOLUME_CLAIM = object_of(CLAIM_SPEC, _CLAIM_STATUS)
VOLUME = object_of(
    Record(
        {
            "capacity": QUANTITIES,
            "claimRef": Record({"name": TEXT, "namespace": TEXT}, is_open=True),
            "csi": Record({"driver": FILLED}, ("driver",), is_open=True),
            "nodeAffinity": Record({"required": NODE_SELECTOR}),
            "storageClassName": TEXT,
            "accessModes": _MODES,
            "volumeAttributesClassName": TEXT,
            "volumeMode": one_of("Filesystem", "Block"),
            **known(
                "awsElasticBlockStore azureDisk azureFile cephfs cinder fc flexVolume flocker"
                " gcePersistentDisk glusterfs hostPath iscsi local mountOptions nfs persistentVolumeReclaimPolicy"
                " photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume"
            ),
        }
    ),
    Record({"phase": one_of("Pending", "Available", "Bound", "Released", "Failed")}, is_open=True),
)
_HEAD: dict[str, Schema] = {"apiVersion": FILLED, "kind": FILLED, "metadata": METADATA}
_TOPOLOGY = Record(
    {
        "matchLabelExpressions": ListOf(
            Record({"key": LABEL_KEY, "values": ListOf(TEXT, 1)}, ("key", "values")),
        )
    }
)
STORAGE_CLASS = Record(
    {
        **_HEAD,
        "provisioner": FILLED,
        "volumeBindingMode": one_of("Immediate", "WaitForFirstConsumer"),
        "allowedTopologies": ListOf(_TOPOLOGY),
        "allowVolumeExpansion": BOOLEAN,
        **known("parameters reclaimPolicy mountOptions"),
    },
    ("metadata", "provisioner"),
)
_LIMIT = Record({"count": COUNT})
_DRIVER = Record({"name": FILLED, "allocatable": _LIMIT, "topologyKeys": ListOf(TEXT), **known("nodeID")}, ("name",))
CSI_NODE = object_of(Record({"drivers": ListOf(_DRIVER)}))
_ATTACHED = Record({"persistentVolumeName": TEXT, **known("inlineVolumeSpec")})
VOLUME_ATTACHMENT = object_of(
    Record({"attacher": FILLED, "nodeName": FILLED, "source": _ATTACHED}, ("attacher", "nodeName", "source")),
    Record({"attached": BOOLEAN}, is_open=True),
)
