"""HAMi's annotations, read and written."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf.errors import DecodeError
from kerf.model.gpu import DeviceState, Profile, SliceRequest
from kerf.model.nodes import Node
from kerf.model.pods import ContainerDemand, PodDemand
from kerf.model.quantities import Resources
from kerf.sharing.family import Fit, Occupant
from kerf.sharing.hami.family import Hami
from kerf.sharing.hami.records import allocation_annotations, parse_register, register_annotation
from tests.examples import examples
from tests.sharing.builders import cards, container, decided, pod, registered

TRANSCRIPT = Path(__file__).parents[2] / "data" / "hami" / "hami-bind.json"
T4 = '{"id":"GPU-9a","count":10,"devmem":15360,"devcore":100,"type":"NVIDIA-Tesla T4","health":true}'
PROFILE = Profile("1g.6gb", 1, (0, 1, 2, 3), 5952, 25, 1)
MIG_CARD = DeviceState("GPU-m", 3, "NVIDIA A30", 24576, 100, 4, 1, "mig", profiles=(PROFILE,))


def test_absent_fields_of_a_register_are_zero() -> None:
    """HAMi leaves out index 0, numa 0 and health false."""
    expected = DeviceState("GPU-9a", 0, "NVIDIA-Tesla T4", 15360, 100, 10)

    assert (expected,) == parse_register(f"[{T4}]")
    assert not parse_register('[{"id":"GPU-9a"}]')[0].healthy


def test_a_register_is_written_as_hami_writes_it() -> None:
    """Zero, false and empty fields are left out; what is written is read back the same."""
    card = DeviceState("GPU-9a", 0, "NVIDIA-Tesla T4", 15360, 100, 10)

    written = {"id": "GPU-9a", "count": 10, "devmem": 15360, "devcore": 100, "type": "NVIDIA-Tesla T4", "health": True}
    assert [written] == json.loads(register_annotation([card]))
    assert (card, MIG_CARD) == parse_register(register_annotation([card, MIG_CARD]))


OLD = [
    ("GPU-a,10,15360,100,NVIDIA-Tesla T4,0,true:", DeviceState("GPU-a", 0, "NVIDIA-Tesla T4", 15360, 100, 10)),
    (
        "GPU-b,5,24576,200,NVIDIA A10,1,false,4,mps:",
        DeviceState("GPU-b", 4, "NVIDIA A10", 24576, 200, 5, 1, "mps", False),
    ),
]


@pytest.mark.parametrize(("text", "expected"), OLD)
def test_the_old_colon_form_of_the_register_is_read(text: str, expected: DeviceState) -> None:
    """Seven fields, or nine with index and mode."""
    assert (expected,) == parse_register(text)


BROKEN = [
    ("[{", "text that is no JSON"),
    ("[" * 100_000, "text that is no JSON"),
    ('[{"devmem":99999999999}]', r"\[0\].devmem: expected a whole number, got 99999999999"),
    ('["x"]', r"node-nvidia-register\[0\]: expected an object, got 'x'"),
    ('[{"devmem":"15Gi"}]', r"\[0\].devmem: expected a whole number, got '15Gi'"),
    ('[{"health":1}]', r"\[0\].health: expected true or false, got 1"),
    ('[{"migProfiles":[{"placements":4}]}]', r"\[0\].migProfiles\[0\].placements: expected a list, got 4"),
    ("GPU-a,10,15360:", "expected a JSON list, or id,count"),
    (f"[{T4},{T4}]", r"\[1\].id: expected the UUID of a card that stands nowhere else, got 'GPU-9a'"),
    ("GPU-a,1,15360,100,NVIDIA,0,true:GPU-a,1,15360,100,NVIDIA,0,true:", r"\[1\].id: expected the UUID of a card that"),
    ("GPU-a,ten,15360,100,NVIDIA,0,true:", "expected a JSON list, or id,count"),
]


@pytest.mark.parametrize(("text", "expected"), BROKEN, ids=[text[:12] for text, _ in BROKEN])
def test_a_register_that_cannot_be_read_is_reported_with_node_and_field(text: str, expected: str) -> None:
    """Place, path, expected, got."""
    with pytest.raises(DecodeError, match=f"Node n1: .*{expected}"):
        Hami().inventory(Node("n1", annotations={"hami.io/node-nvidia-register": text}))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
@examples(50)
def test_cards_have_an_index_each_in_the_order_of_those_registered(indexes: list[int]) -> None:
    """Those that differ are kept; where two are equal, all are numbered from 0, equal ones by their place."""
    text = json.dumps([{"id": f"GPU-{place}", "index": index} for place, index in enumerate(indexes)])
    read = [device.index for device in parse_register(text)]

    if len(set(indexes)) == len(indexes):
        assert indexes == read
    else:
        in_order = sorted(range(len(indexes)), key=lambda place: (indexes[place], place))
        assert [read.index(rank) for rank in range(len(indexes))] == in_order


@pytest.mark.parametrize("text", [None, "", "  ", "[]"])
def test_a_node_without_registered_cards_has_none_yet(text: str | None) -> None:
    """The normal state of a fresh node, and no verdict."""
    annotations = {} if text is None else {"hami.io/node-nvidia-register": text}

    assert Hami().inventory(Node("n", annotations=annotations)) is None


def test_cordoned_cards_are_marked() -> None:
    """The node's annotation lists their UUIDs."""
    node = registered(cards(100, 100, 100), **{"hami.io/device-cordon": "gpu-2, gpu-0"})

    assert [True, False, True] == [card.cordoned for card in Hami().inventory(node) or ()]


