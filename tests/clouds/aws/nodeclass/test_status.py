"""The status of an EC2NodeClass: conditions that say what is missing, and since when."""

from kerf.clouds.aws.nodeclass.decode import decode
from kerf.clouds.aws.nodeclass.status import (
    CONDITIONS,
    GOOD,
    SUBNETS_READY,
    CapacityReservation,
    ConditionVerdict,
    Image,
    Resolved,
    SecurityGroup,
    Subnet,
    conditions_of,
    read_conditions,
    status_of,
)
from kerf.model.constraints import ARCH, Requirement, Requirements
from kerf.model.nodeclaim import READY, VALIDATED, Condition
from tests.clouds.aws.nodeclass.objects import an_object

ALL_GOOD = dict.fromkeys(CONDITIONS, GOOD)
NO_SUBNETS = ConditionVerdict("SubnetsNotFound", "no subnet has tags a=b")
ASKING = ConditionVerdict("AwaitingAWS", "DescribeImages: throttled", is_unknown=True)


def ready(**changed: ConditionVerdict) -> Condition:
    """The condition Ready, where all are good that are not changed."""
    return conditions_of({**ALL_GOOD, **changed}, (), 100)[-1]


def test_ready_is_what_all_others_are() -> None:
    """Seven conditions and Ready; their reason is their name, as Karpenter writes it."""
    got = conditions_of(ALL_GOOD, (), 100)

    assert [*CONDITIONS, READY] == [each.type for each in got]
    assert {("True", each.type) for each in got} == {(each.status, each.reason) for each in got}


def test_ready_says_what_is_missing() -> None:
    """What is False goes before what is Unknown; the others are counted."""
    assert Condition(READY, "False", "SubnetsNotFound", "SubnetsReady: no subnet has tags a=b", 100) == ready(
        SubnetsReady=NO_SUBNETS
    )
    assert (
        "SubnetsReady: no subnet has tags a=b (and 1 more)" == ready(SubnetsReady=NO_SUBNETS, AMIsReady=ASKING).message
    )
    assert ("Unknown", "AwaitingAWS") == (ready(AMIsReady=ASKING).status, ready(AMIsReady=ASKING).reason)


def test_what_nothing_is_known_of_is_unknown() -> None:
    """Of a new object."""
    assert {"Unknown"} == {each.status for each in conditions_of({}, (), 100)}


def test_a_condition_keeps_its_instant_while_its_status_stays() -> None:
    """A new message is no transition."""
    first = conditions_of({**ALL_GOOD, SUBNETS_READY: NO_SUBNETS}, (), 100)
    second = conditions_of({**ALL_GOOD, SUBNETS_READY: ConditionVerdict("SubnetsNotFound", "other")}, first, 200)
    third = conditions_of(ALL_GOOD, second, 300)

    assert [100, 100, 300] == [each[1].since_s for each in (first, second, third)]
    assert [100, 100, 300] == [each[-1].since_s for each in (first, second, third)]


def test_a_message_is_cut() -> None:
    """AWS sends an encoded refusal of thousands of letters."""
    got = conditions_of({**ALL_GOOD, VALIDATED: ConditionVerdict("Unauthorized", "x" * 5000)}, (), 100)

    assert [1024, 1024] == [len(each.message) for each in got if each.message]


def test_the_status_has_karpenters_fields() -> None:
    """An image that runs on everything of its architecture, and a reservation that ends."""
    requirements = Requirements(
        [Requirement.of("karpenter.k8s.aws/instance-gpu-count", "Exists"), Requirement.of(ARCH, "In", ["amd64"])]
    )
    resolved = Resolved(
        (Subnet("subnet-1", "us-east-1a", "use1-az1", 10),),
        (SecurityGroup("sg-1", "nodes"),),
        (Image("ami-1", "gpu", requirements),),
        (CapacityReservation("cr-1", "us-east-1a", "p5.48xlarge", "1" * 12, end_s=1_800_000_000, remaining=3),),
        instance_profile="demo_1",
    )

    got = status_of(decode(an_object()), resolved, conditions_of(ALL_GOOD, (), 100)[:1])

    assert {
        "subnets": [{"id": "subnet-1", "zone": "us-east-1a", "zoneID": "use1-az1"}],
        "securityGroups": [{"id": "sg-1", "name": "nodes"}],
        "amis": [
            {
                "id": "ami-1",
                "name": "gpu",
                "requirements": [
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                    {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Exists"},
                ],
            }
        ],
        "capacityReservations": [
            {
                "id": "cr-1",
                "availabilityZone": "us-east-1a",
                "instanceType": "p5.48xlarge",
                "instanceMatchCriteria": "targeted",
                "ownerID": "111111111111",
                "reservationType": "default",
                "interruptible": False,
                "state": "active",
                "endTime": "2027-01-15T08:00:00Z",
            }
        ],
        "instanceProfile": "demo_1",
        "conditions": [
            {
                "type": "AMIsReady",
                "status": "True",
                "reason": "AMIsReady",
                "message": "",
                "lastTransitionTime": "1970-01-01T00:01:40Z",
                "observedGeneration": 3,
            }
        ],
    } == got


def test_conditions_are_read_as_they_were_written() -> None:
    """A restart keeps their instants; what another program broke is left out."""
    written = conditions_of({**ALL_GOOD, SUBNETS_READY: NO_SUBNETS}, (), 100)
    status = status_of(decode(an_object()), Resolved(), written)
    status["conditions"] += ["garbage", {"type": 3}, {"type": "Odd", "lastTransitionTime": 5}]

    assert (*written, Condition("Odd", "")) == read_conditions(status)
