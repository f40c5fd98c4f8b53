"""What keeps a state of 100,000 pods quick: it does again only what has changed."""

from dataclasses import replace

import pytest

from kerf.model.quantities import NODES, Resources
from kerf.model.snapshot import Deleted, Upserted, Watched
from kerf.model.volumes import VolumeAttachment
from kerf.state import ClusterState
from kerf.testing.builders import NOON_S, a_claim, a_node, a_pod
from tests.engine.worlds import joined


def a_state(*values: Watched) -> ClusterState:
    """With these objects."""
    state = ClusterState()
    for value in values:
        state.apply(Upserted(value))
    return state


def test_a_heartbeat_changes_no_decision() -> None:
    """A new resource version alone is no new version of the state, yet it is what the next write must name."""
    state = a_state(a_node(resource_version="1"))
    before = state.version

    assert not state.apply(Upserted(a_node(resource_version="2")))
    assert before == state.version
    assert a_node(resource_version="2") == joined(state.snapshot(NOON_S)).node

    assert state.apply(Upserted(a_node(resource_version="2", is_unschedulable=True)))
    assert before + 1 == state.version


def test_what_is_shown_after_our_own_write_is_news() -> None:
    """Even a later form that says the same: a list may show none that is older."""
    state = a_state(a_node(resource_version="1"))
    state.note(a_node(resource_version="2", is_unschedulable=True))

    assert state.apply(Upserted(a_node(resource_version="3", is_unschedulable=True)))
    assert not state.apply(Upserted(a_node(resource_version="4", is_unschedulable=True)))


def test_attachments_are_found_by_their_node_and_change_no_decision() -> None:
    """Only the end of a node waits for them."""
    state = a_state(a_node("n"))
    before = state.version
    one, other = VolumeAttachment("b", "n", "pv-1"), VolumeAttachment("a", "n", "pv-2", is_attached=True)
    for each in (one, other, VolumeAttachment("c", "elsewhere")):
        state.apply(Upserted(each))
    assert ((other, one), before) == (state.attachments_to("n"), state.version)

    state.apply(Deleted(other))
    assert ((one,), ()) == (state.attachments_to("n"), state.attachments_to("nowhere"))


def test_a_node_on_which_nothing_has_happened_is_the_same_value_again() -> None:
    """The other is joined anew."""
    state = a_state(a_node("a"), a_node("b"), a_pod("p", node_name="a"), a_pod("q", node_name="b"))
    before = state.snapshot(NOON_S)

    state.apply(Deleted(a_pod("p", node_name="a")))
    after = state.snapshot(NOON_S)

    assert (False, True) == tuple(b is a for b, a in zip(before.nodes, after.nodes, strict=True))
    assert () == joined(after, "a").pods


def test_a_pod_goes_from_the_waiting_to_its_node_and_away() -> None:
    """In key order in both places, and in none once it has ended."""
    waiting = [a_pod(name) for name in "cab"]
    state = a_state(*waiting)
    assert ["a", "b", "c"] == [pod.name for pod in state.pending()]

    for pod in waiting:
        state.apply(Upserted(replace(pod, node_name="node")))
    assert ((), ["a", "b", "c"]) == (state.pending(), [pod.name for pod in state.pods_on("node")])

    state.apply(Upserted(replace(waiting[1], node_name="node", phase="Succeeded")))
    assert ["b", "c"] == [pod.name for pod in state.pods_on("node")]


def test_a_pools_claims_are_summed_up_as_they_come_and_go() -> None:
    """A resource that no claim is left to state is not in the sum, not even as zero."""
    small, large = Resources({"cpu": 2000}), Resources({"cpu": 8000, "nvidia.com/gpu": 1})
    state = a_state(a_claim("a", capacity=small), a_claim("b", capacity=large), a_claim("c", pool="other"))
    assert Resources({"cpu": 10000, "nvidia.com/gpu": 1, NODES: 2}) == state.counted("pool")

    state.apply(Upserted(a_claim("b", capacity=small)))
    assert Resources({"cpu": 4000, NODES: 2}) == state.counted("pool")

    state.apply(Deleted(a_claim("a")))
    assert (Resources({"cpu": 2000, NODES: 1}), ["b"]) == (
        state.counted("pool"),
        [claim.name for claim in state.claims_of("pool")],
    )


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 0, 3, 1)])
def test_cards_of_a_pool_are_counted_as_its_nodes_show_them(order: tuple[int, ...]) -> None:
    """A card that is cut into ten counts ten once its node is there, whichever is seen first; nothing is left of what
    goes."""
    stated, shown = Resources({"cpu": 4000, "nvidia.com/gpu": 1}), Resources({"cpu": 3900, "nvidia.com/gpu": 10})
    objects: list[Watched] = [
        a_claim("a", provider_id="i-a", capacity=stated),
        a_claim("b", provider_id="i-b", capacity=stated),
        a_node("n", provider_id="i-a", capacity=shown),
        a_node("foreign", provider_id="i-x", capacity=shown),
    ]
    state = a_state(*(objects[at] for at in order))
    assert Resources({"cpu": 8000, "nvidia.com/gpu": 11, NODES: 2}) == state.counted("pool")

    state.apply(Upserted(a_node("n", provider_id="i-a", capacity=Resources({"cpu": 3900}))))
    assert 2 == state.counted("pool")["nvidia.com/gpu"]
    state.apply(Upserted(objects[2]))
    state.apply(Deleted(objects[2]))
    assert 2 == state.counted("pool")["nvidia.com/gpu"]
    for each in objects[:2]:
        state.apply(Deleted(each))
    assert Resources() == state.counted("pool")
