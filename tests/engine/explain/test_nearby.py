"""What comes nearest to taking a pod that other pods or its volumes keep from a place, as typed causes."""

from typing import Any

import pytest

from kerf.engine.explain.plan import plan
from kerf.model.causes import Insufficient
from kerf.model.constraints import HOSTNAME, ZONE, Requirement, Requirements
from kerf.model.plan import Misfit
from kerf.model.pods import Pod, PodSpec
from kerf.model.topology import NotNear, PodAffinity, PodAffinityTerm, SkewExceeded, TooNear, TopologySpreadConstraint
from kerf.model.volumecauses import ClaimUnusable, VolumeElsewhere
from kerf.model.volumes import PersistentVolume, PersistentVolumeClaim
from kerf.testing.builders import a_container, a_market, a_node, a_pod, a_pool, a_snapshot, an_instance_type

A, B = "us-east-1a", "us-east-1b"
MARKET = a_market(an_instance_type("m5.xlarge", price="0.192", zones=(A, B)))
POOL, TYPE = a_pool("common"), "NodePool common/m5.xlarge"
WEB = Requirements.of_labels({"app": "web"})


def web(name: str, **given: Any) -> Pod:
    """A pod of one core that is labelled web; `given` are fields of its spec."""
    return a_pod(name, spec=PodSpec((a_container(cpu=1),), **given), labels={"app": "web"})


def misses(*pods: Pod, **given: Any) -> dict[str, Misfit]:
    """The rows of the last refused pod by their targets."""
    unplaced = plan(a_snapshot(pools=[POOL], pods=pods, **given), MARKET).unplaced[-1]
    return {str(each.target): each for each in unplaced.misfits}


def away(key: str) -> dict[str, PodAffinity]:
    """Apart from each other."""
    return {"pod_anti_affinity": PodAffinity((PodAffinityTerm(key, WEB),))}


def even() -> dict[str, Any]:
    """Spread over zones."""
    return {"spread": (TopologySpreadConstraint(ZONE, 1, WEB),)}


def test_without_any_node_the_nearest_type_is_named_with_what_is_missing() -> None:
    """Three pods that must be in zones of their own, and there are two."""
    found = misses(*(web(f"web-{n}", **away(ZONE)) for n in range(3)))

    assert [TYPE] == list(found)
    assert isinstance(found[TYPE].cause, TooNear)


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        (even(), SkewExceeded),
        ({"pod_affinity": PodAffinity((PodAffinityTerm(ZONE, Requirements.of_labels({"app": "db"})),))}, NotNear),
        (away(ZONE), TooNear),
    ],
    ids=["spread", "affinity", "anti-affinity"],
)
def test_a_node_that_others_keep_the_pod_off_is_named_beside_the_type(given: dict[str, Any], cause: type) -> None:
    """Both zones that are sold have a pod that is labelled web; a third one has a node without room, and no pod."""
    nodes = [a_node(f"n-{zone}", labels={ZONE: zone}) for zone in (A, B)]
    running = [a_pod(f"w-{n.name}", labels={"app": "web"}, node_name=n.name, phase="Running") for n in nodes]
    full = a_node("z-full", labels={ZONE: "us-east-1c"}, allocatable={"cpu": "1m", "memory": "1Gi", "pods": 1})
    found = misses(web("web-0", **given), *running, nodes=[*nodes, full])

    assert [TYPE, f"node n-{A}"] == list(found)
    assert all(isinstance(each.cause, cause) for each in found.values())


def test_a_node_that_is_full_says_so_though_others_refuse_the_pod_elsewhere() -> None:
    """What the plan places first counts on the node."""
    full = a_node("full", labels={ZONE: A}, allocatable={"cpu": "100m", "memory": "1Gi", "pods": 10})
    near = PodAffinity((PodAffinityTerm(HOSTNAME, Requirements.of_labels({"app": "db"})),))
    running = a_pod("db", labels={"app": "db"}, node_name="full", phase="Running")
    found = misses(web("web-0", pod_affinity=near), running, nodes=[full])

    assert isinstance(found["node full"].cause, Insufficient)
    assert isinstance(found[TYPE].cause, NotNear)


def test_a_claim_that_is_not_there_is_what_the_nearest_targets_lack() -> None:
    """With the claim both the node and the type would take the pod."""
    pod = a_pod("db", cpu=1, claims=("data",))
    found = misses(pod, nodes=[a_node("n-1")], volume_claims={})

    assert [TYPE, "node n-1"] == list(found)
    assert all(isinstance(each.cause, ClaimUnusable) for each in found.values())


def test_of_volumes_that_are_apart_the_one_that_is_elsewhere_is_named() -> None:
    """The node is where the first volume is; the second one asks for another zone."""
    zones = {"a": A, "b": B}
    claims = [PersistentVolumeClaim("default", name, volume=f"pv-{name}", is_bound=True) for name in zones]
    volumes = [
        PersistentVolume(f"pv-{name}", (Requirements([Requirement.of(ZONE, "In", (zone,))]),), driver="ebs")
        for name, zone in zones.items()
    ]
    found = misses(
        a_pod("db", cpu=1, claims=("a", "b")),
        nodes=[a_node("n-1", labels={ZONE: A})],
        volume_claims={each.key: each for each in claims},
        volumes={each.name: each for each in volumes},
    )

    cause = found["node n-1"].cause
    assert isinstance(cause, VolumeElsewhere)
    assert Requirement.of(ZONE, "In", (B,)) == cause.asked
