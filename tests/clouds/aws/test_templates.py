"""Launch templates: named by their content, made once, tagged as Kerf's, and gone when no launch uses them."""

import asyncio
import base64
from dataclasses import replace

import pytest

from kerf.clouds.aws.api import ApiFailed
from kerf.clouds.aws.dryruns import USUAL_MACHINES, DryRuns
from kerf.clouds.aws.nodeclass.decode import decode
from kerf.clouds.aws.nodeclass.status import GOOD, Image, PlacementGroup, Resolved, SecurityGroup, Subnet
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.tagging import OWNED, read_tags
from kerf.clouds.aws.templates import ClaimFacts, Templates
from kerf.clouds.aws.userdata.facts import ClusterFacts
from kerf.model.constraints import ARCH, NODE_POOL, Requirement, Requirements
from tests.clouds.aws.account import Account, ManualClock, tags
from tests.clouds.aws.nodeclass.objects import an_object

AMD64, ARM64 = (
    Image(f"ami-{each}", requirements=Requirements([Requirement.of(ARCH, "In", [each])])) for each in ("amd64", "arm64")
)
FOUND = Resolved(
    subnets=(Subnet("subnet-1", "us-east-1a", free_addresses=9),),
    security_groups=(SecurityGroup("sg-1"),),
    images=(AMD64, ARM64),
    instance_profile="profile",
)
NODE_CLASS = decode(an_object(tags={"team": "ml"}))
CLUSTER = ClusterFacts("demo", "https://demo", ca_bundle="Y2E=", service_cidr="10.100.0.0/16", region="us-east-1")
MACHINES = USUAL_MACHINES[:3]
"""Of amd64, of arm64, and of amd64 with a GPU."""
CLAIM = ClaimFacts(labels={NODE_POOL: "gpu"})


def an_account() -> tuple[Account, ManualClock, Templates]:
    """An account without launch templates."""
    account, clock = Account(), ManualClock()
    return account, clock, Templates(account, clock, CLUSTER)


def test_types_share_the_template_of_their_image() -> None:
    """A template for each image, by the first type; it is made once."""
    account, _, templates = an_account()

    for _ in range(2):
        made = asyncio.run(templates.ensure(NODE_CLASS, FOUND, CLAIM, MACHINES))
        assert [("ami-amd64", ("m5.large", "g4dn.xlarge")), ("ami-arm64", ("m6g.large",))] == [
            (each.image.id, each.instance_types) for each in made
        ]
    assert 2 == len(account.named("CreateLaunchTemplate"))


def test_another_life_makes_the_same_template() -> None:
    """Its name is its content, so what exists already is right."""
    account, clock, templates = an_account()
    first = asyncio.run(templates.ensure(NODE_CLASS, FOUND, CLAIM, MACHINES))

    assert first == asyncio.run(Templates(account, clock, CLUSTER).ensure(NODE_CLASS, FOUND, CLAIM, MACHINES))
    assert 2 == len(account.templates)


def test_a_template_and_its_instances_name_their_pool() -> None:
    """Karpenter's policies ask for the tag on both; `kerf.dev/owned` is on the template alone."""
    account, _, templates = an_account()
    asyncio.run(templates.ensure(NODE_CLASS, FOUND, CLAIM, MACHINES[:1]))
    (held,) = account.templates.values()

    of_instances = {
        "team": "ml",
        "kubernetes.io/cluster/demo": "owned",
        "eks:eks-cluster-name": "demo",
        "karpenter.k8s.aws/ec2nodeclass": "default",
        NODE_POOL: "gpu",
    }
    assert {**of_instances, OWNED: "true"} == read_tags(held)
    assert [of_instances] == [read_tags(each) for each in held["Data"]["TagSpecifications"]]


def test_a_template_says_how_the_instance_starts() -> None:
    """Image, profile, groups, encrypted disk, token for metadata, no reserved capacity, and the user data."""
    account, _, templates = an_account()
    asyncio.run(templates.ensure(NODE_CLASS, FOUND, CLAIM, MACHINES[:1]))
    (held,) = account.templates.values()
    data = held["Data"]

    assert ("ami-amd64", {"Name": "profile"}) == (data["ImageId"], data["IamInstanceProfile"])
    assert [{"DeviceIndex": 0, "Groups": ["sg-1"]}] == data["NetworkInterfaces"]
    assert data["BlockDeviceMappings"][0]["Ebs"]["Encrypted"]
    assert "required" == data["MetadataOptions"]["HttpTokens"]
    assert {"CapacityReservationPreference": "none"} == data["CapacityReservationSpecification"]
    assert b"karpenter.sh/nodepool" in base64.b64decode(data["UserData"])


def test_types_that_no_image_runs_on_are_an_error() -> None:
    """The message names the types."""
    account, _, templates = an_account()

    with pytest.raises(Unusable, match=r"no image of default runs on m5\.large"):
        asyncio.run(templates.ensure(NODE_CLASS, Resolved(images=(ARM64,)), CLAIM, MACHINES[:1]))
    assert {} == account.templates


