"""Launches: one instance for a claim whatever happens, and what each answer of EC2 makes of it."""

import asyncio
import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kerf.cloudprovider import Instance, InstanceState, InsufficientCapacity, LaunchFailed, Throttled
from kerf.clouds.aws.api import ApiFailed, Reply
from kerf.clouds.aws.clients import ConnectionFailed
from kerf.clouds.aws.fleet import fleet_of
from kerf.clouds.aws.instances import Instances
from kerf.clouds.aws.launch import Launcher, Order
from kerf.clouds.aws.nodeclass.decode import decode
from kerf.clouds.aws.nodeclass.hashing import digest
from kerf.clouds.aws.nodeclass.status import Image, Resolved, SecurityGroup, Subnet
from kerf.clouds.aws.nodeclass.unusable import Unusable
from kerf.clouds.aws.overrides import overrides_of
from kerf.clouds.aws.reservations import Reservations
from kerf.clouds.aws.subnets import Subnets
from kerf.clouds.aws.tagging import instance_tags
from kerf.clouds.aws.templates import LaunchTemplate, Templates
from kerf.clouds.aws.userdata.facts import ClusterFacts
from kerf.errors import CloudError, DecodeError
from kerf.manifests.karpenter.ec2 import MOST_TAGS, PROVIDERS_TAGS
from kerf.model.constraints import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, Requirement, Requirements
from kerf.model.instancetypes import ON_DEMAND, SPOT, InstanceType, Offering, OfferingKey
from kerf.model.nodeclaim import NodeClaim
from kerf.model.quantities import PODS, Resources
from kerf.testing.builders import an_instance_type
from tests.clouds.aws.account import ManualClock
from tests.clouds.aws.ec2 import FakeEC2
from tests.clouds.aws.nodeclass.objects import an_object
from tests.clouds.market import MARKET, claim

G5 = claim(types=("g5.xlarge",))
SPOT_A, SPOT_B = (OfferingKey("g5.xlarge", zone, SPOT) for zone in ("us-east-1a", "us-east-1b"))
SUBNETS = (
    Subnet("subnet-a", "us-east-1a", "use1-az1", 100),
    Subnet("subnet-a2", "us-east-1a", "use1-az1", 50),
    Subnet("subnet-b", "us-east-1b", "use1-az2", 100),
)
FOUND = Resolved(SUBNETS, (SecurityGroup("sg-1"),), (Image("ami-1"),), instance_profile="profile")
CLUSTER = ClusterFacts("gpu", "https://gpu", ca_bundle="Y2E=", service_cidr="10.100.0.0/16", region="us-east-1")
NODE_CLASS = decode(an_object(tags={"team": "ml"}))


