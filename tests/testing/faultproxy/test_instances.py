"""Instances through boto3: states over time, listings, tags, status, and how they end."""

import pytest
from botocore.exceptions import ClientError

from tests.awscloud import AwsCloud
from tests.testing.faultproxy.fleets import Fleets, code


@pytest.fixture
def fleets(aws_cloud: AwsCloud) -> Fleets:
    """Fleets whose template names an image only."""
    return Fleets(aws_cloud)


def test_states_take_their_time(fleets: Fleets) -> None:
    """Pending, running, shutting down, terminated, and after an hour forgotten."""
    fleets.cloud.proxy.instances.take_time(boot_s=30, end_s=20)
    instance, seen = fleets.launch(), []
    for seconds in (0, 29, 1):
        fleets.cloud.clock.advance(seconds)
        seen.append(fleets.state(instance))
    (change,) = fleets.ec2.terminate_instances(InstanceIds=[instance])["TerminatingInstances"]
    for seconds in (0, 19, 1):
        fleets.cloud.clock.advance(seconds)
        seen.append(fleets.state(instance))

    assert ["pending", "pending", "running", "shutting-down", "shutting-down", "terminated"] == seen
    assert ("running", "shutting-down") == (change["PreviousState"]["Name"], change["CurrentState"]["Name"])
    fleets.cloud.clock.advance(3600)
    with pytest.raises(ClientError) as error:
        fleets.state(instance)
    assert "InvalidInstanceID.NotFound" == code(error.value)


def test_a_young_instance_is_not_listed_yet(fleets: Fleets) -> None:
    """For ten seconds neither a listing nor a lookup by id has it."""
    fleets.cloud.proxy.instances.lag(10)
    instance = fleets.launch()

    assert [] == fleets.ec2.describe_instances()["Reservations"]
    with pytest.raises(ClientError):
        fleets.state(instance)
    fleets.cloud.clock.advance(10)
    assert "running" == fleets.state(instance)


def test_filters_and_pages_count_instances(fleets: Fleets) -> None:
    """A thousand from the table in pages; by tag, state and client token."""
    fleets.cloud.proxy.instances.seed(1000, {"cluster": "a"})
    fleets.launch(ClientToken="uid-1")
    pages = fleets.ec2.get_paginator("describe_instances").paginate(
        Filters=[{"Name": "tag:cluster", "Values": ["a"]}, {"Name": "instance-state-name", "Values": ["running"]}],
        PaginationConfig={"PageSize": 400},
    )

    assert [400, 400, 200] == [len(page["Reservations"]) for page in pages]
    by_token = fleets.ec2.describe_instances(Filters=[{"Name": "client-token", "Values": ["uid-1"]}])
    assert 1 == len(by_token["Reservations"])


def test_one_unknown_id_fails_the_whole_termination(fleets: Fleets) -> None:
    """The other instance keeps running; a repeated termination is accepted."""
    instance = fleets.launch()

    with pytest.raises(ClientError) as error:
        fleets.ec2.terminate_instances(InstanceIds=[instance, "i-missing"])
    assert ("InvalidInstanceID.NotFound", "running") == (code(error.value), fleets.state(instance))
    for _ in range(2):
        fleets.ec2.terminate_instances(InstanceIds=[instance])
    assert "terminated" == fleets.state(instance)


def test_tags_are_of_instances_that_exist(fleets: Fleets) -> None:
    """moto tags any id; EC2 does not."""
    instance = fleets.launch()
    fleets.ec2.create_tags(Resources=[instance], Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])
    fleets.ec2.delete_tags(Resources=[instance], Tags=[{"Key": "b"}])

    tags = {tag["Key"]: tag["Value"] for tag in fleets.described(instance)["Tags"]}
    assert ("1", None) == (tags["a"], tags.get("b"))
    with pytest.raises(ClientError) as error:
        fleets.ec2.create_tags(Resources=["i-missing"], Tags=[{"Key": "a", "Value": "1"}])
    assert "InvalidInstanceID.NotFound" == code(error.value)


def test_a_status_says_what_is_scheduled_and_what_fails(fleets: Fleets) -> None:
    """Checks of a healthy instance are ok."""
    healthy, broken = fleets.launch(), fleets.launch()
    fleets.cloud.proxy.instances.impair(broken)
    fleets.cloud.proxy.instances.schedule(broken, "system-reboot", fleets.cloud.clock() + 60)

    found = {s["InstanceId"]: s for s in fleets.ec2.describe_instance_status()["InstanceStatuses"]}
    assert ("ok", []) == (found[healthy]["SystemStatus"]["Status"], found[healthy]["Events"])
    assert ("impaired", "system-reboot") == (
        found[broken]["InstanceStatus"]["Status"],
        found[broken]["Events"][0]["Code"],
    )


def test_user_data_is_kept(aws_cloud: AwsCloud) -> None:
    """What the template says, as base64."""
    fleets = Fleets(aws_cloud, UserData="I2Nsb3Vk")

    reply = fleets.ec2.describe_instance_attribute(InstanceId=fleets.launch(), Attribute="userData")
    assert "I2Nsb3Vk" == reply["UserData"]["Value"]
