"""A relocation worked out from kept courses is the one that a fresh trial gives, on small random clusters."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.disruption.candidates import Candidate, candidates
from kerf.engine.disruption.relocation import Relocation, may_receive
from kerf.engine.disruption.settled import Settled
from kerf.engine.headroom.waiting import waiting_pods
from kerf.engine.leaving import unbound
from kerf.engine.place.shapes import Readings, group
from kerf.engine.place.trial import Trial
from kerf.engine.supply.offered import supply
from kerf.engine.world import World
from kerf.model.constraints import Taint, Toleration
from kerf.model.plan import NodePlacement
from kerf.model.pods import Pod
from kerf.model.snapshot import ClusterSnapshot, ResourceQuota, Upserted, Watched
from kerf.sharing.hami.records import ALLOCATED, NODE
from kerf.state import ClusterState
from kerf.testing.builders import NOON_S, a_pod
from tests.engine.disruption.clusters import MARKET, free_pool, on, ours
from tests.engine.worlds import a_hami_node, port_spec
from tests.examples import examples

BOUNDED = examples(300, derandomize=True)
NAMES = ("n0", "n1", "n2", "n3", "n4", "n5")
NAMESPACES = st.sampled_from(["default", "team"])
Moved = dict[str, tuple[NodePlacement, ...] | None]
Draw = Callable[..., Any]


@dataclass(frozen=True)
class Objects:
    """What a cluster holds, in some order."""

    values: tuple[Watched, ...]

    def seen(self, seed: int = 0) -> ClusterSnapshot:
        """The snapshot, the objects told in the order that a seed gives."""
        state = ClusterState(assume_node_classes=True)
        for value in Random(seed).sample(self.values, len(self.values)):
            state.apply(Upserted(value))
        return state.snapshot(NOON_S)


@st.composite
def nodes(draw: Draw, name: str, usual: str) -> list[Watched]:
    """A node and its claim: with HAMi's cards or none, rarely tainted or cordoned."""
    kind = draw(st.sampled_from([usual, usual, usual, "m5.xlarge", "g5.xlarge"]))
    taints = (Taint("dedicated"),) if draw(st.integers(0, 9)) == 0 else ()
    amounts = {"cpu": draw(st.sampled_from([4, 8])), "pods": 20, "nvidia.com/gpu": 20 if kind == "g5.xlarge" else 0}
    node, claim = ours(name, instance_type=kind, taints=taints, allocatable=amounts, labels={"side": name[-1]})
    node = replace(node, is_unschedulable=draw(st.integers(0, 11)) == 0)
    return [a_hami_node(node, draw(st.integers(1, 2))) if kind == "g5.xlarge" else node, claim]


@st.composite
def wishes(draw: Draw) -> dict[str, Any]:
    """What a pod asks: cpu, a slice, or a port; now and then of one node, or with a toleration."""
    if draw(st.integers(0, 9)) == 0:
        return {"spec": port_spec(80)}
    asked: dict[str, Any] = {"cpu": f"{draw(st.integers(1, 4)) * 250}m"}
    if draw(st.booleans()):
        amounts = {"gpumem": draw(st.integers(1, 6)) * 2000, "cores": draw(st.sampled_from([0, 30, 60]))}
        asked |= {"gpu": 1, "scheduler_name": "hami-scheduler", **amounts}
    if draw(st.integers(0, 7)) == 0:
        asked["selector"] = {"side": draw(st.sampled_from("012"))}
    asked["tolerations"] = (Toleration(operator="Exists"),) if draw(st.booleans()) else ()
    return asked


@st.composite
def pods(draw: Draw, names: tuple[str, ...]) -> list[Pod]:
    """Running and waiting pods of a few kinds, so that nodes share kinds with each other and with what waits."""
    found: list[Pod] = []
    kinds = draw(st.lists(wishes(), min_size=2, max_size=5))
    for name in names:
        for number, asked in enumerate(draw(st.lists(st.sampled_from(kinds), max_size=2))):
            held = f"{name}-gpu-0,NVIDIA,{asked.get('gpumem', 0)},{asked.get('cores', 0)}:;"
            record = {NODE: name, ALLOCATED: held} if "gpu" in asked else {}
            fields = {"namespace": draw(NAMESPACES), "annotations": record, "uid": f"{name}-{number}"}
            found.append(on(name, f"{name}-{number}", **fields, **asked))
    for number in range(draw(st.sampled_from([0, 4, 8, 14]))):
        asked = draw(st.sampled_from(kinds))
        fields = {"namespace": draw(NAMESPACES), "created_s": draw(st.integers(0, 1)), "uid": f"w-{number}"}
        found.append(a_pod(f"w-{number}", **fields, **asked))
    return found


@st.composite
def clusters(draw: Draw) -> Objects:
    """All of it."""
    names = NAMES[: draw(st.integers(2, 6))]
    made: list[Watched] = [free_pool()]
    usual = draw(st.sampled_from(["m5.xlarge", "g5.xlarge"]))
    for name in names:
        made += draw(nodes(name, usual))
    if draw(st.booleans()):
        made.append(ResourceQuota("team", "slices", {"limits.nvidia.com/gpumem": draw(st.integers(1, 8)) * 4000}))
    return Objects((*made, *draw(pods(names))))


def naive(snapshot: ClusterSnapshot, candidate: Candidate) -> tuple[NodePlacement, ...] | None:
    """A fresh trial beside the pods that have a place by the present plan; all others that wait, with the candidate
    closed; then its own."""
    settled = Settled(World(snapshot, MARKET)).with_places(
        snapshot, lambda name: (node := snapshot.node(name)) is not None and may_receive(node, snapshot)
    )
    open_to_all = {node.name for node in snapshot.nodes if may_receive(node, snapshot)}
    staying = replace(settled, nodes=tuple(node for node in settled.nodes if node.name in open_to_all))
    trial, closed = Trial(staying, MARKET), candidate.node.name
    for shape in group(waiting_pods(staying, supply(snapshot, MARKET), trial).pods, Readings.of(snapshot)):
        trial.place(shape, closed)
    moved: dict[str, NodePlacement] = {}
    for shape in group(map(unbound, candidate.pods), Readings.of(snapshot)):
        placed, left = trial.place(shape, closed)
        if left:
            return None
        moved.update(placed)
    return tuple(moved[key] for key in sorted(moved))


@given(clusters(), st.integers(0, 9))
@BOUNDED
def test_a_relocation_is_that_of_a_fresh_trial(objects: Objects, seed: int) -> None:
    """For every node, whatever was asked before, and however the objects came."""
    snapshot, again = objects.seen(), objects.seen(seed)
    expected: Moved = {each.node.name: naive(snapshot, each) for each in candidates(snapshot)[0]}
    shared = Relocation(World(again, MARKET))
    asked = candidates(again)[0]

    assert expected == {each.node.name: shared.of(each) for each in Random(seed).sample(asked, len(asked))}
