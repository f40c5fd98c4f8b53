"""A trial that asks one node of those that answer alike decides as one that asks every node."""

import heapq
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.place.fit import Placed, fit
from kerf.engine.place.shapes import Shape
from kerf.engine.place.trial import Trial, placed_pod
from kerf.model.constraints import HOSTNAME, ZONE, Requirement, Requirements, Taint, Toleration
from kerf.model.gpu import DeviceState
from kerf.model.nodeclaim import LAUNCHED, PLANNED_OFFERING
from kerf.model.plan import Misfit, NodePlacement
from kerf.model.pods import Container, HostPort, Pod, PodSpec
from kerf.model.quantities import Resources
from kerf.model.snapshot import ClusterNode
from kerf.sharing.hami.options import AVOID_UUID, GPU_POLICY, NUMA_BIND, PINNED, USE_UUID
from kerf.sharing.hami.records import PAIR_SCORES
from kerf.testing.builders import a_claim, a_market, a_node, a_pod, a_snapshot, an_instance_type
from tests.engine.worlds import HAMI
from tests.examples import examples

BOUNDED = examples(400, derandomize=True)
NAMES = ("n0", "n1", "n2", "n3", "n4", "n5")
STATES = ((0, 0, 0), (20000, 0, 1), (4000, 0, 1), (4000, 100, 1), (22888, 100, 10))
"""MiB, cores and slots in use of a card."""
SHARED = "nvidia.com/gpu.shared"
MARKET = a_market(an_instance_type("m5.xlarge", zones=("a", "b")))
Draw = Callable[..., Any]


def a_card(node: str, index: int, use: tuple[int, int, int], numa: int = 0) -> DeviceState:
    """A card with an id of its own and this use."""
    memory, cores, slots = use
    card = DeviceState(f"{node}-{index}", index, "NVIDIA A10G", 22888, slots=10, numa=numa, mode="hami-core")
    return card.taking(memory, cores, slots)


def a_gpu_node(name: str, *uses: tuple[int, int, int], family: str = "hami", **given: Any) -> ClusterNode:
    """A node with cards of these uses; `given` are fields of Node."""
    labels = {**(HAMI if family == "hami" else {}), **given.pop("labels", {})}
    cards = tuple(a_card(name, index, use) for index, use in enumerate(uses))
    return ClusterNode(a_node(name, labels=labels, **given), None, (), cards, family if cards else "")


def links(name: str, *rows: tuple[int, ...]) -> dict[str, str]:
    """HAMi's annotation of how well the cards of a node are linked."""
    scores = ({f"{name}-{at}": score for at, score in enumerate(row)} for row in rows)
    return {PAIR_SCORES: json.dumps([{"uuid": f"{name}-{at}", "score": row} for at, row in enumerate(scores)])}


@st.composite
def nodes(draw: Draw, name: str) -> ClusterNode:
    """A node in one of few states, or one that is on its way."""
    uses = draw(st.lists(st.sampled_from(STATES), max_size=3))
    if draw(st.integers(0, 5)) == 0:
        zones = draw(st.sampled_from([["a"], ["a", "b"], ["b"]]))
        claim = a_claim(name, requirements=Requirements([Requirement.of(ZONE, "In", zones)]), reached=(LAUNCHED,))
        claim = replace(claim, labels=HAMI, annotations={PLANNED_OFFERING: "m5.xlarge/a/on-demand"})
        return ClusterNode(None, claim, (), tuple(a_card(name, at, use) for at, use in enumerate(uses)), "hami")
    amounts = {"cpu": draw(st.sampled_from([1, 4])), "pods": draw(st.sampled_from([1, 20]))}
    taints = (Taint("dedicated"),) if draw(st.integers(0, 4)) == 0 else ()
    family = draw(st.sampled_from(["hami", "hami", "hami", "whole"]))
    labels = {"side": draw(st.sampled_from(["left", "right"]))}
    row = st.tuples(*[st.integers(0, 9)] * len(uses))
    linked = links(name, *(draw(row) for _ in uses)) if draw(st.booleans()) else {}
    return a_gpu_node(name, *uses, family=family, taints=taints, labels=labels, annotations=linked, allocatable=amounts)


ANNOTATIONS: tuple[dict[str, str], ...] = (
    {},
    {},
    {},
    {USE_UUID: "n1-0"},
    {USE_UUID: "n1-0,n2-1", PINNED: "1"},
    {AVOID_UUID: "n0-0,n3-0"},
    {GPU_POLICY: "topology-aware"},
    {NUMA_BIND: "true"},
)


@st.composite
def containers(draw: Draw) -> Container:
    """A slice, a whole card, cpu alone, or what no node here shows."""
    asked = draw(
        st.sampled_from(
            [{"cpu": 1}, {"cpu": 2, "nvidia.com/gpu": 1}, {"nvidia.com/gpu": 2}, {SHARED: 1}, {}]
            + [{"nvidia.com/gpu": 1, "nvidia.com/gpumem": mib} for mib in (1000, 3000, 20000, 50000)]
        )
    )
    ports = (HostPort(80),) if draw(st.integers(0, 5)) == 0 else ()
    amounts = Resources.parse(asked)
    return Container("main", amounts, amounts, host_ports=ports)


