"""What a node has to know to join: the cluster, its own kubelet, labels and taints, and what the user adds."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kerf.clouds.aws.nodeclass.model import DEFAULT_KUBELET, KubeletConfiguration
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.model.constraints import Taint
from kerf.model.nodeclaim import UNREGISTERED_TAINT

INVALID_KUBELET, INVALID_USER_DATA, TOO_LARGE = (
    "InvalidKubeletConfiguration",
    "UserDataInvalid",
    "UserDataSizeLimitExceeded",
)
"""Reasons of Unusable."""
DO_NOT_SYNC_TAINTS = "karpenter.sh/do-not-sync-taints"
"""Label: the taints of the claim come with the node, so no controller adds them once more when it registers."""
_RESTRICTED = ("node-restriction.kubernetes.io", "kubernetes.io", "k8s.io")


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The cluster that nodes join. `ca_bundle` is base64; `service_cidr` and `dns_ip` are empty where unknown."""

    name: str
    endpoint: str
    ca_bundle: str = ""
    service_cidr: str = ""
    dns_ip: str = ""
    version: str = ""
    region: str = ""

    @property
    def is_ipv6(self) -> bool:
        """Whether pods and services have IPv6 addresses: by the address of the cluster's DNS."""
        return ":" in self.dns_ip


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What goes into the user data of nodes of one launch template.

    `kubelet` has its final values. `image_version` is Bottlerocket's, e.g. `v1.46.0` or `latest`; empty where unknown.
    """

    cluster: ClusterFacts
    kubelet: KubeletConfiguration = DEFAULT_KUBELET
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] = ()
    custom: str = ""
    is_raid0: bool = False
    image_version: str = ""


def node_labels(labels: Mapping[str, str], *, is_custom: bool = False) -> dict[str, str]:
    """The labels that a node may give itself, by key, and that its taints come with it.

    The admission plugin NodeRestriction refuses the Node whose kubelet sets labels of Kubernetes' own domains; Kerf
    writes those once the node is there. A custom image may drop the taints, so it does not say that they come.
    """
    found = {key: labels[key] for key in sorted(labels) if not _is_restricted(key)}
    return found if is_custom else {**found, DO_NOT_SYNC_TAINTS: "true"}


def _is_restricted(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    return bool(slash) and any(domain == each or domain.endswith(f".{each}") for each in _RESTRICTED)


def node_taints(taints: tuple[Taint, ...], startup_taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """The taints of a claim in its order, and the one that keeps pods off until the node is registered."""
    both = (*taints, *startup_taints)
    unregistered = () if UNREGISTERED_TAINT in both else (UNREGISTERED_TAINT,)
    return (*both, *unregistered)


def node_kubelet(kubelet: KubeletConfiguration, max_pods: int, dns_ip: str) -> KubeletConfiguration:
    """The configuration with what it leaves open: pods that the type takes, and the cluster's DNS.

    Raises Unusable where an address is none: a family that passes it to a shell must not pass on anything else.
    """
    for address in kubelet.cluster_dns:
        try:
            ipaddress.ip_address(address)
        except ValueError:
            expected = f"spec.kubelet.clusterDNS: expected an IP address, got {address[:80]!r}"
            raise Unusable(INVALID_KUBELET, expected) from None
    return replace(
        kubelet,
        max_pods=max_pods if kubelet.max_pods is None else kubelet.max_pods,
        cluster_dns=kubelet.cluster_dns or ((dns_ip,) if dns_ip else ()),
    )