def transcript(step: str) -> Any:
    """One step of the recorded talk between scheduler and HAMi."""
    return next(entry for entry in json.loads(TRANSCRIPT.read_text()) if entry["step"] == step)


def test_the_recorded_filter_is_written_to_the_letter() -> None:
    """Two GPUs of 3000 MiB and 30 cores: the annotations of the transcript, its time included."""
    register = transcript("node after registration by the scheduler")["node"]["hami.io/node-nvidia-register"]
    node = Node("b145c5-a", annotations={"hami.io/node-nvidia-register": register})
    asking = pod(gpus=2, mib=3000, cores=30)
    demand, devices = Hami().demand(asking), Hami().inventory(node) or ()
    assert isinstance(demand, PodDemand)
    fit = Hami().fit(devices, demand, asking, node, ())
    assert isinstance(fit, Fit)

    written = allocation_annotations(fit, demand, "b145c5-a", 1795245510.9)
    assert transcript("p1 after /filter")["pod"]["annotations"] == written


def test_a_mig_instance_is_written_and_read_back() -> None:
    """Container, card, profile and place; the card then has that place taken."""
    fit, demand = decided((MIG_CARD,), pod(mib=4000)), Hami().demand(pod(mib=4000))
    assert isinstance(fit, Fit)
    assert isinstance(demand, PodDemand)
    written = allocation_annotations(fit, demand, "n", 0)

    instance = {"containerIndex": 0, "deviceIndex": 0, "gpuUUID": "GPU-m", "profile": "1g.6gb"}
    expected: list[object] = [{**instance, "placement": {"start": 3, "size": 1}}]
    assert expected == json.loads(written["hami.io/vgpu-mig-allocations"])
    assert fit.devices == Hami().occupied((MIG_CARD,), [Occupant(replace(pod(), annotations=written), None)])


ALLOCATED = "hami.io/vgpu-devices-allocated"


def occupant(record: str, *, initialised: bool = False, init: int = 0) -> Occupant:
    """A running pod with HAMi's record."""
    held = pod(container("main"), init=[container(f"init-{i}") for i in range(init)])
    return Occupant(replace(held, annotations={ALLOCATED: record}, initialised=initialised), None)


