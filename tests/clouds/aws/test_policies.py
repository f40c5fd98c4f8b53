"""The policies of Kerf's role are exactly what Kerf does: the fault proxy enforces them, and each line is taken away.

A line is an action or a resource of a statement. Whatever a case of `flows` needs beside its own calls is judged too:
RunInstances, tags at creation, the role that is passed, the role of spot.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kerf.cloudprovider import LaunchFailed
from kerf.clouds.aws.api import ApiFailed
from kerf.clouds.aws.iam import STATEMENTS, Statement
from kerf.errors import CloudError
from kerf.testing.faultproxy.calls import Recorded
from kerf.testing.faultproxy.policies import Need, is_allowed, read_policy
from tests.clouds.aws import flows
from tests.clouds.aws.eks import ACCESS_KEY, ROLE, Eks, documents


@dataclass(frozen=True)
class Line:
    """A line of the table: an action or a resource of a statement."""

    sid: str
    text: str

    def __str__(self) -> str:
        """For the name of a test."""
        return f"{self.sid}: {self.text.rpartition(':')[2]}"


NEEDED_BY: dict[str, flows.Case | dict[str, flows.Case]] = {
    "UseWhatNodesAreMadeOf": {
        "": flows.an_instance_starts,
        "snapshot/*": flows.an_instance_starts_with_a_disk_of_a_snapshot,
        "capacity-reservation/*": flows.a_reserved_instance_starts,
        "placement-group/*": flows.an_instance_starts_in_a_placement_group,
    },
    "UseLaunchTemplatesOfTheCluster": flows.an_instance_starts,
    "LaunchWithTheTagsOfTheCluster": flows.the_first_spot_instance_starts,
    "CreateLaunchTemplatesWithTheTagsOfTheCluster": flows.a_node_class_becomes_ready,
    "TagAtCreation": {
        "": flows.the_first_spot_instance_starts,
        "launch-template/*": flows.a_node_class_becomes_ready,
    },
    "EndInstancesOfTheCluster": flows.an_instance_is_ended,
    "DeleteLaunchTemplatesOfTheCluster": flows.a_node_class_is_released,
    "PassTheNodeRole": flows.an_instance_starts,
    "CreateInstanceProfiles": flows.a_node_class_becomes_ready,
    "TagInstanceProfiles": flows.a_node_class_becomes_ready,
    "ChangeInstanceProfilesOfTheCluster": {
        "": flows.a_node_class_becomes_ready,
        "RemoveRoleFromInstanceProfile": flows.a_node_class_is_released,
        "DeleteInstanceProfile": flows.a_node_class_is_released,
    },
    "CreateTheRoleOfSpot": flows.the_first_spot_instance_starts,
    "ReadTheCluster": flows.the_cluster_is_found,
    "ReadTheQueue": flows.a_spot_notice_is_read,
    "LookAroundInTheRegion": {
        "": flows.a_node_class_becomes_ready,
        "DescribeInstanceStatus": flows.a_broken_instance_is_seen,
        "DescribeInstanceTypeOfferings": flows.types_and_prices_are_asked_for,
        "DescribeInstanceTypes": flows.types_and_prices_are_asked_for,
        "DescribeInstances": flows.what_has_no_claim_is_found,
        "DescribeLaunchTemplates": flows.a_node_class_is_released,
        "DescribeSpotPriceHistory": flows.types_and_prices_are_asked_for,
    },
    "ReadPublicParameters": flows.a_node_class_becomes_ready,
    "ReadPrices": flows.types_and_prices_are_asked_for,
    "ReadInstanceProfiles": {
        "": flows.a_node_class_becomes_ready,
        "ListInstanceProfiles": flows.a_node_class_is_released,
    },
}
"""The case that fails without a line, by the statement's name and how the line ends; by an empty text all others."""


def lines() -> Iterator[Line]:
    """Every line; the one action or resource of a statement stands for all of it."""
    for statement in STATEMENTS:
        for text in (*statement.actions, *statement.resources):
            yield Line(statement.sid, text)


def case_of(line: Line) -> flows.Case:
    """The case that needs the line."""
    held = NEEDED_BY[line.sid]
    if not isinstance(held, dict):
        return held
    return next((case for end, case in held.items() if end and line.text.endswith(f":{end}")), held[""])


