"""AWS as a provider, by boto3 on the wire: moto behind the fault proxy, which enforces the policies of Kerf's role."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kerf.cloudprovider import InstanceNotFound, InterruptionKind, NodeClassNotReady
from kerf.clouds.aws.provider import AwsCloud, AwsOptions
from kerf.clouds.aws.userdata.facts import ClusterFacts
from kerf.errors import CloudError
from kerf.model.nodeclaim import NodeClaim
from kerf.model.times import instant_text
from kerf.telemetry import REGISTRY
from kerf.testing.conformance import CHECKS, Bench
from kerf.testing.faultproxy.stock import CloudPlacementGroup, CloudReservation
from tests.awscloud import REGION
from tests.awscloud import AwsCloud as Cloud
from tests.clouds.aws.eks import QUEUE, Eks


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_promises_of_every_provider(eks: Eks, check: Any) -> None:
    """The checks for authors of providers, unchanged."""
    stock, events = eks.cloud.proxy.stock, eks.cloud.proxy.events

    def interrupt(provider_id: str) -> None:
        events.spot_notice(provider_id.rpartition("/")[2])

    bench = Bench(
        eks.provider,
        eks.pool(),
        eks.claim(),
        eks.wait,
        sell_out=stock.sell_out,
        leave=lambda count: stock.limit("*", "*", "*", count),
        interrupt=interrupt,
        now_s=eks.clock.now_s,
        node_class=eks.node_class,
    )
    eks.done(check(bench))


def launched(eks: Eks, number: int = 1, **given: Any) -> NodeClaim:
    """A claim that was launched, as the lifecycle leaves it."""
    claim = eks.claim(number, **given)
    instance = eks.done(eks.provider.create(claim))
    return replace(claim, provider_id=instance.provider_id, labels={**claim.labels, **instance.labels})


def test_what_a_machine_wrote_is_shown_by_a_command_that_ec2_answers(eks: Eks) -> None:
    """With its own id; the console of now where the machine has one. A claim without an instance has none."""
    claim = launched(eks)
    words = eks.provider.boot_log(claim).split()
    given = dict(zip(words[3::2], words[4::2], strict=False))

    assert (["aws", "ec2", "get-console-output"], REGION) == (words[:3], given["--region"])
    assert words[-3:] == ["--latest", "--output", "text"]
    assert (
        given["--instance-id"]
        == eks.cloud.client("ec2").get_console_output(InstanceId=given["--instance-id"])["InstanceId"]
    )
    xen = replace(claim, labels={**claim.labels, "karpenter.k8s.aws/instance-hypervisor": "xen"})
    assert "--latest" not in eks.provider.boot_log(xen)
    assert "" == eks.provider.boot_log(eks.claim(2))


def test_each_change_of_what_a_node_class_selects_is_drift(eks: Eks) -> None:
    """Karpenter's reasons: spec, image, security group, subnet; a node that is as it should be has none."""
    claim = launched(eks)

    def reason(**spec: Any) -> str | None:
        async def look() -> str | None:
            changed = {**eks.node_class, "spec": {**eks.node_class["spec"], **spec}}
            await eks.provider.node_classes.resolve(changed)
            return await eks.provider.drift(claim)

        found: str | None = eks.done(look())
        return found

    (group,) = (eks.cloud.client("ec2").create_security_group(GroupName="more", Description="more")["GroupId"],)
    others = [{"id": eks.subnets[zone]} for zone in eks.subnets if eks.subnets[zone] != _subnet(eks, claim)]

    assert "NodeClassDrift" == reason(tags={"team": "ml"})
    assert "SecurityGroupDrift" == reason(securityGroupSelectorTerms=[{"id": group}])
    assert "SubnetDrift" == reason(subnetSelectorTerms=others)
    assert reason() is None


def _subnet(eks: Eks, claim: NodeClaim) -> str:
    return str(eks.done(eks.provider.get(claim.provider_id)).subnet)


