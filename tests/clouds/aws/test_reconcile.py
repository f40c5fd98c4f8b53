"""The status of an EC2NodeClass by what the account holds, and the end of an EC2NodeClass."""

import asyncio
from base64 import b64decode

import pytest

from kerf.cloudprovider import Throttled
from kerf.clouds.aws.api import ApiFailed
from kerf.clouds.aws.discovery import AwsDiscovery
from kerf.clouds.aws.dryruns import USUAL_MACHINES, DryRuns
from kerf.clouds.aws.nodeclass.decode import decode
from kerf.clouds.aws.nodeclass.finalizer import finalize
from kerf.clouds.aws.nodeclass.reconcile import NodeClassStatus, Outlook
from kerf.clouds.aws.profiles import Profiles
from kerf.clouds.aws.templates import ClaimFacts, Templates
from kerf.clouds.aws.userdata.facts import ClusterFacts
from kerf.model.constraints import Taint
from kerf.model.nodeclaim import VALIDATED
from kerf.model.nodepool import NodePool
from kerf.testing.builders import a_pool
from tests.clouds.aws.account import ROLE, Account, ManualClock
from tests.clouds.aws.nodeclass.objects import Object, an_object

SPEC: Object = {
    "amiFamily": "AL2023",
    "amiSelectorTerms": [{"id": "ami-1"}],
    "subnetSelectorTerms": [{"id": "subnet-1"}],
    "securityGroupSelectorTerms": [{"id": "sg-1"}],
}


class Region:
    """An account in which the EC2NodeClass finds all it selects, and what makes the status."""

    def __init__(self) -> None:
        self.account, self.clock = Account(), ManualClock()
        account = self.account
        subnet = {"SubnetId": "subnet-1", "AvailabilityZone": "us-east-1a", "AvailableIpAddressCount": 9}
        image = {"ImageId": "ami-1", "Name": "one", "Architecture": "x86_64", "State": "available"}
        account.subnets = [{**subnet, "AvailabilityZoneId": "use1-az1"}]
        account.groups = [{"GroupId": "sg-1", "GroupName": "nodes"}]
        account.images = [{**image, "CreationDate": "2026-11-01T00:00:00.000Z", "Owner": "amazon"}]
        cluster = ClusterFacts("demo", "https://demo", ca_bundle="Y2E=", service_cidr="10.100.0.0/16")
        self._cluster = cluster
        self.status = self.restart()

    def restart(self) -> NodeClassStatus:
        """What makes the status in a new life, which knows nothing."""
        account, clock = self.account, self.clock
        self.profiles = Profiles(account, clock, "demo", "us-east-1")
        self.templates = Templates(account, clock, self._cluster)
        discovery = AwsDiscovery(account, clock, self.profiles, "1.34")
        return NodeClassStatus(discovery, DryRuns(account, clock, self.templates, "demo"), clock)

    def reconcile(self, *pools: NodePool, **spec: object) -> Outlook:
        """The outlook of the EC2NodeClass now, with pools that name it."""
        return asyncio.run(self.status.reconcile(an_object(**{**SPEC, **spec}), pools))


def reasons(outlook: Outlook) -> dict[str, str]:
    """The reasons of conditions that are not True."""
    return {each.type: each.reason for each in outlook.conditions if each.status != "True"}


def test_a_node_class_that_finds_everything_is_ready() -> None:
    """The status holds what was found."""
    region = Region()
    outlook = region.reconcile()

    assert {} == reasons(outlook)
    assert outlook.is_ready
    assert [{"id": "subnet-1", "zone": "us-east-1a", "zoneID": "use1-az1"}] == outlook.status["subnets"]
    assert list(region.account.profiles) == [outlook.status["instanceProfile"]]


def test_what_is_missing_is_the_reason_of_ready() -> None:
    """The dry run waits for it."""
    outlook = Region().reconcile(subnetSelectorTerms=[{"id": "subnet-9"}])

    assert {
        "SubnetsReady": "SubnetsNotFound",
        "ValidationSucceeded": "DependenciesNotReady",
        "Ready": "SubnetsNotFound",
    } == reasons(outlook)


