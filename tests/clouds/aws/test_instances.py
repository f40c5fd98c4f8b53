"""The instances of a cluster: which are found, which are ended, and what EC2's lateness may not do."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from kerf.cloudprovider import Instance, InstanceNotFound, InstanceState, Throttled
from kerf.clouds.aws.api import ApiFailed, Reply
from kerf.clouds.aws.instances import Instances, instance_of
from kerf.model.instancetypes import OfferingKey
from tests.clouds.aws.ec2 import FakeEC2
from tests.clouds.market import claim

OURS = {
    "kubernetes.io/cluster/gpu": "owned",
    "karpenter.sh/nodepool": "gpu",
    "karpenter.sh/nodeclaim": "gpu-1",
    "kerf.dev/claim-uid": "uid-1",
}


class Account:
    """EC2 and the instances of cluster `gpu`, on a clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.ec2 = FakeEC2(lambda: self.now, end_takes_s=30)
        self.instances = Instances(self.ec2, "gpu", lambda: self.now, batch_s=0)

    def done(self, *calls: Coroutine[Any, Any, Any]) -> Any:
        """What the calls give that are made at once; an error is a value."""

        async def run() -> Any:
            return await asyncio.gather(*calls, return_exceptions=True)

        results = asyncio.run(run())
        return results if len(results) > 1 else results[0]


@pytest.fixture
def account() -> Account:
    """An empty one."""
    return Account()


def launched(number: str) -> Instance:
    """What a launch of this process gave."""
    key = OfferingKey("g5.xlarge", "us-east-1a", "spot")
    return Instance(f"aws:///us-east-1a/{number}", "uid-9", "gpu-9", key, state=InstanceState.PENDING)


def test_only_instances_of_the_cluster_are_listed(account: Account) -> None:
    """Not those of another cluster, nor those that no autoscaler launched, nor those that have ended."""
    ours = account.ec2.run(OURS)
    account.ec2.run({**OURS, "kubernetes.io/cluster/gpu": "shared"})
    account.ec2.run({"kubernetes.io/cluster/gpu": "owned"})
    account.ec2.machines[account.ec2.run(OURS)].record["State"]["Name"] = "terminated"

    (found,) = account.done(account.instances.all())
    assert (f"aws:///us-east-1a/{ours}", "uid-1", "gpu-1") == (found.provider_id, found.claim_uid, found.claim_name)


def test_an_instance_of_karpenter_has_no_token(account: Account) -> None:
    """It is listed, because its claim is matched by its id."""
    account.ec2.run({key: value for key, value in OURS.items() if key != "kerf.dev/claim-uid"})

    assert [""] == [each.claim_uid for each in account.done(account.instances.all())]


def test_what_ec2_describes_becomes_an_instance() -> None:
    """Its state, image, subnet, zone id and reservation; a reserved one is of that capacity type."""
    record = {
        "InstanceId": "i-1",
        "InstanceType": "p5.48xlarge",
        "State": {"Name": "stopping"},
        "Placement": {"AvailabilityZone": "us-east-1a", "AvailabilityZoneId": "use1-az4", "GroupId": "pg-1"},
        "CapacityReservationId": "cr-1",
        "SubnetId": "subnet-1",
        "ImageId": "ami-1",
    }
    found = instance_of(record)

    assert found is not None
    assert OfferingKey("p5.48xlarge", "us-east-1a", "reserved", "cr-1", "pg-1") == found.offering
    assert (InstanceState.STOPPING, "ami-1", "subnet-1", "use1-az4") == (
        found.state, found.image, found.subnet, found.zone_id
    )  # fmt: skip


def test_a_launched_instance_is_there_before_ec2_shows_it(account: Account) -> None:
    """For a minute; afterwards EC2 is right."""
    account.instances.note(launched("i-late"))
    assert ["aws:///us-east-1a/i-late"] == [each.provider_id for each in account.done(account.instances.all())]

    account.now += 61
    assert () == account.done(account.instances.all())


def test_what_ec2_shows_replaces_what_was_remembered(account: Account) -> None:
    """An instance that ended within the minute is not remembered as running."""
    number = account.ec2.run(OURS)
    account.instances.note(launched(number))
    account.ec2.machines[number].record["State"]["Name"] = "terminated"

    assert () == account.done(account.instances.all())
    assert isinstance(account.done(account.instances.get(f"aws:///us-east-1a/{number}")), InstanceNotFound)


