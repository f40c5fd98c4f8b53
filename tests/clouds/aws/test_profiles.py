"""Instance profiles: one for each role, made once, and gone when no claim needs them."""

import asyncio
from dataclasses import replace

import pytest

from kerf.clouds.aws.api import ApiFailed
from kerf.clouds.aws.nodeclass.decode import decode
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.profiles import Profiles
from tests.clouds.aws.account import ROLE, Account, ManualClock
from tests.clouds.aws.nodeclass.objects import an_object

NODE_CLASS = decode(an_object())


def an_account() -> tuple[Account, ManualClock, Profiles]:
    """An account with the role, without profiles."""
    account, clock = Account(), ManualClock()
    return account, clock, Profiles(account, clock, "demo", "us-east-1")


def test_a_role_gets_a_profile_once() -> None:
    """It has the role; a restart finds it by its name."""
    account, clock, profiles = an_account()
    name = asyncio.run(profiles.ensure(NODE_CLASS))

    assert [name, name] == [
        asyncio.run(each.ensure(NODE_CLASS)) for each in (profiles, Profiles(account, clock, "demo", "us-east-1"))
    ]
    assert [{"RoleName": ROLE}] == account.profiles[name]["Roles"]
    assert 1 == len(account.named("CreateInstanceProfile"))


def test_a_role_that_is_missing_is_said() -> None:
    """IAM is asked again a minute later."""
    account, clock, profiles = an_account()
    account.roles.clear()
    for _ in range(2):
        with pytest.raises(Unusable, match=f"RoleNotFound: IAM has no role {ROLE}"):
            asyncio.run(profiles.ensure(NODE_CLASS))
    assert 1 == len(account.named("AddRoleToInstanceProfile"))

    account.roles.add(ROLE)
    clock.seconds += 60
    assert asyncio.run(profiles.ensure(NODE_CLASS)) in account.profiles


def test_a_profile_of_the_user_is_never_touched() -> None:
    """No call is made for it."""
    account, _, profiles = an_account()

    assert "mine" == asyncio.run(profiles.ensure(decode(an_object(role=None, instanceProfile="mine"))))
    assert [] == account.calls


def test_another_role_gets_another_profile_and_the_old_one_goes_later() -> None:
    """It stays while a claim has it, and for an hour."""
    account, clock, profiles = an_account()
    account.roles.add("second")
    old = asyncio.run(profiles.ensure(NODE_CLASS))
    changed = replace(decode(an_object(role="second")), instance_profile=old)
    new = asyncio.run(profiles.ensure(changed))

    assert () == asyncio.run(profiles.collect([new], []))
    clock.seconds += 3600
    assert () == asyncio.run(profiles.collect([new], [old]))
    assert (old,) == asyncio.run(profiles.collect([new], []))
    assert [new] == list(account.profiles)


def test_a_node_class_takes_its_profiles_along() -> None:
    """Those of another one stay."""
    account, _, profiles = an_account()
    name, other = (asyncio.run(profiles.ensure(each)) for each in (NODE_CLASS, decode(an_object("other"))))

    assert (name,) == asyncio.run(profiles.delete_all(NODE_CLASS))
    assert [other] == list(account.profiles)


def test_a_profile_of_karpenter_is_not_collected() -> None:
    """It lies below the same path; Karpenter goes on to use it where Kerf is only tried."""
    account, clock, profiles = an_account()
    name = asyncio.run(profiles.ensure(NODE_CLASS))
    theirs = {**account.profiles[name], "InstanceProfileName": "demo_1", "Tags": []}
    account.profiles["demo_1"] = theirs
    clock.seconds += 3600

    assert () == asyncio.run(profiles.collect([name], []))
    assert {name, "demo_1"} == set(account.profiles)


def test_a_profile_that_may_not_be_deleted_holds_up_no_other() -> None:
    """Those of two EC2NodeClasses that are gone: the refused one is named."""
    for place in (0, 1):
        account, clock, profiles = an_account()
        for number in range(2):
            asyncio.run(profiles.ensure(replace(NODE_CLASS, uid=f"uid-{number}")))
        kept = sorted(account.profiles)[place]
        account.kept = {kept}
        clock.seconds += 3600
        with pytest.raises(ApiFailed, match=f"DeleteInstanceProfile: AccessDenied: {kept}: not authorized"):
            asyncio.run(profiles.collect((), ()))
        assert [kept] == list(account.profiles)
