"""Subnets, security groups and placement groups: which are found, in which order, and for how long that counts."""

import asyncio

import pytest

from kerf.clouds.aws.api import ApiFailed
from kerf.clouds.aws.nodeclass.model import PlacementGroupSelector, SecurityGroupSelectorTerm, SubnetSelectorTerm
from kerf.clouds.aws.nodeclass.status import PlacementGroup, SecurityGroup, Subnet
from kerf.clouds.aws.placementgroups import PlacementGroups
from kerf.clouds.aws.securitygroups import SecurityGroups
from kerf.clouds.aws.subnets import Subnets, wanted
from tests.clouds.aws.account import Account, ManualClock, Object, tags

BY_TAG = SubnetSelectorTerm(tags=(("team", "ml"),))


def a_subnet(number: int, zone: str, free: int, **tagged: str) -> Object:
    """A subnet as EC2 lists it."""
    return {
        "SubnetId": f"subnet-{number}",
        "AvailabilityZone": f"us-east-1{zone}",
        "AvailabilityZoneId": f"use1-az-{zone}",
        "AvailableIpAddressCount": free,
        "Tags": tags(**tagged),
    }


def a_network() -> tuple[Account, ManualClock, Subnets]:
    """Three subnets of one team in two zones, and one of another."""
    account, clock = Account(), ManualClock()
    account.subnets = [
        a_subnet(1, "a", 10, team="ml"),
        a_subnet(2, "a", 200, team="ml"),
        a_subnet(3, "b", 10, team="ml", env="prod"),
        a_subnet(4, "b", 50, team="web"),
    ]
    return account, clock, Subnets(account, clock)


@pytest.mark.parametrize(
    ("terms", "found"),
    [
        ((BY_TAG,), ["subnet-2", "subnet-1", "subnet-3"]),
        ((SubnetSelectorTerm(tags=(("env", "*"), ("team", "ml"))),), ["subnet-3"]),
        ((SubnetSelectorTerm(id="subnet-4"), BY_TAG), ["subnet-2", "subnet-4", "subnet-1", "subnet-3"]),
        ((SubnetSelectorTerm(id="subnet-4"), SubnetSelectorTerm(id="subnet-3")), ["subnet-4", "subnet-3"]),
        ((SubnetSelectorTerm(tags=(("team", "nobody"),)),), []),
    ],
)
def test_subnets_are_the_union_of_the_terms(terms: tuple[SubnetSelectorTerm, ...], found: list[str]) -> None:
    """Each once, most free addresses first, then by id; all tags of a term must fit."""
    _, _, subnets = a_network()

    assert found == [subnet.id for subnet in asyncio.run(subnets.find(terms))]


def test_all_ids_are_asked_for_at_once_and_only_each_minute() -> None:
    """One call, however many ids, and none while the answer counts."""
    account, clock, subnets = a_network()
    terms = tuple(SubnetSelectorTerm(id=f"subnet-{number}") for number in (1, 2, 3))

    for step_s in (0, 59, 1):
        clock.seconds += step_s
        asyncio.run(subnets.find(terms))

    assert 2 == len(account.calls)


def test_launches_take_addresses_until_the_next_listing() -> None:
    """Two launches at once go to where there is room for both."""
    account, clock, subnets = a_network()
    found = asyncio.run(subnets.find((BY_TAG,)))
    subnets.launched("subnet-2", 195)

    assert ["subnet-1", "subnet-3"] == [each.id for each in subnets.by_zone(found, addresses=8).values()]
    assert [10, 10, 5] == [each.free_addresses for each in asyncio.run(subnets.find((BY_TAG,)))]

    account.subnets[1]["AvailableIpAddressCount"] = 190
    clock.seconds += 60
    assert [190, 10, 10] == [each.free_addresses for each in asyncio.run(subnets.find((BY_TAG,)))]


