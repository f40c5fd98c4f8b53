"""What the provider does in AWS, each as a case: it prepares, yields, and then acts and says what must come of it.

Between the two a test takes something away; a case whose act fails raises CloudError or AssertionError. Cases may
follow each other in one cloud, in any order, each with a provider that knows nothing yet (`Eks.life`).
"""

from collections.abc import Callable, Iterator
from typing import Any

from kerf.cloudprovider import NodeClassState
from kerf.clouds.aws.provider import AwsCloud, AwsOptions
from kerf.errors import CloudError
from kerf.testing.faultproxy.stock import CloudPlacementGroup, CloudReservation
from tests.awscloud import REGION
from tests.clouds.aws.eks import CLUSTER, QUEUE, Eks

Case = Callable[[Eks], Iterator[None]]


def the_cluster_is_found(eks: Eks) -> Iterator[None]:
    """EKS says where it is."""
    yield
    eks.done(AwsCloud.connect(eks.api, eks.clock, AwsOptions(CLUSTER, REGION)))


def a_node_class_becomes_ready(eks: Eks) -> Iterator[None]:
    """With all that it can select, its profile made, and its launch tried."""
    eks.cloud.proxy.stock.reserve(CloudReservation("cr-1", "g5.xlarge", "us-east-1a", left=2))
    eks.cloud.proxy.stock.group(CloudPlacementGroup("pg-1", "near"))
    terms = {"capacityReservationSelectorTerms": [{"id": "cr-1"}], "placementGroupSelector": {"name": "near"}}
    document = _another(eks, **terms)
    # One that has resolved none yet, and so remembers no image or subnet.
    eks.provider = eks.done(AwsCloud.connect(eks.api, eks.clock, AwsOptions(CLUSTER, REGION)))
    yield
    _is_ready(eks.done(eks.provider.node_classes.resolve(document)))


def a_node_class_is_released(eks: Eks) -> Iterator[None]:
    """What was made for it goes: launch templates, and its profile."""
    document = _another(eks)
    _is_ready(eks.done(eks.provider.node_classes.resolve(document)))
    before = _made_for_it(eks, document)
    yield
    eks.done(eks.provider.node_classes.release(document))
    assert (1, 1) == before
    assert (0, 0) == _made_for_it(eks, document)


def an_instance_starts(eks: Eks) -> Iterator[None]:
    """On demand, by the usual launch template."""
    yield
    _started(eks, "on-demand")


def the_first_spot_instance_starts(eks: Eks) -> Iterator[None]:
    """In an account that has never had one: EC2 makes its role of spot."""
    eks.cloud.proxy.permissions.new_account()
    yield
    _started(eks, "spot")


def a_reserved_instance_starts(eks: Eks) -> Iterator[None]:
    """In the reservation that the EC2NodeClass selects."""
    eks.cloud.proxy.stock.reserve(CloudReservation("cr-1", "g5.xlarge", "us-east-1a", left=1))
    _resolved(eks, capacityReservationSelectorTerms=[{"id": "cr-1"}])
    yield
    _started(eks, "reserved")


def an_instance_starts_in_a_placement_group(eks: Eks) -> Iterator[None]:
    """In the group that the EC2NodeClass selects."""
    eks.cloud.proxy.stock.group(CloudPlacementGroup("pg-1", "near"))
    _resolved(eks, placementGroupSelector={"name": "near"})
    yield
    _started(eks, "on-demand")


def an_instance_starts_with_a_disk_of_a_snapshot(eks: Eks) -> Iterator[None]:
    """Its disk has what a snapshot holds."""
    disk = {"deviceName": "/dev/xvda", "rootVolume": True, "ebs": {"snapshotID": "snap-1", "volumeType": "gp3"}}
    _resolved(eks, blockDeviceMappings=[disk])
    yield
    _started(eks, "on-demand")


def an_instance_is_ended(eks: Eks) -> Iterator[None]:
    """By its id."""
    held = _started(eks, "on-demand")
    yield
    eks.done(eks.provider.delete(held))
    assert held.rpartition("/")[2] not in {row.id for row in eks.cloud.proxy.instances.living()}


def what_has_no_claim_is_found(eks: Eks) -> Iterator[None]:
    """The listing from which garbage is collected."""
    held = _started(eks, "on-demand")
    yield
    assert held in [each.provider_id for each in eks.done(eks.provider.list_instances())]