def test_terminations_of_a_moment_are_one_call(account: Account) -> None:
    """Each is accepted until EC2 shows its end."""
    ids = [f"aws:///us-east-1a/{account.ec2.run(OURS)}" for _ in range(3)]
    assert [None] * 3 == account.done(*map(account.instances.delete, ids))
    assert [["i-0001", "i-0002", "i-0003"]] == [each["InstanceIds"] for each in account.ec2.asked("TerminateInstances")]

    account.now += 31
    results = account.done(*map(account.instances.delete, ids))
    assert [InstanceNotFound] * 3 == [type(each) for each in results]
    assert 1 == len(account.ec2.asked("TerminateInstances"))


def test_an_unknown_id_stops_no_other_termination(account: Account) -> None:
    """EC2 fails the whole batch, so it is repeated one by one; what EC2 does not show yet is ended all the same."""
    known = f"aws:///us-east-1a/{account.ec2.run(OURS)}"
    account.instances.note(launched("i-hidden"))
    results = account.done(account.instances.delete(known), account.instances.delete("aws:///us-east-1a/i-hidden"))

    assert [None, None] == results
    assert [] == account.ec2.running


def test_many_claims_are_looked_for_by_few_calls(account: Account) -> None:
    """As after a restart in the middle of a burst: a call for each would hold up terminations for minutes."""
    names = [f"gpu-{number}" for number in range(450)]
    ids = {
        name: account.ec2.run({**OURS, "karpenter.sh/nodeclaim": name, "kerf.dev/claim-uid": f"uid-{name}"})
        for name in names[::2]
    }
    found = account.done(*(account.instances.find(claim(name, f"uid-{name}")) for name in names))

    assert [ids.get(name) for name in names] == [
        each.provider_id.rpartition("/")[2] if each is not None else None for each in found
    ]
    assert 3 == len(account.ec2.asked("DescribeInstances"))


def test_a_search_that_fails_fails_for_all_that_wait(account: Account) -> None:
    """And the next one is asked anew."""
    account.ec2.throttle = {"DescribeInstances": 1}
    found = account.done(*(account.instances.find(claim(f"gpu-{number}")) for number in range(2)))

    assert [Throttled, Throttled] == [type(each) for each in found]
    assert account.done(account.instances.find(claim())) is None


def test_many_instances_are_ended_in_calls_that_ec2_takes(account: Account) -> None:
    """One that is protected is looked for among a hundred, and not among all that end at that time."""
    ids = [account.ec2.run(OURS) for _ in range(250)]
    account.ec2.protected.add(ids[120])
    results = account.done(*(account.instances.delete(f"aws:///us-east-1a/{each}") for each in ids))
    sizes = [len(each["InstanceIds"]) for each in account.ec2.asked("TerminateInstances")]

    assert [100, 100, *[1] * 100, 50] == sizes
    assert [ids[120]] == [each for each, said in zip(ids, results, strict=True) if isinstance(said, ApiFailed)]
    assert 1 == len(account.ec2.running)


def test_an_instance_that_may_not_be_ended_stops_no_other_termination(account: Account) -> None:
    """Termination protection: the others end, the error names the one, whatever EC2 says; for Kerf it runs on."""
    ids = [account.ec2.run(OURS) for _ in range(3)]
    account.ec2.protected.add(ids[1])
    account.instances.note(launched(ids[1]))
    results = account.done(*(account.instances.delete(f"aws:///us-east-1a/{each}") for each in ids))

    assert [None, None] == [results[0], results[2]]
    assert "TerminateInstances: OperationNotPermitted: i-0002: One of them may not be terminated." == str(results[1])
    assert [ids[1]] == [each["InstanceId"] for each in account.ec2.running]
    assert [InstanceState.PENDING] == [
        each.state for each in account.done(account.instances.all()) if each.provider_id.endswith(ids[1])
    ]
    account.ec2.protected.clear()
    assert account.done(account.instances.delete(f"aws:///us-east-1a/{ids[1]}")) is None
    assert [] == account.ec2.running


def test_credentials_that_have_expired_are_not_tried_for_each_instance(account: Account) -> None:
    """All of a batch fail by one call."""

    def expired(**_: object) -> Reply:
        raise ApiFailed("TerminateInstances", "ExpiredToken", "expired")

    account.ec2.answers["TerminateInstances"] = expired
    ids = [f"aws:///us-east-1a/{account.ec2.run(OURS)}" for _ in range(3)]
    results = account.done(*map(account.instances.delete, ids))

    assert ["TerminateInstances: ExpiredToken: expired"] * 3 == [str(each) for each in results]
    assert 1 == len(account.ec2.asked("TerminateInstances"))