def test_a_zone_stays_while_one_of_its_subnets_has_room() -> None:
    """The subnet that EC2 refused is left out for three minutes, whatever the listing says."""
    _, clock, subnets = a_network()
    found = asyncio.run(subnets.find((BY_TAG,)))

    subnets.exhausted("subnet-2")
    assert ["us-east-1a", "us-east-1b"] == list(subnets.by_zone(found))
    subnets.exhausted("subnet-1")
    assert {"us-east-1b": Subnet("subnet-3", "us-east-1b", "use1-az-b", 10)} == subnets.by_zone(found)

    clock.seconds += 180
    assert "subnet-2" == subnets.by_zone(found)["us-east-1a"].id


def test_a_failed_listing_is_no_empty_one() -> None:
    """It is raised, and asked for again at once."""
    account, _, subnets = a_network()
    account.broken["DescribeSubnets"] = ApiFailed("DescribeSubnets", "InternalError", "")

    with pytest.raises(ApiFailed):
        asyncio.run(subnets.find((BY_TAG,)))
    assert 3 == len(asyncio.run(subnets.find((BY_TAG,))))


def test_terms_are_worded() -> None:
    """For a condition; five of them."""
    many = tuple(SubnetSelectorTerm(id=f"subnet-{number}") for number in range(7))

    assert "tag team=ml; or id subnet-1" == wanted((BY_TAG, SubnetSelectorTerm(id="subnet-1")))
    assert wanted(many).endswith("or id subnet-4; or one of 2 more terms")


def test_security_groups_are_the_union_of_the_terms() -> None:
    """By id, by name, by tags; in the order of their ids."""
    account = Account()
    account.groups = [
        {"GroupId": "sg-3", "GroupName": "nodes", "Tags": tags(team="ml")},
        {"GroupId": "sg-1", "GroupName": "other", "Tags": []},
        {"GroupId": "sg-2", "GroupName": "third", "Tags": tags(team="ml")},
    ]
    groups = SecurityGroups(account, ManualClock())
    terms = (
        SecurityGroupSelectorTerm(tags=(("team", "ml"),)),
        SecurityGroupSelectorTerm(name="nodes"),
        SecurityGroupSelectorTerm(id="sg-1"),
    )

    assert (
        SecurityGroup("sg-1", "other"),
        SecurityGroup("sg-2", "third"),
        SecurityGroup("sg-3", "nodes"),
    ) == asyncio.run(groups.find(terms))
    assert 3 == len(account.calls)


def test_a_group_that_is_missing_is_asked_for_each_minute() -> None:
    """A person makes it, and waits; one that is there counts for five."""
    account, clock = Account(), ManualClock()
    groups, terms = SecurityGroups(account, clock), (SecurityGroupSelectorTerm(name="nodes"),)

    assert () == asyncio.run(groups.find(terms))
    account.groups = [{"GroupId": "sg-1", "GroupName": "nodes"}]
    clock.seconds += 60
    assert (SecurityGroup("sg-1", "nodes"),) == asyncio.run(groups.find(terms))
    clock.seconds += 299
    asyncio.run(groups.find(terms))

    assert 2 == len(account.calls)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        (PlacementGroupSelector(name="near"), PlacementGroup("pg-1", "near", "cluster")),
        (PlacementGroupSelector(id="pg-2"), PlacementGroup("pg-2", "apart", "partition", 7)),
        (PlacementGroupSelector(name="going"), None),
        (PlacementGroupSelector(id="pg-9"), None),
    ],
)
def test_a_placement_group_is_found_by_name_or_id(
    selector: PlacementGroupSelector, found: PlacementGroup | None
) -> None:
    """One that is being deleted is none, nor is one that EC2 does not know."""
    account = Account()
    account.placement_groups = [
        {"GroupId": "pg-1", "GroupName": "near", "Strategy": "cluster", "State": "available"},
        {"GroupId": "pg-2", "GroupName": "apart", "Strategy": "partition", "State": "available", "PartitionCount": 7},
        {"GroupId": "pg-3", "GroupName": "going", "Strategy": "spread", "State": "deleting"},
    ]
    groups = PlacementGroups(account, ManualClock())

    assert [found, found] == [asyncio.run(groups.find(selector)) for _ in range(2)]
    assert 1 == len(account.calls)
