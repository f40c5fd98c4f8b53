"""EC2NodeClass from JSON: every field arrives, what is wrong is named by its path, what is new is named."""

from dataclasses import fields
from typing import Any

import pytest

from kerf.clouds.aws.nodeclass.decode import decode
from kerf.clouds.aws.nodeclass.model import (
    AMISelectorTerm,
    BlockDevice,
    BlockDeviceMapping,
    CapacityReservationSelectorTerm,
    ConnectionTracking,
    EC2NodeClassSpec,
    KubeletConfiguration,
    MetadataOptions,
    NetworkInterface,
    PlacementGroupSelector,
    SecurityGroupSelectorTerm,
    SubnetSelectorTerm,
)
from kerf.errors import DecodeError
from tests.clouds.aws.nodeclass.objects import FULL, an_object

INTERFACE = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}


def test_every_field_arrives() -> None:
    """In Python's spelling, with maps in the order of their keys and volumes in whole GiB, rounded up."""
    got = decode(an_object(**FULL))

    assert (
        EC2NodeClassSpec(
            ami_selector_terms=(
                AMISelectorTerm(id="ami-1"),
                AMISelectorTerm(name="my-*", owner="123456789012", tags=(("env", "*"), ("team", "ml"))),
                AMISelectorTerm(ssm_parameter="/my/image"),
            ),
            subnet_selector_terms=(SubnetSelectorTerm(id="subnet-1"), SubnetSelectorTerm(tags=(("team", "ml"),))),
            security_group_selector_terms=(
                SecurityGroupSelectorTerm(id="sg-1"),
                SecurityGroupSelectorTerm(name="nodes"),
                SecurityGroupSelectorTerm(tags=(("team", "ml"),)),
            ),
            capacity_reservation_selector_terms=(
                CapacityReservationSelectorTerm(id="cr-1"),
                CapacityReservationSelectorTerm("", "123456789012", "open", (("team", "ml"),)),
            ),
            placement_group_selector=PlacementGroupSelector(name="near"),
            ami_family="Bottlerocket",
            user_data="[settings]\n",
            instance_profile="my-profile",
            tags=(("team", "ml"),),
            kubelet=KubeletConfiguration(
                cluster_dns=("10.100.0.10",),
                max_pods=20,
                pods_per_core=2,
                system_reserved=(("cpu", "100m"),),
                kube_reserved=(("memory", "1Gi"),),
                eviction_hard=(("memory.available", "5%"),),
                eviction_soft=(("nodefs.available", "10Gi"),),
                eviction_soft_grace_period=(("nodefs.available", "2m"),),
                eviction_max_pod_grace_period=60,
                image_gc_high_threshold_percent=85,
                image_gc_low_threshold_percent=80,
                cpu_cfs_quota=False,
                others=(("topologyManagerPolicy", '"single-numa-node"'),),
            ),
            block_device_mappings=(
                BlockDeviceMapping(
                    "/dev/xvda",
                    BlockDevice(True, True, 3000, "key", "snap-1", 125, 100, volume_size_gib=94, volume_type="gp3"),
                    is_root_volume=True,
                ),
            ),
            instance_store_policy="RAID0",
            network_interfaces=(NetworkInterface(0, 0, "interface"), NetworkInterface(1, 1, "efa-only")),
            metadata_options=MetadataOptions("enabled", "disabled", 2, "optional"),
            connection_tracking=ConnectionTracking(600, 120, 30),
            nested_virtualization="enabled",
            associate_public_ip_address=False,
            ip_prefix_count=4,
            detailed_monitoring=True,
            context="reserved",
        )
        == got.spec
    )
    assert (("spec.kubelet.topologyManagerPolicy",), ()) == (got.unknown, got.unread)


def test_no_field_of_the_model_is_left_at_its_default_by_that_object() -> None:
    """So a field that is added to the model without the decoder fails the test above. Role and profile exclude."""
    spec, default = decode(an_object(**FULL)).spec, EC2NodeClassSpec()

    left = [each.name for each in fields(spec) if getattr(spec, each.name) == getattr(default, each.name)]
    assert ["role"] == left


def test_metadata_and_the_profile_of_the_status_arrive() -> None:
    """Generation is what conditions refer to; a deletion is an instant of the metadata."""
    raw = an_object("gpu") | {"status": {"instanceProfile": "demo_1"}}
    raw["metadata"]["deletionTimestamp"] = "2026-11-25T10:00:00Z"

    got = decode(raw)

    assert ("gpu", "uid-gpu", 3, True, "demo_1") == (
        got.name,
        got.uid,
        got.generation,
        got.is_deleting,
        got.instance_profile,
    )


@pytest.mark.parametrize(
    ("spec", "family"),
    [
        ({}, "AL2023"),
        ({"amiSelectorTerms": [{"alias": "windows2022@latest"}]}, "Windows2022"),
        ({"amiFamily": "Custom"}, "Custom"),
        ({"amiFamily": "AL2", "amiSelectorTerms": [{"id": "ami-1"}]}, "AL2"),
    ],
)
def test_the_family_is_that_of_the_alias_unless_it_is_said(spec: dict[str, Any], family: str) -> None:
    """It decides the form of the user data."""
    assert family == decode(an_object(**spec)).family


def test_absent_metadata_options_are_the_defaults_of_the_crd() -> None:
    """A server fills them in; a file that was never on a server means the same."""
    assert MetadataOptions("enabled", "disabled", 1, "required") == decode(an_object()).spec.metadata_options


