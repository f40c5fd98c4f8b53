"""Hints that lead pods to another model of GPU than they ask for say so, and come after those that do not."""

from typing import Any

import pytest

from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.model.constraints import INSTANCE_TYPE, Requirement, Requirements
from kerf.model.instancetypes import InstanceType
from kerf.model.nodepool import NodePool
from kerf.testing.builders import a_market, a_pod, a_pool, a_snapshot, an_instance_type, cards

FAMILY = "example.com/family"
H100, B200 = (
    an_instance_type(f"{family}.8", cpu=64, memory="512Gi", devices=cards(8, 80_000, model), labels={FAMILY: family})
    for family, model in (("h", "H100"), ("b", "B200"))
)
H100_LARGE = an_instance_type("h.9", cpu=96, memory="512Gi", devices=cards(8, 80_000, "H100"), labels={FAMILY: "h"})


def hint(pool: NodePool, *types: InstanceType, gpu: int = 8, asked: str = "") -> str:
    """The hint for one pod that asks for GPUs, and an instance type."""
    pod = a_pod(gpu=gpu, cpu=1, selector={INSTANCE_TYPE: asked} if asked else {})
    made = plan(a_snapshot(pools=[pool], pods=[pod]), a_market(*types), Options())
    return made.unplaced[0].hint


def of_families(*families: str, **given: Any) -> NodePool:
    """A pool that allows these."""
    return a_pool(requirements=Requirements([Requirement.of(FAMILY, "In", families)]), **given)


def test_a_pool_gives_way_before_a_pod_is_sent_to_another_model() -> None:
    """The pod names a type; its pool allows another family alone."""
    found = hint(of_families("h"), H100, B200, asked="b.8")

    assert "allow example.com/family b in NodePool pool, with B200 where it has H100 now" == found


def test_where_only_the_pod_can_change_the_exchange_is_said() -> None:
    """Nothing of the model that it asks for is sold."""
    gone = an_instance_type("b.8", devices=cards(8, 80_000, "B200"), offerings=())
    found = hint(a_pool(types=["h.8"]), H100, gone, asked="b.8")

    assert found.endswith('let the pod ask node.kubernetes.io/instance-type "h.8", with H100 in place of B200')


@pytest.mark.parametrize("gpu, asked", [(8, "h.9"), (0, "b.8")])
def test_nothing_is_said_of_the_same_model_and_of_pods_without_gpus(gpu: int, asked: str) -> None:
    """Another machine with the same cards, and a machine that has cards by chance."""
    found = hint(a_pool(types=["h.8"]), H100, H100_LARGE, B200, gpu=gpu, asked=asked)

    assert "with H100" not in found
    assert "h.8" in found or "h.9" in found or "b.8" in found


def test_a_type_that_a_pool_is_to_allow_names_its_cards_where_they_are_others() -> None:
    """A pod that takes any GPU and is too large for the types of its pool."""
    large = an_instance_type("b.8", cpu=64, memory="512Gi", devices=cards(8, 80_000, "B200"))
    small = an_instance_type("h.1", cpu=8, memory="64Gi", devices=cards(1, 80_000, "H100"))

    assert hint(a_pool(types=["h.1"]), small, large).endswith(", with B200 where it has H100 now")


def test_a_pool_that_names_another_model_allows_the_pods_own_before_the_pod_gives_way() -> None:
    """Both say the label; the pod's model is what its owner has chosen."""
    pod = a_pod(gpu=8, cpu=1, selector={FAMILY: "b"})
    made = plan(a_snapshot(pools=[of_families("h")], pods=[pod]), a_market(H100, B200), Options())

    assert "allow example.com/family b in NodePool pool" == made.unplaced[0].hint