def a_spot_notice_is_read(eks: Eks) -> Iterator[None]:
    """From the queue, and deleted once it was acted on."""
    sqs = eks.cloud.client("sqs")
    url = sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"]
    # A purge is allowed once a minute only.
    for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", ()):
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    held = _started(eks, "spot")
    eks.cloud.proxy.events.spot_notice(held.rpartition("/")[2])
    queue = _loop(eks, "interruption-queue")
    yield
    assert [held] == list(eks.done(queue()).interruptions)
    eks.cloud.proxy.events.rebalance("i-other")
    eks.done(queue())
    # The other message alone is left, which this turn has hidden and the next would delete.
    name = "ApproximateNumberOfMessagesNotVisible"
    assert "1" == sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name]


def a_broken_instance_is_seen(eks: Eks) -> Iterator[None]:
    """Its status checks fail at two looks."""
    held = _started(eks, "on-demand")
    eks.cloud.proxy.instances.impair(held.rpartition("/")[2])
    eks.done(eks.provider.list_instances())
    checks = _loop(eks, "status-checks")
    yield
    found = [eks.done(checks()).interruptions for _ in range(2)]
    assert held in found[1]


def types_and_prices_are_asked_for(eks: Eks) -> Iterator[None]:
    """Types, zones, on-demand and spot prices."""
    eks.cloud.proxy.stock.price("g5.xlarge", 9.5)
    eks.cloud.proxy.stock.spot_price("g5.xlarge", "us-east-1a", 1.25)
    prices = _loop(eks, "prices")
    yield
    eks.done(prices())
    kind = next(each for each in eks.done(eks.provider.instance_types(eks.pool())) if each.name == "g5.xlarge")
    assert () == kind.notes


def _started(eks: Eks, capacity_type: str) -> str:
    """The provider id of an instance that was launched now; the cloud has it as what it was asked for."""
    claim = eks.claim(
        int(eks.clock.now_s()), types=("g5.xlarge",), zones=("us-east-1a",), capacity_types=(capacity_type,)
    )
    held: str = eks.done(eks.provider.create(claim)).provider_id
    row = eks.cloud.proxy.instances.get(held.rpartition("/")[2])
    assert row is not None
    assert (capacity_type, claim.uid) == (row.capacity_type, row.tags["kerf.dev/claim-uid"])
    return held


def _another(eks: Eks, **spec: Any) -> dict[str, Any]:
    """An EC2NodeClass that AWS has nothing of yet."""
    document, name = eks.document(**spec), f"at-{eks.clock.now_s():.0f}"
    document["metadata"] = {**document["metadata"], "name": name, "uid": f"uid-{name}"}
    return document


def _made_for_it(eks: Eks, document: dict[str, Any]) -> tuple[int, int]:
    """How many launch templates and instance profiles there are for an EC2NodeClass."""
    metadata = document["metadata"]
    named = [{"Name": "tag:karpenter.k8s.aws/ec2nodeclass", "Values": [metadata["name"]]}]
    templates = eks.cloud.client("ec2").describe_launch_templates(Filters=named)["LaunchTemplates"]
    profiles = eks.cloud.client("iam").list_instance_profiles()["InstanceProfiles"]
    return len(templates), len([each for each in profiles if metadata["uid"] in each["Path"]])


def _resolved(eks: Eks, **spec: Any) -> None:
    _is_ready(eks.done(eks.provider.node_classes.resolve(eks.document(**spec))))


def _is_ready(state: NodeClassState) -> None:
    bad = [f"{each['type']}: {each.get('message')}" for each in state.status["conditions"] if each["status"] != "True"]
    if bad:
        raise CloudError("; ".join(bad))


def _loop(eks: Eks, name: str) -> Callable[[], Any]:
    return next(loop.turn for loop in eks.provider.loops if loop.name == name)


QUICK: tuple[Case, ...] = (
    the_cluster_is_found,
    a_node_class_becomes_ready,
    an_instance_starts,
    the_first_spot_instance_starts,
    a_reserved_instance_starts,
    an_instance_starts_in_a_placement_group,
    an_instance_starts_with_a_disk_of_a_snapshot,
    what_has_no_claim_is_found,
    a_spot_notice_is_read,
    a_broken_instance_is_seen,
    an_instance_is_ended,
    a_node_class_is_released,
)
SLOW: tuple[Case, ...] = (types_and_prices_are_asked_for,)
"""Which read moto's 1,400 types."""