def test_fields_of_a_newer_version_are_named_and_do_no_harm() -> None:
    """They have no effect, and a report can say so."""
    got = decode(an_object(warmPool=3, metadataOptions={"httpTokens": "required", "instanceTags": "on"}))

    assert ("spec.warmPool", "spec.metadataOptions.instanceTags") == got.unknown


def test_a_field_of_kubelet_is_passed_on_by_al2023_alone() -> None:
    """nodeadm takes the whole configuration; the other families have settings or flags that Kerf would have to know."""
    kubelet = {"topologyManagerPolicy": "best-effort"}
    got = decode(an_object(kubelet=kubelet, warmPool=3))
    other = decode(an_object(kubelet=kubelet, amiSelectorTerms=[{"alias": "bottlerocket@latest"}]))

    assert (("spec.warmPool",), ("spec.kubelet.topologyManagerPolicy",)) == (got.unknown, got.unread)
    assert (("spec.kubelet.topologyManagerPolicy",), ()) == (other.unknown, other.unread)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"role": None}, "spec.role"),
        ({"instanceProfile": "both"}, "spec.role"),
        ({"amiSelectorTerms": []}, "spec.amiSelectorTerms"),
        ({"amiSelectorTerms": [{"id": "ami-1"}]}, "spec.amiFamily"),
        ({"amiSelectorTerms": [{"alias": "windows2022@v1"}]}, "spec.amiSelectorTerms[0].alias"),
        ({"amiSelectorTerms": [{"alias": "al2023@latest", "id": "ami-1"}]}, "spec.amiSelectorTerms[0].id"),
        ({"amiFamily": "AL2"}, "spec.amiFamily"),
        ({"subnetSelectorTerms": [{"id": "subnet-1", "tags": {"a": "b"}}]}, "spec.subnetSelectorTerms[0].id"),
        (
            {"securityGroupSelectorTerms": [{"name": "a", "tags": {"a": "b"}}]},
            "spec.securityGroupSelectorTerms[0].name",
        ),
        ({"subnetSelectorTerms": [{"tags": {"a": ""}}]}, "spec.subnetSelectorTerms[0].tags.a"),
        ({"capacityReservationSelectorTerms": [{"ownerID": "1"}]}, "spec.capacityReservationSelectorTerms[0].ownerID"),
        ({"capacityReservationSelectorTerms": [{"ownerID": "1" * 12}]}, "spec.capacityReservationSelectorTerms[0]"),
        ({"placementGroupSelector": {}}, "spec.placementGroupSelector"),
        ({"placementGroupSelector": {"id": "pg-1", "name": "a"}}, "spec.placementGroupSelector"),
        ({"tags": {"kubernetes.io/cluster/demo": "owned"}}, 'spec.tags["kubernetes.io/cluster/demo"]'),
        ({"tags": {"karpenter.sh/nodepool": "a"}}, 'spec.tags["karpenter.sh/nodepool"]'),
        ({"connectionTracking": {}}, "spec.connectionTracking"),
        ({"connectionTracking": {"udpTimeout": 61}}, "spec.connectionTracking.udpTimeout"),
        ({"blockDeviceMappings": [{"ebs": {}}]}, "spec.blockDeviceMappings[0].ebs"),
        (
            {"blockDeviceMappings": [{"ebs": {"volumeSize": "8Gi", "volumeInitializationRate": 100}}]},
            "spec.blockDeviceMappings[0].ebs.snapshotID",
        ),
        ({"networkInterfaces": [{**INTERFACE, "deviceIndex": 1}]}, "spec.networkInterfaces"),
        ({"networkInterfaces": [INTERFACE, INTERFACE]}, "spec.networkInterfaces[1]"),
        ({"networkInterfaces": [{**INTERFACE, "interfaceType": "efa"}]}, "spec.networkInterfaces[0].interfaceType"),
        ({"kubelet": {"evictionHard": {"memory": "1Gi"}}}, "spec.kubelet.evictionHard.memory"),
        *(
            ({"kubelet": {"evictionHard": {"memory.available": each}}}, 'spec.kubelet.evictionHard["memory.available"]')
            for each in ("-1Gi", "0", "", "-5%", "101%")
        ),
        ({"kubelet": {"kubeReserved": {"cpu": "-1"}}}, "spec.kubelet.kubeReserved.cpu"),
        (
            {"kubelet": {"imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 80}},
            "spec.kubelet.imageGCHighThresholdPercent",
        ),
        (
            {"kubelet": {"evictionSoft": {"memory.available": "1Gi"}}},
            'spec.kubelet.evictionSoftGracePeriod["memory.available"]',
        ),
    ],
)
def test_what_karpenter_refuses_is_refused_with_its_path(spec: dict[str, Any], path: str) -> None:
    """The rules of the CRD and of its controller."""
    with pytest.raises(DecodeError) as raised:
        decode(an_object(**spec))

    assert path == raised.value.path


def test_a_server_holds_an_id_with_tags_beside_a_right_term() -> None:
    """The CRD refuses it only where every term is so; the id selects then."""
    terms = [{"id": "subnet-1", "tags": {"a": "b"}}, {"id": "subnet-2"}]

    assert ("subnet-1", "subnet-2") == tuple(
        term.id for term in decode(an_object(subnetSelectorTerms=terms)).spec.subnet_selector_terms
    )


def test_a_field_of_a_newer_kubelet_that_is_nested_without_end_is_refused() -> None:
    """It is passed on unread, as text; Python gives up on it, and the condition says so."""
    value: dict[str, Any] = {}
    for _ in range(5000):
        value = {"a": value}
    with pytest.raises(DecodeError) as raised:
        decode(an_object(kubelet={"newer": value}))

    assert ("spec.kubelet.newer", "a value that is not nested so deep") == (raised.value.path, raised.value.expected)
