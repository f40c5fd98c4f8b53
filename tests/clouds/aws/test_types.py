"""Instance types by an EC2NodeClass: what its kubelet, disks and family make of a machine."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.catalog import aws
from kerf.clouds.aws.aliases import NVIDIA, STANDARD
from kerf.clouds.aws.nodeclass.decode import decode
from kerf.clouds.aws.nodeclass.status import CapacityReservation, Image, PlacementGroup, Resolved, Subnet
from kerf.clouds.aws.offerings import offerings_of
from kerf.clouds.aws.prices import PriceList, packaged
from kerf.clouds.aws.types import instance_type
from kerf.model.constraints import ARCH, CAPACITY_TYPE, OS, WINDOWS_BUILD, ZONE, ZONE_ID, Requirement, Requirements
from kerf.model.instancetypes import InstanceType
from kerf.model.quantities import quantity
from tests.clouds.aws.nodeclass.objects import an_object

AMD64 = Requirements([Requirement.of(ARCH, "In", ["amd64"])])
FOUND = Resolved(
    subnets=(Subnet("s-1", "us-east-1a"), Subnet("s-2", "us-east-1a"), Subnet("s-3", "us-west-9z")),
    images=(
        Image("ami-gpu", requirements=NVIDIA.intersect(AMD64)),
        Image("ami", requirements=STANDARD.intersect(AMD64)),
    ),
)
PRICES = packaged("us-east-1")


def made(name: str = "g5.xlarge", resolved: Resolved = FOUND, **spec: Any) -> InstanceType | None:
    """The type for an EC2NodeClass with that spec."""
    offerings = offerings_of(name, resolved, PRICES, {})
    return instance_type(PRICES.rows[name], decode(an_object(**spec)), resolved, offerings, "us-east-1")


def made_windows(name: str, family: str = "Windows2022") -> InstanceType:
    """The type for an EC2NodeClass of a Windows family, with an image of its own."""
    image = Image("ami-w", requirements=AMD64.intersect(Requirements([Requirement.of(OS, "In", ["windows"])])))
    kind = made(name, replace(FOUND, images=(image,)), amiFamily=family, amiSelectorTerms=[{"id": "ami-w"}])
    assert kind is not None
    return kind


def test_a_default_node_class_gives_the_type_of_the_catalogue() -> None:
    """Capacity, overhead, cards and labels are those that the packaged catalogue states for AL2023's defaults."""
    kind, packed = made(), {each.name: each for each in aws.load("us-east-1").types}["g5.xlarge"]
    assert kind is not None

    assert (packed.capacity, packed.overhead, packed.devices) == (kind.capacity, kind.overhead, kind.devices)
    sold = (ZONE, CAPACITY_TYPE, ZONE_ID)
    assert packed.requirements.without(sold) == kind.requirements.without(sold)
    assert {"us-east-1a"} == {each.zone for each in kind.offerings}


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({"kubelet": {"maxPods": 20}}, 20),
        ({"kubelet": {"podsPerCore": 3}}, 12),
        ({"kubelet": {"podsPerCore": 3}, "amiSelectorTerms": [{"alias": "bottlerocket@latest"}]}, 58),
        ({"networkInterfaces": [
            {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
            {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"},
        ]}, 44),
    ],
)  # fmt: skip
def test_pods_follow_from_kubelet_and_interfaces(spec: dict[str, Any], pods: int) -> None:
    """g5.xlarge has four interfaces of 15 addresses: 58 pods; one for EFA alone has no addresses."""
    kind = made(**spec)
    assert kind is not None
    assert pods == kind.capacity["pods"]


