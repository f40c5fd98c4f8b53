"""EC2NodeClasses as a server has them."""

from typing import Any

Object = dict[str, Any]


def an_object(name: str = "default", **spec: Any) -> Object:
    """The least that a server takes, with `spec` over it; None takes a field away."""
    least = {
        "role": "KarpenterNodeRole-demo",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "demo"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "demo"}}],
    }
    merged = {key: value for key, value in {**least, **spec}.items() if value is not None}
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": name, "uid": f"uid-{name}", "generation": 3},
        "spec": merged,
    }


FULL: Object = {
    "role": None,
    "instanceProfile": "my-profile",
    "amiFamily": "Bottlerocket",
    "amiSelectorTerms": [
        {"id": "ami-1"},
        {"name": "my-*", "owner": "123456789012", "tags": {"team": "ml", "env": "*"}},
        {"ssmParameter": "/my/image"},
    ],
    "subnetSelectorTerms": [{"id": "subnet-1"}, {"tags": {"team": "ml"}}],
    "securityGroupSelectorTerms": [{"id": "sg-1"}, {"name": "nodes"}, {"tags": {"team": "ml"}}],
    "capacityReservationSelectorTerms": [
        {"id": "cr-1"},
        {"ownerID": "123456789012", "instanceMatchCriteria": "open", "tags": {"team": "ml"}},
    ],
    "placementGroupSelector": {"name": "near"},
    "userData": "[settings]\n",
    "tags": {"team": "ml"},
    "kubelet": {
        "clusterDNS": ["10.100.0.10"],
        "maxPods": 20,
        "podsPerCore": 2,
        "systemReserved": {"cpu": "100m"},
        "kubeReserved": {"memory": "1Gi"},
        "evictionHard": {"memory.available": "5%"},
        "evictionSoft": {"nodefs.available": "10Gi"},
        "evictionSoftGracePeriod": {"nodefs.available": "2m"},
        "evictionMaxPodGracePeriod": 60,
        "imageGCHighThresholdPercent": 85,
        "imageGCLowThresholdPercent": 80,
        "cpuCFSQuota": False,
        "topologyManagerPolicy": "single-numa-node",
    },
    "blockDeviceMappings": [
        {
            "deviceName": "/dev/xvda",
            "rootVolume": True,
            "ebs": {
                "deleteOnTermination": True,
                "encrypted": True,
                "iops": 3000,
                "kmsKeyID": "key",
                "snapshotID": "snap-1",
                "throughput": 125,
                "volumeInitializationRate": 100,
                "volumeSize": "100G",
                "volumeType": "gp3",
            },
        }
    ],
    "instanceStorePolicy": "RAID0",
    "networkInterfaces": [
        {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
        {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
    ],
    "metadataOptions": {"httpTokens": "optional", "httpPutResponseHopLimit": 2},
    "connectionTracking": {"tcpEstablishedTimeout": 600, "udpStreamTimeout": 120, "udpTimeout": 30},
    "cpuOptions": {"nestedVirtualization": "enabled"},
    "associatePublicIPAddress": False,
    "ipPrefixCount": 4,
    "detailedMonitoring": True,
    "context": "reserved",
}
"""Every field of the spec, beside the least."""