def test_what_was_found_counts_while_aws_does_not_answer() -> None:
    """A failed call says nothing about subnets; a refusal by policy does."""
    region = Region()
    before = region.reconcile()
    region.clock.seconds += 60
    region.account.broken["DescribeSubnets"] = ApiFailed("DescribeSubnets", "InternalError", "")
    assert before.resolved == region.reconcile().resolved

    region.clock.seconds += 60
    region.account.forbidden.add("DescribeSubnets")
    assert "Unauthorized" == reasons(region.reconcile())["SubnetsReady"]


def test_an_auth_failure_is_no_refusal_by_policy() -> None:
    """EC2 says it of credentials, which no condition is about, and of what an account may not use, which it may not."""
    region = Region()
    unknown = "AWS was not able to validate the provided access credentials"
    region.account.broken["DescribeSubnets"] = ApiFailed("DescribeSubnets", "AuthFailure", unknown)
    (said,) = (each for each in region.reconcile().conditions if each.type == "SubnetsReady")
    assert ("Unknown", "AWSUnavailable") == (said.status, said.reason)

    region.account.broken["RunInstances"] = ApiFailed(
        "RunInstances", "AuthFailure", "Not authorized for images: [ami-1]"
    )
    (said,) = (each for each in region.reconcile().conditions if each.type == "ValidationSucceeded")
    assert ("RunInstancesRefused", "AuthFailure: Not authorized for images: [ami-1]") == (said.reason, said.message)


def test_too_many_tags_are_said_before_a_launch() -> None:
    """As lint does; and where EC2 counts otherwise than Kerf, by the dry run."""
    region = Region()
    outlook = region.reconcile(tags={f"team-{number}": "ml" for number in range(45)})
    (said,) = (each.message for each in outlook.conditions if each.type == "ValidationSucceeded")
    assert "spec.tags: expected at most 42 tags: Kerf adds 8, and EC2 takes 50 of an instance, got 45" in said

    region.account.broken["RunInstances"] = ApiFailed("RunInstances", "TagLimitExceeded", "too many")
    assert "RunInstancesRefused" == reasons(region.reconcile())["ValidationSucceeded"]


def test_fields_of_a_newer_version_are_named_and_block_nothing() -> None:
    """The condition is True, with the fields in its message."""
    region = Region()
    outlook = region.reconcile(futureField={"a": 1})
    (said,) = (each for each in outlook.conditions if each.type == "ValidationSucceeded")

    assert outlook.is_ready
    assert ("True", "this version of Kerf does not know, and leaves out: spec.futureField") == (
        said.status,
        said.message,
    )
    many = region.reconcile(**{f"future{letter}": 1 for letter in "ABCDEFG"})
    assert any(each.message.endswith("spec.futureE and 2 more") for each in many.conditions)
    (said,) = (each for each in region.reconcile().conditions if each.type == "ValidationSucceeded")
    assert ("True", "") == (said.status, said.message)


@pytest.mark.parametrize(
    ("family", "what"),
    [
        ("AL2", "leaves out"),
        ("AL2023", "passes on to kubelet unread"),
        ("Bottlerocket", "leaves out"),
        ("Windows2022", "leaves out"),
        ("Custom", "leaves out"),
    ],
)
def test_fields_of_kubelet_that_are_unknown_are_named(family: str, what: str) -> None:
    """Only AL2023 has a place for them in its user data, and kubelet may refuse them there."""
    region = Region()
    kubelet = {"cpuManagerPolicy": "static", "topologyManagerPolicy": "single-numa-node"}
    outlook = region.reconcile(amiFamily=family, userData="x = 1", kubelet=kubelet)
    (said,) = (each for each in outlook.conditions if each.type == "ValidationSucceeded")
    (made,) = region.account.templates.values()
    text = b64decode(made["Data"]["UserData"]).decode()

    names = "spec.kubelet.cpuManagerPolicy, spec.kubelet.topologyManagerPolicy"
    assert ("True", f"this version of Kerf does not know, and {what}: {names}") == (said.status, said.message)
    assert (family == "AL2023") == ("topologyManagerPolicy" in text)


