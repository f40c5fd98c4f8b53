"""What HAMi's scheduler counts on a card is taken, whoever has written it on a pod, and whatever the pod asks."""

import pytest

from kerf.model.pods import Pod
from kerf.model.snapshot import Upserted
from kerf.sharing.hami.records import ALLOCATED, NODE
from kerf.state import ClusterState
from kerf.testing.builders import a_node, a_pod
from tests.engine.worlds import HAMI, a_hami_node

RECORD = {NODE: "n", ALLOCATED: "gpu-0,NVIDIA,8000,30:;"}


def taken_mib(pod: Pod) -> int:
    """What is taken of the card while a plan is made for all pods that wait."""
    state = ClusterState()
    state.apply(Upserted(a_hami_node(a_node("n", labels=HAMI), 1)))
    state.apply(Upserted(pod))
    node = state.snapshot(0, state.pending()).node("n")
    assert node is not None
    return sum(device.used_memory_mib for device in node.devices)


@pytest.mark.parametrize("gates", [(), ("example.com/wait",)])
def test_a_record_on_a_pod_that_asks_for_no_card_counts(gates: tuple[str, ...]) -> None:
    """No plan counts what it asks in the record's place."""
    assert 8000 == taken_mib(a_pod("p", cpu=1, annotations=RECORD, scheduling_gates=gates))


def test_a_record_on_a_gated_pod_counts() -> None:
    """Its scheduler does not look at it again before the gate is open."""
    assert 8000 == taken_mib(a_pod("p", gpu=1, gpumem=1, annotations=RECORD, scheduling_gates=("example.com/wait",)))


def test_the_record_of_a_pod_that_is_planned_again_does_not_count() -> None:
    """Its scheduler books what the pod asks, and so does the plan."""
    assert 0 == taken_mib(a_pod("p", gpu=1, gpumem=8000, annotations=RECORD))
