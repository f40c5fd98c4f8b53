"""What a launch template says, as `CreateLaunchTemplate` takes it. Pure: the same facts give the same content."""

import base64
from dataclasses import dataclass, field
from typing import Any

from kerf.clouds.aws.nodeclass.model import (
    AL2,
    AL2023,
    BOTTLEROCKET,
    WINDOWS,
    BlockDevice,
    BlockDeviceMapping,
    EC2NodeClass,
    MetadataOptions,
    NetworkInterface,
)
from kerf.clouds.aws.nodeclass.status import CapacityReservation, Resolved
from kerf.clouds.aws.tagging import tag_list
from kerf.model.instancetypes import ON_DEMAND, RESERVED, SPOT

_NO_IPV6_METADATA = (
    "us-iso-east-1",
    "us-iso-west-1",
    "us-isob-east-1",
    "us-isob-west-1",
    "us-isof-south-1",
    "us-isof-east-1",
)
"""Regions whose EC2 does not know HttpProtocolIpv6 (karpenter-provider-aws v1.14.1, 2026-08)."""

Object = dict[str, Any]


def _default(size_gib: int) -> BlockDevice:
    return BlockDevice(encrypted=True, volume_type="gp3", volume_size_gib=size_gib)


DEFAULT_DEVICES: dict[str, tuple[BlockDeviceMapping, ...]] = {
    **dict.fromkeys((AL2, AL2023), (BlockDeviceMapping("/dev/xvda", _default(20)),)),
    BOTTLEROCKET: (BlockDeviceMapping("/dev/xvda", _default(4)), BlockDeviceMapping("/dev/xvdb", _default(20))),
    **dict.fromkeys(WINDOWS, (BlockDeviceMapping("/dev/sda1", _default(50)),)),
}
"""Disks of an EC2NodeClass that names none (karpenter-provider-aws v1.14.1); of a custom image, those of the image."""


@dataclass(frozen=True, slots=True)
class TemplateFacts:
    """What sets one launch template of an EC2NodeClass apart from its others.

    `efa_count` is 0 unless pods ask for EFA. `tags` are those of instances, volumes and interfaces.
    """

    image_id: str
    user_data: str
    capacity_type: str = ON_DEMAND
    efa_count: int = 0
    reservation: CapacityReservation | None = None
    tenancy: str = "default"
    partition: int = 0
    needs_enclave: bool = False
    is_ipv6: bool = False
    region: str = ""
    tags: dict[str, str] = field(default_factory=dict, hash=False)


def template_data(node_class: EC2NodeClass, resolved: Resolved, facts: TemplateFacts) -> Object:
    """`LaunchTemplateData`, with nothing in it that is empty."""
    spec = node_class.spec
    devices = spec.block_device_mappings or DEFAULT_DEVICES.get(node_class.family, ())
    data: Object = {
        "ImageId": facts.image_id,
        "UserData": base64.b64encode(facts.user_data.encode()).decode(),
        "IamInstanceProfile": {"Name": resolved.instance_profile},
        "Monitoring": {"Enabled": spec.detailed_monitoring},
        "EnclaveOptions": {"Enabled": facts.needs_enclave},
        "MetadataOptions": _metadata(spec.metadata_options, facts.region),
        "BlockDeviceMappings": [_device(device) for device in devices],
        # Security groups stand in the interfaces: EC2 refuses them beside.
        "NetworkInterfaces": _interfaces(node_class, resolved, facts),
        "Placement": _placement(resolved, facts),
        "CpuOptions": {"NestedVirtualization": spec.nested_virtualization} if spec.nested_virtualization else {},
        "TagSpecifications": _tags(facts),
        **_market(facts),
    }
    return {name: value for name, value in data.items() if value}


def _metadata(options: MetadataOptions, region: str) -> Object:
    ipv6 = {} if region in _NO_IPV6_METADATA else {"HttpProtocolIpv6": options.http_protocol_ipv6}
    return {
        "HttpEndpoint": options.http_endpoint,
        **ipv6,
        "HttpPutResponseHopLimit": options.http_put_response_hop_limit,
        "HttpTokens": options.http_tokens,
        # An account can turn them on. EC2 then refuses tag keys with a slash, and all our keys have one.
        "InstanceMetadataTags": "disabled",
    }


