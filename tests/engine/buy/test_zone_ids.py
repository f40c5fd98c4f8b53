"""The id of a zone is a label like its name: pods that ask for one get a node where it is."""

from dataclasses import replace
from typing import Any

import pytest

from kerf.model.constraints import ZONE_ID, Requirement, Requirements
from kerf.model.instancetypes import ON_DEMAND, InstanceType, Offering
from kerf.model.pods import Pod
from kerf.model.policies import COST, FIRST_FIT
from kerf.model.topology import TopologySpreadConstraint
from kerf.testing.builders import a_pod, a_pool, an_instance_type
from tests.engine.worlds import planned, refused

IDS = {"us-east-1a": "use1-az6", "us-east-1b": "use1-az1", "us-east-1c": "use1-az2"}


def sold(name: str = "m5.xlarge") -> InstanceType:
    """A type that is cheapest in the first zone."""
    offerings = tuple(Offering(zone, ON_DEMAND, 1000 + at, zone_id=IDS[zone]) for at, zone in enumerate(IDS))
    kind = an_instance_type(name, zones=tuple(IDS), offerings=offerings)
    ids = Requirements([Requirement.of(ZONE_ID, "In", IDS.values())])
    return replace(kind, requirements=kind.requirements.intersect(ids))


def zones_of(pods: list[Pod], strategy: str = COST, **pool: Any) -> list[str]:
    """Where nodes are bought for the pods, sorted; all pods get one."""
    decided = planned(pods, [a_pool(**pool)], [sold()], strategy)
    assert [] == refused(decided)
    return sorted(each.offering.zone for each in decided.launches)


@pytest.mark.parametrize("strategy", [COST, FIRST_FIT])
def test_a_pod_gets_the_zone_whose_id_it_asks_for(strategy: str) -> None:
    """Its pool does not mention the label; the cheapest zone is another. The claim asks for the id too."""
    for zone, zone_id in IDS.items():
        assert [zone] == zones_of([a_pod(selector={ZONE_ID: zone_id})], strategy)
    assert ["us-east-1a"] == zones_of([a_pod()], strategy)

    decided = planned([a_pod(selector={ZONE_ID: "use1-az2"})], [a_pool()], [sold()], strategy)
    assert {"use1-az2"} == decided.launches[0].requirements[ZONE_ID].values


@pytest.mark.parametrize("strategy", [COST, FIRST_FIT])
def test_pods_of_two_ids_share_no_node(strategy: str) -> None:
    """Each gets its own zone, although one node would hold both."""
    pods = [a_pod(f"p-{zone_id}", selector={ZONE_ID: zone_id}) for zone_id in ("use1-az1", "use1-az2")]

    assert ["us-east-1b", "us-east-1c"] == zones_of(pods, strategy)


def test_a_pool_may_require_an_id() -> None:
    """The same for all its pods, and a type that is sold in no such zone is not bought."""
    asked = Requirement.of(ZONE_ID, "In", ["use1-az2"]), Requirement.of(ZONE_ID, "In", ["use1-az9"])

    assert ["us-east-1c"] == zones_of([a_pod()], requirements=Requirements([asked[0]]))
    assert ["default/p"] == refused(planned([a_pod()], [a_pool(requirements=Requirements([asked[1]]))], [sold()]))
    assert ["default/p"] == refused(planned([a_pod(selector={ZONE_ID: "use1-az9"})], [a_pool()], [sold()]))


def test_pods_spread_over_ids() -> None:
    """Each id is a domain of its own: three pods with a skew of one go to three zones."""
    spread = (TopologySpreadConstraint(ZONE_ID, 1, Requirements.of_labels({"app": "web"})),)
    pods = [a_pod(f"p-{number}", labels={"app": "web"}, spread=spread) for number in range(3)]

    assert sorted(IDS) == zones_of(pods)