class Life:
    """EC2, a clock, and a Kerf that a test can start again."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.ec2 = FakeEC2(self.clock.now_s)
        self.waits: list[float] = []
        self.resolved: Resolved = FOUND
        self.types: Sequence[InstanceType] = MARKET
        self.restart()

    def restart(self) -> None:
        """Forget all but what EC2 has."""
        instances = Instances(self.ec2, CLUSTER.name, self.clock.now_s, batch_s=0)
        templates = Templates(self.ec2, self.clock, CLUSTER)
        subnets = Subnets(self.ec2, self.clock)
        self.instances = instances
        reservations = Reservations(self.ec2, self.clock)
        self.launcher = Launcher(
            self.ec2, instances, subnets, reservations, templates, CLUSTER, self.clock.now_s, self._sleep
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.seconds += seconds

    def launch(self, wanted: NodeClaim = G5) -> Instance:
        """The instance of a claim that was made just now."""
        return self.launch_all(wanted)[0]

    def launch_all(self, *wanted: NodeClaim) -> list[Instance]:
        """Several at once."""
        orders = [Order(self._new(each), NODE_CLASS, self.resolved, self.types) for each in wanted]

        async def run() -> list[Instance]:
            return await asyncio.gather(*map(self.launcher.launch, orders))

        return asyncio.run(run())

    def _new(self, wanted: NodeClaim) -> NodeClaim:
        return wanted if wanted.created_s else replace(wanted, created_s=self.clock.now_s())

    @property
    def tokens(self) -> list[str]:
        """Of the launches so far."""
        return [each["ClientToken"] for each in self.ec2.asked("CreateFleet")]

    def refuse(self, **codes: str) -> None:
        """Refuse offerings by zone letter or type, `_` for a dot; `all` for every one."""

        def code(override: Any) -> str:
            names = (override["AvailabilityZone"][-1], override["InstanceType"].replace(".", "_"), "all")
            return next((codes[name] for name in names if name in codes), "")

        self.ec2.refuses = code


@pytest.fixture
def life() -> Life:
    """A fresh account and a fresh Kerf."""
    return Life()


def test_an_instance_says_what_it_is(life: Life) -> None:
    """Offering, image, subnet, zone id, labels and capacity of its type, and the claim's name and uid."""
    got = life.launch()

    assert ("aws:///us-east-1a/i-0001", "uid-1", "gpu-1", SPOT_A) == (
        got.provider_id, got.claim_uid, got.claim_name, got.offering
    )  # fmt: skip
    assert ("ami-1", "subnet-a", "use1-az1", InstanceState.PENDING) == (got.image, got.subnet, got.zone_id, got.state)
    wanted = {
        INSTANCE_TYPE: "g5.xlarge",
        ZONE: "us-east-1a",
        CAPACITY_TYPE: SPOT,
        "topology.k8s.aws/zone-id": "use1-az1",
    }
    assert wanted.items() <= got.labels.items()
    assert MARKET[1].allocatable == got.allocatable


def test_user_data_says_no_zone_that_ec2_may_not_choose(life: Life) -> None:
    """The label of a zone's id is that of the subnet, whatever the claim says of itself."""
    life.launch(replace(G5, labels={"topology.k8s.aws/zone-id": "use1-az9", "team": "ml"}))
    (asked,) = life.ec2.asked("CreateLaunchTemplate")
    text = base64.b64decode(asked["LaunchTemplateData"]["UserData"]).decode()

    assert ("team=ml" in text, "zone-id" in text) == (True, False)


@pytest.mark.parametrize("asked", [0, 1])
def test_an_instance_has_efa_only_where_a_pod_asked_for_it(life: Life, asked: int) -> None:
    """A plain interface registers no such device, and a node that never shows what it promised is never initialised."""
    efa = "vpc.amazonaws.com/efa"
    life.types = [replace(each, capacity=each.capacity.replaced({efa: 4})) for each in MARKET]
    got = life.launch(replace(G5, requests=Resources({"cpu": 100, **({efa: asked} if asked else {})})))
    (made,) = life.ec2.asked("CreateLaunchTemplate")
    kinds = [each.get("InterfaceType") for each in made["LaunchTemplateData"]["NetworkInterfaces"]]

    wanted = (["efa"] * 4, 4, 4) if asked else ([None], 0, 0)
    assert wanted == (kinds, got.capacity.get(efa, 0), got.allocatable.get(efa, 0))


def test_tags_are_there_at_birth(life: Life) -> None:
    """Karpenter's, the NodeClass's own, and the uid: without one of them the instance would be lost after a crash."""
    life.launch()
    (asked,) = life.ec2.asked("CreateFleet")
    tags = {each["Key"]: each["Value"] for each in asked["TagSpecifications"][0]["Tags"]}

    assert f"kerf-v1-{digest(NODE_CLASS, CLUSTER.ca_bundle)}" == tags.pop("kerf.dev/nodeclass-hash")
    assert {
        "Name": "gpu/gpu-1",
        "team": "ml",
        "eks:eks-cluster-name": "gpu",
        "karpenter.k8s.aws/ec2nodeclass": "default",
        "karpenter.sh/nodeclaim": "gpu-1",
        "karpenter.sh/nodepool": "gpu",
        "kerf.dev/claim-uid": "uid-1",
        "kubernetes.io/cluster/gpu": "owned",
    } == tags
    assert ["fleet", "instance", "volume"] == sorted(each["ResourceType"] for each in asked["TagSpecifications"])