@pytest.mark.parametrize(
    "tags", [{}, {"kubernetes.io/cluster/other": "owned", "karpenter.sh/nodepool": "gpu"}, {"Name": "database"}]
)
def test_an_instance_of_another_owner_is_never_ended(account: Account, tags: dict[str, str]) -> None:
    """For Kerf there is no such instance."""
    other = f"aws:///us-east-1a/{account.ec2.run(tags)}"

    assert isinstance(account.done(account.instances.delete(other)), InstanceNotFound)
    assert isinstance(account.done(account.instances.get(other)), InstanceNotFound)
    assert {} == account.done(account.instances.located([other.rpartition("/")[2]]))
    assert [] == account.ec2.asked("TerminateInstances")


@pytest.mark.parametrize("provider_id", ["fake:///nowhere/i-0", "aws:///us-east-1a/vol-1", "kwok:///a/uid", ""])
def test_an_id_of_another_cloud_is_not_found(account: Account, provider_id: str) -> None:
    """EC2 is not asked."""
    assert isinstance(account.done(account.instances.delete(provider_id)), InstanceNotFound)
    assert [] == account.ec2.calls


def test_the_instance_of_a_claim_is_found_by_its_uid(account: Account) -> None:
    """Of two with one uid, which should never be, always the same."""
    first = account.ec2.run(OURS)
    account.ec2.run(OURS)
    found = account.done(account.instances.find(claim()))

    assert (f"aws:///us-east-1a/{first}", None) == (
        found.provider_id,
        account.done(account.instances.find(claim(uid="uid-2"))),
    )
    assert replace(found, labels={}) in [replace(each, labels={}) for each in account.done(account.instances.all())]


KARPENTERS = {key: value for key, value in OURS.items() if not key.startswith("kerf.dev/")}


@pytest.mark.parametrize(
    ("tags", "age_s", "is_found"),
    [
        (KARPENTERS, 100, True),
        (KARPENTERS, 1000, False),
        ({**KARPENTERS, "karpenter.sh/nodeclaim": "gpu-2"}, 100, False),
        ({**KARPENTERS, "kubernetes.io/cluster/gpu": "shared"}, 100, False),
        ({**OURS, "kerf.dev/claim-uid": "uid-2"}, 100, False),
    ],
)
def test_an_instance_of_karpenter_is_found_by_the_name_of_its_claim(
    account: Account, tags: dict[str, str], age_s: float, is_found: bool
) -> None:
    """Karpenter writes no uid. Not one of another cluster, nor one that is older than the claim."""
    account.now += 1000 - age_s
    account.ec2.run(tags)
    wanted = replace(claim(), created_s=1900)
    account.now = 2000

    assert is_found == (account.done(account.instances.find(wanted)) is not None)


def test_the_uid_of_a_claim_counts_before_its_name(account: Account) -> None:
    """Where both Karpenter and Kerf launched for it, it keeps what Kerf's token gives."""
    account.ec2.run(KARPENTERS)
    ours = account.ec2.run(OURS)

    assert f"aws:///us-east-1a/{ours}" == account.done(account.instances.find(claim())).provider_id


def test_a_launched_instance_that_ec2_does_not_show_yet_is_located(account: Account) -> None:
    """A spot notice can come within the lag of EC2's lists, and comes once."""
    account.instances.note(launched("i-0009"))
    assert ["i-0009"] == list(account.done(account.instances.located(["i-0009", "i-0008"])))

    account.now += 61
    assert {} == account.done(account.instances.located(["i-0009"]))


class SlowAtFirst(FakeEC2):
    """Its first listing is as of when it was asked for, and comes when the second has come."""

    def __init__(self) -> None:
        super().__init__(lambda: 1000.0)
        self.listings, self.second = 0, asyncio.Event()

    async def pages(self, service: str, operation: str, key: str, **parameters: object) -> Any:
        """The elements, late if they are the first."""
        self.listings += 1
        is_first = self.listings == 1
        found = list(await super().pages(service, operation, key, **parameters))
        if is_first:
            await self.second.wait()
        self.second.set()
        return found


def test_a_listing_that_was_asked_for_first_and_comes_last_takes_nothing_back() -> None:
    """What was launched in between stays known."""
    ec2 = SlowAtFirst()
    instances = Instances(ec2, "gpu", lambda: 1000.0, batch_s=0)

    async def both() -> None:
        first = asyncio.create_task(instances.all())
        await asyncio.sleep(0.01)
        ec2.run(OURS)
        await instances.all()
        assert 1 == len(instances.listed())
        await first

    asyncio.run(both())
    assert 1 == len(instances.listed())
