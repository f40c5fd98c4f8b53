"""Nodes whose user data the tests read."""

from dataclasses import replace
from typing import Any

from kerf.clouds.aws.nodeclass.model import KubeletConfiguration
from kerf.clouds.aws.userdata.facts import ClusterFacts, NodeFacts
from kerf.model.constraints import Taint
from kerf.model.nodeclaim import UNREGISTERED_TAINT

CLUSTER = ClusterFacts(
    "demo", "https://ABC.eks.amazonaws.com", "Q0E=", "10.100.0.0/16", "10.100.0.10", "1.34", "us-east-1"
)
KUBELET = KubeletConfiguration(
    cluster_dns=("10.100.0.10",),
    max_pods=58,
    pods_per_core=4,
    system_reserved=(("cpu", "100m"),),
    kube_reserved=(("memory", "893Mi"),),
    eviction_hard=(("memory.available", "5%"), ("nodefs.available", "10%")),
    eviction_soft=(("memory.available", "1Gi"),),
    eviction_soft_grace_period=(("memory.available", "2m"),),
    eviction_max_pod_grace_period=60,
    image_gc_high_threshold_percent=85,
    image_gc_low_threshold_percent=80,
    cpu_cfs_quota=False,
    others=(("topologyManagerPolicy", '"single-numa-node"'),),
)
LABELS = {"karpenter.sh/nodepool": "gpu", "team": "ml"}
TAINTS = (Taint("nvidia.com/gpu", "true"), Taint("team", "", "NoExecute"), UNREGISTERED_TAINT)


def a_node(**changed: Any) -> NodeFacts:
    """A node with everything but additions of the user's."""
    return replace(NodeFacts(CLUSTER, KUBELET, LABELS, TAINTS, is_raid0=True), **changed)