@pytest.mark.parametrize(
    ("spec", "disk"),
    [
        ({}, "20Gi"),
        ({"instanceStorePolicy": "RAID0"}, "250G"),
        ({"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "100Gi"}}]}, "100Gi"),
        ({"blockDeviceMappings": [{"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "100Gi"}}]}, "20Gi"),
        (
            {"blockDeviceMappings": [{"deviceName": "/dev/xvdb", "rootVolume": True, "ebs": {"volumeSize": "70Gi"}}]},
            "70Gi",
        ),
        ({"amiSelectorTerms": [{"alias": "bottlerocket@latest"}]}, "20Gi"),
    ],
)
def test_the_disk_is_that_of_kubelets_directory(spec: dict[str, Any], disk: str) -> None:
    """The root volume, the device of the family, or local disks as one."""
    kind = made(**spec)
    assert kind is not None
    assert quantity(disk) == kind.capacity["ephemeral-storage"]


def test_overhead_is_what_kubelet_keeps() -> None:
    """kubeReserved and systemReserved add up; evictionHard may be a share, and 100 % switches it off."""
    plain = made()
    kept = made(
        kubelet={
            "kubeReserved": {"memory": "1Gi"},
            "systemReserved": {"cpu": "100m", "memory": "256Mi"},
            "evictionHard": {"memory.available": "500Mi", "nodefs.available": "100%"},
        }
    )
    assert plain is not None
    assert kept is not None

    assert plain.overhead["cpu"] + 100 == kept.overhead["cpu"]
    assert quantity("1Gi") + quantity("756Mi") == kept.overhead["memory"]
    assert quantity("1Gi") == kept.overhead["ephemeral-storage"]


@pytest.mark.parametrize("kubelet", [{"maxPods": 20}, {"podsPerCore": 1}, {"maxPods": 700}])
@pytest.mark.parametrize(
    ("family", "is_counted"),
    [("AL2023", False), ("AL2", False), ("Custom", False), ("Bottlerocket", True)],
)
def test_memory_is_kept_for_the_pods_that_the_image_counts(
    kubelet: dict[str, Any], family: str, is_counted: bool
) -> None:
    """m5.24xlarge can address 737 pods: images of Amazon Linux keep 11 MiB for each of them, whatever kubelet takes."""
    kind = made("m5.24xlarge", amiFamily=family, amiSelectorTerms=[{"id": "ami-1"}], kubelet=kubelet)
    assert kind is not None

    pods = kind.capacity["pods"] if is_counted else 737
    assert quantity(f"{11 * pods + 255 + 100}Mi") == kind.overhead["memory"]


def test_windows_keeps_memory_for_the_pods_it_takes() -> None:
    """110, unless maxPods says otherwise."""
    assert quantity(f"{11 * 110 + 255 + 100}Mi") == made_windows("m5.24xlarge").overhead["memory"]


def test_windows_pods_have_addresses() -> None:
    """EKS's webhook makes each ask for one: m5.large has ten on an interface, of which the node takes one."""
    linux = made("m5.large")
    assert linux is not None
    address = "vpc.amazonaws.com/PrivateIPv4Address"

    assert (9, False) == (made_windows("m5.large").capacity[address], address in linux.capacity)


@pytest.mark.parametrize(("kinds", "efa"), [((), 1), (("interface",), 0), (("interface", "efa-only"), 1)])
def test_named_interfaces_say_how_many_are_for_efa(kinds: tuple[str, ...], efa: int) -> None:
    """A launch has these and no others; without any it has as many as the type can have, if a pod asks."""
    named = [{"networkCardIndex": 0, "deviceIndex": at, "interfaceType": kind} for at, kind in enumerate(kinds)]
    kind = made("g5.8xlarge", networkInterfaces=named)
    assert kind is not None

    assert efa == kind.capacity.get("vpc.amazonaws.com/efa", 0)


def test_a_type_that_no_image_runs_on_is_not_sold() -> None:
    """Arm, where only images for amd64 were found; and nothing is sold without a subnet."""
    assert made("m6g.large") is None
    assert made(resolved=Resolved(images=FOUND.images)) is None
    assert made("m5.large") is not None


def test_offerings_are_those_of_the_zones_the_prices_and_the_reservations() -> None:
    """A placement group is part of each; an expiring block is not sold; own instances of a reservation count."""
    resolved = Resolved(
        subnets=FOUND.subnets,
        reservations=(
            CapacityReservation("cr-1", "us-east-1a", "g5.xlarge", remaining=1),
            CapacityReservation("cr-2", "us-east-1a", "g5.xlarge", remaining=1, state="expiring"),
            CapacityReservation("cr-3", "us-east-1d", "g5.xlarge", remaining=1),
        ),
        placement_group=PlacementGroup("pg-1"),
    )
    prices = PriceList(
        zones={"g5.xlarge": ("us-east-1a", "us-east-1c")},
        on_demand={"g5.xlarge": 10},
        spot={("g5.xlarge", "us-east-1c"): 4},
    )
    found = offerings_of("g5.xlarge", resolved, prices, {"cr-1": 2})

    assert [("reserved", "cr-1", 3, "pg-1"), ("on-demand", "", None, "pg-1")] == [
        (each.capacity_type, each.reservation, each.most, each.placement_group) for each in found
    ]


def test_a_zone_has_the_id_of_its_subnets() -> None:
    """Each offering knows it, and the type has all of them; in a zone without an id a node has one all the same."""
    subnets = (Subnet("s-1", "us-east-1a", "use1-az6"), Subnet("s-2", "us-east-1b", "use1-az1"))
    kind, unknown = made(resolved=replace(FOUND, subnets=subnets)), made()
    assert kind is not None
    assert unknown is not None

    assert {("us-east-1a", "use1-az6"), ("us-east-1b", "use1-az1")} == {(o.zone, o.zone_id) for o in kind.offerings}
    assert Requirement.of(ZONE_ID, "In", ["use1-az1", "use1-az6"]) == kind.requirements[ZONE_ID]
    assert Requirement.of(ZONE_ID, "Exists") == unknown.requirements[ZONE_ID]


def test_what_a_reservation_sells_has_its_labels() -> None:
    """Type and interruptible, as Karpenter's offerings have them."""
    block = CapacityReservation("cr-1", "us-east-1a", "g5.xlarge", remaining=1, reservation_type="capacity-block")
    kind = made(resolved=replace(FOUND, reservations=(block,)))
    assert kind is not None

    assert {
        "karpenter.k8s.aws/capacity-reservation-type": "capacity-block",
        "karpenter.k8s.aws/capacity-reservation-interruptible": "false",
    } == dict(kind.offerings[0].reservation_labels)


def test_the_build_of_windows_is_that_of_the_family() -> None:
    """A Linux node has none, so no pool that requires a build gets one; a build needs no alias."""
    linux = made("m5.large")
    assert linux is not None

    assert Requirement.of(WINDOWS_BUILD, "DoesNotExist") == linux.requirements[WINDOWS_BUILD]
    for family, build in (("Windows2019", "10.0.17763"), ("Windows2022", "10.0.20348")):
        assert (
            Requirement.of(WINDOWS_BUILD, "In", [build]) == made_windows("m5.large", family).requirements[WINDOWS_BUILD]
        )