@pytest.mark.parametrize(("variant", "reason"), [("nvidia", "AMIDrift"), ("standard", None)])
def test_a_new_image_is_drift_where_it_would_be_taken(eks: Eks, variant: str, reason: str | None) -> None:
    """`@latest` of the variant that GPUs run is another one; a release for other types changes nothing."""
    claim = launched(eks)
    eks.cloud.clock.advance(600)
    eks.cloud.proxy.images.release_al2023("1.34", "v20261120", variant=variant)

    async def look() -> str | None:
        await eks.provider.node_classes.resolve(eks.node_class)
        return await eks.provider.drift(claim)

    assert reason == eks.done(look())


def test_what_karpenter_launched_does_not_drift_by_our_digest(eks: Eks) -> None:
    """Its instances have no digest that Kerf knows, so a changed EC2NodeClass says nothing about them."""
    claim = launched(eks)
    number = claim.provider_id.rpartition("/")[2]
    eks.cloud.client("ec2").delete_tags(Resources=[number], Tags=[{"Key": "kerf.dev/nodeclass-hash"}])
    changed = eks.document(**{**eks.node_class["spec"], "tags": {"team": "ml"}})

    async def look() -> str | None:
        await eks.provider.node_classes.resolve(changed)
        return await eks.provider.drift(claim)

    assert eks.done(look()) is None


def test_an_instance_in_the_placement_group_that_is_selected_does_not_drift(eks: Eks) -> None:
    """Neither at once, nor after a restart at which AWS does not answer for its reservation and group."""
    stock = eks.cloud.proxy.stock
    stock.reserve(CloudReservation("cr-1", "g5.xlarge", "us-east-1a", left=2))
    stock.group(CloudPlacementGroup("pg-1", "near"))
    terms = {"capacityReservationSelectorTerms": [{"id": "cr-1"}], "placementGroupSelector": {"name": "near"}}
    document = eks.document(**terms)
    eks.done(eks.provider.node_classes.resolve(document))
    claim = launched(eks, zones=("us-east-1a",), capacity_types=("reserved",))
    assert eks.done(eks.provider.drift(claim)) is None

    for operation in ("DescribeCapacityReservations", "DescribePlacementGroups"):
        eks.cloud.proxy.faults.throttle(operation, 4)
    life = eks.life()
    state = eks.done(life.node_classes.resolve(document))
    assert {"Unknown"} == {each["status"] for each in state.status["conditions"] if each["reason"] == "AWSUnavailable"}
    assert eks.done(life.drift(claim)) is None


def test_a_new_life_finds_the_instance_whose_reply_was_lost(eks: Eks) -> None:
    """Kerf is killed after EC2 launched and before it heard so: the claim gets that instance."""
    eks.cloud.proxy.faults.lose_reply("CreateFleet")
    claim = eks.claim()
    with pytest.raises(CloudError):
        eks.done(eks.provider.create(claim))
    eks.cloud.clock.advance(20)
    again = eks.life()

    found = eks.done(again.create(claim))
    assert [found.provider_id] == [each.provider_id for each in eks.done(again.list_instances())]
    assert "uid-1" == found.claim_uid


def test_a_fractional_card_is_sold_as_its_slice(eks: Eks) -> None:
    """g6f.large: one card of 2,861 MiB, an eighth of a physical one, with a note that nobody verified the plugin."""
    types = {each.name: each for each in eks.done(eks.provider.instance_types(eks.pool()))}
    kind = types["g6f.large"]

    assert (1, 2861, 1) == (kind.capacity["nvidia.com/gpu"], kind.devices[0].memory_mib, kind.gpu_eighths)
    assert "what the device plugin shows on it was not verified" in kind.notes


def test_types_are_of_the_zones_of_the_subnets_and_the_same_until_they_change(eks: Eks) -> None:
    """Another call gives the same object, so a plan need not be made anew."""
    first, second = (eks.done(eks.provider.instance_types(eks.pool())) for _ in range(2))

    assert first is second
    assert set(eks.subnets) == {offering.zone for kind in first for offering in kind.offerings}