@st.composite
def shapes(draw: Draw, name: str) -> Shape:
    """One to three equal pods of one or two containers."""
    held = tuple(draw(st.lists(containers(), min_size=1, max_size=2)))
    asked = draw(st.sampled_from([{}, {}, {"side": "left"}, {ZONE: "a"}, {HOSTNAME: "n2"}]))
    tolerations = (Toleration("dedicated", "Exists"),) if draw(st.booleans()) else ()
    spec = PodSpec(held, node_selector=Requirements.of_labels(asked), tolerations=tolerations)
    annotations = draw(st.sampled_from(ANNOTATIONS))
    count = draw(st.integers(1, 3))
    return Shape(tuple(a_pod(f"{name}-{each}", spec=spec, annotations=annotations) for each in range(count)))


def asking_everyone(trial: Trial, shape: Shape) -> tuple[dict[str, NodePlacement], tuple[Pod, ...]]:
    """What `place` must answer: of all nodes, asked again for each pod, the one that its scheduler likes best."""
    placed: dict[str, NodePlacement] = {}
    for number, pod in enumerate(shape.pods):
        answers = [fit(spot.target, room, shape) for spot, room in zip(trial.spots, trial.rooms, strict=True)]
        takers = [(answer.order, at, answer) for at, answer in enumerate(answers) if isinstance(answer, Placed)]
        if not takers:
            return placed, shape.pods[number:]
        _, index, answer = heapq.nsmallest(1, takers)[0]
        trial.occupy(index, answer.room)
        placed[pod.key] = NodePlacement(placed_pod(pod, answer), trial.spots[index].cluster_node.name)
    return placed, ()


def nearest_of_all(trial: Trial, shape: Shape) -> Misfit | None:
    """What `nearest` must answer: of pods that name nodes the nearest of these."""
    asked = [each[HOSTNAME] for each in shape.spec.alternatives if HOSTNAME in each]
    named = {spot.target.name for spot in trial.spots if any(spot.target.name.name in each.values for each in asked)}
    found = (each for each in trial.misfits(shape) if not named or each.target in named)
    return min(found, key=lambda misfit: misfit.order, default=None)


@given(st.tuples(*map(nodes, NAMES)), st.tuples(*map(shapes, ("a", "b", "c"))))
@BOUNDED
def test_one_of_equal_nodes_answers_for_all(held: tuple[ClusterNode, ...], asked: tuple[Shape, ...]) -> None:
    """Places, what is left, and the nearest miss are those of asking every node, while rooms fill up."""
    trial, plain = (Trial(a_snapshot(nodes=held), MARKET) for _ in range(2))

    for shape in asked:
        # Of a node that lacks cpu `nearest` expects nothing better, and a taken port or hidden cards are said first.
        if not shape.requests.get("cpu") or not (shape.spec.host_ports or shape.requests.get(SHARED)):
            assert nearest_of_all(plain, shape) == trial.nearest(shape)
        assert asking_everyone(plain, shape) == trial.place(shape)
    assert plain.rooms == trial.rooms


@pytest.mark.parametrize("annotation, node", [(USE_UUID, "n1"), (AVOID_UUID, "n0")])
def test_the_nearest_miss_of_a_named_card_is_its_own_node(annotation: str, node: str) -> None:
    """Nodes with equal cards are not equal for a pod that names one of them, or all but one."""
    trial = Trial(a_snapshot(nodes=[a_gpu_node(name, STATES[-1]) for name in ("n0", "n1")]), MARKET)
    pod = a_pod("p", gpu=1, gpumem=1000, annotations={annotation: "n1-0"})

    found = trial.nearest(Shape((pod,)))

    assert found is not None
    assert node == found.target.name


def test_links_between_cards_tell_nodes_apart() -> None:
    """HAMi takes the worst linked card first, and what that leaves for the second container differs."""
    uses = ((0, 0, 0), (20000, 0, 1))
    linked = {"n0": ((0, 0), (9, 0)), "n1": ((0, 9), (0, 0))}
    held = [a_gpu_node(name, *uses, annotations=links(name, *rows)) for name, rows in linked.items()]
    small, large = ({"nvidia.com/gpu": 1, "nvidia.com/gpumem": mib} for mib in (2000, 22000))
    asked = [(name, Resources.parse(each)) for name, each in (("a", small), ("b", large))]
    parts = tuple(Container(name, each, each) for name, each in asked)
    pod = a_pod("p", spec=PodSpec(parts), annotations={GPU_POLICY: "topology-aware"})
    placed, _ = Trial(a_snapshot(nodes=held), MARKET).place(Shape((pod,)))

    assert ["n1"] == [placement.node for placement in placed.values()]