def without(line: Line) -> list[Statement]:
    """The table without a line. A statement without actions or resources says nothing."""
    kept = []
    for each in STATEMENTS:
        if each.sid == line.sid:
            actions = tuple(text for text in each.actions if text != line.text)
            each = replace(each, actions=actions, resources=tuple(t for t in each.resources if t != line.text))
        kept += [each] if each.actions and each.resources else []
    return kept


def began(eks: Eks, case: flows.Case) -> Iterator[None]:
    """A case that is prepared, by a provider that knows nothing yet, long after whatever was before."""
    eks.may()
    eks.cloud.clock.advance(3600)
    eks.provider = eks.life()
    steps = case(eks)
    next(steps)
    return steps


def of_kerf(eks: Eks, first: int = 0) -> Sequence[Recorded]:
    """Kerf's own calls."""
    return [call for call in eks.cloud.proxy.calls[first:] if call.access_key == ACCESS_KEY]


def test_all_that_kerf_does_is_allowed(eks: Eks) -> None:
    """No call of a case lacks a line, nor does what AWS checks beside it."""
    for case in flows.QUICK:
        list(began(eks, case))

    assert [] == [(call.name, call.refused) for call in of_kerf(eks) if call.refused]
    called = {call.name for call in of_kerf(eks) if not _dry(call)}
    assert {
        "ec2:CreateTags",
        "ec2:RunInstances",
        "iam:CreateServiceLinkedRole",
        "iam:PassRole",
        "iam:TagInstanceProfile",
    } == {name for call in of_kerf(eks) for name in call.uses} - called
    _keeps_something_out({need for call in of_kerf(eks) for need in call.needs})


def _keeps_something_out(made: Iterable[Need]) -> None:
    """Each condition does: of calls as Kerf makes them, but with another tag, service or region, no statement allows
    one, and without the condition its own statement would."""
    needs = list(made)
    allowed = [each for document in documents().values() for each in read_policy(document)]
    for statement in allowed:
        granted = [need for need in needs if statement.allows(need)]
        for condition in statement.conditions:
            _, key, _ = condition
            others = [altered(need, key) for need in granted]
            freed = replace(statement, conditions=tuple(each for each in statement.conditions if each != condition))
            assert others, key
            assert not any(is_allowed(allowed, need) for need in others), key
            assert all(freed.allows(need) for need in others), key


@pytest.mark.long
def test_asking_for_types_and_prices_is_allowed(eks: Eks) -> None:
    """Of a whole region."""
    for case in flows.SLOW:
        list(began(eks, case))

    assert [] == [(call.name, call.refused) for call in of_kerf(eks) if call.refused]


def _dry(call: Recorded) -> bool:
    """Whether it only asked whether it might."""
    return call.outcome == "DryRunOperation"


@pytest.mark.parametrize(
    "case",
    [*flows.QUICK, *(pytest.param(case, marks=pytest.mark.long) for case in flows.SLOW)],
    ids=lambda case: case.__name__,
)
def test_without_a_line_the_case_fails_that_needs_it(eks: Eks, case: flows.Case) -> None:
    """At the proxy, which refuses just what the line allows; a line that no case needs would be no use."""
    named = [line for line in lines() if case_of(line) is case]
    assert named
    allowed = [each for document in documents().values() for each in read_policy(document)]
    for line in named:
        steps = began(eks, case)
        first = len(eks.cloud.proxy.calls)
        eks.may(without(line))
        with pytest.raises((AssertionError, CloudError)):
            next(steps, None)
        refused = {need for call in of_kerf(eks, first) for need in call.refused}
        assert refused, str(line)
        assert all(is_allowed(allowed, need) for need in refused)


def altered(need: Need, key: str) -> Need:
    """The same without what a key says; a tag that may have any value is left out."""
    keys = dict(need.keys)
    if keys.pop(key) and not key.endswith(("nodepool", "ec2nodeclass")):
        keys[key] = "another"
    return replace(need, keys=tuple(sorted(keys.items())))


