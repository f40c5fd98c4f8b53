"""How a plan will be followed: replay where every order leads to it, else a reserved node or pinned cards."""

from typing import Any

import pytest

from kerf.engine.explain.plan import plan
from kerf.engine.options import Options
from kerf.model.instancetypes import InstanceType
from kerf.model.nodepool import NodePool
from kerf.model.plan import PIN, REPLAY, RESERVE
from kerf.model.pods import Pod
from kerf.testing.builders import a_container, a_market, a_pod, a_pool, a_snapshot, an_instance_type, cards
from tests.engine.worlds import G5, G5_12X, M5, a_hami_pool, some

PAIR = an_instance_type("pair", cpu=16, memory="64Gi", devices=cards(2, 24576), price="2.00")
"""A machine of two cards of 24576 MiB."""
BINPACK = {"hami.io/gpu-scheduler-policy": "binpack"}


def marks(pods: list[Pod], pool: NodePool, *types: InstanceType, follow: str = "auto") -> list[str]:
    """The mark of each launch."""
    decided = plan(a_snapshot(pools=[pool], pods=pods), a_market(*types), Options(follow=follow))
    assert () == decided.unplaced
    return [launch.follow for launch in decided.launches]


def slices(*memories: int, **given: Any) -> list[Pod]:
    """Pods in queue order, each with a slice of so many MiB."""
    return [a_pod(f"p-{n}", gpu=1, gpumem=memory, **given) for n, memory in enumerate(memories)]


@pytest.mark.parametrize(
    "pods, pool",
    [
        (some(5, gpu=1, gpumem=8000), a_hami_pool()),
        (some(5, gpu=1), a_pool()),
        (some(5, cpu=3), a_pool()),
    ],
    ids=["slices", "whole cards", "no cards"],
)
def test_equal_pods_on_equal_nodes_replay(pods: list[Pod], pool: NodePool) -> None:
    """Any order gives an equal result, also where the last node is not full."""
    assert {REPLAY} == set(marks(pods, pool, G5))


def test_mixed_slices_that_hami_would_spread_apart_are_pinned() -> None:
    """Two small slices first: HAMi puts one on each card, and the large one finds no room."""
    assert [PIN] == marks(slices(10240, 10240, 20480), a_hami_pool(), PAIR)


def test_an_order_that_would_do_is_not_relied_on() -> None:
    """The large one first would be well, but a pod that was refused before may come back in any order."""
    assert [PIN] == marks(slices(20480, 10240, 10240), a_hami_pool(), PAIR)


def test_the_two_ends_of_the_queue_say_nothing_of_what_is_between() -> None:
    """Four, four and four are the same forwards and backwards, and would do so; binds that collide come in between."""
    assert [PIN, PIN] == marks(slices(*[10240] * 4, *[12000] * 4, *[10240] * 4), a_hami_pool(), G5_12X)


def test_pods_are_pinned_where_their_order_decides_which_card_they_get() -> None:
    """With the policy binpack HAMi puts the small ones on one card by itself: the first or the second."""
    assert [PIN] == marks(slices(10240, 10240, 20480, annotations=BINPACK), a_hami_pool(), PAIR)


def test_a_pod_that_spreads_itself_apart_is_not_bought_for_without_binpack() -> None:
    """Containers of 10240, 10240 and 20480 never fit two cards under spread; with binpack they do, and replay."""
    containers = tuple(a_container(str(n), gpu=1, gpumem=mib) for n, mib in enumerate((10240, 10240, 20480)))
    snapshot = a_snapshot(pools=[a_hami_pool()], pods=[a_pod(containers=containers)])

    assert () == plan(snapshot, a_market(PAIR)).launches
    assert [REPLAY] == marks([a_pod(containers=containers, annotations=BINPACK)], a_hami_pool(), PAIR)


def test_slices_on_different_types_are_pinned() -> None:
    """Where nodes differ, which comes up first would decide; nobody replays that."""
    small = an_instance_type("small", devices=cards(1, 8000), price="0.30")
    pods = slices(7000, 20000)

    assert [PIN, PIN] == marks(pods, a_hami_pool(), small, G5)


def test_whole_cards_on_different_types_get_reserved_nodes() -> None:
    """kube-scheduler counts whole cards itself, so it is enough to say who may come."""
    pods = [a_pod("a-one", gpu=1, memory="8Gi"), a_pod("b-four", gpu=4, memory="190Gi")]

    assert [RESERVE, RESERVE] == marks(pods, a_pool(), G5, G5_12X)


def test_a_slice_node_leaves_the_others_alone() -> None:
    """A pinned node does not make nodes without cards need anything."""
    pods = [*slices(10240, 10240, 20480), *some(2, "web", cpu=4, memory="16Gi")]

    assert {PIN, REPLAY} == set(marks(pods, a_hami_pool(), PAIR, M5)) or [PIN] == marks(pods, a_hami_pool(), PAIR)


@pytest.mark.parametrize("follow, mark", [("off", REPLAY), ("pin", PIN), ("reserve", RESERVE)])
def test_the_operators_choice_is_taken_as_it_is(follow: str, mark: str) -> None:
    """`--follow` marks every launch."""
    assert [mark] == marks(slices(10240, 10240, 20480), a_hami_pool(), PAIR, follow=follow)