def _device(device: BlockDeviceMapping) -> Object:
    named = {"DeviceName": device.device_name} if device.device_name else {}
    if device.ebs is None:
        return named
    volume = device.ebs
    ebs = {
        "DeleteOnTermination": volume.delete_on_termination,
        "Encrypted": volume.encrypted,
        "Iops": volume.iops or None,
        "KmsKeyId": volume.kms_key_id or None,
        "SnapshotId": volume.snapshot_id or None,
        "Throughput": volume.throughput or None,
        "VolumeInitializationRate": volume.volume_initialization_rate,
        "VolumeSize": volume.volume_size_gib,
        "VolumeType": volume.volume_type or None,
    }
    return {**named, "Ebs": {name: value for name, value in ebs.items() if value is not None}}


def _interfaces(node_class: EC2NodeClass, resolved: Resolved, facts: TemplateFacts) -> list[Object]:
    groups = [group.id for group in resolved.security_groups]
    named = node_class.spec.network_interfaces
    if named:
        return [_interface(each, node_class, groups, facts) for each in named]
    # One card goes before the others, or an instance that needs a public address would need one for each.
    cards = [NetworkInterface(card, min(card, 1), "efa") for card in range(facts.efa_count)]
    if cards:
        return [_interface(each, node_class, groups, facts) for each in cards]
    plain = _interface(NetworkInterface(0, 0, ""), node_class, groups, facts)
    return [{name: value for name, value in plain.items() if name not in ("NetworkCardIndex", "InterfaceType")}]


def _interface(each: NetworkInterface, node_class: EC2NodeClass, groups: list[str], facts: TemplateFacts) -> Object:
    spec = node_class.spec
    place: Object = {
        "NetworkCardIndex": each.network_card_index,
        "DeviceIndex": each.device_index,
        "InterfaceType": each.interface_type,
        "Groups": groups,
    }
    if each.interface_type == "efa-only":
        return place  # it has no addresses, and RunInstances refuses any word about them
    addresses: Object = {
        "AssociatePublicIpAddress": spec.associate_public_ip_address,
        "Ipv6PrefixCount" if facts.is_ipv6 else "Ipv4PrefixCount": spec.ip_prefix_count,
        "ConnectionTrackingSpecification": _tracking(node_class) or None,
    }
    if facts.is_ipv6:
        addresses |= {"PrimaryIpv6": True, "Ipv6AddressCount": 1}
    return {**place, **{name: value for name, value in addresses.items() if value is not None}}


def _tracking(node_class: EC2NodeClass) -> Object:
    tracking = node_class.spec.connection_tracking
    if tracking is None:
        return {}
    periods = {
        "TcpEstablishedTimeout": tracking.tcp_established_timeout_s,
        "UdpStreamTimeout": tracking.udp_stream_timeout_s,
        "UdpTimeout": tracking.udp_timeout_s,
    }
    return {name: value for name, value in periods.items() if value is not None}


def _placement(resolved: Resolved, facts: TemplateFacts) -> Object:
    group = resolved.placement_group
    place: Object = {"Tenancy": facts.tenancy}
    if group is not None:
        place["GroupId"] = group.id
        place |= {"PartitionNumber": facts.partition} if facts.partition else {}
    return place


def _market(facts: TemplateFacts) -> Object:
    """Whose capacity the instance takes. Reserved: that reservation's and no other. Others: none that is reserved."""
    reservation = facts.reservation
    if facts.capacity_type != RESERVED or reservation is None:
        return {"CapacityReservationSpecification": {"CapacityReservationPreference": "none"}}
    market = "interruptible-capacity-reservation" if reservation.is_interruptible else ""
    market = "capacity-block" if reservation.is_block else market
    return {
        "CapacityReservationSpecification": {
            "CapacityReservationPreference": "capacity-reservations-only",
            "CapacityReservationTarget": {"CapacityReservationId": reservation.id},
        },
        **({"InstanceMarketOptions": {"MarketType": market}} if market else {}),
    }


def _tags(facts: TemplateFacts) -> list[Object]:
    kinds = ["network-interface", *(["spot-instances-request"] if facts.capacity_type == SPOT else [])]
    return [{"ResourceType": kind, "Tags": tag_list(facts.tags)} for kind in kinds] if facts.tags else []