def test_an_ec2_node_class_may_have_as_many_tags_as_its_instances(life: Life) -> None:
    """EC2 takes 50 of an instance; ours are counted, and a name of the user takes the place of ours."""
    life.launch()
    (asked,) = life.ec2.asked("CreateFleet")
    ours = {each["Key"] for each in asked["TagSpecifications"][0]["Tags"]} - {"team"}
    assert {*PROVIDERS_TAGS, "kubernetes.io/cluster/gpu"} == ours

    tags = {f"team-{number}": "ml" for number in range(42)}
    for good in (tags, {**tags, "Name": "mine"}):
        made = instance_tags(G5, decode(an_object(tags=good)), "gpu", "digest")
        assert MOST_TAGS == len(made)
        with pytest.raises(DecodeError, match=rf"spec\.tags: expected at most {len(good)} tags: Kerf adds"):
            decode(an_object(tags={**good, "one": "more"}))


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_lost_reply_gives_the_same_instance(life: Life, is_restarted: bool) -> None:
    """EC2 launched it and the reply did not arrive; also when Kerf was killed then: one instance with that uid."""
    life.ec2.lose_replies = 1
    with pytest.raises(ConnectionFailed):
        life.launch()
    if is_restarted:
        life.restart()

    assert ("i-0001", 1) == (life.launch().provider_id.rpartition("/")[2], len(life.ec2.running))
    assert life.launch() == life.launch()


def test_a_retry_whose_request_has_changed_mismatches_nowhere(life: Life) -> None:
    """Prices moved between the lost reply and the retry: the request that was not answered is sent again."""
    life.ec2.lose_replies, life.ec2.lag_s = 1, 10
    with pytest.raises(ConnectionFailed):
        life.launch()
    life.types = (MARKET[1], replace(MARKET[1], name="g4dn.xlarge"))
    life.launch()

    assert (["uid-1", "uid-1"], 1, []) == (life.tokens, len(life.ec2.running), life.waits)


def test_a_restart_with_changed_prices_finds_the_hidden_instance(life: Life) -> None:
    """Killed after a launch that EC2 does not list yet: the token mismatches, and the instance is waited for."""
    life.ec2.lose_replies, life.ec2.lag_s = 1, 10
    with pytest.raises(ConnectionFailed):
        life.launch()
    life.restart()
    life.resolved = replace(FOUND, subnets=SUBNETS[:1])

    assert "aws:///us-east-1a/i-0001" == life.launch().provider_id
    assert ([1, 2, 4, 8], 1) == (life.waits, len(life.ec2.running))


def test_a_token_that_was_answered_with_nothing_is_not_used_again(life: Life) -> None:
    """EC2 would give the same refusal: after a restart the claim is launched by its uid and a number."""
    life.refuse(all="InsufficientInstanceCapacity")
    with pytest.raises(InsufficientCapacity):
        life.launch()
    life.restart()
    life.refuse()
    life.resolved = replace(FOUND, subnets=SUBNETS[:1])
    life.launch()

    assert (["uid-1", "uid-1", "uid-1-2"], 1) == (life.tokens, len(life.ec2.running))


def poor_replies(life: Life, *, is_named: bool) -> None:
    """From now on EC2 launches, and does not say where: with the id alone, or with nothing at all."""
    create = life.ec2.launch

    def poor(**given: object) -> Reply:
        instances = [{"InstanceIds": each["InstanceIds"]} for each in create(given)["Instances"]]
        return {"Instances": instances if is_named else [], "Errors": []}

    life.ec2.answers["CreateFleet"] = poor


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("lag_s", [0, 10])
def test_a_reply_that_is_not_whole_gives_the_instance_that_was_launched(
    life: Life, is_named: bool, lag_s: float
) -> None:
    """It is looked for before anything else is asked for: each token more would be an instance more."""
    poor_replies(life, is_named=is_named)
    life.ec2.lag_s = lag_s
    got = life.launch()

    assert ("aws:///us-east-1a/i-0001", ["uid-1"], 1) == (got.provider_id, life.tokens, len(life.ec2.running))
    assert got == life.launch()


