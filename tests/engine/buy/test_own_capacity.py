"""Offerings whose machines have another capacity than their type: only these count for what others lack."""

from kerf.cloudprovider import Instance
from kerf.clouds.launching import Choice, instance_of
from kerf.model.constraints import ZONE
from kerf.model.instancetypes import ON_DEMAND, InstanceType, Offering, OfferingKey
from kerf.model.nodeclaim import PLANNED_OFFERING
from kerf.model.pods import Container, Pod, PodSpec
from kerf.model.promises import resources
from kerf.model.quantities import Resources
from kerf.testing.builders import a_claim, a_pod, a_pool, an_instance_type
from tests.engine.worlds import planned, refused

EFA = "example.com/efa"
PLAIN, FAST = Offering("zone-a", ON_DEMAND, 100), Offering("zone-b", ON_DEMAND, 500, capacity=Resources({EFA: 2}))


def a_type(name: str = "net.large") -> InstanceType:
    """A type that has the resource in one zone, where it costs five times as much."""
    return an_instance_type(name, zones=("zone-a", "zone-b"), offerings=(PLAIN, FAST))


def asking(name: str, efa: int) -> Pod:
    """A pod that asks for so much of it."""
    amounts = Resources({"cpu": 100, EFA: efa})
    return a_pod(name, spec=PodSpec((Container("main", requests=amounts, limits=amounts),)))


def test_only_the_offering_that_has_it_counts() -> None:
    """The other zone is cheaper."""
    launch = planned([asking("p", 2)], [a_pool()], [a_type()]).launches[0]

    assert ("zone-b", {"zone-b"}) == (launch.offering.zone, set(launch.requirements[ZONE].values))


def test_a_pod_that_does_not_need_it_gets_the_cheap_offering() -> None:
    """And a claim that cannot be launched where the machines differ."""
    launch = planned([a_pod(cpu=1)], [a_pool()], [a_type()]).launches[0]

    assert ("zone-a", {"zone-a"}) == (launch.offering.zone, set(launch.requirements[ZONE].values))


def test_more_than_it_has_fits_nowhere() -> None:
    """Offerings do not add up."""
    assert ["default/p"] == refused(planned([asking("p", 3)], [a_pool()], [a_type()]))


def test_a_type_that_differs_by_offering_is_no_alternative() -> None:
    """The cloud could take it where it lacks the resource."""
    launch = planned([asking("p", 1)], [a_pool()], [a_type(), a_type("net.other")]).launches[0]

    assert () == launch.alternatives


def test_an_instance_has_the_capacity_of_its_offering() -> None:
    """As launched, and before that as its claim is planned."""

    def launched(offering: Offering) -> Instance:
        return instance_of(a_claim(), Choice(a_type(), offering), "id", 0)

    planned_as = a_claim(annotations={PLANNED_OFFERING: "net.large/zone-b/on-demand"}, reached=())

    assert [None, 2] == [launched(each).allocatable.get(EFA) for each in (PLAIN, FAST)]
    assert 2 == resources(planned_as, a_type())[EFA]
    assert a_type() == a_type().sold_as(OfferingKey("net.large", "zone-c", ON_DEMAND))
