"""A node that is not adopted yet shows less than its claim promises, and nothing is bought twice for that."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from kerf.engine.place.shapes import group
from kerf.engine.place.trial import Trial
from kerf.model.constraints import Taint
from kerf.model.nodeclaim import FOLLOW, LAUNCHED, REGISTERED
from kerf.model.plan import PIN, REPLAY
from kerf.model.promises import Promises, written
from kerf.model.snapshot import ClusterNode
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_snapshot, an_instance_type, cards
from tests.engine.worlds import G5, M5, a_daemon_set, a_hami_pool, planned, some

POOL = "karpenter.sh/nodepool"
CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
OURS = Taint("team", "a", "NoSchedule")


def refusals(node: ClusterNode, **pod: Any) -> int:
    """How many of the one node refuse the pod."""
    snapshot = replace(a_snapshot(), nodes=(node,))
    (shape,) = group([a_pod(cpu=1, **pod)])
    return len(Trial(snapshot, a_market(M5)).misfits(shape))


@pytest.mark.parametrize("reached", [(LAUNCHED,), (LAUNCHED, REGISTERED)], ids=["not adopted", "adopted"])
def test_the_labels_of_the_claim_count_until_the_node_is_adopted(reached: tuple[str, ...]) -> None:
    """kubelet brings a node without them; a pod that asks for one would else be bought a second node."""
    claim = a_claim(node_name="node", labels={POOL: "main"}, reached=reached)
    fresh = replace(a_node("node"), labels={})

    assert int(REGISTERED in reached) == refusals(ClusterNode(fresh, claim), selector={POOL: "main"})


def test_the_taints_of_the_claim_count_before_the_node_has_them() -> None:
    """A pod that does not tolerate them is not to wait for this node."""
    claim = a_claim(node_name="node", reached=(LAUNCHED,), taints=(OURS,))

    assert 1 == refusals(ClusterNode(a_node("node"), claim))


@pytest.mark.parametrize("claim", [None, a_claim(node_name="node", reached=(LAUNCHED, REGISTERED))])
def test_the_taint_of_a_cordon_refuses_no_pod(claim: Any) -> None:
    """It comes after the cordon and goes after it; the cordon itself is looked at elsewhere."""
    assert 0 == refusals(ClusterNode(a_node("node", taints=(CORDON,)), claim))


@pytest.mark.parametrize("follow", [PIN, REPLAY])
def test_slices_bought_beside_nodes_whose_pods_are_pinned_are_pinned_too(follow: str) -> None:
    """Free to go anywhere, their pods would take the cards that are kept for the others."""
    claim = a_claim("first", instance_type="g5.xlarge", reached=(LAUNCHED,), annotations={FOLLOW: follow})
    decided = planned(some(2, gpu=1, gpumem=12000), [a_hami_pool()], [G5], claims=[claim])

    assert {follow} == {launch.follow for launch in decided.launches}


def test_what_was_found_of_a_node_that_starts_holds_in_its_own_world_alone() -> None:
    """With another DaemonSet or another market it has other room, and the pods that it was bought for find the same
    there as if it were asked for the first time."""
    promised = written(Promises({f"default/p-{number}": (0,) for number in range(3)}))
    labels = {"gpu": "on"}
    claim = a_claim("first", instance_type="g5.xlarge", reached=(LAUNCHED,), labels=labels, annotations=promised)
    (node,) = a_snapshot(pools=[a_hami_pool()], claims=[claim]).nodes
    small = an_instance_type("g5.xlarge", cpu=2, memory="16Gi", devices=cards(1), price="1.006")
    slices = some(3, gpu=1, gpumem=7000, cpu="500m")
    seen = set[str]()
    for kind, daemons, pods in product((G5, small), ((), (a_daemon_set(cpu=1),)), (slices, slices[1:], slices[:1])):
        market = a_market(kind)
        for _ in range(2):
            plain = a_snapshot(pools=[a_hami_pool()], pods=pods, daemon_sets=daemons)
            kept, fresh = (Trial(replace(plain, nodes=(each,)), market) for each in (node, replace(node)))
            assert fresh.rooms == kept.rooms
            expected = fresh.place_as_planned(group(pods)).placed
            assert expected == kept.place_as_planned(group(pods)).placed
            assert fresh.rooms == kept.rooms
            seen.add(repr((fresh.rooms[0].free, sorted(expected))))
    assert len(seen) > 6