@pytest.mark.long
def test_live_prices_go_over_the_packaged_ones(eks: Eks) -> None:
    """On demand, and spot by zone: a zone without a spot price has no spot offering."""
    stock = eks.cloud.proxy.stock
    stock.price("g5.xlarge", 9.5)
    stock.spot_price("g5.xlarge", "us-east-1a", 1.25)
    loops = {loop.name: loop for loop in eks.provider.loops}
    eks.done(loops["prices"].turn())
    kind = {each.name: each for each in eks.done(eks.provider.instance_types(eks.pool()))}["g5.xlarge"]

    assert [
        ("us-east-1a", "on-demand", 9_500_000, False),
        ("us-east-1b", "on-demand", 9_500_000, False),
        ("us-east-1a", "spot", 1_250_000, False),
    ] == [(each.zone, each.capacity_type, each.price_micro, each.is_estimate) for each in kind.offerings]
    assert () == kind.notes


@pytest.mark.long
def test_prices_that_may_not_be_asked_for_are_the_packaged_ones_and_say_so(eks: Eks) -> None:
    """Without the permission Kerf goes on, with a note on each type."""
    before = eks.done(eks.provider.instance_types(eks.pool()))
    for action in ("pricing:GetProducts", "ec2:DescribeSpotPriceHistory", "ec2:DescribeInstanceTypes"):
        eks.cloud.proxy.faults.deny(action)
    loops = {loop.name: loop for loop in eks.provider.loops}
    eks.done(loops["prices"].turn())
    after = {each.name: each for each in eks.done(eks.provider.instance_types(eks.pool()))}

    (kind,) = (each for each in before if each.name == "g5.xlarge")
    assert kind.offerings == after["g5.xlarge"].offerings
    assert "on-demand prices are not live (GetProducts: AccessDeniedException)" in after["g5.xlarge"].notes


def test_a_reservation_is_sold_until_it_is_full_and_a_block_until_it_ends(eks: Eks) -> None:
    """What is left of it and what runs in it; a block is sold no more 40 minutes before its end."""
    stock, now_s = eks.cloud.proxy.stock, eks.clock.now_s()
    stock.reserve(CloudReservation("cr-1", "g5.xlarge", "us-east-1a", left=2))
    for name, minutes in (("cr-39", 39), ("cr-41", 41)):
        end_s = now_s + 60 * minutes
        stock.reserve(CloudReservation(name, "p5.48xlarge", "us-east-1a", left=1, kind="capacity-block", end_s=end_s))
    terms = [{"id": name} for name in ("cr-1", "cr-39", "cr-41")]
    changed = eks.document(**{**eks.node_class["spec"], "capacityReservationSelectorTerms": terms})
    eks.done(eks.provider.node_classes.resolve(changed))

    def sold(name: str) -> list[tuple[str, int | None]]:
        types = {each.name: each for each in eks.done(eks.provider.instance_types(eks.pool()))}
        return [(each.reservation, each.most) for each in types[name].offerings if each.reservation]

    assert [("cr-1", 2)] == sold("g5.xlarge")
    assert [("cr-41", 1)] == sold("p5.48xlarge")
    got = launched(eks, capacity_types=("reserved",))
    assert "cr-1" == got.labels["karpenter.k8s.aws/capacity-reservation-id"]
    assert [("cr-1", 2)] == sold("g5.xlarge")


