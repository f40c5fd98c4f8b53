"""The sentences of a plan, with figures from the input."""

from typing import Any

import pytest

from kerf.engine.explain.causes import counted
from kerf.engine.explain.launches import asked
from kerf.model.constraints import ZONE, Requirements
from kerf.model.instancetypes import ON_DEMAND, SPOT, Offering, OfferingKey
from kerf.model.market import SoldOut
from kerf.model.pods import RUNNING, Owner
from kerf.model.topology import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kerf.sharing.registry import FAMILIES, family_named
from kerf.testing.builders import NOON_S, a_market, a_node, a_pod, a_pool, an_instance_type, cards
from tests.engine.worlds import G5, G5_2X, M5, a_hami_pool, planned, shape_of, some

OUT = Requirements.of_labels({ZONE: "nowhere"})
NEAR = PodAffinity(preferred=((2, PodAffinityTerm(ZONE, Requirements.of_labels({"app": "db"}))),))


@pytest.mark.parametrize(
    "amounts, expected",
    [
        ({"gpu": 1, "gpumem": 1000, "cores": 50}, "1000 MiB and 50 cores of a GPU"),
        ({"gpu": 2, "gpumem": 16000}, "16000 MiB of each of 2 GPUs"),
        ({"gpu": 1, "cores": 30}, "100 % of the memory and 30 cores of a GPU"),
        ({"cpu": "1500m", "memory": "2Gi"}, "1500m cpu and 2Gi memory"),
        ({}, "nothing but a place"),
    ],
)
def test_what_a_pod_asks(amounts: dict[str, Any], expected: str) -> None:
    """GPUs where it asks for any, else its other resources."""
    assert expected == asked(shape_of(a_pod(**amounts)), family_named("hami", FAMILIES))


def test_whole_cards_are_counted() -> None:
    """One GPU, two GPUs."""
    whole = family_named("whole", FAMILIES)

    assert ["1 GPU", "2 GPUs"] == [asked(shape_of(a_pod(gpu=n)), whole) for n in (1, 2)]
    assert ["0 pods", "1 pod"] == [counted(n, "pod") for n in (0, 1)]


def test_a_launch_says_who_needs_what_and_that_nothing_has_it() -> None:
    """Slices, and other resources."""
    launch = planned(some(2, gpu=1, gpumem=1000, cores=50), [a_hami_pool()], [G5]).launches[0]
    other = planned([a_pod(cpu=1)], [a_pool()], [M5]).launches[0]

    assert "2 pods need 1000 MiB and 50 cores of a GPU; no GPU in the cluster has that free" == launch.why
    assert "1 pod needs 1 cpu; no node in the cluster has room" == other.why


def test_what_was_passed_over_is_named() -> None:
    """A sold-out capacity type of the same machine, and a cheaper machine that is gone."""
    kind = an_instance_type("g5.2xlarge", cpu=8, capacity_types=(SPOT, ON_DEMAND), price="1.212")
    gone = (
        SoldOut(OfferingKey("g5.xlarge", "us-east-1a", ON_DEMAND), NOON_S),
        SoldOut(OfferingKey("g5.2xlarge", "us-east-1a", SPOT), NOON_S),
    )

    why = planned([a_pod(cpu=1)], [a_pool(capacity_types=())], market=a_market(kind, G5, sold_out=gone)).launches[0].why

    assert "; g5.2xlarge spot is sold out; g5.xlarge is sold out (on-demand), tried again at " in why


def test_pods_that_ask_for_nothing_are_noted_with_their_owners() -> None:
    """A node would take them until its pod limit."""
    pods = some(25, owner=Owner("Job", "batch"))

    notes = planned(pods, [a_pool()], [M5]).notes

    assert any(n.startswith("25 pods ask for nothing (Job default/batch): ") for n in notes)


def test_an_estimated_price_is_called_so() -> None:
    """Spot prices that nobody quoted."""
    kind = an_instance_type()
    kind = type(kind)(
        kind.name, kind.requirements, kind.capacity, offerings=(Offering("us-east-1a", ON_DEMAND, 1, is_estimate=True),)
    )

    assert any("is an estimate" in note for note in planned([a_pod(cpu=1)], [a_pool()], [kind]).notes)


def test_a_constraint_that_is_planned_for_needs_no_note() -> None:
    """A spread is kept, so nothing is said of it."""
    pods = [a_pod("a", cpu=1, spread=(TopologySpreadConstraint(ZONE, 1, Requirements()),))]

    notes = planned(pods, [a_pool()], [M5, G5_2X]).notes

    assert not any("topologySpreadConstraints" in note for note in notes)


@pytest.mark.parametrize(
    "asked, expected",
    [
        ({"preferred": ((7, OUT),)}, "node affinity, weight 7: topology.kubernetes.io/zone In [nowhere]"),
        ({"pod_affinity": NEAR}, f"podAffinity, weight 2: in one {ZONE} with pods with app In [db]"),
        ({"pod_anti_affinity": NEAR}, f"podAntiAffinity, weight 2: in no {ZONE} with pods with app In [db]"),
        (
            {"spread": (TopologySpreadConstraint("rack", 3, Requirements(), is_required=False),)},
            "topologySpreadConstraints, ScheduleAnyway: maxSkew 3 over rack of pods with any labels",
        ),
    ],
)
def test_a_preference_that_is_dropped_is_named(asked: dict[str, Any], expected: str) -> None:
    """With whose it is; what it says comes from the pod."""
    pods = [a_pod("p", cpu=1, **asked), a_pod("db", labels={"app": "db"}, node_name="n", phase=RUNNING)]
    nodes = [
        a_node("n", labels={ZONE: "us-east-1a" if "pod_anti_affinity" in asked else "far"}, allocatable={"cpu": "1m"})
    ]

    notes = planned(pods, [a_pool()], [M5], nodes=nodes).notes

    assert (
        f"1 pod (Pod default/p): planned without a preference that could not be had with a place: {expected}" in notes
    )


@pytest.mark.parametrize("gpus, said", [(16, "; and needs 16 whole GPUs; 8 of 8 are idle"), (8, "")])
def test_cards_that_lack_as_well_are_named_beside_a_resource(gpus: int, said: str) -> None:
    """Memory is asked for first, and raising that alone would place no pod."""
    kind = an_instance_type("p5.48xlarge", cpu=192, memory="2Ti", devices=cards(8))
    (left,) = planned([a_pod(cpu=1, memory="4Ti", gpu=gpus)], [a_pool()], [kind]).unplaced

    assert left.reason.startswith("Insufficient memory: needs 4096Gi memory, 2048Gi free, 2048Gi memory")
    assert (", 8 GPUs missing" in left.reason) == bool(said)
    assert left.reason.endswith(f" missing{said} (NodePool pool/p5.48xlarge)")
