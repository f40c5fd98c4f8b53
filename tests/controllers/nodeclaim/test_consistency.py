"""ConsistentStateFound: a node has at least nine tenths of what its cloud promised."""

from typing import Any

import pytest

from kerf.controllers.nodeclaim.consistency import Consistency
from kerf.model.nodeclaim import CONSISTENT_STATE_FOUND
from kerf.model.promises import devices_text
from kerf.testing.builders import cards, resources
from tests.controllers.cluster import Cluster, pool

PROMISED = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
WITH_CARDS = {"annotations": {"kerf.dev/predicted-devices": devices_text(cards(1))}}


def begin(cluster: Cluster, node: dict[str, str], **claim_given: Any) -> None:
    """An initialised claim of 4 cpu, 16Gi and a GPU, and a node that has `node`."""
    cluster.put(pool())
    cluster.running(1, node={"capacity": resources(**{**PROMISED, **node})}, **claim_given)
    others = dict.fromkeys(cluster.claim().capacity)
    cluster.change("NodeClaim", "gpu-1", status={"capacity": {**others, **PROMISED}})
    cluster.start(Consistency(cluster.state, cluster.ports))


@pytest.mark.parametrize("shown", [{}, {"memory": "15Gi"}, {"cpu": "3600m"}, {"cpu": "64", "pods": "110"}])
def test_a_node_of_nine_tenths_or_more_is_consistent(cluster: Cluster, shown: dict[str, str]) -> None:
    """Kernels and firmware take their part of memory; more than was promised is no harm."""
    begin(cluster, shown)

    assert ("True", CONSISTENT_STATE_FOUND, "") == cluster.condition(CONSISTENT_STATE_FOUND)
    assert [] == cluster.said("FailedConsistencyCheck")


@pytest.mark.parametrize(
    "shown, said",
    [
        ({"memory": "8Gi"}, "expected 16Gi of resource memory, but found 8Gi (50.0% of expected)"),
        ({"cpu": "3500m"}, "expected 4 of resource cpu, but found 3500m (87.5% of expected)"),
        ({"nvidia.com/gpu": "0"}, "expected 1 of resource nvidia.com/gpu, but found 0 (0.0% of expected)"),
    ],
)
def test_a_smaller_node_is_said_on_its_claim(cluster: Cluster, shown: dict[str, str], said: str) -> None:
    """In Karpenter's words, with an event."""
    begin(cluster, shown)

    assert ("False", "ConsistencyCheckFailed", said) == cluster.condition(CONSISTENT_STATE_FOUND)
    assert [said] == cluster.said("FailedConsistencyCheck")


def test_a_node_that_shrinks_is_seen_when_it_does_and_again_when_it_grows(cluster: Cluster) -> None:
    """A card or a memory bank that falls off changes the capacity that kubelet shows."""
    begin(cluster, {})
    cluster.change("Node", "node-1", status={"capacity": {"memory": "8Gi"}})
    assert "False" == cluster.condition(CONSISTENT_STATE_FOUND)[0]

    cluster.change("Node", "node-1", status={"capacity": {"memory": "16Gi"}})
    assert "True" == cluster.condition(CONSISTENT_STATE_FOUND)[0]


def test_the_cards_of_a_claim_that_was_bought_for_some_are_left_to_its_register(cluster: Cluster) -> None:
    """A node that is cut into MIG instances shows no whole GPU."""
    begin(cluster, {"nvidia.com/gpu": "0"}, **WITH_CARDS)

    assert "True" == cluster.condition(CONSISTENT_STATE_FOUND)[0]


def test_a_claim_that_is_not_initialised_is_not_judged(cluster: Cluster) -> None:
    """Kubelet may not have shown everything yet."""
    begin(cluster, {"memory": "8Gi"}, reached=("Launched", "Registered"))

    assert cluster.claim().condition(CONSISTENT_STATE_FOUND) is None
