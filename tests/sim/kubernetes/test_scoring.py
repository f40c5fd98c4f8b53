"""How nodes are scored by what a pod leaves of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.model.nodes import Node
from kerf.model.pods import Container, Pod, PodSpec
from kerf.model.quantities import CPU, MEMORY, Resources
from kerf.sim.kubernetes.rooms import NodePods
from kerf.sim.kubernetes.scoring import LEAST_ALLOCATED, MOST_ALLOCATED, ScoringStrategy
from tests.sim.cluster import Cluster, cpu_pod, ready_node

GIB = 1 << 30
GPU = "nvidia.com/gpu"


def pod(name: str = "p", **requests: int) -> Pod:
    """A pod of one container; `gpu` stands for nvidia.com/gpu."""
    asked = Resources({GPU if key == "gpu" else key: amount for key, amount in requests.items()})
    return Pod("default", name, spec=PodSpec((Container("main", asked),)))


def room(*pods: Pod, **allocatable: int) -> NodePods:
    """A node with these pods."""
    has = Resources({GPU if key == "gpu" else key: amount for key, amount in allocatable.items()})
    made = NodePods(Node("n", allocatable=has))
    for each in pods:
        made.put(each)
    return made


@pytest.mark.parametrize(("kind", "score"), [(LEAST_ALLOCATED, (50 + 75) // 2), (MOST_ALLOCATED, (50 + 25) // 2)])
def test_the_mean_of_cpu_and_memory_counts(kind: str, score: int) -> None:
    """Of 4 cores 2 are used with the pod, of 8 GiB 2."""
    node = room(pod(cpu=1000, memory=GIB), cpu=4000, memory=8 * GIB)

    assert score == ScoringStrategy(kind).score(pod(cpu=1000, memory=GIB), node)


def test_weights_count() -> None:
    """Three times memory: (50 + 3 x 25) / 4."""
    node = room(pod(cpu=1000, memory=GIB), cpu=4000, memory=8 * GIB)

    weighed = ScoringStrategy(MOST_ALLOCATED, ((CPU, 1), (MEMORY, 3)))

    assert 31 == weighed.score(pod(cpu=1000, memory=GIB), node)


def test_another_resource_counts_for_pods_that_ask_for_it() -> None:
    """kube-scheduler leaves out a scalar resource that the pod does not ask for, and one that the node has none of."""
    strategy = ScoringStrategy(MOST_ALLOCATED, ((GPU, 1),))
    held = pod("held", cpu=100, memory=GIB, gpu=2)

    asked = strategy.score(pod(cpu=100, memory=GIB, gpu=1), room(held, cpu=4000, memory=8 * GIB, gpu=4))
    without = strategy.score(pod(cpu=100, memory=GIB), room(held, cpu=4000, memory=8 * GIB, gpu=4))
    elsewhere = strategy.score(pod(cpu=100, memory=GIB, gpu=1), room(cpu=4000, memory=8 * GIB))

    assert (75, 0, 0) == (asked, without, elsewhere)


@given(cpu=st.integers(0, 9000), memory=st.integers(0, 20), kind=st.sampled_from([LEAST_ALLOCATED, MOST_ALLOCATED]))
def test_a_score_is_from_0_to_100(cpu: int, memory: int, kind: str) -> None:
    """Also where pods without requests count for more than the node has."""
    node = room(pod("held", cpu=cpu, memory=memory * GIB), cpu=4000, memory=8 * GIB, pods=10)

    assert 0 <= ScoringStrategy(kind).score(pod(cpu=cpu, memory=memory * GIB), node) <= 100


def test_the_fuller_node_wins_where_the_scheduler_fills() -> None:
    """All three go to the first, which then is the fuller one; the fourth finds no room there."""
    cluster = Cluster(ScoringStrategy(MOST_ALLOCATED))
    cluster.create(ready_node("b"), ready_node("a"), *(cpu_pod(f"p{number}", "1200m") for number in range(4)))

    placed = cluster.placed()
    cluster.loop.close()

    assert {"p0": "a", "p1": "a", "p2": "a", "p3": "b"} == placed