def others(eks: Eks) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Calls about what is not the cluster's: service, operation and parameters."""
    cloud = eks.cloud
    ec2, iam, sqs = cloud.client("ec2"), cloud.client("iam"), cloud.client("sqs")
    cloud.proxy.instances.seed(1, {"kubernetes.io/cluster/other": "owned", "karpenter.sh/nodepool": "gpu"})
    (instance,) = cloud.proxy.instances.all()
    ec2.create_launch_template(LaunchTemplateName="theirs", LaunchTemplateData={"ImageId": "ami-1"})
    iam.create_role(RoleName="Administrator", AssumeRolePolicyDocument="{}")
    iam.create_instance_profile(InstanceProfileName="theirs")
    url = sqs.create_queue(QueueName="theirs")["QueueUrl"]
    (profile,) = [each for each in iam.list_instance_profiles()["InstanceProfiles"] if each["Path"] != "/"]
    ours = profile["InstanceProfileName"]
    iam.remove_role_from_instance_profile(InstanceProfileName=ours, RoleName=ROLE)
    disk = {"ImageId": "ami-1", "MinCount": 1, "MaxCount": 1, "InstanceType": "m5.large"}
    return {
        "an instance of another cluster": ("ec2", "TerminateInstances", {"InstanceIds": [instance.id]}),
        "a launch template of another": ("ec2", "DeleteLaunchTemplate", {"LaunchTemplateName": "theirs"}),
        "an instance without tags": ("ec2", "RunInstances", disk),
        "tags of an instance": (
            "ec2",
            "CreateTags",
            {"Resources": [instance.id], "Tags": [{"Key": "a", "Value": "b"}]},
        ),
        "a stronger role": (
            "iam",
            "AddRoleToInstanceProfile",
            {"InstanceProfileName": ours, "RoleName": "Administrator"},
        ),
        "a profile of another": ("iam", "DeleteInstanceProfile", {"InstanceProfileName": "theirs"}),
        "a profile without tags": ("iam", "CreateInstanceProfile", {"InstanceProfileName": "new"}),
        "another queue": ("sqs", "ReceiveMessage", {"QueueUrl": url}),
        "another cluster": ("eks", "DescribeCluster", {"name": "other"}),
        "a parameter of the account": ("ssm", "GetParameter", {"Name": "/secrets/password"}),
        "what Kerf has no use for": ("iam", "ListRoles", {}),
    }


def test_what_belongs_to_another_is_refused(eks: Eks) -> None:
    """Nothing of another cluster can be ended, deleted, read or passed, and nothing made without the cluster's tags."""
    by_service = {"ec2": "UnauthorizedOperation", "iam": "AccessDenied", "sqs": "AccessDenied"}
    expected, codes = {}, {}
    for name, (service, operation, parameters) in others(eks).items():
        with pytest.raises(ApiFailed) as refused:
            eks.done(eks.api.call(service, operation, **parameters))
        codes[name] = refused.value.code
        expected[name] = by_service.get(service, "AccessDeniedException")

    assert expected == codes


@pytest.mark.parametrize(
    ("sid", "case", "reason", "said"),
    [
        (
            "PassTheNodeRole",
            flows.an_instance_starts,
            "Unauthorized",
            f"iam:PassRole on resource: arn:aws:iam::.*{ROLE}",
        ),
        ("CreateTheRoleOfSpot", flows.the_first_spot_instance_starts, "SpotSLRCreationFailed", "service-linked role"),
    ],
)
def test_a_launch_that_is_refused_says_what_is_missing(
    eks: Eks, sid: str, case: flows.Case, reason: str, said: str
) -> None:
    """EC2 says so among the errors of the fleet; the claim gets Karpenter's reason, and what was refused."""
    steps = began(eks, case)
    eks.may(each for each in STATEMENTS if each.sid != sid)

    with pytest.raises(LaunchFailed, match=said) as failed:
        next(steps, None)
    assert reason == failed.value.reason


def test_what_a_launch_would_lack_is_said_by_the_node_class(eks: Eks) -> None:
    """Its dry run is refused before a claim fails by it."""
    steps = began(eks, flows.a_node_class_becomes_ready)
    eks.may(without(Line("TagAtCreation", "arn:${AWS::Partition}:ec2:${AWS::Region}:*:volume/*")))

    with pytest.raises(CloudError, match=r"ValidationSucceeded: the controller may not call ec2:RunInstances.*volume"):
        next(steps, None)
