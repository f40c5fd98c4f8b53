"""Whole cards, counted as kubelet counts them; and which family owns a node's cards."""

from dataclasses import replace

import pytest

from kerf.model.causes import Lack, Name
from kerf.model.gpu import DeviceShape, DeviceState, GPUModel, SliceRequest
from kerf.model.nodes import Node
from kerf.model.pods import Container, Pod, PodDemand
from kerf.model.quantities import Resources
from kerf.sharing.family import Fit, NoFit, Occupant, Refused
from kerf.sharing.nvidia.whole import TooFewGpus, Whole
from kerf.sharing.registry import configured, family_named, owner_of
from tests.sharing.builders import container, pod

WHOLE = Whole()
A10G = DeviceShape(GPUModel("A10G", registered_as="NVIDIA A10G"), 22888)
FOUR = WHOLE.predict([A10G] * 4, {}, {})


def demanded(asking: Pod) -> PodDemand:
    """What it asks of whole cards."""
    demand = WHOLE.demand(asking)
    assert not isinstance(demand, Refused)
    return demand


def fitted(asking: Pod, devices: tuple[DeviceState, ...] = FOUR) -> Fit | NoFit:
    """Whether it fits these cards."""
    return WHOLE.fit(devices, demanded(asking), asking, None, ())


def test_a_new_node_has_one_slot_a_card() -> None:
    """Kubelet shows as many nvidia.com/gpu as there are healthy cards."""
    assert DeviceState("gpu-1", 1, "NVIDIA A10G", 22888) == FOUR[1]
    assert Resources({"nvidia.com/gpu": 3}) == WHOLE.kubelet_capacity((*FOUR[:3], replace(FOUR[3], healthy=False)))


def test_only_the_number_of_gpus_is_asked_of_whole_cards() -> None:
    """Memory and cores are some other family's."""
    asking = pod(container("a", gpus=2, mib=100), container("b"))

    assert [SliceRequest(2, cores=100, resource="nvidia.com/gpu"), None] == [
        c.request for c in demanded(asking).containers
    ]


def test_a_pod_gets_the_idle_cards_of_lowest_index() -> None:
    """All memory and all cores of each; the next pod gets the next ones."""
    fit = fitted(pod(gpus=2))
    assert isinstance(fit, Fit)
    assert [(0, 22888, 100), (1, 22888, 100)] == [(s.device, s.memory_mib, s.cores) for s in fit.slices]

    after = fitted(pod(gpus=2), fit.devices)
    assert isinstance(after, Fit)
    assert [2, 3] == [s.device for s in after.slices]


def test_too_few_idle_cards_are_counted() -> None:
    """The number that is lacking, and what it is a part of."""
    expected = NoFit(TooFewGpus(wanted=6, idle=4, there=4), (Lack(2, Name("GPU")),), 2)

    assert expected == fitted(pod(gpus=6))


INIT = [
    ([container("i", gpus=3)], 1, [("i", 0), ("i", 1), ("i", 2), ("main", 0)], 3),
    ([container("s", gpus=1, is_sidecar=True)], 2, [("s", 0), ("main", 1), ("main", 2)], 3),
    (
        [container("s", gpus=1, is_sidecar=True), container("i", gpus=2)],
        1,
        [("s", 0), ("i", 1), ("i", 2), ("main", 1)],
        3,
    ),
]


@pytest.mark.parametrize(("init", "gpus", "slices", "used"), INIT)
def test_init_containers_lend_their_cards_to_the_app(
    init: list[Container], gpus: int, slices: list[tuple[str, int]], used: int
) -> None:
    """A plain init container ends first; a sidecar keeps its card (KEP-753)."""
    fit = fitted(pod(container("main", gpus=gpus), init=init))

    assert isinstance(fit, Fit)
    assert slices == [(s.container, s.device) for s in fit.slices]
    assert used == sum(not d.is_idle for d in fit.devices)


def test_what_pods_hold_is_counted_from_the_lowest_index() -> None:
    """Nobody tells which card a pod holds; an ended pod holds none."""
    running, ended = pod(gpus=3), replace(pod(gpus=1), phase="Succeeded")
    occupants = [Occupant(p, demanded(p)) for p in (running, ended)]

    assert [False, False, False, True] == [d.is_idle for d in WHOLE.occupied(FOUR, occupants)]


def test_a_finished_init_container_gives_its_cards_back() -> None:
    """Four at the start, one once it has been initialised."""
    asking = pod(container("main", gpus=1), init=[container("i", gpus=4)])
    started = replace(asking, initialised=True)

    assert [0, 3] == [
        sum(d.is_idle for d in WHOLE.occupied(FOUR, [Occupant(p, demanded(p))])) for p in (asking, started)
    ]


INVENTORY = [
    ({}, 0, None),
    ({}, 1, [0]),
    ({"nvidia.com/gpu.memory": "23028", "karpenter.k8s.aws/instance-gpu-memory": "24576"}, 2, [23028, 23028]),
    ({"karpenter.k8s.aws/instance-gpu-memory": "24576"}, 1, [24576]),
    ({"nvidia.com/gpu.memory": "much"}, 1, [0]),
]


@pytest.mark.parametrize(("labels", "count", "expected"), INVENTORY)
def test_a_nodes_cards_are_those_that_kubelet_shows(
    labels: dict[str, str], count: int, expected: list[int] | None
) -> None:
    """Their memory is from a label, 0 when nobody states it; none while kubelet shows none."""
    devices = WHOLE.inventory(Node("n", labels, allocatable=Resources({"nvidia.com/gpu": count})))

    assert expected == (None if devices is None else [d.memory_mib for d in devices])


OWNERS = [
    ({"gpu": "on"}, {}, "hami"),
    ({"gpu": "off"}, {}, "whole"),
    ({}, {}, "whole"),
    ({}, {"kerf.dev/gpu-sharing": "hami"}, "hami"),
    ({"gpu": "on"}, {"kerf.dev/gpu-sharing": "none"}, "whole"),
    ({"gpu": "on"}, {"kerf.dev/gpu-sharing": "whole"}, "whole"),
]


@pytest.mark.parametrize(("labels", "annotations", "expected"), OWNERS)
def test_a_node_belongs_to_the_family_that_selects_it(
    labels: dict[str, str], annotations: dict[str, str], expected: str
) -> None:
    """By HAMi's node label, unless the pool says otherwise; what nobody claims is whole cards (003-1)."""
    assert expected == owner_of(labels, annotations).name


def test_families_are_found_by_name_and_configured_together() -> None:
    """In the order in which they are asked; an unknown name is a KeyError."""
    assert ["hami", "mig", "mps", "time-slicing", "whole"] == [family.name for family in configured([])]
    assert [("gpu", "on"), None] == [family_named(name).selector for name in ("hami", "whole")]
    with pytest.raises(KeyError):
        family_named("kai")