def test_a_spot_notice_is_news_once_and_deleted_when_it_was_acted_on(eks: Eks) -> None:
    """The claim's instance, the deadline and the offering; what is unknown or malformed is deleted as well."""
    claim = launched(eks)
    events, number = eks.cloud.proxy.events, claim.provider_id.rpartition("/")[2]
    events.spot_notice(number)
    events.spot_notice(number)
    events.raw("no event")
    loops = {loop.name: loop for loop in eks.provider.loops}
    news = eks.done(loops["interruption-queue"].turn())

    (held,) = news.interruptions.items()
    assert (claim.provider_id, InterruptionKind.SPOT) == (held[0], held[1].kind)
    # The message says whole seconds.
    assert int(eks.clock.now_s()) + 120 == held[1].deadline_s
    assert ["g5.xlarge spot in us-east-1a"] == [str(key) for key in news.sold_out]
    assert 3 == _messages(eks)
    events.rebalance(number)
    eks.done(loops["interruption-queue"].turn())
    assert 1 == _messages(eks)


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_a_spot_notice_of_an_impossible_time_has_two_minutes(eks: Eks, time: str) -> None:
    """From its receipt on: a drain goes by the deadline."""
    number = launched(eks).provider_id.rpartition("/")[2]
    kind, detail = "EC2 Spot Instance Interruption Warning", {"instance-id": number, "instance-action": "terminate"}
    eks.cloud.proxy.events.raw(json.dumps({"detail-type": kind, "time": time, "detail": detail}))
    turn = next(loop.turn for loop in eks.provider.loops if loop.name == "interruption-queue")

    (held,) = eks.done(turn()).interruptions.values()
    assert (InterruptionKind.SPOT, eks.clock.now_s() + 120) == (held.kind, held.deadline_s)


def test_a_spot_notice_for_an_instance_that_ec2_does_not_show_yet_is_news(eks: Eks) -> None:
    """Lists lag; the notice comes once, and two minutes go by fast."""
    eks.cloud.proxy.instances.lag(30)
    claim = launched(eks)
    eks.cloud.proxy.events.spot_notice(claim.provider_id.rpartition("/")[2])
    turn = next(loop.turn for loop in eks.provider.loops if loop.name == "interruption-queue")

    assert [claim.provider_id] == list(eks.done(turn()).interruptions)


def test_messages_that_announce_something_are_measured_from_what_happened(eks: Eks) -> None:
    """As Karpenter does; each instance that a status check finds is counted once, however long it is impaired."""
    number = launched(eks).provider_id.rpartition("/")[2]
    eks.done(eks.provider.list_instances())
    loops = {loop.name: loop for loop in eks.provider.loops}
    name, unhealthy = "karpenter_interruption_message_queue_duration_seconds", {"category": "system_status"}
    before = [_sample(f"{name}_count"), _sample(f"{name}_sum"), _sample(_UNHEALTHY, unhealthy)]
    kind, detail = "EC2 Instance Rebalance Recommendation", {"instance-id": number}
    sent = instant_text(eks.clock.now_s() - 40)
    eks.cloud.proxy.events.raw(json.dumps({"detail-type": kind, "time": sent, "detail": detail}))
    running = {**detail, "state": "running"}
    other = {"detail-type": "EC2 Instance State-change Notification", "time": sent, "detail": running}
    eks.cloud.proxy.events.raw(json.dumps(other))
    eks.done(loops["interruption-queue"].turn())
    eks.cloud.proxy.instances.impair(number)
    for _ in range(4):
        eks.done(loops["status-checks"].turn())

    after = [_sample(f"{name}_count"), _sample(f"{name}_sum"), _sample(_UNHEALTHY, unhealthy)]
    assert [1, 40, 1] == [int(later - former) for former, later in zip(before, after, strict=True)]


_UNHEALTHY = "karpenter_interruption_instance_status_unhealthy_total"


def _sample(name: str, labels: dict[str, str] | None = None) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def _messages(eks: Eks) -> int:
    """How many messages the queue holds, hidden ones among them."""
    sqs = eks.cloud.client("sqs")
    names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    url = sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(names))["Attributes"]
    return sum(int(found[name]) for name in names)


