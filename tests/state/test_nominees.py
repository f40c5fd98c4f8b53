"""A pod that its scheduler has nominated to a node takes room there, as the scheduler counts it."""

from dataclasses import replace

from kerf.model.pods import Pod
from kerf.model.snapshot import Deleted, Upserted
from kerf.state import ClusterState
from kerf.testing.builders import a_node, a_pod

NODE = a_node("n")
NOMINEE = a_pod("p", uid="u", cpu=1, nominated_node="n")


def state_of(*values: object) -> ClusterState:
    """A state that has seen them."""
    state = ClusterState()
    for value in values:
        state.apply(Upserted(value))  # type: ignore[arg-type]
    return state


def occupants(state: ClusterState) -> list[str]:
    """The pods that take room on the node."""
    node = state.snapshot(0).node("n")
    return [] if node is None else [pod.name for pod in node.pods]


def waiting(state: ClusterState) -> list[str]:
    """The pods that a decision is made for."""
    return [pod.name for pod in state.snapshot(0).pending]


def test_a_nominated_pod_takes_room_on_its_node_and_waits_for_none() -> None:
    """Neither is it planned for, nor is another pod planned into its room."""
    state = state_of(NODE, NOMINEE)

    assert (["p"], []) == (occupants(state), waiting(state))


def test_a_nomination_to_a_node_that_is_not_there_is_none() -> None:
    """Until the node comes, and once it has gone, the pod waits for a node."""
    state = state_of(NOMINEE)
    assert ["p"] == waiting(state)

    state.apply(Upserted(NODE))
    assert (["p"], []) == (occupants(state), waiting(state))

    state.apply(Deleted(NODE))
    assert ["p"] == waiting(state)


def test_a_nomination_ends_when_it_is_taken_away_and_when_the_pod_is_bound() -> None:
    """One room, whichever way."""
    state = state_of(NODE, NOMINEE)
    state.apply(Upserted(replace(NOMINEE, nominated_node="")))
    assert ([], ["p"]) == (occupants(state), waiting(state))

    state.apply(Upserted(replace(NOMINEE, node_name="n")))
    assert (["p"], []) == (occupants(state), waiting(state))


def test_pods_that_are_gated_going_or_ended_hold_nothing_by_a_nomination() -> None:
    """What a scheduler has once written stays on them, and no scheduler counts it."""
    gated = replace(NOMINEE, spec=replace(NOMINEE.spec, scheduling_gates=("example.com/wait",)))
    over: list[Pod] = [gated, replace(NOMINEE, deleted_s=1.0), replace(NOMINEE, phase="Failed")]

    assert [[], [], []] == [occupants(state_of(NODE, pod)) for pod in over]


def test_a_nominated_pod_is_not_drained_with_its_node() -> None:
    """It runs nowhere yet."""
    assert () == state_of(NODE, NOMINEE).pods_on("n")
