"""Replies that are not whole: words, and never an error of Kerf's own."""

import asyncio
from typing import Any

import pytest

from kerf.clouds.aws.cluster import describe
from kerf.clouds.aws.instances import Instances
from kerf.clouds.aws.interruption import InterruptionQueue
from kerf.clouds.aws.profiles import Profiles
from kerf.clouds.aws.replies import NotWhole
from kerf.clouds.aws.templates import Templates
from kerf.clouds.aws.userdata.facts import ClusterFacts
from tests.clouds.aws.account import ROLE, Account, ManualClock
from tests.clouds.aws.region import G6F_RECORD
from tests.clouds.aws.region import Region as Market
from tests.clouds.aws.test_reconcile import Region

GROUP = {"placementGroupSelector": {"name": "near"}}
RESERVED = {"capacityReservationSelectorTerms": [{"id": "cr-1"}]}
SSM = {"amiSelectorTerms": [{"ssmParameter": "/ami"}]}


@pytest.mark.parametrize(
    ("operation", "reply", "spec", "condition", "lacks"),
    [
        ("GetParameter", {}, SSM, "AMIsReady", "it lacks 'Parameter'"),
        ("GetParameter", {"Parameter": {"Name": "/ami"}}, SSM, "AMIsReady", "it lacks 'Value'"),
        ("DescribeImages", {"Images": [{"Architecture": "arm64"}]}, {}, "AMIsReady", "it lacks 'ImageId'"),
        ("DescribeSubnets", {"Subnets": [{"SubnetId": "s"}]}, {}, "SubnetsReady", "it lacks 'AvailabilityZone'"),
        ("DescribeSecurityGroups", {"SecurityGroups": [{}]}, {}, "SecurityGroupsReady", "it lacks 'GroupId'"),
        ("GetInstanceProfile", {}, {"role": ROLE}, "InstanceProfileReady", "it lacks 'InstanceProfile'"),
        (
            "GetInstanceProfile",
            {"InstanceProfile": {"Roles": [{}]}},
            {"role": ROLE},
            "InstanceProfileReady",
            "it lacks 'RoleName'",
        ),
        ("DescribePlacementGroups", {}, GROUP, "PlacementGroupReady", "it lacks 'PlacementGroups'"),
        (
            "DescribePlacementGroups",
            {"PlacementGroups": [{"GroupId": "pg-1"}]},
            GROUP,
            "PlacementGroupReady",
            "it lacks 'Strategy'",
        ),
        (
            "DescribeCapacityReservations",
            {"CapacityReservations": [{"InstanceMatchCriteria": "open"}]},
            RESERVED,
            "CapacityReservationsReady",
            "it lacks 'CapacityReservationId'",
        ),
        (
            "DescribeSubnets",
            {"Subnets": ["subnet-1"]},
            {},
            "SubnetsReady",
            "a part of it has another form than AWS gives it",
        ),
    ],
)
def test_a_reply_that_is_not_whole_is_no_answer(
    operation: str, reply: Any, spec: dict[str, Any], condition: str, lacks: str
) -> None:
    """The condition names the call and the part, and nothing is taken to be missing in AWS."""
    region = Region()
    region.account.answers[operation] = reply
    (said,) = [each for each in region.reconcile(**spec).conditions if each.type == condition]

    assert ("Unknown", "AWSUnavailable", f"{operation}: the reply is not whole: {lacks}") == (
        said.status,
        said.reason,
        said.message,
    )


def reservations(**record: Any) -> dict[str, Any]:
    """A page of DescribeInstances with one instance."""
    return {"Reservations": [{"Instances": [record]}]}


@pytest.mark.parametrize(
    ("record", "lacks"),
    [
        ({"InstanceType": "g5.xlarge", "State": {"Name": "running"}}, "'InstanceId'"),
        ({"InstanceId": "i-1", "State": {"Name": "running"}}, "'InstanceType'"),
        ({"InstanceId": "i-1", "InstanceType": "g5.xlarge"}, "'State'"),
    ],
)
def test_an_instance_without_a_state_has_not_ended(record: dict[str, Any], lacks: str) -> None:
    """Its claim would go by it."""
    account = Account()
    account.answers["DescribeInstances"] = reservations(**record)
    instances = Instances(account, "demo", lambda: 0.0)
    for call in (instances.all(), instances.get("aws:///us-east-1a/i-1")):
        with pytest.raises(NotWhole, match=f"DescribeInstances: the reply is not whole: it lacks {lacks}"):
            asyncio.run(call)


