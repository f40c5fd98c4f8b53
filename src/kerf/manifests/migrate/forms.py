"""The form of the retired kinds, as far as converting them relies on it.

Types only: whatever else is wrong in an old object is either refused by today's API or listed in the report. Names as
in the CRDs of Karpenter 0.31 (Provisioner `v1alpha5`, AWSNodeTemplate `v1alpha1`) and 0.37 (`v1beta1`). Fields that are
not listed here are no error: they are reported as not kept.
"""

from kerf.manifests.kinds import object_of
from kerf.manifests.schema import (
    ANYTHING,
    BOOLEAN,
    COUNT,
    DURATION_OR_NEVER,
    FILLED,
    QUANTITIES,
    TEXT,
    TEXTS,
    ListOf,
    Record,
    Scalar,
    Schema,
    is_quantity,
    one_of,
    whole,
)
from kerf.model.constraints import OPERATORS

_SIZE = Scalar("a size such as 100Gi", lambda value: is_quantity("memory", value))
_REQUIREMENTS = ListOf(
    Record(
        {"key": FILLED, "operator": one_of(*OPERATORS), "values": ListOf(TEXT), "minValues": whole(1, 50)},
        ("key", "operator"),
    )
)
_TAINTS = ListOf(
    Record(
        {
            "key": FILLED,
            "value": TEXT,
            "effect": one_of("NoSchedule", "PreferNoSchedule", "NoExecute"),
            "timeAdded": ANYTHING,
        },
        ("key", "effect"),
    )
)
KUBELET_TEXTS = ("evictionHard", "evictionSoft", "evictionSoftGracePeriod")
KUBELET_AMOUNTS = ("kubeReserved", "systemReserved")
_KUBELET = Record(
    {
        "clusterDNS": ListOf(TEXT),
        "containerRuntime": TEXT,
        "cpuCFSQuota": BOOLEAN,
        "evictionMaxPodGracePeriod": COUNT,
        "imageGCHighThresholdPercent": whole(0, 100),
        "imageGCLowThresholdPercent": whole(0, 100),
        "maxPods": COUNT,
        "podsPerCore": COUNT,
        **dict.fromkeys(KUBELET_TEXTS, TEXTS),
        **dict.fromkeys(KUBELET_AMOUNTS, QUANTITIES),
    }
)
_DEVICES = ListOf(
    Record(
        {
            "deviceName": TEXT,
            "rootVolume": BOOLEAN,
            "ebs": Record(
                {
                    "deleteOnTermination": BOOLEAN,
                    "encrypted": BOOLEAN,
                    "iops": COUNT,
                    "kmsKeyID": TEXT,
                    "snapshotID": TEXT,
                    "throughput": COUNT,
                    "volumeSize": _SIZE,
                    "volumeType": TEXT,
                }
            ),
        }
    )
)
_METADATA_OPTIONS = Record(
    {"httpEndpoint": TEXT, "httpProtocolIPv6": TEXT, "httpPutResponseHopLimit": COUNT, "httpTokens": TEXT}
)
_MACHINE: dict[str, Schema] = {
    "amiFamily": FILLED,
    "instanceProfile": FILLED,
    "userData": TEXT,
    "tags": TEXTS,
    "context": TEXT,
    "detailedMonitoring": BOOLEAN,
    "associatePublicIPAddress": BOOLEAN,
    "blockDeviceMappings": _DEVICES,
    "metadataOptions": _METADATA_OPTIONS,
}
_NODE_TEMPLATE = Record(
    {
        **_MACHINE,
        "amiSelector": TEXTS,
        "subnetSelector": TEXTS,
        "securityGroupSelector": TEXTS,
        "instanceTypes": ListOf(FILLED),
    }
)
_REFERENCE = Record({"apiVersion": TEXT, "kind": TEXT, "name": FILLED}, ("name",))
_CLAIM: dict[str, Schema] = {
    "requirements": _REQUIREMENTS,
    "taints": _TAINTS,
    "startupTaints": _TAINTS,
    "nodeClassRef": _REFERENCE,
    "kubelet": _KUBELET,
}
PROVISIONER = object_of(
    Record(
        {
            "requirements": _REQUIREMENTS,
            "labels": TEXTS,
            "annotations": TEXTS,
            "taints": _TAINTS,
            "startupTaints": _TAINTS,
            "limits": Record({"resources": QUANTITIES}),
            "consolidation": Record({"enabled": BOOLEAN}),
            "ttlSecondsAfterEmpty": COUNT,
            "ttlSecondsUntilExpired": COUNT,
            "weight": whole(1, 100),
            "kubeletConfiguration": _KUBELET,
            "provider": _NODE_TEMPLATE,
            "providerRef": _REFERENCE,
        }
    )
)
NODE_TEMPLATE = object_of(_NODE_TEMPLATE)
_TERMS = ListOf(Record({"tags": TEXTS, "id": TEXT, "name": TEXT, "owner": TEXT, "alias": TEXT}, is_open=True))
NODE_CLASS_BETA = object_of(
    Record(
        {
            **_MACHINE,
            "role": FILLED,
            "instanceStorePolicy": TEXT,
            "amiSelectorTerms": _TERMS,
            "subnetSelectorTerms": _TERMS,
            "securityGroupSelectorTerms": _TERMS,
        }
    )
)
NODE_POOL_BETA = object_of(
    Record(
        {
            "template": Record(
                {"metadata": Record({"labels": TEXTS, "annotations": TEXTS}), "spec": Record(_CLAIM)}, ("spec",)
            ),
            "disruption": Record(
                {
                    "consolidationPolicy": one_of("WhenEmpty", "WhenUnderutilized"),
                    "consolidateAfter": DURATION_OR_NEVER,
                    "expireAfter": DURATION_OR_NEVER,
                    "budgets": ListOf(Record({"nodes": TEXT, "schedule": TEXT, "duration": TEXT}, is_open=True)),
                }
            ),
            "limits": QUANTITIES,
            "weight": whole(1, 100),
        },
        ("template",),
    )
)
NODE_CLAIM_BETA = object_of(Record({**_CLAIM, "resources": Record({"requests": QUANTITIES})}))
MACHINE = object_of()