def test_a_reply_that_names_an_instance_spends_no_token(life: Life) -> None:
    """However long EC2 hides it: the same request is repeated until it is shown."""
    poor_replies(life, is_named=True)
    life.ec2.lag_s = 100
    for _ in range(3):
        with pytest.raises(CloudError, match="i-0001 was launched for gpu-1, and EC2 does not show it yet"):
            life.launch()
    life.clock.seconds += 100

    assert ("aws:///us-east-1a/i-0001", {"uid-1"}) == (life.launch().provider_id, set(life.tokens))
    assert 1 == len(life.ec2.running)


def test_a_reply_without_anything_spends_a_token_once_nothing_is_found(life: Life) -> None:
    """EC2 would give the same reply to the same token for ever."""
    answers: list[Reply] = [{"Instances": [], "Errors": []}]
    create = life.ec2.launch
    life.ec2.answers["CreateFleet"] = lambda **given: answers.pop() if answers else create(given)
    life.launch()

    assert (["uid-1", "uid-1-2"], [1, 2, 4, 8], 1) == (life.tokens, life.waits, len(life.ec2.running))


def test_a_call_that_was_refused_spends_no_token(life: Life) -> None:
    """EC2 never saw it: a Kerf that is killed at the next try, with the instance hidden, must find the same token."""

    def refused(**_: object) -> Reply:
        raise ApiFailed("CreateFleet", "UnauthorizedOperation", "not yet")

    life.ec2.answers["CreateFleet"] = refused
    with pytest.raises(LaunchFailed, match="not yet"):
        life.launch()
    del life.ec2.answers["CreateFleet"]
    life.ec2.lose_replies, life.ec2.lag_s = 1, 10
    with pytest.raises(ConnectionFailed):
        life.launch()
    life.restart()
    life.launch()

    assert (["uid-1"] * 3, 1) == (life.tokens, len(life.ec2.running))


def test_a_refused_call_is_prepared_again(life: Life) -> None:
    """What was refused may be in the request itself, such as a subnet that is gone."""

    def refused(**_: object) -> Reply:
        raise ApiFailed("CreateFleet", "InvalidSubnetID.NotFound", "no subnet-a")

    life.ec2.answers["CreateFleet"] = refused
    with pytest.raises(LaunchFailed, match="no subnet-a"):
        life.launch()
    del life.ec2.answers["CreateFleet"]
    life.resolved = replace(FOUND, subnets=SUBNETS[1:2])

    assert "subnet-a2" == life.launch().subnet


def test_a_launch_that_karpenter_had_under_way_is_taken_over(life: Life) -> None:
    """On the day of the switch: Karpenter launched and went before it wrote the provider id on the claim."""
    tags = {"kubernetes.io/cluster/gpu": "owned", "karpenter.sh/nodepool": "gpu", "karpenter.sh/nodeclaim": "gpu-1"}
    of_karpenter = replace(G5, created_s=life.clock.seconds)
    number = life.ec2.run(tags)
    life.clock.seconds += 30
    got = life.launch(of_karpenter)

    assert (f"aws:///us-east-1a/{number}", [], 1) == (got.provider_id, life.tokens, len(life.ec2.running))
    assert MARKET[1].capacity == got.capacity


def test_an_ended_claim_gets_no_second_instance(life: Life) -> None:
    """The token of an instance that has ended is used up."""
    got = life.launch()
    asyncio.run(life.instances.delete(got.provider_id))
    with pytest.raises(LaunchFailed, match="has ended"):
        life.launch()
    assert [] == life.ec2.running


def test_a_repeated_launch_asks_for_no_second_one(life: Life) -> None:
    """An instance that EC2 does not list yet is the claim's all the same."""
    life.ec2.lag_s = 10
    first, second = life.launch(), life.launch()

    assert (first, ["uid-1"]) == (second, life.tokens)


