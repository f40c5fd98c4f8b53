"""AL2023: a NodeConfig that nodeadm reads, after the user's own parts (nodeadm v1alpha1, amazon-eks-ami, 2026-08).

nodeadm merges the NodeConfigs of all parts in their order, so ours comes last and wins.
"""

import json
import re
from typing import Any

import yaml

from kerf.clouds.aws.nodeclass.model import KubeletConfiguration, Pairs
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.userdata.facts import INVALID_USER_DATA, NodeFacts
from kerf.clouds.aws.userdata.flags import safe
from kerf.clouds.aws.userdata.mime import SHELL, Part, archive, is_mime, parts_of

NODE_CONFIG = "application/node.eks.aws"
_CLOUD_CONFIG = 'text/cloud-config; charset="us-ascii"'
_MOST_OPEN = 64
"""Brackets that are open at once. To compose them takes the square of their number: 8,000 a second."""
_BRACKETS = re.compile(r"[\[{\]}]")
_BLANK = "\ufeff \t\r\n"

Object = dict[str, Any]


def render(facts: NodeFacts) -> str:
    """The archive. Raises Unusable where the cluster's CIDR is not known, and on MIME that cannot be read."""
    if not facts.cluster.service_cidr:
        message = "the service CIDR of the cluster is not known: the controller needs eks:DescribeCluster"
        raise Unusable("ClusterCIDRResolutionFailed", message)
    text = yaml.safe_dump(_node_config(facts), sort_keys=True, width=10**6, allow_unicode=True)
    return archive((*_custom_parts(facts.custom), Part.of(NODE_CONFIG, text)))


def _custom_parts(text: str) -> tuple[Part, ...]:
    """The user's parts; a text that is none is a NodeConfig where it is a mapping in YAML, else a shell script.

    What its first line says goes before: to YAML it is a comment, and a script with a colon in it is a mapping.
    """
    if not text:
        return ()
    if is_mime(text):
        return parts_of(text)
    first = text.lstrip(_BLANK)
    if first.startswith("#!"):
        return (Part.of(SHELL, text),)
    if first.startswith("#cloud-config"):
        return (Part.of(_CLOUD_CONFIG, text),)
    if _most_open(text) > _MOST_OPEN:
        raise _too_deep()
    try:
        # Only looked at: to construct it would follow its merge keys, whose cost doubles with every line.
        is_mapping = isinstance(yaml.compose(text, Loader=yaml.SafeLoader), yaml.MappingNode)
    except yaml.YAMLError:
        is_mapping = False
    except RecursionError:
        raise _too_deep() from None
    return (Part.of(NODE_CONFIG if is_mapping else SHELL, text),)


def _most_open(text: str) -> int:
    """How many brackets are open at once at most, those in quotes and comments counted too."""
    depth = most = 0
    for found in _BRACKETS.finditer(text):
        depth = depth + 1 if found[0] in "[{" else max(0, depth - 1)
        most = max(most, depth)
    return most


def _too_deep() -> Unusable:
    return Unusable(INVALID_USER_DATA, "spec.userData: expected YAML that is not nested so deep")


def _node_config(facts: NodeFacts) -> Object:
    cluster = facts.cluster
    authority = {"certificateAuthority": cluster.ca_bundle} if cluster.ca_bundle else {}
    labels = ",".join(f"{key}={facts.labels[key]}" for key in sorted(facts.labels))
    storage: Object = {"instance": {"localStorage": {"strategy": "RAID0"}}} if facts.is_raid0 else {}
    return {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": cluster.name,
                "apiServerEndpoint": cluster.endpoint,
                "cidr": cluster.service_cidr,
                **authority,
            },
            "kubelet": {
                "config": {**_kubelet(facts.kubelet), "registerWithTaints": _taints(facts)},
                **({"flags": [f'--node-labels="{safe(labels)}"']} if labels else {}),
            },
            **storage,
        },
    }


def _taints(facts: NodeFacts) -> list[Object]:
    return [
        {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
        for taint in facts.taints
    ]


def _kubelet(kubelet: KubeletConfiguration) -> Object:
    """KubeletConfiguration as kubelet itself reads it, with the fields that Kerf passes on unread."""
    maps: dict[str, Pairs] = {
        "systemReserved": kubelet.system_reserved,
        "kubeReserved": kubelet.kube_reserved,
        "evictionHard": kubelet.eviction_hard,
        "evictionSoft": kubelet.eviction_soft,
        "evictionSoftGracePeriod": kubelet.eviction_soft_grace_period,
    }
    plain = {
        "maxPods": kubelet.max_pods,
        "podsPerCore": kubelet.pods_per_core,
        "evictionMaxPodGracePeriod": kubelet.eviction_max_pod_grace_period,
        "imageGCHighThresholdPercent": kubelet.image_gc_high_threshold_percent,
        "imageGCLowThresholdPercent": kubelet.image_gc_low_threshold_percent,
        "cpuCFSQuota": kubelet.cpu_cfs_quota,
    }
    return {
        **{name: json.loads(text) for name, text in kubelet.others},
        **({"clusterDNS": list(kubelet.cluster_dns)} if kubelet.cluster_dns else {}),
        **{name: dict(pairs) for name, pairs in maps.items() if pairs},
        **{name: value for name, value in plain.items() if value is not None},
    }