def test_a_threshold_with_which_kubelet_does_not_start_is_named() -> None:
    """The server takes it; nodes would never join."""
    outlook = Region().reconcile(kubelet={"evictionHard": {"memory.available": "-1Gi"}})
    (said,) = (each for each in outlook.conditions if each.type == "ValidationSucceeded")

    assert ("False", "InvalidKubeletConfiguration") == (said.status, said.reason)
    assert 'spec.kubelet.evictionHard["memory.available"]: expected a quantity above 0' in said.message


def test_a_spec_that_cannot_be_read_is_not_ready() -> None:
    """The condition says so, and AWS is not asked."""
    region = Region()
    outlook = region.reconcile(subnetSelectorTerms="all")

    assert "InvalidSpec" == reasons(outlook)["ValidationSucceeded"]
    assert not outlook.is_ready
    assert [] == region.account.calls


def test_user_data_is_counted_as_the_largest_pool_would_send_it() -> None:
    """`spec.userData` of 14,000 letters fits by itself; with the labels of one pool, or its taints, it does not."""
    region, text = Region(), "#!/bin/bash\n" + "x" * 13_988
    labels = {f"example.com/{number}-{'l' * 40}": "v" * 60 for number in range(20)}
    taints = tuple(Taint(f"example.com/{number}-{'t' * 40}", "v" * 60, "NoSchedule") for number in range(15))
    small, large, tainted = a_pool("small"), a_pool("large", labels=labels), a_pool("t", taints=taints)

    assert {} == reasons(region.reconcile(small, userData=text))
    for pools, name in (((small, large), "large"), ((tainted, small), "t"), ((tainted, large), "t")):
        outlook = region.reconcile(*pools, userData=text)
        (said,) = (each.message for each in outlook.conditions if each.type == "ValidationSucceeded")
        assert "UserDataSizeLimitExceeded" == reasons(outlook)["Ready"]
        assert said.startswith(f"NodePool {name}: user data of ")
    assert {} == reasons(region.reconcile(small, userData=text))


def test_what_a_condition_asks_to_be_cut_off_is_enough() -> None:
    """A launch by the pool takes exactly the bytes that were counted, but for the digits of its pods."""
    region = Region()
    labelled = a_pool("large", labels={f"example.com/{number}": "v" * 60 for number in range(20)})
    outlook = region.reconcile(labelled, userData="#" * 16_000)
    (said,) = (each.message for each in outlook.conditions if each.type == "ValidationSucceeded")
    over = int(said.rpartition(" ")[2].replace(",", ""))

    assert {} == reasons(region.reconcile(labelled, userData="#" * (16_000 - over)))
    assert {} != reasons(region.reconcile(labelled, userData="#" * (16_001 - over)))
    claim = ClaimFacts(labels=labelled.node_labels)
    node_class = decode(an_object(**{**SPEC, "userData": "#" * (16_000 - over)}))
    (planned,) = region.templates.planned(node_class, outlook.resolved, claim, USUAL_MACHINES[:1])
    assert 16 * 1024 - len("1514") + len("29") == len(b64decode(planned.data["UserData"]))


def test_the_end_waits_for_claims_and_takes_all_along() -> None:
    """Templates and profiles go when the last claim is gone."""
    region, node_class = Region(), decode(an_object(**SPEC))
    region.reconcile()
    made = (region.templates, region.profiles)

    assert "waits for the end of NodeClaims a, b" == asyncio.run(finalize(node_class, ["b", "a"], made))
    assert "" == asyncio.run(finalize(node_class, [], made))
    assert ({}, {}) == (region.account.templates, region.account.profiles)