def test_what_is_sold_out_is_passed_over_and_named(life: Life) -> None:
    """Two of three offerings are refused: the third is launched, and exactly these two are said, with EC2's code."""
    third = replace(MARKET[1], offerings=tuple(Offering(f"us-east-1{zone}", SPOT, 2) for zone in "abc"))
    life.types = (third,)
    life.resolved = replace(FOUND, subnets=(*SUBNETS, Subnet("subnet-c", "us-east-1c", "use1-az3", 9)))
    life.refuse(a="InsufficientInstanceCapacity", b="Unsupported")
    got = life.launch()

    assert "us-east-1c" == got.offering.zone
    assert {SPOT_A: "InsufficientInstanceCapacity", SPOT_B: "Unsupported"} == got.sold_out


def test_everything_sold_out_is_said_of_each_offering(life: Life) -> None:
    """The claim goes and the next plan knows all of them; nothing is left behind."""
    life.refuse(a="InsufficientInstanceCapacity", b="MaxSpotInstanceCountExceeded")
    with pytest.raises(InsufficientCapacity) as caught:
        life.launch()

    assert {SPOT_A: "InsufficientInstanceCapacity", SPOT_B: "MaxSpotInstanceCountExceeded"} == caught.value.reasons
    assert [] == life.ec2.running


def test_a_stock_out_rests_for_other_claims_unless_a_plan_wants_it(life: Life) -> None:
    """For three minutes EC2 is not asked for it again."""
    life.refuse(a="InsufficientInstanceCapacity")
    life.launch()
    life.launch(claim("gpu-2", "uid-2", types=("g5.xlarge",)))
    zones = [
        [each["AvailabilityZone"][-1] for each in asked["LaunchTemplateConfigs"][0]["Overrides"]]
        for asked in life.ec2.asked("CreateFleet")
    ]
    assert [["a", "b"], ["b"]] == zones

    life.clock.seconds += 181
    life.launch(claim("gpu-3", "uid-3", types=("g5.xlarge",)))
    assert 2 == len(life.ec2.asked("CreateFleet")[2]["LaunchTemplateConfigs"][0]["Overrides"])


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "Throttling.User", "RequestThrottled"])
def test_throttling_inside_a_fleet_marks_nothing(life: Life, code: str) -> None:
    """Taken for a stock-out it would empty the market."""
    life.refuse(all=code)
    with pytest.raises(Throttled):
        life.launch()
    life.refuse()

    assert SPOT_A == life.launch().offering


def test_a_throttled_call_marks_nothing_and_keeps_its_token(life: Life) -> None:
    """Three refusals, and then the same request once more."""
    life.ec2.throttle["CreateFleet"] = 3
    for _ in range(3):
        with pytest.raises(Throttled):
            life.launch()

    assert ({}, {"uid-1"}) == (life.launch().sold_out, set(life.tokens))


def test_a_full_subnet_is_left_for_another_of_its_zone(life: Life) -> None:
    """The zone stays: EC2 refused the subnet with most addresses, and the next try takes the other."""
    life.types = (replace(MARKET[1], offerings=(Offering("us-east-1a", SPOT, 2),)),)
    life.ec2.refuses = lambda each: "InsufficientFreeAddressesInSubnet" if each["SubnetId"] == "subnet-a" else ""
    got = life.launch()

    assert ("subnet-a2", "us-east-1a", {}) == (got.subnet, got.offering.zone, got.sold_out)


def test_a_zone_whose_subnets_are_all_full_is_named(life: Life) -> None:
    """With no subnet left there is nothing to ask for."""
    life.refuse(all="InsufficientFreeAddressesInSubnet")
    with pytest.raises(InsufficientCapacity, match=r"no subnet has a free address: g5\.xlarge spot in us-east-1a"):
        life.launch()
    assert [] == life.ec2.running


