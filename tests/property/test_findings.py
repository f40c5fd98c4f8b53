"""What is kept of nodes from decision to decision changes none: a cluster that was looked at before is decided for as a
new one.
"""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.decide import decide
from kerf.engine.disruption.candidates import candidates
from kerf.engine.disruption.first import first_command
from kerf.engine.explain.plan import explain
from kerf.engine.options import Options
from kerf.engine.world import World
from kerf.model.constraints import HOSTNAME, Requirements
from kerf.model.nodeclaim import DO_NOT_DISRUPT
from kerf.model.nodes import Node
from kerf.model.pods import PodDisruptionBudget
from kerf.model.snapshot import ClusterSnapshot, Deleted, Upserted, Watched
from kerf.model.topology import TopologySpreadConstraint
from kerf.state import ClusterState
from kerf.testing.builders import NOON_S, a_pod
from tests.engine.disruption.clusters import MARKET
from tests.examples import examples
from tests.property.test_relocation import Objects, clusters

LABELS = {"app": "web"}
EVEN = TopologySpreadConstraint(HOSTNAME, 1, Requirements.of_labels(LABELS))
NUMBERS = st.integers(0, 10**6)


def a_budget(number: int) -> PodDisruptionBudget:
    """One that covers the pods of a label, or all, and allows one disruption or none."""
    selector = Requirements.of_labels(LABELS) if number % 2 else Requirements()
    return PodDisruptionBudget("default", f"budget-{number % 3}", selector, number // 2 % 2)


def changed(state: ClusterState, what: int, number: int) -> Upserted | Deleted:
    """One change of many kinds: a pod comes, goes, ends or is bound; a node is cordoned; a budget comes or goes."""
    pods, nodes = state.pods(), state.nodes()
    some: Any = pods[number % len(pods)] if pods else None
    waiting = a_pod(
        f"new-{number % 5}", cpu=f"{100 + number % 4 * 400}m", labels=LABELS, spread=(EVEN,), uid=f"{number}"
    )
    made: dict[int, Watched] = {0: waiting, 5: a_budget(number)}
    if nodes:
        node: Node = nodes[number % len(nodes)]
        made[1] = replace(waiting, name=f"bound-{number % 9}", node_name=node.name, phase="Running")
        made[4] = replace(node, is_unschedulable=not node.is_unschedulable)
    if some is not None and what == 2:
        return Deleted(some)
    if some is not None:
        made[3] = (
            replace(some, phase="Succeeded") if number % 2 else replace(some, annotations={DO_NOT_DISRUPT: "true"})
        )
    return Upserted(made.get(what, waiting))


def decided(snapshot: ClusterSnapshot) -> tuple[object, ...]:
    """All that is decided of it: the plan with its words, who may go, and the first command."""
    world = World(snapshot, MARKET)
    plan = explain(decide(world, Options()))
    found, blocked = candidates(snapshot)
    command, held = first_command(world, found, lambda: plan.placements)
    gone = command and (command.deletions, command.launches)
    return plan, [each.node.name for each in found], blocked, gone, held


def as_new(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """The same of nodes that nobody has seen."""
    return replace(snapshot, nodes=tuple(replace(node) for node in snapshot.nodes))


@given(clusters(), st.lists(st.tuples(st.integers(0, 5), NUMBERS, st.booleans()), min_size=3, max_size=8))
@examples(90, derandomize=True)
def test_a_cluster_that_was_seen_before_is_decided_for_as_a_new_one(
    objects: Objects, changes: list[tuple[int, int, bool]]
) -> None:
    """After every change, whenever somebody has looked."""
    state = ClusterState(assume_node_classes=True)
    for value in objects.values:
        state.apply(Upserted(value))
    decided(state.snapshot(NOON_S))
    for what, number, is_looked_at in changes:
        state.apply(changed(state, what, number))
        if is_looked_at:
            snapshot = state.snapshot(NOON_S)
            assert decided(as_new(snapshot)) == decided(snapshot)