def test_a_reservation_without_its_instances_is_torn() -> None:
    """EC2 lists a reservation for the instances in it."""
    account = Account()
    account.answers["DescribeInstances"] = {"Reservations": [{"ReservationId": "r-1"}]}
    with pytest.raises(NotWhole, match="DescribeInstances: the reply is not whole: it lacks 'Instances'"):
        asyncio.run(Instances(account, "demo", lambda: 0.0).all())


def test_what_is_left_over_is_not_deleted_by_half_a_listing() -> None:
    """Launch templates, instance profiles."""
    account, clock = Account(), ManualClock()
    account.answers = {
        "DescribeLaunchTemplates": {"LaunchTemplates": [{"LaunchTemplateId": "lt-1"}]},
        "ListInstanceProfiles": {"InstanceProfiles": [{"Path": "/karpenter/us-east-1/demo/uid/"}]},
    }
    with pytest.raises(NotWhole, match="it lacks 'LaunchTemplateName'"):
        asyncio.run(Templates(account, clock, ClusterFacts("demo", "https://demo")).collect())
    with pytest.raises(NotWhole, match="it lacks 'InstanceProfileName'"):
        asyncio.run(Profiles(account, clock, "demo", "us-east-1").collect((), ()))


def test_the_start_and_the_queue_say_what_a_reply_lacks() -> None:
    """A cluster with a range of addresses that is none, and a queue without a URL."""
    account = Account()
    cluster = {"endpoint": "https://demo", "kubernetesNetworkConfig": {"serviceIpv4Cidr": "ten"}}
    account.answers = {"DescribeCluster": {"cluster": cluster}, "GetQueueUrl": {}}
    with pytest.raises(NotWhole, match="DescribeCluster: the reply is not whole: a part of it has another form"):
        asyncio.run(describe(account, "demo", "us-east-1"))
    queue = InterruptionQueue(account, Instances(account, "demo", lambda: 0.0), "queue", lambda: 0.0)
    with pytest.raises(NotWhole, match="GetQueueUrl: the reply is not whole: it lacks 'QueueUrl'"):
        asyncio.run(queue.turn())


@pytest.mark.parametrize("torn", ["{", "{}", '{"product": {"attributes": {"instanceType": "a"}}, "terms": []}', "[]"])
def test_a_torn_entry_of_the_price_list_takes_no_other_price_along(torn: str) -> None:
    """Neither those of the list, nor spot prices, which are asked for after it."""
    market = Market()
    market.torn = [torn]
    market.refresh()

    assert (1_500_000, ()) == (market.prices.current.on_demand["g5.xlarge"], market.prices.current.notes)
    assert 500_000 == market.prices.current.spot["g5.xlarge", "us-east-1a"]


def test_a_type_that_is_described_by_half_is_not_sold() -> None:
    """The others are."""
    market = Market()
    market.types = [{**G6F_RECORD, "InstanceType": "g9f.large"}, {"InstanceType": "x9.large"}, {"ProcessorInfo": {}}]
    market.types[1]["ProcessorInfo"] = {"SupportedArchitectures": ["x86_64"]}
    market.refresh()

    assert {"g9f.large"} == market.prices.current.rows.keys() & {"g9f.large", "x9.large"}


def test_prices_of_a_page_that_is_not_whole_stay_as_they_were() -> None:
    """And it is said, in the words of the call."""
    market = Market()
    market.refresh()
    before = market.prices.current.spot
    market.spot = [("g5.xlarge", "us-east-1a", "much", 3)]
    market.refresh()

    assert before == market.prices.current.spot
    lacks = "a part of it has another form than AWS gives it"
    said = f"spot prices are not live (DescribeSpotPriceHistory: the reply is not whole: {lacks})"
    assert (said,) == market.prices.current.notes