def test_a_burst_spreads_over_the_addresses_of_its_subnets(life: Life) -> None:
    """EC2 counts late, so each launch on its way counts here: ten addresses take ten instances, and not one more."""
    life.types = (replace(MARKET[1], offerings=(Offering("us-east-1a", SPOT, 2),)),)
    life.resolved = replace(FOUND, subnets=(Subnet("s-1", "us-east-1a", "", 6), Subnet("s-2", "us-east-1a", "", 4)))
    claims = [claim(f"gpu-{n}", f"uid-{n}", types=("g5.xlarge",)) for n in range(10)]
    got = life.launch_all(*claims)

    assert (6, 4) == tuple(sum(each.subnet == name for each in got) for name in ("s-1", "s-2"))
    with pytest.raises(InsufficientCapacity, match="no subnet has a free address"):
        life.launch(claim("gpu-x", "uid-x", types=("g5.xlarge",)))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("UnauthorizedOperation", "Unauthorized"),
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "SpotSLRCreationFailed"),
        ("InvalidAMIID.NotFound", "InvalidAMIID"),
        ("AuthFailure", "AuthFailure"),
        ("TagLimitExceeded", "TagLimitExceeded"),
        ("SomethingNew", "LaunchFailed"),
    ],
)
def test_another_failure_has_the_reason_of_its_condition(life: Life, code: str, reason: str) -> None:
    """Karpenter's words but for AuthFailure, which no policy causes; nothing of it is taken for a stock-out."""
    life.refuse(all=code)
    with pytest.raises(LaunchFailed) as caught:
        life.launch()
    assert reason == caught.value.reason


def test_a_template_that_is_gone_is_made_again(life: Life) -> None:
    """Another autoscaler deleted it: one retry, with a token of its own."""
    answers = ["InvalidLaunchTemplateName.NotFoundException", ""]
    life.ec2.refuses = lambda _: answers[0] if len(life.ec2.asked("CreateFleet")) == 1 else answers[1]
    life.launch()

    assert (2, ["uid-1", "uid-1-2"]) == (len(life.ec2.asked("CreateLaunchTemplate")), life.tokens)


def test_no_image_for_the_types_is_the_fault_of_the_node_class(life: Life) -> None:
    """The claim goes, and the NodeClass says so."""
    life.resolved = replace(FOUND, images=())
    with pytest.raises(Unusable, match="AMINotFound"):
        life.launch()


def test_nothing_that_a_claim_allows_is_said(life: Life) -> None:
    """As when its types were taken from the region."""
    with pytest.raises(LaunchFailed, match="nothing is sold here that gpu-1 allows"):
        life.launch(claim(types=("x1.large",)))


@pytest.mark.parametrize(
    ("wanted", "options", "target"),
    [
        (G5, {"SpotOptions": {"AllocationStrategy": "price-capacity-optimized"}}, "spot"),
        (claim(capacity_types=(ON_DEMAND,)), {"OnDemandOptions": {"AllocationStrategy": "lowest-price"}}, "on-demand"),
    ],
)
def test_ec2_chooses_by_the_strategy_of_the_capacity_type(
    life: Life, wanted: NodeClaim, options: Any, target: str
) -> None:
    """One instance, at once."""
    life.launch(wanted)
    (asked,) = life.ec2.asked("CreateFleet")

    assert options.items() <= asked.items()
    assert ("instant", target, 1) == (asked["Type"], *asked["TargetCapacitySpecification"].values())


def test_a_body_of_many_types_zones_and_templates_is_bounded() -> None:
    """60 types in 6 zones for 4 templates: 300 overrides, the best ones, and less than EC2 takes."""
    zones = [f"us-east-1{letter}" for letter in "abcdef"]
    types: Sequence[InstanceType] = [
        an_instance_type(f"m{n}.large", cpu=4, offerings=tuple(Offering(zone, ON_DEMAND, 1000 + n) for zone in zones))
        for n in range(60)
    ]
    overrides = overrides_of(claim(), types)
    names = [kind.name for kind in types]
    templates = [LaunchTemplate(f"t-{n}", Image(f"ami-{n}"), tuple(names[n::4])) for n in range(4)]
    fleet = fleet_of(overrides, {zone: f"subnet-{zone}" for zone in zones}, templates, {})

    assert 300 == len(fleet.offerings)
    assert len(json.dumps(fleet.parameters)) < 60_000


FAMILY = "karpenter.k8s.aws/instance-family"


def dear_at_last(count: int, zones: Sequence[str]) -> list[InstanceType]:
    """So many types on demand, each with its own number of pods, the last of a family of its own."""
    return [
        replace(
            (kind := an_instance_type(
                f"m{n}.large", cpu=4, offerings=tuple(Offering(zone, ON_DEMAND, 1000 + n) for zone in zones)
            )),
            capacity=kind.capacity.replaced({PODS: 10 + n}),
            requirements=kind.requirements.intersect(
                Requirements.of_labels({FAMILY: "c1" if n == count - 1 else f"m{n}"})
            ),
        )
        for n in range(count)
    ]  # fmt: skip


