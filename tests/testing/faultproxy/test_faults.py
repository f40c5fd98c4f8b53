"""Calls that go wrong, through boto3: throttling, lost replies, errors, HTML, missing permissions."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from kerf.testing.faultproxy.buckets import BucketSize
from tests.awscloud import AwsCloud
from tests.testing.faultproxy.fleets import Fleets, code, ids


@pytest.fixture
def fleets(aws_cloud: AwsCloud) -> Fleets:
    """Fleets whose template names an image only."""
    return Fleets(aws_cloud)


def test_a_lost_reply_was_carried_out(fleets: Fleets) -> None:
    """The connection breaks and the instance runs; the same token finds it."""
    fleets.cloud.proxy.faults.lose_reply("CreateFleet")

    with pytest.raises(ConnectionClosedError):
        fleets.ask(fleets.pool(), ClientToken="uid-1")
    (instance,) = fleets.cloud.proxy.instances.living()
    assert [instance.id] == ids(fleets.ask(fleets.pool(), ClientToken="uid-1"))
    assert ["lost", "ok"] == [c.outcome for c in fleets.cloud.proxy.calls if c.name == "ec2:CreateFleet"]


def test_a_lost_request_was_not(fleets: Fleets) -> None:
    """The connection breaks before anything runs."""
    fleets.cloud.proxy.faults.lose_request("CreateFleet")

    with pytest.raises(ConnectionClosedError):
        fleets.ask(fleets.pool())
    assert [] == fleets.cloud.proxy.instances.living()


def test_an_action_is_throttled_by_its_bucket(fleets: Fleets) -> None:
    """Two tokens and one a second: the third call at once is refused, and taken a second later."""
    fleets.cloud.proxy.buckets.sizes["DescribeInstances"] = BucketSize(2, 1)

    codes = []
    for seconds in (0, 0, 0, 1):
        fleets.cloud.clock.advance(seconds)
        try:
            fleets.ec2.describe_instances()
            codes.append("")
        except ClientError as error:
            codes.append(code(error))
    assert ["", "", "RequestLimitExceeded", ""] == codes


def test_instances_are_throttled_by_the_resource_bucket(fleets: Fleets) -> None:
    """A fleet takes a token an instance from RunInstances' bucket of 1,000, refilled with 2 a second."""
    fleets.cloud.proxy.stock.sell_out()
    fleets.ask(fleets.pool(), count=1000)

    with pytest.raises(ClientError) as error:
        fleets.ask(fleets.pool(), count=2)
    fleets.cloud.clock.advance(1)
    assert "RequestLimitExceeded" == code(error.value)
    assert [] == ids(fleets.ask(fleets.pool(), count=2))


def test_throttling_that_is_ordered_ends(fleets: Fleets) -> None:
    """Three times, then the call is taken."""
    fleets.cloud.proxy.faults.throttle("CreateFleet", 3)

    for _ in range(3):
        with pytest.raises(ClientError) as error:
            fleets.ask(fleets.pool())
        assert "RequestLimitExceeded" == code(error.value)
    assert 1 == len(ids(fleets.ask(fleets.pool())))
    assert 4 == fleets.cloud.proxy.count("CreateFleet")


def test_errors_have_the_form_of_their_service(aws_cloud: AwsCloud) -> None:
    """boto3 reads the code from XML of EC2 and IAM and from JSON of SSM, SQS and EKS."""
    calls: dict[str, Callable[[], Any]] = {
        "DescribeInstances": lambda: aws_cloud.client("ec2").describe_instances(),
        "ListRoles": lambda: aws_cloud.client("iam").list_roles(),
        "GetParameter": lambda: aws_cloud.client("ssm").get_parameter(Name="/aws/x"),
        "ListQueues": lambda: aws_cloud.client("sqs").list_queues(),
        "DescribeCluster": lambda: aws_cloud.client("eks").describe_cluster(name="c"),
    }
    codes = {}
    for action, call in calls.items():
        aws_cloud.proxy.faults.fail(action, "ExpiredToken", status=403)
        with pytest.raises(ClientError) as error:
            call()
        codes[action] = code(error.value)

    assert dict.fromkeys(calls, "ExpiredToken") == codes


def test_html_is_no_reply(aws_cloud: AwsCloud) -> None:
    """botocore raises ResponseParserError, no ClientError."""
    aws_cloud.proxy.faults.answer_html("DescribeInstances")

    with pytest.raises(ResponseParserError):
        aws_cloud.client("ec2").describe_instances()


def test_a_late_reply_ends_in_a_timeout_of_the_client(fleets: Fleets) -> None:
    """The call was carried out all the same."""
    fleets.cloud.proxy.faults.delay("CreateFleet", 1)
    fleets.ec2 = fleets.cloud.client("ec2", read_timeout=0.1)

    with pytest.raises(ReadTimeoutError):
        fleets.ask(fleets.pool())
    deadline_s = time.monotonic() + 60
    while not fleets.cloud.proxy.instances.living() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert 1 == len(fleets.cloud.proxy.instances.living())


@pytest.mark.parametrize("when, running", [("before", 0), ("after", 1)])
def test_a_held_call_waits(fleets: Fleets, when: str, running: int) -> None:
    """Before the call nothing runs, after it the instance does: there a test ends the caller."""
    held = fleets.cloud.proxy.faults.hold("CreateFleet", when)
    caller = threading.Thread(target=fleets.ask, args=[fleets.pool()])
    caller.start()

    assert held.reached.wait(60)
    assert running == len(fleets.cloud.proxy.instances.living())
    held.release()
    caller.join()
    assert 1 == len(fleets.cloud.proxy.instances.living())


@pytest.mark.parametrize("when, running", [("before", 0), ("after", 1)])
def test_a_held_call_may_be_lost(fleets: Fleets, when: str, running: int) -> None:
    """Where its caller was ended: nothing was done, or its caller has not heard of it."""
    held = fleets.cloud.proxy.faults.hold("CreateFleet", when)
    refused: list[Exception] = []

    def ask() -> None:
        try:
            fleets.ask(fleets.pool())
        except ConnectionClosedError as error:
            refused.append(error)

    caller = threading.Thread(target=ask)
    caller.start()
    assert held.reached.wait(60)
    held.drop()
    caller.join()

    assert (1, running) == (len(refused), len(fleets.cloud.proxy.instances.living()))


def test_a_fleet_needs_more_than_its_own_permission(fleets: Fleets) -> None:
    """RunInstances for the launch and CreateTags for tags at creation, as IAM asks."""
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "a", "Value": "1"}]}]
    refused = []
    for name in ("ec2:RunInstances", "ec2:CreateTags"):
        fleets.cloud.proxy.faults.deny(name)
        (error,) = fleets.ask(fleets.pool(), TagSpecifications=tags)["Errors"]
        refused.append((error["ErrorCode"], name in error["ErrorMessage"]))
        fleets.cloud.proxy.faults.permit(name)

    assert [("UnauthorizedOperation", True)] * 2 == refused
    assert 1 == len(ids(fleets.ask(fleets.pool(), TagSpecifications=tags)))


def test_only_what_is_allowed_is_permitted(aws_cloud: AwsCloud) -> None:
    """With patterns as policies have them; the record says what was needed."""
    aws_cloud.proxy.faults.allow_only(["ec2:Describe*"])
    aws_cloud.client("ec2").describe_subnets()

    with pytest.raises(ClientError) as error:
        aws_cloud.client("iam").list_roles()
    assert "AccessDenied" == code(error.value)
    assert ("ec2:DescribeSubnets", "iam:ListRoles") == aws_cloud.proxy.used()
