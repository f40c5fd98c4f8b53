"""Why an instance is not what its EC2NodeClass says now: reasons and their order."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.cloudprovider import Instance
from kerf.clouds.aws.aliases import NVIDIA, STANDARD
from kerf.clouds.aws.drift import drifted
from kerf.clouds.aws.instances import Listed
from kerf.clouds.aws.nodeclass.status import (
    FOUND_CONDITIONS,
    CapacityReservation,
    Image,
    PlacementGroup,
    Resolved,
    SecurityGroup,
    Subnet,
)
from kerf.clouds.aws.prices import packaged
from kerf.clouds.aws.types import requirements_of
from kerf.model.constraints import Requirements
from kerf.model.instancetypes import OfferingKey

KEY = OfferingKey("g5.xlarge", "us-east-1a", "reserved", "cr-1", "pg-1")
HELD = Listed(
    Instance("aws:///us-east-1a/i-1", "uid-1", "gpu-1", KEY, image="ami-gpu", subnet="s-1"),
    groups=("sg-1", "sg-2"),
    node_class_hash="kerf-v1-abc",
)
FOUND = Resolved(
    subnets=(Subnet("s-1", "us-east-1a"),),
    security_groups=(SecurityGroup("sg-2"), SecurityGroup("sg-1")),
    images=(Image("ami-gpu", requirements=NVIDIA), Image("ami", requirements=STANDARD)),
    reservations=(CapacityReservation("cr-1", "us-east-1a", "g5.xlarge"),),
    placement_group=PlacementGroup("pg-1"),
)
G5 = requirements_of(packaged("us-east-1").rows["g5.xlarge"])
OTHER: dict[str, dict[str, Any]] = {
    "NodeClassDrift": {"digest": "def"},
    "AMIDrift": {"images": (Image("ami-new", requirements=NVIDIA), Image("ami-gpu", requirements=NVIDIA))},
    "SecurityGroupDrift": {"security_groups": (SecurityGroup("sg-1"),)},
    "SubnetDrift": {"subnets": (Subnet("s-2", "us-east-1a"),)},
    "CapacityReservationDrift": {"reservations": ()},
    "PlacementGroupDrift": {"placement_group": None},
}


def reason(held: Listed = HELD, kind: Requirements | None = G5, digest: str = "abc", **found: Any) -> str | None:
    """The reason, with something else found."""
    return drifted(held, digest, replace(FOUND, **found), kind)


def test_what_is_as_it_should_be_has_no_reason() -> None:
    """The order of groups does not count."""
    assert reason() is None


@pytest.mark.parametrize("number", range(len(OTHER)))
def test_the_first_reason_in_karpenters_order_is_named(number: int) -> None:
    """Of several the first: from each place on, all that follow differ as well."""
    names = list(OTHER)[number:]
    changed: dict[str, Any] = {}
    for name in names:
        changed |= OTHER[name]

    assert names[0] == reason(**changed)


@pytest.mark.parametrize("empty", ["images", "security_groups", "subnets"])
def test_an_empty_selection_says_nothing(empty: str) -> None:
    """It is a mistake or a call that failed."""
    found: dict[str, Any] = {empty: ()}
    assert reason(**found) is None


@pytest.mark.parametrize("held", ["", "karpenter-v6-abc"])
def test_a_digest_of_another_version_says_nothing(held: str) -> None:
    """What Karpenter launched, or an older Kerf."""
    assert reason(replace(HELD, node_class_hash=held), digest="def") is None


def test_an_unknown_type_has_drifted_only_from_an_image_that_is_not_selected() -> None:
    """Which of the images it would get cannot be said."""
    assert reason(kind=None) is None
    assert "AMIDrift" == reason(kind=None, images=(Image("ami-new"),))


@pytest.mark.parametrize(("condition", "missing"), [(4, {"placement_group": None}), (5, {"reservations": ()})])
def test_what_aws_has_not_answered_makes_no_drift(condition: int, missing: dict[str, Any]) -> None:
    """After a restart nothing is known of reservations and groups until AWS has said it."""
    assert reason(**missing) is not None
    assert reason(**missing, unknown=frozenset({FOUND_CONDITIONS[condition]})) is None


@pytest.mark.parametrize(
    ("name", "group", "said"),
    [
        ("near", PlacementGroup("pg-1", "near"), None),
        ("near", PlacementGroup("pg-1", "far"), "PlacementGroupDrift"),
        ("near", PlacementGroup("pg-1"), None),
        ("near", None, "PlacementGroupDrift"),
        ("", PlacementGroup("pg-1", "near"), "PlacementGroupDrift"),
        ("", None, None),
    ],
)
def test_a_placement_group_counts_by_its_name_where_ec2_gives_no_id(
    name: str, group: PlacementGroup | None, said: str | None
) -> None:
    """DescribeInstances has the name in any case."""
    instance = replace(HELD.instance, offering=replace(KEY, placement_group=""))
    assert said == reason(replace(HELD, instance=instance, placement_group=name), placement_group=group)