def choice_of(key: str, values: Sequence[str], least: int) -> NodeClaim:
    """A claim for on-demand that keeps the choice of so many values."""
    asked = Requirement.of(key, "In", values, least), Requirement.of(CAPACITY_TYPE, "In", [ON_DEMAND])
    return replace(claim(), requirements=Requirements(asked))


@pytest.mark.parametrize("per_template", [1, 60])
def test_what_min_values_need_is_within_ec2s_limits(per_template: int) -> None:
    """Of 60 templates with a type in six zones each, and of one with all: the last type is there all the same."""
    zones = [f"us-east-1{letter}" for letter in "abcdef"]
    types = dear_at_last(60, zones)
    wanted = choice_of(FAMILY, ["c1", "m0"], 2)
    names = [kind.name for kind in types]
    templates = [
        LaunchTemplate(f"t-{at}", Image("ami-1"), tuple(names[at : at + per_template]))
        for at in range(0, 60, per_template)
    ]
    subnets = {zone: f"subnet-{zone}" for zone in zones}
    overrides = overrides_of(replace(wanted, requirements=Requirements()), types)
    fleet = fleet_of(overrides, subnets, templates, {}, requirements=wanted.requirements)
    configs = fleet.parameters["LaunchTemplateConfigs"]

    assert ("m59.large", zones[0]) in fleet.offerings
    assert (min(len(templates), 50), 300) == (len(configs), len(fleet.offerings))
    assert len(fleet.offerings) == sum(len(each["Overrides"]) for each in configs)
    assert ("m59.large", zones[0]) not in fleet_of(overrides, subnets, templates, {}).offerings


def test_min_values_beyond_ec2s_limits_are_said(life: Life) -> None:
    """51 types, each of which needs a template of its own; with 50 it goes."""
    life.types = dear_at_last(51, ["us-east-1a"])
    names = [kind.name for kind in life.types]
    with pytest.raises(
        LaunchFailed, match="instance-type: 50 of 51: EC2 takes no more than 60 types, 50 launch"
    ) as why:
        life.launch(choice_of(INSTANCE_TYPE, names, 51))
    assert "InstanceTypeResolutionFailed" == why.value.reason
    assert [] == life.ec2.asked("CreateFleet")

    life.launch(choice_of(INSTANCE_TYPE, names, 50))
    assert 50 == len(life.ec2.asked("CreateFleet")[0]["LaunchTemplateConfigs"])


def test_stock_that_leaves_too_little_choice_is_planned_again(life: Life) -> None:
    """As the plan would refuse it. A type that is sold out in one zone alone is a choice all the same."""
    life.types = dear_at_last(3, ["us-east-1a", "us-east-1b"])
    names = [kind.name for kind in life.types]
    wanted = choice_of(INSTANCE_TYPE, names, 3)
    keys = [OfferingKey("m1.large", f"us-east-1{zone}", ON_DEMAND) for zone in "ab"]
    life.launcher.mark({keys[0]: "sold out"})
    life.launch(wanted)

    life.launcher.mark({keys[1]: "sold out"})
    with pytest.raises(InsufficientCapacity) as why:
        life.launch(replace(wanted, name="gpu-2", uid="uid-2"))
    text = "sold out a moment ago, and without it minValues of node.kubernetes.io/instance-type: 2 of 3"
    assert dict.fromkeys(keys, text) == why.value.reasons
    assert 1 == len(life.ec2.asked("CreateFleet"))


def test_what_is_sold_no_more_takes_the_rest_not_along(life: Life) -> None:
    """The claim was planned with the choice."""
    life.types = dear_at_last(3, ["us-east-1a"])
    life.launch(choice_of(INSTANCE_TYPE, [*(kind.name for kind in life.types), "m9.large"], 4))

    assert 1 == len(life.ec2.running)
