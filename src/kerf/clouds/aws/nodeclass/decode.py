"""An EC2NodeClass from a server's JSON.

The form and the rules between fields are those that lint checks (`manifests/karpenter/ec2`). A server with another
version of the CRD may hold what they refuse, so what is read here is checked, and a field that is unknown is named.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kerf.clouds.aws.nodeclass.model import (
    AL2023,
    AMISelectorTerm,
    BlockDevice,
    BlockDeviceMapping,
    CapacityReservationSelectorTerm,
    ConnectionTracking,
    EC2NodeClass,
    EC2NodeClassSpec,
    KubeletConfiguration,
    MetadataOptions,
    NetworkInterface,
    Pairs,
    PlacementGroupSelector,
    SecurityGroupSelectorTerm,
    SubnetSelectorTerm,
)
from kerf.errors import DecodeError
from kerf.manifests.karpenter.ec2 import KIND, check_ec2_node_class
from kerf.manifests.schema import Report, path_text
from kerf.model.quantities import quantity

_GIB = 2**30
_KUBELET_FIELDS = frozenset(
    {
        "clusterDNS",
        "cpuCFSQuota",
        "evictionHard",
        "evictionMaxPodGracePeriod",
        "evictionSoft",
        "evictionSoftGracePeriod",
        "imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent",
        "kubeReserved",
        "maxPods",
        "podsPerCore",
        "systemReserved",
    }
)

Object = Mapping[str, Any]


def decode(raw: Object) -> EC2NodeClass:
    """The object as a value. Raises DecodeError, whose `path` names the first field that is wrong."""
    report = Report(is_live=True)
    check_ec2_node_class(dict(raw), report)
    if report.problems:
        problem, meta = report.problems[0], raw.get("metadata")
        name = meta.get("name") if isinstance(meta, dict) else None
        place = f"{KIND} {name or '?'}"
        raise DecodeError(path_text(problem.path), problem.expected, problem.got, place=place, hint=problem.hint)
    meta, status = raw["metadata"], raw.get("status") or {}
    profile = status.get("instanceProfile")
    found = EC2NodeClass(
        name=meta["name"],
        uid=meta.get("uid") or "",
        spec=_spec(raw["spec"]),
        generation=meta.get("generation") or 0,
        is_deleting=bool(meta.get("deletionTimestamp")),
        instance_profile=profile if isinstance(profile, str) else "",
        unknown=tuple(path_text(unknown.path) for unknown in report.unknown),
    )
    if found.family != AL2023:
        return found
    # nodeadm takes the configuration of kubelet as it is: a field that is unknown here may be known there.
    unread = tuple(path_text(unknown.path) for unknown in report.unknown if unknown.path[:2] == ("spec", "kubelet"))
    return replace(found, unknown=tuple(each for each in found.unknown if each not in unread), unread=unread)


def _spec(raw: Object) -> EC2NodeClassSpec:
    group, tracking = raw.get("placementGroupSelector"), raw.get("connectionTracking")
    return EC2NodeClassSpec(
        ami_selector_terms=tuple(_image_term(term) for term in raw["amiSelectorTerms"]),
        subnet_selector_terms=tuple(
            SubnetSelectorTerm(_text(term, "id"), _pairs(term, "tags")) for term in raw["subnetSelectorTerms"]
        ),
        security_group_selector_terms=tuple(
            SecurityGroupSelectorTerm(_text(term, "id"), _text(term, "name"), _pairs(term, "tags"))
            for term in raw["securityGroupSelectorTerms"]
        ),
        capacity_reservation_selector_terms=tuple(
            _reservation_term(term) for term in raw.get("capacityReservationSelectorTerms") or ()
        ),
        placement_group_selector=PlacementGroupSelector(_text(group, "id"), _text(group, "name")) if group else None,
        ami_family=_text(raw, "amiFamily"),
        user_data=_text(raw, "userData"),
        role=_text(raw, "role"),
        instance_profile=_text(raw, "instanceProfile"),
        tags=_pairs(raw, "tags"),
        kubelet=_kubelet(raw.get("kubelet") or {}),
        block_device_mappings=tuple(_device(device) for device in raw.get("blockDeviceMappings") or ()),
        instance_store_policy=_text(raw, "instanceStorePolicy"),
        network_interfaces=tuple(
            NetworkInterface(each["networkCardIndex"], each["deviceIndex"], each["interfaceType"])
            for each in raw.get("networkInterfaces") or ()
        ),
        metadata_options=_metadata_options(raw.get("metadataOptions") or {}),
        connection_tracking=_tracking(tracking) if tracking else None,
        nested_virtualization=_text(raw.get("cpuOptions") or {}, "nestedVirtualization"),
        associate_public_ip_address=raw.get("associatePublicIPAddress"),
        ip_prefix_count=raw.get("ipPrefixCount"),
        detailed_monitoring=bool(raw.get("detailedMonitoring")),
        context=_text(raw, "context"),
    )


def _text(raw: Object, name: str) -> str:
    return raw.get(name) or ""


def _pairs(raw: Object, name: str) -> Pairs:
    return tuple(sorted((raw.get(name) or {}).items()))


def _image_term(raw: Object) -> AMISelectorTerm:
    return AMISelectorTerm(
        alias=_text(raw, "alias"),
        id=_text(raw, "id"),
        name=_text(raw, "name"),
        owner=_text(raw, "owner"),
        ssm_parameter=_text(raw, "ssmParameter"),
        tags=_pairs(raw, "tags"),
    )


def _reservation_term(raw: Object) -> CapacityReservationSelectorTerm:
    return CapacityReservationSelectorTerm(
        _text(raw, "id"), _text(raw, "ownerID"), _text(raw, "instanceMatchCriteria"), _pairs(raw, "tags")
    )


def _device(raw: Object) -> BlockDeviceMapping:
    volume = raw.get("ebs")
    return BlockDeviceMapping(
        _text(raw, "deviceName"), _volume(volume) if volume is not None else None, bool(raw.get("rootVolume"))
    )


def _volume(raw: Object) -> BlockDevice:
    size = raw.get("volumeSize")
    return BlockDevice(
        delete_on_termination=raw.get("deleteOnTermination"),
        encrypted=raw.get("encrypted"),
        iops=raw.get("iops"),
        kms_key_id=_text(raw, "kmsKeyID"),
        snapshot_id=_text(raw, "snapshotID"),
        throughput=raw.get("throughput"),
        volume_initialization_rate=raw.get("volumeInitializationRate"),
        volume_size_gib=-(-quantity(size) // _GIB) if size else None,
        volume_type=_text(raw, "volumeType"),
    )


def _metadata_options(raw: Object) -> MetadataOptions:
    default = MetadataOptions()
    return MetadataOptions(
        raw.get("httpEndpoint") or default.http_endpoint,
        raw.get("httpProtocolIPv6") or default.http_protocol_ipv6,
        raw.get("httpPutResponseHopLimit") or default.http_put_response_hop_limit,
        raw.get("httpTokens") or default.http_tokens,
    )


def _tracking(raw: Object) -> ConnectionTracking:
    return ConnectionTracking(raw.get("tcpEstablishedTimeout"), raw.get("udpStreamTimeout"), raw.get("udpTimeout"))


def _kubelet(raw: Object) -> KubeletConfiguration:
    return KubeletConfiguration(
        cluster_dns=tuple(raw.get("clusterDNS") or ()),
        max_pods=raw.get("maxPods"),
        pods_per_core=raw.get("podsPerCore"),
        system_reserved=_pairs(raw, "systemReserved"),
        kube_reserved=_pairs(raw, "kubeReserved"),
        eviction_hard=_pairs(raw, "evictionHard"),
        eviction_soft=_pairs(raw, "evictionSoft"),
        eviction_soft_grace_period=_pairs(raw, "evictionSoftGracePeriod"),
        eviction_max_pod_grace_period=raw.get("evictionMaxPodGracePeriod"),
        image_gc_high_threshold_percent=raw.get("imageGCHighThresholdPercent"),
        image_gc_low_threshold_percent=raw.get("imageGCLowThresholdPercent"),
        cpu_cfs_quota=raw.get("cpuCFSQuota"),
        others=tuple(
            (name, _text_of(name, raw[name])) for name in sorted(raw.keys() - _KUBELET_FIELDS) if raw[name] is not None
        ),
    )


def _text_of(name: str, value: object) -> str:
    try:
        return json.dumps(value, sort_keys=True)
    except RecursionError:
        raise DecodeError(f"spec.kubelet.{name}", "a value that is not nested so deep", value) from None
