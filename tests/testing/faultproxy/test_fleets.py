"""CreateFleet through boto3: which offering is launched, what is reported, and what a token does."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from kerf.testing.faultproxy.stock import CloudReservation
from tests.awscloud import AwsCloud
from tests.testing.faultproxy.fleets import Fleets, code, ids, pools

SOLD_OUT = "InsufficientInstanceCapacity"


@pytest.fixture
def fleets(aws_cloud: AwsCloud) -> Fleets:
    """Fleets whose template names an image only."""
    return Fleets(aws_cloud)


def test_the_third_zone_is_launched_where_two_are_sold_out(fleets: Fleets) -> None:
    """The reply has the two as errors, with code, lifecycle, type and zone."""
    fleets.cloud.proxy.stock.sell_out("g6f.large", "us-east-1a")
    fleets.cloud.proxy.stock.sell_out("g6f.large", "us-east-1b", "spot")

    reply = fleets.ask(*(fleets.pool("g6f.large", zone) for zone in fleets.subnets), kind="spot")

    assert [("g6f.large", "us-east-1c")] == pools(reply["Instances"])
    assert [("g6f.large", "us-east-1a"), ("g6f.large", "us-east-1b")] == sorted(pools(reply["Errors"]))
    assert {(SOLD_OUT, "spot")} == {(error["ErrorCode"], error["Lifecycle"]) for error in reply["Errors"]}


def test_a_fleet_of_nothing_is_no_error_of_the_call(fleets: Fleets) -> None:
    """Everything sold out: a fleet without instances, and an error for each offering."""
    fleets.cloud.proxy.stock.sell_out()

    reply = fleets.ask(fleets.pool("m5.large"), fleets.pool("c5.large", "us-east-1b"))

    assert ([], 2) == (reply["Instances"], len(reply["Errors"]))


@pytest.mark.parametrize(
    "kind, options, expected",
    [
        ("on-demand", {"OnDemandOptions": {"AllocationStrategy": "lowest-price"}}, "c5.large"),
        ("on-demand", {"OnDemandOptions": {"AllocationStrategy": "prioritized"}}, "r5.large"),
        ("spot", {"SpotOptions": {"AllocationStrategy": "price-capacity-optimized"}}, "m5.large"),
        ("spot", {"SpotOptions": {"AllocationStrategy": "capacity-optimized"}}, "c5.large"),
        ("spot", {"SpotOptions": {"AllocationStrategy": "capacity-optimized-prioritized"}}, "r5.large"),
    ],
)
def test_the_strategy_decides_among_what_is_to_be_had(
    fleets: Fleets, kind: str, options: dict[str, Any], expected: str
) -> None:
    """By price, by priority, or by how much is left."""
    stock = fleets.cloud.proxy.stock
    for instance_type, on_demand, spot, left in (("r5.large", 3, 2, 5), ("m5.large", 2, 1, 6), ("c5.large", 1, 3, 9)):
        stock.price(instance_type, on_demand)
        stock.spot_price(instance_type, "us-east-1a", spot)
        stock.limit(instance_type, "*", "spot", left)

    overrides = [fleets.pool("m5.large", Priority=2.0), fleets.pool("c5.large", Priority=3.0)]
    reply = fleets.ask(*overrides, fleets.pool("r5.large", Priority=1.0), kind=kind, **options)

    assert [(expected, "us-east-1a")] == pools(reply["Instances"])


def test_a_fleet_comes_in_part(fleets: Fleets) -> None:
    """Five are asked for and two come, with an error for the rest; the next fleet is whole."""
    fleets.cloud.proxy.stock.cap(2)

    partial, whole = fleets.ask(fleets.pool(), count=5), fleets.ask(fleets.pool(), count=3)

    assert (2, [SOLD_OUT]) == (len(ids(partial)), [error["ErrorCode"] for error in partial["Errors"]])
    assert (3, []) == (len(ids(whole)), whole["Errors"])


def test_the_last_instances_of_an_offering_are_taken_once(fleets: Fleets) -> None:
    """Two are left of the first pool: a fleet of three takes the third from the next."""
    fleets.cloud.proxy.stock.limit("m5.large", "us-east-1a", "*", 2)

    reply = fleets.ask(fleets.pool(), fleets.pool(zone="us-east-1b"), count=3)

    assert [2, 1] == [len(part["InstanceIds"]) for part in reply["Instances"]]
    assert SOLD_OUT == fleets.ask(fleets.pool())["Errors"][0]["ErrorCode"]


def test_all_or_nothing_gives_the_stock_back(fleets: Fleets) -> None:
    """A minimum that cannot be met launches nothing and takes nothing."""
    fleets.cloud.proxy.stock.limit("m5.large", "us-east-1a", "*", 2)

    reply = fleets.ask(fleets.pool(), count=3, OnDemandOptions={"MinTargetCapacity": 3})

    assert [] == ids(reply)
    assert 2 == len(ids(fleets.ask(fleets.pool(), count=2)))


def test_a_token_gives_the_same_instance_again(fleets: Fleets) -> None:
    """One instance, however often it is asked for; it carries the token."""
    first = fleets.ask(fleets.pool(), ClientToken="uid-1")
    again = fleets.ask(fleets.pool(), ClientToken="uid-1")

    assert ids(first) == ids(again)
    assert "uid-1" == fleets.described(ids(first)[0])["ClientToken"]
    assert 1 == len(fleets.cloud.proxy.instances.living())


def test_a_token_refuses_another_request(fleets: Fleets) -> None:
    """Changed overrides with the token of before: IdempotentParameterMismatch."""
    fleets.ask(fleets.pool(), ClientToken="uid-1")

    with pytest.raises(ClientError) as error:
        fleets.ask(fleets.pool(zone="us-east-1b"), ClientToken="uid-1")
    assert "IdempotentParameterMismatch" == code(error.value)


@pytest.mark.parametrize("how", ["withdrawn", "never sold there"])
def test_a_type_is_refused_in_a_zone_that_does_not_sell_it(fleets: Fleets, how: str) -> None:
    """EC2 calls it InvalidFleetConfiguration; offerings do not list it."""
    kind = "m5.large" if how == "withdrawn" else "no9.large"
    fleets.cloud.proxy.stock.withdraw("m5.large", "us-east-1a")

    reply = fleets.ask(fleets.pool(kind), fleets.pool("c5.large"))

    assert [("c5.large", "us-east-1a")] == pools(reply["Instances"])
    assert ["InvalidFleetConfiguration"] == [error["ErrorCode"] for error in reply["Errors"]]
    offered = fleets.ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": [kind]}]
    )
    assert "us-east-1a" not in [offering["Location"] for offering in offered["InstanceTypeOfferings"]]


def test_an_exhausted_subnet_launches_nothing(fleets: Fleets) -> None:
    """It has no free address, and a fleet goes to the other subnet."""
    fleets.cloud.proxy.stock.exhaust(fleets.subnets["us-east-1a"])

    reply = fleets.ask(fleets.pool(), fleets.pool(zone="us-east-1b"))

    (subnet,) = fleets.ec2.describe_subnets(SubnetIds=[fleets.subnets["us-east-1a"]])["Subnets"]
    assert 0 == subnet["AvailableIpAddressCount"]
    assert [("m5.large", "us-east-1b")] == pools(reply["Instances"])
    assert ["InsufficientFreeAddressesInSubnet"] == [error["ErrorCode"] for error in reply["Errors"]]


def test_a_spot_instance_has_what_moto_leaves_out(aws_cloud: AwsCloud) -> None:
    """Spot request, groups, profile, zone id and tags of the request."""
    iam, ec2 = aws_cloud.client("iam"), aws_cloud.client("ec2")
    profile = iam.create_instance_profile(InstanceProfileName="nodes")["InstanceProfile"]["Arn"]
    group = ec2.create_security_group(GroupName="nodes", Description="nodes")["GroupId"]
    fleets = Fleets(aws_cloud, IamInstanceProfile={"Name": "nodes"}, SecurityGroupIds=[group])
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "kerf.dev/claim-uid", "Value": "uid-1"}]}]

    found = fleets.described(fleets.launch(kind="spot", TagSpecifications=tags))

    assert ("spot", "sir-") == (found["InstanceLifecycle"], found["SpotInstanceRequestId"][:4])
    assert [{"GroupId": group, "GroupName": "nodes"}] == found["SecurityGroups"]
    assert (profile, "use1-az6") == (found["IamInstanceProfile"]["Arn"], found["Placement"]["AvailabilityZoneId"])
    assert "uid-1" == {tag["Key"]: tag["Value"] for tag in found["Tags"]}["kerf.dev/claim-uid"]


@pytest.mark.parametrize(
    "data, expected",
    [
        ({"IamInstanceProfile": {"Name": "missing"}}, "InvalidParameterValue"),
        ({"SecurityGroupIds": ["sg-missing"]}, "InvalidGroup.NotFound"),
    ],
)
def test_a_template_that_names_what_is_missing_launches_nothing(
    aws_cloud: AwsCloud, data: dict[str, Any], expected: str
) -> None:
    """moto takes any profile and any group."""
    fleets = Fleets(aws_cloud, **data)

    reply = fleets.ask(fleets.pool())

    assert ([], [expected]) == (ids(reply), [error["ErrorCode"] for error in reply["Errors"]])


def test_a_reservation_is_used_up(aws_cloud: AwsCloud) -> None:
    """One instance is left: the first fleet has it, the second gets ReservationCapacityExceeded."""
    aws_cloud.proxy.stock.reserve(CloudReservation("cr-1", "m5.large", "us-east-1a", 1))
    target = {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}
    fleets = Fleets(aws_cloud, CapacityReservationSpecification=target)

    found = fleets.described(fleets.launch())
    refused = fleets.ask(fleets.pool())

    assert "cr-1" == found["CapacityReservationId"]
    assert ["ReservationCapacityExceeded"] == [error["ErrorCode"] for error in refused["Errors"]]
    (reservation,) = fleets.ec2.describe_capacity_reservations()["CapacityReservations"]
    assert (1, 0) == (reservation["TotalInstanceCount"], reservation["AvailableInstanceCount"])


def test_a_dry_run_launches_nothing(fleets: Fleets) -> None:
    """moto says that it would have been carried out."""
    with pytest.raises(ClientError) as error:
        fleets.ask(fleets.pool(), DryRun=True)
    assert "DryRunOperation" == code(error.value)
    assert [] == fleets.cloud.proxy.instances.living()


def test_a_template_is_deleted_once(fleets: Fleets) -> None:
    """A second time it is not found, which moto calls a missing parameter; a token creates one template."""
    for _ in range(2):
        fleets.ec2.create_launch_template(
            LaunchTemplateName="other", LaunchTemplateData={"ImageId": "ami-1"}, ClientToken="t"
        )
    fleets.ec2.delete_launch_template(LaunchTemplateName="other")

    with pytest.raises(ClientError) as error:
        fleets.ec2.delete_launch_template(LaunchTemplateName="other")
    assert "InvalidLaunchTemplateName.NotFoundException" == code(error.value)