INIT_RECORD = "gpu-0,NVIDIA,9000,10:;gpu-0,NVIDIA,2000,30:;gpu-1,NVIDIA,500,0:;"
BOOKED = [
    (occupant("gpu-0,NVIDIA,3000,20:gpu-1,NVIDIA,3000,20:;"), [(3000, 20, 1), (3000, 20, 1)]),
    (occupant("gpu-0,NVIDIA,3000,20:;gpu-0,NVIDIA,1000,0:;"), [(4000, 20, 2), (0, 0, 0)]),
    (occupant(INIT_RECORD, init=1), [(9000, 30, 1), (500, 0, 1)]),
    (occupant(INIT_RECORD, init=1, initialised=True), [(2000, 30, 1), (500, 0, 1)]),
    (occupant("gpu-9,NVIDIA,3000,20:;"), [(0, 0, 0), (0, 0, 0)]),
    (occupant("not a record"), [(0, 0, 0), (0, 0, 0)]),
    (occupant(f"gpu-0,NVIDIA,{'9' * 5000},0:;"), [(0, 0, 0), (0, 0, 0)]),
    (occupant("gpu-0,NVIDIA,much,0:;"), [(0, 0, 0), (0, 0, 0)]),
]


@pytest.mark.parametrize(("holder", "expected"), BOOKED)
def test_what_a_pod_holds_is_read_from_hamis_record(holder: Occupant, expected: list[tuple[int, int, int]]) -> None:
    """MiB, cores and slots of each card: the larger of any init container and the sum of the app containers."""
    after = Hami().occupied(cards(20000, 20000), [holder])

    assert expected == [(d.used_memory_mib, d.used_cores, d.used_slots) for d in after]


def test_a_pod_without_a_record_is_booked_on_the_emptiest_card() -> None:
    """What is left must not be overrated: the largest free part of a card shrinks."""
    first, second = cards(20000, 20000)
    asking = pod(mib=6000, cores=10)
    demand = Hami().demand(asking)
    assert isinstance(demand, PodDemand)

    after = Hami().occupied((first.taking(1000, 0), second), [Occupant(asking, demand)])
    assert [1000, 6000] == [d.used_memory_mib for d in after]


WAITING = Occupant(
    pod(mib=6000, cores=10), PodDemand("hami", (ContainerDemand("main", SliceRequest(1, 6000, 100, 10)),))
)


@given(st.lists(st.sampled_from([*(holder for holder, _ in BOOKED), WAITING]), max_size=6), st.booleans())
@examples(100)
def test_what_pods_hold_together_is_what_they_hold_one_after_the_other(holders: list[Occupant], is_cut: bool) -> None:
    """Also where one has no record, or a card is cut by MIG."""
    devices = (*cards(20000, 20000), *((MIG_CARD,) if is_cut else ()))
    after = devices
    for holder in holders:
        after = Hami().occupied(after, [holder])

    assert after == Hami().occupied(devices, holders)


def test_a_booking_is_known_before_the_pod_is_bound() -> None:
    """HAMi's filter writes the node at once; a pod that has ended books nothing."""
    booked = replace(pod(), annotations={"hami.io/vgpu-node": "n1"})

    assert ["n1", "", ""] == [Hami().booked_node(p) for p in (booked, replace(booked, phase="Failed"), pod())]


def test_a_quota_counts_what_hami_has_recorded() -> None:
    """MiB and cores over all cards, under the keys of a ResourceQuota."""
    holders = [occupant("gpu-0,NVIDIA,3000,20:gpu-1,NVIDIA,3000,20:;"), occupant(INIT_RECORD, init=1)]

    expected = Resources({"limits.nvidia.com/gpumem": 15500, "limits.nvidia.com/gpucores": 70})
    assert expected == Hami().quota_used(holders)


def test_link_scores_that_cannot_be_read_count_as_none() -> None:
    """Topology-aware choice falls back to the plain order, as without the annotation."""
    node = registered(cards(100, 100), **{"hami.io/node-nvidia-score": "[1]"})
    asking = pod(mib=10, annotations={"hami.io/gpu-scheduler-policy": "topology-aware"})
    demand = Hami().demand(asking)
    assert isinstance(demand, PodDemand)

    fit = Hami().fit(Hami().inventory(node) or (), demand, asking, node, ())
    assert isinstance(fit, Fit)
    assert [1] == [share.device for share in fit.slices]