@pytest.mark.parametrize(
    ("operation", "code", "condition", "said"),
    [
        ("CreateInstanceProfile", "LimitExceeded", "InstanceProfileReady", ("False", "Refused")),
        ("CreateInstanceProfile", "ValidationError", "InstanceProfileReady", ("False", "Refused")),
        ("DescribeImages", "InvalidParameterValue", "AMIsReady", ("False", "Refused")),
        ("DescribeSubnets", "SomethingNew", "SubnetsReady", ("Unknown", "Refused")),
        ("DescribeSubnets", "ServiceUnavailable", "SubnetsReady", ("Unknown", "AWSUnavailable")),
        ("DescribeSubnets", "InvalidSignatureException", "SubnetsReady", ("Unknown", "AWSUnavailable")),
        ("CreateLaunchTemplate", "LaunchTemplateLimitExceeded", VALIDATED, ("False", "CreateLaunchTemplateRefused")),
        ("RunInstances", "OptInRequired", VALIDATED, ("False", "RunInstancesRefused")),
        ("RunInstances", "UnsupportedOperation", VALIDATED, ("False", "RunInstancesRefused")),
        ("RunInstances", "EncryptedVolumesNotSupported", VALIDATED, ("False", "RunInstancesRefused")),
        ("RunInstances", "InstanceLimitExceeded", VALIDATED, ("True", VALIDATED)),
        ("RunInstances", "SomethingNew", VALIDATED, ("Unknown", "Refused")),
    ],
)
def test_a_refusal_that_a_person_must_see_to_is_said_as_one(
    operation: str, code: str, condition: str, said: tuple[str, str]
) -> None:
    """Not as an AWS that does not answer. A full quota of one sort of instances stops no others."""
    region = Region()
    region.account.broken[operation] = ApiFailed(operation, code, "the words of AWS")
    (got,) = [each for each in region.reconcile(role=ROLE).conditions if each.type == condition]

    assert said == (got.status, got.reason)
    assert got.status == "True" or f"{code}: the words of AWS" in got.message


def test_an_unknown_refusal_takes_nothing_away() -> None:
    """What was known before counts on: the code may mean anything."""
    region = Region()
    region.reconcile()
    region.clock.seconds += 3600
    region.account.broken["DescribeSubnets"] = ApiFailed("DescribeSubnets", "SomethingNew", "")

    assert {} == reasons(region.reconcile())


ASKED = (
    ("DescribeSubnets", "subnets"),
    ("DescribeSecurityGroups", "securityGroups"),
    ("DescribeImages", "amis"),
    ("DescribeCapacityReservations", "capacityReservations"),
    ("GetInstanceProfile", "instanceProfile"),
)


@pytest.mark.parametrize(("operation", "field"), ASKED)
def test_a_restart_that_aws_does_not_answer_takes_nothing_from_the_status(operation: str, field: str) -> None:
    """What an earlier life found stands there until AWS says otherwise; the condition says that it is not known now."""
    region = Region()
    spec = {**SPEC, "role": ROLE, "capacityReservationSelectorTerms": [{"id": "cr-1"}]}
    place = {"AvailabilityZone": "us-east-1a", "InstanceType": "p5.48xlarge", "OwnerId": "1" * 12, "State": "active"}
    region.account.reservations = [{"CapacityReservationId": "cr-1", "InstanceMatchCriteria": "targeted", **place}]
    before = asyncio.run(region.status.reconcile(an_object(**spec))).status
    assert {each for _, each in ASKED} <= before.keys()

    again = region.restart()
    region.account.broken[operation] = Throttled()
    after = asyncio.run(again.reconcile({**an_object(**spec), "status": before}))
    assert not after.is_ready
    assert before == {**after.status, "conditions": before["conditions"]}
    assert asyncio.run(again.reconcile({**an_object(**spec), "status": after.status})).status[field] == before[field]


def test_what_is_gone_leaves_the_status() -> None:
    """AWS has answered that there is none."""
    region = Region()
    before = region.reconcile().status
    region.account.subnets.clear()
    after = asyncio.run(region.restart().reconcile({**an_object(**SPEC), "status": before}))

    assert "subnets" in before
    assert "subnets" not in after.status


def test_a_profile_of_karpenter_survives_a_restart_that_aws_does_not_answer() -> None:
    """Its name is a random one, and stands in the status alone."""
    region = Region()
    raw = an_object(**SPEC, role=ROLE)
    path = f"/karpenter/us-east-1/demo/{raw['metadata']['uid']}/"
    region.account.profiles["demo_42"] = {"Path": path, "Roles": [{"RoleName": ROLE}]}
    region.account.broken["GetInstanceProfile"] = Throttled()
    status = {"instanceProfile": "demo_42"}
    for _ in range(3):
        status = asyncio.run(region.status.reconcile({**raw, "status": status})).status

    assert ("demo_42", ["demo_42"]) == (status["instanceProfile"], list(region.account.profiles))
