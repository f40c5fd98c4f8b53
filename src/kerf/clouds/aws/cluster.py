"""The EKS cluster that nodes join, as EKS describes it: what user data needs, and the version that images follow."""

import ipaddress
from collections.abc import Mapping
from typing import Any

from kerf.clouds.aws.api import EKS, Api
from kerf.clouds.aws.replies import reading
from kerf.clouds.aws.userdata.facts import ClusterFacts
from kerf.errors import CloudError

_DNS_HOST = 10
"""EKS gives the cluster's DNS the tenth address of the service CIDR (EKS user guide, "View Amazon EKS networking
requirements", 2026-11)."""


async def describe(api: Api, name: str, region: str) -> ClusterFacts:
    """The cluster. Raises ApiFailed, Throttled, and CloudError for one that is not there yet."""
    reply = await api.call(EKS, "DescribeCluster", name=name)
    cluster: Mapping[str, Any] = reply.get("cluster") or {}
    endpoint = cluster.get("endpoint") or ""
    if not endpoint:
        status = cluster.get("status")
        why = f"it is {status}" if status else "what answers there is not EKS"
        raise CloudError(f"DescribeCluster: cluster {name} has no endpoint: {why}")
    network = cluster.get("kubernetesNetworkConfig") or {}
    cidr = network.get("serviceIpv6Cidr" if network.get("ipFamily") == "ipv6" else "serviceIpv4Cidr") or ""
    with reading("DescribeCluster"):
        dns_ip = _dns_ip(cidr)
    return ClusterFacts(
        name=name,
        endpoint=endpoint,
        ca_bundle=(cluster.get("certificateAuthority") or {}).get("data") or "",
        service_cidr=cidr,
        dns_ip=dns_ip,
        version=cluster.get("version") or "",
        region=region,
    )


def _dns_ip(cidr: str) -> str:
    return str(ipaddress.ip_network(cidr, strict=False)[_DNS_HOST]) if cidr else ""