def test_a_template_goes_ten_minutes_after_its_last_use() -> None:
    """Each use keeps it; what Kerf did not make for this cluster stays."""
    account, clock, templates = an_account()
    account.templates["karpenter.k8s.aws/1"] = {"LaunchTemplateName": "karpenter.k8s.aws/1", "Tags": tags(team="ml")}
    amd64, arm64 = asyncio.run(templates.ensure(NODE_CLASS, FOUND, CLAIM, MACHINES))
    clock.seconds += 300
    asyncio.run(templates.ensure(NODE_CLASS, FOUND, CLAIM, MACHINES[1:2]))

    clock.seconds += 299
    assert () == asyncio.run(templates.collect())
    clock.seconds += 1
    assert (amd64.name,) == asyncio.run(templates.collect())
    assert {arm64.name, "karpenter.k8s.aws/1"} == account.templates.keys()


def test_what_an_earlier_life_left_goes_too() -> None:
    """The first look of a life counts as a use."""
    account, clock, templates = an_account()
    asyncio.run(templates.ensure(NODE_CLASS, FOUND, CLAIM, MACHINES))
    later = Templates(account, clock, CLUSTER)

    assert () == asyncio.run(later.collect())
    clock.seconds += 600
    assert sorted(account.templates) == sorted(asyncio.run(later.collect()))
    assert {} == account.templates


def test_all_templates_of_a_node_class_go_with_it() -> None:
    """Those of another one stay."""
    account, _, templates = an_account()
    asyncio.run(templates.ensure(NODE_CLASS, FOUND, CLAIM, MACHINES))
    (other,) = asyncio.run(templates.ensure(decode(an_object("other")), FOUND, CLAIM, MACHINES[:1]))

    assert 2 == len(asyncio.run(templates.delete_all(NODE_CLASS)))
    assert [other.name] == list(account.templates)


def test_a_template_that_may_not_be_deleted_holds_up_no_other() -> None:
    """Whatever its place in the order; the refusal names it, and is said at each turn."""
    for place in (0, 1):
        account, clock, templates = an_account()
        asyncio.run(templates.ensure(NODE_CLASS, FOUND, CLAIM, MACHINES))
        kept = sorted(account.templates)[place]
        account.kept = {kept}
        clock.seconds += 600
        for _ in range(2):
            with pytest.raises(ApiFailed, match=f"DeleteLaunchTemplate: UnauthorizedOperation: {kept}: not authorized"):
                asyncio.run(templates.collect())
            assert [kept] == list(account.templates)


NO_TEMPLATE = ApiFailed("CreateFleet", "InvalidLaunchTemplateName.NotFoundException", "the template does not exist")


def test_a_template_that_ec2_does_not_show_is_made_again() -> None:
    """Another program deleted it between two dry runs: that is no fault of the EC2NodeClass."""
    account, clock, templates = an_account()
    runs = DryRuns(account, clock, templates, "demo")
    asyncio.run(runs.validate(NODE_CLASS, FOUND))
    account.templates.clear()
    clock.seconds += 1800
    account.broken = {"CreateFleet": NO_TEMPLATE}

    assert GOOD == asyncio.run(runs.validate(NODE_CLASS, FOUND))
    assert 1 == len(account.templates)


def test_a_template_that_ec2_hides_is_waited_for() -> None:
    """The verdict is Unknown, and the next look asks again: it is not kept for ten minutes."""
    account, clock, templates = an_account()
    runs = DryRuns(account, clock, templates, "demo")
    account.hides_templates = True
    verdict = asyncio.run(runs.validate(NODE_CLASS, FOUND))
    assert ("AwaitingLaunchTemplate", True) == (verdict.reason, verdict.is_unknown)

    account.hides_templates = False
    assert GOOD == asyncio.run(runs.validate(NODE_CLASS, FOUND))


def test_another_placement_group_is_tried_again() -> None:
    """It is in the launch: a group that was made anew under its name has another id."""
    account, clock, templates = an_account()
    runs = DryRuns(account, clock, templates, "demo")
    for number in ("pg-1", "pg-1", "pg-2"):
        assert GOOD == asyncio.run(runs.validate(NODE_CLASS, replace(FOUND, placement_group=PlacementGroup(number))))

    assert 2 == len(account.named("CreateFleet"))


def test_a_dry_run_finds_what_the_policy_forbids() -> None:
    """The verdict names the call; it is good where all three calls pass."""
    account, clock, templates = an_account()
    assert GOOD == asyncio.run(DryRuns(account, clock, templates, "demo").validate(NODE_CLASS, FOUND))

    account.forbidden.add("CreateFleet")
    verdict = asyncio.run(DryRuns(account, clock, templates, "demo").validate(NODE_CLASS, FOUND))
    assert "CreateFleetAuthCheckFailed" == verdict.reason
