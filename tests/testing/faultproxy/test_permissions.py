"""Policies that the proxy enforces, through boto3 and as plain documents."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from kerf.testing.faultproxy.policies import Need, is_allowed, read_policy
from tests.awscloud import AwsCloud
from tests.testing.faultproxy.fleets import Fleets, code, ids
from tests.testing.faultproxy.test_control import turn

ARN = "arn:aws:ec2:us-east-1:123456789012"


def a_policy(actions: Any, resources: Any = "*", **conditions: Any) -> dict[str, Any]:
    """One statement that allows."""
    made = {"Effect": "Allow", "Action": actions, "Resource": resources}
    return {"Version": "2012-10-17", "Statement": [{**made, **({"Condition": conditions} if conditions else {})}]}


TEAM = {"aws:RequestTag/team": "ml"}


@pytest.mark.parametrize(
    ("policy", "keys", "expected"),
    [
        (a_policy("ec2:*"), {}, True),
        (a_policy("EC2:runinstances"), {}, True),
        (a_policy(["ec2:Describe*", "ec2:RunInstances"], f"{ARN}:instance/*"), {}, True),
        (a_policy("ec2:Run?nstances", f"{ARN}:inst[a]nce/*"), {}, False),
        (a_policy("ec2:RunInstances", f"{ARN}:volume/*"), {}, False),
        (a_policy("ec2:RunInstances", StringEquals=TEAM), {}, False),
        (a_policy("ec2:RunInstances", StringEquals=TEAM), {"aws:requesttag/team": "ml"}, True),
        (a_policy("ec2:RunInstances", StringEquals={"k": ["a", "b"]}), {"k": "b"}, True),
        (a_policy("ec2:RunInstances", StringEquals={"k": "a*"}), {"k": "ab"}, False),
        (a_policy("ec2:RunInstances", StringLike={"k": "a*"}), {"k": "ab"}, True),
        (a_policy("ec2:RunInstances", StringLike={"k": "*"}), {"k": ""}, True),
        (a_policy("ec2:RunInstances", StringLike={"k": "*"}, StringEquals=TEAM), {"k": "x"}, False),
    ],
)
def test_a_document_allows_by_action_resource_and_every_condition(
    policy: dict[str, Any], keys: dict[str, str], expected: bool
) -> None:
    """Wildcards are `*` and `?`; one value of a key is enough, and a key that is missing fits nothing."""
    need = Need("ec2:RunInstances", f"{ARN}:instance/i-1", tuple(keys.items()))

    assert expected is is_allowed(read_policy(policy), need)


@pytest.mark.parametrize(
    "statement",
    [
        {"Effect": "Deny", "Action": "*", "Resource": "*"},
        {"Effect": "Allow", "NotAction": "ec2:*", "Resource": "*"},
        {"Effect": "Allow", "Action": "*", "Resource": "arn:aws:iam::${AWS::AccountId}:role/x"},
        {"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"ForAllValues:StringEquals": {"k": "a"}}},
    ],
)
def test_a_document_that_would_not_be_evaluated_is_refused(statement: dict[str, Any]) -> None:
    """Rather than allow anything, or nothing."""
    with pytest.raises(ValueError, match="not evaluated"):
        read_policy({"Statement": [statement]})


def test_a_policy_is_enforced_until_it_is_lifted(aws_cloud: AwsCloud) -> None:
    """Over HTTP as well; what is refused, by whom and on what stands in the record."""
    policies = {"Reading": a_policy("ec2:Describe*"), "Nothing": {"Statement": []}}
    turn(aws_cloud, "permissions/enforce", policies=policies)
    aws_cloud.client("ec2").describe_subnets()

    with pytest.raises(ClientError, match=r"not authorized to perform: eks:DescribeCluster on resource: .*cluster/c"):
        aws_cloud.client("eks").describe_cluster(name="c")
    (refused,) = aws_cloud.proxy.calls[-1].refused
    assert ("eks:DescribeCluster", "access") == (refused.action, aws_cloud.proxy.calls[-1].access_key)
    assert [] == turn(aws_cloud, "calls")[-2]["refused"]
    turn(aws_cloud, "permissions/lift")
    assert [] == aws_cloud.client("iam").list_roles()["Roles"]


def test_a_policy_of_one_key_leaves_the_others_alone(aws_cloud: AwsCloud) -> None:
    """A test sets up what its subject may not."""
    aws_cloud.proxy.permissions.enforce(a_policy("ec2:DescribeSubnets"), access_key="controller")

    assert [] == aws_cloud.client("iam").list_roles()["Roles"]


def test_what_a_fleet_may_not_launch_is_among_its_errors(aws_cloud: AwsCloud) -> None:
    """As EC2 says it: the call is answered, with an error for each override; with the tag it is launched."""
    fleets = Fleets(aws_cloud)
    fleet = a_policy("ec2:CreateFleet")
    launch = a_policy(["ec2:RunInstances", "ec2:CreateTags"], f"{ARN}:*", StringEquals=TEAM)
    used = a_policy("ec2:RunInstances", ["arn:aws:ec2:us-east-1::image/*", *(f"{ARN}:{kind}/*" for kind in USED)])
    aws_cloud.proxy.permissions.enforce({"fleet": fleet, "launch": launch, "used": used})
    overrides = [fleets.pool(), fleets.pool(zone="us-east-1b")]
    tags = [
        {"ResourceType": kind, "Tags": [{"Key": "team", "Value": "ml"}]}
        for kind in ("instance", "volume", "network-interface")
    ]

    errors = fleets.ask(*overrides)["Errors"]
    assert ["UnauthorizedOperation"] * 2 == [error["ErrorCode"] for error in errors]
    assert f"ec2:RunInstances on resource: {ARN}:instance/*" in errors[0]["ErrorMessage"]
    assert 1 == len(ids(fleets.ask(*overrides, TagSpecifications=tags)))


USED = ("subnet", "security-group", "launch-template")


def test_the_first_spot_request_of_an_account_makes_the_role_of_spot(aws_cloud: AwsCloud) -> None:
    """Whoever may not make it gets EC2's error; once it is there nobody has to."""
    fleets = Fleets(aws_cloud)
    aws_cloud.proxy.permissions.new_account()
    aws_cloud.proxy.faults.deny("iam:CreateServiceLinkedRole")
    refused = fleets.ask(fleets.pool(), kind="spot")["Errors"]
    aws_cloud.proxy.faults.permit()
    made = ids(fleets.ask(fleets.pool(), kind="spot"))
    aws_cloud.proxy.faults.deny("iam:CreateServiceLinkedRole")

    assert ["AuthFailure.ServiceLinkedRoleCreationNotPermitted"] == [error["ErrorCode"] for error in refused]
    assert (1, 1) == (len(made), len(ids(fleets.ask(fleets.pool(), kind="spot"))))


def test_refusals_have_the_form_of_their_service(aws_cloud: AwsCloud) -> None:
    """EC2 has a code of its own, IAM and SQS another, and JSON services a third."""
    aws_cloud.proxy.permissions.enforce({"Statement": []})
    calls: dict[str, Callable[[], Any]] = {
        "ec2": lambda: aws_cloud.client("ec2").describe_instances(),
        "iam": lambda: aws_cloud.client("iam").list_roles(),
        "ssm": lambda: aws_cloud.client("ssm").get_parameter(Name="/aws/service/x"),
        "sqs": lambda: aws_cloud.client("sqs").get_queue_url(QueueName="q"),
        "eks": lambda: aws_cloud.client("eks").describe_cluster(name="c"),
        "pricing": lambda: aws_cloud.client("pricing").get_products(ServiceCode="AmazonEC2"),
    }
    codes = {}
    for service, call in calls.items():
        with pytest.raises(ClientError) as error:
            call()
        codes[service] = code(error.value)

    exception = "AccessDeniedException"
    assert {
        "ec2": "UnauthorizedOperation",
        "iam": "AccessDenied",
        "ssm": exception,
        "sqs": "AccessDenied",
        "eks": exception,
        "pricing": exception,
    } == codes