def test_an_instance_that_is_impaired_twice_is_interrupted(eks: Eks) -> None:
    """At the second look a minute later; one look may be a passing fault. A scheduled end is said at once."""
    first, second = launched(eks, 1), launched(eks, 2)
    numbers = [each.provider_id.rpartition("/")[2] for each in (first, second)]
    eks.done(eks.provider.list_instances())
    eks.cloud.proxy.instances.impair(numbers[0])
    loops = {loop.name: loop for loop in eks.provider.loops}
    before = eks.done(loops["status-checks"].turn()).interruptions
    eks.cloud.proxy.instances.schedule(numbers[1], "instance-retirement", eks.clock.now_s() + 3600)
    after = eks.done(loops["status-checks"].turn()).interruptions

    assert {} == before
    assert {first.provider_id: "InstanceUnhealthy", second.provider_id: "ScheduledChange"} == {
        name: each.kind for name, each in after.items()
    }
    counted = {name: each.counted_as for name, each in after.items()}
    assert {first.provider_id: "system_status", second.provider_id: "event_status"} == counted


def test_a_node_class_that_was_not_resolved_launches_nothing_and_loses_no_claim(eks: Eks) -> None:
    """After a restart its claims wait; they are not given up as those of a bad one are. One that never comes sells
    nothing, and holds up no plan."""
    fresh = AwsCloud(eks.api, eks.clock, AwsOptions("gpu", REGION), ClusterFacts("gpu", "https://gpu.example"))

    with pytest.raises(CloudError, match="not resolved yet"):
        eks.done(fresh.instance_types(eks.pool()))
    eks.cloud.clock.advance(10)
    assert () == eks.done(fresh.instance_types(eks.pool()))
    with pytest.raises(CloudError, match="not resolved yet") as caught:
        eks.done(fresh.create(eks.claim()))
    assert not isinstance(caught.value, NodeClassNotReady)


def test_a_dry_run_makes_nothing(eks: Eks, aws_cloud: Cloud) -> None:
    """Beside a Karpenter that runs, types are known, and no profile, template or instance is made."""
    fresh = eks.done(AwsCloud.connect(eks.api, eks.clock, AwsOptions("gpu", REGION)))
    before = len(aws_cloud.proxy.calls)

    async def look() -> int:
        document = {**eks.node_class, "status": {"instanceProfile": "theirs"}}
        await fresh.node_classes.resolve(document, only_reads=True)
        return len(await fresh.instance_types(eks.pool()))

    assert 0 < eks.done(look())
    made = [call.name for call in aws_cloud.proxy.calls[before:]]
    assert [] == [name for name in made if not name.partition(":")[2].startswith(("Describe", "Get", "List"))]


def test_what_was_made_for_a_node_class_goes_with_it(eks: Eks) -> None:
    """Launch templates and the instance profile; an instance that was deleted is gone."""
    claim = launched(eks)

    async def end() -> None:
        await eks.provider.delete(claim.provider_id)
        with pytest.raises(InstanceNotFound):
            await eks.provider.delete(claim.provider_id)
        await eks.provider.node_classes.release(eks.node_class)

    assert 1 <= len(_templates(eks))
    eks.done(end())

    assert ([], []) == (_templates(eks), eks.cloud.client("iam").list_instance_profiles()["InstanceProfiles"])
    assert () == eks.done(eks.provider.list_instances())


def _templates(eks: Eks) -> list[str]:
    found = eks.cloud.client("ec2").describe_launch_templates()["LaunchTemplates"]
    return [each["LaunchTemplateName"] for each in found]


def test_a_connection_that_fails_leaves_what_was_found(eks: Eks) -> None:
    """HTML in the place of a reply says nothing about subnets: the EC2NodeClass stays ready."""
    eks.cloud.clock.advance(600)
    eks.cloud.proxy.faults.answer_html("DescribeSubnets", times=9)
    found = eks.done(eks.provider.node_classes.resolve(eks.node_class))

    assert {"True"} == {each["status"] for each in found.status["conditions"]}
